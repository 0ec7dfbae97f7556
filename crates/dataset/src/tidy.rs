//! The last steps before a data set is handed out: the row limit, bits, rows without numbers, and
//! the checks that every format needs.

use crate::{Dataset, DatasetError, OpenOptions};
use std::path::Path;
use types::{Columns, Element, Ids, Metric, Vectors};

/// What is said where a limit makes the file's truth unusable.
pub(crate) const TRUTH_DROPPED: &str = "the truth of the data set is left out: it is that of all rows, not of the first of them; \
     make it with `annvil truth`";

/// Cuts the base to the limit.
pub(crate) fn limit(dataset: &mut Dataset, options: &OpenOptions) {
    let Some(limit) = options.limit.filter(|&limit| limit < dataset.base.rows()) else { return };
    dataset.base = dataset.base.slice(0..limit);
    if dataset.truth.take().is_some() || !dataset.filtered.is_empty() {
        dataset.notices.push(TRUTH_DROPPED.to_owned());
    }
    dataset.filtered.clear();
    dataset.ids = match std::mem::replace(&mut dataset.ids, Ids::RowNumbers(limit)) {
        Ids::RowNumbers(_) => Ids::RowNumbers(limit),
        Ids::Ints(ids) => Ids::Ints(ids.into_iter().take(limit).collect()),
        Ids::Texts(ids) => Ids::Texts(ids.into_iter().take(limit).collect()),
    };
    dataset.columns = dataset.columns.take().map(|c| cut(c, limit));
}

fn cut(columns: Columns, rows: usize) -> Columns {
    let rows = rows.min(columns.rows());
    columns.slice(0..rows)
}

/// Under hamming, turns numbers that are 0 or 1 into bits.
pub(crate) fn bits(dataset: &mut Dataset, path: &Path) -> Result<(), DatasetError> {
    if dataset.metric != Some(Metric::Hamming) {
        return Ok(());
    }
    for (part, vectors) in [("base", &mut dataset.base), ("queries", &mut dataset.queries)] {
        if vectors.element() != Element::Bit {
            let packed =
                pack(vectors).map_err(|reason| DatasetError::invalid(path, format!("{part}, {reason}")))?;
            let notice =
                format!("{part}: {} values 0 and 1 are read as bits, for hamming", vectors.element());
            *vectors = packed;
            if vectors.rows() > 0 {
                dataset.notices.push(notice);
            }
        }
    }
    Ok(())
}

fn pack(vectors: &Vectors) -> Result<Vectors, String> {
    let (rows, dim) = (vectors.rows(), vectors.dim());
    let width = Element::Bit.row_bytes(dim);
    let mut bytes = Vec::new();
    let mut numbers = vec![0.0; dim];
    for row in 0..rows {
        vectors.row_into(row, &mut numbers);
        let start = bytes.len();
        bytes.resize(start + width, 0);
        for (i, &value) in numbers.iter().enumerate() {
            if value == 1.0 {
                bytes[start + i / 8] |= 1 << (7 - i % 8);
            } else if value != 0.0 {
                return Err(format!(
                    "row {row}: the metric is hamming, but component {i} is {value}, neither 0 nor 1 (bits \
                     packed into uint8 are read from HDF5 with point_type = \"bit\" and dimension = number of bits)"
                ));
            }
        }
    }
    Vectors::from_bytes(bytes, rows, dim, Element::Bit).map_err(|e| e.to_string())
}

/// What must hold for every data set.
pub(crate) fn check(dataset: &mut Dataset, path: &Path) -> Result<(), DatasetError> {
    let refuse = |reason: String| Err(DatasetError::invalid(path, reason));
    let Dataset { base, queries, .. } = &*dataset;
    if base.rows() == 0 {
        return refuse("the base has no rows".to_owned());
    }
    if queries.dim() != base.dim() {
        return refuse(format!(
            "the queries have {} components, the base has {}: they do not belong together",
            queries.dim(),
            base.dim()
        ));
    }
    if queries.rows() > 0 && (queries.element() == Element::Bit) != (base.element() == Element::Bit) {
        return refuse(format!("the base is {}, the queries are {}", base.element(), queries.element()));
    }
    for (part, columns, rows) in
        [("base", &dataset.columns, base.rows()), ("query", &dataset.query_columns, queries.rows())]
    {
        if let Some(columns) = columns.as_ref().filter(|c| c.rows() != rows) {
            return refuse(format!("the {part} columns have {} rows, the vectors {rows}", columns.rows()));
        }
    }
    if dataset.ids.len() != base.rows() {
        return refuse(format!("there are {} ids for {} rows", dataset.ids.len(), base.rows()));
    }
    if queries.rows() == 0 {
        let notice = "there are no queries; name a file of them with --queries";
        dataset.notices.push(notice.to_owned());
    }
    Ok(())
}

/// Leaves out rows that hold NaN or infinity, under cosine also those that are all zero (they have no
/// direction, and some engines refuse them); then the truth too, which is that of all rows.
pub(crate) fn drop_bad_rows(dataset: &mut Dataset) {
    let cosine = dataset.metric == Some(Metric::Cosine);
    let base = good_rows(&dataset.base, cosine);
    let queries = good_rows(&dataset.queries, cosine);
    let (bad_base, bad_queries) = (dataset.base.rows() - base.len(), dataset.queries.rows() - queries.len());
    if bad_base + bad_queries == 0 {
        return;
    }
    if bad_base > 0 {
        dataset.base = dataset.base.select(base.iter().copied());
        dataset.columns = dataset.columns.take().map(|c| c.select(base.iter().copied()));
        // The rows that remain keep the names that they had, so that they can be found in the file.
        dataset.ids = match &dataset.ids {
            Ids::RowNumbers(_) => Ids::Ints(base.iter().map(|&row| row as i64).collect()),
            Ids::Ints(ids) => Ids::Ints(base.iter().map(|&row| ids[row]).collect()),
            Ids::Texts(ids) => Ids::Texts(base.iter().map(|&row| ids[row].clone()).collect()),
        };
    }
    if bad_queries > 0 {
        dataset.queries = dataset.queries.select(queries.iter().copied());
        dataset.query_columns = dataset.query_columns.take().map(|c| c.select(queries.iter().copied()));
    }
    dataset.truth = None;
    dataset.filtered.clear();
    dataset.notices.push(format!(
        "{bad_base} base rows and {bad_queries} queries hold {} and are left out; the truth of the file is left \
         out with them",
        if cosine { "NaN, infinity or nothing but zeros" } else { "NaN or infinity" }
    ));
}

/// The rows whose components are all finite and, where a direction is needed, not all zero.
fn good_rows(vectors: &Vectors, direction: bool) -> Vec<usize> {
    let floats = matches!(vectors.element(), Element::F32 | Element::F16);
    if !floats && !direction {
        return (0..vectors.rows()).collect();
    }
    let good = |row: &usize| {
        let values = vectors.row(*row);
        values.iter().all(|v| v.is_finite()) && !(direction && values.iter().all(|v| *v == 0.0))
    };
    (0..vectors.rows()).filter(good).collect()
}
