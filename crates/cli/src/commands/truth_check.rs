//! `annvil truth --check`: whether a file of truth, ours or another's, is right, and what explains it
//! where it is not.

use super::source::{self, Setting};
use crate::{
    args::TruthArgs,
    exit::{Outcome, usage_error},
    printer::Printer,
    progress::Progress,
};
use anyhow::Context;
use dataset::{Dataset, FilteredTruth, TruthFile};
use exact::{AuditAsk, Cause, Difference, FilterRows, PartReader, TruthAudit, TruthCache, TruthCheck};
use runner::{material::filters_of, truth::SearchSetting};
use serde_json::{Value, json};
use std::{
    io::Read,
    path::{Path, PathBuf},
};
use types::{Filters, Metric, Truth, units};

/// Multiplications up to which all queries are checked: a minute or so on two cores.
const ALL_UP_TO: u128 = 2_000_000_000_000;
/// Queries of a sample at least.
const LEAST_SAMPLE: usize = 100;
/// Files of Annvil's own, by their first bytes.
const OWN: [(&[u8; 8], Own); 2] = [(b"ANNVTRU1", Own::Cache), (b"ANNVPRT1", Own::Part)];

#[derive(Clone, Copy)]
enum Own {
    Cache,
    Part,
}

/// One truth of the file.
struct Case {
    name: Option<String>,
    /// The filter's text.
    text: Option<String>,
    filters: Filters,
    truth: Truth,
}

pub(super) fn run(
    args: &TruthArgs,
    file: &Path,
    how: SearchSetting,
    printer: &Printer,
) -> anyhow::Result<Outcome> {
    if args.filters.len() > 1 {
        return Err(usage_error("--check compares with one filter; give at most one --filter"));
    }
    if !file.exists() {
        return Err(usage_error(format!("--check {}: there is no such file", file.display())));
    }
    // Clap requires it.
    let name = args.dataset.as_deref().unwrap_or_default();
    let dataset = source::open(name, &args.open, printer)?;
    let metric = dataset.require_metric()?;
    if dataset.queries.rows() == 0 {
        return Err(usage_error(format!("{name} has no queries; give a file with --queries")));
    }
    let cases = cases(args, file, &dataset, metric, printer)?;
    let setting = Setting::new(args.open.cache_dir.as_ref());
    let progress = Progress::new(printer);
    let sample = sample(args.checking.sample, &dataset, cases.len());
    let mut values = Vec::new();
    let mut lines = Vec::new();
    let mut ok = true;
    for case in &cases {
        let columns = dataset.columns.as_ref();
        let rows = match &case.filters {
            Filters::None => None,
            filters => Some(FilterRows::new(columns, filters, dataset.base.rows(), dataset.queries.rows())?),
        };
        let ask = AuditAsk {
            base: &dataset.base,
            queries: &dataset.queries,
            metric,
            truth: &case.truth,
            k: args.k,
            filter: rows.as_ref(),
            ids: Some(&dataset.ids),
            check: TruthCheck { sample, seed: 1 },
        };
        let what = format!("{}: check", title(file, case));
        let audit = setting.with(&progress, |with| runner::truth::audit_truth(&what, &ask, how, with))?;
        ok &= audit.ok;
        if is_unexplained(&audit) && case.text.is_none() && dataset.columns.is_some() {
            printer.note("where this is the truth under a filter, give the filter with --filter");
        }
        lines.push(text(file, case, &audit));
        values.push(value(file, case, &audit));
    }
    printer.show(&values, || lines.join("\n"))?;
    Ok(if ok { Outcome::Valid } else { Outcome::NotValid })
}

/// Whether a filter that was not named may explain the difference.
fn is_unexplained(audit: &TruthAudit) -> bool {
    matches!(audit.cause, Some(Cause::Unknown | Cause::OtherVectors | Cause::TooShort))
}

/// How many queries of each case are checked.
fn sample(asked: Option<usize>, dataset: &Dataset, cases: usize) -> usize {
    match asked {
        Some(0) => usize::MAX,
        Some(sample) => sample,
        None => {
            let of_query = (dataset.base.rows() * dataset.base.dim().max(1)) as u128 * cases.max(1) as u128;
            usize::try_from(ALL_UP_TO / of_query.max(1)).unwrap_or(usize::MAX).max(LEAST_SAMPLE)
        }
    }
}

