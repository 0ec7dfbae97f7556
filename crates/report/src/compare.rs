//! Two runs side by side: which points of A stand also in B, and what moved between them.
//!
//! What is here: the comparison as data and the rule of its outcome. `compare/data.rs` says which
//! data sets are the same, `compare/pairs.rs` matches points and judges figures,
//! `compare/differences.rs` names what else differs, `compare/text.rs` shows it. What is not: a
//! ranking. A figure is told apart from another only beyond its spread, and a point whose figures
//! must not be used is never compared.

mod data;
mod differences;
mod pairs;
mod text;

#[cfg(test)]
mod tests;

use crate::{
    ReportError, format, manifest,
    view::{Selection, View},
};
use record::{Flag, Manifest, Phase, Point};
use serde::Serialize;
use types::stats::Verdict;

pub use text::comparison_text;

/// How runs are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompareOptions {
    /// A throughput or an index size that changes by a smaller share is not called moved: 0.05 is 5 %.
    pub least_effect: f64,
}

impl Default for CompareOptions {
    fn default() -> Self {
        CompareOptions { least_effect: 0.05 }
    }
}

/// What two runs say of each other. Changes are from A to B.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunComparison {
    /// The run compared with.
    pub a: RunName,
    /// The run in question.
    pub b: RunName,
    /// In a word.
    pub outcome: Outcome,
    /// What counted as the same, in words.
    pub tolerance: String,
    /// [`CompareOptions::least_effect`].
    pub least_effect: f64,
    /// Data sets in common, by their names in A.
    pub datasets: Vec<String>,
    /// Data sets that were not compared.
    pub datasets_apart: Vec<ApartDataset>,
    /// What else differs: tool, machine, engines, plan.
    pub differences: Vec<Difference>,
    /// How much could be compared.
    pub compared: Compared,
    /// Points that both runs have.
    pub pairs: Vec<Pair>,
    /// Points that only A has.
    pub only_a: Vec<Place>,
    /// Points that only B has.
    pub only_b: Vec<Place>,
    /// What moved, got better or got worse.
    pub changes: Vec<Change>,
    /// What could not be told, a sentence each.
    pub untold: Vec<String>,
}

impl RunComparison {
    /// What is worse in B: throughput or recall lower beyond the tolerance, points that failed or
    /// are missing.
    pub fn worse(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|c| c.worse)
    }
}

/// At how many search points of A what could be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// Search points of A on data that B has.
    pub of: usize,
    /// Throughput.
    pub throughput: usize,
    /// Recall.
    pub recall: usize,
}

/// A run in a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunName {
    /// Its name.
    pub name: String,
    /// When it was started.
    pub created_at: String,
    /// Program, version, commit, measurement version.
    pub tool: String,
    /// `valid`, `not_valid` or `not_finished`.
    pub verdict: String,
}

/// What a comparison comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every point of A that may be used stands in B, and nothing moved beyond the tolerance.
    Reproduced,
    /// Something moved.
    Moved,
    /// Nothing is known to have moved, but not everything could be compared.
    NotConfirmed,
}

/// A data set that was not compared, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApartDataset {
    /// Its name.
    pub name: String,
    /// What differs; empty where only one run has it.
    pub parts: Vec<Difference>,
    /// Whether A has it.
    pub in_a: bool,
    /// Whether B has it.
    pub in_b: bool,
}

/// Something that is not the same in both runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Of what: `machine`, `engine usearch`, `plan`, `data set builtin`.
    pub subject: String,
    /// Which part.
    pub item: String,
    /// In A; `-` where it has none.
    pub a: String,
    /// In B.
    pub b: String,
}

/// Where a point stands: everything that must agree for two points to be compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields of a record's point")]
pub struct Place {
    pub dataset: String,
    pub phase: Phase,
    pub engine: String,
    pub index_kind: String,
    pub build: String,
    pub effort_name: Option<String>,
    pub effort: Option<u64>,
    pub k: Option<u64>,
    pub clients: Option<u64>,
    pub filter: Option<String>,
    /// Engine and build for people.
    pub label: String,
    /// The knob for people: `ef_search=64`.
    pub at: Option<String>,
}

/// A point that both runs have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Where.
    pub place: Place,
    /// Key of the point in A.
    pub key_a: String,
    /// Key of the point in B.
    pub key_b: String,
    /// Why no figure of it is compared: it failed or is not valid in one of the runs.
    pub incomparable: Option<String>,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Marks that only the point of A has.
    pub marks_only_a: Vec<Flag>,
    /// Marks that only the point of B has.
    pub marks_only_b: Vec<Flag>,
}

/// A figure of a point in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Its name in records.
    pub name: &'static str,
    /// In A; null where it was not measured or must not be used.
    pub a: Option<f64>,
    /// In B.
    pub b: Option<f64>,
    /// B / A - 1; for recall B - A.
    pub change: Option<f64>,
    /// Whether B is larger or smaller; none where the figure is shown without a judgement.
    pub verdict: Option<Verdict>,
    /// Why the two are not distinguishable.
    pub because: Option<Because>,
    /// Why the figure is not compared although the point is.
    pub incomparable: Option<String>,
}

