//! Which rows a scan looks at, and in which cases they are.

use std::ops::Range;
use types::RowSet;

/// Rows of a case in a range.
pub(crate) fn count(case: Option<&RowSet>, rows: &Range<usize>) -> usize {
    case.map_or(rows.len(), |set| set.count_in(rows.clone()))
}

/// Rows of `range` in any of the cases.
pub(crate) fn union_count(cases: &[Option<&RowSet>], range: &Range<usize>) -> usize {
    union_words(cases, range.clone()).map(|(_, word)| word.count_ones() as usize).sum()
}

/// Which rows of the cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// All.
    All,
    /// About one row in so many, chosen by a hash of its number, so that no period of the data meets
    /// one of ours.
    Sample(u64),
    /// All but [`Which::Sample`].
    Rest(u64),
}

impl Which {
    fn has(self, row: u32) -> bool {
        match self {
            Which::All => true,
            Which::Sample(every) => is_sampled(row, every),
            Which::Rest(every) => !is_sampled(row, every),
        }
    }

    /// About how many of `rows`.
    pub(crate) fn of(self, rows: usize) -> usize {
        match self {
            Which::All => rows,
            Which::Sample(every) => rows / every as usize,
            Which::Rest(every) => rows - rows / every as usize,
        }
    }
}

fn is_sampled(row: u32, every: u64) -> bool {
    // SplitMix64's mixing.
    let z = (u64::from(row) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (u128::from(z ^ z >> 31) * u128::from(every)) >> 64 == 0
}

/// Rows of any case, with their cases, in order.
pub(crate) struct Source<'a> {
    rows: Box<dyn Iterator<Item = (u32, u64)> + Send + 'a>,
}

impl<'a> Source<'a> {
    /// Those of `rows` that are in a case.
    pub(crate) fn new(cases: &'a [Option<&'a RowSet>], rows: Range<usize>, which: Which) -> Source<'a> {
        let all = members(cases, rows);
        let chosen = move |&(row, _): &(u32, u64)| which.has(row);
        Source { rows: if which == Which::All { all } else { Box::new(all.filter(chosen)) } }
    }

    /// The next rows.
    pub(crate) fn take(&mut self, rows: usize) -> Vec<(u32, u64)> {
        self.rows.by_ref().take(rows).collect()
    }
}

/// The rows of `range` that are in a case, each with its cases.
fn members<'a>(
    cases: &'a [Option<&'a RowSet>],
    range: Range<usize>,
) -> Box<dyn Iterator<Item = (u32, u64)> + Send + 'a> {
    match cases {
        [None] => Box::new(range.map(|row| (row as u32, 1))),
        [Some(set)] => Box::new(set.iter_in(range).map(|row| (row as u32, 1))),
        _ => Box::new(union_words(cases, range).flat_map(move |(at, union)| {
            let of_row = move |bit: u32| {
                let of = |(of, i): (u64, usize)| of | (word(cases[i], at) >> bit & 1) << i;
                let of = (0..cases.len()).fold(0, |members, i| of((members, i)));
                ((at * 64) as u32 + bit, of)
            };
            bits(union).map(of_row)
        })),
    }
}

/// Word by word: its place, and the rows of `range` in any of the cases.
fn union_words<'a>(
    cases: &'a [Option<&'a RowSet>],
    range: Range<usize>,
) -> impl Iterator<Item = (usize, u64)> + Send + 'a {
    let places = range.start / 64..range.end.div_ceil(64).max(range.start / 64);
    places.map(move |at| {
        let union = cases.iter().fold(0, |union, case| union | word(*case, at));
        let below = |row: usize| match row.saturating_sub(at * 64) {
            rows if rows < 64 => (1_u64 << rows) - 1,
            _ => u64::MAX,
        };
        (at, union & below(range.end) & !below(range.start))
    })
}

/// 64 rows of a case.
fn word(case: Option<&RowSet>, at: usize) -> u64 {
    case.map_or(u64::MAX, |set| set.words().get(at).copied().unwrap_or(0))
}

/// The places of the bits that are set, ascending.
fn bits(mut word: u64) -> impl Iterator<Item = u32> + Send {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_give_the_rows_that_asking_one_by_one_gives() {
        let rows = 1000;
        let sets =
            [RowSet::from_fn(rows, |r| r % 7 == 1), RowSet::from_fn(rows, |r| r > 900), RowSet::all(rows)];
        let few = [Some(&sets[0]), Some(&sets[1])];
        let with_all = [Some(&sets[1]), None, Some(&sets[0])];
        let one = [Some(&sets[2])];
        let cases: [&[Option<&RowSet>]; 4] = [&few, &with_all, &one, &[None]];
        for cases in cases {
            for range in [0..0, 0..rows, 3..4, 63..64, 64..128, 1..999, 895..905, 700..700] {
                let plain: Vec<(u32, u64)> = range
                    .clone()
                    .map(|row| {
                        let of = |(i, case): (usize, &Option<&RowSet>)| {
                            u64::from(case.is_none_or(|set| set.contains(row))) << i
                        };
                        (row as u32, cases.iter().enumerate().map(of).sum())
                    })
                    .filter(|&(_, of)| of != 0)
                    .collect();
                let all = Source::new(cases, range.clone(), Which::All).take(usize::MAX);
                assert_eq!(all, plain, "{range:?}");
                assert_eq!(union_count(cases, &range), plain.len(), "{range:?}");
                let [sample, rest] = [Which::Sample(8), Which::Rest(8)]
                    .map(|which| Source::new(cases, range.clone(), which).take(usize::MAX));
                let mut both = [sample.clone(), rest].concat();
                both.sort_unstable();
                assert_eq!(both, plain, "a row is in the sample or in the rest");
                assert!(range != (0..rows) || sample.len() * 4 < plain.len());
            }
        }
    }
}
