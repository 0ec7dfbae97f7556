//! One list of a truth beside the exact one.

use super::{AuditAsk, Difference, Wrong, head};
use crate::distance::Measure;
use crate::score::tolerance;
use types::{Metric, Neighbour, Vectors};

/// How a list stands to the exact one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The query has no distances.
    Undefined,
    /// Row by row the same.
    Identical,
    /// The same but for rows that tie.
    Tied,
    /// Wrong.
    Different,
}

/// How far two distances may lie apart and still be said to tie: what f32 arithmetic may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slack {
    relative: f64,
    absolute: f64,
}

impl Slack {
    /// For one query. Under the inner product the allowance grows with the lengths of both.
    pub(crate) fn new(metric: Metric, base: &Vectors, queries: &Vectors, lengths: f64) -> Slack {
        let (relative, absolute) = tolerance(metric, base, queries);
        let lengths = if metric == Metric::InnerProduct { lengths } else { 1.0 };
        Slack { relative, absolute: absolute * lengths }
    }

    /// Whether the two tie. Undefined distances tie with nothing.
    pub(crate) fn ties(self, a: f64, b: f64) -> bool {
        (a - b).abs() <= self.at(b)
    }

    /// The allowance around a distance.
    pub(crate) fn at(self, distance: f64) -> f64 {
        self.relative * distance.abs() + self.absolute
    }
}

/// One query's list, and what is exact.
#[derive(Debug)]
pub(crate) struct List {
    /// The query's number.
    pub(crate) query: usize,
    /// What the truth names, first `k`.
    pub(crate) named: Vec<Neighbour>,
    /// Exact distances of those rows; NaN where there is none.
    pub(crate) distances: Vec<f64>,
    /// The exact neighbours, deeper than `k` where there are more.
    pub(crate) exact: Vec<Neighbour>,
    /// How many of them the list should hold.
    pub(crate) wanted: usize,
    /// Rows named that are near enough, each counted once.
    pub(crate) right: usize,
    pub(crate) slack: Slack,
    pub(crate) standing: Standing,
    /// Whether the rows named would be right in another order.
    pub(crate) only_order: bool,
    pub(crate) matching_differs: bool,
    pub(crate) difference: Option<Difference>,
    /// Rows that qualify.
    matching: u64,
}

impl List {
    pub(crate) fn new(ask: &AuditAsk<'_>, query: usize, exact: Vec<Neighbour>, matching: u64) -> List {
        let named = head(ask.truth, query, ask.k).to_vec();
        let measure = Measure::new(ask.base, ask.queries, query, ask.metric);
        let distances = distances(&measure, ask.base.rows(), named.iter().map(|n| Some(n.row)));
        let wanted = exact.len().min(ask.k);
        let lengths = match (ask.metric, wanted.checked_sub(1)) {
            (Metric::InnerProduct, Some(last)) => {
                measure.probe.norm * measure.row_norm(exact[last].row as usize)
            }
            _ => 1.0,
        };
        let slack = Slack::new(ask.metric, ask.base, ask.queries, lengths);
        let mut list = List {
            query,
            named,
            distances,
            exact,
            wanted,
            right: 0,
            slack,
            standing: Standing::Undefined,
            only_order: false,
            matching_differs: false,
            difference: None,
            matching,
        };
        if !measure.probe.is_defined(ask.metric) {
            (list.wanted, list.named, list.distances) = (0, Vec::new(), Vec::new());
            return list;
        }
        list.compare(ask);
        list
    }

