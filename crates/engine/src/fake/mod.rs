//! The scripted fake engine: it really stores rows and answers exactly by a plain scan, and
//! misbehaves as its options say. For tests of everything that uses an engine, for the null engine
//! that measures what Annvil itself costs, and for trying the command line.
//!
//! It plays a server, so it has a clock of its own for delays and readiness; no time that it sees
//! is ever reported. What is not here: the product's exact search (crate `exact`).

mod options;
mod session;
mod store;
#[cfg(test)]
mod tests;

pub use options::{Answers, Explain, FakeOptions, IdType, Reply};

use crate::{
    Control, Definition, EncodedSearch, Engine, EngineError, ErrorKind, Identity, IndexInfo, IndexSpec,
    QueryPlan, Readiness, SearchSpec, Session, Setting, Sizes, TableSpec,
};
use session::{FakeSession, Point};
use std::{
    fmt::Display,
    fs::File,
    io::Write,
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use store::Store;

/// Opens the fake engine that `definition` describes.
///
/// # Errors
/// Where an option is unknown or senseless, or the log can't be opened.
pub fn open(definition: &Definition) -> Result<Box<dyn Engine>, EngineError> {
    let options: FakeOptions = toml::Value::Table(definition.options.clone()).try_into().map_err(|e| {
        let reason = toml::de::Error::message(&e).replace('\n', "; ");
        EngineError::caused(ErrorKind::Unsupported, format!("options of {}: {reason}", definition.name), e)
    })?;
    check(&options).map_err(|reason| {
        EngineError::new(ErrorKind::Unsupported, format!("options of {}: {reason}", definition.name))
    })?;
    let log = options.log.as_ref().map(|path| {
        let file = File::options().append(true).create(true).open(path);
        file.map(Mutex::new).map_err(|e| {
            EngineError::caused(ErrorKind::Refused, format!("log {path} of the fake engine: {e}"), e)
        })
    });
    let shared = Shared {
        definition: definition.clone(),
        options,
        table: RwLock::new(None),
        calls: AtomicU64::new(0),
        calls_at_create: AtomicU64::new(0),
        inserts: AtomicU64::new(0),
        gate: Mutex::new(()),
        dropped: AtomicBool::new(false),
        log: log.transpose()?,
    };
    Ok(Box::new(FakeEngine(Arc::new(shared))))
}

fn check(options: &FakeOptions) -> Result<(), String> {
    let o = options;
    for (name, value, most) in [
        ("service_ms", o.service_ms, 1e7),
        ("jitter_ms", o.jitter_ms, 1e7),
        ("slow_ms", o.slow_ms, 1e7),
        ("stall_from_s", o.stall_from_s, 1e6),
        ("stall_to_s", o.stall_to_s, 1e6),
        ("ready_after_s", o.ready_after_s, 1e6),
        ("build_s", o.build_s, 1e6),
        ("fail_share", o.fail_share, 1.0),
        ("fail_insert_share", o.fail_insert_share, 1.0),
        ("indexed_share", o.indexed_share, 1.0),
        ("effort_half", o.effort_half, 1e9),
    ] {
        if !(0.0..=most).contains(&value) {
            return Err(format!("{name} = {value} is outside 0..{most}"));
        }
    }
    Ok(())
}

/// What all sessions of a fake engine share: the server that it plays.
struct Shared {
    definition: Definition,
    options: FakeOptions,
    table: RwLock<Option<Table>>,
    calls: AtomicU64,
    calls_at_create: AtomicU64,
    inserts: AtomicU64,
    gate: Mutex<()>,
    dropped: AtomicBool,
    log: Option<Mutex<File>>,
}

struct Table {
    name: String,
    store: Store,
    kind: String,
    built: Option<Built>,
}

struct Built {
    index: IndexSpec,
    ready_at: Instant,
}

impl Shared {
    fn read(&self) -> RwLockReadGuard<'_, Option<Table>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Option<Table>> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn reached(&self) -> Result<(), EngineError> {
        if self.options.unreachable {
            return Err(EngineError::new(
                ErrorKind::Unreachable,
                "fake: no connection to fake://server: connection refused; is the server running?",
            ));
        }
        if self.options.denied {
            return Err(EngineError::new(
                ErrorKind::Denied,
                "fake: fake://server does not let user \"annvil\" in; check user and password",
            ));
        }
        Ok(())
    }

    fn log(&self, line: impl Display) -> Result<(), EngineError> {
        let Some(log) = &self.log else { return Ok(()) };
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(log, "{line}")
            .map_err(|e| EngineError::caused(ErrorKind::Bug, format!("log of the fake engine: {e}"), e))
    }

    /// Whether this is the first time that the script asks for a crash.
    fn may_abort(&self) -> bool {
        let Some(marker) = &self.options.abort_once else { return true };
        File::options().write(true).create_new(true).open(marker).is_ok()
    }

    fn failure(&self, what: &str) -> EngineError {
        EngineError::new(self.options.fail_kind, format!("fake: {what} fails as scripted"))
    }
}

fn no_table() -> EngineError {
    EngineError::new(ErrorKind::Refused, "fake: there is no table; create it first")
}

/// Whether call `n` (from 1) is among the failing `share`: evenly spread, exact over any stretch.
fn falls_in_share(share: f64, n: u64) -> bool {
    (n as f64 * share).floor() > ((n - 1) as f64 * share).floor()
}

struct FakeEngine(Arc<Shared>);

impl Drop for FakeEngine {
    fn drop(&mut self) {
        // Lets searches end that hang as scripted.
        self.0.dropped.store(true, Ordering::Relaxed);
    }
}

