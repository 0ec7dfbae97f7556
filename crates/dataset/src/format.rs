//! Which format a file has: by its ending, held against what it begins with.

use crate::{DatasetError, bigann, convert::Stored, directory, hdf5, npy, texmex};
use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

/// The formats that can be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// ann-benchmarks HDF5.
    Hdf5,
    /// One parquet file, several, or a directory of them.
    Parquet,
    /// Text.
    Csv,
    /// numpy.
    Npy,
    /// fvecs, bvecs, ivecs.
    Texmex(texmex::Kind),
    /// fbin and its kin.
    BigAnn(Stored),
    /// big-ann's truth under an ending of its own.
    KnnTruth,
    /// Annvil's own directory.
    Directory,
}

/// The endings, for messages.
pub(crate) const ENDINGS: &str = "hdf5, h5, fvecs, bvecs, ivecs, fbin, f16bin, u8bin, i8bin, ibin, npy, \
                                  parquet, csv, tsv, a directory with dataset.toml or with parquet \
                                  files; for truth also bin, gt";

/// The format of `path`.
pub(crate) fn recognise(path: &Path) -> Result<Format, DatasetError> {
    if directory::is_directory(path) {
        return Ok(Format::Directory);
    }
    if path.is_dir() {
        return Ok(Format::Parquet);
    }
    let ending = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let format = match ending.as_str() {
        "hdf5" | "h5" | "hdf" => Format::Hdf5,
        "parquet" => Format::Parquet,
        "csv" | "tsv" => Format::Csv,
        "npy" => Format::Npy,
        "bin" | "gt" => Format::KnnTruth,
        other => match (texmex::Kind::of_ending(other), bigann::stored_of_ending(other)) {
            (Some(kind), _) => Format::Texmex(kind),
            (_, Some(stored)) => Format::BigAnn(stored),
            _ => return Err(unknown(path, &ending)),
        },
    };
    // A glob names no file of its own.
    if format == Format::Parquet && path.to_string_lossy().contains(['*', '?', '[']) && !path.exists() {
        return Ok(format);
    }
    let start = beginning(path)?;
    if format == Format::Hdf5 && hdf5::is_behind_user_block(path)? {
        return Ok(format);
    }
    match (content(&start), format) {
        (Some(found), _) if found.format == Some(format) => Ok(format),
        // Numbers may begin with any bytes: a short magic proves nothing there.
        (Some(Content { sure: false, .. }), Format::Texmex(_) | Format::BigAnn(_) | Format::KnnTruth) => {
            Ok(format)
        }
        (Some(found), _) => Err(DatasetError::invalid(
            path,
            format!("the ending says {ending}, but the content is {}; {}", found.name, found.advice),
        )),
        (None, Format::Hdf5 | Format::Parquet | Format::Npy) => {
            let reason = match start.len() {
                0 => format!("the file is empty, {ending} was expected; fetch or make it again"),
                _ => format!(
                    "the ending says {ending}, but the file does not begin like one; fetch or make it again"
                ),
            };
            Err(DatasetError::invalid(path, reason))
        }
        (None, _) => Ok(format),
    }
}

fn unknown(path: &Path, ending: &str) -> DatasetError {
    let known = format!("known endings: {ENDINGS}");
    let start = match beginning(path) {
        Ok(start) => start,
        Err(error) => return error,
    };
    let reason = match (content(&start), ending) {
        (_, "npz") => "npz is an archive of several arrays; save the one needed as .npy".to_owned(),
        (Some(found), _) => {
            format!("unknown ending {ending:?}; the content looks like {}; {known}", found.name)
        }
        (None, "") => format!("the file has no ending; {known}"),
        (None, _) => format!("unknown ending {ending:?}; {known}"),
    };
    DatasetError::invalid(path, reason)
}

struct Content {
    format: Option<Format>,
    name: &'static str,
    advice: &'static str,
    /// Whether so many bytes agree that it cannot be chance.
    sure: bool,
}

/// What a file that begins so is.
fn content(start: &[u8]) -> Option<Content> {
    let found = |format, name, advice, sure| Some(Content { format, name, advice, sure });
    let rename = "rename the file";
    if start.starts_with(hdf5::MAGIC) {
        return found(Some(Format::Hdf5), "HDF5", rename, true);
    }
    if start.starts_with(npy::MAGIC) {
        return found(Some(Format::Npy), "npy", rename, true);
    }
    if start.starts_with(b"PAR1") {
        return found(Some(Format::Parquet), "parquet", rename, false);
    }
    if start.starts_with(b"PK\x03\x04") {
        return found(None, "a zip archive (npz?)", "unpack it first", false);
    }
    if start.starts_with(&[0x1f, 0x8b, 8]) || start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return found(None, "compressed", "unpack it first", false);
    }
    if start.starts_with(b"version https://git-lfs") {
        return found(None, "a Git LFS pointer", "fetch the file itself", true);
    }
    let text = String::from_utf8_lossy(&start[..start.len().min(256)]).trim_start().to_ascii_lowercase();
    if text.starts_with("<!doctype html") || text.starts_with("<html") || text.starts_with("<?xml") {
        return found(None, "a web page (an error of the server?)", "fetch the file again", true);
    }
    None
}

fn beginning(path: &Path) -> Result<Vec<u8>, DatasetError> {
    let file = File::open(path).map_err(DatasetError::io("open", path))?;
    let mut start = Vec::new();
    file.take(512).read_to_end(&mut start).map_err(DatasetError::io("read", path))?;
    Ok(start)
}

/// The name of a data set made of the file `path`.
pub(crate) fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "data".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// What lies beside a file of base vectors.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// Its queries.
    pub(crate) queries: Option<PathBuf>,
    /// Its truth.
    pub(crate) truth: Option<PathBuf>,
}

/// Queries and truth under the usual names: `sift_base.fvecs`, `sift_query.fvecs`,
/// `sift_groundtruth.ivecs`; `base.fbin`, `queries.fbin`, `truth.ibin`.
pub(crate) fn beside(path: &Path) -> Beside {
    let stem = stem(path);
    let (Some(at), Some(ending)) = (stem.find("base"), path.extension()) else { return Beside::default() };
    let ending = ending.to_string_lossy();
    let first = |words: &[&str], endings: &[&str]| {
        words.iter().flat_map(|word| endings.iter().map(move |e| (word, e))).find_map(|(word, e)| {
            let name = format!("{}{word}{}.{e}", &stem[..at], &stem[at + 4..]);
            let path = path.with_file_name(name);
            fs::metadata(&path).is_ok_and(|m| m.is_file()).then_some(path)
        })
    };
    let truth_endings = ["ivecs", "ibin", "bin", "gt", "npy"];
    Beside {
        queries: first(&["query", "queries"], &[&ending]),
        truth: first(&["groundtruth", "truth", "gt"], &truth_endings),
    }
}
