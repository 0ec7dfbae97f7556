//! A guess of the k-th best key of each query from a sample of the rows, and what makes good a wrong one.
//!
//! The guess is what the m-th best of the sample is hardly above, where m is four standard deviations
//! above the share of the k best that the sample holds in the mean. Rows of the sample are not looked at
//! again: their candidates stay. A query whose k-th best row is above a threshold that was taken for it is
//! searched again, with thresholds that decided rows alone make.

use crate::ExactError;
use crate::method::Method;
use crate::scan::{Bounds, Found, Job, Scan};
use crate::shortlist::nth_high;
use crate::source::{Which, count};
use crate::tile::{Setting, Tile};
use crate::topk::Scored;
use crate::trial::TRIAL_FROM_QUERIES;
use std::ops::Range;
use types::Metric;

/// One row in so many is in the sample.
pub(crate) const SAMPLE: u64 = 32;
/// A guess lies so many standard deviations above the mean: one query in some 30,000 is guessed too low.
const DEVIATIONS: f64 = 4.0;
/// Rows, in multiples of k, from which a guess pays.
const GUESS_FROM: usize = 16;

impl Scan<'_> {
    /// From how many rows of the sample a threshold is taken in each case; none where no case is large
    /// enough. Cases that are not, or have a threshold for all queries, take k.
    pub(crate) fn ranks(&self, rows: &Range<usize>, known: &Bounds) -> Option<Vec<usize>> {
        if self.metric == Metric::Hamming {
            return None;
        }
        let share = self.k as f64 / SAMPLE as f64;
        let depth = (share + DEVIATIONS * share.sqrt() + 3.0).ceil() as usize;
        let worth = |case: usize| {
            count(self.cases[case], rows) >= GUESS_FROM * self.k && known[case].contains(&f64::INFINITY)
        };
        let rank = |case: usize| if worth(case) { depth } else { self.k };
        let ranks: Vec<usize> = (0..self.cases.len()).map(rank).collect();
        ranks.iter().any(|&rank| rank < self.k).then_some(ranks)
    }

    /// Makes the sample's `ranks`-th promises the thresholds of all parts.
    pub(crate) fn guess(
        &self,
        setting: &Setting<'_>,
        norms: &crate::block::Norms,
        tiles: &mut [Tile],
        ranks: &[usize],
    ) {
        let mut work = Vec::new();
        for lane in 0..tiles.first().map_or(0, Tile::queries) {
            for (case, &rank) in ranks.iter().enumerate() {
                let lists: Vec<_> = tiles.iter().map(|tile| tile.list(case, lane)).collect();
                let guess = if rank < self.k { nth_high(&lists, rank, &mut work) } else { None };
                if let Some(guess) = guess {
                    tiles.iter_mut().for_each(|tile| tile.tighten(setting, norms, case, lane, guess));
                }
            }
        }
        for tile in tiles {
            (0..ranks.len()).for_each(|case| tile.set_rank(case, self.k));
        }
    }

    /// Searches again where a threshold was too low: where `complete` is false, by case and query.
    pub(crate) fn again(
        &self,
        rows: &Range<usize>,
        known: &Bounds,
        earlier: &[Vec<&[Scored]>],
        complete: &[Vec<bool>],
        found: &mut Found,
    ) -> Result<(), ExactError> {
        let wrong = |query: &usize| complete.iter().any(|case| !case[*query]);
        let places: Vec<usize> = (0..self.asked.len()).filter(wrong).collect();
        if places.is_empty() {
            return Ok(());
        }
        // Minus infinity: what is right is not searched again.
        let bound =
            |case: usize, q: usize| if complete[case][q] { f64::NEG_INFINITY } else { known[case][q] };
        let bounds: Bounds =
            (0..self.cases.len()).map(|c| (0..self.asked.len()).map(|q| bound(c, q)).collect()).collect();
        // Few queries do not pay for rewriting all rows as integers.
        let few = places.len() < TRIAL_FROM_QUERIES;
        let scan = Scan { method: if few { Method::F32 } else { self.method }, ..*self };
        let job =
            Job { k: self.k, bounds: &bounds, earlier, trusting: false, which: Which::All, ranks: None };
        let mut better = scan.pass(&places, rows, &job)?.0;
        for (case, complete) in complete.iter().enumerate() {
            for (place, &query) in places.iter().enumerate() {
                if !complete[query] {
                    found.lists[case][query] = std::mem::take(&mut better.lists[case][place]);
                }
            }
        }
        Ok(())
    }
}
