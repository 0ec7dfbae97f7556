//! Exact neighbours with progress, Ctrl-C and a cache.

mod drive;

use crate::{Preparation, RunnerError, event::Event};
use dataset::Dataset;
use drive::{Gauge, Work, drive};
use exact::{FilterRows, Search, Subset};
use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};
use types::{Filter, Filters, Metric, Truth};

/// How often a search is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Recomputes a sample of an unfiltered truth, with progress.
///
/// # Errors
/// Where metric and data do not fit, or the search is interrupted.
pub fn verify_truth(
    dataset: &Dataset,
    metric: Metric,
    truth: &Truth,
    check: exact::TruthCheck,
    with: &Preparation<'_>,
) -> Result<exact::TruthVerdict, RunnerError> {
    let what = format!("{}: check of its truth", dataset.name);
    with_progress(&what, "pairs", with, |options| {
        exact::verify_truth(&dataset.base, &dataset.queries, metric, truth, None, check, options)
    })
}

/// How exact searches run. The default: all CPUs, the best instruction set.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchSetting {
    /// Threads; all CPUs where none is given.
    pub threads: Option<usize>,
    /// The instruction set; the best where none is given.
    pub level: Option<exact::Level>,
}

/// An exact search to make.
pub struct TruthAsk<'a> {
    /// Metric.
    pub metric: Metric,
    /// Neighbours of each query.
    pub k: usize,
    /// The filter of each query.
    pub filters: &'a Filters,
    /// Threads; all CPUs where none is given.
    pub threads: Option<usize>,
}

/// Exact searches of the same queries under several filters, made in one scan.
pub struct TruthsAsk<'a> {
    /// Metric.
    pub metric: Metric,
    /// Neighbours of each query.
    pub k: usize,
    /// The cases: for each the filter of each query.
    pub cases: &'a [Filters],
    /// How to search.
    pub setting: SearchSetting,
}

/// A truth, and where it came from.
pub struct FoundTruth {
    /// It.
    pub truth: Truth,
    /// `computed` or `cached`.
    pub origin: &'static str,
}

/// What the search for those that were not cached took.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchFigures {
    /// Cases that were computed, all in the same scan.
    pub cases: usize,
    /// Seconds in the exact search alone: not reading files, hashing or evaluating filters.
    pub search_seconds: f64,
    /// Seconds in which the filters were evaluated over the columns.
    pub filter_seconds: f64,
    /// Pairs of a query and a row that may be its neighbour, over all cases computed.
    pub pairs: u64,
}

/// The exact neighbours of a data set's queries, from the cache or computed with progress, and
/// where they came from ("computed", "cached").
///
/// # Errors
/// Where metric and data do not fit, or the search is interrupted.
pub fn truth(
    dataset: &Dataset,
    ask: &TruthAsk<'_>,
    what: &str,
    with: &Preparation<'_>,
) -> Result<(Truth, String), RunnerError> {
    let setting = SearchSetting { threads: ask.threads, ..SearchSetting::default() };
    let cases = std::slice::from_ref(ask.filters);
    let ask = TruthsAsk { metric: ask.metric, k: ask.k, cases, setting };
    let (mut found, _) = truths(dataset, &ask, what, with)?;
    let FoundTruth { truth, origin } = found.remove(0);
    Ok((truth, origin.to_owned()))
}

/// The exact neighbours under each of several filters: those in the cache from there, all others
/// computed in one scan, with progress.
///
/// # Errors
/// Where metric and data do not fit, or the search is interrupted.
pub fn truths(
    dataset: &Dataset,
    ask: &TruthsAsk<'_>,
    what: &str,
    with: &Preparation<'_>,
) -> Result<(Vec<FoundTruth>, SearchFigures), RunnerError> {
    let cache = with.cache_dir.as_ref().map(|dir| exact::TruthCache::new(dir.join("truth")));
    let keys: Vec<_> = ask.cases.iter().map(|filters| truth_key(dataset, ask.metric, filters)).collect();
    let load = |key| cache.as_ref().and_then(|cache| cache.load(key, ask.k));
    let mut found: Vec<Option<FoundTruth>> = Vec::new();
    for key in &keys {
        found.push(load(key).map(|truth| FoundTruth { truth, origin: "cached" }));
    }
    let open: Vec<usize> = (0..found.len()).filter(|&i| found[i].is_none()).collect();
    let mut figures = SearchFigures::default();
    if !open.is_empty() {
        let cases: Vec<&Filters> = open.iter().map(|&i| &ask.cases[i]).collect();
        let (truths, took) = compute(dataset, ask, &cases, what, with)?;
        figures = took;
        for (i, truth) in open.into_iter().zip(truths) {
            if let Some(cache) = &cache
                && let Err(error) = cache.store(&keys[i], &truth)
            {
                let text = format!("the truth is used but could not be kept: {error}");
                (with.events)(&Event::Warning(&text));
            }
            found[i] = Some(FoundTruth { truth, origin: "computed" });
        }
    }
    Ok((found.into_iter().flatten().collect(), figures))
}

