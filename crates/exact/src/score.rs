//! The score of one answer: the project's one recall rule, and what else is wrong with the answer.
//!
//! Over distinct returned ids, at most `k` of them, an id counts if its distance is not worse than
//! that of the k-th true neighbour. Both distances are recomputed in float64 from the vectors:
//! distances in a file may be on any scale and are never used. Ties count; a tolerance covers what
//! f32 rounding in an engine may do:
//!
//! | metric | tolerance around a distance d |
//! |---|---|
//! | l2 | 1e-6 d (1e-7 d where both sides are integers) |
//! | cosine | 1e-6 d + 2^-23, one f32 step of a similarity near 1 |
//! | inner product | 1e-6 abs(d) + 2^-23 abs(q) abs(x), x the k-th true neighbour |
//! | hamming | none |
//!
//! The denominator is min(k, rows that qualify). No answer scores 0. A query for which no row
//! qualifies has no recall and is counted apart.

use crate::distance::{Measure, check_pair};
use crate::{ExactError, FilterRows};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::HashSet;
use std::sync::Arc;
use types::{Element, Metric, RowSet, Truth, Vectors};

/// The rows that a query may return. The default: all.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    /// By the query's filter.
    pub filter: Option<Arc<FilterRows>>,
    /// Loaded and not deleted.
    pub live: Option<Arc<RowSet>>,
}

/// Scores answers of one set of queries against one truth; clients share it.
#[derive(Debug)]
pub struct Scorer {
    base: Vectors,
    queries: Vectors,
    metric: Metric,
    k: usize,
    allowed: Allowed,
    lines: Vec<Line>,
}

/// What is known of a query beforehand.
#[derive(Debug)]
struct Line {
    /// min(k, rows that qualify); 0 excludes the query.
    wanted: usize,
    /// Whether the query has distances at all (a zero query has none under cosine).
    defined: bool,
    /// Distance of the last row wanted; NaN where none is.
    threshold: f64,
    /// Tolerance as a share of a distance, and in addition to it.
    relative: f64,
    absolute: f64,
    /// The true rows, as in the truth, first `wanted`: for id overlap, sorted.
    ids: Vec<u32>,
    /// Distances of true rows (some past `wanted`), sorted by row.
    known: Vec<(u32, f64)>,
}

impl Line {
    fn slack(&self, distance: f64) -> f64 {
        self.relative * distance.abs() + self.absolute
    }
}

/// The score of one answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueryScore {
    /// Hits / wanted, 0 to 1; none where no row qualifies (the query is excluded from means).
    pub recall: Option<f64>,
    /// Distinct returned ids that are in the truth's first `wanted`, / wanted.
    pub id_overlap: Option<f64>,
    /// ann-benchmarks' rule: distinct ids among the first k with distance at most the k-th true one
    /// + 0.001 (hamming: as a share of the bits), / k.
    pub annb: Option<f64>,
    /// Returned ids that count.
    pub hits: usize,
    /// min(k, rows that qualify).
    pub wanted: usize,
    /// Ids returned, repeated ones too.
    pub returned: usize,
    /// Ids that stood before in the same answer.
    pub duplicates: usize,
    /// Fewer ids than wanted.
    pub short: bool,
    /// More ids than k: by how many.
    pub excess: usize,
    /// Ids that name no row.
    pub unmappable: usize,
    /// Rows that do not pass the query's filter.
    pub filter_violations: usize,
    /// Rows that are deleted or not loaded.
    pub not_live: usize,
    /// Rows that are nearer than the one before them, beyond the tolerance.
    pub out_of_order: usize,
    /// Hits that are not in the truth's list: more ties at rank k than the truth has columns.
    pub ties_beyond_truth: usize,
}

/// One returned id, judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReturnedRow {
    /// The id.
    pub id: u64,
    /// Recomputed distance; none where there is none.
    pub distance: Option<f64>,
    /// Whether it counts for recall.
    pub hit: bool,
    /// Whether the truth's first `wanted` hold it.
    pub in_truth: bool,
    /// Why it cannot count: "repeated", "no such row", "fails the filter", "deleted or not loaded",
    /// "past k", "no distance", "too far".
    pub note: Option<&'static str>,
}

/// One query's answer in full: the numbers that add up to its recall.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The query.
    pub query: usize,
    /// Distance of the last true neighbour wanted; none where no row qualifies.
    pub threshold: Option<f64>,
    /// What is allowed above the threshold.
    pub tolerance: f64,
    /// The returned ids in order.
    pub returned: Vec<ReturnedRow>,
    /// The truth's first `wanted` rows with recomputed distances, nearest first.
    pub truth: Vec<(u32, f64)>,
    /// The score.
    pub score: QueryScore,
}

