//! Which rows a scan looks at, and in which cases they are.

use crate::scan::Scan;
use std::ops::Range;
use types::RowSet;

/// Rows of a case in a range.
pub(crate) fn count(case: Option<&RowSet>, rows: &Range<usize>) -> usize {
    case.map_or(rows.len(), |set| set.count_in(rows.clone()))
}

/// Rows of any case, with their cases, in order.
pub(crate) struct Source<'a> {
    pub(crate) rows: Box<dyn Iterator<Item = (u32, u64)> + 'a>,
    sample: bool,
    most: usize,
}

impl<'a> Source<'a> {
    /// All rows of `rows` that are in a case.
    pub(crate) fn all(scan: &'a Scan<'_>, rows: Range<usize>) -> Source<'a> {
        let most = scan.cases.iter().map(|case| count(*case, &rows)).max().unwrap_or(0);
        Source { rows: members(scan.cases, rows), sample: false, most }
    }

    /// About one row in `every`, chosen by a hash of its number, so that no period of the data meets
    /// one of ours.
    pub(crate) fn sample(scan: &'a Scan<'_>, rows: Range<usize>, every: u64) -> Source<'a> {
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

    /// Whether rows were left out.
    pub(crate) fn is_sample(&self) -> bool {
        self.sample
    }

    /// Rows of the largest case.
    pub(crate) fn most(&self) -> usize {
        self.most
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