    fn compare(&mut self, ask: &AuditAsk<'_>) {
        let may_see = |row: u32| {
            let rows = ask.filter.and_then(|filter| filter.of(self.query));
            rows.is_none_or(|rows| rows.contains(row as usize))
        };
        let allowed: Vec<bool> = self.named.iter().map(|n| may_see(n.row)).collect();
        let first_time = first_times(self.named.iter().map(|n| n.row));
        if let Some(last) = self.wanted.checked_sub(1).map(|last| self.exact[last].distance) {
            let threshold = last + self.slack.at(last);
            let near = |&i: &usize| self.distances[i] <= threshold && allowed[i] && first_time[i];
            self.right = (0..self.named.len().min(self.wanted)).filter(near).count();
        }
        // A file that does not count what passes says as many as it lists, or all rows: no claim.
        if let Some(passing) = ask.filter.and_then(|f| f.of(self.query)) {
            let (said, listed) = (ask.truth.matching(self.query), ask.truth.of(self.query).len());
            let claims =
                (said != listed as u64 || listed < ask.truth.depth()) && said != ask.base.rows() as u64;
            self.matching_differs = claims && said != self.matching && said != passing.count() as u64;
        }
        self.difference = self.first_difference(ask, &allowed, &first_time);
        let exact = &self.exact[..self.wanted];
        self.standing = if self.difference.is_some() {
            self.only_order = self.right == self.wanted && self.named.len() == self.wanted;
            Standing::Different
        } else if exact.iter().map(|n| n.row).eq(self.named.iter().map(|n| n.row)) {
            Standing::Identical
        } else {
            Standing::Tied
        };
    }

    /// The first rank at which the list is wrong, ties aside.
    fn first_difference(
        &self,
        ask: &AuditAsk<'_>,
        allowed: &[bool],
        first_time: &[bool],
    ) -> Option<Difference> {
        let what = |rank: usize| {
            let Some(named) = self.named.get(rank) else {
                return Some(Wrong::TooShort);
            };
            if named.row as usize >= ask.base.rows() {
                Some(Wrong::NoSuchRow)
            } else if !first_time[rank] {
                Some(Wrong::Repeated)
            } else if !allowed[rank] {
                Some(Wrong::FilterFails)
            } else if self.distances[rank].is_nan() {
                Some(Wrong::NoDistance)
            } else if rank >= self.wanted {
                Some(Wrong::TooLong)
            } else if self.slack.ties(self.distances[rank], self.exact[rank].distance) {
                None
            } else if self.distances[rank] > self.exact[rank].distance {
                Some(Wrong::NearerMissing)
            } else {
                Some(Wrong::TooFarDown)
            }
        };
        let (rank, what) = (0..self.named.len().max(self.wanted)).find_map(|r| Some((r, what(r)?)))?;
        let exact = self.exact[..self.wanted].get(rank);
        Some(Difference {
            query: self.query,
            rank: rank + 1,
            row: self.named.get(rank).map(|n| n.row),
            distance: self.distances.get(rank).copied().filter(|d| !d.is_nan()),
            exact_row: exact.map(|n| n.row),
            exact_distance: exact.map(|n| n.distance),
            what,
        })
    }

    /// Whether the exact list goes on past all that ties with the last rank.
    pub(crate) fn sees_end_of_ties(&self) -> bool {
        let Some(last) = self.wanted.checked_sub(1).map(|last| self.exact[last].distance) else {
            return true;
        };
        self.exact.len() as u64 == self.matching
            || self.exact.last().is_some_and(|n| !self.slack.ties(n.distance, last))
    }
}

/// The exact distance of each row; NaN for none and for rows past the base.
pub(crate) fn distances(
    measure: &Measure<'_>,
    rows: usize,
    named: impl Iterator<Item = Option<u32>>,
) -> Vec<f64> {
    let distance = |row: Option<u32>| match row.filter(|&row| (row as usize) < rows) {
        Some(row) => measure.distance(row as usize),
        None => f64::NAN,
    };
    named.map(distance).collect()
}

/// For each row whether it has not stood before.
fn first_times(rows: impl Iterator<Item = u32>) -> Vec<bool> {
    let mut seen = std::collections::HashSet::new();
    rows.map(|row| seen.insert(row)).collect()
}
