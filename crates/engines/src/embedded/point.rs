//! A point made ready: decoded queries, and the rows that pass each filter.

use super::table::Table;
use engine::{EngineError, ErrorKind, SearchSpec};
use types::{Element, RowSet, Vectors};

/// The queries and filters of a point.
pub(super) struct Point {
    floats: Vec<f32>,
    raw: Vectors,
    /// The rows that pass each different filter, over the keys.
    sets: Vec<RowSet>,
    /// The filter of each query, as a place in `sets`; empty where no query has one.
    set_of: Vec<Option<usize>>,
}

impl Point {
    /// Decodes the queries and evaluates the filters on the rows as they are now: rows inserted
    /// later pass no filter of this point.
    ///
    /// # Errors
    /// Where the queries have another shape than the rows, or a filter does not fit the columns.
    pub(super) fn new(table: &Table, search: &SearchSpec) -> Result<Self, EngineError> {
        let refused = |what: String| Err(EngineError::new(ErrorKind::Refused, what));
        let (queries, spec) = (&search.queries, table.spec());
        if queries.dim() != spec.dim {
            return refused(format!("queries of {} dimensions for a table of {}", queries.dim(), spec.dim));
        }
        if (queries.element() == Element::Bit) != (spec.element == Element::Bit) {
            return refused(format!("queries of {} for a table of {}", queries.element(), spec.element));
        }
        let mut floats = Vec::new();
        if queries.element() != Element::Bit {
            floats.resize(queries.rows() * queries.dim(), 0.0);
            for (i, row) in floats.chunks_exact_mut(queries.dim()).enumerate() {
                queries.row_into(i, row);
            }
        }
        let (mut sets, mut set_of) = (Vec::new(), Vec::new());
        for (filter, queries) in search.filters.groups(queries.rows()) {
            let Some(filter) = filter else { continue };
            set_of.resize(search.queries.rows(), None);
            queries.iter().for_each(|&query| set_of[query] = Some(sets.len()));
            sets.push(table.passing(&filter)?);
        }
        Ok(Point { floats, raw: queries.clone(), sets, set_of })
    }

    /// Query `query` as numbers; empty where the queries are bits.
    pub(super) fn floats(&self, query: usize) -> &[f32] {
        if self.floats.is_empty() {
            return &[];
        }
        let dim = self.raw.dim();
        &self.floats[query * dim..(query + 1) * dim]
    }

    /// Query `query` as it was given.
    pub(super) fn raw(&self, query: usize) -> &[u8] {
        self.raw.row_bytes(query)
    }

    /// The type of [`Point::raw`].
    pub(super) fn element(&self) -> Element {
        self.raw.element()
    }

    /// Number of queries.
    pub(super) fn queries(&self) -> usize {
        self.raw.rows()
    }

    /// The place of the query's filter among [`Point::sets`].
    pub(super) fn set_of(&self, query: usize) -> Option<usize> {
        self.set_of.get(query).copied().flatten()
    }

    /// The rows that pass each different filter.
    pub(super) fn sets(&self) -> &[RowSet] {
        &self.sets
    }
}
