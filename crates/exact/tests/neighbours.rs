//! The search against plain float64 loops, over shapes and values that break careless code.

mod common;

use common::{Numbers, assert_same, plain_distance, plain_neighbours};
use exact::{ExactError, Group, Level, Options, Scratch, Searcher, Subset, neighbours};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use types::{Element, Metric, RowSet, Vectors};

const FLOAT_METRICS: [Metric; 3] = [Metric::L2, Metric::Cosine, Metric::InnerProduct];

/// Vectors of one kind: rows x dim.
fn kind(numbers: &mut Numbers, name: &str, rows: usize, dim: usize) -> Vectors {
    let mut v = numbers.floats(rows * dim);
    match name {
        "plain" => {}
        "duplicates" => {
            for row in 5..rows {
                let from = row % 5 * dim;
                v.copy_within(from..from + dim, row * dim);
            }
        }
        "zeros" => (0..rows).step_by(3).for_each(|row| v[row * dim..(row + 1) * dim].fill(0.0)),
        "far" => v.iter_mut().for_each(|x| *x += 1e4),
        "constant" => v.fill(0.7),
        "constant column" => v.iter_mut().step_by(dim).for_each(|x| *x = 1e6),
        "huge" => v.iter_mut().for_each(|x| *x *= 3e38),
        "denormal" => v.iter_mut().for_each(|x| *x *= 1e-41),
        "mixed sizes" => {
            for row in 0..rows {
                let size = 10_f32.powi(row as i32 % 60 - 30);
                v[row * dim..(row + 1) * dim].iter_mut().for_each(|x| *x *= size);
            }
        }
        "grid" => v.iter_mut().for_each(|x| *x = (*x * 2.0).round()),
        other => unreachable!("{other}"),
    }
    Vectors::from_f32(v, rows, dim).unwrap()
}

const KINDS: [&str; 10] = [
    "plain",
    "duplicates",
    "zeros",
    "far",
    "constant",
    "constant column",
    "huge",
    "denormal",
    "mixed sizes",
    "grid",
];

/// How far two float64 sums of the same terms may lie apart.
fn slack(metric: Metric, query: &[f32], base: &Vectors) -> f64 {
    let norm = |v: &[f32]| v.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let largest = (0..base.rows()).map(|row| norm(&base.row(row))).fold(0.0, f64::max);
    match metric {
        Metric::Hamming => 0.0,
        Metric::Cosine => 1e-13,
        Metric::InnerProduct => 1e-13 * norm(query) * largest,
        Metric::L2 => 1e-13 * (norm(query) + largest),
    }
}

fn check(base: &Vectors, queries: &Vectors, metric: Metric, k: usize, level: Level, context: &str) {
    let options = Options { level: Some(level), threads: Some(2), ..Options::default() };
    let truth = neighbours(base, queries, metric, k, Subset::All, &options).unwrap();
    assert_eq!(truth.queries(), queries.rows());
    let searcher = Searcher::new(base.clone(), metric).unwrap();
    let (mut scratch, mut out) = (Scratch::default(), Vec::new());
    for query in 0..queries.rows() {
        let values = queries.row(query);
        let expected = if metric == Metric::Cosine && values.iter().all(|&x| x == 0.0) {
            (Vec::new(), 0)
        } else {
            plain_neighbours(base, &values, metric, k, |_| true)
        };
        let distance = |row: usize| plain_distance(metric, &values, &base.row(row));
        assert_same(&truth, query, metric, &expected, distance, slack(metric, &values, base), context);
        let matching = if metric == Metric::Hamming {
            searcher.search_bits(queries.row_bytes(query), k, None, &mut scratch, &mut out).unwrap()
        } else {
            searcher.search(&values, k, None, &mut scratch, &mut out).unwrap()
        };
        assert_eq!(
            (out.as_slice(), matching),
            (truth.of(query), truth.matching(query)),
            "{context}: one by one"
        );
    }
}

#[test]
fn every_kind_of_vector_every_metric_every_level() {
    let mut numbers = Numbers(7);
    for (i, name) in KINDS.into_iter().enumerate() {
        for dim in [1, 2, 3, 7, 16, 17, 31, 33, 65, 127, 199, 300] {
            let rows = 1 + numbers.below(300);
            let base = kind(&mut numbers, name, rows, dim);
            let count = 1 + numbers.below(40);
            let queries = kind(&mut numbers, KINDS[(i + dim % 2) % KINDS.len()], count, dim);
            let k = [1, 10, rows + 5][dim % 3];
            for metric in FLOAT_METRICS {
                for level in Level::available() {
                    check(
                        &base,
                        &queries,
                        metric,
                        k,
                        level,
                        &format!("{name} {rows} x {dim} {metric} {level:?}"),
                    );
                }
            }
        }
    }
}