impl Scorer {
    /// Prepares to score answers of `k`: recomputes the distances of true neighbours, on the cores of
    /// the current thread pool.
    ///
    /// # Errors
    /// Where the truth covers other queries, has fewer neighbours than recall at `k` needs, or names
    /// rows that do not exist or are not allowed; where metric and vectors do not fit.
    pub fn new(
        base: Vectors,
        queries: Vectors,
        metric: Metric,
        truth: &Truth,
        k: usize,
        allowed: Allowed,
    ) -> Result<Scorer, ExactError> {
        check_pair(&base, &queries, metric)?;
        if k == 0 {
            return Err(ExactError::ZeroK);
        }
        if truth.queries() != queries.rows() {
            let (found, expected) = (truth.queries(), queries.rows());
            return Err(ExactError::Length { what: "truth", unit: "queries", found, expected });
        }
        let line = |query| line(&base, &queries, query, metric, truth, k, &allowed);
        let lines = (0..queries.rows()).into_par_iter().map(line).collect::<Result<_, _>>()?;
        Ok(Scorer { base, queries, metric, k, allowed, lines })
    }

    /// What recall is taken at.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Number of queries.
    pub fn queries(&self) -> usize {
        self.lines.len()
    }

    /// How many rows a right answer to `query` has: min(k, rows that qualify).
    pub fn wanted(&self, query: usize) -> usize {
        self.lines[query].wanted
    }

    /// Scores the answer to `query`: row numbers, best first. An unanswered query is an empty slice.
    ///
    /// # Panics
    /// Where there is no such query.
    pub fn score(&self, query: usize, returned: &[u64]) -> QueryScore {
        self.judge(query, returned, |_| ())
    }

    /// The score of an answer with everything that leads to it.
    ///
    /// # Panics
    /// Where there is no such query.
    pub fn explain(&self, query: usize, returned: &[u64]) -> Explanation {
        let mut rows = Vec::with_capacity(returned.len());
        let score = self.judge(query, returned, |row| rows.push(row));
        let line = &self.lines[query];
        let mut truth: Vec<(u32, f64)> =
            line.known.iter().copied().filter(|(row, _)| line.ids.binary_search(row).is_ok()).collect();
        truth.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        let threshold = (line.wanted > 0).then_some(line.threshold);
        let tolerance = threshold.map_or(0.0, |t| line.slack(t));
        Explanation { query, threshold, tolerance, returned: rows, truth, score }
    }

    fn judge(&self, query: usize, returned: &[u64], mut each: impl FnMut(ReturnedRow)) -> QueryScore {
        let line = &self.lines[query];
        let filter = self.allowed.filter.as_ref().and_then(|f| f.of(query));
        // Nothing passes, and which rows do is not known here: whatever came back is wrong.
        let nothing_passes = line.wanted == 0 && line.defined && filter.is_none();
        let mut score = QueryScore::empty(line.wanted, self.k, returned.len());
        let mut seen = HashSet::with_capacity(returned.len());
        let mut measure = None;
        let (mut overlap, mut annb) = (0, 0);
        let mut before = f64::NEG_INFINITY;
        for (rank, &id) in returned.iter().enumerate() {
            let mut judged = ReturnedRow { id, distance: None, hit: false, in_truth: false, note: None };
            let row = usize::try_from(id).ok().filter(|&row| row < self.base.rows());
            let Some(row) = row else {
                score.unmappable += 1;
                each(ReturnedRow { note: Some("no such row"), ..judged });
                continue;
            };
            if !seen.insert(row) {
                score.duplicates += 1;
                each(ReturnedRow { note: Some("repeated"), ..judged });
                continue;
            }
            let passes = filter.map_or(!nothing_passes, |set| set.contains(row));
            let live = self.allowed.live.as_ref().is_none_or(|set| set.contains(row));
            score.filter_violations += usize::from(!passes);
            score.not_live += usize::from(!live);
            let known = line.known.binary_search_by_key(&row, |&(row, _)| row as usize);
            let distance = match known {
                Ok(at) => line.known[at].1,
                Err(_) if line.defined => measure
                    .get_or_insert_with(|| Measure::new(&self.base, &self.queries, query, self.metric))
                    .distance(row),
                Err(_) => f64::NAN,
            };
            if !distance.is_nan() {
                judged.distance = Some(distance);
                score.out_of_order += usize::from(distance < before - line.slack(before));
                before = distance;
            }
            judged.in_truth = u32::try_from(row).is_ok_and(|row| line.ids.binary_search(&row).is_ok());
            judged.note = match () {
                () if !passes => Some("fails the filter"),
                () if !live => Some("deleted or not loaded"),
                () if distance.is_nan() => Some("no distance"),
                () if seen.len() > self.k => Some("past k"),
                () if line.wanted > 0 && distance <= line.threshold + line.slack(line.threshold) => None,
                () => Some("too far"),
            };
            judged.hit = judged.note.is_none();
            score.hits += usize::from(judged.hit);
            score.ties_beyond_truth += usize::from(judged.hit && known.is_err());
            let counts = passes && live;
            overlap += usize::from(counts && judged.in_truth && seen.len() <= self.k);
            annb += usize::from(counts && rank < self.k && distance <= self.annb_limit(line));
            each(judged);
        }
        score.hits = score.hits.min(line.wanted);
        if line.wanted > 0 {
            score.recall = Some(score.hits as f64 / line.wanted as f64);
            score.id_overlap = Some(overlap as f64 / line.wanted as f64);
            score.annb = Some(annb as f64 / self.k as f64);
        }
        score
    }

