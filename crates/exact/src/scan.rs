//! One pass over rows for some queries and up to 64 cases (filters) at once.
//!
//! Rows are read in blocks, each block by all queries before the next, so the base is streamed once.
//! A row that no case holds is not looked at. The others stand in classes by their strictest case, so
//! that a row is screened against the limits of the cases that it belongs to, not those of stricter
//! ones, whose limits are wider.
//!
//! A pass first looks at a sample of the rows, which gives a threshold (`guess`), then at the rest. Rows that
//! are not ruled out wait as candidates (`shortlist`) until the pass ends; then as few as prove the answer
//! are decided in float64 (`settle`).

use crate::ExactError;
use crate::block::{Block, Norms};
use crate::frame::Frame;
use crate::guess::SAMPLE;
use crate::method::Method;
use crate::settle::Decided;
use crate::shortlist::{Candidate, Shortlist};
use crate::source::{Source, Which, count};
use crate::tile::{Setting, Tile};
use crate::topk::Scored;
use kernel::{Level, SCREEN_ROWS, TILE_QUERIES};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use types::{Metric, RowSet, Vectors};

/// Bytes of decoded rows in a block: several blocks fit any shared cache.
const BLOCK_BYTES: usize = 4 << 20;
/// Rows in a block at most.
const MOST_BLOCK_ROWS: usize = 4096;
/// Most cases of one scan: a bit each.
pub(crate) const MOST_CASES: usize = 64;

/// Queries and cases that go over the rows together.
pub(crate) struct Scan<'a> {
    pub(crate) base: &'a Vectors,
    pub(crate) queries: &'a Vectors,
    pub(crate) metric: Metric,
    pub(crate) k: usize,
    pub(crate) level: Level,
    pub(crate) threads: usize,
    /// The queries, by number.
    pub(crate) asked: &'a [usize],
    /// The rows of each case (none for all), from the fewest to the most.
    pub(crate) cases: &'a [Option<&'a RowSet>],
    pub(crate) frame: &'a Frame,
    /// Bytes that the rows of a block may take at most.
    pub(crate) block_bytes: usize,
    /// Bytes that candidates may take, about: beyond, more pairs are decided than need be.
    pub(crate) pending_bytes: usize,
    pub(crate) method: Method,
    /// Counts pairs that float64 decides.
    pub(crate) decided: &'a AtomicU64,
    /// Told the pairs done; answers whether to stop.
    pub(crate) watch: &'a (dyn Fn(u64) -> bool + Sync),
}

/// What a scan found.
pub(crate) struct Found {
    /// By case and place of the query among those asked: the best rows, ascending.
    pub(crate) lists: Lists,
    /// By case: rows that qualify.
    pub(crate) matching: Vec<u64>,
}

/// Bounds on the k-th best key, by case and query.
pub(crate) type Bounds = Vec<Vec<f64>>;

/// What a pass is to do.
pub(crate) struct Job<'a> {
    /// Rows wanted.
    pub(crate) k: usize,
    /// No key above it is taken.
    pub(crate) bounds: &'a Bounds,
    /// What was found before, by case and query.
    pub(crate) earlier: &'a [Vec<&'a [Scored]>],
    /// Whether a threshold may rest on what candidates promise; whether one was too low is answered.
    pub(crate) trusting: bool,
    /// The rows.
    pub(crate) which: Which,
    /// Where all rows are looked at: after a sample, which gives thresholds from so many rows by case.
    pub(crate) ranks: Option<&'a [usize]>,
}

/// What a pass goes over rows with.
struct Pass<'a> {
    setting: Setting<'a>,
    /// By group of queries, then by part.
    tiles: Vec<Tile>,
    parts: usize,
    norms: Norms,
    matching: Vec<u64>,
}

/// By case and place of a query: its best rows, ascending.
type Lists = Vec<Vec<Vec<Scored>>>;
/// What a query still has open in a case: its shortlist and the threshold that was taken.
type Open = (Shortlist, f64);
/// By case and place of a query: whether its list is proven.
pub(crate) type Complete = Vec<Vec<bool>>;

