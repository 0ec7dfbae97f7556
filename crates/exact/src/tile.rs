//! Up to 32 queries that go over the rows together, each with its best rows so far in each case.

use crate::block::Block;
use crate::cut::cut_at;
use crate::distance::Probe;
use crate::frame::{Frame, IntQuery};
use crate::topk::{Scored, TopK};
use kernel::{
    BitCounts, BitTile, Cut, IntRows, IntTile, Level, Limits, SCREEN_ROWS, TILE_QUERIES, Width, screen,
    screen_bits,
};
use std::ops::Range;
use types::{Metric, Vectors};

/// Rows between two looks at the limits.
const STRIDE: usize = 128;

/// What all tiles of a scan share.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) queries: &'a Vectors,
    pub(crate) metric: Metric,
    pub(crate) level: Level,
    /// The integers that screen, and the frame in which they do; none for f32.
    pub(crate) integers: Option<(Width, &'a Frame)>,
    /// Neighbours wanted.
    pub(crate) k: usize,
    /// Components.
    pub(crate) dim: usize,
}

/// The best rows of the queries of a tile in one case.
struct CaseTile {
    best: Vec<TopK>,
    /// No key above it is taken: a guess of the k-th best, to be verified, or what is known already.
    bound: [f64; TILE_QUERIES],
    /// The key that a row must reach now.
    worst: [f64; TILE_QUERIES],
}

/// Queries over one part of each block.
pub(crate) struct Tile {
    /// Place of the first query in the scan's list.
    pub(crate) first: usize,
    part: usize,
    probes: Vec<Probe>,
    /// Bit i is set for query i.
    used: u32,
    screen: Screen,
    cases: Vec<CaseTile>,
    /// What the limits stand for now.
    limits_of: [f64; TILE_QUERIES],
    safe: bool,
}

enum Screen {
    Float(kernel::Tile),
    Integers {
        tile: IntTile,
        queries: Vec<IntQuery>,
        limits: Box<Limits>,
    },
    /// Counts of bits are exact: there is nothing to decide afterwards.
    Bits {
        tile: BitTile,
        counts: Box<BitCounts>,
    },
}

impl Tile {
    /// The queries `asked` (row numbers), over part `part` of each block. `bound` gives what is known
    /// of the k-th best key, by case and place in the tile.
    pub(crate) fn new(
        setting: &Setting<'_>,
        asked: &[usize],
        first: usize,
        part: usize,
        cases: usize,
        bound: impl Fn(usize, usize) -> f64,
    ) -> Tile {
        let probes: Vec<Probe> = asked.iter().map(|&q| Probe::new(setting.queries, q)).collect();
        let screen = Screen::new(setting, asked, &probes);
        let case = |case| {
            let mut bounds = [f64::NEG_INFINITY; TILE_QUERIES];
            for (lane, bounds) in bounds.iter_mut().enumerate().take(probes.len()) {
                let defined = probes[lane].is_defined(setting.metric);
                *bounds = if defined { bound(case, lane) } else { f64::NEG_INFINITY };
            }
            let best = vec![TopK::new(setting.k); probes.len()];
            CaseTile { best, bound: bounds, worst: bounds }
        };
        let cases = (0..cases).map(case).collect();
        let used = u32::MAX.checked_shr((TILE_QUERIES - probes.len()) as u32).unwrap_or(0);
        Tile { first, part, probes, used, screen, cases, limits_of: [f64::NAN; TILE_QUERIES], safe: false }
    }

    /// Number of queries.
    pub(crate) fn queries(&self) -> usize {
        self.probes.len()
    }

    /// Puts earlier findings among the best.
    pub(crate) fn seed(&mut self, case: usize, lane: usize, list: &[Scored]) {
        for &scored in list {
            self.offer(case, lane, scored);
        }
    }

