//! The rows of an embedded engine: views of what was inserted, not copies.

use engine::{Batch, EngineError, ErrorKind, TableSpec};
use std::ops::Range;
use types::{Columns, Filter, RowSet, Vectors};

/// A table. Key = row number, so sets of rows are bitmaps over the keys.
pub(super) struct Table {
    spec: TableSpec,
    /// In order of insertion; where two hold a key, the later one counts.
    segments: Vec<Segment>,
    columns: Vec<(Range<u64>, Columns)>,
    live: RowSet,
}

/// Rows with consecutive keys.
#[derive(Clone)]
pub(super) struct Segment {
    pub(super) keys: Range<u64>,
    pub(super) vectors: Vectors,
}

impl Table {
    pub(super) fn new(spec: &TableSpec) -> Self {
        Table {
            spec: spec.clone(),
            segments: Vec::new(),
            columns: Vec::new(),
            live: RowSet::from_fn(spec.rows, |_| false),
        }
    }

    pub(super) fn spec(&self) -> &TableSpec {
        &self.spec
    }

    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Takes the segments out, joined; for an engine that keeps the rows in a form of its own.
    pub(super) fn take_segments(&mut self) -> Vec<Segment> {
        self.compact();
        std::mem::take(&mut self.segments)
    }

    /// Which segment holds each key; keys that are not in the table have none.
    pub(super) fn owners(&self) -> Vec<Option<u32>> {
        let mut owners = vec![None; self.live.rows()];
        for (segment, number) in self.segments.iter().zip(0_u32..) {
            for key in segment.keys.clone().map(|key| key as usize).filter(|&key| self.live.contains(key)) {
                owners[key] = Some(number);
            }
        }
        owners
    }

    /// Keys of the rows that are in the table.
    pub(super) fn live(&self) -> &RowSet {
        &self.live
    }

    /// Bytes of the vectors, which are shared with whoever inserted them.
    pub(super) fn bytes(&self) -> u64 {
        (self.live.count() * self.spec.element.row_bytes(self.spec.dim)) as u64
    }

    /// Adds rows.
    ///
    /// # Errors
    /// Where shape or type differ, or a key is in the table already; nothing is added then.
    pub(super) fn insert(&mut self, batch: &Batch<'_>) -> Result<(), EngineError> {
        let refused = |what: String| Err(EngineError::new(ErrorKind::Refused, what));
        let (keys, vectors) = (batch.keys.clone(), batch.vectors);
        if !self.spec.columns.is_empty() && batch.columns.is_none() {
            return refused("rows without their columns".into());
        }
        let (dim, element) = (self.spec.dim, self.spec.element);
        if (vectors.dim(), vectors.element()) != (dim, element) {
            let (found, is) = (vectors.dim(), vectors.element());
            return refused(format!("rows of {found} x {is} for a table of {dim} x {element}"));
        }
        let rows = keys.end.saturating_sub(keys.start);
        if rows != vectors.rows() as u64 || batch.columns.is_some_and(|c| c.rows() as u64 != rows) {
            return refused(format!("{rows} keys for {} vectors; columns must be as many", vectors.rows()));
        }
        let Ok(end) = usize::try_from(keys.end) else {
            return refused(format!("key {} is too large", keys.end));
        };
        let range = end - vectors.rows()..end;
        if let Some(key) = range.clone().find(|&key| self.live.contains(key)) {
            return refused(format!("key {key} is in the table already"));
        }
        self.reach(end);
        range.for_each(|key| self.live.set(key, true));
        if let Some(columns) = batch.columns {
            self.columns.push((keys.clone(), columns.clone()));
        }
        let joined = self.segments.last().filter(|last| last.keys.end == keys.start);
        match joined.and_then(|last| last.vectors.join(vectors)) {
            Some(joined) => {
                if let Some(last) = self.segments.last_mut() {
                    *last = Segment { keys: last.keys.start..keys.end, vectors: joined };
                }
            }
            None => self.segments.push(Segment { keys, vectors: vectors.clone() }),
        }
        Ok(())
    }

    /// Joins what parallel sessions inserted in turns, where keys do not repeat.
    pub(super) fn compact(&mut self) {
        let mut sorted = self.segments.clone();
        sorted.sort_by_key(|segment| segment.keys.start);
        if sorted.windows(2).any(|pair| pair[0].keys.end > pair[1].keys.start) {
            return;
        }
        self.segments.clear();
        for next in sorted {
            match self.segments.last_mut() {
                Some(last) if last.keys.end == next.keys.start => match last.vectors.join(&next.vectors) {
                    Some(joined) => *last = Segment { keys: last.keys.start..next.keys.end, vectors: joined },
                    None => self.segments.push(next),
                },
                _ => self.segments.push(next),
            }
        }
    }

    /// Deletes rows; keys that are not there are passed over. Returns those that were.
    pub(super) fn delete(&mut self, keys: &[u64]) -> Vec<u64> {
        let mut gone = Vec::with_capacity(keys.len());
        for &key in keys {
            if let Some(row) = usize::try_from(key).ok().filter(|&row| self.live.contains(row)) {
                self.live.set(row, false);
                gone.push(key);
            }
        }
        gone
    }

    /// The rows that pass `filter`, over the keys known now; deleted ones may be among them.
    pub(super) fn passing(&self, filter: &Filter) -> Result<RowSet, EngineError> {
        let mut set = RowSet::from_fn(self.live.rows(), |_| false);
        let refuse = |e: types::FilterError| EngineError::caused(ErrorKind::Refused, e.to_string(), e);
        if self.columns.is_empty() {
            filter.check(&Columns::default()).map_err(refuse)?;
        }
        for (keys, columns) in &self.columns {
            let passing = filter.rows(columns).map_err(refuse)?;
            for (row, key) in keys.clone().enumerate() {
                // Below the end that `insert` made room for, so it fits.
                set.set(key as usize, passing.contains(row));
            }
        }
        Ok(set)
    }

    /// Makes the bitmap long enough for keys below `end`.
    fn reach(&mut self, end: usize) {
        if end > self.live.rows() {
            let longer = end.max(self.live.rows() * 2);
            let old = &self.live;
            self.live = RowSet::from_fn(longer, |row| old.contains(row));
        }
    }
}
