//! f32 scores of pairs, larger is nearer: the dot product, or minus the squared distance.

use crate::Level;
use crate::lanes::{Lanes, Portable};

/// Queries in a tile, on every machine (lanes in unused places rule all rows out).
pub const TILE_QUERIES: usize = 32;
/// Rows that one call of [`screen`] looks at.
pub const SCREEN_ROWS: usize = 8;
/// Rows that one call of [`scores`] looks at.
pub const SCORE_ROWS: usize = 4;

/// A pair is out where its f32 score is below `constant + slope * |x|`; scores grow with nearness.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    /// The part that does not depend on the row.
    pub constant: f32,
    /// Per unit of the row's norm.
    pub slope: f32,
}

impl Cut {
    /// Rules nothing out.
    pub const NONE: Cut = Cut { constant: f32::NEG_INFINITY, slope: 0.0 };
}

/// Up to [`TILE_QUERIES`] queries, component by component, each with its cut.
pub struct Tile {
    dim: usize,
    packed: Vec<f32>,
    constants: [f32; TILE_QUERIES],
    slopes: [f32; TILE_QUERIES],
}

impl Tile {
    /// Packs `queries`, all of `dim` components and at most [`TILE_QUERIES`]. At first nothing is
    /// ruled out.
    pub fn new(dim: usize, queries: &[&[f32]]) -> Tile {
        assert!(queries.len() <= TILE_QUERIES, "{} queries in a tile", queries.len());
        let mut packed = vec![0.0; dim * TILE_QUERIES];
        for (lane, query) in queries.iter().enumerate() {
            for (d, &value) in query.iter().enumerate() {
                packed[d * TILE_QUERIES + lane] = value;
            }
        }
        let mut constants = [f32::INFINITY; TILE_QUERIES];
        constants[..queries.len()].fill(f32::NEG_INFINITY);
        Tile { dim, packed, constants, slopes: [0.0; TILE_QUERIES] }
    }

    /// Sets when query `lane` rules a row out.
    pub fn set_cut(&mut self, lane: usize, cut: Cut) {
        self.constants[lane] = cut.constant;
        self.slopes[lane] = cut.slope;
    }
}

/// For each of up to [`SCREEN_ROWS`] rows, which queries of the tile it may concern: bit i for query
/// i. `squared` asks for distances instead of dot products; `norms` are the rows' norms. The scores of
/// all pairs are left in `scores`, those of rows that are not there mean nothing.
///
/// This is the narrow place: a faster screening replaces this function and [`Tile`], nothing else.
pub fn screen(
    level: Level,
    squared: bool,
    rows: &[&[f32]],
    norms: &[f32],
    tile: &Tile,
    scores: &mut Scores,
) -> [u32; SCREEN_ROWS] {
    assert!(!rows.is_empty() && rows.len() <= SCREEN_ROWS && norms.len() == rows.len());
    assert!(rows.iter().all(|row| row.len() == tile.dim));
    // Missing rows are answered by the last one again; their masks are cleared below.
    let last = rows.len() - 1;
    let pointers: [*const f32; SCREEN_ROWS] = std::array::from_fn(|i| rows[i.min(last)].as_ptr());
    let norms: [f32; SCREEN_ROWS] = std::array::from_fn(|i| norms[i.min(last)]);
    // SAFETY: every row has `dim` floats, `packed` has `dim * TILE_QUERIES`, and a level is only
    // given where the CPU has its features.
    let mut masks = unsafe {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 | Level::Amx => screen_avx512(squared, &pointers, &norms, tile, scores),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => screen_avx2(squared, &pointers, &norms, tile, scores),
            #[cfg(target_arch = "aarch64")]
            Level::Neon => screen_all::<Neon, 8, 2>(squared, &pointers, &norms, tile, scores),
            _ => screen_all::<Portable, 2, 2>(squared, &pointers, &norms, tile, scores),
        }
    };
    masks[rows.len()..].fill(0);
    masks
}

