//! The rows that pass each of many filters, evaluated together: a condition that several filters
//! hold is evaluated once, and all equalities on a column take one pass over it, however many
//! values are asked for. One filter alone is [`Filter::rows`], and both give the same.

use crate::{ColumnData, Columns, Filter, FilterError, RowSet, Value};
use std::{collections::HashMap, hash::Hash};

/// Bytes that the row sets of conditions may take at a time, beside the answer.
const BYTES: usize = 256 << 20;
/// Filters evaluated together in any case.
const LEAST: usize = 64;
/// Values compared one by one rather than looked up.
const FEW_VALUES: usize = 2;

/// The rows of `columns` that pass each of `filters`.
///
/// # Errors
/// As [`Filter::rows`], for the first filter that does not fit.
pub fn row_sets(filters: &[&Filter], columns: &Columns) -> Result<Vec<RowSet>, FilterError> {
    for filter in filters {
        filter.check(columns)?;
    }
    let together = (BYTES / columns.rows().div_ceil(8).max(1)).max(LEAST);
    let mut out = Vec::with_capacity(filters.len());
    for filters in filters.chunks(together) {
        let mut conditions = Conditions::default();
        filters.iter().for_each(|filter| conditions.collect(filter));
        conditions.evaluate(columns)?;
        out.extend(filters.iter().map(|filter| conditions.combined(filter, columns.rows())));
    }
    Ok(out)
}

/// The different conditions on one column each of which filters are made.
#[derive(Default)]
struct Conditions<'a> {
    places: HashMap<(&'a str, String), usize>,
    all: Vec<Condition<'a>>,
}

struct Condition<'a> {
    filter: &'a Filter,
    field: &'a str,
    /// How many filters still need it.
    uses: usize,
    rows: Option<RowSet>,
}

impl<'a> Conditions<'a> {
    fn collect(&mut self, filter: &'a Filter) {
        let field = match filter {
            Filter::And(parts) | Filter::Or(parts) => {
                return parts.iter().for_each(|part| self.collect(part));
            }
            Filter::Eq(field, _) | Filter::In(field, _) | Filter::Range { field, .. } => field.as_str(),
        };
        let next = self.all.len();
        let place = *self.places.entry((field, filter.to_string())).or_insert(next);
        if place == next {
            self.all.push(Condition { filter, field, uses: 0, rows: None });
        }
        self.all[place].uses += 1;
    }

    fn evaluate(&mut self, columns: &Columns) -> Result<(), FilterError> {
        let mut equalities: HashMap<&str, Vec<usize>> = HashMap::new();
        for (place, condition) in self.all.iter().enumerate() {
            if !matches!(condition.filter, Filter::Range { .. }) {
                equalities.entry(condition.field).or_default().push(place);
            }
        }
        for (field, places) in equalities {
            let values: usize = places.iter().map(|&place| values(self.all[place].filter).len()).sum();
            if let Some(column) = columns.get(field).filter(|_| values > FEW_VALUES) {
                let filters: Vec<&Filter> = places.iter().map(|&place| self.all[place].filter).collect();
                for (place, rows) in places.into_iter().zip(equal_rows(&column.data, &filters)) {
                    self.all[place].rows = Some(rows);
                }
            }
        }
        for condition in &mut self.all {
            if condition.rows.is_none() {
                condition.rows = Some(condition.filter.rows(columns)?);
            }
        }
        Ok(())
    }

    /// The rows of a whole filter. Each call uses its conditions up by one.
    fn combined(&mut self, filter: &'a Filter, rows: usize) -> RowSet {
        let (parts, empty, combine): (_, _, fn(&RowSet, &RowSet) -> RowSet) = match filter {
            Filter::And(parts) => (parts, true, RowSet::and),
            Filter::Or(parts) => (parts, false, RowSet::or),
            Filter::Eq(field, _) | Filter::In(field, _) | Filter::Range { field, .. } => {
                return self.take(field, filter);
            }
        };
        let mut sets = parts.iter().map(|part| self.combined(part, rows));
        let Some(first) = sets.next() else { return RowSet::from_fn(rows, |_| empty) };
        sets.fold(first, |all, part| combine(&all, &part))
    }

    fn take(&mut self, field: &'a str, filter: &Filter) -> RowSet {
        let condition = &mut self.all[self.places[&(field, filter.to_string())]];
        condition.uses -= 1;
        let rows = if condition.uses == 0 { condition.rows.take() } else { condition.rows.clone() };
        rows.unwrap_or_else(|| unreachable!("evaluated, and used as often as it was collected"))
    }
}

/// The values of an equality.
fn values(filter: &Filter) -> &[Value] {
    match filter {
        Filter::Eq(_, value) => std::slice::from_ref(value),
        Filter::In(_, values) => values,
        Filter::Range { .. } | Filter::And(_) | Filter::Or(_) => &[],
    }
}

/// The rows of each equality, in one pass.
fn equal_rows(data: &ColumnData, filters: &[&Filter]) -> Vec<RowSet> {
    match data {
        ColumnData::Int(column) => {
            let wanted = places(filters, |v| if let Value::Int(v) = v { Some(*v) } else { None });
            pass(column, filters.len(), |v| wanted.get(v))
        }
        ColumnData::Float(column) => {
            let wanted = places(filters, |v| match v {
                Value::Int(v) => number(*v as f64),
                Value::Float(v) => number(*v),
                Value::Bool(_) | Value::Text(_) => None,
            });
            pass(column, filters.len(), |v| wanted.get(&number(*v)?))
        }
        ColumnData::Bool(column) => {
            let wanted = places(filters, |v| if let Value::Bool(v) = v { Some(*v) } else { None });
            pass(column, filters.len(), |v| wanted.get(v))
        }
        ColumnData::Text(column) => {
            let wanted = places(filters, |v| if let Value::Text(v) = v { Some(v.as_str()) } else { None });
            pass(column, filters.len(), |v| wanted.get(v.as_str()))
        }
    }
}

/// A float as a key: 0 and -0 are one, NaN is none.
fn number(value: f64) -> Option<u64> {
    (!value.is_nan()).then(|| if value == 0.0 { 0.0_f64 } else { value }.to_bits())
}

/// For each value the filters that want it.
fn places<'a, K: Hash + Eq>(
    filters: &[&'a Filter],
    key: impl Fn(&'a Value) -> Option<K>,
) -> HashMap<K, Vec<usize>> {
    let mut places: HashMap<K, Vec<usize>> = HashMap::new();
    for (place, filter) in filters.iter().enumerate() {
        for key in values(filter).iter().filter_map(&key) {
            places.entry(key).or_default().push(place);
        }
    }
    places
}

fn pass<'m, T>(
    column: &[Option<T>],
    filters: usize,
    wanted: impl Fn(&T) -> Option<&'m Vec<usize>>,
) -> Vec<RowSet> {
    let mut words = vec![vec![0_u64; column.len().div_ceil(64)]; filters];
    for (row, value) in column.iter().enumerate() {
        if let Some(places) = value.as_ref().and_then(&wanted) {
            for &place in places {
                words[place][row / 64] |= 1 << (row % 64);
            }
        }
    }
    words.into_iter().map(|words| RowSet::from_words(words, column.len())).collect()
}

#[cfg(test)]
#[path = "filter_rows_tests.rs"]
mod tests;
