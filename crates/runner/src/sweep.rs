//! From the clients' logs to figures: throughput, latency, recall, what was wrong with answers,
//! whose limit it was.

use crate::{
    ClientLog, Measured, RunnerError,
    stand::{Cell, Stand},
    stand_figures::push_flag,
};
use engine::{EngineError, ErrorKind};
use exact::{QueryScore, Scorer};
use hdrhistogram::Histogram;
use record::{Flag, Point, RawPoint, Status};
use std::collections::{BTreeMap, HashMap};
use types::stats;

/// Least samples for the 99th and the 99.9th percentile: ten above the quantile.
const SAMPLES_P99: u64 = 1000;
const SAMPLES_P999: u64 = 10_000;

/// Longest latency that a histogram tells apart: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// (largest - smallest) / median from which repeats are called noisy.
const NOISY: f64 = 0.10;

/// Fills in the point's figures and gives the raw ones.
pub(crate) fn describe(
    stand: &Stand<'_, '_, '_>,
    cell: &Cell<'_>,
    measured: &Measured,
    point: &mut Point,
) -> Result<RawPoint, RunnerError> {
    let plan = &stand.run.request.plan;
    let queries = stand.material.dataset.queries.rows();
    point.search.queries = Some(queries as u64);
    point.search.warmup_queries = Some(measured.warmup_queries);
    point.search.first_query_ns = measured.first_query_ns;
    throughput(measured, point);
    latency(measured, point);
    ledger(measured, cell.clients, plan.limits.client_share, point);
    let scores = if cell.case.truth.is_some() {
        let scorer = stand.material.scorer(cell.case, plan.k)?;
        let scores = Scores::of(measured, &scorer);
        if stand.engine.definition.capabilities.exact && (scores.imperfect || scores.beat_the_truth(&scorer))
        {
            push_flag(point, Flag::ControlFailed);
        }
        recall(&scores, queries, plan.seed, point);
        point.search.matching_rows = matching_rows(cell);
        Some(scores)
    } else {
        push_flag(point, Flag::NoRecall);
        None
    };
    judge(stand, cell, plan.limits.errors, point);
    if let Some(error) = &measured.cut_short {
        let (done, all) = (measured.windows.len(), plan.repeats);
        point.status = Status::Invalid;
        point.code = Some(error.kind().name().to_owned());
        point.reason = Some(format!("only {done} of {all} windows were measured: {error}"));
    }
    Ok(raw(measured, scores.as_ref()))
}

/// Why the server is gone: the last query of every client found no connection any more. The point has no
/// figure then, and a resumed run measures it anew.
pub(crate) fn lost(measured: &Measured) -> Option<EngineError> {
    let clients = &measured.windows.last()?.clients;
    let last = |client: &ClientLog| {
        let (at, kind, text) = client.errors.last()?;
        let gone = at + 1 == client.sent.len() && *kind == ErrorKind::Unreachable;
        gone.then(|| text.clone())
    };
    let texts: Vec<String> = clients.iter().map(last).collect::<Option<_>>()?;
    texts.into_iter().next().map(|text| EngineError::new(ErrorKind::Unreachable, text))
}

fn throughput(measured: &Measured, point: &mut Point) {
    let logs = || measured.windows.iter().flat_map(|w| &w.clients);
    let sent: u64 = logs().map(|c| c.sent.len() as u64).sum();
    let repeats: Vec<f64> = measured.windows.iter().map(crate::Window::throughput).collect();
    let figures = &mut point.search;
    figures.sent = Some(sent);
    figures.answered = Some(measured.windows.iter().map(crate::Window::answered).sum());
    figures.throughput = stats::median(&repeats);
    figures.throughput_spread = stats::relative_spread(&repeats);
    figures.window_seconds = Some(measured.windows.iter().map(crate::Window::seconds).collect());
    figures.throughput_repeats = Some(repeats);
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    for (_, kind, _) in logs().flat_map(|c| &c.errors) {
        *errors.entry(kind.name().to_owned()).or_default() += 1;
    }
    figures.first_error = logs().find_map(|c| c.errors.first()).map(|(_, _, text)| text.clone());
    if !errors.is_empty() {
        push_flag(point, Flag::Errors);
    }
    point.search.errors = Some(errors);
    if point.search.throughput_spread.is_some_and(|spread| spread > NOISY) {
        push_flag(point, Flag::Noisy);
    }
}

