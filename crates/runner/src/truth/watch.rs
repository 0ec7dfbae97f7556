//! Watching long work on another thread: how far it is, how long it will take, what it has to say.

use crate::{Preparation, RunnerError, event::Event};
use std::{
    sync::Mutex,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};
use types::units;

/// How often work is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A search whose time can be told after this is told it ...
const ESTIMATE_AFTER: Duration = Duration::from_millis(700);

/// ... where it is at least this long.
const ESTIMATE_FROM_SECONDS: f64 = 5.0;

/// How far work is, for whoever watches it from another thread.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    done: AtomicU64,
    total: AtomicU64,
    /// Pairs before the step under way, and in it.
    step: (AtomicU64, AtomicU64),
    /// Warnings to pass on.
    warnings: Mutex<Vec<String>>,
}

impl Gauge {
    /// Takes what the search says of the step under way.
    pub(super) fn of_step(&self, done: u64, total: u64) {
        let (before, all) = (self.step.0.load(Ordering::Relaxed), self.step.1.load(Ordering::Relaxed));
        let part = all as f64 * done as f64 / total.max(1) as f64;
        self.done.fetch_max(before + (part as u64).min(all), Ordering::Relaxed);
    }

    /// A step of `pairs` begins after `before`.
    pub(super) fn begin_step(&self, before: u64, pairs: u64) {
        self.step.0.store(before, Ordering::Relaxed);
        self.step.1.store(pairs, Ordering::Relaxed);
        self.done.fetch_max(before, Ordering::Relaxed);
    }

    /// Done and in all.
    pub(super) fn set(&self, done: u64, total: u64) {
        self.total.store(total, Ordering::Relaxed);
        self.done.fetch_max(done, Ordering::Relaxed);
    }

    /// Something for the user.
    pub(super) fn warn(&self, text: String) {
        if let Ok(mut warnings) = self.warnings.lock() {
            warnings.push(text);
        }
    }

    fn read(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    fn pass_on(&self, with: &Preparation<'_>) {
        let warnings = self.warnings.lock().map(|mut w| std::mem::take(&mut *w)).unwrap_or_default();
        warnings.iter().for_each(|text| (with.events)(&Event::Warning(text)));
    }
}

/// What is watched, in words.
#[derive(Clone, Copy)]
pub(super) struct Watched<'a> {
    /// For the progress line.
    pub(super) what: &'a str,
    /// What the gauge counts.
    pub(super) unit: &'static str,
    /// Said with the estimate of the time; none for no estimate.
    pub(super) advice: Option<&'a str>,
}

/// Runs `work` on another thread and tells from this one how far `gauge` is.
pub(super) fn watched<T: Send>(
    say: Watched<'_>,
    with: &Preparation<'_>,
    gauge: &Gauge,
    work: impl FnOnce() -> Result<T, RunnerError> + Send,
) -> Result<T, RunnerError> {
    let Watched { what, unit, mut advice } = say;
    (with.events)(&Event::Begin { what, unit });
    let begun = Instant::now();
    let result = std::thread::scope(|scope| {
        let worker = scope.spawn(work);
        while !worker.is_finished() {
            std::thread::sleep(LOOK_EVERY);
            let (done, total) = gauge.read();
            gauge.pass_on(with);
            if begun.elapsed() >= ESTIMATE_AFTER
                && done > 0
                && let Some(advice) = advice.take()
            {
                tell_time(begun, (done, total, unit), advice, with);
            }
            (with.events)(&Event::Progress { done, total });
        }
        worker.join()
    });
    gauge.pass_on(with);
    (with.events)(&Event::End);
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn tell_time(begun: Instant, (done, total, unit): (u64, u64, &str), advice: &str, with: &Preparation<'_>) {
    let rate = done as f64 / begun.elapsed().as_secs_f64();
    let left = total.saturating_sub(done) as f64 / rate;
    if left >= ESTIMATE_FROM_SECONDS {
        let (count, left, rate) = (units::count(total), units::seconds(left), units::rate(rate));
        let text = format!("{count} {unit}, about {left} at {rate} {unit}/s; {advice}");
        (with.events)(&Event::Note(&text));
    }
}
