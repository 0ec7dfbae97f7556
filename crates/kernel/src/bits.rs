//! Counts of differing bits: many queries against many rows at once.
//!
//! As in [`crate::screen`] a tile of queries lies word by word, one query per lane, so that a word of
//! a row is compared with all queries at once and no sum over lanes is ever taken. The counts are
//! exact, so what a row is ruled out by is the count itself. What is not here: ranks, row numbers.

use crate::bit_lanes::{BitLanes, Plain};
use crate::{Level, SCREEN_ROWS, TILE_QUERIES};

/// Up to [`TILE_QUERIES`] bit vectors of one length, word by word, each with the count that a row must
/// stay below to concern it.
#[derive(Clone, Debug)]
pub struct BitTile {
    /// Bytes of a vector.
    bytes: usize,
    /// Queries in it.
    queries: usize,
    /// `words * TILE_QUERIES`: word by word, unused bits cleared.
    packed: Vec<u64>,
    /// The used bits of the last word.
    last_mask: u64,
    below: [u64; TILE_QUERIES],
}

/// For each row the number of bits in which it differs from each query of a tile.
pub type BitCounts = [[u32; TILE_QUERIES]; SCREEN_ROWS];

impl BitTile {
    /// Packs `queries`, each of `bits` bits in whole bytes, the first bit the highest of its byte; what
    /// the unused bits of a last byte hold is of no account, here and in rows. At first nothing is
    /// ruled out.
    ///
    /// # Panics
    /// Where there are too many queries, or one has another length.
    pub fn new(bits: usize, queries: &[&[u8]]) -> BitTile {
        assert!(queries.len() <= TILE_QUERIES, "{} queries in a tile", queries.len());
        assert!(u32::try_from(bits).is_ok(), "{bits} bits: counts are 32-bit numbers");
        let bytes = bits.div_ceil(8);
        let words = bytes.div_ceil(8);
        let mut mask = [0_u8; 8];
        let in_last = bytes - words.saturating_sub(1) * 8;
        mask[..in_last].fill(0xFF);
        if let Some(last) = mask[..in_last].last_mut()
            && !bits.is_multiple_of(8)
        {
            *last = 0xFF << (8 - bits % 8);
        }
        let last_mask = u64::from_ne_bytes(mask);
        let mut packed = vec![0; words * TILE_QUERIES];
        for (lane, query) in queries.iter().enumerate() {
            assert_eq!(query.len(), bytes, "bytes of a query of {bits} bits");
            for (word, bytes) in query.chunks(8).enumerate() {
                packed[word * TILE_QUERIES + lane] = word_of(bytes);
            }
        }
        for word in packed.iter_mut().rev().take(TILE_QUERIES) {
            *word &= last_mask;
        }
        let mut below = [0; TILE_QUERIES];
        below[..queries.len()].fill(u64::MAX);
        BitTile { bytes, queries: queries.len(), packed, last_mask, below }
    }

    /// From now on only rows that differ from query `lane` in fewer than `below` bits concern it; none
    /// for all rows.
    pub fn set_below(&mut self, lane: usize, below: Option<u32>) {
        self.below[lane] = below.map_or(u64::MAX, u64::from);
    }
}

/// Up to eight bytes as a word, missing ones 0.
fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}

/// For each of up to [`SCREEN_ROWS`] rows, which queries of the tile it concerns (bit i for query i),
/// and into `counts` the differing bits of all pairs; those of lanes without a query mean nothing.
///
/// # Panics
/// Where there are no rows or too many, or one has another length than the queries.
pub fn screen_bits(
    level: Level,
    rows: &[&[u8]],
    tile: &BitTile,
    counts: &mut BitCounts,
) -> [u32; SCREEN_ROWS] {
    assert!(!rows.is_empty() && rows.len() <= SCREEN_ROWS, "{} rows at once", rows.len());
    assert!(rows.iter().all(|row| row.len() == tile.bytes), "rows as long as the queries");
    // Missing rows are answered by the last one again; their masks are cleared below.
    let last = rows.len() - 1;
    let whole = tile.bytes.div_ceil(8).saturating_sub(1);
    let rows_at: Rows = std::array::from_fn(|i| {
        let row = rows[i.min(last)];
        (row.as_ptr(), word_of(&row[whole * 8..]) & tile.last_mask)
    });
    // SAFETY: every row has more than `whole` words of bytes or `whole` is 0, `packed` has
    // `TILE_QUERIES` for each word and the last, and each level is given only where the CPU has it.
    let mut masks = unsafe {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Amx | Level::Avx512 if is_x86_feature_detected!("avx512vpopcntdq") => {
                avx512(&rows_at, whole, tile, counts)
            }
            #[cfg(target_arch = "x86_64")]
            Level::Amx | Level::Avx512 | Level::Avx2 if tile.queries <= FEW => {
                few_popcnt(&rows_at, whole, tile, counts)
            }
            #[cfg(target_arch = "x86_64")]
            Level::Amx | Level::Avx512 | Level::Avx2 => avx2(&rows_at, whole, tile, counts),
            #[cfg(target_arch = "aarch64")]
            Level::Neon => screen_all::<crate::bit_lanes::Neon, 8>(&rows_at, whole, tile, counts),
            _ if tile.queries <= 2 * FEW => few(&rows_at, whole, tile, counts),
            _ => screen_all::<Plain, 2>(&rows_at, whole, tile, counts),
        }
    };
    masks[rows.len()..].fill(0);
    masks
}

