//! Every kind of wrong truth is made on purpose, and the audit must say what was done.

mod common;

use common::Numbers;
use exact::{
    AuditAsk, Cause, FilterRows, Options, Subset, TieRule, TruthAudit, TruthCheck, Wrong, audit_truth,
    neighbours, truth_for,
};
use types::{Column, ColumnData, Columns, Element, Filters, Ids, Metric, Neighbour, RowSet, Truth, Vectors};

const K: usize = 20;

fn ask<'a>(base: &'a Vectors, queries: &'a Vectors, metric: Metric, truth: &'a Truth) -> AuditAsk<'a> {
    let check = TruthCheck { sample: usize::MAX, seed: 1 };
    AuditAsk { base, queries, metric, truth, k: truth.depth(), filter: None, ids: None, check }
}

fn audit(ask: &AuditAsk<'_>) -> TruthAudit {
    let found = audit_truth(ask, &Options::default()).unwrap();
    assert!(!found.message.is_empty() && !found.message.contains('\n'), "{}", found.message);
    assert_eq!(found.identical + found.tied + found.different + found.undefined, found.checked);
    assert_eq!(found.different > 0, found.cause.is_some() && !found.examples.is_empty());
    found
}

/// Rows of different length, so that no two metrics give the same order.
fn rows(numbers: &mut Numbers, rows: usize) -> Vectors {
    let mut values = numbers.floats(rows * 12);
    for (row, chunk) in values.chunks_mut(12).enumerate() {
        chunk.iter_mut().for_each(|x| *x *= 1.0 + (row % 7) as f32);
    }
    Vectors::from_f32(values, rows, 12).unwrap()
}

fn exact(base: &Vectors, queries: &Vectors, metric: Metric, k: usize) -> Truth {
    neighbours(base, queries, metric, k, Subset::All, &Options::default()).unwrap()
}

/// The truth with each list changed by `change`, cut to `K`.
fn changed(truth: &Truth, change: impl Fn(usize, &mut Vec<Neighbour>)) -> Truth {
    let mut out = Truth::new(K);
    for q in 0..truth.queries() {
        let mut list = truth.of(q).to_vec();
        change(q, &mut list);
        out.push(list, truth.matching(q));
    }
    out
}

fn assert_cause(found: &TruthAudit, cause: Cause, part: &str) {
    assert!(!found.ok, "{}", found.message);
    assert_eq!(found.cause, Some(cause), "{}", found.message);
    assert!(found.message.contains(part), "{:?} lacks {part:?}", found.message);
}

#[test]
fn a_right_truth_is_right_under_every_metric() {
    let mut numbers = Numbers(1);
    let (base, queries) = (rows(&mut numbers, 500), rows(&mut numbers, 40));
    for metric in [Metric::L2, Metric::Cosine, Metric::InnerProduct] {
        let truth = exact(&base, &queries, metric, K);
        let found = audit(&ask(&base, &queries, metric, &truth));
        assert!(found.ok && found.identical == 40 && found.agreement == Some(1.0), "{}", found.message);
        assert!(found.message.contains("the same row by row"), "{}", found.message);
        let sampled =
            AuditAsk { check: TruthCheck { sample: 7, seed: 3 }, ..ask(&base, &queries, metric, &truth) };
        let found = audit(&sampled);
        assert_eq!((found.checked, found.queries, found.ok), (7, 40, true));
    }
    let bits = numbers.bytes(200, 24, Element::Bit);
    let queries = numbers.bytes(10, 24, Element::Bit);
    let truth = exact(&bits, &queries, Metric::Hamming, K);
    assert!(audit(&ask(&bits, &queries, Metric::Hamming, &truth)).ok);
}

#[test]
fn what_was_done_to_the_row_numbers_is_named() {
    let mut numbers = Numbers(2);
    let (base, queries) = (rows(&mut numbers, 600), rows(&mut numbers, 60));
    let truth = exact(&base, &queries, Metric::L2, K);
    for (by, part) in [(1, "counted from 1"), (40, "too high by 40"), (-1, "too low by 1")] {
        let wrong = changed(&truth, |_, list| {
            list.iter_mut().for_each(|n| n.row = (i64::from(n.row) + by).max(0) as u32);
        });
        let found = audit(&ask(&base, &queries, Metric::L2, &wrong));
        if by < 0 {
            // Row 0 has no number below: lists with it stay unexplained.
            assert!(!found.ok, "{}", found.message);
            continue;
        }
        assert_cause(&found, Cause::RowShift { by }, part);
        assert_eq!(found.examples.len(), 5);
    }
    let elsewhere = |q: usize| truth.of((q + 1) % 60).to_vec();
    let wrong = changed(&truth, |q, list| *list = elsewhere(q));
    let found = audit(&ask(&base, &queries, Metric::L2, &wrong));
    assert_cause(&found, Cause::OtherQueries, "other queries");
}

