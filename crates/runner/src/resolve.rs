//! From a plan to the list of what will be measured: definitions found, parameters filled in and
//! checked, points counted. Touches no engine.

use crate::{EnginePlan, Plan, RunnerError, material::Material, run::Prepared};
use engine::{Definition, IndexSpec};
use serde::Serialize;

/// An engine of a plan with its definition.
#[derive(Clone, Debug)]
pub struct ResolvedEngine {
    /// What the plan says.
    pub plan: EnginePlan,
    /// The definition.
    pub definition: Definition,
}

/// One build of an engine on a data set, with the efforts to sweep.
#[derive(Clone, Debug)]
pub struct ResolvedBuild {
    /// The index.
    pub index: IndexSpec,
    /// Name of the search-time knob; none where there is none.
    pub effort_name: Option<String>,
    /// Its values; one `None` where there is none.
    pub efforts: Vec<Option<u64>>,
    /// Parameters that have the definition's default.
    pub defaults: Vec<String>,
}

/// Parameters that engines are compared by; they always stand in a build's label.
const COMPARED: [&str; 4] = ["m", "ef_construction", "lists", "quantization"];

impl ResolvedBuild {
    /// The build in words: `m=16 ef_construction=128`, with every other parameter that is not at its default;
    /// the kind where none is left.
    pub fn label(&self) -> String {
        let shown = |name: &String| COMPARED.contains(&name.as_str()) || !self.defaults.contains(name);
        let params: Vec<String> = self
            .index
            .params
            .iter()
            .filter(|(name, _)| shown(name))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if params.is_empty() { self.index.kind.clone() } else { params.join(" ") }
    }
}

/// Finds the definitions of a plan's engines.
///
/// # Errors
/// Where there is none of a name, or two engines of the plan would have one name and address.
pub fn engines(plan: &Plan) -> Result<Vec<ResolvedEngine>, RunnerError> {
    let mut resolved: Vec<ResolvedEngine> = Vec::new();
    for entry in &plan.engines {
        let definition = engines::find(&entry.name).map_err(|e| RunnerError::Plan(e.to_string()))?;
        if definition.capabilities.embedded && entry.at.is_some() {
            // The address may hold a password, so it is not repeated.
            return Err(RunnerError::Plan(format!(
                "{} runs inside Annvil and has no address; leave out its --at",
                definition.name
            )));
        }
        if resolved.iter().any(|r| r.definition.name == definition.name && r.plan.at == entry.at) {
            return Err(RunnerError::Plan(format!(
                "engine {:?} stands twice; give it several [[engine.build]] instead",
                definition.name
            )));
        }
        resolved.push(ResolvedEngine { plan: entry.clone(), definition });
    }
    Ok(resolved)
}

/// The builds of an engine on a data set.
///
/// # Errors
/// Where a parameter or effort is out of the definition's range, or the engine lacks a kind of filter.
pub fn builds(
    plan: &Plan,
    engine: &ResolvedEngine,
    material: &Material,
) -> Result<Vec<ResolvedBuild>, RunnerError> {
    check_filters(engine, material)?;
    let default = vec![crate::BuildPlan::default()];
    let wanted = if engine.plan.builds.is_empty() { &default } else { &engine.plan.builds };
    let threads = match plan.build_threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let fault = |e: engine::DefinitionError| RunnerError::Plan(e.0);
    let mut builds: Vec<ResolvedBuild> = Vec::new();
    for build in wanted {
        let kind = build.kind.as_deref();
        let index =
            engine.definition.index_spec(kind, material.metric, &build.params, threads).map_err(fault)?;
        let def = engine.definition.index_def(kind).map_err(fault)?;
        let effort = def.effort.as_ref();
        let efforts = match effort {
            None => vec![None],
            Some(def) => {
                let ladder = if engine.plan.efforts.is_empty() {
                    default_ladder(def, plan.k as u64)
                } else {
                    engine.plan.efforts.clone()
                };
                for &value in &ladder {
                    def.check(value)
                        .map_err(|e| RunnerError::Plan(format!("{}: {e}", engine.definition.name)))?;
                }
                ladder.into_iter().map(Some).collect()
            }
        };
        let usual = |name: &&String| {
            let default = def.params.get(*name).map(|p| p.default_under(material.metric));
            default.is_some_and(|default| Some(default) == index.params.get(*name))
        };
        let defaults = index.params.keys().filter(usual).cloned().collect();
        let build = ResolvedBuild { index, effort_name: effort.map(|e| e.name.clone()), efforts, defaults };
        if builds.iter().any(|other| other.index == build.index) {
            let text = format!("{}: the build {} stands twice", engine.definition.name, build.label());
            return Err(RunnerError::Plan(text));
        }
        builds.push(build);
    }
    Ok(builds)
}

