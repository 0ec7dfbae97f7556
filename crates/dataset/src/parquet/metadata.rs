//! Columns of single values: beside the vectors, in a file of their own, or as VectorDBBench's labels.

use super::{
    ID, idmap, plain, scalars,
    table::{Field, Kind, Table},
};
use crate::DatasetError;
use std::path::Path;
use types::{Column, ColumnData, Columns, Id, Ids};

/// Every scalar column but those in `without`; what no column can hold is left out with a notice.
pub(super) fn read_columns_of(
    parts: &[(&Table, u64)],
    without: &[&str],
    notices: &mut Vec<String>,
) -> Result<Option<Columns>, DatasetError> {
    let Some((first, _)) = parts.first() else { return Ok(None) };
    let mut columns = Vec::new();
    for field in first.fields.iter().filter(|f| !without.contains(&f.name.as_str())) {
        if !scalars::readable(field) {
            notices.push(format!("column {:?} ({}) is left out", field.name, field.describe()));
            continue;
        }
        let all = match (column_of(parts, field), &field.kind) {
            (Err(_no_text), Kind::Bytes) => {
                notices.push(format!("column {:?} ({}) is left out", field.name, field.describe()));
                continue;
            }
            (result, _) => result?,
        };
        columns.extend(all.map(|data| Column { name: field.name.clone(), data }));
    }
    if columns.is_empty() {
        return Ok(None);
    }
    Columns::new(columns).map(Some).map_err(|e| first.invalid(e.to_string()))
}

/// One column of all parts.
fn column_of(parts: &[(&Table, u64)], field: &Field) -> Result<Option<ColumnData>, DatasetError> {
    let mut all: Option<ColumnData> = None;
    for (table, rows) in parts {
        let own = table
            .field(&field.name)
            .ok_or_else(|| table.invalid(format!("no column {:?}, which the first part has", field.name)))?;
        let data = scalars::column(table, own, *rows)?;
        all = Some(match all {
            None => data,
            Some(before) => append(before, data).ok_or_else(|| {
                table.invalid(format!("column {:?} has another type than in the first part", field.name))
            })?,
        });
    }
    Ok(all)
}

fn append(before: ColumnData, after: ColumnData) -> Option<ColumnData> {
    fn both<T>(mut a: Vec<T>, b: Vec<T>) -> Vec<T> {
        a.extend(b);
        a
    }
    Some(match (before, after) {
        (ColumnData::Int(a), ColumnData::Int(b)) => ColumnData::Int(both(a, b)),
        (ColumnData::Float(a), ColumnData::Float(b)) => ColumnData::Float(both(a, b)),
        (ColumnData::Bool(a), ColumnData::Bool(b)) => ColumnData::Bool(both(a, b)),
        (ColumnData::Text(a), ColumnData::Text(b)) => ColumnData::Text(both(a, b)),
        _ => return None,
    })
}

/// Metadata in its own file. With an `id` column whose values are the ids of the rows, each once,
/// lines are matched by it; else line i belongs to row i. The id column itself is left out.
///
/// # Errors
/// Where the file has another number of rows than `ids`.
pub fn read_columns(path: &Path, ids: &Ids) -> Result<Columns, DatasetError> {
    let table = Table::open(path)?;
    if table.rows < ids.len() as u64 {
        let reason =
            format!("{} rows of metadata for {} vectors; row i belongs to vector i", table.rows, ids.len());
        return Err(table.invalid(reason));
    }
    let mut left_out = Vec::new();
    let all = read_columns_of(&[(&table, table.rows)], &[ID], &mut left_out)?.ok_or_else(|| {
        table.invalid(format!("no column of single values; the columns are {}", table.describe_fields()))
    })?;
    let order = match table
        .field(ID)
        .filter(|f| matches!(f.kind, Kind::Int(_) | Kind::UInt(_) | Kind::Text | Kind::Bytes))
    {
        Some(field) => order_by_id(scalars::ids(&table, field, table.rows)?, ids),
        None => None,
    };
    match order {
        Some(order) => Ok(all.select(order)),
        None if all.rows() == ids.len() => Ok(all),
        None => {
            let reason = format!(
                "{} rows of metadata for {} vectors, and no ids to match them",
                all.rows(),
                ids.len()
            );
            Err(table.invalid(reason))
        }
    }
}

