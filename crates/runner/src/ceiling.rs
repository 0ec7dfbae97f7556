//! The harness's own ceiling: what the closed loop does against an engine that answers at once.

use crate::{LoopSpec, RunnerError, conductor::closed_loop};
use engine::{Control, Engine, EngineError, IndexSpec, SearchSpec, TableSpec};
use std::{
    sync::Arc,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};
use types::{Element, Filters, Metric, Vectors};

const DIM: usize = 8;
const ROWS: usize = 100;
const QUERIES: usize = 1000;
const K: usize = 10;

/// Queries a second of `clients` client threads against the null engine, with everything on that
/// a measured point has: two clock readings, times and ids stored, progress published. The median
/// of the windows that fit into `length`, five at least.
///
/// # Errors
/// Where threads can't be started.
pub fn ceiling(clients: usize, length: Duration, interrupted: &AtomicBool) -> Result<f64, RunnerError> {
    measure(clients, length, interrupted)
        .map_err(|source| RunnerError::Engine { engine: "null".to_owned(), source })
}

fn measure(clients: usize, length: Duration, interrupted: &AtomicBool) -> Result<f64, EngineError> {
    let definition = engines::find("null")
        .map_err(|e| EngineError::caused(engine::ErrorKind::Bug, "the null engine has no definition", e))?;
    let engine: Arc<dyn Engine> =
        Arc::from(engines::open(&definition, None, &engines::Passwords::default())?);
    let params =
        definition.index[0].params.iter().map(|(name, p)| (name.clone(), p.default.clone())).collect();
    let index = IndexSpec { kind: definition.index[0].kind.clone(), metric: Metric::L2, params, threads: 1 };
    let zeros = |rows: usize| Vectors::from_f32(vec![0.0; rows * DIM], rows, DIM);
    let fault = |e: types::ShapeError| EngineError::caused(engine::ErrorKind::Bug, "shape", e);
    engine.create(&TableSpec {
        name: "annvil_ceiling".to_owned(),
        dim: DIM,
        element: Element::F32,
        metric: Metric::L2,
        rows: ROWS,
        columns: Vec::new(),
        indexed_columns: Vec::new(),
        load: Default::default(),
        index: index.clone(),
    })?;
    let base = zeros(ROWS).map_err(fault)?;
    engine.connect()?.insert(&engine::Batch { keys: 0..ROWS as u64, vectors: &base, columns: None })?;
    engine.finish_load()?;
    engine.build(&index, &Control::default())?;
    let queries = zeros(QUERIES).map_err(fault)?;
    let search = engine.encode(SearchSpec { queries, k: K, effort: None, filters: Filters::None })?;
    let spec = LoopSpec {
        clients,
        warmup: 20 * QUERIES,
        repeats: 5,
        min_window: length / 5,
        query_limit: Duration::from_secs(10),
        point_limit: Duration::from_secs(60) + length * 10,
        most_ids: K,
    };
    let (started, mut rates) = (Instant::now(), Vec::new());
    // A window holds a bounded number of queries, so several points may be needed to fill the time.
    while rates.is_empty() || started.elapsed() < length {
        let measured = closed_loop(&engine, &search, &spec, interrupted, &mut |_, _| {})?;
        rates.extend(measured.windows.iter().map(crate::Window::throughput));
    }
    Ok(types::stats::median(&rates).unwrap_or(0.0))
}
