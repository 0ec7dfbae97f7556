//! Which points of two runs belong together, and whether their figures moved.

use super::{Because, Change, ChangeKind, CompareOptions, Figure, Pair, Place, data::Matched};
use crate::{
    best::repeats,
    format,
    view::{self, View},
};
use record::{Phase, Point, Status};
use types::{
    stats::{self, Interval, Verdict},
    units,
};

/// The points of two runs, matched and judged.
#[derive(Default)]
pub(super) struct Judged {
    pub(super) pairs: Vec<Pair>,
    pub(super) only_a: Vec<Place>,
    pub(super) only_b: Vec<Place>,
    pub(super) changes: Vec<Change>,
    pub(super) untold: Vec<String>,
}

/// Matches and judges every point on data that both runs have.
pub(super) fn judged(a: &View<'_>, b: &View<'_>, data: &Matched, options: CompareOptions) -> Judged {
    let known = |p: &&&Point| p.phase != Phase::Unknown;
    let in_b: Vec<&Point> = b.points.iter().filter(known).copied().collect();
    let mut used = vec![false; in_b.len()];
    let mut judged = Judged::default();
    for point in a.points.iter().filter(known) {
        let Some((_, dataset_b)) = data.shared.iter().find(|(name, _)| *name == point.dataset) else {
            continue;
        };
        // Where an engine stands twice in a run (with other options), the same key goes first.
        let fits =
            |at: &usize| !used[*at] && in_b[*at].dataset == *dataset_b && belong_together(point, in_b[*at]);
        let found = (0..in_b.len()).filter(fits).min_by_key(|at| in_b[*at].key != point.key);
        match found {
            Some(at) => {
                used[at] = true;
                judged.pair(point, in_b[at], options);
            }
            None => judged.missing(point),
        }
    }
    for (at, point) in in_b.iter().enumerate() {
        if !used[at] && data.shared.iter().any(|(_, name)| *name == point.dataset) {
            judged.only_b.push(place(point));
        }
    }
    judged
}

fn belong_together(a: &Point, b: &Point) -> bool {
    (a.phase, &a.engine, &a.index_kind, &a.params) == (b.phase, &b.engine, &b.index_kind, &b.params)
        && (&a.effort_name, a.effort, a.k, a.clients, &a.filter)
            == (&b.effort_name, b.effort, b.k, b.clients, &b.filter)
}

fn place(point: &Point) -> Place {
    Place {
        dataset: point.dataset.clone(),
        phase: point.phase,
        engine: point.engine.clone(),
        index_kind: point.index_kind.clone(),
        build: point.build.clone(),
        effort_name: point.effort_name.clone(),
        effort: point.effort,
        k: point.k,
        clients: point.clients,
        filter: point.filter.clone(),
        label: format::label(point),
        at: format::effort(point),
    }
}

impl Place {
    /// What it is measured on and with: `builtin, k=10, 1 client`.
    pub(super) fn circumstances(&self) -> String {
        let mut parts = vec![self.dataset.clone()];
        parts.extend(self.k.map(|k| format!("k={k}")));
        parts.extend(
            self.clients.map(|n| format::counted(usize::try_from(n).unwrap_or(usize::MAX), "client")),
        );
        parts.extend(self.filter.as_ref().map(|f| format!("filter {f}")));
        parts.join(", ")
    }

    /// `usearch m=16, ef_search=64 (builtin, k=10, 1 client)`; a load or build says so.
    pub(super) fn words(&self) -> String {
        let what = match self.phase {
            Phase::Load => ", load".to_owned(),
            Phase::Build => ", build".to_owned(),
            _ => self.at.as_ref().map_or_else(String::new, |at| format!(", {at}")),
        };
        format!("{}{what} ({})", self.label, self.circumstances())
    }
}

/// Why a point may not be compared: `failed in B: out of memory`.
fn state(side: &str, point: &Point) -> Option<String> {
    let reason = view::why_not(point)?;
    let what = match point.status {
        Status::Failed => "failed",
        Status::Skipped => "left out",
        _ => "not valid",
    };
    Some(format!("{what} in {side}: {reason}"))
}

impl Judged {
    /// A point that B does not have.
    fn missing(&mut self, point: &Point) {
        let place = place(point);
        if view::usable(point) {
            let text = format!("{}: not measured in B", place.words());
            self.changes.push(Change { kind: ChangeKind::Missing, worse: true, text });
        }
        self.only_a.push(place);
    }

