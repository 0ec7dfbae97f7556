//! Truth from tables of ids: what every format's truth has in common.
//!
//! What is here: checks that need no distance (shape, coverage, ids that do not exist) and the
//! turn from ids to row numbers. What is not: whether the neighbours are right (crate `exact`).

use crate::DatasetError;
use std::path::Path;
use types::{Neighbour, Truth};

/// What the table is checked against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Against {
    /// Rows of the base.
    pub(crate) base_rows: usize,
    /// Number of queries.
    pub(crate) queries: usize,
}

/// A table of row numbers, one line a query, with distances where the file has them.
pub(crate) struct Table<'a, I, D>
where
    I: Fn(usize) -> Result<i64, DatasetError>,
    D: Fn(usize) -> f64,
{
    /// The file, for messages.
    pub(crate) path: &'a Path,
    /// Lines.
    pub(crate) queries: usize,
    /// Entries of a line.
    pub(crate) width: usize,
    /// Entry i of the whole table, line after line. -1 says that there is no further neighbour.
    pub(crate) id: I,
    /// The distance of entry i.
    pub(crate) distance: D,
}

impl<I, D> Table<'_, I, D>
where
    I: Fn(usize) -> Result<i64, DatasetError>,
    D: Fn(usize) -> f64,
{
    /// The truth over all rows.
    pub(crate) fn truth(&self, against: Against) -> Result<Truth, DatasetError> {
        let Against { base_rows, queries } = against;
        if self.queries != queries || self.width == 0 {
            return Err(coverage(self.path, self.queries, self.width, queries));
        }
        let mut truth = Truth::new(self.width);
        let (mut largest, mut outside) = (None, 0_u64);
        for query in 0..queries {
            let mut line = Vec::with_capacity(self.width);
            for entry in query * self.width..(query + 1) * self.width {
                let id = (self.id)(entry)?;
                if id == -1 {
                    continue;
                }
                match usize::try_from(id).ok().filter(|&row| row < base_rows).map(u32::try_from) {
                    Some(Ok(row)) => line.push(Neighbour { row, distance: (self.distance)(entry) }),
                    _ if id < 0 => {
                        let reason = format!(
                            "truth of query {query} names row {id}; only -1 (no neighbour) may be negative"
                        );
                        return Err(DatasetError::invalid(self.path, reason));
                    }
                    _ => {
                        outside += 1;
                        largest = largest.max(Some(id));
                    }
                }
            }
            truth.push(line, base_rows as u64);
        }
        match largest {
            None => Ok(truth),
            Some(largest) => Err(DatasetError::invalid(
                self.path,
                format!(
                    "the truth names rows up to {largest} ({outside} entries), the base has {base_rows} \
                     rows: it was made for other data; remake it with `annvil truth`"
                ),
            )),
        }
    }
}

/// The refusal of a truth that is not there for every query.
pub(crate) fn coverage(path: &Path, found: usize, width: usize, queries: usize) -> DatasetError {
    let reason = if width == 0 && found == queries {
        "the truth has no neighbour for any query (width 0); remake it with `annvil truth`".to_owned()
    } else {
        format!(
            "the truth covers {found} of {queries} queries; it must have one line for each, \
             remake it with `annvil truth`"
        )
    };
    DatasetError::invalid(path, reason)
}
