//! Writing data sets for other tools: ann-benchmarks HDF5 and big-ann's binary files.
//!
//! Both are written under another name and renamed when whole. What is not here: parquet (see
//! `parquet`) and Annvil's own directory (see `directory`).

mod fbin;
mod hdf5;
mod hdf5_messages;
#[cfg(test)]
mod tests;

pub use fbin::{fbin, truth as truth_ibin};
pub use hdf5::{hdf5, hdf5_head};

use crate::{Dataset, DatasetError};
use std::{
    fs::{self, File},
    io::BufWriter,
    path::{Path, PathBuf},
};
use types::{Ids, Truth};

/// A file under another name until [`Part::finish`]; removed where that is never called.
struct Part {
    target: PathBuf,
    part: PathBuf,
    out: BufWriter<File>,
}

impl Part {
    fn create(target: &Path) -> Result<Self, DatasetError> {
        if target.exists() {
            let reason = "exists already; remove it or name another file";
            return Err(DatasetError::invalid(target, reason));
        }
        let name = target.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let part = target.with_file_name(format!(".{name}.{}.part", std::process::id()));
        let file = File::create(&part).map_err(DatasetError::io("create", &part))?;
        Ok(Part { target: target.to_owned(), part, out: BufWriter::with_capacity(1 << 20, file) })
    }

    fn write(
        &mut self,
        body: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
    ) -> Result<(), DatasetError> {
        body(&mut self.out).map_err(DatasetError::io("write", &self.part))
    }

    fn finish(mut self) -> Result<(), DatasetError> {
        use std::io::Write;
        self.write(|out| {
            out.flush()?;
            out.get_ref().sync_all()
        })?;
        fs::rename(&self.part, &self.target).map_err(DatasetError::io("rename", &self.part))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // After the rename there is nothing under this name.
        let _gone = fs::remove_file(&self.part);
    }
}

/// What a format that holds only vectors and truth cannot keep, a sentence each.
fn left_out(dataset: &Dataset, format: &str) -> Vec<String> {
    let mut lost = Vec::new();
    if !matches!(dataset.ids, Ids::RowNumbers(_)) {
        lost.push(format!("ids are left out: {format} knows rows by number"));
    }
    if dataset.columns.is_some() || dataset.query_columns.is_some() {
        lost.push(format!("columns are left out: {format} has none; write them as parquet or a directory"));
    }
    if !dataset.filtered.is_empty() {
        lost.push(format!("filtered truth is left out: {format} has none"));
    }
    lost
}

/// Whether a truth knows its distances.
fn has_distances(truth: &Truth) -> bool {
    (0..truth.queries()).all(|query| truth.of(query).iter().all(|n| !n.distance.is_nan()))
}
