//! The usearch library's HNSW index as an engine.
//!
//! The table is a view of the data set (see `table`); the index holds its own copy of the vectors
//! in the quantization asked for. Index size is the length of the index as usearch would write it:
//! graph and vectors, without what is only reserved.
//!
//! Locks. usearch reads its graph without locks during a search, so a search must not run beside
//! an insert or delete; and the effort (`expansion_search`) is a field of the index, not of a call.
//! Both are solved by one `RwLock`: searches hold it for reading and see the effort they began
//! with; where it is another one (sessions of different efforts at the same time), a search takes
//! the lock for writing and changes it first. Sessions of one effort, which is how points are
//! measured, only ever read.

mod convert;
mod index;
#[cfg(test)]
mod tests;

use super::{no_options, no_table, point::Point, table::Table};
use convert::Form;
use engine::{
    Batch, Control, Definition, EncodedSearch, Engine, EngineError, ErrorKind, Hits, Identity, IndexInfo,
    IndexSpec, QueryPlan, Readiness, SearchSpec, Session, Setting, Sizes, TableSpec,
};
use index::Graph;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Opens the usearch engine.
///
/// # Errors
/// Where the definition has options.
pub fn open(definition: &Definition) -> Result<Box<dyn Engine>, EngineError> {
    no_options(definition)?;
    let shared = Shared {
        definition: definition.clone(),
        state: RwLock::new(None),
        writer: Mutex::new(()),
        sessions: AtomicUsize::new(0),
    };
    Ok(Box::new(Usearch(Arc::new(shared))))
}

struct Shared {
    definition: Definition,
    state: RwLock<Option<State>>,
    /// Held by everything that changes rows or index, so that a build misses no insert.
    writer: Mutex<()>,
    /// Connections that are open: as many searches may run at once.
    sessions: AtomicUsize,
}

struct State {
    table: Table,
    graph: Option<Graph>,
}

impl Shared {
    fn read(&self) -> RwLockReadGuard<'_, Option<State>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Option<State>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn build(&self, spec: &IndexSpec, control: &Control) -> Result<(), EngineError> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let graph = {
            // Others may read meanwhile; nobody can write.
            let state = self.read();
            let table = &state.as_ref().ok_or_else(missing)?.table;
            Graph::build(table, spec, self.sessions.load(Ordering::Relaxed), control)?
        };
        self.write().as_mut().ok_or_else(missing)?.graph = Some(graph);
        Ok(())
    }
}

fn missing() -> EngineError {
    no_table("usearch")
}

fn no_index() -> EngineError {
    EngineError::new(ErrorKind::Refused, "usearch: there is no index; build it first")
}

struct Usearch(Arc<Shared>);

impl Engine for Usearch {
    fn identity(&self) -> Result<Identity, EngineError> {
        let setting = |name: &str, value: String| Setting { name: name.into(), value, default: None };
        Ok(Identity {
            version: usearch::version().into(),
            source: format!("crate usearch {}", usearch::version()),
            client: format!("crate usearch {}", usearch::version()),
            protocol: "function call in the same process; the timed call includes the conversion of an f32 \
                       query to the index's quantization"
                .into(),
            settings: vec![
                setting("instruction_sets_compiled", usearch::hardware_acceleration_compiled()),
                setting("instruction_sets_available", usearch::hardware_acceleration_available()),
            ],
        })
    }

    fn create(&self, table: &TableSpec) -> Result<(), EngineError> {
        self.0.definition.check_table(table)?;
        Form::new(table.element, &table.index)?;
        *self.0.write() = Some(State { table: Table::new(table), graph: None });
        Ok(())
    }

    fn connect(&self) -> Result<Box<dyn Session>, EngineError> {
        let sessions = self.0.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        // Counts itself out again when it is dropped, also on an error here.
        let session = UsearchSession { shared: self.0.clone(), search: None };
        if let Some(State { graph: Some(graph), .. }) = self.0.write().as_mut() {
            graph.allow_threads(sessions)?;
        }
        Ok(Box::new(session))
    }

    fn finish_load(&self) -> Result<(), EngineError> {
        self.0.write().as_mut().ok_or_else(missing)?.table.compact();
        Ok(())
    }

    fn row_count(&self) -> Result<u64, EngineError> {
        Ok(self.0.read().as_ref().ok_or_else(missing)?.table.live().count() as u64)
    }

    fn build(&self, index: &IndexSpec, control: &Control) -> Result<(), EngineError> {
        self.0.build(index, control)
    }

    fn readiness(&self) -> Result<Readiness, EngineError> {
        let state = self.0.read();
        let state = state.as_ref().ok_or_else(missing)?;
        let indexed = state.graph.as_ref().map_or(0, Graph::rows);
        let ready = state.graph.is_some() && indexed == state.table.live().count() as u64;
        Ok(Readiness { ready, indexed: Some(indexed) })
    }

