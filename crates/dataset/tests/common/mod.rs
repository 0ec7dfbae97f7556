//! Finding the fixtures, and small files made on the spot.
#![expect(dead_code, reason = "each test file uses a part of this")]
#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use dataset::{Dataset, OpenOptions, open};
use std::path::{Path, PathBuf};

/// The fixture of that name; none, with a word, where fixtures have not been made.
pub(crate) fn fixture(name: &str) -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fixtures/fx");
    let dir = std::env::var_os("ANNVIL_FIXTURES").map_or(own, PathBuf::from);
    found(dir.join(name), "fixtures missing, run cargo xtask test")
}

/// A file of the shared development data; none, with a word, where it is missing.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {name} of the shared data is missing");
    None
}

fn found(path: PathBuf, why: &str) -> Option<PathBuf> {
    if path.exists() {
        return Some(path);
    }
    let test = std::thread::current().name().unwrap_or("?").to_owned();
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{test}: {why} ({})", path.display());
    println!("skipped {test}: {why}");
    None
}

/// The fixture, opened.
pub(crate) fn open_fixture(name: &str) -> Option<Dataset> {
    let path = fixture(name)?;
    Some(open(&path, &OpenOptions::default()).unwrap_or_else(|e| panic!("{e}")))
}

/// What is said when the fixture is opened.
pub(crate) fn error(name: &str) -> Option<String> {
    let path = fixture(name)?;
    let message = open(&path, &OpenOptions::default()).expect_err("must be refused").to_string();
    assert!(!message.contains('\n'), "one line: {message}");
    Some(message)
}

/// The bytes of an fbin file with small numbers.
pub(crate) fn fbin(rows: u32, dim: u32) -> Vec<u8> {
    let mut bytes = [rows.to_le_bytes(), dim.to_le_bytes()].concat();
    for i in 0..rows * dim {
        bytes.extend_from_slice(&(i as f32 / 7.0).to_le_bytes());
    }
    bytes
}
