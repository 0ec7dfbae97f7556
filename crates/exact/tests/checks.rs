//! Checks of truth on made-up data, and the contrast of a data set.

mod common;

use common::Numbers;
use exact::{
    FilterRows, Options, Subset, TieOrder, TruthCheck, TruthVerdict, contrast, neighbours, truth_for,
    verify_truth,
};
use std::sync::Arc;
use types::{Column, ColumnData, Columns, Filter, Filters, Metric, Neighbour, Truth, Vectors};

fn verify(
    base: &Vectors,
    queries: &Vectors,
    metric: Metric,
    truth: &Truth,
    filter: Option<&FilterRows>,
) -> TruthVerdict {
    let check = TruthCheck { sample: 20, seed: 3 };
    let verdict = verify_truth(base, queries, metric, truth, filter, check, &Options::default()).unwrap();
    assert!(!verdict.message.is_empty() && !verdict.message.contains('\n'), "{}", verdict.message);
    verdict
}

/// The truth with each list changed by `change`.
fn changed(truth: &Truth, change: impl Fn(&mut Vec<Neighbour>)) -> Truth {
    let mut out = Truth::new(truth.depth());
    for q in 0..truth.queries() {
        let mut list = truth.of(q).to_vec();
        change(&mut list);
        out.push(list, truth.matching(q));
    }
    out
}

#[test]
fn every_metric_is_told_from_every_other() {
    let mut numbers = Numbers(21);
    // Rows of different length, so that no two metrics give the same order.
    let mut values = numbers.floats(400 * 12);
    for (row, chunk) in values.chunks_mut(12).enumerate() {
        chunk.iter_mut().for_each(|x| *x *= 1.0 + (row % 9) as f32);
    }
    let base = Vectors::from_f32(values, 400, 12).unwrap();
    let queries = numbers.vectors(60, 12);
    let metrics = [Metric::L2, Metric::Cosine, Metric::InnerProduct];
    for made_with in metrics {
        let truth = neighbours(&base, &queries, made_with, 30, Subset::All, &Options::default()).unwrap();
        for asked in metrics {
            let verdict = verify(&base, &queries, asked, &truth, None);
            assert_eq!(verdict.ok, made_with == asked, "{}", verdict.message);
            assert_eq!(verdict.agrees_with, (made_with != asked).then_some(made_with), "{}", verdict.message);
            assert_eq!(verdict.sampled, 20);
            if verdict.ok {
                assert_eq!((verdict.identical, verdict.distance_scale.as_deref()), (20, Some("distance")));
            }
        }
    }
}

#[test]
fn lists_out_of_order_are_refused() {
    let mut numbers = Numbers(22);
    let (base, queries) = (numbers.vectors(300, 8), numbers.vectors(30, 8));
    let truth = neighbours(&base, &queries, Metric::L2, 20, Subset::All, &Options::default()).unwrap();
    let verdict = verify(&base, &queries, Metric::L2, &changed(&truth, |list| list[..10].reverse()), None);
    assert!(!verdict.ok && verdict.message.contains("not sorted"), "{}", verdict.message);
}

#[test]
fn the_order_of_ties_is_named() {
    // Each vector four times: ties in every list.
    let mut numbers = Numbers(23);
    let quarter = numbers.vectors(60, 6);
    let base = quarter.select((0..240).map(|row| row / 4));
    let queries = numbers.vectors(20, 6);
    let truth = neighbours(&base, &queries, Metric::L2, 20, Subset::All, &Options::default()).unwrap();
    assert_eq!(verify(&base, &queries, Metric::L2, &truth, None).tie_order, TieOrder::LowerRowFirst);
    let higher = changed(&truth, |list| list.chunks_mut(4).for_each(<[Neighbour]>::reverse));
    let verdict = verify(&base, &queries, Metric::L2, &higher, None);
    assert!(verdict.ok && verdict.tie_order == TieOrder::HigherRowFirst && verdict.identical == 0);
    assert!(verdict.message.contains("ties by the higher row"), "{}", verdict.message);
}

#[test]
fn a_row_twice_in_a_list_lowers_the_agreement() {
    let mut numbers = Numbers(24);
    let (base, queries) = (numbers.vectors(300, 8), numbers.vectors(30, 8));
    let truth = neighbours(&base, &queries, Metric::L2, 10, Subset::All, &Options::default()).unwrap();
    let repeated = changed(&truth, |list| {
        let first = list[0];
        list.fill(first);
    });
    let verdict = verify(&base, &queries, Metric::L2, &repeated, None);
    assert_eq!((verdict.ok, verdict.full_agreement), (false, Some(0.1)), "{}", verdict.message);
}

#[test]
fn truth_under_a_filter_is_held_to_that_filter() {
    let mut numbers = Numbers(25);
    let (base, queries) = (numbers.vectors(400, 8), numbers.vectors(40, 8));
    let data = ColumnData::Int((0..400).map(|row| Some(row % 4)).collect());
    let columns = Columns::new(vec![Column { name: "cat".into(), data }]).unwrap();
    let filters = |text: &str| Filters::Same(Arc::new(text.parse::<Filter>().unwrap()));
    let truth = |text: &str| {
        let options = Options::default();
        truth_for(&base, &queries, Some(&columns), Metric::L2, 10, &filters(text), None, &options).unwrap()
    };
    let rows = FilterRows::new(Some(&columns), &filters("cat = 1"), 400, 40).unwrap();
    assert!(verify(&base, &queries, Metric::L2, &truth("cat = 1"), Some(&rows)).ok);
    let wide = verify(&base, &queries, Metric::L2, &truth("cat IN (1, 2)"), Some(&rows));
    assert!(!wide.ok && wide.agreement < Some(0.9), "{}", wide.message);
    let mut miscounted = Truth::new(10);
    (0..40).for_each(|q| miscounted.push(truth("cat = 1").of(q).iter().copied(), 101));
    let verdict = verify(&base, &queries, Metric::L2, &miscounted, Some(&rows));
    assert!(!verdict.ok && verdict.message.contains("other matching rows"), "{}", verdict.message);
    let error = FilterRows::new(None, &filters("cat = 1"), 400, 40).unwrap_err().to_string();
    assert!(error.contains("cat = 1") && error.contains("no columns"), "{error}");
}

#[test]
fn contrast_of_clusters_is_stronger_than_of_noise() {
    let mut numbers = Numbers(26);
    let noise = numbers.vectors(2000, 64);
    let queries = numbers.vectors(20, 64);
    // Rows crowd around the queries.
    let crowded: Vec<f32> =
        (0..2000).flat_map(|row| queries.row(row % 20).to_vec()).map(|x| x + 0.05 * numbers.unit()).collect();
    let crowded = Vectors::from_f32(crowded, 2000, 64).unwrap();
    let of = |base: &Vectors| contrast(base, &queries, Metric::L2, &Options::default()).unwrap();
    let (weak, strong) = (of(&noise), of(&crowded));
    let relative = |c: &exact::Contrast| c.relative(c.first).unwrap();
    assert!(relative(&weak) > 0.6 && relative(&strong) < 0.1, "{weak:?} {strong:?}");
    for c in [weak, strong] {
        assert!(c.first < c.tenth && c.tenth < c.hundredth && c.hundredth < c.mean);
    }
    let few = contrast(&noise.slice(0..5), &queries, Metric::InnerProduct, &Options::default()).unwrap();
    assert_eq!((few.tenth, few.relative(few.first)), (None, None));
}
