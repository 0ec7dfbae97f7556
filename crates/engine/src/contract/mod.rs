//! The contract that every engine is held to: named checks against small data of the suite's own,
//! answers compared with the suite's own exact scan (`reference`).
//!
//! `annvil engine check` runs it against a live engine; every engine's tests run it too. It makes
//! and removes one table of its own. It has no clock: waiting is counted in polls, and a call that
//! never returns is for the caller to bound.

mod answers;
mod changes;
mod data;
mod filters;
mod setup;
mod subject;
#[cfg(test)]
mod tests;

use crate::{Definition, Engine, EngineError, LoadMethod, Params};
use data::Data;
use std::time::Duration;
use subject::Subject;
use types::{Element, Metric};

/// How the suite is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the table that is made, dropped and removed.
    pub table: String,
    /// Index kind; none for the definition's first.
    pub kind: Option<String>,
    /// Build parameters; the others have the definition's defaults.
    pub params: Params,
    /// How rows are inserted.
    pub load: LoadMethod,
    /// Metric; none for the first that the engine has.
    pub metric: Option<Metric>,
    /// Type of the rows' components; none for f32, or bits under hamming.
    pub element: Option<Element>,
    /// Rows of the main table.
    pub rows: usize,
    /// Components of a vector.
    pub dim: usize,
    /// Seed of the data.
    pub seed: u64,
    /// Threads of the build.
    pub threads: usize,
    /// Recall that the highest effort must reach; coarse quantization may need less.
    pub least_recall: f64,
    /// How often readiness and visibility are asked for before they count as missing ...
    pub polls: usize,
    /// ... and the pause between.
    pub pause: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            table: "annvil_contract".into(),
            kind: None,
            params: Params::new(),
            load: LoadMethod::Fastest,
            metric: None,
            element: None,
            rows: 1000,
            dim: 32,
            seed: 1,
            threads: 2,
            least_recall: 0.9,
            polls: 600,
            pause: Duration::from_millis(100),
        }
    }
}

/// What came of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// Name, such as `filter_eq_int`.
    pub name: &'static str,
    /// What holds where it passes.
    pub what: &'static str,
    /// Whether it does.
    pub outcome: Outcome,
}

/// Whether a check's statement holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    Passed,
    /// It does not; one line says what was found.
    Failed(String),
    /// It could not or need not be tested; one line says why.
    Skipped(String),
    /// It does not hold by design, says the definition; one line with its reason and what was found.
    Lacks(String),
}

/// Why a check did not pass.
enum Fault {
    Failed(String),
    Skipped(String),
    /// The definition says that the engine has not what the check is about.
    Lacking(String),
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Self {
        Fault::Failed(format!("{error} ({})", error.kind().name()))
    }
}

type Verdict = Result<(), Fault>;

fn failed<T>(reason: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Failed(reason.into()))
}

fn skipped<T>(reason: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Skipped(reason.into()))
}

fn lacking<T>(what: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Lacking(what.into()))
}

