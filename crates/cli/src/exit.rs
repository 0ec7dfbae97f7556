//! The exit codes (docs/exit-codes.md) and how an outcome becomes one.

use crate::printer::Printer;
use runner::RunnerError;
use std::{io::ErrorKind, process::ExitCode};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything asked for was done, and the result may be used.
    Valid = 0,
    /// Our fault.
    Internal = 1,
    /// Wrong use, configuration or input.
    Usage = 2,
    /// A gate was not met.
    Gate = 3,
    /// Finished, but the result must not be used.
    NotValid = 4,
    /// An engine could not be reached or set up.
    Engine = 5,
    /// Interrupted; what was finished is saved.
    Interrupted = 130,
}

/// Input that is wrong: exit code 2 with this text.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// A shorthand for [`UsageError`] as an error of a command.
pub(crate) fn usage_error(text: impl Into<String>) -> anyhow::Error {
    UsageError(text.into()).into()
}

/// Clap's own errors: help and version go to standard output and are no failure.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // Nothing can be done where the terminal is gone.
    let _closed = error.print();
    ExitCode::from(if error.use_stderr() { Outcome::Usage as u8 } else { 0 })
}

/// Prints an error, if any, and gives the exit code.
pub(crate) fn finish(outcome: anyhow::Result<Outcome>, printer: &Printer) -> ExitCode {
    match outcome {
        Ok(outcome) => ExitCode::from(outcome as u8),
        Err(error) if is_broken_pipe(&error) => ExitCode::from(Outcome::Valid as u8),
        Err(error) => {
            let outcome = classify(&error);
            printer.error(&one_line(&error));
            ExitCode::from(outcome as u8)
        }
    }
}

/// The error and its causes, each said once.
fn one_line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&cause);
        }
    }
    text.replace('\n', " ")
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
    };
    error.chain().any(broken)
}

/// What the engine lacks, or an option that it does not know, is for the user to correct.
fn engine_outcome(error: &engine::EngineError) -> Outcome {
    match error.kind() {
        engine::ErrorKind::Unsupported => Outcome::Usage,
        engine::ErrorKind::Stopped => Outcome::Interrupted,
        _ => Outcome::Engine,
    }
}

fn classify(error: &anyhow::Error) -> Outcome {
    for cause in error.chain() {
        if let Some(error) = cause.downcast_ref::<RunnerError>() {
            return match error {
                RunnerError::Plan(_) | RunnerError::Refused(_) => Outcome::Usage,
                RunnerError::Dataset(_) | RunnerError::Exact(_) | RunnerError::Record(_) => Outcome::Usage,
                RunnerError::Engine { source, .. } => engine_outcome(source),
                RunnerError::Interrupted => Outcome::Interrupted,
            };
        }
        if cause.is::<UsageError>()
            || cause.is::<dataset::DatasetError>()
            || cause.is::<exact::ExactError>()
            || cause.is::<engine::DefinitionError>()
            || cause.is::<types::FilterError>()
            || cause.is::<record::RecordError>()
            || cause.is::<report::ReportError>()
        {
            return Outcome::Usage;
        }
        if let Some(error) = cause.downcast_ref::<engine::EngineError>() {
            return engine_outcome(error);
        }
    }
    Outcome::Internal
}
