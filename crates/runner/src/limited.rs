//! Calls to an engine that are no query, each with a limit: a server that hangs must not hang the
//! run.

use engine::{Engine, EngineError, ErrorKind};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// How often a wait looks whether the user wants to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A limit with the option that sets it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit<'a> {
    pub(crate) time: Duration,
    pub(crate) option: &'static str,
    /// Set by the user to stop.
    pub(crate) interrupted: &'a AtomicBool,
}

impl<'a> Limit<'a> {
    /// The limit of single questions.
    pub(crate) fn query(time: Duration, interrupted: &'a AtomicBool) -> Self {
        Limit { time, option: "--query-timeout", interrupted }
    }
}

/// Asks the engine something and waits at most `limit`. A call that does not come back is left
/// behind on its thread.
///
/// # Errors
/// Those of the call; [`ErrorKind::Timeout`] naming `what` and the option; [`ErrorKind::Stopped`]
/// where the user stops.
pub(crate) fn ask<T: Send + 'static>(
    engine: &Arc<dyn Engine>,
    limit: Limit<'_>,
    what: &str,
    call: impl FnOnce(&dyn Engine) -> Result<T, EngineError> + Send + 'static,
) -> Result<T, EngineError> {
    let (tell, told) = mpsc::channel();
    let engine = engine.clone();
    thread::Builder::new()
        .name("ask".into())
        .spawn(move || {
            // Nobody listens where the call was given up.
            let _nobody = tell.send(call(engine.as_ref()));
        })
        .map_err(|e| EngineError::caused(ErrorKind::Overloaded, "a thread could not be started", e))?;
    let deadline = Instant::now() + limit.time;
    loop {
        match told.recv_timeout(LOOK_EVERY.min(deadline.saturating_duration_since(Instant::now()))) {
            Ok(result) => return result,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let text = format!("{what}: the engine's code panicked; see standard error");
                return Err(EngineError::new(ErrorKind::Bug, text));
            }
            Err(mpsc::RecvTimeoutError::Timeout) if limit.interrupted.load(Ordering::Relaxed) => {
                return Err(EngineError::new(ErrorKind::Stopped, "interrupted"));
            }
            Err(mpsc::RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                let time = types::units::format_duration(limit.time);
                let text = format!("{what}: no answer within {time}; raise it with {}", limit.option);
                return Err(EngineError::new(ErrorKind::Timeout, text));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(ms: u64) -> Limit<'static> {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Limit::query(Duration::from_millis(ms), &NEVER)
    }

    #[test]
    fn a_wait_ends_when_the_user_stops() {
        let stop = AtomicBool::new(true);
        let limit = Limit { time: Duration::from_secs(60), option: "--load-timeout", interrupted: &stop };
        let error = ask(&fake(), limit, "the end of the load", |_| {
            thread::sleep(Duration::from_secs(5));
            Ok(())
        })
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Stopped);
    }

    fn fake() -> Arc<dyn Engine> {
        let definition = engines::find("fake").expect("built in");
        Arc::from(engines::open(&definition, None, &engines::Passwords::default()).expect("it opens"))
    }

    #[test]
    fn a_call_that_hangs_is_given_up_by_name() {
        let error = ask(&fake(), limit(30), "row count", |_| {
            thread::sleep(Duration::from_secs(5));
            Ok(())
        })
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        let text = error.to_string();
        assert!(text.contains("row count") && text.contains("--query-timeout"), "{text}");
    }

    #[test]
    fn answers_and_panics_come_back() {
        let limit = limit(60_000);
        assert!(ask(&fake(), limit, "identity", |e| e.identity()).is_ok());
        let error =
            ask(&fake(), limit, "x", |_| -> Result<(), EngineError> { panic!("on purpose") }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Bug);
    }
}
