//! Exact neighbours of many queries at once.
//!
//! What is here: what is asked, how it is divided into scans, what was found. A scan (`scan`) goes
//! over rows in blocks; tiles of queries (`tile`) rule out pairs by products of small integers
//! (`frame` has the proof) or in f32 (`cut`), and what is left waits as a candidate. At the end as few
//! candidates as prove the answer are decided in float64 (`settle`). What is ruled out is certainly worse,
//! so the answer is that of a float64 scan, bit for bit.

use crate::distance::{Probe, check_pair};
use crate::frame::Frame;
use crate::scan::{Found, Scan};
use crate::sharing::{Planned, Sharing, plan, units_of};
use crate::topk::Scored;
use crate::{ExactError, Group, Method, Partial, Scratch, Searcher};
use kernel::Level;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use types::{Metric, RowSet, Truth, Vectors};

/// Groups of fewer queries than this are searched one query at a time.
const FEW_QUERIES: usize = 4;
/// Scans of less work than this (pairs times components) run beside one another, not in turn.
const SMALL_SCAN: f64 = 2e9;
/// Bytes that candidates of a scan may take where no memory is given.
const PENDING_BYTES: usize = 1 << 30;

/// How a search runs. The default: all cores, silent, not to be stopped.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Threads; none for one per core.
    pub threads: Option<usize>,
    /// Called now and then, from any thread, with pairs of vectors done and in all, of the call under way.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    /// Set it to end the search with [`ExactError::Stopped`].
    pub stop: Option<&'a AtomicBool>,
    /// The instruction set; none for the best there is. For tests and benchmarks: a level that the
    /// machine lacks is replaced by the best.
    pub level: Option<Level>,
    /// How pairs are screened. For tests and benchmarks: the answer does not depend on it.
    pub method: Method,
    /// Bytes of working memory, beside the base and the lists found; none for what is fastest.
    pub memory: Option<u64>,
    /// Whether cases share a scan. For tests and benchmarks: the answer does not depend on it.
    pub sharing: Sharing,
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
/// ([`Search::resume`]), and searches of neighbouring ranges merged ([`crate::merge_parts`]).
///
/// Cost rule of cases: a scan costs its rows times its queries. Cases of the same queries share one scan,
/// which looks at each row of their union once, where the union has fewer rows than the cases together,
/// by a twentieth at least (sorting a block by cases costs about that); otherwise each case reads its own
/// rows. Cases of different queries never share: a union of queries would be asked about rows that are
/// not theirs.
pub struct Search<'a> {
    base: &'a Vectors,
    queries: &'a Vectors,
    metric: Metric,
    k: usize,
    cases: usize,
    scans: Vec<Planned<'a>>,
    options: Options<'a>,
    level: Level,
    pool: rayon::ThreadPool,
    /// The centre of the vectors; taken from the rows of the first step.
    frame: OnceLock<Frame>,
    /// For queries that are searched one by one.
    searcher: OnceLock<Searcher>,
    done: AtomicU64,
    total: AtomicU64,
    /// Pairs that float64 decided.
    decided: AtomicU64,
    /// Whether each query has a distance to any row.
    defined: Vec<bool>,
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
        let mut defined = Vec::with_capacity(queries.rows());
        for row in 0..queries.rows() {
            let probe = Probe::new(queries, row);
            if !probe.norm.is_finite() {
                return Err(ExactError::NotFinite { what: "queries", row });
            }
            defined.push(probe.is_defined(metric));
        }
        let mut units = Vec::new();
        for (number, &subset) in cases.iter().enumerate() {
            units.extend(
                units_of(base, queries, subset)?.into_iter().map(|(rows, asked)| (number, rows, asked)),
            );
        }
        let level = options.level.filter(|l| Level::available().contains(l)).unwrap_or_else(Level::detect);
        Ok(Search {
            base,
            queries,
            metric,
            k,
            cases: cases.len(),
            scans: plan(units, base.rows(), options.sharing),
            options,
            level,
            pool: thread_pool(options.threads)?,
            frame: OnceLock::new(),
            searcher: OnceLock::new(),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            decided: AtomicU64::new(0),
            defined,
            found: Partial::new(0, cases.len(), queries.rows()),
        })
    }

    /// Goes on from `found`, or begins at its start where it is empty.
    ///
    /// # Errors
    /// Where `found` is of other cases, queries or rows.
    pub fn resume(&mut self, found: Partial) -> Result<(), ExactError> {
        found.check(self.cases, self.queries.rows(), self.base.rows())?;
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
        let pairs = self.scans.iter().map(|scan| scan.pairs(&rows)).sum();
        (self.done, self.total) = (AtomicU64::new(0), AtomicU64::new(pairs));
        let found = self.pool.install(|| self.search_rows(&rows))?;
        let cases = self.found.advance(rows.end);
        for (scan, found) in self.scans.iter().zip(found) {
            let Found { lists, matching } = found;
            for ((&number, lists), matching) in scan.numbers.iter().zip(lists).zip(matching) {
                for (&query, list) in scan.queries.iter().zip(lists) {
                    cases[number].lists[query] = list;
                    if self.defined[query] {
                        cases[number].matching[query] += matching;
                    }
                }
            }
        }
        Ok(())
    }

    /// Small scans run beside one another, large ones in turn with all threads each.
    fn search_rows(&self, rows: &Range<usize>) -> Result<Vec<Found>, ExactError> {
        let small = |scan: &Planned<'_>| scan.pairs(rows) as f64 * (self.base.dim() as f64) < SMALL_SCAN;
        let one = |scan: &Planned<'a>| small(scan).then(|| self.search_one(scan, rows)).transpose();
        let mut found: Vec<Option<Found>> = self.scans.par_iter().map(one).collect::<Result<_, _>>()?;
        for (scan, found) in self.scans.iter().zip(&mut found) {
            if found.is_none() {
                *found = Some(self.search_one(scan, rows)?);
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    fn search_one(&self, planned: &Planned<'_>, rows: &Range<usize>) -> Result<Found, ExactError> {
        if self.one_by_one(planned) {
            return self.search_singly(planned, rows);
        }
        let frame = self.frame.get_or_init(|| {
            let every = (rows.len() / crate::frame::SAMPLE).max(1);
            Frame::new(self.base, self.metric, rows.clone().step_by(every))
        });
        let watch = |pairs| self.watch(pairs);
        let scan = |method| Scan {
            base: self.base,
            queries: self.queries,
            metric: self.metric,
            k: self.k,
            level: self.level,
            threads: self.pool.current_num_threads(),
            asked: &planned.queries,
            cases: &planned.rows,
            frame,
            block_bytes: self.options.memory.map_or(usize::MAX, |memory| (memory / 8) as usize),
            pending_bytes: self.options.memory.map_or(PENDING_BYTES, |memory| (memory / 4) as usize),
            method,
            decided: &self.decided,
            watch: &watch,
        };
        let method = match (self.options.method, planned.method.get()) {
            (Method::Auto, Some(&method)) => method,
            (Method::Auto, None) => {
                let chosen = scan(Method::F32).choose(rows)?;
                *planned.method.get_or_init(|| chosen)
            }
            (method, _) => method,
        };
        let lists = |&number: &usize| {
            planned.queries.iter().map(|&q| self.found.case(number).lists[q].as_slice()).collect()
        };
        let earlier: Vec<Vec<&[Scored]>> = planned.numbers.iter().map(lists).collect();
        scan(method).run(rows.clone(), &earlier)
    }

    fn one_by_one(&self, planned: &Planned<'_>) -> bool {
        let many = self.scans.len() > self.pool.current_num_threads();
        many && planned.queries.len() < FEW_QUERIES && planned.numbers.len() == 1
    }

    fn search_singly(&self, planned: &Planned<'_>, rows: &Range<usize>) -> Result<Found, ExactError> {
        let searcher =
            self.searcher.get_or_init(|| Searcher::prepared(self.base.clone(), self.metric, self.level));
        let mut scratch = Scratch::default();
        let (mut lists, mut matching) = (Vec::new(), 0);
        for &query in &planned.queries {
            if self.watch(0) {
                return Err(ExactError::Stopped);
            }
            scratch.probe = Probe::new(self.queries, query);
            let count = searcher.scan(self.k, planned.rows[0], rows.clone(), &mut scratch);
            let mut list = scratch.sorted.clone();
            list.extend_from_slice(&self.found.case(planned.numbers[0]).lists[query]);
            list.sort_unstable();
            list.truncate(self.k);
            lists.push(list);
            matching = matching.max(count);
            self.watch(planned.row_count(rows) as u64);
        }
        Ok(Found { lists: vec![lists], matching: vec![matching] })
    }

    /// Counts pairs done; whether to stop.
    fn watch(&self, pairs: u64) -> bool {
        if pairs > 0 {
            let done = self.done.fetch_add(pairs, Ordering::Relaxed) + pairs;
            if let Some(progress) = self.options.progress {
                progress(done, done.max(self.total.load(Ordering::Relaxed)));
            }
        }
        self.options.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// How the scans are screened, for reports: a method and an instruction set for each.
    pub fn methods(&self) -> Vec<(Method, Level)> {
        let method = |scan: &Planned<'_>| scan.method.get().copied().unwrap_or(self.options.method);
        self.scans.iter().map(|scan| (method(scan), self.level)).collect()
    }

    /// Pairs whose distance was computed in float64 so far, for reports: all others were ruled out by a
    /// bound. Queries that are searched one by one are not counted.
    pub fn decided_pairs(&self) -> u64 {
        self.decided.load(Ordering::Relaxed)
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