impl Engine for FakeEngine {
    fn identity(&self) -> Result<Identity, EngineError> {
        self.0.reached()?;
        let options = self.0.definition.options.iter().map(|(name, value)| Setting {
            name: name.clone(),
            value: value.to_string(),
            default: None,
        });
        Ok(Identity {
            version: env!("CARGO_PKG_VERSION").into(),
            source: "built in".into(),
            client: "none".into(),
            protocol: "function call in the same process".into(),
            settings: options.collect(),
        })
    }

    fn create(&self, table: &TableSpec) -> Result<(), EngineError> {
        self.0.reached()?;
        self.0.definition.check_table(table)?;
        self.0.log(format_args!("create {} rows={} dim={}", table.name, table.rows, table.dim))?;
        let mut slot = self.0.write();
        let old = slot.take().filter(|old| self.0.options.keep_old_rows && old.name == table.name);
        let store = old.map_or_else(|| Store::new(table.dim, table.metric), |old| old.store);
        *slot = Some(Table { name: table.name.clone(), store, kind: table.index.kind.clone(), built: None });
        self.0.calls_at_create.store(self.0.calls.load(Ordering::Relaxed), Ordering::Relaxed);
        Ok(())
    }

    fn connect(&self) -> Result<Box<dyn Session>, EngineError> {
        self.0.reached()?;
        Ok(Box::new(FakeSession::new(self.0.clone())))
    }

    fn finish_load(&self) -> Result<(), EngineError> {
        let mut table = self.0.write();
        let table = table.as_mut().ok_or_else(no_table)?;
        if self.0.options.lose_last_batch {
            table.store.lose_last_batch();
        }
        Ok(())
    }

    fn row_count(&self) -> Result<u64, EngineError> {
        self.0.reached()?;
        Ok(self.0.read().as_ref().ok_or_else(no_table)?.store.rows() as u64)
    }

    fn build(&self, index: &IndexSpec, control: &Control) -> Result<(), EngineError> {
        self.0.reached()?;
        let options = &self.0.options;
        let params: Vec<String> =
            index.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.0.log(format_args!("build {} {}", index.kind, params.join(" ")))?;
        if options.build_fails {
            return Err(self.0.failure("build"));
        }
        let (start, takes) = (Instant::now(), Duration::from_secs_f64(options.build_s));
        let rows = self.row_count()?;
        while options.build_hangs || start.elapsed() < takes {
            if control.stopped() {
                return Err(EngineError::new(ErrorKind::Stopped, "fake: build stopped"));
            }
            let part =
                if takes.is_zero() { 0.0 } else { start.elapsed().as_secs_f64() / takes.as_secs_f64() };
            control.progress((rows as f64 * part.min(1.0)) as u64, rows);
            std::thread::sleep(Duration::from_millis(5));
        }
        control.progress(rows, rows);
        let ready_at = Instant::now() + Duration::from_secs_f64(options.ready_after_s);
        let mut table = self.0.write();
        let table = table.as_mut().ok_or_else(no_table)?;
        table.kind.clone_from(&index.kind);
        table.built = Some(Built { index: index.clone(), ready_at });
        Ok(())
    }

    fn readiness(&self) -> Result<Readiness, EngineError> {
        self.0.reached()?;
        let table = self.0.read();
        let table = table.as_ref().ok_or_else(no_table)?;
        let ready = table.built.as_ref().is_some_and(|built| Instant::now() >= built.ready_at);
        let indexed = if ready { indexed(&self.0.options, table) } else { 0 };
        Ok(Readiness { ready, indexed: Some(indexed) })
    }

    fn index_info(&self) -> Result<Option<IndexInfo>, EngineError> {
        self.0.reached()?;
        let (table, options) = (self.0.read(), &self.0.options);
        let table = table.as_ref().ok_or_else(no_table)?;
        let Some(built) = &table.built else { return Ok(None) };
        let kind = options.read_back_kind.as_ref().unwrap_or(&built.index.kind);
        if kind == "none" {
            return Ok(None);
        }
        let mut params = built.index.params.clone();
        params.extend(options.read_back.clone());
        Ok(Some(IndexInfo {
            kind: kind.clone(),
            params,
            indexed: Some(indexed(options, table)),
            remarks: Vec::new(),
        }))
    }

    fn sizes(&self) -> Result<Sizes, EngineError> {
        self.0.reached()?;
        let table = self.0.read();
        let table = table.as_ref().ok_or_else(no_table)?;
        // The fake has no index; a plausible figure would be an invented one.
        Ok(Sizes { index: None, table: Some(table.store.bytes()) })
    }

    fn encode(&self, search: SearchSpec) -> Result<Arc<EncodedSearch>, EngineError> {
        let table = self.0.read();
        let table = table.as_ref().ok_or_else(no_table)?;
        self.0.definition.check_search(&table.kind, &search)?;
        let point = Point::new(&self.0, table, &search)?;
        Ok(Arc::new(EncodedSearch { spec: search, payload: Box::new(Arc::new(point)) }))
    }

    fn explain(&self, _search: &EncodedSearch, query: usize) -> Result<Option<QueryPlan>, EngineError> {
        let plan =
            |text: &str, uses_index| Some(QueryPlan { text: text.into(), uses_index: Some(uses_index) });
        let _ = query; // every query is run alike
        Ok(match self.0.options.explain {
            Explain::Index => plan("Fake Index Scan", true),
            Explain::Scan => plan("Fake Sequential Scan", false),
            Explain::None => None,
        })
    }

    fn remove(&self) -> Result<(), EngineError> {
        self.0.reached()?;
        self.0.log("remove")?;
        *self.0.write() = None;
        Ok(())
    }
}

fn indexed(options: &FakeOptions, table: &Table) -> u64 {
    (table.store.rows() as f64 * options.indexed_share).round() as u64
}
