//! Several filters in one search: shared scans, own scans and one search a filter find the same, in any
//! steps, stopped and continued, at any number of threads.

mod common;

use common::Numbers;
use exact::{Group, Method, Options, Partial, Search, Sharing, Subset, neighbours};
use std::sync::Arc;
use types::{Element, Metric, RowSet, Truth, Vectors};

/// Row sets of all kinds: half, a tenth, one in a hundred, a run, one row, none, all.
fn sets(rows: usize) -> Vec<RowSet> {
    vec![
        RowSet::from_fn(rows, |row| row % 2 == 0),
        RowSet::from_fn(rows, |row| row * 7 % 10 == 3),
        RowSet::from_fn(rows, |row| row * 31 % 100 == 5),
        RowSet::from_fn(rows, |row| row >= rows / 2),
        RowSet::from_fn(rows, |row| row + 1 == rows),
        RowSet::from_fn(rows, |_| false),
        RowSet::all(rows),
    ]
}

/// Groups of queries with rows of their own; the last query is in none.
fn groups(rows: usize, queries: usize, of: usize) -> Vec<Group> {
    (0..of)
        .map(|group| Group {
            rows: (group > 0).then(|| Arc::new(RowSet::from_fn(rows, |row| row % of == group))),
            queries: (0..queries - 1).filter(|query| query % of == group).collect(),
        })
        .collect()
}

struct Data {
    base: Vectors,
    queries: Vectors,
    metric: Metric,
}

impl Data {
    fn search(&self, k: usize, cases: &[Subset<'_>], options: Options<'_>, step: usize) -> Vec<Truth> {
        let mut search = Search::new(&self.base, &self.queries, self.metric, k, cases, options).unwrap();
        let mut end = 0;
        while end < self.base.rows() {
            end += step;
            search.advance(end).unwrap();
            // The state goes through a new search, as it does through a file.
            let found: Partial = search.found().clone();
            search = Search::new(&self.base, &self.queries, self.metric, k, cases, options).unwrap();
            search.resume(found).unwrap();
        }
        search.finish()
    }
}

fn check(data: &Data, k: usize, methods: &[Method]) {
    let rows = data.base.rows();
    let (sets, few, many) =
        (sets(rows), groups(rows, data.queries.rows(), 3), groups(rows, data.queries.rows(), 20));
    let mut cases: Vec<Subset<'_>> = sets.iter().map(Subset::Same).collect();
    cases.extend([Subset::All, Subset::Groups(&few), Subset::Groups(&many)]);
    let plain = Options { method: Method::F32, threads: Some(1), ..Options::default() };
    let one =
        |case: &Subset<'_>| neighbours(&data.base, &data.queries, data.metric, k, *case, &plain).unwrap();
    let expected: Vec<Truth> = cases.iter().map(one).collect();
    for &method in methods {
        for sharing in [Sharing::Auto, Sharing::Together, Sharing::Apart] {
            // With little memory candidates are decided early.
            for (threads, step, memory) in [
                (1, rows, None),
                (3, rows / 3 + 1, Some(1 << 16)),
                (2, rows / 7, None),
                (1, rows, Some(1 << 14)),
            ] {
                let threads = Some(threads);
                let options = Options { method, sharing, threads, memory, ..Options::default() };
                let found = data.search(k, &cases, options, step);
                for (case, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    let place =
                        format!("case {case}, {}, {method:?}, {sharing:?}, {threads:?} threads", data.metric);
                    assert_eq!(found, expected, "{place}, k {k}, steps of {step}");
                }
            }
        }
    }
}

#[test]
fn filters_together_and_apart_find_the_same() {
    let mut numbers = Numbers(61);
    for metric in [Metric::L2, Metric::Cosine, Metric::InnerProduct] {
        let (mut base, queries) = (numbers.floats(3000 * 17), numbers.vectors(70, 17));
        // Zero rows have no distance under cosine, and do not count.
        base[17 * 40..17 * 44].fill(0.0);
        let data = Data { base: Vectors::from_f32(base, 3000, 17).unwrap(), queries, metric };
        check(&data, 10, &[Method::Auto, Method::Int8, Method::Int16, Method::F32]);
        check(&data, 1, &[Method::Int8]);
        check(&data, 4000, &[Method::Int8]);
    }
}

#[test]
fn bits_and_bytes_too() {
    let mut numbers = Numbers(62);
    let bits = |numbers: &mut Numbers, rows| numbers.bytes(rows, 40, Element::Bit);
    let data =
        Data { base: bits(&mut numbers, 2000), queries: bits(&mut numbers, 40), metric: Metric::Hamming };
    check(&data, 10, &[Method::Auto]);
    let bytes = |numbers: &mut Numbers, rows| numbers.bytes(rows, 24, Element::U8);
    let data = Data { base: bytes(&mut numbers, 2000), queries: bytes(&mut numbers, 40), metric: Metric::L2 };
    check(&data, 10, &[Method::Auto, Method::Int8]);
}

#[test]
fn more_filters_than_bits_in_a_word() {
    let mut numbers = Numbers(63);
    let (base, queries) = (numbers.vectors(1500, 8), numbers.vectors(33, 8));
    let sets: Vec<RowSet> = (0..70).map(|i| RowSet::from_fn(1500, |row| row % (i + 2) < 2)).collect();
    let cases: Vec<Subset<'_>> = sets.iter().map(Subset::Same).collect();
    let options = Options { sharing: Sharing::Together, ..Options::default() };
    let mut search = Search::new(&base, &queries, Metric::L2, 5, &cases, options).unwrap();
    search.advance(1500).unwrap();
    for (case, found) in search.finish().iter().enumerate() {
        let alone = neighbours(&base, &queries, Metric::L2, 5, cases[case], &Options::default()).unwrap();
        assert_eq!(*found, alone, "case {case}");
    }
}
