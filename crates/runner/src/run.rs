//! One execution of a plan, into one run directory.
//!
//! Order: everything is checked before anything is touched (plan, definitions, data sets, truth,
//! parameters, the run directory); then engine by engine, one at a time, build by build, point by
//! point. Each finished point is appended and synced at once. A failure belongs to the points it
//! prevents; the next engine is measured all the same.

use crate::{
    Event, Events, Plan, RunnerError,
    limited::{Limit, ask},
    material::{Material, Preparation, prepare},
    provenance, resolve,
    resolve::ResolvedEngine,
    serving::{self, Serving},
    stand::Stand,
    verdict,
};
use engine::EngineError;
use record::{Finding, Manifest, Point, RunDir, RunSession, Status, Verdict};
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
};

/// What to do with a run directory that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Refuse.
    New,
    /// Remove it first.
    Replace,
    /// Go on: points with the same key are kept.
    Resume,
}

/// A run to make.
pub struct RunRequest {
    /// What to run.
    pub plan: Plan,
    /// Where to write.
    pub out: PathBuf,
    /// What to do where it is there already.
    pub mode: Mode,
    /// Use a data set although its checks fail; the run is then not valid.
    pub force: bool,
    /// Where computed truth and flat copies are kept.
    pub cache_dir: Option<PathBuf>,
    /// The command line, credentials masked.
    pub command: Vec<String>,
    /// Version and commit of the program.
    pub tool: record::Tool,
    /// Passwords of servers.
    pub passwords: engines::Passwords,
    /// Where servers that Annvil starts keep their data; in the run directory, and removed, where none is given.
    pub data_dir: Option<PathBuf>,
    /// Set to stop.
    pub interrupted: Arc<AtomicBool>,
}

impl RunRequest {
    /// The limit of single questions to an engine.
    pub(crate) fn asking(&self) -> Limit<'_> {
        Limit::query(self.plan.limits.query, &self.interrupted)
    }

    /// The same for what must be done after an interruption too.
    fn cleaning(&self) -> Limit<'_> {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Limit::query(self.plan.limits.query, &NEVER)
    }
}

/// What became of a run.
pub struct RunOutcome {
    /// Where it is.
    pub dir: RunDir,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its points.
    pub points: Vec<Point>,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// Engines that could not be reached or set up: name, why.
    pub unreachable: Vec<(String, String)>,
}

/// A plan with everything at hand that can be had without touching an engine.
pub struct Prepared {
    /// The data sets with their truth.
    pub materials: Vec<Material>,
    /// The engines with their definitions.
    pub engines: Vec<ResolvedEngine>,
    /// Points in all.
    pub points: usize,
}

/// Checks a plan and prepares its data sets. Touches no engine and writes nothing but caches.
///
/// # Errors
/// Where anything of the plan can't be done.
pub fn prepare_plan(plan: &Plan, with: &Preparation<'_>) -> Result<Prepared, RunnerError> {
    plan.check().map_err(RunnerError::Plan)?;
    let engines = resolve::engines(plan)?;
    let mut materials = Vec::new();
    for source in &plan.datasets {
        let material = prepare(source, plan, with)?;
        resolve::check_index_columns(plan, &material)?;
        materials.push(material);
    }
    let mut points = 0;
    for material in &materials {
        for engine in &engines {
            if resolve::lacking(engine, material, plan.k).is_none() {
                for build in resolve::builds(plan, engine, material)? {
                    points += match resolve::lacking_build(engine, &build, material) {
                        None => resolve::points_of(plan, &build, material),
                        Some(_) => 1,
                    };
                }
            } else {
                points += 1;
            }
        }
    }
    Ok(Prepared { materials, engines, points })
}

/// Executes a plan.
///
/// # Errors
/// Where the plan, a data set or the run directory can't be used. What happens to single points
/// and engines is in the outcome instead.
pub fn run(request: &RunRequest, events: Events<'_>) -> Result<RunOutcome, RunnerError> {
    let with = Preparation {
        cache_dir: request.cache_dir.clone(),
        force: request.force,
        interrupted: &request.interrupted,
        events,
    };
    reach_any(request, events)?;
    let prepared = prepare_plan(&request.plan, &with)?;
    let unequal = resolve::unequal_parameters(&request.plan, &prepared)?;
    let mut run = Run::open(request, &prepared, events)?;
    run.unequal = verdict::unequal(&unequal);
    let mut interrupted = false;
    for material in &prepared.materials {
        for engine in &prepared.engines {
            match run.engine(material, engine) {
                Ok(()) => {}
                Err(RunnerError::Interrupted) => interrupted = true,
                Err(other) => return Err(run.abandon(other)),
            }
            if interrupted {
                return run.finish(true);
            }
        }
    }
    run.finish(false)
}

