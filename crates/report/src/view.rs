//! The points of a run, put in order: which belong in one comparison, which in one series, which
//! may be used for a figure.

use crate::format;
use record::{Flag, Manifest, Phase, Point, Status};
use std::collections::{BTreeMap, BTreeSet};

/// What of a run to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only points of the data set of this name.
    pub dataset: Option<String>,
}

/// The records of a run, the last one of each key.
pub(crate) struct View<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) points: Vec<&'a Point>,
    /// Records of an earlier plan, which are not part of the result.
    pub(crate) unplanned: usize,
    /// Points that the plan asks for and no record tells of.
    pub(crate) missing: usize,
}

/// Sweep points that may stand in one chart: same data, truth, k, clients and filter.
pub(crate) struct Comparison<'a> {
    /// In words: `sentences, k=10, 1 client`.
    pub(crate) title: String,
    /// k, where it was recorded.
    pub(crate) k: Option<u64>,
    pub(crate) series: Vec<Series<'a>>,
}

/// The sweep points of one engine and build, by effort.
pub(crate) struct Series<'a> {
    /// Engine and build in words, unlike any other in the comparison.
    pub(crate) label: String,
    pub(crate) points: Vec<&'a Point>,
}

impl<'a> View<'a> {
    /// A point measured again (after a failure, or with --force) replaces the earlier record.
    pub(crate) fn new(manifest: &'a Manifest, points: &'a [Point], selection: &Selection) -> Self {
        let mut last = BTreeMap::new();
        for (at, point) in points.iter().enumerate() {
            last.insert(&point.key, at);
        }
        let planned: BTreeSet<&String> = manifest.planned.iter().collect();
        let in_plan = |p: &Point| planned.is_empty() || planned.contains(&p.key);
        let wanted = |p: &Point| selection.dataset.as_ref().is_none_or(|name| *name == p.dataset);
        let latest = || points.iter().enumerate().filter(|(at, p)| last[&p.key] == *at).map(|(_, p)| p);
        View {
            manifest,
            points: latest().filter(|p| in_plan(p) && wanted(p)).collect(),
            unplanned: latest().filter(|p| !in_plan(p)).count(),
            missing: planned.iter().filter(|key| !last.contains_key(**key)).count(),
        }
    }

    /// Points of a phase, in the order in which they were measured.
    pub(crate) fn of(&self, phase: Phase) -> impl Iterator<Item = &'a Point> + '_ {
        self.points.iter().copied().filter(move |p| p.phase == phase)
    }

    /// The measurement versions found, with the number of points of each.
    pub(crate) fn measurement_versions(&self) -> BTreeMap<u32, usize> {
        let mut versions = BTreeMap::new();
        for point in &self.points {
            *versions.entry(point.measurement_version).or_default() += 1;
        }
        versions
    }

    /// Sweep points in comparisons, in the order in which they were first measured. Points of
    /// another measurement version, data hash or truth never come together.
    pub(crate) fn comparisons(&self) -> Vec<Comparison<'a>> {
        type Key<'k> = (u32, &'k str, &'k str, Option<u64>, Option<u64>, Option<&'k str>, Option<&'k str>);
        let sweep: Vec<&Point> = self.of(Phase::Sweep).collect();
        let mut groups: Vec<(Key<'_>, Vec<&'a Point>)> = Vec::new();
        for point in &sweep {
            // A failed point may not know its truth: it goes with those of the same data.
            let truth = point.truth_hash.as_deref().or_else(|| {
                sweep
                    .iter()
                    .filter(|p| p.dataset_hash == point.dataset_hash && p.filter == point.filter)
                    .find_map(|p| p.truth_hash.as_deref())
            });
            let key: Key<'_> = (
                point.measurement_version,
                &point.dataset,
                &point.dataset_hash,
                point.k,
                point.clients,
                point.filter.as_deref(),
                truth,
            );
            match groups.iter_mut().find(|(other, _)| *other == key) {
                Some((_, points)) => points.push(point),
                None => groups.push((key, vec![point])),
            }
        }
        let mut comparisons: Vec<Comparison<'a>> = groups
            .iter()
            .map(|(_, points)| Comparison { title: title(points[0]), k: points[0].k, series: series(points) })
            .collect();
        // Two groups may read alike (the same data set name with another content): say what differs.
        for at in 0..comparisons.len() {
            if groups.iter().filter(|(_, points)| title(points[0]) == title(groups[at].1[0])).count() > 1 {
                let (version, _, hash, _, _, _, truth) = groups[at].0;
                let short = |hash: &str| hash.chars().take(12).collect::<String>();
                let truth = truth.map_or("none".into(), short);
                comparisons[at].title +=
                    &format!(" (data {}, truth {truth}, measurement version {version})", short(hash));
            }
        }
        comparisons
    }
}