    fn pair(&mut self, a: &Point, b: &Point, options: CompareOptions) {
        let place = place(a);
        let (state_a, state_b) = (state("A", a), state("B", b));
        let incomparable = [&state_a, &state_b].into_iter().flatten().cloned().collect::<Vec<_>>().join("; ");
        match (&state_a, &state_b) {
            (None, Some(why)) => self.status(&place, true, why),
            (Some(why), None) => self.status(&place, false, &format!("{why}; measured in B")),
            _ => {}
        }
        let comparable = incomparable.is_empty();
        let figures = if comparable { figures(a, b, options) } else { Vec::new() };
        for figure in &figures {
            self.judge(&place, figure, options);
        }
        self.pairs.push(Pair {
            place,
            key_a: a.key.clone(),
            key_b: b.key.clone(),
            incomparable: (!comparable).then_some(incomparable),
            figures,
            marks_only_a: a.flags.iter().filter(|f| !b.flags.contains(f)).copied().collect(),
            marks_only_b: b.flags.iter().filter(|f| !a.flags.contains(f)).copied().collect(),
        });
    }

    fn status(&mut self, place: &Place, worse: bool, why: &str) {
        let text = format!("{}: {why}", place.words());
        self.changes.push(Change { kind: ChangeKind::Status, worse, text });
    }

    /// Adds what a figure says to what moved, or to what could not be told.
    fn judge(&mut self, place: &Place, figure: &Figure, options: CompareOptions) {
        let (kind, what, show): (_, _, fn(f64) -> String) = match figure.name {
            THROUGHPUT => (ChangeKind::Throughput, "queries/s", units::rate),
            RECALL => (ChangeKind::Recall, "recall", format::recall),
            INDEX_BYTES => (ChangeKind::IndexSize, "size of the index", size),
            _ => return,
        };
        let values = || {
            let value = |v: Option<f64>| v.map_or_else(|| "-".into(), show);
            format!("{what} {} in A, {} in B", value(figure.a), value(figure.b))
        };
        let words = place.words();
        if let Some(why) = &figure.incomparable {
            // What A did not measure need not be found again.
            if figure.a.is_some() {
                self.untold.push(format!("{words}: {what}: {why}"));
            }
            return;
        }
        let unknown = matches!(figure.because, Some(Because::MeasuredOnce | Because::NoInterval));
        match figure.verdict {
            Some(verdict @ (Verdict::Larger | Verdict::Smaller)) => {
                let worse = verdict == Verdict::Smaller && kind != ChangeKind::IndexSize;
                let change =
                    figure.change.map_or_else(String::new, |c| format!(" ({})", signed(figure.name, c)));
                self.changes.push(Change { kind, worse, text: format!("{words}: {}{change}", values()) });
            }
            Some(Verdict::NotDistinguishable) if unknown => {
                let least = if kind == ChangeKind::Recall { f64::MIN_POSITIVE } else { options.least_effect };
                if figure.change.is_none_or(|c| c.abs() >= least) {
                    let why = "measured once or without an interval, so its spread is not known";
                    self.untold.push(format!("{words}: {}; {why}", values()));
                }
            }
            _ => {}
        }
    }
}

/// A change for people: `-12.3 %`, of recall `-0.0123`.
pub(super) fn signed(name: &str, change: f64) -> String {
    if name == RECALL { format!("{change:+.4}") } else { format!("{:+.1} %", change * 100.0) }
}

/// Bytes for people, of a figure.
pub(super) fn size(bytes: f64) -> String {
    units::bytes(bytes as u64)
}

/// Names of figures, as in records.
pub(super) const THROUGHPUT: &str = "throughput";
pub(super) const RECALL: &str = "recall";
pub(super) const P99: &str = "latency_p99_ns";
pub(super) const INDEX_BYTES: &str = "index_bytes";

/// The figures of two points of one phase that may be used.
fn figures(a: &Point, b: &Point, options: CompareOptions) -> Vec<Figure> {
    let plain = |name, of: fn(&Point) -> Option<f64>| relative(name, of(a), of(b));
    let all = match a.phase {
        Phase::Load => vec![
            plain("load_seconds", |p| p.load.load_seconds),
            plain("load_rows_per_second", |p| p.load.load_rows_per_second),
        ],
        Phase::Build => vec![
            plain("build_seconds", |p| p.built.build_seconds),
            plain("queryable_seconds", |p| p.built.queryable_seconds),
            index_bytes(a, b, options),
        ],
        _ => {
            let p99 = plain(P99, |p| p.search.latency_p99_ns.map(|ns| ns as f64));
            vec![not_limited(throughput(a, b, options), a, b), recall(a, b), not_limited(p99, a, b)]
        }
    };
    all.into_iter().filter(|f| f.a.is_some() || f.b.is_some() || f.incomparable.is_some()).collect()
}

