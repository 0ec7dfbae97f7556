//! The neutral form of a filter: which rows may be returned.
//!
//! Engines turn it into their own language; the exact control evaluates it on the columns.

use crate::{Column, ColumnData, Columns, RowSet};
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, fmt, sync::Arc};

/// A typed operand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
}

impl Value {
    /// The value without quotes.
    pub fn plain(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(v) => v.fmt(f),
            Value::Int(v) => v.fmt(f),
            Value::Float(v) => write!(f, "{v:?}"),
            Value::Text(v) => write!(f, "'{}'", v.replace('\'', "''")),
        }
    }
}

/// A condition on the columns of a row. A missing value satisfies none.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// The column has this value.
    Eq(String, Value),
    /// The column has one of these values.
    In(String, Vec<Value>),
    /// The column lies between the bounds; a bound holds the value and whether it is included.
    Range {
        /// The column.
        field: String,
        /// Lower bound.
        low: Option<(Value, bool)>,
        /// Upper bound.
        high: Option<(Value, bool)>,
    },
    /// All hold.
    And(Vec<Filter>),
    /// At least one holds.
    Or(Vec<Filter>),
}

/// The kinds of condition that an engine may or may not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterKind {
    /// Equality on an integer.
    EqInt,
    /// Equality on a float.
    EqFloat,
    /// Equality on a text.
    EqText,
    /// Equality on a boolean.
    EqBool,
    /// One of several values.
    In,
    /// A range.
    Range,
    /// All of several conditions.
    And,
    /// Any of several conditions.
    Or,
}

/// A filter that does not fit the columns.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FilterError {
    /// No such column.
    #[error("filter on {field:?}, but the columns are: {known}")]
    UnknownField {
        /// The column asked for.
        field: String,
        /// Those there are.
        known: String,
    },
    /// The operand has another type than the column.
    #[error(
        "filter compares {field:?}, a column of type {}, with {value}, which has another type",
        format!("{column:?}").to_lowercase()
    )]
    Type {
        /// The column.
        field: String,
        /// Its type.
        column: crate::ColumnType,
        /// The operand.
        value: Value,
    },
    /// A text that is no filter.
    #[error("filter {text:?}: {reason}; the form is: cat = 3 AND num < 100 AND name IN ('a', 'b')")]
    Syntax {
        /// The whole text.
        text: String,
        /// What is wrong.
        reason: String,
    },
}

/// What filter each query of a set has.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Filters {
    /// None.
    #[default]
    None,
    /// One for all.
    Same(Arc<Filter>),
    /// One each; queries with equal filters share the `Arc`.
    PerQuery(Vec<Arc<Filter>>),
}

impl Filters {
    /// The filter of query `query`.
    pub fn of(&self, query: usize) -> Option<&Arc<Filter>> {
        match self {
            Filters::None => None,
            Filters::Same(filter) => Some(filter),
            Filters::PerQuery(filters) => Some(&filters[query]),
        }
    }

    /// Queries that share a filter, in order of first appearance: (filter, its queries).
    pub fn groups(&self, queries: usize) -> Vec<(Option<Arc<Filter>>, Vec<usize>)> {
        match self {
            Filters::None => vec![(None, (0..queries).collect())],
            Filters::Same(filter) => vec![(Some(filter.clone()), (0..queries).collect())],
            Filters::PerQuery(filters) => {
                let mut groups: Vec<(Option<Arc<Filter>>, Vec<usize>)> = Vec::new();
                let mut seen = HashMap::new();
                // Most equal filters are one and the same: their texts are made once.
                let mut shared: HashMap<*const Filter, usize> = HashMap::new();
                for (query, filter) in filters.iter().enumerate().take(queries) {
                    let at = *shared.entry(Arc::as_ptr(filter)).or_insert_with(|| {
                        *seen.entry(filter.to_string()).or_insert_with(|| {
                            groups.push((Some(filter.clone()), Vec::new()));
                            groups.len() - 1
                        })
                    });
                    groups[at].1.push(query);
                }
                groups
            }
        }
    }
}

