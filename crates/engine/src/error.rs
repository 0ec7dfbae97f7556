//! What an engine can answer instead of a result.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The kinds of failure that a run treats differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// No connection, or it broke.
    Unreachable,
    /// The server does not let us in.
    Denied,
    /// No answer within the limit.
    Timeout,
    /// The engine answered with an error.
    Refused,
    /// The engine is too busy or out of memory; trying later may work.
    Overloaded,
    /// A conflict between writers (deadlock, lock time-out); trying again may work.
    Conflict,
    /// The engine lacks what was asked for.
    Unsupported,
    /// An answer that no right engine gives (an id that cannot be one of our keys).
    WrongAnswer,
    /// The run was told to stop.
    Stopped,
    /// Our own fault.
    Bug,
}

impl ErrorKind {
    /// The name in records.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Unreachable => "unreachable",
            ErrorKind::Denied => "denied",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Refused => "refused",
            ErrorKind::Overloaded => "overloaded",
            ErrorKind::Conflict => "conflict",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::WrongAnswer => "wrong_answer",
            ErrorKind::Stopped => "stopped",
            ErrorKind::Bug => "bug",
        }
    }
}

/// A failure of an engine: its kind, one line that says what failed, on what and why, and the
/// cause.
#[derive(Debug)]
pub struct EngineError {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl EngineError {
    /// A failure without a deeper cause.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        EngineError { kind, message: message.into(), source: None }
    }

    /// A failure with its cause.
    pub fn caused(
        kind: ErrorKind,
        message: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        EngineError { kind, message: message.into(), source: Some(source.into()) }
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EngineError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|s| s as _)
    }
}
