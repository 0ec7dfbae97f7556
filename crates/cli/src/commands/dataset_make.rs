//! `annvil dataset fetch | convert | generate`.

use super::source::{self, Setting};
use crate::{
    args::{ConvertArgs, FetchArgs, FormatArg, GenerateArgs},
    exit::{Outcome, usage_error},
    paths,
    printer::Printer,
    progress::Progress,
};
use dataset::{
    Dataset, catalogue, directory,
    fetch::{Event as FetchEvent, FetchOptions},
    generate::Recipe,
};
use runner::{Event, truth::TruthAsk};
use serde_json::json;
use std::path::Path;
use types::Filters;

pub(crate) fn fetch(args: &FetchArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    let entry = catalogue::find(&args.name)?;
    let options = FetchOptions {
        mirrors: args.mirrors.clone(),
        timeout: args.fetch_timeout,
        tries: args.tries,
        optional_files: !args.no_optional,
        ..FetchOptions::default()
    };
    let progress = Progress::new(printer);
    let fetched = dataset::fetch::fetch(entry, &args.to, &options, &mut |event| match event {
        FetchEvent::Started { url, .. } => progress.on(&Event::Begin { what: url, unit: "bytes" }),
        FetchEvent::Progress { done, total, .. } => {
            progress.on(&Event::Progress { done, total: total.unwrap_or(0) });
        }
        FetchEvent::Checking { path } => {
            progress.on(&Event::Begin { what: &format!("checksum of {}", path.display()), unit: "" });
        }
        FetchEvent::Finished { .. } => progress.on(&Event::End),
        FetchEvent::Present { path } => {
            progress.on(&Event::Note(&format!("{} is there already", path.display())));
        }
        FetchEvent::Warning(text) => progress.on(&Event::Warning(text)),
    })?;
    progress.on(&Event::End);
    let path = fetched.path.as_ref();
    let value = json!({
        "dataset": entry.name, "path": path.unwrap_or(&fetched.dir), "transferred_bytes": fetched.transferred,
        "warnings": fetched.warnings,
    });
    printer.show(&value, || path.unwrap_or(&fetched.dir).display().to_string())?;
    if let Some(path) = path {
        printer.note(&format!(
            "run it with: annvil run --dataset {}{}",
            path.display(),
            hints(&fetched.options)
        ));
    }
    Ok(Outcome::Valid)
}

/// The options that the files of a set need to be opened.
fn hints(options: &dataset::OpenOptions) -> String {
    let mut text = String::new();
    let files = [("queries", &options.queries), ("truth", &options.truth), ("columns", &options.columns)];
    for (name, path) in files {
        if let Some(path) = path {
            text.push_str(&format!(" --{name} {}", path.display()));
        }
    }
    if let Some(metric) = options.metric {
        text.push_str(&format!(" --metric {metric}"));
    }
    text
}

pub(crate) fn convert(args: &ConvertArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    refuse_existing(&args.out)?;
    let mut opened = source::open(&args.source.dataset, &args.source.open, printer)?;
    let method = complete(&mut opened, args.k, args.source.open.cache_dir.as_ref(), printer)?;
    let warnings = match format(args) {
        FormatArg::Directory => {
            let provenance = directory::Provenance {
                source: Some(args.source.dataset.clone()),
                command: Some(paths::command_line().join(" ")),
                truth_method: method,
            };
            directory::write(&opened, &args.out, &provenance)?;
            Vec::new()
        }
        FormatArg::Hdf5 => dataset::write::hdf5(&opened, &args.out)?,
        FormatArg::Fbin => dataset::write::fbin(&opened, &args.out)?,
        FormatArg::Parquet => {
            dataset::parquet::write_parquet(&opened, &args.out)?;
            Vec::new()
        }
    };
    for warning in &warnings {
        printer.warning(warning);
    }
    written(&opened, &args.out, printer)
}

pub(crate) fn generate(args: &GenerateArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    refuse_existing(&args.out)?;
    let defaults = Recipe::default();
    let recipe = Recipe {
        rows: args.rows,
        queries: args.queries,
        dim: args.dim,
        clusters: args.clusters.unwrap_or(defaults.clusters),
        metric: args.metric,
        element: if args.metric == types::Metric::Hamming { types::Element::Bit } else { args.element },
        seed: args.seed,
        columns: !args.no_columns,
    };
    recipe.check()?;
    let progress = Progress::new(printer);
    let command = paths::command_line().join(" ");
    if args.k == 0 {
        progress.on(&Event::Begin { what: "generating", unit: "vectors" });
        dataset::generate::generate_to(&recipe, &args.out, Some(command), &mut |done, total| {
            progress.on(&Event::Progress { done, total });
        })?;
        progress.on(&Event::End);
        let opened = directory::open(&args.out, &dataset::OpenOptions::default())?;
        return written(&opened, &args.out, printer);
    }
    let mut made = dataset::generate::generate(&recipe)?;
    let method = complete(&mut made, args.k, args.cache_dir.as_ref(), printer)?;
    let provenance = directory::Provenance {
        source: Some(format!("generated, version {}", dataset::generate::GENERATOR_VERSION)),
        command: Some(command),
        truth_method: method,
    };
    directory::write(&made, &args.out, &provenance)?;
    written(&made, &args.out, printer)
}

/// The format asked for, or the one that the ending says.
fn format(args: &ConvertArgs) -> FormatArg {
    let ending = args.out.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    args.format.unwrap_or(if ending == "hdf5" || ending == "h5" {
        FormatArg::Hdf5
    } else {
        FormatArg::Directory
    })
}

/// Computes the truth of a set that has none. Gives how it was made.
fn complete(
    dataset: &mut Dataset,
    k: usize,
    cache_dir: Option<&std::path::PathBuf>,
    printer: &Printer,
) -> anyhow::Result<Option<String>> {
    let Some(metric) = dataset.metric.filter(|_| dataset.truth.is_none() && k > 0) else {
        return Ok(None);
    };
    let progress = Progress::new(printer);
    let ask = TruthAsk { metric, k, filters: &Filters::None, threads: None };
    let (truth, _) = Setting::new(cache_dir)
        .with(&progress, |with| runner::truth::truth(dataset, &ask, "exact neighbours", with))?;
    dataset.truth = Some(truth);
    dataset.forget_hashes();
    Ok(Some(format!("exact search in float64, annvil {}", env!("CARGO_PKG_VERSION"))))
}

fn refuse_existing(out: &Path) -> anyhow::Result<()> {
    if out.exists() {
        return Err(usage_error(format!(
            "{} exists already; remove it or choose another --out",
            out.display()
        )));
    }
    Ok(())
}

fn written(dataset: &Dataset, out: &Path, printer: &Printer) -> anyhow::Result<Outcome> {
    let value = json!({
        "path": out, "rows": dataset.base.rows(), "queries": dataset.queries.rows(), "dim": dataset.base.dim(),
    });
    printer.show(&value, || out.display().to_string())?;
    Ok(Outcome::Valid)
}
