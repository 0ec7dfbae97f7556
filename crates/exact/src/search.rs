//! Exact neighbours of many queries at once.
//!
//! Rows are read in blocks, each block by all queries before the next, so the base is streamed once.
//! Per block: rows are decoded to f32 (borrowed where they are f32), tiles of queries screen them in
//! f32 against a cut that follows from the k-th best key so far, and what passes is decided in
//! float64. The screening can only rule out what is certainly worse, so the answer is that of a
//! float64 scan, bit for bit.

use crate::block::{Block, Buffer};
use crate::cut::cut_at;
use crate::distance::{Probe, check_pair};
use crate::topk::{Scored, TopK};
use crate::{ExactError, Group, Partial, Searcher};
use kernel::{Level, SCREEN_ROWS, TILE_QUERIES, Tile, screen};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use types::{Element, Metric, RowSet, Truth, Vectors};

/// Bytes of decoded rows in a block: several blocks fit any shared cache.
const BLOCK_BYTES: usize = 4 << 20;
/// Groups of fewer queries than this are searched one query at a time.
const FEW_QUERIES: usize = 4;

/// How a search runs. The default: all cores, silent, not to be stopped.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Threads; none for one per core.
    pub threads: Option<usize>,
    /// Called now and then, from any thread, with pairs of vectors done and in all.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    /// Set it to end the search with [`ExactError::Stopped`].
    pub stop: Option<&'a AtomicBool>,
    /// The instruction set; none for the best there is. For tests and benchmarks: a level that the
    /// machine lacks is replaced by the best.
    pub level: Option<Level>,
    /// Bytes of working memory, beside the base and the lists found; none for what is fastest.
    pub memory: Option<u64>,
}

/// The rows among which neighbours are sought.
#[derive(Clone, Copy, Debug)]
pub enum Subset<'a> {
    /// All.
    All,
    /// These, for every query.
    Same(&'a RowSet),
    /// Rows by group of queries. A query in no group has no neighbours.
    Groups(&'a [Group]),
}

/// The `k` nearest rows of `base` for each row of `queries`, nearest first, ties by the lower row.
///
/// Lists are shorter where fewer rows qualify. Under cosine a zero row has no distance and never
/// qualifies, and a zero query has an empty list with 0 rows matching. Any two element types may
/// meet, bits with bits only.
///
/// # Errors
/// Where metric, elements, dimensions or row sets do not fit, where `k` is 0, or when stopped.
pub fn neighbours(
    base: &Vectors,
    queries: &Vectors,
    metric: Metric,
    k: usize,
    subset: Subset<'_>,
    options: &Options<'_>,
) -> Result<Truth, ExactError> {
    let mut search = Search::new(base, queries, metric, k, &[subset], *options)?;
    search.advance(base.rows())?;
    Ok(search.finish().pop().unwrap_or_else(|| Truth::new(k)))
}

/// An exact search over the rows of a base from one row to another, some rows at a time, for one or
/// more cases (filters) at once.
///
/// What it finds does not depend on how the rows are divided: `advance` may be called with any
/// steps, the state ([`Search::found`]) saved between them and continued elsewhere
/// ([`Search::resume`]), and searches of neighbouring ranges merged ([`Partial::merge`]).
pub struct Search<'a> {
    base: &'a Vectors,
    queries: &'a Vectors,
    metric: Metric,
    k: usize,
    cases: Vec<Vec<Unit<'a>>>,
    options: Options<'a>,
    pool: rayon::ThreadPool,
    found: Partial,
}

impl<'a> Search<'a> {
    /// A search that begins at row 0. `cases` name rows of the whole base.
    ///
    /// # Errors
    /// As [`neighbours`].
    pub fn new(
        base: &'a Vectors,
        queries: &'a Vectors,
        metric: Metric,
        k: usize,
        cases: &[Subset<'a>],
        options: Options<'a>,
    ) -> Result<Search<'a>, ExactError> {
        check_pair(base, queries, metric)?;
        if k == 0 {
            return Err(ExactError::ZeroK);
        }
        let units = |&subset: &Subset<'a>| units(base, queries, subset);
        let cases = cases.iter().map(units).collect::<Result<Vec<_>, _>>()?;
        let found = Partial::new(0, cases.len(), queries.rows());
        let pool = thread_pool(options.threads)?;
        Ok(Search { base, queries, metric, k, cases, options, pool, found })
    }

