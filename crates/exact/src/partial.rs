//! What an exact search has found over a range of rows: the unit of shards, stops and merging.

use crate::ExactError;
use crate::distance::key_distance;
use crate::topk::Scored;
use std::ops::Range;
use types::{Metric, Neighbour, Truth};

/// The neighbours of all queries among the rows of one range, for each case (filter).
///
/// Merging ranges gives what one search over all of them gives, bit for bit: keys are float64 sums
/// in a fixed order, and ties go to the lower row.
#[derive(Clone, Debug, PartialEq)]
pub struct Partial {
    rows: Range<usize>,
    cases: Vec<PartialCase>,
}

/// One case of a [`Partial`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PartialCase {
    /// For each query the best rows, ascending.
    pub(crate) lists: Vec<Vec<Scored>>,
    /// For each query the rows of the range that qualify.
    pub(crate) matching: Vec<u64>,
}

impl Partial {
    /// Nothing found yet, from row `start` on.
    pub fn new(start: usize, cases: usize, queries: usize) -> Partial {
        let case = PartialCase { lists: vec![Vec::new(); queries], matching: vec![0; queries] };
        Partial { rows: start..start, cases: vec![case; cases] }
    }

    /// What was found in `rows`: for each case and query the best rows, ascending, and how many
    /// qualify.
    pub(crate) fn of_lists(rows: Range<usize>, cases: Vec<Vec<(Vec<Scored>, u64)>>) -> Partial {
        let case = |lists: Vec<(Vec<Scored>, u64)>| {
            let (lists, matching) = lists.into_iter().unzip();
            PartialCase { lists, matching }
        };
        Partial { rows, cases: cases.into_iter().map(case).collect() }
    }

    /// The rows searched.
    pub fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Number of cases.
    pub fn cases(&self) -> usize {
        self.cases.len()
    }

    /// Number of queries.
    pub fn queries(&self) -> usize {
        self.cases.first().map_or(0, |case| case.lists.len())
    }

    /// One case.
    pub(crate) fn case(&self, case: usize) -> &PartialCase {
        &self.cases[case]
    }

    /// The cases, for the state after the rows up to `end`.
    pub(crate) fn advance(&mut self, end: usize) -> &mut [PartialCase] {
        self.rows.end = end;
        &mut self.cases
    }

    /// Whether it can be gone on from.
    pub(crate) fn check(&self, cases: usize, queries: usize, rows: usize) -> Result<(), ExactError> {
        let length = |what, unit, found, expected| {
            if found == expected { Ok(()) } else { Err(ExactError::Length { what, unit, found, expected }) }
        };
        length("earlier findings", "cases", self.cases(), cases)?;
        if cases > 0 {
            length("earlier findings", "queries", self.queries(), queries)?;
        }
        length("earlier findings", "rows", self.rows.end.max(rows), rows)
    }

    /// The truth of each case at depth `k`.
    pub fn truths(self, metric: Metric, k: usize) -> Vec<Truth> {
        let truth = |case: PartialCase| {
            let mut truth = Truth::new(k);
            for (list, matching) in case.lists.into_iter().zip(case.matching) {
                let neighbour = |s: Scored| Neighbour { row: s.row, distance: key_distance(metric, s.key) };
                truth.push(list.into_iter().map(neighbour), matching);
            }
            truth
        };
        self.cases.into_iter().map(truth).collect()
    }
}
