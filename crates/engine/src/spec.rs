//! Plain values that pass between the runner and an engine.

use serde::{Deserialize, Serialize};
use std::{
    any::Any,
    collections::BTreeMap,
    ops::Range,
    sync::Arc,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};
use types::{ColumnType, Columns, Element, Filters, Metric, Vectors};

/// A build parameter's value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Param {
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A switch.
    Bool(bool),
    /// A word.
    Text(String),
}

impl std::fmt::Display for Param {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Param::Int(v) => v.fmt(f),
            Param::Float(v) => v.fmt(f),
            Param::Bool(v) => v.fmt(f),
            Param::Text(v) => v.fmt(f),
        }
    }
}

/// Build parameters by name, such as `m`, `ef_construction`, `lists`, `quantization`.
pub type Params = BTreeMap<String, Param>;

/// How rows are inserted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadMethod {
    /// The engine's fastest documented way.
    #[default]
    Fastest,
    /// Ordinary inserts, so that all engines load by the same kind of statement.
    Insert,
}

/// The table to make.
#[derive(Clone, Debug)]
pub struct TableSpec {
    /// A name of letters, digits and `_` that is ours alone.
    pub name: String,
    /// Components of a vector.
    pub dim: usize,
    /// Their type as sent.
    pub element: Element,
    /// The metric that will be asked for.
    pub metric: Metric,
    /// Rows that will come.
    pub rows: usize,
    /// Metadata columns.
    pub columns: Vec<(String, ColumnType)>,
    /// Columns that get an ordinary index of their own.
    pub indexed_columns: Vec<String>,
    /// How rows will be inserted.
    pub load: LoadMethod,
    /// The index, for engines that make it with the table.
    pub index: IndexSpec,
}

/// The index to build.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IndexSpec {
    /// Kind, such as `hnsw`; one of the definition's.
    pub kind: String,
    /// Metric.
    pub metric: Metric,
    /// Parameters, every one that the definition names, defaults filled in.
    pub params: Params,
    /// Threads that the build may use.
    pub threads: usize,
}

/// Rows to insert.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    /// Keys: consecutive row numbers.
    pub keys: Range<u64>,
    /// Their vectors: row i belongs to key `keys.start + i`.
    pub vectors: &'a Vectors,
    /// Their metadata, likewise.
    pub columns: Option<&'a Columns>,
}

/// What is asked of the engine at one point: the same for all its clients.
#[derive(Clone, Debug)]
pub struct SearchSpec {
    /// The query vectors.
    pub queries: Vectors,
    /// Rows wanted.
    pub k: usize,
    /// The search-time knob (`ef_search`, `nprobe`); none where the engine has none.
    pub effort: Option<u64>,
    /// The filter of each query.
    pub filters: Filters,
}

/// A [`SearchSpec`] with all that can be prepared before the clock starts: encoded vectors,
/// statements, bitmaps. Shared by the clients, never changed.
pub struct EncodedSearch {
    /// What it was made from.
    pub spec: SearchSpec,
    /// The engine's own form.
    pub payload: Box<dyn Any + Send + Sync>,
}

impl EncodedSearch {
    /// For engines that need no form of their own.
    pub fn plain(spec: SearchSpec) -> Arc<Self> {
        Arc::new(EncodedSearch { spec, payload: Box::new(()) })
    }
}

/// A server setting as read back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Name.
    pub name: String,
    /// Value in force.
    pub value: String,
    /// The default, where the engine tells it.
    pub default: Option<String>,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Default)]
pub struct Identity {
    /// Version as the engine says.
    pub version: String,
    /// Where it came from: crate, package, image digest, commit.
    pub source: String,
    /// The client library and its version.
    pub client: String,
    /// Protocol, and what the timed call includes.
    pub protocol: String,
    /// Settings as read back.
    pub settings: Vec<Setting>,
}

/// Whether the index can be searched as the index asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Searches use the complete index.
    pub ready: bool,
    /// Rows in the index, where the engine tells.
    pub indexed: Option<u64>,
}

/// The index as read back from the engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Default)]
pub struct IndexInfo {
    /// Kind, such as `hnsw`.
    pub kind: String,
    /// Parameters that the engine tells.
    pub params: Params,
    /// Rows in it, where the engine tells.
    pub indexed: Option<u64>,
    /// What the engine remarked while it was built, a line each.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// Sizes in bytes; none where they cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Sizes {
    /// The vector index without the rows.
    pub index: Option<u64>,
    /// The rows with their vectors.
    pub table: Option<u64>,
}

/// How the engine runs a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryPlan {
    /// The engine's own text.
    pub text: String,
    /// Whether the vector index is used, by the definition's marker; none where it can't be told.
    pub uses_index: Option<bool>,
}

/// The runner's hand on a long call: stop it, see how far it is.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
}

impl Control {
    /// Asks the call to end with [`crate::ErrorKind::Stopped`].
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether to end. Long calls look at it at least every 100 ms.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Tells how far the call is, in any unit of its own (rows, blocks).
    pub fn progress(&self, done: u64, total: u64) {
        self.total.store(total, Ordering::Relaxed);
        self.done.store(done, Ordering::Relaxed);
    }

    /// (done, total); total 0 where it is not known.
    pub fn progress_so_far(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }
}
