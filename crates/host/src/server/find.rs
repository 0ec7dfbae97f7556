//! Finds the program of a server: where the user says, on PATH, or in the usual places.

use super::error::ServerError;
use super::places::matches;
use super::user::{User, to_become};
use engine::{Names, ServerDef};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take to tell its version.
const VERSION_PATIENCE: Duration = Duration::from_secs(20);

/// A program that was found and told its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Name of the engine, for messages.
    pub engine: String,
    /// The program, without symbolic links.
    pub program: PathBuf,
    /// The first line of what it says of itself.
    pub version: String,
    /// The further folders of the definition.
    pub folders: BTreeMap<String, PathBuf>,
}

impl Found {
    /// The names that say where the program lies.
    pub(super) fn names(&self) -> Names {
        let mut names = names_of(&self.program);
        for (name, folder) in &self.folders {
            names.set(name.clone(), text(folder));
        }
        names
    }
}

/// Finds the program of `engine`. `named` is what the user said (`--program NAME=PATH`): the program or
/// the folder it lies in; then nothing else is looked at. Otherwise the first usable program of PATH
/// and of the definition's places is taken.
///
/// # Errors
/// [`ServerError::NotFound`] with all places and what was wrong with each program that was there, or
/// [`ServerError::NotUsable`] for the one that was named.
pub fn find_program(engine: &str, def: &ServerDef, named: Option<&Path>) -> Result<Found, ServerError> {
    find_on(engine, def, named, std::env::var_os("PATH").as_deref())
}

fn find_on(
    engine: &str,
    def: &ServerDef,
    named: Option<&Path>,
    path: Option<&OsStr>,
) -> Result<Found, ServerError> {
    let user = to_become(engine, def.user_when_root.as_deref())?;
    let look = |program: &Path| usable(engine, def, program, user.as_ref());
    if let Some(named) = named {
        let program = if named.is_dir() { named.join(&def.program) } else { named.to_owned() };
        return look(&program).map_err(|reason| ServerError::NotUsable {
            engine: engine.into(),
            path: named.into(),
            reason,
        });
    }
    let on_path = path.map(|path| std::env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
    let folders = on_path.into_iter().chain(def.places.iter().flat_map(|place| matches(place)));
    let (mut seen, mut rejected) = (Vec::new(), String::new());
    for folder in folders {
        let program = folder.join(&def.program);
        let Ok(real) = program.canonicalize() else { continue };
        if seen.contains(&real) {
            continue;
        }
        match look(&program) {
            Ok(found) => return Ok(found),
            Err(reason) => rejected.push_str(&format!("; {} is there, but {reason}", real.display())),
        }
        seen.push(real);
    }
    let looked: Vec<&str> = std::iter::once("PATH").chain(def.places.iter().map(String::as_str)).collect();
    Err(ServerError::NotFound {
        engine: engine.into(),
        program: def.program.clone(),
        looked: looked.join(", "),
        rejected,
        install: def.install.clone(),
    })
}

/// The program with all that belongs to it, or why it can't be used.
fn usable(engine: &str, def: &ServerDef, program: &Path, user: Option<&User>) -> Result<Found, String> {
    let real = program.canonicalize().map_err(|e| e.to_string())?;
    let facts = std::fs::metadata(&real).map_err(|e| e.to_string())?;
    if !facts.is_file() || facts.permissions().mode() & 0o111 == 0 {
        return Err("it is no program that may be run".into());
    }
    if let Some((user, folder)) = user.and_then(|user| Some((user, user.barred(&real)?))) {
        return Err(format!(
            "the server runs as {}, who can't enter {}; put it elsewhere or open that folder",
            user.name,
            folder.display()
        ));
    }
    let names = names_of(&real);
    let mut folders = BTreeMap::new();
    for (name, folder) in &def.folders {
        let mut tried = Vec::new();
        for text in &folder.first_of {
            tried.push(PathBuf::from(text.fill_as_written(&names).map_err(|e| e.to_string())?));
        }
        let holding = tried.iter().find(|place| place.join(&folder.holds).is_file());
        let Some(holding) = holding else {
            let tried: Vec<String> = tried.iter().map(|place| place.display().to_string()).collect();
            return Err(format!("it comes without {} (not in {})", folder.holds, tried.join(", ")));
        };
        folders.insert(name.clone(), holding.clone());
    }
    let words: Result<Vec<String>, _> = def.version.iter().map(|word| word.fill_as_written(&names)).collect();
    let version = version(&words.map_err(|e| e.to_string())?, user)?;
    Ok(Found { engine: engine.into(), program: real, version, folders })
}

fn names_of(program: &Path) -> Names {
    let folder = program.parent().unwrap_or(program);
    let root = folder.parent().unwrap_or(folder);
    let mut names = Names::default();
    names.set("program", text(program)).set("folder", text(folder)).set("root", text(root));
    names
}

/// A path for a template. What is not UTF-8 is not found later, which the message then shows.
pub(super) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The first line that a program prints.
fn version(words: &[String], user: Option<&User>) -> Result<String, String> {
    let [program, arguments @ ..] = words else {
        return Err("the definition names no version program".into());
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid).current_dir("/");
    }
    let shown = words.join(" ");
    let mut child = command.spawn().map_err(|e| format!("{shown} does not run: {e}"))?;
    let begin = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begin.elapsed() < VERSION_PATIENCE => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => {
                drop(child.kill());
                drop(child.wait());
                return Err(format!("{shown} says nothing"));
            }
        }
    };
    let first = |pipe: Option<&mut dyn Read>| -> Option<String> {
        let mut bytes = Vec::new();
        // Whatever it goes on to say is of no interest, so it is not read to its end.
        pipe?.take(4096).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        text.lines().map(str::trim).find(|line| !line.is_empty()).map(String::from)
    };
    let said = first(child.stdout.as_mut().map(|pipe| pipe as &mut dyn Read));
    let said = said.or_else(|| first(child.stderr.as_mut().map(|pipe| pipe as &mut dyn Read)));
    // Some begin with their own path, which is told apart and says nothing of the version.
    let said = said.map(|line| line.strip_prefix(program.as_str()).unwrap_or(&line).trim().to_owned());
    match said {
        Some(line) if status.success() => Ok(line),
        Some(line) => Err(format!("{shown} fails: {line}")),
        None => Err(format!("{shown} says nothing")),
    }
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