struct Check {
    name: &'static str,
    what: &'static str,
    run: fn(&Subject<'_>) -> Verdict,
    /// What follows makes no sense where it fails.
    vital: bool,
}

const fn vital(name: &'static str, what: &'static str, run: fn(&Subject<'_>) -> Verdict) -> Check {
    Check { name, what, run, vital: true }
}

const fn check(name: &'static str, what: &'static str, run: fn(&Subject<'_>) -> Verdict) -> Check {
    Check { name, what, run, vital: false }
}

/// In the order in which they run: each leaves the table as the next expects it.
const CHECKS: &[Check] = &[
    vital("identity", "the engine says its version", setup::identity),
    vital("create", "a new table is empty", setup::create),
    check("insert_dimension", "rows of another dimension are refused", setup::insert_dimension),
    vital("create_drops", "create drops what stands under its name", setup::create_drops),
    vital("insert_batches", "batches of one row, of many, and a short last one are accepted", setup::load),
    vital("count", "after the load the engine counts every row", setup::count),
    vital("build", "the index is built", setup::build),
    vital("readiness", "the index becomes ready, with every row in it", setup::readiness),
    check("index_read_back", "the index read back is the one asked for", setup::index_read_back),
    check("sizes", "sizes can be asked for", setup::sizes),
    vital("search", "every query is answered", answers::search),
    check("ids", "only keys come back that were inserted", answers::ids),
    check("k", "exactly k rows come back, never more", answers::k),
    check("no_duplicates", "no row comes back twice", answers::no_duplicates),
    check("order", "the nearest row comes first", answers::order),
    check("nearest_is_itself", "the row nearest to a stored vector is that row", answers::nearest_is_itself),
    check("effort", "every effort of the ladder works, more effort finds more", answers::effort),
    check("query_dimension", "queries of another dimension are refused", answers::query_dimension),
    check("index_used", "the query plan says that the index is used", answers::index_used),
    check("two_sessions", "two sessions at once get their own answers", answers::two_sessions),
    check("reconnect", "a new connection answers like the one before", answers::reconnect),
    check("filter_eq_int", "rows with an integer", filters::eq_int),
    check("filter_eq_float", "rows with a number", filters::eq_float),
    check("filter_eq_text", "rows with a text, quotes in it too", filters::eq_text),
    check("filter_eq_bool", "rows with a truth value", filters::eq_bool),
    check("filter_in", "rows with one of several values", filters::one_of),
    check("filter_range", "rows in a range, bounds included or not, missing values outside", filters::range),
    check("filter_and", "rows that satisfy both conditions", filters::and),
    check("filter_or", "rows that satisfy one of two conditions", filters::or),
    check("filter_none", "a filter that no row passes gives an empty answer", filters::none_match),
    check("filter_few", "a filter that fewer than k rows pass gives exactly those", filters::few_match),
    check("delete", "deleted rows are neither counted nor returned", changes::delete),
    check("reinsert", "rows deleted and inserted again come back", changes::reinsert),
    check("k_above_rows", "k above the number of rows gives every row once", changes::k_above_rows),
    check("zero_vector", "a vector that is all zero is accepted under cosine", changes::zero_vector),
    check("remove", "remove leaves nothing", changes::remove),
];

/// Whether there is a check of this name.
pub(crate) fn is_check(name: &str) -> bool {
    CHECKS.iter().any(|check| check.name == name)
}

/// Runs every check against `engine`, which `definition` describes. The table named in the options
/// is dropped and made several times and removed at the end.
pub fn run(engine: &dyn Engine, definition: &Definition, options: &Options) -> Vec<CheckResult> {
    run_with(engine, definition, options, &mut |_| ())
}

/// [`run`], with a call after each check.
pub fn run_with(
    engine: &dyn Engine,
    definition: &Definition,
    options: &Options,
    after: &mut dyn FnMut(&CheckResult),
) -> Vec<CheckResult> {
    let subject = Subject::new(engine, definition, options);
    let mut stopped_by: Option<&'static str> = None;
    let mut results = Vec::with_capacity(CHECKS.len());
    for check in CHECKS {
        let outcome = match (&subject, stopped_by) {
            (Err(reason), _) => Outcome::Skipped(reason.clone()),
            (Ok(_), Some(name)) if check.name != "remove" => Outcome::Skipped(format!("{name:?} failed")),
            (Ok(subject), _) => match (check.run)(subject) {
                Ok(()) => Outcome::Passed,
                Err(Fault::Skipped(reason)) => Outcome::Skipped(reason),
                Err(Fault::Lacking(what)) => {
                    let own = definition.lack(&subject.index.kind, check.name).map(str::to_owned);
                    Outcome::Lacks(own.unwrap_or_else(|| format!("{what}, says the definition")))
                }
                Err(Fault::Failed(found)) => match definition.lack(&subject.index.kind, check.name) {
                    Some(reason) => Outcome::Lacks(format!("{reason} (found: {found})")),
                    None => Outcome::Failed(found),
                },
            },
        };
        if check.vital && matches!(outcome, Outcome::Failed(_)) {
            stopped_by = stopped_by.or(Some(check.name));
        }
        let result = CheckResult { name: check.name, what: check.what, outcome };
        after(&result);
        results.push(result);
    }
    results
}