/// A filter with how many rows pass it, as counted in the data.
fn filter(name: &str, point: &Point) -> String {
    let Some(matching) = point.search.matching_rows else { return format!("filter {name}") };
    let share = format::percent(matching / point.rows.max(1) as f64);
    let each = if matching.fract() == 0.0 { matching.to_string() } else { format!("{matching:.1}") };
    format!("filter {name} ({share} of rows pass: {each} of {})", point.rows)
}

fn title(point: &Point) -> String {
    let mut parts = vec![point.dataset.clone()];
    parts.extend(point.k.map(|k| format!("k={k}")));
    parts.extend(point.clients.map(|n| format::counted(usize::try_from(n).unwrap_or(usize::MAX), "client")));
    parts.extend(point.filter.as_ref().map(|name| filter(name, point)));
    parts.join(", ")
}

fn series<'a>(points: &[&'a Point]) -> Vec<Series<'a>> {
    let same = |a: &Point, b: &Point| {
        (&a.engine, &a.engine_version, &a.index_kind, &a.build)
            == (&b.engine, &b.engine_version, &b.index_kind, &b.build)
    };
    let mut all: Vec<Series<'a>> = Vec::new();
    for &point in points {
        match all.iter_mut().find(|s| same(s.points[0], point)) {
            Some(series) => series.points.push(point),
            None => all.push(Series { label: format::label(point), points: vec![point] }),
        }
    }
    for series in &mut all {
        series.points.sort_by_key(|p| p.effort);
        let first = series.points[0];
        if points.iter().any(|p| !same(p, first) && format::label(p) == format::label(first)) {
            series.label += &format!(" ({} {}, {})", first.engine, first.engine_version, first.index_kind);
        }
    }
    all
}

impl Series<'_> {
    /// Whether it is the exact control.
    pub(crate) fn exact(&self) -> bool {
        self.points[0].exact
    }
}

/// Whether the figures of a point may be used: it is valid, and no mark forbids it.
pub(crate) fn usable(point: &Point) -> bool {
    point.status == Status::Valid && !point.flags.iter().any(|f| f.invalidates())
}

/// Recall and throughput of a point that may be charted.
pub(crate) fn charted(point: &Point) -> Option<(f64, f64)> {
    let (recall, throughput) = (point.search.recall?, point.search.throughput?);
    (usable(point) && recall.is_finite() && throughput.is_finite() && throughput > 0.0)
        .then_some((recall, throughput))
}

/// Whether the client was the limit, so that the figure is not the engine's.
pub(crate) fn client_limited(point: &Point) -> bool {
    point.flags.contains(&Flag::ClientLimited)
}

/// Why a point may not be used; none where it may.
pub(crate) fn why_not(point: &Point) -> Option<String> {
    if usable(point) {
        return None;
    }
    let mut reasons: Vec<String> = Vec::new();
    reasons.extend(point.reason.clone());
    let marks: BTreeSet<Flag> = point.flags.iter().copied().filter(|f| f.invalidates()).collect();
    reasons.extend(marks.iter().map(|f| f.sentence().to_owned()));
    Some(if reasons.is_empty() { "no reason was recorded".into() } else { reasons.join("; ") })
}
