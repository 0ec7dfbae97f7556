//! How many pairs float64 decides: few more than the neighbours that are found, whatever the data, and no
//! pair twice. The counts depend on no clock.

mod common;

use common::Numbers;
use exact::{Method, Options, Scratch, Search, Searcher, Subset};
use types::{Element, Metric, RowSet, Truth, Vectors};

const METRICS: [Metric; 3] = [Metric::L2, Metric::Cosine, Metric::InnerProduct];
const METHODS: [Method; 3] = [Method::F32, Method::Int8, Method::Int16];

/// Rows about 30 centres.
fn clustered(numbers: &mut Numbers, rows: usize, dim: usize) -> Vectors {
    let centres: Vec<Vec<f32>> = (0..30).map(|_| numbers.floats(dim)).collect();
    let values = (0..rows).flat_map(|_| {
        let centre = &centres[numbers.below(30)];
        centre.iter().map(|c| c + 0.3 * numbers.unit()).collect::<Vec<f32>>()
    });
    Vectors::from_f32(values.collect(), rows, dim).unwrap()
}

/// The truths, and the pairs decided for a query.
fn search(
    base: &Vectors,
    queries: &Vectors,
    metric: Metric,
    k: usize,
    cases: &[Subset<'_>],
    options: Options<'_>,
) -> (Vec<Truth>, f64) {
    let mut search = Search::new(base, queries, metric, k, cases, options).unwrap();
    search.advance(base.rows()).unwrap();
    let decided = search.decided_pairs() as f64 / queries.rows() as f64;
    (search.finish(), decided)
}

fn with(method: Method) -> Options<'static> {
    Options { method, threads: Some(2), ..Options::default() }
}

#[test]
fn few_pairs_are_decided_beyond_the_neighbours() {
    let mut numbers = Numbers(81);
    let all = clustered(&mut numbers, 12_100, 96);
    let (base, queries) = (all.slice(0..12_000), all.slice(12_000..12_100));
    for metric in METRICS {
        for (method, most) in [(Method::F32, 1.2), (Method::Int16, 1.2), (Method::Int8, 6.0)] {
            let (_, decided) = search(&base, &queries, metric, 50, &[Subset::All], with(method));
            assert!((50.0..50.0 * most).contains(&decided), "{metric} {method:?}: {decided} for 50");
        }
    }
}

#[test]
fn a_row_of_several_filters_is_decided_once() {
    let mut numbers = Numbers(82);
    let all = clustered(&mut numbers, 8_064, 64);
    let (base, queries) = (all.slice(0..8_000), all.slice(8_000..8_064));
    let sets: Vec<RowSet> = [1, 1, 2, 2].map(|every| RowSet::from_fn(8_000, |row| row % every == 0)).into();
    let cases: Vec<Subset<'_>> = sets.iter().map(Subset::Same).collect();
    let (_, alone) = search(&base, &queries, Metric::L2, 40, &[cases[0], cases[2]], with(Method::Int16));
    let (truths, twice) = search(&base, &queries, Metric::L2, 40, &cases, with(Method::Int16));
    assert_eq!(truths[0], truths[1]);
    assert_eq!(alone, twice, "the same filters again cost nothing");
    assert!(alone < 80.0, "{alone}: rows of both filters are decided once");
}

/// Every pair is a tie, so every pair is decided: once, not again since a guess was wrong.
#[test]
fn equal_rows_are_decided_once() {
    let mut numbers = Numbers(83);
    let (rows, dim) = (4_000, 24);
    let one = numbers.floats(dim);
    let base = Vectors::from_f32((0..rows).flat_map(|_| one.clone()).collect(), rows, dim).unwrap();
    let queries = numbers.vectors(40, dim);
    for (metric, method) in METRICS.into_iter().flat_map(|metric| METHODS.map(|method| (metric, method))) {
        let (found, decided) = search(&base, &queries, metric, 10, &[Subset::All], with(method));
        assert!(decided <= rows as f64, "{metric} {method:?}: {decided} of {rows}");
        assert!((0..40).all(|q| found[0].of(q).iter().map(|n| n.row).eq(0..10)), "{metric} {method:?}");
    }
}

/// Guesses hold on every element type: else all would be searched, and decided, twice.
#[test]
fn bytes_and_few_values_are_not_searched_again() {
    let mut numbers = Numbers(84);
    for element in [Element::U8, Element::I8] {
        let (base, queries) = (numbers.bytes(6_000, 32, element), numbers.bytes(50, 32, element));
        for (metric, method) in METRICS.into_iter().flat_map(|metric| METHODS.map(|method| (metric, method)))
        {
            let (found, decided) = search(&base, &queries, metric, 20, &[Subset::All], with(method));
            assert!(decided < 20.0 * 5.0, "{element} {metric} {method:?}: {decided}");
            // Queries one by one are searched by other code.
            let searcher = Searcher::new(base.clone(), metric).unwrap();
            let (mut scratch, mut out) = (Scratch::default(), Vec::new());
            for query in 0..50 {
                let row = queries.row(query);
                searcher.search(&row, 20, None, &mut scratch, &mut out).unwrap();
                assert_eq!(found[0].of(query), out, "{element} {metric} {method:?} query {query}");
            }
        }
    }
}
