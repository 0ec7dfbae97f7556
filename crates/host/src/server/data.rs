//! The folder that a server keeps its data in.
//!
//! Layout: `annvil-server` (the marker: whose folder this is, and the password of the database),
//! `data` (the server's), `tmp` (the server's temporary files). The marker is locked while the
//! server runs. Nothing is touched in a folder that holds something and has no marker.

use super::error::{Of, ServerError};
use super::user::User;
use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use types::Secret;

const MARKER: &str = "annvil-server";
const PREFIX: &str = "server-";

/// Where a server keeps its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataDir {
    /// In a new folder below this one, which is removed when the server is stopped or we are killed.
    PrivateBelow(PathBuf),
    /// In this folder, which must be missing, empty or from an earlier server of the same program;
    /// it stays.
    Kept(PathBuf),
}

/// A folder made ready and locked.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) top: PathBuf,
    pub(super) private: bool,
    /// Whether the data have still to be initialised.
    pub(super) fresh: bool,
    pub(super) password: Secret,
    pub(super) marker: File,
    owner: String,
    version: String,
    user: Option<User>,
}

impl Place {
    /// Makes the folder ready for the server `engine` of `version`, owned by `user`. A kept folder
    /// that is in use is waited for as long as `wait` says true.
    pub(super) fn prepare(
        choice: &DataDir,
        engine: &str,
        version: &str,
        user: Option<User>,
        wait: impl FnMut() -> bool,
    ) -> Result<Self, ServerError> {
        let of = Of(engine);
        let (asked, private) = match choice {
            DataDir::PrivateBelow(below) => (below, true),
            DataDir::Kept(path) => (path, false),
        };
        std::fs::create_dir_all(asked).map_err(of.system(format!("can't make {}", asked.display())))?;
        let asked = asked.canonicalize().map_err(of.system(format!("can't open {}", asked.display())))?;
        if let Some((user, closed)) = user.as_ref().and_then(|user| Some((user, user.barred(&asked)?))) {
            let name = &user.name;
            let reason = format!(
                "its server runs as {name}, who can't enter {}; choose a folder that {name} can reach: --data-dir",
                closed.display()
            );
            return Err(of.data(&asked, reason));
        }
        let top = if private {
            sweep(&asked);
            let top = asked.join(format!("{PREFIX}{engine}-{}", &random()?[..8]));
            // Not 0700: the server's user must get through to its own folders.
            let made = DirBuilder::new().mode(0o711).create(&top);
            made.map_err(of.system(format!("can't make {}", top.display())))?;
            top
        } else {
            asked
        };
        let made = Place::claim(top.clone(), engine, version, wait).and_then(|mut place| {
            (place.private, place.user) = (private, user);
            place.fill().map_err(|e| of.data(&place.top, e.to_string()))?;
            Ok(place)
        });
        if made.is_err() && private {
            drop(remove(&top));
        }
        made
    }

