//! Opening, reading and writing a run directory.

use crate::{FORMAT, Manifest, Point, RecordError};
use std::{
    fs::{self, File, OpenOptions},
    io::{BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// A run directory.
#[derive(Clone, Debug)]
pub struct RunDir {
    path: PathBuf,
}

/// The right to write to a run directory, until dropped or the process ends.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

const MANIFEST: &str = "manifest.json";
const RECORDS: &str = "records.jsonl";

/// Folders of a run.
const FOLDERS: [&str; 3] = ["raw", "series", "logs"];

/// What a run that was killed before its manifest was written may have left.
const OURS: [&str; 5] = ["raw", "series", "logs", ".lock", "manifest.tmp"];

/// Names of what a folder holds, sorted.
fn names(folder: &Path) -> std::io::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?.flatten();
    let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

/// What a folder holds, in words.
fn listed(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(8);
    names.truncate(8);
    match (names.is_empty(), more) {
        (true, _) => "the folder is empty".into(),
        (false, 0) => format!("it holds: {}", names.join(", ")),
        (false, more) => format!("it holds: {} and {more} more", names.join(", ")),
    }
}

impl RunDir {
    /// Makes a new run directory at `path` with its folders.
    ///
    /// # Errors
    /// Where something stands there already (a run, or files that are not of a run), or it can't be
    /// written.
    pub fn create(path: &Path) -> Result<Self, RecordError> {
        if [MANIFEST, RECORDS].iter().any(|name| path.join(name).exists()) {
            return Err(RecordError::Invalid {
                path: path.to_owned(),
                reason: "holds a run already; go on with --resume, replace it with --force, or choose another --out"
                    .into(),
            });
        }
        let foreign = |name: &String| !OURS.contains(&name.as_str());
        if let Ok(names) = names(path)
            && names.iter().any(foreign)
        {
            let there = listed(names);
            let reason = format!("is a folder of other things, {there}; choose another --out");
            return Err(RecordError::Invalid { path: path.to_owned(), reason });
        }
        for folder in FOLDERS {
            let folder = path.join(folder);
            fs::create_dir_all(&folder).map_err(RecordError::io("create", &folder))?;
        }
        Ok(RunDir { path: path.to_owned() })
    }

    /// Removes the run directory at `path` with all it holds.
    ///
    /// # Errors
    /// Where `path` is no run directory (nothing else is ever removed), or is in use.
    pub fn remove(path: &Path) -> Result<(), RecordError> {
        let lock = Self::open(path)?.lock()?;
        fs::remove_dir_all(path).map_err(RecordError::io("remove", path))?;
        drop(lock);
        Ok(())
    }

    /// Opens the run directory at `path`.
    ///
    /// # Errors
    /// Where there is none; the text says what was looked for and what is there.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        if path.join(MANIFEST).is_file() {
            return Ok(RunDir { path: path.to_owned() });
        }
        let there = match names(path) {
            Err(e) => format!("the folder can't be read ({e})"),
            Ok(names) => listed(names),
        };
        let reason = format!("is no run directory: looked for {MANIFEST}, {there}");
        Err(RecordError::Invalid { path: path.to_owned(), reason })
    }

    /// Takes the right to write.
    ///
    /// # Errors
    /// [`RecordError::Busy`] where another process has it.
    pub fn lock(&self) -> Result<RunLock, RecordError> {
        let path = self.path.join(".lock");
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(RecordError::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let pid = fs::read_to_string(&path).unwrap_or_default().trim().to_owned();
                return Err(RecordError::Busy { path: self.path.clone(), pid });
            }
            Err(fs::TryLockError::Error(e)) => return Err(RecordError::io("lock", &path)(e)),
        }
        file.set_len(0).map_err(RecordError::io("write", &path))?;
        write!(file, "{}", std::process::id()).map_err(RecordError::io("write", &path))?;
        Ok(RunLock { _file: file })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the raw figures of a point lie.
    pub fn raw_path(&self, key: &str) -> PathBuf {
        self.path.join("raw").join(format!("{key}.parquet"))
    }

    /// Where the series of an engine lies.
    pub fn series_path(&self, engine: &str) -> PathBuf {
        let safe: String = engine
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' })
            .collect();
        self.path.join("series").join(format!("{safe}.jsonl"))
    }

    /// Writes the manifest: temporary file, sync, rename.
    ///
    /// # Errors
    /// Where it can't be written.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), RecordError> {
        let path = self.path.join(MANIFEST);
        let mut text = serde_json::to_string_pretty(manifest).map_err(|e| RecordError::Invalid {
            path: path.clone(),
            reason: format!("can't be written: {e}"),
        })?;
        text.push('\n');
        write_atomically(&path, text.as_bytes())
    }

    /// Reads the manifest.
    ///
    /// # Errors
    /// Where it is missing, broken, or of another major format version.
    pub fn manifest(&self) -> Result<Manifest, RecordError> {
        let path = self.path.join(MANIFEST);
        let text = fs::read_to_string(&path).map_err(RecordError::io("read", &path))?;
        let invalid = |reason: String| RecordError::Invalid { path: path.clone(), reason };
        #[derive(serde::Deserialize)]
        struct Version {
            format: (u32, u32),
        }
        let version: Version =
            serde_json::from_str(&text).map_err(|e| invalid(format!("is no manifest of annvil: {e}")))?;
        if version.format.0 != FORMAT.0 {
            let (major, minor) = version.format;
            return Err(invalid(format!(
                "has format {major}.{minor}, this annvil reads {}.x; use an annvil of that version",
                FORMAT.0
            )));
        }
        serde_json::from_str(&text).map_err(|e| invalid(format!("is broken: {e}")))
    }

    /// Appends a finished point and syncs it.
    ///
    /// # Errors
    /// Where it can't be written.
    pub fn append(&self, point: &Point) -> Result<(), RecordError> {
        let path = self.path.join(RECORDS);
        let unwritable = |e: serde_json::Error| RecordError::Invalid {
            path: path.clone(),
            reason: format!("can't be written: {e}"),
        };
        let mut line = serde_json::to_string(point).map_err(unwritable)?;
        // A figure that is no number would be read back as an error, and spoil the whole file.
        serde_json::from_str::<Point>(&line).map_err(unwritable)?;
        line.push('\n');
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(&path)
            .map_err(RecordError::io("open", &path))?;
        drop_cut_line(&mut file).map_err(RecordError::io("repair", &path))?;
        let before = file.metadata().map_err(RecordError::io("read", &path))?.len();
        let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_data());
        if written.is_err() {
            // A full disk leaves half a line; take it back so that the file stays whole.
            let _ = file.set_len(before);
        }
        written.map_err(RecordError::io("write", &path))
    }

    /// All finished points, in the order in which they were finished. A last line that was cut
    /// off (the process was killed) is left out: that point is not finished.
    ///
    /// # Errors
    /// Where a line in the middle is broken.
    pub fn points(&self) -> Result<Vec<Point>, RecordError> {
        let (points, _) = self.read_points()?;
        Ok(points)
    }

    /// Removes a last line that was cut off, so that appending goes on at a line's start. Call it
    /// under the lock, before the first [`RunDir::append`] of a resumed run.
    ///
    /// # Errors
    /// As [`RunDir::points`].
    pub fn repair(&self) -> Result<Vec<Point>, RecordError> {
        let (points, whole) = self.read_points()?;
        let path = self.path.join(RECORDS);
        if path.exists() {
            let file = OpenOptions::new().write(true).open(&path).map_err(RecordError::io("open", &path))?;
            file.set_len(whole as u64).map_err(RecordError::io("write", &path))?;
            file.sync_all().map_err(RecordError::io("sync", &path))?;
        }
        Ok(points)
    }

    /// The points, and how many bytes the whole lines take.
    fn read_points(&self) -> Result<(Vec<Point>, usize), RecordError> {
        let path = self.path.join(RECORDS);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
            Err(e) => return Err(RecordError::io("read", &path)(e)),
        };
        let whole = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let mut points = Vec::new();
        for (number, line) in bytes[..whole].split(|&b| b == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            let point = serde_json::from_slice(line).map_err(|e| RecordError::Invalid {
                path: path.clone(),
                reason: format!(
                    "line {} is broken ({e}); restore the file or start again with --force",
                    number + 1
                ),
            })?;
            points.push(point);
        }
        Ok((points, whole))
    }
}

