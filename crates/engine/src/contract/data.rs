//! The suite's own rows, columns and exact answers.

use crate::reference::{distance, nearest, unit};
use types::{Column, ColumnData, ColumnType, Columns, Element, Filter, Metric, Vectors};

/// Texts of column `s`; one has a quote in it, one a letter of more than one byte.
pub(super) const TEXTS: [&str; 5] = ["red", "it's", "größe", "a b", "x"];

/// Rows with their columns.
pub(super) struct Data {
    pub(super) metric: Metric,
    pub(super) vectors: Vectors,
    pub(super) columns: Columns,
    /// Values of a missing column field never pass a filter, so some are missing.
    rows: Vec<Vec<f32>>,
}

/// Types of the columns, for the table's specification.
pub(super) const COLUMNS: [(&str, ColumnType); 5] = [
    ("c", ColumnType::Int),
    ("x", ColumnType::Float),
    ("s", ColumnType::Text),
    ("b", ColumnType::Bool),
    ("n", ColumnType::Int),
];

impl Data {
    /// `rows` seeded rows. Under inner product they have one length, so that a row is nearest to
    /// itself there too.
    pub(super) fn new(metric: Metric, element: Element, rows: usize, dim: usize, seed: u64) -> Option<Self> {
        let mut bytes = Vec::with_capacity(rows * element.row_bytes(dim));
        for row in 0..rows {
            let mut values: Vec<f32> =
                (0..dim).map(|i| (unit(&[seed, row as u64, i as u64]) * 2.0 - 1.0) as f32).collect();
            if metric == Metric::InnerProduct {
                let norm = values.iter().map(|v| v * v).sum::<f32>().sqrt();
                values.iter_mut().for_each(|v| *v /= norm);
            }
            encode(element, &values, &mut bytes);
        }
        let vectors = Vectors::from_bytes(bytes, rows, dim, element).ok()?;
        let columns = Columns::new(columns(rows)).ok()?;
        let rows = (0..rows).map(|i| vectors.row(i).into_owned()).collect();
        Some(Data { metric, vectors, columns, rows })
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Distance from row `query` to row `key`.
    pub(super) fn distance(&self, query: usize, key: u64) -> Option<f64> {
        distance(self.metric, &self.rows[query], self.rows.get(usize::try_from(key).ok()?)?)
    }

    /// Keys of the rows that pass.
    pub(super) fn passing(&self, filter: &Filter) -> Vec<u64> {
        (0..self.len()).filter(|&row| filter.passes(&self.columns, row)).map(|row| row as u64).collect()
    }

    /// The `k` nearest of `among` to row `query`, with distances.
    pub(super) fn nearest(
        &self,
        query: usize,
        k: usize,
        among: impl Iterator<Item = u64>,
    ) -> Vec<(f64, u64)> {
        nearest(among.filter_map(|key| Some((self.distance(query, key)?, key))).collect(), k)
    }

    /// Share of the `k` nearest of `among` that `keys` holds, ties at the k-th distance included;
    /// 1 where there is none to find.
    pub(super) fn recall(&self, query: usize, k: usize, among: &[u64], keys: &[u64]) -> f64 {
        let truth = self.nearest(query, k, among.iter().copied());
        let Some(&(last, _)) = truth.last() else { return 1.0 };
        let limit = last + last.abs() * 1e-6;
        let mut distinct: Vec<u64> = keys.iter().copied().take(k).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let hit = |key: &&u64| self.distance(query, **key).is_some_and(|d| d <= limit) && among.contains(key);
        distinct.iter().filter(hit).count() as f64 / truth.len() as f64
    }
}

fn encode(element: Element, values: &[f32], bytes: &mut Vec<u8>) {
    match element {
        Element::F32 => values.iter().for_each(|v| bytes.extend(v.to_le_bytes())),
        // Multiples of 1/8 are exact in half precision; this writes them without a conversion crate.
        Element::F16 => values.iter().for_each(|v| bytes.extend(half_of_eighths(*v).to_le_bytes())),
        Element::I8 => values.iter().for_each(|v| bytes.push(((v * 127.0) as i8).to_le_bytes()[0])),
        Element::U8 => values.iter().for_each(|v| bytes.push((v * 127.0 + 128.0) as u8)),
        Element::Bit => bytes.extend(values.chunks(8).map(|eight| {
            eight.iter().enumerate().fold(0_u8, |byte, (i, v)| byte | (u8::from(*v > 0.0) << (7 - i)))
        })),
    }
}

/// The bits of the half-precision number that is `value` rounded to eighths, for -1 to 1.
fn half_of_eighths(value: f32) -> u16 {
    let eighths = (value * 8.0).round();
    let sign = if eighths < 0.0 { 0x8000 } else { 0 };
    let size = eighths.abs() as u16;
    let Some(top) = size.checked_ilog2() else { return sign };
    // size = 2^top * (1 + rest); the exponent of size/8 is top - 3, biased by 15.
    let rest = (size << (10 - top)) & 0x3ff;
    sign | ((top as u16 + 12) << 10) | rest
}

fn columns(rows: usize) -> Vec<Column> {
    let column = |name: &str, data: ColumnData| Column { name: name.into(), data };
    let present = |row: &usize| row % 37 != 5;
    vec![
        column("c", ColumnData::Int((0..rows).map(|i| present(&i).then_some(i as i64 % 10)).collect())),
        column("x", ColumnData::Float((0..rows).map(|i| Some((i % 8) as f64 * 0.5 - 1.0)).collect())),
        column("s", ColumnData::Text((0..rows).map(|i| Some(TEXTS[i % TEXTS.len()].into())).collect())),
        column("b", ColumnData::Bool((0..rows).map(|i| Some(i % 3 == 0)).collect())),
        column("n", ColumnData::Int((0..rows).map(|i| Some(i as i64)).collect())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighths_are_written_as_half_precision() {
        for (value, bits) in [(0.0, 0), (1.0, 0x3c00), (-0.5, 0xb800), (0.125, 0x3000), (0.875, 0x3b00)] {
            assert_eq!(half_of_eighths(value), bits, "{value}");
        }
    }

    #[test]
    fn recall_counts_each_true_row_once() {
        let data = Data::new(Metric::L2, Element::F32, 50, 4, 1).unwrap();
        let all: Vec<u64> = (0..50).collect();
        let truth: Vec<u64> =
            data.nearest(3, 5, all.iter().copied()).into_iter().map(|(_, key)| key).collect();
        assert_eq!(truth[0], 3);
        assert_eq!(data.recall(3, 5, &all, &truth), 1.0);
        assert_eq!(data.recall(3, 5, &all, &[3; 5]), 0.2);
        assert_eq!(data.recall(3, 5, &[], &[]), 1.0);
    }
}
