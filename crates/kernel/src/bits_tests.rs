//! Counts of bits against one obvious loop, at every level.

use crate::exact64_tests::{Numbers, thinned};
use crate::*;

/// The reference: one bit after the other, the first the highest of its byte.
fn plain(bits: usize, a: &[u8], b: &[u8]) -> u32 {
    let bit = |v: &[u8], i: usize| v[i / 8] >> (7 - i % 8) & 1;
    (0..bits).map(|i| u32::from(bit(a, i) != bit(b, i))).sum()
}

/// `count` vectors of `bytes`, each at an odd or even place of a longer buffer.
struct Vectors {
    buffer: Vec<u8>,
    bytes: usize,
    count: usize,
}

impl Vectors {
    /// Kinds: 0 random, 1 all equal, 2 all bits set, 3 none.
    fn new(numbers: &mut Numbers, count: usize, bytes: usize, kind: u64) -> Vectors {
        let random = |numbers: &mut Numbers| numbers.next() as u8;
        let mut buffer: Vec<u8> = (0..count * (bytes + 1)).map(|_| random(numbers)).collect();
        match kind {
            1 => (bytes + 1..buffer.len()).for_each(|i| buffer[i] = buffer[i - bytes - 1]),
            2 => buffer.fill(0xFF),
            3 => buffer.fill(0),
            _ => {}
        }
        Vectors { buffer, bytes, count }
    }
    fn all(&self) -> Vec<&[u8]> {
        // One byte lies between two vectors, so half of them are at odd addresses.
        (0..self.count).map(|i| &self.buffer[i * (self.bytes + 1)..][..self.bytes]).collect()
    }
}

/// All levels, over rows and queries whose unused bits are set at random.
fn check(numbers: &mut Numbers, bits: usize, kinds: (u64, u64), rows: usize, queries: usize) {
    let bytes = bits.div_ceil(8);
    let (rows, queries) = if cfg!(miri) { (rows.min(2), queries.min(5)) } else { (rows, queries) };
    let (rows, queries) =
        (Vectors::new(numbers, rows, bytes, kinds.0), Vectors::new(numbers, queries, bytes, kinds.1));
    let (rows, queries) = (rows.all(), queries.all());
    let mut tile = BitTile::new(bits, &queries);
    let below: Vec<Option<u32>> = (0..queries.len())
        .map(|lane| match lane % 4 {
            0 => None,
            1 => Some(plain(bits, rows[lane % rows.len()], queries[lane])),
            2 => Some(plain(bits, rows[lane % rows.len()], queries[lane]) + 1),
            _ => Some((numbers.next() % (bits as u64 + 1)) as u32),
        })
        .collect();
    below.iter().enumerate().for_each(|(lane, &below)| tile.set_below(lane, below));
    for level in Level::available() {
        let mut counts = [[77; TILE_QUERIES]; SCREEN_ROWS];
        let masks = screen_bits(level, &rows, &tile, &mut counts);
        for (r, row) in rows.iter().enumerate() {
            for (lane, query) in queries.iter().enumerate() {
                let expected = plain(bits, row, query);
                let place = format!("{level:?}, {bits} bits, row {r}, query {lane}");
                assert_eq!(counts[r][lane], expected, "{place}");
                assert_eq!(masks[r] >> lane & 1 == 1, below[lane].is_none_or(|b| expected < b), "{place}");
            }
            assert_eq!(u64::from(masks[r]) >> queries.len(), 0, "lanes without a query");
        }
        assert!(masks[rows.len()..].iter().all(|&mask| mask == 0), "rows that are not there");
    }
}

#[test]
fn every_length_to_600_bytes() {
    let mut numbers = Numbers(20);
    for bytes in thinned(thinned(1..=600)) {
        let bits = bytes * 8 - if bytes % 3 == 0 { bytes % 8 } else { 0 };
        let (rows, queries) = (1 + bytes % SCREEN_ROWS, 1 + bytes * 7 % TILE_QUERIES);
        check(&mut numbers, bits, (0, 0), rows, queries);
    }
}

#[test]
fn every_number_of_bits_to_200_and_every_kind() {
    let mut numbers = Numbers(21);
    for bits in thinned(thinned(1..=200)) {
        let kinds = (bits as u64 % 4, bits as u64 / 4 % 4);
        check(&mut numbers, bits, kinds, SCREEN_ROWS, 1 + bits % TILE_QUERIES);
    }
}

#[test]
fn all_bits_differ_over_long_rows() {
    let mut numbers = Numbers(22);
    // Bytewise counts overflow where they are gathered too seldom.
    for words in thinned([33, 1, 30, 31, 32, 62, 63, 64, 100, 1000].into_iter()) {
        for bits in [words * 64 - 1, words * 64, words * 64 + 1] {
            check(&mut numbers, bits, (2, 3), 3, 9);
        }
    }
}

#[test]
fn vectors_of_no_bits_are_equal() {
    check(&mut Numbers(23), 0, (0, 0), 2, 3);
}

#[test]
#[should_panic(expected = "rows as long as the queries")]
fn a_row_of_another_length_is_refused() {
    let tile = BitTile::new(16, &[&[1, 2]]);
    screen_bits(Level::detect(), &[&[1, 2, 3]], &tile, &mut [[0; TILE_QUERIES]; SCREEN_ROWS]);
}

#[test]
fn few_queries_have_a_way_of_their_own() {
    let mut numbers = Numbers(24);
    for bits in thinned(thinned((1..700).step_by(7))) {
        check(&mut numbers, bits, (0, 0), 1 + bits % SCREEN_ROWS, 1 + bits % 4);
    }
}
