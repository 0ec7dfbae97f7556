//! What can go wrong, each in one line that says what to do next.

use std::path::{Path, PathBuf};
use types::{Element, FilterError, Metric};

/// A search or a score that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ExactError {
    /// The metric has no meaning for these vectors.
    #[error(
        "{metric} does not fit {element} vectors: bits take hamming, all others l2, cosine or inner_product; set --metric"
    )]
    Incompatible {
        /// The metric asked for.
        metric: Metric,
        /// What the vectors hold.
        element: Element,
    },
    /// Base and queries hold bits here and numbers there.
    #[error("the base holds {base}, the queries {queries}: bits compare with bits only; convert one of them")]
    Elements {
        /// Type of the base.
        base: Element,
        /// Type of the queries.
        queries: Element,
    },
    /// Base and queries differ in length.
    #[error("base vectors have {base} dimensions, queries {queries}: they are not of one data set")]
    Dimensions {
        /// Of the base.
        base: usize,
        /// Of the queries.
        queries: usize,
    },
    /// More rows than a row number holds.
    #[error("{0} rows: at most 4,294,967,295 can be searched at once; split the base")]
    TooManyRows(usize),
    /// A row set, columns or filters of another length than the vectors.
    #[error("{what} cover {found} {unit}, the data set has {expected}")]
    Length {
        /// What does not fit: "row set", "columns", "filters", "truth".
        what: &'static str,
        /// "rows" or "queries".
        unit: &'static str,
        /// Its length.
        found: usize,
        /// The data set's.
        expected: usize,
    },
    /// A filter that does not fit the columns.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// A filter, but no columns.
    #[error("filter {0}, but the data set has no columns")]
    NoColumns(String),
    /// A component that is no number, or infinite.
    #[error(
        "row {row} of the {what} holds NaN or infinity, which has no distance: `annvil dataset validate` lists such rows, --drop-bad-rows leaves them out"
    )]
    NotFinite {
        /// "base" or "queries".
        what: &'static str,
        /// The row.
        row: usize,
    },
    /// `k` is 0.
    #[error("k is 0: ask for at least one neighbour")]
    ZeroK,
    /// The caller's stop flag was set.
    #[error("stopped before the exact search was finished")]
    Stopped,
    /// The operating system gave no threads.
    #[error("cannot start {threads} search threads: {source}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// Why not.
        source: rayon::ThreadPoolBuildError,
    },
    /// The truth holds fewer neighbours than recall at `k` needs.
    #[error("truth has {depth} neighbours, k is {k}: {} (first at query {query})", narrow_advice(*depth))]
    NarrowTruth {
        /// Neighbours that the truth has for that query.
        depth: usize,
        /// The first query that has too few.
        query: usize,
        /// What was asked for.
        k: usize,
    },
    /// The truth names a row that does not exist.
    #[error(
        "truth of query {query} names row {row}, the base has {rows} rows: it was made for another base; recompute it"
    )]
    TruthRow {
        /// The query.
        query: usize,
        /// The row.
        row: u32,
        /// Rows of the base.
        rows: usize,
    },
    /// The truth names a row that the query may not return.
    #[error(
        "truth of query {query} names row {row}, which its filter or the rows present leave out: it is the truth of another question; recompute it"
    )]
    TruthNotAllowed {
        /// The query.
        query: usize,
        /// The row.
        row: u32,
    },
    /// The cache directory cannot be used.
    #[error("cannot {action} truth cache {path}: {source}", path = path.display())]
    Cache {
        /// "write", "create".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A part file cannot be read or written.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    PartIo {
        /// "read", "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A part file that must not be used.
    #[error("{path}: {reason}", path = path.display())]
    Part {
        /// The file.
        path: PathBuf,
        /// Why not, and what to do.
        reason: String,
    },
    /// Parts that make no whole.
    #[error("{0}")]
    Parts(String),
}

impl ExactError {
    /// An [`ExactError::Cache`] for `map_err`.
    pub(crate) fn cache(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ExactError {
        let path = path.to_owned();
        move |source| ExactError::Cache { action, path, source }
    }
}

fn narrow_advice(depth: usize) -> String {
    if depth == 0 { "recompute the truth".into() } else { format!("use --k {depth} or recompute the truth") }
}
