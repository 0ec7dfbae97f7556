//! What ran, on what, with which settings: manifest and the heads of points.

use crate::{
    material::Material,
    resolve::{ResolvedBuild, ResolvedEngine},
    run::{Prepared, RunRequest},
};
use engine::{Identity, Params};
use record::{
    BuildFigures, DatasetEntry, EngineEntry, LoadFigures, Manifest, Phase, Point, SearchFigures, Status,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Now, in UTC (RFC 3339, milliseconds).
pub(crate) fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// Now, for the name of a directory: `20261130-154501`.
pub fn timestamp_for_names() -> String {
    jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string()
}

/// The manifest of a run that begins.
pub(crate) fn manifest(request: &RunRequest, prepared: &Prepared) -> Manifest {
    let name = request.out.file_name().map_or_else(|| "run".into(), |n| n.to_string_lossy().into_owned());
    let mut plan = request.plan.clone();
    for engine in &mut plan.engines {
        engine.at = engine.at.as_deref().map(record::mask_address);
    }
    Manifest {
        format: record::FORMAT,
        tool: request.tool.clone(),
        name,
        created_at: now(),
        plan: json!(plan),
        seeds: BTreeMap::from([("plan".to_owned(), request.plan.seed)]),
        machine: json!(host::Machine::read_with_disk_of(&request.out)),
        datasets: prepared.materials.iter().map(dataset_entry).collect(),
        engines: BTreeMap::new(),
        planned: Vec::new(),
        sessions: Vec::new(),
        verdict: None,
    }
}

fn dataset_entry(material: &Material) -> DatasetEntry {
    let dataset = &material.dataset;
    let hashes = dataset.hashes();
    DatasetEntry {
        name: dataset.name.clone(),
        source: material.source.clone(),
        rows: dataset.base.rows() as u64,
        queries: dataset.queries.rows() as u64,
        dim: dataset.base.dim() as u64,
        element: dataset.base.element().name().to_owned(),
        metric: material.metric.name().to_owned(),
        base_hash: hashes.base.clone(),
        queries_hash: hashes.queries.clone(),
        columns_hash: hashes.columns.clone(),
        truth: material.truth_origin.clone(),
        truth_hash: material.cases.first().and_then(|c| c.truth_hash.clone()),
        notices: dataset.notices.clone(),
        forced: material.forced.clone(),
    }
}

/// What of the machine determines a figure: a resumed run on another one measures anew.
pub(crate) fn machine_of_key() -> Value {
    let machine = host::Machine::read();
    let value = json!(machine);
    json!({
        "cpu": value.pointer("/cpu/model"), "cpus": machine.usable_cpus(),
        "memory": machine.usable_memory_bytes(), "kernel": value.pointer("/kernel"),
    })
}

/// Under which name an engine stands in the manifest.
pub(crate) fn engine_key(engine: &ResolvedEngine) -> String {
    match &engine.plan.at {
        Some(at) => format!("{} at {}", engine.definition.name, record::mask_address(at)),
        None => engine.definition.name.clone(),
    }
}

/// The manifest's section of an engine.
pub(crate) fn engine_entry(engine: &ResolvedEngine, identity: &Identity) -> EngineEntry {
    EngineEntry {
        title: engine.definition.title.clone(),
        version: identity.version.clone(),
        source: identity.source.clone(),
        client: identity.client.clone(),
        protocol: identity.protocol.clone(),
        address: engine.plan.at.as_deref().map(record::mask_address),
        definition: json!(engine.definition),
        settings: json!(identity.settings),
        asymmetries: engine.definition.asymmetries.clone(),
        server: None,
        advice: Vec::new(),
    }
}

/// Build parameters as JSON values.
pub(crate) fn params(params: &Params) -> BTreeMap<String, Value> {
    params.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
}

/// The name of our table for a data set: letters, digits and `_`, at most 48 characters.
pub(crate) fn table_name(dataset: &str) -> String {
    let safe = dataset.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    format!("annvil_{}", safe.take(40).collect::<String>())
}

/// A point without figures.
pub(crate) fn blank(
    key: String,
    phase: Phase,
    material: &Material,
    engine: &ResolvedEngine,
    build: &ResolvedBuild,
    version: &str,
) -> Point {
    Point {
        index_kind: build.index.kind.clone(),
        build: build.label(),
        params: params(&build.index.params),
        ..head(key, phase, material, engine, version)
    }
}

/// The point that says why an engine is left out.
pub(crate) fn skipped(material: &Material, engine: &ResolvedEngine, reason: &str) -> Point {
    let text = json!([material.dataset.hashes().base, engine.definition, reason]).to_string();
    let key = blake3::hash(text.as_bytes()).to_hex()[..20].to_owned();
    Point {
        status: Status::Skipped,
        code: Some("unsupported".to_owned()),
        reason: Some(reason.to_owned()),
        ..head(key, Phase::Sweep, material, engine, "unknown")
    }
}

fn head(key: String, phase: Phase, material: &Material, engine: &ResolvedEngine, version: &str) -> Point {
    Point {
        key,
        measurement_version: record::MEASUREMENT_VERSION,
        finished_at: now(),
        phase,
        status: Status::Valid,
        reason: None,
        code: None,
        flags: Vec::new(),
        dataset: material.dataset.name.clone(),
        dataset_hash: material.dataset.hashes().base.clone(),
        truth_hash: None,
        rows: material.dataset.base.rows() as u64,
        dim: material.dataset.base.dim() as u64,
        metric: material.metric.name().to_owned(),
        engine: engine_key(engine),
        engine_title: engine.definition.title.clone(),
        engine_version: version.to_owned(),
        index_kind: String::new(),
        build: String::new(),
        params: BTreeMap::new(),
        effort_name: None,
        effort: None,
        k: None,
        clients: None,
        filter: None,
        exact: engine.definition.capabilities.exact,
        point_seconds: 0.0,
        load: LoadFigures::default(),
        built: BuildFigures::default(),
        search: SearchFigures::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_name_is_safe_in_any_language() {
        assert_eq!(table_name("Glove 200k; DROP"), "annvil_glove_200k__drop");
    }
}
