//! Flat copies of what cannot be mapped where it lies: compressed or chunked HDF5, parquet, CSV.
//!
//! A reader streams rows into a [`Sink`]. Small results stay in memory; larger ones go to a file in
//! the cache directory, which is mapped, and found again by the next run under a key of everything
//! that determines it. Without a cache directory it is a file in the directory for temporary files,
//! which goes with the last who uses it. So a set of any size takes little memory. What is not here:
//! any foreign format.

use crate::{DatasetError, mapping::Mapped};
use std::{
    fs::{self, File},
    io::{self, BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::UNIX_EPOCH,
};
use types::{ByteStore, Element, Vectors};

/// Above this a copy goes to a file.
const IN_MEMORY_BYTES: usize = 64 << 20;

/// Layout of a flat file: magic, rows, dim, element, bytes of notices, padding up to
/// [`HEADER_BYTES`]; the rows; the notices as lines of text.
const MAGIC: &[u8; 8] = b"annflat1";
const HEADER_BYTES: usize = 64;

/// Rows read before, with what was said about them then.
pub(crate) struct Flat {
    /// The rows.
    pub(crate) vectors: Vectors,
    /// What the reader said when it made the copy.
    pub(crate) notices: Vec<String>,
}

/// The key of what is made from `sources`: their paths, sizes, modification times, and `what`
/// (which part, and every option that changes the result).
pub(crate) fn key(sources: &[&Path], what: &str) -> Result<String, DatasetError> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(what.as_bytes());
    for source in sources {
        let full = fs::canonicalize(source).map_err(DatasetError::io("open", source))?;
        let meta = fs::metadata(source).map_err(DatasetError::io("read", source))?;
        let changed = meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
        hasher.update(b"\0");
        hasher.update(full.as_os_str().as_encoded_bytes());
        hasher.update(&meta.len().to_le_bytes());
        hasher.update(&changed.map_or(0, |t| t.as_nanos()).to_le_bytes());
    }
    Ok(crate::hash::short(&hasher))
}

/// The copy made earlier under `key`, where there is a whole one.
pub(crate) fn cached(cache_dir: Option<&Path>, key: &str) -> Option<Flat> {
    let store = Mapped::open(&flat_path(cache_dir?, key)).ok()?;
    let bytes = store.bytes();
    let header = bytes.get(..HEADER_BYTES)?;
    if &header[..8] != MAGIC {
        return None;
    }
    let number = |at: usize| {
        let raw = header.get(at..at + 8)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(raw)).ok()
    };
    let (rows, dim, said) = (number(8)?, number(16)?, number(32)?);
    let element = *ELEMENTS.get(number(24)?)?;
    let payload = rows.checked_mul(element.row_bytes(dim))?;
    let end = HEADER_BYTES.checked_add(payload)?;
    let text = std::str::from_utf8(bytes.get(end..)?).ok()?;
    if text.len() != said {
        return None;
    }
    let notices = text.lines().map(str::to_owned).collect();
    let stride = element.row_bytes(dim);
    let vectors = Vectors::view(store, HEADER_BYTES, stride, rows, dim, element).ok()?;
    Some(Flat { vectors, notices })
}

const ELEMENTS: [Element; 5] = [Element::F32, Element::F16, Element::I8, Element::U8, Element::Bit];

fn flat_path(cache_dir: &Path, key: &str) -> PathBuf {
    cache_dir.join(format!("{key}.flat"))
}

/// Takes rows one block after the other.
pub(crate) struct Sink {
    memory: Vec<u8>,
    written: u64,
    limit: usize,
    /// What all rows will take; none where only the end of the file tells.
    expected: Option<u64>,
    cache_dir: Option<PathBuf>,
    temp_dir: PathBuf,
    key: String,
    spill: Option<Spill>,
}

struct Spill {
    file: BufWriter<File>,
    part: PathBuf,
}

