//! One connection to the fake: inserts, deletes, and answers with all that is scripted.

use super::{Answers, FakeOptions, IdType, Reply, Shared, Table, falls_in_share, no_table, store::Store};
use crate::reference::unit;
use crate::{Batch, EncodedSearch, EngineError, ErrorKind, Hits, ReplyKey, SearchSpec, Session};
use std::{
    sync::{Arc, OnceLock, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};
use types::Filter;

/// A point as the fake prepares it.
pub(super) struct Point {
    k: usize,
    effort: Option<u64>,
    queries: Vec<Vec<f32>>,
    filters: Vec<Option<Arc<Filter>>>,
    /// Keys of all queries one after the other, and where each ends; empty where answers are made
    /// in the timed call.
    keys: Vec<u64>,
    ends: Vec<usize>,
    first_search: OnceLock<Instant>,
}

impl Point {
    pub(super) fn new(shared: &Shared, table: &Table, search: &SearchSpec) -> Result<Self, EngineError> {
        let rows = search.queries.rows();
        let mut point = Point {
            k: search.k,
            effort: search.effort,
            queries: Vec::new(),
            filters: Vec::new(),
            keys: Vec::new(),
            ends: Vec::new(),
            first_search: OnceLock::new(),
        };
        if search.queries.dim() != table.store.dim() && !shared.options.any_dimension {
            let (found, wanted) = (search.queries.dim(), table.store.dim());
            let what = format!("fake: queries of {found} dimensions, the table has {wanted}");
            return Err(EngineError::new(ErrorKind::Refused, what));
        }
        if shared.options.answers != Answers::Arbitrary {
            point.queries = (0..rows).map(|i| search.queries.row(i).into_owned()).collect();
            point.filters = (0..rows).map(|i| search.filters.of(i).cloned()).collect();
        }
        match shared.options.answers {
            Answers::Scan => {}
            Answers::Prepared => {
                for query in 0..rows {
                    point.keys.extend(point.answer(&shared.options, &table.store, query)?);
                    point.ends.push(point.keys.len());
                }
            }
            Answers::Arbitrary => {
                let stored = table.store.rows().max(1);
                for query in 0..rows {
                    let keys = (0..search.k.min(stored)).map(|i| ((query * search.k + i) % stored) as u64);
                    point.keys.extend(keys);
                    point.ends.push(point.keys.len());
                }
            }
        }
        Ok(point)
    }

    fn prepared(&self, query: usize) -> &[u64] {
        let start = if query == 0 { 0 } else { self.ends[query - 1] };
        &self.keys[start..self.ends[query]]
    }

    /// What the script makes of the exact answer.
    fn answer(&self, options: &FakeOptions, store: &Store, query: usize) -> Result<Vec<u64>, EngineError> {
        let vector = &self.queries[query];
        let filter = self.filters[query].as_deref().filter(|_| !options.ignore_filter);
        let extra = if options.reply == Reply::TwoMore { 2 } else { 0 };
        let wanted = self.k + extra;
        if options.refuse_zero_vectors && vector.iter().all(|&v| v == 0.0) {
            let what = format!("fake: query {query} is a zero vector, which has no direction");
            return Err(EngineError::new(ErrorKind::Refused, what));
        }
        if options.post_filter
            && let Some(filter) = filter
        {
            return Ok(store.keep_passing(store.scan(vector, wanted, None)?, filter));
        }
        let Some(effort) = self.effort.filter(|_| options.effort_recall) else {
            return store.scan(vector, wanted, filter);
        };
        let effort = if options.ignore_effort { 1 } else { effort };
        // Enough candidates that the answer is full although some are missed.
        let candidates = store.scan(vector, wanted * 10 + 50, filter)?;
        let found = effort as f64 / (effort as f64 + options.effort_half);
        let seen = |key: &u64| unit(&[options.seed, query as u64, *key]) < found;
        Ok(candidates.into_iter().filter(seen).take(wanted).collect())
    }
}

/// A connection to the fake.
pub(super) struct FakeSession {
    shared: Arc<Shared>,
    point: Option<Arc<Point>>,
    /// Nothing but copying prepared keys is scripted.
    quick: bool,
}

impl FakeSession {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let o = &shared.options;
        let idle = FakeOptions {
            // What does not touch a search.
            answers: o.answers,
            seed: o.seed,
            ..FakeOptions::default()
        };
        let timed = FakeOptions {
            answers: o.answers,
            seed: o.seed,
            service_ms: o.service_ms,
            jitter_ms: o.jitter_ms,
            slow_ms: o.slow_ms,
            slow_every: o.slow_every,
            slow_first: o.slow_first,
            shared_lock: o.shared_lock,
            stall_to_s: o.stall_to_s,
            reply: o.reply,
            id_type: o.id_type,
            fail_share: o.fail_share,
            hang_at_search: o.hang_at_search,
            abort_at_search: o.abort_at_search,
            ..FakeOptions::default()
        };
        let quick = o.answers != Answers::Scan && timed == idle;
        FakeSession { shared, point: None, quick }
    }
}

