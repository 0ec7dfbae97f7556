//! `annvil run`.

use super::{params, passwords, run_dry, source};
use crate::{
    args::RunArgs,
    exit::{Outcome, usage_error},
    paths,
    printer::Printer,
    progress::Progress,
    stop,
};
use engine::LoadMethod;
use record::{Phase, RunDir, Status};
use runner::{EnginePlan, FilterPlan, Mode, Plan, RunOutcome, RunRequest, run as execute};
use std::path::{Path, PathBuf};

/// Where runs go where nothing is said.
const RUNS: &str = "runs";

pub(crate) fn run(args: &RunArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    let request = request(args)?;
    let progress = Progress::new(printer);
    let events = |event: &runner::Event<'_>| progress.on(event);
    if args.dry_run {
        return run_dry::show(&request, &events, printer);
    }
    let outcome = execute(&request, &events)?;
    show(&outcome, args, printer)?;
    verdict(&outcome, args, printer)
}

fn request(args: &RunArgs) -> anyhow::Result<RunRequest> {
    if let Some(floor) = args.min_recall.filter(|floor| !(0.0..=1.0).contains(floor)) {
        return Err(usage_error(format!("--min-recall {floor} is outside 0..1")));
    }
    let resumed = if args.resume { Some(resumed(args)?) } else { None };
    if args.no_recall && args.min_recall.is_some() {
        return Err(usage_error(
            "--min-recall needs the recall that --no-recall leaves out; give one of them",
        ));
    }
    let mut plan = match &resumed {
        Some((_, plan)) if !names_a_plan(args) => plan.clone(),
        _ => Plan::find(&args.plan)?,
    };
    overlay(&mut plan, args)?;
    absolute_paths(&mut plan)?;
    plan.check().map_err(|e| usage_error(format!("the plan with the options given: {e}")))?;
    let out = match (&resumed, &args.out) {
        (Some((out, _)), _) => out.clone(),
        (None, Some(out)) => out.clone(),
        (None, None) => new_out(&plan.name),
    };
    let mode = match (args.resume, args.force && out.join("manifest.json").exists()) {
        (true, _) => Mode::Resume,
        (false, true) => Mode::Replace,
        (false, false) => Mode::New,
    };
    Ok(RunRequest {
        plan,
        out,
        mode,
        force: args.force,
        cache_dir: paths::cache_dir(args.open.cache_dir.as_ref()),
        command: paths::command_line(),
        tool: tool(),
        passwords: passwords::gather(&args.passwords)?,
        data_dir: args.data_dir.clone(),
        interrupted: stop::flag(),
    })
}

/// Whether the line says what to run, so that a resumed run does not take its old plan.
fn names_a_plan(args: &RunArgs) -> bool {
    args.plan != "quick" || !args.datasets.is_empty() || !args.engines.is_empty()
}

/// The run to go on with: --out's, or the newest below `runs` that is not finished.
fn resumed(args: &RunArgs) -> anyhow::Result<(PathBuf, Plan)> {
    let path = match &args.out {
        Some(out) => out.clone(),
        None => newest_unfinished()?,
    };
    let manifest = RunDir::open(&path)?.manifest()?;
    let plan = serde_json::from_value(manifest.plan)
        .map_err(|e| usage_error(format!("{}: its plan can't be read: {e}", path.display())))?;
    Ok((path, plan))
}

fn newest_unfinished() -> anyhow::Result<PathBuf> {
    let unfinished = |path: &PathBuf| {
        RunDir::open(path).and_then(|d| d.manifest()).is_ok_and(|manifest| manifest.verdict.is_none())
    };
    let found = run_dirs(Path::new(RUNS)).into_iter().rev().find(unfinished);
    found.ok_or_else(|| usage_error(format!("no unfinished run below {RUNS}/; name one with --out")))
}

/// The run directories below `folder`, oldest first (their names begin with the time).
pub(crate) fn run_dirs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.map(|e| e.path()).filter(|p| p.join("manifest.json").is_file()).collect();
    found.sort();
    found
}

