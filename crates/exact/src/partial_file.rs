//! A [`Partial`] as a file: the result of a shard, and the state of a search that was stopped.
//!
//! The file says of itself what it is of, so that parts of different jobs are never merged. The same
//! content gives the same bytes: no time, host or path is in it. It appears whole or not at all.
//!
//! Format 1, little-endian: the bytes `ANNVPRT1`; u64 length of the header and the header, a
//! [`PartHeader`] as JSON; the digests (32 bytes each) of the chunks of rows searched, as many as the
//! header says; per case and query u64 rows matching, u32 length of the list, then per neighbour u32
//! row and f64 key; last the BLAKE3 hash (32 bytes) of all before.
//!
//! What is not here: putting parts together (see `partial_merge`).

use crate::topk::Scored;
use crate::{ExactError, Partial};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use types::{Element, Metric};

const MAGIC: &[u8; 8] = b"ANNVPRT1";
const HASH: u64 = 32;
/// Bytes of a query without neighbours, and of a neighbour.
const QUERY_BYTES: u64 = 12;
const NEIGHBOUR_BYTES: u64 = 12;

/// What a search is of. Parts can be merged where all of it is equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartJob {
    /// Rows of the whole base.
    pub rows: u64,
    /// Components of a vector.
    pub dim: u64,
    /// Type of the base's components.
    pub element: Element,
    /// Number of queries.
    pub queries: u64,
    /// The metric.
    pub metric: Metric,
    /// Neighbours of each query.
    pub k: u64,
    /// The cases, in order.
    pub cases: Vec<PartFilter>,
    /// Content hash of the queries.
    pub queries_hash: String,
    /// Content hash of the columns, where a filter reads them.
    pub columns_hash: Option<String>,
    /// Content hash of the base, where it was known when the search began; a shard reads its own
    /// rows alone and has their digests instead.
    pub base_hash: Option<String>,
    /// Rows that a digest covers.
    pub chunk_rows: u64,
    /// How many shards the base is split into.
    pub shards: u32,
}

/// One case of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartFilter {
    /// The filter as it was typed; none for all rows.
    pub filter: Option<String>,
    /// What tells it from every other filter: [`crate::TruthKey::filter`].
    pub identity: String,
}

/// What a part file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartHeader {
    /// Name and version of the tool.
    pub tool: String,
    /// Name of the data set, for people.
    pub dataset: String,
    /// What the search is of.
    pub job: PartJob,
    /// Which shard, from 1.
    pub shard: u32,
    /// First row of the shard.
    pub begin: u64,
    /// Row behind its last.
    pub end: u64,
    /// Row behind the last that was searched: less than `end` where the search was stopped.
    pub searched: u64,
    /// Digests that follow the header.
    pub digests: u64,
}

impl PartJob {
    /// What differs between two jobs, as `what, ours, theirs`; none where they are one.
    pub fn difference(&self, other: &PartJob) -> Option<(&'static str, String, String)> {
        let named = |job: &PartJob| {
            let filters: Vec<&str> =
                job.cases.iter().map(|c| c.filter.as_deref().unwrap_or("all rows")).collect();
            [
                ("metric", job.metric.to_string()),
                ("k", job.k.to_string()),
                ("shape", format!("{} rows x {} {}", job.rows, job.dim, job.element)),
                ("number of queries", job.queries.to_string()),
                ("filters", filters.join("; ")),
                ("number of shards", job.shards.to_string()),
                ("hash of the queries", job.queries_hash.clone()),
                ("hash of the columns", job.columns_hash.clone().unwrap_or_else(|| "none".into())),
                ("hash of the base", job.base_hash.clone().unwrap_or_else(|| "none".into())),
                ("filters of each query", format!("{:?}", job.cases)),
                ("rows of a digest", job.chunk_rows.to_string()),
            ]
        };
        let mut pairs = named(self).into_iter().zip(named(other));
        pairs.find(|(a, b)| a.1 != b.1).map(|(a, b)| (a.0, a.1, b.1))
    }
}

impl PartHeader {
    /// Whether the search came to its end.
    pub fn is_finished(&self) -> bool {
        self.searched == self.end
    }

