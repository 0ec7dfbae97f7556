//! fvecs, bvecs and ivecs: each record is an i32 dimension and then that many f32, u8 or i32
//! (<http://corpus-texmex.irisa.fr>). All records of a file have one dimension.

use crate::{
    DatasetError, OpenOptions,
    convert::Stored,
    flat::Flat,
    mapping::Mapped,
    neighbours::{Against, Table},
    table::{Array, MAX_DIM},
};
use std::path::Path;
use types::{ByteStore, Truth};

/// Up to this size the dimension of every record is looked at; of larger files a sample, because
/// the look reads the whole file.
const CHECKED_WHOLE_BYTES: usize = 1 << 30;
const SAMPLE: usize = 4096;

/// The layout that an ending stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// f32 components.
    F,
    /// u8 components.
    B,
    /// i32 components.
    I,
}

impl Kind {
    /// The layout of files that end so.
    pub(crate) fn of_ending(ending: &str) -> Option<Kind> {
        match ending {
            "fvecs" => Some(Kind::F),
            "bvecs" => Some(Kind::B),
            "ivecs" => Some(Kind::I),
            _ => None,
        }
    }

    fn stored(self) -> Stored {
        match self {
            Kind::F => Stored::Float(4),
            Kind::B => Stored::Unsigned(1),
            Kind::I => Stored::Signed(4),
        }
    }
}

/// The vectors of a file, mapped (ivecs: converted).
pub(crate) fn vectors(
    path: &Path,
    kind: Kind,
    part: &str,
    options: &OpenOptions,
) -> Result<Flat, DatasetError> {
    let store = Mapped::open(path)?;
    let (rows, dim) = shape(path, kind, store.bytes())?;
    let stored = kind.stored();
    Array { path, part, rows, dim, stored, big: false }.mapped(options, store, 4, 4)
}

/// The truth in an ivecs file: ids alone.
pub(crate) fn truth(path: &Path, against: Against) -> Result<Truth, DatasetError> {
    let store = Mapped::open(path)?;
    let (queries, width) = shape(path, Kind::I, store.bytes())?;
    let bytes = store.bytes();
    let id = |entry: usize| {
        let at = entry / width * (width * 4 + 4) + 4 + entry % width * 4;
        Ok(i64::from(int(bytes, at).unwrap_or(-1)))
    };
    Table { path, queries, width, id, distance: |_| f64::NAN }.truth(against)
}

/// Rows and dimension, once all records are known to have that dimension.
fn shape(path: &Path, kind: Kind, bytes: &[u8]) -> Result<(usize, usize), DatasetError> {
    let refuse = |reason: String| Err(DatasetError::invalid(path, reason + &hint(bytes)));
    let Some(first) = int(bytes, 0) else {
        return refuse(format!(
            "{} bytes are no record: a record begins with 4 bytes of dimension",
            bytes.len()
        ));
    };
    let dim = match usize::try_from(first) {
        Ok(dim) if (1..=MAX_DIM).contains(&dim) => dim,
        _ => return refuse(format!("record 0 says dimension {first}; 1 to {MAX_DIM} can be read")),
    };
    let record = 4 + dim * kind.stored().size();
    let rows = bytes.len() / record;
    let left = bytes.len() % record;
    let step = match rows {
        _ if left != 0 || bytes.len() <= CHECKED_WHOLE_BYTES => 1,
        rows => rows.div_ceil(SAMPLE),
    };
    // A length field at the very end may stand before a cut-off body: it is looked at too.
    for row in (0..rows + usize::from(left >= 4)).step_by(step).chain(rows.checked_sub(1)) {
        let found = int(bytes, row * record).unwrap_or_default();
        if found != first {
            return refuse(format!("record {row} says dimension {found}, the others before it {dim}"));
        }
    }
    if left != 0 {
        return refuse(format!(
            "record {rows} is cut off: {left} bytes are left where a record of dimension {dim} takes {record}"
        ));
    }
    Ok((rows, dim))
}

/// Where the size fits an fbin-like header better, says so.
fn hint(bytes: &[u8]) -> String {
    let (Some(rows), Some(dim)) = (int(bytes, 0), int(bytes, 4)) else { return String::new() };
    let (Ok(rows), Ok(dim)) = (u64::try_from(rows), u64::try_from(dim)) else { return String::new() };
    for (size, name) in [(4, "fbin"), (1, "u8bin or i8bin")] {
        if rows > 0 && dim > 0 && u128::from(rows) * u128::from(dim) * size + 8 == bytes.len() as u128 {
            return format!("; the size fits {name} with {rows} x {dim}, rename the file if it is that");
        }
    }
    String::new()
}

/// The little-endian i32 at `at`.
fn int(bytes: &[u8], at: usize) -> Option<i32> {
    let raw = bytes.get(at..at.checked_add(4)?)?;
    Some(i32::from_le_bytes(raw.try_into().ok()?))
}

/// Rows and dimension where the whole of `bytes` could be records of `size`-byte components; for
/// hints about files that claim to be something else.
pub(crate) fn fits(bytes: &[u8], size: usize) -> Option<(usize, usize)> {
    let dim = usize::try_from(int(bytes, 0)?).ok().filter(|dim| (1..=MAX_DIM).contains(dim))?;
    let record = 4 + dim * size;
    let rows = bytes.len() / record;
    let second = rows < 2 || int(bytes, record) == int(bytes, 0);
    (bytes.len().is_multiple_of(record) && second).then_some((rows, dim))
}