fn new_out(plan: &str) -> PathBuf {
    let now = runner::timestamp_for_names();
    let base = Path::new(RUNS).join(format!("{now}-{plan}"));
    let numbered = |n: usize| PathBuf::from(format!("{}-{n}", base.display()));
    std::iter::once(base.clone()).chain((2..).map(numbered)).find(|p| !p.exists()).unwrap_or(base)
}

/// Paths of data as they are from any folder, so that a run can be continued and explained from there.
fn absolute_paths(plan: &mut Plan) -> anyhow::Result<()> {
    let absolute = |path: &Path| -> anyhow::Result<PathBuf> { Ok(std::path::absolute(path)?) };
    for dataset in &mut plan.datasets {
        if Path::new(dataset.as_str()).exists() {
            *dataset = absolute(Path::new(dataset.as_str()))?.display().to_string();
        }
    }
    let source = &mut plan.source;
    let files = [&mut source.queries, &mut source.truth, &mut source.columns, &mut source.query_columns];
    for path in files.into_iter().flatten() {
        *path = absolute(path)?;
    }
    Ok(())
}

/// Puts what the line says over what the plan says.
fn overlay(plan: &mut Plan, args: &RunArgs) -> anyhow::Result<()> {
    if !args.datasets.is_empty() {
        plan.datasets.clone_from(&args.datasets);
    }
    if !args.engines.is_empty() {
        plan.engines = chosen_engines(plan, args)?;
    } else if !args.at.is_empty() {
        return Err(usage_error("--at needs the --engine that it belongs to"));
    }
    fn set<T: Clone>(slot: &mut T, given: Option<&T>) {
        if let Some(value) = given {
            *slot = value.clone();
        }
    }
    set(&mut plan.k, args.k.as_ref());
    set(&mut plan.repeats, args.repeats.as_ref());
    set(&mut plan.warmup, args.warmup.as_ref());
    set(&mut plan.min_window, args.min_window.as_ref());
    set(&mut plan.seed, args.seed.as_ref());
    set(&mut plan.load.workers, args.load_workers.as_ref());
    set(&mut plan.load.batch, Some(&args.batch).filter(|b| b.is_some()));
    set(&mut plan.load.method, args.load.map(LoadMethod::from).as_ref());
    if !args.index_columns.is_empty() {
        plan.load.index_columns.clone_from(&args.index_columns);
    }
    set(&mut plan.build_threads, args.build_threads.as_ref());
    set(&mut plan.limits.load, args.load_timeout.as_ref());
    set(&mut plan.limits.build, args.build_timeout.as_ref());
    set(&mut plan.limits.ready, args.ready_timeout.as_ref());
    set(&mut plan.limits.query, args.query_timeout.as_ref());
    set(&mut plan.limits.point, args.point_timeout.as_ref());
    set(&mut plan.limits.errors, args.max_errors.as_ref());
    set(&mut plan.limits.client_share, args.max_client_share.as_ref());
    set(&mut plan.limits.client_cpu, args.max_client_cpu.as_ref());
    if !args.clients.is_empty() {
        plan.clients.clone_from(&args.clients);
    }
    if args.no_recall {
        plan.recall = false;
    }
    for text in &args.filters {
        plan.filters.push(FilterPlan { name: text.clone(), text: text.clone() });
    }
    set(&mut plan.server.memory, Some(&args.server_memory).filter(|m| m.is_some()));
    set(&mut plan.server.cpus, Some(&args.server_cpus).filter(|c| c.is_some()));
    for text in &args.programs {
        place_program(plan, text)?;
    }
    let params = params::parse(&args.params)?;
    for engine in &mut plan.engines {
        overlay_engine(engine, args, &params)?;
    }
    all_taken(plan, &params)?;
    set(&mut plan.metric, Some(&args.open.metric).filter(|m| m.is_some()));
    set(&mut plan.limit, Some(&args.open.limit).filter(|l| l.is_some()));
    let given = source::source_plan(&args.open);
    if given != runner::SourcePlan::default() {
        plan.source = given;
    }
    Ok(())
}