/// Refuses filters of a kind that the engine's definition does not list: a condition that an engine
/// can't check must not be dropped in silence.
fn check_filters(engine: &ResolvedEngine, material: &Material) -> Result<(), RunnerError> {
    let has = &engine.definition.capabilities.filters;
    for case in &material.cases {
        for (filter, _) in case.filters.groups(material.dataset.queries.rows()) {
            let lacking = filter.iter().flat_map(|f| f.kinds()).find(|kind| !has.contains(kind));
            if let Some(kind) = lacking {
                // The word that definitions use: eq_int, range, or ...
                let kind = serde_json::json!(kind);
                return Err(RunnerError::Plan(format!(
                    "{} has no filter of the kind {}, which {} needs; leave out the filter or the engine",
                    engine.definition.name,
                    kind.as_str().unwrap_or("asked for"),
                    case.text.as_deref().unwrap_or("the filter"),
                )));
            }
        }
    }
    Ok(())
}

/// Refuses an index on a column that the data set has not.
///
/// # Errors
/// With the columns that there are.
pub(crate) fn check_index_columns(plan: &Plan, material: &Material) -> Result<(), RunnerError> {
    let columns = material.dataset.columns.as_ref();
    let known: Vec<&str> = columns.into_iter().flat_map(|c| c.iter()).map(|c| c.name.as_str()).collect();
    match plan.load.index_columns.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(RunnerError::Plan(format!(
            "--index-column {name}: {} has no such column; it has: {}",
            material.dataset.name,
            if known.is_empty() { "none".to_owned() } else { known.join(", ") }
        ))),
    }
}

/// The definition's ladder. An engine that raises its effort to k would measure the same point
/// several times below k, so those steps are left out.
fn default_ladder(def: &engine::EffortDef, k: u64) -> Vec<u64> {
    let useful: Vec<u64> = def.ladder.iter().copied().filter(|&e| !def.raised_to_k || e >= k).collect();
    if !useful.is_empty() {
        return useful;
    }
    let mut ladder: Vec<u64> = [1, 2, 4, 8].iter().map(|f| (k * f).min(def.max)).collect();
    ladder.dedup();
    ladder
}

/// How many points a build gives: load, build, and every cell of the sweep.
pub fn points_of(plan: &Plan, build: &ResolvedBuild, material: &Material) -> usize {
    2 + plan.clients.len() * material.cases.len() * build.efforts.len()
}

/// Why an engine can't do what a data set asks; none where it can.
pub fn lacking(engine: &ResolvedEngine, material: &Material, k: usize) -> Option<String> {
    let has = &engine.definition.capabilities;
    let name = &engine.definition.name;
    if !has.metrics.contains(&material.metric) {
        let known: Vec<&str> = has.metrics.iter().map(|m| m.name()).collect();
        return Some(format!("{name} has no {}; it has: {}", material.metric, known.join(", ")));
    }
    if let Some(max) = has.max_k.filter(|max| k > *max) {
        return Some(format!("{name} returns at most {max} rows, k is {k}"));
    }
    None
}

/// Why a build can't hold the vectors of a data set (cases.md 73); none where it can.
pub fn lacking_build(engine: &ResolvedEngine, build: &ResolvedBuild, material: &Material) -> Option<String> {
    engine.definition.too_many_dims(&build.index, material.dataset.base.dim())
}

