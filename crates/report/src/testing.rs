//! Realistic records to test with: several engines, one that is not valid in places, missing figures,
//! long names.

use record::{
    DatasetEntry, EngineEntry, Finding, Flag, Manifest, Phase, Point, RunSession, Status, Tool, Verdict,
};
use serde_json::json;
use std::collections::BTreeMap;

/// Points of a run, one after the other.
pub(crate) struct Builder {
    pub(crate) points: Vec<Point>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Builder { points: Vec::new() }
    }

    /// A blank valid point.
    pub(crate) fn point(&mut self, phase: Phase, engine: &str, build: &str) -> &mut Point {
        let params: BTreeMap<String, serde_json::Value> = build
            .split_whitespace()
            .filter_map(|part| part.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.parse::<i64>().map_or(json!(value), |v| json!(v))))
            .collect();
        let key = format!("{:016x}", 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(self.points.len() as u64 + 1));
        let exact = engine == "flat";
        let line = json!({
            "key": key, "measurement_version": 1, "finished_at": "2026-11-30T12:00:00Z", "phase": phase,
            "status": "valid", "flags": [], "dataset": "sentences", "dataset_hash": "b3:aa11bb22cc33dd44",
            "truth_hash": if phase == Phase::Sweep { Some("b3:7777") } else { None }, "rows": 10_000, "dim": 384,
            "metric": "cosine", "engine": engine, "engine_title": engine, "engine_version": "2.17.0",
            "index_kind": if exact { "flat" } else { "hnsw" }, "build": build,
            "params": params, "exact": exact, "point_seconds": 3.5,
        });
        self.points.push(serde_json::from_value(line).expect("a point"));
        self.points.last_mut().expect("just pushed")
    }

    pub(crate) fn load(&mut self, engine: &str, build: &str, seconds: f64) -> &mut Point {
        let point = self.point(Phase::Load, engine, build);
        point.load.load_seconds = Some(seconds);
        point.load.load_rows = Some(10_000);
        point.load.load_rows_counted = Some(10_000);
        point.load.load_rows_per_second = Some(10_000.0 / seconds);
        point
    }

    pub(crate) fn build(&mut self, engine: &str, build: &str, seconds: f64) -> &mut Point {
        let point = self.point(Phase::Build, engine, build);
        let built = &mut point.built;
        built.build_seconds = Some(seconds);
        built.ready_seconds = Some(0.0125);
        built.queryable_seconds = Some(seconds + 1.0125);
        built.index_bytes = Some(2_345_678);
        built.table_bytes = Some(15_360_000);
        built.index_kind_read = Some(point.index_kind.clone());
        built.params_read = Some(point.params.clone());
        built.memory_peak_bytes = Some(123_456_789);
        point
    }

    /// A sweep point: three repeats within 2 %.
    pub(crate) fn sweep(
        &mut self,
        engine: &str,
        build: &str,
        effort: Option<u64>,
        recall: f64,
        rate: f64,
    ) -> &mut Point {
        let point = self.point(Phase::Sweep, engine, build);
        point.effort_name = effort.map(|_| "ef_search".into());
        point.effort = effort;
        point.k = Some(10);
        point.clients = Some(1);
        let s = &mut point.search;
        s.queries = Some(1000);
        s.throughput = Some(rate);
        s.throughput_repeats = Some(vec![rate * 0.99, rate, rate * 1.01]);
        s.throughput_spread = Some(0.02);
        s.latency_p50_ns = Some((0.9e9 / rate) as u64);
        s.latency_p95_ns = Some((1.5e9 / rate) as u64);
        s.latency_p99_ns = Some((2.2e9 / rate) as u64);
        s.recall = Some(recall);
        s.recall_p5 = Some((recall - 0.15).max(0.0));
        s.recall_min = Some((recall - 0.4).max(0.0));
        s.recall_low = Some((recall - 0.004).max(0.0));
        s.recall_high = Some((recall + 0.004).min(1.0));
        s.id_overlap = Some(recall);
        s.recall_queries = Some(1000);
        point
    }

    /// A failed sweep point without figures.
    pub(crate) fn failed(&mut self, engine: &str, build: &str, effort: u64, reason: &str) -> &mut Point {
        let point = self.point(Phase::Sweep, engine, build);
        (point.effort_name, point.effort) = (Some("ef_search".into()), Some(effort));
        (point.k, point.clients) = (Some(10), Some(1));
        (point.status, point.reason) = (Status::Failed, Some(reason.into()));
        point
    }
}

