//! The index itself: built by several threads, searched, changed.

use super::convert::{Form, Handed, Queries};
use crate::embedded::table::Table;
use engine::{Batch, Control, EngineError, ErrorKind, Hits, IndexInfo, IndexSpec, Param, Params};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use types::RowSet;
use usearch::{Index, IndexOptions, ScalarKind, b1x8};

/// Rows that a build thread takes at a time.
const BLOCK: usize = 64;

/// What a session without an effort gets: the library's own default.
const DEFAULT_EFFORT: u64 = 64;

/// A built index.
pub(super) struct Graph {
    index: Index,
    spec: IndexSpec,
    form: Form,
    effort: u64,
    /// Threads that may be in the library at once.
    threads: usize,
    /// Rows for which there is room.
    room: usize,
}

impl Graph {
    /// Builds the index over the rows of `table` with `spec.threads` threads, and makes room for
    /// `sessions` searches at once.
    pub(super) fn build(
        table: &Table,
        spec: &IndexSpec,
        sessions: usize,
        control: &Control,
    ) -> Result<Self, EngineError> {
        let form = Form::new(table.spec().element, spec)?;
        let options = IndexOptions {
            dimensions: table.spec().dim,
            metric: form.metric,
            quantization: form.scalar,
            connectivity: number(spec, "m", 16)?,
            expansion_add: number(spec, "ef_construction", 128)?,
            expansion_search: DEFAULT_EFFORT as usize,
            multi: false,
        };
        let index = Index::new(&options).map_err(|e| failed("new index", e))?;
        let room = table.live().count().max(1);
        let threads = spec.threads.max(1);
        let most = threads.max(sessions);
        index.reserve_capacity_and_threads(room, most).map_err(|e| failed("reserve", e))?;
        let graph = Graph { index, spec: spec.clone(), form, effort: DEFAULT_EFFORT, threads: most, room };
        graph.add_all(table, threads, control)?;
        Ok(graph)
    }

