//! What can be wrong with a data set, each in one line that names the file and the next step.

use std::path::{Path, PathBuf};

/// A data set that cannot be read, written or believed.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The file system said no.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// What was tried: "read", "write", "map" ...
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file is not what its name or its header says; `reason` says what was found, what was
    /// expected and what to do.
    #[error("{path}: {reason}", path = path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The request itself makes no sense (an unknown format, an option that does not fit).
    #[error("{0}")]
    Usage(String),
    /// A transfer failed.
    #[error("cannot fetch {url}: {reason}")]
    Fetch {
        /// From where.
        url: String,
        /// Why not, and where to put the file by hand.
        reason: String,
    },
}

impl DatasetError {
    /// An [`DatasetError::Io`] for `map_err`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> DatasetError {
        let path = path.to_owned();
        move |source| DatasetError::Io { action, path, source }
    }

    /// An [`DatasetError::Invalid`]. A reason may quote a foreign file: control characters (line
    /// breaks, a terminal's escapes) become spaces.
    pub fn invalid(path: &Path, reason: impl Into<String>) -> DatasetError {
        let reason = reason.into().replace(char::is_control, " ");
        DatasetError::Invalid { path: path.to_owned(), reason }
    }
}
