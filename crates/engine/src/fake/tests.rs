//! Each scripted behaviour does what its name says.

use super::*;
use crate::{Batch, Hits, Params};
use std::sync::Barrier;
use types::{Column, ColumnData, Columns, Element, Filter, Filters, Metric, Value, Vectors};

const ROWS: usize = 100;

struct Bench {
    engine: Box<dyn Engine>,
    definition: Definition,
}

/// A fake with `script`, 100 rows on a line (row i at x = i), column `c` = i % 10.
fn bench(script: &str) -> Bench {
    let bench = empty(script);
    insert(&bench, 0..ROWS).unwrap();
    bench.engine.finish_load().unwrap();
    let index = bench.definition.index_spec(None, Metric::L2, &Params::new(), 1).unwrap();
    bench.engine.build(&index, &Control::default()).unwrap();
    bench
}

fn empty(script: &str) -> Bench {
    let text = include_str!("../../../../engines/fake.toml");
    let mut definition = Definition::parse(text, "fake.toml").unwrap();
    definition.options = toml::from_str(script).unwrap();
    let engine = open(&definition).unwrap();
    engine.create(&table(&definition)).unwrap();
    Bench { engine, definition }
}

fn table(definition: &Definition) -> TableSpec {
    TableSpec {
        name: "t".into(),
        dim: 2,
        element: Element::F32,
        metric: Metric::L2,
        rows: ROWS,
        columns: vec![("c".into(), types::ColumnType::Int)],
        indexed_columns: Vec::new(),
        load: Default::default(),
        index: definition.index_spec(None, Metric::L2, &Params::new(), 1).unwrap(),
    }
}

fn insert(bench: &Bench, rows: std::ops::Range<usize>) -> Result<u64, EngineError> {
    let values = rows.clone().flat_map(|i| [i as f32, 0.0]).collect();
    let vectors = Vectors::from_f32(values, rows.len(), 2).unwrap();
    let c = ColumnData::Int(rows.clone().map(|i| Some(i as i64 % 10)).collect());
    let columns = Columns::new(vec![Column { name: "c".into(), data: c }]).unwrap();
    let keys = rows.start as u64..rows.end as u64;
    bench.engine.connect()?.insert(&Batch { keys, vectors: &vectors, columns: Some(&columns) })
}

/// Queries at x = 0.1, 1.1, ...
fn spec(queries: usize, k: usize, effort: u64, filters: Filters) -> SearchSpec {
    let values = (0..queries).flat_map(|i| [i as f32 + 0.1, 0.0]).collect();
    SearchSpec { queries: Vectors::from_f32(values, queries, 2).unwrap(), k, effort: Some(effort), filters }
}

fn session(bench: &Bench, spec: SearchSpec) -> Box<dyn Session> {
    let search = bench.engine.encode(spec).unwrap();
    let mut session = bench.engine.connect().unwrap();
    session.begin(search).unwrap();
    session
}

fn ask(script: &str, k: usize) -> Result<Vec<u64>, EngineError> {
    let bench = bench(script);
    let mut hits = Hits::default();
    session(&bench, spec(1, k, 40, Filters::None)).search(0, &mut hits)?;
    Ok(hits.keys().to_vec())
}

fn elapsed_ms(session: &mut dyn Session, query: usize) -> f64 {
    let start = Instant::now();
    session.search(query, &mut Hits::default()).unwrap();
    start.elapsed().as_secs_f64() * 1e3
}

#[test]
fn answers_are_shaped_as_scripted() {
    assert_eq!(ask("", 3).unwrap(), [0, 1, 2]);
    assert_eq!(ask("answers = 'prepared'", 3).unwrap(), [0, 1, 2]);
    assert_eq!(ask("answers = 'arbitrary'", 3).unwrap().len(), 3);
    assert_eq!(ask("reply = 'nearest_repeated'", 3).unwrap(), [0, 0, 0]);
    assert_eq!(ask("reply = 'top1'", 3).unwrap(), [0]);
    assert_eq!(ask("reply = 'two_more'", 3).unwrap(), [0, 1, 2, 3, 4]);
    assert_eq!(ask("reply = 'reversed'", 3).unwrap(), [2, 1, 0]);
    for id_type in ["unsigned", "int", "float", "text", "bytes"] {
        assert_eq!(ask(&format!("id_type = '{id_type}'"), 3).unwrap(), [0, 1, 2], "{id_type}");
    }
    let error = ask("id_type = 'bytes_text'", 3).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongAnswer);
    assert!(error.to_string().contains("b'0'"), "{error}");
}

