//! The way in: a path and options become a [`Dataset`].
//!
//! What is here: the options, and the order in which a set is put together (base, queries, columns,
//! limit, truth). What is not: recognising formats (`format`), any format, and whether the truth
//! is right (crate `exact`).

use crate::{
    Dataset, DatasetError, bigann, csv, directory, flat,
    format::{self, Format},
    hash, hdf5, npy, parquet, texmex, tidy, truth_file,
};
use std::path::{Path, PathBuf};
use types::{Columns, Ids, Metric, Vectors};

/// What a caller may say beside the path. All fields may stay empty.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// The metric, where the file names none or a wrong one.
    pub metric: Option<Metric>,
    /// A file with the query vectors, in any vector format.
    pub queries: Option<PathBuf>,
    /// A file with the true neighbours: ivecs, ibin/bin/gt (big-ann), npy, hdf5, parquet or Annvil's
    /// JSON.
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
    /// Where flat copies of what cannot be mapped, and hashes of large files, are kept. None: a large
    /// flat copy is a temporary file.
    pub cache_dir: Option<PathBuf>,
    /// Leave out rows that hold NaN or infinity instead of refusing the set; truth is then dropped.
    pub drop_bad_rows: bool,
}

/// Opens a data set of any known format. Where the file holds no queries the result has none (0
/// rows), with a notice.
///
/// # Errors
/// Where the ending is unknown, the content is not what the ending says, or the file is damaged;
/// each message names the file and the next step.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Dataset, DatasetError> {
    if options.limit == Some(0) {
        return Err(DatasetError::Usage("a limit of 0 rows leaves nothing to search".to_owned()));
    }
    let format = format::recognise(path)?;
    let mut dataset = match format {
        Format::Hdf5 => hdf5::open(path, options)?,
        Format::Parquet => parquet::open(path, options)?,
        Format::Csv => csv::open(path, options)?,
        Format::Directory => directory::open(path, options)?,
        Format::Npy | Format::Texmex(_) | Format::BigAnn(_) => plain(path, format, options)?,
        Format::KnnTruth => {
            let reason = "this ending is that of a truth file; give the base vectors and name it as truth";
            return Err(DatasetError::invalid(path, reason));
        }
    };
    // Parquet files and directories read what lies beside them, which the key would not see.
    let self_contained = !matches!(format, Format::Parquet | Format::Csv | Format::Directory);
    complete(&mut dataset, path, options, self_contained)?;
    Ok(dataset)
}

/// A file of base vectors alone, with the queries and truth that lie beside it under usual names.
fn plain(path: &Path, format: Format, options: &OpenOptions) -> Result<Dataset, DatasetError> {
    let base = match format {
        Format::BigAnn(stored) => bigann::vectors(path, stored, "base", options.limit, options)?,
        Format::Texmex(kind) => texmex::vectors(path, kind, "base", options)?,
        _ => npy::vectors(path, "base", options)?,
    };
    let none = base.vectors.slice(0..0);
    let mut dataset = Dataset::new(format::stem(path), base.vectors, none);
    dataset.notices = base.notices;
    let beside = format::beside(path);
    if let Some(queries) = beside.queries.filter(|_| options.queries.is_none()) {
        dataset.notices.push(format!("queries are those of {}", queries.display()));
        set_queries(&mut dataset, &queries, options)?;
        if let Some(truth) = beside.truth.filter(|_| options.truth.is_none() && options.limit.is_none()) {
            dataset.notices.push(format!("truth is that of {}", truth.display()));
            set_truth(&mut dataset, &truth, None, options)?;
        }
    }
    Ok(dataset)
}

/// Everything that is the same for all formats.
fn complete(
    dataset: &mut Dataset,
    path: &Path,
    options: &OpenOptions,
    self_contained: bool,
) -> Result<(), DatasetError> {
    let mut query_ids = None;
    if let Some(queries) = &options.queries {
        if dataset.truth.take().is_some() || !dataset.filtered.is_empty() {
            let notice = "the truth of the data set is left out: it is that of its own queries";
            dataset.notices.push(notice.to_owned());
        }
        dataset.filtered.clear();
        dataset.query_columns = None;
        query_ids = set_queries(dataset, queries, options)?;
    }
    if let Some(columns) = &options.columns {
        // Read before the limit: line i of a metadata file belongs to row i of the whole set.
        dataset.columns = Some(read_columns(columns, &dataset.ids)?);
    }
    if let Some(columns) = &options.query_columns {
        dataset.query_columns = Some(read_columns(columns, &Ids::RowNumbers(dataset.queries.rows()))?);
    }
    tidy::limit(dataset, options);
    if let Some(truth) = &options.truth {
        set_truth(dataset, truth, query_ids.as_ref(), options)?;
    }
    if let Some(metric) = options.metric {
        dataset.metric = Some(metric);
    }
    tidy::bits(dataset, path)?;
    tidy::check(dataset, path)?;
    if options.drop_bad_rows {
        tidy::drop_bad_rows(dataset);
    }
    dataset.forget_hashes();
    if let (Some(dir), true) = (&options.cache_dir, self_contained) {
        let of = (dataset.base.clone(), dataset.queries.clone());
        dataset.hash_cache = hash_key(path, options).map(|key| hash::Cache { dir: dir.clone(), key, of });
    }
    Ok(())
}

