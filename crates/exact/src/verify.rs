//! Whether a truth that a file brings is the truth of these vectors: a sample is computed again.

use crate::distance::{Measure, check_metric, check_pair};
use crate::scale::ScaleFit;
use crate::score::tolerance;
use crate::{ExactError, FilterRows, Group, Options, Subset, chance_recall, is_chance_level, neighbours};
use serde::Serialize;
use std::collections::HashSet;
use types::{Metric, RowSet, Truth, Vectors};

/// Agreement from which a truth is believed. Below 1, for sets whose truth was computed in f32.
const BELIEVED: f64 = 0.99;
/// The head of each list, for the agreement that people compare with recall@10.
const HEAD: usize = 10;

/// How much is checked.
#[derive(Clone, Copy, Debug)]
pub struct TruthCheck {
    /// Queries computed again; all where there are no more.
    pub sample: usize,
    /// Chooses them.
    pub seed: u64,
}

impl Default for TruthCheck {
    fn default() -> Self {
        TruthCheck { sample: 50, seed: 1 }
    }
}

/// In which order a truth lists rows of equal distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TieOrder {
    /// No two listed rows tie.
    NoTies,
    /// Lower row first, as ours.
    LowerRowFirst,
    /// Higher row first.
    HigherRowFirst,
    /// Neither.
    Mixed,
}

impl TieOrder {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            TieOrder::NoTies => "no ties",
            TieOrder::LowerRowFirst => "ties by the lower row",
            TieOrder::HigherRowFirst => "ties by the higher row",
            TieOrder::Mixed => "ties in no order",
        }
    }
}

/// What a check found. `message` says it in one line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TruthVerdict {
    /// Whether the truth may be used.
    pub ok: bool,
    /// The metric checked.
    pub metric: Metric,
    /// Queries computed again.
    pub sampled: usize,
    /// Share of the first 10 of each list that are true neighbours, ties included; none where no
    /// sampled query has neighbours.
    pub agreement: Option<f64>,
    /// The same over whole lists.
    pub full_agreement: Option<f64>,
    /// Sampled queries whose list is ours row by row.
    pub identical: usize,
    /// Agreement under the other metrics, computed where the check failed.
    pub other_metrics: Vec<(Metric, f64)>,
    /// The other metric that the truth agrees with.
    pub agrees_with: Option<Metric>,
    /// The largest row number in the truth, where it is past the base.
    pub row_past_base: Option<u32>,
    /// Sampled queries with a list not sorted by distance.
    pub unsorted: usize,
    /// Sampled queries for which another number of rows qualifies than the file says.
    pub matching_differs: usize,
    /// Order of ties in the lists.
    pub tie_order: TieOrder,
    /// What the file's distances are: "distance", "squared distance" ...; none where it has none.
    pub distance_scale: Option<String>,
    /// All of this in one line, with what to do.
    pub message: String,
}

/// Computes a sample of `truth` again and compares, ties aside. `filter` holds the rows of each query,
/// where the truth is one under a filter.
///
/// A truth that is wrong is a verdict, not an error.
///
/// # Errors
/// Where metric and vectors do not fit, or the search is stopped.
pub fn verify_truth(
    base: &Vectors,
    queries: &Vectors,
    metric: Metric,
    truth: &Truth,
    filter: Option<&FilterRows>,
    check: TruthCheck,
    options: &Options<'_>,
) -> Result<TruthVerdict, ExactError> {
    check_pair(base, queries, metric)?;
    let mut verdict = TruthVerdict {
        ok: false,
        metric,
        sampled: 0,
        agreement: None,
        full_agreement: None,
        identical: 0,
        other_metrics: Vec::new(),
        agrees_with: None,
        row_past_base: None,
        unsorted: 0,
        matching_differs: 0,
        tie_order: TieOrder::NoTies,
        distance_scale: None,
        message: String::new(),
    };
    if truth.queries() != queries.rows() || truth.queries() == 0 {
        let (covered, all) = (truth.queries(), queries.rows());
        verdict.message = format!("truth covers {covered} of {all} queries: recompute it (annvil truth)");
        return Ok(verdict);
    }
    let largest = (0..truth.queries()).flat_map(|q| truth.of(q)).map(|n| n.row).max();
    if let Some(largest) = largest.filter(|&row| row as usize >= base.rows()) {
        verdict.row_past_base = Some(largest);
        verdict.message = format!(
            "truth names row {largest}, the base has {} rows: it was made for a larger base; recompute it (annvil truth)",
            base.rows()
        );
        return Ok(verdict);
    }
    let sample = sample(queries.rows(), check);
    verdict.sampled = sample.len();
    let case =
        Case { base, queries: &queries.select(sample.iter().copied()), truth, sample: &sample, filter };
    let found = case.compare(metric, options)?;
    verdict.agreement = found.agreement(found.head);
    verdict.full_agreement = found.agreement(found.full);
    verdict.identical = found.identical;
    verdict.unsorted = found.unsorted;
    verdict.matching_differs = found.matching_differs;
    verdict.tie_order = found.tie_order();
    verdict.distance_scale = case.distance_scale(metric);
    let believed =
        [verdict.agreement, verdict.full_agreement].iter().all(|a| a.is_none_or(|a| a >= BELIEVED));
    verdict.ok = believed && found.unsorted == 0 && found.matching_differs == 0;
    if !believed {
        for other in Metric::ALL {
            if other != metric && check_metric(other, base.element()).is_ok() {
                let found = case.compare(other, options)?;
                verdict.other_metrics.extend(found.agreement(found.full).map(|a| (other, a)));
            }
        }
        let best =
            verdict.other_metrics.iter().filter(|m| m.1 >= BELIEVED).max_by(|a, b| a.1.total_cmp(&b.1));
        verdict.agrees_with = best.map(|m| m.0);
    }
    verdict.message = message(&verdict, base.rows());
    Ok(verdict)
}