/// The truths of the file that are asked for, each with its filters.
fn cases(
    args: &TruthArgs,
    file: &Path,
    dataset: &Dataset,
    metric: Metric,
    printer: &Printer,
) -> anyhow::Result<Vec<Case>> {
    let mut found = read(args, file, dataset, printer)?;
    if let Some(theirs) = found.metric.filter(|&theirs| theirs != metric) {
        printer.warning(&format!("the file says that its metric is {theirs}; it is checked under {metric}"));
    }
    let hashes = [(&found.base_hash, "base"), (&found.queries_hash, "queries")];
    let ours = || [&dataset.hashes().base, &dataset.hashes().queries];
    for (i, (theirs, what)) in hashes.into_iter().enumerate() {
        if theirs.as_ref().is_some_and(|theirs| theirs != ours()[i]) {
            printer.warning(&format!("by its hash the file was made for other {what} than these"));
        }
    }
    if let Some(wanted) = &args.checking.case {
        let names: Vec<String> = found.filtered.iter().map(|f| f.name.clone()).collect();
        found.filtered.retain(|f| f.name == *wanted);
        found.truth = None;
        if found.filtered.is_empty() {
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(usage_error(format!(
                "--case {wanted}: the cases of {} are: {names}",
                file.display()
            )));
        }
    }
    let filter = args.filters.first().map(String::as_str);
    let mut cases = Vec::new();
    if let Some(truth) = found.truth {
        let filters = filter.map_or(Ok(Filters::None), |text| filters_of(dataset, text, text))?;
        cases.push(Case { name: None, text: filter.map(str::to_owned), filters, truth });
    }
    let alone = found.filtered.len() == 1;
    for theirs in found.filtered {
        let named =
            |text: &str| theirs.name == text || theirs.filter.as_ref().is_some_and(|t| t.text() == text);
        match filter {
            Some(text) if !named(text) && !alone => {}
            Some(text) if !named(text) => {
                let filters = filters_of(dataset, text, text)?;
                cases.push(Case {
                    name: Some(theirs.name),
                    text: Some(text.to_owned()),
                    filters,
                    truth: theirs.truth,
                });
            }
            _ => cases.push(filtered(theirs, file, dataset)?),
        }
    }
    if cases.is_empty() {
        let text = filter.unwrap_or_default();
        return Err(usage_error(format!(
            "{} has no truth under {text:?}; name one with --case",
            file.display()
        )));
    }
    Ok(cases)
}

/// A case by the filter that the file names.
fn filtered(theirs: FilteredTruth, file: &Path, dataset: &Dataset) -> anyhow::Result<Case> {
    let Some(template) = &theirs.filter else {
        return Err(usage_error(format!(
            "{}: case {} names no filter; give it with --filter",
            file.display(),
            theirs.name
        )));
    };
    let text = template.text().to_owned();
    let filters = match &dataset.columns {
        Some(columns) if !theirs.values.is_empty() => {
            theirs.filters(columns, dataset.query_columns.as_ref())?
        }
        _ => filters_of(dataset, &text, &text)?,
    };
    Ok(Case { name: Some(theirs.name), text: Some(text), filters, truth: theirs.truth })
}

fn read(args: &TruthArgs, file: &Path, dataset: &Dataset, printer: &Printer) -> anyhow::Result<TruthFile> {
    let broken = || {
        usage_error(format!(
            "{}: this truth of Annvil's is cut short or changed; compute it again",
            file.display()
        ))
    };
    match own(file)? {
        Some(Own::Cache) => {
            let truth = TruthCache::read(file).context("cannot read the truth")?.ok_or_else(broken)?;
            let (found, expected) = (truth.queries(), dataset.queries.rows());
            if found != expected {
                let text =
                    format!("{}: it covers {found} queries, the data set has {expected}", file.display());
                return Err(usage_error(text));
            }
            Ok(TruthFile { truth: Some(truth), ..TruthFile::default() })
        }
        Some(Own::Part) => part(file, dataset),
        None => {
            let mut found = dataset::read_truth(file, dataset, &source::open_options(&args.open))?;
            found.notices.iter().for_each(|notice| printer.note(notice));
            beside(&mut found, file, args, printer);
            Ok(found)
        }
    }
}

/// What the file beside a truth of ours says of it.
fn beside(found: &mut TruthFile, file: &Path, args: &TruthArgs, printer: &Printer) {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".json");
    let beside = PathBuf::from(beside);
    let Some(said) = std::fs::read(&beside).ok().and_then(|b| serde_json::from_slice::<Value>(&b).ok())
    else {
        return;
    };
    let word = |name: &str| said[name].as_str().map(str::to_owned);
    found.base_hash = word("base_hash");
    found.queries_hash = word("queries_hash");
    found.metric = word("metric").and_then(|metric| metric.parse().ok());
    let filter = word("filter").filter(|_| args.filters.is_empty());
    if let Some((text, truth)) = filter.and_then(|text| Some((text, found.truth.take()?))) {
        printer.note(&format!("{} says that the filter is {text}", beside.display()));
        let filter = types::FilterTemplate::parse(&text).ok();
        found.filtered.push(FilteredTruth { name: text, filter, values: Vec::new(), truth });
    }
}

