//! big-ann's binary files: u32 rows, u32 columns, then the rows.

use super::{has_distances, left_out};
use crate::{Dataset, DatasetError, directory};
use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
};
use types::{Element, Truth, Vectors};

/// Writes the new directory `dir` with `base`, `queries` (as fbin, f16bin, u8bin or i8bin) and,
/// where there is one, `truth.ibin` (ids, then distances where they are known; lists that are
/// shorter end in -1). Returns what was left out, a sentence each.
///
/// # Errors
/// Where `dir` exists, cannot be written, or the vectors are bits.
pub fn fbin(dataset: &Dataset, dir: &Path) -> Result<Vec<String>, DatasetError> {
    let Some(ending) = ending(dataset.base.element()) else {
        let reason = "bit vectors have no fbin; convert to hdf5 or to a directory";
        return Err(DatasetError::invalid(dir, reason));
    };
    let query_ending = ending_of(&dataset.queries, ending);
    directory::staged(dir, |part| {
        vectors(&part.join(format!("base.{ending}")), &dataset.base)?;
        if dataset.queries.rows() > 0 {
            vectors(&part.join(format!("queries.{query_ending}")), &dataset.queries)?;
        }
        match &dataset.truth {
            Some(found) => truth(&part.join("truth.ibin"), found),
            None => Ok(()),
        }
    })?;
    let mut lost = left_out(dataset, "fbin");
    if let Some(metric) = dataset.metric {
        lost.push(format!("the metric is not in the files: give --metric {metric} when they are opened"));
    }
    Ok(lost)
}

fn ending(element: Element) -> Option<&'static str> {
    match element {
        Element::F32 => Some("fbin"),
        Element::F16 => Some("f16bin"),
        Element::I8 => Some("i8bin"),
        Element::U8 => Some("u8bin"),
        Element::Bit => None,
    }
}

fn ending_of(vectors: &Vectors, fallback: &'static str) -> &'static str {
    ending(vectors.element()).unwrap_or(fallback)
}

fn vectors(path: &Path, vectors: &Vectors) -> Result<(), DatasetError> {
    file(path, vectors.rows(), vectors.dim(), |out| {
        (0..vectors.rows()).try_for_each(|row| out.write_all(vectors.row_bytes(row)))
    })
}

/// Writes a truth in big-ann's layout for k neighbours: ids, then distances where all are known.
/// Lists that are shorter than the deepest end in -1 at an infinite distance. An existing file is
/// replaced at the end, never cut.
///
/// # Errors
/// Where a row does not fit 32 signed bits, or the file cannot be written.
pub fn truth(path: &Path, truth: &Truth) -> Result<(), DatasetError> {
    let largest = (0..truth.queries()).flat_map(|q| truth.of(q)).map(|n| n.row).max().unwrap_or_default();
    if i32::try_from(largest).is_err() {
        return Err(DatasetError::invalid(path, format!("row {largest} does not fit the format's 32 bits")));
    }
    let depth = truth.depth();
    file(path, truth.queries(), depth, |out| {
        for query in 0..truth.queries() {
            let list = truth.of(query);
            for at in 0..depth {
                let id = list.get(at).map_or(-1, |n| n.row.cast_signed());
                out.write_all(&id.to_le_bytes())?;
            }
        }
        let known = if has_distances(truth) { truth.queries() } else { 0 };
        for query in 0..known {
            let list = truth.of(query);
            for at in 0..depth {
                let distance = list.get(at).map_or(f32::INFINITY, |n| n.distance as f32);
                out.write_all(&distance.to_le_bytes())?;
            }
        }
        Ok(())
    })
}

fn file(
    path: &Path,
    rows: usize,
    columns: usize,
    body: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<(), DatasetError> {
    let count = |n: usize| {
        u32::try_from(n).map_err(|_large| DatasetError::invalid(path, format!("{n} does not fit the header")))
    };
    let header = [count(rows)?.to_le_bytes(), count(columns)?.to_le_bytes()].concat();
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let part = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let created = File::create(&part).map_err(DatasetError::io("create", &part))?;
    let mut out = BufWriter::with_capacity(1 << 20, created);
    let write = || -> std::io::Result<()> {
        out.write_all(&header)?;
        body(&mut out)?;
        out.flush()?;
        out.get_ref().sync_all()?;
        fs::rename(&part, path)
    };
    write().map_err(|source| {
        // The error that is reported is the first one.
        let _gone = fs::remove_file(&part);
        DatasetError::io("write", path)(source)
    })
}