    /// Goes on from `found`, or begins at its start where it is empty.
    ///
    /// # Errors
    /// Where `found` is of other cases, queries or rows.
    pub fn resume(&mut self, found: Partial) -> Result<(), ExactError> {
        found.check(self.cases.len(), self.queries.rows(), self.base.rows())?;
        self.found = found;
        Ok(())
    }

    /// Searches the rows from where it stands up to (not including) `end`.
    ///
    /// # Errors
    /// [`ExactError::Stopped`]: the state is that before the call.
    pub fn advance(&mut self, end: usize) -> Result<(), ExactError> {
        let rows = self.found.rows().end..end.min(self.base.rows());
        if rows.is_empty() {
            return Ok(());
        }
        let mut cases = Vec::new();
        for (i, units) in self.cases.iter().enumerate() {
            let new = self.pool.install(|| self.search_rows(units, rows.clone()))?;
            let mut case = self.found.case(i).clone();
            for (query, (list, matching)) in new.into_iter().enumerate() {
                case.lists[query].extend(list);
                case.lists[query].sort_unstable();
                case.lists[query].truncate(self.k);
                case.matching[query] += matching;
            }
            cases.push(case);
        }
        self.found.advance(rows.end, cases);
        Ok(())
    }

    fn search_rows(&self, units: &[Unit<'_>], rows: Range<usize>) -> Result<Vec<Answer>, ExactError> {
        let pairs = |u: &Unit<'_>| u.row_count(&rows) as u64 * u.queries.len() as u64;
        let level = self.options.level.filter(|l| Level::available().contains(l));
        let job = Job {
            base: self.base,
            queries: self.queries,
            metric: self.metric,
            k: self.k,
            level: level.unwrap_or_else(Level::detect),
            threads: self.pool.current_num_threads(),
            options: &self.options,
            done: AtomicU64::new(0),
            total: units.iter().map(pairs).sum(),
            rows,
        };
        job.run(units)
    }

    /// What was found so far.
    pub fn found(&self) -> &Partial {
        &self.found
    }

    /// The truth of each case, over the rows searched.
    pub fn finish(self) -> Vec<Truth> {
        self.found.truths(self.metric, self.k)
    }
}

/// A pool of `threads`, or of one thread per core.
pub(crate) fn thread_pool(threads: Option<usize>) -> Result<rayon::ThreadPool, ExactError> {
    let threads = threads.unwrap_or(0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("exact-{i}"));
    pool.build().map_err(|source| ExactError::Threads { threads, source })
}

/// Queries that look at the same rows.
struct Unit<'a> {
    rows: Option<&'a RowSet>,
    queries: Vec<usize>,
}

impl Unit<'_> {
    fn row_count(&self, range: &Range<usize>) -> usize {
        self.rows.map_or(range.len(), |rows| rows.count_in(range.clone()))
    }
}

fn units<'a>(base: &Vectors, queries: &Vectors, subset: Subset<'a>) -> Result<Vec<Unit<'a>>, ExactError> {
    let all = || (0..queries.rows()).collect();
    let units = match subset {
        Subset::All => vec![Unit { rows: None, queries: all() }],
        Subset::Same(rows) => vec![Unit { rows: Some(rows), queries: all() }],
        Subset::Groups(groups) => {
            let unit = |g: &'a Group| Unit { rows: g.rows.as_deref(), queries: g.queries.clone() };
            groups.iter().map(unit).collect()
        }
    };
    for unit in &units {
        if let Some(rows) = unit.rows
            && rows.rows() != base.rows()
        {
            let (found, expected) = (rows.rows(), base.rows());
            return Err(ExactError::Length { what: "row set", unit: "rows", found, expected });
        }
        if let Some(&past) = unit.queries.iter().find(|&&q| q >= queries.rows()) {
            let (found, expected) = (past + 1, queries.rows());
            return Err(ExactError::Length { what: "groups", unit: "queries", found, expected });
        }
    }
    Ok(units)
}

