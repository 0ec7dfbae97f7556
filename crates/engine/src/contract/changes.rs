//! Deletes, re-inserts, small tables, removal. These change the main table, so they run last.

use super::{Fault, Subject, Verdict, answers::repeated, failed, lacking, skipped, subject::K};
use types::{Element, Filters, Metric, Vectors};

/// Rows that are deleted and inserted again; consecutive, so that one batch brings them back.
const CHANGED: std::ops::Range<usize> = 40..100;

fn changed_keys() -> Vec<u64> {
    CHANGED.map(|row| row as u64).collect()
}

/// Rows among the changed ones that serve as queries: they are nearest to themselves.
fn changed_queries() -> Vec<usize> {
    CHANGED.step_by(5).collect()
}

pub(super) fn delete(subject: &Subject<'_>) -> Verdict {
    if !subject.has.delete {
        return lacking("the engine has no deletes");
    }
    subject.engine.connect()?.delete(&changed_keys())?;
    subject.expect_count(subject.data.len() - CHANGED.len())?;
    let mut ghost = None;
    let gone = subject.wait_until(|| {
        let answers = subject.ask_all(&changed_queries(), K)?;
        ghost = answers.into_iter().flatten().find(|&key| CHANGED.contains(&(key as usize)));
        Ok(ghost.is_none())
    })?;
    match ghost {
        Some(key) if !gone => failed(format!("key {key} is deleted and came back")),
        _ => short_after(subject),
    }
}

/// Answers are still full after the deletes.
fn short_after(subject: &Subject<'_>) -> Verdict {
    let answers = subject.ask_all(&changed_queries(), K)?;
    match answers.iter().find(|keys| keys.len() != K) {
        Some(keys) => failed(format!("{} rows for k = {K} after deletes", keys.len())),
        None => Ok(()),
    }
}

pub(super) fn reinsert(subject: &Subject<'_>) -> Verdict {
    if !subject.has.delete || !subject.has.reinsert {
        return lacking("the engine has no re-insert");
    }
    subject.insert(&mut *subject.engine.connect()?, CHANGED)?;
    subject.expect_count(subject.data.len())?;
    let rows = changed_queries();
    let mut found = 0;
    let least = (rows.len() as f64 * subject.least_recall()).ceil() as usize;
    let back = subject.wait_until(|| {
        let answers = subject.ask(&rows, K, subject.top_effort(), Filters::None)?;
        found = rows.iter().zip(&answers).filter(|(row, keys)| keys.contains(&(**row as u64))).count();
        Ok(found >= least)
    })?;
    if back { Ok(()) } else { failed(format!("{found} of {} rows are found again", rows.len())) }
}

pub(super) fn k_above_rows(subject: &Subject<'_>) -> Verdict {
    const ROWS: usize = 20;
    let k = ROWS + 5;
    if subject.has.max_k.is_some_and(|max| max < k) {
        return skipped(format!("the engine takes no k of {k}"));
    }
    subject.small_table(&subject.data.vectors.slice(0..ROWS))?;
    let answers = subject.ask_all(&[0, 7], k)?;
    for keys in &answers {
        if let Some(key) = repeated(keys) {
            return failed(format!("key {key} came back more than once"));
        }
        if keys.len() != ROWS || keys.iter().any(|&key| key >= ROWS as u64) {
            return failed(format!("{} rows for k = {k} of {ROWS}", keys.len()));
        }
    }
    Ok(())
}

pub(super) fn zero_vector(subject: &Subject<'_>) -> Verdict {
    if subject.data.metric != Metric::Cosine {
        return skipped("it has a distance under this metric");
    }
    if !subject.has.zero_vectors {
        return lacking("the engine takes no vector that is all zero");
    }
    if subject.data.vectors.element() != Element::F32 {
        return skipped("the suite tests it on f32");
    }
    // Rows 0..20 with row 3 all zero; the others must be found as before.
    let dim = subject.options.dim;
    let mut values: Vec<f32> = (0..20).flat_map(|row| subject.data.vectors.row(row).into_owned()).collect();
    values[3 * dim..4 * dim].fill(0.0);
    let vectors = Vectors::from_f32(values, 20, dim).map_err(|e| Fault::Failed(e.to_string()))?;
    subject.small_table(&vectors)?;
    let answers = subject.ask_all(&[7, 11], 5)?;
    for (keys, own) in answers.iter().zip([7, 11]) {
        if keys.first() != Some(&own) {
            return failed(format!(
                "with a zero vector in the table row {own} no longer finds itself: {keys:?}"
            ));
        }
    }
    Ok(())
}

pub(super) fn remove(subject: &Subject<'_>) -> Verdict {
    subject.engine.remove()?;
    match subject.engine.row_count() {
        Ok(rows) if rows > 0 => failed(format!("{rows} rows after remove")),
        _ => Ok(()),
    }
}
