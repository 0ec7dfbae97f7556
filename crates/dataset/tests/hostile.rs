//! Damaged and hostile files: whatever the bytes, opening gives a data set or an error in one line.
//! It never panics, never reserves memory that the file cannot fill, and what it opens can be read
//! to the end.
//!
//! Each format starts from a good file, which is cut, flipped, overwritten with extreme numbers and
//! shifted. `ANNVIL_HOSTILE_CASES` sets how many variants of each are tried.

mod common;

use dataset::generate::{Recipe, generate};
use dataset::{Dataset, OpenOptions, directory, open, parquet};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use std::fs;
use std::path::Path;
use types::{Element, Metric, Neighbour, Truth};

/// Variants of each good file where nothing else is asked for.
const CASES: u32 = 300;

/// Address space that all of the tests together may come to: a header that claims 2^31 rows must not
/// be believed before the file has been found long enough.
const MOST_ADDRESS_SPACE_KIB: u64 = 6 << 20;

/// A good data set as files, the first of which is damaged.
struct Good {
    files: Vec<(String, Vec<u8>)>,
    /// What is opened.
    open: &'static str,
    queries: Option<&'static str>,
    truth: Option<&'static str>,
}

impl Good {
    fn one(name: &'static str, bytes: Vec<u8>) -> Good {
        Good { files: vec![(name.to_owned(), bytes)], open: name, queries: None, truth: None }
    }

    /// Opens it with the first file replaced.
    fn open_with(&self, dir: &Path, first: &[u8]) -> Result<Dataset, String> {
        for (i, (name, bytes)) in self.files.iter().enumerate() {
            fs::write(dir.join(name), if i == 0 { first } else { bytes }).unwrap();
        }
        let options = OpenOptions {
            metric: Some(Metric::L2),
            queries: self.queries.map(|name| dir.join(name)),
            truth: self.truth.map(|name| dir.join(name)),
            ..OpenOptions::default()
        };
        open(&dir.join(self.open), &options).map_err(|error| error.to_string())
    }
}

/// One change; positions are taken modulo the length.
#[derive(Clone, Debug)]
enum Change {
    Cut(usize),
    Flip(usize, u8),
    Extreme(usize, u8),
    Remove(usize, usize),
    Insert(usize, Vec<u8>),
    Fill(usize, usize, u8),
}