impl Session for FakeSession {
    fn insert(&mut self, batch: &Batch<'_>) -> Result<u64, EngineError> {
        let options = &self.shared.options;
        let call = self.shared.inserts.fetch_add(1, Ordering::Relaxed) + 1;
        if falls_in_share(options.fail_insert_share, call) {
            return Err(self.shared.failure("insert"));
        }
        let mut table = self.shared.write();
        let store = &mut table.as_mut().ok_or_else(no_table)?.store;
        store.check(batch, options.any_dimension)?;
        if options.refuse_zero_vectors
            && let Some(i) =
                (0..batch.vectors.rows()).find(|&i| batch.vectors.row(i).iter().all(|&v| v == 0.0))
        {
            let what =
                format!("fake: row {} is a zero vector, which has no direction", batch.keys.start + i as u64);
            return Err(EngineError::new(ErrorKind::Refused, what));
        }
        if options.max_rows > 0 && store.rows() as u64 + batch.vectors.rows() as u64 > options.max_rows {
            let what = format!("fake: out of memory above {} rows", options.max_rows);
            return Err(EngineError::new(ErrorKind::Overloaded, what));
        }
        let lost = options.keep_nothing
            || (options.lose_reinserted && batch.keys.clone().all(|key| store.knew(key)));
        if !lost {
            store.insert(batch);
        }
        Ok(options.insert_retries)
    }

    fn delete(&mut self, keys: &[u64]) -> Result<(), EngineError> {
        let has = &self.shared.definition.capabilities;
        if !has.delete {
            return Err(EngineError::new(ErrorKind::Unsupported, "fake: no deletes, says the definition"));
        }
        let mut table = self.shared.write();
        table.as_mut().ok_or_else(no_table)?.store.delete(keys, self.shared.options.ghosts);
        Ok(())
    }

    fn begin(&mut self, search: Arc<EncodedSearch>) -> Result<(), EngineError> {
        let spec = &search.spec;
        let effort = spec.effort.map_or_else(|| "none".to_owned(), |effort| effort.to_string());
        self.shared.log(format_args!(
            "begin k={} effort={effort} queries={}",
            spec.k,
            spec.queries.rows()
        ))?;
        let point = search.payload.downcast_ref::<Arc<Point>>();
        let Some(point) = point else {
            return Err(EngineError::new(ErrorKind::Bug, "fake: a point that another engine encoded"));
        };
        self.point = Some(point.clone());
        Ok(())
    }

    fn search(&mut self, query: usize, hits: &mut Hits) -> Result<(), EngineError> {
        let Some(point) = &self.point else {
            return Err(EngineError::new(ErrorKind::Bug, "fake: search before begin"));
        };
        hits.clear();
        if self.quick {
            hits.extend_from_slice(point.prepared(query));
            return Ok(());
        }
        let options = &self.shared.options;
        let call = self.shared.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if call == options.abort_at_search && self.shared.may_abort() {
            // The script asks for a crash: no clean-up, no message, as by kill -9.
            std::process::abort();
        }
        if call == options.hang_at_search {
            while !self.shared.dropped.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
            return Err(EngineError::new(
                ErrorKind::Timeout,
                "fake: search hung until the engine was dropped",
            ));
        }
        if falls_in_share(options.fail_share, call) {
            return Err(self.shared.failure("search"));
        }
        let lock =
            options.shared_lock.then(|| self.shared.gate.lock().unwrap_or_else(PoisonError::into_inner));
        let started = Instant::now();
        let since_create = call - self.shared.calls_at_create.load(Ordering::Relaxed).min(call);
        let due = due(options, point, since_create, started);
        let keys = match options.answers {
            Answers::Scan => {
                let table = self.shared.read();
                point.answer(options, &table.as_ref().ok_or_else(no_table)?.store, query)?
            }
            Answers::Prepared | Answers::Arbitrary => point.prepared(query).to_vec(),
        };
        if let Some(wait) = due.checked_duration_since(Instant::now()).filter(|_| due > started) {
            std::thread::sleep(wait);
        }
        drop(lock);
        for key in shaped(options.reply, keys, point.k) {
            push(hits, key, options.id_type)?;
        }
        Ok(())
    }
}

/// When a call that started at `started` is answered.
fn due(options: &FakeOptions, point: &Point, call: u64, started: Instant) -> Instant {
    let mut ms = options.service_ms + options.jitter_ms * unit(&[options.seed, call]);
    let slow_turn = options.slow_every > 0 && call.is_multiple_of(options.slow_every);
    if slow_turn || call <= options.slow_first {
        ms += options.slow_ms;
    }
    let first = *point.first_search.get_or_init(|| started);
    let at = started.saturating_duration_since(first).as_secs_f64();
    let stalled = (options.stall_from_s..options.stall_to_s).contains(&at);
    let from = if stalled { first + Duration::from_secs_f64(options.stall_to_s) } else { started };
    from + Duration::from_secs_f64(ms / 1e3)
}

/// What is wrong with the list of keys.
fn shaped(reply: Reply, mut keys: Vec<u64>, k: usize) -> Vec<u64> {
    match reply {
        Reply::Right | Reply::TwoMore => keys,
        Reply::NearestRepeated => keys.first().map_or_else(Vec::new, |&first| vec![first; k]),
        Reply::Top1 => {
            keys.truncate(1);
            keys
        }
        Reply::Reversed => {
            keys.reverse();
            keys
        }
        Reply::Foreign => {
            if let Some(last) = keys.last_mut() {
                *last += 1 << 40;
            }
            keys
        }
    }
}

fn push(hits: &mut Hits, key: u64, id_type: IdType) -> Result<(), EngineError> {
    match id_type {
        IdType::Unsigned => hits.push_reply(ReplyKey::Unsigned(key)),
        // Keys are row numbers: far below 2^53.
        IdType::Int => hits.push_reply(ReplyKey::Int(key as i64)),
        IdType::Float => hits.push_reply(ReplyKey::Float(key as f64)),
        IdType::Text => hits.push_reply(ReplyKey::Text(&key.to_string())),
        IdType::Bytes => hits.push_reply(ReplyKey::Bytes(key.to_string().as_bytes())),
        IdType::BytesText => hits.push_reply(ReplyKey::Text(&format!("b'{key}'"))),
    }
}
