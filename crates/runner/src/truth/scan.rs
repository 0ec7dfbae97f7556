//! One exact search of several cases over some rows of a base: evaluated, driven, kept.

use super::{
    SearchFigures, TruthCase, TruthsAsk,
    drive::{Work, drive, first_products},
    keep::Keep,
    watch::{Gauge, Watched, watched},
};
use crate::{Preparation, RunnerError, event::Event};
use dataset::Dataset;
use exact::{FilterRows, PartFilter, PartHeader, PartJob, Partial, Search, Subset};
use std::{ops::Range, time::Instant};
use types::{Filters, units};

/// Bytes of a neighbour in the lists of a search.
const NEIGHBOUR_BYTES: u64 = 16;

/// What a search is of, as its files say it. With the base's hash where the whole base is read anyway.
pub(super) fn header(
    dataset: &Dataset,
    ask: &TruthsAsk<'_>,
    cases: &[TruthCase<'_>],
    (shard, shards): (u32, u32),
    base_hash: Option<String>,
) -> PartHeader {
    let (rows, queries) = (dataset.base.rows(), dataset.queries.rows());
    let filtered = cases.iter().any(|case| !matches!(case.filters, Filters::None));
    let columns = || dataset::hash::of_columns(dataset.columns.as_ref(), dataset.query_columns.as_ref());
    let case = |case: &TruthCase<'_>| PartFilter {
        filter: case.text.map(str::to_owned),
        identity: super::identity(case.filters, queries),
    };
    let range = exact::shard_rows(rows, dataset::HASH_CHUNK_ROWS, shard, shards);
    PartHeader {
        tool: format!("annvil {}", env!("CARGO_PKG_VERSION")),
        dataset: dataset.name.clone(),
        job: PartJob {
            rows: rows as u64,
            dim: dataset.base.dim() as u64,
            element: dataset.base.element(),
            queries: queries as u64,
            metric: ask.metric,
            k: ask.k as u64,
            cases: cases.iter().map(case).collect(),
            queries_hash: dataset::hash::vectors(&dataset.queries),
            columns_hash: filtered.then(columns).flatten(),
            base_hash,
            chunk_rows: dataset::HASH_CHUNK_ROWS as u64,
            shards,
        },
        shard,
        begin: range.start as u64,
        end: range.end as u64,
        searched: range.start as u64,
        digests: 0,
    }
}

/// One scan for all `cases`, over the rows that `keep` names; goes on from a kept state. `conclude` gets
/// the finished search and the digests of its rows, where the job has no hash of the base.
///
/// # Errors
/// Where metric and data do not fit. [`RunnerError::Interrupted`], with the state kept and said.
pub(super) fn scan<T: Send>(
    dataset: &Dataset,
    ask: &TruthsAsk<'_>,
    cases: &[TruthCase<'_>],
    keep: &mut Keep,
    what: &str,
    with: &Preparation<'_>,
    conclude: impl FnOnce(Search<'_>, &[[u8; 32]]) -> Result<T, RunnerError> + Send,
) -> Result<(T, SearchFigures), RunnerError> {
    check_memory(ask, cases.len(), dataset.queries.rows())?;
    let begun = Instant::now();
    let rows = evaluated(dataset, cases)?;
    let filter_seconds = begun.elapsed().as_secs_f64();
    let begin = keep.header.begin as usize;
    let (found, mut digests) = keep
        .load(dataset, with)
        .unwrap_or_else(|| (Partial::new(begin, cases.len(), dataset.queries.rows()), Vec::new()));
    let left = found.rows().end..keep.header.end as usize;
    let pairs = pairs(&rows, dataset.queries.rows(), &left);
    // A few steps between two saves.
    let step = (keep.every / 3).min(std::time::Duration::from_secs(10));
    let threads = ask.setting.threads.or_else(|| Some(std::thread::available_parallelism().ok()?.get()));
    let level = ask.setting.level.unwrap_or_else(exact::Level::detect);
    let first = first_products(level, threads.unwrap_or(1), step);
    let memory = ask.setting.memory;
    let work = Work { rows: left, pairs, dim: dataset.base.dim(), first, step, memory };
    let subsets: Vec<Subset<'_>> = rows.iter().map(subset).collect();
    let gauge = Gauge::default();
    gauge.set(0, work.pairs);
    let progress = |done: u64, total: u64| gauge.of_step(done, total);
    let options = exact::Options {
        threads: ask.setting.threads,
        progress: Some(&progress),
        stop: Some(with.interrupted),
        level: ask.setting.level,
        memory: ask.setting.memory,
        method: ask.setting.method,
        sharing: ask.setting.sharing,
    };
    let hashed = keep.header.job.base_hash.is_none();
    let search = || {
        let mut search = Search::new(&dataset.base, &dataset.queries, ask.metric, ask.k, &subsets, options)?;
        search.resume(found)?;
        let driven = drive(&mut search, &dataset.base, &work, &gauge, with.interrupted, |search, rows| {
            if hashed {
                digests.extend(dataset::chunk_digests(&dataset.base, rows));
            }
            if let Err(error) = keep.now_and_then(search, &digests) {
                gauge.warn(format!("the search goes on, but its state could not be kept: {error}"));
            }
            Ok::<_, RunnerError>(())
        })?;
        if !driven.finished {
            if let Err(error) = keep.save(search.found(), &digests) {
                gauge.warn(format!("what is finished could not be kept: {error}"));
            }
            return Ok(None);
        }
        let how = search.methods().first().copied();
        Ok(Some((conclude(search, &digests)?, driven.seconds, how)))
    };
    let advice = "Ctrl-C keeps what is finished, and the same command goes on";
    let say = Watched { what, unit: "pairs", advice: Some(advice) };
    let Some((done, search_seconds, how)) = watched(say, with, &gauge, search)? else {
        (with.events)(&Event::Note(&keep.stopped()));
        return Err(RunnerError::Interrupted);
    };
    let figures = SearchFigures { cases: cases.len(), search_seconds, filter_seconds, pairs, how };
    Ok((done, figures))
}

/// That the lists found, which stay in memory to the end, fit the limit.
fn check_memory(ask: &TruthsAsk<'_>, cases: usize, queries: usize) -> Result<(), RunnerError> {
    let Some(memory) = ask.setting.memory else { return Ok(()) };
    let lists = (cases as u64).saturating_mul(queries as u64).saturating_mul(ask.k as u64);
    let least = lists.saturating_mul(NEIGHBOUR_BYTES);
    if least <= memory {
        return Ok(());
    }
    let (memory, least) = (units::bytes(memory), units::bytes(least));
    let (queries, k) = (units::count(queries as u64), units::count(ask.k as u64));
    Err(RunnerError::Refused(format!(
        "--memory {memory} is less than the lists of neighbours take ({least} for {cases} x {queries} queries x {k}): search fewer filters at once, lower --k, or give more"
    )))
}

/// The rows that each query may see, by case; none where it may see all.
fn evaluated(dataset: &Dataset, cases: &[TruthCase<'_>]) -> Result<Vec<Option<FilterRows>>, RunnerError> {
    let columns = dataset.columns.as_ref();
    let (rows, queries) = (dataset.base.rows(), dataset.queries.rows());
    let evaluate = |case: &TruthCase<'_>| match case.filters {
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
