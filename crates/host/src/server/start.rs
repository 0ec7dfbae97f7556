//! Starting a server: data folder, guard, initialising, settings, port, waiting.

use super::data::Place;
use super::ending::{Ending, Log, OomKills};
use super::error::{Of, ServerError};
use super::find::{Found, text};
use super::guard::Guard;
use super::launch::{LOOK, Launch, Process};
use super::ready::{free_port, is_taken, listens};
use super::user::{User, to_become};
use super::{Granted, Server, Stand, StartOptions};
use engine::{InputDef, Names, ServerDef, StepDef, Template};
use std::cell::Cell;
use std::fs::File;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// How many free ports are tried: one may be taken between looking and using.
const PORTS: usize = 5;
/// Below so many free bytes an error speaks of the disk.
const LITTLE_SPACE: u64 = 512 << 20;

impl Server {
    /// Starts the server of `def` with the program `found` and waits until it listens. `stop` ends
    /// the waiting.
    ///
    /// # Errors
    /// Where its user, data folder, template, initialising, port or start fails; where it does not
    /// listen in time; where `stop` is set. Nothing runs and no private data are left then.
    pub fn start(
        def: &ServerDef,
        found: &Found,
        options: &StartOptions,
        stop: &AtomicBool,
    ) -> Result<Server, ServerError> {
        start_on(def, found, options, stop, free_port)
    }
}

/// What all steps of a start share.
struct Start<'a> {
    def: &'a ServerDef,
    found: &'a Found,
    options: &'a StartOptions,
    stop: &'a AtomicBool,
    user: Option<User>,
    names: Names,
    environment: Vec<(String, String)>,
    log: Log,
    log_file: File,
    kills: OomKills,
    /// The least free space that was seen on the disk of the data, bytes.
    least_free: Cell<u64>,
}

/// A server that listens.
struct Running {
    process: Process,
    port: u16,
    settings: Vec<(String, String)>,
}

pub(super) fn start_on(
    def: &ServerDef,
    found: &Found,
    options: &StartOptions,
    stop: &AtomicBool,
    mut ports: impl FnMut() -> std::io::Result<u16>,
) -> Result<Server, ServerError> {
    let of = Of(&found.engine);
    let granted = options.budget.grant()?;
    let user = to_become(&found.engine, def.user_when_root.as_deref())?;
    let (log, log_file) =
        Log::open(&options.log).map_err(of.system(format!("can't open {}", options.log.display())))?;
    let begin = Instant::now();
    let wait = || begin.elapsed() < options.grace && !stop.load(Ordering::Relaxed);
    let place = Place::prepare(&options.data, &found.engine, &found.version, user.clone(), wait)?;
    let guard = Guard::start(def.stop_signal, options.grace, &place, &log.path);
    let guard = match guard {
        Ok(guard) => guard,
        Err(e) => {
            drop(place.remove());
            return Err(of.system("can't start /bin/sh")(e));
        }
    };
    let mut stand = Stand { place, guard };
    let mut names = found.names();
    names.set("data", text(&stand.place.data())).set("temporary", text(&stand.place.temporary()));
    let kills = OomKills::now();
    let environment = Vec::new();
    let least_free = Cell::new(u64::MAX);
    let mut start =
        Start { def, found, options, stop, user, names, environment, log, log_file, kills, least_free };
    start.environment = start.named("environment", &def.environment, &start.names)?;
    if stand.place.fresh {
        start.initialise(&stand)?;
        stand.place.initialised().map_err(of.system("can't write the data folder's marker"))?;
    }
    granted.names(&mut start.names);
    let Running { process, port, settings } = start.run(&stand, &granted, &mut ports)?;
    let address = start.fill("address", &def.address, &start.names.with("port", port))?;
    let password = (def.uses("password") || def.uses("password_file")).then(|| stand.place.password.clone());
    Ok(Server {
        found: found.clone(),
        address,
        port,
        password,
        settings,
        granted,
        stop_signal: def.stop_signal,
        grace: options.grace,
        log: start.log,
        kills,
        process: Mutex::new(process),
        stand,
    })
}

