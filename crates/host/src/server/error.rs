//! What can go wrong with a server on this machine. Each text is one line: what, on what, why, what next.

use std::path::PathBuf;

/// Why a server could not be found, started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// No usable program.
    #[error(
        "{engine}: no usable program {program} on this machine (looked in {looked}{rejected}); install {install}, or name it: --program {engine}=PATH"
    )]
    NotFound {
        /// Name of the engine.
        engine: String,
        /// File name of the program.
        program: String,
        /// Where it was looked for.
        looked: String,
        /// Programs that were found and why each was passed over; empty, or begins with "; ".
        rejected: String,
        /// What to install.
        install: String,
    },
    /// The program that was named can't be used.
    #[error("{engine}: the program {path} can't be used: {reason}")]
    NotUsable {
        /// Name of the engine.
        engine: String,
        /// The path as given.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// A text of the definition can't be filled in.
    #[error("{engine}: {place} of its definition's [server] section: {reason}")]
    Definition {
        /// Name of the engine.
        engine: String,
        /// Which text.
        place: String,
        /// Why.
        reason: String,
    },
    /// There is no such user.
    #[error(
        "{engine}: its server must not run as root, and there is no user {user} in /etc/passwd to run as; run annvil as an ordinary user"
    )]
    NoUser {
        /// Name of the engine.
        engine: String,
        /// The user's name.
        user: String,
    },
    /// How much the server may use is not known.
    #[error(
        "how much memory this machine has is not known; say what the server may use: --server-memory SIZE"
    )]
    MemoryUnknown,
    /// The data folder can't be used.
    #[error("{engine}: can't keep its data in {path}: {reason}")]
    Data {
        /// Name of the engine.
        engine: String,
        /// The folder.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// A program of the initialising failed.
    #[error("{engine}: making the data folder failed: {program} {ending}; {words}")]
    Initialise {
        /// Name of the engine.
        engine: String,
        /// The program.
        program: String,
        /// How it ended.
        ending: String,
        /// Its last words and where the whole log is.
        words: String,
    },
    /// The server ended before it answered.
    #[error("{engine}: the server {program} {ending} while it started; {words}")]
    Died {
        /// Name of the engine.
        engine: String,
        /// The program.
        program: PathBuf,
        /// How it ended.
        ending: String,
        /// Its last words and where the whole log is.
        words: String,
    },
    /// The server runs, but does not listen.
    #[error(
        "{engine}: the server {program} runs, but after {seconds} s it does not accept connections on port {port}; {words}"
    )]
    Silent {
        /// Name of the engine.
        engine: String,
        /// The program.
        program: PathBuf,
        /// How long it was given.
        seconds: u64,
        /// Where it was to listen.
        port: u16,
        /// Its last words and where the whole log is.
        words: String,
    },
    /// The port that was asked for is in use.
    #[error(
        "{engine}: port {port} of 127.0.0.1 is in use by another program; name another, or none for a free one"
    )]
    PortTaken {
        /// Name of the engine.
        engine: String,
        /// The port.
        port: u16,
    },
    /// Someone asked to stop.
    #[error("{engine}: stopped while its server was being started")]
    Stopped {
        /// Name of the engine.
        engine: String,
    },
    /// The system refused something.
    #[error("{engine}: {what}: {source}")]
    System {
        /// Name of the engine.
        engine: String,
        /// What was tried, on what.
        what: String,
        /// Why not.
        source: std::io::Error,
    },
}

/// Makes errors of one engine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Of<'a>(pub(super) &'a str);

impl Of<'_> {
    /// For `map_err`: the system refused `what`.
    pub(super) fn system(self, what: impl Into<String>) -> impl FnOnce(std::io::Error) -> ServerError {
        let engine = self.0.to_owned();
        let what = what.into();
        move |source| ServerError::System { engine, what, source }
    }

    /// The data folder `path` can't be used.
    pub(super) fn data(self, path: &std::path::Path, reason: impl Into<String>) -> ServerError {
        ServerError::Data { engine: self.0.into(), path: path.into(), reason: reason.into() }
    }
}
