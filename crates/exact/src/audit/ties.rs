//! Which rule orders rows of equal distance, and chooses among them at the last rank.

use super::list::{List, Standing};
use serde::Serialize;
use std::cmp::{Ordering, Reverse};
use types::{Id, Ids, Metric, Neighbour};

/// A rule that explains every difference among ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TieRule {
    /// The higher row first.
    HigherRow,
    /// The lower id first, where ids are not row numbers.
    LowerId,
    /// The higher id first.
    HigherId,
    /// Distances rounded to float32, then the lower row first.
    Float32LowerRow,
    /// Distances rounded to float32, then the higher row first.
    Float32HigherRow,
    /// Rows at exactly the same distance, in no order.
    NoOrder,
    /// Distances computed in float32: rows stand in another order, or another one was chosen at
    /// the last rank, where they differ by less than float32 can tell.
    Float32,
}

impl TieRule {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            TieRule::HigherRow => "the higher row first",
            TieRule::LowerId => "the lower id first, not the lower row",
            TieRule::HigherId => "the higher id first",
            TieRule::Float32LowerRow => {
                "float32 rounding: distances equal in float32, then the lower row first"
            }
            TieRule::Float32HigherRow => {
                "float32 rounding: distances equal in float32, then the higher row first"
            }
            TieRule::NoOrder => "rows at exactly the same distance stand in no order",
            TieRule::Float32 => "float32 rounding: they differ by less than float32 can tell",
        }
    }
}

/// The first rule that gives every right list as it is; where none does, whether distances differ.
pub(crate) fn rule(metric: Metric, ids: Option<&Ids>, lists: &[List]) -> TieRule {
    let right = || lists.iter().filter(|l| matches!(l.standing, Standing::Identical | Standing::Tied));
    let holds = |order: &dyn Fn(&Neighbour, &Neighbour) -> Ordering| right().all(|l| gives(l, order));
    let by_distance = |a: &Neighbour, b: &Neighbour| a.distance.total_cmp(&b.distance);
    if holds(&|a, b| by_distance(a, b).then(b.row.cmp(&a.row))) {
        return TieRule::HigherRow;
    }
    if let Some(ids) = ids.filter(|ids| !matches!(ids, Ids::RowNumbers(_))) {
        let id = |n: &Neighbour| -> Id { ids.get(n.row as usize) };
        if holds(&|a, b| by_distance(a, b).then_with(|| id(a).cmp(&id(b)))) {
            return TieRule::LowerId;
        }
        if holds(&|a, b| by_distance(a, b).then_with(|| Reverse(id(a)).cmp(&Reverse(id(b))))) {
            return TieRule::HigherId;
        }
    }
    for rounded in roundings(metric) {
        let by_rounded = |a: &Neighbour, b: &Neighbour| rounded(a.distance).total_cmp(&rounded(b.distance));
        if holds(&|a, b| by_rounded(a, b).then(a.row.cmp(&b.row))) {
            return TieRule::Float32LowerRow;
        }
        if holds(&|a, b| by_rounded(a, b).then(b.row.cmp(&a.row))) {
            return TieRule::Float32HigherRow;
        }
    }
    if gap(lists) == 0.0 { TieRule::NoOrder } else { TieRule::Float32 }
}

/// What the tools of others round to float32, ascending with the distance.
fn roundings(metric: Metric) -> &'static [fn(f64) -> f32] {
    match metric {
        Metric::L2 => &[|d| d as f32, |d| (d * d) as f32],
        Metric::Cosine => &[|d| d as f32, |d| -((1.0 - d) as f32), |d| (2.0 * d).max(0.0).sqrt() as f32],
        Metric::InnerProduct | Metric::Hamming => &[|d| d as f32],
    }
}

/// Whether the exact neighbours in that order begin with the list.
fn gives(list: &List, order: &dyn Fn(&Neighbour, &Neighbour) -> Ordering) -> bool {
    let mut sorted = list.exact.clone();
    sorted.sort_by(order);
    if list.sees_end_of_ties() {
        return sorted.iter().map(|n| n.row).take(list.wanted).eq(list.named.iter().map(|n| n.row));
    }
    // The choice at the last rank cannot be judged; the order within the list can.
    let named = |(n, &distance): (&Neighbour, &f64)| Neighbour { row: n.row, distance };
    let named: Vec<Neighbour> = list.named.iter().zip(&list.distances).map(named).collect();
    named.windows(2).all(|pair| order(&pair[0], &pair[1]) != Ordering::Greater)
}

/// The largest difference of distance, rank by rank, among lists that tie.
pub(crate) fn gap(lists: &[List]) -> f64 {
    let of_list = |list: &List| {
        let pairs = list.distances.iter().zip(&list.exact);
        pairs.map(|(named, exact)| (named - exact.distance).abs()).fold(0.0, f64::max)
    };
    lists.iter().filter(|l| l.standing == Standing::Tied).map(of_list).fold(0.0, f64::max)
}