/// Asks every engine who it is before data sets are prepared, which may take hours.
///
/// # Errors
/// Where none of them answers: the last one's reason.
fn reach_any(request: &RunRequest, events: Events<'_>) -> Result<(), RunnerError> {
    request.plan.check().map_err(RunnerError::Plan)?;
    let engines = resolve::engines(&request.plan)?;
    let mut refused = Vec::new();
    for engine in &engines {
        if let Err(source) = reach(engine, request) {
            refused.push(RunnerError::Engine { engine: engine.definition.name.clone(), source });
        }
    }
    if refused.len() < engines.len() {
        return Ok(());
    }
    let last = refused.pop();
    for error in refused {
        events(&Event::Warning(&crate::clients::chain(&error)));
    }
    last.map_or(Ok(()), Err)
}

/// Asks an engine who it is, or looks for the program of its server.
fn reach(engine: &ResolvedEngine, request: &RunRequest) -> Result<(), EngineError> {
    if serving::is_local(engine) {
        return serving::program(engine).map(drop);
    }
    let nothing = serving::Load { rows: 0, vectors_bytes: 0 };
    Serving::begin(engine, request, nothing).map(drop)
}

/// A run on its way.
pub(crate) struct Run<'a> {
    pub(crate) request: &'a RunRequest,
    pub(crate) events: Events<'a>,
    pub(crate) dir: RunDir,
    manifest: Manifest,
    points: Vec<Point>,
    known: HashMap<String, usize>,
    finished: usize,
    planned: usize,
    unreachable: Vec<(String, String)>,
    unequal: Vec<Finding>,
    _lock: record::RunLock,
}

impl<'a> Run<'a> {
    fn open(request: &'a RunRequest, prepared: &Prepared, events: Events<'a>) -> Result<Self, RunnerError> {
        if request.mode == Mode::Replace && request.out.exists() {
            RunDir::remove(&request.out)?;
        }
        let (dir, earlier) = match request.mode {
            Mode::Resume => {
                let dir = RunDir::open(&request.out)?;
                let manifest = dir.manifest()?;
                (dir, Some(manifest))
            }
            Mode::New | Mode::Replace => (RunDir::create(&request.out)?, None),
        };
        let lock = dir.lock()?;
        let points = dir.repair()?;
        let mut manifest = provenance::manifest(request, prepared);
        if let Some(earlier) = earlier {
            manifest.created_at = earlier.created_at;
            manifest.name = earlier.name;
            manifest.sessions = earlier.sessions;
            manifest.engines = earlier.engines;
        }
        manifest.sessions.push(RunSession {
            started_at: provenance::now(),
            ended_at: None,
            outcome: None,
            command: request.command.clone(),
        });
        dir.write_manifest(&manifest)?;
        // A failed point has no figure to keep; a resumed run tries it again.
        let whole = |p: &&Point| p.status != Status::Failed;
        let points: Vec<Point> = points.iter().filter(whole).cloned().collect();
        let known = points.iter().enumerate().map(|(i, p)| (p.key.clone(), i)).collect();
        if !points.is_empty() {
            events(&Event::Kept(points.len()));
        }
        let planned = prepared.points;
        let unreachable = Vec::new();
        Ok(Run {
            request,
            events,
            dir,
            manifest,
            points,
            known,
            finished: 0,
            planned,
            unreachable,
            unequal: Vec::new(),
            _lock: lock,
        })
    }

    /// Measures one engine on one data set.
    fn engine(&mut self, material: &Material, engine: &ResolvedEngine) -> Result<(), RunnerError> {
        if let Some(reason) = resolve::lacking(engine, material, self.request.plan.k) {
            let point = provenance::skipped(material, engine, &reason);
            return self.finish_point(point);
        }
        let builds = resolve::builds(&self.request.plan, engine, material)?;
        let (mut able, mut lacking) = (Vec::new(), Vec::new());
        for build in builds {
            match resolve::lacking_build(engine, &build, material) {
                None => able.push(build),
                Some(reason) => lacking.push(reason),
            }
        }
        for reason in lacking {
            let point = provenance::skipped(material, engine, &reason);
            self.finish_point(point)?;
        }
        if able.is_empty() {
            return Ok(());
        }
        let load = serving::Load {
            rows: material.dataset.base.rows() as u64,
            vectors_bytes: (material.dataset.base.rows() * material.dataset.base.dim() * 4) as u64,
        };
        let mut serving = self.serve(engine, load);
        let mut touched = false;
        for build in &able {
            if serving.as_ref().is_ok_and(Serving::is_gone) {
                serving = self.serve(engine, load);
            }
            let mut stand = Stand::new(self, material, engine, build, serving.as_ref().ok());
            let keys = stand.keys();
            stand.run.plan_keys(keys)?;
            match &serving {
                Ok(_) => touched |= stand.measure()?,
                Err(error) => stand.fail_all(error)?,
            }
            if self.interrupted() {
                break;
            }
        }
        if let Ok(serving) = serving {
            self.leave(engine, serving, touched);
        }
        if self.interrupted() { Err(RunnerError::Interrupted) } else { Ok(()) }
    }

