//! Exact neighbours with progress, Ctrl-C and a cache.

use crate::{Preparation, RunnerError, event::Event};
use dataset::Dataset;
use std::{
    sync::Arc,
    sync::atomic::{AtomicU64, Ordering},
};
use types::{Filter, Filters, Metric, Truth};

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
    let cache = with.cache_dir.as_ref().map(|dir| exact::TruthCache::new(dir.join("truth")));
    let key = truth_key(dataset, ask);
    if let Some(truth) = cache.as_ref().and_then(|cache| cache.load(&key, ask.k)) {
        return Ok((truth, "cached".to_owned()));
    }
    let truth = with_progress(what, "pairs", with, |options| {
        let options = exact::Options { threads: ask.threads, ..*options };
        exact::truth_for(
            &dataset.base,
            &dataset.queries,
            dataset.columns.as_ref(),
            ask.metric,
            ask.k,
            ask.filters,
            None,
            &options,
        )
    })?;
    if let Some(cache) = cache
        && let Err(error) = cache.store(&key, &truth)
    {
        (with.events)(&Event::Warning(&format!("the truth is used but could not be kept: {error}")));
    }
    Ok((truth, "computed".to_owned()))
}

fn truth_key(dataset: &Dataset, ask: &TruthAsk<'_>) -> exact::TruthKey {
    let hashes = dataset.hashes();
    let key = exact::TruthKey::new(&hashes.base, &hashes.queries, ask.metric);
    let groups = ask.filters.groups(dataset.queries.rows());
    let text = |(filter, queries): &(Option<Arc<Filter>>, Vec<usize>)| {
        filter.as_ref().map(|f| format!("{f} for {queries:?}")).unwrap_or_default()
    };
    match ask.filters {
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
    let (done, total) = (AtomicU64::new(0), AtomicU64::new(0));
    let progress = |d: u64, t: u64| {
        total.store(t, Ordering::Relaxed);
        done.fetch_max(d, Ordering::Relaxed);
    };
    (with.events)(&Event::Begin { what, unit });
    let result = std::thread::scope(|scope| {
        let options = exact::Options {
            threads: None,
            progress: Some(&progress),
            stop: Some(with.interrupted),
            ..exact::Options::default()
        };
        let worker = scope.spawn(move || search(&options));
        while !worker.is_finished() {
            std::thread::sleep(std::time::Duration::from_millis(10));
            (with.events)(&Event::Progress {
                done: done.load(Ordering::Relaxed),
                total: total.load(Ordering::Relaxed),
            });
        }
        worker.join()
    });
    (with.events)(&Event::End);
    match result {
        Ok(Err(exact::ExactError::Stopped)) => Err(RunnerError::Interrupted),
        Ok(result) => Ok(result?),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