#[test]
fn a_share_of_requests_fails_exactly() {
    for (share, expected) in [("1.0", 100), ("0.5", 50), ("0.07", 7), ("0.0", 0)] {
        let bench = bench(&format!("fail_share = {share}\nfail_kind = 'overloaded'"));
        let mut session = session(&bench, spec(1, 1, 40, Filters::None));
        let failed: Vec<ErrorKind> = (0..100)
            .filter_map(|_| session.search(0, &mut Hits::default()).err())
            .map(|e| e.kind())
            .collect();
        assert_eq!(failed, vec![ErrorKind::Overloaded; expected], "share {share}");
    }
}

#[test]
fn filters_are_applied_ignored_or_applied_too_late() {
    let five = || Filters::Same(Arc::new(Filter::Eq("c".into(), Value::Int(5))));
    for (script, expected) in
        [("", vec![5, 15, 25]), ("ignore_filter = true", vec![0, 1, 2]), ("post_filter = true", vec![])]
    {
        let bench = bench(script);
        let mut hits = Hits::default();
        session(&bench, spec(1, 3, 40, five())).search(0, &mut hits).unwrap();
        assert_eq!(hits.keys(), expected, "{script}");
    }
}

#[test]
fn rows_are_lost_refused_or_haunting() {
    assert_eq!(bench("keep_nothing = true").engine.row_count().unwrap(), 0);
    let lossy = empty("lose_last_batch = true");
    insert(&lossy, 0..90).unwrap();
    insert(&lossy, 90..100).unwrap();
    lossy.engine.finish_load().unwrap();
    assert_eq!(lossy.engine.row_count().unwrap(), 90);

    let full = empty("max_rows = 50");
    insert(&full, 0..50).unwrap();
    let error = insert(&full, 50..51).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overloaded);
    assert!(error.to_string().contains("memory"), "{error}");

    for (script, first) in [("", 1), ("ghosts = true", 0)] {
        let bench = bench(script);
        bench.engine.connect().unwrap().delete(&[0]).unwrap();
        assert_eq!(bench.engine.row_count().unwrap(), 99);
        let mut hits = Hits::default();
        session(&bench, spec(1, 2, 40, Filters::None)).search(0, &mut hits).unwrap();
        assert_eq!(hits.keys()[0], first, "{script}");
        insert(&bench, 0..1).unwrap();
        assert_eq!(bench.engine.row_count().unwrap(), 100);
    }
    assert!(insert(&bench(""), 0..1).unwrap_err().to_string().contains("key 0"));
}

#[test]
fn recall_rises_with_the_effort_and_is_repeatable() {
    let recall = |effort| {
        let bench = bench("effort_recall = true");
        let mut session = session(&bench, spec(80, 10, effort, Filters::None));
        let mut found = 0;
        for query in 0..80 {
            let mut hits = Hits::default();
            session.search(query, &mut hits).unwrap();
            assert_eq!(hits.keys().len(), 10);
            let exact = bench.engine.encode(spec(80, 10, effort, Filters::None)).unwrap();
            let low = exact.spec.queries.row(query)[0];
            found += hits.keys().iter().filter(|&&key| (key as f32 - low).abs() <= 10.0).count();
        }
        found
    };
    let counts: Vec<usize> = [10, 40, 200].map(recall).to_vec();
    assert!(counts[0] < counts[1] && counts[1] < counts[2], "{counts:?}");
    assert_eq!(recall(10), counts[0]);
}

