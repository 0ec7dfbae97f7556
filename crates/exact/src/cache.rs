//! Truth kept on disk, named by what it was computed from.
//!
//! A file holds one truth at the greatest depth computed so far and serves any smaller `k`. A file
//! that is cut short, changed or of another format is as good as none: it is computed again.
//!
//! Format 1, little-endian: the bytes `ANNVTRU1`, u64 depth, u64 number of queries; per query u64
//! rows matching and u64 length of the list; then per neighbour u32 row and f64 distance; last the
//! BLAKE3 hash (32 bytes) of all before.

use crate::ExactError;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use types::{Metric, Neighbour, RowSet, Truth};

const MAGIC: &[u8; 8] = b"ANNVTRU1";
const HASH: usize = 32;

/// What determines a truth, but for its depth. Two keys are equal where all parts are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TruthKey {
    /// Content hash of the base vectors.
    pub base: String,
    /// Content hash of the queries.
    pub queries: String,
    /// Content hash of the columns, where a filter reads them.
    pub columns: Option<String>,
    /// The metric's name.
    pub metric: String,
    /// The filter as text (a template with its case, or empty for none).
    pub filter: String,
    /// Hash of the rows present, where not all are; see [`TruthKey::rows_hash`].
    pub rows: Option<String>,
}

impl TruthKey {
    /// The key of an unfiltered truth over all rows.
    pub fn new(base: &str, queries: &str, metric: Metric) -> TruthKey {
        TruthKey {
            base: base.to_owned(),
            queries: queries.to_owned(),
            metric: metric.name().to_owned(),
            ..TruthKey::default()
        }
    }

    /// Hash of a set of rows, for [`TruthKey::rows`].
    pub fn rows_hash(rows: &RowSet) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(rows.rows() as u64).to_le_bytes());
        for word in rows.words() {
            hasher.update(&word.to_le_bytes());
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }

    /// The key as 32 hex digits.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let parts = [
            Some("annvil truth 1"),
            Some(&self.base),
            Some(&self.queries),
            self.columns.as_deref(),
            Some(&self.metric),
            Some(&self.filter),
            self.rows.as_deref(),
        ];
        for part in parts {
            // Length first, so that no two lists of parts give the same bytes.
            let length = part.map_or(u64::MAX, |text| text.len() as u64);
            hasher.update(&length.to_le_bytes());
            hasher.update(part.unwrap_or_default().as_bytes());
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }
}

/// A directory of truths.
#[derive(Clone, Debug)]
pub struct TruthCache {
    directory: PathBuf,
}

impl TruthCache {
    /// A cache in `directory`, which is made when first written to.
    pub fn new(directory: impl Into<PathBuf>) -> TruthCache {
        TruthCache { directory: directory.into() }
    }

    /// Where the truth of `key` is or would be.
    pub fn path(&self, key: &TruthKey) -> PathBuf {
        self.directory.join(format!("{}.truth", key.digest()))
    }

    /// The truth in a file of a cache, whole; none where the file is damaged or none of these.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn read(path: &Path) -> std::io::Result<Option<Truth>> {
        Ok(decode(&std::fs::read(path)?))
    }

    /// The truth of `key` at depth `k`, where one at least as deep is kept whole.
    pub fn load(&self, key: &TruthKey, k: usize) -> Option<Truth> {
        let bytes = std::fs::read(self.path(key)).ok()?;
        let truth = decode(&bytes)?;
        (truth.depth() >= k).then(|| at_depth(&truth, k))
    }

    /// Keeps a truth, unless a deeper one is there. The file appears whole or not at all.
    ///
    /// # Errors
    /// Where the directory or file cannot be written.
    pub fn store(&self, key: &TruthKey, truth: &Truth) -> Result<(), ExactError> {
        if self.load(key, truth.depth()).is_some() {
            return Ok(());
        }
        std::fs::create_dir_all(&self.directory).map_err(ExactError::cache("create", &self.directory))?;
        let path = self.path(key);
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let unique = COUNT.fetch_add(1, Ordering::Relaxed);
        let part = path.with_extension(format!("{}-{unique}.part", std::process::id()));
        let written = write_synced(&part, &encode(truth)).and_then(|()| std::fs::rename(&part, &path));
        written.map_err(|source| {
            // The half file is of no use; that it cannot be removed changes nothing.
            drop(std::fs::remove_file(&part));
            ExactError::cache("write", &path)(source)
        })
    }

    /// The truth of `key` at depth `k`, computed by `compute` where it is not kept; true where it was.
    ///
    /// # Errors
    /// Those of `compute`, and where the new truth cannot be kept.
    pub fn get_or_compute(
        &self,
        key: &TruthKey,
        k: usize,
        compute: impl FnOnce() -> Result<Truth, ExactError>,
    ) -> Result<(Truth, bool), ExactError> {
        if let Some(truth) = self.load(key, k) {
            return Ok((truth, true));
        }
        let truth = compute()?;
        self.store(key, &truth)?;
        Ok((truth, false))
    }
}

fn write_synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// The first `k` of each list.
fn at_depth(truth: &Truth, k: usize) -> Truth {
    let mut out = Truth::new(k);
    (0..truth.queries()).for_each(|q| out.push(truth.of(q).iter().copied(), truth.matching(q)));
    out
}

fn encode(truth: &Truth) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    let put = |bytes: &mut Vec<u8>, value: u64| bytes.extend_from_slice(&value.to_le_bytes());
    put(&mut bytes, truth.depth() as u64);
    put(&mut bytes, truth.queries() as u64);
    for query in 0..truth.queries() {
        put(&mut bytes, truth.matching(query));
        put(&mut bytes, truth.of(query).len() as u64);
    }
    for neighbour in (0..truth.queries()).flat_map(|query| truth.of(query)) {
        bytes.extend_from_slice(&neighbour.row.to_le_bytes());
        bytes.extend_from_slice(&neighbour.distance.to_le_bytes());
    }
    let hash = blake3::hash(&bytes);
    bytes.extend_from_slice(hash.as_bytes());
    bytes
}

/// The truth in `bytes`; none where anything does not fit.
fn decode(bytes: &[u8]) -> Option<Truth> {
    let (body, hash) = bytes.split_at_checked(bytes.len().checked_sub(HASH)?)?;
    if blake3::hash(body).as_bytes() != hash {
        return None;
    }
    let rest = body.strip_prefix(MAGIC)?;
    let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
    let (head, rest) = rest.split_at_checked(16)?;
    let depth = usize::try_from(number(&head[..8])?).ok()?;
    let queries = usize::try_from(number(&head[8..])?).ok()?;
    let (table, mut lists) = rest.split_at_checked(queries.checked_mul(16)?)?;
    let mut truth = Truth::new(depth);
    for entry in table.chunks_exact(16) {
        let length = usize::try_from(number(&entry[8..])?).ok().filter(|&n| n <= depth)?;
        let (list, after) = lists.split_at_checked(length.checked_mul(12)?)?;
        lists = after;
        let neighbour = |raw: &[u8]| {
            let row = u32::from_le_bytes(raw[..4].try_into().ok()?);
            Some(Neighbour { row, distance: f64::from_le_bytes(raw[4..].try_into().ok()?) })
        };
        let list: Option<Vec<Neighbour>> = list.chunks_exact(12).map(neighbour).collect();
        truth.push(list?, number(&entry[..8])?);
    }
    lists.is_empty().then_some(truth)
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