/// Metadata whose line i belongs to row i, `id` column and all.
pub(crate) fn read_columns_by_row(path: &Path, rows: usize) -> Result<Columns, DatasetError> {
    columns_by_row(&Table::open(path)?, rows)
}

/// The same of a file that is built in; `path` names it in messages.
pub(crate) fn read_columns_in(
    path: &Path,
    bytes: &'static [u8],
    rows: usize,
) -> Result<Columns, DatasetError> {
    let source = bytes::Bytes::from_static(bytes);
    columns_by_row(&Table::over(path, source, bytes.len() as u64)?, rows)
}

fn columns_by_row(table: &Table, rows: usize) -> Result<Columns, DatasetError> {
    let all = read_columns_of(&[(table, table.rows)], &[], &mut Vec::new())?;
    match all {
        Some(all) if all.rows() == rows => Ok(all),
        _ => Err(table.invalid(format!("{} rows of metadata for {rows} vectors", table.rows))),
    }
}

/// The ids in a file of their own.
pub(crate) fn read_ids_file(path: &Path, rows: usize) -> Result<Ids, DatasetError> {
    let table = Table::open(path)?;
    let field = table.field(ID).ok_or_else(|| table.invalid("no column \"id\""))?;
    let ids = scalars::ids(&table, field, table.rows)?;
    match ids.len() == rows {
        true => Ok(plain(ids)),
        false => Err(table.invalid(format!("{} ids for {rows} vectors", ids.len()))),
    }
}

/// Where in `found` each of `ids` stands; none where one is missing or `found` repeats one.
fn order_by_id(found: Ids, ids: &Ids) -> Option<Vec<usize>> {
    let found = plain(found);
    if &found == ids {
        return Some((0..ids.len()).collect());
    }
    if found.distinct() != found.len() {
        return None;
    }
    let map = idmap::IdMap::new(&found);
    (0..ids.len())
        .map(|row| match ids.get(row) {
            Id::Int(id) => map.int(id),
            Id::Text(id) => map.text(&id),
        })
        .map(|row| row.map(|row| row as usize))
        .collect()
}

/// VectorDBBench's labels: line i belongs to the vector with the id i, whatever row that has.
pub(super) fn scalar_labels(path: &Path, ids: &Ids) -> Result<Columns, DatasetError> {
    let table = Table::open(path)?;
    let all = read_columns_of(&[(&table, table.rows)], &[ID], &mut Vec::new())?
        .ok_or_else(|| table.invalid(format!("no labels; the columns are {}", table.describe_fields())))?;
    let line = |row: usize| match ids {
        Ids::RowNumbers(_) => Some(row),
        Ids::Ints(ids) => usize::try_from(ids[row]).ok(),
        Ids::Texts(_) => None,
    };
    let order = match table.field(ID) {
        Some(field) => order_by_id(scalars::ids(&table, field, table.rows)?, ids),
        None => (0..ids.len()).map(|row| line(row).filter(|line| *line < all.rows())).collect(),
    };
    let order = order.ok_or_else(|| {
        table.invalid(format!("{} labels, but not one for each id of the {} vectors", all.rows(), ids.len()))
    })?;
    Ok(all.select(order))
}

/// `own` columns and those of the file beside, where there is one.
pub(super) fn beside(
    own: Option<Columns>,
    path: Option<&Path>,
    ids: &Ids,
) -> Result<Option<Columns>, DatasetError> {
    match path {
        Some(path) => joined(own, read_columns(path, ids)?, path),
        None => Ok(own),
    }
}

pub(super) fn joined(
    own: Option<Columns>,
    more: Columns,
    path: &Path,
) -> Result<Option<Columns>, DatasetError> {
    let all = own.iter().flat_map(Columns::iter).chain(more.iter()).cloned().collect();
    Columns::new(all).map(Some).map_err(|e| DatasetError::invalid(path, e.to_string()))
}
