//! `annvil explain`: one query of a point, from its raw figures.

use crate::{
    args::ExplainArgs,
    exit::{Outcome, usage_error},
    paths,
    printer::Printer,
    progress::Progress,
    stop,
};
use comfy_table::{Table, presets};
use record::{Phase, Point, RunDir, read_raw};
use runner::{Plan, Preparation};
use serde_json::json;

pub(crate) fn run(args: &ExplainArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    let dir = RunDir::open(&args.run)?;
    let manifest = dir.manifest()?;
    let points = dir.points()?;
    let point = find(&points, &args.point)?;
    let raw = read_raw(&dir.raw_path(&point.key))?;
    let row = (0..raw.len()).find(|&row| raw.query[row] as usize == args.query).ok_or_else(|| {
        let last = raw.query.iter().max().copied().unwrap_or(0);
        usage_error(format!("the point has no query {}; its queries are 0 to {last}", args.query))
    })?;
    let entry = manifest.datasets.iter().find(|d| d.name == point.dataset);
    let source = entry.map_or(point.dataset.as_str(), |d| d.source.as_str());
    let mut plan: Plan = serde_json::from_value(manifest.plan.clone())?;
    plan.recall = true;
    plan.filters.retain(|f| Some(&f.name) == point.filter.as_ref());
    let progress = Progress::new(printer);
    let events = |event: &runner::Event<'_>| progress.on(event);
    let material = runner::material::prepare(
        source,
        &plan,
        &Preparation {
            cache_dir: paths::cache_dir(args.cache_dir.as_ref()),
            force: true,
            interrupted: &stop::flag(),
            events: &events,
        },
    )?;
    if material.dataset.hashes().base != point.dataset_hash {
        return Err(usage_error(format!(
            "{source} is not the data set that was measured: its content hash is {}, the point's {}",
            material.dataset.hashes().base,
            point.dataset_hash
        )));
    }
    let case = material
        .cases
        .iter()
        .find(|c| c.name == point.filter)
        .ok_or_else(|| usage_error(format!("the plan has no filter {:?}", point.filter)))?;
    let explanation =
        material.scorer(case, point.k.unwrap_or(10) as usize)?.explain(args.query, raw.ids_of(row));
    let value = json!({ "point": point.key, "engine": point.engine, "error": raw.error[row], "explanation": explanation });
    printer.show(&value, || text(point, &material, &explanation, raw.error[row].as_deref()))?;
    Ok(Outcome::Valid)
}

/// The point of a key, of the beginning of one, or of `engine:effort`.
fn find<'a>(points: &'a [Point], wanted: &str) -> anyhow::Result<&'a Point> {
    let searched: Vec<&Point> = points.iter().filter(|p| p.phase == Phase::Sweep).collect();
    let effort = |p: &Point| p.effort.map_or_else(|| p.engine.clone(), |e| format!("{}:{e}", p.engine));
    let found: Vec<&Point> =
        searched.iter().copied().filter(|p| p.key.starts_with(wanted) || effort(p) == wanted).collect();
    match found[..] {
        [] => {
            let known: Vec<String> = searched.iter().take(12).map(|p| effort(p)).collect();
            Err(usage_error(format!("no point {wanted:?}; the run has: {}", known.join(", "))))
        }
        [point] => Ok(point),
        _ => {
            let keys = found.iter().map(|p| {
                let filter = p.filter.as_ref().map(|f| format!(", filter {f}")).unwrap_or_default();
                format!("{} ({}, {} clients{filter})", p.key, p.build, p.clients.unwrap_or(1))
            });
            let keys: Vec<String> = keys.collect();
            Err(usage_error(format!("{wanted:?} is several points; name one by key: {}", keys.join(", "))))
        }
    }
}

fn text(point: &Point, material: &runner::Material, e: &exact::Explanation, error: Option<&str>) -> String {
    let mut text = format!("{} {}", point.engine, point.build);
    if let (Some(name), Some(effort)) = (&point.effort_name, point.effort) {
        text.push_str(&format!(" {name}={effort}"));
    }
    text.push_str(&format!(", query {} ({}, k = {})\n", e.query, point.metric, point.k.unwrap_or(0)));
    if let Some(error) = error {
        text.push_str(&format!("the query failed: {error}\n"));
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["RANK", "RETURNED", "DISTANCE", "COUNTS", "TRUE ROW", "TRUE DISTANCE"]);
    let ids = &material.dataset.ids;
    let show = |row: usize| if row < ids.len() { ids.get(row).to_string() } else { row.to_string() };
    for rank in 0..e.returned.len().max(e.truth.len()) {
        let returned = e.returned.get(rank);
        let mark = returned.map(|r| match (r.hit, r.note) {
            (true, _) if !r.in_truth => "yes (tie)".to_owned(),
            (true, _) => "yes".to_owned(),
            (false, note) => format!("no: {}", note.unwrap_or("too far")),
        });
        let truth = e.truth.get(rank);
        table.add_row([
            (rank + 1).to_string(),
            returned.map(|r| show(usize::try_from(r.id).unwrap_or(usize::MAX))).unwrap_or_default(),
            returned.and_then(|r| r.distance).map(|d| format!("{d:.7}")).unwrap_or_default(),
            mark.unwrap_or_default(),
            truth.map(|(row, _)| show(*row as usize)).unwrap_or_default(),
            truth.map(|(_, d)| format!("{d:.7}")).unwrap_or_default(),
        ]);
    }
    text.push_str(&format!("{table}\n"));
    match e.threshold {
        Some(threshold) => text.push_str(&format!(
            "threshold {threshold:.7} + {:.1e}: {} of {} wanted rows count, recall {:.4}; id overlap {:.4}; ann-benchmarks {:.4}\n",
            e.tolerance,
            e.score.hits,
            e.score.wanted,
            e.score.recall.unwrap_or(0.0),
            e.score.id_overlap.unwrap_or(0.0),
            e.score.annb.unwrap_or(0.0),
        )),
        None => text.push_str("no row qualifies: the query is excluded from the mean\n"),
    }
    text
}
