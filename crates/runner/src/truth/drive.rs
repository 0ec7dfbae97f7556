//! Driving an exact search over its rows, step by step, so that it can be stopped, kept and timed.

use super::watch::Gauge;
use exact::{ExactError, Search};
use std::{
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// What a pair costs beside its products, in products.
const PAIR_PRODUCTS: f64 = 64.0;

/// Steps grow by at most this factor, because the first rows of a search are not typical.
const GROWTH: f64 = 8.0;

/// Steps end at multiples of this many rows: the chunks of the content hash.
const STEP_ROWS: usize = dataset::HASH_CHUNK_ROWS;

/// What a search has to do.
#[derive(Clone, Debug)]
pub(super) struct Work {
    /// The rows to search.
    pub(super) rows: Range<usize>,
    /// Pairs of a query and a row that may be its neighbour.
    pub(super) pairs: u64,
    /// Components of a vector.
    pub(super) dim: usize,
    /// Products of two components for which the first step is made, its speed being unknown: see
    /// [`first_products`].
    pub(super) first: f64,
    /// How long a step should take: what a stop loses at most.
    pub(super) step: Duration,
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

/// Products of two components that take some seconds of a step of `step` at most, on `threads` slow cores
/// of that instruction set; a small search is one step.
pub(super) fn first_products(level: exact::Level, threads: usize, step: Duration) -> f64 {
    let per_thread = match level {
        exact::Level::Portable => 2e9,
        exact::Level::Neon => 1e10,
        exact::Level::Avx2 => 4e10,
        _ => 1e11,
    };
    per_thread * threads as f64 * step.as_secs_f64() / 10.0
}

/// How a drive ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Driven {
    /// False where it was stopped: the state is that after the last whole step.
    pub(super) finished: bool,
    /// Seconds in the search alone.
    pub(super) seconds: f64,
}

/// Searches all rows of `work`. `after` is called after each step with the rows of it.
///
/// # Errors
/// Those of the search and of `after`.
pub(super) fn drive<E: From<ExactError>>(
    search: &mut Search<'_>,
    work: &Work,
    gauge: &Gauge,
    stop: &AtomicBool,
    mut after: impl FnMut(&Search<'_>, Range<usize>) -> Result<(), E>,
) -> Result<Driven, E> {
    let per_row = work.pairs_per_row();
    let step_seconds = work.step.as_secs_f64();
    let mut budget = work.first / (work.dim as f64 + PAIR_PRODUCTS);
    let mut seconds = 0.0;
    loop {
        let from = search.found().rows().end;
        let done = ((from - work.rows.start) as f64 * per_row) as u64;
        gauge.set(done, work.pairs);
        if from >= work.rows.end {
            return Ok(Driven { finished: true, seconds });
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(Driven { finished: false, seconds });
        }
        let end = work.end_of_step(from, budget);
        let pairs = (end - from) as f64 * per_row;
        gauge.begin_step(done, pairs as u64);
        let begun = Instant::now();
        match search.advance(end) {
            Err(ExactError::Stopped) => return Ok(Driven { finished: false, seconds }),
            other => other?,
        }
        let took = begun.elapsed().as_secs_f64();
        seconds += took;
        budget = (pairs / took.max(1e-6) * step_seconds).min(budget * GROWTH);
        after(search, from..end)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_at_chunks_and_leave_no_crumbs() {
        let work = |rows: Range<usize>| Work {
            pairs: rows.len() as u64 * 10,
            rows,
            dim: 8,
            first: 1e9,
            step: Duration::from_secs(1),
        };
        let all = work(2048..1_000_001);
        assert_eq!(all.end_of_step(2048, 10.0), 3072, "at least one chunk");
        assert_eq!(all.end_of_step(2048, 50_000.0), 6144);
        assert_eq!(all.end_of_step(2048, 1e18), 1_000_001);
        assert_eq!(all.end_of_step(900_000, 900_000.0), 1_000_001, "the last 10,000 rows go along");
        // Nothing qualifies: one step.
        assert_eq!(Work { pairs: 0, ..work(0..5000) }.end_of_step(0, 1.0), 5000);
    }
}
