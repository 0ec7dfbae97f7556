//! Products of small integers, rows against a tile of queries, and what of them reaches a limit.
//!
//! Rows and queries are vectors of i8 or i16 (see [`crate::quantise8`]). The sums of products are
//! exact in i32; the comparison that follows is in f32, and its coefficients must allow for the
//! rounding of six operations (crate `exact` makes them).

use crate::Level;
use crate::int_lanes::{IntLanes, Portable};
use crate::screen::TILE_QUERIES;
use std::ops::Range;

/// Bytes to which rows are padded with zeros.
const ROW_ALIGN: usize = 64;
/// Rows that are multiplied together at most.
pub const PANEL_ROWS: usize = 32;

/// The integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 8 bits.
    Eight,
    /// 16 bits.
    Sixteen,
}

impl Width {
    /// Bytes of one.
    pub fn bytes(self) -> usize {
        match self {
            Width::Eight => 1,
            Width::Sixteen => 2,
        }
    }

    /// Bytes from one row of `dim` components to the next.
    pub fn stride(self, dim: usize) -> usize {
        (dim * self.bytes()).next_multiple_of(ROW_ALIGN).max(ROW_ALIGN)
    }
}

/// How a level multiplies integers of a width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Portable,
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(target_arch = "aarch64")]
    NeonDot,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Vnni,
    #[cfg(target_arch = "x86_64")]
    Amx,
}

impl Path {
    fn of(level: Level, width: Width) -> Path {
        let _ = width;
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Amx if width == Width::Eight => Path::Amx,
            #[cfg(target_arch = "x86_64")]
            Level::Amx | Level::Avx512 if is_x86_feature_detected!("avx512vnni") => Path::Vnni,
            #[cfg(target_arch = "x86_64")]
            Level::Amx | Level::Avx512 | Level::Avx2 => Path::Avx2,
            #[cfg(target_arch = "aarch64")]
            Level::Neon if std::arch::is_aarch64_feature_detected!("dotprod") => Path::NeonDot,
            #[cfg(target_arch = "aarch64")]
            Level::Neon => Path::Neon,
            _ => Path::Portable,
        }
    }

    /// What is added to each component of a query, so that it is unsigned; rows are always signed.
    fn bias(self, width: Width) -> i32 {
        match (self, width) {
            #[cfg(target_arch = "x86_64")]
            (Path::Avx2, Width::Eight) => 64,
            #[cfg(target_arch = "x86_64")]
            (Path::Vnni, Width::Eight) => 128,
            _ => 0,
        }
    }
}

/// The largest component that a query may have at this level: rows may always go to 127 or 32,767.
/// AVX2 adds two products in 16 bits.
pub fn largest_in_query(level: Level, width: Width) -> i32 {
    match (Path::of(level, width), width) {
        #[cfg(target_arch = "x86_64")]
        (Path::Avx2, Width::Eight) => 63,
        (_, Width::Eight) => 127,
        (_, Width::Sixteen) => 32_767,
    }
}

/// What the comparison needs to know of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RowFigures {
    /// Sum of the row's integers.
    pub sum: i32,
    /// What an integer of 1 stands for.
    pub step: f32,
    /// What quantising lost, at most: a norm. Infinity where the row must never be ruled out.
    pub lost: f32,
    /// Norm of the quantised row, at most.
    pub norm: f32,
    /// What is added to the product, at most.
    pub offset: f32,
}

/// Rows as integers.
#[derive(Clone, Copy, Debug)]
pub struct IntRows<'a> {
    /// Integers of row i from byte i * stride on ([`Width::stride`]), zeros behind; room for
    /// [`PANEL_ROWS`] rows more, which are read and not answered.
    pub integers: &'a [u8],
    /// One for each row.
    pub figures: &'a [RowFigures],
}

/// Coefficients of the queries of a tile. A row is out for a query where
/// `product * step + lost * per_lost + norm * per_norm + offset * per_offset < limit`.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Per unit of what the row lost.
    pub per_lost: [f32; TILE_QUERIES],
    /// Per unit of the row's norm.
    pub per_norm: [f32; TILE_QUERIES],
    /// Per unit of the row's offset.
    pub per_offset: [f32; TILE_QUERIES],
    /// The limit; NaN or minus infinity rule nothing out, plus infinity everything.
    pub limit: [f32; TILE_QUERIES],
}

/// Products of a row with the queries of a tile.
pub type Products = [i32; TILE_QUERIES];

