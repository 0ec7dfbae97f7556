//! The `[server]` section of a definition: how a program on this machine is made into a server.
//! Reading and checking is here; finding, starting and stopping is the crate `host`.

use crate::Template;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
mod tests;

/// Names that say where the program lies: `program` is its path, `folder` the folder it lies in,
/// `root` the folder above that (`/usr` for `/usr/sbin/mariadbd`).
const PLACE: [&str; 3] = ["program", "folder", "root"];
/// The server's private folders.
const DATA: [&str; 2] = ["data", "temporary"];
/// What the server may use and what it is to hold: MiB, processors, MiB, rows.
const BUDGET: [&str; 4] = ["memory_mib", "cpus", "vectors_mib", "rows"];

/// The `[server]` section. Each text is a [`Template`]; which names it may use is said beside it,
/// and the check refuses all others. `program`, `folder` and `root` are known everywhere, the names
/// of `folders` everywhere but in `folders` and `version`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerDef {
    /// File name of the program. It must be the server itself, or become it (`exec`): it is watched
    /// and stopped by its process id.
    pub program: String,
    /// Folders that hold it, looked at after PATH. `*` stands for any part of one name; of several
    /// matches the one with the highest numbers comes first.
    #[serde(default)]
    pub places: Vec<String>,
    /// What to install where there is none, as words after "install".
    pub install: String,
    /// Prints the version; the first line counts.
    pub version: Vec<Template>,
    /// The user to run as where we are root and the server refuses to be.
    #[serde(default)]
    pub user_when_root: Option<String>,
    /// More folders that must be there, by the name that templates use. A program without them is
    /// passed over.
    #[serde(default)]
    pub folders: BTreeMap<String, FolderDef>,
    /// Environment, beside the little that every server gets (PATH, LC_ALL=C, HOME). May use `data`, `temporary`.
    #[serde(default)]
    pub environment: BTreeMap<String, Template>,
    /// Programs that make a new data folder, in this order.
    #[serde(default)]
    pub initialise: Vec<StepDef>,
    /// Program and arguments. May use `data`, `temporary`, `port` and the budget (`memory_mib`, `cpus`,
    /// `vectors_mib`, `rows`).
    pub start: Vec<Template>,
    /// Settings by name, the rules of the budget. May use what `start` may.
    #[serde(default)]
    pub settings: BTreeMap<String, Template>,
    /// How a setting is given: arguments after those of `start`, once for each setting. May use
    /// `name`, `value`.
    #[serde(default)]
    pub setting_argument: Vec<Template>,
    /// Words in its log that say that it can be asked. Without them, listening is enough; some servers
    /// listen while they still repair their data.
    #[serde(default)]
    pub ready_words: Option<String>,
    /// The signal that ends it cleanly.
    pub stop_signal: StopSignal,
    /// Where it answers, without the password. May use `port`.
    pub address: Template,
}

/// A folder that the definition needs and that lies elsewhere from one installation to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FolderDef {
    /// Where it may be; the first that holds the file is it.
    pub first_of: Vec<Template>,
    /// A file in it, by which it is known.
    pub holds: String,
}

/// A program that is run to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepDef {
    /// Program and arguments. May use `data`, `temporary` and `password_file` (a file with the
    /// password, which is gone after the initialising). The password itself is refused here,
    /// because arguments can be read by every user of the machine.
    pub run: Vec<Template>,
    /// What stands on its standard input, one after the other.
    #[serde(default)]
    pub input: Vec<InputDef>,
}

/// A piece of a program's input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum InputDef {
    /// A line. May use `password` beside the names of [`StepDef::run`].
    Line(Template),
    /// All of a file, written `{ file = "…" }`.
    File(FileDef),
}

/// A file by its path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileDef {
    /// Its path.
    pub file: Template,
}

/// The signals that servers take as "end cleanly".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// SIGINT.
    Int,
    /// SIGTERM.
    Term,
    /// SIGQUIT.
    Quit,
}

