//! The two traits. An [`Engine`] is shared by all threads of a run; a [`Session`] is one
//! connection and belongs to one thread.

use crate::{
    Batch, Control, EncodedSearch, EngineError, Hits, Identity, IndexInfo, IndexSpec, QueryPlan, Readiness,
    SearchSpec, Sizes, TableSpec,
};
use std::sync::Arc;

/// One database, holding one table of ours.
pub trait Engine: Send + Sync {
    /// Who answers: version, source, client, settings.
    ///
    /// # Errors
    /// Where the engine can't be reached.
    fn identity(&self) -> Result<Identity, EngineError>;

    /// Makes the empty table, dropping what stands under its name.
    ///
    /// # Errors
    /// Where the engine refuses, or lacks what the table needs.
    fn create(&self, table: &TableSpec) -> Result<(), EngineError>;

    /// A new connection. Nothing of it is shared with another.
    ///
    /// # Errors
    /// Where the engine can't be reached.
    fn connect(&self) -> Result<Box<dyn Session>, EngineError>;

    /// Ends the load: what was accepted is in the table after this. Called once, after all
    /// sessions have inserted; part of the load's time.
    ///
    /// # Errors
    /// Where rows could not be made durable.
    fn finish_load(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Rows in the table, counted by the engine.
    ///
    /// # Errors
    /// Where it can't be asked.
    fn row_count(&self) -> Result<u64, EngineError>;

    /// Builds the index, or starts to. An engine that built it during the load does nothing.
    ///
    /// # Errors
    /// Where the build fails or is stopped through `control`.
    fn build(&self, index: &IndexSpec, control: &Control) -> Result<(), EngineError>;

    /// Whether the index is complete and searchable. Polled after [`Engine::build`].
    ///
    /// # Errors
    /// Where it can't be asked, or the build failed meanwhile.
    fn readiness(&self) -> Result<Readiness, EngineError>;

    /// The index as the engine sees it; none where there is none.
    ///
    /// # Errors
    /// Where it can't be asked.
    fn index_info(&self) -> Result<Option<IndexInfo>, EngineError>;

    /// Sizes of index and table.
    ///
    /// # Errors
    /// Where they can't be asked.
    fn sizes(&self) -> Result<Sizes, EngineError>;

    /// What is set too small for the table, a sentence each with both figures. Asked after
    /// [`Engine::create`].
    ///
    /// # Errors
    /// Where it can't be asked.
    fn advice(&self) -> Result<Vec<String>, EngineError> {
        Ok(Vec::new())
    }

    /// Prepares a point: everything that need not be done while the clock runs.
    ///
    /// # Errors
    /// Where the engine lacks a filter kind, or k or the effort is out of its range.
    fn encode(&self, search: SearchSpec) -> Result<Arc<EncodedSearch>, EngineError>;

    /// How query `query` of the point is run; none where the engine can't tell.
    ///
    /// # Errors
    /// Where it can't be asked.
    fn explain(&self, search: &EncodedSearch, query: usize) -> Result<Option<QueryPlan>, EngineError>;

    /// The engine's own maintenance after many deletes (VACUUM, rebuild, compaction).
    ///
    /// # Errors
    /// Where it fails or is stopped.
    fn maintain(&self, _control: &Control) -> Result<(), EngineError> {
        Ok(())
    }

    /// Removes the table and all that was made.
    ///
    /// # Errors
    /// Where the engine refuses.
    fn remove(&self) -> Result<(), EngineError>;
}

/// One connection of one client thread. The timed call is [`Session::search`].
pub trait Session: Send {
    /// Inserts rows. Returns how many times it had to try again (deadlocks, lock time-outs).
    ///
    /// # Errors
    /// Where not all rows were accepted.
    fn insert(&mut self, batch: &Batch<'_>) -> Result<u64, EngineError>;

    /// Deletes rows by key.
    ///
    /// # Errors
    /// Where the engine refuses or lacks deletes.
    fn delete(&mut self, keys: &[u64]) -> Result<(), EngineError>;

    /// Gets ready for the queries of a point: sets the effort, prepares statements. Not timed.
    ///
    /// # Errors
    /// Where the engine refuses.
    fn begin(&mut self, search: Arc<EncodedSearch>) -> Result<(), EngineError>;

    /// Asks query `query` of the point begun and puts the keys returned into `hits`, which it
    /// clears first. This is the timed call.
    ///
    /// # Errors
    /// Where there is no right answer.
    fn search(&mut self, query: usize, hits: &mut Hits) -> Result<(), EngineError>;
}
