//! One pass over rows for some queries and up to 64 cases (filters) at once.
//!
//! Rows are read in blocks, each block by all queries before the next, so the base is streamed once.
//! A row that no case holds is not looked at. The others stand in classes by their strictest case, so
//! that a row is screened against the limits of the cases that it belongs to, not those of stricter
//! ones, whose limits are wider.
//!
//! A first pass over one row in 32 guesses the k-th best key of each query: the m-th best
//! of the sample, where m is four standard deviations above the share of the k best that the sample
//! holds in the mean. The second pass takes no key above the guess. A query that ends with fewer rows
//! than it could have had was guessed too low: it is searched again without a guess.

use crate::ExactError;
use crate::block::Block;
use crate::distance::Probe;
use crate::frame::Frame;
use crate::method::Method;
use crate::source::{Source, count};
use crate::tile::{Setting, Tile};
use crate::topk::Scored;
use crate::trial::TRIAL_FROM_QUERIES;
use kernel::{Level, SCREEN_ROWS, TILE_QUERIES};
use rayon::prelude::*;
use std::ops::Range;
use types::{Metric, RowSet, Vectors};

/// Bytes of decoded rows in a block: several blocks fit any shared cache.
const BLOCK_BYTES: usize = 4 << 20;
/// Rows in a block at most: short rows that are decided soon after they were read are still near.
const MOST_BLOCK_ROWS: usize = 4096;
/// One row in so many is in the sample.
const SAMPLE: u64 = 32;
/// A guess lies so many standard deviations above the mean: one query in some 30,000 is guessed too low.
const DEVIATIONS: f64 = 4.0;
/// Rows, in multiples of k, from which a guess pays.
const GUESS_FROM: usize = 64;
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
    pub(crate) method: Method,
    /// Told the pairs done; answers whether to stop.
    pub(crate) watch: &'a (dyn Fn(u64) -> bool + Sync),
}

/// What a scan found.
pub(crate) struct Found {
    /// By case and place of the query among those asked: the best rows, ascending.
    pub(crate) lists: Vec<Vec<Vec<Scored>>>,
    /// By case: rows that qualify.
    pub(crate) matching: Vec<u64>,
}

/// Bounds on the k-th best key, by case and query.
pub(crate) type Bounds = Vec<Vec<f64>>;

