//! `annvil report`.

use super::run::run_dirs;
use crate::{
    args::ReportArgs,
    exit::{Outcome, usage_error},
    printer::Printer,
};
use record::RunDir;
use std::path::Path;

pub(crate) fn run(args: &ReportArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    let path = match &args.run {
        Some(path) => path.clone(),
        None => run_dirs(Path::new("runs")).pop().ok_or_else(|| {
            usage_error("no run below runs/; name a run directory, or make one with annvil run")
        })?,
    };
    let dir = RunDir::open(&path)?;
    let manifest = dir.manifest()?;
    let points = dir.points()?;
    let written = report::write(&dir)?;
    printer
        .show(&report::json(&manifest, &points), || report::terminal(&manifest, &points, printer.width()))?;
    printer.note(&format!("report: {}", written.html.display()));
    Ok(Outcome::Valid)
}
