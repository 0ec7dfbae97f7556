//! Columns of lists, block by block: what each row holds, and the values one after the other. Nothing
//! is kept beyond a page and a block.

use super::{
    pages,
    table::{Field, Shape, Table},
};
use crate::DatasetError;
use ::parquet::{column::reader::ColumnReaderImpl, data_type::DataType};

/// Values that one block holds, about; a block is at least one row.
const BLOCK_VALUES: usize = 1 << 18;

/// More values than this in one row are no vector and no truth list.
pub(crate) const LONGEST_ROW: usize = 1 << 20;

/// What one row of a list column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// So many values.
    Values(usize),
    /// No list.
    Missing,
    /// A list in which values are missing: so many are there.
    Holes(usize),
}

impl Row {
    /// Values that the row takes in the block.
    pub(crate) fn stored(self) -> usize {
        match self {
            Row::Values(count) | Row::Holes(count) => count,
            Row::Missing => 0,
        }
    }
}

/// Rows that follow each other, and their values without gaps.
pub(crate) struct Block<'a, V> {
    pub(crate) first_row: u64,
    pub(crate) rows: &'a [Row],
    pub(crate) values: &'a [V],
}

impl<V> Block<'_, V> {
    /// Each row with its number and values.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u64, Row, &[V])> {
        let mut at = 0;
        (self.first_row..).zip(self.rows).map(move |(number, &row)| {
            let start = at;
            at += row.stored();
            (number, row, &self.values[start..at])
        })
    }
}

/// Receives the blocks of a list column.
pub(crate) type See<'a, T> = &'a mut dyn FnMut(Block<'_, <T as DataType>::T>) -> Result<(), DatasetError>;

/// Visits the rows of a list column in order, up to `limit` of them; gives their number.
pub(crate) fn visit<T: DataType>(
    table: &Table,
    field: &Field,
    limit: u64,
    see: See<'_, T>,
) -> Result<u64, DatasetError> {
    let mut done = 0;
    for group in 0..table.reader.num_row_groups() {
        let expected = table.group_rows(group);
        let wanted = expected.min(limit - done);
        if wanted == 0 {
            continue;
        }
        let reader = pages::reader::<T>(table, field, group)?;
        let found = visit_group(table, field, reader, done, wanted, see)?;
        if found != wanted {
            let reason =
                format!("row group {group} promises {expected} rows, column {:?} has {found}", field.name);
            return Err(table.invalid(reason + ": the file is damaged, get it anew"));
        }
        done += found;
    }
    Ok(done)
}

fn visit_group<T: DataType>(
    table: &Table,
    field: &Field,
    mut reader: ColumnReaderImpl<T>,
    first_row: u64,
    wanted: u64,
    see: See<'_, T>,
) -> Result<u64, DatasetError> {
    let (mut definitions, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut rows = Vec::new();
    let (mut done, mut batch) = (0_u64, 16_usize);
    while done < wanted {
        let ask = usize::try_from(wanted - done).unwrap_or(usize::MAX).min(batch);
        definitions.clear();
        repetitions.clear();
        values.clear();
        let (records, _, levels) = reader
            .read_records(ask, Some(&mut definitions), Some(&mut repetitions), &mut values)
            .map_err(|e| table.broken(field, &e))?;
        if records == 0 {
            break;
        }
        rows_of(field, &definitions, &repetitions, &mut rows);
        if rows.len() != records || rows.iter().map(|r| r.stored()).sum::<usize>() != values.len() {
            let reason = format!("column {:?}: levels and values do not fit each other", field.name);
            return Err(table.invalid(reason + "; the file is damaged, get it anew"));
        }
        if let Some(at) = rows.iter().position(|row| row.stored() > LONGEST_ROW) {
            let (row, count) = (first_row + done + at as u64, rows[at].stored());
            let reason =
                format!("column {:?}, row {row}: {count} values; at most {LONGEST_ROW} are read", field.name);
            return Err(table.invalid(reason));
        }
        see(Block { first_row: first_row + done, rows: &rows, values: &values })?;
        done += records as u64;
        batch = (BLOCK_VALUES / (levels / records).max(1)).clamp(1, 8192);
    }
    Ok(done)
}

/// Turns levels into rows: a repetition level of 0 begins a row.
fn rows_of(field: &Field, definitions: &[i16], repetitions: &[i16], rows: &mut Vec<Row>) {
    rows.clear();
    let element = match field.shape {
        Shape::List { element } => element,
        Shape::Scalar | Shape::Nested => 0,
    };
    let mut levels = definitions.iter().zip(repetitions).peekable();
    while let Some((&definition, _)) = levels.next() {
        let mut count = usize::from(definition == field.full);
        let mut holes = definition >= element && definition < field.full;
        while let Some((&next, _)) = levels.next_if(|(_, repetition)| **repetition != 0) {
            count += usize::from(next == field.full);
            holes |= next < field.full;
        }
        rows.push(match (holes, definition < element - 1) {
            (true, _) => Row::Holes(count),
            (false, true) => Row::Missing,
            (false, false) => Row::Values(count),
        });
    }
}
