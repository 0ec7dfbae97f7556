//! What the tests of cases share: a refusal, a run of the control, small files made on the spot.

#![expect(dead_code, reason = "each test file uses a part")]

use crate::support::{Done, Scratch};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Options of a run that is as short as a run can be.
const SHORT: [[&str; 2]; 3] = [["--repeats", "2"], ["--warmup", "5"], ["--min-window", "1ms"]];

/// The words of a run into `out`, short where `more` does not say otherwise.
pub(crate) fn run_words<'a>(engine: &'a str, out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["run", "--engine", engine, "--out", out, "--no-report", "--quiet"];
    for pair in SHORT {
        if !more.contains(&pair[0]) {
            words.extend(pair);
        }
    }
    words.extend_from_slice(more);
    words
}

/// Runs `annvil` and expects a refusal: exit code 2, nothing on standard output, one line on
/// standard error that holds all of `parts`, and no run directory.
pub(crate) fn refused(s: &Scratch, args: &[&str], parts: &[&str]) -> Done {
    let done = s.annvil(args);
    assert_eq!(done.code, Some(2), "{args:?}\n{}\n{}", done.out, done.err);
    assert_eq!(done.out, "", "{args:?}");
    let lines: Vec<&str> = done.err.lines().filter(|l| !l.starts_with("note: ")).collect();
    assert_eq!(lines.len(), 1, "{args:?}\n{}", done.err);
    assert!(lines[0].starts_with("error: "), "{}", done.err);
    for part in parts {
        assert!(lines[0].contains(part), "{part:?} is not in: {}", lines[0]);
    }
    // Words of a program's inside; the form of a filter shows the text 'b'.
    let shown = done.err.replace("'b'", "");
    for word in ["panicked", "b'", "RUST_BACKTRACE", "Some(", "Err("] {
        assert!(!shown.contains(word), "{word:?} is in: {}", done.err);
    }
    assert!(!s.path().join("runs").exists() && !s.path().join("r").exists(), "a run directory was made");
    done
}

/// Refused by `annvil run`, into the directory `r`.
pub(crate) fn run_refused(s: &Scratch, dataset: &Path, more: &[&str], parts: &[&str]) -> Done {
    let path = text(dataset);
    let mut args = run_words("flat", "r", &["--dataset", &path]);
    args.extend_from_slice(more);
    refused(s, &args, parts)
}

/// Runs the exact control on a data set into `r` and expects recall 1.0, exactly, by every rule.
pub(crate) fn control(s: &Scratch, dataset: &Path, more: &[&str]) -> Value {
    let path = text(dataset);
    let mut args = run_words("flat", "r", &["--dataset", &path, "--force"]);
    args.extend_from_slice(more);
    s.ok(&args);
    let points = s.sweep("r");
    assert_eq!(points.len(), 1);
    let point = points[0].clone();
    assert_eq!(point["recall"], 1.0, "{}: {point}", dataset.display());
    assert_eq!(point["recall_min"], 1.0, "{}: {point}", dataset.display());
    assert_eq!(point["status"], "valid", "{point}");
    assert_eq!(s.manifest("r")["verdict"]["valid"], true);
    point
}

/// Runs `fake` with options on a data set into `r`: exit code, and the points of the sweep.
pub(crate) fn fake(s: &Scratch, options: &str, more: &[&str]) -> (Done, Vec<Value>) {
    let engine = if options.is_empty() { "fake".to_owned() } else { format!("fake:{options}") };
    let mut args = run_words(&engine, "r", more);
    args.push("--force");
    if !more.contains(&"--effort") {
        args.extend(["--effort", "10"]);
    }
    let done = s.annvil(&args);
    (done, s.sweep("r"))
}

/// Whether a point has a mark.
pub(crate) fn has_flag(point: &Value, flag: &str) -> bool {
    point["flags"].as_array().is_some_and(|flags| flags.iter().any(|f| f == flag))
}

/// The findings of a run's verdict, as one text.
pub(crate) fn findings(s: &Scratch, run: &str) -> String {
    s.manifest(run)["verdict"]["findings"].to_string()
}

