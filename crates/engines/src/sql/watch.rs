//! A long statement under the runner's hand: its progress is asked for on a second connection, and a stop
//! cancels it.

use super::{
    protocol::{Connection, Protocol},
    server::Shared,
};
use engine::{Control, EngineError, ErrorKind};
use std::{
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

/// How often the runner's hand is looked at, and every how many looks progress is asked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const ASK_EVERY: u32 = 10;

/// Every how many looks a stop is sent again: the first may have come between two statements.
const CANCEL_EVERY: u32 = 40;

/// Runs statements one after the other.
///
/// # Errors
/// What the server says; [`ErrorKind::Stopped`] where `control` stopped it.
pub(crate) fn run<P: Protocol>(
    shared: &Arc<Shared<P>>,
    connection: &mut P::Connection,
    statements: &[String],
    progress: Option<&str>,
    control: &Control,
) -> Result<(), EngineError> {
    let cancel = connection.canceller();
    let done = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        let watcher = || {
            let mut second = progress.and_then(|_| shared.connect().ok());
            let (mut looks, mut stopped) = (0, 0);
            while !done.load(Ordering::Acquire) {
                thread::sleep(LOOK_EVERY);
                looks += 1;
                if control.stopped() {
                    if stopped % CANCEL_EVERY == 0 {
                        cancel();
                    }
                    stopped += 1;
                }
                if let (Some(text), Some(open)) = (progress, second.as_mut())
                    && looks % ASK_EVERY == 0
                {
                    match open.ask(text) {
                        Ok(answer) => tell(&answer, control),
                        Err(_) => second = None,
                    }
                }
            }
        };
        scope.spawn(watcher);
        let result = statements.iter().try_for_each(|statement| {
            if control.stopped() {
                return Ok(());
            }
            connection.run(statement)
        });
        done.store(true, Ordering::Release);
        result
    });
    if control.stopped() {
        return Err(EngineError::new(ErrorKind::Stopped, "stopped"));
    }
    result
}

fn tell(answer: &super::protocol::Answer, control: &Control) {
    let number = |cell: &Option<String>| cell.as_ref().and_then(|text| text.parse::<f64>().ok());
    let Some([done, total, ..]) = answer.first().map(Vec::as_slice) else { return };
    if let (Some(done), Some(total)) = (number(done), number(total))
        && total > 0.0
    {
        control.progress(done.max(0.0) as u64, total as u64);
    }
}
