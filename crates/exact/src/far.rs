//! Values of a column that are not the query's own, for filters that fight the vectors: a far one,
//! whose rows lie far from the query, and any other.
//!
//! What is here: which value each query gets. What is not: filters and their text (crate `types`),
//! and where a query's own value comes from.

use crate::ExactError;
use crate::distance::check_pair;
use rayon::prelude::*;
use types::{Column, Dictionary, Metric, Value, Vectors};

/// Rows of a value whose mean stands for it: more change the mean little.
const ROWS_OF_MEAN: usize = 256;
/// Most values that are looked at, those of most rows first.
const MOST_VALUES: usize = 4096;

/// For each query a value of `column` (one a row of `base`) whose rows lie far from it: of the
/// well filled values, other than the query's `own`, the one whose mean vector is farthest from the
/// query. A value is well filled where it has at least half as many rows as the average one. The
/// query's own value, where there is no other; none, where there is no value at all.
///
/// # Errors
/// Where metric and vectors do not fit, or a column has another length.
pub fn far_values(
    base: &Vectors,
    queries: &Vectors,
    metric: Metric,
    column: &Column,
    own: Option<&Column>,
) -> Result<Vec<Option<Value>>, ExactError> {
    check_pair(base, queries, metric)?;
    let values = Values::new(column, base.rows(), own, queries.rows())?;
    let means = values.means(base, metric);
    let farness = |query: &[f32], mean: &[f64]| -> f64 {
        let pairs = query.iter().zip(mean).map(|(&q, &m)| (f64::from(q), m));
        match metric {
            Metric::L2 | Metric::Hamming => pairs.map(|(q, m)| (q - m) * (q - m)).sum(),
            Metric::InnerProduct => -pairs.map(|(q, m)| q * m).sum::<f64>(),
            Metric::Cosine => {
                let length = mean.iter().map(|m| m * m).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
                -pairs.map(|(q, m)| q * m).sum::<f64>() / length
            }
        }
    };
    let choose = |query: usize| {
        let vector = queries.row(query);
        let others = (0..means.len()).filter(|&i| values.is_other(query, i));
        // The first of equals, so that the choice is the same everywhere.
        let farthest = others
            .map(|i| (i, farness(&vector, &means[i])))
            .reduce(|best, next| if next.1 > best.1 { next } else { best });
        values.value(query, farthest.map(|(i, _)| i))
    };
    Ok((0..queries.rows()).into_par_iter().map(choose).collect())
}

/// For each query a value of `column` other than its `own`, drawn among the well filled ones by the
/// query's number. As [`far_values`] where there is no other.
///
/// # Errors
/// Where `own` has another length than there are queries.
pub fn other_values(
    column: &Column,
    own: Option<&Column>,
    queries: usize,
) -> Result<Vec<Option<Value>>, ExactError> {
    let values = Values::new(column, column.data.len(), own, queries)?;
    let choose = |query: usize| {
        let others: Vec<usize> = (0..values.chosen.len()).filter(|&i| values.is_other(query, i)).collect();
        let draw = (u128::from(mixed(query as u64)) * others.len() as u128) >> 64;
        values.value(query, others.get(draw as usize).copied())
    };
    Ok((0..queries).into_par_iter().map(choose).collect())
}

/// The finaliser of SplitMix64.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The well filled values of a column, and each query's own.
struct Values {
    all: Dictionary,
    /// Numbers of the well filled ones.
    chosen: Vec<usize>,
    own: Vec<Option<Value>>,
}

impl Values {
    fn new(column: &Column, rows: usize, own: Option<&Column>, queries: usize) -> Result<Values, ExactError> {
        let length = |what, unit, found, expected| {
            if found == expected { Ok(()) } else { Err(ExactError::Length { what, unit, found, expected }) }
        };
        length("columns", "rows", column.data.len(), rows)?;
        let own = match own {
            Some(own) => {
                length("query columns", "queries", own.data.len(), queries)?;
                (0..queries).map(|query| own.value(query)).collect()
            }
            None => vec![None; queries],
        };
        let all = Dictionary::new(&column.data);
        let filled: usize = all.counts.iter().sum();
        let mut chosen: Vec<usize> =
            (0..all.values.len()).filter(|&v| all.counts[v] * 2 * all.values.len() >= filled).collect();
        chosen.sort_by_key(|&v| std::cmp::Reverse(all.counts[v]));
        chosen.truncate(MOST_VALUES);
        Ok(Values { all, chosen, own })
    }

    /// Whether well filled value `i` is not the query's own.
    fn is_other(&self, query: usize, i: usize) -> bool {
        self.own[query].as_ref() != Some(&self.all.values[self.chosen[i]])
    }

    /// Well filled value `i`, else the only one.
    fn value(&self, query: usize, i: Option<usize>) -> Option<Value> {
        let only = || self.own[query].clone().or_else(|| self.all.values.first().cloned());
        i.map(|i| self.all.values[self.chosen[i]].clone()).or_else(only)
    }

    /// The mean vector of each well filled value, over at most [`ROWS_OF_MEAN`] of its rows, evenly
    /// spread; under cosine of unit vectors.
    fn means(&self, base: &Vectors, metric: Metric) -> Vec<Vec<f64>> {
        let mut place = vec![None; self.all.values.len()];
        self.chosen.iter().enumerate().for_each(|(i, &value)| place[value] = Some(i));
        let mut sums = vec![vec![0.0; base.dim()]; self.chosen.len()];
        let (mut seen, mut taken) = (vec![0_usize; self.chosen.len()], vec![0_usize; self.chosen.len()]);
        for (row, code) in self.all.codes.iter().enumerate() {
            let Some(i) = code.and_then(|code| place[code as usize]) else { continue };
            let step = self.all.counts[self.chosen[i]].div_ceil(ROWS_OF_MEAN);
            seen[i] += 1;
            if (seen[i] - 1) % step != 0 {
                continue;
            }
            let vector = base.row(row);
            let length = vector.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            let scale = if metric == Metric::Cosine && length > 0.0 { 1.0 / length } else { 1.0 };
            sums[i].iter_mut().zip(vector.iter()).for_each(|(sum, &x)| *sum += f64::from(x) * scale);
            taken[i] += 1;
        }
        for (sum, taken) in sums.iter_mut().zip(taken) {
            sum.iter_mut().for_each(|x| *x /= taken.max(1) as f64);
        }
        sums
    }
}