/// Removes the end of a file behind its last line end: a line that a kill cut off.
pub(crate) fn drop_cut_line(file: &mut File) -> std::io::Result<()> {
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.seek(SeekFrom::Start(length - 1))?;
        file.read_exact(&mut last)?;
    }
    if last == *b"\n" {
        return Ok(());
    }
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    file.set_len(whole as u64)
}

/// Writes a file under a temporary name, syncs it and renames it.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    write_with(path, |file| file.write_all(bytes).map_err(RecordError::io("write", path)))
}

/// [`write_atomically`] of what `fill` writes. Where it fails, nothing is left.
pub(crate) fn write_with(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&File>) -> Result<(), RecordError>,
) -> Result<(), RecordError> {
    let temporary = path.with_extension("tmp");
    let file = File::create(&temporary).map_err(RecordError::io("create", &temporary))?;
    let mut buffer = BufWriter::new(&file);
    let written = fill(&mut buffer)
        .and_then(|()| buffer.flush().map_err(RecordError::io("write", &temporary)))
        .and_then(|()| file.sync_all().map_err(RecordError::io("sync", &temporary)))
        .and_then(|()| fs::rename(&temporary, path).map_err(RecordError::io("rename", path)));
    if written.is_err() {
        // The first error is what counts; a temporary file that stays is overwritten next time.
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
#[path = "run_dir_tests.rs"]
mod tests;