/// Latencies of answered queries, all repeats and clients merged by adding their counts.
fn latency(measured: &Measured, point: &mut Point) {
    let Ok(mut histogram) = Histogram::<u64>::new_with_max(LONGEST_NS, 3) else {
        unreachable!("3 significant digits and an hour are in the legal range");
    };
    let (mut sum, mut count, mut max) = (0_u128, 0_u64, 0_u64);
    for client in measured.windows.iter().flat_map(|w| &w.clients) {
        for sent in client.sent.iter().filter(|s| !s.failed) {
            let took = sent.done_ns - sent.sent_ns;
            histogram.saturating_record(took.max(1));
            sum += u128::from(took);
            count += 1;
            max = max.max(took);
        }
    }
    if count == 0 {
        return;
    }
    let at = |q: f64| Some(histogram.value_at_quantile(q).min(max));
    let figures = &mut point.search;
    figures.latency_mean_ns = Some(sum as f64 / count as f64);
    figures.latency_p50_ns = at(0.50);
    figures.latency_p90_ns = at(0.90);
    figures.latency_p95_ns = at(0.95);
    figures.latency_p99_ns = if count >= SAMPLES_P99 { at(0.99) } else { None };
    figures.latency_p999_ns = if count >= SAMPLES_P999 { at(0.999) } else { None };
    figures.latency_max_ns = Some(max);
    // Little's law over all windows: time in service / wall time.
    let wall: f64 = measured.windows.iter().map(crate::Window::seconds).sum();
    figures.in_service = (wall > 0.0).then(|| sum as f64 / 1e9 / wall);
    if count < SAMPLES_P99 {
        push_flag(point, Flag::FewSamples);
    }
}

/// Whose time it was (design rule 2): outside the engine's call, on a CPU, waiting for a CPU.
fn ledger(measured: &Measured, clients: usize, limit: f64, point: &mut Point) {
    let logs: Vec<&ClientLog> = measured.windows.iter().flat_map(|w| &w.clients).collect();
    let wall: u64 = logs.iter().map(|c| c.ended_ns).sum();
    if wall == 0 {
        return;
    }
    let share = |ns: u64| ns as f64 / wall as f64;
    let inside: u64 = logs.iter().flat_map(|c| &c.sent).map(|s| s.done_ns - s.sent_ns).sum();
    let outside = share(wall.saturating_sub(inside));
    let known =
        |pick: fn(&ClientLog) -> Option<u64>| logs.iter().map(|c| pick(c)).sum::<Option<u64>>().map(share);
    let figures = &mut point.search;
    figures.client_share = Some(outside);
    figures.on_cpu_share = known(|c| c.on_cpu_ns);
    figures.cpu_wait_share = known(|c| c.cpu_wait_ns);
    let starved = figures.cpu_wait_share.is_some_and(|wait| wait > limit);
    // Fewer requests in service than clients: someone waited outside the engine.
    let idle = figures.in_service.is_some_and(|busy| busy < (1.0 - limit) * clients as f64)
        && figures.errors.as_ref().is_none_or(BTreeMap::is_empty);
    if outside > limit || starved || idle {
        push_flag(point, Flag::ClientLimited);
    }
}

/// The scores of every answer. Equal answers to a query are scored once.
struct Scores {
    /// By window, client, send.
    of: Vec<Vec<Vec<usize>>>,
    /// The distinct ones.
    scores: Vec<QueryScore>,
    /// The query of each distinct one, and how many answers it stands for.
    query: Vec<(usize, u64)>,
    /// The ids of each distinct one.
    answers: Vec<Vec<u64>>,
    /// Whether a query that was answered has a recall below 1.
    imperfect: bool,
}

impl Scores {
    fn of(measured: &Measured, scorer: &Scorer) -> Self {
        let mut all = Scores {
            of: Vec::new(),
            scores: Vec::new(),
            query: Vec::new(),
            answers: Vec::new(),
            imperfect: false,
        };
        let mut seen: HashMap<(usize, Vec<u64>), usize> = HashMap::new();
        let mut last: Vec<Option<usize>> = vec![None; scorer.queries()];
        for window in &measured.windows {
            let mut clients = Vec::new();
            for client in &window.clients {
                let mut sends = Vec::with_capacity(client.sent.len());
                for (i, sent) in client.sent.iter().enumerate() {
                    let query = sent.query as usize;
                    let ids = if sent.failed { &[][..] } else { client.ids_of(i) };
                    let at = match last[query].filter(|&at| all.answers[at] == ids) {
                        Some(at) => at,
                        None => *seen.entry((query, ids.to_vec())).or_insert_with(|| {
                            all.scores.push(scorer.score(query, ids));
                            all.query.push((query, 0));
                            all.answers.push(ids.to_vec());
                            all.scores.len() - 1
                        }),
                    };
                    last[query] = Some(at);
                    all.imperfect |= !sent.failed && all.scores[at].recall.is_some_and(|r| r < 1.0);
                    all.query[at].1 += 1;
                    sends.push(at);
                }
                clients.push(sends);
            }
            all.of.push(clients);
        }
        all
    }

