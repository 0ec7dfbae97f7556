//! numpy's `.npy`: a text header with type and shape, then the numbers
//! (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>).

use crate::{
    DatasetError, OpenOptions,
    convert::Stored,
    flat::Flat,
    mapping::Mapped,
    neighbours::{Against, Table},
    table::Array,
};
use std::{path::Path, sync::Arc};
use types::{ByteStore, Truth};

/// What a file begins with.
pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

struct Header {
    stored: Stored,
    big: bool,
    rows: usize,
    dim: usize,
    /// Where the numbers begin.
    offset: usize,
}

/// The vectors of a file, mapped where the type allows.
pub(crate) fn vectors(path: &Path, part: &str, options: &OpenOptions) -> Result<Flat, DatasetError> {
    vectors_in(path, Mapped::open(path)?, part, options)
}

/// The vectors of a file that `store` holds; `path` names it.
pub(crate) fn vectors_in(
    path: &Path,
    store: Arc<dyn ByteStore>,
    part: &str,
    options: &OpenOptions,
) -> Result<Flat, DatasetError> {
    let Header { stored, big, rows, dim, offset } = header(path, store.bytes())?;
    Array { path, part, rows, dim, stored, big }.mapped(options, store, offset, 0)
}

/// The truth in a table of integers.
pub(crate) fn truth(path: &Path, against: Against) -> Result<Truth, DatasetError> {
    let store = Mapped::open(path)?;
    let bytes = store.bytes();
    let Header { stored, big, rows, dim, offset } = header(path, bytes)?;
    let size = stored.size();
    let id = |entry: usize| {
        let at = offset + entry * size;
        let raw = bytes.get(at..at + size).unwrap_or_default();
        stored.integer(raw, big).ok_or_else(|| {
            let reason = format!("truth must be integers (row numbers), this is {}", stored.name());
            DatasetError::invalid(path, reason)
        })
    };
    Table { path, queries: rows, width: dim, id, distance: |_| f64::NAN }.truth(against)
}

fn header(path: &Path, bytes: &[u8]) -> Result<Header, DatasetError> {
    let refuse = |reason: &str| Err(DatasetError::invalid(path, reason));
    let Some((text, offset)) = header_text(bytes) else {
        return refuse("this is no .npy file, or its header is cut off");
    };
    let (Some(descr), Some(order), Some(shape)) =
        (field(text, "descr"), field(text, "fortran_order"), field(text, "shape"))
    else {
        return refuse("the header names no descr, fortran_order and shape");
    };
    let Some((stored, big)) = number_type(descr) else {
        return refuse(&format!(
            "numbers of type {descr} cannot be read; save as float32, float16, float64, uint8, int8 or bool"
        ));
    };
    let Some(shape) = shape_of(shape) else {
        return refuse(&format!("the shape {shape} cannot be read"));
    };
    let [rows, dim] = shape[..] else {
        return refuse(&format!(
            "the array has {} dimensions, vectors are rows of a table of 2",
            shape.len()
        ));
    };
    if order == "True" {
        return refuse("the array is stored column by column; save numpy.ascontiguousarray of it");
    }
    let expected = rows as u128 * dim as u128 * stored.size() as u128 + offset as u128;
    if expected != bytes.len() as u128 {
        return refuse(&format!(
            "the header says {rows} x {dim} {}, which takes {expected} bytes; the file has {}",
            stored.name(),
            bytes.len()
        ));
    }
    Ok(Header { stored, big, rows, dim, offset })
}

/// The text of the header and where the numbers begin.
fn header_text(bytes: &[u8]) -> Option<(&str, usize)> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (length, start): (usize, usize) = match rest.first()? {
        1 => (usize::from(u16::from_le_bytes(rest.get(2..4)?.try_into().ok()?)), 10),
        _ => (usize::try_from(u32::from_le_bytes(rest.get(2..6)?.try_into().ok()?)).ok()?, 12),
    };
    let end = start.checked_add(length)?;
    Some((std::str::from_utf8(bytes.get(start..end)?).ok()?, end))
}

/// The value of `name` in the header's dictionary: to the next comma outside brackets and quotes.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let key = text.find(&format!("'{name}'"))? + name.len() + 2;
    let value = text.get(key..)?.trim_start().strip_prefix(':')?.trim_start();
    let (mut depth, mut quoted) = (0_u32, false);
    for (at, letter) in value.char_indices() {
        match letter {
            '\'' => quoted = !quoted,
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => depth = depth.checked_sub(1)?,
            ',' | '}' if !quoted && depth == 0 => return Some(value[..at].trim()),
            _ => {}
        }
    }
    None
}

fn shape_of(text: &str) -> Option<Vec<usize>> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    inner.split(',').map(str::trim).filter(|n| !n.is_empty()).map(|n| n.parse().ok()).collect()
}

fn number_type(descr: &str) -> Option<(Stored, bool)> {
    let code = descr.trim_matches('\'');
    let mut letters = code.chars();
    let big = match letters.next()? {
        '<' | '|' | '=' => false,
        '>' => true,
        _ => return None,
    };
    let kind = letters.next()?;
    let size: usize = letters.as_str().parse().ok()?;
    let stored = match (kind, size) {
        ('f', 2 | 4 | 8) => Stored::Float(size),
        ('i', 1 | 2 | 4 | 8) => Stored::Signed(size),
        ('u', 1 | 2 | 4 | 8) => Stored::Unsigned(size),
        ('b', 1) => Stored::Bool,
        _ => return None,
    };
    Some((stored, big))
}
