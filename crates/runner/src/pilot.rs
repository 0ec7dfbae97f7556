//! An estimate of time, memory and disk, from a pilot on a part of the rows.
//!
//! Only engines inside our own process are piloted: a dry run touches no server. Scaling: load and
//! exact scans grow with n, graph builds with n log n, graph searches with log n.

use crate::{
    Event, Events, LoopSpec, Plan, RunnerError,
    build::{BuildLimits, build},
    conductor::closed_loop,
    load::{LoadSpec, load},
    material::Material,
    resolve::{self, ResolvedBuild, ResolvedEngine},
    run::Prepared,
};
use engine::{Engine, EngineError, SearchSpec, TableSpec};
use serde::Serialize;
use std::sync::{Arc, atomic::AtomicBool};
use types::Filters;

/// Rows and queries of a pilot.
const PILOT_ROWS: usize = 2000;
const PILOT_QUERIES: usize = 50;

/// Bytes of the raw figures of one query, compressed.
const RAW_BYTES: u64 = 40;

/// What a run will take.
#[derive(Clone, Debug, Serialize)]
pub struct Estimate {
    /// By data set, engine and build.
    pub legs: Vec<Leg>,
    /// All together (s).
    pub seconds: f64,
    /// Size of the run directory.
    pub disk_bytes: u64,
    /// Whether every leg could be piloted.
    pub complete: bool,
}

/// One build of one engine on one data set.
#[derive(Clone, Debug, Serialize)]
pub struct Leg {
    /// Data set.
    pub dataset: String,
    /// Engine.
    pub engine: String,
    /// Build.
    pub build: String,
    /// Load (s).
    pub load_seconds: Option<f64>,
    /// Build (s).
    pub build_seconds: Option<f64>,
    /// All points of the sweep (s).
    pub search_seconds: Option<f64>,
    /// Rows and index in memory.
    pub memory_bytes: Option<u64>,
}

/// What a pilot measured.
struct Piloted {
    rows: usize,
    load: f64,
    build: f64,
    memory: Option<u64>,
    /// Mean latency (s) at the lowest and the highest effort.
    latency: (f64, f64),
}

/// Estimates a plan.
///
/// # Errors
/// Where the plan does not fit its engines.
pub fn estimate(
    plan: &Plan,
    prepared: &Prepared,
    interrupted: &AtomicBool,
    events: Events<'_>,
) -> Result<Estimate, RunnerError> {
    let mut legs = Vec::new();
    let mut sent = 0_u64;
    for material in &prepared.materials {
        for engine in &prepared.engines {
            if resolve::lacking(engine, material, plan.k).is_some() {
                continue;
            }
            for build in resolve::builds(plan, engine, material)? {
                let piloted = if engine.definition.capabilities.embedded {
                    let what = format!("pilot of {}", engine.definition.name);
                    events(&Event::Begin { what: &what, unit: "" });
                    let piloted = pilot(plan, material, engine, &build, interrupted);
                    events(&Event::End);
                    piloted
                        .map_err(|source| RunnerError::Engine {
                            engine: engine.definition.name.clone(),
                            source,
                        })
                        .map(Some)?
                } else {
                    None
                };
                let (leg, queries) = extrapolate(plan, material, engine, &build, piloted);
                sent += queries;
                legs.push(leg);
            }
        }
    }
    let part = |leg: &Leg| [leg.load_seconds, leg.build_seconds, leg.search_seconds];
    Ok(Estimate {
        seconds: legs.iter().flat_map(part).flatten().sum(),
        complete: legs.iter().all(|leg| part(leg).iter().all(Option::is_some)),
        disk_bytes: sent * (RAW_BYTES + 2 * plan.k as u64),
        legs,
    })
}