/// Gives an engine its server's program: `mariadb=/opt/mariadb/bin/mariadbd`.
fn place_program(plan: &mut Plan, text: &str) -> anyhow::Result<()> {
    let Some((name, path)) = text.split_once('=') else {
        return Err(usage_error(format!(
            "--program {text}: write NAME=PATH, such as mariadb=/opt/mariadb/bin/mariadbd"
        )));
    };
    let mut taken = false;
    for engine in plan.engines.iter_mut() {
        if engines::find(&engine.name)?.name == name {
            engine.program = Some(std::path::absolute(path)?);
            taken = true;
        }
    }
    if taken {
        Ok(())
    } else {
        Err(usage_error(format!("--program {name}: no engine of the run has that name")))
    }
}

/// The engines named in the line; the plan's builds and efforts are kept for those it has.
fn chosen_engines(plan: &Plan, args: &RunArgs) -> anyhow::Result<Vec<EnginePlan>> {
    let fresh = |name: &String| EnginePlan {
        name: name.clone(),
        at: None,
        program: None,
        builds: Vec::new(),
        efforts: Vec::new(),
    };
    let planned = |name: &String| plan.engines.iter().find(|e| e.name == *name).cloned();
    let mut engines: Vec<EnginePlan> = args
        .engines
        .iter()
        .map(|name| EnginePlan { at: None, ..planned(name).unwrap_or_else(|| fresh(name)) })
        .collect();
    for at in &args.at {
        place_address(&mut engines, at)?;
    }
    Ok(engines)
}

/// Gives an address to the first engine without one that speaks its protocol.
fn place_address(engines: &mut [EnginePlan], at: &str) -> anyhow::Result<()> {
    let scheme = at.split_once("://").map_or("", |(scheme, _)| scheme);
    let protocol = match scheme {
        "postgresql" => "postgres",
        "mariadb" => "mysql",
        other => other,
    };
    for engine in engines.iter_mut().filter(|e| e.at.is_none()) {
        let definition = engines::find(&engine.name)?;
        if definition.protocol == protocol {
            engine.at = Some(at.to_owned());
            return Ok(());
        }
    }
    // A definition of the user's own may speak a protocol that has another scheme.
    for engine in engines.iter_mut().filter(|e| e.at.is_none()) {
        let definition = engines::find(&engine.name)?;
        if !definition.capabilities.embedded && !["postgres", "mysql"].contains(&definition.protocol.as_str())
        {
            engine.at = Some(at.to_owned());
            return Ok(());
        }
    }
    let mut known = Vec::new();
    for engine in engines.iter() {
        let definition = engines::find(&engine.name)?;
        known.push(format!("{} ({})", definition.name, definition.protocol));
    }
    // The address may hold a password, so only its scheme is repeated.
    Err(usage_error(format!(
        "--at {scheme}://…: no engine of the line that has no address yet speaks that protocol; engines: {}",
        known.join(", ")
    )))
}

/// Efforts and parameters go to every engine whose definition has them.
fn overlay_engine(plan: &mut EnginePlan, args: &RunArgs, params: &engine::Params) -> anyhow::Result<()> {
    let definition = engines::find(&plan.name)?;
    if !args.efforts.is_empty() && definition.index.iter().any(|i| i.effort.is_some()) {
        plan.efforts.clone_from(&args.efforts);
    }
    if plan.builds.is_empty() && !params.is_empty() {
        plan.builds.push(runner::BuildPlan::default());
    }
    for build in &mut plan.builds {
        let index = definition.index_def(build.kind.as_deref())?;
        for (name, value) in params {
            if index.params.contains_key(name) {
                build.params.insert(name.clone(), value.clone());
            }
        }
    }
    Ok(())
}

