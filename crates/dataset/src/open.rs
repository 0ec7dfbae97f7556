//! The way in: a path and options become a [`Dataset`].
//!
//! What is here: recognising the format by ending and content, and what is the same for all
//! formats (separate query, truth and column files, the row limit). What is not: any format.

use crate::{Dataset, DatasetError};
use std::path::{Path, PathBuf};
use types::Metric;

/// What a caller may say beside the path. All fields may stay empty.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// The metric, where the file names none or a wrong one.
    pub metric: Option<Metric>,
    /// A file with the query vectors, in any vector format.
    pub queries: Option<PathBuf>,
    /// A file with the true neighbours: ivecs, ibin/bin/gt (big-ann), npy, hdf5 or parquet.
    pub truth: Option<PathBuf>,
    /// A parquet or CSV file with metadata: row i belongs to base row i.
    pub columns: Option<PathBuf>,
    /// A parquet or CSV file with metadata of the queries.
    pub query_columns: Option<PathBuf>,
    /// Only the first so many base rows. Truth of the file is then dropped with a notice, because
    /// truth belongs to exactly the rows that were searched.
    pub limit: Option<usize>,
    /// Name of the id column in parquet and CSV.
    pub id_column: Option<String>,
    /// Name of the vector column in parquet and CSV.
    pub vector_column: Option<String>,
    /// Name of the neighbours column in parquet.
    pub truth_column: Option<String>,
    /// Where flat copies of what cannot be mapped, and hashes of large files, are kept. None: what
    /// cannot be mapped is kept in memory.
    pub cache_dir: Option<PathBuf>,
    /// Leave out rows that hold NaN or infinity instead of refusing the set; truth is then dropped.
    pub drop_bad_rows: bool,
}

/// Opens a data set of any known format.
///
/// # Errors
/// Where the ending is unknown, the content is not what the ending says, or the file is damaged;
/// each message names the file and the next step.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Dataset, DatasetError> {
    let _ = options;
    Err(DatasetError::invalid(path, "no format is known"))
}
