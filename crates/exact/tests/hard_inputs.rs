//! Inputs that break careless searches, over metrics, levels and k: exactly the rows, in exactly the
//! order, of a float64 loop over all pairs.

mod common;

use common::{Numbers, plain_distance};
use exact::{Level, Method, Options, Subset, distance, neighbours};
use types::{Element, Metric, RowSet, Vectors};

const FLOAT_METRICS: [Metric; 3] = [Metric::L2, Metric::Cosine, Metric::InnerProduct];

/// Makes the components of rows from random ones in -1..1: (values, rows, dim).
type Kind = fn(&mut [f32], usize, usize);

/// Every kind by name. Rows and queries are made alike, or see [`mixed`].
const KINDS: [(&str, Kind); 20] = [
    ("plain", |_, _, _| {}),
    ("five different rows, so ties at every rank", |v, rows, dim| {
        (5..rows).for_each(|row| v.copy_within(row % 5 * dim..row % 5 * dim + dim, row * dim));
    }),
    ("each row twice", |v, rows, dim| {
        (0..rows / 2).for_each(|row| v.copy_within(row * dim..row * dim + dim, (rows - 1 - row) * dim));
    }),
    ("opposite rows", |v, rows, dim| {
        for at in 0..rows / 2 * dim {
            v[at + rows / 2 * dim] = -v[at];
        }
    }),
    ("a third zero", |v, rows, dim| (0..rows).step_by(3).for_each(|r| v[r * dim..(r + 1) * dim].fill(0.0))),
    ("all zero", |v, _, _| v.fill(0.0)),
    ("all rows equal", |v, _, _| v.fill(0.7)),
    ("rows equal but for the last bit", |v, _, _| {
        v.iter_mut().for_each(|x| *x = if *x > 0.0 { 0.7 } else { 0.7_f32.next_up() });
    }),
    ("far from the origin", |v, _, _| v.iter_mut().for_each(|x| *x += 1e4)),
    ("farther than f32 can tell", |v, _, _| v.iter_mut().for_each(|x| *x += 3e7)),
    ("constant columns", |v, _, dim| {
        v.iter_mut().enumerate().filter(|(i, _)| i % dim % 3 == 0).for_each(|(_, x)| *x = 1e6);
    }),
    ("two dominant dimensions", |v, _, dim| {
        v.iter_mut().enumerate().filter(|(i, _)| i % dim < 2).for_each(|(_, x)| *x *= 1e5);
    }),
    ("huge", |v, _, _| v.iter_mut().for_each(|x| *x *= 3.4e38)),
    ("huge, but products fit f32", |v, _, _| v.iter_mut().for_each(|x| *x *= 1e18)),
    ("denormal", |v, _, _| v.iter_mut().for_each(|x| *x *= 1e-41)),
    ("products are denormal", |v, _, _| v.iter_mut().for_each(|x| *x *= 1e-21)),
    ("sizes from 1e-30 to 1e30", |v, _, dim| {
        v.iter_mut().enumerate().for_each(|(i, x)| *x *= 10_f32.powi((i / dim * 7 % 61) as i32 - 30));
    }),
    ("one row is huge", |v, rows, dim| {
        v[rows / 2 * dim..(rows / 2 + 1) * dim].iter_mut().for_each(|x| *x *= 1e30);
    }),
    ("few whole numbers", |v, _, _| v.iter_mut().for_each(|x| *x = (*x * 2.0).round())),
    ("one component is not zero", |v, _, dim| {
        v.iter_mut().enumerate().filter(|(i, _)| (i / dim * 5) % dim != i % dim).for_each(|(_, x)| *x = 0.0);
    }),
];

fn made(numbers: &mut Numbers, kind: usize, rows: usize, dim: usize) -> Vectors {
    let mut values = numbers.floats(rows * dim);
    KINDS[kind].1(&mut values, rows, dim);
    Vectors::from_f32(values, rows, dim).unwrap()
}

/// Queries of a kind, but every third a row of the base and every fourth of another kind.
fn mixed(numbers: &mut Numbers, kind: usize, count: usize, base: &Vectors) -> Vectors {
    let dim = base.dim();
    let own = made(numbers, kind, count, dim);
    let other = made(numbers, (kind * 7 + 3) % KINDS.len(), count, dim);
    let mut values = Vec::new();
    for query in 0..count {
        let row = match query {
            q if q % 3 == 1 && base.rows() > 0 => base.row(numbers.below(base.rows())).into_owned(),
            q if q % 4 == 3 => other.row(q).into_owned(),
            q => own.row(q).into_owned(),
        };
        values.extend(row);
    }
    Vectors::from_f32(values, count, dim).unwrap()
}

