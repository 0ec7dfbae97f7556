//! Up to 32 queries that go over the rows together, each with its shortlist in each case.
//!
//! A row that screening does not rule out becomes a candidate; float64 decides candidates when all rows
//! were seen (`settle`). Until then a threshold comes from the keys that candidates are hardly above: where
//! k candidates promise to be no farther, nothing farther is taken. Whoever uses such a threshold verifies
//! it by the k-th decided key. Where candidates become too many to keep, since screening tells rows apart
//! badly, they are decided, and so is every further one at once, while its row is at hand.

use crate::block::{Block, Norms};
use crate::distance::Probe;
use crate::frame::Frame;
use crate::screening::{STRIDE, Screen};
use crate::settle::{Decided, Decider};
use crate::shortlist::{Shortlist, nth_high};
use crate::topk::Scored;
use kernel::{Cut, IntRows, Level, SCREEN_ROWS, TILE_QUERIES, Width, screen_bits};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use types::{Metric, Vectors};

/// What all tiles of a scan share.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) base: &'a Vectors,
    pub(crate) queries: &'a Vectors,
    pub(crate) metric: Metric,
    pub(crate) level: Level,
    /// The integers that screen, and the frame in which they do; none for f32.
    pub(crate) integers: Option<(Width, &'a Frame)>,
    /// Neighbours wanted.
    pub(crate) k: usize,
    /// Components.
    pub(crate) dim: usize,
    /// Whether candidates wait and thresholds may rest on what they promise; else all are decided at once.
    pub(crate) trusting: bool,
    /// Candidates of a query in a case, at most.
    pub(crate) most_pending: usize,
    /// Counts pairs that float64 decides.
    pub(crate) decided: &'a AtomicU64,
}

