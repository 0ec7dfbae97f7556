//! A comparison for the terminal.

use super::{
    Because, Change, Figure, Outcome, Pair, Place, RunComparison,
    pairs::{INDEX_BYTES, P99, RECALL, THROUGHPUT, signed, size},
};
use crate::{
    format,
    table::{Cell, Table},
    terminal::{indented, render, wrapped},
};
use record::{Flag, Phase};
use types::{stats::Verdict, units};

/// Most lines of a list; `--json` holds all.
const MOST_LINES: usize = 20;

/// What `annvil compare` prints: the runs, what differs between them, the points side by side,
/// and the outcome last with the tolerance it rests on. Lines fit `width` columns (at least 60).
pub fn comparison_text(c: &RunComparison, width: usize) -> String {
    let width = width.clamp(60, 400);
    let mut parts = vec![head(c, width)];
    let mut show = |table: &Table| {
        if !table.rows.is_empty() {
            parts.push(render(table, width));
        }
    };
    show(&apart(c));
    show(&differences(c));
    for table in loading(c).into_iter().chain(searches(c)) {
        show(&table);
    }
    for (side, places) in [("A", &c.only_a), ("B", &c.only_b)] {
        if !places.is_empty() {
            let words: Vec<String> = places.iter().map(Place::words).collect();
            parts.push(list(&format!("Only in {side}"), &words, width));
        }
    }
    parts.push(result(c, width));
    parts.join("\n")
}

fn head(c: &RunComparison, width: usize) -> String {
    let mut text = String::new();
    for (side, run) in [("A", &c.a), ("B", &c.b)] {
        let verdict = run.verdict.replace('_', " ");
        text += &wrapped(
            &format!("{side}: {} ({}), {}; {verdict}", run.name, run.created_at, run.tool),
            width,
            "",
            "   ",
        );
    }
    text + &wrapped(
        &format!("Same data in both: {}. Changes are from A to B.", c.datasets.join(", ")),
        width,
        "",
        "  ",
    )
}

/// Data sets that are not the same.
fn apart(c: &RunComparison) -> Table {
    let mut table = Table::new(
        "data",
        "Data sets not compared",
        &[("~data set", "dataset"), ("part", "part"), ("~A", "a"), ("~B", "b")],
    );
    for dataset in &c.datasets_apart {
        let there = |is: bool| Cell::text(if is { "there" } else { "-" });
        if dataset.parts.is_empty() {
            let row =
                vec![Cell::text(&dataset.name), Cell::text(""), there(dataset.in_a), there(dataset.in_b)];
            table.rows.push(row);
        }
        for part in &dataset.parts {
            table.rows.push([&dataset.name, &part.item, &part.a, &part.b].map(Cell::text).into());
        }
    }
    table
}

fn differences(c: &RunComparison) -> Table {
    let mut table = Table::new(
        "differences",
        "What else differs",
        &[("~of", "subject"), ("~what", "item"), ("~A", "a"), ("~B", "b")],
    );
    for d in c.differences.iter().take(MOST_LINES) {
        table.rows.push([&d.subject, &d.item, &d.a, &d.b].map(Cell::text).into());
    }
    if let Some(more) = c.differences.len().checked_sub(MOST_LINES).filter(|more| *more > 0) {
        table.footnote(format!("{}; --json has all.", format::counted(more, "more difference")));
    }
    table
}

/// Loads and builds, a table for each engine and build, a row per figure. None of them is judged
/// but the size: each was measured once.
fn loading(c: &RunComparison) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for pair in c.pairs.iter().filter(|p| p.place.phase != Phase::Sweep) {
        let title = format!("{}: loading and building", label(c, &pair.place));
        let at = tables.iter().position(|t| t.title == title).unwrap_or_else(|| {
            let columns = [("figure", "figure"), (">A", "a"), (">B", "b"), (">change", "change")];
            tables.push(Table::new("loading", title, &columns));
            tables.len() - 1
        });
        let table = &mut tables[at];
        if let Some(why) = &pair.incomparable {
            let note = table.footnote(format!("Not compared: {why}"));
            let figure = Cell::text(if pair.place.phase == Phase::Load { "load" } else { "build" });
            table.rows.push(vec![figure.note(note), Cell::dash(), Cell::dash(), Cell::dash()]);
        }
        table.rows.extend(pair.figures.iter().filter_map(loading_row));
    }
    tables
}

fn loading_row(figure: &Figure) -> Option<Vec<Cell>> {
    let (what, show): (_, fn(f64) -> String) = match figure.name {
        "load_seconds" => ("load", units::seconds),
        "build_seconds" => ("build", units::seconds),
        "queryable_seconds" => ("to queryable", units::seconds),
        INDEX_BYTES => ("index", size),
        _ => return None,
    };
    let value = |v: Option<f64>| Cell::figure(v, show);
    Some(vec![Cell::text(what), value(figure.a), value(figure.b), change(figure)])
}

/// Engine and build, with what tells it from another of the same words, and the data set where
/// there are several.
fn label(c: &RunComparison, place: &Place) -> String {
    let mut label = place.label.clone();
    let other =
        |p: &Place| p.label == label && (&p.engine, &p.index_kind) != (&place.engine, &place.index_kind);
    if c.pairs.iter().any(|p| other(&p.place)) {
        label += &format!(" ({}, {})", place.engine, place.index_kind);
    }
    if c.datasets.len() > 1 && place.phase != Phase::Sweep {
        label += &format!(", {}", place.dataset);
    }
    label
}

