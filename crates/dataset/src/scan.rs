//! One pass over all rows on all cores: what is not finite, what is zero, norms, and which rows
//! repeat another. What is not here: what follows from it (see `validate` and `describe`).

use rayon::prelude::*;
use serde::Serialize;
use std::ops::Range;
use types::{Element, Vectors};

/// Rows that one task looks at.
const TASK_ROWS: usize = 4096;

/// How many rows of a kind are named; all are counted.
pub(crate) const NAMED_ROWS: usize = 20;

/// Above this many rows repeats are not looked for: the table of hashes takes 16 bytes a row.
const DUPLICATES_UP_TO: usize = 1 << 26;

/// Rows of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NamedRows {
    /// All of them.
    pub(crate) count: u64,
    /// The first [`NAMED_ROWS`].
    pub(crate) rows: Vec<u64>,
}

impl NamedRows {
    pub(crate) fn add(&mut self, row: u64) {
        self.count += 1;
        if self.rows.len() < NAMED_ROWS {
            self.rows.push(row);
        }
    }

    fn append(&mut self, later: &NamedRows) {
        self.count += later.count;
        let room = NAMED_ROWS - self.rows.len();
        self.rows.extend(later.rows.iter().take(room));
    }

    /// "row 7" or "rows 1, 2, 3 ...".
    pub(crate) fn words(&self) -> String {
        let shown: Vec<String> = self.rows.iter().take(6).map(u64::to_string).collect();
        let dots = if self.count > shown.len() as u64 { " ..." } else { "" };
        format!("{} {}{dots}", if self.count == 1 { "row" } else { "rows" }, shown.join(", "))
    }
}

/// Rows that are equal byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Duplicates {
    /// Rows that repeat an earlier one.
    pub repeats: u64,
    /// Different rows.
    pub distinct: u64,
    /// How often the most frequent row stands there.
    pub most: u64,
}

/// What a pass over the rows finds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scan {
    /// Rows with NaN or infinity.
    pub(crate) non_finite: NamedRows,
    /// Rows in which every component is 0.
    pub(crate) zero: NamedRows,
    /// Euclidean norm of each row, where asked for.
    pub(crate) norms: Vec<f32>,
    /// Repeated rows; none where there are too many rows to look.
    pub(crate) duplicates: Option<Duplicates>,
    /// Rows that repeat an earlier one, the first of them.
    pub(crate) repeats: NamedRows,
}

/// Looks at every row.
pub(crate) fn scan(vectors: &Vectors, want_norms: bool, want_duplicates: bool) -> Scan {
    let rows = vectors.rows();
    let hashing = want_duplicates && rows <= DUPLICATES_UP_TO;
    let tasks: Vec<Range<usize>> =
        (0..rows).step_by(TASK_ROWS).map(|start| start..rows.min(start + TASK_ROWS)).collect();
    let parts: Vec<(Scan, Vec<(u64, u32)>)> =
        tasks.into_par_iter().map(|range| look(vectors, range, want_norms, hashing)).collect();
    let mut all = Scan::default();
    let mut hashes = Vec::with_capacity(if hashing { rows } else { 0 });
    for (part, own) in parts {
        all.non_finite.append(&part.non_finite);
        all.zero.append(&part.zero);
        all.norms.extend(part.norms);
        hashes.extend(own);
    }
    if hashing {
        repeats(vectors, hashes, &mut all);
    }
    all
}

fn look(vectors: &Vectors, range: Range<usize>, norms: bool, hashing: bool) -> (Scan, Vec<(u64, u32)>) {
    let mut scan = Scan::default();
    let mut hashes = Vec::new();
    let mut numbers = vec![0.0_f32; vectors.dim()];
    let whole = !matches!(vectors.element(), Element::F32 | Element::F16);
    for row in range {
        let bytes = vectors.row_bytes(row);
        if norms || !whole {
            vectors.row_into(row, &mut numbers);
            if !numbers.iter().all(|x| x.is_finite()) {
                scan.non_finite.add(row as u64);
            }
        }
        let zero = if whole { bytes.iter().all(|b| *b == 0) } else { numbers.iter().all(|x| *x == 0.0) };
        if zero {
            scan.zero.add(row as u64);
        }
        if norms {
            let square: f64 = numbers.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
            scan.norms.push(square.sqrt() as f32);
        }
        if hashing {
            hashes.push((hash(bytes), row as u32));
        }
    }
    (scan, hashes)
}