/// All ways in which a search can be told to compute. The answer may not depend on them.
fn ways() -> Vec<Options<'static>> {
    let way = |level, method| Options { level: Some(level), method, threads: Some(1), ..Options::default() };
    let methods = [Method::F32, Method::Int8, Method::Int16];
    let mut ways: Vec<Options<'static>> =
        Level::available().into_iter().flat_map(|level| methods.map(|method| way(level, method))).collect();
    ways.push(Options { threads: Some(2), ..Options::default() });
    ways
}

/// What orders rows: as `exact::distance`, but the square for l2, because roots of squares that differ
/// may be equal.
fn key(metric: Metric, query: &[f32], row: &[f32]) -> f64 {
    if metric == Metric::L2 {
        return kernel::l2_squared64(Level::Portable, row, query);
    }
    distance(metric, query, row)
}

/// Whether `found` is the distance that plain sums give, but for their rounding.
fn is_near_plain(metric: Metric, query: &[f32], row: &[f32], found: f64) -> bool {
    let plain = plain_distance(metric, query, row);
    let size: f64 = query.iter().zip(row).map(|(&q, &x)| (f64::from(q) * f64::from(x)).abs()).sum();
    let slack = match metric {
        Metric::Hamming => 0.0,
        Metric::Cosine => 1e-12,
        Metric::InnerProduct => 1e-12 * size,
        Metric::L2 => 1e-12 * plain,
    };
    (plain - found).abs() <= slack
}

/// The rows that qualify for a query, nearest first.
fn expected(base: &Vectors, query: &[f32], metric: Metric, rows: Option<&RowSet>) -> Vec<(f64, u32)> {
    let mut all: Vec<(f64, u32)> = (0..base.rows())
        .filter(|&row| rows.is_none_or(|rows| rows.contains(row)))
        .map(|row| (key(metric, query, &base.row(row)) + 0.0, row as u32))
        .filter(|(key, _)| !key.is_nan())
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all
}

/// Searches in every way, at every `k`, among `rows`.
fn check(base: &Vectors, queries: &Vectors, metric: Metric, ks: &[usize], rows: Option<&RowSet>, name: &str) {
    let wanted: Vec<Vec<(f64, u32)>> =
        (0..queries.rows()).map(|query| expected(base, &queries.row(query), metric, rows)).collect();
    for options in ways() {
        for &k in ks {
            let subset = rows.map_or(Subset::All, Subset::Same);
            let truth = neighbours(base, queries, metric, k, subset, &options).unwrap();
            for (query, wanted) in wanted.iter().enumerate() {
                let way = (options.level, options.method);
                let place = format!("{name}, {metric}, {way:?}, k {k}, query {query}");
                assert_eq!(truth.matching(query), wanted.len() as u64, "rows that qualify: {place}");
                let found: Vec<u32> = truth.of(query).iter().map(|n| n.row).collect();
                let rows: Vec<u32> = wanted.iter().take(k).map(|w| w.1).collect();
                assert_eq!(found, rows, "{place}");
                for neighbour in truth.of(query) {
                    let (query, row) = (queries.row(query), base.row(neighbour.row as usize));
                    let again = distance(metric, &query, &row);
                    assert_eq!(neighbour.distance + 0.0, again + 0.0, "row {}: {place}", neighbour.row);
                    assert!(is_near_plain(metric, &query, &row, again), "row {}: {place}", neighbour.row);
                }
            }
        }
    }
}

#[test]
fn every_kind_over_odd_dimensions() {
    let mut numbers = Numbers(41);
    const DIMS: [usize; 12] = [1, 2, 3, 7, 15, 17, 31, 33, 63, 65, 129, 257];
    for (kind, (name, _)) in KINDS.iter().enumerate() {
        for (i, dim) in DIMS.into_iter().enumerate() {
            let rows = 1 + numbers.below(150);
            let base = made(&mut numbers, kind, rows, dim);
            let count = [1, 5, 33][(i + kind) % 3];
            let queries = mixed(&mut numbers, kind, count, &base);
            for metric in FLOAT_METRICS {
                check(&base, &queries, metric, &[1, 10, rows + 5], None, &format!("{name}, {rows} x {dim}"));
            }
        }
    }
}

#[test]
fn long_vectors_to_4097() {
    let mut numbers = Numbers(42);
    for (kind, (name, _)) in KINDS.iter().enumerate() {
        let dim = [511, 1023, 1025, 2049, 4095, 4097][kind % 6];
        let base = made(&mut numbers, kind, 60, dim);
        let queries = mixed(&mut numbers, kind, 4, &base);
        for metric in FLOAT_METRICS {
            check(&base, &queries, metric, &[1, 10], None, &format!("{name}, dim {dim}"));
        }
    }
}