/// Up to [`TILE_QUERIES`] queries as integers.
#[derive(Debug)]
pub struct IntTile {
    level: Level,
    width: Width,
    dim: usize,
    /// Bit i is set for query i.
    used: u32,
    /// For each 4 bytes of a row: those of all queries.
    packed: Vec<Line>,
}

/// Four bytes of each query.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u32; TILE_QUERIES]);

impl IntTile {
    /// Packs queries of 8 or 16 bits; all have `dim` components of at most [`largest_in_query`].
    ///
    /// # Panics
    /// Where there are too many, or one has another length or a component too large.
    pub fn new(level: Level, width: Width, dim: usize, queries: &[&[i16]]) -> IntTile {
        assert!(queries.len() <= TILE_QUERIES, "{} queries in a tile", queries.len());
        let (bias, most) = (Path::of(level, width).bias(width), largest_in_query(level, width));
        let used = if queries.is_empty() { 0 } else { u32::MAX >> (TILE_QUERIES - queries.len()) };
        let mut packed = vec![Line([0; TILE_QUERIES]); width.stride(dim) / 4];
        for (lane, query) in queries.iter().enumerate() {
            assert_eq!(query.len(), dim, "components of a query");
            for (d, &value) in query.iter().enumerate() {
                assert!(i32::from(value).abs() <= most, "component {value} of a query");
                let biased = i32::from(value) + bias;
                let (at, shift, mask) = match width {
                    Width::Eight => (d / 4, d % 4 * 8, 0xFF),
                    Width::Sixteen => (d / 2, d % 2 * 16, 0xFFFF),
                };
                packed[at].0[lane] |= (biased.cast_unsigned() & mask) << shift;
            }
        }
        IntTile { level, width, dim, used, packed }
    }

    /// For each row of `range`, which queries it is not out for: bit i for query i. The product of each
    /// such pair is left in `products`; what stands there for other pairs means nothing.
    ///
    /// # Panics
    /// Where an array of `rows` is shorter than the range, or `masks` or `products` has another length.
    pub fn screen(
        &self,
        rows: &IntRows<'_>,
        range: Range<usize>,
        limits: &Limits,
        masks: &mut [u32],
        products: &mut [Products],
    ) {
        let stride = self.width.stride(self.dim);
        let padded = range.start + range.len().next_multiple_of(PANEL_ROWS);
        assert!(range.start <= range.end && masks.len() == range.len(), "one mask a row");
        assert!(products.len() == range.len(), "products of all rows");
        assert!(rows.integers.len() >= padded * stride, "whole panels of rows");
        assert!(rows.figures.len() >= range.end, "figures of all rows");
        let job = Screen { tile: self, rows, stride, limits };
        let path = Path::of(self.level, self.width);
        // SAFETY: lengths are checked above; a level is only given where the CPU has its features,
        // and `Path::of` asks for VNNI.
        unsafe {
            match (path, self.width) {
                #[cfg(target_arch = "x86_64")]
                (Path::Amx, _) => x86::amx(&job, range, masks, products),
                #[cfg(target_arch = "x86_64")]
                (Path::Vnni, Width::Eight) => x86::vnni8(&job, range, masks, products),
                #[cfg(target_arch = "x86_64")]
                (Path::Vnni, Width::Sixteen) => x86::vnni16(&job, range, masks, products),
                #[cfg(target_arch = "x86_64")]
                (Path::Avx2, Width::Eight) => x86::avx2_8(&job, range, masks, products),
                #[cfg(target_arch = "x86_64")]
                (Path::Avx2, Width::Sixteen) => x86::avx2_16(&job, range, masks, products),
                #[cfg(target_arch = "aarch64")]
                (Path::NeonDot, Width::Eight) => arm::dot8(&job, range, masks, products),
                #[cfg(target_arch = "aarch64")]
                (Path::Neon, Width::Eight) => {
                    job.run::<crate::int_lanes::Neon, 4, 4, true>(range, masks, products)
                }
                #[cfg(target_arch = "aarch64")]
                (Path::Neon | Path::NeonDot, Width::Sixteen) => {
                    job.run::<crate::int_lanes::Neon, 4, 4, false>(range, masks, products)
                }
                (Path::Portable, Width::Eight) => job.run::<Portable, 2, 1, true>(range, masks, products),
                (Path::Portable, Width::Sixteen) => job.run::<Portable, 2, 1, false>(range, masks, products),
            }
        }
        masks.iter_mut().for_each(|mask| *mask &= self.used);
    }
}

