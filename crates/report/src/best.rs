//! Best throughput at a recall floor, from measured points only: nothing is interpolated.

use crate::view::{self, Comparison, Series};
use record::Point;
use types::stats::{self, Verdict};

/// The recall floors of the table.
pub const FLOORS: [f64; 3] = [0.90, 0.95, 0.99];

/// What a series reaches at a floor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Best<'a> {
    /// The point of highest throughput among those that reach the floor. `faster_limited` is a
    /// faster one that was limited by the client and therefore not used.
    Reached {
        /// The point.
        point: &'a Point,
        /// The one not used.
        faster_limited: Option<&'a Point>,
    },
    /// Reached only where the client was the limit; the fastest of these.
    OnlyLimited(&'a Point),
    /// Not reached; the highest recall measured.
    NotReached(&'a Point),
    /// No usable point with a recall.
    Nothing,
}

/// The best of `series` at `floor`.
pub(crate) fn best<'a>(series: &Series<'a>, floor: f64) -> Best<'a> {
    let usable: Vec<(&Point, f64, f64)> = series
        .points
        .iter()
        .filter_map(|p| view::charted(p).map(|(recall, throughput)| (*p, recall, throughput)))
        .collect();
    // 0.95 computed as a mean may come out a rounding error below.
    let fastest = |limited: bool| {
        usable
            .iter()
            .filter(|(p, recall, _)| view::client_limited(p) == limited && *recall >= floor - 1e-9)
            .max_by(|a, b| a.2.total_cmp(&b.2))
    };
    match (fastest(false), fastest(true)) {
        (Some(own), limited) => {
            let faster_limited = limited.filter(|l| l.2 > own.2).map(|l| l.0);
            Best::Reached { point: own.0, faster_limited }
        }
        (None, Some(limited)) => Best::OnlyLimited(limited.0),
        (None, None) => usable
            .iter()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map_or(Best::Nothing, |highest| Best::NotReached(highest.0)),
    }
}

/// Which series cannot be told apart at a floor, and which cannot be judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ties {
    /// Pairs (by position) whose repeats overlap.
    pub(crate) overlapping: Vec<(usize, usize)>,
    /// Series whose point was measured once.
    pub(crate) single: Vec<usize>,
}

/// Compares the best points of `comparison` at `floor` with one another by their repeats.
pub(crate) fn ties(comparison: &Comparison<'_>, floor: f64) -> Ties {
    let reached: Vec<(usize, &[f64])> = comparison
        .series
        .iter()
        .enumerate()
        .filter_map(|(at, series)| match best(series, floor) {
            Best::Reached { point, .. } => Some((at, repeats(point))),
            _ => None,
        })
        .collect();
    let mut ties = Ties::default();
    for (i, (at, a)) in reached.iter().enumerate() {
        if a.len() < 2 {
            ties.single.push(*at);
            continue;
        }
        for (other, b) in &reached[i + 1..] {
            if b.len() > 1 && stats::compare(a, b) == Verdict::NotDistinguishable {
                ties.overlapping.push((*at, *other));
            }
        }
    }
    ties
}

/// The throughputs of the repeats; empty where none were kept.
pub(crate) fn repeats(point: &Point) -> &[f64] {
    point.search.throughput_repeats.as_deref().unwrap_or(&[])
}
