//! What an answer must be like.

use super::{Fault, Subject, Verdict, failed, lacking, skipped, subject::K};
use crate::{Hits, Session};
use types::{Filters, Vectors};

pub(super) fn search(subject: &Subject<'_>) -> Verdict {
    let rows = subject.query_rows();
    subject.ask_all(&rows, K).map(drop)
}

/// The answers of the ordinary search.
fn asked(subject: &Subject<'_>) -> Result<(Vec<usize>, Vec<Vec<u64>>), Fault> {
    let rows = subject.query_rows();
    let answers = subject.ask_all(&rows, K)?;
    Ok((rows, answers))
}

pub(super) fn ids(subject: &Subject<'_>) -> Verdict {
    let (rows, answers) = asked(subject)?;
    let known = subject.data.len() as u64;
    for (row, keys) in rows.iter().zip(&answers) {
        if let Some(key) = keys.iter().find(|&&key| key >= known) {
            return failed(format!("the answer to row {row} has key {key}; keys are 0 to {}", known - 1));
        }
    }
    Ok(())
}

pub(super) fn k(subject: &Subject<'_>) -> Verdict {
    for k in [1, K] {
        let rows = subject.query_rows();
        let answers = subject.ask_all(&rows, k)?;
        if let Some((row, keys)) = rows.iter().zip(&answers).find(|(_, keys)| keys.len() != k) {
            return failed(format!("{} rows for k = {k} (query row {row})", keys.len()));
        }
    }
    Ok(())
}

pub(super) fn no_duplicates(subject: &Subject<'_>) -> Verdict {
    let (rows, answers) = asked(subject)?;
    for (row, keys) in rows.iter().zip(&answers) {
        if let Some(key) = repeated(keys) {
            return failed(format!("the answer to row {row} has key {key} more than once"));
        }
    }
    Ok(())
}

