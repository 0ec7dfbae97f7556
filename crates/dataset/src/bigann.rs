//! The files of big-ann-benchmarks: fbin, f16bin, u8bin, i8bin, ibin, and the truth for k nearest
//! neighbours (with or without distances). Header: u32 rows, u32 columns; then the rows.

use crate::{
    DatasetError, OpenOptions,
    convert::Stored,
    flat::Flat,
    mapping::Mapped,
    neighbours::{Against, Table},
    table::Array,
    texmex,
};
use std::path::Path;
use types::{ByteStore, Truth};

/// Bytes before the first row.
pub(crate) const HEADER_BYTES: usize = 8;

/// The numbers of ibin, the one ending that is both of vectors and of truth.
pub(crate) const IBIN: Stored = Stored::Signed(4);

/// The number type that an ending stands for.
pub(crate) fn stored_of_ending(ending: &str) -> Option<Stored> {
    match ending {
        "fbin" => Some(Stored::Float(4)),
        "f16bin" => Some(Stored::Float(2)),
        "u8bin" => Some(Stored::Unsigned(1)),
        "i8bin" => Some(Stored::Signed(1)),
        "ibin" => Some(IBIN),
        _ => None,
    }
}

/// The vectors of a file, mapped (ibin: converted). A body that is too short is read as far as
/// `limit` where that is given and there.
pub(crate) fn vectors(
    path: &Path,
    stored: Stored,
    part: &str,
    limit: Option<usize>,
    options: &OpenOptions,
) -> Result<Flat, DatasetError> {
    let store = Mapped::open(path)?;
    let bytes = store.bytes();
    let (said, dim) = header(path, bytes)?;
    let body = bytes.len() - HEADER_BYTES;
    let expected = body_bytes(said, dim, stored.size());
    let wanted = limit.unwrap_or(said).min(said);
    let cropped = wanted < said && body_bytes(wanted, dim, stored.size()) <= body as u128;
    if expected != body as u128 && !(cropped && (body as u128) < expected) {
        return Err(mismatch(path, bytes, said, dim, stored));
    }
    Array { path, part, rows: wanted, dim, stored, big: false }.mapped(options, store, HEADER_BYTES, 0)
}

/// The truth of a k-nearest-neighbour file: ids, then distances where the size says so.
pub(crate) fn truth(path: &Path, against: Against) -> Result<Truth, DatasetError> {
    let store = Mapped::open(path)?;
    let bytes = store.bytes();
    let (queries, width) = header(path, bytes)?;
    let body = (bytes.len() - HEADER_BYTES) as u128;
    let with_distances = match body {
        body if body == body_bytes(queries, width, 8) => true,
        body if body == body_bytes(queries, width, 4) => false,
        _ if is_range_truth(bytes, queries, width) => {
            return Err(DatasetError::invalid(
                path,
                format!(
                    "this is range truth ({width} neighbours of {queries} queries, a different number each); \
                     Annvil measures the k nearest, remake the truth with `annvil truth`"
                ),
            ));
        }
        _ => {
            let (ids, both) = (body_bytes(queries, width, 4) + 8, body_bytes(queries, width, 8) + 8);
            let hint = hint(bytes);
            return Err(DatasetError::invalid(
                path,
                format!(
                    "the header says {queries} queries x {width} neighbours, which takes {ids} bytes, or {both} \
                     with distances; the file has {}{hint}",
                    bytes.len()
                ),
            ));
        }
    };
    let entries = queries * width;
    let word = |entry: usize| -> [u8; 4] {
        let at = HEADER_BYTES + entry * 4;
        bytes[at..at + 4].try_into().unwrap_or_default()
    };
    let id = |entry: usize| Ok(i64::from(i32::from_le_bytes(word(entry))));
    let distance = |entry: usize| match with_distances {
        true => f64::from(f32::from_le_bytes(word(entries + entry))),
        false => f64::NAN,
    };
    Table { path, queries, width, id, distance }.truth(against)
}

fn header(path: &Path, bytes: &[u8]) -> Result<(usize, usize), DatasetError> {
    let number = |at: usize| {
        let raw: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(raw)).ok()
    };
    match (number(0), number(4)) {
        (Some(rows), Some(columns)) if rows > 0 && columns > 0 => Ok((rows, columns)),
        (Some(rows), Some(columns)) => {
            let reason = format!("the header says {rows} x {columns}, which is no data{}", hint(bytes));
            Err(DatasetError::invalid(path, reason))
        }
        _ => {
            let reason = format!("{} bytes are less than the header of {HEADER_BYTES}", bytes.len());
            Err(DatasetError::invalid(path, reason))
        }
    }
}

fn body_bytes(rows: usize, dim: usize, size: usize) -> u128 {
    rows as u128 * dim as u128 * size as u128
}

fn mismatch(path: &Path, bytes: &[u8], rows: usize, dim: usize, stored: Stored) -> DatasetError {
    let expected = body_bytes(rows, dim, stored.size()) + HEADER_BYTES as u128;
    let mut hint = hint(bytes);
    for (size, endings) in [(1, "u8bin or i8bin"), (2, "f16bin"), (4, "fbin or ibin")] {
        let fits = body_bytes(rows, dim, size) + HEADER_BYTES as u128 == bytes.len() as u128;
        if hint.is_empty() && size != stored.size() && fits {
            hint = format!("; the size fits {endings}, rename the file if it is that");
        }
    }
    let row = (dim as u128 * stored.size() as u128).max(1);
    let there = (bytes.len() - HEADER_BYTES) as u128 / row;
    if hint.is_empty() && there < rows as u128 && there > 0 {
        hint = format!("; fetch it again, or use the rows that are there with --limit {there}");
    }
    DatasetError::invalid(
        path,
        format!(
            "the header says {rows} x {dim} {}, which takes {expected} bytes; the file has {}{hint}",
            stored.name(),
            bytes.len()
        ),
    )
}

/// Where the size fits records that each begin with their length, says so.
fn hint(bytes: &[u8]) -> String {
    for (size, ending) in [(4, "fvecs"), (1, "bvecs")] {
        if let Some((rows, dim)) = texmex::fits(bytes, size) {
            return format!(
                "; the size does fit {ending} with dim {dim} ({rows} records), rename the file if it is that"
            );
        }
    }
    String::new()
}

/// Whether the counts after the header add up to the total that it names.
fn is_range_truth(bytes: &[u8], queries: usize, total: usize) -> bool {
    let size = HEADER_BYTES as u128 + queries as u128 * 4 + total as u128 * 8;
    let Some(counts) = bytes.get(HEADER_BYTES..).and_then(|rest| rest.get(..queries.checked_mul(4)?)) else {
        return false;
    };
    let sum: u128 =
        counts.chunks_exact(4).map(|c| u128::from(u32::from_le_bytes([c[0], c[1], c[2], c[3]]))).sum();
    size == bytes.len() as u128 && sum == total as u128
}
