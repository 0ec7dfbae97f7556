//! A file of truth alone, beside a data set.
//!
//! What is here: the formats by their ending, and Annvil's own JSON. Read for use, rows that the base
//! does not have are refused; read for a check ([`read_truth`]), they stay, because they are a
//! finding. What is not: whether the neighbours are right (crate `exact`).

use crate::{
    Dataset, DatasetError, FilteredTruth, OpenOptions, bigann,
    format::{self, Format},
    hdf5,
    neighbours::{Against, coverage},
    npy, parquet, texmex,
};
use serde::Deserialize;
use std::{fs, path::Path};
use types::{FilterTemplate, Ids, Metric, Neighbour, Truth};

/// What a file of truth holds.
#[derive(Debug, Default)]
pub struct TruthFile {
    /// Over all rows, or under the filter that the caller knows of.
    pub truth: Option<Truth>,
    /// Under filters that the file names.
    pub filtered: Vec<FilteredTruth>,
    /// The metric that it names.
    pub metric: Option<Metric>,
    /// Content hash of the base that it names (Annvil's JSON).
    pub base_hash: Option<String>,
    /// Content hash of the queries that it names.
    pub queries_hash: Option<String>,
    /// What the reader did that the user should know.
    pub notices: Vec<String>,
}

/// Reads a file of truth to be checked against `dataset`: ivecs, ibin, bin, gt, npy, hdf5, parquet or
/// Annvil's JSON. Rows past the base are kept.
///
/// # Errors
/// Where the format is not known, the file is damaged, or it has another number of queries.
pub fn read_truth(path: &Path, dataset: &Dataset, options: &OpenOptions) -> Result<TruthFile, DatasetError> {
    // All row numbers that there can be.
    let mut found = read(path, dataset, None, options, 1 << 32)?;
    let rows = dataset.base.rows() as u64;
    found.truth = found.truth.map(|truth| counted(truth, rows));
    Ok(found)
}

/// The same lists, with at most `rows` rows matching.
fn counted(truth: Truth, rows: u64) -> Truth {
    let mut out = Truth::new(truth.depth());
    for query in 0..truth.queries() {
        out.push(truth.of(query).iter().copied(), truth.matching(query).min(rows));
    }
    out
}

/// Reads a truth of the queries of `dataset` that names rows below `base_rows`.
pub(crate) fn read(
    path: &Path,
    dataset: &Dataset,
    query_ids: Option<&Ids>,
    options: &OpenOptions,
    base_rows: usize,
) -> Result<TruthFile, DatasetError> {
    let queries = dataset.queries.rows();
    if queries == 0 {
        let reason = "truth without queries; name the file of the queries too";
        return Err(DatasetError::invalid(path, reason));
    }
    if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json")) {
        return json(path, queries);
    }
    let against = Against { base_rows, queries };
    let mut notices = Vec::new();
    let truth = match format::recognise(path)? {
        Format::Texmex(texmex::Kind::I) => texmex::truth(path, against)?,
        Format::KnnTruth => bigann::truth(path, against)?,
        Format::BigAnn(stored) if stored == bigann::IBIN => bigann::truth(path, against)?,
        Format::Npy => npy::truth(path, against)?,
        Format::Hdf5 => hdf5::truth(path, against, &dataset.base, &mut notices)?,
        Format::Parquet => {
            let columns = dataset.columns.as_ref();
            let by = parquet::Against { ids: &dataset.ids, query_ids, queries, columns };
            let found = parquet::read_truth(path, options, &by)?;
            let (truth, filtered, metric, notices) =
                (found.truth, found.filtered, found.metric, found.notices);
            return Ok(TruthFile { truth, filtered, metric, notices, ..TruthFile::default() });
        }
        Format::Texmex(_) | Format::BigAnn(_) | Format::Csv | Format::Directory => {
            let reason = "truth is read from ivecs, ibin, bin, gt, npy, hdf5, parquet and json files";
            return Err(DatasetError::invalid(path, reason));
        }
    };
    Ok(TruthFile { truth: Some(truth), notices, ..TruthFile::default() })
}

/// What `annvil truth --out x.json` writes.
#[derive(Deserialize)]
struct Written {
    metric: Option<Metric>,
    filter: Option<String>,
    base_hash: Option<String>,
    queries_hash: Option<String>,
    lists: Vec<WrittenList>,
}

#[derive(Deserialize)]
struct WrittenList {
    query: usize,
    matching: u64,
    rows: Vec<u32>,
    distances: Option<Vec<Option<f64>>>,
}

fn json(path: &Path, queries: usize) -> Result<TruthFile, DatasetError> {
    let bytes = fs::read(path).map_err(DatasetError::io("read", path))?;
    let written: Written = serde_json::from_slice(&bytes).map_err(|e| {
        let reason = format!(
            "this is not what `annvil truth --out x.json` writes ({e}); name the truth itself, not the file beside it"
        );
        DatasetError::invalid(path, reason)
    })?;
    let longest = written.lists.iter().map(|list| list.rows.len()).max().unwrap_or(0);
    if written.lists.len() != queries {
        return Err(coverage(path, written.lists.len(), longest, queries));
    }
    let mut truth = Truth::new(longest);
    for (place, list) in written.lists.iter().enumerate() {
        if list.query != place {
            let reason = format!("list {place} is of query {}: they must stand in order", list.query);
            return Err(DatasetError::invalid(path, reason));
        }
        let distances = list.distances.as_deref().unwrap_or_default();
        let neighbour = |(at, &row): (usize, &u32)| {
            let distance = distances.get(at).copied().flatten().unwrap_or(f64::NAN);
            Neighbour { row, distance }
        };
        truth.push(list.rows.iter().enumerate().map(neighbour), list.matching);
    }
    let (truth, filtered) = match written.filter {
        None => (Some(truth), Vec::new()),
        Some(text) => {
            let template = FilterTemplate::parse(&text);
            let filter = Some(template.map_err(|e| DatasetError::invalid(path, e.to_string()))?);
            (None, vec![FilteredTruth { name: text, filter, values: Vec::new(), truth }])
        }
    };
    let Written { metric, base_hash, queries_hash, .. } = written;
    Ok(TruthFile { truth, filtered, metric, base_hash, queries_hash, notices: Vec::new() })
}

#[cfg(test)]
#[path = "truth_file_tests.rs"]
mod tests;
