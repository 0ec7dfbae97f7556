//! One measured cell.

use crate::Flag;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Rows inserted.
    Load,
    /// Index built, readiness included.
    Build,
    /// Queries at one effort.
    Sweep,
    /// A phase that a newer minor format added.
    #[serde(other)]
    Unknown,
}

/// What became of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Measured, and the figures stand.
    Valid,
    /// Measured, but the figures must not be used; `reason` says why.
    Invalid,
    /// Not measured; figures are null, `reason` says why.
    Failed,
    /// Left out on purpose; `reason` says why.
    Skipped,
    /// A status that a newer minor format added; its figures are not used.
    #[serde(other)]
    Unknown,
}

/// One line of `records.jsonl`. Flat: every figure is a field of the object. A figure that was
/// not measured is null or absent, never 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Hash of everything that determines the point.
    pub key: String,
    /// [`crate::MEASUREMENT_VERSION`] of the tool that measured it.
    pub measurement_version: u32,
    /// When it was finished (UTC, RFC 3339).
    pub finished_at: String,
    /// What was done.
    pub phase: Phase,
    /// What became of it.
    pub status: Status,
    /// Why it is not valid, for people.
    pub reason: Option<String>,
    /// Why it is not valid, for programs: `row_count`, `index_mismatch`, `timeout`, `errors` ...
    #[serde(default)]
    pub code: Option<String>,
    /// Marks.
    pub flags: Vec<Flag>,
    /// Name of the data set.
    pub dataset: String,
    /// Its content hash.
    pub dataset_hash: String,
    /// Hash of the truth that recall was computed with.
    pub truth_hash: Option<String>,
    /// Rows in the base.
    pub rows: u64,
    /// Components of a vector.
    pub dim: u64,
    /// Metric.
    pub metric: String,
    /// Name of the engine.
    pub engine: String,
    /// Its title for people.
    pub engine_title: String,
    /// Its version as it says.
    pub engine_version: String,
    /// Kind of index as asked for.
    pub index_kind: String,
    /// The build in words: `m=16 ef_construction=128`.
    pub build: String,
    /// The build's parameters.
    pub params: BTreeMap<String, Value>,
    /// The search-time knob's name.
    pub effort_name: Option<String>,
    /// Its value.
    pub effort: Option<u64>,
    /// Rows asked for.
    pub k: Option<u64>,
    /// Client threads.
    pub clients: Option<u64>,
    /// The filter's name.
    pub filter: Option<String>,
    /// Whether the engine is the exact control.
    pub exact: bool,
    /// Wall time that the point took, warm-up and scoring included (s).
    pub point_seconds: f64,
    /// Figures of a load.
    #[serde(flatten)]
    pub load: LoadFigures,
    /// Figures of a build.
    #[serde(flatten)]
    pub built: BuildFigures,
    /// Figures of a search.
    #[serde(flatten)]
    pub search: SearchFigures,
}

/// Figures of the load phase.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct LoadFigures {
    /// From the first insert to the end of the load (s).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub load_seconds: Option<f64>,
    /// Rows sent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub load_rows: Option<u64>,
    /// Rows that the engine counts afterwards.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub load_rows_counted: Option<u64>,
    /// Rows a second.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub load_rows_per_second: Option<f64>,
    /// Threads, each with its own connection.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub load_workers: Option<u64>,
    /// Rows in a batch.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub load_batch_rows: Option<u64>,
    /// Inserts tried again after a conflict.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub load_retries: Option<u64>,
    /// Memory of the engine's processes after the load, as `memory_after_bytes` after the build.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub load_memory_bytes: Option<u64>,
}

/// Figures of the build phase.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct BuildFigures {
    /// The build call (s).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub build_seconds: Option<f64>,
    /// From the build call's return until the index was ready (s).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ready_seconds: Option<f64>,
    /// Load + build + ready (s): time to a queryable index.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queryable_seconds: Option<f64>,
    /// Threads that the build could use.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub build_threads: Option<u64>,
    /// Whether the index is made while rows are inserted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub built_during_load: Option<bool>,
    /// Size of the index alone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub index_bytes: Option<u64>,
    /// Size of the rows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub table_bytes: Option<u64>,
    /// Rows in the index, read back.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub indexed_rows: Option<u64>,
    /// Kind of index, read back.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub index_kind_read: Option<String>,
    /// Parameters, read back.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub params_read: Option<BTreeMap<String, Value>>,
    /// What the engine remarked while it built the index.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub build_remarks: Option<Vec<String>>,
    /// Bytes of the data folder of a server that Annvil started, after the build.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub disk_bytes: Option<u64>,
    /// Highest memory of the engine's processes during the build: anonymous and shared, without pages of files,
    /// for a server that Annvil started; unknown for a server elsewhere; for an embedded engine
    /// the growth of Annvil's own process since before the load (memory that an engine before it gave
    /// back may be used again, so that is a lower bound).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_peak_bytes: Option<u64>,
    /// Memory after the build, likewise.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_after_bytes: Option<u64>,
}