fn change(figure: &Figure) -> Cell {
    Cell::figure(figure.change, |c| signed(figure.name, c))
}

/// A table for each engine, build and circumstance, a row per effort.
fn searches(c: &RunComparison) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for pair in c.pairs.iter().filter(|p| p.place.phase == Phase::Sweep) {
        let title = format!("{}: {}", label(c, &pair.place), pair.place.circumstances());
        let at = tables.iter().position(|t| t.title == title).unwrap_or_else(|| {
            tables.push(search_table(title));
            tables.len() - 1
        });
        let row = search_row(&mut tables[at], pair);
        tables[at].rows.push(row);
    }
    tables
}

fn search_table(title: String) -> Table {
    Table::new(
        "points",
        title,
        &[
            ("effort", "effort"),
            (">A 1/s", "throughput_a"),
            (">B 1/s", "throughput_b"),
            (">change", "throughput_change"),
            ("~throughput", "throughput_verdict"),
            (">recall A", "recall_a"),
            (">recall B", "recall_b"),
            ("moved", "recall_verdict"),
            (">p99 change", "latency_p99_change"),
        ],
    )
}

fn search_row(table: &mut Table, pair: &Pair) -> Vec<Cell> {
    let mut effort = Cell::text(pair.place.at.clone().unwrap_or_else(|| "-".into()));
    if let Some(why) = &pair.incomparable {
        effort = effort.note(table.footnote(format!("Not compared: {why}")));
    }
    for (side, marks) in [("A", &pair.marks_only_a), ("B", &pair.marks_only_b)] {
        for mark in marks.iter().filter(|m| !m.invalidates() && **m != Flag::ClientLimited) {
            let text = format!("Only in {side}: {}: {}", mark.name().replace('_', " "), mark.sentence());
            effort = effort.note(table.footnote(text));
        }
    }
    let figure = |name: &str| pair.figures.iter().find(|f| f.name == name);
    let mut row = vec![effort];
    let throughput = figure(THROUGHPUT);
    row.push(Cell::figure(throughput.and_then(|f| f.a), units::rate));
    row.push(Cell::figure(throughput.and_then(|f| f.b), units::rate));
    row.push(throughput.map_or_else(Cell::dash, change));
    row.push(
        throughput
            .map_or_else(Cell::dash, |f| verdict(table, f, ["larger", "smaller", "not distinguishable"])),
    );
    let recall = figure(RECALL);
    row.push(Cell::figure(recall.and_then(|f| f.a), format::recall));
    row.push(Cell::figure(recall.and_then(|f| f.b), format::recall));
    row.push(recall.map_or_else(Cell::dash, |f| verdict(table, f, ["higher", "lower", "no"])));
    row.push(figure(P99).map_or_else(Cell::dash, change));
    row
}

/// A verdict in one of three words; why there is none, or why it is the last one, in a note.
fn verdict(table: &mut Table, figure: &Figure, words: [&str; 3]) -> Cell {
    if let Some(why) = &figure.incomparable {
        return Cell::dash().note(table.footnote(format!("Not compared: {why}")));
    }
    let Some(verdict) = figure.verdict else { return Cell::dash() };
    let cell = Cell::text(match verdict {
        Verdict::Larger => words[0],
        Verdict::Smaller => words[1],
        Verdict::NotDistinguishable => words[2],
    });
    match figure.because {
        Some(Because::MeasuredOnce) => {
            cell.note(table.footnote("Measured once, and therefore never told apart."))
        }
        Some(Because::NoInterval) => cell.note(table.footnote("There is no interval to judge by.")),
        _ => cell,
    }
}

fn result(c: &RunComparison, width: usize) -> String {
    let word = match c.outcome {
        Outcome::Reproduced => "REPRODUCED: nothing moved beyond the tolerance",
        Outcome::Moved => "MOVED",
        Outcome::NotConfirmed => "NOT CONFIRMED: nothing moved that could be compared, but not all could",
    };
    let mut text = String::new();
    let (worse, other): (Vec<&Change>, Vec<&Change>) = c.changes.iter().partition(|c| c.worse);
    for (title, changes) in [("Worse in B", worse), ("Moved", other)] {
        if !changes.is_empty() {
            let lines: Vec<String> = changes.iter().map(|c| c.text.clone()).collect();
            text += &format!("{}\n", list(title, &lines, width));
        }
    }
    if !c.untold.is_empty() {
        text += &format!("{}\n", list("Could not be told", &c.untold, width));
    }
    text += &format!("Result: {word}\n");
    let n = &c.compared;
    let compared = format!("Compared: throughput at {} and recall at {} of {}", n.throughput, n.recall, n.of);
    text += &indented(&format!("{compared} search points of A."), width);
    text + &indented(&format!("Tolerance: {}", c.tolerance), width)
}

fn list(title: &str, lines: &[String], width: usize) -> String {
    let mut text = format!("{title}\n");
    for line in lines.iter().take(MOST_LINES) {
        text += &indented(line, width);
    }
    if lines.len() > MOST_LINES {
        text += &format!("  and {} more; --json has all\n", lines.len() - MOST_LINES);
    }
    text
}