    /// Brings an engine within reach and writes down who it is; a failure is told and kept.
    fn serve(&mut self, engine: &ResolvedEngine, load: serving::Load) -> Result<Serving, EngineError> {
        let name = &engine.definition.name;
        if serving::is_local(engine) {
            (self.events)(&Event::Begin { what: &format!("{name}: starting the server"), unit: "" });
        }
        let result = Serving::begin(engine, self.request, load);
        (self.events)(&Event::End);
        match &result {
            Ok(serving) => {
                let mut entry = provenance::engine_entry(engine, &serving.identity);
                entry.server = serving.started();
                self.manifest.engines.insert(provenance::engine_key(engine), entry);
            }
            Err(error) => {
                let text = crate::clients::chain(error);
                (self.events)(&Event::Warning(&format!("{name}: {text}")));
                self.unreachable.push((name.clone(), text));
            }
        }
        result
    }

    /// Cleans up behind an engine and stops its server where it is ours.
    fn leave(&self, engine: &ResolvedEngine, serving: Serving, touched: bool) {
        let name = &engine.definition.name;
        let warn = |what: &str, why: &str| (self.events)(&Event::Warning(&format!("{name}: {what}: {why}")));
        if touched
            && !serving.is_gone()
            && let Err(error) = ask(&serving.engine, self.request.cleaning(), "cleaning up", |e| e.remove())
        {
            warn("could not clean up", &crate::clients::chain(&error));
        }
        if let Err(why) = serving.end() {
            warn("stopping", &why);
        }
    }

    fn plan_keys(&mut self, keys: Vec<String>) -> Result<(), RunnerError> {
        self.manifest.planned.extend(keys);
        Ok(self.dir.write_manifest(&self.manifest)?)
    }

    /// Counts an engine as one that could not be set up.
    pub(crate) fn set_up_failed(&mut self, engine: &ResolvedEngine, why: &str) {
        let entry = (engine.definition.name.clone(), why.to_owned());
        if !self.unreachable.contains(&entry) {
            self.unreachable.push(entry);
        }
    }

    /// Tells and keeps what an engine has set too small for the data. It reaches the file with the manifest's
    /// next change; a run that is killed before asks again.
    pub(crate) fn advise(&mut self, engine: &ResolvedEngine, advice: Vec<String>) {
        let Some(entry) = self.manifest.engines.get_mut(&provenance::engine_key(engine)) else { return };
        for text in advice {
            if !entry.advice.contains(&text) {
                (self.events)(&Event::Warning(&format!("{}: {text}", engine.definition.name)));
                entry.advice.push(text);
            }
        }
    }

    /// The recorded point of this key.
    pub(crate) fn recorded(&self, key: &str) -> Option<&Point> {
        self.known.get(key).map(|&at| &self.points[at])
    }

    /// Counts a point that is recorded already.
    pub(crate) fn keep_point(&mut self) {
        self.finished += 1;
    }

    /// Records a point, unless one of its key is recorded.
    pub(crate) fn finish_point(&mut self, point: Point) -> Result<(), RunnerError> {
        self.finished += 1;
        if self.known.contains_key(&point.key) {
            return Ok(());
        }
        if !self.manifest.planned.contains(&point.key) {
            self.plan_keys(vec![point.key.clone()])?;
        }
        self.dir.append(&point)?;
        (self.events)(&Event::Point { point: &point, finished: self.finished, planned: self.planned });
        self.known.insert(point.key.clone(), self.points.len());
        self.points.push(point);
        Ok(())
    }

    /// Whether the user asked to stop.
    pub(crate) fn interrupted(&self) -> bool {
        self.request.interrupted.load(Ordering::Relaxed)
    }

    /// The points of the plan as it is now.
    fn current_points(&self) -> Vec<Point> {
        self.manifest.planned.iter().filter_map(|key| self.recorded(key)).cloned().collect()
    }

    fn finish(mut self, interrupted: bool) -> Result<RunOutcome, RunnerError> {
        let points = self.current_points();
        let left_out = self.points.len() - points.len();
        if left_out > 0 {
            (self.events)(&Event::Warning(&format!(
                "{left_out} points of an earlier plan are no part of the result any more; they stay in records.jsonl"
            )));
        }
        if !interrupted {
            let mut findings = verdict::findings(&self.manifest, &points);
            findings.append(&mut self.unequal);
            let valid = findings.iter().all(|f| !f.fatal);
            self.manifest.verdict = Some(Verdict { valid, findings });
        }
        self.end_session(if interrupted { "interrupted" } else { "finished" });
        self.dir.write_manifest(&self.manifest)?;
        Ok(RunOutcome {
            dir: self.dir,
            manifest: self.manifest,
            points,
            interrupted,
            unreachable: self.unreachable,
        })
    }

    /// Writes down that the run failed, and passes the reason on.
    fn abandon(mut self, error: RunnerError) -> RunnerError {
        self.end_session("failed");
        match self.dir.write_manifest(&self.manifest) {
            Ok(()) => error,
            Err(second) => RunnerError::Plan(format!("{error}; and then: {second}")),
        }
    }

    fn end_session(&mut self, outcome: &str) {
        if let Some(session) = self.manifest.sessions.last_mut() {
            session.ended_at = Some(provenance::now());
            session.outcome = Some(outcome.to_owned());
        }
    }
}
