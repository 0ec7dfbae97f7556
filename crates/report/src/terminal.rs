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
    let mut parts = vec![head(&view)];
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
            for part in sweep.split(1) {
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

fn head(view: &View<'_>) -> String {
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
        text += &format!("{}\n", facts.join(", "));
    }
    let sweep = view.of(Phase::Sweep).count();
    let usable = view.of(Phase::Sweep).filter(|p| view::usable(p)).count();
    text + &format!("{}, {usable} valid\n", format::counted(sweep, "search point"))
}

/// A table as text at most `width` columns wide, with its heading and notes.
pub(crate) fn render(table: &Table, width: usize) -> String {
    let shown: Vec<usize> = (0..table.columns.len()).filter(|&c| !table.columns[c].detail).collect();
    let mut drawn = comfy_table::Table::new();
    drawn.load_style(comfy_table::presets::NOTHING);
    drawn.set_content_arrangement(ContentArrangement::Dynamic);
    drawn.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    drawn.set_header(shown.iter().map(|&c| table.columns[c].title.clone()));
    for row in &table.rows {
        drawn.add_row(shown.iter().map(|&c| row[c].marked()));
    }
    for (at, &c) in shown.iter().enumerate() {
        if let Some(column) = drawn.column_mut(at) {
            column.set_padding((0, 2));
            if table.columns[c].numeric {
                column.set_cell_alignment(CellAlignment::Right);
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    }
    let body: String = drawn.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    let mut text = format!("{}\n{body}", table.title);
    for (at, note) in table.footnotes.iter().enumerate() {
        text += &indented(&format!("[{}] {note}", at + 1), width);
    }
    text
}

/// A paragraph, indented by two and broken at words.
fn indented(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut line = String::from(" ");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > width && !line.trim().is_empty() {
            out += &format!("{line}\n");
            line = String::from("     ");
        }
        line += &format!(" {word}");
    }
    out + &line + "\n"
}
