//! `annvil engine list | show | check`.

use super::{params, passwords};
use crate::{
    args::{CheckArgs, EngineCommand, ShowArgs},
    exit::Outcome,
    printer::Printer,
    stop,
};
use comfy_table::{Table, presets};
use engine::{
    Definition, Engine,
    contract::{self, CheckResult},
};
use runner::LocalEngine;
use serde_json::json;

pub(crate) fn run(command: EngineCommand, printer: &Printer) -> anyhow::Result<Outcome> {
    match command {
        EngineCommand::List => list(printer),
        EngineCommand::Show(args) => show(&args, printer),
        EngineCommand::Check(args) => check(&args, printer),
    }
}

fn list(printer: &Printer) -> anyhow::Result<Outcome> {
    let definitions = engines::definitions();
    printer.show(&definitions, || {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["NAME", "PROTOCOL", "WHAT"]);
        for d in &definitions {
            table.add_row([d.name.as_str(), d.protocol.as_str(), d.summary.as_str()]);
        }
        table.to_string()
    })?;
    Ok(Outcome::Valid)
}

fn show(args: &ShowArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    let definition = engines::find(&args.engine)?;
    let text = toml::to_string_pretty(&definition)?;
    printer.show(&definition, || text)?;
    Ok(Outcome::Valid)
}

fn check(args: &CheckArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    let definition = engines::find(&args.engine)?;
    let options = contract::Options {
        params: params::parse(&args.params)?,
        metric: args.metric,
        kind: args.kind.clone(),
        load: args.load.into(),
        least_recall: args.least_recall,
        ..contract::Options::default()
    };
    let metric = args.metric.unwrap_or(definition.capabilities.metrics[0]);
    definition.index_spec(args.kind.as_deref(), metric, &options.params, 1)?;
    let passwords = passwords::gather(&args.passwords)?;
    let folder;
    let (local, opened);
    let engine: &dyn Engine = if args.at.is_none() && definition.server.is_some() {
        folder = passable_folder()?;
        let stop = stop::flag();
        local = LocalEngine::start(&definition, args.program.as_deref(), folder.path(), &passwords, &stop)?;
        &*local.engine
    } else {
        opened = engines::open(&definition, args.at.as_deref(), &passwords)?;
        &*opened
    };
    engine.identity()?;
    let mut results = Vec::new();
    contract::run_with(engine, &definition, &options, &mut |result| {
        if !printer.wants_json() {
            printer.line(&line(result));
        }
        results.push(result.clone());
    });
    summary(&definition, &results, printer)
}

/// A folder that goes when it is dropped, and that the user of a server may pass through.
fn passable_folder() -> std::io::Result<tempfile::TempDir> {
    use std::os::unix::fs::PermissionsExt;
    let may_pass = std::fs::Permissions::from_mode(0o711);
    tempfile::Builder::new().prefix("annvil-").permissions(may_pass).tempdir()
}

fn line(result: &CheckResult) -> String {
    match &result.outcome {
        contract::Outcome::Passed => format!("passed   {:<24} {}", result.name, result.what),
        contract::Outcome::Failed(why) => format!("FAILED   {:<24} {}: {why}", result.name, result.what),
        contract::Outcome::Skipped(why) => format!("skipped  {:<24} {why}", result.name),
        contract::Outcome::Lacks(why) => format!("lacks    {:<24} {why}", result.name),
    }
}

fn summary(definition: &Definition, results: &[CheckResult], printer: &Printer) -> anyhow::Result<Outcome> {
    let count =
        |wanted: fn(&contract::Outcome) -> bool| results.iter().filter(|r| wanted(&r.outcome)).count();
    let passed = count(|o| matches!(o, contract::Outcome::Passed));
    let failed = count(|o| matches!(o, contract::Outcome::Failed(_)));
    let lacks = count(|o| matches!(o, contract::Outcome::Lacks(_)));
    let skipped = results.len() - passed - failed - lacks;
    let entries: Vec<_> = results.iter().map(entry).collect();
    let value = json!({
        "engine": definition.name, "passed": passed, "failed": failed, "lacks": lacks,
        "skipped": skipped, "checks": entries,
    });
    printer.show(&value, || {
        let lacks = if lacks == 0 { String::new() } else { format!(", {lacks} lacking by design") };
        format!("{}: {passed} checks passed, {failed} failed{lacks}, {skipped} skipped", definition.title)
    })?;
    Ok(if failed == 0 { Outcome::Valid } else { Outcome::NotValid })
}

fn entry(result: &CheckResult) -> serde_json::Value {
    let (outcome, reason) = match &result.outcome {
        contract::Outcome::Passed => ("passed", None),
        contract::Outcome::Failed(why) => ("failed", Some(why)),
        contract::Outcome::Skipped(why) => ("skipped", Some(why)),
        contract::Outcome::Lacks(why) => ("lacks", Some(why)),
    };
    json!({ "name": result.name, "what": result.what, "outcome": outcome, "reason": reason })
}
