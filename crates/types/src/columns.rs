//! Metadata of the rows, column by column, in row order.

use crate::filter::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The values of one column. A missing value passes no filter.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnData {
    /// Integers.
    Int(Vec<Option<i64>>),
    /// Numbers.
    Float(Vec<Option<f64>>),
    /// True or false.
    Bool(Vec<Option<bool>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

/// The type of a column, for schemas and messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    /// 64-bit integer.
    Int,
    /// 64-bit float.
    Float,
    /// Boolean.
    Bool,
    /// Text.
    Text,
}

/// A named column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name, as filters use it.
    pub name: String,
    /// One value a row.
    pub data: ColumnData,
}

/// Columns that cannot stand together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnsError {
    /// A column of another length.
    #[error("column {name:?} has {found} values, the others {expected}")]
    Length {
        /// The column.
        name: String,
        /// Its length.
        found: usize,
        /// The length of those before it.
        expected: usize,
    },
    /// Two columns of one name.
    #[error("column {0:?} stands twice")]
    Repeated(String),
}

/// The columns of a table.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Columns {
    columns: Vec<Column>,
    rows: usize,
}

impl Columns {
    /// Columns of one length and different names.
    ///
    /// # Errors
    /// Where lengths differ or a name is repeated.
    pub fn new(columns: Vec<Column>) -> Result<Self, ColumnsError> {
        let rows = columns.first().map_or(0, |c| c.data.len());
        for (i, column) in columns.iter().enumerate() {
            if column.data.len() != rows {
                let (found, expected) = (column.data.len(), rows);
                return Err(ColumnsError::Length { name: column.name.clone(), found, expected });
            }
            if columns[..i].iter().any(|other| other.name == column.name) {
                return Err(ColumnsError::Repeated(column.name.clone()));
            }
        }
        Ok(Columns { columns, rows })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The column named `name`.
    pub fn get(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// All columns, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter()
    }

    /// The rows `start..end`.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Columns {
        self.select(range)
    }

    /// A copy of the rows named, in that order.
    pub fn select(&self, rows: impl IntoIterator<Item = usize>) -> Columns {
        let rows: Vec<usize> = rows.into_iter().collect();
        let columns = self
            .columns
            .iter()
            .map(|c| Column { name: c.name.clone(), data: c.data.select(&rows) })
            .collect();
        Columns { columns, rows: rows.len() }
    }
}

impl Column {
    /// The type of its values.
    pub fn kind(&self) -> ColumnType {
        match self.data {
            ColumnData::Int(_) => ColumnType::Int,
            ColumnData::Float(_) => ColumnType::Float,
            ColumnData::Bool(_) => ColumnType::Bool,
            ColumnData::Text(_) => ColumnType::Text,
        }
    }

    /// The value of row `row`; none where it is missing.
    pub fn value(&self, row: usize) -> Option<Value> {
        match &self.data {
            ColumnData::Int(v) => v[row].map(Value::Int),
            ColumnData::Float(v) => v[row].map(Value::Float),
            ColumnData::Bool(v) => v[row].map(Value::Bool),
            ColumnData::Text(v) => v[row].clone().map(Value::Text),
        }
    }

    /// Each different value (as text) with the number of rows that have it, most frequent first.
    pub fn value_counts(&self) -> Vec<(String, usize)> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for row in 0..self.data.len() {
            if let Some(value) = self.value(row) {
                *counts.entry(value.plain()).or_default() += 1;
            }
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    }
}

impl ColumnData {
    /// Number of values, missing ones too.
    pub fn len(&self) -> usize {
        match self {
            ColumnData::Int(v) => v.len(),
            ColumnData::Float(v) => v.len(),
            ColumnData::Bool(v) => v.len(),
            ColumnData::Text(v) => v.len(),
        }
    }

    /// True where there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn select(&self, rows: &[usize]) -> ColumnData {
        fn pick<T: Clone>(values: &[T], rows: &[usize]) -> Vec<T> {
            rows.iter().map(|&row| values[row].clone()).collect()
        }
        match self {
            ColumnData::Int(v) => ColumnData::Int(pick(v, rows)),
            ColumnData::Float(v) => ColumnData::Float(pick(v, rows)),
            ColumnData::Bool(v) => ColumnData::Bool(pick(v, rows)),
            ColumnData::Text(v) => ColumnData::Text(pick(v, rows)),
        }
    }
}
