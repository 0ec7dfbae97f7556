//! The Pareto frontier of recall and throughput.

/// For each (recall, throughput) whether no other point is at least as good in both and better in
/// one. Equal points are both on it.
pub(crate) fn frontier(points: &[(f64, f64)]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    // From the highest recall down; at equal recall the fastest first.
    order.sort_by(|&a, &b| points[b].0.total_cmp(&points[a].0).then(points[b].1.total_cmp(&points[a].1)));
    let mut on = vec![false; points.len()];
    let mut fastest: Option<(f64, f64)> = None;
    for at in order {
        let (recall, throughput) = points[at];
        if fastest.is_none_or(|(r, t)| throughput > t || (throughput == t && recall == r)) {
            on[at] = true;
            fastest = Some((recall, throughput));
        }
    }
    on
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_the_definition(points in prop::collection::vec((0u8..6, 1u8..6), 0..20)) {
            let points: Vec<(f64, f64)> = points.iter().map(|&(r, t)| (f64::from(r), f64::from(t))).collect();
            let expected: Vec<bool> = points
                .iter()
                .map(|p| !points.iter().any(|q| q.0 >= p.0 && q.1 >= p.1 && (q.0 > p.0 || q.1 > p.1)))
                .collect();
            prop_assert_eq!(frontier(&points), expected);
        }
    }
}