    fn index_info(&self) -> Result<Option<IndexInfo>, EngineError> {
        Ok(self.0.read().as_ref().ok_or_else(missing)?.graph.as_ref().map(Graph::info))
    }

    fn sizes(&self) -> Result<Sizes, EngineError> {
        let state = self.0.read();
        let state = state.as_ref().ok_or_else(missing)?;
        Ok(Sizes { index: state.graph.as_ref().map(Graph::bytes), table: Some(state.table.bytes()) })
    }

    fn encode(&self, search: SearchSpec) -> Result<Arc<EncodedSearch>, EngineError> {
        let state = self.0.read();
        let state = state.as_ref().ok_or_else(missing)?;
        let graph = state.graph.as_ref().ok_or_else(no_index)?;
        self.0.definition.check_search(&graph.spec().kind, &search)?;
        let point = Point::new(&state.table, &search)?;
        let encoded = Encoded { queries: graph.form().queries(&point)?, point };
        Ok(Arc::new(EncodedSearch { spec: search, payload: Box::new(encoded) }))
    }

    fn explain(&self, search: &EncodedSearch, query: usize) -> Result<Option<QueryPlan>, EngineError> {
        let state = self.0.read();
        let Some(graph) = &state.as_ref().ok_or_else(missing)?.graph else { return Ok(None) };
        let effort = search.spec.effort.map_or_else(|| "default".into(), |effort| effort.to_string());
        let filter = search.spec.filters.of(query);
        let filter = filter.map_or_else(String::new, |f| format!(", rows tested while walking: {f}"));
        let text = format!("usearch HNSW walk with {}, expansion {effort}{filter}", graph.instruction_set());
        // The library has no other way to search; its exact search is another call.
        Ok(Some(QueryPlan { text, uses_index: Some(true) }))
    }

    fn maintain(&self, control: &Control) -> Result<(), EngineError> {
        // The library reuses the places of deleted rows but keeps the graph's edges to them; a new
        // build is its only full repair.
        let spec = {
            let state = self.0.read();
            let state = state.as_ref().ok_or_else(missing)?;
            state.graph.as_ref().ok_or_else(no_index)?.spec().clone()
        };
        self.0.build(&spec, control)
    }

    fn remove(&self) -> Result<(), EngineError> {
        *self.0.write() = None;
        Ok(())
    }
}

/// A point with its queries in the form in which the index takes them.
struct Encoded {
    point: Point,
    queries: convert::Queries,
}

struct UsearchSession {
    shared: Arc<Shared>,
    search: Option<Arc<EncodedSearch>>,
}

impl Drop for UsearchSession {
    fn drop(&mut self) {
        self.shared.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Session for UsearchSession {
    fn insert(&mut self, batch: &Batch<'_>) -> Result<u64, EngineError> {
        let _writer = self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.shared.write();
        let State { table, graph } = state.as_mut().ok_or_else(missing)?;
        table.insert(batch)?;
        if let Some(graph) = graph {
            graph.insert(batch)?;
        }
        Ok(0)
    }

    fn delete(&mut self, keys: &[u64]) -> Result<(), EngineError> {
        let _writer = self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.shared.write();
        let State { table, graph } = state.as_mut().ok_or_else(missing)?;
        let gone = table.delete(keys);
        if let Some(graph) = graph {
            graph.delete(&gone)?;
        }
        Ok(())
    }

    fn begin(&mut self, search: Arc<EncodedSearch>) -> Result<(), EngineError> {
        if !search.payload.is::<Encoded>() {
            return Err(EngineError::new(ErrorKind::Bug, "usearch: a point that another engine encoded"));
        }
        let effort = search.spec.effort;
        self.search = Some(search);
        if let Some(State { graph: Some(graph), .. }) = self.shared.write().as_mut() {
            graph.set_effort(effort);
        }
        Ok(())
    }

    fn search(&mut self, query: usize, hits: &mut Hits) -> Result<(), EngineError> {
        let Some(search) = self.search.as_deref() else {
            return Err(EngineError::new(ErrorKind::Bug, "usearch: search before begin"));
        };
        let Some(encoded) = search.payload.downcast_ref::<Encoded>() else {
            return Err(EngineError::new(ErrorKind::Bug, "usearch: a point that another engine encoded"));
        };
        hits.clear();
        let filter = encoded.point.set_of(query).map(|set| &encoded.point.sets()[set]);
        loop {
            {
                let state = self.shared.read();
                let graph = state.as_ref().ok_or_else(missing)?.graph.as_ref().ok_or_else(no_index)?;
                if graph.has_effort(search.spec.effort) {
                    return graph.search(&encoded.queries, query, search.spec.k, filter, hits);
                }
            }
            let mut state = self.shared.write();
            let graph = state.as_mut().ok_or_else(missing)?.graph.as_mut().ok_or_else(no_index)?;
            graph.set_effort(search.spec.effort);
        }
    }
}
