//! An engine within reach: in this process, at an address, or on a server of our own that lives as long as this.

use crate::{Plan, limited::ask, resolve::ResolvedEngine, run::RunRequest};
use engine::{Definition, Engine, EngineError, ErrorKind, Identity, ServerDef};
use host::server::{Budget, DataDir, Found, Placement, Server, StartOptions, find_program, pin_this_thread};
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// What the engine's processes are, as far as they can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// Our own process.
    Ours,
    /// The server that we started, with all its descendants.
    Server(u32),
    /// A server elsewhere: nothing of it can be seen.
    Unseen,
}

/// See the module.
pub(crate) struct Serving {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) identity: Identity,
    server: Option<Server>,
}

/// The vectors that a server is to hold, for its budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) rows: u64,
    pub(crate) vectors_bytes: u64,
}

/// Whether Annvil starts the server itself.
pub(crate) fn is_local(engine: &ResolvedEngine) -> bool {
    engine.plan.at.is_none() && !engine.definition.capabilities.embedded
}

/// The program of a local server.
///
/// # Errors
/// Where the definition has no server, or there is no program.
pub(crate) fn program(engine: &ResolvedEngine) -> Result<(&ServerDef, Found), EngineError> {
    program_of(&engine.definition, engine.plan.program.as_deref())
}

fn program_of<'a>(
    definition: &'a Definition,
    named: Option<&Path>,
) -> Result<(&'a ServerDef, Found), EngineError> {
    let Definition { name, protocol, server, .. } = definition;
    let Some(def) = server else {
        let text = format!(
            "{name} is a server that Annvil can't start: give its address, such as --at {protocol}://user@host/database"
        );
        return Err(EngineError::new(ErrorKind::Unsupported, text));
    };
    let found = find_program(name, def, named)
        .map_err(|e| EngineError::caused(ErrorKind::Unreachable, e.to_string(), e))?;
    Ok((def, found))
}

/// An engine on a server of its own, for a check outside a run. The server is stopped when this is dropped.
pub struct LocalEngine {
    /// The engine.
    pub engine: Arc<dyn Engine>,
    _server: Server,
}

impl LocalEngine {
    /// Starts the server of `definition` with its data and log below `folder`.
    ///
    /// # Errors
    /// Where there is no program, or the start fails.
    pub fn start(
        definition: &Definition,
        named: Option<&Path>,
        folder: &Path,
        passwords: &engines::Passwords,
        stop: &AtomicBool,
    ) -> Result<Self, EngineError> {
        let (def, found) = program_of(definition, named)?;
        let data = DataDir::PrivateBelow(folder.to_owned());
        let options = StartOptions::new(data, folder.join(format!("{}.log", definition.name)));
        let (engine, server) = start(definition, (def, &found), &options, passwords, stop)?;
        Ok(LocalEngine { engine, _server: server })
    }
}

/// Starts a server and opens the engine on it.
fn start(
    definition: &Definition,
    (def, found): (&ServerDef, &Found),
    options: &StartOptions,
    passwords: &engines::Passwords,
    stop: &AtomicBool,
) -> Result<(Arc<dyn Engine>, Server), EngineError> {
    let server = Server::start(def, found, options, stop).map_err(|e| {
        let kind = if stop.load(Ordering::Relaxed) { ErrorKind::Stopped } else { ErrorKind::Unreachable };
        EngineError::caused(kind, e.to_string(), e)
    })?;
    let passwords = match server.password() {
        Some(password) => passwords.clone().with_given(password.clone()),
        None => passwords.clone(),
    };
    let engine = engines::open(definition, Some(server.address()), &passwords)?;
    Ok((Arc::from(engine), server))
}

