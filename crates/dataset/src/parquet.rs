//! Parquet: vectors as lists of numbers, ids, columns and truth, in one file, several parts, or the
//! layout of VectorDBBench (`train`, `shuffle_train`, `test`, `neighbors`, `neighbors_int_<r>p`,
//! `neighbors_labels_*`, `scalar_labels`). `docs/add-a-dataset-format.md` has the column names.
//!
//! What is here: reading with the parquet crate's column readers (its arrow feature is not built),
//! page by page, so that a large file never stands in memory; and writing. What is not: the flat
//! copy that the vectors become (`flat`).

mod idmap;
mod lists;
mod metadata;
mod pages;
mod parts;
mod scalars;
mod table;
#[cfg(test)]
mod tests;
mod truth;
mod vectors;
mod write;

use crate::{
    Dataset, DatasetError, OpenOptions,
    flat::{self, Flat, Sink},
};
pub use metadata::read_columns;
use metadata::{beside, joined, read_columns_of, scalar_labels};
pub(crate) use metadata::{read_columns_by_row, read_columns_in, read_ids_file};
pub(crate) use scalars::plain;
use std::path::{Path, PathBuf};
use table::Table;
pub(crate) use truth::{Against, TruthTable, read as read_truth};
use types::{Column, ColumnData, Columns, Ids, Metric, Vectors};
pub use write::write_parquet;
pub(crate) use write::{write_columns, write_filtered, write_ids, write_truth};

/// The usual name of an id column.
const ID: &str = "id";

/// Opens base vectors with what lies beside them: queries, truth, filtered truth, labels, columns.
/// `path` is a file, one part of several, a glob in quotes, or a directory. Where there are no
/// queries the result has none (0 rows).
///
/// # Errors
/// Where a file is damaged, a part missing, or a row has no vector of the common length; rows are
/// named by number.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Dataset, DatasetError> {
    let layout = parts::find(path)?;
    // Line i of a metadata file belongs to row i of the whole set, so the limit comes after it.
    let whole = options.columns.is_some() || layout.columns.is_some();
    let base = read_rows(&layout.base, options, options.limit.filter(|_| !whole))?;
    let mut notices = layout.notices.clone();
    notices.extend(base.notices);
    let (mut queries, mut query_ids, mut query_columns) =
        (Vectors::from_bytes(Vec::new(), 0, base.vectors.dim(), base.vectors.element()).ok(), None, None);
    if options.queries.is_none() && !layout.queries.is_empty() {
        let asked = read_rows(&layout.queries, options, None)?;
        if asked.vectors.dim() != base.vectors.dim() {
            let (found, expected) = (asked.vectors.dim(), base.vectors.dim());
            let reason = format!("queries of {found} dimensions, the base has {expected}");
            return Err(DatasetError::invalid(&layout.queries[0], reason));
        }
        notices.extend(asked.notices);
        (queries, query_ids, query_columns) = (Some(asked.vectors), Some(asked.ids), asked.columns);
    }
    let queries = queries.ok_or_else(|| DatasetError::invalid(path, "no queries"))?;
    let mut dataset = Dataset::new(name(path), base.vectors, queries);
    dataset.ids = base.ids;
    dataset.metric = options.metric.or(base.metric);
    dataset.columns = beside(base.columns, layout.columns.as_deref(), &dataset.ids)?;
    if let Some(labels) = &layout.labels {
        dataset.columns = joined(dataset.columns, scalar_labels(labels, &dataset.ids)?, labels)?;
    }
    let by_number = Ids::RowNumbers(dataset.queries.rows());
    dataset.query_columns =
        beside(query_columns, layout.query_columns.as_deref(), query_ids.as_ref().unwrap_or(&by_number))?;
    dataset.notices = notices;
    if options.limit.is_none() && options.queries.is_none() {
        truth_beside(&mut dataset, &layout, query_ids.as_ref(), options)?;
    } else if options.limit.is_some() && layout.has_truth() {
        dataset.notices.push(crate::tidy::TRUTH_DROPPED.to_owned());
    }
    Ok(dataset)
}