#[test]
fn what_was_done_to_the_order_is_named() {
    let mut numbers = Numbers(3);
    let (base, queries) = (rows(&mut numbers, 600), rows(&mut numbers, 60));
    let truth = exact(&base, &queries, Metric::Cosine, K);
    let check = |wrong: &Truth| audit(&ask(&base, &queries, Metric::Cosine, wrong));
    let found = check(&changed(&truth, |_, list| list.reverse()));
    assert_cause(&found, Cause::FarthestFirst, "farthest first");
    assert_eq!(found.agreement, Some(1.0));
    let found = check(&changed(&truth, |_, list| list.sort_by_key(|n| n.row)));
    assert_cause(&found, Cause::ByRow, "by row number");
    let found = check(&changed(&truth, |_, list| list[3..9].reverse()));
    assert_cause(&found, Cause::Unsorted, "no order");
    assert_eq!((found.examples[0].rank, found.examples[0].what), (4, Wrong::NearerMissing));
}

#[test]
fn a_truth_of_another_base_is_named() {
    let mut numbers = Numbers(4);
    let (base, queries) = (rows(&mut numbers, 900), rows(&mut numbers, 50));
    let metric = Metric::L2;
    let of_first = exact(&base.slice(0..600), &queries, metric, K);
    let found = audit(&ask(&base, &queries, metric, &of_first));
    let Some(Cause::FirstRows { largest_row }) = found.cause else { panic!("{}", found.message) };
    assert!((590..600).contains(&largest_row), "{}", found.message);
    let whole = exact(&base, &queries, metric, K);
    let part = base.slice(0..600);
    let found = audit(&ask(&part, &queries, metric, &whole));
    assert!(matches!(found.cause, Some(Cause::LargerBase { .. })), "{}", found.message);
    assert!(found.message.contains("larger base"), "{}", found.message);
    let other = rows(&mut numbers, 900);
    let found = audit(&ask(&other, &queries, metric, &whole));
    assert_cause(&found, Cause::OtherVectors, "chance");
}

#[test]
fn another_metric_is_named() {
    let mut numbers = Numbers(5);
    let (base, queries) = (rows(&mut numbers, 500), rows(&mut numbers, 50));
    let metrics = [Metric::L2, Metric::Cosine, Metric::InnerProduct];
    for made_with in metrics {
        let truth = exact(&base, &queries, made_with, K);
        for asked in metrics.into_iter().filter(|&m| m != made_with) {
            let found = audit(&ask(&base, &queries, asked, &truth));
            assert_cause(&found, Cause::OtherMetric { metric: made_with }, &format!("made with {made_with}"));
        }
    }
}

#[test]
fn queries_and_duplicates_that_are_left_out_are_named() {
    let mut numbers = Numbers(6);
    let distinct = rows(&mut numbers, 300);
    for metric in [Metric::L2, Metric::Cosine] {
        // The queries are rows of the base.
        let queries = distinct.select((0..50).map(|q| q * 3));
        let deep = exact(&distinct, &queries, metric, K + 1);
        let wrong = changed(&deep, |_, list| {
            list.remove(0);
        });
        let found = audit(&ask(&distinct, &queries, metric, &wrong));
        assert_cause(&found, Cause::QueryLeftOut, "query itself");
        assert_eq!(found.examples[0].rank, 1);
    }
    // Every row three times.
    let base = distinct.select((0..900).map(|row| row / 3));
    let queries = rows(&mut numbers, 40);
    let deep = exact(&base, &queries, Metric::L2, 3 * K);
    let wrong = changed(&deep, |_, list| *list = list.iter().step_by(3).copied().collect());
    let found = audit(&ask(&base, &queries, Metric::L2, &wrong));
    assert_cause(&found, Cause::DuplicatesLeftOut, "only one is listed");
}

