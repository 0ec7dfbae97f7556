//! The checklist of a fair comparison, filled from the records: yes, no, or not measured.

use crate::{
    best::{self, Best, FLOORS},
    format,
    table::{Cell, Table},
    view::{self, Comparison, View},
};
use record::{Phase, Point};
use std::collections::BTreeSet;

/// Rows of (question, answer, what it rests on).
pub(crate) fn table(view: &View<'_>, comparisons: &[Comparison<'_>]) -> Table {
    let mut table = Table::new(
        "checklist",
        "Checklist",
        &[("question", "question"), ("answer", "answer"), ("~rests on", "rests_on")],
    );
    let points: Vec<&Point> = view.of(Phase::Sweep).filter(|p| view::usable(p)).collect();
    let rows = [
        ("Compared at the same recall?", same_recall(comparisons)),
        ("Versions of the engines known?", versions(view)),
        ("Release dates of the versions known?", no("not recorded by this version of annvil")),
        ("More than one client?", clients(&points)),
        ("Filters?", filters(&points)),
        ("Concurrent writes?", not_measured("no phase of this run writes while it searches")),
        ("Repeated, with the spread shown?", repeats(&points)),
        ("Tail percentiles?", tails(&points)),
        ("Checked against exact truth?", truth(&points)),
        ("More than one data set?", datasets(&points)),
        ("Repeatable from what is recorded?", repeatable(view)),
    ];
    for (question, (answer, why)) in rows {
        table.rows.push(vec![Cell::text(question), Cell::text(answer), Cell::text(why)]);
    }
    table
}

type Answer = (&'static str, String);

fn yes(why: impl Into<String>) -> Answer {
    ("yes", why.into())
}

fn no(why: impl Into<String>) -> Answer {
    ("no", why.into())
}

fn not_measured(why: impl Into<String>) -> Answer {
    ("not measured", why.into())
}

fn same_recall(comparisons: &[Comparison<'_>]) -> Answer {
    if comparisons.is_empty() {
        return not_measured("no search was measured");
    }
    let all = |floor: f64| {
        comparisons
            .iter()
            .all(|c| c.series.iter().all(|s| matches!(best::best(s, floor), Best::Reached { .. })))
    };
    let reached: Vec<String> = FLOORS.iter().filter(|f| all(**f)).map(|f| format!("{f:.2}")).collect();
    if reached.is_empty() {
        no("no recall floor is reached by all engines")
    } else {
        yes(format!("recall floors reached by all: {}", reached.join(", ")))
    }
}

fn versions(view: &View<'_>) -> Answer {
    let missing: Vec<&str> = view
        .manifest
        .engines
        .values()
        .filter(|e| e.version.is_empty() || e.version == "unknown")
        .map(|e| e.title.as_str())
        .collect();
    match (view.manifest.engines.is_empty(), missing.is_empty()) {
        (true, _) => no("no engine is recorded"),
        (false, true) => yes("as each engine reports itself"),
        (false, false) => no(format!("unknown for {}", missing.join(", "))),
    }
}

fn clients(points: &[&Point]) -> Answer {
    let counts: BTreeSet<u64> = points.iter().filter_map(|p| p.clients).collect();
    let text = counts.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    match counts.last() {
        None => not_measured("no search was measured"),
        Some(1) => no("one client only"),
        Some(_) => yes(format!("clients: {text}")),
    }
}

fn filters(points: &[&Point]) -> Answer {
    let names: BTreeSet<&str> = points.iter().filter_map(|p| p.filter.as_deref()).collect();
    if names.is_empty() {
        not_measured("no filtered search in this run")
    } else {
        yes(names.into_iter().collect::<Vec<_>>().join(", "))
    }
}

fn repeats(points: &[&Point]) -> Answer {
    match points.iter().map(|p| best::repeats(p).len()).min() {
        None => not_measured("no search was measured"),
        Some(0 | 1) => no("some points were measured once"),
        Some(n) => yes(format!("{} of each point at least", format::counted(n, "repeat"))),
    }
}

fn tails(points: &[&Point]) -> Answer {
    let with = points.iter().filter(|p| p.search.latency_p99_ns.is_some()).count();
    match (points.len(), with) {
        (0, _) => not_measured("no search was measured"),
        (_, 0) => no("too few samples for p99"),
        (all, with) if with < all => {
            no(format!("p99 for {with} of {all} points; the others have too few samples"))
        }
        _ => yes("p99 of each point, over single queries"),
    }
}

fn truth(points: &[&Point]) -> Answer {
    let without = points.iter().filter(|p| p.search.recall.is_none()).count();
    match (points.len(), without) {
        (0, _) => not_measured("no search was measured"),
        (_, 0) => yes("recall of each point"),
        (all, without) => no(format!("{without} of {all} points have no recall")),
    }
}

fn datasets(points: &[&Point]) -> Answer {
    let names: BTreeSet<&str> = points.iter().map(|p| p.dataset.as_str()).collect();
    match names.len() {
        0 => not_measured("no search was measured"),
        1 => no(format!("only {}", names.first().unwrap_or(&""))),
        _ => yes(names.into_iter().collect::<Vec<_>>().join(", ")),
    }
}

fn repeatable(view: &View<'_>) -> Answer {
    let m = view.manifest;
    let hashed = !m.datasets.is_empty() && m.datasets.iter().all(|d| !d.base_hash.is_empty());
    if m.plan.is_null() || !hashed {
        return no("plan or data hashes are missing");
    }
    if m.tool.commit.is_none() {
        return no("plan, seeds and data hashes are recorded, the commit of annvil is not");
    }
    yes("plan, seeds, data hashes, commit and the raw figures of each query")
}