/// Up to so many queries are not worth a register whose lanes are queries, where counting takes many
/// instructions; in plain Rust twice as many.
const FEW: usize = 2;

/// Where each row begins, and its last word with unused bits cleared.
type Rows = [(*const u8, u64); SCREEN_ROWS];

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
unsafe fn avx512(rows: &Rows, whole: usize, tile: &BitTile, counts: &mut BitCounts) -> [u32; SCREEN_ROWS] {
    // SAFETY: as `screen_bits`.
    unsafe { screen_all::<crate::bit_lanes::Avx512, 8>(rows, whole, tile, counts) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2(rows: &Rows, whole: usize, tile: &BitTile, counts: &mut BitCounts) -> [u32; SCREEN_ROWS] {
    // SAFETY: as `screen_bits`.
    unsafe { screen_all::<crate::bit_lanes::Avx2, 4>(rows, whole, tile, counts) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
unsafe fn few_popcnt(
    rows: &Rows,
    whole: usize,
    tile: &BitTile,
    counts: &mut BitCounts,
) -> [u32; SCREEN_ROWS] {
    // SAFETY: as `screen_bits`.
    unsafe { few(rows, whole, tile, counts) }
}

/// All rows against each query on its own, word by word: no lane is computed in vain.
///
/// # Safety
/// As [`screen_bits`].
#[inline(always)]
unsafe fn few(rows: &Rows, whole: usize, tile: &BitTile, counts: &mut BitCounts) -> [u32; SCREEN_ROWS] {
    let mut masks = [0; SCREEN_ROWS];
    for (lane, &below) in tile.below.iter().enumerate().take(tile.queries) {
        for (r, &(row, last)) in rows.iter().enumerate() {
            let mut sum = 0;
            let mut words = tile.packed.iter().skip(lane).step_by(TILE_QUERIES);
            for (word, query) in words.by_ref().take(whole).enumerate() {
                // SAFETY: a row has more than `whole` words.
                let bits = unsafe { row.add(word * 8).cast::<u64>().read_unaligned() };
                sum += (bits ^ query).count_ones();
            }
            sum += words.next().map_or(0, |query| (last ^ query).count_ones());
            counts[r][lane] = sum;
            masks[r] |= u32::from(u64::from(sum) < below) << lane;
        }
    }
    masks
}

/// All rows against all queries of the tile, `R` rows and one register of queries at a time.
///
/// # Safety
/// As [`screen_bits`]; `L`'s instruction set is there.
#[inline(always)]
unsafe fn screen_all<L: BitLanes, const R: usize>(
    rows: &Rows,
    whole: usize,
    tile: &BitTile,
    counts: &mut BitCounts,
) -> [u32; SCREEN_ROWS] {
    let mut masks = [0; SCREEN_ROWS];
    for first in (0..SCREEN_ROWS).step_by(R) {
        for lane in (0..tile.queries).step_by(L::N) {
            // SAFETY: `lane + N` is at most `TILE_QUERIES`, which `N` divides; `first + R` is at most
            // `SCREEN_ROWS`, which `R` divides.
            unsafe {
                let sums = block::<L, R>(rows, whole, first, lane, tile);
                let below = L::load(tile.below.as_ptr().add(lane));
                for (r, sum) in sums.into_iter().enumerate() {
                    L::store_u32(counts[first + r].as_mut_ptr().add(lane), sum);
                    masks[first + r] |= L::less(sum, below) << lane;
                }
            }
        }
    }
    masks
}

/// The counts of `R` rows from `first` against the queries of one register from `lane`.
///
/// # Safety
/// As [`screen_all`].
#[inline(always)]
unsafe fn block<L: BitLanes, const R: usize>(
    rows: &Rows,
    whole: usize,
    first: usize,
    lane: usize,
    tile: &BitTile,
) -> [L::V; R] {
    // SAFETY: words of rows are read below `whole`, words of the tile below `whole`, and once at
    // `whole` where there is a last word.
    unsafe {
        let rows: [(*const u8, u64); R] = std::array::from_fn(|r| rows[first + r]);
        let mut sums = [L::zero(); R];
        let mut at = tile.packed.as_ptr().wrapping_add(lane);
        for start in (0..whole).step_by(L::STEPS) {
            let mut parts = [L::zero(); R];
            for word in start..(start + L::STEPS).min(whole) {
                let query = L::load(at);
                for r in 0..R {
                    let bits = rows[r].0.add(word * 8).cast::<u64>().read_unaligned();
                    parts[r] = L::count(parts[r], L::xor(query, L::splat(bits)));
                }
                at = at.wrapping_add(TILE_QUERIES);
            }
            for r in 0..R {
                sums[r] = L::gather(sums[r], parts[r]);
            }
        }
        if !tile.packed.is_empty() {
            let query = L::load(at);
            for r in 0..R {
                let part = L::count(L::zero(), L::xor(query, L::splat(rows[r].1)));
                sums[r] = L::gather(sums[r], part);
            }
        }
        sums
    }
}
