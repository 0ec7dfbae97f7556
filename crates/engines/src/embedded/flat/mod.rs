//! The exact scan as an engine: the control, which must reach recall 1.0 also under filters and
//! after deletes.
//!
//! The rows are views of the data set, scanned by crate `exact` with one thread a query. Deletes
//! and later inserts are exact too; a table changed since a point was encoded makes that point's
//! filtered searches prepare their row sets anew, in the timed call.

#[cfg(test)]
mod tests;

use super::{no_options, no_table, point::Point, table::Table};
use engine::{
    Batch, Control, Definition, EncodedSearch, Engine, EngineError, ErrorKind, Hits, Identity, IndexInfo,
    IndexSpec, QueryPlan, Readiness, SearchSpec, Session, Sizes, TableSpec,
};
use exact::{ExactError, Scratch, Searcher};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use types::{Element, Neighbour, RowSet};

/// Opens the exact scan.
///
/// # Errors
/// Where the definition has options.
pub fn open(definition: &Definition) -> Result<Box<dyn Engine>, EngineError> {
    no_options(definition)?;
    Ok(Box::new(Flat(Arc::new(Shared { definition: definition.clone(), state: RwLock::new(None) }))))
}

struct Shared {
    definition: Definition,
    state: RwLock<Option<State>>,
}

struct State {
    table: Table,
    /// What has been made searchable; rows inserted since are still in the table's segments.
    parts: Vec<Part>,
    /// Counts changes, so that a point knows whether its row sets still hold.
    version: u64,
}

/// Rows with consecutive keys.
struct Part {
    start: u64,
    searcher: Searcher,
    /// Rows that are not deleted; none where all are there.
    live: Option<RowSet>,
}

impl Part {
    fn rows(&self) -> usize {
        self.searcher.base().rows()
    }

    /// The row with key `key`, where it is here and not deleted.
    fn row_of(&self, key: u64) -> Option<usize> {
        let row = usize::try_from(key.checked_sub(self.start)?).ok().filter(|&row| row < self.rows())?;
        self.live.as_ref().is_none_or(|live| live.contains(row)).then_some(row)
    }

    /// The rows to search: those of `passing` (over keys) that are not deleted.
    fn restrict(&self, passing: &RowSet) -> RowSet {
        let start = self.start as usize; // a key below the bitmap's length
        RowSet::from_fn(self.rows(), |row| {
            passing.contains(start + row) && self.live.as_ref().is_none_or(|live| live.contains(row))
        })
    }
}

impl State {
    /// Makes rows searchable that were inserted since the last time.
    fn settle(&mut self) -> Result<(), EngineError> {
        for segment in self.table.take_segments() {
            let searcher = Searcher::new(segment.vectors, self.table.spec().metric).map_err(refused)?;
            // `delete` settles first, so none of these rows is deleted yet.
            self.parts.push(Part { start: segment.keys.start, searcher, live: None });
            self.version += 1;
        }
        Ok(())
    }

    fn delete(&mut self, keys: &[u64]) -> Result<(), EngineError> {
        self.settle()?;
        for key in self.table.delete(keys) {
            for part in &mut self.parts {
                if let Some(row) = part.row_of(key) {
                    let rows = part.rows();
                    part.live.get_or_insert_with(|| RowSet::all(rows)).set(row, false);
                }
            }
        }
        self.version += 1;
        Ok(())
    }
}

impl Shared {
    fn read(&self) -> RwLockReadGuard<'_, Option<State>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Option<State>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn missing() -> EngineError {
    no_table("flat")
}

fn refused(error: ExactError) -> EngineError {
    EngineError::caused(ErrorKind::Refused, format!("flat: {error}"), error)
}

struct Flat(Arc<Shared>);

/// A point with its row sets for each part, as the table was at `version`.
struct Encoded {
    point: Point,
    version: u64,
    sets: Vec<Vec<RowSet>>,
}

impl Engine for Flat {
    fn identity(&self) -> Result<Identity, EngineError> {
        Ok(Identity {
            version: env!("CARGO_PKG_VERSION").into(),
            source: "built in".into(),
            client: "none".into(),
            protocol: "function call in the same process; the timed call is one scan by one thread".into(),
            settings: Vec::new(),
        })
    }

    fn create(&self, table: &TableSpec) -> Result<(), EngineError> {
        self.0.definition.check_table(table)?;
        exact::check_metric(table.metric, table.element)
            .map_err(|e| EngineError::caused(ErrorKind::Unsupported, format!("flat: {e}"), e))?;
        *self.0.write() = Some(State { table: Table::new(table), parts: Vec::new(), version: 0 });
        Ok(())
    }

    fn connect(&self) -> Result<Box<dyn Session>, EngineError> {
        Ok(Box::new(FlatSession {
            shared: self.0.clone(),
            search: None,
            scratch: Scratch::default(),
            found: Vec::new(),
            merged: Vec::new(),
        }))
    }

    fn finish_load(&self) -> Result<(), EngineError> {
        self.0.write().as_mut().ok_or_else(missing)?.settle()
    }

