//! One build of one engine on one data set: stood up once, searched at every point.

use crate::{
    LoopSpec, RunnerError,
    build::{BuildLimits, Built, build},
    clients::chain,
    event::Event,
    key::KeyBase,
    limited::{Limit, ask},
    load::{LoadSpec, Loaded, load},
    material::{Case, Material},
    memory::{self, MemoryWatch, ProcessWatch, before_load},
    provenance,
    resolve::{ResolvedBuild, ResolvedEngine},
    run::Run,
    serving::{Serving, Watched},
    stand_figures::{Recalls, cell_name, loaded_columns, push_flag},
    sweep,
};
use engine::{Engine, EngineError, ErrorKind, SearchSpec, TableSpec};
use record::{Flag, Phase, Point, Status};
use serde_json::json;
use std::{sync::Arc, time::Instant};

/// A cell of the sweep.
pub(crate) struct Cell<'m> {
    pub(crate) case: &'m Case,
    pub(crate) clients: usize,
    pub(crate) effort: Option<u64>,
    pub(crate) key: String,
}

fn version_of(serving: Option<&Serving>) -> String {
    serving.map_or_else(|| "unknown".to_owned(), |s| s.identity.version.clone())
}

/// See the module.
pub(crate) struct Stand<'r, 'a, 'm> {
    pub(crate) run: &'r mut Run<'a>,
    pub(crate) material: &'m Material,
    pub(crate) engine: &'m ResolvedEngine,
    pub(crate) build: &'m ResolvedBuild,
    serving: Option<&'m Serving>,
    base: KeyBase,
    rebuilt: bool,
}

impl<'r, 'a, 'm> Stand<'r, 'a, 'm> {
    pub(crate) fn new(
        run: &'r mut Run<'a>,
        material: &'m Material,
        engine: &'m ResolvedEngine,
        build: &'m ResolvedBuild,
        serving: Option<&'m Serving>,
    ) -> Self {
        let identity = serving.map(|s| s.identity.clone()).unwrap_or_default();
        let plan = &run.request.plan;
        let hashes = material.dataset.hashes();
        let base = KeyBase {
            measurement_version: record::MEASUREMENT_VERSION,
            base_hash: hashes.base.clone(),
            queries_hash: hashes.queries.clone(),
            columns_hash: hashes.columns.clone(),
            metric: material.metric.name(),
            definition: json!(engine.definition),
            address: engine.plan.at.as_deref().map(record::mask_address),
            engine_version: version_of(serving),
            server: serving.and_then(Serving::budget),
            settings: json!(identity.settings),
            machine: provenance::machine_of_key(),
            loaded_columns: loaded_columns(material, &plan.load).is_some(),
            index: json!(build.index),
            load: json!(plan.load),
            // The time limits are no part: a figure that was measured within one stands under another.
            limits: json!([plan.limits.errors, plan.limits.client_share, plan.limits.client_cpu]),
        };
        Stand { run, material, engine, build, serving, base, rebuilt: false }
    }

    fn load_key(&self) -> String {
        self.base.key("load", json!(null))
    }

    fn build_key(&self) -> String {
        self.base.key("build", json!(null))
    }

