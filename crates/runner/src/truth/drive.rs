//! Driving an exact search over its rows, step by step, so that it can be stopped, kept and timed.

use exact::{ExactError, Search};
use std::{
    ops::Range,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Instant,
};

/// How long a step should take: what a stop loses at most.
const STEP_SECONDS: f64 = 10.0;

/// The first step is made for this many products of two components, whose time is not yet known:
/// a few seconds on slow cores, and the whole of a small search.
const FIRST_PRODUCTS: f64 = 2e11;

/// Steps grow by at most this factor, because the first rows of a search are not typical.
const GROWTH: f64 = 8.0;

/// Steps end at multiples of this many rows: the chunks of the content hash.
pub(super) const STEP_ROWS: usize = 1024;

/// What a search has to do in all.
#[derive(Clone, Debug)]
pub(super) struct Work {
    /// The rows to search.
    pub(super) rows: Range<usize>,
    /// Pairs of a query and a row that may be its neighbour.
    pub(super) pairs: u64,
    /// Components of a vector.
    pub(super) dim: usize,
}

impl Work {
    fn pairs_per_row(&self) -> f64 {
        self.pairs as f64 / self.rows.len().max(1) as f64
    }

    /// Where a step that begins at `from` ends, for about `pairs` pairs.
    fn end_of_step(&self, from: usize, pairs: f64) -> usize {
        let rows = (pairs / self.pairs_per_row().max(1e-9)).min(1e15) as usize;
        let end = from.saturating_add(rows.max(STEP_ROWS)) / STEP_ROWS * STEP_ROWS;
        // A last step of a few rows would be all overhead.
        if end.saturating_add(rows / 8) >= self.rows.end { self.rows.end } else { end }
    }
}

/// How far a search is, for whoever watches it from another thread.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    done: AtomicU64,
    total: AtomicU64,
    /// Pairs before the step under way, and in it.
    step: (AtomicU64, AtomicU64),
}

impl Gauge {
    /// Takes what the search says of the step under way.
    pub(super) fn of_step(&self, done: u64, total: u64) {
        let (before, all) = (self.step.0.load(Ordering::Relaxed), self.step.1.load(Ordering::Relaxed));
        let part = all as f64 * done as f64 / total.max(1) as f64;
        self.done.fetch_max(before + (part as u64).min(all), Ordering::Relaxed);
    }

    fn begin_step(&self, before: u64, pairs: u64) {
        self.step.0.store(before, Ordering::Relaxed);
        self.step.1.store(pairs, Ordering::Relaxed);
        self.done.fetch_max(before, Ordering::Relaxed);
    }

    /// Done and in all.
    pub(super) fn read(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    pub(super) fn set(&self, done: u64, total: u64) {
        self.total.store(total, Ordering::Relaxed);
        self.done.fetch_max(done, Ordering::Relaxed);
    }
}

/// Searches all rows of `work`; after each step `kept` may save the state. True where it came to
/// the end, false where it was stopped (the state is that after the last whole step).
///
/// # Errors
/// Those of the search and of `kept`.
pub(super) fn drive<E: From<ExactError>>(
    search: &mut Search<'_>,
    work: &Work,
    gauge: &Gauge,
    stop: &AtomicBool,
    mut kept: impl FnMut(&Search<'_>) -> Result<(), E>,
) -> Result<bool, E> {
    let per_row = work.pairs_per_row();
    let mut budget = FIRST_PRODUCTS / work.dim.max(1) as f64;
    loop {
        let from = search.found().rows().end;
        let done = ((from - work.rows.start) as f64 * per_row) as u64;
        gauge.set(done, work.pairs);
        if from >= work.rows.end {
            return Ok(true);
        }
        let end = work.end_of_step(from, budget);
        let pairs = (end - from) as f64 * per_row;
        gauge.begin_step(done, pairs as u64);
        let begun = Instant::now();
        match search.advance(end) {
            Err(ExactError::Stopped) => return Ok(false),
            other => other?,
        }
        let rate = pairs / begun.elapsed().as_secs_f64().max(1e-6);
        budget = (rate * STEP_SECONDS).min(budget * GROWTH);
        if end < work.rows.end {
            kept(search)?;
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
        }
    }
}
