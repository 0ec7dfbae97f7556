//! Content hashes: the same for the same numbers, whatever file they came from.
//!
//! What is here: BLAKE3 over shape, element type and row bytes without gaps, and the memory of
//! hashes of large files. What is not: checksums of downloaded files (see `fetch`).
//!
//! The hash of vectors is a tree: a digest for each [`HASH_CHUNK_ROWS`] rows, and a hash over shape
//! and digests. So one who reads some of the rows hashes those alone, and the digests of all parts
//! together give the hash of the whole without reading it again.

use crate::model::{Dataset, FilteredTruth, Hashes};
use blake3::Hasher;
use rayon::prelude::*;
use std::{fs, ops::Range, path::PathBuf};
use types::{ColumnData, Columns, Element, Truth, Vectors};

/// Rows that one digest covers. A part of the content hash: with another number every hash changes.
pub const HASH_CHUNK_ROWS: usize = 1024;

/// Rows that do not lie one after the other are gathered into blocks of this many bytes: BLAKE3 is
/// fast on long input only.
const GATHER_BYTES: usize = 128 << 10;

/// Below this, reading everything again is faster than anything that could go wrong with a cache.
const CACHED_FROM_BYTES: u64 = 256 << 20;

/// A place that remembers the vector hashes of one large file.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    /// Directory of the memory; created when first written.
    pub(crate) dir: PathBuf,
    /// Hash of path, size, modification time and options: a changed file has another key.
    pub(crate) key: String,
    /// The (base, queries) that the key stands for; a set cut or changed since then has others.
    pub(crate) of: (Vectors, Vectors),
}

impl Cache {
    /// Whether the vectors of `dataset` are still those that were opened.
    fn fits(&self, dataset: &Dataset) -> bool {
        let (base, queries) = &self.of;
        [(base, &dataset.base), (queries, &dataset.queries)].into_iter().all(|(a, b)| {
            let shape = |v: &Vectors| (v.rows(), v.dim(), v.element());
            let first = |v: &Vectors| (v.rows() > 0).then(|| v.row_bytes(0).as_ptr());
            shape(a) == shape(b) && first(a) == first(b)
        })
    }

    fn path(&self) -> PathBuf {
        self.dir.join(format!("{}.hash", self.key))
    }

    /// The remembered (base, queries), where the entry is whole.
    fn load(&self) -> Option<(String, String)> {
        let text = fs::read_to_string(self.path()).ok()?;
        let mut words = text.split_ascii_whitespace();
        let (base, queries) = (words.next()?, words.next()?);
        let whole = |word: &str| word.len() == 32 && word.bytes().all(|b| b.is_ascii_hexdigit());
        (whole(base) && whole(queries) && words.next() == Some("end"))
            .then(|| (base.to_owned(), queries.to_owned()))
    }

    /// Remembers; a failure only means that the next run hashes again.
    fn save(&self, base: &str, queries: &str) {
        let part = self.dir.join(format!("{}.{}.part", self.key, std::process::id()));
        let written = fs::create_dir_all(&self.dir)
            .and_then(|()| fs::write(&part, format!("{base} {queries} end\n")))
            .and_then(|()| fs::rename(&part, self.path()));
        if written.is_err() {
            let _gone = fs::remove_file(&part);
        }
    }
}

/// All hashes of a data set.
pub(crate) fn of_dataset(dataset: &Dataset) -> Hashes {
    let (base, queries) = of_vectors_cached(dataset);
    Hashes {
        base,
        queries,
        columns: of_columns(dataset.columns.as_ref(), dataset.query_columns.as_ref()),
        truth: of_truth(dataset.truth.as_ref(), &dataset.filtered),
    }
}

fn of_vectors_cached(dataset: &Dataset) -> (String, String) {
    let bytes = dataset.base.payload_bytes() + dataset.queries.payload_bytes();
    let cache = dataset.hash_cache.as_ref().filter(|c| bytes >= CACHED_FROM_BYTES && c.fits(dataset));
    if let Some(known) = cache.and_then(Cache::load) {
        return known;
    }
    let fresh = (vectors(&dataset.base), vectors(&dataset.queries));
    if let Some(cache) = cache {
        cache.save(&fresh.0, &fresh.1);
    }
    fresh
}

/// The hash of vectors: that of their element type, shape and all [`chunk_digests`].
pub fn vectors(vectors: &Vectors) -> String {
    let digests = chunk_digests(vectors, 0..vectors.rows());
    hash_of_chunks(vectors.element(), vectors.rows(), vectors.dim(), &digests)
}

