//! How long exact search and scoring take here: `cargo bench -p exact`. Prints, asserts nothing.

use exact::{Allowed, Level, Options, Scorer, Subset, neighbours, summary};
use std::io::Write;
use std::time::Instant;
use types::{Element, Metric, Vectors};

fn vectors(seed: u64, rows: usize, dim: usize) -> Vectors {
    let mut state = seed;
    let values = (0..rows * dim)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    Vectors::from_f32(values, rows, dim).expect("rows x dim")
}

fn say(text: &str) {
    // A closed pipe is no reason to stop.
    drop(writeln!(std::io::stdout(), "{text}"));
}

/// Best of three runs; of one where an argument of the command line is no part of `what`.
#[expect(clippy::disallowed_methods, reason = "a bench is a program and has arguments of its own")]
fn time<T>(what: &str, pairs: usize, dim: usize, run: impl Fn() -> T) -> T {
    let mut best = f64::INFINITY;
    let mut last = None;
    let wanted = std::env::args().skip(1).all(|word| word == "--bench" || what.contains(&word));
    for _ in 0..if wanted { 3 } else { 1 } {
        let start = Instant::now();
        last = Some(run());
        best = best.min(start.elapsed().as_secs_f64());
    }
    let rate = pairs as f64 * dim as f64 * 2.0 / best / 1e9;
    say(&format!("{what:<58} {:>9.1} ms  {rate:>7.1} GFLOP/s", best * 1e3));
    last.expect("three runs")
}

fn main() {
    say(&format!("levels: {:?}", Level::available()));
    for (rows, dim, count, k) in [(50_000, 384, 1000, 100), (200_000, 50, 1000, 100), (50_000, 384, 1, 100)] {
        let (base, queries) = (vectors(1, rows, dim), vectors(2, count, dim));
        for metric in [Metric::Cosine, Metric::L2, Metric::InnerProduct] {
            let run = |level| {
                let options = Options { level: Some(level), ..Options::default() };
                neighbours(&base, &queries, metric, k, Subset::All, &options).expect("a search")
            };
            for level in Level::available() {
                let what = format!("{rows} x {dim}, {count} queries, k {k}, {metric}, {}", level.name());
                time(&what, rows * count, dim, || run(level));
            }
        }
    }
    let (base, queries) = (vectors(1, 50_000, 384), vectors(2, 1000, 384));
    let truth =
        neighbours(&base, &queries, Metric::Cosine, 100, Subset::All, &Options::default()).expect("truth");
    let scorer =
        || Scorer::new(base.clone(), queries.clone(), Metric::Cosine, &truth, 100, Allowed::default());
    let prepared = time("prepare a scorer, 1000 x 100", 1000 * 100, 384, || scorer().expect("a scorer"));
    let answers: Vec<Vec<u64>> = (0..1000)
        .map(|q| {
            truth.of(q).iter().enumerate().map(|(i, n)| u64::from(n.row) + u64::from(i % 10 == 0)).collect()
        })
        .collect();
    time("score 1000 x 100, a tenth of the ids wrong", 1000 * 100, 384, || {
        let scores: Vec<_> = answers.iter().enumerate().map(|(q, ids)| prepared.score(q, ids)).collect();
        summary(&scores)
    });
    let bits = |seed, rows| {
        let bytes = vectors(seed, rows, 32);
        let bytes = (0..rows).flat_map(|i| bytes.row_bytes(i).to_vec()).collect();
        Vectors::from_bytes(bytes, rows, 1024, Element::Bit).expect("bits")
    };
    let (base, queries) = (bits(1, 50_000), bits(2, 1000));
    time("50000 x 1024 bits, 1000 queries, k 100", 50_000 * 1000, 1024, || {
        neighbours(&base, &queries, Metric::Hamming, 100, Subset::All, &Options::default()).expect("a search")
    });
}