/// The queries of a tile in one case.
struct CaseTile {
    lists: Vec<Shortlist>,
    /// So many rows that promise to be no farther make a threshold.
    rank: usize,
    /// No key above it is taken.
    worst: [f64; TILE_QUERIES],
    /// What it asks of candidates.
    limits: [Cut; TILE_QUERIES],
    /// Bit i is set where candidates of query i are decided at once.
    at_once: u32,
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
    work: Vec<f32>,
    /// Pairs decided during a block.
    decided: u64,
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
        let used = u32::MAX.checked_shr((TILE_QUERIES - probes.len()) as u32).unwrap_or(0);
        let case = || CaseTile {
            lists: probes.iter().map(|_| Shortlist::new(setting.k)).collect(),
            rank: setting.k,
            worst: [f64::NEG_INFINITY; TILE_QUERIES],
            limits: [Cut::NONE; TILE_QUERIES],
            at_once: if setting.trusting { 0 } else { u32::MAX },
        };
        let case_tiles = (0..cases).map(|_| case()).collect();
        let limits_of = [f64::NAN; TILE_QUERIES];
        let work = Vec::new();
        let mut tile = Tile {
            first,
            part,
            probes,
            used,
            screen,
            cases: case_tiles,
            limits_of,
            safe: false,
            work,
            decided: 0,
        };
        for case in 0..cases {
            for lane in 0..tile.queries() {
                if tile.probes[lane].is_defined(setting.metric) {
                    tile.set_worst(setting, case, lane, bound(case, lane));
                }
            }
        }
        tile
    }

    /// Number of queries.
    pub(crate) fn queries(&self) -> usize {
        self.probes.len()
    }

    /// Puts earlier findings among the decided rows.
    pub(crate) fn seed(&mut self, case: usize, lane: usize, list: &[Scored]) {
        for &scored in list {
            self.cases[case].lists[lane].best.offer(scored);
        }
    }

    /// The key above which none is taken now.
    pub(crate) fn worst(&self, case: usize, lane: usize) -> f64 {
        self.cases[case].worst[lane]
    }

    /// From how many promises a threshold is taken in a case.
    pub(crate) fn set_rank(&mut self, case: usize, rank: usize) {
        self.cases[case].rank = rank;
        for list in &mut self.cases[case].lists {
            list.look_later(rank);
        }
    }

    /// A shortlist, and what is left of it in the tile: an empty one.
    pub(crate) fn take(&mut self, case: usize, lane: usize) -> Shortlist {
        std::mem::take(&mut self.cases[case].lists[lane])
    }

    /// A shortlist.
    pub(crate) fn list(&self, case: usize, lane: usize) -> &Shortlist {
        &self.cases[case].lists[lane]
    }

    /// Takes no key above `worst` from now on, and drops what certainly has one.
    pub(crate) fn tighten(
        &mut self,
        setting: &Setting<'_>,
        norms: &Norms,
        case: usize,
        lane: usize,
        worst: f64,
    ) {
        if worst < self.cases[case].worst[lane] {
            self.set_worst(setting, case, lane, worst);
            let CaseTile { lists, limits, .. } = &mut self.cases[case];
            let screen = &self.screen;
            lists[lane].pending.retain(|c| screen.reaches(c, limits[lane], || norms.kept(c.row)));
        }
    }

    fn set_worst(&mut self, setting: &Setting<'_>, case: usize, lane: usize, worst: f64) {
        self.cases[case].worst[lane] = worst;
        self.cases[case].limits[lane] = self.screen.limit(setting, lane, &self.probes[lane], worst);
    }

    /// Looks at part of a block, of `parts`.
    pub(crate) fn scan(&mut self, setting: &Setting<'_>, block: &Block<'_>, norms: &Norms, parts: usize) {
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
                self.screen.masks(setting, block, rows, rows_here.clone(), self.used, masks);
                for (at, &mask) in masks.iter().enumerate().filter(|(_, mask)| **mask != 0) {
                    self.take_candidates(setting, block, norms, (start + at, at), mask);
                }
            }
        }
        setting.decided.fetch_add(std::mem::take(&mut self.decided), Ordering::Relaxed);
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
        // Where one case takes ascending rows, an equal count comes too late.
        let ties = self.cases.len() > 1;
        for (lane, probe) in self.probes.iter().enumerate() {
            let worst = worst[lane];
            // NaN differs from everything: the first look sets all limits.
            if all || worst != self.limits_of[lane] {
                self.limits_of[lane] = worst;
                self.screen.set_limit(setting, lane, probe, worst, safe, ties);
            }
        }
    }

    /// Row `i` of the block, the `at`-th that was screened, becomes a candidate for the queries in `mask`
    /// in all its cases.
    fn take_candidates(
        &mut self,
        setting: &Setting<'_>,
        block: &Block<'_>,
        norms: &Norms,
        (i, at): (usize, usize),
        mut mask: u32,
    ) {
        // The limits of a single case are those of the kernel: what came through reaches them.
        let alone = self.cases.len() == 1;
        while mask != 0 {
            let lane = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            if alone && self.cases[0].at_once >> lane & 1 == 1 {
                let key = self.decide(setting, block, norms, i, lane);
                self.offer(setting, 0, lane, Scored { key, row: block.ids[i] });
                continue;
            }
            let candidate = self.screen.candidate(setting, block, (i, at), lane, &self.probes[lane]);
            let mut key = None;
            let mut members = block.members[i];
            while members != 0 {
                let case = members.trailing_zeros() as usize;
                members &= members - 1;
                let CaseTile { lists, worst, limits, at_once, .. } = &mut self.cases[case];
                let reaches = || self.screen.reaches(&candidate, limits[lane], || block.norms[i]);
                if worst[lane] == f64::NEG_INFINITY || !reaches() {
                    continue;
                }
                if *at_once >> lane & 1 == 1 {
                    let known = match key {
                        Some(key) => key,
                        None => self.decide(setting, block, norms, i, lane),
                    };
                    key = Some(known);
                    self.offer(setting, case, lane, Scored { key: known, row: candidate.row });
                } else if lists[lane].push(candidate) {
                    self.look(setting, norms, case, lane);
                }
            }
        }
    }

    /// The key of row `i` of the block.
    fn decide(
        &mut self,
        setting: &Setting<'_>,
        block: &Block<'_>,
        norms: &Norms,
        i: usize,
        lane: usize,
    ) -> f64 {
        self.decided += 1;
        let norm = norms.of(setting.level, block.ids[i], block.row(i));
        self.probes[lane].key(setting.metric, setting.level, block.row(i), norm)
    }

    fn offer(&mut self, setting: &Setting<'_>, case: usize, lane: usize, scored: Scored) {
        let CaseTile { lists, worst, .. } = &mut self.cases[case];
        if scored.key <= worst[lane] && lists[lane].best.offer(scored) {
            let worst = worst[lane].min(lists[lane].best.worst());
            self.set_worst(setting, case, lane, worst);
        }
    }

    /// Looks whether candidates make a lower threshold, and whether they are too many.
    fn look(&mut self, setting: &Setting<'_>, norms: &Norms, case: usize, lane: usize) {
        let CaseTile { lists, rank, .. } = &self.cases[case];
        let rank = *rank;
        if let Some(worst) = nth_high(&[&lists[lane]], rank, &mut self.work) {
            self.tighten(setting, norms, case, lane, worst);
        }
        if self.cases[case].lists[lane].pending.len() > setting.most_pending {
            self.settle_one(setting, norms, case, lane);
        }
        self.cases[case].lists[lane].look_later(rank);
    }

    /// Decides all candidates of a query in a case. Where that takes most of them, since few can be told from
    /// the k best, every further one is decided at once.
    fn settle_one(&mut self, setting: &Setting<'_>, norms: &Norms, case: usize, lane: usize) {
        let mut list = self.take(case, lane);
        let worst = self.worst(case, lane);
        let pending = list.pending.len();
        let count = self.settle(setting, norms, lane, &mut [&mut list], &[worst], &mut Decided::default());
        let decided = list.best.worst();
        self.cases[case].lists[lane] = list;
        self.cases[case].at_once |= u32::from(count * 2 > pending) << lane;
        if decided < worst {
            self.set_worst(setting, case, lane, decided);
        }
    }

    /// Decides the candidates of a query in some cases; `worst` is what no key may exceed in each. `decided`
    /// lends its memory. Answers how many were decided.
    pub(crate) fn settle(
        &self,
        setting: &Setting<'_>,
        norms: &Norms,
        lane: usize,
        lists: &mut [&mut Shortlist],
        worst: &[f64],
        decided: &mut Decided,
    ) -> usize {
        decided.clear();
        let probe = &self.probes[lane];
        let decider = Decider { setting, norms, probe, screen: &self.screen, lane };
        // A row of one case is asked for once; with more, it may come again.
        let mut decided = (lists.len() > 1).then_some(decided);
        let each = lists.iter_mut().zip(worst);
        each.map(|(list, &worst)| decider.settle(list, worst, decided.as_deref_mut())).sum()
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
                    let mut members = block.members[i];
                    while members != 0 {
                        self.offer(setting, members.trailing_zeros() as usize, lane, scored);
                        members &= members - 1;
                    }
                }
            }
        }
    }

    /// How many pairs of a block the screening does not rule out, with the bounds as limits.
    pub(crate) fn count(&mut self, setting: &Setting<'_>, block: &Block<'_>) -> u64 {
        let rows: &IntRows<'_> = &block.integers();
        let mut count = 0;
        self.set_limits(setting, u64::MAX, block.safe);
        for start in (0..block.len()).step_by(STRIDE) {
            let range = start..(start + STRIDE).min(block.len());
            let mut masks = [0; STRIDE];
            let masks = &mut masks[..range.len()];
            self.screen.masks(setting, block, rows, range, self.used, masks);
            count += masks.iter().map(|m| u64::from(m.count_ones())).sum::<u64>();
        }
        count
    }
}