fn message(verdict: &TruthVerdict, rows: usize) -> String {
    let (metric, sampled) = (verdict.metric, verdict.sampled);
    let agreement = verdict.agreement.unwrap_or(1.0);
    let full = verdict.full_agreement.unwrap_or(1.0);
    if verdict.ok {
        let scale = match verdict.distance_scale.as_deref() {
            None | Some("distance") => String::new(),
            Some(other) => format!(", distances in the file: {other} (not used)"),
        };
        let ties = verdict.tie_order.text();
        return format!("truth agrees with {metric} on {sampled} queries ({full:.3}; {ties}{scale})");
    }
    if let Some(other) = verdict.agrees_with {
        return format!(
            "truth was made with {other}, not with {metric} (agreement {full:.2} on {sampled} queries): set --metric {other} or recompute it (annvil truth)"
        );
    }
    if is_chance_level(agreement, HEAD, rows, sampled) {
        let chance = chance_recall(HEAD, rows);
        return format!(
            "truth is of other vectors: agreement {agreement:.2} on {sampled} queries is chance ({chance:.2}) under every metric; recompute it (annvil truth)"
        );
    }
    if full < BELIEVED || agreement < BELIEVED {
        return format!(
            "truth does not match the base: agreement {agreement:.2} at 10, {full:.2} in all on {sampled} queries under {metric}, no other metric fits; it was made for other rows; recompute it (annvil truth)"
        );
    }
    if verdict.matching_differs > 0 {
        let differs = verdict.matching_differs;
        return format!(
            "truth counts other matching rows than the filter for {differs} of {sampled} queries: its columns or filter are others; recompute it (annvil truth)"
        );
    }
    format!(
        "truth is not sorted by {metric} distance for {} of {sampled} queries: sort or recompute it (annvil truth)",
        verdict.unsorted
    )
}

/// Up to `check.sample` different queries, ascending, chosen by the seed (a partial Fisher-Yates
/// shuffle over SplitMix64).
pub(crate) fn sample(queries: usize, check: TruthCheck) -> Vec<usize> {
    let mut all: Vec<usize> = (0..queries).collect();
    let count = check.sample.clamp(1, queries);
    let mut state = check.seed;
    for i in 0..count {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let rest = (queries - i) as u128;
        let offset = (u128::from(z ^ (z >> 31)) * rest) >> 64;
        all.swap(i, i + offset as usize);
    }
    all.truncate(count);
    all.sort_unstable();
    all
}

/// A truth and the queries of it that are looked at.
struct Case<'a> {
    base: &'a Vectors,
    /// The sampled queries alone.
    queries: &'a Vectors,
    truth: &'a Truth,
    /// Their numbers in the truth.
    sample: &'a [usize],
    filter: Option<&'a FilterRows>,
}