/// The key under which the vectors' hashes are remembered; none where files cannot be looked at.
fn hash_key(path: &Path, options: &OpenOptions) -> Option<String> {
    let beside = format::beside(path).queries;
    let sources: Vec<&Path> =
        [Some(path), options.queries.as_deref(), beside.as_deref()].into_iter().flatten().collect();
    // The number is that of the hash's form: one remembered by an older version is not taken.
    let what = format!(
        "hash 2 {:?} {:?} {} {:?}",
        options.limit, options.metric, options.drop_bad_rows, options.vector_column
    );
    flat::key(&sources, &what).ok()
}

/// Takes the queries of a file; returns their ids, by which a truth may name them.
fn set_queries(
    dataset: &mut Dataset,
    path: &Path,
    options: &OpenOptions,
) -> Result<Option<Ids>, DatasetError> {
    let Queries { vectors: queries, ids, columns, notices } = read_queries(path, options)?;
    if queries.dim() != dataset.base.dim() {
        let reason = format!(
            "the queries have {} components, the base has {}: they do not belong together",
            queries.dim(),
            dataset.base.dim()
        );
        return Err(DatasetError::invalid(path, reason));
    }
    dataset.queries = queries;
    dataset.query_columns = columns;
    dataset.notices.extend(notices);
    Ok(ids)
}

/// What a file of queries may hold.
struct Queries {
    vectors: Vectors,
    ids: Option<Ids>,
    columns: Option<Columns>,
    notices: Vec<String>,
}

fn read_queries(path: &Path, options: &OpenOptions) -> Result<Queries, DatasetError> {
    let own = OpenOptions {
        metric: options.metric,
        vector_column: options.vector_column.clone(),
        cache_dir: options.cache_dir.clone(),
        ..OpenOptions::default()
    };
    let flat = match format::recognise(path)? {
        Format::Hdf5 => hdf5::queries(path, &own)?,
        Format::Npy => npy::vectors(path, "queries", &own)?,
        Format::Texmex(kind) => texmex::vectors(path, kind, "queries", &own)?,
        Format::BigAnn(stored) => bigann::vectors(path, stored, "queries", None, &own)?,
        Format::Parquet => {
            let rows = parquet::read_rows(&[path.to_owned()], &own, None)?;
            return Ok(Queries {
                vectors: rows.vectors,
                ids: Some(rows.ids),
                columns: rows.columns,
                notices: rows.notices,
            });
        }
        Format::Csv => {
            let found = csv::open(path, &own)?;
            return Ok(Queries {
                vectors: found.base,
                ids: Some(found.ids),
                columns: found.columns,
                notices: found.notices,
            });
        }
        Format::Directory | Format::KnnTruth => {
            return Err(DatasetError::invalid(path, "queries are a file of vectors, this is none"));
        }
    };
    Ok(Queries { vectors: flat.vectors, ids: None, columns: None, notices: flat.notices })
}

fn set_truth(
    dataset: &mut Dataset,
    path: &Path,
    query_ids: Option<&Ids>,
    options: &OpenOptions,
) -> Result<(), DatasetError> {
    let found = truth_file::read(path, dataset, query_ids, options, dataset.base.rows())?;
    dataset.notices.extend(found.notices);
    dataset.filtered.extend(found.filtered);
    dataset.truth = found.truth.or(dataset.truth.take());
    Ok(())
}

fn read_columns(path: &Path, ids: &Ids) -> Result<Columns, DatasetError> {
    match format::recognise(path)? {
        Format::Parquet => parquet::read_columns(path, ids),
        Format::Csv => csv::read_columns(path, ids),
        _ => Err(DatasetError::invalid(path, "metadata is read from parquet and CSV files")),
    }
}
