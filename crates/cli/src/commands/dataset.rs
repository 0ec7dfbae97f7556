//! `annvil dataset list | describe | validate`; the rest is in `dataset_make`.

use super::{
    dataset_make, dataset_text as text,
    source::{self, Setting},
};
use crate::{
    args::{DatasetCommand, ListArgs, SourceArgs, ValidateArgs},
    exit::Outcome,
    printer::Printer,
    progress::Progress,
};
use comfy_table::{Table, presets};
use dataset::{
    catalogue,
    describe::Description,
    validate::{Finding, Severity},
};
use serde_json::json;
use types::units;

pub(crate) fn run(command: DatasetCommand, printer: &Printer) -> anyhow::Result<Outcome> {
    match command {
        DatasetCommand::List(args) => list(&args, printer),
        DatasetCommand::Describe(args) => describe(&args, printer),
        DatasetCommand::Validate(args) => validate(&args, printer),
        DatasetCommand::Fetch(args) => dataset_make::fetch(&args, printer),
        DatasetCommand::Convert(args) => dataset_make::convert(&args, printer),
        DatasetCommand::Generate(args) => dataset_make::generate(&args, printer),
    }
}

fn list(args: &ListArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    let pattern = args.pattern.as_deref().unwrap_or_default().to_lowercase();
    let entries: Vec<_> =
        catalogue::list().iter().filter(|e| e.name.to_lowercase().contains(&pattern)).collect();
    printer.show(&entries, || {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["NAME", "ROWS", "QUERIES", "DIM", "METRIC", "TYPE", "SIZE", "FROM"]);
        let count = |n: Option<u64>| n.map_or_else(|| "?".to_owned(), units::count);
        for e in &entries {
            let size = e.disk_bytes().map_or_else(|| "?".to_owned(), units::bytes);
            table.add_row([
                e.name.clone(),
                count(e.rows),
                count(e.queries),
                count(e.dim),
                e.metric.clone(),
                e.element.clone(),
                size,
                e.source.clone(),
            ]);
        }
        format!("{table}\n{} sets; bring one with: annvil dataset fetch NAME", entries.len())
    })?;
    Ok(Outcome::Valid)
}

fn describe(args: &SourceArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    let opened = source::open(&args.dataset, &args.open, printer)?;
    let mut description = Description::new(&opened);
    if let Some(metric) = opened.metric
        && opened.queries.rows() > 0
        && description.non_finite == 0
    {
        let found = exact::contrast(&opened.base, &opened.queries, metric, &exact::Options::default())?;
        description.contrast = found.first.zip(found.hundredth.or(found.tenth)).map(|(first, hundredth)| {
            let ratio = if hundredth == 0.0 { 1.0 } else { first / hundredth };
            dataset::describe::Contrast { first, hundredth, ratio, queries: found.queries }
        });
    }
    printer.show(&description, || text::description(&description))?;
    Ok(Outcome::Valid)
}

fn validate(args: &ValidateArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    let opened = source::open(&args.source.dataset, &args.source.open, printer)?;
    let path = std::path::Path::new(&args.source.dataset);
    if dataset::directory::is_directory(path) {
        dataset::directory::verify(path)?;
    }
    let mut report = dataset::validate::check(&opened);
    if report.is_valid()
        && let (Some(metric), Some(truth)) = (opened.metric, &opened.truth)
    {
        exact::check_metric(metric, opened.base.element())?;
        let sample = if args.sample == 0 { usize::MAX } else { args.sample };
        let check = exact::TruthCheck { sample, seed: args.seed };
        let progress = Progress::new(printer);
        let verdict = Setting::new(args.source.open.cache_dir.as_ref())
            .with(&progress, |with| runner::truth::verify_truth(&opened, metric, truth, check, with))?;
        let severity = if verdict.ok { Severity::Note } else { Severity::Error };
        report.add(Finding { severity, code: "truth", message: verdict.message, rows: Vec::new() });
    }
    let valid = report.is_valid();
    let value = json!({ "dataset": opened.name, "valid": valid, "findings": report.findings });
    printer.show(&value, || text::findings(&opened.name, valid, &report.findings))?;
    Ok(if valid { Outcome::Valid } else { Outcome::Usage })
}