impl Serving {
    /// Starts the server where one is to be started, opens the engine and asks who it is.
    ///
    /// # Errors
    /// Where any of that fails.
    pub(crate) fn begin(
        engine: &ResolvedEngine,
        request: &RunRequest,
        load: Load,
    ) -> Result<Self, EngineError> {
        if !is_local(engine) {
            let at = engine.plan.at.as_deref();
            let opened: Arc<dyn Engine> =
                Arc::from(engines::open(&engine.definition, at, &request.passwords)?);
            let identity = ask(&opened, request.asking(), "connecting", |e| e.identity())?;
            return Ok(Serving { engine: opened, identity, server: None });
        }
        let (def, found) = program(engine)?;
        let options = options(&request.plan, &request.out, request.data_dir.as_deref(), engine, load);
        let (opened, server) =
            start(&engine.definition, (def, &found), &options, &request.passwords, &request.interrupted)?;
        let identity = ask(&opened, request.asking(), "connecting", |e| e.identity())?;
        if let Placement::Apart { client, .. } = &server.granted().placement {
            // Where it fails both share the processors, which the ledger shows.
            let _shared = pin_this_thread(client);
        }
        Ok(Serving { engine: opened, identity, server: Some(server) })
    }

    /// Which processes to look at.
    pub(crate) fn watched(&self, definition: &Definition) -> Watched {
        match &self.server {
            Some(server) => Watched::Server(server.pid()),
            None if definition.capabilities.embedded => Watched::Ours,
            None => Watched::Unseen,
        }
    }

    /// Whether the server that we started is gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.server.as_ref().is_some_and(|server| !server.is_alive())
    }

    /// What became of our server, where it is gone: how it ended and its last words.
    pub(crate) fn obituary(&self) -> Option<String> {
        let server = self.server.as_ref()?;
        let ending = server.ending()?;
        Some(format!("the server {ending}; {}", server.last_words()))
    }

    /// Bytes of the data folder of our server.
    pub(crate) fn disk_bytes(&self) -> Option<u64> {
        self.server.as_ref().map(|server| folder_bytes(server.folder()))
    }

    /// How our server was started, for the manifest.
    pub(crate) fn started(&self) -> Option<Value> {
        self.server.as_ref().map(|server| {
            let settings: serde_json::Map<String, Value> =
                server.settings().iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            json!({
                "program": server.found().program, "version": server.found().version,
                "granted": server.granted(), "settings": settings,
            })
        })
    }

    /// What of our server determines a figure.
    pub(crate) fn budget(&self) -> Option<Value> {
        self.server.as_ref().map(|server| json!(server.granted()))
    }

    /// Stops our server.
    ///
    /// # Errors
    /// Where its data can't be removed, or it did not stop cleanly.
    pub(crate) fn end(self) -> Result<(), String> {
        drop(self.engine);
        let Some(server) = self.server else { return Ok(()) };
        if let Placement::Apart { server: own, client } = &server.granted().placement {
            let all: Vec<usize> = own.iter().chain(client).copied().collect();
            let _stays_pinned = pin_this_thread(&all);
        }
        let alive = server.is_alive();
        let stopped = server.stop().map_err(|e| e.to_string())?;
        if alive && !stopped.clean {
            let how = stopped.ending.map(|e| e.to_string()).unwrap_or_default();
            return Err(format!("the server did not stop cleanly: it {how}"));
        }
        Ok(())
    }
}

fn options(
    plan: &Plan,
    out: &Path,
    data_dir: Option<&Path>,
    engine: &ResolvedEngine,
    load: Load,
) -> StartOptions {
    let name = &engine.definition.name;
    let data = match data_dir {
        Some(folder) => DataDir::Kept(folder.join(name)),
        None => DataDir::PrivateBelow(out.to_owned()),
    };
    let mut options = StartOptions::new(data, out.join("logs").join(format!("{name}.log")));
    options.budget = Budget {
        memory_bytes: plan.server.memory,
        cpus: plan.server.cpus,
        vectors_bytes: load.vectors_bytes,
        rows: load.rows,
    };
    options
}

/// Bytes of all files below a folder; those that go meanwhile count as nothing.
fn folder_bytes(folder: &Path) -> u64 {
    let mut sum = 0;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => open.push(entry.path()),
                Ok(meta) => sum += meta.len(),
                Err(_) => {}
            }
        }
    }
    sum
}
