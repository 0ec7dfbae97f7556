//! Database servers on this machine: found, started, watched, stopped.
//!
//! [`find_program`] looks for the program that a definition names. [`Server::start`] makes a data
//! folder ([`DataDir`]), computes the settings from a [`Budget`], starts the program on a free port of
//! 127.0.0.1 and waits until it listens. [`Server::stop`], or dropping it, stops it cleanly. Whether the
//! database answers is asked by the engine afterwards; what it uses is sampled from outside, by
//! [`Server::pid`] and [`crate::ProcessSampler`] with [`crate::Scope::Tree`].
//!
//! Nothing is left behind:
//!
//! ```text
//!   annvil --spawns--> guard (sh)     reads a pipe that only annvil holds open
//!      |                 |            its end without "done": stop the server, remove its folder
//!      '----spawns----> server        tells the guard its number before it runs; a process group of
//!                                     its own, so that Ctrl-C reaches annvil alone
//! ```
//!
//! As root, a server that refuses root runs as the user its definition names, who owns the data.
//! Memory is a budget kept by settings; no control group is made. A password is made for each data
//! folder, since whoever reaches the port could otherwise act as the server's user.
//!
//! Unix only; pinning and the reasons for an end are better known on Linux.

mod budget;
mod data;
mod ending;
mod error;
mod find;
mod guard;
mod launch;
mod places;
mod ready;
mod start;
mod user;

pub use budget::{Budget, Granted, Placement, pin_this_thread};
pub use data::DataDir;
pub use ending::Ending;
pub use error::ServerError;
pub use find::{Found, find_program};

use data::Place;
use ending::{Log, OomKills};
use engine::StopSignal;
use guard::Guard;
use launch::Process;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use types::Secret;

/// How a server is to be started.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// What it may use.
    pub budget: Budget,
    /// Where its data lie.
    pub data: DataDir,
    /// Where its output goes, behind what the file holds.
    pub log: PathBuf,
    /// Port of 127.0.0.1; none for a free one.
    pub port: Option<u16>,
    /// How long the initialising and the start may take, each.
    pub patience: Duration,
    /// How long it may take to stop before it is killed.
    pub grace: Duration,
}

impl StartOptions {
    /// Two minutes to start, one to stop; a free port; the default budget.
    pub fn new(data: DataDir, log: impl Into<PathBuf>) -> Self {
        StartOptions {
            budget: Budget::default(),
            data,
            log: log.into(),
            port: None,
            patience: Duration::from_secs(120),
            grace: Duration::from_secs(60),
        }
    }
}

/// A running server. Stopped when dropped, and by its guard when this process is killed.
#[derive(Debug)]
pub struct Server {
    found: Found,
    address: String,
    port: u16,
    password: Option<Secret>,
    settings: Vec<(String, String)>,
    granted: Granted,
    stop_signal: StopSignal,
    grace: Duration,
    log: Log,
    kills: OomKills,
    // Dropped in this order: the process, then its folder, then the guard.
    process: Mutex<Process>,
    stand: Stand,
}

/// The folder and the guard of a server. Dropped when no process is left: a private folder goes.
#[derive(Debug)]
struct Stand {
    place: Place,
    guard: Guard,
}

impl Drop for Stand {
    fn drop(&mut self) {
        drop(self.place.remove());
    }
}

/// How stopping went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Whether it ended by itself with code 0 after it was asked to.
    pub clean: bool,
    /// How it ended.
    pub ending: Option<Ending>,
    /// How long it took.
    pub took: Duration,
}

impl Server {
    /// Where it answers, without a password, as the definition writes it.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its port of 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The password of the user in the address; none where the definition sets none.
    pub fn password(&self) -> Option<&Secret> {
        self.password.as_ref()
    }

    /// The process of the server itself, not of its guard.
    pub fn pid(&self) -> u32 {
        self.process().pid()
    }

    /// The program and what it says its version is.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The settings of the definition's budget rules, by name, as given on the command line.
    pub fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// Memory, processors and where server and client run.
    pub fn granted(&self) -> &Granted {
        &self.granted
    }

    /// Its own folder, which holds the data, and what it occupies on the disk.
    pub fn folder(&self) -> &Path {
        &self.stand.place.top
    }

    /// Whether the process runs.
    pub fn is_alive(&self) -> bool {
        self.process().ended().is_none()
    }

    /// How it ended; none while it runs.
    pub fn ending(&self) -> Option<Ending> {
        let status = self.process().ended()?;
        Some(Ending::new(status, self.kills))
    }

    /// How many processes of this machine the kernel has killed for want of memory since the
    /// start; a database may survive the end of one of its processes. None: not known.
    pub fn out_of_memory_kills(&self) -> Option<u64> {
        self.kills.since()
    }

    /// The last lines of its log, those that speak of an error if any do, and where the log is.
    pub fn last_words(&self) -> String {
        self.log.words()
    }

    /// Stops it: asks, waits, kills what is left after the grace. Removes private data.
    ///
    /// # Errors
    /// Where private data can't be removed.
    pub fn stop(mut self) -> Result<Stopped, ServerError> {
        let stopped = self.shut();
        let top = &self.stand.place.top;
        let removed = self.stand.place.remove();
        removed.map_err(error::Of(&self.found.engine).system(format!("can't remove {}", top.display())))?;
        Ok(stopped)
    }

    fn shut(&mut self) -> Stopped {
        let (kills, grace, signal) = (self.kills, self.grace, self.stop_signal);
        let begin = Instant::now();
        let process = self.process.get_mut().unwrap_or_else(PoisonError::into_inner);
        let asked = process.ended().is_none();
        process.signal(signal);
        let by_itself = process.wait(grace, || true);
        let status = by_itself.or_else(|| process.kill());
        self.stand.guard.ended();
        Stopped {
            clean: asked && by_itself.is_some_and(|status| status.success()),
            ending: status.map(|status| Ending::new(status, kills)),
            took: begin.elapsed(),
        }
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shut();
    }
}