    /// Whether an answer holds a row that is nearer than the k-th of the truth and not in it: then
    /// the truth is not the nearest. Rows that only tie with it are no sign of that.
    fn beat_the_truth(&self, scorer: &Scorer) -> bool {
        let suspect = |at: &usize| self.scores[*at].ties_beyond_truth > 0;
        (0..self.scores.len()).filter(suspect).any(|at| {
            let told = scorer.explain(self.query[at].0, &self.answers[at]);
            let limit = told.threshold.unwrap_or(f64::NEG_INFINITY) - told.tolerance;
            told.returned
                .iter()
                .any(|row| row.hit && !row.in_truth && row.distance.is_some_and(|d| d < limit))
        })
    }

    /// A sum over all answers.
    fn total(&self, part: impl Fn(&QueryScore) -> f64) -> f64 {
        self.scores.iter().zip(&self.query).map(|(s, (_, count))| part(s) * *count as f64).sum()
    }

    /// The mean of a part over the answers of each query; queries without it are left out.
    fn by_query(&self, queries: usize, part: impl Fn(&QueryScore) -> Option<f64>) -> Vec<f64> {
        let mut sums = vec![(0.0, 0_u64); queries];
        for (score, (query, count)) in self.scores.iter().zip(&self.query) {
            if let Some(value) = part(score) {
                sums[*query].0 += value * *count as f64;
                sums[*query].1 += count;
            }
        }
        sums.into_iter().filter(|(_, n)| *n > 0).map(|(sum, n)| sum / n as f64).collect()
    }
}

/// Recall and everything that is wrong with answers.
fn recall(scores: &Scores, queries: usize, seed: u64, point: &mut Point) {
    let recalls = scores.by_query(queries, |s| s.recall);
    let answers: u64 = scores.query.iter().map(|(_, count)| count).sum();
    let asked: std::collections::HashSet<usize> = scores.query.iter().map(|(q, _)| *q).collect();
    let figures = &mut point.search;
    figures.recall = stats::mean(&recalls);
    figures.recall_p5 = stats::quantile(&recalls, 0.05);
    figures.recall_min = stats::quantile(&recalls, 0.0);
    if let Some(interval) = stats::bootstrap_mean(&recalls, 0.95, 1000, seed) {
        (figures.recall_low, figures.recall_high) = (Some(interval.low), Some(interval.high));
    }
    figures.id_overlap = stats::mean(&scores.by_query(queries, |s| s.id_overlap));
    figures.recall_ann_benchmarks = stats::mean(&scores.by_query(queries, |s| s.annb));
    figures.recall_queries = Some(recalls.len() as u64);
    figures.recall_excluded = Some((asked.len() - recalls.len()) as u64);
    let count = |part: fn(&QueryScore) -> usize| Some(scores.total(|s| part(s) as f64) as u64);
    if answers > 0 {
        figures.mean_length = Some(scores.total(|s| s.returned as f64) / answers as f64);
        figures.short_share = Some(scores.total(|s| f64::from(u8::from(s.short))) / answers as f64);
    }
    figures.empty_answers = count(|s| usize::from(s.returned == 0 && s.wanted > 0));
    figures.duplicate_ids = count(|s| s.duplicates);
    figures.unknown_ids = count(|s| s.unmappable);
    figures.excess_rows = count(|s| s.excess);
    figures.filter_violations = count(|s| s.filter_violations);
    figures.unordered_answers = count(|s| usize::from(s.out_of_order > 0));
    let ties = scores.total(|s| s.ties_beyond_truth as f64) > 0.0;
    let some = |value: Option<u64>| value.is_some_and(|v| v > 0);
    let marks = [
        (figures.short_share.is_some_and(|s| s > 0.0), Flag::ShortAnswers),
        (some(figures.duplicate_ids), Flag::Duplicates),
        (some(figures.unknown_ids), Flag::UnknownIds),
        (some(figures.excess_rows), Flag::ExcessRows),
        (some(figures.filter_violations), Flag::FilterViolations),
        (some(figures.unordered_answers), Flag::WrongOrder),
        (ties, Flag::TiesBeyondTruth),
        (asked.len() < queries, Flag::PartialRecall),
    ];
    for (_, flag) in marks.iter().filter(|(holds, _)| *holds) {
        push_flag(point, *flag);
    }
}

