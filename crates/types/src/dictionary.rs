//! The different values of a column, numbered in order of first appearance.

use crate::{ColumnData, Value};
use std::{collections::HashMap, hash::Hash};

/// The different values of a column, and which of them each row has.
#[derive(Clone, Debug, PartialEq)]
pub struct Dictionary {
    /// The values; NaN is none.
    pub values: Vec<Value>,
    /// Rows that have each value.
    pub counts: Vec<usize>,
    /// For each row the number of its value; none where it has none.
    pub codes: Vec<Option<u32>>,
}

impl Dictionary {
    /// Of a column, in one pass.
    pub fn new(data: &ColumnData) -> Dictionary {
        match data {
            ColumnData::Int(v) => number(v, |v| Some(*v), |v| Value::Int(*v)),
            ColumnData::Float(v) => {
                let key = |v: &f64| (!v.is_nan()).then(|| if *v == 0.0 { 0 } else { v.to_bits() });
                number(v, key, |v| Value::Float(*v))
            }
            ColumnData::Bool(v) => number(v, |v| Some(*v), |v| Value::Bool(*v)),
            ColumnData::Text(v) => number(v, |v| Some(v.as_str()), |v| Value::Text(v.clone())),
        }
    }
}

fn number<'a, T, K: Hash + Eq>(
    column: &'a [Option<T>],
    key: impl Fn(&'a T) -> Option<K>,
    value: impl Fn(&'a T) -> Value,
) -> Dictionary {
    let mut known: HashMap<K, u32> = HashMap::new();
    let mut out = Dictionary { values: Vec::new(), counts: Vec::new(), codes: Vec::new() };
    out.codes.reserve_exact(column.len());
    for cell in column {
        let code = cell.as_ref().and_then(|cell| Some((cell, key(cell)?))).map(|(cell, key)| {
            *known.entry(key).or_insert_with(|| {
                out.values.push(value(cell));
                out.counts.push(0);
                (out.values.len() - 1) as u32
            })
        });
        if let Some(code) = code {
            out.counts[code as usize] += 1;
        }
        out.codes.push(code);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbered_counted_and_found_again() {
        let texts = ["b", "a", "b", "", "b"].map(|t| (!t.is_empty()).then(|| t.to_owned())).to_vec();
        let found = Dictionary::new(&ColumnData::Text(texts));
        assert_eq!(found.values, [Value::Text("b".into()), Value::Text("a".into())]);
        assert_eq!(found.counts, [3, 1]);
        assert_eq!(found.codes, [Some(0), Some(1), Some(0), None, Some(0)]);
        let floats = [Some(0.0), Some(-0.0), Some(f64::NAN), None, Some(1.5)].to_vec();
        let found = Dictionary::new(&ColumnData::Float(floats));
        assert_eq!((found.counts, found.codes[2]), (vec![2, 1], None));
        assert_eq!(Dictionary::new(&ColumnData::Int(vec![])).values.len(), 0);
    }
}