/// One scan for all `cases`.
fn compute(
    dataset: &Dataset,
    ask: &TruthsAsk<'_>,
    cases: &[&Filters],
    what: &str,
    with: &Preparation<'_>,
) -> Result<(Vec<Truth>, SearchFigures), RunnerError> {
    let begun = Instant::now();
    let rows = evaluated(dataset, cases)?;
    let filter_seconds = begun.elapsed().as_secs_f64();
    let all = 0..dataset.base.rows();
    let pairs = pairs(&rows, dataset.queries.rows(), &all);
    let work = Work { rows: all, pairs, dim: dataset.base.dim() };
    let subsets: Vec<Subset<'_>> = rows.iter().map(subset).collect();
    let gauge = Gauge::default();
    gauge.set(0, work.pairs);
    let progress = |done: u64, total: u64| gauge.of_step(done, total);
    let options = exact::Options {
        threads: ask.setting.threads,
        progress: Some(&progress),
        stop: Some(with.interrupted),
        level: ask.setting.level,
        ..exact::Options::default()
    };
    let search = || {
        let begun = Instant::now();
        let (base, queries) = (&dataset.base, &dataset.queries);
        let mut search = Search::new(base, queries, ask.metric, ask.k, &subsets, options)?;
        if !drive(&mut search, &work, &gauge, with.interrupted, |_| Ok::<_, RunnerError>(()))? {
            return Err(RunnerError::Interrupted);
        }
        Ok((search.finish(), begun.elapsed().as_secs_f64()))
    };
    let (truths, search_seconds) = watched(what, "pairs", with, &gauge, search)?;
    Ok((truths, SearchFigures { cases: cases.len(), search_seconds, filter_seconds, pairs }))
}

/// The rows that each query may see, by case; none where it may see all.
fn evaluated(dataset: &Dataset, cases: &[&Filters]) -> Result<Vec<Option<FilterRows>>, RunnerError> {
    let columns = dataset.columns.as_ref();
    let (rows, queries) = (dataset.base.rows(), dataset.queries.rows());
    let evaluate = |filters: &&Filters| match filters {
        Filters::None => Ok(None),
        filters => FilterRows::new(columns, filters, rows, queries).map(Some),
    };
    Ok(cases.iter().map(evaluate).collect::<Result<_, _>>()?)
}

fn subset(rows: &Option<FilterRows>) -> Subset<'_> {
    rows.as_ref().map_or(Subset::All, |rows| Subset::Groups(rows.groups()))
}

/// Pairs of a query and a row of `range` that its filter lets pass, over all cases.
fn pairs(cases: &[Option<FilterRows>], queries: usize, range: &Range<usize>) -> u64 {
    let of_group = |group: &exact::Group| {
        let rows = group.rows.as_ref().map_or(range.len(), |rows| rows.count_in(range.clone()));
        rows as u64 * group.queries.len() as u64
    };
    let of_case = |case: &Option<FilterRows>| match case {
        None => range.len() as u64 * queries as u64,
        Some(rows) => rows.groups().iter().map(of_group).sum(),
    };
    cases.iter().map(of_case).sum()
}

fn truth_key(dataset: &Dataset, metric: Metric, filters: &Filters) -> exact::TruthKey {
    let hashes = dataset.hashes();
    let key = exact::TruthKey::new(&hashes.base, &hashes.queries, metric);
    let groups = filters.groups(dataset.queries.rows());
    let text = |(filter, queries): &(Option<Arc<Filter>>, Vec<usize>)| {
        filter.as_ref().map(|f| format!("{f} for {queries:?}")).unwrap_or_default()
    };
    match filters {
        Filters::None => key,
        Filters::Same(filter) => {
            exact::TruthKey { columns: hashes.columns.clone(), filter: filter.to_string(), ..key }
        }
        Filters::PerQuery(_) => exact::TruthKey {
            columns: hashes.columns.clone(),
            filter: groups.iter().map(text).collect::<Vec<_>>().join("; "),
            ..key
        },
    }
}

/// Runs an exact search on another thread and tells how far it is.
fn with_progress<T: Send>(
    what: &str,
    unit: &'static str,
    with: &Preparation<'_>,
    search: impl FnOnce(&exact::Options<'_>) -> Result<T, exact::ExactError> + Send,
) -> Result<T, RunnerError> {
    let gauge = Gauge::default();
    let progress = |done: u64, total: u64| gauge.set(done, total);
    let options = exact::Options {
        progress: Some(&progress),
        stop: Some(with.interrupted),
        ..exact::Options::default()
    };
    watched(what, unit, with, &gauge, || match search(&options) {
        Err(exact::ExactError::Stopped) => Err(RunnerError::Interrupted),
        result => Ok(result?),
    })
}

/// Runs `work` on another thread and tells from this one how far `gauge` is.
fn watched<T: Send>(
    what: &str,
    unit: &'static str,
    with: &Preparation<'_>,
    gauge: &Gauge,
    work: impl FnOnce() -> Result<T, RunnerError> + Send,
) -> Result<T, RunnerError> {
    (with.events)(&Event::Begin { what, unit });
    let result = std::thread::scope(|scope| {
        let worker = scope.spawn(work);
        while !worker.is_finished() {
            std::thread::sleep(LOOK_EVERY);
            let (done, total) = gauge.read();
            (with.events)(&Event::Progress { done, total });
        }
        worker.join()
    });
    (with.events)(&Event::End);
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