/// The BLAKE3 digest of the row bytes, without gaps, of every [`HASH_CHUNK_ROWS`] rows of `rows`;
/// the last chunk of all vectors may be shorter.
///
/// Runs on all threads of the current rayon pool, which take the chunks in the order of the file.
///
/// # Panics
/// Where `rows` does not begin at a multiple of [`HASH_CHUNK_ROWS`], ends neither at one nor at the
/// last row, or reaches past it.
pub fn chunk_digests(vectors: &Vectors, rows: Range<usize>) -> Vec<[u8; 32]> {
    let all = vectors.rows();
    assert!(rows.start <= rows.end && rows.end <= all, "rows {rows:?} of {all}");
    let whole = |row: usize| row.is_multiple_of(HASH_CHUNK_ROWS);
    assert!(whole(rows.start) && (whole(rows.end) || rows.end == all), "rows {rows:?} of {all}");
    let count = rows.len().div_ceil(HASH_CHUNK_ROWS);
    // A bridge hands out one chunk after the other. Splitting the range would have each thread
    // read another place of the file, which defeats the kernel's reading ahead.
    let found: Vec<(usize, [u8; 32])> = (0..count)
        .par_bridge()
        .map(|chunk| {
            let start = rows.start + chunk * HASH_CHUNK_ROWS;
            (chunk, digest(&vectors.slice(start..(start + HASH_CHUNK_ROWS).min(rows.end))))
        })
        .collect();
    let mut digests = vec![[0; 32]; count];
    for (chunk, digest) in found {
        digests[chunk] = digest;
    }
    digests
}

/// The hash of the vectors whose [`chunk_digests`] are `digests`: what [`vectors`] gives for them.
///
/// The number of digests is not checked: a wrong one gives a hash that no vectors have.
pub fn hash_of_chunks(element: Element, rows: usize, dim: usize, digests: &[[u8; 32]]) -> String {
    let mut hasher = Hasher::new();
    hasher.update(element.name().as_bytes());
    hasher.update(&[0]);
    update_count(&mut hasher, rows);
    update_count(&mut hasher, dim);
    hasher.update(digests.as_flattened());
    short(&hasher)
}

/// The digest of the rows of one chunk.
fn digest(chunk: &Vectors) -> [u8; 32] {
    if let Some(bytes) = chunk.contiguous_bytes() {
        return *blake3::hash(bytes).as_bytes();
    }
    let mut hasher = Hasher::new();
    let mut block = Vec::with_capacity(GATHER_BYTES);
    for row in 0..chunk.rows() {
        block.extend_from_slice(chunk.row_bytes(row));
        if block.len() >= GATHER_BYTES {
            hasher.update(&block);
            block.clear();
        }
    }
    hasher.update(&block);
    *hasher.finalize().as_bytes()
}

/// The hash of base and query columns; none where there are none.
pub fn of_columns(base: Option<&Columns>, queries: Option<&Columns>) -> Option<String> {
    if base.is_none() && queries.is_none() {
        return None;
    }
    let mut hasher = Hasher::new();
    for columns in [base, queries] {
        let Some(columns) = columns else {
            hasher.update(b"none\0");
            continue;
        };
        update_count(&mut hasher, columns.rows());
        for column in columns.iter() {
            update_text(&mut hasher, &column.name);
            update_column(&mut hasher, &column.data);
        }
        hasher.update(b"end\0");
    }
    Some(short(&hasher))
}

fn update_column(hasher: &mut Hasher, data: &ColumnData) {
    fn each<T>(hasher: &mut Hasher, kind: u8, values: &[Option<T>], put: impl Fn(&mut Hasher, &T)) {
        hasher.update(&[kind]);
        for value in values {
            hasher.update(&[u8::from(value.is_some())]);
            if let Some(value) = value {
                put(hasher, value);
            }
        }
    }
    match data {
        ColumnData::Int(values) => each(hasher, 1, values, |h, v| {
            h.update(&v.to_le_bytes());
        }),
        ColumnData::Float(values) => each(hasher, 2, values, |h, v| {
            h.update(&v.to_le_bytes());
        }),
        ColumnData::Bool(values) => each(hasher, 3, values, |h, v| {
            h.update(&[u8::from(*v)]);
        }),
        ColumnData::Text(values) => each(hasher, 4, values, |h, v| update_text(h, v)),
    }
}

/// The hash of the rows that all truth names; none where there is none. Distances do not count:
/// formats differ in whether and how they give them.
fn of_truth(truth: Option<&Truth>, filtered: &[FilteredTruth]) -> Option<String> {
    if truth.is_none() && filtered.is_empty() {
        return None;
    }
    let mut hasher = Hasher::new();
    hasher.update(&[u8::from(truth.is_some())]);
    if let Some(truth) = truth {
        update_truth(&mut hasher, truth);
    }
    for case in filtered {
        update_text(&mut hasher, &case.name);
        update_truth(&mut hasher, &case.truth);
    }
    Some(short(&hasher))
}

/// The hash of one truth: for each query the rows that qualify and the rows named; distances do not
/// count.
pub fn truth(truth: &Truth) -> String {
    let mut hasher = Hasher::new();
    update_truth(&mut hasher, truth);
    short(&hasher)
}

