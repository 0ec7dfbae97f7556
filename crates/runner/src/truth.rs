//! Exact neighbours with progress, Ctrl-C and a cache.

mod drive;
mod keep;
mod scan;
mod watch;

use crate::{Preparation, RunnerError, event::Event};
use dataset::Dataset;
use keep::Keep;
use std::{
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    time::Duration,
};
use types::{Filters, Metric, Truth};
use watch::{Gauge, Watched, watched};

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

/// Computes a truth again, list by list, and says how it differs, with progress.
///
/// # Errors
/// Where metric and data do not fit, or the search is interrupted.
pub fn audit_truth(
    what: &str,
    ask: &exact::AuditAsk<'_>,
    setting: SearchSetting,
    with: &Preparation<'_>,
) -> Result<exact::TruthAudit, RunnerError> {
    let SearchSetting { threads, level, method, .. } = setting;
    with_progress(what, "pairs", with, |options| {
        exact::audit_truth(ask, &exact::Options { threads, level, method, ..*options })
    })
}

/// How exact searches run.
#[derive(Clone, Copy, Debug)]
pub struct SearchSetting {
    /// Threads; all CPUs where none is given.
    pub threads: Option<usize>,
    /// Bytes that the search may take beside the base, which is mapped; no limit where none is given.
    pub memory: Option<u64>,
    /// The instruction set; the best where none is given.
    pub level: Option<exact::Level>,
    /// How pairs are ruled out before float64 decides; the answer does not depend on it.
    pub method: exact::Method,
    /// Whether filters share a scan; the answer does not depend on it.
    pub sharing: exact::Sharing,
    /// How often the state is kept, so that a search that is killed goes on.
    pub keep_every: Duration,
}

impl Default for SearchSetting {
    /// All CPUs, the best instruction set, the state kept every 30 s.
    fn default() -> Self {
        SearchSetting {
            threads: None,
            memory: None,
            level: None,
            method: exact::Method::Auto,
            sharing: exact::Sharing::Auto,
            keep_every: Duration::from_secs(30),
        }
    }
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
#[derive(Clone, Copy)]
pub struct TruthsAsk<'a> {
    /// Metric.
    pub metric: Metric,
    /// Neighbours of each query.
    pub k: usize,
    /// The cases.
    pub cases: &'a [TruthCase<'a>],
    /// How to search.
    pub setting: SearchSetting,
}

/// One case of a search.
#[derive(Clone, Copy)]
pub struct TruthCase<'a> {
    /// The filter as it was typed; none for all rows.
    pub text: Option<&'a str>,
    /// The filter of each query.
    pub filters: &'a Filters,
}

/// A truth, and where it came from.
pub struct FoundTruth {
    /// It.
    pub truth: Truth,
    /// `computed`, `cached` or `merged`.
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
    /// Pairs of a query and a row that may be its neighbour, over all cases and rows searched now
    /// (a search that goes on does not count what was done before).
    pub pairs: u64,
    /// How the first scan ruled pairs out, and with which instruction set.
    pub how: Option<(exact::Method, exact::Level)>,
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
    let cases = [TruthCase { text: None, filters: ask.filters }];
    let ask = TruthsAsk { metric: ask.metric, k: ask.k, cases: &cases, setting };
    let (mut found, _) = truths(dataset, &ask, what, with)?;
    let FoundTruth { truth, origin } = found.remove(0);
    Ok((truth, origin.to_owned()))
}

