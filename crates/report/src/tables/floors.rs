//! Best throughput at each recall floor.

use super::mark;
use crate::{
    best::{self, Best, FLOORS},
    format,
    table::{Cell, Table},
    view::{Comparison, Series},
};
use record::Point;
use types::{stats, units};

/// A row per engine and build, a column per floor: throughput, range of its repeats, effort.
pub(crate) fn wide(comparison: &Comparison<'_>) -> Table {
    let titles: Vec<String> = FLOORS.iter().map(|floor| format!(">recall ≥ {floor:.2}")).collect();
    let keys: Vec<String> = FLOORS.iter().map(|floor| format!("queries_per_second_at_{floor:.2}")).collect();
    let mut columns = vec![("~engine and build", "engine_build")];
    columns.extend(titles.iter().zip(&keys).map(|(title, key)| (title.as_str(), key.as_str())));
    let heading = format!("Best throughput (queries/s) by recall: {}", comparison.title);
    let mut table = Table::new("best-throughput", heading, &columns);
    for series in &comparison.series {
        let mut label = Cell::text(&series.label);
        if series.exact() {
            label = label.note(table.footnote("The exact control: it scans every row."));
        }
        let mut row = vec![label];
        row.extend(FLOORS.map(|floor| cell(&mut table, series, floor)));
        table.rows.push(row);
    }
    tie_notes(&mut table, comparison);
    table
}

fn cell(table: &mut Table, series: &Series<'_>, floor: f64) -> Cell {
    match best::best(series, floor) {
        Best::Reached { point, faster_limited } => {
            let throughput = point.search.throughput;
            let mut cell = Cell::figure(throughput, units::rate);
            cell.lines.extend(range(point));
            cell.lines.extend(format::effort(point));
            cell = mark(table, cell, &point.flags);
            if let Some(faster) = faster_limited {
                let note = format!(
                    "A higher figure ({} queries/s at least, {}) was limited by the client and is not used.",
                    units::rate(faster.search.throughput.unwrap_or_default()),
                    at(faster),
                );
                cell = cell.note(table.footnote(note));
            }
            cell
        }
        Best::OnlyLimited(point) => {
            let note = format!(
                "Only measured where the client was the limit: at least {} queries/s ({}); the engine's own figure is unknown.",
                units::rate(point.search.throughput.unwrap_or_default()),
                at(point),
            );
            Cell::dash().note(table.footnote(note))
        }
        Best::NotReached(point) => {
            let recall = point.search.recall.map_or_else(|| "-".into(), format::recall);
            let note = format!("Not reached by {}: best {recall} at {}.", series.label, at(point));
            Cell::dash().note(table.footnote(note))
        }
        Best::Nothing => {
            let note = format!("No valid point with a recall for {}.", series.label);
            Cell::dash().note(table.footnote(note))
        }
    }
}

/// The effort, or a word for an index that has none.
fn at(point: &Point) -> String {
    format::effort(point).unwrap_or_else(|| "its only effort".into())
}

fn range(point: &Point) -> Option<String> {
    let repeats = best::repeats(point);
    let range = stats::range(repeats)?;
    Some(if repeats.len() > 1 {
        format!("{} to {}", units::rate(range.low), units::rate(range.high))
    } else {
        "1 repeat".into()
    })
}

fn tie_notes(table: &mut Table, comparison: &Comparison<'_>) {
    let label = |at: usize| comparison.series[at].label.as_str();
    for floor in FLOORS {
        let ties = best::ties(comparison, floor);
        for (a, others) in by_first(&ties.overlapping) {
            let names: Vec<&str> = others.iter().map(|&at| label(at)).collect();
            table.footnote(format!(
                "Recall ≥ {floor:.2}: {} is not distinguishable from {} (their repeats overlap).",
                label(a),
                names.join(", ")
            ));
        }
        if comparison.series.len() > 1 {
            for at in ties.single {
                table.footnote(format!(
                    "{} was measured once, so nothing says how far apart it is from others.",
                    label(at)
                ));
            }
        }
    }
}

fn by_first(pairs: &[(usize, usize)]) -> Vec<(usize, Vec<usize>)> {
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for &(a, b) in pairs {
        match groups.last_mut() {
            Some((first, others)) if *first == a => others.push(b),
            _ => groups.push((a, vec![b])),
        }
    }
    groups
}

/// The same as a row per engine, build and floor, for machines.
pub(crate) fn long(comparison: &Comparison<'_>) -> Table {
    let mut table = Table::new(
        "best-throughput",
        &comparison.title,
        &[
            ("engine", "engine"),
            ("build", "build"),
            (">floor", "recall_floor"),
            ("outcome", "outcome"),
            (">queries/s", "queries_per_second"),
            (">lowest", "queries_per_second_low"),
            (">highest", "queries_per_second_high"),
            ("effort", "effort_name"),
            (">effort", "effort"),
            (">recall", "recall"),
            ("flags", "flags"),
            ("not distinguishable from", "not_distinguishable_from"),
            ("key", "point_key"),
        ],
    );
    for floor in FLOORS {
        let ties = best::ties(comparison, floor);
        for (at, series) in comparison.series.iter().enumerate() {
            let (outcome, point) = match best::best(series, floor) {
                Best::Reached { point, .. } => ("reached", Some(point)),
                Best::OnlyLimited(point) => ("client_limited", Some(point)),
                Best::NotReached(point) => ("not_reached", Some(point)),
                Best::Nothing => ("no_valid_point", None),
            };
            let tied: Vec<&str> = ties
                .overlapping
                .iter()
                .filter_map(|&(a, b)| {
                    if a == at {
                        Some(b)
                    } else if b == at {
                        Some(a)
                    } else {
                        None
                    }
                })
                .map(|other| comparison.series[other].label.as_str())
                .collect();
            let mut row = vec![Cell::text(&series.points[0].engine), Cell::text(&series.points[0].build)];
            row.push(Cell::text(format!("{floor:.2}")));
            row.push(Cell::text(outcome));
            row.extend(long_figures(point, outcome == "reached"));
            row.push(Cell::text(tied.join("; ")));
            row.push(Cell::text(point.map(|p| p.key.clone()).unwrap_or_default()));
            table.rows.push(row);
        }
    }
    table
}

/// Throughput stands only where it counts: not for a point below the floor.
fn long_figures(point: Option<&Point>, reached: bool) -> [Cell; 7] {
    let figure = |value: Option<f64>| Cell::figure(value.filter(|_| reached), units::rate);
    let range = point.and_then(|p| stats::range(best::repeats(p)));
    [
        figure(point.and_then(|p| p.search.throughput)),
        figure(range.map(|r| r.low)),
        figure(range.map(|r| r.high)),
        Cell::text(point.and_then(|p| p.effort_name.clone()).unwrap_or_default()),
        Cell::figure(point.and_then(|p| p.effort), |v| v.to_string()),
        Cell::figure(point.and_then(|p| p.search.recall), format::recall),
        point.map_or_else(|| Cell::new("", ""), super::flag_names),
    ]
}
