//! Whether a truth is right, query by query, and where it is not, what explains it.
//!
//! What is here: the entry and what it gives. In the folder: one list against the exact one
//! (`list`), the rules that order ties (`ties`), what explains real differences (`cause`), and the
//! sentence that sums up (`text`). What is not: reading files (crate `dataset`), and the quick
//! check of a sample before a run, which forgives more ([`crate::verify_truth`]).

mod cause;
mod list;
mod text;
mod ties;

use crate::distance::check_pair;
use crate::scale::ScaleFit;
use crate::search::thread_pool;
use crate::verify::sample;
use crate::{ExactError, FilterRows, Group, Options, Subset, TruthCheck, neighbours};
use list::{List, Standing};
use rayon::prelude::*;
use serde::Serialize;
use types::{Ids, Metric, Neighbour, Truth, Vectors};

pub use cause::Cause;
pub use ties::TieRule;

/// Differences that are shown.
const EXAMPLES: usize = 5;
/// Most queries that are searched again, deeper, to see the end of their ties.
const DEEPER_QUERIES: usize = 256;
/// Most neighbours that are looked at to see the end of a tie.
const DEEPEST: usize = 100_000;

/// A truth, and what it claims to be the truth of.
#[derive(Clone, Copy, Debug)]
pub struct AuditAsk<'a> {
    /// The rows that were searched.
    pub base: &'a Vectors,
    /// The queries; query i of the truth is row i.
    pub queries: &'a Vectors,
    /// The metric.
    pub metric: Metric,
    /// The truth. Its rows may be past the base: that is one of the findings.
    pub truth: &'a Truth,
    /// How many neighbours of each query are compared; at most the truth's depth.
    pub k: usize,
    /// The rows that each query may see, where the truth is one under a filter.
    pub filter: Option<&'a FilterRows>,
    /// The rows' own ids, where ties may be ordered by them.
    pub ids: Option<&'a Ids>,
    /// Which queries are computed again.
    pub check: TruthCheck,
}

/// One difference that no tie explains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The query, by number.
    pub query: usize,
    /// Where in the list; the nearest has rank 1.
    pub rank: usize,
    /// The row that the truth names there; none where its list has ended.
    pub row: Option<u32>,
    /// Its exact distance; none where it has none.
    pub distance: Option<f64>,
    /// The row that belongs there; none where the exact list has ended.
    pub exact_row: Option<u32>,
    /// Its distance.
    pub exact_distance: Option<f64>,
    /// What is wrong.
    pub what: Wrong,
}

/// What is wrong at a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wrong {
    /// The list has ended, though more rows qualify.
    TooShort,
    /// The base has no such row.
    NoSuchRow,
    /// The row stands further up, too.
    Repeated,
    /// The row does not pass the query's filter.
    FilterFails,
    /// The row has no distance: a zero vector under cosine.
    NoDistance,
    /// Fewer rows qualify than are listed.
    TooLong,
    /// A nearer row belongs here.
    NearerMissing,
    /// The row is nearer than the one that belongs here.
    TooFarDown,
}

impl Wrong {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Wrong::TooShort => "the list ends too soon",
            Wrong::NoSuchRow => "there is no such row",
            Wrong::Repeated => "the row stands further up, too",
            Wrong::FilterFails => "the row does not pass the filter",
            Wrong::NoDistance => "the row has no distance (zero vector)",
            Wrong::TooLong => "fewer rows qualify",
            Wrong::NearerMissing => "a nearer row is missing",
            Wrong::TooFarDown => "the row belongs further up",
        }
    }
}

/// What a check of a truth found. `message` sums it up in a sentence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TruthAudit {
    /// Whether all lists are right, ties aside.
    pub ok: bool,
    /// The metric.
    pub metric: Metric,
    /// Neighbours compared of each query.
    pub k: usize,
    /// Queries of the truth.
    pub queries: usize,
    /// Queries that were computed again.
    pub checked: usize,
    /// Those whose list is the exact one row by row, ties by the lower row.
    pub identical: usize,
    /// Those whose list differs in the order or choice of rows that tie.
    pub tied: usize,
    /// Those whose list is wrong.
    pub different: usize,
    /// Those that have no distance to any row (zero queries under cosine); in none of the above.
    pub undefined: usize,
    /// Share of neighbours that are among the nearest, ties included, 0 to 1; none where none is wanted.
    pub agreement: Option<f64>,
    /// What explains every difference among ties; none where there is none.
    pub tie_rule: Option<TieRule>,
    /// Largest difference of distance between the row named and the exact one, among ties: 0
    /// where all tie exactly.
    pub tie_gap: f64,
    /// What explains the wrong lists; none where there is none.
    pub cause: Option<Cause>,
    /// Wrong lists that `cause` explains, of those tried.
    pub explained: Option<(usize, usize)>,
    /// Queries for which another number of rows qualifies than the truth says.
    pub matching_differs: usize,
    /// What the truth's distances are: "distance", "squared distance" ...; none where it has none.
    pub distance_scale: Option<&'static str>,
    /// The first differences.
    pub examples: Vec<Difference>,
    /// All of this in a sentence, with what to do.
    pub message: String,
}

