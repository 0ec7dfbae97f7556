//! The names that a data set gives its rows.
//!
//! Inside Annvil a row is known by its number, and every engine is loaded with that number as the
//! key. A data set's own ids are kept to read its truth and to show answers.

use std::{collections::HashMap, fmt, hash::Hash};

/// One id of a data set.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// An integer.
    Int(i64),
    /// A text.
    Text(String),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Int(value) => value.fmt(f),
            Id::Text(value) => value.fmt(f),
        }
    }
}

/// The ids of all rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Ids {
    /// Row i has the id i; the number of rows.
    RowNumbers(usize),
    /// Integers, with gaps or in any order.
    Ints(Vec<i64>),
    /// Texts.
    Texts(Vec<String>),
}

impl Ids {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Ids::RowNumbers(rows) => *rows,
            Ids::Ints(ids) => ids.len(),
            Ids::Texts(ids) => ids.len(),
        }
    }

    /// True where there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id of row `row`.
    pub fn get(&self, row: usize) -> Id {
        match self {
            Ids::RowNumbers(_) => Id::Int(row as i64),
            Ids::Ints(ids) => Id::Int(ids[row]),
            Ids::Texts(ids) => Id::Text(ids[row].clone()),
        }
    }

    /// From id to row number. Where an id is repeated the last row has it; see
    /// [`Ids::distinct`].
    pub fn rows_by_id(&self) -> HashMap<Id, u32> {
        (0..self.len()).map(|row| (self.get(row), row as u32)).collect()
    }

    /// How many different ids there are.
    pub fn distinct(&self) -> usize {
        fn count<T: Hash + Eq>(items: &[T]) -> usize {
            items.iter().collect::<std::collections::HashSet<_>>().len()
        }
        match self {
            Ids::RowNumbers(rows) => *rows,
            Ids::Ints(ids) => count(ids),
            Ids::Texts(ids) => count(ids),
        }
    }
}