#[test]
fn approximate_short_and_repeated_lists_are_named() {
    let mut numbers = Numbers(7);
    let (base, queries) = (rows(&mut numbers, 800), rows(&mut numbers, 50));
    let deep = exact(&base, &queries, Metric::L2, K + 3);
    let check = |wrong: &Truth| audit(&ask(&base, &queries, Metric::L2, wrong));
    let found = check(&changed(&deep, |q, list| drop(list.drain(q % 5..q % 5 + 1))));
    assert_cause(&found, Cause::Approximate, "approximate search");
    let found = check(&changed(&deep, |_, list| list.truncate(K - 4)));
    assert_cause(&found, Cause::TooShort, "end too soon");
    let found = check(&changed(&deep, |_, list| list[5] = list[4]));
    assert_cause(&found, Cause::Repeated, "twice");
    let one = changed(&deep, |q, list| {
        if q == 17 {
            list[8].row = 0;
        }
    });
    let found = check(&one);
    assert_cause(&found, Cause::FewLists, "all others are right");
    assert_eq!((found.different, found.identical), (1, 49), "{}", found.message);
    assert_eq!((found.examples[0].query, found.examples[0].rank), (17, 9));
}

#[test]
fn the_rule_of_ties_is_named() {
    // Every vector four times, with ties across the last rank.
    let mut numbers = Numbers(8);
    let few = rows(&mut numbers, 60);
    let base = few.select((0..240).map(|row| row % 60));
    let queries = rows(&mut numbers, 30);
    let metric = Metric::L2;
    let deep = exact(&base, &queries, metric, 40);
    let by = |order: &dyn Fn(&Neighbour, &Neighbour) -> std::cmp::Ordering| {
        changed(&deep, |_, list| {
            list.sort_by(|a, b| a.distance.total_cmp(&b.distance).then_with(|| order(a, b)));
        })
    };
    // Four of a kind do not divide 18: the last rank is a choice.
    let ask = |truth| AuditAsk { k: 18, ..ask(&base, &queries, metric, truth) };
    let higher = by(&|a, b| b.row.cmp(&a.row));
    let found = audit(&ask(&higher));
    assert!(found.ok && found.tied == 30 && found.tie_gap == 0.0, "{}", found.message);
    assert_eq!(found.tie_rule, Some(TieRule::HigherRow), "{}", found.message);
    assert!(found.message.contains("the higher row first"), "{}", found.message);
    // Ids that run against the rows, in part.
    let ids = Ids::Ints((0..240).map(|row| i64::from((row * 77) % 240)).collect());
    let id = |n: &Neighbour| (i64::from(n.row) * 77) % 240;
    let lower_id = by(&|a, b| id(a).cmp(&id(b)));
    let with_ids = AuditAsk { ids: Some(&ids), ..ask(&lower_id) };
    assert_eq!(audit(&with_ids).tie_rule, Some(TieRule::LowerId));
    let found = audit(&ask(&lower_id));
    assert_eq!(found.tie_rule, Some(TieRule::NoOrder), "{}", found.message);
    assert!(found.ok && found.message.contains("no order"), "{}", found.message);
}

#[test]
fn ties_of_float32_are_told_from_real_ones() {
    // Neighbouring float32 numbers along a line, so that distances differ by less than float32 tells.
    let step = |i: usize| f32::from_bits(1.0_f32.to_bits() + (i / 2) as u32);
    let values: Vec<f32> = (0..400).flat_map(|i| [step(i * 37 % 400), 1000.0, (i % 50) as f32]).collect();
    let base = Vectors::from_f32(values, 400, 3).unwrap();
    let queries = Vectors::from_f32((0..10).flat_map(|q| [0.5, 0.0, q as f32]).collect(), 10, 3).unwrap();
    let deep = exact(&base, &queries, Metric::L2, 100);
    let rounded = changed(&deep, |_, list| {
        list.sort_by(|a, b| (a.distance as f32).total_cmp(&(b.distance as f32)).then(a.row.cmp(&b.row)));
    });
    let found = audit(&ask(&base, &queries, Metric::L2, &rounded));
    assert!(found.ok && found.tied > 0 && found.tie_gap > 0.0, "{}", found.message);
    assert_eq!(found.tie_rule, Some(TieRule::Float32LowerRow), "{}", found.message);
    assert!(found.message.contains("float32 rounding"), "{}", found.message);
    let shuffled = changed(&deep, |q, list| {
        list.sort_by_key(|n| ((n.distance as f32).to_bits(), (n.row as usize * 7919 + q) % 101));
    });
    let found = audit(&ask(&base, &queries, Metric::L2, &shuffled));
    assert!(found.ok, "{}", found.message);
    assert_eq!(found.tie_rule, Some(TieRule::Float32), "{}", found.message);
}