#[test]
fn service_times_pass_in_parallel_or_one_by_one() {
    for (script, least, most) in
        [("service_ms = 40", 35.0, 110.0), ("service_ms = 40\nshared_lock = true", 155.0, 400.0)]
    {
        let bench = bench(script);
        let barrier = Barrier::new(4);
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut session = session(&bench, spec(1, 1, 40, Filters::None));
                    barrier.wait();
                    session.search(0, &mut Hits::default()).unwrap();
                });
            }
        });
        let ms = start.elapsed().as_secs_f64() * 1e3;
        assert!((least..most).contains(&ms), "{script}: {ms} ms");
    }
}

#[test]
fn some_calls_are_slow() {
    let bench = bench("slow_ms = 60\nslow_every = 4\nslow_first = 1");
    let mut session = session(&bench, spec(1, 1, 40, Filters::None));
    let slow: Vec<bool> = (0..8).map(|_| elapsed_ms(&mut *session, 0) > 50.0).collect();
    assert_eq!(slow, [true, false, false, true, false, false, false, true]);
}

#[test]
fn a_stall_ends_for_all_at_once() {
    let bench = bench("service_ms = 5\nstall_from_s = 0.05\nstall_to_s = 0.3");
    let mut session = session(&bench, spec(1, 1, 40, Filters::None));
    assert!(elapsed_ms(&mut *session, 0) < 45.0);
    std::thread::sleep(Duration::from_millis(80));
    let stalled = elapsed_ms(&mut *session, 0);
    assert!((150.0..300.0).contains(&stalled), "{stalled}");
    assert!(elapsed_ms(&mut *session, 0) < 100.0);
}

#[test]
fn a_build_takes_time_stops_when_told_and_is_ready_later() {
    let bench = empty("build_s = 0.05\nready_after_s = 0.1");
    let index = bench.definition.index_spec(None, Metric::L2, &Params::new(), 1).unwrap();
    insert(&bench, 0..ROWS).unwrap();
    assert!(!bench.engine.readiness().unwrap().ready);
    let (start, control) = (Instant::now(), Control::default());
    bench.engine.build(&index, &control).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(50));
    assert_eq!(control.progress_so_far(), (100, 100));
    assert!(!bench.engine.readiness().unwrap().ready);
    std::thread::sleep(Duration::from_millis(110));
    assert_eq!(bench.engine.readiness().unwrap(), Readiness { ready: true, indexed: Some(100) });

    let hanging = empty("build_hangs = true");
    let control = Control::default();
    std::thread::scope(|scope| {
        let build = scope.spawn(|| hanging.engine.build(&index, &control));
        std::thread::sleep(Duration::from_millis(20));
        control.stop();
        assert_eq!(build.join().unwrap().unwrap_err().kind(), ErrorKind::Stopped);
    });
}

#[test]
fn a_hanging_search_ends_when_the_engine_is_dropped() {
    let bench = bench("hang_at_search = 2");
    let mut session = session(&bench, spec(1, 1, 40, Filters::None));
    session.search(0, &mut Hits::default()).unwrap();
    let waiting = std::thread::spawn(move || session.search(0, &mut Hits::default()).unwrap_err().kind());
    std::thread::sleep(Duration::from_millis(50));
    assert!(!waiting.is_finished());
    drop(bench);
    assert_eq!(waiting.join().unwrap(), ErrorKind::Timeout);
}

#[test]
fn what_is_read_back_can_lie() {
    let bench = bench("read_back_kind = 'flat'\nread_back = { m = 8 }\nindexed_share = 0.6");
    let info = bench.engine.index_info().unwrap().unwrap();
    assert_eq!(
        (info.kind.as_str(), &info.params["m"], info.indexed),
        ("flat", &crate::Param::Int(8), Some(60))
    );
    assert_eq!(info.params["ef_construction"], crate::Param::Int(128));
}

#[test]
fn calls_are_logged_to_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("calls.log");
    let bench = bench(&format!("log = {path:?}"));
    drop(session(&bench, spec(3, 2, 40, Filters::None)));
    bench.engine.remove().unwrap();
    let log = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(
        lines,
        [
            "create t rows=100 dim=2",
            "build hnsw ef_construction=128 m=16",
            "begin k=2 effort=40 queries=3",
            "remove"
        ]
    );
}