/// The exact neighbours under each of several filters: those in the cache from there, all others
/// computed in one scan, with progress. A search that was stopped or killed goes on where its state
/// was kept, in the cache directory.
///
/// # Errors
/// Where metric and data do not fit, or the search is interrupted.
pub fn truths(
    dataset: &Dataset,
    ask: &TruthsAsk<'_>,
    what: &str,
    with: &Preparation<'_>,
) -> Result<(Vec<FoundTruth>, SearchFigures), RunnerError> {
    let folder = with.cache_dir.as_ref().map(|dir| dir.join("truth"));
    let cache = folder.as_ref().map(exact::TruthCache::new);
    let keys: Vec<_> = ask.cases.iter().map(|case| truth_key(dataset, ask.metric, case.filters)).collect();
    let load = |key| cache.as_ref().and_then(|cache| cache.load(key, ask.k));
    let mut found: Vec<Option<FoundTruth>> = Vec::new();
    for key in &keys {
        found.push(load(key).map(|truth| FoundTruth { truth, origin: "cached" }));
    }
    let open: Vec<usize> = (0..found.len()).filter(|&i| found[i].is_none()).collect();
    let mut figures = SearchFigures::default();
    if !open.is_empty() {
        let cases: Vec<TruthCase<'_>> = open.iter().map(|&i| ask.cases[i]).collect();
        let header = scan::header(dataset, ask, &cases, (1, 1), Some(dataset.hashes().base.clone()));
        let path = folder.map(|folder| folder.join(state_name(&header)));
        let mut keep = Keep::new(path, header, ask.setting.keep_every);
        let conclude = |search: exact::Search<'_>, _: &[[u8; 32]]| Ok(search.finish());
        let (truths, took) = scan::scan(dataset, ask, &cases, &mut keep, what, with, conclude)?;
        figures = took;
        let mut kept = true;
        for (i, truth) in open.into_iter().zip(truths) {
            if let Some(cache) = &cache
                && let Err(error) = cache.store(&keys[i], &truth)
            {
                kept = false;
                let text = format!("the truth is used but could not be kept: {error}");
                (with.events)(&Event::Warning(&text));
            }
            found[i] = Some(FoundTruth { truth, origin: "computed" });
        }
        if kept {
            keep.remove();
        }
    }
    Ok((found.into_iter().flatten().collect(), figures))
}

/// Name of the file that keeps the state of a search in the cache: another search has another.
fn state_name(header: &exact::PartHeader) -> String {
    let text = format!("{:?} {:?}", header.job, header.tool);
    format!("{}.state", &blake3::hash(text.as_bytes()).to_hex()[..32])
}

/// A shard to search.
#[derive(Clone, Copy)]
pub struct ShardAsk<'a> {
    /// Which, from 1.
    pub shard: u32,
    /// Of how many.
    pub shards: u32,
    /// The file to write.
    pub out: &'a Path,
}

/// A shard that was searched and written.
pub struct ShardDone {
    /// What the file holds.
    pub header: exact::PartHeader,
    /// Its size.
    pub bytes: u64,
    /// What the search took.
    pub figures: SearchFigures,
}

/// Searches one shard of the rows and writes its part file: a function of data set, metric, filters,
/// k and shard alone. A search that was stopped or killed goes on from the file beside it, whose name
/// has `.state` added.
///
/// # Errors
/// Where metric and data do not fit, the file cannot be written, or the search is interrupted.
pub fn shard(
    dataset: &Dataset,
    ask: &TruthsAsk<'_>,
    shard: ShardAsk<'_>,
    what: &str,
    with: &Preparation<'_>,
) -> Result<ShardDone, RunnerError> {
    let header = scan::header(dataset, ask, ask.cases, (shard.shard, shard.shards), None);
    let mut state = shard.out.as_os_str().to_owned();
    state.push(".state");
    let mut keep = Keep::new(Some(state.into()), header.clone(), ask.setting.keep_every);
    let mut header = exact::PartHeader { searched: header.end, ..header };
    let conclude = |search: exact::Search<'_>, digests: &[[u8; 32]]| {
        header.digests = digests.len() as u64;
        Ok(exact::write_part(shard.out, &header, digests, search.found())?)
    };
    let (bytes, figures) = scan::scan(dataset, ask, ask.cases, &mut keep, what, with, conclude)?;
    keep.remove();
    Ok(ShardDone { header, bytes, figures })
}

/// What parts are of.
#[derive(Clone, Debug)]
pub struct MergedJob {
    /// Name of the data set.
    pub dataset: String,
    /// The search.
    pub job: exact::PartJob,
    /// Content hash of the base, from the digests of all parts.
    pub base_hash: String,
}