/// Computes the neighbours of `ask.check.sample` queries again (of all where there are no more) and
/// compares list by list. A truth that is wrong is a finding, not an error.
///
/// # Errors
/// Where metric and vectors do not fit, the truth has another number of queries, or the search is
/// stopped.
pub fn audit_truth(ask: &AuditAsk<'_>, options: &Options<'_>) -> Result<TruthAudit, ExactError> {
    check_pair(ask.base, ask.queries, ask.metric)?;
    let (found, expected) = (ask.truth.queries(), ask.queries.rows());
    if found != expected {
        return Err(ExactError::Length { what: "truth", unit: "queries", found, expected });
    }
    if ask.k == 0 {
        return Err(ExactError::ZeroK);
    }
    let k = ask.k.min(ask.truth.depth().max(1));
    let numbers = if found == 0 { Vec::new() } else { sample(found, ask.check) };
    let job = Job { ask: AuditAsk { k, ..*ask }, options, pool: thread_pool(options.threads)? };
    let exact = job.search(&numbers, Question::asked(ask, job.first_depth()))?;
    let mut lists = job.lists(&numbers, exact);
    job.look_deeper(&mut lists)?;
    job.judge(&lists)
}

/// What is asked of a search: the truth's own question, or another that may explain it.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    metric: Metric,
    depth: usize,
    rows: Rows<'a>,
}

/// Which rows a question is about.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a> {
    /// All.
    All,
    /// These, for every query.
    Same(&'a types::RowSet),
    /// Each query's own.
    Filter(&'a FilterRows),
}

impl<'a> Question<'a> {
    fn asked(ask: &AuditAsk<'a>, depth: usize) -> Question<'a> {
        Question { metric: ask.metric, depth, rows: ask.filter.map_or(Rows::All, Rows::Filter) }
    }
}

/// An audit under way.
pub(crate) struct Job<'a> {
    ask: AuditAsk<'a>,
    options: &'a Options<'a>,
    pool: rayon::ThreadPool,
}

impl Job<'_> {
    /// Deeper than asked, so that ties at the last rank are seen.
    fn first_depth(&self) -> usize {
        self.ask.k.saturating_add((self.ask.k / 4).max(32)).min(self.ask.base.rows().max(1))
    }

    /// The exact neighbours of the queries `numbers`, in that order.
    fn search(&self, numbers: &[usize], question: Question<'_>) -> Result<Truth, ExactError> {
        let queries = self.ask.queries.select(numbers.iter().copied());
        let groups: Vec<Group>;
        let subset = match question.rows {
            Rows::All => Subset::All,
            Rows::Same(rows) => Subset::Same(rows),
            Rows::Filter(filter) => {
                groups = filter.groups_of(numbers);
                Subset::Groups(&groups)
            }
        };
        neighbours(self.ask.base, &queries, question.metric, question.depth, subset, self.options)
    }

    /// Each list of the truth beside the exact one.
    fn lists(&self, numbers: &[usize], exact: Truth) -> Vec<List> {
        let make = |(at, &query): (usize, &usize)| {
            List::new(&self.ask, query, exact.of(at).to_vec(), exact.matching(at))
        };
        self.pool.install(|| numbers.par_iter().enumerate().map(make).collect())
    }

    /// Searches further where a tie at the last rank goes on past what was found.
    fn look_deeper(&self, lists: &mut [List]) -> Result<(), ExactError> {
        let most = DEEPEST.min(self.ask.base.rows());
        let mut depth = self.first_depth();
        while depth < most {
            depth = depth.saturating_mul(8).min(most);
            let open = |list: &&mut List| list.standing == Standing::Tied && !list.sees_end_of_ties();
            let mut open: Vec<&mut List> = lists.iter_mut().filter(open).take(DEEPER_QUERIES).collect();
            if open.is_empty() {
                return Ok(());
            }
            let numbers: Vec<usize> = open.iter().map(|list| list.query).collect();
            let exact = self.search(&numbers, Question::asked(&self.ask, depth))?;
            for (at, list) in open.iter_mut().enumerate() {
                list.exact = exact.of(at).to_vec();
            }
        }
        Ok(())
    }

    fn judge(&self, lists: &[List]) -> Result<TruthAudit, ExactError> {
        let count = |standing: Standing| lists.iter().filter(|list| list.standing == standing).count();
        let sum = |of: fn(&List) -> usize| lists.iter().map(of).sum::<usize>();
        let wanted = sum(|list| list.wanted);
        let (cause, explained) = self.cause(lists)?.unzip();
        let different = count(Standing::Different);
        let matching_differs = lists.iter().filter(|list| list.matching_differs).count();
        let tied = count(Standing::Tied);
        let mut audit = TruthAudit {
            ok: different == 0 && matching_differs == 0,
            metric: self.ask.metric,
            k: self.ask.k,
            queries: self.ask.queries.rows(),
            checked: lists.len(),
            identical: count(Standing::Identical),
            tied,
            different,
            undefined: count(Standing::Undefined),
            agreement: (wanted > 0).then(|| sum(|list| list.right) as f64 / wanted as f64),
            tie_rule: if tied > 0 { Some(ties::rule(self.ask.metric, self.ask.ids, lists)) } else { None },
            tie_gap: ties::gap(lists),
            cause,
            explained,
            matching_differs,
            distance_scale: self.scale(lists),
            examples: lists.iter().filter_map(|list| list.difference.clone()).take(EXAMPLES).collect(),
            message: String::new(),
        };
        audit.message = text::message(&audit);
        Ok(audit)
    }

    /// What the truth's distances are, by the lists that are right.
    fn scale(&self, lists: &[List]) -> Option<&'static str> {
        let mut fit = ScaleFit::new(self.ask.base.dim());
        for list in lists.iter().filter(|list| list.standing != Standing::Different) {
            for (named, &exact) in list.named.iter().zip(&list.distances) {
                fit.add(exact, named.distance);
            }
        }
        fit.name()
    }
}

/// The first `k` of a query's list.
fn head(truth: &Truth, query: usize, k: usize) -> &[Neighbour] {
    let list = truth.of(query);
    &list[..list.len().min(k)]
}
