//! The build phase: the call that builds, then the wait until the index is ready; both timed.

use crate::limited::{Limit, ask};
use engine::{Control, Engine, EngineError, ErrorKind, IndexInfo, IndexSpec, Sizes};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

/// Limits of a build.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BuildLimits {
    pub(crate) build: Duration,
    pub(crate) ready: Duration,
    /// For single questions.
    pub(crate) query: Duration,
}

/// What a build took and gave.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) build_seconds: f64,
    pub(crate) ready_seconds: f64,
    pub(crate) indexed: Option<u64>,
    pub(crate) info: Option<IndexInfo>,
    pub(crate) sizes: Sizes,
}

/// How long a build that was told to stop may take to obey before it is left behind.
const GRACE: Duration = Duration::from_secs(5);

/// Builds, waits until ready, and reads the index back.
///
/// # Errors
/// Where the build fails or a limit is passed; the text names the option.
pub(crate) fn build(
    engine: &Arc<dyn Engine>,
    index: &IndexSpec,
    limits: BuildLimits,
    interrupted: &AtomicBool,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<Built, EngineError> {
    let start = Instant::now();
    call_build(engine, index, limits.build, interrupted, watch)?;
    let called = Instant::now();
    let indexed = wait_until_ready(engine, limits, interrupted, watch)?;
    let ready = Instant::now();
    let asking = Limit::query(limits.query, interrupted);
    Ok(Built {
        build_seconds: (called - start).as_secs_f64(),
        ready_seconds: (ready - called).as_secs_f64(),
        indexed,
        info: ask(engine, asking, "reading the index back", |e| e.index_info())?,
        sizes: ask(engine, asking, "sizes", |e| e.sizes())?,
    })
}

fn call_build(
    engine: &Arc<dyn Engine>,
    index: &IndexSpec,
    limit: Duration,
    interrupted: &AtomicBool,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<(), EngineError> {
    let control = Arc::new(Control::default());
    let (tell, told) = mpsc::channel();
    let (engine, index, hand) = (engine.clone(), index.clone(), control.clone());
    thread::Builder::new()
        .name("build".into())
        .spawn(move || {
            // Nobody listens where the build was given up.
            let _nobody = tell.send(engine.build(&index, &hand));
        })
        .map_err(|e| {
            EngineError::caused(ErrorKind::Overloaded, "the build thread could not be started", e)
        })?;
    let deadline = Instant::now() + limit;
    let mut given_up: Option<(Instant, EngineError)> = None;
    loop {
        match told.recv_timeout(Duration::from_millis(20)) {
            Ok(result) => return given_up.map_or(result, |(_, error)| Err(error)),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(EngineError::new(ErrorKind::Bug, "the build panicked; see standard error"));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        let (done, total) = control.progress_so_far();
        watch(done, total);
        if let Some((since, _)) = &given_up {
            if since.elapsed() > GRACE {
                return given_up.map_or(Ok(()), |(_, error)| Err(error));
            }
        } else if interrupted.load(Ordering::Relaxed) {
            control.stop();
            given_up = Some((Instant::now(), EngineError::new(ErrorKind::Stopped, "interrupted")));
        } else if Instant::now() > deadline {
            control.stop();
            let limit = types::units::format_duration(limit);
            let text = format!("the build was not through after {limit}; raise it with --build-timeout");
            given_up = Some((Instant::now(), EngineError::new(ErrorKind::Timeout, text)));
        }
    }
}

fn wait_until_ready(
    engine: &Arc<dyn Engine>,
    limits: BuildLimits,
    interrupted: &AtomicBool,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<Option<u64>, EngineError> {
    let deadline = Instant::now() + limits.ready;
    let mut pause = Duration::from_millis(1);
    loop {
        let readiness = ask(engine, Limit::query(limits.query, interrupted), "readiness", |e| e.readiness())?;
        if readiness.ready {
            return Ok(readiness.indexed);
        }
        if interrupted.load(Ordering::Relaxed) {
            return Err(EngineError::new(ErrorKind::Stopped, "interrupted"));
        }
        if Instant::now() > deadline {
            let limit = types::units::format_duration(limits.ready);
            let text = format!("the index was not ready after {limit}; raise it with --ready-timeout");
            return Err(EngineError::new(ErrorKind::Timeout, text));
        }
        watch(readiness.indexed.unwrap_or(0), 0);
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}
