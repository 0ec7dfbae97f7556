//! Rows on their way into a table, cell by cell.

use super::form;
use engine::{Batch, EngineError, ErrorKind, sql::VectorForm};
use std::ops::Range;
use types::{Column, ColumnData, Vectors};

/// Consecutive rows of a batch: key, columns in the table's order, vector.
pub(crate) struct Rows<'a> {
    pub(crate) keys: Range<u64>,
    pub(crate) vectors: &'a Vectors,
    pub(crate) columns: Vec<&'a Column>,
    pub(crate) form: VectorForm,
    /// The place of the first row in vectors and columns.
    first: usize,
}

/// One cell of a row.
pub(crate) enum Cell<'a> {
    Null,
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
}

impl<'a> Rows<'a> {
    /// The rows of a batch for a table with these columns.
    ///
    /// # Errors
    /// Where shape, keys or columns do not fit.
    pub(crate) fn new(
        batch: &Batch<'a>,
        table: &engine::TableSpec,
        form: VectorForm,
    ) -> Result<Self, EngineError> {
        let refused = |what: String| Err(EngineError::new(ErrorKind::Refused, what));
        let (keys, vectors) = (batch.keys.clone(), batch.vectors);
        if vectors.dim() != table.dim {
            return refused(format!("rows of {} dimensions for a table of {}", vectors.dim(), table.dim));
        }
        let rows = keys.end.saturating_sub(keys.start);
        if rows != vectors.rows() as u64 || batch.columns.is_some_and(|c| c.rows() as u64 != rows) {
            return refused(format!("{rows} keys for {} vectors; columns must be as many", vectors.rows()));
        }
        if i64::try_from(keys.end).is_err() {
            return refused(format!("key {} is too large", keys.end));
        }
        let mut columns = Vec::with_capacity(table.columns.len());
        for (name, _) in &table.columns {
            match batch.columns.and_then(|c| c.get(name)) {
                Some(column) => columns.push(column),
                None => return refused(format!("rows without the column {name:?}")),
            }
        }
        // Only a search must have its vector inside the statement; rows are bound.
        let form = if form == VectorForm::Literal { VectorForm::Text } else { form };
        Ok(Rows { keys, vectors, columns, form, first: 0 })
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        // As many as there are vectors in memory, so it fits.
        (self.keys.end - self.keys.start) as usize
    }

    /// Some of these rows.
    pub(crate) fn part(&self, range: Range<usize>) -> Rows<'a> {
        Rows {
            keys: self.keys.start + range.start as u64..self.keys.start + range.end as u64,
            vectors: self.vectors,
            columns: self.columns.clone(),
            form: self.form,
            first: self.first + range.start,
        }
    }

    /// The key of row `row`. Below 2^63, which `new` made sure of.
    pub(crate) fn key(&self, row: usize) -> i64 {
        (self.keys.start + row as u64) as i64
    }

    /// The cells of row `row` between key and vector.
    pub(crate) fn cells(&self, row: usize) -> impl Iterator<Item = Cell<'a>> + '_ {
        let row = self.first + row;
        self.columns.iter().map(move |column| match &column.data {
            ColumnData::Int(data) => data[row].map_or(Cell::Null, Cell::Int),
            ColumnData::Float(data) => data[row].map_or(Cell::Null, Cell::Float),
            ColumnData::Bool(data) => data[row].map_or(Cell::Null, Cell::Bool),
            ColumnData::Text(data) => data[row].as_deref().map_or(Cell::Null, Cell::Text),
        })
    }

    /// Appends the vector of row `row`.
    ///
    /// # Errors
    /// Where the form has no room for it.
    pub(crate) fn vector(
        &self,
        row: usize,
        scratch: &mut Vec<f32>,
        out: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        form::append(self.form, self.vectors, self.first + row, scratch, out)
    }

    /// Bytes that one row takes in a statement, more or less.
    pub(crate) fn row_bytes(&self) -> usize {
        let vector = self.vectors.dim() * if self.form == VectorForm::Text { 12 } else { 4 };
        let longest = |column: &&Column| match &column.data {
            ColumnData::Text(data) => data.iter().flatten().map(String::len).max().unwrap_or(0),
            _ => 8,
        };
        vector + 64 + self.columns.iter().map(longest).sum::<usize>()
    }
}
