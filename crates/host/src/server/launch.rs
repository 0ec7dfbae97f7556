//! Starts programs: as another user, on processors of their own, known to the guard before they run.

use super::budget::pin_this_thread;
use super::guard::Guard;
use super::user::User;
use crate::process::descendants;
use crate::tree::Tree;
use engine::StopSignal;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often a process is looked at while it is waited for.
pub(super) const LOOK: Duration = Duration::from_millis(10);

/// Tells the guard who it is, takes its standard error back from the guard and becomes the program. The
/// first argument is `step` or `server`.
const BECOME: &str = r#"echo "$0 $$" >&2; exec 2>&1; exec "$@""#;

/// What of our own environment a server gets. Nothing else: a variable of ours may hold a password
/// or change what is measured.
const PASSED_ON: [&str; 3] = ["PATH", "LD_LIBRARY_PATH", "TZ"];

/// A program to start.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    /// `step` or `server`, as the guard takes it.
    pub(super) kind: &'static str,
    pub(super) words: &'a [String],
    pub(super) environment: &'a [(String, String)],
    /// The data folder's top.
    pub(super) top: &'a Path,
    /// Its working folder, also HOME and TMPDIR.
    pub(super) folder: &'a Path,
    pub(super) input: Option<File>,
    pub(super) log: &'a File,
    pub(super) user: Option<&'a User>,
    pub(super) cpus: Option<&'a [usize]>,
}

impl Launch<'_> {
    pub(super) fn start(self, guard: &Guard) -> std::io::Result<Process> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", BECOME, self.kind]).args(self.words);
        command.stdin(self.input.map_or_else(Stdio::null, Stdio::from));
        command.stdout(self.log.try_clone()?).stderr(guard.announce()?);
        command.env_clear().env("LC_ALL", "C").env("HOME", self.folder).env("TMPDIR", self.folder);
        command.envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        // A group of its own: Ctrl-C is sent to the whole group of the terminal.
        command.process_group(0).current_dir(self.folder);
        if let Some(user) = self.user {
            command.uid(user.uid).gid(user.gid);
        }
        let child = match self.cpus {
            None => command.spawn()?,
            // A process inherits the processors of the thread that starts it, so one is made for that.
            Some(cpus) => std::thread::scope(|scope| {
                let starter = scope.spawn(|| pin_this_thread(cpus).and_then(|()| command.spawn()));
                starter.join().unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()))
            })?,
        };
        Ok(Process { child, status: None, top: self.top.to_owned() })
    }
}

/// A running program. Killed with everything it has started when dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    status: Option<ExitStatus>,
    top: PathBuf,
}

impl Process {
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended; none while it runs. What it leaves behind is killed when its end is first seen.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() && self.is_over() {
            // Not collected yet, so its number can't be another's.
            self.kill_group();
            kill_all(&strays(&self.top));
            self.status = self.child.wait().ok();
        }
        self.status
    }

    fn is_over(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.id().is_some_and(|pid| waitid(WaitId::Pid(pid), look).is_ok_and(|status| status.is_some()))
    }

    /// How it ended, once it has, looking until `patience` is over or `on` says false.
    pub(super) fn wait(&mut self, patience: Duration, mut on: impl FnMut() -> bool) -> Option<ExitStatus> {
        let begin = Instant::now();
        loop {
            let status = self.ended();
            if status.is_some() || begin.elapsed() >= patience || !on() {
                return status;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Asks it to end.
    pub(super) fn signal(&mut self, signal: StopSignal) {
        let signal = match signal {
            StopSignal::Int => Signal::INT,
            StopSignal::Term => Signal::TERM,
            StopSignal::Quit => Signal::QUIT,
        };
        if self.ended().is_none()
            && let Some(pid) = self.id()
        {
            // It may end at this moment, and then there is no one to ask.
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills it and all its descendants, those that left its group as well.
    pub(super) fn kill(&mut self) -> Option<ExitStatus> {
        if self.ended().is_none() {
            let below = descendants(&Tree::machine(), self.pid());
            self.kill_group();
            kill_all(&below.into_iter().map(|(pid, _)| pid).collect::<Vec<_>>());
            self.status = self.child.wait().ok();
            kill_all(&strays(&self.top));
        }
        self.status
    }

    fn kill_group(&self) {
        if let Some(pid) = self.id() {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    fn id(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.pid()).ok()?)
    }
}

/// Processes of a server that is gone: they work in its folders and have no terminal (so that no
/// one's shell is meant). A server's process may go on for long with what it was asked, though the
/// server was killed and it left the group.
fn strays(top: &Path) -> Vec<u32> {
    let tree = Tree::machine();
    let own = [top.join("data"), top.join("tmp")];
    let is_stray = |pid: &u32| {
        let works_in = std::fs::read_link(tree.path(&format!("proc/{pid}/cwd"))).unwrap_or_default();
        own.iter().any(|folder| works_in.starts_with(folder)) && !has_terminal(&tree, *pid)
    };
    tree.numbered("proc", "").into_iter().filter(is_stray).collect()
}

/// Field 7 of `/proc/<pid>/stat`, the fifth behind the name in brackets.
fn has_terminal(tree: &Tree, pid: u32) -> bool {
    let stat = tree.text(&format!("proc/{pid}/stat")).unwrap_or_default();
    let terminal = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(4));
    terminal.is_some_and(|number| number != "0")
}

fn kill_all(pids: &[u32]) {
    for pid in pids.iter().filter_map(|&pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
        // One that has ended by itself in the meantime is as good.
        let _ = kill_process(pid, Signal::KILL);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