    /// Whether the counts fit one another, the rest of the file being `left` bytes long.
    fn check(&self, left: u64) -> Result<(), String> {
        let job = &self.job;
        if !(self.begin <= self.searched && self.searched <= self.end && self.end <= job.rows) {
            return Err(format!("rows {} to {} of {} make no sense", self.begin, self.end, job.rows));
        }
        if job.rows > u64::from(u32::MAX) {
            return Err(format!("{} rows are more than row numbers hold", job.rows));
        }
        if self.shard == 0 || self.shard > job.shards {
            return Err(format!("it is shard {} of {}", self.shard, job.shards));
        }
        if job.k == 0 || job.chunk_rows == 0 {
            return Err(format!("k {} and {} rows a digest make no sense", job.k, job.chunk_rows));
        }
        let rows = self.searched - self.begin;
        let expected = if job.base_hash.is_some() { 0 } else { rows.div_ceil(job.chunk_rows) };
        if self.digests != expected {
            return Err(format!("it has {} digests for {rows} rows", self.digests));
        }
        let lists =
            (job.cases.len() as u64).checked_mul(job.queries).and_then(|n| n.checked_mul(QUERY_BYTES));
        let least = self.digests.checked_mul(HASH).zip(lists).and_then(|(a, b)| a.checked_add(b));
        match least {
            Some(least) if least <= left => Ok(()),
            _ => Err(format!(
                "{} queries under {} filters are more than it has room for",
                job.queries,
                job.cases.len()
            )),
        }
    }
}

/// Writes a part file and gives its size in bytes. A file that is there is replaced at the end.
///
/// # Errors
/// Where it cannot be written.
pub fn write_part(
    path: &Path,
    header: &PartHeader,
    digests: &[[u8; 32]],
    partial: &Partial,
) -> Result<u64, ExactError> {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let part = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let header = PartHeader { digests: digests.len() as u64, ..header.clone() };
    let written = write_to(&part, &header, digests, partial).and_then(|bytes| {
        std::fs::rename(&part, path)?;
        Ok(bytes)
    });
    written.map_err(|source| {
        // The half file is of no use; that it cannot be removed changes nothing.
        drop(std::fs::remove_file(&part));
        ExactError::PartIo { action: "write", path: path.to_owned(), source }
    })
}

fn write_to(
    path: &Path,
    header: &PartHeader,
    digests: &[[u8; 32]],
    partial: &Partial,
) -> std::io::Result<u64> {
    let mut out = Hashed {
        out: BufWriter::with_capacity(1 << 20, File::create(path)?),
        hasher: blake3::Hasher::new(),
        bytes: 0,
    };
    let header = serde_json::to_vec(header)?;
    out.put(MAGIC)?;
    out.put(&(header.len() as u64).to_le_bytes())?;
    out.put(&header)?;
    out.put(digests.as_flattened())?;
    let mut bytes = Vec::new();
    for case in 0..partial.cases() {
        let case = partial.case(case);
        for (list, matching) in case.lists.iter().zip(&case.matching) {
            bytes.clear();
            bytes.extend_from_slice(&matching.to_le_bytes());
            bytes.extend_from_slice(&(list.len() as u32).to_le_bytes());
            for scored in list {
                bytes.extend_from_slice(&scored.row.to_le_bytes());
                bytes.extend_from_slice(&scored.key.to_le_bytes());
            }
            out.put(&bytes)?;
        }
    }
    let hash = out.hasher.finalize();
    out.put(hash.as_bytes())?;
    out.out.flush()?;
    out.out.get_ref().sync_all()?;
    Ok(out.bytes)
}

/// A file that is hashed while it is written.
struct Hashed {
    out: BufWriter<File>,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl Hashed {
    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}

/// A part file whose hash was found right, read query by query.
#[derive(Debug)]
pub struct PartReader {
    path: PathBuf,
    header: PartHeader,
    digests: Vec<[u8; 32]>,
    input: BufReader<File>,
    /// Bytes of lists not yet read.
    left: u64,
}

impl PartReader {
    /// Opens a part file and checks all of it against its hash.
    ///
    /// # Errors
    /// [`ExactError::PartIo`] where it cannot be read, [`ExactError::Part`] where it is none, is cut
    /// short or was changed.
    pub fn open(path: &Path) -> Result<PartReader, ExactError> {
        let fault = |reason: String| ExactError::Part { path: path.to_owned(), reason };
        let io = |source| ExactError::PartIo { action: "read", path: path.to_owned(), source };
        let mut input = BufReader::with_capacity(1 << 18, File::open(path).map_err(io)?);
        let length = input.get_ref().metadata().map_err(io)?.len();
        let no_part = || fault("is no part of a truth (write one with annvil truth --shard)".into());
        let mut head = [0; 16];
        let body = length.checked_sub(HASH).filter(|&n| n >= head.len() as u64).ok_or_else(no_part)?;
        input.read_exact(&mut head).map_err(io)?;
        if head[..7] != MAGIC[..7] {
            return Err(no_part());
        }
        if head[7] != MAGIC[7] {
            return Err(fault(
                "is a part in the format of another version; make it again with this one".into(),
            ));
        }
        verify(&mut input, body).map_err(io)?.then_some(()).ok_or_else(|| {
            fault("is cut short or was changed: its hash does not fit; make that shard again".into())
        })?;
        input.seek(SeekFrom::Start(head.len() as u64)).map_err(io)?;
        let header_bytes = u64::from_le_bytes(head[8..].try_into().unwrap_or_default());
        let left = (body - head.len() as u64).checked_sub(header_bytes);
        let left = left.ok_or_else(|| fault("its header is longer than the file".into()))?;
        // What is allocated is bounded by the file's real length.
        let mut header = vec![0; header_bytes as usize];
        input.read_exact(&mut header).map_err(io)?;
        let header: PartHeader =
            serde_json::from_slice(&header).map_err(|e| fault(format!("its header cannot be read: {e}")))?;
        header.check(left).map_err(|reason| fault(format!("its header is wrong: {reason}")))?;
        let mut digests = vec![[0; 32]; header.digests as usize];
        input.read_exact(digests.as_flattened_mut()).map_err(io)?;
        let left = left - header.digests * HASH;
        Ok(PartReader { path: path.to_owned(), header, digests, input, left })
    }

