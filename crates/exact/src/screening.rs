//! How the queries of a tile rule rows out: by products of integers, by f32 scores, or by counted bits.
//!
//! What is here: the one place where the kernels meet their bounds (`frame`, `cut`). A pair that a kernel
//! lets through becomes a [`Candidate`]. Whether a candidate is still one under a lower threshold is
//! asked by the bound with which the kernel let it through, so dropping it then is as certain as having
//! ruled it out at first.

use crate::block::Block;
use crate::cut::{cut_at, highest_key, norm_is_safe};
use crate::distance::Probe;
use crate::frame::{Frame, IntQuery};
use crate::shortlist::Candidate;
use crate::tile::Setting;
use kernel::{
    BitCounts, BitTile, Cut, IntRows, IntTile, Limits, Products, SCREEN_ROWS, Scores, TILE_QUERIES, Width,
    screen,
};
use std::ops::Range;
use types::Metric;

/// Rows that are screened between two looks at the limits.
pub(crate) const STRIDE: usize = 128;

/// The queries of a tile, ready for a kernel.
pub(crate) enum Screen {
    Float {
        tile: kernel::Tile,
        scores: Vec<Scores>,
    },
    Integers {
        tile: IntTile,
        queries: Vec<IntQuery>,
        limits: Box<Limits>,
        products: Vec<Products>,
    },
    /// Counts of bits are exact: there is nothing to decide afterwards.
    Bits {
        tile: BitTile,
        counts: Box<BitCounts>,
    },
}

impl Screen {
    pub(crate) fn new(setting: &Setting<'_>, asked: &[usize], probes: &[Probe]) -> Screen {
        if setting.metric == Metric::Hamming {
            let rows: Vec<&[u8]> = asked.iter().map(|&query| setting.queries.row_bytes(query)).collect();
            let counts = Box::new([[0; TILE_QUERIES]; SCREEN_ROWS]);
            return Screen::Bits { tile: BitTile::new(setting.queries.dim(), &rows), counts };
        }
        match setting.integers {
            Some((width, frame)) => Screen::of_integers(setting, width, frame, probes),
            None => {
                let floats: Vec<&[f32]> = probes.iter().map(|p| p.floats.as_slice()).collect();
                let scores = vec![[[0.0; TILE_QUERIES]; SCREEN_ROWS]; STRIDE / SCREEN_ROWS];
                Screen::Float { tile: kernel::Tile::new(setting.dim, &floats), scores }
            }
        }
    }

    fn of_integers(setting: &Setting<'_>, width: Width, frame: &Frame, probes: &[Probe]) -> Screen {
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
        Screen::Integers { tile, queries, limits, products: vec![[0; TILE_QUERIES]; STRIDE] }
    }

    /// Brings the kernel's limit of `lane` to keys up to `worst`. `safe`: see [`cut_at`]. `ties`: whether
    /// an equal count of bits may still matter.
    pub(crate) fn set_limit(
        &mut self,
        setting: &Setting<'_>,
        lane: usize,
        probe: &Probe,
        worst: f64,
        safe: bool,
        ties: bool,
    ) {
        match self {
            Screen::Integers { queries, limits, .. } => limits.limit[lane] = queries[lane].limit(worst),
            Screen::Float { tile, .. } => {
                let cut = if worst == f64::NEG_INFINITY {
                    Cut { constant: f32::INFINITY, slope: 0.0 }
                } else {
                    cut_at(setting.metric, worst, setting.dim, probe.norm, safe)
                };
                tile.set_cut(lane, cut);
            }
            Screen::Bits { tile, .. } => {
                let below = worst.is_finite().then(|| (worst as u32).saturating_add(u32::from(ties)));
                tile.set_below(lane, if worst == f64::NEG_INFINITY { Some(0) } else { below });
            }
        }
    }

