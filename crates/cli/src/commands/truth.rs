//! `annvil truth`: the whole of a search. Shards and their merge are in `truth_shard`, files in
//! `truth_out`, what is said in `truth_text`.

use super::{
    source::{self, Setting},
    truth_check,
    truth_out::{Out, TruthOf},
    truth_shard,
    truth_text::{compare, figures, known, text},
};
use crate::{
    args::{FilterPlanArg, MethodArg, SearchArgs, TruthArgs, TruthCommand},
    exit::{Outcome, usage_error},
    printer::Printer,
    progress::Progress,
};
use dataset::Dataset;
use runner::{
    material::filters_of,
    truth::{SearchSetting, TruthCase, TruthsAsk, truths},
};
use serde_json::json;
use std::time::Instant;
use types::{Filters, Metric};

/// Most neighbours that can be asked for.
const MOST_K: usize = 1_000_000;

pub(crate) fn run(args: &TruthArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    if let Some(TruthCommand::Merge(merge)) = &args.command {
        // Clap cannot forbid these, as --json and --quiet may stand there too.
        if args.dataset.is_some() || args.out.is_some() || args.shard.is_some() || !args.filters.is_empty() {
            return Err(usage_error(
                "merge takes parts and what stands behind it; a data set of that name is ./merge",
            ));
        }
        return truth_shard::merge(merge, printer);
    }
    let setting = search_setting(args)?;
    if let Some(file) = &args.checking.check {
        return truth_check::run(args, file, setting, printer);
    }
    let Some(shard) = args.shard else { return whole(args, setting, printer) };
    truth_shard::run(args, shard, setting, printer)
}

/// How to search, with what can be said before a data set is opened.
fn search_setting(args: &TruthArgs) -> anyhow::Result<SearchSetting> {
    if args.k == 0 {
        return Err(usage_error("--k 0 asks for no neighbour; give at least 1"));
    }
    if args.k > MOST_K {
        return Err(usage_error(format!("--k {} is more than {MOST_K}", args.k)));
    }
    let SearchArgs { threads, memory, kernel, method, filter_plan, keep_every } = &args.search;
    let level = kernel.as_deref().map(level).transpose()?;
    let method = match method {
        MethodArg::Auto => exact::Method::Auto,
        MethodArg::F32 => exact::Method::F32,
        MethodArg::Int8 => exact::Method::Int8,
        MethodArg::Int16 => exact::Method::Int16,
    };
    let sharing = match filter_plan {
        FilterPlanArg::Auto => exact::Sharing::Auto,
        FilterPlanArg::Scan => exact::Sharing::Together,
        FilterPlanArg::Rows => exact::Sharing::Apart,
    };
    Ok(SearchSetting { threads: *threads, memory: *memory, level, method, sharing, keep_every: *keep_every })
}

/// The instruction set of that name.
fn level(name: &str) -> anyhow::Result<exact::Level> {
    let available = exact::Level::available();
    available.iter().copied().find(|level| level.name() == name).ok_or_else(|| {
        let names: Vec<&str> = available.iter().map(|level| level.name()).collect();
        usage_error(format!("--kernel {name}: this machine has {}", names.join(", ")))
    })
}

/// What is asked: a data set and filters.
pub(super) struct Question {
    pub(super) dataset: Dataset,
    pub(super) metric: Metric,
    /// The filters as typed; none for all rows.
    pub(super) texts: Vec<Option<String>>,
    filters: Vec<Filters>,
}

impl Question {
    pub(super) fn open(args: &TruthArgs, printer: &Printer) -> anyhow::Result<Question> {
        // Clap requires it.
        let name = args.dataset.as_deref().unwrap_or_default();
        let dataset = source::open(name, &args.open, printer)?;
        let metric = dataset.require_metric()?;
        if dataset.queries.rows() == 0 {
            return Err(usage_error(format!("{name} has no queries; give a file with --queries")));
        }
        let texts = texts(args);
        let filters =
            |text: &Option<String>| text.as_ref().map_or(Ok(Filters::None), |t| filters_of(&dataset, t, t));
        let filters = texts.iter().map(filters).collect::<Result<Vec<Filters>, _>>()?;
        Ok(Question { dataset, metric, texts, filters })
    }

    pub(super) fn cases(&self) -> Vec<TruthCase<'_>> {
        let cases = self.texts.iter().zip(&self.filters);
        cases.map(|(text, filters)| TruthCase { text: text.as_deref(), filters }).collect()
    }
}

/// The filters as typed, in order; none for all rows.
fn texts(args: &TruthArgs) -> Vec<Option<String>> {
    let all_rows = args.unfiltered || args.filters.is_empty();
    all_rows.then_some(None).into_iter().chain(args.filters.iter().cloned().map(Some)).collect()
}

fn whole(args: &TruthArgs, how: SearchSetting, printer: &Printer) -> anyhow::Result<Outcome> {
    let out = args.out.as_deref().map(|path| Out::new(path, args.format, &texts(args))).transpose()?;
    let question = Question::open(args, printer)?;
    let Question { dataset: opened, metric, texts, .. } = &question;
    let setting = Setting::new(args.open.cache_dir.as_ref());
    let progress = Progress::new(printer);
    let started = Instant::now();
    let what = format!("{}: {} exact neighbours", opened.name, args.k);
    let cases = question.cases();
    let ask = TruthsAsk { metric: *metric, k: args.k, cases: &cases, setting: how };
    let (all, took) = setting.with(&progress, |with| truths(opened, &ask, &what, with))?;
    let seconds = started.elapsed().as_secs_f64();
    let of = TruthOf::of_dataset(opened, *metric, args.k);
    let mut lines = Vec::new();
    let mut values = Vec::new();
    let mut agrees = true;
    for (i, (filter, found)) in texts.iter().zip(&all).enumerate() {
        let filter = filter.as_deref();
        let mut value = figures(&of, found, (&took, seconds), filter);
        if args.compare {
            let theirs = known(opened, filter)?;
            let compared = compare(&found.truth, theirs);
            agrees &= compared["different"] == json!(0);
            value["compare"] = compared;
        }
        if let Some(out) = &out {
            out.write(i, Some(opened), &found.truth, &of)?;
            value["out"] = json!(out.target(i));
        }
        lines.push(text(&value));
        values.push(value);
    }
    if let Some(out) = &out {
        out.finish(&of)?;
    }
    printer.show(&values, || lines.join("\n"))?;
    if let Some(out) = args.out.as_ref() {
        printer.note(&format!("written: {}", out.display()));
    }
    Ok(if agrees { Outcome::Valid } else { Outcome::NotValid })
}
