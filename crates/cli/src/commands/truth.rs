//! `annvil truth`.

use super::source::{self, Setting};
use crate::{
    args::TruthArgs,
    exit::{Outcome, usage_error},
    printer::Printer,
    progress::Progress,
};
use dataset::Dataset;
use runner::{
    material::filters_of,
    truth::{FoundTruth, SearchFigures, SearchSetting, TruthsAsk, truths},
};
use serde_json::{Value, json};
use std::{path::Path, time::Instant};
use types::{Filters, Metric, Truth, units};

/// Most neighbours that can be asked for.
const MOST_K: usize = 1_000_000;

pub(crate) fn run(args: &TruthArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    if args.out.is_some() && args.filters.len() > 1 {
        return Err(usage_error("--out holds one truth; give at most one --filter with it"));
    }
    if args.k == 0 {
        return Err(usage_error("--k 0 asks for no neighbour; give at least 1"));
    }
    if args.k > MOST_K {
        return Err(usage_error(format!("--k {} is more than {MOST_K}", args.k)));
    }
    let out = args.out.as_deref().map(OutFile::new).transpose()?;
    let opened = source::open(&args.dataset, &args.open, printer)?;
    let metric = opened.require_metric()?;
    if opened.queries.rows() == 0 {
        return Err(usage_error(format!("{} has no queries; give a file with --queries", args.dataset)));
    }
    let texts: Vec<Option<&str>> = match args.filters.as_slice() {
        [] => vec![None],
        filters => filters.iter().map(|text| Some(text.as_str())).collect(),
    };
    let filters = |text: &Option<&str>| text.map_or(Ok(Filters::None), |t| filters_of(&opened, t, t));
    let cases = texts.iter().map(filters).collect::<Result<Vec<Filters>, _>>()?;
    let setting = Setting::new(args.open.cache_dir.as_ref());
    let progress = Progress::new(printer);
    let started = Instant::now();
    let what = format!("{}: {} exact neighbours", opened.name, args.k);
    let how = SearchSetting { threads: args.threads, level: args.kernel.as_deref().map(level).transpose()? };
    let ask = TruthsAsk { metric, k: args.k, cases: &cases, setting: how };
    let (all, took) = setting.with(&progress, |with| truths(&opened, &ask, &what, with))?;
    let seconds = started.elapsed().as_secs_f64();
    let mut lines = Vec::new();
    let mut values = Vec::new();
    let mut agrees = true;
    for (filter, found) in texts.into_iter().zip(&all) {
        let mut value = figures(&opened, found, (&took, seconds), filter, metric);
        if args.compare {
            let theirs = known(&opened, filter)?;
            let compared = compare(&found.truth, theirs);
            agrees &= compared["different"] == json!(0);
            value["compare"] = compared;
        }
        if let Some(out) = &out {
            let provenance = provenance(&opened, &found.truth, metric, filter);
            out.write(&opened, &found.truth, &provenance, metric)?;
        }
        lines.push(text(&value));
        values.push(value);
    }
    printer.show(&values, || lines.join("\n"))?;
    if let Some(out) = args.out.as_ref() {
        printer.note(&format!("written: {}", out.display()));
    }
    Ok(if agrees { Outcome::Valid } else { Outcome::NotValid })
}

fn figures(
    dataset: &Dataset,
    found: &FoundTruth,
    (took, seconds): (&SearchFigures, f64),
    filter: Option<&str>,
    metric: Metric,
) -> Value {
    let truth = &found.truth;
    let lengths: Vec<usize> = (0..truth.queries()).map(|q| truth.of(q).len()).collect();
    let matching: u64 = (0..truth.queries()).map(|q| truth.matching(q)).sum();
    let searched = (found.origin == "computed").then_some(took);
    json!({
        "dataset": dataset.name, "metric": metric, "filter": filter, "k": truth.depth(),
        "queries": truth.queries(), "rows": dataset.base.rows(), "dim": dataset.base.dim(),
        "origin": found.origin, "seconds": seconds,
        "search_seconds": searched.map(|s| s.search_seconds),
        "filter_seconds": searched.map(|s| s.filter_seconds),
        "searched_together": searched.map(|s| s.cases),
        "pairs": searched.map(|s| s.pairs),
        "pairs_per_second": searched.map(|s| s.pairs as f64 / s.search_seconds.max(1e-9)),
        "shortest": lengths.iter().min(), "mean_matching": matching as f64 / truth.queries().max(1) as f64,
        "queries_without_match": (0..truth.queries()).filter(|&q| truth.matching(q) == 0).count(),
    })
}

fn text(value: &Value) -> String {
    let number = |name: &str| value[name].as_f64().unwrap_or(0.0);
    let filter = value["filter"].as_str().map(|f| format!(" where {f}")).unwrap_or_default();
    let together = match value["searched_together"].as_u64() {
        Some(cases @ 2..) => format!(" for {cases} filters at once"),
        _ => String::new(),
    };
    let search = value["search_seconds"].as_f64().map(|seconds| {
        let rate = units::rate(number("pairs_per_second"));
        format!(" (search {}{together}, {rate} pairs/s)", units::seconds(seconds))
    });
    let mut text = format!(
        "{}{filter}: {} neighbours of {} queries over {} rows ({}), {} in {}{}; {:.1} rows qualify on average",
        value["dataset"].as_str().unwrap_or_default(),
        value["k"],
        value["queries"],
        value["rows"],
        value["metric"].as_str().unwrap_or_default(),
        value["origin"].as_str().unwrap_or_default(),
        units::seconds(number("seconds")),
        search.unwrap_or_default(),
        number("mean_matching"),
    );
    if let Some(compared) = value.get("compare") {
        text.push_str(&format!(
            "; {} of {} neighbours are those of the data set, {} more tie with them, {} differ",
            compared["same"], compared["all"], compared["tied"], compared["different"]
        ));
    }
    text
}

