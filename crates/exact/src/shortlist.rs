//! The rows of one query in one case that may be among its best.

use crate::topk::TopK;

/// A row that screening did not rule out and that float64 has not decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate {
    /// What is compared with a limit (`screening`): certain.
    pub(crate) at: f32,
    /// What the key is hardly above. Thresholds that rest on it are verified at the end.
    pub(crate) high: f32,
    /// Row number in the base.
    pub(crate) row: u32,
}

/// Decided rows and candidates.
#[derive(Debug, Default)]
pub(crate) struct Shortlist {
    /// The best of the decided rows.
    pub(crate) best: TopK,
    /// What is not decided, in no order.
    pub(crate) pending: Vec<Candidate>,
    /// Number of candidates at which the threshold is looked at.
    look: usize,
}

impl Shortlist {
    /// Of up to `k` decided rows.
    pub(crate) fn new(k: usize) -> Shortlist {
        Shortlist { best: TopK::new(k), pending: Vec::new(), look: 0 }
    }

    /// Takes a candidate. True where a look at the threshold pays.
    pub(crate) fn push(&mut self, candidate: Candidate) -> bool {
        self.pending.push(candidate);
        self.pending.len() >= self.look
    }

    /// Says when to look again: after a good part of `rank` further candidates.
    pub(crate) fn look_later(&mut self, rank: usize) {
        self.look = self.pending.len().max(rank) + (rank / 2).max(16);
    }

    /// Adds what another one holds.
    pub(crate) fn append(&mut self, other: Shortlist) {
        self.pending.extend(other.pending);
        other.best.into_iter().for_each(|scored| {
            self.best.offer(scored);
        });
    }
}

/// The `rank`-th lowest (from 1) of the keys that candidates are hardly above.
pub(crate) fn nth_high(lists: &[&Shortlist], rank: usize, work: &mut Vec<f32>) -> Option<f64> {
    work.clear();
    work.extend(lists.iter().flat_map(|list| list.pending.iter().map(|c| c.high)));
    if rank == 0 || work.len() < rank {
        return None;
    }
    let (_, nth, _) = work.select_nth_unstable_by(rank - 1, f32::total_cmp);
    Some(f64::from(*nth))
}
