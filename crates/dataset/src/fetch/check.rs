//! Is this content what the file should hold?
//!
//! What is here: the first bytes against the format's mark, error pages, checksums, and the header
//! of an fbin-like file whose head alone is fetched.

use super::Event;
use crate::DatasetError;
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// How many bytes from the start [`wrong_start`] wants, where the file has so many.
pub(super) const START_BYTES: usize = 16;

/// The mark that files with this ending begin with.
fn mark(name: &str) -> Option<(&'static str, &'static [u8])> {
    let ending = name.rsplit('.').next()?.to_ascii_lowercase();
    match ending.as_str() {
        "hdf5" | "h5" => Some(("HDF5", b"\x89HDF\r\n\x1a\n")),
        "parquet" => Some(("parquet", b"PAR1")),
        "gz" | "tgz" => Some(("gzip", b"\x1f\x8b")),
        "npy" => Some(("npy", b"\x93NUMPY")),
        _ => None,
    }
}

/// What is wrong with a file named `name` that begins with `start` and was sent as
/// `content_type`; none where nothing is.
pub(super) fn wrong_start(name: &str, start: &[u8], content_type: Option<&str>) -> Option<String> {
    let text: String = String::from_utf8_lossy(start).trim_start().to_ascii_lowercase();
    // What a Git host gives in place of a large file.
    if start.starts_with(b"version https://") {
        return Some("what came is a Git LFS pointer, not the file itself".to_owned());
    }
    let page = ["<!doctype", "<html", "<?xml", "<error", "<head"].iter().any(|tag| text.starts_with(tag));
    let sent_as_page = content_type.is_some_and(|kind| {
        let kind = kind.to_ascii_lowercase();
        kind.starts_with("text/html") || kind.starts_with("application/xhtml")
    });
    if let Some((format, mark)) = mark(name) {
        if start.starts_with(mark) {
            return None;
        }
        let found = if page || sent_as_page {
            "is an HTML or XML page".to_owned()
        } else {
            format!("begins with {:?}", String::from_utf8_lossy(&start[..start.len().min(8)]))
        };
        return Some(format!("what came {found}, not {format}"));
    }
    (page || sent_as_page).then(|| "what came is an HTML or XML page, not data".to_owned())
}

/// The first bytes of a file on disk, at most [`START_BYTES`].
pub(super) fn start_of(path: &Path) -> Result<Vec<u8>, DatasetError> {
    let file = File::open(path).map_err(DatasetError::io("read", path))?;
    let mut start = Vec::new();
    file.take(START_BYTES as u64).read_to_end(&mut start).map_err(DatasetError::io("read", path))?;
    Ok(start)
}

/// SHA-256 in hex.
pub(super) fn sha256(path: &Path, on: &mut dyn FnMut(Event<'_>)) -> Result<String, DatasetError> {
    on(Event::Checking { path });
    let mut file = File::open(path).map_err(DatasetError::io("read", path))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut buffer).map_err(DatasetError::io("read", path))?;
        if read == 0 {
            return Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        hasher.update(&buffer[..read]);
    }
}

/// Writes `rows` into the header of the fbin-like `path`, which holds the head of a longer file
/// and is `bytes` long. What is wrong with the header comes back as text.
pub(super) fn crop_header(path: &Path, rows: u64, bytes: u64) -> Result<Option<String>, DatasetError> {
    let mut file =
        OpenOptions::new().read(true).write(true).open(path).map_err(DatasetError::io("open", path))?;
    if bytes < 8 {
        return Ok(Some(format!("{bytes} bytes cannot hold a header")));
    }
    let mut header = [0; 8];
    file.read_exact(&mut header).map_err(DatasetError::io("read", path))?;
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let (found, dim) = (u64::from(word(0)), u64::from(word(4)));
    let wanted_dim = |width: u64| rows.checked_mul(dim).and_then(|n| n.checked_mul(width)) == Some(bytes - 8);
    if found < rows || !(wanted_dim(1) || wanted_dim(4)) {
        return Ok(Some(format!(
            "its header says {found} rows of {dim}, which is not a file whose first {rows} rows take {bytes} bytes"
        )));
    }
    let Ok(rows) = u32::try_from(rows) else {
        return Ok(Some(format!("{rows} rows do not fit in its header")));
    };
    file.seek(SeekFrom::Start(0)).map_err(DatasetError::io("write", path))?;
    file.write_all(&rows.to_le_bytes()).map_err(DatasetError::io("write", path))?;
    Ok(None)
}