/// A run as people make it: two good engines, the control, one that went wrong in places.
pub(crate) fn realistic() -> (Manifest, Vec<Point>) {
    let mut b = Builder::new();
    b.load("usearch", "m=16 ef_construction=128", 1.0);
    b.build("usearch", "m=16 ef_construction=128", 4.2).built.built_during_load = Some(true);
    for (effort, recall, rate) in [
        (10, 0.8312, 41_250.0),
        (20, 0.9024, 30_110.0),
        (40, 0.9551, 19_870.0),
        (80, 0.9816, 12_430.0),
        (160, 0.9934, 7_120.0),
        (320, 0.9979, 3_980.0),
    ] {
        b.sweep("usearch", "m=16 ef_construction=128", Some(effort), recall, rate);
    }
    b.points[2].flags = vec![Flag::ClientLimited];
    b.points[4].flags = vec![Flag::Noisy];
    b.load("usearch", "m=32 ef_construction=256", 1.1);
    b.build("usearch", "m=32 ef_construction=256", 9.8);
    for (effort, recall, rate) in [(10, 0.9011, 30_300.0), (40, 0.9822, 14_020.0), (160, 0.99962, 4_950.0)] {
        b.sweep("usearch", "m=32 ef_construction=256", Some(effort), recall, rate);
    }
    b.load("flat", "", 0.4);
    b.build("flat", "", 0.0);
    b.sweep("flat", "", None, 1.0, 812.0);
    let slow = "m=16 quantization=product a_rather_long_parameter_name=1234567890";
    b.load("A Database With A Long Name", slow, 61.0);
    let built = b.build("A Database With A Long Name", slow, 240.0);
    built.built.index_kind_read = Some("ivfflat".into());
    built.built.index_bytes = None;
    for (effort, recall, rate) in
        [(10, 0.52, 1_500.0), (100, 0.71, 620.0), (800, 0.8712, 88.0), (400, 0.8712, 80.0)]
    {
        b.sweep("A Database With A Long Name", slow, Some(effort), recall, rate);
    }
    b.failed("A Database With A Long Name", slow, 1600, "out of memory at limit 2.0 GiB (killed, signal 9)");
    let no_recall = b.sweep("A Database With A Long Name", slow, Some(1200), 0.9, 60.0);
    let s = &mut no_recall.search;
    (s.recall, s.recall_p5, s.recall_min, s.recall_low, s.recall_high, s.id_overlap) = Default::default();
    no_recall.flags = vec![Flag::NoRecall];
    (manifest(), b.points)
}

pub(crate) fn manifest() -> Manifest {
    let engine = |title: &str, settings: serde_json::Value, asymmetries: &[&str]| EngineEntry {
        title: title.into(),
        version: "2.17.0".into(),
        source: "crate usearch 2.17.0".into(),
        client: "in process".into(),
        protocol: "embedded".into(),
        address: None,
        definition: json!({"name": title, "index": [{"kind": "hnsw", "params": {"m": {"default": 16}}}]}),
        settings,
        asymmetries: asymmetries.iter().map(|&s| s.to_owned()).collect(),
        advice: vec![],
        server: None,
    };
    let manifest = json!({
        "format": [1, 0],
        "tool": Tool { name: "annvil".into(), version: "0.1.0".into(), commit: Some("0123abc".into()), measurement_version: 1 },
        "name": "quick", "created_at": "2026-11-30T11:58:00Z",
        "plan": {"name": "quick", "phases": [{"kind": "sweep", "clients": 1, "repeats": 3}], "k": 10},
        "seeds": {"queries": 42},
        "machine": {"system": "Debian GNU/Linux 12", "kernel": "6.1.0", "cpu": {"model": "AMD EPYC 7763", "logical": 2,
            "allowed_count": 2, "governor": null}, "memory": {"total_bytes": 8_589_934_592_u64},
            "cgroup": {"memory_bytes": {"at": 4_294_967_296_u64}}, "disk": {"rotational": false, "file_system": "ext4"}},
        "datasets": [DatasetEntry {
            name: "sentences".into(), source: "built in".into(), rows: 10_000, queries: 1000, dim: 384, element: "f32".into(),
            metric: "cosine".into(), base_hash: "b3:aa11bb22cc33dd44".into(), queries_hash: "b3:55".into(), columns_hash: None,
            truth: "computed".into(), truth_hash: Some("b3:7777".into()), notices: vec![], forced: vec![],
        }],
        "engines": {
            "usearch": engine("usearch", json!([{"name": "threads", "value": 2, "default": 2}, {"name": "metric", "value": "cos", "default": "ip"}]),
                &["Runs inside annvil: no network is between client and index."]),
            "flat": engine("flat", json!({}), &[]),
        },
        "sessions": [RunSession { started_at: "2026-11-30T11:58:00Z".into(), ended_at: Some("2026-11-30T12:01:00Z".into()),
            outcome: Some("finished".into()), command: vec!["annvil".into(), "run".into()] }],
        "verdict": Verdict { valid: false, findings: vec![
            Finding { fatal: true, code: "index_kind".into(), engine: Some("A Database With A Long Name".into()), message: "the index is ivfflat, hnsw was asked for".into() },
            Finding { fatal: false, code: "governor".into(), engine: None, message: "the CPU governor is unknown".into() },
        ] },
    });
    serde_json::from_value(manifest).expect("a manifest")
}
