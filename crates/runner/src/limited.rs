//! Calls to an engine that are no query, each with a limit: a server that hangs must not hang the
//! run.

use engine::{Engine, EngineError, ErrorKind};
use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

/// Asks the engine something and waits at most `limit`. A call that does not come back is left
/// behind on its thread.
///
/// # Errors
/// Those of the call; [`ErrorKind::Timeout`] naming `what` and the option.
pub(crate) fn ask<T: Send + 'static>(
    engine: &Arc<dyn Engine>,
    limit: Duration,
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
    match told.recv_timeout(limit) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(EngineError::new(
            ErrorKind::Bug,
            format!("{what}: the engine's code panicked; see standard error"),
        )),
        Err(mpsc::RecvTimeoutError::Timeout) => {
            let limit = types::units::format_duration(limit);
            let text = format!("{what}: no answer within {limit}; raise it with --query-timeout");
            Err(EngineError::new(ErrorKind::Timeout, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake() -> Arc<dyn Engine> {
        let definition = engines::find("fake").expect("built in");
        Arc::from(engines::open(&definition, None).expect("it opens"))
    }

    #[test]
    fn a_call_that_hangs_is_given_up_by_name() {
        let error = ask(&fake(), Duration::from_millis(30), "row count", |_| {
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
        let limit = Duration::from_secs(60);
        assert!(ask(&fake(), limit, "identity", |e| e.identity()).is_ok());
        let error =
            ask(&fake(), limit, "x", |_| -> Result<(), EngineError> { panic!("on purpose") }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Bug);
    }
}