    /// Which queries each row of `range` (at most [`STRIDE`] rows) may concern; `used` are the lanes with a
    /// query.
    pub(crate) fn masks(
        &mut self,
        setting: &Setting<'_>,
        block: &Block<'_>,
        rows: &IntRows<'_>,
        range: Range<usize>,
        used: u32,
        masks: &mut [u32],
    ) {
        match self {
            Screen::Integers { tile, limits, products, .. } => {
                tile.screen(rows, range.clone(), limits, masks, &mut products[..range.len()]);
            }
            Screen::Float { tile, scores } => {
                let parts = masks.chunks_mut(SCREEN_ROWS).zip(scores);
                for (start, (masks, scores)) in range.clone().step_by(SCREEN_ROWS).zip(parts) {
                    let rows = start..(start + SCREEN_ROWS).min(range.end);
                    let mut floats = [[].as_slice(); SCREEN_ROWS];
                    floats.iter_mut().zip(rows.clone()).for_each(|(row, i)| *row = block.row(i));
                    let (floats, norms) = (&floats[..rows.len()], &block.norms_f32[rows]);
                    let squared = setting.metric == Metric::L2;
                    let found = screen(setting.level, squared, floats, norms, tile, scores);
                    // A product that overflows is not ruled out, not even for a lane without a query.
                    masks.iter_mut().zip(found).for_each(|(mask, found)| *mask = found & used);
                }
            }
            Screen::Bits { .. } => {}
        }
    }

    /// What the last call of [`Screen::masks`] knows of row `i` of the block, the `at`-th of its range.
    pub(crate) fn candidate(
        &self,
        setting: &Setting<'_>,
        block: &Block<'_>,
        (i, at): (usize, usize),
        lane: usize,
        probe: &Probe,
    ) -> Candidate {
        let (at, high) = match self {
            Screen::Integers { queries, limits, products, .. } => {
                // In f64, which rounds less than the kernel's own comparison, whose rounding is paid for.
                let figures = &block.integers().figures[i];
                let [step, lost, norm, offset] =
                    [figures.step, figures.lost, figures.norm, figures.offset].map(f64::from);
                let per = |of: &[f32; TILE_QUERIES]| f64::from(of[lane]);
                let score = f64::from(products[at][lane]) * step + offset * per(&limits.per_offset);
                let error = norm * per(&limits.per_norm) + lost * per(&limits.per_lost);
                let slack = setting.integers.map_or(0.0, |(_, frame)| frame.offset_slack(figures));
                let least = score - error - slack * per(&limits.per_offset);
                ((score + error) as f32, queries[lane].key_of(least))
            }
            Screen::Float { scores, .. } => {
                let score = scores[at / SCREEN_ROWS][at % SCREEN_ROWS][lane];
                let key = highest_key(setting.metric, score, setting.dim, probe.norm, block.norms[i]);
                (score, key)
            }
            Screen::Bits { .. } => (f32::INFINITY, f64::INFINITY),
        };
        // What is not a number is never ruled out, and promises nothing.
        let at = if at.is_nan() { f32::INFINITY } else { at };
        // No key but a dot product is below 0.
        let least = if setting.metric == Metric::InnerProduct { f64::NEG_INFINITY } else { 0.0 };
        let high = if high.is_nan() { f32::INFINITY } else { (high.max(least) as f32).next_up() };
        Candidate { at, high, row: block.ids[i] }
    }

    /// The limit of a candidate for keys up to `worst`.
    pub(crate) fn limit(&self, setting: &Setting<'_>, lane: usize, probe: &Probe, worst: f64) -> Cut {
        match self {
            Screen::Integers { queries, .. } => Cut { constant: queries[lane].limit(worst), slope: 0.0 },
            // Rows for which it does not hold are asked for one by one.
            Screen::Float { .. } => cut_at(setting.metric, worst, setting.dim, probe.norm, true),
            Screen::Bits { .. } => Cut::NONE,
        }
    }

    /// Whether a candidate reaches a limit of [`Screen::limit`]; `norm` gives the row's, where the metric
    /// needs it.
    pub(crate) fn reaches(&self, candidate: &Candidate, limit: Cut, norm: impl FnOnce() -> f64) -> bool {
        if let Screen::Float { .. } = self {
            let norm = norm();
            let cut = limit.slope * norm as f32 + limit.constant;
            let out = candidate.at < cut && (norm == 0.0 || norm_is_safe(norm));
            return !out;
        }
        // A limit that is not a number rules nothing out.
        let out = candidate.at < limit.constant;
        !out
    }
}

#[cfg(test)]
#[path = "screening_tests.rs"]
mod tests;