/// Whether the point's figures may be used.
fn judge(stand: &Stand<'_, '_, '_>, cell: &Cell<'_>, most_errors: f64, point: &mut Point) {
    let figures = &point.search;
    let sent = figures.sent.unwrap_or(0);
    let failed: u64 = figures.errors.iter().flat_map(BTreeMap::values).sum();
    let too_many = sent > 0 && failed as f64 > most_errors * sent as f64;
    let recall = figures.recall;
    let exact = stand.engine.definition.capabilities.exact;
    if point.search.uses_index == Some(false) && !exact {
        push_flag(point, Flag::ExactScan);
    }
    // Seen from a wrong truth's k-th neighbour every row is near, so where the truth failed its check
    // (and --force uses it) only shared ids tell.
    let doubted = !stand.material.forced.is_empty();
    let overlap = point.search.id_overlap.filter(|_| doubted);
    let agreement = recall.map(|r| overlap.map_or(r, |o| o.min(r)));
    if agreement.is_some_and(|r| is_chance(stand, cell, r, point)) && !too_many {
        push_flag(point, Flag::ChanceLevel);
    }
    let reason = if too_many {
        let first = point.search.first_error.clone().unwrap_or_default();
        let share = 100.0 * failed as f64 / sent as f64;
        Some((
            "errors".to_owned(),
            format!(
                "{failed} of {sent} queries failed ({share:.1} %, the limit is {:.1} %, --max-errors), first: {first}",
                100.0 * most_errors
            ),
        ))
    } else {
        point.flags.iter().find(|f| f.invalidates()).map(|flag| {
            let mut text = flag.sentence().to_owned();
            if let Some(recall) = recall {
                let overlap = overlap.map(|o| format!(", id overlap {o:.4}")).unwrap_or_default();
                text.push_str(&format!(" (recall {recall:.4}{overlap})"));
            }
            // What else is wrong with the answers is likely why.
            for other in [Flag::Duplicates, Flag::ShortAnswers].iter().filter(|f| point.flags.contains(f)) {
                text.push_str(&format!(" {}", other.sentence()));
            }
            (flag.name(), text)
        })
    };
    if let Some((code, text)) = reason {
        point.status = Status::Invalid;
        (point.code, point.reason) = (Some(code), Some(text));
    }
}

/// Whether as many distinct rows drawn at random from those that qualify would do as well. Few rows
/// under a filter are no sign of that: an engine that filters afterwards has no more.
fn is_chance(stand: &Stand<'_, '_, '_>, cell: &Cell<'_>, recall: f64, point: &Point) -> bool {
    let figures = &point.search;
    let answered = figures.answered.unwrap_or(0).max(1) as f64;
    let repeated = figures.duplicate_ids.unwrap_or(0) as f64 / answered;
    let distinct = (figures.mean_length.unwrap_or(0.0) - repeated).min(stand.run.request.plan.k as f64);
    if cell.case.rows.is_some() && distinct < 2.0 {
        return false;
    }
    let rows = matching_rows(cell).unwrap_or(0.0).round() as usize;
    let evaluated = figures.recall_queries.unwrap_or(0) as usize;
    exact::is_chance_level(recall, distinct.round().max(1.0) as usize, rows, evaluated)
}

/// Rows that qualify for a query: counted, mean over the queries.
fn matching_rows(cell: &Cell<'_>) -> Option<f64> {
    let truth = cell.case.truth.as_ref()?;
    stats::mean(&(0..truth.queries()).map(|query| truth.matching(query) as f64).collect::<Vec<_>>())
}

/// The raw figures: one row per query sent.
fn raw(measured: &Measured, scores: Option<&Scores>) -> RawPoint {
    let mut raw = RawPoint::default();
    for (repeat, window) in measured.windows.iter().enumerate() {
        for (id, client) in window.clients.iter().enumerate() {
            let mut errors = client.errors.iter().peekable();
            for (i, sent) in client.sent.iter().enumerate() {
                raw.repeat.push(repeat as u32);
                raw.client.push(id as u32);
                raw.query.push(sent.query);
                raw.due_ns.push(sent.sent_ns);
                raw.sent_ns.push(sent.sent_ns);
                raw.done_ns.push(sent.done_ns);
                let error = errors.next_if(|(at, _, _)| *at == i);
                raw.error.push(error.map(|(_, kind, text)| format!("{}: {text}", kind.name())));
                let score = scores.map(|s| &s.scores[s.of[repeat][id][i]]);
                raw.hits.push(score.map(|s| s.hits as u32));
                raw.recall.push(score.and_then(|s| s.recall));
                raw.ids.extend_from_slice(client.ids_of(i));
                raw.ids_end.push(raw.ids.len());
            }
        }
    }
    raw
}
