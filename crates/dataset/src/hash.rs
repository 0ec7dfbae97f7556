//! Content hashes: the same for the same numbers, whatever file they came from.
//!
//! What is here: BLAKE3 over shape, element type and row bytes without gaps, and the memory of
//! hashes of large files. What is not: checksums of downloaded files (see `fetch`).

use crate::model::{Dataset, FilteredTruth, Hashes};
use blake3::Hasher;
use std::{fs, path::PathBuf};
use types::{ColumnData, Columns, Truth, Vectors};

/// Rows that do not lie one after the other are gathered into blocks of this many bytes.
const BLOCK_BYTES: usize = 8 << 20;

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

/// The hash of vectors: element name, rows, dimension, then the bytes of each row.
pub fn vectors(vectors: &Vectors) -> String {
    let mut hasher = Hasher::new();
    hasher.update(vectors.element().name().as_bytes());
    hasher.update(&[0]);
    update_count(&mut hasher, vectors.rows());
    update_count(&mut hasher, vectors.dim());
    if let Some(bytes) = vectors.contiguous_bytes() {
        hasher.update_rayon(bytes);
        return short(&hasher);
    }
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    for row in 0..vectors.rows() {
        block.extend_from_slice(vectors.row_bytes(row));
        if block.len() >= BLOCK_BYTES {
            hasher.update_rayon(&block);
            block.clear();
        }
    }
    hasher.update_rayon(&block);
    short(&hasher)
}

/// The hash of base and query columns; none where there are none.
fn of_columns(base: Option<&Columns>, queries: Option<&Columns>) -> Option<String> {
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