/// Why two figures are not distinguishable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// The ranges over the repeats overlap.
    RangesOverlap,
    /// The 95 % intervals overlap.
    IntervalsOverlap,
    /// They differ by less than the least effect.
    BelowLeastEffect,
    /// One of them was measured once, so its spread is not known.
    MeasuredOnce,
    /// One of them has no interval.
    NoInterval,
}

/// One thing that moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What.
    pub kind: ChangeKind,
    /// Whether it is a change for the worse.
    pub worse: bool,
    /// In words, with both values.
    pub text: String,
}

/// What can move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Queries a second.
    Throughput,
    /// Recall.
    Recall,
    /// Size of the index.
    IndexSize,
    /// Usable in one run and not in the other.
    Status,
    /// Not in B at all.
    Missing,
}

/// Compares the run B with the run A: (manifest, points) each.
///
/// Points are compared where data set, engine, kind of index, build parameters, effort, k,
/// clients and filter agree. Engine version and settings need not agree: they are named.
///
/// # Errors
/// [`ReportError::NotComparable`] where the runs have no data set in common, or were measured by
/// different rules; it names the part that differs with both values.
pub fn compare(
    a: (&Manifest, &[Point]),
    b: (&Manifest, &[Point]),
    options: CompareOptions,
) -> Result<RunComparison, ReportError> {
    let everything = Selection::default();
    let (view_a, view_b) = (View::new(a.0, a.1, &everything), View::new(b.0, b.1, &everything));
    data::same_rules(&view_a, &view_b)?;
    let data = data::matched(a.0, b.0)?;
    let judged = pairs::judged(&view_a, &view_b, &data, options);
    let mut comparison = RunComparison {
        a: run_name(a.0),
        b: run_name(b.0),
        outcome: Outcome::Reproduced,
        tolerance: tolerance(options),
        least_effect: options.least_effect,
        datasets: data.shared.iter().map(|(name, _)| name.clone()).collect(),
        datasets_apart: data.apart,
        differences: differences::between(a.0, b.0),
        compared: compared(&judged),
        pairs: judged.pairs,
        only_a: judged.only_a,
        only_b: judged.only_b,
        changes: judged.changes,
        untold: judged.untold,
    };
    add_what_concerns_the_runs(&mut comparison);
    comparison.outcome = outcome(&comparison);
    Ok(comparison)
}

/// Data sets that B lacks, and results that must not be used.
fn add_what_concerns_the_runs(comparison: &mut RunComparison) {
    for dataset in comparison.datasets_apart.iter().filter(|d| d.in_a) {
        let text = match dataset.in_b {
            true => format!("data set {}: B has another one of that name", dataset.name),
            false => format!("data set {}: not in B", dataset.name),
        };
        comparison.changes.push(Change { kind: ChangeKind::Missing, worse: true, text });
    }
    for (side, run) in [("A", &comparison.a), ("B", &comparison.b)] {
        if run.verdict != "valid" {
            comparison.untold.push(format!("{side} as a whole is {}", run.verdict.replace('_', " ")));
        }
    }
}

fn compared(judged: &pairs::Judged) -> Compared {
    let search = || judged.pairs.iter().filter(|p| p.place.phase == Phase::Sweep);
    let of =
        |name| search().flat_map(|p| &p.figures).filter(|f| f.name == name && f.verdict.is_some()).count();
    let missing = judged.only_a.iter().filter(|p| p.phase == Phase::Sweep).count();
    Compared { of: search().count() + missing, throughput: of(pairs::THROUGHPUT), recall: of(pairs::RECALL) }
}

/// Without one throughput to compare nothing is called reproduced, whatever recall says.
fn outcome(comparison: &RunComparison) -> Outcome {
    let compared = comparison.compared.throughput > 0;
    if comparison.changes.iter().any(|c| c.kind != ChangeKind::Missing) {
        Outcome::Moved
    } else if !compared || !comparison.changes.is_empty() || !comparison.untold.is_empty() {
        Outcome::NotConfirmed
    } else {
        Outcome::Reproduced
    }
}

fn run_name(m: &Manifest) -> RunName {
    RunName {
        name: m.name.clone(),
        created_at: m.created_at.clone(),
        tool: manifest::tool(m),
        verdict: manifest::verdict(m).0.to_lowercase().replace(' ', "_"),
    }
}

fn tolerance(options: CompareOptions) -> String {
    let effect = format::percent(options.least_effect);
    format!(
        "throughput moved where the ranges over the repeats do not overlap and the medians differ by at least {effect}; \
         recall where the 95 % intervals do not overlap; index size by at least {effect}. \
         Times and latencies are shown and not judged."
    )
}