#[test]
fn scales_of_distances_are_named() {
    let mut numbers = Numbers(9);
    let (base, queries) = (rows(&mut numbers, 300), rows(&mut numbers, 20));
    let scaled = |metric: Metric, scale: &dyn Fn(f64) -> f64| {
        let truth = exact(&base, &queries, metric, K);
        let truth = changed(&truth, |_, list| list.iter_mut().for_each(|n| n.distance = scale(n.distance)));
        let found = audit(&ask(&base, &queries, metric, &truth));
        assert!(found.ok, "{}", found.message);
        (found.distance_scale, found.message)
    };
    assert_eq!(scaled(Metric::L2, &|d| d * d).0, Some("squared distance"));
    assert_eq!(scaled(Metric::Cosine, &|d| 1.0 - d).0, Some("cosine similarity"));
    assert_eq!(scaled(Metric::InnerProduct, &|d| -d).0, Some("dot product"));
    assert_eq!(scaled(Metric::Cosine, &|d| (1.0 - d).acos()).0, Some("angle"));
    assert_eq!(scaled(Metric::L2, &|_| f64::NAN).0, None);
    let (name, message) = scaled(Metric::L2, &|d| d * 3.7 + 1.0);
    assert!(name == Some("unknown") && message.contains("none of these rows'"), "{message}");
}

#[test]
fn filters_are_part_of_the_question() {
    let mut numbers = Numbers(10);
    let (base, queries) = (rows(&mut numbers, 700), rows(&mut numbers, 60));
    let values = |m: usize| ColumnData::Int((0..700).map(|row| Some((row * 31 % 97 % m) as i64)).collect());
    let columns = Columns::new(vec![
        Column { name: "c".into(), data: values(5) },
        Column { name: "d".into(), data: values(3) },
    ])
    .unwrap();
    let filter = |text: &dyn Fn(usize) -> String| {
        Filters::PerQuery((0..60).map(|q| std::sync::Arc::new(text(q).parse().unwrap())).collect())
    };
    let own = filter(&|q| format!("c = {}", q % 5));
    let other = filter(&|q| format!("d = {}", q % 3));
    let made = |filters: &Filters, live: Option<&RowSet>| {
        let options = Options::default();
        truth_for(&base, &queries, Some(&columns), Metric::L2, K, filters, live, &options).unwrap()
    };
    let filtered = FilterRows::new(Some(&columns), &own, 700, 60).unwrap();
    let check = |truth: &Truth| {
        audit(&AuditAsk { filter: Some(&filtered), ..ask(&base, &queries, Metric::L2, truth) })
    };
    let right = made(&own, None);
    assert!(check(&right).ok);
    assert_cause(&check(&made(&Filters::None, None)), Cause::FilterIgnored, "without the filter");
    assert_cause(&check(&made(&other, None)), Cause::OtherFilter, "another filter");
    let mut counts = Truth::new(K);
    (0..60).for_each(|q| counts.push(right.of(q).iter().copied(), right.matching(q) + 2));
    let found = check(&counts);
    assert!(!found.ok && found.different == 0 && found.matching_differs == 60, "{}", found.message);
    assert!(found.message.contains("counts other matching rows"), "{}", found.message);
}

#[test]
fn queries_without_distances_and_hopeless_input_are_no_panic() {
    let base = Vectors::from_f32(vec![1.0, 0.0, 0.0, 1.0, 0.0, 0.0], 3, 2).unwrap();
    let queries = Vectors::from_f32(vec![0.0, 0.0, 1.0, 1.0], 2, 2).unwrap();
    let truth = exact(&base, &queries, Metric::Cosine, 3);
    let found = audit(&ask(&base, &queries, Metric::Cosine, &truth));
    assert_eq!((found.ok, found.undefined, found.identical), (true, 1, 1), "{}", found.message);
    assert!(found.message.contains("1 query has no distances"), "{}", found.message);
    // Anything may stand in a file: no list may bring the audit down.
    let mut numbers = Numbers(11);
    for round in 0..200 {
        let mut wild = Truth::new(numbers.below(5));
        for _ in 0..2 {
            let length = numbers.below(6);
            let row = |numbers: &mut Numbers| match numbers.below(4) {
                0 => numbers.next() as u32,
                _ => numbers.below(4) as u32,
            };
            let list: Vec<Neighbour> = (0..length)
                .map(|_| Neighbour { row: row(&mut numbers), distance: f64::from_bits(numbers.next()) })
                .collect();
            wild.push(list, numbers.next() >> (round % 64));
        }
        let metric = [Metric::L2, Metric::Cosine, Metric::InnerProduct][round % 3];
        audit(&AuditAsk { k: 3, ..ask(&base, &queries, metric, &wild) });
    }
    let two = Truth::new(3);
    assert!(audit_truth(&ask(&base, &queries, Metric::L2, &two), &Options::default()).is_err());
}
