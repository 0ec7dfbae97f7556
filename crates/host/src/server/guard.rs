//! The guard: a shell script of its own process that outlives us, so that a server never does.
//!
//! It reads a pipe whose other end we hold. However we end (kill -9, out of memory, a panic that
//! aborts), the pipe is closed by the kernel, and the guard stops the server and removes its private
//! folder. The server's process writes its own number into the pipe before it becomes the server, so
//! there is no moment at which a server runs that the guard does not know.

use super::data::Place;
use engine::StopSignal;
use std::io::{PipeWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SCRIPT: &str = include_str!("guard.sh");

/// The guard of one server. Dropped when all is stopped and removed: it ends and does nothing.
#[derive(Debug)]
pub(super) struct Guard {
    process: Child,
    pipe: Option<PipeWriter>,
}

impl Guard {
    /// Starts the guard of a data folder, which stays locked until the guard has ended, and is
    /// removed by it if it is private.
    pub(super) fn start(
        signal: StopSignal,
        grace: Duration,
        place: &Place,
        log: &Path,
    ) -> std::io::Result<Self> {
        let (reader, pipe) = std::io::pipe()?;
        let tenths = grace.as_millis().div_ceil(100).to_string();
        let fate = if place.private { "remove" } else { "keep" };
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "annvil-guard", signal.name(), &tenths, fate]);
        command.arg(&place.top).arg(log);
        command.stdin(reader).stdout(place.marker.try_clone()?).stderr(Stdio::null());
        // A group of its own: Ctrl-C is sent to the whole group of the terminal.
        command.process_group(0).current_dir("/").env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        Ok(Guard { process: command.spawn()?, pipe: Some(pipe) })
    }

    /// A writing end for a process that announces itself (`step PID`, `server PID`).
    pub(super) fn announce(&self) -> std::io::Result<Stdio> {
        let pipe = self.pipe.as_ref().ok_or(std::io::ErrorKind::BrokenPipe)?;
        Ok(Stdio::from(pipe.try_clone()?))
    }

    /// The announced process has ended and was collected: its number may be given to another.
    pub(super) fn ended(&self) {
        self.tell("none\n");
    }

    fn tell(&self, line: &str) {
        // A guard that was killed can't be told anything; we then still do our own part.
        drop(self.pipe.as_ref().map(|mut pipe| pipe.write_all(line.as_bytes())));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.tell("done\n");
        self.pipe = None;
        drop(self.process.wait());
    }
}