    /// Locks the marker and reads it, or writes it where the folder is empty.
    fn claim(
        top: PathBuf,
        engine: &str,
        version: &str,
        mut wait: impl FnMut() -> bool,
    ) -> Result<Self, ServerError> {
        let of = Of(engine);
        let path = top.join(MARKER);
        let holds = std::fs::read_dir(&top).map_err(of.system(format!("can't read {}", top.display())))?;
        if holds.count() > 0 && !path.is_file() {
            let reason =
                "it is not empty and was not made by annvil, so nothing was touched; name an empty folder";
            return Err(of.data(&top, reason));
        }
        let marker =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let mut marker = marker.map_err(of.system(format!("can't open {}", path.display())))?;
        while !locked(&marker) {
            if !wait() {
                return Err(of.data(
                    &top,
                    "another server of annvil runs on it, or is still being stopped; try again later",
                ));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut text = String::new();
        marker.read_to_string(&mut text).map_err(of.system(format!("can't read {}", path.display())))?;
        let (owner, made_by) = (value(&text, "engine"), value(&text, "version"));
        if owner.is_some_and(|owner| owner != engine) || made_by.is_some_and(|made| made != version) {
            let (owner, made) = (owner.unwrap_or("?"), made_by.unwrap_or("?"));
            let reason = format!(
                "it holds data of {owner} ({made}), this is {engine} ({version}); name another folder"
            );
            return Err(of.data(&top, reason));
        }
        let password = value(&text, "password").map_or_else(random, |text| Ok(text.to_owned()))?;
        Ok(Place {
            private: false,
            fresh: value(&text, "state") != Some("ready"),
            password: Secret::new(password),
            marker,
            owner: engine.into(),
            version: version.into(),
            user: None,
            top,
        })
    }

    /// Writes the marker; makes the folders anew where the data are not initialised.
    fn fill(&mut self) -> std::io::Result<()> {
        if self.fresh {
            self.write_marker("new")?;
            self.make_anew(&self.data())?;
        }
        self.make_anew(&self.temporary())
    }

    fn make_anew(&self, folder: &Path) -> std::io::Result<()> {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        DirBuilder::new().mode(0o700).create(folder)?;
        self.give(folder)
    }

    /// Makes the server's user the owner of a path.
    fn give(&self, path: &Path) -> std::io::Result<()> {
        let Some(user) = &self.user else { return Ok(()) };
        std::os::unix::fs::chown(path, Some(user.uid), Some(user.gid))
    }

    /// Says that the data are whole.
    pub(super) fn initialised(&mut self) -> std::io::Result<()> {
        self.write_marker("ready")?;
        self.fresh = false;
        Ok(())
    }

    fn write_marker(&mut self, state: &str) -> std::io::Result<()> {
        let private = if self.private { "yes" } else { "no" };
        let text = format!(
            "annvil keeps the data of a server in this folder; without this file it would not touch it\n\
             engine = {}\nversion = {}\nprivate = {private}\nstate = {state}\npassword = {}\n",
            self.owner,
            self.version,
            self.password.reveal()
        );
        self.marker.rewind()?;
        self.marker.set_len(0)?;
        self.marker.write_all(text.as_bytes())?;
        self.marker.sync_all()
    }

    /// A file that only the server's user can read, for the time of the initialising.
    pub(super) fn secret_file(&self, name: &str, text: &[u8]) -> std::io::Result<PathBuf> {
        let path = self.top.join(name);
        if path.exists() {
            std::fs::remove_file(&path)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(text)?;
        self.give(&path)?;
        Ok(path)
    }

    /// The server's own folder.
    pub(super) fn data(&self) -> PathBuf {
        self.top.join("data")
    }

    /// The server's temporary files.
    pub(super) fn temporary(&self) -> PathBuf {
        self.top.join("tmp")
    }

    /// Removes a private folder.
    pub(super) fn remove(&self) -> std::io::Result<()> {
        if self.private { remove(&self.top) } else { Ok(()) }
    }
}

/// Removes a folder. Processes that are just ending may write for a moment, so it is tried again.
fn remove(folder: &Path) -> std::io::Result<()> {
    let begin = Instant::now();
    loop {
        match std::fs::remove_dir_all(folder) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(_) if begin.elapsed() < Duration::from_secs(5) => {
                std::thread::sleep(Duration::from_millis(50))
            }
            ended => return ended,
        }
    }
}

/// Removes private folders whose guard could not do it any more: after a loss of power, say.
fn sweep(below: &Path) {
    for entry in std::fs::read_dir(below).into_iter().flatten().filter_map(Result::ok) {
        let top = entry.path();
        let Ok(marker) = File::open(top.join(MARKER)) else { continue };
        // A marker gets its text after it is locked, so one that is free and has its text is left over.
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) || !locked(&marker) {
            continue;
        }
        let text = std::io::read_to_string(&marker).unwrap_or_default();
        if value(&text, "private") == Some("yes") {
            // What can't be removed is in nobody's way.
            drop(remove(&top));
        }
    }
}

/// Whether the lock could be taken. A file system without locks has no two servers on one folder
/// to be told apart, so it counts as taken.
fn locked(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive) != Err(rustix::io::Errno::WOULDBLOCK)
}

fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))
}

/// 32 hexadecimal digits nobody can guess.
fn random() -> Result<String, ServerError> {
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(Of("annvil").system("can't read /dev/urandom"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
#[path = "data_tests.rs"]
mod tests;
