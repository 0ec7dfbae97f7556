//! The k best of a stream: smallest key first, equal keys by the lower row.

use std::{cmp::Ordering, collections::BinaryHeap};

/// A row and its key (see `distance::key`). Ordered by key, then row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scored {
    /// Smaller is nearer.
    pub(crate) key: f64,
    /// Row number in the base.
    pub(crate) row: u32,
}

impl PartialEq for Scored {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Scored {}
impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.total_cmp(&other.key).then(self.row.cmp(&other.row))
    }
}

/// Keeps the `k` smallest of what it is given.
#[derive(Clone, Debug, Default)]
pub(crate) struct TopK {
    k: usize,
    heap: BinaryHeap<Scored>,
}

impl TopK {
    /// Keeps up to `k`.
    pub(crate) fn new(k: usize) -> TopK {
        TopK { k, heap: BinaryHeap::new() }
    }

    /// Empties it and sets `k`, keeping the memory.
    pub(crate) fn reset(&mut self, k: usize) {
        self.k = k;
        self.heap.clear();
    }

    /// Offers a row. True where it was taken. A key that is NaN never is.
    pub(crate) fn offer(&mut self, scored: Scored) -> bool {
        if scored.key.is_nan() || self.k == 0 {
            return false;
        }
        // -0.0 and 0.0 are one distance.
        let scored = Scored { key: scored.key + 0.0, ..scored };
        if self.heap.len() < self.k {
            self.heap.push(scored);
            return true;
        }
        match self.heap.peek_mut() {
            Some(mut worst) if scored < *worst => {
                *worst = scored;
                true
            }
            _ => false,
        }
    }

    /// The key that a new row must reach: infinite until `k` are held.
    pub(crate) fn worst(&self) -> f64 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() == self.k => worst.key,
            _ => f64::INFINITY,
        }
    }

    /// How many are held.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// What is held, best first; empties it.
    pub(crate) fn drain_sorted(&mut self, into: &mut Vec<Scored>) {
        into.clear();
        into.extend(self.heap.drain());
        into.sort_unstable();
    }
}

impl IntoIterator for TopK {
    type Item = Scored;
    type IntoIter = std::collections::binary_heap::IntoIter<Scored>;

    /// What is held, in no order.
    fn into_iter(self) -> Self::IntoIter {
        self.heap.into_iter()
    }
}
