//! Driving an exact search over its rows, step by step, so that it can be stopped, kept and timed.

use super::watch::Gauge;
use exact::{ExactError, Search};
use std::{
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
use types::Vectors;

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
    /// Bytes that rows of a mapped base may take in memory; none for no limit.
    pub(super) memory: Option<u64>,
}

impl Work {
    /// The memory by which blocks of `rows` are measured: as large as they get where all is in memory.
    fn read_memory(&self, base: &Vectors, rows: &Range<usize>) -> Option<u64> {
        self.memory.or_else(|| base.is_resident(rows.clone()).then_some(u64::MAX))
    }

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
        exact::Level::Avx2 => 1e11,
        _ => 6e11,
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

/// Searches all rows of `work`, which are of `base`. `after` is called with the rows of each step, or
/// of each block of it where the base is mapped: blocks are read ahead, so that the disk and the search
/// work at the same time, and what was searched is given back below the limit of memory.
///
/// # Errors
/// Those of the search and of `after`.
pub(super) fn drive<E: From<ExactError>>(
    search: &mut Search<'_>,
    base: &Vectors,
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
        let begun = Instant::now();
        // The time of the search is that of reading and searching, not of what is done afterwards.
        let mut since = begun;
        let blocks = exact::read_blocks(base, from..end, work.read_memory(base, &(from..end)), STEP_ROWS);
        for rows in exact::ReadAhead::new(base, blocks, work.memory, Some(stop)) {
            let before = ((rows.start - work.rows.start) as f64 * per_row) as u64;
            gauge.begin_step(before, (rows.len() as f64 * per_row) as u64);
            match search.advance(rows.end) {
                Err(ExactError::Stopped) => return Ok(Driven { finished: false, seconds }),
                other => other?,
            }
            seconds += since.elapsed().as_secs_f64();
            after(search, rows)?;
            since = Instant::now();
        }
        let took = begun.elapsed().as_secs_f64();
        let pairs = (search.found().rows().end - from) as f64 * per_row;
        budget = (pairs / took.max(1e-6) * step_seconds).min(budget * GROWTH);
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
            memory: None,
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
