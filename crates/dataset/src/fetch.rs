//! Fetching data sets over HTTP: resumed, retried, checked, never half.
//!
//! What is here: the files of a catalogue entry from their mirrors to their folder. `transfer`
//! brings one file, `http` makes one request, `check` says whether content is what it should be,
//! `ledger` remembers what was fetched. What is not: unpacking and opening.
//!
//! A file grows as `<name>.part` and takes its name only when it is whole, checked and synced. A
//! file that is there already with the right size and checksum is not fetched again; one with a
//! wrong checksum is named and fetched once more.

mod check;
mod http;
mod ledger;
#[cfg(test)]
mod tests;
mod transfer;

use crate::catalogue::{Entry, FileEntry};
use crate::{DatasetError, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name that servers see.
pub const USER_AGENT: &str = concat!("annvil/", env!("CARGO_PKG_VERSION"));

/// How to fetch. The names in messages are those of the command line's options. A proxy is taken
/// from the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`).
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// `--mirror URL`: base addresses in place of the catalogue's, tried in order. A file lies
    /// there at `<base>/<set>/<file>`, as on disk: a served copy of the data directory is a mirror.
    pub mirrors: Vec<String>,
    /// `--fetch-timeout`: the longest wait for a connection, for an answer, and without a byte (or
    /// with less than 1 KiB altogether). A transfer that goes on may take as long as it likes.
    pub timeout: Duration,
    /// `--tries`: how often one address is tried where the failure may pass; the count starts anew
    /// when bytes arrived. 0 counts as 1, and a file that the set can do without is tried at most
    /// twice.
    pub tries: u32,
    /// Wait before the second try; it doubles each time, up to a minute. A server's Retry-After
    /// counts where it is longer.
    pub backoff: Duration,
    /// Whether to fetch the files that a set can do without.
    pub optional_files: bool,
}

impl Default for FetchOptions {
    fn default() -> Self {
        FetchOptions {
            mirrors: Vec::new(),
            timeout: Duration::from_secs(60),
            tries: 4,
            backoff: Duration::from_secs(1),
            optional_files: true,
        }
    }
}

/// What happens, for a progress display.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// The file is there and right; nothing is transferred.
    Present {
        /// Its path.
        path: &'a Path,
    },
    /// A transfer begins or goes on.
    Started {
        /// Where the file will be.
        path: &'a Path,
        /// From where it comes.
        url: &'a str,
        /// Bytes that are there already.
        resumed_at: u64,
    },
    /// Bytes arrived; at most about ten times a second.
    Progress {
        /// Where the file will be.
        path: &'a Path,
        /// Bytes of the file that are there.
        done: u64,
        /// Its size, where known.
        total: Option<u64>,
        /// Bytes a second since the transfer began or was resumed.
        bytes_per_sec: f64,
    },
    /// A checksum is computed.
    Checking {
        /// Of this file.
        path: &'a Path,
    },
    /// The file is whole and has its name.
    Finished {
        /// Its path.
        path: &'a Path,
        /// Its size.
        bytes: u64,
    },
    /// Something went wrong that does not stop the fetch: a retry, another mirror, an optional
    /// file that cannot be had, a file that cannot be checked.
    Warning(&'a str),
}

/// What a fetch brought.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The set's folder.
    pub dir: PathBuf,
    /// The path to open with [`Fetched::options`]; none where the set cannot be opened yet.
    pub path: Option<PathBuf>,
    /// What to open it with.
    pub options: OpenOptions,
    /// Bytes that were transferred now.
    pub transferred: u64,
    /// All warnings, also given as events.
    pub warnings: Vec<String>,
}

/// Fetches the files of `entry` into `<root>/<name>/`.
///
/// # Errors
/// Where a needed file cannot be had from any mirror (the message has the address, the reason and
/// where to put the file by hand), is not what it should be, or cannot be written.
pub fn fetch(
    entry: &Entry,
    root: &Path,
    options: &FetchOptions,
    on: &mut dyn FnMut(Event<'_>),
) -> Result<Fetched, DatasetError> {
    let dir = entry.dir(root);
    std::fs::create_dir_all(&dir).map_err(DatasetError::io("create", &dir))?;
    let mut warnings = Vec::new();
    let mut transferred = 0;
    for file in &entry.files {
        if file.optional && !options.optional_files {
            continue;
        }
        let mut job = transfer::Job::new(file, &dir, urls(entry, file, options), options);
        let outcome = job.run(&mut |event| {
            if let Event::Warning(text) = &event {
                warnings.push((*text).to_owned());
            }
            on(event);
        });
        match outcome {
            Ok(bytes) => transferred += bytes,
            Err(error @ DatasetError::Fetch { .. }) if file.optional => {
                let text = format!("{} goes on without its optional file {}: {error}", entry.name, file.name);
                on(Event::Warning(&text));
                warnings.push(text);
            }
            Err(error) => return Err(error),
        }
    }
    let (path, options) = match &entry.unsupported {
        Some(_) => (None, OpenOptions::default()),
        None => entry.local(root).map(|(path, options)| (Some(path), options))?,
    };
    Ok(Fetched { dir, path, options, transferred, warnings })
}

/// Where to look for `file`, in order.
fn urls(entry: &Entry, file: &FileEntry, options: &FetchOptions) -> Vec<String> {
    if options.mirrors.is_empty() {
        return file.urls.clone();
    }
    let at = |base: &String| format!("{}/{}/{}", base.trim_end_matches('/'), entry.name, file.name);
    options.mirrors.iter().map(at).collect()
}