#[test]
fn all_odd_dimensions_and_long_vectors() {
    let mut numbers = Numbers(8);
    for dim in (1..300).step_by(2).chain([511, 1025, 4097]) {
        let (base, queries) = (numbers.vectors(70, dim), numbers.vectors(5, dim));
        let metric = FLOAT_METRICS[dim / 2 % 3];
        check(&base, &queries, metric, 10, Level::detect(), &format!("dim {dim} {metric}"));
    }
}

#[test]
fn many_rows_few_queries_are_split_over_cores() {
    let mut numbers = Numbers(9);
    let (base, queries) = (numbers.vectors(20_000, 12), numbers.vectors(3, 12));
    for metric in FLOAT_METRICS {
        check(&base, &queries, metric, 100, Level::detect(), "split");
    }
}

#[test]
fn bytes_and_halves_are_exact() {
    let mut numbers = Numbers(10);
    for dim in [1, 5, 8, 100, 301] {
        for element in [Element::I8, Element::U8] {
            let (base, queries) = (numbers.bytes(200, dim, element), numbers.bytes(9, dim, element));
            for metric in FLOAT_METRICS {
                check(&base, &queries, metric, 10, Level::detect(), &format!("{element} {dim}"));
            }
        }
        let halves: Vec<u8> =
            numbers.floats(200 * dim).iter().flat_map(|&x| half::f16::from_f32(x).to_le_bytes()).collect();
        let base = Vectors::from_bytes(halves, 200, dim, Element::F16).unwrap();
        let queries = numbers.vectors(9, dim);
        check(&base, &queries, Metric::L2, 10, Level::detect(), "f16 base, f32 queries");
        let (base, queries) = (numbers.bytes(200, dim, Element::Bit), numbers.bytes(9, dim, Element::Bit));
        check(&base, &queries, Metric::Hamming, 20, Level::detect(), "bits, unused ones set at random");
    }
}

#[test]
fn case_01_int8_differences_do_not_wrap() {
    let base =
        Vectors::from_bytes([-128_i8, 127, 0, 100].map(|x| x.to_le_bytes()[0]).to_vec(), 4, 1, Element::I8)
            .unwrap();
    let query = Vectors::from_bytes(vec![127], 1, 1, Element::I8).unwrap();
    let truth = neighbours(&base, &query, Metric::L2, 4, Subset::All, &Options::default()).unwrap();
    let found: Vec<_> = truth.of(0).iter().map(|n| (n.row, n.distance)).collect();
    assert_eq!(found, [(1, 0.0), (3, 27.0), (2, 127.0), (0, 255.0)]);
}

#[test]
fn ties_go_to_the_lower_row() {
    let mut numbers = Numbers(11);
    let base = kind(&mut numbers, "duplicates", 5_000, 24);
    let queries = base.slice(0..40);
    for metric in FLOAT_METRICS {
        let truth = neighbours(&base, &queries, metric, 10, Subset::All, &Options::default()).unwrap();
        for query in 0..5 {
            if metric != Metric::InnerProduct {
                let rows: Vec<u32> = truth.of(query).iter().map(|n| n.row).collect();
                let expected: Vec<u32> = (0..10).map(|i| query as u32 + 5 * i).collect();
                assert_eq!(rows, expected, "{metric}");
            }
        }
    }
}

#[test]
fn subsets_and_groups_hold_only_their_rows() {
    let mut numbers = Numbers(12);
    let (base, queries) = (numbers.vectors(900, 20), numbers.vectors(50, 20));
    let sets: Vec<Arc<RowSet>> =
        (0..7).map(|i| Arc::new(RowSet::from_fn(900, |row| i != 3 && row % (i + 2) == i))).collect();
    let mut groups: Vec<Group> =
        sets.iter().map(|s| Group { rows: Some(s.clone()), queries: Vec::new() }).collect();
    (0..49).for_each(|q| groups[q * q % 7].queries.push(q));
    for metric in FLOAT_METRICS {
        let options = Options::default();
        let truth = neighbours(&base, &queries, metric, 10, Subset::Groups(&groups), &options).unwrap();
        let searcher = Searcher::new(base.clone(), metric).unwrap();
        let (mut scratch, mut out) = (Scratch::default(), Vec::new());
        for query in 0..49 {
            let set = &sets[query * query % 7];
            let values = queries.row(query);
            let expected = plain_neighbours(&base, &values, metric, 10, |row| set.contains(row));
            let distance = |row: usize| plain_distance(metric, &values, &base.row(row));
            assert_same(&truth, query, metric, &expected, distance, 1e-12, "groups");
            searcher.search(&values, 10, Some(set), &mut scratch, &mut out).unwrap();
            assert_eq!(out, truth.of(query));
        }
        assert_eq!((truth.of(49).len(), truth.matching(49)), (0, 0), "in no group");
        let same = neighbours(&base, &queries, metric, 10, Subset::Same(&sets[0]), &options).unwrap();
        assert_eq!(same.of(0), truth.of(0));
        let none = neighbours(&base, &queries, metric, 10, Subset::Same(&sets[3]), &options).unwrap();
        assert!((0..50).all(|q| none.of(q).is_empty() && none.matching(q) == 0), "an empty filter");
    }
}