/// JSON of standard output.
pub(crate) fn json(done: &Done) -> Value {
    serde_json::from_str(&done.out).unwrap_or_else(|e| panic!("{e}: {}", done.out))
}

/// `annvil dataset describe --json`.
pub(crate) fn described(s: &Scratch, dataset: &Path, more: &[&str]) -> Value {
    let path = text(dataset);
    let mut args = vec!["dataset", "describe", &path, "--json"];
    args.extend_from_slice(more);
    json(&s.ok(&args))
}

/// `annvil dataset validate --json`: exit code and what it says.
pub(crate) fn validated(s: &Scratch, dataset: &Path, more: &[&str]) -> (Option<i32>, Value) {
    let path = text(dataset);
    let mut args = vec!["dataset", "validate", &path, "--json"];
    args.extend_from_slice(more);
    let done = s.annvil(&args);
    (done.code, json(&done))
}

/// A path as text.
pub(crate) fn text(path: &Path) -> String {
    path.to_str().expect("a path in UTF-8").to_owned()
}

/// A small data set made here by `annvil dataset generate`: `rows` x 8, with columns.
pub(crate) fn generated(s: &Scratch, name: &str, rows: usize, queries: usize, metric: &str) -> PathBuf {
    generate(s, name, rows, queries, 8, metric)
}

/// The same under L2, of `dim` components.
pub(crate) fn generated_of(s: &Scratch, name: &str, rows: usize, queries: usize, dim: usize) -> PathBuf {
    generate(s, name, rows, queries, dim, "l2")
}

fn generate(s: &Scratch, name: &str, rows: usize, queries: usize, dim: usize, metric: &str) -> PathBuf {
    let (rows, queries, dim) = (rows.to_string(), queries.to_string(), dim.to_string());
    let size = ["--rows", &rows, "--queries", &queries, "--dim", &dim, "--k", "20"];
    s.ok(&[&["dataset", "generate", "--out", name, "--metric", metric, "--quiet"][..], &size].concat());
    s.path().join(name)
}

/// Evenly scattered numbers, the same on every machine.
pub(crate) fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
        })
        .collect()
}

/// Writes an fbin file of rows of `dim`.
pub(crate) fn fbin(path: &Path, values: &[f32], dim: usize) {
    let mut bytes = Vec::new();
    bytes.extend(u32::try_from(values.len() / dim).expect("few rows").to_le_bytes());
    bytes.extend(u32::try_from(dim).expect("few components").to_le_bytes());
    values.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
    std::fs::write(path, bytes).expect("a scratch file");
}

/// Writes true neighbours as big-ann has them: rows without distances.
pub(crate) fn ibin(path: &Path, lists: &[Vec<u32>]) {
    let k = lists.first().map_or(10, Vec::len);
    let mut bytes = Vec::new();
    bytes.extend(u32::try_from(lists.len()).expect("few lists").to_le_bytes());
    bytes.extend(u32::try_from(k).expect("short lists").to_le_bytes());
    lists.iter().flatten().for_each(|v| bytes.extend(v.to_le_bytes()));
    std::fs::write(path, bytes).expect("a scratch file");
}

/// Writes an npy file of float32.
pub(crate) fn npy(path: &Path, values: &[f32], dim: usize) {
    let shape = format!("({}, {dim})", values.len() / dim);
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    while !(10 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).expect("a short header").to_le_bytes());
    bytes.extend(header.as_bytes());
    values.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
    std::fs::write(path, bytes).expect("a scratch file");
}

/// The k nearest rows by L2 of each query, in float64.
pub(crate) fn nearest(base: &[f32], queries: &[f32], dim: usize, k: usize) -> Vec<Vec<u32>> {
    let list = |query: &[f32]| {
        let mut rows: Vec<(f64, u32)> = base
            .chunks(dim)
            .zip(0_u32..)
            .map(|(row, at)| {
                let square = |(a, b): (&f32, &f32)| (f64::from(*a) - f64::from(*b)).powi(2);
                (row.iter().zip(query).map(square).sum(), at)
            })
            .collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        rows.into_iter().take(k).map(|(_, row)| row).collect()
    };
    queries.chunks(dim).map(list).collect()
}
