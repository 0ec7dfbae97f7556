//! Numbers, a brute-force reference and paths that the tests share.
#![allow(dead_code, unreachable_pub, clippy::allow_attributes, reason = "each test file uses a part")]

use std::path::PathBuf;
use types::{Element, Metric, Neighbour, Truth, Vectors};

/// SplitMix64, for numbers that are the same on every machine.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    /// -1 to 1.
    pub fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
    pub fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.unit()).collect()
    }
    pub fn vectors(&mut self, rows: usize, dim: usize) -> Vectors {
        Vectors::from_f32(self.floats(rows * dim), rows, dim).unwrap()
    }
    pub fn bytes(&mut self, rows: usize, dim: usize, element: Element) -> Vectors {
        let bytes = (0..rows * element.row_bytes(dim)).map(|_| self.next() as u8).collect();
        Vectors::from_bytes(bytes, rows, dim, element).unwrap()
    }
}

/// The distance by plain loops in float64; NaN where undefined.
pub fn plain_distance(metric: Metric, a: &[f32], b: &[f32]) -> f64 {
    let pairs = || a.iter().zip(b).map(|(&x, &y)| (f64::from(x), f64::from(y)));
    let dot: f64 = pairs().map(|(x, y)| x * y).sum();
    let norm = |v: &[f32]| v.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    match metric {
        Metric::L2 => pairs().map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt(),
        Metric::InnerProduct => -dot,
        Metric::Cosine => 1.0 - dot / (norm(a) * norm(b)),
        Metric::Hamming => pairs().filter(|(x, y)| x != y).count() as f64,
    }
}

/// Neighbours by sorting all rows that `allowed` lets pass.
pub fn plain_neighbours(
    base: &Vectors,
    query: &[f32],
    metric: Metric,
    k: usize,
    allowed: impl Fn(usize) -> bool,
) -> (Vec<Neighbour>, u64) {
    let mut all: Vec<Neighbour> = (0..base.rows())
        .filter(|&row| allowed(row))
        .map(|row| Neighbour { row: row as u32, distance: plain_distance(metric, query, &base.row(row)) })
        .filter(|n| !n.distance.is_nan())
        .collect();
    all.sort_by(|a, b| a.distance.total_cmp(&b.distance).then(a.row.cmp(&b.row)));
    let matching = all.len() as u64;
    all.truncate(k);
    (all, matching)
}

/// Asserts that query `query` of `truth` has the neighbours `expected`, except for the order of rows
/// whose float64 distances differ by less than rounding explains.
///
/// Equal distances must stand by row; under L2 squares that differ may have equal roots.
pub fn assert_same(
    truth: &Truth,
    query: usize,
    metric: Metric,
    expected: &(Vec<Neighbour>, u64),
    distance: impl Fn(usize) -> f64,
    slack: f64,
    context: &str,
) {
    let found = truth.of(query);
    assert_eq!(truth.matching(query), expected.1, "{context}: matching of query {query}");
    assert_eq!(found.len(), expected.0.len(), "{context}: length of query {query}");
    let mut rows: Vec<u32> = found.iter().map(|n| n.row).collect();
    for (i, (ours, theirs)) in found.iter().zip(&expected.0).enumerate() {
        let recomputed = distance(ours.row as usize);
        assert!(
            (recomputed - theirs.distance).abs() <= slack && (ours.distance - recomputed).abs() <= slack,
            "{context}: query {query} rank {i}: {ours:?} against {theirs:?}"
        );
    }
    for pair in found.windows(2) {
        assert!(
            pair[0].distance < pair[1].distance
                || (pair[0].distance == pair[1].distance
                    && (pair[0].row < pair[1].row || metric == Metric::L2)),
            "{context}: query {query}: order of {pair:?}"
        );
    }
    rows.sort_unstable();
    rows.dedup();
    assert_eq!(rows.len(), found.len(), "{context}: a row stands twice");
}

/// The folder with the data for development, where it is there.
pub fn shared_data() -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    path.is_dir().then_some(path)
}

/// A fixture of cases.md; none (with a line said) where it was not made. In CI it must be there.
pub fn fixture(test: &str, name: &str) -> Option<PathBuf> {
    let made = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/fixtures/fx");
    let folder = std::env::var_os("ANNVIL_FIXTURES").map_or(made, PathBuf::from);
    let path = folder.join(name);
    if path.exists() {
        return Some(path);
    }
    assert!(std::env::var_os("CI").is_none(), "fixture {} is missing", path.display());
    say(&format!("skipped {test}: fixtures missing, run cargo xtask test"));
    None
}

/// A line on standard error.
pub fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}
