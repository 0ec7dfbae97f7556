//! The format as the outside sees it: the page that describes it says what the code writes, and runs of
//! every earlier version stay readable.

use record::{
    BuildFigures, DatasetEntry, EngineEntry, Finding, Flag, LoadFigures, Manifest, POINT_FIELDS, Phase,
    Point, RAW_COLUMNS, RunDir, RunSession, SearchFigures, Status, Tool, Verdict, read_raw, read_series,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The names in the first column of the tables between `<!-- fields: NAME -->` and `<!-- end -->`.
fn documented(name: &str) -> Vec<String> {
    let page = std::fs::read_to_string(here().join("../../docs/record-format.md")).unwrap();
    let start =
        page.find(&format!("<!-- fields: {name} -->")).unwrap_or_else(|| panic!("no fields of {name}"));
    let part = &page[start..];
    let part = &part[..part.find("<!-- end -->").expect("an end")];
    part.lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(field, _)| field.to_owned())
        .collect()
}

/// Holds the documented fields against those of a full value, in any order, each once.
fn agrees(name: &str, value: &Value) {
    let found: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
    let mut listed = documented(name);
    let distinct: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(distinct.len(), listed.len(), "{name}: a field stands twice in docs/record-format.md");
    let mut found_sorted = found;
    found_sorted.sort();
    listed.sort();
    assert_eq!(listed, found_sorted, "docs/record-format.md (left) against the code (right): {name}");
}

/// Every field filled, without `..`: a new field does not compile until it is added here, and then
/// fails until it is documented.
fn full_point() -> Point {
    let word = || Some("x".to_owned());
    Point {
        key: "k".into(),
        measurement_version: 1,
        finished_at: "t".into(),
        phase: Phase::Sweep,
        status: Status::Valid,
        reason: word(),
        code: word(),
        flags: vec![Flag::Noisy],
        dataset: "d".into(),
        dataset_hash: "h".into(),
        truth_hash: word(),
        rows: 1,
        dim: 1,
        metric: "l2".into(),
        engine: "e".into(),
        engine_title: "E".into(),
        engine_version: "1".into(),
        index_kind: "hnsw".into(),
        build: "m=1".into(),
        params: BTreeMap::new(),
        effort_name: word(),
        effort: Some(1),
        k: Some(1),
        clients: Some(1),
        filter: word(),
        exact: false,
        point_seconds: 1.0,
        load: full_load(),
        built: full_build(),
        search: full_search(),
    }
}

fn full_load() -> LoadFigures {
    LoadFigures {
        load_seconds: Some(1.5),
        load_rows: Some(1),
        load_rows_counted: Some(1),
        load_rows_per_second: Some(1.5),
        load_workers: Some(1),
        load_batch_rows: Some(1),
        load_retries: Some(1),
        load_memory_bytes: Some(1),
    }
}

fn full_build() -> BuildFigures {
    BuildFigures {
        build_seconds: Some(1.5),
        ready_seconds: Some(1.5),
        queryable_seconds: Some(1.5),
        build_threads: Some(1),
        built_during_load: Some(true),
        index_bytes: Some(1),
        table_bytes: Some(1),
        indexed_rows: Some(1),
        index_kind_read: Some("x".into()),
        params_read: Some(BTreeMap::new()),
        build_remarks: Some(vec!["x".into()]),
        disk_bytes: Some(1),
        memory_peak_bytes: Some(1),
        memory_after_bytes: Some(1),
    }
}