/// One call of [`IntTile::screen`].
struct Screen<'a> {
    tile: &'a IntTile,
    rows: &'a IntRows<'a>,
    stride: usize,
    limits: &'a Limits,
}

impl Screen<'_> {
    /// Blocks of `R` rows x `V` registers of queries; `EIGHT` for bytes, else 16 bits.
    ///
    /// # Safety
    /// `L`'s instruction set is there; the lengths are as [`IntTile::screen`] asserts.
    #[inline(always)]
    unsafe fn run<L: IntLanes, const R: usize, const V: usize, const EIGHT: bool>(
        &self,
        range: Range<usize>,
        masks: &mut [u32],
        products: &mut [Products],
    ) {
        masks.fill(0);
        let bias = Path::of(self.tile.level, self.tile.width).bias(self.tile.width);
        let lines = (self.tile.dim * self.tile.width.bytes()).div_ceil(4);
        for first in range.clone().step_by(R) {
            let count = R.min(range.end - first);
            // Rows past the end are padding, or belong to the next range: read, not answered.
            let row = |r: usize| first + r.min(count - 1);
            for lane in (0..TILE_QUERIES).step_by(V * L::N) {
                // SAFETY: rows of the range have `stride` bytes, of which `lines` * 4 are read; lanes
                // `lane` to `lane + V * N` are below `TILE_QUERIES`.
                unsafe {
                    let starts: [*const u32; R] =
                        std::array::from_fn(|r| self.rows.integers.as_ptr().add(row(r) * self.stride).cast());
                    let mut sums: [[L::V; V]; R] = std::array::from_fn(|r| {
                        [L::splat(self.rows.figures[row(r)].sum.wrapping_mul(-bias)); V]
                    });
                    let mut at = self.tile.packed.as_ptr().cast::<u32>().wrapping_add(lane);
                    for line in 0..lines {
                        let queries: [L::V; V] = std::array::from_fn(|v| L::load(at.add(v * L::N)));
                        for r in 0..R {
                            let x = L::splat(starts[r].add(line).read_unaligned().cast_signed());
                            for v in 0..V {
                                sums[r][v] = if EIGHT {
                                    L::dot8(sums[r][v], queries[v], x)
                                } else {
                                    L::dot16(sums[r][v], queries[v], x)
                                };
                            }
                        }
                        at = at.wrapping_add(TILE_QUERIES);
                    }
                    for r in 0..count {
                        for (v, &sum) in sums[r].iter().enumerate() {
                            let bits = self.compare::<L>(first + r, lane + v * L::N, sum);
                            masks[first + r - range.start] |= bits << (lane + v * L::N);
                            if bits != 0 {
                                let line = products[first + r - range.start].as_mut_ptr();
                                line.add(lane + v * L::N).cast::<L::V>().write_unaligned(sum);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Which lanes of `products`, from `lane` on, reach the limit with row `row`.
    ///
    /// # Safety
    /// As [`Screen::run`].
    #[inline(always)]
    unsafe fn compare<L: IntLanes>(&self, row: usize, lane: usize, products: L::V) -> u32 {
        let limits = self.limits;
        // SAFETY: `lane + N` is at most `TILE_QUERIES`; `row` is below the length of the figures.
        unsafe {
            let figures = self.rows.figures.get_unchecked(row);
            let per = |of: &[f32; TILE_QUERIES]| L::load_f32(of.as_ptr().add(lane));
            let mut sum = L::mul(L::to_f32(products), L::splat_f32(figures.step));
            sum = L::mul_add(L::splat_f32(figures.offset), per(&limits.per_offset), sum);
            sum = L::mul_add(L::splat_f32(figures.norm), per(&limits.per_norm), sum);
            sum = L::mul_add(L::splat_f32(figures.lost), per(&limits.per_lost), sum);
            L::not_less(sum, per(&limits.limit))
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    //! [`Screen::run`] compiled for SDOT.

    use super::{Products, Screen};
    use std::ops::Range;

    #[target_feature(enable = "neon,dotprod")]
    pub(super) unsafe fn dot8(
        job: &Screen<'_>,
        range: Range<usize>,
        masks: &mut [u32],
        products: &mut [Products],
    ) {
        // SAFETY: as `Screen::run`, on a CPU with the features named.
        unsafe { job.run::<crate::int_lanes::NeonDot, 4, 4, true>(range, masks, products) }
    }
}

#[cfg(target_arch = "x86_64")]
#[path = "product_x86.rs"]
mod x86;
