//! What is not valid, and what must be known about what is.

use crate::{
    format,
    table::{Cell, Table},
    view::{self, View},
};
use record::{Flag, Point, Status};
use std::collections::BTreeMap;

/// Findings of the guards, points without usable figures, and marks on points with them.
pub(crate) fn table(view: &View<'_>) -> Table {
    let mut table = Table::new(
        "not-valid",
        "What is not valid, and what to know",
        &[("what", "what"), ("~where", "where"), ("~why", "why")],
    );
    for finding in view.manifest.verdict.iter().flat_map(|v| &v.findings) {
        let what = if finding.fatal { "run not valid" } else { "note" };
        let place = finding.engine.clone().unwrap_or_else(|| "the run".into());
        table.rows.push(row(what, place, &finding.message));
    }
    for dataset in &view.manifest.datasets {
        for check in &dataset.forced {
            table.rows.push(row("overridden by --force", format!("data set {}", dataset.name), check));
        }
    }
    if view.missing > 0 {
        let what = format::counted(view.missing, "planned point");
        table.rows.push(row(
            "not measured",
            what,
            "The run has not come to them; go on with annvil run --resume.",
        ));
    }
    if view.unplanned > 0 {
        let what = format::counted(view.unplanned, "record");
        table.rows.push(row("not shown", what, "They are of an earlier plan and not part of this result."));
    }
    for point in &view.points {
        if let Some(reason) = view::why_not(point) {
            let place = format!("{} ({})", format::place(point), phase_name(point));
            table.rows.push(row(what(point), place, &reason));
        }
    }
    let mut marked: BTreeMap<Flag, Vec<String>> = BTreeMap::new();
    for point in view.points.iter().filter(|p| view::usable(p)) {
        for flag in &point.flags {
            marked.entry(*flag).or_default().push(format::place(point));
        }
    }
    for (flag, places) in marked {
        let what = format!("flag: {}", flag.name().replace('_', " "));
        table.rows.push(row(&what, shortened(&places), flag.sentence()));
    }
    table
}

fn row(what: &str, place: String, why: &str) -> Vec<Cell> {
    vec![Cell::text(what), Cell::text(place), Cell::text(why)]
}

fn what(point: &Point) -> &'static str {
    match point.status {
        Status::Failed => "failed",
        Status::Skipped => "skipped",
        _ => "not valid",
    }
}

fn phase_name(point: &Point) -> String {
    serde_json::to_value(point.phase).ok().as_ref().map(format::plain).unwrap_or_default()
}

/// At most four places; the others are in points.csv.
fn shortened(places: &[String]) -> String {
    let shown = places.iter().take(4).cloned().collect::<Vec<_>>().join("; ");
    match places.len().saturating_sub(4) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}
