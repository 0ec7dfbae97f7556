//! Writes the report of a run into its directory.

use crate::{
    ChartData, ReportError, csv, html, svg, tables,
    view::{Selection, View},
};
use record::RunDir;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The files of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The page.
    pub html: PathBuf,
    /// SVG files.
    pub charts: Vec<PathBuf>,
    /// CSV files; the last one is `points.csv`.
    pub tables: Vec<PathBuf>,
}

/// Writes `report.html`, `charts/*.svg` and `tables/*.csv` into the run directory.
///
/// # Errors
/// As [`write_selected`].
pub fn write(run: &RunDir) -> Result<Written, ReportError> {
    write_selected(run, &Selection::default())
}

/// [`write()`] of a part of the run.
///
/// # Errors
/// Where the run cannot be read, holds no point of the selection, mixes measurement versions, or a
/// file cannot be written. Nothing is written before all that is made.
pub fn write_selected(run: &RunDir, selection: &Selection) -> Result<Written, ReportError> {
    let manifest = run.manifest()?;
    let points = run.points()?;
    let view = View::new(&manifest, &points, selection);
    if view.points.is_empty() {
        return Err(nothing(run, selection, &points));
    }
    let versions = view.measurement_versions();
    if versions.len() > 1 {
        let list: Vec<String> =
            versions.iter().map(|(v, n)| format!("{v} ({})", crate::format::counted(*n, "point"))).collect();
        let (path, versions) = (run.path().to_owned(), list.join(" and "));
        return Err(ReportError::MixedMeasurement { path, versions });
    }
    let comparisons = view.comparisons();
    let charts: Vec<ChartData> = comparisons.iter().filter_map(ChartData::new).collect();
    let page = html::page(&view, &comparisons, &charts)?;

    let mut files: Vec<(PathBuf, String)> = Vec::new();
    let count = comparisons.len();
    for (name, table) in [
        ("set-up", tables::setup::table(&view)),
        ("loading", tables::loading::table(&view)),
        ("not-valid", tables::invalid::table(&view)),
        ("checklist", tables::checklist::table(&view, &comparisons)),
    ] {
        files.push((Path::new("tables").join(format!("{name}.csv")), csv::table(&table)));
    }
    for (at, comparison) in comparisons.iter().enumerate() {
        let name = tables::numbered("best-throughput", at, count);
        files.push((
            Path::new("tables").join(format!("{name}.csv")),
            csv::table(&tables::floors::long(comparison)),
        ));
    }
    files.push((Path::new("tables").join("points.csv"), csv::points(&view.points)));
    let tables = files.len();
    for (at, chart) in charts.iter().enumerate() {
        let name = tables::numbered("throughput-recall", at, charts.len());
        files.push((Path::new("charts").join(format!("{name}.svg")), svg::draw(chart, svg::WIDE, "chart")));
    }
    // The page last: where it stands, all that it speaks of stands too.
    files.push((PathBuf::from("report.html"), page));
    let mut written = Vec::new();
    for (name, text) in files {
        let path = run.path().join(name);
        put(&path, &text)?;
        written.push(path);
    }
    let html = written.pop().unwrap_or_default();
    let charts = written.split_off(tables);
    Ok(Written { html, charts, tables: written })
}

/// Temporary file and rename, so that a page that is open is never half a page.
fn put(path: &Path, text: &str) -> Result<(), ReportError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(ReportError::io("create", folder))?;
    }
    let temporary = path.with_extension("tmp");
    fs::write(&temporary, text).map_err(ReportError::io("write", &temporary))?;
    fs::rename(&temporary, path).map_err(ReportError::io("replace", path))
}

fn nothing(run: &RunDir, selection: &Selection, points: &[record::Point]) -> ReportError {
    let records = "records.jsonl";
    let looked_for = match &selection.dataset {
        Some(name) => format!("points of data set {name:?} in {records}"),
        None => format!("points in {records}"),
    };
    let mut counts = std::collections::BTreeMap::new();
    for point in points {
        *counts.entry(point.dataset.as_str()).or_insert(0) += 1;
    }
    let list: Vec<String> = counts
        .iter()
        .map(|(name, n)| format!("{} of {name:?}", crate::format::counted(*n, "point")))
        .collect();
    let there = match (list.is_empty(), run.path().join(records).exists()) {
        (false, _) => format!("there are {}", list.join(", ")),
        (true, true) => format!("{records} holds no finished point; go on with annvil run --resume"),
        (true, false) => {
            format!("there is no {records}; no point was finished, go on with annvil run --resume")
        }
    };
    ReportError::Nothing { path: run.path().to_owned(), looked_for, there }
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