impl Scan<'_> {
    /// The best rows of `rows` and of `earlier` (by case and query, as [`Found::lists`]).
    pub(crate) fn run(&self, rows: Range<usize>, earlier: &[Vec<&[Scored]>]) -> Result<Found, ExactError> {
        let known = |list: &&[Scored]| match list.last() {
            Some(last) if list.len() == self.k => last.key,
            _ => f64::INFINITY,
        };
        let known: Bounds = earlier.iter().map(|lists| lists.iter().map(known).collect()).collect();
        let ranks = self.ranks(&rows, &known);
        let all: Vec<usize> = (0..self.asked.len()).collect();
        let (k, ranks) = (self.k, ranks.as_deref());
        let job = Job { k, bounds: &known, earlier, trusting: true, which: Which::All, ranks };
        let (mut found, complete) = self.pass(&all, &rows, &job)?;
        self.again(&rows, &known, earlier, &complete, &mut found)?;
        Ok(found)
    }

    pub(crate) fn setting(&self, k: usize, trusting: bool, lists: usize) -> Setting<'_> {
        let most_pending = self.pending_bytes / size_of::<Candidate>() / lists.max(1);
        Setting {
            base: self.base,
            queries: self.queries,
            metric: self.metric,
            level: self.level,
            integers: self.method.width().map(|width| (width, self.frame)),
            k,
            dim: self.base.dim(),
            trusting,
            most_pending: most_pending.min(k.saturating_mul(4).saturating_add(256)).max(k.saturating_add(64)),
            decided: self.decided,
        }
    }

    /// One pass over rows of `rows` for the queries at `places`.
    pub(crate) fn pass(
        &self,
        places: &[usize],
        rows: &Range<usize>,
        job: &Job<'_>,
    ) -> Result<(Found, Complete), ExactError> {
        let most = self.cases.iter().map(|case| count(*case, rows)).max().unwrap_or(0);
        let parts = self.parts(places.len(), job.which.of(most), job.k);
        let setting = self.setting(job.k, job.trusting, places.len() * self.cases.len() * parts);
        let tiles = self.tiles(&setting, places, parts, job.bounds, job.earlier);
        let floats_need = setting.integers.is_none() && self.metric == Metric::InnerProduct;
        let norms = Norms::new(rows, self.metric == Metric::Cosine || floats_need);
        let mut pass = Pass { setting, tiles, parts, norms, matching: vec![0; self.cases.len()] };
        if let (Some(ranks), Which::All) = (job.ranks, job.which) {
            for tile in &mut pass.tiles {
                ranks.iter().enumerate().for_each(|(case, &rank)| tile.set_rank(case, rank));
            }
            self.sweep(&mut pass, places.len(), rows, Which::Sample(SAMPLE))?;
            let Pass { setting, tiles, norms, .. } = &mut pass;
            tiles.par_chunks_mut(parts).for_each(|tiles| self.guess(setting, norms, tiles, ranks));
            self.sweep(&mut pass, places.len(), rows, Which::Rest(SAMPLE))?;
        } else {
            self.sweep(&mut pass, places.len(), rows, job.which)?;
        }
        let (lists, complete) = self.settle(&mut pass, places, job)?;
        Ok((Found { lists, matching: pass.matching }, complete))
    }

    /// Shows rows to all tiles, block by block.
    fn sweep(
        &self,
        pass: &mut Pass<'_>,
        queries: usize,
        rows: &Range<usize>,
        which: Which,
    ) -> Result<(), ExactError> {
        let Pass { setting, tiles, parts, norms, matching } = pass;
        let parts = *parts;
        let mut source = Source::new(self.cases, rows.clone(), which);
        let row_bytes = (self.base.dim() * 4).max(1);
        let step = (BLOCK_BYTES.min(self.block_bytes) / row_bytes)
            .clamp(SCREEN_ROWS * parts, MOST_BLOCK_ROWS.max(SCREEN_ROWS * parts));
        // While a block is scanned the next one is made ready, so that no thread waits for the others.
        let (mut block, mut next) = (Block::default(), Block::default());
        let mut chunk = source.take(step);
        self.load(&mut block, &chunk, setting)?;
        while !chunk.is_empty() {
            let ahead = source.take(step);
            self.count_members(&block, matching);
            norms.keep(&block);
            let scan = || {
                tiles.par_iter_mut().for_each(|tile| {
                    if !(self.watch)(0) {
                        tile.scan(setting, &block, norms, parts);
                    }
                });
            };
            let (_, loaded) = rayon::join(scan, || self.load(&mut next, &ahead, setting));
            // Asked last: a flag set while the block was scanned leaves some tiles behind.
            if (self.watch)(chunk.len() as u64 * queries as u64) {
                return Err(ExactError::Stopped);
            }
            loaded?;
            chunk = ahead;
            std::mem::swap(&mut block, &mut next);
        }
        Ok(())
    }

    /// Brings rows into a block.
    pub(crate) fn load<'b>(
        &'b self,
        block: &mut Block<'b>,
        chunk: &[(u32, u64)],
        setting: &Setting<'_>,
    ) -> Result<(), ExactError> {
        block.load(self.base, self.metric, self.level, chunk, setting.integers)
    }

    /// Adds the rows of a block that qualify, by case.
    fn count_members(&self, block: &Block<'_>, matching: &mut [u64]) {
        if let ([matching], false) = (&mut *matching, self.metric == Metric::Cosine) {
            *matching += block.members.len() as u64;
            return;
        }
        let defined = |(i, _): &(usize, &u64)| block.is_defined(self.metric, *i);
        for (_, &members) in block.members.iter().enumerate().filter(defined) {
            for (case, matching) in matching.iter_mut().enumerate() {
                *matching += members >> case & 1;
            }
        }
    }

    /// Into how many parts the rows of a block are split, so that few queries keep all cores busy.
    /// Each part has lists of its own to fill, so parts stay far longer than `k`.
    fn parts(&self, queries: usize, rows: usize, k: usize) -> usize {
        let tiles = queries.div_ceil(TILE_QUERIES).max(1);
        let wanted = if self.threads == 1 { 1 } else { (4 * self.threads).div_ceil(tiles) };
        wanted.min(rows / k.saturating_mul(16).max(1024)).max(1)
    }

    pub(crate) fn tiles(
        &self,
        setting: &Setting<'_>,
        places: &[usize],
        parts: usize,
        bounds: &Bounds,
        earlier: &[Vec<&[Scored]>],
    ) -> Vec<Tile> {
        let tiles = places.par_chunks(TILE_QUERIES).enumerate().flat_map_iter(|(i, places)| {
            let asked: Vec<usize> = places.iter().map(|&place| self.asked[place]).collect();
            let bound = |case: usize, lane: usize| bounds[case][places[lane]];
            let cases = self.cases.len();
            let make = move |part| Tile::new(setting, &asked, i * TILE_QUERIES, part, cases, bound);
            (0..parts).map(make).collect::<Vec<_>>()
        });
        let mut tiles: Vec<Tile> = tiles.collect();
        if parts == 1 {
            for tile in &mut tiles {
                for (case, lists) in earlier.iter().enumerate() {
                    for lane in 0..tile.queries() {
                        tile.seed(case, lane, lists[places[tile.first + lane]]);
                    }
                }
            }
        }
        tiles
    }

    /// Decides what is left: the best rows by case and query, and whether they are proven to be.
    fn settle(
        &self,
        pass: &mut Pass<'_>,
        places: &[usize],
        job: &Job<'_>,
    ) -> Result<(Lists, Complete), ExactError> {
        let (cases, parts) = (self.cases.len(), pass.parts);
        // Tile and lane, and what is open by case.
        let mut open: Vec<((usize, usize), Vec<Open>)> = Vec::with_capacity(places.len());
        for (group, tiles) in pass.tiles.chunks_mut(parts).enumerate() {
            for lane in 0..tiles[0].queries() {
                let lists = (0..cases).map(|case| {
                    let place = places[tiles[0].first + lane];
                    merged(tiles, case, lane, job.earlier[case][place])
                });
                open.push(((group * parts, lane), lists.collect()));
            }
        }
        let Pass { setting, tiles, norms, .. } = &*pass;
        let settled: Vec<Vec<(Vec<Scored>, bool)>> = open
            .into_par_iter()
            .map_init(Decided::default, |decided, ((tile, lane), lists)| {
                if (self.watch)(0) {
                    return Err(ExactError::Stopped);
                }
                let (mut lists, worst): (Vec<Shortlist>, Vec<f64>) = lists.into_iter().unzip();
                let mut open: Vec<&mut Shortlist> = lists.iter_mut().collect();
                tiles[tile].settle(setting, norms, lane, &mut open, &worst, decided);
                Ok(lists.into_iter().zip(worst).map(|(list, worst)| closed(list, worst)).collect())
            })
            .collect::<Result<_, _>>()?;
        let mut lists = vec![Vec::with_capacity(places.len()); cases];
        let mut complete = vec![Vec::with_capacity(places.len()); cases];
        for query in settled {
            for (case, (list, proven)) in query.into_iter().enumerate() {
                lists[case].push(list);
                complete[case].push(proven);
            }
        }
        Ok((lists, complete))
    }
}

/// The shortlist of all parts and what was found earlier, and the least threshold.
fn merged(tiles: &mut [Tile], case: usize, lane: usize, earlier: &[Scored]) -> Open {
    let worst = tiles.iter().map(|tile| tile.worst(case, lane)).fold(f64::INFINITY, f64::min);
    let mut list = tiles[0].take(case, lane);
    if tiles.len() > 1 {
        tiles[1..].iter_mut().for_each(|tile| list.append(tile.take(case, lane)));
        for &scored in earlier {
            list.best.offer(scored);
        }
    }
    (list, worst)
}

/// The best rows, ascending, and whether none that was dropped can be among them: their keys are above
/// `worst`, which the k-th best may not be.
fn closed(mut list: Shortlist, worst: f64) -> (Vec<Scored>, bool) {
    let proven = !worst.is_finite() || list.best.worst() <= worst;
    let mut best = Vec::new();
    list.best.drain_sorted(&mut best);
    (best, proven)
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
