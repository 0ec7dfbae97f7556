//! Parts of one search put together: which rows a shard has, whether parts make a whole, and the
//! merge, which holds one case at a time in memory.

use crate::distance::key_distance;
use crate::topk::Scored;
use crate::{ExactError, PartReader};
use std::ops::Range;
use types::{Metric, Neighbour, Truth};

/// The rows of shard `shard` (from 1) of `shards` of a base of `rows` rows: whole chunks of
/// `chunk_rows` rows, as equal as they can be. Empty where there are more shards than chunks.
///
/// # Panics
/// Where `shard` is not from 1 to `shards`, or `chunk_rows` is 0.
pub fn shard_rows(rows: usize, chunk_rows: usize, shard: u32, shards: u32) -> Range<usize> {
    assert!((1..=shards).contains(&shard), "shard {shard} of {shards}");
    let chunks = rows.div_ceil(chunk_rows) as u128;
    let bound = |i: u32| {
        let chunk = chunks * u128::from(i) / u128::from(shards);
        (chunk as usize).saturating_mul(chunk_rows).min(rows)
    };
    bound(shard - 1)..bound(shard)
}

/// Puts the parts in the order of their rows, after a check that they are finished, of one job, and
/// make up the whole base.
///
/// # Errors
/// [`ExactError::Parts`] naming what differs, is missing or is there twice.
pub fn in_order(mut parts: Vec<PartReader>) -> Result<Vec<PartReader>, ExactError> {
    let fault = |reason: String| Err(ExactError::Parts(reason));
    let Some(first) = parts.first() else { return fault("no parts are given".into()) };
    for part in &parts {
        if let Some((what, ours, theirs)) = first.header().job.difference(&part.header().job) {
            let (a, b) = (first.path().display(), part.path().display());
            return fault(format!(
                "{a} and {b} are not of one job: the {what} is {ours} here and {theirs} there"
            ));
        }
        let header = part.header();
        if !header.is_finished() {
            return fault(format!(
                "{} was stopped at row {} of {}: run the same command again, it goes on there",
                part.path().display(),
                header.searched,
                header.end
            ));
        }
        let job = &header.job;
        let rows = shard_rows(job.rows as usize, job.chunk_rows as usize, header.shard, job.shards);
        if rows != (header.begin as usize..header.end as usize) {
            let (path, shard, of) = (part.path().display(), header.shard, job.shards);
            return fault(format!("{path}: shard {shard} of {of} has rows {rows:?}, not those that it says"));
        }
    }
    let shards = first.header().job.shards;
    parts.sort_by_key(|part| part.header().shard);
    if let Some(pair) = parts.windows(2).find(|pair| pair[0].header().shard == pair[1].header().shard) {
        let (a, b) = (pair[0].path().display(), pair[1].path().display());
        return fault(format!("shard {} of {shards} is given twice: {a} and {b}", pair[0].header().shard));
    }
    let there: std::collections::HashSet<u32> = parts.iter().map(|part| part.header().shard).collect();
    let missing: Vec<u32> = (1..=shards).filter(|shard| !there.contains(shard)).take(21).collect();
    if !missing.is_empty() {
        let listed: Vec<String> = missing.iter().take(20).map(u32::to_string).collect();
        let more = if missing.len() > 20 { " and more" } else { "" };
        let (noun, verb) = if missing.len() == 1 { ("shard", "is") } else { ("shards", "are") };
        return fault(format!("{noun} {}{more} of {shards} {verb} missing", listed.join(", ")));
    }
    Ok(parts)
}

/// The content hash of the whole base, from the digests of parts that [`in_order`] gave.
pub fn base_hash(parts: &[PartReader]) -> String {
    let Some(job) = parts.first().map(|part| &part.header().job) else { return String::new() };
    let digests: Vec<[u8; 32]> = parts.iter().flat_map(|part| part.digests().iter().copied()).collect();
    let whole = || dataset::hash::hash_of_chunks(job.element, job.rows as usize, job.dim as usize, &digests);
    job.base_hash.clone().unwrap_or_else(whole)
}

/// Merges parts that [`in_order`] gave: for each case in turn its truth, exactly as one search over
/// all rows finds it, goes to `sink`. One case is in memory at a time.
///
/// # Errors
/// Where a part cannot be read or a list makes no sense, and those of `sink`.
pub fn merge_parts<E: From<ExactError>>(
    mut parts: Vec<PartReader>,
    mut sink: impl FnMut(usize, Truth) -> Result<(), E>,
) -> Result<(), E> {
    let Some(job) = parts.first().map(|part| part.header().job.clone()) else { return Ok(()) };
    for case in 0..job.cases.len() {
        sink(case, merged(&mut parts, job.metric, job.k as usize, job.queries)?)?;
    }
    parts.iter().try_for_each(PartReader::end)?;
    Ok(())
}

/// The truth of the next case.
fn merged(parts: &mut [PartReader], metric: Metric, k: usize, queries: u64) -> Result<Truth, ExactError> {
    let mut truth = Truth::new(k);
    let mut best: Vec<Scored> = Vec::new();
    for _ in 0..queries {
        let mut all = 0;
        best.clear();
        for part in parts.iter_mut() {
            let (list, matching) = part.next_query()?;
            best.extend(list);
            all += matching;
        }
        best.sort_unstable();
        best.truncate(k);
        let neighbour = |s: &Scored| Neighbour { row: s.row, distance: key_distance(metric, s.key) };
        truth.push(best.iter().map(neighbour), all);
    }
    Ok(truth)
}

#[cfg(test)]
#[path = "partial_merge_tests.rs"]
mod tests;
