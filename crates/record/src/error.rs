//! What can go wrong with a run directory.

use std::path::{Path, PathBuf};

/// A run directory that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file system said no.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}: {reason}", path = path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, what was looked for, and what to do.
        reason: String,
    },
    /// Another Annvil writes to the directory.
    #[error("{path} is being written by another annvil (process {pid}); wait for it or choose another --out", path = path.display())]
    Busy {
        /// The directory.
        path: PathBuf,
        /// The other process.
        pid: String,
    },
}

impl RecordError {
    /// An [`RecordError::Io`] for `map_err`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> RecordError {
        let path = path.to_owned();
        move |source| RecordError::Io { action, path, source }
    }
}
