//! `annvil run --dry-run`: the resolved plan, what will be made and dropped, unequal parameters,
//! and an estimate from a short pilot.

use crate::{exit::Outcome, printer::Printer};
use comfy_table::{Table, presets};
use runner::{Events, Preparation, RunRequest, pilot, prepare_plan, resolve};
use serde_json::json;
use types::units;

pub(crate) fn show(request: &RunRequest, events: Events<'_>, printer: &Printer) -> anyhow::Result<Outcome> {
    let with = Preparation {
        cache_dir: request.cache_dir.clone(),
        force: request.force,
        interrupted: &request.interrupted,
        events,
    };
    let prepared = prepare_plan(&request.plan, &with)?;
    let estimate = pilot::estimate(&request.plan, &prepared, &request.interrupted, events)?;
    let steps = resolve::steps(&request.plan, &prepared)?;
    let unequal = resolve::unequal_parameters(&request.plan, &prepared)?;
    let value = json!({
        "plan": request.plan, "out": request.out, "points": prepared.points, "steps": steps,
        "unequal_parameters": unequal, "estimate": estimate,
    });
    printer.show(&value, || {
        let mut text = format!(
            "plan {}: {} points, into {}\n\n",
            request.plan.name,
            prepared.points,
            request.out.display()
        );
        text.push_str(&steps_table(&steps));
        text.push_str(&unequal_text(&unequal));
        text.push_str(&estimate_text(&estimate));
        text
    })?;
    Ok(Outcome::Valid)
}

fn steps_table(steps: &[resolve::Step]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["DATA SET", "ENGINE", "INDEX", "PARAMETERS", "EFFORTS", "CLIENTS", "MAKES AND DROPS"]);
    for s in steps {
        table.add_row([&s.dataset, &s.engine, &s.kind, &s.parameters, &s.efforts, &s.clients, &s.touches]);
    }
    let mut problems: Vec<&str> = steps.iter().filter_map(|s| s.problem.as_deref()).collect();
    problems.dedup();
    let problems: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
    format!("{table}\n\n{problems}")
}

fn unequal_text(unequal: &[resolve::Unequal]) -> String {
    if unequal.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["PARAMETER", "ENGINE", "VALUE"]);
    for parameter in unequal {
        for (engine, value) in &parameter.values {
            table.add_row([&parameter.name, engine, value]);
        }
    }
    format!("Not equal between engines:\n{table}\n\n")
}

fn estimate_text(estimate: &pilot::Estimate) -> String {
    let mut text =
        String::from("Estimate, from a pilot on a part of the rows (memory and disk are upper guesses):\n");
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["DATA SET", "ENGINE", "LOAD", "BUILD", "SEARCHES", "MEMORY"]);
    let seconds = |s: Option<f64>| s.map_or_else(|| "unknown".to_owned(), units::seconds);
    for leg in &estimate.legs {
        table.add_row([
            leg.dataset.clone(),
            format!("{} {}", leg.engine, leg.build),
            seconds(leg.load_seconds),
            seconds(leg.build_seconds),
            seconds(leg.search_seconds),
            leg.memory_bytes.map_or_else(|| "unknown".to_owned(), units::bytes),
        ]);
    }
    text.push_str(&format!("{table}\n"));
    if !estimate.legs.iter().any(|leg| leg.search_seconds.is_some()) {
        text.push_str("no estimate in all: servers are not asked before a run\n");
        return text;
    }
    text.push_str(&format!(
        "in all about {}, {} on disk{}\n",
        units::seconds(estimate.seconds),
        units::bytes(estimate.disk_bytes),
        if estimate.complete { "" } else { ", without the engines whose figures are unknown" }
    ));
    text
}
