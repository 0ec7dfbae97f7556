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
use crate::frame::{Frame, MOST_DIM};
use crate::method::Method;
use crate::tile::{Setting, Tile};
use crate::topk::Scored;
use kernel::{Level, SCREEN_ROWS, TILE_QUERIES};
use rayon::prelude::*;
use std::ops::Range;
use types::{Metric, RowSet, Vectors};

/// Bytes of decoded rows in a block: several blocks fit any shared cache.
const BLOCK_BYTES: usize = 4 << 20;
/// One row in so many is in the sample.
const SAMPLE: u64 = 32;
/// A guess lies so many standard deviations above the mean: one query in some 30,000 is guessed too low.
const DEVIATIONS: f64 = 4.0;
/// Rows, in multiples of k, from which a guess pays.
const GUESS_FROM: usize = 64;
/// Rows and queries on which methods are compared.
const TRIAL_ROWS: usize = 1024;
const TRIAL_QUERIES: usize = 64;
/// Fewer rows or queries than these are not worth a trial.
const TRIAL_FROM_ROWS: usize = 8192;
const TRIAL_FROM_QUERIES: usize = 24;
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
type Bounds = Vec<Vec<f64>>;

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
        let worth = |case: usize| {
            counts[case] >= GUESS_FROM * self.k && known[case].iter().any(|known| *known == f64::INFINITY)
        };
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

    fn setting(&self, k: usize) -> Setting<'_> {
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
    fn pass(
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
        let step = (BLOCK_BYTES.min(self.block_bytes) / row_bytes).clamp(SCREEN_ROWS * parts, 1 << 16);
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

    fn load<'b>(
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

    fn tiles(
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

    /// The cheapest method, judged on some rows and queries.
    pub(crate) fn choose(&self, rows: &Range<usize>) -> Result<Method, ExactError> {
        let most = self.cases.iter().map(|case| count(*case, rows)).max().unwrap_or(0);
        let plain = self.metric == Metric::Hamming || self.base.dim() > MOST_DIM || self.base.dim() == 0;
        if plain || most < TRIAL_FROM_ROWS || self.asked.len() < TRIAL_FROM_QUERIES {
            return Ok(Method::F32);
        }
        let every = self.asked.len().div_ceil(TRIAL_QUERIES);
        let asked: Vec<usize> = self.asked.iter().copied().step_by(every).collect();
        // The largest case alone: most pairs are its.
        let largest = self.cases.last().copied().flatten();
        let cases = [largest];
        let trial = |method| Scan { asked: &asked, cases: &cases, method, watch: &|_| false, ..*self };
        let sample = (most / TRIAL_ROWS).max(1) as u64;
        let depth = (self.k * TRIAL_ROWS).div_ceil(most) + 1;
        let scan = trial(Method::F32);
        let all: Vec<usize> = (0..asked.len()).collect();
        let nothing = [vec![[].as_slice(); asked.len()]];
        let unbound = vec![vec![f64::INFINITY; asked.len()]];
        let found =
            scan.pass(&all, depth, &unbound, &nothing, Source::sample(&scan, rows.clone(), sample))?;
        let last = |list: &Vec<Scored>| list.get(depth - 1).map_or(f64::INFINITY, |last| last.key);
        let bounds: Bounds = found.lists.iter().map(|lists| lists.iter().map(last).collect()).collect();
        let pairs = found.matching[0].max(1) as f64 * asked.len() as f64;
        let rate = |method| {
            let scan = trial(method);
            Ok::<_, ExactError>(
                scan.count(&bounds, Source::sample(&scan, rows.clone(), sample))? as f64 / pairs,
            )
        };
        let (level, dim, queries) = (self.level, self.base.dim(), self.asked.len());
        let mut cheapest = (Method::F32, f64::INFINITY);
        for method in [Method::Int8, Method::Int16, Method::F32] {
            let cost = method.cost(level, dim, queries, rate(method)?);
            if cost < cheapest.1 {
                cheapest = (method, cost);
            }
        }
        Ok(cheapest.0)
    }

    /// How many pairs of the rows of `source` are not ruled out by the bounds.
    fn count(&self, bounds: &Bounds, mut source: Source<'_>) -> Result<u64, ExactError> {
        let setting = self.setting(1);
        let all: Vec<usize> = (0..self.asked.len()).collect();
        let nothing = [vec![[].as_slice(); all.len()]];
        let mut tiles = self.tiles(&setting, &all, 1, bounds, &nothing);
        let chunk = source.take(4 * TRIAL_ROWS);
        let mut block = Block::default();
        self.load(&mut block, &chunk, &setting)?;
        Ok(tiles.par_iter_mut().map(|tile| tile.count(&setting, &block)).sum())
    }
}

/// Rows of a case in a range.
pub(crate) fn count(case: Option<&RowSet>, rows: &Range<usize>) -> usize {
    case.map_or(rows.len(), |set| set.count_in(rows.clone()))
}

/// Rows of any case, with their cases, in order.
struct Source<'a> {
    rows: Box<dyn Iterator<Item = (u32, u64)> + 'a>,
    sample: bool,
    most: usize,
}

impl<'a> Source<'a> {
    fn all(scan: &'a Scan<'_>, rows: Range<usize>) -> Source<'a> {
        let most = scan.cases.iter().map(|case| count(*case, &rows)).max().unwrap_or(0);
        Source { rows: members(scan.cases, rows), sample: false, most }
    }

    /// About one row in `every`, chosen by a hash of its number, so that no period of the data meets
    /// one of ours.
    fn sample(scan: &'a Scan<'_>, rows: Range<usize>, every: u64) -> Source<'a> {
        let chosen = move |&(row, _): &(u32, u64)| {
            // SplitMix64's mixing.
            let z = (u64::from(row) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            (u128::from(z ^ z >> 31) * u128::from(every)) >> 64 == 0
        };
        let all = Source::all(scan, rows);
        Source { rows: Box::new(all.rows.filter(chosen)), sample: true, most: all.most / every as usize }
    }

    fn is_sample(&self) -> bool {
        self.sample
    }

    fn most(&self) -> usize {
        self.most
    }

    fn take(&mut self, rows: usize) -> Vec<(u32, u64)> {
        self.rows.by_ref().take(rows).collect()
    }
}

/// The rows of `range` that are in a case, each with its cases.
fn members<'a>(
    cases: &'a [Option<&'a RowSet>],
    range: Range<usize>,
) -> Box<dyn Iterator<Item = (u32, u64)> + 'a> {
    match cases {
        [None] => Box::new(range.map(|row| (row as u32, 1))),
        [Some(set)] => Box::new(set.iter_in(range).map(|row| (row as u32, 1))),
        _ => Box::new(range.filter_map(move |row| {
            let of = cases
                .iter()
                .enumerate()
                .fold(0_u64, |of, (i, case)| of | u64::from(case.is_none_or(|set| set.contains(row))) << i);
            (of != 0).then_some((row as u32, of))
        })),
    }
}