impl Spill {
    /// A new file of this process in `dir`.
    fn create(dir: &Path, key: &str) -> Result<Spill, DatasetError> {
        static SPILLS: AtomicU64 = AtomicU64::new(0);
        let number = SPILLS.fetch_add(1, Ordering::Relaxed);
        fs::create_dir_all(dir).map_err(DatasetError::io("create", dir))?;
        let part = dir.join(format!("annvil-{key}.{}.{number}.part", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&part);
        let file = file.map_err(DatasetError::io("create", &part))?;
        Ok(Spill { file: BufWriter::with_capacity(1 << 20, file), part })
    }

    /// Ends the file, and gives it the name under which it is to be found again.
    fn close(&mut self, header: &[u8], text: &[u8], target: Option<&Path>) -> io::Result<()> {
        self.file.write_all(text)?;
        self.file.flush()?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(header)?;
        self.file.flush()?;
        // Also where nobody looks for it after a crash: memory is given back only of pages that are
        // on the disk.
        self.file.get_ref().sync_all()?;
        target.map_or(Ok(()), |target| fs::rename(&self.part, target))
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        // After a rename there is nothing under this name; after an error there is half a file. A
        // temporary file loses its name here and lives on as long as it is mapped.
        let _gone = fs::remove_file(&self.part);
    }
}

impl Sink {
    /// A sink whose large results go to `cache_dir` under `key`, without one to a temporary file.
    /// `expected` bytes are named where there is no room for them.
    pub(crate) fn new(cache_dir: Option<&Path>, key: &str, expected: Option<u64>) -> Self {
        Sink {
            memory: Vec::new(),
            written: 0,
            limit: IN_MEMORY_BYTES,
            expected,
            cache_dir: cache_dir.map(Path::to_owned),
            temp_dir: std::env::temp_dir(),
            key: key.to_owned(),
            spill: None,
        }
    }

    #[cfg(test)]
    fn spill_above(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Adds the bytes of whole or partial rows.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), DatasetError> {
        self.written += bytes.len() as u64;
        if let Some(spill) = &mut self.spill {
            let written = spill.file.write_all(bytes);
            return written.map_err(|e| self.failed(e));
        }
        self.memory.extend_from_slice(bytes);
        // What is known to be large goes to the file at once.
        let large = self.expected.is_some_and(|expected| expected > self.limit as u64);
        if large || self.memory.len() > self.limit {
            let dir = self.cache_dir.as_ref().unwrap_or(&self.temp_dir);
            let spill = self.spill.insert(Spill::create(dir, &self.key)?);
            let written = spill.file.write_all(&[0; HEADER_BYTES]);
            written.and_then(|()| spill.file.write_all(&self.memory)).map_err(|e| self.failed(e))?;
            self.memory = Vec::new();
        }
        Ok(())
    }

    /// The error of a write to the copy.
    fn failed(&self, error: io::Error) -> DatasetError {
        let part = self.spill.as_ref().map_or(self.temp_dir.as_path(), |spill| &spill.part);
        let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        if !full {
            return DatasetError::io("write", part)(error);
        }
        let size = match self.expected {
            Some(bytes) => format!("{bytes} bytes"),
            None => format!("more than {} bytes", self.written),
        };
        let how = match self.cache_dir {
            Some(_) => "make room there or name another place with --cache-dir",
            None => "make room there, name another place with --cache-dir, or set TMPDIR",
        };
        let reason = format!("{error}; the flat copy of the vectors takes {size}, {how}");
        DatasetError::io("write", part)(io::Error::new(error.kind(), reason))
    }