impl Start<'_> {
    fn of(&self) -> Of<'_> {
        Of(&self.found.engine)
    }

    fn fill(&self, place: &str, template: &Template, names: &Names) -> Result<String, ServerError> {
        template.fill_as_written(names).map_err(|e| ServerError::Definition {
            engine: self.found.engine.clone(),
            place: place.into(),
            reason: e.to_string(),
        })
    }

    fn all(&self, place: &str, templates: &[Template], names: &Names) -> Result<Vec<String>, ServerError> {
        templates.iter().map(|template| self.fill(place, template, names)).collect()
    }

    fn named<'t>(
        &self,
        place: &str,
        templates: impl IntoIterator<Item = (&'t String, &'t Template)>,
        names: &Names,
    ) -> Result<Vec<(String, String)>, ServerError> {
        let fill = |(name, text): (&String, &Template)| {
            Ok((name.clone(), self.fill(&format!("{place}.{name}"), text, names)?))
        };
        templates.into_iter().map(fill).collect()
    }

    /// Looks at the disk. While programs run, because one that fails for want of space may have
    /// removed what it made when it has ended.
    fn note_space(&self, stand: &Stand) {
        if let Ok(space) = rustix::fs::statvfs(&stand.place.top) {
            let free = space.f_bavail.saturating_mul(space.f_frsize);
            self.least_free.set(free.min(self.least_free.get()));
        }
    }

    /// Whether to go on waiting.
    fn go_on(&self, stand: &Stand) -> bool {
        self.note_space(stand);
        !self.stop.load(Ordering::Relaxed)
    }

    /// The last words of the log, and a word on the disk where there is little space.
    fn words(&self, stand: &Stand) -> String {
        self.note_space(stand);
        let free = self.least_free.get();
        if free >= LITTLE_SPACE {
            return self.log.words();
        }
        let top = stand.place.top.display();
        format!("only {} MiB were free on the disk of {top}; {}", free >> 20, self.log.words())
    }

    fn check_stop(&self, stand: &Stand) -> Result<(), ServerError> {
        if self.go_on(stand) {
            Ok(())
        } else {
            Err(ServerError::Stopped { engine: self.found.engine.clone() })
        }
    }

    /// Starts a program; as `step` it gets an input, as `server` its processors.
    fn launch(
        &self,
        stand: &Stand,
        kind: &'static str,
        words: &[String],
        input: Option<File>,
        cpus: Option<&[usize]>,
    ) -> Result<Process, ServerError> {
        let folder = stand.place.temporary();
        let launch = Launch {
            kind,
            words,
            environment: &self.environment,
            top: &stand.place.top,
            folder: &folder,
            input,
            log: &self.log_file,
            user: self.user.as_ref(),
            cpus,
        };
        launch.start(&stand.guard).map_err(self.of().system(format!("can't start {}", words[0])))
    }

    /// Makes the data.
    fn initialise(&self, stand: &Stand) -> Result<(), ServerError> {
        let place = &stand.place;
        let line = format!("{}\n", place.password.reveal());
        let file = place.secret_file("password", line.as_bytes());
        let file = file.map_err(self.of().system("can't write into the data folder"))?;
        let names = self.names.with("password_file", text(&file));
        for step in &self.def.initialise {
            self.step(stand, step, &names)?;
        }
        std::fs::remove_file(file).map_err(self.of().system("can't remove the file with the password"))
    }

    fn step(&self, stand: &Stand, step: &StepDef, names: &Names) -> Result<(), ServerError> {
        let words = self.all("initialise.run", &step.run, names)?;
        let input = if step.input.is_empty() { None } else { Some(self.input(stand, step, names)?) };
        let mut process = self.launch(stand, "step", &words, input, None)?;
        let status = process.wait(self.options.patience, || self.go_on(stand));
        let killed = process.kill();
        stand.guard.ended();
        self.check_stop(stand)?;
        if status.is_some_and(|status| status.success()) {
            return Ok(());
        }
        let ending = match (status, killed) {
            (Some(status), _) => Ending::new(status, self.kills).to_string(),
            (None, _) => format!("took more than {} s", self.options.patience.as_secs()),
        };
        let engine = self.found.engine.clone();
        Err(ServerError::Initialise { engine, program: words[0].clone(), ending, words: self.words(stand) })
    }

    /// The input of a step as a file that has no name any more.
    fn input(&self, stand: &Stand, step: &StepDef, names: &Names) -> Result<File, ServerError> {
        let names = names.with("password", stand.place.password.reveal());
        let mut bytes = Vec::new();
        for piece in &step.input {
            match piece {
                InputDef::Line(line) => {
                    bytes.extend(self.fill("initialise.input", line, &names)?.into_bytes());
                }
                InputDef::File(file) => {
                    let path = self.fill("initialise.input", &file.file, &names)?;
                    let read =
                        std::fs::read(&path).map_err(self.of().system(format!("can't read {path}")))?;
                    bytes.extend(read);
                }
            }
            bytes.push(b'\n');
        }
        let written = stand.place.secret_file("input", &bytes).and_then(|path| {
            let file = File::open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        });
        written.map_err(self.of().system("can't write into the data folder"))
    }

    /// Starts the server on a port of its own and waits until it listens.
    fn run(
        &self,
        stand: &Stand,
        granted: &Granted,
        ports: &mut dyn FnMut() -> std::io::Result<u16>,
    ) -> Result<Running, ServerError> {
        let taken = |port| ServerError::PortTaken { engine: self.found.engine.clone(), port };
        let mut left = PORTS;
        loop {
            let port = match self.options.port {
                Some(port) if is_taken(port) => return Err(taken(port)),
                Some(port) => port,
                None => ports().map_err(self.of().system("can't get a free port of 127.0.0.1"))?,
            };
            left -= 1;
            let names = self.names.with("port", port);
            let settings = self.named("settings", &self.def.settings, &names)?;
            let mut words = self.all("start", &self.def.start, &names)?;
            for (name, value) in &settings {
                let mut pair = Names::default();
                pair.set("name", name.as_str()).set("value", value.as_str());
                words.extend(self.all("setting_argument", &self.def.setting_argument, &pair)?);
            }
            let mut process = self.launch(stand, "server", &words, None, granted.server_cpus())?;
            match self.wait(stand, &mut process, port) {
                Ok(()) => return Ok(Running { process, port, settings }),
                Err(error) => {
                    process.kill();
                    stand.guard.ended();
                    // It may have died because another program took the port after we had looked.
                    let lost = matches!(error, ServerError::Died { .. }) && is_taken(port);
                    match self.options.port {
                        None if lost && left > 0 => {}
                        Some(port) if lost => return Err(taken(port)),
                        _ => return Err(error),
                    }
                }
            }
        }
    }

    fn wait(&self, stand: &Stand, process: &mut Process, port: u16) -> Result<(), ServerError> {
        let (engine, program) = (self.found.engine.clone(), self.found.program.clone());
        let begin = Instant::now();
        loop {
            self.check_stop(stand)?;
            if let Some(status) = process.ended() {
                let ending = Ending::new(status, self.kills).to_string();
                return Err(ServerError::Died { engine, program, ending, words: self.words(stand) });
            }
            let said = self.def.ready_words.as_ref().is_none_or(|words| self.log.holds(words));
            if said && listens(process.pid(), port) {
                return Ok(());
            }
            if begin.elapsed() >= self.options.patience {
                let seconds = self.options.patience.as_secs();
                return Err(ServerError::Silent { engine, program, seconds, port, words: self.words(stand) });
            }
            std::thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
#[path = "start_tests.rs"]
mod tests;
