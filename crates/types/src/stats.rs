//! Quantiles, spread, intervals and comparison. Pure functions over slices.

use serde::{Deserialize, Serialize};

/// An interval with its middle value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether two intervals have a value in common.
    pub fn overlaps(self, other: Interval) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// Mean; none of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Quantile `q` (0 to 1) of unsorted values, linear between order statistics (Hyndman and Fan,
/// type 7, as numpy's default); none of nothing.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_sorted(&sorted, q)
}

/// [`quantile`] of values that are sorted already.
pub fn quantile_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (at.floor() as usize, at.ceil() as usize);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64))
}

/// Median; none of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Smallest and largest value; none of nothing.
pub fn range(values: &[f64]) -> Option<Interval> {
    let mut values = values.iter().copied();
    let first = values.next()?;
    Some(values.fold(Interval { low: first, high: first }, |r, v| Interval {
        low: r.low.min(v),
        high: r.high.max(v),
    }))
}

/// (largest - smallest) / median; none below two values or where the median is 0.
pub fn relative_spread(values: &[f64]) -> Option<f64> {
    let (range, middle) = (range(values)?, median(values)?);
    (values.len() > 1 && middle != 0.0).then(|| (range.high - range.low) / middle.abs())
}

/// Percentile bootstrap interval of the mean (Efron 1979) at `confidence`, from `resamples` draws
/// with a generator seeded by `seed`; none below two values.
pub fn bootstrap_mean(values: &[f64], confidence: f64, resamples: usize, seed: u64) -> Option<Interval> {
    if values.len() < 2 || resamples == 0 {
        return None;
    }
    let mut state = seed;
    let mut means: Vec<f64> = (0..resamples)
        .map(|_| {
            let sum: f64 = (0..values.len()).map(|_| values[pick(&mut state, values.len())]).sum();
            sum / values.len() as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    Some(Interval { low: quantile_sorted(&means, tail)?, high: quantile_sorted(&means, 1.0 - tail)? })
}

/// SplitMix64 (Steele, Lea, Flood 2014), reduced to 0..n by multiplication.
fn pick(state: &mut u64, n: usize) -> usize {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((u128::from(z ^ (z >> 31)) * n as u128) >> 64) as usize
}

/// What two sets of repeats say of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The first is larger: its smallest repeat is above the other's largest.
    Larger,
    /// The first is smaller.
    Smaller,
    /// The ranges overlap, or one set has fewer than two values.
    NotDistinguishable,
}

/// Compares two sets of repeats by their ranges.
pub fn compare(a: &[f64], b: &[f64]) -> Verdict {
    match (range(a), range(b)) {
        (Some(x), Some(y)) if a.len() > 1 && b.len() > 1 && !x.overlaps(y) => {
            if x.low > y.high {
                Verdict::Larger
            } else {
                Verdict::Smaller
            }
        }
        _ => Verdict::NotDistinguishable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_numpys() {
        let values = [3.0, 1.0, 2.0, 4.0];
        assert_eq!(quantile(&values, 0.25), Some(1.75));
        assert_eq!(median(&values), Some(2.5));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(relative_spread(&[9.0, 10.0, 11.0]), Some(0.2));
    }

    #[test]
    fn the_bootstrap_interval_holds_the_mean_and_is_repeatable() {
        let values: Vec<f64> = (0..200).map(|i| f64::from(i % 10) / 10.0).collect();
        let interval = bootstrap_mean(&values, 0.95, 1000, 1).unwrap();
        assert!(
            interval.low < 0.45 && 0.45 < interval.high && interval.high - interval.low < 0.12,
            "{interval:?}"
        );
        assert_eq!(bootstrap_mean(&values, 0.95, 1000, 1), Some(interval));
    }

    #[test]
    fn repeats_that_overlap_are_not_distinguished() {
        assert_eq!(compare(&[10.0, 11.0], &[10.5, 12.0]), Verdict::NotDistinguishable);
        assert_eq!(compare(&[10.0, 11.0], &[12.0, 13.0]), Verdict::Smaller);
        assert_eq!(compare(&[10.0], &[12.0, 13.0]), Verdict::NotDistinguishable);
    }
}
