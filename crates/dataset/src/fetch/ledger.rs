//! `fetched.json` beside the files: what was fetched, from where, with which size and checksum.
//!
//! It stands in for checksums that publishers do not give: a file that still has the size and
//! SHA-256 of its transfer is right.

use crate::DatasetError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const NAME: &str = "fetched.json";

/// One file as it was when it arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Arrival {
    pub(super) url: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

/// What the ledger in `dir` says of the file `name`; none where there is no readable ledger.
pub(super) fn look_up(dir: &Path, name: &str) -> Option<Arrival> {
    read(dir).remove(name)
}

fn read(dir: &Path) -> BTreeMap<String, Arrival> {
    // A damaged ledger only means that files count as unknown.
    fs::read(dir.join(NAME)).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Adds or replaces an entry.
pub(super) fn enter(dir: &Path, name: &str, arrival: Arrival) -> Result<(), DatasetError> {
    let mut all = read(dir);
    all.insert(name.to_owned(), arrival);
    let path = dir.join(NAME);
    let part = dir.join(format!("{NAME}.{}.part", std::process::id()));
    let text =
        serde_json::to_vec_pretty(&all).map_err(|error| DatasetError::invalid(&path, error.to_string()))?;
    fs::write(&part, text).map_err(DatasetError::io("write", &part))?;
    fs::rename(&part, &path).map_err(DatasetError::io("write", &path))
}
