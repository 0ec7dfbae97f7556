//! What can go wrong while showing a run.

use std::path::{Path, PathBuf};

/// A report that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The run directory cannot be read.
    #[error(transparent)]
    Record(#[from] record::RecordError),
    /// There is nothing to show.
    #[error("{path}: nothing to show: looked for {looked_for}; {there}", path = path.display())]
    Nothing {
        /// Where was looked.
        path: PathBuf,
        /// For what.
        looked_for: String,
        /// What is there, and what to do.
        there: String,
    },
    /// Points that were measured by different rules.
    #[error(
        "{path} holds points of measurement versions {versions}, which are never shown together; make one run per version", path = path.display()
    )]
    MixedMeasurement {
        /// The run directory.
        path: PathBuf,
        /// The versions, each with its number of points.
        versions: String,
    },
    /// Two runs that have nothing to compare.
    #[error("{a} (A) and {b} (B) can't be compared: {what}")]
    NotComparable {
        /// Name of the one.
        a: String,
        /// Name of the other.
        b: String,
        /// The part that differs, with both values.
        what: String,
    },
    /// A file of the report cannot be written.
    #[error("cannot {action} {path}: {source}; the run itself is unharmed", path = path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The page's template failed, which is a fault of ours.
    #[error("cannot make the page: {0}; this is a fault of annvil, please report it")]
    Template(#[from] minijinja::Error),
}

impl ReportError {
    /// A [`ReportError::Io`] for `map_err`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ReportError {
        let path = path.to_owned();
        move |source| ReportError::Io { action, path, source }
    }
}