/// Figures of a search phase. Latencies in nanoseconds, from when the request was due (in a
/// closed loop: from when it was sent).
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct SearchFigures {
    /// Different queries in the set.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queries: Option<u64>,
    /// Queries sent in all repeats.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sent: Option<u64>,
    /// Queries answered in all repeats.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub answered: Option<u64>,
    /// Queries that failed, by kind of error.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub errors: Option<BTreeMap<String, u64>>,
    /// The first error in words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_error: Option<String>,
    /// Median over the repeats of answered / wall time of the window (1/s).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub throughput: Option<f64>,
    /// The throughput of every repeat.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub throughput_repeats: Option<Vec<f64>>,
    /// (largest - smallest) / median of the repeats.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub throughput_spread: Option<f64>,
    /// Wall time of every repeat's window (s).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub window_seconds: Option<Vec<f64>>,
    /// Mean latency over all repeats.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub latency_mean_ns: Option<f64>,
    /// Median latency.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub latency_p50_ns: Option<u64>,
    /// 90th percentile.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub latency_p90_ns: Option<u64>,
    /// 95th percentile.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub latency_p95_ns: Option<u64>,
    /// 99th percentile; absent below 1,000 samples.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub latency_p99_ns: Option<u64>,
    /// 99.9th percentile; absent below 10,000 samples.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub latency_p999_ns: Option<u64>,
    /// Largest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub latency_max_ns: Option<u64>,
    /// Warm-up queries sent before the clock started, not counted above.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub warmup_queries: Option<u64>,
    /// Latency of the very first query of the point (in the warm-up where there is one, else in the
    /// first window).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_query_ns: Option<u64>,
    /// Mean recall (docs/measurement.md).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recall: Option<f64>,
    /// 5th percentile of the queries' recall.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recall_p5: Option<f64>,
    /// Lowest recall of a query.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recall_min: Option<f64>,
    /// 95 % interval of the mean over the queries, lower end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recall_low: Option<f64>,
    /// 95 % interval, upper end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recall_high: Option<f64>,
    /// Mean share of the true ids returned, ties not credited.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub id_overlap: Option<f64>,
    /// Mean recall by ann-benchmarks' rule (absolute 1e-3).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recall_ann_benchmarks: Option<f64>,
    /// Queries that recall was computed over.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recall_queries: Option<u64>,
    /// Queries without a qualifying row, counted apart.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recall_excluded: Option<u64>,
    /// Rows that qualify for a query (pass its filter and have a distance), mean over the queries.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub matching_rows: Option<f64>,
    /// Mean number of rows returned.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mean_length: Option<f64>,
    /// Share of queries with fewer than min(k, qualifying) rows.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub short_share: Option<f64>,
    /// Queries without any row although some qualify.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub empty_answers: Option<u64>,
    /// Repeated ids.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub duplicate_ids: Option<u64>,
    /// Ids that are no row of ours.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unknown_ids: Option<u64>,
    /// Rows beyond k.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub excess_rows: Option<u64>,
    /// Rows that do not satisfy the filter.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub filter_violations: Option<u64>,
    /// Answers not in order of distance.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unordered_answers: Option<u64>,
    /// Sum of the latencies / wall time of the windows: requests in service (Little's law), to compare
    /// with `clients`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub in_service: Option<f64>,
    /// Share of the client threads' time outside the engine's call.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client_share: Option<f64>,
    /// Share of the client threads' time on a CPU (an embedded engine computes there).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub on_cpu_share: Option<f64>,
    /// Share of the client threads' time waiting for a CPU.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpu_wait_share: Option<f64>,
    /// Share of the machine's CPUs that Annvil's own process used (an embedded engine computes in it).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub process_cpu_share: Option<f64>,
    /// Highest anonymous memory of Annvil's own process.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub process_memory_peak_bytes: Option<u64>,
    /// Most files and connections that Annvil's own process had open.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub process_open_files_peak: Option<u64>,
    /// Whether the index was used, as the engine says.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uses_index: Option<bool>,
    /// The engine's plan of the first query.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub query_plan: Option<String>,
}
