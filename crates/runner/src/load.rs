//! The load phase: rows go in by several workers, each with its own session, and are counted.

use crate::{
    clients::chain,
    limited::{Limit, ask},
};
use engine::{Batch, Engine, EngineError, ErrorKind};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};
use types::{Columns, Vectors};

/// What is loaded and how.
#[derive(Clone)]
pub(crate) struct LoadSpec {
    pub(crate) vectors: Vectors,
    pub(crate) columns: Option<Arc<Columns>>,
    pub(crate) workers: usize,
    pub(crate) batch: usize,
    pub(crate) limit: Duration,
    /// For single questions.
    pub(crate) query_limit: Duration,
}

/// What a load took.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) seconds: f64,
    pub(crate) retries: u64,
    pub(crate) counted: u64,
}

struct Shared {
    rows_done: AtomicU64,
    stop: AtomicBool,
}

/// Inserts all rows and asks the engine to count them. Worker w takes the batches w, w + n ...
///
/// # Errors
/// The first error of a worker, or a passed limit.
pub(crate) fn load(
    engine: &Arc<dyn Engine>,
    spec: &LoadSpec,
    interrupted: &AtomicBool,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<Loaded, EngineError> {
    let shared = Arc::new(Shared { rows_done: AtomicU64::new(0), stop: AtomicBool::new(false) });
    let workers = spec.workers;
    let asking = Limit::query(spec.query_limit, interrupted);
    let sessions = ask(engine, asking, "connecting", move |e| {
        (0..workers).map(|_| e.connect()).collect::<Result<Vec<_>, EngineError>>()
    })?;
    let (tell, told) = mpsc::channel();
    let start = Instant::now();
    for (worker, mut session) in sessions.into_iter().enumerate() {
        let (common, spec, tell) = (shared.clone(), spec.clone(), tell.clone());
        let work = move || {
            let result = insert_share(session.as_mut(), &spec, worker, &common);
            // Nobody listens where the load was given up.
            let _nobody = tell.send(result);
        };
        thread::Builder::new().name(format!("load-{worker}")).spawn(work).map_err(|e| {
            shared.stop.store(true, Ordering::Relaxed);
            EngineError::caused(
                ErrorKind::Overloaded,
                format!("load worker {worker} could not be started"),
                e,
            )
        })?;
    }
    drop(tell);
    let deadline = start + spec.limit;
    let mut retries = 0;
    for _ in 0..spec.workers {
        retries += wait_for_worker(&told, &shared, spec, deadline, interrupted, watch)
            .inspect_err(|_| shared.stop.store(true, Ordering::Relaxed))?;
    }
    let ending = Limit { time: spec.limit, option: "--load-timeout", interrupted };
    ask(engine, ending, "the end of the load", |e| e.finish_load())?;
    let seconds = start.elapsed().as_secs_f64();
    let counted = ask(engine, asking, "row count", |e| e.row_count())?;
    Ok(Loaded { seconds, retries, counted })
}

fn wait_for_worker(
    told: &mpsc::Receiver<Result<u64, EngineError>>,
    shared: &Shared,
    spec: &LoadSpec,
    deadline: Instant,
    interrupted: &AtomicBool,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<u64, EngineError> {
    loop {
        match told.recv_timeout(Duration::from_millis(100)) {
            Ok(result) => return result,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(EngineError::new(ErrorKind::Bug, "a load worker died without a word"));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        watch(shared.rows_done.load(Ordering::Relaxed), spec.vectors.rows() as u64);
        if interrupted.load(Ordering::Relaxed) {
            return Err(EngineError::new(ErrorKind::Stopped, "interrupted"));
        }
        if Instant::now() > deadline {
            let limit = types::units::format_duration(spec.limit);
            let text = format!("the load was not through after {limit}; raise it with --load-timeout");
            return Err(EngineError::new(ErrorKind::Timeout, text));
        }
    }
}

fn insert_share(
    session: &mut dyn engine::Session,
    spec: &LoadSpec,
    worker: usize,
    shared: &Shared,
) -> Result<u64, EngineError> {
    let rows = spec.vectors.rows();
    let mut retries = 0;
    for first in (worker * spec.batch..rows).step_by(spec.workers * spec.batch) {
        if shared.stop.load(Ordering::Relaxed) {
            return Err(EngineError::new(ErrorKind::Stopped, "the load was stopped"));
        }
        let range = first..(first + spec.batch).min(rows);
        let vectors = spec.vectors.slice(range.clone());
        let columns = spec.columns.as_ref().map(|c| c.slice(range.clone()));
        let keys = range.start as u64..range.end as u64;
        let batch = Batch { keys, vectors: &vectors, columns: columns.as_ref() };
        retries += session.insert(&batch).map_err(|e| {
            let text = format!("rows {}..{} could not be inserted: {}", range.start, range.end, chain(&e));
            EngineError::new(e.kind(), text)
        })?;
        shared.rows_done.fetch_add(range.len() as u64, Ordering::Relaxed);
    }
    Ok(retries)
}