fn update_truth(hasher: &mut Hasher, truth: &Truth) {
    update_count(hasher, truth.queries());
    for query in 0..truth.queries() {
        update_count(hasher, truth.of(query).len());
        hasher.update(&truth.matching(query).to_le_bytes());
        for neighbour in truth.of(query) {
            hasher.update(&neighbour.row.to_le_bytes());
        }
    }
}

fn update_count(hasher: &mut Hasher, count: usize) {
    hasher.update(&(count as u64).to_le_bytes());
}

fn update_text(hasher: &mut Hasher, text: &str) {
    update_count(hasher, text.len());
    hasher.update(text.as_bytes());
}

/// The first 128 bits, as 32 hex digits.
pub(crate) fn short(hasher: &Hasher) -> String {
    let mut hex = hasher.finalize().to_hex().to_string();
    hex.truncate(32);
    hex
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use types::Element;

    #[test]
    fn gaps_between_rows_do_not_change_the_hash_but_numbers_shape_and_type_do() {
        let plain = Vectors::from_bytes(vec![1, 2, 3, 4], 2, 2, Element::U8).unwrap();
        let store: Arc<dyn types::ByteStore> = Arc::new(vec![9, 1, 2, 9, 3, 4]);
        let strided = Vectors::view(store, 1, 3, 2, 2, Element::U8).unwrap();
        assert_eq!(vectors(&plain), vectors(&strided));
        for (bytes, rows, dim, element) in [
            (vec![1, 2, 3, 5], 2, 2, Element::U8),
            (vec![1, 2, 3, 4], 1, 4, Element::U8),
            (vec![1, 2, 3, 4], 2, 2, Element::I8),
        ] {
            let other = Vectors::from_bytes(bytes, rows, dim, element).unwrap();
            assert_ne!(vectors(&plain), vectors(&other), "{other:?}");
        }
    }

    /// `rows` of three bytes, row i beginning at `1 + 5 * i`; and the same rows without gaps.
    fn strided_and_plain(rows: usize) -> (Vectors, Vectors) {
        let byte = |i: usize| (i * 7 + i / 251) as u8;
        let store: Arc<dyn types::ByteStore> = Arc::new((0..1 + 5 * rows).map(byte).collect::<Vec<u8>>());
        let strided = Vectors::view(store, 1, 5, rows, 3, Element::U8).unwrap();
        let plain = strided.select(0..rows);
        (strided, plain)
    }

    #[test]
    fn the_hash_is_that_of_shape_and_chunk_digests_as_the_header_says() {
        for rows in [0, 1, 1023, 1024, 1025, 5 * 1024, 5 * 1024 + 77] {
            let (strided, plain) = strided_and_plain(rows);
            let bytes = plain.contiguous_bytes().unwrap();
            let digests: Vec<[u8; 32]> =
                bytes.chunks(1024 * 3).map(|c| *blake3::hash(c).as_bytes()).collect();
            let mut all = b"u8\0".to_vec();
            all.extend((rows as u64).to_le_bytes());
            all.extend(3_u64.to_le_bytes());
            all.extend(digests.iter().flatten());
            let expected = blake3::hash(&all).to_hex()[..32].to_owned();
            assert_eq!(vectors(&plain), expected, "{rows} rows");
            assert_eq!(vectors(&strided), expected, "{rows} rows with gaps");
            assert_eq!(chunk_digests(&strided, 0..rows), digests);
        }
    }

    #[test]
    fn digests_of_parts_give_the_hash_of_the_whole() {
        let rows = 7 * HASH_CHUNK_ROWS + 5;
        let (strided, plain) = strided_and_plain(rows);
        let mut digests = Vec::new();
        for cut in [0, 1, 1, 4, 7, 8].windows(2) {
            let end = (cut[1] * HASH_CHUNK_ROWS).min(rows);
            digests.extend(chunk_digests(&strided, cut[0] * HASH_CHUNK_ROWS..end));
        }
        assert_eq!(hash_of_chunks(Element::U8, rows, 3, &digests), vectors(&plain));
        digests.swap(2, 3);
        assert_ne!(hash_of_chunks(Element::U8, rows, 3, &digests), vectors(&plain));
    }

    #[test]
    #[should_panic(expected = "rows 1..1024 of 1030")]
    fn a_part_that_cuts_a_chunk_is_refused() {
        let (plain, _) = strided_and_plain(1030);
        let _unaligned = chunk_digests(&plain, 1..1024);
    }

    #[test]
    fn a_missing_value_and_a_moved_letter_change_the_hash_of_columns() {
        let columns = |a: Option<&str>, b: Option<&str>| {
            let data = ColumnData::Text(vec![a.map(str::to_owned), b.map(str::to_owned)]);
            Columns::new(vec![types::Column { name: "t".to_owned(), data }]).unwrap()
        };
        let first = of_columns(Some(&columns(Some("ab"), Some("c"))), None);
        assert_ne!(first, of_columns(Some(&columns(Some("a"), Some("bc"))), None));
        assert_ne!(first, of_columns(Some(&columns(Some("ab"), None)), None));
        assert_eq!(of_columns(None, None), None);
    }
}