impl StopSignal {
    /// Its name as `kill -s` takes it.
    pub fn name(self) -> &'static str {
        match self {
            StopSignal::Int => "INT",
            StopSignal::Term => "TERM",
            StopSignal::Quit => "QUIT",
        }
    }
}

impl ServerDef {
    /// Whether a template of the section uses `name`, apart from the templates that define folders.
    pub fn uses(&self, name: &str) -> bool {
        self.texts().iter().any(|(_, text, _)| text.uses().contains(name))
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.program.is_empty() || self.program.contains('/') {
            return Err(format!("server.program {:?} must be a file name", self.program));
        }
        if let Some(place) = self.places.iter().find(|place| !place.starts_with('/')) {
            return Err(format!("server.places: {place:?} must begin with /"));
        }
        let runs = self.initialise.iter().map(|step| ("initialise.run", &step.run));
        for (place, words) in runs.chain([("version", &self.version), ("start", &self.start)]) {
            if words.is_empty() {
                return Err(format!("server.{place} names no program"));
            }
        }
        if self.setting_argument.is_empty() && !self.settings.is_empty() {
            return Err("server.settings needs server.setting_argument, which says how they are given".into());
        }
        for (name, folder) in &self.folders {
            if self.known().contains(name.as_str()) {
                return Err(format!("server.folders.{name}: the name has another meaning; choose another"));
            }
            for text in &folder.first_of {
                known_only(&format!("folders.{name}"), text, &PLACE.into())?;
            }
        }
        self.texts().iter().try_for_each(|(place, text, names)| known_only(place, text, names))
    }

    /// Every name with a meaning of its own.
    fn known(&self) -> BTreeSet<&str> {
        let more = ["port", "name", "value", "password", "password_file"];
        PLACE.into_iter().chain(DATA).chain(BUDGET).chain(more).collect()
    }

    /// All templates but those of folders: place, text, names that it may use.
    fn texts(&self) -> Vec<(String, &Template, BTreeSet<&str>)> {
        let with = |more: &[&'static str]| -> BTreeSet<&str> {
            let folders = self.folders.keys().map(String::as_str);
            PLACE.into_iter().chain(folders).chain(more.iter().copied()).collect()
        };
        let running: Vec<&'static str> = DATA.into_iter().chain(BUDGET).chain(["port"]).collect();
        let mut all: Vec<(String, &Template, BTreeSet<&str>)> = Vec::new();
        all.extend(self.version.iter().map(|t| ("version".to_owned(), t, PLACE.into())));
        all.extend(self.environment.iter().map(|(name, t)| (format!("environment.{name}"), t, with(&DATA))));
        for step in &self.initialise {
            let run = with(&["data", "temporary", "password_file"]);
            all.extend(step.run.iter().map(|t| ("initialise.run".to_owned(), t, run.clone())));
            for input in &step.input {
                let (text, names) = match input {
                    InputDef::Line(t) => (t, with(&["data", "temporary", "password_file", "password"])),
                    InputDef::File(f) => (&f.file, run.clone()),
                };
                all.push(("initialise.input".to_owned(), text, names));
            }
        }
        all.extend(self.start.iter().map(|t| ("start".to_owned(), t, with(&running))));
        all.extend(self.settings.iter().map(|(name, t)| (format!("settings.{name}"), t, with(&running))));
        let argument = || BTreeSet::from(["name", "value"]);
        all.extend(self.setting_argument.iter().map(|t| ("setting_argument".to_owned(), t, argument())));
        all.push(("address".to_owned(), &self.address, BTreeSet::from(["port"])));
        all
    }
}

fn known_only(place: &str, text: &Template, names: &BTreeSet<&str>) -> Result<(), String> {
    let used = text.uses();
    let Some(other) = used.iter().find(|name| !names.contains(name.as_str())) else { return Ok(()) };
    let names: Vec<&str> = names.iter().copied().collect();
    Err(format!("server.{place}: {other:?} is not known there; known are: {}", names.join(", ")))
}