/// Refuses a parameter that no engine of the plan has: it was mistyped, and would be left out in silence.
fn all_taken(plan: &Plan, params: &engine::Params) -> anyhow::Result<()> {
    let taken = |name: &str| plan.engines.iter().flat_map(|e| &e.builds).any(|b| b.params.contains_key(name));
    let Some(name) = params.keys().find(|name| !taken(name)) else { return Ok(()) };
    let mut known = Vec::new();
    for engine in &plan.engines {
        let definition = engines::find(&engine.name)?;
        let names: Vec<&str> =
            definition.index.iter().flat_map(|i| i.params.keys()).map(String::as_str).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        known.push(format!("{}: {names}", definition.name));
    }
    Err(usage_error(format!("--param {name}: no engine of the run has it; {}", known.join("; "))))
}

pub(crate) fn tool() -> record::Tool {
    record::Tool {
        name: "annvil".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        commit: option_env!("ANNVIL_COMMIT").map(str::to_owned),
        measurement_version: record::MEASUREMENT_VERSION,
    }
}

fn show(outcome: &RunOutcome, args: &RunArgs, printer: &Printer) -> anyhow::Result<()> {
    let written =
        if args.no_report || outcome.points.is_empty() { None } else { Some(report::write(&outcome.dir)?) };
    if outcome.points.is_empty() {
        printer.note("no point was finished");
    } else if printer.wants_json() {
        printer.json(&report::json(&outcome.manifest, &outcome.points))?;
    } else {
        printer.data(&report::terminal(&outcome.manifest, &outcome.points, printer.width()))?;
    }
    if let Some(written) = written {
        printer.note(&format!("report: {}", written.html.display()));
    } else {
        printer.note(&format!("run directory: {}", outcome.dir.path().display()));
    }
    Ok(())
}

/// The exit code, the strongest reason first.
fn verdict(outcome: &RunOutcome, args: &RunArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    if outcome.interrupted {
        let dir = outcome.dir.path().display();
        printer.warning(&format!("interrupted; go on with: annvil run --resume --out {dir}"));
        return Ok(Outcome::Interrupted);
    }
    if !outcome.unreachable.is_empty() {
        for (engine, why) in &outcome.unreachable {
            printer.error(&format!("{engine}: {why}"));
        }
        return Ok(Outcome::Engine);
    }
    if outcome.manifest.verdict.as_ref().is_none_or(|v| !v.valid) {
        for finding in outcome.manifest.verdict.iter().flat_map(|v| &v.findings).filter(|f| f.fatal) {
            let engine = finding.engine.as_ref().map(|e| format!("{e}: ")).unwrap_or_default();
            printer.error(&format!("not valid: {engine}{}", finding.message));
        }
        return Ok(Outcome::NotValid);
    }
    Ok(match args.min_recall.map(|floor| below_floor(outcome, floor)) {
        Some(short) if !short.is_empty() => {
            for text in short {
                printer.error(&text);
            }
            Outcome::Gate
        }
        _ => Outcome::Valid,
    })
}

/// Engines and builds that reach `floor` at no effort.
fn below_floor(outcome: &RunOutcome, floor: f64) -> Vec<String> {
    let mut best: Vec<(String, f64)> = Vec::new();
    let searched = outcome.points.iter().filter(|p| p.phase == Phase::Sweep && p.status == Status::Valid);
    for point in searched {
        let filter = point.filter.as_ref().map(|f| format!(" [{f}]")).unwrap_or_default();
        let name = format!("{} {} {}{filter}", point.dataset, point.engine, point.build);
        let recall = point.search.recall.unwrap_or(0.0);
        match best.iter_mut().find(|(known, _)| *known == name) {
            Some((_, value)) => *value = value.max(recall),
            None => best.push((name, recall)),
        }
    }
    best.into_iter()
        .filter(|(_, recall)| *recall < floor)
        .map(|(name, recall)| format!("gate: {name} reaches recall {recall:.4}, --min-recall is {floor}"))
        .collect()
}
