//! How far near neighbours stand out: what makes a data set hard.

use crate::distance::{Measure, check_pair};
use crate::{ExactError, Options, Subset, neighbours};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use types::{Metric, Vectors};

/// Queries looked at, and rows for the mean distance.
const QUERIES: usize = 200;
const ROWS: usize = 1000;

/// Distances of neighbours beside the mean distance (to a sample of rows), averaged over a sample of
/// queries. For the inner product distances are negative and no ratio is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contrast {
    /// Queries looked at.
    pub queries: usize,
    /// Mean distance of the nearest row; none where there is none.
    pub first: Option<f64>,
    /// Of the 10th.
    pub tenth: Option<f64>,
    /// Of the 100th.
    pub hundredth: Option<f64>,
    /// Mean distance of any row.
    pub mean: Option<f64>,
}

impl Contrast {
    /// A neighbour's distance over the mean distance: near 1 is hard, near 0 easy.
    pub fn relative(&self, distance: Option<f64>) -> Option<f64> {
        let (distance, mean) = (distance?, self.mean?);
        (mean > 0.0 && distance >= 0.0).then(|| distance / mean)
    }
}

/// The contrast of a data set, from up to 200 queries spread evenly over the set.
///
/// # Errors
/// As [`neighbours`].
pub fn contrast(
    base: &Vectors,
    queries: &Vectors,
    metric: Metric,
    options: &Options<'_>,
) -> Result<Contrast, ExactError> {
    check_pair(base, queries, metric)?;
    let spread = |n: usize, wanted: usize| {
        let count = n.min(wanted);
        (0..count).map(move |i| i * n / count)
    };
    let sample = queries.select(spread(queries.rows(), QUERIES));
    let truth = neighbours(base, &sample, metric, 100, Subset::All, options)?;
    let at = |rank: usize| {
        average((0..truth.queries()).filter_map(|q| truth.of(q).get(rank - 1)).map(|n| n.distance))
    };
    let means = (0..sample.rows()).into_par_iter().filter_map(|query| {
        let measure = Measure::new(base, &sample, query, metric);
        if !measure.probe.is_defined(metric) {
            return None;
        }
        average(spread(base.rows(), ROWS).map(|row| measure.distance(row)).filter(|d| !d.is_nan()))
    });
    let means: Vec<f64> = means.collect();
    Ok(Contrast {
        queries: sample.rows(),
        first: at(1),
        tenth: at(10),
        hundredth: at(100),
        mean: average(means.into_iter()),
    })
}

fn average(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), v| (sum + v, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}
