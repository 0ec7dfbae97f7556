//! Many scores in one: the recall figures of a point.

use crate::QueryScore;
use serde::{Deserialize, Serialize};
use types::stats::{Interval, bootstrap_mean, mean, quantile};

/// Draws for the interval of the mean.
const RESAMPLES: usize = 1000;

/// Recall and correctness over a set of queries. Excluded queries are in no mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecallSummary {
    /// Mean recall; none where no query was evaluated.
    pub mean: Option<f64>,
    /// 5th percentile over queries.
    pub p5: Option<f64>,
    /// The worst query.
    pub min: Option<f64>,
    /// 95 % bootstrap interval of the mean over queries.
    pub interval: Option<Interval>,
    /// Mean overlap of ids with the truth.
    pub id_overlap_mean: Option<f64>,
    /// Mean of ann-benchmarks' recall.
    pub annb_mean: Option<f64>,
    /// Queries scored.
    pub queries: usize,
    /// Of them, with a recall.
    pub evaluated: usize,
    /// Of them, without: no row qualifies.
    pub excluded: usize,
    /// Mean number of ids returned.
    pub mean_returned: Option<f64>,
    /// Queries that got fewer rows than there are for them.
    pub short_queries: usize,
    /// Queries that got more than k.
    pub excess_queries: usize,
    /// Repeated ids, over all queries.
    pub duplicates: usize,
    /// Ids that name no row.
    pub unmappable: usize,
    /// Rows that do not pass the filter.
    pub filter_violations: usize,
    /// Rows that are deleted or not loaded.
    pub not_live: usize,
    /// Rows nearer than the one before them.
    pub out_of_order: usize,
    /// Hits that the truth's list does not hold: ties beyond its columns.
    pub ties_beyond_truth: usize,
}

impl RecallSummary {
    /// Whether any answer broke what an engine owes; see [`QueryScore::violates`].
    pub fn violates(&self) -> bool {
        self.duplicates + self.excess_queries + self.unmappable + self.filter_violations + self.not_live > 0
    }
}

/// Sums up the scores of a point.
pub fn summary(scores: &[QueryScore]) -> RecallSummary {
    let pick = |part: fn(&QueryScore) -> Option<f64>| scores.iter().filter_map(part).collect::<Vec<f64>>();
    let count = |part: fn(&QueryScore) -> usize| scores.iter().map(part).sum();
    let recalls = pick(|s| s.recall);
    RecallSummary {
        mean: mean(&recalls),
        p5: quantile(&recalls, 0.05),
        min: quantile(&recalls, 0.0),
        interval: bootstrap_mean(&recalls, 0.95, RESAMPLES, 1),
        id_overlap_mean: mean(&pick(|s| s.id_overlap)),
        annb_mean: mean(&pick(|s| s.annb)),
        queries: scores.len(),
        evaluated: recalls.len(),
        excluded: scores.len() - recalls.len(),
        mean_returned: mean(&pick(|s| Some(s.returned as f64))),
        short_queries: count(|s| usize::from(s.short)),
        excess_queries: count(|s| usize::from(s.excess > 0)),
        duplicates: count(|s| s.duplicates),
        unmappable: count(|s| s.unmappable),
        filter_violations: count(|s| s.filter_violations),
        not_live: count(|s| s.not_live),
        out_of_order: count(|s| s.out_of_order),
        ties_beyond_truth: count(|s| s.ties_beyond_truth),
    }
}

/// Expected recall of `k` distinct rows drawn at random from `rows` that qualify: min(1, k / rows).
pub fn chance_recall(k: usize, rows: usize) -> f64 {
    if rows == 0 { 1.0 } else { (k as f64 / rows as f64).min(1.0) }
}

/// Whether a mean recall over `queries` queries is what random answers give: at most chance plus three
/// standard deviations of their mean (hits taken as independent), and in any case below 0.02. Never
/// where chance itself is a half or more: such a set cannot tell.
pub fn is_chance_level(mean_recall: f64, k: usize, rows: usize, queries: usize) -> bool {
    let chance = chance_recall(k, rows);
    let draws = (k * queries).max(1) as f64;
    let deviation = (chance * (1.0 - chance) / draws).sqrt();
    chance < 0.5 && mean_recall <= (chance + 3.0 * deviation).max(0.02)
}