fn own(file: &Path) -> anyhow::Result<Option<Own>> {
    if file.is_dir() {
        return Ok(None);
    }
    let mut start = Vec::new();
    let fault = |e| usage_error(format!("cannot read {}: {e}", file.display()));
    std::fs::File::open(file).and_then(|f| f.take(8).read_to_end(&mut start)).map_err(fault)?;
    Ok(OWN.iter().find(|(magic, _)| start == magic[..]).map(|(_, own)| *own))
}

/// The truths of a part that is a whole: shard 1 of 1.
fn part(file: &Path, dataset: &Dataset) -> anyhow::Result<TruthFile> {
    let part = PartReader::open(file)?;
    let header = part.header().clone();
    if header.job.shards > 1 || !header.is_finished() {
        return Err(usage_error(format!(
            "{}: this is shard {} of {}{}; merge the parts first (annvil truth merge), then check what comes of it",
            file.display(),
            header.shard,
            header.job.shards,
            if header.is_finished() { "" } else { ", not finished" }
        )));
    }
    let (found, expected) = (header.job.queries, dataset.queries.rows() as u64);
    if found != expected {
        let text = format!("{}: it covers {found} queries, the data set has {expected}", file.display());
        return Err(usage_error(text));
    }
    let job = header.job;
    let mut out = TruthFile { metric: Some(job.metric), ..TruthFile::default() };
    (out.base_hash, out.queries_hash) = (job.base_hash.clone(), Some(job.queries_hash.clone()));
    exact::merge_parts(exact::in_order(vec![part])?, |case, truth| -> anyhow::Result<()> {
        match &job.cases[case].filter {
            None => out.truth = Some(truth),
            Some(text) => {
                let filter = Some(types::FilterTemplate::parse(text)?);
                out.filtered.push(FilteredTruth { name: text.clone(), filter, values: Vec::new(), truth });
            }
        }
        Ok(())
    })?;
    Ok(out)
}

fn title(file: &Path, case: &Case) -> String {
    let name =
        file.file_name().map_or_else(|| file.display().to_string(), |n| n.to_string_lossy().into_owned());
    match (&case.name, &case.text) {
        (Some(case), Some(text)) if case != text => format!("{name}, {case} ({text})"),
        (_, Some(text)) => format!("{name} where {text}"),
        (Some(case), None) => format!("{name}, {case}"),
        (None, None) => name,
    }
}

fn value(file: &Path, case: &Case, audit: &TruthAudit) -> Value {
    let mut value = json!(audit);
    value["file"] = json!(file);
    value["case"] = json!(case.name);
    value["filter"] = json!(case.text);
    value["all_queries"] = json!(audit.checked == audit.queries);
    value
}

fn text(file: &Path, case: &Case, audit: &TruthAudit) -> String {
    let count = |n: usize| units::count(n as u64);
    let which = if audit.checked == audit.queries {
        format!("all {} queries", count(audit.queries))
    } else {
        format!(
            "a sample of {} of {} queries (--sample 0 for all)",
            count(audit.checked),
            count(audit.queries)
        )
    };
    let agreement = audit.agreement.map_or_else(String::new, |share| {
        format!("; {:.2} % of neighbours agree", (share * 1e4).floor() / 100.0)
    });
    let mut text = format!(
        "{}: {}\n  {which}, {} neighbours: {} identical, {} same up to ties, {} different{agreement}",
        title(file, case),
        audit.message,
        count(audit.k),
        count(audit.identical),
        count(audit.tied),
        count(audit.different)
    );
    for difference in &audit.examples {
        text.push_str("\n  ");
        text.push_str(&example(difference));
    }
    text
}

fn example(found: &Difference) -> String {
    let row = |row: Option<u32>, distance: Option<f64>| match (row, distance) {
        (None, _) => "none".to_owned(),
        (Some(row), None) => format!("row {row}"),
        (Some(row), Some(distance)) => format!("row {row} ({distance:.9})"),
    };
    format!(
        "query {}, rank {}: {} in the file, {} exactly: {}",
        found.query,
        found.rank,
        row(found.row, found.distance),
        row(found.exact_row, found.exact_distance),
        found.what.text()
    )
}