    fn row_count(&self) -> Result<u64, EngineError> {
        Ok(self.0.read().as_ref().ok_or_else(missing)?.table.live().count() as u64)
    }

    fn build(&self, index: &IndexSpec, _control: &Control) -> Result<(), EngineError> {
        let mut state = self.0.write();
        let state = state.as_mut().ok_or_else(missing)?;
        if index.metric != state.table.spec().metric {
            let what =
                format!("flat: index for {} on a table for {}", index.metric, state.table.spec().metric);
            return Err(EngineError::new(ErrorKind::Refused, what));
        }
        state.settle()
    }

    fn readiness(&self) -> Result<Readiness, EngineError> {
        let indexed = self.row_count()?;
        Ok(Readiness { ready: true, indexed: Some(indexed) })
    }

    fn index_info(&self) -> Result<Option<IndexInfo>, EngineError> {
        let indexed = Some(self.row_count()?);
        Ok(Some(IndexInfo { kind: "flat".into(), indexed, ..IndexInfo::default() }))
    }

    fn sizes(&self) -> Result<Sizes, EngineError> {
        let table = self.0.read().as_ref().ok_or_else(missing)?.table.bytes();
        Ok(Sizes { index: Some(0), table: Some(table) })
    }

    fn encode(&self, search: SearchSpec) -> Result<Arc<EncodedSearch>, EngineError> {
        self.0.definition.check_search("flat", &search)?;
        let mut state = self.0.write();
        let state = state.as_mut().ok_or_else(missing)?;
        state.settle()?;
        let point = Point::new(&state.table, &search)?;
        let restrict = |set: &RowSet| state.parts.iter().map(|part| part.restrict(set)).collect();
        let sets = point.sets().iter().map(restrict).collect();
        let encoded = Encoded { point, version: state.version, sets };
        Ok(Arc::new(EncodedSearch { spec: search, payload: Box::new(encoded) }))
    }

    fn explain(&self, _search: &EncodedSearch, _query: usize) -> Result<Option<QueryPlan>, EngineError> {
        // The scan is this engine's index, so it is the one asked for.
        Ok(Some(QueryPlan {
            text: "exact scan of all rows that pass the filter".into(),
            uses_index: Some(true),
        }))
    }

    fn remove(&self) -> Result<(), EngineError> {
        *self.0.write() = None;
        Ok(())
    }
}

struct FlatSession {
    shared: Arc<Shared>,
    search: Option<Arc<EncodedSearch>>,
    scratch: Scratch,
    found: Vec<Neighbour>,
    merged: Vec<(f64, u64)>,
}

impl Session for FlatSession {
    fn insert(&mut self, batch: &Batch<'_>) -> Result<u64, EngineError> {
        let mut state = self.shared.write();
        let state = state.as_mut().ok_or_else(missing)?;
        state.table.insert(batch)?;
        state.version += 1;
        Ok(0)
    }

    fn delete(&mut self, keys: &[u64]) -> Result<(), EngineError> {
        self.shared.write().as_mut().ok_or_else(missing)?.delete(keys)
    }

    fn begin(&mut self, search: Arc<EncodedSearch>) -> Result<(), EngineError> {
        if !search.payload.is::<Encoded>() {
            return Err(EngineError::new(ErrorKind::Bug, "flat: a point that another engine encoded"));
        }
        self.found.reserve(search.spec.k);
        self.search = Some(search);
        Ok(())
    }

    fn search(&mut self, query: usize, hits: &mut Hits) -> Result<(), EngineError> {
        let FlatSession { shared, search, scratch, found, merged } = self;
        let Some(search) = search.as_deref() else {
            return Err(EngineError::new(ErrorKind::Bug, "flat: search before begin"));
        };
        let Some(encoded) = search.payload.downcast_ref::<Encoded>() else {
            return Err(EngineError::new(ErrorKind::Bug, "flat: a point that another engine encoded"));
        };
        hits.clear();
        let mut guard = shared.read();
        if guard.as_ref().is_some_and(|state| !state.table.segments().is_empty()) {
            drop(guard);
            shared.write().as_mut().ok_or_else(missing)?.settle()?;
            guard = shared.read();
        }
        let state = guard.as_ref().ok_or_else(missing)?;
        merged.clear();
        for (i, part) in state.parts.iter().enumerate() {
            let fresh;
            let rows = match encoded.point.set_of(query) {
                None => part.live.as_ref(),
                Some(set) if encoded.version == state.version => Some(&encoded.sets[set][i]),
                Some(set) => {
                    fresh = part.restrict(&encoded.point.sets()[set]);
                    Some(&fresh)
                }
            };
            let k = search.spec.k;
            let searched = if encoded.point.element() == Element::Bit {
                part.searcher.search_bits(encoded.point.raw(query), k, rows, scratch, found)
            } else {
                part.searcher.search(encoded.point.floats(query), k, rows, scratch, found)
            };
            searched.map_err(refused)?;
            merged.extend(found.iter().map(|n| (n.distance, part.start + u64::from(n.row))));
        }
        if state.parts.len() > 1 {
            merged.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        }
        merged.iter().take(search.spec.k).for_each(|&(_, key)| hits.push(key));
        Ok(())
    }
}
