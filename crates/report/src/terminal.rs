//! Tables as text, for the end of a run. No colour, no cursor control: it may go to a file.

use crate::{
    format, manifest,
    table::Table,
    tables,
    view::{self, Selection, View},
};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement};
use record::{Manifest, Phase, Point};

/// Above this, the points of a comparison are left to the page and the CSV.
const MOST_POINTS: usize = 40;

/// What `annvil run` and `annvil report` print: set-up, loading, all points (where there are not too many), best
/// throughput, what is not valid, and the verdict last. Lines fit `width` columns (at least 60).
pub fn terminal(manifest: &Manifest, points: &[Point], width: usize) -> String {
    let view = View::new(manifest, points, &Selection::default());
    let width = width.clamp(60, 400);
    let mut parts = vec![head(&view, width)];
    let versions = view.measurement_versions();
    if versions.len() > 1 {
        parts.push(
            "Points of different measurement versions: each version stands in tables of its own.\n".into(),
        );
    }
    let mut show = |table: &Table| {
        if !table.rows.is_empty() {
            parts.push(render(table, width));
        }
    };
    show(&tables::loading::table(&view));
    let comparisons = view.comparisons();
    for comparison in &comparisons {
        let sweep = tables::sweep::table(comparison);
        if sweep.rows.len() <= MOST_POINTS {
            for mut part in sweep.split(1) {
                // The parts are headed by engine and build; with several comparisons that is not enough.
                if comparisons.len() > 1 {
                    part.title = format!("{} ({})", part.title, comparison.title);
                }
                show(&part);
            }
        }
    }
    for comparison in &comparisons {
        show(&tables::floors::wide(comparison));
    }
    show(&tables::invalid::table(&view));
    let (word, reasons) = manifest::verdict(manifest);
    let mut verdict = format!("Result: {word}\n");
    for reason in reasons {
        verdict += &indented(&reason, width);
    }
    parts.push(verdict);
    parts.join("\n")
}

fn head(view: &View<'_>, width: usize) -> String {
    let m = view.manifest;
    let mut text = format!("{} ({}), {} {}\n", m.name, m.created_at, m.tool.name, m.tool.version);
    for d in &m.datasets {
        let rows = types::units::count(d.rows);
        text +=
            &format!("{}: {rows} x {} {}, {}, {} queries\n", d.name, d.dim, d.element, d.metric, d.queries);
    }
    let facts: Vec<String> =
        manifest::machine_summary(m).into_iter().map(|(k, v)| format!("{k} {v}")).collect();
    if !facts.is_empty() {
        text += &wrapped(&facts.join(", "), width, "", "  ");
    }
    let sweep = view.of(Phase::Sweep).count();
    let usable = view.of(Phase::Sweep).filter(|p| view::usable(p)).count();
    text + &format!("{}, {usable} valid\n", format::counted(sweep, "search point"))
}

/// A table as text at most `width` columns wide, with its heading and notes. Where the first
/// column is long and the others leave it little room, its texts get lines of their own.
pub(crate) fn render(table: &Table, width: usize) -> String {
    let shown: Vec<usize> = (0..table.columns.len()).filter(|&c| !table.columns[c].detail).collect();
    let room = width.saturating_sub(shown.iter().skip(1).map(|&c| natural(table, c) + GAP).sum());
    let stacked = table.columns[0].wraps && room < natural(table, 0).min(28) + GAP;
    let mut text = format!("{}\n", table.title);
    if stacked {
        // Each row starts with an empty line, into which the text of the first column goes.
        let mut labels = table.rows.iter().map(|row| row[0].marked().replace('\n', " "));
        for line in body(table, &shown[1..], width - 2, true) {
            text += &match line.is_empty() {
                true => wrapped(&labels.next().unwrap_or_default(), width, "", ""),
                false => format!("  {line}\n"),
            };
        }
    } else {
        text.extend(body(table, &shown, width, false).map(|line| line + "\n"));
    }
    for (at, note) in table.footnotes.iter().enumerate() {
        text += &indented(&format!("[{}] {note}", at + 1), width);
    }
    text
}

/// Columns between two columns.
const GAP: usize = 2;

/// The width that a column needs where nothing is broken.
fn natural(table: &Table, column: usize) -> usize {
    let cells = table
        .rows
        .iter()
        .flat_map(|row| row[column].marked().lines().map(|line| line.chars().count()).collect::<Vec<_>>());
    cells.chain([table.columns[column].title.chars().count()]).max().unwrap_or_default()
}

/// Header and rows of the columns `shown`, line by line.
fn body(table: &Table, shown: &[usize], width: usize, gap_above: bool) -> impl Iterator<Item = String> {
    let mut drawn = comfy_table::Table::new();
    drawn.load_style(comfy_table::presets::NOTHING);
    drawn.set_content_arrangement(ContentArrangement::Dynamic);
    drawn.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    drawn.set_header(shown.iter().map(|&c| table.columns[c].title.clone()));
    let above = if gap_above { "\n" } else { "" };
    for row in &table.rows {
        drawn.add_row(shown.iter().map(|&c| format!("{above}{}", row[c].marked())));
    }
    let whole =
        shown.iter().filter(|&&c| !table.columns[c].wraps).map(|&c| natural(table, c) + GAP).sum::<usize>();
    for (at, &c) in shown.iter().enumerate() {
        if let Some(column) = drawn.column_mut(at) {
            column.set_padding((0, GAP as u16));
            if table.columns[c].numeric {
                column.set_cell_alignment(CellAlignment::Right);
            }
            // On a very narrow terminal figures are broken too, rather than running over.
            if !table.columns[c].wraps && whole <= width {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    }
    let lines: Vec<String> = drawn.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.into_iter()
}

/// A note, indented by two.
pub(crate) fn indented(text: &str, width: usize) -> String {
    wrapped(text, width, "  ", "      ")
}

/// A paragraph broken at words, with what stands before its first and its other lines.
pub(crate) fn wrapped(text: &str, width: usize, first: &str, others: &str) -> String {
    let (mut out, mut line, mut empty) = (String::new(), first.to_owned(), true);
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            out += &format!("{line}\n");
            line = others.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += word;
        empty = false;
    }
    out + &line + "\n"
}
