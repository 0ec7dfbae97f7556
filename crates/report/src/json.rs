//! The summary for scripts.

use crate::{
    best::{self, Best, FLOORS},
    format, manifest,
    view::{self, Comparison, Selection, View},
};
use record::{Manifest, Phase, Point};
use serde_json::{Value, json as object};

/// What `--json` prints: the verdict, the best throughput at each floor per comparison, load and build figures, and what
/// is not valid. Figures that were not measured are null. The points themselves are in `records.jsonl`.
pub fn json(manifest: &Manifest, points: &[Point]) -> Value {
    let view = View::new(manifest, points, &Selection::default());
    let (word, reasons) = manifest::verdict(manifest);
    let comparisons: Vec<Value> = view.comparisons().iter().map(comparison).collect();
    let phase = |phase: Phase| view.of(phase).map(figures).collect::<Vec<Value>>();
    let not_valid: Vec<Value> = view
        .points
        .iter()
        .filter_map(|p| {
            let reason = view::why_not(p)?;
            Some(object!({"key": p.key, "phase": p.phase, "status": p.status, "engine": p.engine, "build": p.build,
                "effort": p.effort, "reason": reason}))
        })
        .collect();
    object!({
        "name": manifest.name,
        "created_at": manifest.created_at,
        "tool": manifest.tool,
        "verdict": word.to_lowercase().replace(' ', "_"),
        "valid": manifest.verdict.as_ref().map(|v| v.valid),
        "reasons": reasons,
        "findings": manifest.verdict.as_ref().map(|v| &v.findings),
        "comparisons": comparisons,
        "load": phase(Phase::Load),
        "build": phase(Phase::Build),
        "not_valid": not_valid,
    })
}

fn figures(point: &Point) -> Value {
    object!({
        "key": point.key, "engine": point.engine, "build": point.build, "dataset": point.dataset,
        "status": point.status, "flags": point.flags, "load": point.load, "built": point.built,
    })
}

fn comparison(comparison: &Comparison<'_>) -> Value {
    let series: Vec<Value> = comparison
        .series
        .iter()
        .map(|series| {
            let first = series.points[0];
            let floors: Vec<Value> =
                FLOORS.iter().map(|floor| at_floor(best::best(series, *floor), *floor)).collect();
            object!({"label": series.label, "engine": first.engine, "engine_version": first.engine_version,
                "build": first.build, "params": first.params, "exact": first.exact, "floors": floors})
        })
        .collect();
    let ties: Vec<Value> = FLOORS
        .iter()
        .flat_map(|floor| best::ties(comparison, *floor).overlapping.into_iter().map(move |pair| (*floor, pair)))
        .map(|(floor, (a, b))| {
            object!({"floor": floor, "a": comparison.series[a].label, "b": comparison.series[b].label})
        })
        .collect();
    object!({"title": comparison.title, "k": comparison.k, "series": series, "not_distinguishable": ties})
}

fn at_floor(best: Best<'_>, floor: f64) -> Value {
    let (outcome, point, limited) = match best {
        Best::Reached { point, faster_limited } => ("reached", Some(point), faster_limited),
        Best::OnlyLimited(point) => ("client_limited", None, Some(point)),
        Best::NotReached(point) => ("not_reached", Some(point), None),
        Best::Nothing => ("no_valid_point", None, None),
    };
    let reached = point.filter(|_| outcome == "reached");
    object!({
        "floor": floor,
        "outcome": outcome,
        "throughput": reached.and_then(|p| p.search.throughput),
        "throughput_repeats": reached.map(best::repeats),
        "recall": point.and_then(|p| p.search.recall),
        "at": point.and_then(format::effort),
        "key": point.map(|p| &p.key),
        "flags": point.map(|p| &p.flags),
        "faster_but_client_limited": limited.map(|p| &p.key),
    })
}