fn relative(name: &'static str, a: Option<f64>, b: Option<f64>) -> Figure {
    let finite = |v: Option<f64>| v.filter(|v| v.is_finite());
    let (a, b) = (finite(a), finite(b));
    let change = a.zip(b).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a - 1.0);
    Figure { name, a, b, change, verdict: None, because: None, incomparable: None }
}

fn throughput(a: &Point, b: &Point, options: CompareOptions) -> Figure {
    let mut figure = relative(THROUGHPUT, a.search.throughput, b.search.throughput);
    let (repeats_a, repeats_b) = (repeats(a), repeats(b));
    let apart = stats::compare(repeats_b, repeats_a);
    let small = figure.change.is_none_or(|c| c.abs() < options.least_effect);
    let (verdict, because) = if repeats_a.len() < 2 || repeats_b.len() < 2 {
        (Verdict::NotDistinguishable, Some(Because::MeasuredOnce))
    } else if apart == Verdict::NotDistinguishable {
        (Verdict::NotDistinguishable, Some(Because::RangesOverlap))
    } else if small {
        (Verdict::NotDistinguishable, Some(Because::BelowLeastEffect))
    } else {
        (apart, None)
    };
    (figure.verdict, figure.because) = (Some(verdict), because);
    figure
}

fn recall(a: &Point, b: &Point) -> Figure {
    let mut figure = relative(RECALL, a.search.recall, b.search.recall);
    figure.change = figure.a.zip(figure.b).map(|(a, b)| b - a);
    if figure.a.is_none() && figure.b.is_none() {
        return figure;
    }
    let other_truth = a.truth_hash.is_some() && b.truth_hash.is_some() && a.truth_hash != b.truth_hash;
    if figure.change.is_none() || other_truth {
        figure.change = None;
        figure.incomparable = Some(match (figure.a, figure.b) {
            (_, None) => "not computed in B".into(),
            (None, _) => "not computed in A".into(),
            _ => "computed with another truth in B".into(),
        });
        return figure;
    }
    let (verdict, because) = match (interval(a), interval(b)) {
        (Some(x), Some(y)) if x.overlaps(y) => (Verdict::NotDistinguishable, Some(Because::IntervalsOverlap)),
        (Some(x), Some(y)) if y.low > x.high => (Verdict::Larger, None),
        (Some(_), Some(_)) => (Verdict::Smaller, None),
        _ => (Verdict::NotDistinguishable, Some(Because::NoInterval)),
    };
    (figure.verdict, figure.because) = (Some(verdict), because);
    figure
}

/// The 95 % interval of a point's recall. Where all queries are alike (each 1.0, say) the bootstrap
/// gives one of no width, although the next query could differ: then it is 3 / queries to both
/// sides, the bound for an event not seen in n trials (the rule of three, Hanley and Lippman-Hand 1983).
fn interval(p: &Point) -> Option<Interval> {
    let (low, high) = (p.search.recall_low?, p.search.recall_high?);
    let alike = high - low < 1e-12;
    let margin = p.search.recall_queries.filter(|n| alike && *n > 0).map_or(0.0, |n| 3.0 / n as f64);
    Some(Interval { low: (low - margin).max(0.0), high: (high + margin).min(1.0) })
}

/// A size is read and not timed, so it has no spread.
fn index_bytes(a: &Point, b: &Point, options: CompareOptions) -> Figure {
    let bytes = |p: &Point| p.built.index_bytes.map(|n| n as f64);
    let mut figure = relative(INDEX_BYTES, bytes(a), bytes(b));
    (figure.verdict, figure.because) = match figure.change {
        Some(c) if c.abs() < options.least_effect || c == 0.0 => {
            (Some(Verdict::NotDistinguishable), Some(Because::BelowLeastEffect))
        }
        Some(c) if c > 0.0 => (Some(Verdict::Larger), None),
        Some(_) => (Some(Verdict::Smaller), None),
        None => (None, None),
    };
    figure
}

/// Where the client was the limit, throughput and latency are not the engine's.
fn not_limited(mut figure: Figure, a: &Point, b: &Point) -> Figure {
    let limited = [("A", view::client_limited(a)), ("B", view::client_limited(b))];
    let sides: Vec<&str> = limited.iter().filter(|(_, is)| *is).map(|(side, _)| *side).collect();
    if sides.is_empty() {
        return figure;
    }
    figure.a = figure.a.filter(|_| !limited[0].1);
    figure.b = figure.b.filter(|_| !limited[1].1);
    (figure.change, figure.verdict, figure.because) = (None, None, None);
    figure.incomparable = Some(format!("limited by the client in {}", sides.join(" and ")));
    figure
}
