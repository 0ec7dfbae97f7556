//! Every way of screening on one data set, to fit the costs of `method.rs` and to see what a change of
//! a kernel does: `cargo bench -p exact --bench methods -- BASE [--queries FILE] [--metric M] [--k K]
//! [--threads N] [--only LEVEL,METHOD] [--rounds N]`. Prints, asserts nothing but that all answers are one.

use exact::{Level, Method, Options, Subset, neighbours};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;
use types::Truth;

fn say(text: &str) {
    // A closed pipe is no reason to stop.
    drop(writeln!(std::io::stdout(), "{text}"));
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
    let mut first: Option<Truth> = None;
    for level in Level::available() {
        for method in Method::ALL {
            let name = format!("{},{}", level.name(), method.name());
            if !name.contains(&only) || (only.is_empty() && level == Level::Portable) {
                continue;
            }
            let options =
                Options { level: Some(level), method, threads: Some(threads), ..Options::default() };
            let mut best = f64::INFINITY;
            for _ in 0..rounds {
                let start = Instant::now();
                let truth = neighbours(base, queries, metric, k, Subset::All, &options).expect("a search");
                best = best.min(start.elapsed().as_secs_f64());
                assert_eq!(*first.get_or_insert_with(|| truth.clone()), truth, "{name}");
            }
            let pairs = base.rows() as f64 * queries.rows() as f64;
            let rate = pairs * base.dim() as f64 * 2.0 / best / 1e9;
            say(&format!(
                "{name:<20} {:>8.1} ms  {:>7.3} ns a pair  {rate:>7.0} GFLOP/s",
                best * 1e3,
                best / pairs * 1e9
            ));
        }
    }
}