    fn cells(&self) -> Vec<Cell<'m>> {
        let plan = &self.run.request.plan;
        let mut cells = Vec::new();
        for case in &self.material.cases {
            for &clients in &plan.clients {
                for &effort in &self.build.efforts {
                    let more = json!({
                        "truth": case.truth_hash, "filter": case.text, "k": plan.k, "clients": clients,
                        "effort": effort, "repeats": plan.repeats, "warmup": plan.warmup,
                        "min_window": plan.min_window, "recall": plan.recall, "seed": plan.seed,
                    });
                    cells.push(Cell { case, clients, effort, key: self.base.key("sweep", more) });
                }
            }
        }
        cells
    }

    /// The keys of all points, in order.
    pub(crate) fn keys(&self) -> Vec<String> {
        let mut keys = vec![self.load_key(), self.build_key()];
        keys.extend(self.cells().into_iter().map(|c| c.key));
        keys
    }

    /// Measures every point that is not recorded yet. Gives whether the engine was touched.
    pub(crate) fn measure(&mut self) -> Result<bool, RunnerError> {
        let Some(serving) = self.serving else { return Ok(false) };
        let watched = serving.watched(&self.engine.definition);
        let name = provenance::engine_key(self.engine);
        let _series = memory::record_series(&self.run.dir, watched, &name)?;
        let engine = &serving.engine;
        let keys = self.keys();
        let missing = keys.iter().filter(|key| self.run.recorded(key).is_none()).count();
        if missing == 0 {
            keys.iter().for_each(|_| self.run.keep_point());
            return Ok(false);
        }
        self.rebuilt = missing < keys.len();
        match self.stand_up(engine)? {
            Some(error) => self.fail_all(&error)?,
            None => self.sweep(engine)?,
        }
        Ok(true)
    }

    /// Loads and builds. Gives the error that prevents the sweep, if any.
    fn stand_up(&mut self, engine: &Arc<dyn Engine>) -> Result<Option<EngineError>, RunnerError> {
        let watched = self.watched();
        let before = before_load();
        let memory = MemoryWatch::start(watched, before);
        let started = Instant::now();
        let loaded = self.load(engine);
        let mut point = self.blank(self.load_key(), Phase::Load);
        point.point_seconds = started.elapsed().as_secs_f64();
        point.load.load_memory_bytes = memory.stop().1;
        let loaded = match loaded {
            Ok(loaded) => {
                self.describe_load(&mut point, &loaded);
                loaded
            }
            Err(error) => return self.fail(point, error).map(Some),
        };
        let sent = self.material.dataset.base.rows() as u64;
        if loaded.counted != sent {
            let text = format!(
                "after the load the engine holds {} of {} rows; nothing is measured on it",
                loaded.counted, sent
            );
            point.status = Status::Invalid;
            (point.code, point.reason) = (Some("row_count".to_owned()), Some(text.clone()));
            self.run.finish_point(point)?;
            return Ok(Some(EngineError::new(ErrorKind::WrongAnswer, text)));
        }
        self.run.finish_point(point)?;

        let started = Instant::now();
        let memory = MemoryWatch::start(watched, before);
        let built = self.build(engine);
        let mut point = self.blank(self.build_key(), Phase::Build);
        point.point_seconds = started.elapsed().as_secs_f64();
        (point.built.memory_peak_bytes, point.built.memory_after_bytes) = memory.stop();
        match built {
            Ok(built) => {
                self.describe_build(&mut point, &loaded, &built);
                point.built.disk_bytes = self.serving.and_then(Serving::disk_bytes);
                let wrong = self.wrong_index(&built);
                if let Some(text) = &wrong {
                    point.status = Status::Invalid;
                    (point.code, point.reason) = (Some("index_mismatch".to_owned()), Some(text.clone()));
                }
                self.run.finish_point(point)?;
                Ok(wrong.map(|text| EngineError::new(ErrorKind::WrongAnswer, text)))
            }
            Err(error) => self.fail(point, error).map(Some),
        }
    }

    fn load(&mut self, engine: &Arc<dyn Engine>) -> Result<Loaded, EngineError> {
        let dataset = &self.material.dataset;
        let plan = &self.run.request.plan;
        let columns = loaded_columns(self.material, &plan.load);
        let table = TableSpec {
            name: provenance::table_name(&dataset.name),
            dim: dataset.base.dim(),
            element: dataset.base.element(),
            metric: self.material.metric,
            rows: dataset.base.rows(),
            columns: columns.iter().flat_map(|c| c.iter()).map(|c| (c.name.clone(), c.kind())).collect(),
            indexed_columns: plan.load.index_columns.clone(),
            load: plan.load.method,
            index: self.build.index.clone(),
        };
        let made = ask(engine, self.run.request.asking(), "making the table", move |e| e.create(&table));
        if let Err(error) = &made
            && error.kind() == ErrorKind::Refused
        {
            // A table of this name that is not ours, say: the engine could not be set up.
            self.run.set_up_failed(self.engine, &chain(error));
        }
        made?;
        let advice = ask(engine, self.run.request.asking(), "settings", |e| e.advice())?;
        self.run.advise(self.engine, advice);
        let spec = LoadSpec {
            vectors: dataset.base.clone(),
            columns: columns.map(|c| Arc::new(c.clone())),
            workers: plan.load.workers,
            batch: plan.load.batch_for(&self.engine.definition, dataset.base.rows()),
            limit: plan.limits.load,
            query_limit: plan.limits.query,
        };
        let what = format!("{}: load", self.title());
        self.with_step(&what, "rows", |run, watch| load(engine, &spec, &run.request.interrupted, watch))
    }

    fn build(&mut self, engine: &Arc<dyn Engine>) -> Result<Built, EngineError> {
        let limits = BuildLimits {
            build: self.run.request.plan.limits.build,
            ready: self.run.request.plan.limits.ready,
            query: self.run.request.plan.limits.query,
        };
        let index = &self.build.index;
        let what = format!("{}: build", self.title());
        // Engines count rows, blocks or stages; only their share means something.
        self.with_step(&what, "", |run, watch| build(engine, index, limits, &run.request.interrupted, watch))
    }

    fn with_step<T>(
        &self,
        what: &str,
        unit: &'static str,
        work: impl FnOnce(&Run<'a>, &mut dyn FnMut(u64, u64)) -> T,
    ) -> T {
        let events = self.run.events;
        events(&Event::Begin { what, unit });
        let result = work(self.run, &mut |done, total| events(&Event::Progress { done, total }));
        events(&Event::End);
        result
    }

    /// Measures the cells that are not recorded.
    fn sweep(&mut self, engine: &Arc<dyn Engine>) -> Result<(), RunnerError> {
        let mut recalls = Recalls::default();
        for cell in self.cells() {
            if let Some(kept) = self.run.recorded(&cell.key) {
                recalls.add(&cell, kept);
                self.run.keep_point();
                continue;
            }
            if self.run.interrupted() {
                return Err(RunnerError::Interrupted);
            }
            let started = Instant::now();
            let mut point = self.blank(cell.key.clone(), Phase::Sweep);
            self.describe_cell(&mut point, &cell);
            match self.cell(engine, &cell, &mut point) {
                Ok(()) => {}
                Err(RunnerError::Engine { source, .. }) => {
                    point.point_seconds = started.elapsed().as_secs_f64();
                    self.fail(point, source)?;
                    continue;
                }
                Err(other) => return Err(other),
            }
            point.point_seconds = started.elapsed().as_secs_f64();
            recalls.flag(&cell, &mut point);
            recalls.add(&cell, &point);
            self.run.finish_point(point)?;
        }
        Ok(())
    }

    fn cell(
        &mut self,
        engine: &Arc<dyn Engine>,
        cell: &Cell<'m>,
        point: &mut Point,
    ) -> Result<(), RunnerError> {
        let plan = &self.run.request.plan;
        let fault =
            |source: EngineError| RunnerError::Engine { engine: self.engine.definition.name.clone(), source };
        let limit = self.run.request.asking();
        let search = SearchSpec {
            queries: self.material.dataset.queries.clone(),
            k: plan.k,
            effort: cell.effort,
            filters: cell.case.filters.clone(),
        };
        // Encoding grows with the query set and its filters, so it may take as long as a point.
        let encoding = Limit { time: plan.limits.point, option: "--point-timeout", ..limit };
        let search =
            ask(engine, encoding, "preparing the queries", move |e| e.encode(search)).map_err(fault)?;
        let shown = search.clone();
        let query_plan =
            ask(engine, limit, "the query plan", move |e| e.explain(&shown, 0)).map_err(fault)?;
        if let Some(query_plan) = query_plan {
            point.search.uses_index = query_plan.uses_index;
            point.search.query_plan = Some(query_plan.text);
        }
        let spec = LoopSpec {
            clients: cell.clients,
            warmup: plan.warmup,
            repeats: plan.repeats,
            min_window: plan.min_window,
            query_limit: plan.limits.query,
            point_limit: plan.limits.point,
            most_ids: plan.k.min(self.material.dataset.base.rows()),
        };
        let ready = || ask(engine, limit, "readiness", |e| e.readiness()).map_err(fault);
        let before = ready()?;
        let what = format!("{}: {}", self.title(), cell_name(point, cell));
        let usage = ProcessWatch::start();
        let measured = self
            .with_step(&what, "queries", |run, watch| {
                crate::conductor::closed_loop(engine, &search, &spec, &run.request.interrupted, watch)
            })
            .map_err(fault)?;
        if let Some(lost) = sweep::lost(&measured) {
            return Err(fault(lost));
        }
        usage.stop(self.engine, self.run.request.plan.limits.client_cpu, point);
        let after = if measured.cut_short.is_none() { ready()? } else { before };
        let rows = self.material.dataset.base.rows() as u64;
        for readiness in [before, after] {
            if !readiness.ready || readiness.indexed.is_some_and(|indexed| indexed < rows) {
                push_flag(point, Flag::IndexIncomplete);
            }
        }
        let raw = sweep::describe(self, cell, &measured, point)?;
        record::write_raw(&self.run.dir.raw_path(&cell.key), &raw)?;
        Ok(())
    }

    fn describe_cell(&self, point: &mut Point, cell: &Cell<'m>) {
        point.effort_name.clone_from(&self.build.effort_name);
        point.effort = cell.effort;
        point.k = Some(self.run.request.plan.k as u64);
        point.clients = Some(cell.clients as u64);
        point.filter.clone_from(&cell.case.name);
        point.truth_hash.clone_from(&cell.case.truth_hash);
        if self.rebuilt {
            point.flags.push(Flag::Rebuilt);
        }
    }

    /// Records every point that is missing as failed for one reason.
    pub(crate) fn fail_all(&mut self, error: &EngineError) -> Result<(), RunnerError> {
        let reason = |phase: Phase| {
            let prefix = if phase == Phase::Sweep { "not measured: " } else { "" };
            format!("{prefix}{}", chain(error))
        };
        let mut points =
            vec![self.blank(self.load_key(), Phase::Load), self.blank(self.build_key(), Phase::Build)];
        for cell in self.cells() {
            let mut point = self.blank(cell.key.clone(), Phase::Sweep);
            self.describe_cell(&mut point, &cell);
            points.push(point);
        }
        for mut point in points {
            if self.run.recorded(&point.key).is_some() {
                continue;
            }
            point.status = Status::Failed;
            point.code = Some(error.kind().name().to_owned());
            point.reason = Some(reason(point.phase));
            self.run.finish_point(point)?;
        }
        Ok(())
    }

    /// Records a failed point; a stop is passed on instead. Gives the error back.
    fn fail(&mut self, mut point: Point, error: EngineError) -> Result<EngineError, RunnerError> {
        if error.kind() == ErrorKind::Stopped && self.run.interrupted() {
            return Err(RunnerError::Interrupted);
        }
        let error = match self.serving.and_then(Serving::obituary) {
            Some(text) => EngineError::new(error.kind(), format!("{}: {text}", chain(&error))),
            None => error,
        };
        point.status = Status::Failed;
        point.code = Some(error.kind().name().to_owned());
        point.reason = Some(chain(&error));
        if matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::Denied) {
            self.run.set_up_failed(self.engine, &chain(&error));
        }
        self.run.finish_point(point)?;
        Ok(error)
    }

    fn watched(&self) -> Watched {
        self.serving.map_or(Watched::Unseen, |s| s.watched(&self.engine.definition))
    }

    /// A point of this stand without figures.
    fn blank(&self, key: String, phase: Phase) -> Point {
        provenance::blank(key, phase, self.material, self.engine, self.build, &version_of(self.serving))
    }

    fn title(&self) -> String {
        format!("{} {}", self.engine.definition.name, self.build.label())
    }
}
