//! Ctrl-C: the first asks the work to end with what is finished, the second ends the process.

use crate::exit::Outcome;
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Signals within this time are one.
const ONE_STOP: Duration = Duration::from_millis(500);

/// When the first came.
static FIRST: OnceLock<Instant> = OnceLock::new();

/// The flag that the first Ctrl-C (or a termination signal) sets.
pub(crate) fn flag() -> Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    FLAG.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let seen = flag.clone();
        let install = ctrlc::set_handler(move || {
            let first = *FIRST.get_or_init(Instant::now);
            // One stop may come as several signals: `timeout` signals the process and then its group.
            if seen.swap(true, Ordering::SeqCst) && first.elapsed() > ONE_STOP {
                end_now();
            }
        });
        // Without a handler Ctrl-C ends the process at once, which the run directory survives.
        drop(install);
        flag
    })
    .clone()
}

#[expect(clippy::exit, reason = "a second Ctrl-C must end a process whose work does not stop")]
fn end_now() {
    std::process::exit(Outcome::Interrupted as i32)
}