impl Filter {
    /// The rows of `columns` that pass.
    ///
    /// # Errors
    /// Where a field does not exist or an operand has another type.
    pub fn rows(&self, columns: &Columns) -> Result<RowSet, FilterError> {
        let test = self.compile(columns)?;
        Ok(RowSet::from_fn(columns.rows(), |row| test.passes(row)))
    }

    /// Checks that fields and types fit, without evaluating.
    ///
    /// # Errors
    /// As [`Filter::rows`].
    pub fn check(&self, columns: &Columns) -> Result<(), FilterError> {
        self.compile(columns).map(drop)
    }

    /// Whether row `row` passes; false where the filter does not fit the columns.
    pub fn passes(&self, columns: &Columns, row: usize) -> bool {
        self.compile(columns).is_ok_and(|test| test.passes(row))
    }

    /// The kinds of condition used, for comparison with what an engine has.
    pub fn kinds(&self) -> Vec<FilterKind> {
        let mut kinds = Vec::new();
        self.collect_kinds(&mut kinds);
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    fn collect_kinds(&self, kinds: &mut Vec<FilterKind>) {
        match self {
            Filter::Eq(_, Value::Int(_)) => kinds.push(FilterKind::EqInt),
            Filter::Eq(_, Value::Float(_)) => kinds.push(FilterKind::EqFloat),
            Filter::Eq(_, Value::Text(_)) => kinds.push(FilterKind::EqText),
            Filter::Eq(_, Value::Bool(_)) => kinds.push(FilterKind::EqBool),
            Filter::In(..) => kinds.push(FilterKind::In),
            Filter::Range { .. } => kinds.push(FilterKind::Range),
            Filter::And(parts) | Filter::Or(parts) => {
                kinds.push(if matches!(self, Filter::And(_)) { FilterKind::And } else { FilterKind::Or });
                for part in parts {
                    part.collect_kinds(kinds);
                }
            }
        }
    }

    fn compile<'a>(&'a self, columns: &'a Columns) -> Result<Test<'a>, FilterError> {
        let column = |field: &str| {
            columns.get(field).ok_or_else(|| FilterError::UnknownField {
                field: field.to_owned(),
                known: columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", "),
            })
        };
        Ok(match self {
            Filter::Eq(field, value) => Test::any_of(column(field)?, std::slice::from_ref(value))?,
            Filter::In(field, values) => Test::any_of(column(field)?, values)?,
            Filter::Range { field, low, high } => Test::range(column(field)?, low.as_ref(), high.as_ref())?,
            Filter::And(parts) => Test::All(compile_all(parts, columns)?),
            Filter::Or(parts) => Test::Any(compile_all(parts, columns)?),
        })
    }
}

fn compile_all<'a>(parts: &'a [Filter], columns: &'a Columns) -> Result<Vec<Test<'a>>, FilterError> {
    parts.iter().map(|part| part.compile(columns)).collect()
}

