//! The search among bit vectors: a tile of queries against the rows of a block.
//!
//! Counts are exact and cheap, so there is no screening and no second decision: what stays below the
//! k-th best count so far is offered. What is not here: blocks, threads, merging.

use crate::topk::{Scored, TopK};
use kernel::{BitCounts, BitTile, Level, SCREEN_ROWS, TILE_QUERIES, screen_bits};
use types::Vectors;

/// Up to [`TILE_QUERIES`] queries among bit vectors.
pub(crate) struct BitQueries {
    tile: BitTile,
    /// The last row that was looked at.
    last: Option<u32>,
    /// Whether rows came in ascending order so far.
    ascending: bool,
    counts: Box<BitCounts>,
}

impl BitQueries {
    /// The rows `which` of `queries`, which hold bits.
    pub(crate) fn new(queries: &Vectors, which: &[usize]) -> BitQueries {
        let rows: Vec<&[u8]> = which.iter().map(|&query| queries.row_bytes(query)).collect();
        let tile = BitTile::new(queries.dim(), &rows);
        BitQueries { tile, last: None, ascending: true, counts: Box::new([[0; TILE_QUERIES]; SCREEN_ROWS]) }
    }

    /// Offers the rows `ids` of `base` to `best`, one list per query.
    ///
    /// Where rows ascend, within calls and from call to call, a row with the worst count of a full list
    /// cannot enter it, and is not offered; so what `best` holds from elsewhere must be lower rows.
    pub(crate) fn scan(&mut self, level: Level, base: &Vectors, ids: &[u32], best: &mut [TopK]) {
        let after = self.last.is_none_or(|last| ids.first().is_none_or(|&first| last < first));
        self.ascending &= after && ids.is_sorted();
        self.last = ids.last().copied().or(self.last);
        // Out of order a row may still win a tie.
        let ties = u32::from(!self.ascending);
        for (lane, best) in best.iter().enumerate() {
            self.tile.set_below(lane, below(best, ties));
        }
        let mut rows: [&[u8]; SCREEN_ROWS] = [&[]; SCREEN_ROWS];
        for ids in ids.chunks(SCREEN_ROWS) {
            for (row, &id) in rows.iter_mut().zip(ids) {
                *row = base.row_bytes(id as usize);
            }
            let masks = screen_bits(level, &rows[..ids.len()], &self.tile, &mut self.counts);
            for ((&id, mut mask), counts) in ids.iter().zip(masks).zip(self.counts.iter()) {
                while mask != 0 {
                    let lane = mask.trailing_zeros() as usize;
                    mask &= mask - 1;
                    // A list may have got fuller since the mask was made; `offer` looks again.
                    if best[lane].offer(Scored { key: f64::from(counts[lane]), row: id }) {
                        self.tile.set_below(lane, below(&best[lane], ties));
                    }
                }
            }
        }
    }
}

/// The count that a row must stay below to be offered; none for any.
fn below(best: &TopK, ties: u32) -> Option<u32> {
    let worst = best.worst();
    // Worst counts are whole numbers that came from u32.
    worst.is_finite().then(|| (worst as u32).saturating_add(ties))
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Element;

    /// Rows of 12 bits (4 unused, set), so that nearly all counts are ties.
    fn rows(count: usize, seed: u32) -> Vectors {
        let byte = |i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8;
        let bytes = (0..2 * count as u32).map(|i| byte(i + seed) | if i % 2 == 1 { i as u8 & 15 } else { 0 });
        Vectors::from_bytes(bytes.collect(), count, 12, Element::Bit).expect("12 bits in 2 bytes")
    }

    #[test]
    fn rows_in_any_order_and_any_steps_give_the_same() {
        let (base, queries) = (rows(1000, 0), rows(5, 77));
        let plain = |query: usize, row: usize| -> u32 {
            let used = [0xFF, 0xF0];
            let pairs = base.row_bytes(row).iter().zip(queries.row_bytes(query)).zip(used);
            pairs.map(|((x, q), used)| ((x ^ q) & used).count_ones()).sum()
        };
        let ascending: Vec<u32> = (0..1000).collect();
        let strided: Vec<u32> = (0..16).flat_map(|start| (start..1000).step_by(16)).collect();
        let descending: Vec<u32> = (0..1000).rev().collect();
        for ids in [&ascending, &strided, &descending] {
            for (step, level) in [1, 7, 8, 300, 1000].into_iter().zip(Level::available().into_iter().cycle())
            {
                let mut best = vec![TopK::new(20); 5];
                let mut search = BitQueries::new(&queries, &[0, 1, 2, 3, 4]);
                ids.chunks(step).for_each(|ids| search.scan(level, &base, ids, &mut best));
                for (query, best) in best.iter_mut().enumerate() {
                    let mut expected: Vec<(u32, u32)> =
                        (0..1000).map(|row| (plain(query, row), row as u32)).collect();
                    expected.sort_unstable();
                    let mut found = Vec::new();
                    best.drain_sorted(&mut found);
                    let found: Vec<(u32, u32)> = found.iter().map(|s| (s.key as u32, s.row)).collect();
                    assert_eq!(found, expected[..20], "query {query}, steps of {step}, {level:?}");
                }
            }
        }
    }
}