impl Scan<'_> {
    /// The best rows of `rows` and of `earlier` (by case and query, as [`Found::lists`]).
    pub(crate) fn run(&self, rows: Range<usize>, earlier: &[Vec<&[Scored]>]) -> Result<Found, ExactError> {
        let known = |list: &&[Scored]| match list.last() {
            Some(last) if list.len() == self.k => last.key,
            _ => f64::INFINITY,
        };
        let known: Bounds = earlier.iter().map(|lists| lists.iter().map(known).collect()).collect();
        let guesses = self.guess(&rows, &known)?;
        let all: Vec<usize> = (0..self.asked.len()).collect();
        let bounds = guesses.as_ref().unwrap_or(&known);
        let mut found = self.pass(&all, self.k, bounds, earlier, Source::all(self, rows.clone()))?;
        if guesses.is_some() {
            self.again(rows, &known, bounds, earlier, &mut found)?;
        }
        Ok(found)
    }

    /// Searches again where a guess was too low.
    fn again(
        &self,
        rows: Range<usize>,
        known: &Bounds,
        guesses: &Bounds,
        earlier: &[Vec<&[Scored]>],
        found: &mut Found,
    ) -> Result<(), ExactError> {
        let short = |case: usize, query: usize| {
            let could = (found.matching[case] as usize + earlier[case][query].len()).min(self.k);
            guesses[case][query] < known[case][query] && found.lists[case][query].len() < could
        };
        let wrong: Vec<Vec<bool>> = (0..self.cases.len())
            .map(|case| {
                (0..self.asked.len()).map(|query| short(case, query) && self.defined(query)).collect()
            })
            .collect();
        let queries: Vec<usize> = (0..self.asked.len()).filter(|&q| wrong.iter().any(|w| w[q])).collect();
        if queries.is_empty() {
            return Ok(());
        }
        // Minus infinity: what was guessed rightly is not searched again.
        let bound = |case: usize, query: usize| {
            if wrong[case][query] { known[case][query] } else { f64::NEG_INFINITY }
        };
        let bounds: Bounds =
            (0..self.cases.len()).map(|c| (0..self.asked.len()).map(|q| bound(c, q)).collect()).collect();
        // Few queries do not pay for rewriting all rows as integers.
        let few = queries.len() < TRIAL_FROM_QUERIES;
        let scan = Scan { method: if few { Method::F32 } else { self.method }, ..*self };
        let mut better = scan.pass(&queries, self.k, &bounds, earlier, Source::all(self, rows))?;
        for (case, wrong) in wrong.iter().enumerate() {
            for (place, &query) in queries.iter().enumerate() {
                if wrong[query] {
                    found.lists[case][query] = std::mem::take(&mut better.lists[case][place]);
                }
            }
        }
        Ok(())
    }

    fn defined(&self, query: usize) -> bool {
        self.metric != Metric::Cosine || Probe::new(self.queries, self.asked[query]).is_defined(self.metric)
    }

    /// Guesses of the k-th best key; none where no case is large enough.
    fn guess(&self, rows: &Range<usize>, known: &Bounds) -> Result<Option<Bounds>, ExactError> {
        if self.metric == Metric::Hamming {
            return Ok(None);
        }
        let counts: Vec<usize> = self.cases.iter().map(|case| count(*case, rows)).collect();
        let worth = |case: usize| counts[case] >= GUESS_FROM * self.k && known[case].contains(&f64::INFINITY);
        let worth: Vec<bool> = (0..self.cases.len()).map(worth).collect();
        if !worth.contains(&true) {
            return Ok(None);
        }
        let share = self.k as f64 / SAMPLE as f64;
        let depth = (share + DEVIATIONS * share.sqrt() + 3.0).ceil() as usize;
        let all: Vec<usize> = (0..self.asked.len()).collect();
        let bound = |case: usize| if worth[case] { f64::INFINITY } else { f64::NEG_INFINITY };
        let bounds: Bounds = (0..worth.len()).map(|case| vec![bound(case); all.len()]).collect();
        let nothing = vec![vec![[].as_slice(); all.len()]; worth.len()];
        let source = Source::sample(self, rows.clone(), SAMPLE);
        let found = self.pass(&all, depth, &bounds, &nothing, source)?;
        let guess = |case: usize, query: usize| match found.lists[case][query].get(depth - 1) {
            Some(last) if worth[case] => last.key.min(known[case][query]),
            _ => known[case][query],
        };
        let guesses = (0..worth.len()).map(|c| all.iter().map(|&q| guess(c, q)).collect()).collect();
        Ok(Some(guesses))
    }

    pub(crate) fn setting(&self, k: usize) -> Setting<'_> {
        Setting {
            queries: self.queries,
            metric: self.metric,
            level: self.level,
            integers: self.method.width().map(|width| (width, self.frame)),
            k,
            dim: self.base.dim(),
        }
    }

    /// One pass over the rows of `source` for the queries at `places`; no key above its bound is
    /// taken. Nothing is reported to `watch` by a pass over a sample.
    pub(crate) fn pass(
        &self,
        places: &[usize],
        k: usize,
        bounds: &Bounds,
        earlier: &[Vec<&[Scored]>],
        mut source: Source<'_>,
    ) -> Result<Found, ExactError> {
        let setting = self.setting(k);
        let parts = self.parts(places.len(), source.most(), k);
        let mut tiles = self.tiles(&setting, places, parts, bounds, earlier);
        let mut matching = vec![0; self.cases.len()];
        let row_bytes = (self.base.dim() * 4).max(1);
        let step = (BLOCK_BYTES.min(self.block_bytes) / row_bytes)
            .clamp(SCREEN_ROWS * parts, MOST_BLOCK_ROWS.max(SCREEN_ROWS * parts));
        // While a block is scanned the next one is made ready, so that no thread waits for the others.
        let (mut block, mut next) = (Block::default(), Block::default());
        let mut chunk = source.take(step);
        self.load(&mut block, &chunk, &setting)?;
        while !chunk.is_empty() {
            let ahead = source.take(step);
            self.count_members(&block, &mut matching);
            let scan = || {
                tiles.par_iter_mut().for_each(|tile| {
                    if !(self.watch)(0) {
                        tile.scan(&setting, &block, parts);
                    }
                });
            };
            let (_, loaded) = rayon::join(scan, || self.load(&mut next, &ahead, &setting));
            let pairs = if source.is_sample() { 0 } else { chunk.len() as u64 * places.len() as u64 };
            // Asked last: a flag set while the block was scanned leaves some tiles behind.
            if (self.watch)(pairs) {
                return Err(ExactError::Stopped);
            }
            loaded?;
            chunk = ahead;
            std::mem::swap(&mut block, &mut next);
        }
        let lists = self.collect(&mut tiles, parts, k, places, earlier);
        Ok(Found { lists, matching })
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

    fn collect(
        &self,
        tiles: &mut [Tile],
        parts: usize,
        k: usize,
        places: &[usize],
        earlier: &[Vec<&[Scored]>],
    ) -> Vec<Vec<Vec<Scored>>> {
        let mut part = Vec::new();
        let mut lists: Vec<Vec<Vec<Scored>>> = vec![Vec::with_capacity(places.len()); self.cases.len()];
        for (case, lists) in lists.iter_mut().enumerate() {
            for of_tile in tiles.chunks_mut(parts) {
                for lane in 0..of_tile[0].queries() {
                    let mut list = Vec::new();
                    for tile in of_tile.iter_mut() {
                        tile.take(case, lane, &mut part);
                        list.extend_from_slice(&part);
                    }
                    if parts > 1 {
                        list.extend_from_slice(earlier[case][places[lists.len()]]);
                        list.sort_unstable();
                        list.truncate(k);
                    }
                    lists.push(list);
                }
            }
        }
        lists
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