struct Job<'a> {
    base: &'a Vectors,
    queries: &'a Vectors,
    metric: Metric,
    k: usize,
    level: Level,
    threads: usize,
    options: &'a Options<'a>,
    done: AtomicU64,
    total: u64,
    rows: Range<usize>,
}

/// The neighbours of a query, and how many rows qualify for it.
type Answer = (Vec<Scored>, u64);

impl Job<'_> {
    fn run(&self, units: &[Unit<'_>]) -> Result<Vec<Answer>, ExactError> {
        let one_by_one = |u: &Unit<'_>| {
            units.len() > self.threads && u.queries.len() < FEW_QUERIES && self.rows.len() == self.base.rows()
        };
        let searcher = units
            .iter()
            .any(one_by_one)
            .then(|| Searcher::prepared(self.base.clone(), self.metric, self.level));
        let found: Vec<Vec<Answer>> = units
            .par_iter()
            .map(|unit| match &searcher {
                Some(searcher) if one_by_one(unit) => self.one_by_one(searcher, unit),
                _ => self.together(unit),
            })
            .collect::<Result<_, _>>()?;
        let mut answers: Vec<Answer> = vec![(Vec::new(), 0); self.queries.rows()];
        for (unit, found) in units.iter().zip(found) {
            for (&query, answer) in unit.queries.iter().zip(found) {
                answers[query] = answer;
            }
        }
        Ok(answers)
    }

    fn stopped(&self) -> bool {
        self.options.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    fn advance(&self, pairs: usize) {
        let done = self.done.fetch_add(pairs as u64, Ordering::Relaxed) + pairs as u64;
        if let Some(progress) = self.options.progress {
            progress(done, self.total);
        }
    }

    fn one_by_one(&self, searcher: &Searcher, unit: &Unit<'_>) -> Result<Vec<Answer>, ExactError> {
        let mut scratch = crate::Scratch::default();
        let mut answers = Vec::with_capacity(unit.queries.len());
        for &query in &unit.queries {
            if self.stopped() {
                return Err(ExactError::Stopped);
            }
            scratch.probe = Probe::new(self.queries, query);
            let matching = searcher.scan(self.k, unit.rows, &mut scratch);
            answers.push((scratch.sorted.clone(), matching));
            self.advance(unit.row_count(&self.rows));
        }
        Ok(answers)
    }

    /// All queries of a unit over all its rows, block by block.
    fn together(&self, unit: &Unit<'_>) -> Result<Vec<Answer>, ExactError> {
        let count = unit.row_count(&self.rows);
        let mut rows: Box<dyn Iterator<Item = u32> + '_> = match unit.rows {
            Some(set) => Box::new(set.iter_in(self.rows.clone()).map(|row| row as u32)),
            None => Box::new(self.rows.start as u32..self.rows.end as u32),
        };
        let parts = self.parts(unit.queries.len(), count);
        let mut states: Vec<State> = unit
            .queries
            .par_chunks(TILE_QUERIES)
            .flat_map_iter(|queries| (0..parts).map(|part| self.state(queries, part, count)))
            .collect();
        let row_bytes = (self.base.dim() * 4).max(1);
        let bytes = self.options.memory.map_or(BLOCK_BYTES, |memory| BLOCK_BYTES.min((memory / 8) as usize));
        let step = (bytes / row_bytes).clamp(SCREEN_ROWS * parts, 1 << 16);
        let mut buffer = Buffer::default();
        let mut qualifying = 0;
        loop {
            let chunk: Vec<u32> = rows.by_ref().take(step).collect();
            if chunk.is_empty() {
                return Ok(self.merge(&mut states, parts, qualifying));
            }
            let pairs = chunk.len() * unit.queries.len();
            let block = Block::load(self.base, self.metric, self.level, chunk, &mut buffer);
            qualifying += block.ids.len() as u64;
            states.par_iter_mut().for_each(|state| {
                if !self.stopped() {
                    state.scan(self, &block, parts);
                }
            });
            // Asked last: a flag set while the block was scanned leaves some states behind.
            if self.stopped() {
                return Err(ExactError::Stopped);
            }
            self.advance(pairs);
        }
    }

    /// Into how many parts the rows of a block are split, so that few queries keep all cores busy.
    /// Each part has lists of its own to fill, so parts stay far longer than `k`.
    fn parts(&self, queries: usize, rows: usize) -> usize {
        let tiles = queries.div_ceil(TILE_QUERIES).max(1);
        let wanted = if self.threads == 1 { 1 } else { (4 * self.threads).div_ceil(tiles) };
        wanted.min(rows / self.k.saturating_mul(16).max(1024)).max(1)
    }

    fn state(&self, queries: &[usize], part: usize, rows: usize) -> State {
        let probes: Vec<Probe> = queries.iter().map(|&q| Probe::new(self.queries, q)).collect();
        let floats: Vec<&[f32]> = probes.iter().map(|p| p.floats.as_slice()).collect();
        let dim = if self.queries.element() == Element::Bit { 0 } else { self.base.dim() };
        let tile = Tile::new(dim, &floats);
        let best = vec![TopK::new(self.k.min(rows)); probes.len()];
        State { part, tile, probes, best, safe: false }
    }

    fn merge(&self, states: &mut [State], parts: usize, qualifying: u64) -> Vec<Answer> {
        let mut answers = Vec::new();
        let mut part = Vec::new();
        for of_tile in states.chunks_mut(parts) {
            for lane in 0..of_tile[0].probes.len() {
                if !of_tile[0].probes[lane].is_defined(self.metric) {
                    answers.push((Vec::new(), 0));
                    continue;
                }
                let mut list = Vec::new();
                for state in of_tile.iter_mut() {
                    state.best[lane].drain_sorted(&mut part);
                    list.extend_from_slice(&part);
                }
                list.sort_unstable();
                list.truncate(self.k);
                answers.push((list, qualifying));
            }
        }
        answers
    }
}