fn truth_beside(
    dataset: &mut Dataset,
    layout: &parts::Layout,
    query_ids: Option<&Ids>,
    options: &OpenOptions,
) -> Result<(), DatasetError> {
    // The integer filters of VectorDBBench compare the id, which is otherwise not a column.
    if layout.filtered.iter().any(|(case, _)| !case.starts_with("labels_"))
        && dataset.columns.as_ref().and_then(|c| c.get(ID)).is_none()
    {
        let data = match &dataset.ids {
            Ids::RowNumbers(rows) => Some((0_i64..).take(*rows).map(Some).collect()),
            Ids::Ints(ids) => Some(ids.iter().map(|id| Some(*id)).collect()),
            Ids::Texts(_) => None,
        };
        if let Some(data) = data {
            let column = Column { name: ID.to_owned(), data: ColumnData::Int(data) };
            let path = layout.filtered.first().map_or(Path::new(""), |(_, path)| path);
            let added = Columns::new(vec![column]).map_err(|e| DatasetError::invalid(path, e.to_string()))?;
            dataset.columns = joined(dataset.columns.take(), added, path)?;
        }
    }
    let against = Against {
        ids: &dataset.ids,
        query_ids,
        queries: dataset.queries.rows(),
        columns: dataset.columns.as_ref(),
    };
    let mut filtered = Vec::new();
    for (case, path) in &layout.filtered {
        let (truth, notice) = truth::read_case(case, path, options, &against)?;
        filtered.push(truth);
        dataset.notices.extend(notice);
    }
    let found = match layout.truth.as_deref().filter(|_| options.truth.is_none()) {
        Some(path) => truth::read(path, options, &against)?,
        None => TruthTable::default(),
    };
    filtered.extend(found.filtered);
    if let Some(path) = &layout.filtered_table {
        filtered.extend(truth::read(path, options, &against)?.filtered);
    }
    dataset.truth = found.truth;
    dataset.filtered = filtered;
    dataset.metric = dataset.metric.or(found.metric);
    dataset.notices.extend(found.notices);
    Ok(())
}

/// Vectors with what stands beside them in the same rows.
pub(crate) struct Rows {
    pub(crate) vectors: Vectors,
    pub(crate) ids: Ids,
    pub(crate) columns: Option<Columns>,
    pub(crate) metric: Option<Metric>,
    pub(crate) notices: Vec<String>,
}

/// Reads the parts `files` as one table, at most `limit` rows of it.
pub(crate) fn read_rows(
    files: &[PathBuf],
    options: &OpenOptions,
    limit: Option<usize>,
) -> Result<Rows, DatasetError> {
    let tables = files.iter().map(|file| Table::open(file)).collect::<Result<Vec<_>, _>>()?;
    let first = tables.first().ok_or_else(|| DatasetError::Usage("no file to read".to_owned()))?;
    let mut left = limit.map_or(u64::MAX, |limit| limit as u64);
    let parts: Vec<(&Table, u64)> = tables
        .iter()
        .map(|table| {
            let rows = table.rows.min(left);
            left -= rows;
            (table, rows)
        })
        .collect();
    let rows: u64 = parts.iter().map(|(_, rows)| rows).sum();
    if u32::try_from(rows).is_err() {
        return Err(first.invalid(format!("{rows} rows; at most {} can be numbered", u32::MAX)));
    }
    let flat = read_flat(&parts, options)?;
    let ids = read_ids(&parts, options)?;
    let vector = vectors::find(first, options.vector_column.as_deref())?.name.clone();
    let mut notices = flat.notices;
    let columns = read_columns_of(&parts, &[vector.as_str(), id_name(options)], &mut notices)?;
    Ok(Rows { vectors: flat.vectors, ids, columns, metric: write::metric_of(first)?, notices })
}

fn id_name(options: &OpenOptions) -> &str {
    options.id_column.as_deref().unwrap_or(ID)
}

