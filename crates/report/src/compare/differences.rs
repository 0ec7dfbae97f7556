//! What else differs between two runs: tool, machine, engines, plan.

use super::Difference;
use crate::manifest;
use record::{EngineEntry, Manifest};
use serde_json::Value;
use std::collections::BTreeMap;

/// Name by value, in a stable order.
type Facts = BTreeMap<String, String>;

/// Every difference that can explain a figure, the likeliest first.
pub(super) fn between(a: &Manifest, b: &Manifest) -> Vec<Difference> {
    let mut all = Vec::new();
    for (name, x) in &a.engines {
        if let Some(y) = b.engines.get(name) {
            add(&mut all, &format!("engine {name}"), &engine(x), &engine(y));
        }
    }
    let machine = |m: &Manifest| manifest::machine_summary(m).into_iter().collect::<Facts>();
    add(&mut all, "machine", &machine(a), &machine(b));
    let tool = |m: &Manifest| -> Facts {
        let commit = m.tool.commit.clone().unwrap_or_else(|| "unknown".into());
        [("version".to_owned(), m.tool.version.clone()), ("commit".to_owned(), commit)].into()
    };
    add(&mut all, "tool", &tool(a), &tool(b));
    add(&mut all, "plan", &plan(&a.plan), &plan(&b.plan));
    all
}

fn add(all: &mut Vec<Difference>, subject: &str, a: &Facts, b: &Facts) {
    let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
    names.sort();
    names.dedup();
    let of = |facts: &Facts, name: &str| facts.get(name).cloned().unwrap_or_else(|| "-".into());
    for name in names {
        let (in_a, in_b) = (of(a, name), of(b, name));
        if in_a != in_b {
            all.push(Difference { subject: subject.to_owned(), item: name.clone(), a: in_a, b: in_b });
        }
    }
}

fn engine(e: &EngineEntry) -> Facts {
    let mut facts: Facts = [
        ("version", e.version.clone()),
        ("source", e.source.clone()),
        ("client", e.client.clone()),
        ("protocol", e.protocol.clone()),
        ("address", e.address.clone().unwrap_or_else(|| "-".into())),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let named = |kind: &str, name: &str| format!("{kind} {name}");
    facts.extend(manifest::settings(e).into_iter().map(|s| (named("setting", &s.name), s.value)));
    facts.extend(
        manifest::flatten(&e.definition).into_iter().map(|(name, value)| (named("definition", &name), value)),
    );
    facts
}

/// The plan without what only names it.
fn plan(plan: &Value) -> Facts {
    let mut facts: Facts = manifest::flatten(plan).into_iter().collect();
    facts.retain(|name, _| name != "name" && name != "summary");
    facts
}