/// A tile of queries over one part of each block.
struct State {
    part: usize,
    tile: Tile,
    probes: Vec<Probe>,
    best: Vec<TopK>,
    /// Whether the cuts in the tile assume safe norms.
    safe: bool,
}

impl State {
    fn scan(&mut self, job: &Job<'_>, block: &Block<'_>, parts: usize) {
        let len = block.ids.len();
        let range = len * self.part / parts..len * (self.part + 1) / parts;
        if job.metric == Metric::Hamming {
            for i in range {
                for (probe, best) in self.probes.iter().zip(&mut self.best) {
                    best.offer(Scored { key: probe.bit_key(job.level, block.bits[i]), row: block.ids[i] });
                }
            }
            return;
        }
        if self.safe != block.safe {
            self.safe = block.safe;
            (0..self.probes.len()).for_each(|lane| self.renew_cut(job, lane));
        }
        for start in range.clone().step_by(SCREEN_ROWS) {
            let end = (start + SCREEN_ROWS).min(range.end);
            let (rows, norms) = (&block.rows[start..end], &block.norms_f32[start..end]);
            let masks = screen(job.level, job.metric == Metric::L2, rows, norms, &self.tile);
            for (i, mask) in (start..end).zip(masks) {
                self.decide(job, block, i, mask);
            }
        }
    }

    /// The exact keys of row `i` of the block for the queries in `mask`.
    fn decide(&mut self, job: &Job<'_>, block: &Block<'_>, i: usize, mut mask: u32) {
        while mask != 0 {
            let lane = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            if let Some(probe) = self.probes.get(lane) {
                let key = probe.key(job.metric, job.level, block.rows[i], block.norms[i]);
                if self.best[lane].offer(Scored { key, row: block.ids[i] }) {
                    self.renew_cut(job, lane);
                }
            }
        }
    }

    fn renew_cut(&mut self, job: &Job<'_>, lane: usize) {
        let norm = self.probes[lane].norm;
        let cut = cut_at(job.metric, self.best[lane].worst(), job.base.dim(), norm, self.safe);
        self.tile.set_cut(lane, cut);
    }
}
