//! The engine under test with what it is tested on, and the few calls that every check makes.

use super::{Data, Fault, Options, data::COLUMNS, failed};
use crate::{
    Batch, Capabilities, Definition, EffortDef, Engine, Hits, IndexSpec, SearchSpec, Session, TableSpec,
};
use std::ops::Range;
use types::{Element, Filters, Metric, Vectors};

/// k of the searches, where a check needs no other.
pub(super) const K: usize = 10;
/// Rows that serve as queries: every so many-th.
pub(super) const QUERY_STEP: usize = 20;

/// The engine under test.
pub(super) struct Subject<'a> {
    pub(super) engine: &'a dyn Engine,
    pub(super) options: &'a Options,
    pub(super) has: &'a Capabilities,
    pub(super) data: Data,
    pub(super) index: IndexSpec,
    pub(super) effort: Option<&'a EffortDef>,
}

impl<'a> Subject<'a> {
    /// # Errors
    /// A sentence where the options do not fit the definition.
    pub(super) fn new(
        engine: &'a dyn Engine,
        definition: &'a Definition,
        options: &'a Options,
    ) -> Result<Self, String> {
        let has = &definition.capabilities;
        let metric =
            options.metric.or(has.metrics.first().copied()).ok_or("the definition names no metric")?;
        let bits = metric == Metric::Hamming;
        let element = options.element.unwrap_or(if bits { Element::Bit } else { Element::F32 });
        let index = definition
            .index_spec(options.kind.as_deref(), metric, &options.params, options.threads)
            .map_err(|e| e.to_string())?;
        let effort = definition.index_def(Some(&index.kind)).map_err(|e| e.to_string())?.effort.as_ref();
        if options.rows < 200 || options.dim < 2 {
            return Err(format!(
                "{} rows of {} dimensions are too few; 200 x 2 at least",
                options.rows, options.dim
            ));
        }
        let data = Data::new(metric, element, options.rows, options.dim, options.seed)
            .ok_or("the suite's data could not be made")?;
        Ok(Subject { engine, options, has, data, index, effort })
    }

    pub(super) fn table(&self, rows: usize) -> TableSpec {
        TableSpec {
            name: self.options.table.clone(),
            dim: self.options.dim,
            element: self.data.vectors.element(),
            metric: self.data.metric,
            rows,
            columns: COLUMNS.iter().map(|(name, kind)| ((*name).into(), *kind)).collect(),
            indexed_columns: Vec::new(),
            load: self.options.load,
            index: self.index.clone(),
        }
    }

    /// Inserts rows of the suite's data under their keys.
    pub(super) fn insert(&self, session: &mut dyn Session, rows: Range<usize>) -> Result<(), Fault> {
        let vectors = self.data.vectors.slice(rows.clone());
        let columns = self.data.columns.slice(rows.clone());
        let keys = rows.start as u64..rows.end as u64;
        session.insert(&Batch { keys, vectors: &vectors, columns: Some(&columns) })?;
        Ok(())
    }

    /// Rows that serve as queries.
    pub(super) fn query_rows(&self) -> Vec<usize> {
        (0..self.data.len()).step_by(QUERY_STEP).collect()
    }

    /// The highest effort that a plan would use; none where there is no knob.
    pub(super) fn top_effort(&self) -> Option<u64> {
        self.effort.and_then(|effort| effort.ladder.iter().copied().max())
    }

    /// The lowest effort that a plan would use for [`K`] rows.
    pub(super) fn low_effort(&self) -> Option<u64> {
        self.effort.and_then(|effort| effort.ladder.iter().copied().filter(|&e| e >= K as u64).min())
    }

    pub(super) fn spec(&self, rows: &[usize], k: usize, effort: Option<u64>, filters: Filters) -> SearchSpec {
        SearchSpec { queries: self.data.vectors.select(rows.iter().copied()), k, effort, filters }
    }

    /// Asks with the rows named as queries, on a connection of its own.
    pub(super) fn ask(
        &self,
        rows: &[usize],
        k: usize,
        effort: Option<u64>,
        filters: Filters,
    ) -> Result<Vec<Vec<u64>>, Fault> {
        let search = self.engine.encode(self.spec(rows, k, effort, filters))?;
        let mut session = self.engine.connect()?;
        session.begin(search)?;
        let mut hits = Hits::with_capacity(k);
        let mut answers = Vec::with_capacity(rows.len());
        for query in 0..rows.len() {
            session.search(query, &mut hits)?;
            answers.push(hits.keys().to_vec());
        }
        Ok(answers)
    }

    /// [`Subject::ask`] without a filter, at the highest effort.
    pub(super) fn ask_all(&self, rows: &[usize], k: usize) -> Result<Vec<Vec<u64>>, Fault> {
        self.ask(rows, k, self.top_effort(), Filters::None)
    }

    /// Mean recall of answers over all rows.
    pub(super) fn recall(&self, rows: &[usize], k: usize, answers: &[Vec<u64>]) -> f64 {
        let all: Vec<u64> = (0..self.data.len() as u64).collect();
        let sum: f64 =
            rows.iter().zip(answers).map(|(&row, keys)| self.data.recall(row, k, &all, keys)).sum();
        sum / rows.len() as f64
    }

    /// The recall that this engine must reach at the highest effort.
    pub(super) fn least_recall(&self) -> f64 {
        if self.has.exact { 1.0 } else { self.options.least_recall }
    }

    /// Repeats `held` until it is true or the polls are used up.
    pub(super) fn wait_until(&self, mut held: impl FnMut() -> Result<bool, Fault>) -> Result<bool, Fault> {
        for poll in 0..self.options.polls.max(1) {
            if poll > 0 {
                std::thread::sleep(self.options.pause);
            }
            if held()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits until the engine counts so many rows.
    pub(super) fn expect_count(&self, rows: usize) -> Result<(), Fault> {
        let mut counted = 0;
        let reached = self.wait_until(|| {
            counted = self.engine.row_count()?;
            Ok(counted == rows as u64)
        })?;
        if reached { Ok(()) } else { failed(format!("{counted} of {rows} rows")) }
    }

    /// Makes a small table of other vectors and builds its index.
    pub(super) fn small_table(&self, vectors: &Vectors) -> Result<(), Fault> {
        let rows = vectors.rows();
        self.engine.create(&self.table(rows))?;
        let columns = self.data.columns.slice(0..rows);
        let mut session = self.engine.connect()?;
        session.insert(&Batch { keys: 0..rows as u64, vectors, columns: Some(&columns) })?;
        self.engine.finish_load()?;
        self.engine.build(&self.index, &crate::Control::default())?;
        let ready = self.wait_until(|| Ok(self.engine.readiness()?.ready))?;
        if ready { Ok(()) } else { failed("the index of a small table did not become ready") }
    }
}