/// A quick 64-bit hash (multiply and fold); equal hashes are compared byte for byte afterwards, so
/// it need not resist anyone.
fn hash(bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let fold = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * u128::from(ODD);
        (product as u64) ^ (product >> 64) as u64
    };
    let mut words = bytes.chunks_exact(8);
    let mut state = bytes.len() as u64 ^ ODD;
    for word in words.by_ref() {
        let mut eight = [0; 8];
        eight.copy_from_slice(word);
        state = fold(state, u64::from_le_bytes(eight).wrapping_add(ODD));
    }
    let mut rest = [0; 8];
    rest[..words.remainder().len()].copy_from_slice(words.remainder());
    fold(state, u64::from_le_bytes(rest).wrapping_add(ODD))
}

fn repeats(vectors: &Vectors, mut hashes: Vec<(u64, u32)>, all: &mut Scan) {
    hashes.par_sort_unstable();
    let mut later = Vec::new();
    let mut most = u64::from(!hashes.is_empty());
    for same in hashes.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
        // Rows of one hash are nearly always equal; where they are not, each kind has its first.
        let mut firsts: Vec<(u32, u64)> = Vec::new();
        for &(_, row) in same {
            let bytes = vectors.row_bytes(row as usize);
            match firsts.iter_mut().find(|(first, _)| vectors.row_bytes(*first as usize) == bytes) {
                Some((_, count)) => {
                    *count += 1;
                    most = most.max(*count);
                    later.push(u64::from(row));
                }
                None => firsts.push((row, 1)),
            }
        }
    }
    later.sort_unstable();
    let repeats = later.len() as u64;
    all.repeats = NamedRows { count: repeats, rows: later.into_iter().take(NAMED_ROWS).collect() };
    all.duplicates = Some(Duplicates { repeats, distinct: vectors.rows() as u64 - repeats, most });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_row_is_counted_across_tasks() {
        let rows = 3 * TASK_ROWS + 5;
        let mut values: Vec<f32> = (0..rows * 2).map(|i| i as f32 + 1.0).collect();
        values[2 * 7] = f32::NAN;
        values[2 * (rows - 1) + 1] = f32::INFINITY;
        for row in [5, TASK_ROWS + 3] {
            values[2 * row] = 0.0;
            values[2 * row + 1] = -0.0;
        }
        (values[2 * 9000], values[2 * 9000 + 1]) = (3.0, 4.0);
        let found = scan(&Vectors::from_f32(values, rows, 2).unwrap(), true, true);
        assert_eq!((found.non_finite.count, found.non_finite.rows), (2, vec![7, rows as u64 - 1]));
        assert_eq!(found.zero.rows, [5, TASK_ROWS as u64 + 3]);
        assert_eq!(found.repeats.rows, [TASK_ROWS as u64 + 3, 9000], "row 1 is 3, 4; the zeros are equal");
        assert_eq!(found.duplicates, Some(Duplicates { repeats: 2, distinct: rows as u64 - 2, most: 2 }));
        assert_eq!(found.norms[9000], 5.0);
    }

    #[test]
    fn bits_and_bytes_are_scanned_without_decoding() {
        let bytes = Vectors::from_bytes(vec![0, 0, 1, 2, 1, 2], 3, 2, Element::I8).unwrap();
        let found = scan(&bytes, false, true);
        assert_eq!((found.zero.rows, found.repeats.rows), (vec![0], vec![2]));
        assert_ne!(hash(&[0; 8]), hash(&[0; 9]), "the length counts");
    }
}