fn change() -> impl Strategy<Value = Change> {
    // Half of the places are in the first bytes, where headers are, or in the last, where
    // parquet's are.
    let place = || {
        prop_oneof![0..64_usize, 0..1024_usize, any::<usize>(), (0..2048_usize).prop_map(|i| usize::MAX - i)]
    };
    prop_oneof![
        1 => place().prop_map(Change::Cut),
        4 => (place(), 1..=255_u8).prop_map(|(at, bits)| Change::Flip(at, bits)),
        4 => (place(), any::<u8>()).prop_map(|(at, which)| Change::Extreme(at, which)),
        1 => (place(), 1..64_usize).prop_map(|(at, count)| Change::Remove(at, count)),
        1 => (place(), prop::collection::vec(any::<u8>(), 1..64)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        1 => (place(), 1..256_usize, any::<u8>()).prop_map(|(at, count, byte)| Change::Fill(at, count, byte)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    // usize::MAX - i means i before the end.
    let place =
        |at: usize| if usize::MAX - at < 2048 { length.saturating_sub(usize::MAX - at) } else { at % length };
    match change {
        Change::Cut(at) => bytes.truncate(place(*at)),
        Change::Flip(at, bits) => {
            let at = place(*at).min(length - 1);
            bytes[at] ^= bits;
        }
        Change::Extreme(at, which) => {
            let words: [u64; 8] =
                [0, 1, u64::MAX, i64::MAX as u64, 1 << 63, 0x7FFF_FFFF, 0xFFFF_FFFF, 0x8000_0000_8000_0000];
            let word = words[usize::from(which % 8)].to_le_bytes();
            let width = if which & 8 == 0 { 4 } else { 8 };
            for (slot, byte) in bytes.iter_mut().skip(place(*at) & !3).zip(word).take(width) {
                *slot = byte;
            }
        }
        Change::Remove(at, count) => {
            let start = place(*at);
            bytes.drain(start..length.min(start + count));
        }
        Change::Insert(at, more) => {
            let at = place(*at);
            bytes.splice(at..at, more.iter().copied());
        }
        Change::Fill(at, count, byte) => {
            bytes.iter_mut().skip(place(*at)).take(*count).for_each(|slot| *slot = *byte)
        }
    }
}

/// Reads everything that a data set gives.
fn read_all(set: &Dataset) {
    let mut sum = 0.0;
    for vectors in [&set.base, &set.queries] {
        for row in 0..vectors.rows() {
            sum += vectors.row(row).iter().map(|v| f64::from(*v)).sum::<f64>();
        }
    }
    for truth in set.truth.iter().chain(set.filtered.iter().map(|case| &case.truth)) {
        assert_eq!(truth.queries(), set.queries.rows());
        for query in 0..truth.queries() {
            assert!(truth.of(query).iter().all(|n| (n.row as usize) < set.base.rows()));
        }
    }
    assert_eq!(set.ids.len(), set.base.rows());
    for (columns, rows) in [(&set.columns, set.base.rows()), (&set.query_columns, set.queries.rows())] {
        assert!(columns.as_ref().is_none_or(|columns| columns.rows() == rows));
    }
    assert_eq!(set.hashes().base.len(), 32);
    std::hint::black_box(sum);
}

fn check(outcome: Result<Dataset, String>) {
    match outcome {
        Ok(set) => read_all(&set),
        Err(message) => assert!(!message.is_empty() && !message.contains(char::is_control), "{message:?}"),
    }
}

/// The most address space that this process has had.
fn address_space_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn torture(good: &Good) {
    let dir = tempfile::tempdir().unwrap();
    let whole = good.files[0].1.clone();
    let set = good.open_with(dir.path(), &whole).unwrap_or_else(|error| panic!("the good file: {error}"));
    read_all(&set);
    drop(set);
    let cases = std::env::var("ANNVIL_HOSTILE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 2000, ..Config::default() };
    let outcome = TestRunner::new(config).run(&prop::collection::vec(change(), 1..4), |changes| {
        let mut bytes = whole.clone();
        changes.iter().for_each(|change| apply(&mut bytes, change));
        check(good.open_with(dir.path(), &bytes));
        match address_space_kib() {
            Some(kib) if kib > MOST_ADDRESS_SPACE_KIB => {
                Err(TestCaseError::fail(format!("address space grew to {kib} KiB")))
            }
            _ => Ok(()),
        }
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(why, changes)) => panic!("{} after {changes:?}: {why}", good.files[0].0),
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
}

/// A file that begins as the format does and goes on at random.
fn random(name: &'static str, start: &'static [u8]) {
    let dir = tempfile::tempdir().unwrap();
    let good = Good::one(name, Vec::new());
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&prop::collection::vec(any::<u8>(), 0..600), |rest| {
        check(good.open_with(dir.path(), &[start, &rest].concat()));
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
}

fn small_set() -> Dataset {
    let recipe =
        Recipe { rows: 40, queries: 4, dim: 6, clusters: 3, metric: Metric::L2, ..Recipe::default() };
    let mut set = generate(&recipe).unwrap();
    let mut truth = Truth::new(3);
    for query in 0..4 {
        truth.push((0..3).map(|i| Neighbour { row: query * 7 + i, distance: f64::from(i) }), 40);
    }
    set.truth = Some(truth);
    set
}

/// i32 dimension and numbers, record by record.
fn texmex(rows: usize, dim: usize, number: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let record = |row: usize| -> Vec<u8> {
        let numbers = (0..dim).flat_map(|i| number(row * dim + i));
        (dim as i32).to_le_bytes().into_iter().chain(numbers).collect()
    };
    (0..rows).flat_map(record).collect()
}

/// Header and numbers.
fn bin(rows: u32, dim: u32, number: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    let numbers = (0..rows * dim).flat_map(number);
    rows.to_le_bytes().into_iter().chain(dim.to_le_bytes()).chain(numbers).collect()
}

fn npy(kind: &str, rows: usize, dim: usize, body: Vec<u8>) -> Vec<u8> {
    let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({rows}, {dim}), }}");
    let text = format!("{text:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend(body);
    bytes
}

fn float(i: usize) -> Vec<u8> {
    (i as f32 / 7.0).to_le_bytes().to_vec()
}

/// Row numbers below 30 that do not repeat within five.
fn row_number(i: usize) -> Vec<u8> {
    ((i % 5 * 6) as i32).to_le_bytes().to_vec()
}

#[test]
fn flat_files() {
    torture(&Good::one("base.fbin", bin(30, 4, |i| float(i as usize))));
    torture(&Good::one("base.u8bin", bin(30, 4, |i| vec![i as u8])));
    torture(&Good::one("base.f16bin", bin(30, 4, |i| vec![i as u8, 0x3c])));
    torture(&Good::one("base.fvecs", texmex(30, 4, float)));
    torture(&Good::one("base.bvecs", texmex(30, 4, |i| vec![i as u8])));
    let body: Vec<u8> = (0..120).flat_map(float).collect();
    torture(&Good::one("base.npy", npy("<f4", 30, 4, body)));
    let wide = (0..120).flat_map(|i| f64::from(i).to_be_bytes()).collect();
    torture(&Good::one("base.npy", npy(">f8", 30, 4, wide)));
}

#[test]
fn truth_beside_a_good_base() {
    let base = || ("base.fbin".to_owned(), bin(30, 4, |i| float(i as usize)));
    let queries = || ("asked.fbin".to_owned(), bin(6, 4, |i| float(i as usize)));
    let with = |name: &'static str, bytes: Vec<u8>| Good {
        files: vec![(name.to_owned(), bytes), base(), queries()],
        open: "base.fbin",
        queries: Some("asked.fbin"),
        truth: Some(name),
    };
    let ids: Vec<u8> = (0..30).flat_map(row_number).collect();
    let distances: Vec<u8> = (0..30).flat_map(|i| float(i % 5)).collect();
    let knn = [bin(6, 5, |i| row_number(i as usize)), distances].concat();
    torture(&with("t.ibin", knn.clone()));
    torture(&with("t.gt", knn));
    torture(&with("t.ivecs", texmex(6, 5, row_number)));
    torture(&with("t.npy", npy("<i4", 6, 5, ids)));
}

#[test]
fn text() {
    let line = |row: usize| format!("{row},{},{},{},word{row}\n", row * 2, row * 3, row as f64 / 4.0);
    let text: String = std::iter::once("id,a,b,c,name\n".to_owned()).chain((0..30).map(line)).collect();
    torture(&Good::one("base.csv", text.into_bytes()));
}

#[test]
fn parquet_folders() {
    let root = tempfile::tempdir().unwrap();
    let made = root.path().join("made");
    parquet::write_parquet(&small_set(), &made).unwrap();
    let file = |name: &str| (name.to_owned(), fs::read(made.join(name)).unwrap());
    for first in ["train.parquet", "neighbors.parquet", "test.parquet"] {
        let mut files = vec![file(first)];
        files.extend(
            ["train.parquet", "neighbors.parquet", "test.parquet"]
                .into_iter()
                .filter(|n| *n != first)
                .map(file),
        );
        torture(&Good { files, open: ".", queries: None, truth: None });
    }
}

#[test]
fn data_set_directories() {
    let root = tempfile::tempdir().unwrap();
    let made = root.path().join("made");
    directory::write(&small_set(), &made, &directory::Provenance::default()).unwrap();
    let names: Vec<String> =
        fs::read_dir(&made).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    for first in ["dataset.toml", "columns.parquet", "base.fbin"] {
        let order = std::iter::once(first).chain(names.iter().map(String::as_str).filter(|n| *n != first));
        let files = order.map(|name| (name.to_owned(), fs::read(made.join(name)).unwrap())).collect();
        torture(&Good { files, open: ".", queries: None, truth: None });
    }
}

#[test]
fn hdf5_files() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hdf5");
    let mut paths: Vec<_> = fs::read_dir(own).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let good: Vec<_> = paths
        .into_iter()
        .filter(|path| fs::metadata(path).unwrap().len() < 200_000)
        .filter(|path| {
            open(path, &OpenOptions { metric: Some(Metric::L2), ..OpenOptions::default() }).is_ok()
        })
        .collect();
    assert!(good.len() >= 3, "{good:?}");
    for path in good {
        torture(&Good::one("a.hdf5", fs::read(path).unwrap()));
    }
}

#[test]
fn fixtures() {
    for (fixture, name) in [("F00_good.hdf5", "a.hdf5"), ("F14_list_float64.parquet", "a.parquet")] {
        if let Some(path) = common::fixture(fixture) {
            torture(&Good::one(name, fs::read(path).unwrap()));
        }
    }
}

#[test]
fn random_bytes_after_a_good_start() {
    random("a.hdf5", b"\x89HDF\r\n\x1a\n");
    random("a.parquet", b"PAR1");
    random("a.npy", b"\x93NUMPY\x01\x00");
    random("a.fbin", b"");
    random("a.fvecs", b"\x04\0\0\0");
    random("a.ivecs", b"\x04\0\0\0");
    random("a.csv", b"id,a,b\n");
    random("a.u8bin", b"\x02\0\0\0");
}

#[test]
fn what_a_file_says_reaches_no_message_as_a_line_break_or_a_terminals_escape() {
    let dir = tempfile::tempdir().unwrap();
    let good = Good::one("base.npy", npy("<f\n\x1b[2J", 30, 4, vec![0; 480]));
    check(good.open_with(dir.path(), &good.files[0].1));
}

#[test]
fn the_elements_that_are_stored_as_they_are_keep_their_type() {
    // So that the files above are known to be read and not just refused.
    let dir = tempfile::tempdir().unwrap();
    let set = Good::one("base.u8bin", bin(30, 4, |i| vec![i as u8]));
    let read = set.open_with(dir.path(), &set.files[0].1).unwrap();
    assert_eq!((read.base.rows(), read.base.element()), (30, Element::U8));
}
