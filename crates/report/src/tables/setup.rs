//! The set-up in a few lines: what ran, when, on what.

use crate::{
    format, manifest,
    table::{Cell, Table},
    view::View,
};
use record::{Phase, Point};
use std::collections::BTreeSet;
use types::units;

/// Rows of (item, value).
pub(crate) fn table(view: &View<'_>) -> Table {
    let m = view.manifest;
    let mut table = Table::new("set-up", "Set-up", &[("", "item"), ("~", "value")]);
    let mut add = |item: &str, value: String| table.rows.push(vec![Cell::text(item), Cell::text(value)]);
    add("run", m.name.clone());
    add("date", m.created_at.clone());
    add("tool", manifest::tool(m));
    for d in &m.datasets {
        let shape = format!("{} x {} {}", units::count(d.rows), d.dim, d.element);
        add("dataset", format!("{}: {shape}, {}, {} queries", d.name, d.metric, units::count(d.queries)));
        add("dataset hash", d.base_hash.clone());
        add("truth", d.truth_hash.as_ref().map_or(d.truth.clone(), |hash| format!("{} ({hash})", d.truth)));
    }
    for engine in m.engines.values() {
        add("engine", format!("{} {} ({})", engine.title, engine.version, engine.source));
    }
    for (item, value) in manifest::machine_summary(m) {
        add(&item, value);
    }
    let sweep: Vec<&Point> = view.of(Phase::Sweep).collect();
    let list = |values: BTreeSet<u64>| values.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    add("k", list(sweep.iter().filter_map(|p| p.k).collect()));
    add("clients", list(sweep.iter().filter_map(|p| p.clients).collect()));
    add(
        "repeats",
        list(
            sweep
                .iter()
                .filter_map(|p| p.search.throughput_repeats.as_ref())
                .map(|r| r.len() as u64)
                .collect(),
        ),
    );
    let mut efforts: Vec<(String, BTreeSet<u64>)> = Vec::new();
    for point in &sweep {
        if let (Some(name), Some(effort)) = (&point.effort_name, point.effort) {
            let name = format!("{} {name}", point.engine_title);
            match efforts.iter_mut().find(|(other, _)| *other == name) {
                Some((_, values)) => drop(values.insert(effort)),
                None => efforts.push((name, [effort].into())),
            }
        }
    }
    for (name, values) in efforts {
        add("efforts swept", format!("{name}: {}", list(values)));
    }
    add("points", format::counted(view.points.len(), "point"));
    table.rows.retain(|row| !row[1].raw.is_empty());
    table
}