#[test]
fn enough_rows_that_most_are_ruled_out_unseen() {
    let mut numbers = Numbers(43);
    for (kind, (name, _)) in KINDS.iter().enumerate() {
        let base = made(&mut numbers, kind, 5_000, 21);
        let queries = mixed(&mut numbers, kind, 34, &base);
        for metric in FLOAT_METRICS {
            check(&base, &queries, metric, &[1, 100], None, &format!("{name}, 5,000 rows"));
        }
    }
}

#[test]
fn filters_that_let_few_rows_pass_or_none() {
    let mut numbers = Numbers(44);
    for (kind, (name, _)) in KINDS.iter().enumerate() {
        let base = made(&mut numbers, kind, 700, 19);
        let queries = mixed(&mut numbers, kind, 6, &base);
        let tenth = RowSet::from_fn(700, |row| row * 7 % 10 == 3);
        let one = RowSet::from_fn(700, |row| row == 699);
        let none = RowSet::from_fn(700, |_| false);
        for metric in FLOAT_METRICS {
            for (rows, which) in [(&tenth, "a tenth"), (&one, "the last row"), (&none, "no row")] {
                check(&base, &queries, metric, &[1, 10, 800], Some(rows), &format!("{name}, {which}"));
            }
        }
    }
}

#[test]
fn bytes_halves_and_bits() {
    let mut numbers = Numbers(45);
    for dim in [1, 3, 8, 31, 64, 65, 100, 257, 1025] {
        for element in [Element::I8, Element::U8] {
            for few in [false, true] {
                // With two values only, nearly everything is a tie.
                let mut bytes = |rows: usize| {
                    let made = (0..rows * dim).map(|_| numbers.next() as u8);
                    let bytes =
                        made.map(|b| if few { [0x80, 0x7F][usize::from(b) % 2] } else { b }).collect();
                    Vectors::from_bytes(bytes, rows, dim, element).unwrap()
                };
                let (base, queries) = (bytes(150), bytes(7));
                for metric in FLOAT_METRICS {
                    check(&base, &queries, metric, &[1, 20, 155], None, &format!("{element}, dim {dim}"));
                }
            }
        }
        let halves = numbers.floats(150 * dim).into_iter().flat_map(|x| half::f16::from_f32(x).to_le_bytes());
        let base = Vectors::from_bytes(halves.collect(), 150, dim, Element::F16).unwrap();
        let queries = numbers.vectors(7, dim);
        for metric in FLOAT_METRICS {
            check(&base, &queries, metric, &[1, 20], None, &format!("f16, dim {dim}"));
        }
        for count in [1, 2, 5, 33] {
            let (base, queries) =
                (numbers.bytes(150, dim, Element::Bit), numbers.bytes(count, dim, Element::Bit));
            check(&base, &queries, Metric::Hamming, &[1, 20, 155], None, &format!("bits, dim {dim}"));
        }
    }
}

/// Enough rows that the k-th best key is guessed from a sample, and methods are compared.
#[test]
fn guesses_are_verified() {
    let mut numbers = Numbers(46);
    for kind in [0, 1, 6, 11, 16] {
        let (base, name) = (made(&mut numbers, kind, 9_000, 12), KINDS[kind].0);
        let queries = mixed(&mut numbers, kind, 40, &base);
        for metric in FLOAT_METRICS {
            check(&base, &queries, metric, &[1, 10, 140], None, &format!("{name}, 9,000 rows"));
        }
    }
    // The first rows, which the sample may miss, are the nearest: every guess is too high at first.
    let sorted: Vec<f32> = (0..9_000).flat_map(|row| [row as f32, 1.0]).collect();
    let base = Vectors::from_f32(sorted, 9_000, 2).unwrap();
    let queries = Vectors::from_f32(vec![0.0; 80], 40, 2).unwrap();
    check(&base, &queries, Metric::L2, &[1, 10, 100], None, "sorted rows");
}

#[test]
fn what_is_not_finite_is_an_error_that_names_the_row() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for metric in FLOAT_METRICS {
            for options in ways() {
                let mut numbers = Numbers(47);
                let mut values = numbers.floats(300 * 9);
                values[123 * 9 + 4] = bad;
                let base = Vectors::from_f32(values, 300, 9).unwrap();
                let good = numbers.vectors(40, 9);
                let error =
                    neighbours(&base, &good, metric, 5, Subset::All, &options).unwrap_err().to_string();
                assert!(error.contains("row 123 of the base"), "{error}");
                let error =
                    neighbours(&good, &base, metric, 5, Subset::All, &options).unwrap_err().to_string();
                assert!(error.contains("row 123 of the queries"), "{error}");
            }
        }
    }
}
