//! `annvil truth --shard` and `annvil truth merge`: a search split over machines.

use super::{
    source::{self, Setting},
    truth::Question,
    truth_out::{Out, TruthOf, no_vectors},
    truth_text::{figures, searching, text},
};
use crate::{
    args::{MergeArgs, Shard, TruthArgs, TruthFormat},
    exit::{Outcome, usage_error},
    printer::Printer,
    progress::Progress,
};
use runner::truth::{MergedJob, SearchFigures, SearchSetting, ShardAsk, TruthsAsk};
use serde_json::json;
use std::{cell::RefCell, path::Path, time::Instant};
use types::units;

/// Searches one shard and writes its part.
pub(super) fn run(
    args: &TruthArgs,
    shard: Shard,
    how: SearchSetting,
    printer: &Printer,
) -> anyhow::Result<Outcome> {
    // Clap requires it.
    let out = args.out.as_deref().unwrap_or(Path::new("part.truth"));
    check_part_name(out)?;
    let question = Question::open(args, printer)?;
    let opened = &question.dataset;
    let Shard { number, of } = shard;
    let setting = Setting::new(args.open.cache_dir.as_ref());
    let progress = Progress::new(printer);
    let started = Instant::now();
    let what = format!("{}: {} exact neighbours, shard {number} of {of}", opened.name, args.k);
    let cases = question.cases();
    let ask = TruthsAsk { metric: question.metric, k: args.k, cases: &cases, setting: how };
    let part = ShardAsk { shard: number, shards: of, out };
    let done = setting.with(&progress, |with| runner::truth::shard(opened, &ask, part, &what, with))?;
    let mut value = json!({
        "dataset": opened.name, "metric": question.metric, "filters": question.texts, "k": args.k,
        "queries": opened.queries.rows(), "rows": opened.base.rows(), "dim": opened.base.dim(),
        "shard": number, "shards": of, "begin": done.header.begin, "end": done.header.end,
        "out": out, "bytes": done.bytes, "seconds": started.elapsed().as_secs_f64(),
    });
    searching(&mut value, Some(&done.figures));
    printer.show(&value, || {
        let rows = match (done.header.end - done.header.begin, done.header.begin) {
            (0, _) => "no rows, as there are more shards than blocks of 1,024 rows".to_owned(),
            (n, begin) => format!("{} rows from row {}", units::count(n), units::count(begin)),
        };
        format!(
            "{}: shard {number} of {of}, {rows}, searched in {}; {} in {}",
            opened.name,
            units::seconds(done.figures.search_seconds),
            units::bytes(done.bytes),
            out.display()
        )
    })?;
    Ok(Outcome::Valid)
}

/// That a part is not named like a truth, and has a folder to go to.
fn check_part_name(out: &Path) -> anyhow::Result<()> {
    let shown = out.display();
    let ending = out.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    if [TruthFormat::Ibin, TruthFormat::Hdf5, TruthFormat::Json].iter().any(|f| f.ending() == ending) {
        return Err(usage_error(format!(
            "--out {shown}: a shard is a part of a truth, not yet .{ending}; name it like part-03.truth, annvil truth merge writes the rest"
        )));
    }
    if out.is_dir() {
        return Err(usage_error(format!("--out {shown} is a folder; name a file in it, one for each shard")));
    }
    let parent = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !parent.is_dir() {
        return Err(usage_error(format!("--out {shown}: there is no folder {}", parent.display())));
    }
    Ok(())
}

/// Merges parts.
pub(super) fn merge(args: &MergeArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    let dataset = args.dataset.as_deref().map(|name| source::open(name, &args.open, printer)).transpose()?;
    let started = Instant::now();
    let setting = Setting::new(args.open.cache_dir.as_ref());
    let progress = Progress::new(printer);
    let out: RefCell<Option<Out>> = RefCell::new(None);
    let mut values = Vec::new();
    setting.with(&progress, |with| {
        let begin = |merged: &MergedJob| -> anyhow::Result<()> {
            let of = TruthOf::of_parts(merged);
            if let Some(dataset) = &dataset {
                let theirs = TruthOf::of_dataset(dataset, dataset.metric.unwrap_or(of.metric), of.k);
                if let Some((what, ours, theirs)) = of.difference(&theirs) {
                    let name = &dataset.name;
                    return Err(usage_error(format!(
                        "the parts are not of {name}: their {what} is {ours}, its {what} is {theirs}"
                    )));
                }
            }
            let filters: Vec<_> = merged.job.cases.iter().map(|case| case.filter.clone()).collect();
            let new = args.out.as_deref().map(|path| Out::new(path, args.format, &filters)).transpose()?;
            if let Some(out) = new.as_ref().filter(|out| out.needs_vectors() && dataset.is_none()) {
                return Err(no_vectors(out.target(0)));
            }
            *out.borrow_mut() = new;
            Ok(())
        };
        runner::truth::merge(&args.parts, with, begin, |merged, case, found| {
            let of = TruthOf::of_parts(merged);
            let filter = merged.job.cases[case].filter.as_deref();
            let seconds = started.elapsed().as_secs_f64();
            let mut value = figures(&of, &found, (&SearchFigures::default(), seconds), filter);
            value["parts"] = json!(args.parts.len());
            if let Some(out) = out.borrow().as_ref() {
                out.write(case, dataset.as_ref(), &found.truth, &of)?;
                value["out"] = json!(out.target(case));
                if case + 1 == merged.job.cases.len() {
                    out.finish(&of)?;
                }
            }
            values.push(value);
            Ok::<_, anyhow::Error>(())
        })
    })?;
    printer.show(&values, || values.iter().map(text).collect::<Vec<_>>().join("\n"))?;
    match &args.out {
        Some(out) => printer.note(&format!("written: {}", out.display())),
        None if setting.cache_dir.is_some() => printer.note("the cache has it; --out writes it to a file"),
        None => printer.warning("nothing is written: give --out, as there is no cache directory"),
    }
    Ok(Outcome::Valid)
}
