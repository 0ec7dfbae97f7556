//! The exact answer to each query.

/// One true neighbour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// Row number in the base.
    pub row: u32,
    /// Distance as [`crate::Metric`] defines it; NaN where a file gives none.
    pub distance: f64,
}

/// True neighbours of each query, nearest first, ties by the lower row.
///
/// A query may have fewer than `depth`: where fewer rows qualify under its filter, or where the
/// distance is undefined (a zero query under cosine has none).
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    depth: usize,
    neighbours: Vec<Neighbour>,
    ends: Vec<usize>,
    matching: Vec<u64>,
}

impl Truth {
    /// An empty truth whose lists are up to `depth` long.
    pub fn new(depth: usize) -> Self {
        Truth { depth, neighbours: Vec::new(), ends: Vec::new(), matching: Vec::new() }
    }

    /// Adds the next query: its neighbours, and how many rows qualify for it (all rows, or those
    /// that pass its filter and have a distance).
    pub fn push(&mut self, neighbours: impl IntoIterator<Item = Neighbour>, matching: u64) {
        let depth = self.depth;
        self.neighbours.extend(neighbours.into_iter().take(depth));
        self.ends.push(self.neighbours.len());
        self.matching.push(matching);
    }

    /// The longest list that a query may have.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Number of queries.
    pub fn queries(&self) -> usize {
        self.ends.len()
    }

    /// The neighbours of query `query`, nearest first.
    pub fn of(&self, query: usize) -> &[Neighbour] {
        let start = if query == 0 { 0 } else { self.ends[query - 1] };
        &self.neighbours[start..self.ends[query]]
    }

    /// How many rows qualify for query `query`.
    pub fn matching(&self, query: usize) -> u64 {
        self.matching[query]
    }

    /// How many of the first `k` a right answer to `query` holds: `min(k, rows that qualify)`.
    pub fn wanted(&self, query: usize, k: usize) -> usize {
        usize::try_from(self.matching(query)).unwrap_or(usize::MAX).min(k)
    }
}