/// What a run will do to one engine, for people.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Data set.
    pub dataset: String,
    /// Engine.
    pub engine: String,
    /// Kind of index.
    pub kind: String,
    /// Build parameters.
    pub parameters: String,
    /// Efforts.
    pub efforts: String,
    /// Numbers of clients.
    pub clients: String,
    /// What is made and dropped, or why the engine is left out.
    pub touches: String,
    /// Why the engine can't be measured as things are.
    pub problem: Option<String>,
}

/// The steps of a plan, in order.
///
/// # Errors
/// As [`builds`].
pub fn steps(plan: &Plan, prepared: &Prepared) -> Result<Vec<Step>, RunnerError> {
    let mut steps = Vec::new();
    for material in &prepared.materials {
        for engine in &prepared.engines {
            // Looked for once: it runs the program for its version.
            let program = crate::serving::is_local(engine).then(|| crate::serving::program(engine));
            let problem = program.as_ref().and_then(|p| p.as_ref().err()).map(ToString::to_string);
            let step = |kind: String, parameters: String, efforts: String, touches: String| Step {
                dataset: material.dataset.name.clone(),
                engine: engine.definition.name.clone(),
                kind,
                parameters,
                efforts,
                clients: plan.clients.iter().map(usize::to_string).collect::<Vec<_>>().join(" "),
                touches,
                problem: problem.clone(),
            };
            if let Some(reason) = lacking(engine, material, plan.k) {
                steps.push(step(String::new(), String::new(), String::new(), format!("left out: {reason}")));
                continue;
            }
            let table = crate::provenance::table_name(&material.dataset.name);
            let touches = match (&program, &engine.plan.at) {
                (Some(Ok((_, found))), _) => {
                    format!("a server of its own ({}): started, stopped, its data removed", found.version)
                }
                (Some(Err(_)), _) => "nothing: its server can't be started".to_owned(),
                (None, None) => "nothing outside this process".to_owned(),
                (None, Some(_)) => format!("table {table}: dropped if there, made, dropped at the end"),
            };
            for build in builds(plan, engine, material)? {
                let efforts: Vec<String> = build.efforts.iter().flatten().map(u64::to_string).collect();
                let name = build.effort_name.as_ref().map(|n| format!("{n} ")).unwrap_or_default();
                let label = build.label();
                if let Some(reason) = lacking_build(engine, &build, material) {
                    steps.push(step(
                        build.index.kind.clone(),
                        label,
                        String::new(),
                        format!("left out: {reason}"),
                    ));
                    continue;
                }
                steps.push(step(
                    build.index.kind.clone(),
                    label,
                    format!("{name}{}", efforts.join(" ")),
                    touches.clone(),
                ));
            }
        }
    }
    Ok(steps)
}

/// A build parameter that engines of a plan have with different values.
#[derive(Clone, Debug, Serialize)]
pub struct Unequal {
    /// The parameter.
    pub name: String,
    /// Engine with its build, value.
    pub values: Vec<(String, String)>,
}

/// Build parameters that are not the same for all engines that have them (cases.md 66).
///
/// # Errors
/// As [`builds`].
pub fn unequal_parameters(plan: &Plan, prepared: &Prepared) -> Result<Vec<Unequal>, RunnerError> {
    let mut found: std::collections::BTreeMap<String, Vec<(String, String)>> = Default::default();
    let Some(material) = prepared.materials.first() else { return Ok(Vec::new()) };
    for engine in prepared.engines.iter().filter(|e| lacking(e, material, plan.k).is_none()) {
        for build in builds(plan, engine, material)? {
            for (name, value) in &build.index.params {
                let entry = (engine.definition.name.clone(), value.to_string());
                let values = found.entry(name.clone()).or_default();
                if !values.contains(&entry) {
                    values.push(entry);
                }
            }
        }
    }
    let engines = |values: &[(String, String)]| {
        values.iter().map(|(e, _)| e).collect::<std::collections::BTreeSet<_>>().len()
    };
    let differ = |values: &[(String, String)]| values.iter().any(|(_, v)| *v != values[0].1);
    Ok(found
        .into_iter()
        .filter(|(_, values)| engines(values) > 1 && differ(values))
        .map(|(name, values)| Unequal { name, values })
        .collect())
}