fn full_search() -> SearchFigures {
    SearchFigures {
        queries: Some(1),
        sent: Some(1),
        answered: Some(1),
        errors: Some(BTreeMap::new()),
        first_error: Some("x".into()),
        throughput: Some(1.5),
        throughput_repeats: Some(vec![1.5]),
        throughput_spread: Some(1.5),
        window_seconds: Some(vec![1.5]),
        latency_mean_ns: Some(1.5),
        latency_p50_ns: Some(1),
        latency_p90_ns: Some(1),
        latency_p95_ns: Some(1),
        latency_p99_ns: Some(1),
        latency_p999_ns: Some(1),
        latency_max_ns: Some(1),
        warmup_queries: Some(1),
        first_query_ns: Some(1),
        recall: Some(1.5),
        recall_p5: Some(1.5),
        recall_min: Some(1.5),
        recall_low: Some(1.5),
        recall_high: Some(1.5),
        id_overlap: Some(1.5),
        recall_ann_benchmarks: Some(1.5),
        recall_queries: Some(1),
        recall_excluded: Some(1),
        matching_rows: Some(1.5),
        mean_length: Some(1.5),
        short_share: Some(1.5),
        empty_answers: Some(1),
        duplicate_ids: Some(1),
        unknown_ids: Some(1),
        excess_rows: Some(1),
        filter_violations: Some(1),
        unordered_answers: Some(1),
        in_service: Some(1.5),
        client_share: Some(1.5),
        on_cpu_share: Some(1.5),
        cpu_wait_share: Some(1.5),
        process_cpu_share: Some(1.5),
        process_memory_peak_bytes: Some(1),
        process_open_files_peak: Some(1),
        uses_index: Some(true),
        query_plan: Some("x".into()),
    }
}

fn full_manifest() -> Manifest {
    let dataset = DatasetEntry {
        name: "d".into(),
        source: "s".into(),
        rows: 1,
        queries: 1,
        dim: 1,
        element: "f32".into(),
        metric: "l2".into(),
        base_hash: "h".into(),
        queries_hash: "h".into(),
        columns_hash: Some("h".into()),
        truth: "computed".into(),
        truth_hash: Some("h".into()),
        notices: vec![],
        forced: vec![],
    };
    let engine = EngineEntry {
        title: "E".into(),
        version: "1".into(),
        source: "s".into(),
        client: "c".into(),
        protocol: "p".into(),
        address: None,
        definition: json!({}),
        settings: json!([]),
        asymmetries: vec![],
        advice: vec![],
        server: None,
    };
    let session = RunSession { started_at: "t".into(), ended_at: None, outcome: None, command: vec![] };
    let finding = Finding { fatal: true, code: "c".into(), engine: None, message: "m".into() };
    Manifest {
        format: record::FORMAT,
        tool: Tool { name: "annvil".into(), version: "0".into(), commit: None, measurement_version: 1 },
        name: "r".into(),
        created_at: "t".into(),
        plan: json!({}),
        seeds: BTreeMap::new(),
        machine: json!({}),
        datasets: vec![dataset],
        engines: [("e".to_owned(), engine)].into(),
        planned: vec![],
        sessions: vec![session],
        verdict: Some(Verdict { valid: false, findings: vec![finding] }),
    }
}

#[test]
fn the_page_lists_the_fields_of_a_point() {
    let value = serde_json::to_value(full_point()).unwrap();
    agrees("point", &value);
    let names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, POINT_FIELDS, "POINT_FIELDS against the fields in the order of the file");
}

#[test]
fn the_page_lists_the_fields_of_the_manifest() {
    let value = serde_json::to_value(full_manifest()).unwrap();
    agrees("manifest", &value);
    agrees("tool", &value["tool"]);
    agrees("dataset", &value["datasets"][0]);
    agrees("engine", &value["engines"]["e"]);
    agrees("session", &value["sessions"][0]);
    agrees("verdict", &value["verdict"]);
    agrees("finding", &value["verdict"]["findings"][0]);
}

#[test]
fn the_page_lists_raw_columns_and_words() {
    assert_eq!(documented("raw"), RAW_COLUMNS);
    for flag in documented("flags") {
        let parsed: Flag = serde_json::from_value(json!(flag)).unwrap();
        assert_ne!(parsed, Flag::Unknown, "{flag} is documented and not known");
    }
    // Every flag of the source is documented.
    let source = std::fs::read_to_string(here().join("src/flag.rs")).unwrap();
    let body = &source[source.find("pub enum Flag").unwrap()..source.find("impl Flag").unwrap()];
    let names =
        body.lines().filter_map(|line| line.trim().strip_suffix(',')).filter(|name| *name != "Unknown");
    let listed = documented("flags");
    assert_eq!(names.count(), listed.len(), "flags in docs/record-format.md: {listed:?}");
}

fn fixture() -> PathBuf {
    here().join("tests/fixtures/run-1.0")
}

