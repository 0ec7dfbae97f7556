//! Loading and building: what it took to get a queryable index, and how large it is.

use super::mark;
use crate::{
    format,
    table::{Cell, Table},
    view::{self, View},
};
use record::{Phase, Point};
use serde_json::Value;
use std::collections::BTreeMap;
use types::units;

/// A row per engine and build.
pub(crate) fn table(view: &View<'_>) -> Table {
    let mut table = Table::new(
        "loading",
        "Loading and building",
        &[
            ("~engine and build", "engine_build"),
            ("dataset?", "dataset"),
            ("index", "index_kind_read"),
            (">load", "load_s"),
            (">build", "build_s"),
            (">ready", "ready_s"),
            (">to queryable", "queryable_s"),
            (">rows/s", "load_rows_per_s"),
            (">index", "index_bytes"),
            (">table", "table_bytes"),
            (">memory after load?", "load_memory_bytes"),
            (">peak memory", "memory_peak_bytes"),
            (">memory after build?", "memory_after_bytes"),
            (">disk?", "disk_bytes"),
        ],
    );
    for (load, build) in pairs(view) {
        let row = row(&mut table, load, build);
        table.rows.extend(row);
    }
    table
}

/// Loads with the builds that follow from them. An engine may have one load per build, or one
/// load that several builds share.
fn pairs<'a>(view: &View<'a>) -> Vec<(Option<&'a Point>, Option<&'a Point>)> {
    let loads: Vec<&Point> = view.of(Phase::Load).collect();
    let builds: Vec<&Point> = view.of(Phase::Build).collect();
    let base = |a: &Point, b: &Point| {
        (&a.engine, &a.engine_version, &a.dataset_hash) == (&b.engine, &b.engine_version, &b.dataset_hash)
    };
    let same = |a: &Point, b: &Point| base(a, b) && (&a.index_kind, &a.build) == (&b.index_kind, &b.build);
    let mut pairs: Vec<(Option<&Point>, Option<&Point>)> = builds
        .iter()
        .map(|&build| {
            let own = loads.iter().find(|load| same(load, build));
            let shared = loads.iter().find(|load| base(load, build) && load.build.is_empty());
            (own.or(shared).copied(), Some(build))
        })
        .collect();
    for load in loads {
        if !pairs.iter().any(|(used, _)| used.is_some_and(|used| used.key == load.key)) {
            pairs.push((Some(load), None));
        }
    }
    pairs
}

fn row(table: &mut Table, load: Option<&Point>, build: Option<&Point>) -> Option<Vec<Cell>> {
    let named = build.or(load)?;
    let mut label = Cell::text(format::label(named));
    for point in [load, build].into_iter().flatten() {
        if let Some(reason) = view::why_not(point) {
            label = label.note(table.footnote(format!("{} not valid: {reason}", phase(point))));
        }
        let marks: Vec<_> = point.flags.iter().copied().filter(|f| !f.invalidates()).collect();
        label = mark(table, label, &marks);
    }
    let figures = load.map(|p| &p.load);
    let built = build.map(|p| &p.built);
    let seconds = |value: Option<f64>| Cell::figure(value, units::seconds);
    let bytes = |value: Option<u64>| Cell::figure(value, units::bytes);
    let mut build_cell = seconds(built.and_then(|b| b.build_seconds));
    if built.and_then(|b| b.built_during_load) == Some(true) {
        build_cell = build_cell
            .note(table.footnote("The index is built while rows are inserted; the load holds most of it."));
    }
    let peak = bytes(built.and_then(|b| b.memory_peak_bytes));
    if !peak.raw.is_empty() {
        table.footnote(
            "Peak memory is that of the build: anonymous and shared memory of a server that annvil started; for an embedded engine the growth of annvil's own anonymous memory since before the load.",
        );
    }
    Some(vec![
        label,
        Cell::text(&named.dataset),
        index_cell(table, named, build),
        seconds(figures.and_then(|l| l.load_seconds)),
        build_cell,
        seconds(built.and_then(|b| b.ready_seconds)),
        seconds(built.and_then(|b| b.queryable_seconds)),
        Cell::figure(figures.and_then(|l| l.load_rows_per_second), units::rate),
        bytes(built.and_then(|b| b.index_bytes)),
        bytes(built.and_then(|b| b.table_bytes)),
        bytes(figures.and_then(|l| l.load_memory_bytes)),
        peak,
        bytes(built.and_then(|b| b.memory_after_bytes)),
        bytes(built.and_then(|b| b.disk_bytes)),
    ])
}

fn phase(point: &Point) -> &'static str {
    if point.phase == Phase::Load { "Load" } else { "Build" }
}

/// The kind as read back from the engine, with a note where it, or a parameter, is not what was
/// asked for.
fn index_cell(table: &mut Table, named: &Point, build: Option<&Point>) -> Cell {
    let Some(read) = build.and_then(|b| b.built.index_kind_read.as_deref()) else {
        let note = table.footnote("The kind of index could not be read back; it is the one asked for.");
        return Cell::new(&named.index_kind, "").note(note);
    };
    let mut cell = Cell::text(read);
    if read != named.index_kind {
        let note = format!("Asked for {}, the engine says {read}.", named.index_kind);
        cell = cell.note(table.footnote(note));
    }
    let none = BTreeMap::new();
    let params = build.and_then(|b| b.built.params_read.as_ref()).unwrap_or(&none);
    for (name, asked) in &named.params {
        if let Some(found) = params.get(name).filter(|found| !equal(asked, found)) {
            let note = format!(
                "Asked for {name}={}, the engine says {name}={}.",
                format::plain(asked),
                format::plain(found)
            );
            cell = cell.note(table.footnote(note));
        }
    }
    cell
}

/// Equal as a reader would say: servers give numbers back as texts.
fn equal(a: &Value, b: &Value) -> bool {
    format::plain(a).eq_ignore_ascii_case(&format::plain(b))
        || matches!((a.as_f64(), b.as_f64()), (Some(x), Some(y)) if x == y)
}