#[cfg(target_arch = "aarch64")]
use crate::lanes::Neon;
#[cfg(target_arch = "x86_64")]
use crate::lanes::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn screen_avx512(
    squared: bool,
    rows: &Rows,
    norms: &Norms,
    tile: &Tile,
    scores: &mut Scores,
) -> [u32; SCREEN_ROWS] {
    // SAFETY: as `screen`.
    unsafe { screen_all::<Avx512, 8, 2>(squared, rows, norms, tile, scores) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn screen_avx2(
    squared: bool,
    rows: &Rows,
    norms: &Norms,
    tile: &Tile,
    scores: &mut Scores,
) -> [u32; SCREEN_ROWS] {
    // SAFETY: as `screen`.
    unsafe { screen_all::<Avx2, 4, 2>(squared, rows, norms, tile, scores) }
}

/// Scores of rows against the queries of a tile.
pub type Scores = [[f32; TILE_QUERIES]; SCREEN_ROWS];
type Rows = [*const f32; SCREEN_ROWS];
type Norms = [f32; SCREEN_ROWS];

/// All rows against all queries, in register blocks of `R` rows x `V` registers of queries.
///
/// # Safety
/// As [`screen`]; `L`'s instruction set is there.
#[inline(always)]
unsafe fn screen_all<L: Lanes, const R: usize, const V: usize>(
    squared: bool,
    rows: &Rows,
    norms: &Norms,
    tile: &Tile,
    scores: &mut Scores,
) -> [u32; SCREEN_ROWS] {
    let mut masks = [0; SCREEN_ROWS];
    for first in (0..SCREEN_ROWS).step_by(R) {
        for lane in (0..TILE_QUERIES).step_by(V * L::N) {
            // SAFETY: as for this function.
            let found = unsafe {
                if squared {
                    block::<L, R, V, true>(rows, norms, first, lane, tile, scores)
                } else {
                    block::<L, R, V, false>(rows, norms, first, lane, tile, scores)
                }
            };
            for (r, bits) in found.into_iter().enumerate() {
                masks[first + r] |= bits << lane;
            }
        }
    }
    masks
}

/// # Safety
/// As [`screen_all`].
#[inline(always)]
unsafe fn block<L: Lanes, const R: usize, const V: usize, const SQUARED: bool>(
    rows: &Rows,
    norms: &Norms,
    first: usize,
    lane: usize,
    tile: &Tile,
    scores: &mut Scores,
) -> [u32; R] {
    // SAFETY: reads of rows stay below `dim`, reads of the tile below `dim * TILE_QUERIES` and
    // `TILE_QUERIES`: `lane + V * N` is at most `TILE_QUERIES`. So do the writes of scores.
    unsafe {
        let rows: [*const f32; R] = std::array::from_fn(|r| rows[first + r]);
        let mut sums = [[L::zero(); V]; R];
        let mut at = tile.packed.as_ptr().wrapping_add(lane);
        for d in 0..tile.dim {
            let mut queries = [L::zero(); V];
            for (v, query) in queries.iter_mut().enumerate() {
                *query = L::load(at.add(v * L::N));
            }
            for r in 0..R {
                let x = L::splat(*rows[r].add(d));
                for (sum, query) in sums[r].iter_mut().zip(queries) {
                    *sum = if SQUARED {
                        let difference = L::sub(query, x);
                        L::neg_mul_add(difference, difference, *sum)
                    } else {
                        L::mul_add(query, x, *sum)
                    };
                }
            }
            at = at.wrapping_add(TILE_QUERIES);
        }
        let mut masks = [0; R];
        for r in 0..R {
            let norm = L::splat(norms[first + r]);
            for (v, &sum) in sums[r].iter().enumerate() {
                let constant = L::load(tile.constants.as_ptr().add(lane + v * L::N));
                let slope = L::load(tile.slopes.as_ptr().add(lane + v * L::N));
                let cut = L::mul_add(slope, norm, constant);
                masks[r] |= L::not_less(sum, cut) << (v * L::N);
                L::store(scores[first + r].as_mut_ptr().add(lane + v * L::N), sum);
            }
        }
        masks
    }
}

/// The scores of [`SCORE_ROWS`] rows against one query; all have the query's length.
pub fn scores(level: Level, squared: bool, rows: &[&[f32]; SCORE_ROWS], query: &[f32]) -> [f32; SCORE_ROWS] {
    assert!(rows.iter().all(|row| row.len() == query.len()));
    // SAFETY: all rows are as long as the query, and a level is only given where the CPU has its
    // features.
    unsafe {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 | Level::Amx => scores_avx512(squared, rows, query),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => scores_avx2(squared, rows, query),
            #[cfg(target_arch = "aarch64")]
            Level::Neon => scores_all::<Neon>(squared, rows, query),
            _ => scores_all::<Portable>(squared, rows, query),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn scores_avx512(squared: bool, rows: &[&[f32]; SCORE_ROWS], query: &[f32]) -> [f32; SCORE_ROWS] {
    // SAFETY: as `scores`.
    unsafe { scores_all::<Avx512>(squared, rows, query) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn scores_avx2(squared: bool, rows: &[&[f32]; SCORE_ROWS], query: &[f32]) -> [f32; SCORE_ROWS] {
    // SAFETY: as `scores`.
    unsafe { scores_all::<Avx2>(squared, rows, query) }
}

/// # Safety
/// As [`scores`]; `L`'s instruction set is there.
#[inline(always)]
unsafe fn scores_all<L: Lanes>(
    squared: bool,
    rows: &[&[f32]; SCORE_ROWS],
    query: &[f32],
) -> [f32; SCORE_ROWS] {
    // SAFETY: as for this function.
    unsafe { if squared { scores_one::<L, true>(rows, query) } else { scores_one::<L, false>(rows, query) } }
}

/// # Safety
/// As [`scores_all`].
#[inline(always)]
unsafe fn scores_one<L: Lanes, const SQUARED: bool>(
    rows: &[&[f32]; SCORE_ROWS],
    query: &[f32],
) -> [f32; SCORE_ROWS] {
    let whole = query.len() - query.len() % L::N;
    let mut out = [0.0; SCORE_ROWS];
    // SAFETY: reads stay below `whole`, which is at most the length of the query and of each row;
    // `lanes` has room for the widest register.
    unsafe {
        let mut sums = [L::zero(); SCORE_ROWS];
        for d in (0..whole).step_by(L::N) {
            let q = L::load(query.as_ptr().add(d));
            for r in 0..SCORE_ROWS {
                let x = L::load(rows[r].as_ptr().add(d));
                sums[r] = if SQUARED {
                    let difference = L::sub(q, x);
                    L::neg_mul_add(difference, difference, sums[r])
                } else {
                    L::mul_add(q, x, sums[r])
                };
            }
        }
        for r in 0..SCORE_ROWS {
            let mut lanes = [0.0_f32; 16];
            L::store(lanes.as_mut_ptr(), sums[r]);
            out[r] = lanes.iter().sum();
        }
    }
    for (sum, row) in out.iter_mut().zip(rows) {
        for (x, q) in row[whole..].iter().zip(&query[whole..]) {
            *sum = if SQUARED { *sum - (q - x) * (q - x) } else { *sum + q * x };
        }
    }
    out
}
