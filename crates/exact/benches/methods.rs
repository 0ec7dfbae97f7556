//! Every way of screening on one data set, to fit the costs of `method.rs` and to see what a change of
//! a kernel does: `cargo bench -p exact --bench methods -- BASE [--queries FILE] [--metric M] [--k K]
//! [--threads N] [--only LEVEL,METHOD] [--rounds N] [--filters]`. With --filters six row sets at once, of half
//! to a thousandth of the rows. Prints the pairs that float64 decided for a query, which a busy machine does
//! not change; asserts nothing but that all answers are one.

use exact::{Level, Method, Options, Search, Subset};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;
use types::{RowSet, Truth};

fn say(text: &str) {
    // A closed pipe is no reason to stop.
    drop(writeln!(std::io::stdout(), "{text}"));
}

/// Row sets that pass about these shares of the rows, independent of one another.
fn row_sets(rows: usize) -> Vec<RowSet> {
    let mut state = 1_u64;
    let mut passes = move |share: f64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64) < share * (1_u64 << 53) as f64
    };
    [0.5, 0.2, 0.1, 0.05, 0.01, 0.001].map(|share| RowSet::from_fn(rows, |_| passes(share))).into()
}

#[expect(clippy::disallowed_methods, reason = "a bench is a program and has arguments of its own")]
fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let value = |name: &str| words.iter().position(|w| w == name).and_then(|at| words.get(at + 1)).cloned();
    let Some(base) = words.first().filter(|word| !word.starts_with("--")) else {
        say("methods: give a data set after --; nothing to do without one");
        return;
    };
    let options = dataset::OpenOptions {
        queries: value("--queries").map(PathBuf::from),
        metric: value("--metric").and_then(|m| m.parse().ok()),
        ..dataset::OpenOptions::default()
    };
    let set = dataset::open(&PathBuf::from(base), &options).expect("a data set");
    let metric = set.require_metric().expect("a metric");
    let number = |name: &str, default: usize| value(name).and_then(|v| v.parse().ok()).unwrap_or(default);
    let (k, threads, rounds) = (number("--k", 100), number("--threads", 2), number("--rounds", 3));
    let only = value("--only").unwrap_or_default();
    let (base, queries) = (&set.base, &set.queries);
    say(&format!(
        "{} x {}, {} queries, {metric}, k {k}, {threads} threads",
        base.rows(),
        base.dim(),
        queries.rows()
    ));
    let sets = if words.iter().any(|word| word == "--filters") { row_sets(base.rows()) } else { Vec::new() };
    let mut cases: Vec<Subset<'_>> = sets.iter().map(Subset::Same).collect();
    if cases.is_empty() {
        cases.push(Subset::All);
    }
    let mut first: Option<Vec<Truth>> = None;
    for level in Level::available() {
        for method in Method::ALL {
            let name = format!("{},{}", level.name(), method.name());
            if !name.contains(&only) || (only.is_empty() && level == Level::Portable) {
                continue;
            }
            let options =
                Options { level: Some(level), method, threads: Some(threads), ..Options::default() };
            let (mut best, mut decided) = (f64::INFINITY, 0);
            for _ in 0..rounds {
                let start = Instant::now();
                let mut search = Search::new(base, queries, metric, k, &cases, options).expect("a search");
                search.advance(base.rows()).expect("all rows");
                best = best.min(start.elapsed().as_secs_f64());
                decided = search.decided_pairs();
                let truths = search.finish();
                assert_eq!(*first.get_or_insert_with(|| truths.clone()), truths, "{name}");
            }
            let pairs = base.rows() as f64 * queries.rows() as f64;
            let rate = pairs * base.dim() as f64 * 2.0 / best / 1e9;
            say(&format!(
                "{name:<20} {:>8.1} ms  {:>7.3} ns a pair  {rate:>7.0} GFLOP/s  {:>8.1} decided a query",
                best * 1e3,
                best / pairs * 1e9,
                decided as f64 / queries.rows() as f64
            ));
        }
    }
}