#[test]
fn a_run_of_format_1_0_stays_readable() {
    let run = RunDir::open(&fixture()).unwrap();
    let manifest = run.manifest().unwrap();
    assert_eq!((manifest.format, manifest.name.as_str()), ((1, 0), "fixture"));
    assert_eq!(manifest.engines["usearch"].version, "2.17.0");
    assert!(manifest.verdict.is_some_and(|v| v.valid && v.findings[0].code == "governor"));
    let points = run.points().unwrap();
    let phases: Vec<Phase> = points.iter().map(|p| p.phase).collect();
    assert_eq!(phases, [Phase::Load, Phase::Build, Phase::Sweep, Phase::Sweep]);
    assert_eq!(points[2].search.throughput_repeats.as_deref(), Some(&[980.0, 1000.0, 1020.0][..]));
    assert_eq!((points[3].status, points[3].search.throughput), (Status::Failed, None));
    assert_eq!(points[3].code.as_deref(), Some("timeout"));
    let raw = read_raw(&run.raw_path(&points[2].key)).unwrap();
    assert_eq!((raw.len(), raw.ids_of(0)), (4, &[3, 1][..]));
    assert_eq!(raw.error[3].as_deref(), Some("timeout"));
    let series: Vec<Value> = read_series(&run, "usearch").unwrap();
    assert_eq!(series[1]["memory_bytes"], 2048);
}

/// Writes the fixture anew. Only for a new version of the format, into a new folder: an old
/// fixture is never changed.
#[test]
#[ignore = "writes a fixture; run by hand with ANNVIL_FIXTURE_OUT"]
fn write_the_fixture() {
    let out = std::env::var_os("ANNVIL_FIXTURE_OUT").expect("ANNVIL_FIXTURE_OUT names the new folder");
    let run = RunDir::create(Path::new(&out)).unwrap();
    let mut manifest = full_manifest();
    manifest.name = "fixture".into();
    let engine = manifest.engines.remove("e").unwrap();
    manifest.engines.insert("usearch".into(), EngineEntry { version: "2.17.0".into(), ..engine });
    let note = Finding { fatal: false, code: "governor".into(), engine: None, message: "unknown".into() };
    manifest.verdict = Some(Verdict { valid: true, findings: vec![note] });
    run.write_manifest(&manifest).unwrap();
    let blank = |key: &str, phase| Point {
        key: key.into(),
        phase,
        reason: None,
        code: None,
        flags: vec![],
        load: LoadFigures::default(),
        built: BuildFigures::default(),
        search: SearchFigures::default(),
        ..full_point()
    };
    run.append(&Point { load: full_load(), ..blank("load", Phase::Load) }).unwrap();
    run.append(&Point { built: full_build(), ..blank("build", Phase::Build) }).unwrap();
    let mut search = full_search();
    search.throughput = Some(1000.0);
    search.throughput_repeats = Some(vec![980.0, 1000.0, 1020.0]);
    run.append(&Point { search, flags: vec![Flag::Noisy], ..blank("sweep", Phase::Sweep) }).unwrap();
    let (reason, code) = (Some("no answer in 30 s".into()), Some("timeout".into()));
    run.append(&Point { status: Status::Failed, reason, code, ..blank("failed", Phase::Sweep) }).unwrap();
    let raw = record::RawPoint {
        repeat: vec![0, 1, 0, 1],
        client: vec![0; 4],
        query: vec![0, 0, 1, 1],
        due_ns: vec![0, 0, 900, 910],
        sent_ns: vec![0, 0, 900, 910],
        done_ns: vec![850, 870, 1700, 2000],
        error: vec![None, None, None, Some("timeout".into())],
        ids: vec![3, 1, 3, 1],
        ids_end: vec![2, 4, 4, 4],
        hits: vec![Some(2), Some(2), Some(0), None],
        recall: vec![Some(1.0), Some(1.0), Some(0.0), Some(0.0)],
    };
    record::write_raw(&run.raw_path("sweep"), &raw).unwrap();
    let mut series = record::SeriesWriter::open(&run, "usearch").unwrap();
    series.append(&json!({"at_ns": 0, "memory_bytes": 1024})).unwrap();
    series.append(&json!({"at_ns": 1_000_000, "memory_bytes": 2048})).unwrap();
}
