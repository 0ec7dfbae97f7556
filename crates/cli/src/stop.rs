//! Ctrl-C: the first asks the work to end with what is finished, the second ends the process.

use crate::exit::Outcome;
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

/// The flag that the first Ctrl-C (or a termination signal) sets.
pub(crate) fn flag() -> Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    FLAG.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let seen = flag.clone();
        let install = ctrlc::set_handler(move || {
            if seen.swap(true, Ordering::SeqCst) {
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
