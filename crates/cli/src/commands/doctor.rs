//! `annvil doctor`: the machine, the engines at hand, and the harness's own ceiling.

use crate::{args::DoctorArgs, exit::Outcome, printer::Printer, stop};
use engine::Definition;
use serde_json::{Value, json};
use std::time::Duration;
use types::units;

/// Client counts at which the ceiling is measured, beside the number of CPUs.
const CEILING_CLIENTS: [usize; 2] = [1, 2];

pub(crate) fn run(args: &DoctorArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    if !(0.0..=600.0).contains(&args.ceiling) {
        return Err(crate::exit::usage_error("--ceiling takes 0 to 600 seconds"));
    }
    let machine = host::Machine::read();
    let reached: Vec<Value> = engines::definitions().iter().map(reach).collect();
    let ceilings = if args.ceiling > 0.0 { ceilings(args.ceiling)? } else { Vec::new() };
    let value = json!({ "machine": machine, "engines": reached, "ceiling": ceilings });
    printer.show(&value, || text(&machine, &reached, &ceilings))?;
    Ok(Outcome::Valid)
}

fn reach(definition: &Definition) -> Value {
    let identity =
        engines::open(definition, None, &engines::Passwords::default()).and_then(|engine| engine.identity());
    match identity {
        Ok(identity) => {
            json!({ "engine": definition.name, "version": identity.version, "source": identity.source })
        }
        Err(error) => json!({ "engine": definition.name, "error": error.to_string() }),
    }
}

/// Queries a second that the harness can send and record, against an engine that answers at once.
fn ceilings(seconds: f64) -> anyhow::Result<Vec<Value>> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut counts: Vec<usize> =
        CEILING_CLIENTS.iter().copied().filter(|&c| c <= cpus).chain([cpus]).collect();
    counts.sort_unstable();
    counts.dedup();
    let share = Duration::from_secs_f64(seconds / counts.len() as f64);
    let mut found = Vec::new();
    for clients in counts {
        let rate = runner::ceiling(clients, share, &stop::flag())?;
        found.push(
            json!({ "clients": clients, "queries_per_second": rate, "per_client": rate / clients as f64 }),
        );
    }
    Ok(found)
}

fn text(machine: &host::Machine, engines: &[Value], ceilings: &[Value]) -> String {
    let mut text = String::new();
    for (name, value) in machine.describe() {
        text.push_str(&format!("{name:<18} {value}\n"));
    }
    text.push_str("\nengines inside this program:\n");
    for engine in engines {
        let name = engine["engine"].as_str().unwrap_or_default();
        let state = match (engine["version"].as_str(), engine["error"].as_str()) {
            (Some(version), _) => version.to_owned(),
            (None, error) => format!("cannot be used: {}", error.unwrap_or("unknown")),
        };
        text.push_str(&format!("  {name:<12} {state}\n"));
    }
    if !ceilings.is_empty() {
        text.push_str("\nthe harness's own ceiling (null engine, k = 10, all recording on):\n");
    }
    for ceiling in ceilings {
        text.push_str(&format!(
            "  {} clients: {} queries/s, {} per client\n",
            ceiling["clients"],
            units::rate(ceiling["queries_per_second"].as_f64().unwrap_or(0.0)),
            units::rate(ceiling["per_client"].as_f64().unwrap_or(0.0)),
        ));
    }
    text
}
