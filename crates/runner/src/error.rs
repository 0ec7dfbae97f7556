//! Why a run cannot go on. What only concerns a point is in its record instead.

use dataset::DatasetError;
use engine::EngineError;
use record::RecordError;

/// A run that cannot start or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The plan makes no sense.
    #[error("{0}")]
    Plan(String),
    /// A data set can't be read.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A data set can be read, but must not be used.
    #[error("{0}")]
    Refused(String),
    /// Truth or recall could not be computed.
    #[error("{0}")]
    Exact(#[from] exact::ExactError),
    /// The run directory can't be written or read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// An engine can't be reached or set up.
    #[error("{}", named(engine, source))]
    Engine {
        /// Which.
        engine: String,
        /// Why.
        source: EngineError,
    },
    /// Stopped by the user.
    #[error("interrupted")]
    Interrupted,
}

/// The error with the engine's name in front, once.
fn named(engine: &str, source: &EngineError) -> String {
    let text = source.to_string();
    if text.starts_with(engine) { text } else { format!("{engine}: {text}") }
}