#[test]
fn an_absent_or_closed_server_and_a_senseless_script_say_so() {
    let text = include_str!("../../../../engines/fake.toml");
    for (script, kind, word) in [
        ("unreachable = true", ErrorKind::Unreachable, "running"),
        ("denied = true", ErrorKind::Denied, "password"),
    ] {
        let mut definition = Definition::parse(text, "fake.toml").unwrap();
        definition.options = toml::from_str(script).unwrap();
        let error = open(&definition).unwrap().connect().err().unwrap();
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(word), "{error}");
    }
    for (script, word) in [("fail_share = 2.0", "0..1"), ("service_ms = nan", "service_ms"), ("x = 1", "`x`")]
    {
        let mut definition = Definition::parse(text, "fake.toml").unwrap();
        definition.options = toml::from_str(script).unwrap();
        let error = open(&definition).err().unwrap().to_string();
        assert!(error.contains(word) && !error.contains('\n'), "{error}");
    }
}

/// What the definition lacks is refused when the point is prepared, not on the timed path.
#[test]
fn what_is_lacking_is_refused_before_the_clock() {
    let mut bench = bench("");
    let refused = |bench: &Bench, spec: SearchSpec| bench.engine.encode(spec).err().unwrap();
    assert_eq!(refused(&bench, spec(1, 0, 40, Filters::None)).kind(), ErrorKind::Unsupported);
    assert!(refused(&bench, spec(1, 1, 0, Filters::None)).to_string().contains("ef_search"));
    bench.definition.capabilities.filters.clear();
    bench.engine = open(&bench.definition).unwrap();
    bench.engine.create(&table(&bench.definition)).unwrap();
    let filter = Filters::Same(Arc::new(Filter::Eq("c".into(), Value::Int(5))));
    let error = refused(&bench, spec(1, 1, 40, filter));
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("EqInt"), "{error}");
}

/// The null engine must be far cheaper than anything it is a ceiling for.
#[test]
fn the_null_engine_answers_in_well_under_a_microsecond() {
    let text = include_str!("../../../../engines/null.toml");
    let definition = Definition::parse(text, "null.toml").unwrap();
    let engine = open(&definition).unwrap();
    let bench = Bench { engine, definition };
    let table = TableSpec { columns: Vec::new(), ..table(&bench.definition) };
    bench.engine.create(&table).unwrap();
    insert(&bench, 0..ROWS).unwrap();
    let mut search = spec(100, 10, 0, Filters::None);
    search.effort = None;
    let mut session = session(&bench, search);
    let mut hits = Hits::with_capacity(10);
    let start = Instant::now();
    let calls = 2_000_000;
    for call in 0..calls {
        session.search(call % 100, &mut hits).unwrap();
        std::hint::black_box(hits.keys());
    }
    let per_second = f64::from(u32::try_from(calls).unwrap()) / start.elapsed().as_secs_f64();
    assert!(per_second > 3e6, "{per_second:.0} calls a second");
}

/// For tests of resuming after a kill: the process ends in the n-th search, by a signal.
#[test]
fn an_abort_ends_the_process_in_the_named_search() {
    const MARKER: &str = "ANNVIL_FAKE_ABORT_MARKER";
    if std::env::var_os(MARKER).is_some() {
        let marker = std::env::var(MARKER).unwrap();
        let bench = bench(&format!("abort_at_search = 3\nabort_once = {marker:?}"));
        let mut session = session(&bench, spec(1, 1, 40, Filters::None));
        session.search(0, &mut Hits::default()).unwrap();
        session.search(0, &mut Hits::default()).unwrap();
        session.search(0, &mut Hits::default()).unwrap();
        return; // the first time not reached
    }
    let test = "fake::tests::an_abort_ends_the_process_in_the_named_search";
    let dir = tempfile::tempdir().unwrap();
    let run = || {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(MARKER, dir.path().join("aborted"))
            .output()
            .unwrap()
    };
    let first = run();
    assert!(!first.status.success() && first.status.code().is_none(), "{first:?}");
    let second = run();
    assert!(second.status.success(), "a second run goes on: {second:?}");
}