    /// Looks at part of a block, of `parts`.
    pub(crate) fn scan(&mut self, setting: &Setting<'_>, block: &Block<'_>, parts: usize) {
        let rows = &block.integers();
        for (range, union) in &block.classes {
            let length = range.len();
            let (part, next) = (length * self.part / parts, length * (self.part + 1) / parts);
            let range = range.start + part..range.start + next;
            for start in range.clone().step_by(STRIDE) {
                let rows_here = start..(start + STRIDE).min(range.end);
                self.set_limits(setting, *union, block.safe);
                if matches!(self.screen, Screen::Bits { .. }) {
                    self.count_bits(setting, block, rows_here);
                    continue;
                }
                let mut masks = [0; STRIDE];
                let masks = &mut masks[..rows_here.len()];
                self.masks(setting, block, rows, rows_here.clone(), masks);
                for (i, &mask) in rows_here.zip(masks.iter()) {
                    if mask != 0 {
                        self.decide(setting, block, i, mask);
                    }
                }
            }
        }
    }

    /// Which queries each row of `range` may concern.
    fn masks(
        &self,
        setting: &Setting<'_>,
        block: &Block<'_>,
        rows: &IntRows<'_>,
        range: Range<usize>,
        masks: &mut [u32],
    ) {
        match &self.screen {
            Screen::Integers { tile, limits, .. } => tile.screen(rows, range, limits, masks),
            Screen::Float(tile) => {
                for (start, masks) in range.clone().step_by(SCREEN_ROWS).zip(masks.chunks_mut(SCREEN_ROWS)) {
                    let rows = start..(start + SCREEN_ROWS).min(range.end);
                    let mut floats = [[].as_slice(); SCREEN_ROWS];
                    floats.iter_mut().zip(rows.clone()).for_each(|(row, i)| *row = block.row(i));
                    let (floats, norms) = (&floats[..rows.len()], &block.norms_f32[rows]);
                    let found = screen(setting.level, setting.metric == Metric::L2, floats, norms, tile);
                    // A product that overflows is not ruled out, not even for a lane without a query.
                    masks.iter_mut().zip(found).for_each(|(mask, found)| *mask = found & self.used);
                }
            }
            Screen::Bits { .. } => {}
        }
    }

    /// Brings the limits to what a row must reach to enter any of the cases in `union`.
    fn set_limits(&mut self, setting: &Setting<'_>, union: u64, safe: bool) {
        let mut worst = [f64::NEG_INFINITY; TILE_QUERIES];
        for (_, case) in self.cases.iter().enumerate().filter(|(i, _)| union >> i & 1 == 1) {
            for (worst, case) in worst.iter_mut().zip(&case.worst) {
                *worst = worst.max(*case);
            }
        }
        let all = self.safe != safe;
        self.safe = safe;
        for (lane, probe) in self.probes.iter().enumerate() {
            let worst = worst[lane];
            // NaN differs from everything: the first look sets all limits.
            if !all && worst == self.limits_of[lane] {
                continue;
            }
            self.limits_of[lane] = worst;
            match &mut self.screen {
                Screen::Integers { queries, limits, .. } => limits.limit[lane] = queries[lane].limit(worst),
                Screen::Float(tile) => {
                    let cut = if worst == f64::NEG_INFINITY {
                        Cut { constant: f32::INFINITY, slope: 0.0 }
                    } else {
                        cut_at(setting.metric, worst, setting.dim, probe.norm, safe)
                    };
                    tile.set_cut(lane, cut);
                }
                Screen::Bits { tile, .. } => {
                    // Where one case takes ascending rows, an equal count comes too late.
                    let ties = u32::from(self.cases.len() > 1);
                    let below = worst.is_finite().then(|| (worst as u32).saturating_add(ties));
                    tile.set_below(lane, if worst == f64::NEG_INFINITY { Some(0) } else { below });
                }
            }
        }
    }

    /// The exact keys of row `i` of the block for the queries in `mask`.
    fn decide(&mut self, setting: &Setting<'_>, block: &Block<'_>, i: usize, mut mask: u32) {
        while mask != 0 {
            let lane = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            let key = self.probes[lane].key(setting.metric, setting.level, block.row(i), block.norms[i]);
            self.enter(block.members[i], lane, Scored { key, row: block.ids[i] });
        }
    }