/// A filter bound to the columns it reads, types checked.
enum Test<'a> {
    Ints(&'a [Option<i64>], Vec<i64>),
    Floats(&'a [Option<f64>], Vec<f64>),
    Bools(&'a [Option<bool>], Vec<bool>),
    Texts(&'a [Option<String>], Vec<&'a str>),
    IntRange(&'a [Option<i64>], NumberRange),
    FloatRange(&'a [Option<f64>], NumberRange),
    TextRange(&'a [Option<String>], Option<(&'a str, bool)>, Option<(&'a str, bool)>),
    All(Vec<Test<'a>>),
    Any(Vec<Test<'a>>),
}

#[derive(Clone, Copy)]
struct NumberRange {
    low: Option<(f64, bool)>,
    high: Option<(f64, bool)>,
}

impl NumberRange {
    fn holds(self, value: f64) -> bool {
        self.low.is_none_or(|(bound, included)| value > bound || (included && value == bound))
            && self.high.is_none_or(|(bound, included)| value < bound || (included && value == bound))
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(v) => Some(*v as f64),
        Value::Float(v) => Some(*v),
        Value::Bool(_) | Value::Text(_) => None,
    }
}

fn typed<'a, T>(
    column: &Column,
    values: &'a [Value],
    pick: impl Fn(&'a Value) -> Option<T>,
) -> Result<Vec<T>, FilterError> {
    let wrong = |value: &Value| FilterError::Type {
        field: column.name.clone(),
        column: column.kind(),
        value: value.clone(),
    };
    values.iter().map(|value| pick(value).ok_or_else(|| wrong(value))).collect()
}

impl<'a> Test<'a> {
    fn any_of(column: &'a Column, values: &'a [Value]) -> Result<Self, FilterError> {
        Ok(match &column.data {
            ColumnData::Int(data) => {
                let pick = |v: &Value| if let Value::Int(v) = v { Some(*v) } else { None };
                Test::Ints(data, typed(column, values, pick)?)
            }
            ColumnData::Float(data) => Test::Floats(data, typed(column, values, number)?),
            ColumnData::Bool(data) => {
                let pick = |v: &Value| if let Value::Bool(v) = v { Some(*v) } else { None };
                Test::Bools(data, typed(column, values, pick)?)
            }
            ColumnData::Text(data) => Test::Texts(data, typed(column, values, text)?),
        })
    }

    fn range(
        column: &'a Column,
        low: Option<&'a (Value, bool)>,
        high: Option<&'a (Value, bool)>,
    ) -> Result<Self, FilterError> {
        let wrong = |value: &Value| FilterError::Type {
            field: column.name.clone(),
            column: column.kind(),
            value: value.clone(),
        };
        let bound = |side: Option<&'a (Value, bool)>| {
            side.map(|(value, included)| number(value).map(|v| (v, *included)).ok_or_else(|| wrong(value)))
                .transpose()
        };
        let text_bound = |side: Option<&'a (Value, bool)>| {
            side.map(|(value, included)| text(value).map(|v| (v, *included)).ok_or_else(|| wrong(value)))
                .transpose()
        };
        Ok(match &column.data {
            ColumnData::Int(data) => {
                Test::IntRange(data, NumberRange { low: bound(low)?, high: bound(high)? })
            }
            ColumnData::Float(data) => {
                Test::FloatRange(data, NumberRange { low: bound(low)?, high: bound(high)? })
            }
            ColumnData::Text(data) => Test::TextRange(data, text_bound(low)?, text_bound(high)?),
            ColumnData::Bool(_) => {
                let (value, _) = low.or(high).cloned().unwrap_or((Value::Bool(false), true));
                return Err(wrong(&value));
            }
        })
    }

    fn passes(&self, row: usize) -> bool {
        match self {
            Test::Ints(data, wanted) => data[row].is_some_and(|v| wanted.contains(&v)),
            Test::Floats(data, wanted) => data[row].is_some_and(|v| wanted.contains(&v)),
            Test::Bools(data, wanted) => data[row].is_some_and(|v| wanted.contains(&v)),
            Test::Texts(data, wanted) => data[row].as_deref().is_some_and(|v| wanted.contains(&v)),
            Test::IntRange(data, range) => data[row].is_some_and(|v| range.holds(v as f64)),
            Test::FloatRange(data, range) => data[row].is_some_and(|v| range.holds(v)),
            Test::TextRange(data, low, high) => data[row].as_deref().is_some_and(|v| {
                low.is_none_or(|(bound, included)| v > bound || (included && v == bound))
                    && high.is_none_or(|(bound, included)| v < bound || (included && v == bound))
            }),
            Test::All(tests) => tests.iter().all(|t| t.passes(row)),
            Test::Any(tests) => tests.iter().any(|t| t.passes(row)),
        }
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(v) => Some(v),
        _ => None,
    }
}