    /// Where it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds.
    pub fn header(&self) -> &PartHeader {
        &self.header
    }

    /// The digests of the chunks of rows searched; none where the job knows the base's hash.
    pub fn digests(&self) -> &[[u8; 32]] {
        &self.digests
    }

    /// The next query's list and the rows that qualify: all queries of the first case, then those of
    /// the next.
    pub(crate) fn next_query(&mut self) -> Result<(Vec<Scored>, u64), ExactError> {
        self.read_query().map_err(|reason| ExactError::Part { path: self.path.clone(), reason })
    }

    fn read_query(&mut self) -> Result<(Vec<Scored>, u64), String> {
        let mut head = [0; QUERY_BYTES as usize];
        self.take(&mut head)?;
        let matching = u64::from_le_bytes(head[..8].try_into().unwrap_or_default());
        let length = u32::from_le_bytes(head[8..].try_into().unwrap_or_default());
        let rows = self.header.searched - self.header.begin;
        let bytes = u64::from(length) * NEIGHBOUR_BYTES;
        if u64::from(length) > self.header.job.k.min(matching) || matching > rows || bytes > self.left {
            return Err(format!("a list of {length} neighbours among {matching} rows makes no sense"));
        }
        let mut raw = vec![0; bytes as usize];
        self.take(&mut raw)?;
        let scored = |raw: &[u8]| Scored {
            row: u32::from_le_bytes(raw[..4].try_into().unwrap_or_default()),
            key: f64::from_le_bytes(raw[4..].try_into().unwrap_or_default()),
        };
        let list: Vec<Scored> = raw.chunks_exact(NEIGHBOUR_BYTES as usize).map(scored).collect();
        let inside = |s: &Scored| (self.header.begin..self.header.searched).contains(&u64::from(s.row));
        if !list.is_sorted_by(|a, b| a < b) || !list.iter().all(|s| inside(s) && !s.key.is_nan()) {
            return Err("a list of neighbours is out of order or names rows of another shard".into());
        }
        Ok((list, matching))
    }

    fn take(&mut self, into: &mut [u8]) -> Result<(), String> {
        let left = self.left.checked_sub(into.len() as u64).ok_or("its lists end too early")?;
        self.input.read_exact(into).map_err(|e| format!("cannot be read: {e}"))?;
        self.left = left;
        Ok(())
    }

    /// That nothing follows the last list.
    pub(crate) fn end(&self) -> Result<(), ExactError> {
        if self.left == 0 {
            return Ok(());
        }
        let reason = format!("{} bytes follow its last list", self.left);
        Err(ExactError::Part { path: self.path.clone(), reason })
    }

    /// All of it, to go on from.
    ///
    /// # Errors
    /// [`ExactError::Part`] where a list makes no sense.
    pub fn into_partial(mut self) -> Result<Partial, ExactError> {
        let (cases, queries) = (self.header.job.cases.len(), self.header.job.queries as usize);
        let mut lists = Vec::with_capacity(cases);
        for _ in 0..cases {
            lists.push((0..queries).map(|_| self.next_query()).collect::<Result<Vec<_>, _>>()?);
        }
        self.end()?;
        Ok(Partial::of_lists(self.header.begin as usize..self.header.searched as usize, lists))
    }
}

/// Whether the hash behind the first `body` bytes is theirs. Reads from the start.
fn verify(input: &mut BufReader<File>, body: u64) -> std::io::Result<bool> {
    input.seek(SeekFrom::Start(0))?;
    let mut hasher = blake3::Hasher::new();
    let mut block = vec![0; 1 << 20];
    let mut left = body;
    while left > 0 {
        let part = &mut block[..left.min(1 << 20) as usize];
        input.read_exact(part)?;
        hasher.update(part);
        left -= part.len() as u64;
    }
    let mut hash = [0; HASH as usize];
    input.read_exact(&mut hash)?;
    Ok(hasher.finalize().as_bytes() == &hash)
}

#[cfg(test)]
#[path = "partial_file_tests.rs"]
mod tests;