    /// The rows written, `dim` wide; `source` names the file in an error.
    pub(crate) fn finish(
        mut self,
        source: &Path,
        dim: usize,
        element: Element,
        notices: Vec<String>,
    ) -> Result<Flat, DatasetError> {
        let row = element.row_bytes(dim);
        let rows = match row {
            0 => 0,
            row => usize::try_from(self.written / row as u64)
                .map_err(|_large| DatasetError::invalid(source, "more rows than this machine can address"))?,
        };
        let Some(spill) = &mut self.spill else {
            let vectors = Vectors::from_bytes(self.memory, rows, dim, element)
                .map_err(|e| DatasetError::invalid(source, e.to_string()))?;
            return Ok(Flat { vectors, notices });
        };
        let text = notices.join("\n");
        let place = ELEMENTS.iter().position(|&e| e == element).unwrap_or_default();
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend_from_slice(MAGIC);
        for number in [rows, dim, place, text.len()] {
            header.extend_from_slice(&(number as u64).to_le_bytes());
        }
        let target = self.cache_dir.as_ref().map(|dir| flat_path(dir, &self.key));
        let path = target.clone().unwrap_or_else(|| spill.part.clone());
        spill.close(&header, text.as_bytes(), target.as_deref()).map_err(|e| self.failed(e))?;
        let store: Arc<Mapped> = Mapped::open(&path)?;
        let vectors = Vectors::view(store, HEADER_BYTES, row, rows, dim, element)
            .map_err(|e| DatasetError::invalid(&path, e.to_string()))?;
        Ok(Flat { vectors, notices })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spilled_copy_is_found_again_and_a_damaged_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("source");
        fs::write(&source, "x").unwrap();
        let key = key(&[&source], "base").unwrap();
        let mut sink = Sink::new(Some(dir.path()), &key, None).spill_above(10);
        for row in 0..100_u8 {
            sink.write(&[row, 1, 2]).unwrap();
        }
        let made = sink.finish(&source, 3, Element::U8, vec!["said".to_owned()]).unwrap();
        assert_eq!((made.vectors.rows(), made.vectors.row_bytes(99)), (100, &[99, 1, 2][..]));
        let again = cached(Some(dir.path()), &key).unwrap();
        assert_eq!(again.notices, ["said"]);
        assert_eq!(again.vectors.contiguous_bytes(), made.vectors.contiguous_bytes());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no half file is left");
        let flat = flat_path(dir.path(), &key);
        let whole = fs::read(&flat).unwrap();
        fs::write(&flat, &whole[..whole.len() - 1]).unwrap();
        assert!(cached(Some(dir.path()), &key).is_none());
    }

    #[test]
    fn without_a_cache_a_large_copy_is_a_mapped_file_that_leaves_no_name() {
        let dir = tempfile::tempdir().unwrap();
        let mut sink = Sink::new(None, "key", None).spill_above(10);
        sink.temp_dir = dir.path().join("temp");
        for row in 0..100_u8 {
            sink.write(&[row, 1, 2]).unwrap();
        }
        assert_eq!(fs::read_dir(dir.path().join("temp")).unwrap().count(), 1);
        let made = sink.finish(Path::new("source"), 3, Element::U8, Vec::new()).unwrap();
        assert_eq!(fs::read_dir(dir.path().join("temp")).unwrap().count(), 0);
        assert!(made.vectors.is_mapped());
        assert_eq!((made.vectors.rows(), made.vectors.row_bytes(99)), (100, &[99, 1, 2][..]));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_named_with_the_size_that_is_needed() {
        let mut sink = Sink::new(Some(Path::new("/nowhere")), "key", Some(123_456)).spill_above(10);
        // Every write to this device fails as on a full disk.
        let full = File::options().write(true).open("/dev/full").unwrap();
        sink.spill = Some(Spill { file: BufWriter::with_capacity(1, full), part: "/nowhere/part".into() });
        let error = sink.write(&[1, 2, 3]).unwrap_err().to_string();
        for word in ["/nowhere/part", "123456 bytes", "--cache-dir", "No space"] {
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_changed_source_has_another_key() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("source");
        fs::write(&source, "x").unwrap();
        let before = key(&[&source], "base").unwrap();
        assert_ne!(before, key(&[&source], "queries").unwrap());
        fs::write(&source, "xy").unwrap();
        assert_ne!(before, key(&[&source], "base").unwrap());
    }
}