    /// Offers a row to all its cases.
    fn enter(&mut self, mut members: u64, lane: usize, scored: Scored) {
        while members != 0 {
            let case = members.trailing_zeros() as usize;
            members &= members - 1;
            self.offer(case, lane, scored);
        }
    }

    fn offer(&mut self, case: usize, lane: usize, scored: Scored) {
        let case = &mut self.cases[case];
        if scored.key <= case.bound[lane] && case.best[lane].offer(scored) {
            case.worst[lane] = case.bound[lane].min(case.best[lane].worst());
        }
    }

    fn count_bits(&mut self, setting: &Setting<'_>, block: &Block<'_>, range: Range<usize>) {
        for start in range.clone().step_by(SCREEN_ROWS) {
            let here = start..(start + SCREEN_ROWS).min(range.end);
            let Screen::Bits { tile, counts } = &mut self.screen else { return };
            let masks = screen_bits(setting.level, &block.bits[here.clone()], tile, counts);
            let counts = **counts;
            for ((i, mut mask), counts) in here.zip(masks).zip(counts) {
                while mask != 0 {
                    let lane = mask.trailing_zeros() as usize;
                    mask &= mask - 1;
                    let scored = Scored { key: f64::from(counts[lane]), row: block.ids[i] };
                    self.enter(block.members[i], lane, scored);
                }
            }
        }
    }

    /// How many pairs of a block the screening does not rule out, with the bounds as limits.
    pub(crate) fn count(&mut self, setting: &Setting<'_>, block: &Block<'_>) -> u64 {
        let rows = &block.integers();
        let mut count = 0;
        self.set_limits(setting, u64::MAX, block.safe);
        for start in (0..block.len()).step_by(STRIDE) {
            let range = start..(start + STRIDE).min(block.len());
            let mut masks = [0; STRIDE];
            let masks = &mut masks[..range.len()];
            self.masks(setting, block, rows, range, masks);
            count += masks.iter().map(|m| u64::from(m.count_ones())).sum::<u64>();
        }
        count
    }

    /// Takes the best rows of one query in one case, best first.
    pub(crate) fn take(&mut self, case: usize, lane: usize, into: &mut Vec<Scored>) {
        self.cases[case].best[lane].drain_sorted(into);
    }
}

impl Screen {
    fn new(setting: &Setting<'_>, asked: &[usize], probes: &[Probe]) -> Screen {
        if setting.metric == Metric::Hamming {
            let rows: Vec<&[u8]> = asked.iter().map(|&query| setting.queries.row_bytes(query)).collect();
            let counts = Box::new([[0; TILE_QUERIES]; SCREEN_ROWS]);
            return Screen::Bits { tile: BitTile::new(setting.queries.dim(), &rows), counts };
        }
        let Some((width, frame)) = setting.integers else {
            let floats: Vec<&[f32]> = probes.iter().map(|p| p.floats.as_slice()).collect();
            return Screen::Float(kernel::Tile::new(setting.dim, &floats));
        };
        let query = |p: &Probe| frame.query(setting.level, width, &p.floats, p.norm);
        let queries: Vec<IntQuery> = probes.iter().map(query).collect();
        let integers: Vec<&[i16]> = queries.iter().map(|q| q.integers.as_slice()).collect();
        let tile = IntTile::new(setting.level, width, setting.dim, &integers);
        let mut limits = Box::new(Limits {
            per_lost: [0.0; TILE_QUERIES],
            per_norm: [0.0; TILE_QUERIES],
            per_offset: [0.0; TILE_QUERIES],
            limit: [f32::INFINITY; TILE_QUERIES],
        });
        for (lane, query) in queries.iter().enumerate() {
            let [lost, norm, offset] = query.coefficients();
            (limits.per_lost[lane], limits.per_norm[lane], limits.per_offset[lane]) = (lost, norm, offset);
        }
        Screen::Integers { tile, queries, limits }
    }
}