/// The vectors of all parts, from the flat copy of an earlier run where there is one.
fn read_flat(parts: &[(&Table, u64)], options: &OpenOptions) -> Result<Flat, DatasetError> {
    let sources: Vec<&Path> = parts.iter().map(|(table, _)| table.path.as_path()).collect();
    let rows: u64 = parts.iter().map(|(_, rows)| rows).sum();
    let key = flat::key(&sources, &format!("parquet vectors {:?} {rows}", options.vector_column))?;
    if let Some(flat) = flat::cached(options.cache_dir.as_deref(), &key) {
        return Ok(flat);
    }
    let (first, _) = parts.first().ok_or_else(|| DatasetError::Usage("no file to read".to_owned()))?;
    let plan = vectors::plan(first, vectors::find(first, options.vector_column.as_deref())?)?;
    let bytes = rows.saturating_mul(plan.element.row_bytes(plan.dim) as u64);
    let mut sink = Sink::new(options.cache_dir.as_deref(), &key, Some(bytes));
    let mut common: Option<(vectors::Plan, &Table)> = None;
    let (mut converted, mut rounded) = (None, 0_u64);
    for (table, rows) in parts {
        let field = vectors::find(table, options.vector_column.as_deref())?;
        let plan = vectors::plan(table, field)?;
        if *rows == 0 {
            continue;
        }
        let (expected, first) = *common.get_or_insert((plan, table));
        if (plan.dim, plan.element) != (expected.dim, expected.element) {
            let reason = format!(
                "vectors of {} {}, but {} of {} in {}; the parts must be alike",
                plan.dim,
                plan.element,
                expected.dim,
                expected.element,
                first.path.display()
            );
            return Err(table.invalid(reason));
        }
        if plan.converted {
            converted.get_or_insert_with(|| format!("column {:?} is {}", field.name, field.describe()));
        }
        rounded += vectors::read(table, field, plan, *rows, &mut |bytes| sink.write(bytes))?;
    }
    let (plan, table) = common.ok_or_else(|| match parts.first() {
        Some((table, _)) => table.invalid("no rows"),
        None => DatasetError::Usage("no file to read".to_owned()),
    })?;
    let values = u128::from(rows) * plan.dim as u128;
    let notice = converted.map(|c| format!("{c}, read as float32; {rounded} of {values} values are rounded"));
    sink.finish(&table.path, plan.dim, plan.element, notice.into_iter().collect())
}

/// The ids of all parts; row numbers where there is no id column (unless one was asked for).
fn read_ids(parts: &[(&Table, u64)], options: &OpenOptions) -> Result<Ids, DatasetError> {
    let name = id_name(options);
    let (mut ints, mut texts, mut rows) = (Vec::new(), Vec::new(), 0);
    for (table, count) in parts {
        rows += usize::try_from(*count).unwrap_or(usize::MAX);
        let Some(field) = table.field(name) else {
            if options.id_column.is_some() {
                let reason = format!("no column {name:?}; the columns are {}", table.describe_fields());
                return Err(table.invalid(reason));
            }
            continue;
        };
        match scalars::ids(table, field, *count)? {
            Ids::Ints(part) => ints.extend(part),
            Ids::Texts(part) => texts.extend(part),
            Ids::RowNumbers(_) => {}
        }
        if ints.len().max(texts.len()) != rows || !(ints.is_empty() || texts.is_empty()) {
            let reason = "ids of another kind than in the parts before it, or none there";
            return Err(table.invalid(reason));
        }
    }
    Ok(match (ints.is_empty(), texts.is_empty()) {
        (true, true) => Ids::RowNumbers(rows),
        (_, true) => plain(Ids::Ints(ints)),
        _ => Ids::Texts(texts),
    })
}

/// A name for the set: the file's stem, or the directory's where the file has a layout's name.
fn name(path: &Path) -> String {
    let part = |p: &Path| p.file_stem().map(|s| s.to_string_lossy().into_owned());
    let stem = part(path).unwrap_or_else(|| "parquet".to_owned());
    let general = ["train", "shuffle_train"].iter().any(|usual| stem.to_ascii_lowercase().starts_with(usual));
    match path.parent().and_then(part) {
        Some(parent) if general && !parent.is_empty() => parent,
        _ => stem,
    }
}