/// A key that stands more than once.
pub(super) fn repeated(keys: &[u64]) -> Option<u64> {
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

pub(super) fn order(subject: &Subject<'_>) -> Verdict {
    let (rows, answers) = asked(subject)?;
    let (mut right, mut wrong) = (0_u64, 0_u64);
    for (&row, keys) in rows.iter().zip(&answers) {
        let distances: Vec<f64> = keys.iter().filter_map(|&key| subject.data.distance(row, key)).collect();
        for (i, nearer) in distances.iter().enumerate() {
            for farther in &distances[i + 1..] {
                let slack = farther.abs().max(1e-6) * 1e-5;
                if nearer <= &(farther + slack) { right += 1 } else { wrong += 1 }
            }
        }
    }
    // Quantized distances swap neighbours that are nearly as far; exact ones never do.
    let allowed = if subject.has.exact { 0 } else { right / 2 };
    if wrong > allowed {
        return failed(format!("{wrong} of {} pairs stand in the wrong order", right + wrong));
    }
    Ok(())
}

pub(super) fn nearest_is_itself(subject: &Subject<'_>) -> Verdict {
    let (rows, answers) = asked(subject)?;
    // Rows with equal vectors (possible for bits) are each other's nearest too.
    let own = |(row, keys): &(&usize, &Vec<u64>)| {
        let own = subject.data.distance(**row, **row as u64);
        keys.first().is_some_and(|&key| subject.data.distance(**row, key) <= own)
    };
    let found = rows.iter().zip(&answers).filter(own).count();
    let least = (rows.len() as f64 * subject.least_recall()).ceil() as usize;
    if found < least {
        return failed(format!("{found} of {} stored vectors are nearest to themselves", rows.len()));
    }
    Ok(())
}

pub(super) fn effort(subject: &Subject<'_>) -> Verdict {
    let rows = subject.query_rows();
    let least = subject.least_recall();
    let Some(knob) = subject.effort else {
        let recall = subject.recall(&rows, K, &subject.ask_all(&rows, K)?);
        return if recall < least {
            failed(format!("recall {recall:.3} of an engine without a knob; {least:.3} is the least"))
        } else {
            Ok(())
        };
    };
    let mut ladder = knob.ladder.clone();
    ladder.sort_unstable();
    let mut recalls = Vec::new();
    for &effort in &ladder {
        let answers = subject.ask(&rows, K, Some(effort), Filters::None)?;
        recalls.push(subject.recall(&rows, K, &answers));
    }
    let (first, last) = (recalls[0], recalls[recalls.len() - 1]);
    let (low, high) = (ladder[0], ladder[ladder.len() - 1]);
    let name = &knob.name;
    if last < least {
        return failed(format!("recall {last:.3} at {name} = {high}; {least:.3} is the least"));
    }
    // Under quantization a lucky miss can be worth a little.
    if last < first - 0.02 {
        return failed(format!("recall falls from {first:.3} at {name} = {low} to {last:.3} at {high}"));
    }
    // Quantization alone keeps a small table's recall a little below 1 at every effort, and a floor
    // below 0.9 is set where it keeps it far below.
    if last == first && last < 0.97 && least >= 0.9 {
        return failed(format!("recall stays {last:.3} from {name} = {low} to {high}"));
    }
    Ok(())
}

pub(super) fn query_dimension(subject: &Subject<'_>) -> Verdict {
    let (dim, element) = (subject.options.dim * 2, subject.data.vectors.element());
    let Ok(queries) = Vectors::from_bytes(vec![1; element.row_bytes(dim)], 1, dim, element) else {
        return skipped("the suite's query could not be made");
    };
    let mut spec = subject.spec(&[0], K, subject.top_effort(), Filters::None);
    spec.queries = queries;
    let Ok(search) = subject.engine.encode(spec) else { return Ok(()) };
    let mut session = subject.engine.connect()?;
    let mut hits = Hits::with_capacity(K);
    match session.begin(search).and_then(|()| session.search(0, &mut hits)) {
        Err(_) => Ok(()),
        Ok(()) => failed(format!("{} rows for a query of {dim} dimensions", hits.keys().len())),
    }
}

/// At a low effort: a planner may rightly scan a table of the suite's size at a high one.
pub(super) fn index_used(subject: &Subject<'_>) -> Verdict {
    let search = subject.engine.encode(subject.spec(&[0], K, subject.low_effort(), Filters::None))?;
    match (subject.engine.explain(&search, 0)?, subject.has.explain) {
        (None, false) => lacking("the engine has no query plan"),
        (None, true) => failed("no query plan, though the definition says that there is one"),
        (Some(plan), _) => match plan.uses_index {
            Some(true) => Ok(()),
            Some(false) => failed(format!("the plan does not use the index: {}", plan.text)),
            None => skipped(format!("the plan does not tell: {}", plan.text)),
        },
    }
}

/// Two threads, each with its own connection and its own queries, must each get what was asked.
pub(super) fn two_sessions(subject: &Subject<'_>) -> Verdict {
    let rows = subject.query_rows();
    let halves = [&rows[..rows.len() / 2], &rows[rows.len() / 2..]];
    let mut sessions = Vec::new();
    for half in halves {
        let search = subject.engine.encode(subject.spec(half, K, subject.top_effort(), Filters::None))?;
        let mut session = subject.engine.connect()?;
        session.begin(search)?;
        sessions.push((half, session));
    }
    let answers: Vec<Result<Vec<Vec<u64>>, Fault>> = std::thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .into_iter()
            .map(|(half, mut session)| scope.spawn(move || several_rounds(&mut *session, half.len())))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|answer| answer.unwrap_or_else(|_| failed("a session panicked"))).collect()
    });
    for (half, answers) in halves.into_iter().zip(answers) {
        let recall = subject.recall(half, K, &answers?);
        if recall < subject.least_recall() {
            return failed(format!("recall {recall:.3} with two sessions at once"));
        }
    }
    Ok(())
}

fn several_rounds(session: &mut dyn Session, queries: usize) -> Result<Vec<Vec<u64>>, Fault> {
    let mut hits = Hits::with_capacity(K);
    let mut answers = Vec::new();
    for _ in 0..5 {
        answers.clear();
        for query in 0..queries {
            session.search(query, &mut hits)?;
            answers.push(hits.keys().to_vec());
        }
    }
    Ok(answers)
}

pub(super) fn reconnect(subject: &Subject<'_>) -> Verdict {
    let (rows, first) = asked(subject)?;
    let again = subject.ask_all(&rows, K)?;
    let (first, again) = (subject.recall(&rows, K, &first), subject.recall(&rows, K, &again));
    if (first - again).abs() > 0.02 {
        return failed(format!("recall {first:.3} on one connection, {again:.3} on the next"));
    }
    Ok(())
}
