//! Every point of a comparison, by engine, build and effort.

use super::flag_names;
use crate::{
    format,
    table::{Cell, Table},
    view::{self, Comparison},
};
use record::{Flag, Point};
use types::units;

/// A row per point; a point that is not valid has dashes and its reason below.
pub(crate) fn table(comparison: &Comparison<'_>) -> Table {
    let mut table = Table::new(
        "points",
        format!("All points: {}", comparison.title),
        &[
            ("~engine and build", "engine_build"),
            ("effort", "effort"),
            (">recall", "recall"),
            (">95 % interval?", "recall_interval"),
            (">p5", "recall_p5"),
            (">min", "recall_min"),
            (">id overlap?", "id_overlap"),
            (">queries/s", "queries_per_s"),
            (">spread", "throughput_spread"),
            (">p50", "latency_p50_ns"),
            (">p95", "latency_p95_ns"),
            (">p99", "latency_p99_ns"),
            ("~flags", "flags"),
        ],
    );
    for series in &comparison.series {
        for point in &series.points {
            let mut row = vec![Cell::text(&series.label)];
            row.extend(cells(&mut table, point));
            table.rows.push(row);
        }
    }
    table
}

fn cells(table: &mut Table, point: &Point) -> Vec<Cell> {
    let effort = format::effort(point);
    let mut effort = Cell::new(effort.clone().unwrap_or_else(|| "-".into()), effort.unwrap_or_default());
    let why_not = view::why_not(point);
    if let Some(reason) = &why_not {
        effort = effort.note(table.footnote(format!("Not valid: {reason}.").replace("..", ".")));
    }
    let mut flags = flag_names(point);
    for flag in point.flags.iter().filter(|f| !f.invalidates()) {
        let figures = short_answers(*flag, point).unwrap_or_default();
        let text = format!("{}{figures}: {}", flag.name().replace('_', " "), flag.sentence());
        flags = flags.note(table.footnote(text));
    }
    // A point that is not valid may still hold figures; they are in points.csv, not here, where
    // they would be read as results.
    let s = &point.search;
    let ok = why_not.is_none();
    let recall = |value: Option<f64>| Cell::figure(value.filter(|_| ok), format::recall);
    let latency = |value: Option<u64>| Cell::figure(value.filter(|_| ok), |ns| format::latency(ns as f64));
    let interval = s.recall_low.zip(s.recall_high).filter(|_| ok).map_or_else(Cell::dash, |(low, high)| {
        Cell::new(format!("{} to {}", format::recall(low), format::recall(high)), format!("{low}..{high}"))
    });
    let mut mean = recall(s.recall);
    if ok && s.recall.is_none() {
        let nothing_passes = s.recall_excluded.is_some_and(|n| n > 0) && s.recall_queries == Some(0);
        let why = if nothing_passes {
            "No row qualifies for any query: there is no recall, and an empty answer is right."
        } else {
            Flag::NoRecall.sentence()
        };
        mean = Cell::new("n/a", "").note(table.footnote(why));
    }
    vec![
        effort,
        mean,
        interval,
        recall(s.recall_p5),
        recall(s.recall_min),
        recall(s.id_overlap),
        Cell::figure(s.throughput.filter(|_| ok), units::rate),
        Cell::figure(s.throughput_spread.filter(|_| ok), format::percent),
        latency(s.latency_p50_ns),
        latency(s.latency_p95_ns),
        latency(s.latency_p99_ns),
        flags,
    ]
}

/// How short the answers are, where that is the mark.
fn short_answers(flag: Flag, point: &Point) -> Option<String> {
    let (share, length) = point.search.short_share.zip(point.search.mean_length)?;
    let text = format!(" ({} of answers, {length:.1} rows on average)", format::percent(share));
    (flag == Flag::ShortAnswers).then_some(text)
}
