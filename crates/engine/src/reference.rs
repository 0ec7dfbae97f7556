//! A plain exact scan in f64: what the fake engine answers with and what the contract compares
//! with. It is slow on purpose and shares no code with the product's exact search, so that an
//! error there can't hide here.

use types::Metric;

/// Distance as [`Metric`] defines it; none where it is undefined (a zero vector under cosine, a
/// number that is not finite).
pub(crate) fn distance(metric: Metric, a: &[f32], b: &[f32]) -> Option<f64> {
    let pairs = || a.iter().zip(b).map(|(&x, &y)| (f64::from(x), f64::from(y)));
    let value = match metric {
        Metric::L2 => pairs().map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt(),
        Metric::InnerProduct => -pairs().map(|(x, y)| x * y).sum::<f64>(),
        Metric::Hamming => pairs().filter(|(x, y)| x != y).count() as f64,
        Metric::Cosine => {
            let (mut dot, mut aa, mut bb) = (0.0, 0.0, 0.0);
            for (x, y) in pairs() {
                dot += x * y;
                aa += x * x;
                bb += y * y;
            }
            // 0/0 for a zero vector: not finite, so undefined.
            1.0 - dot / (aa * bb).sqrt()
        }
    };
    value.is_finite().then_some(value)
}

/// The `wanted` nearest of (distance, key), nearest first, ties by the lower key.
pub(crate) fn nearest(mut rows: Vec<(f64, u64)>, wanted: usize) -> Vec<(f64, u64)> {
    let order = |a: &(f64, u64), b: &(f64, u64)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if wanted < rows.len() && wanted > 0 {
        rows.select_nth_unstable_by(wanted - 1, order);
    }
    rows.truncate(wanted);
    rows.sort_unstable_by(order);
    rows
}

/// SplitMix64 (Steele, Lea, Flood 2014): a well mixed number from any number.
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A number in 0..1 from several numbers.
pub(crate) fn unit(parts: &[u64]) -> f64 {
    let mixed = parts.iter().fold(0, |state, &part| mix(state ^ part));
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_that_the_metric_names() {
        let (a, b) = ([3.0, 4.0], [0.0, 1.0]);
        assert_eq!(distance(Metric::L2, &a, &b), Some(18_f64.sqrt()));
        assert_eq!(distance(Metric::InnerProduct, &a, &b), Some(-4.0));
        assert_eq!(distance(Metric::Cosine, &a, &b), Some(1.0 - 0.8));
        assert_eq!(distance(Metric::Hamming, &[1.0, 0.0, 1.0], &[0.0, 0.0, 1.0]), Some(1.0));
        assert_eq!(distance(Metric::Cosine, &a, &[0.0, 0.0]), None);
    }

    #[test]
    fn the_nearest_come_in_order_with_ties_by_key() {
        let rows = vec![(2.0, 5), (1.0, 9), (1.0, 3), (0.5, 7), (3.0, 1)];
        assert_eq!(nearest(rows.clone(), 3), [(0.5, 7), (1.0, 3), (1.0, 9)]);
        assert_eq!(nearest(rows.clone(), 0), []);
        assert_eq!(nearest(rows, 99).len(), 5);
    }
}