    fn add_all(&self, table: &Table, threads: usize, control: &Control) -> Result<(), EngineError> {
        let owners = table.owners();
        let total = table.live().count() as u64;
        control.progress(0, total);
        let (next, done, failing) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        let work = || -> Result<(), EngineError> {
            let (mut floats, mut bytes) = (Vec::new(), Vec::new());
            loop {
                let start = next.fetch_add(BLOCK, Ordering::Relaxed);
                if start >= owners.len() || failing.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let mut added = 0;
                for (key, owner) in owners.iter().enumerate().skip(start).take(BLOCK) {
                    let Some(segment) = owner.map(|owner| &table.segments()[owner as usize]) else {
                        continue;
                    };
                    // For each row: one of many dimensions under a high effort takes milliseconds.
                    if control.stopped() {
                        return Err(EngineError::new(ErrorKind::Stopped, "usearch: build stopped"));
                    }
                    // Owned by the segment, so not before its start.
                    let row = key - segment.keys.start as usize;
                    self.add(key as u64, &self.form.row(&segment.vectors, row, &mut floats, &mut bytes))?;
                    added += 1;
                }
                let done = done.fetch_add(added, Ordering::Relaxed) + added;
                control.progress(done as u64, total);
            }
        };
        let guarded = || work().inspect_err(|_| failing.store(true, Ordering::Relaxed));
        std::thread::scope(|scope| {
            let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(guarded)).collect();
            let mut result = guarded();
            for helper in helpers {
                let joined = helper.join();
                let panicked = |_| EngineError::new(ErrorKind::Bug, "usearch: a build thread panicked");
                result = result.and(joined.map_err(panicked).and_then(|result| result));
            }
            result
        })
    }

    fn add(&self, key: u64, vector: &Handed<'_>) -> Result<(), EngineError> {
        let added = match vector {
            Handed::Floats(values) => self.index.add(key, values),
            Handed::Bytes(values) => self.index.add(key, values),
            Handed::Bits(bytes) => self.index.add(key, b1x8::from_u8s(bytes)),
        };
        added.map_err(|e| failed(&format!("row {key}"), e))
    }

    /// Adds rows to the built index. No search may run.
    pub(super) fn insert(&mut self, batch: &Batch<'_>) -> Result<(), EngineError> {
        let wanted = self.index.size() + batch.vectors.rows();
        if wanted > self.room {
            self.room = wanted.max(self.room * 2);
            self.index
                .reserve_capacity_and_threads(self.room, self.threads)
                .map_err(|e| failed("reserve", e))?;
        }
        let (mut floats, mut bytes) = (Vec::new(), Vec::new());
        for (row, key) in batch.keys.clone().enumerate() {
            self.add(key, &self.form.row(batch.vectors, row, &mut floats, &mut bytes))?;
        }
        Ok(())
    }

    /// Deletes rows. No search may run.
    pub(super) fn delete(&mut self, keys: &[u64]) -> Result<(), EngineError> {
        for &key in keys {
            self.index.remove(key).map_err(|e| failed(&format!("delete row {key}"), e))?;
        }
        Ok(())
    }

    /// Lets so many searches run at once. No search may run now.
    pub(super) fn allow_threads(&mut self, threads: usize) -> Result<(), EngineError> {
        if threads > self.threads {
            self.index.reserve_capacity_and_threads(self.room, threads).map_err(|e| failed("reserve", e))?;
            self.threads = threads;
        }
        Ok(())
    }

    /// Whether searches run under `effort` now.
    pub(super) fn has_effort(&self, effort: Option<u64>) -> bool {
        self.effort == effort.unwrap_or(DEFAULT_EFFORT)
    }

    /// Sets the effort of the searches that follow. No search may run.
    pub(super) fn set_effort(&mut self, effort: Option<u64>) {
        self.effort = effort.unwrap_or(DEFAULT_EFFORT);
        self.index.change_expansion_search(usize::try_from(self.effort).unwrap_or(usize::MAX));
    }

    /// Searches under the effort set.
    pub(super) fn search(
        &self,
        queries: &Queries,
        query: usize,
        k: usize,
        filter: Option<&RowSet>,
        hits: &mut Hits,
    ) -> Result<(), EngineError> {
        // A key is below the number of rows, so it is a usize.
        let passes = |key: u64| filter.is_none_or(|rows| rows.contains(key as usize));
        let found = match (queries.get(query), filter) {
            (Handed::Floats(vector), None) => self.index.search(vector, k),
            (Handed::Floats(vector), Some(_)) => self.index.filtered_search(vector, k, passes),
            (Handed::Bytes(vector), None) => self.index.search(vector, k),
            (Handed::Bytes(vector), Some(_)) => self.index.filtered_search(vector, k, passes),
            (Handed::Bits(bytes), None) => self.index.search(b1x8::from_u8s(bytes), k),
            (Handed::Bits(bytes), Some(_)) => self.index.filtered_search(b1x8::from_u8s(bytes), k, passes),
        };
        hits.extend_from_slice(&found.map_err(|e| failed("search", e))?.keys);
        Ok(())
    }

    pub(super) fn spec(&self) -> &IndexSpec {
        &self.spec
    }

    pub(super) fn form(&self) -> Form {
        self.form
    }

    pub(super) fn rows(&self) -> u64 {
        self.index.size() as u64
    }

    /// Bytes of the index written out: graph and its copy of the vectors.
    pub(super) fn bytes(&self) -> u64 {
        self.index.serialized_length() as u64
    }

    /// The instruction set of the distance function in use.
    pub(super) fn instruction_set(&self) -> String {
        self.index.hardware_acceleration()
    }

    /// What the library says of the index.
    pub(super) fn info(&self) -> IndexInfo {
        let quantization = match self.index.scalar_kind() {
            ScalarKind::F32 => "f32",
            ScalarKind::F16 => "f16",
            ScalarKind::BF16 => "bf16",
            ScalarKind::I8 => "i8",
            ScalarKind::B1 => "b1",
            _ => "unknown",
        };
        let whole = |value: usize| Param::Int(i64::try_from(value).unwrap_or(i64::MAX));
        let params = Params::from([
            ("m".into(), whole(self.index.connectivity())),
            ("ef_construction".into(), whole(self.index.expansion_add())),
            ("quantization".into(), Param::Text(quantization.into())),
        ]);
        IndexInfo { kind: "hnsw".into(), params, indexed: Some(self.rows()), remarks: Vec::new() }
    }
}

fn number(spec: &IndexSpec, name: &str, default: usize) -> Result<usize, EngineError> {
    match spec.params.get(name) {
        None => Ok(default),
        Some(Param::Int(value)) if *value > 0 => Ok(usize::try_from(*value).unwrap_or(usize::MAX)),
        Some(other) => Err(EngineError::new(
            ErrorKind::Unsupported,
            format!("usearch: {name} = {other} is no count above 0"),
        )),
    }
}

/// The library's exceptions carry a text and no code.
fn failed(what: &str, error: impl std::fmt::Display) -> EngineError {
    let text = error.to_string();
    let kind = if text.contains("memory") { ErrorKind::Overloaded } else { ErrorKind::Refused };
    EngineError::new(kind, format!("usearch: {what}: {text}"))
}