#[derive(Default)]
struct Comparison {
    /// (right, in all) of the first ten, and of whole lists.
    head: (usize, usize),
    full: (usize, usize),
    identical: usize,
    unsorted: usize,
    matching_differs: usize,
    ties_up: usize,
    ties_down: usize,
}

impl Comparison {
    fn agreement(&self, (right, all): (usize, usize)) -> Option<f64> {
        (all > 0).then(|| right as f64 / all as f64)
    }

    fn tie_order(&self) -> TieOrder {
        match (self.ties_up, self.ties_down) {
            (0, 0) => TieOrder::NoTies,
            (_, 0) => TieOrder::LowerRowFirst,
            (0, _) => TieOrder::HigherRowFirst,
            _ => TieOrder::Mixed,
        }
    }
}

impl Case<'_> {
    fn compare(&self, metric: Metric, options: &Options<'_>) -> Result<Comparison, ExactError> {
        let groups: Option<Vec<Group>> = self.filter.map(|filter| filter.groups_of(self.sample));
        let subset = groups.as_deref().map_or(Subset::All, Subset::Groups);
        let depth = self.truth.depth().max(1);
        let exact = neighbours(self.base, self.queries, metric, depth, subset, options)?;
        let mut found = Comparison::default();
        for (at, &query) in self.sample.iter().enumerate() {
            self.compare_query(metric, at, query, &exact, &mut found);
        }
        Ok(found)
    }

    fn compare_query(&self, metric: Metric, at: usize, query: usize, exact: &Truth, found: &mut Comparison) {
        let (ours, theirs) = (exact.of(at), self.truth.of(query));
        let measure = Measure::new(self.base, self.queries, at, metric);
        if !measure.probe.is_defined(metric) {
            return;
        }
        let (relative, absolute) = tolerance(metric, self.base, self.queries);
        let distances: Vec<f64> = theirs.iter().map(|n| measure.distance(n.row as usize)).collect();
        let rows: Option<&RowSet> = self.filter.and_then(|f| f.of(query)).map(|rows| &**rows);
        let mut part = |limit: usize, into: fn(&mut Comparison) -> &mut (usize, usize)| {
            let wanted = ours.len().min(limit);
            let Some(last) = wanted.checked_sub(1).map(|last| ours[last]) else { return };
            let norms = match metric {
                Metric::InnerProduct => measure.probe.norm * measure.row_norm(last.row as usize),
                _ => 1.0,
            };
            let threshold = last.distance + relative * last.distance.abs() + absolute * norms;
            let head = theirs.iter().zip(&distances).take(wanted);
            let right =
                head.filter(|(n, d)| **d <= threshold && rows.is_none_or(|set| set.contains(n.row as usize)));
            let right = right.map(|(n, _)| n.row).collect::<HashSet<u32>>().len();
            let sums = into(found);
            sums.0 += right;
            sums.1 += wanted;
        };
        part(HEAD, |c| &mut c.head);
        part(usize::MAX, |c| &mut c.full);
        found.identical += usize::from(ours.iter().map(|n| n.row).eq(theirs.iter().map(|n| n.row)));
        let norms = if metric == Metric::InnerProduct { measure.probe.norm } else { 1.0 };
        let unsorted = theirs.windows(2).zip(distances.windows(2)).any(|(rows, d)| {
            let row_norm =
                || if metric == Metric::InnerProduct { measure.row_norm(rows[0].row as usize) } else { 1.0 };
            d[1] < d[0] && d[1] < d[0] - relative * d[0].abs() - absolute * norms * row_norm()
        });
        found.unsorted += usize::from(unsorted);
        if rows.is_some() {
            found.matching_differs += usize::from(exact.matching(at) != self.truth.matching(query));
        }
        for (rows, d) in theirs.windows(2).zip(distances.windows(2)) {
            if d[0] == d[1] {
                if rows[0].row < rows[1].row { found.ties_up += 1 } else { found.ties_down += 1 }
            }
        }
    }

    /// What the file's distances are, from those of the sample; "unknown" where nothing fits.
    fn distance_scale(&self, metric: Metric) -> Option<String> {
        let mut fit = ScaleFit::new(self.base.dim());
        for (at, &query) in self.sample.iter().enumerate() {
            let measure = Measure::new(self.base, self.queries, at, metric);
            for neighbour in self.truth.of(query).iter().filter(|n| n.distance.is_finite()) {
                fit.add(measure.distance(neighbour.row as usize), neighbour.distance);
            }
        }
        fit.name().map(str::to_owned)
    }
}