fn pilot(
    plan: &Plan,
    material: &Material,
    engine: &ResolvedEngine,
    build_spec: &ResolvedBuild,
    interrupted: &AtomicBool,
) -> Result<Piloted, EngineError> {
    let opened: Arc<dyn Engine> =
        Arc::from(engines::open(&engine.definition, None, &engines::Passwords::default())?);
    let rows = material.dataset.base.rows().min(PILOT_ROWS);
    let base = material.dataset.base.slice(0..rows);
    opened.create(&TableSpec {
        name: "annvil_pilot".into(),
        dim: base.dim(),
        element: base.element(),
        metric: material.metric,
        rows,
        columns: Vec::new(),
        indexed_columns: Vec::new(),
        load: Default::default(),
        index: build_spec.index.clone(),
    })?;
    let spec = LoadSpec {
        vectors: base,
        columns: None,
        workers: plan.load.workers,
        batch: plan.load.batch_for(&engine.definition, rows),
        limit: plan.limits.load,
        query_limit: plan.limits.query,
    };
    let loaded = load(&opened, &spec, interrupted, &mut |_, _| {})?;
    let limits = BuildLimits { build: plan.limits.build, ready: plan.limits.ready, query: plan.limits.query };
    let built = build(&opened, &build_spec.index, limits, interrupted, &mut |_, _| {})?;
    let at = |effort: Option<u64>| -> Result<f64, EngineError> {
        let queries = material.dataset.queries.slice(0..material.dataset.queries.rows().min(PILOT_QUERIES));
        let search =
            opened.encode(SearchSpec { queries, k: plan.k.min(rows), effort, filters: Filters::None })?;
        let spec = LoopSpec {
            clients: 1,
            warmup: PILOT_QUERIES / 2,
            repeats: 1,
            min_window: std::time::Duration::ZERO,
            query_limit: plan.limits.query,
            point_limit: plan.limits.point,
            most_ids: plan.k.min(rows),
        };
        let measured = closed_loop(&opened, &search, &spec, interrupted, &mut |_, _| {})?;
        Ok(measured.windows.first().map_or(0.0, |w| 1.0 / w.throughput().max(1e-9)))
    };
    let latency = (
        at(build_spec.efforts.iter().copied().min().flatten())?,
        at(build_spec.efforts.iter().copied().max().flatten())?,
    );
    let memory = built.sizes.index.zip(built.sizes.table).map(|(index, table)| index + table);
    opened.remove()?;
    Ok(Piloted {
        rows,
        load: loaded.seconds,
        build: built.build_seconds + built.ready_seconds,
        memory,
        latency,
    })
}

/// From the pilot to the whole set: the leg, and the queries that it will send.
fn extrapolate(
    plan: &Plan,
    material: &Material,
    engine: &ResolvedEngine,
    build: &ResolvedBuild,
    piloted: Option<Piloted>,
) -> (Leg, u64) {
    let points = plan.clients.len() * material.cases.len() * build.efforts.len();
    let queries = material.dataset.queries.rows();
    let mut leg = Leg {
        dataset: material.dataset.name.clone(),
        engine: engine.definition.name.clone(),
        build: build.label(),
        load_seconds: None,
        build_seconds: None,
        search_seconds: None,
        memory_bytes: None,
    };
    let mut sent = (points * plan.repeats * queries) as u64;
    if let Some(p) = piloted {
        let exact = engine.definition.capabilities.exact;
        let grown = material.dataset.base.rows() as f64 / p.rows.max(1) as f64;
        let log = (material.dataset.base.rows().max(2) as f64).ln() / (p.rows.max(2) as f64).ln();
        let latency = (p.latency.0 + p.latency.1) / 2.0 * if exact { grown } else { log };
        let pass = latency * queries as f64;
        let window = pass.max(plan.min_window.as_secs_f64());
        if pass > 0.0 {
            sent = (sent as f64 * window / pass) as u64;
        }
        let warm_up = latency * plan.warmup as f64;
        leg.load_seconds = Some(p.load * grown);
        leg.build_seconds = Some(p.build * grown * if exact { 1.0 } else { log });
        leg.search_seconds = Some((window * plan.repeats as f64 + warm_up) * points as f64);
        leg.memory_bytes = p.memory.map(|m| (m as f64 * grown) as u64);
    }
    (leg, sent)
}
