//! A data set in memory (mapped where the format allows).

use crate::{DatasetError, hash};
use std::sync::OnceLock;
use types::{Columns, FilterTemplate, Ids, Metric, Truth, Vectors};

/// Everything that a file or directory says, in one shape. Rows are known by number: `truth` names
/// rows of `base`, whatever ids the file uses.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Short name, for records and tables: the file's stem or what `dataset.toml` says.
    pub name: String,
    /// The metric that the file names or an option sets. None where neither does.
    pub metric: Option<Metric>,
    /// The rows that are loaded and searched.
    pub base: Vectors,
    /// The vectors that are asked for.
    pub queries: Vectors,
    /// The data set's own names of the base rows.
    pub ids: Ids,
    /// Metadata of the base rows.
    pub columns: Option<Columns>,
    /// Metadata of the query rows (for filters that take the query's own value).
    pub query_columns: Option<Columns>,
    /// True neighbours over all rows, as the file gives them (not yet believed).
    pub truth: Option<Truth>,
    /// True neighbours under a filter, as the files give them.
    pub filtered: Vec<FilteredTruth>,
    /// What the reader did that the user should know, a sentence each ("float64 read as float32").
    pub notices: Vec<String>,
    /// Filled by the first call of [`Dataset::hashes`].
    pub(crate) hashes: HashCell,
    /// Where hashes of large files are remembered, and under which key.
    pub(crate) hash_cache: Option<hash::Cache>,
}

impl Dataset {
    /// A data set of `base` and `queries` alone: no metric, columns or truth; row i has the id i.
    /// Fill in the public fields afterwards.
    pub fn new(name: impl Into<String>, base: Vectors, queries: Vectors) -> Self {
        Dataset {
            name: name.into(),
            metric: None,
            ids: Ids::RowNumbers(base.rows()),
            base,
            queries,
            columns: None,
            query_columns: None,
            truth: None,
            filtered: Vec::new(),
            notices: Vec::new(),
            hashes: HashCell::default(),
            hash_cache: None,
        }
    }

    /// The metric, for everything that measures a distance.
    ///
    /// # Errors
    /// Where neither the file nor an option names one; the message lists the accepted words.
    pub fn require_metric(&self) -> Result<Metric, DatasetError> {
        self.metric.ok_or_else(|| {
            DatasetError::Usage(format!(
                "{}: the data names no metric (in HDF5: the attribute \"distance\"); give it with --metric: {}",
                self.name,
                Metric::ACCEPTED
            ))
        })
    }

    /// Content hashes; they key caches and records. Computed on the first call (all cores, about
    /// as fast as memory or disk), because opening must not read a file that is larger than
    /// memory. Call [`Dataset::forget_hashes`] after changing vectors, columns or truth; a clone starts
    /// afresh.
    pub fn hashes(&self) -> &Hashes {
        self.hashes.0.get_or_init(|| hash::of_dataset(self))
    }

    /// Drops the hashes computed so far, so that the next [`Dataset::hashes`] sees changed content.
    pub fn forget_hashes(&mut self) {
        self.hashes = HashCell::default();
        self.hash_cache = None;
    }
}

/// Hashes computed once. A clone computes its own: clones are made to change something.
#[derive(Debug, Default)]
pub(crate) struct HashCell(OnceLock<Hashes>);

impl Clone for HashCell {
    fn clone(&self) -> Self {
        HashCell::default()
    }
}

/// The truth for one filter.
#[derive(Clone, Debug)]
pub struct FilteredTruth {
    /// Name of the case, such as `cat10`.
    pub name: String,
    /// The filter, with placeholders where it differs by query. None where the file names only
    /// the case.
    pub filter: Option<FilterTemplate>,
    /// What placeholders other than `{q}` stand for, one text a query; empty where there are none.
    /// [`FilteredTruth::filters`] puts them in.
    pub values: Vec<Option<String>>,
    /// The answers.
    pub truth: Truth,
}

/// BLAKE3 hashes (hex, 32 digits) of shapes and contents, the same for the same numbers in any
/// file format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hashes {
    /// Of the base vectors.
    pub base: String,
    /// Of the query vectors.
    pub queries: String,
    /// Of base and query columns.
    pub columns: Option<String>,
    /// Of the truth as read: the rows named, filtered truth too; distances do not count.
    pub truth: Option<String>,
}