/// Merges the parts of a search that was split into shards: `sink` gets the truth of each case in turn,
/// exactly what one search finds. Each is kept in the cache too.
///
/// # Errors
/// Where a file is no whole part, the parts are not of one job, one is missing or given twice;
/// those of `begin` (called before anything is merged) and `sink`; or when interrupted.
pub fn merge<E: From<RunnerError>>(
    paths: &[PathBuf],
    with: &Preparation<'_>,
    begin: impl FnOnce(&MergedJob) -> Result<(), E>,
    mut sink: impl FnMut(&MergedJob, usize, FoundTruth) -> Result<(), E>,
) -> Result<(), E> {
    let (parts, merged) = opened(paths, with)?;
    begin(&merged)?;
    let cache = with.cache_dir.as_ref().map(|dir| exact::TruthCache::new(dir.join("truth")));
    exact::merge_parts(parts, |case, truth| {
        if let Some(cache) = &cache
            && let Err(error) = cache.store(&merged_key(&merged, case), &truth)
        {
            let text = format!("the truth is merged but could not be kept: {error}");
            (with.events)(&Event::Warning(&text));
        }
        sink(&merged, case, FoundTruth { truth, origin: "merged" }).map_err(Failed::Sink)
    })
    .map_err(Failed::into_error)
}

/// What ended a merge.
enum Failed<E> {
    Parts(exact::ExactError),
    Sink(E),
}

impl<E> From<exact::ExactError> for Failed<E> {
    fn from(error: exact::ExactError) -> Self {
        Failed::Parts(error)
    }
}

impl<E: From<RunnerError>> Failed<E> {
    fn into_error(self) -> E {
        match self {
            Failed::Parts(error) => RunnerError::Exact(error).into(),
            Failed::Sink(error) => error,
        }
    }
}

/// Opens and checks all parts, with progress.
fn opened(
    paths: &[PathBuf],
    with: &Preparation<'_>,
) -> Result<(Vec<exact::PartReader>, MergedJob), RunnerError> {
    (with.events)(&Event::Begin { what: "checking parts", unit: "parts" });
    let open = |(path, done): (&PathBuf, u64)| {
        if with.interrupted.load(Ordering::Relaxed) {
            return Err(RunnerError::Interrupted);
        }
        let part = exact::PartReader::open(path)?;
        (with.events)(&Event::Progress { done, total: paths.len() as u64 });
        Ok(part)
    };
    let parts: Result<Vec<_>, _> = paths.iter().zip(1..).map(open).collect();
    (with.events)(&Event::End);
    let parts = exact::in_order(parts?)?;
    let (dataset, job) = match parts.first() {
        Some(part) => (part.header().dataset.clone(), part.header().job.clone()),
        None => return Err(RunnerError::Refused("no parts are given".into())),
    };
    let base_hash = exact::base_hash(&parts);
    Ok((parts, MergedJob { dataset, job, base_hash }))
}

fn merged_key(merged: &MergedJob, case: usize) -> exact::TruthKey {
    let job = &merged.job;
    let identity = job.cases[case].identity.clone();
    let columns = job.columns_hash.clone().filter(|_| !identity.is_empty());
    exact::TruthKey {
        columns,
        filter: identity,
        ..exact::TruthKey::new(&merged.base_hash, &job.queries_hash, job.metric)
    }
}

fn truth_key(dataset: &Dataset, metric: Metric, filters: &Filters) -> exact::TruthKey {
    let hashes = dataset.hashes();
    let identity = identity(filters, dataset.queries.rows());
    let columns = hashes.columns.clone().filter(|_| !identity.is_empty());
    exact::TruthKey {
        columns,
        filter: identity,
        ..exact::TruthKey::new(&hashes.base, &hashes.queries, metric)
    }
}

/// What tells filters from all others, in keys: empty for none.
fn identity(filters: &Filters, queries: usize) -> String {
    let mut hasher = match filters {
        Filters::None => return String::new(),
        Filters::Same(filter) => return filter.to_string(),
        Filters::PerQuery(_) => blake3::Hasher::new(),
    };
    for (filter, queries) in filters.groups(queries) {
        let text = filter.map(|f| format!("{f} for {queries:?};")).unwrap_or_default();
        hasher.update(text.as_bytes());
    }
    format!("by query: {}", &hasher.finalize().to_hex()[..32])
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
    watched(Watched { what, unit, advice: None }, with, &gauge, || match search(&options) {
        Err(exact::ExactError::Stopped) => Err(RunnerError::Interrupted),
        result => Ok(result?),
    })
}