/// The instruction set of that name.
fn level(name: &str) -> anyhow::Result<exact::Level> {
    let available = exact::Level::available();
    available.iter().copied().find(|level| level.name() == name).ok_or_else(|| {
        let names: Vec<&str> = available.iter().map(|level| level.name()).collect();
        usage_error(format!("--kernel {name}: this machine has {}", names.join(", ")))
    })
}

/// The truth that the data set brings for the filter.
fn known<'a>(dataset: &'a Dataset, filter: Option<&str>) -> anyhow::Result<&'a Truth> {
    let found = match filter {
        None => dataset.truth.as_ref(),
        Some(text) => dataset
            .filtered
            .iter()
            .find(|f| f.name == text || f.filter.as_ref().is_some_and(|t| t.text() == text))
            .map(|f| &f.truth),
    };
    found.ok_or_else(|| usage_error(format!("{} brings no such truth to compare with", dataset.name)))
}

/// Compares rank by rank: the same row, another row at the same distance, or a difference.
fn compare(ours: &Truth, theirs: &Truth) -> Value {
    let (mut same, mut tied, mut different) = (0_u64, 0_u64, 0_u64);
    for query in 0..ours.queries().min(theirs.queries()) {
        let (a, b) = (ours.of(query), theirs.of(query));
        let rows: std::collections::HashMap<u32, f64> = a.iter().map(|n| (n.row, n.distance)).collect();
        let last = a.last().map_or(f64::NAN, |n| n.distance);
        for neighbour in b.iter().take(a.len()) {
            if rows.contains_key(&neighbour.row) {
                same += 1;
            } else if (neighbour.distance - last).abs() <= 1e-5 * last.abs().max(1e-3) {
                tied += 1;
            } else {
                different += 1;
            }
        }
        different += b.len().min(ours.depth()).abs_diff(a.len().min(theirs.depth())) as u64;
    }
    different += ours.queries().abs_diff(theirs.queries()) as u64;
    json!({ "all": same + tied + different, "same": same, "tied": tied, "different": different })
}

/// A file to write a truth to, its format known before anything is computed.
struct OutFile<'a> {
    path: &'a Path,
    format: &'static str,
}

impl<'a> OutFile<'a> {
    fn new(path: &'a Path) -> anyhow::Result<Self> {
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        let known = ["ibin", "hdf5", "json"];
        let format = known.into_iter().find(|k| *k == ending).ok_or_else(|| {
            usage_error(format!("--out {}: write a truth as .ibin (big-ann), .hdf5 or .json", path.display()))
        })?;
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            return Err(usage_error(format!(
                "--out {}: there is no folder {}",
                path.display(),
                folder.display()
            )));
        }
        Ok(OutFile { path, format })
    }

    /// Formats without room for where the truth comes from get a file beside them that says it.
    fn write(
        &self,
        dataset: &Dataset,
        truth: &Truth,
        provenance: &Value,
        metric: Metric,
    ) -> anyhow::Result<()> {
        if self.format != "json" {
            let mut beside = self.path.as_os_str().to_owned();
            beside.push(".json");
            write_whole(Path::new(&beside), &serde_json::to_vec_pretty(provenance)?)?;
        }
        match self.format {
            "ibin" => {
                let temporary = self.path.with_extension("tmp");
                dataset::write::truth_ibin(&temporary, truth)?;
                std::fs::rename(&temporary, self.path)?;
            }
            "hdf5" => {
                let mut whole = dataset.clone();
                (whole.truth, whole.metric) = (Some(truth.clone()), Some(metric));
                dataset::write::hdf5(&whole, self.path)?;
            }
            _ => write_json(truth, provenance, self.path)?,
        }
        Ok(())
    }
}

/// What a truth is of, and how it was made: enough to tell whether it fits a data set.
fn provenance(dataset: &Dataset, truth: &Truth, metric: Metric, filter: Option<&str>) -> Value {
    let hashes = dataset.hashes();
    json!({
        "metric": metric, "k": truth.depth(), "filter": filter, "method": "exact search in float64",
        "tool": format!("annvil {}", env!("CARGO_PKG_VERSION")), "base_hash": hashes.base,
        "queries_hash": hashes.queries, "columns_hash": filter.and(hashes.columns.as_ref()),
    })
}

fn write_json(truth: &Truth, provenance: &Value, path: &Path) -> anyhow::Result<()> {
    let lists: Vec<Value> = (0..truth.queries())
        .map(|query| {
            let rows: Vec<u32> = truth.of(query).iter().map(|n| n.row).collect();
            let distances: Vec<f64> = truth.of(query).iter().map(|n| n.distance).collect();
            json!({ "query": query, "matching": truth.matching(query), "rows": rows, "distances": distances })
        })
        .collect();
    let mut whole = provenance.clone();
    whole["lists"] = json!(lists);
    write_whole(path, &serde_json::to_vec(&whole)?)
}

/// Writes a file that is there whole or not at all.
fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let temporary = path.with_extension("tmp");
    let fault = |e: std::io::Error| usage_error(format!("cannot write {}: {e}", path.display()));
    std::fs::write(&temporary, bytes).map_err(fault)?;
    std::fs::rename(&temporary, path).map_err(fault)?;
    Ok(())
}
