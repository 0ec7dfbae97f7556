//! Candidates decided in float64, as few as prove the answer.
//!
//! Candidates that promise most are decided first. The k-th best decided key then rules out all whose
//! bound does not reach it; what is left is decided, in batches, until nothing is. A row is read once
//! for all cases of a query.

use crate::block::Norms;
use crate::distance::Probe;
use crate::screening::Screen;
use crate::shortlist::{Candidate, Shortlist};
use crate::tile::Setting;
use crate::topk::Scored;
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::Ordering;
use types::Element;

/// Keys of rows that are decided, for one query.
pub(crate) type Decided = HashMap<u32, f64, BuildHasherDefault<RowHasher>>;

/// Row numbers spread by a multiplication: nobody chooses them to collide.
#[derive(Default)]
pub(crate) struct RowHasher(u64);

impl Hasher for RowHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }
    fn write_u32(&mut self, row: u32) {
        self.0 = (self.0.rotate_left(32) ^ u64::from(row)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// Decides for one query.
pub(crate) struct Decider<'a> {
    pub(crate) setting: &'a Setting<'a>,
    pub(crate) norms: &'a Norms,
    pub(crate) probe: &'a Probe,
    pub(crate) screen: &'a Screen,
    pub(crate) lane: usize,
}

impl Decider<'_> {
    /// Brings all candidates that may have a key of at most `worst` and be among the k best to the decided
    /// rows; no candidate is left. Answers how many were decided.
    pub(crate) fn settle(
        &self,
        list: &mut Shortlist,
        worst: f64,
        mut decided: Option<&mut Decided>,
    ) -> usize {
        let mut count = 0;
        let mut decoded = Vec::new();
        let k = self.setting.k;
        let mut least = (k / 8).max(4);
        loop {
            let limit = self.screen.limit(self.setting, self.lane, self.probe, worst.min(list.best.worst()));
            list.pending.retain(|c| self.screen.reaches(c, limit, || self.norms.kept(c.row)));
            if list.pending.is_empty() {
                return count;
            }
            let mut batch = first(&mut list.pending, (k - list.best.len().min(k)).max(least));
            // Where promises say little, looking at what is left costs more than deciding it.
            least *= 2;
            count += batch.len();
            // In the order in which they lie in memory.
            batch.sort_unstable_by_key(|c| c.row);
            self.decide(&batch, &mut decoded, decided.as_deref_mut(), |scored| {
                list.best.offer(scored);
            });
        }
    }

    fn decide(
        &self,
        batch: &[Candidate],
        decoded: &mut Vec<f32>,
        mut decided: Option<&mut Decided>,
        mut offer: impl FnMut(Scored),
    ) {
        let base = self.setting.base;
        let in_place = base.element() == Element::F32;
        let mut count = 0;
        for (at, &Candidate { row, .. }) in batch.iter().enumerate() {
            if let Some(&key) = decided.as_deref().and_then(|decided| decided.get(&row)) {
                offer(Scored { key, row });
                continue;
            }
            if in_place
                && let Some(next) = batch.get(at + 1)
                && let Cow::Borrowed(next) = base.row(next.row as usize)
            {
                kernel::prefetch(next);
            }
            let key = if in_place {
                self.key(row, &base.row(row as usize))
            } else {
                decoded.resize(self.setting.dim, 0.0);
                base.row_into(row as usize, decoded);
                self.key(row, decoded)
            };
            count += 1;
            if let Some(decided) = decided.as_deref_mut() {
                decided.insert(row, key);
            }
            offer(Scored { key, row });
        }
        self.setting.decided.fetch_add(count, Ordering::Relaxed);
    }

    fn key(&self, row: u32, values: &[f32]) -> f64 {
        let Setting { metric, level, .. } = *self.setting;
        self.probe.key(metric, level, values, self.norms.of(level, row, values))
    }
}

/// Takes the `count` candidates that promise most.
fn first(pending: &mut Vec<Candidate>, count: usize) -> Vec<Candidate> {
    if pending.len() <= count {
        return std::mem::take(pending);
    }
    let by_promise = |a: &Candidate, b: &Candidate| a.high.total_cmp(&b.high).then(a.row.cmp(&b.row));
    pending.select_nth_unstable_by(count, by_promise);
    let rest = pending.split_off(count);
    std::mem::replace(pending, rest)
}