    /// ann-benchmarks adds 1e-3 to the distance whatever its scale; its hamming distance is a share.
    fn annb_limit(&self, line: &Line) -> f64 {
        let unit = if self.metric == Metric::Hamming { self.base.dim() as f64 } else { 1.0 };
        line.threshold + 1e-3 * unit
    }
}

impl QueryScore {
    fn empty(wanted: usize, k: usize, returned: usize) -> QueryScore {
        QueryScore {
            recall: None,
            id_overlap: None,
            annb: None,
            hits: 0,
            wanted,
            returned,
            duplicates: 0,
            short: returned < wanted,
            excess: returned.saturating_sub(k),
            unmappable: 0,
            filter_violations: 0,
            not_live: 0,
            out_of_order: 0,
            ties_beyond_truth: 0,
        }
    }

    /// Whether the answer breaks what any engine owes: repeated or unknown ids, more than k, rows that
    /// do not pass the filter or are not there.
    pub fn violates(&self) -> bool {
        self.duplicates + self.excess + self.unmappable + self.filter_violations + self.not_live > 0
    }
}

fn line(
    base: &Vectors,
    queries: &Vectors,
    query: usize,
    metric: Metric,
    truth: &Truth,
    k: usize,
    allowed: &Allowed,
) -> Result<Line, ExactError> {
    let measure = Measure::new(base, queries, query, metric);
    let defined = measure.probe.is_defined(metric);
    let wanted = if defined { truth.wanted(query, k) } else { 0 };
    let (relative, absolute) = tolerance(metric, base, queries);
    let mut line =
        Line { wanted, defined, threshold: f64::NAN, relative, absolute, ids: Vec::new(), known: Vec::new() };
    let list = truth.of(query);
    if wanted == 0 {
        return Ok(line);
    }
    if list.len() < wanted {
        return Err(ExactError::NarrowTruth { depth: list.len(), query, k });
    }
    let filter = allowed.filter.as_ref().and_then(|f| f.of(query));
    for neighbour in list.iter().take(wanted.saturating_mul(2).saturating_add(16)) {
        let row = neighbour.row as usize;
        if row >= base.rows() {
            return Err(ExactError::TruthRow { query, row: neighbour.row, rows: base.rows() });
        }
        let live = allowed.live.as_ref().is_none_or(|set| set.contains(row));
        if !live || filter.is_some_and(|set| !set.contains(row)) {
            return Err(ExactError::TruthNotAllowed { query, row: neighbour.row });
        }
        line.known.push((neighbour.row, measure.distance(row)));
    }
    line.ids = list[..wanted].iter().map(|n| n.row).collect();
    line.ids.sort_unstable();
    // The k-th by recomputed distance: the order in a file may come from coarser arithmetic.
    line.known.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    line.known.dedup_by_key(|known| known.0);
    let (last, threshold) = line.known[(wanted - 1).min(line.known.len() - 1)];
    line.threshold = threshold;
    if metric == Metric::InnerProduct {
        line.absolute *= measure.probe.norm * measure.row_norm(last as usize);
    }
    line.known.sort_by_key(|known| known.0);
    Ok(line)
}

/// Relative and absolute tolerance of a metric; for the inner product the second still lacks the norms.
pub(crate) fn tolerance(metric: Metric, base: &Vectors, queries: &Vectors) -> (f64, f64) {
    const STEP: f64 = 1.0 / (1 << 23) as f64;
    let integer = |v: &Vectors| matches!(v.element(), Element::I8 | Element::U8);
    match metric {
        Metric::Hamming => (0.0, 0.0),
        Metric::L2 if integer(base) && integer(queries) => (1e-7, 0.0),
        Metric::L2 => (1e-6, 0.0),
        Metric::Cosine | Metric::InnerProduct => (1e-6, STEP),
    }
}
