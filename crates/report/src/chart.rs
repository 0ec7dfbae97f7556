//! The chart of throughput against recall, as data apart from its drawing.

use crate::{
    best, format,
    frontier::frontier,
    view::{self, Comparison},
};
use record::Point;
use serde::Serialize;
use types::{stats, units};

/// What a chart shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChartData {
    /// Heading.
    pub title: String,
    /// What the horizontal axis is.
    pub x_label: String,
    /// What the vertical axis is.
    pub y_label: String,
    /// Engines and builds.
    pub series: Vec<ChartSeries>,
    /// Points that are not in the chart, each with its reason.
    pub left_out: Vec<String>,
}

/// One engine and build.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChartSeries {
    /// Engine and build in words.
    pub label: String,
    /// By effort.
    pub points: Vec<ChartPoint>,
}

/// One point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChartPoint {
    /// Key of the record.
    pub key: String,
    /// Mean recall, 0 to 1.
    pub recall: f64,
    /// Queries per second, above 0.
    pub throughput: f64,
    /// Lowest and highest repeat, where there are several.
    pub range: Option<(f64, f64)>,
    /// No other point of the series is better in both.
    pub frontier: bool,
    /// The client was the limit: the engine's own figure is higher, so the point is never on the frontier.
    pub client_limited: bool,
    /// Everything about the point, as (name, value).
    pub details: Vec<(String, String)>,
}

impl ChartData {
    /// The chart of a comparison; none where no point can be drawn.
    pub(crate) fn new(comparison: &Comparison<'_>) -> Option<Self> {
        let mut left_out = Vec::new();
        let mut all = Vec::new();
        for series in &comparison.series {
            let mut points = Vec::new();
            for point in &series.points {
                match view::charted(point) {
                    Some((recall, throughput)) => points.push(chart_point(point, recall, throughput)),
                    None => left_out.push(format!("{}: {}", format::place(point), why_left_out(point))),
                }
            }
            mark_frontier(&mut points);
            if !points.is_empty() {
                all.push(ChartSeries { label: series.label.clone(), points });
            }
        }
        let recall = comparison.k.map_or_else(|| "recall".into(), |k| format!("recall@{k}"));
        (!all.is_empty()).then(|| ChartData {
            title: format!("Throughput against recall: {}", comparison.title),
            x_label: format!("{recall} (mean over queries; the axis is stretched towards 1)"),
            y_label: "queries/s (logarithmic)".into(),
            series: all,
            left_out,
        })
    }
}

fn why_left_out(point: &Point) -> String {
    view::why_not(point).unwrap_or_else(|| match (point.search.recall, point.search.throughput) {
        (None, _) => "recall n/a, it was not computed".into(),
        (_, None) => "throughput was not measured".into(),
        _ => "its figures cannot be drawn".into(),
    })
}

fn mark_frontier(points: &mut [ChartPoint]) {
    let eligible: Vec<usize> = (0..points.len()).filter(|&at| !points[at].client_limited).collect();
    let figures: Vec<(f64, f64)> =
        eligible.iter().map(|&at| (points[at].recall, points[at].throughput)).collect();
    for (at, on) in eligible.into_iter().zip(frontier(&figures)) {
        points[at].frontier = on;
    }
}

fn chart_point(point: &Point, recall: f64, throughput: f64) -> ChartPoint {
    let repeats = best::repeats(point);
    ChartPoint {
        key: point.key.clone(),
        recall,
        throughput,
        range: stats::range(repeats).filter(|_| repeats.len() > 1).map(|r| (r.low, r.high)),
        frontier: false,
        client_limited: view::client_limited(point),
        details: details(point),
    }
}

/// What a reader sees on a point: all parameters first, then its figures.
pub(crate) fn details(point: &Point) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: Option<String>| all.extend(value.map(|v| (name.to_owned(), v)));
    let s = &point.search;
    add("engine", Some(format!("{} {}", point.engine_title, point.engine_version)));
    add("index", Some(point.index_kind.clone()));
    for (name, value) in &point.params {
        add(name, Some(format::plain(value)));
    }
    add(point.effort_name.as_deref().unwrap_or("effort"), point.effort.map(|v| v.to_string()));
    add("k", point.k.map(|v| v.to_string()));
    add("clients", point.clients.map(|v| v.to_string()));
    add("filter", point.filter.clone());
    add("recall", s.recall.map(format::recall));
    add(
        "recall, 95 % interval",
        s.recall_low
            .zip(s.recall_high)
            .map(|(l, h)| format!("{} to {}", format::recall(l), format::recall(h))),
    );
    add(
        "recall p5 / min",
        s.recall_p5.zip(s.recall_min).map(|(p, m)| format!("{} / {}", format::recall(p), format::recall(m))),
    );
    add("id overlap", s.id_overlap.map(format::recall));
    add("queries/s", s.throughput.map(units::rate));
    add(
        "repeats",
        s.throughput_repeats
            .as_ref()
            .map(|r| r.iter().map(|v| units::rate(*v)).collect::<Vec<_>>().join(", ")),
    );
    for (name, ns) in [("p50", s.latency_p50_ns), ("p95", s.latency_p95_ns), ("p99", s.latency_p99_ns)] {
        add(name, ns.map(|ns| format::latency(ns as f64)));
    }
    add("errors", s.errors.as_ref().filter(|e| !e.is_empty()).map(|e| e.values().sum::<u64>().to_string()));
    let flags: Vec<String> = point.flags.iter().map(|f| f.name().replace('_', " ")).collect();
    add("flags", (!flags.is_empty()).then(|| flags.join(", ")));
    add("point", Some(point.key.clone()));
    all
}