#[test]
fn case_43_zero_vectors_under_cosine() {
    let base = Vectors::from_f32(vec![1.0, 0.0, 0.0, 0.0, 0.0, 1.0], 3, 2).unwrap();
    let queries = Vectors::from_f32(vec![1.0, 1.0, 0.0, 0.0], 2, 2).unwrap();
    let truth = neighbours(&base, &queries, Metric::Cosine, 3, Subset::All, &Options::default()).unwrap();
    assert_eq!(truth.of(0).iter().map(|n| n.row).collect::<Vec<_>>(), [0, 2]);
    assert_eq!((truth.matching(0), truth.matching(1), truth.of(1).len()), (2, 0, 0));
}

#[test]
fn what_does_not_fit_is_refused_in_one_line() {
    let mut numbers = Numbers(13);
    let floats = numbers.vectors(10, 8);
    let bits = numbers.bytes(10, 8, Element::Bit);
    let run = |base: &Vectors, queries: &Vectors, metric, k| {
        neighbours(base, queries, metric, k, Subset::All, &Options::default()).unwrap_err().to_string()
    };
    for (error, words) in [
        (run(&floats, &floats, Metric::Hamming, 1), "hamming does not fit f32"),
        (run(&bits, &bits, Metric::Cosine, 1), "cosine does not fit bit"),
        (run(&bits, &floats, Metric::Hamming, 1), "bits compare with bits"),
        (run(&floats, &numbers.vectors(2, 7), Metric::L2, 1), "8 dimensions, queries 7"),
        (run(&floats, &floats, Metric::L2, 0), "k is 0"),
    ] {
        assert!(error.contains(words) && !error.contains('\n'), "{error}");
    }
    let short = RowSet::all(9);
    let error = neighbours(&floats, &floats, Metric::L2, 1, Subset::Same(&short), &Options::default());
    assert!(matches!(error, Err(ExactError::Length { found: 9, expected: 10, .. })));
}

#[test]
fn a_search_reports_and_stops() {
    let mut numbers = Numbers(14);
    let (base, queries) = (numbers.vectors(30_000, 64), numbers.vectors(64, 64));
    let last = AtomicU64::new(0);
    let progress = |done: u64, total: u64| {
        assert_eq!(total, 30_000 * 64);
        last.fetch_max(done, Ordering::Relaxed);
    };
    let options = Options { progress: Some(&progress), ..Options::default() };
    neighbours(&base, &queries, Metric::L2, 5, Subset::All, &options).unwrap();
    assert_eq!(last.load(Ordering::Relaxed), 30_000 * 64);
    let stop = AtomicBool::new(false);
    let halt = |_: u64, _: u64| stop.store(true, Ordering::Relaxed);
    let options = Options { progress: Some(&halt), stop: Some(&stop), ..Options::default() };
    let stopped = neighbours(&base, &queries, Metric::L2, 5, Subset::All, &options);
    assert!(matches!(stopped, Err(ExactError::Stopped)));
}

#[test]
fn no_rows_no_queries_no_panic() {
    let mut numbers = Numbers(15);
    let empty = Vectors::from_f32(Vec::new(), 0, 8).unwrap();
    let some = numbers.vectors(3, 8);
    for metric in FLOAT_METRICS {
        let options = Options::default();
        let truth = neighbours(&empty, &some, metric, 5, Subset::All, &options).unwrap();
        assert_eq!((truth.queries(), truth.of(2).len(), truth.matching(2)), (3, 0, 0));
        assert_eq!(neighbours(&some, &empty, metric, 5, Subset::All, &options).unwrap().queries(), 0);
    }
}
