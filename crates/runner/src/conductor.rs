//! Leads the client threads of a point through its steps, and gives up on those that hang.

use crate::clients::{
    Client, ClientLog, LoopSpec, MOST_IDS, MOST_SENDS, Measured, Note, Shared, Step, Window,
};
use engine::{EncodedSearch, Engine, EngineError, ErrorKind};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

/// Runs a point: `spec.clients` threads ask the queries of `search` in a closed loop.
///
/// `watch(done, total)` is called a few times a second; `interrupted` ends the point early.
///
/// # Errors
/// Where a client can't connect or get ready, a limit is passed ([`ErrorKind::Timeout`]; the text
/// names the option), or the run is interrupted ([`ErrorKind::Stopped`]). Failed queries are not
/// an error here; they are in the logs.
pub fn closed_loop(
    engine: &Arc<dyn Engine>,
    search: &Arc<EncodedSearch>,
    spec: &LoopSpec,
    interrupted: &AtomicBool,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<Measured, EngineError> {
    let mut conductor = Conductor::start(engine, search, spec, interrupted)?;
    let result = conductor.run(watch);
    conductor.shared.stop.store(true, Ordering::Relaxed);
    conductor.shared.tell(Step::Quit);
    if result.as_ref().is_ok_and(|measured| measured.cut_short.is_none()) {
        for handle in conductor.threads.drain(..) {
            // A client that panicked has sent no log, so `run` has failed already.
            let _ended = handle.join();
        }
    }
    result
}

struct Conductor<'a> {
    shared: Arc<Shared>,
    notes: mpsc::Receiver<(usize, Note)>,
    threads: Vec<thread::JoinHandle<()>>,
    spec: &'a LoopSpec,
    queries: usize,
    k: usize,
    interrupted: &'a AtomicBool,
    deadline: Instant,
}

impl<'a> Conductor<'a> {
    fn start(
        engine: &Arc<dyn Engine>,
        search: &Arc<EncodedSearch>,
        spec: &'a LoopSpec,
        interrupted: &'a AtomicBool,
    ) -> Result<Self, EngineError> {
        let shared = Arc::new(Shared::new(spec.clients));
        let (notes_in, notes) = mpsc::channel();
        let mut threads = Vec::with_capacity(spec.clients);
        for id in 0..spec.clients {
            let client = Client {
                id,
                clients: spec.clients,
                most_ids: spec.most_ids,
                warmup: spec.warmup / spec.clients + usize::from(id < spec.warmup % spec.clients),
                engine: engine.clone(),
                search: search.clone(),
                shared: shared.clone(),
                notes: notes_in.clone(),
            };
            let spawned = thread::Builder::new().name(format!("client-{id}")).spawn(move || client.live());
            match spawned {
                Ok(handle) => threads.push(handle),
                Err(e) => {
                    shared.tell(Step::Quit);
                    let text = format!(
                        "client thread {} of {} could not be started: the client's limit, not the engine's (see ulimit -u)",
                        id + 1,
                        spec.clients
                    );
                    return Err(EngineError::caused(ErrorKind::Overloaded, text, e));
                }
            }
        }
        let queries = search.spec.queries.rows();
        let k = spec.most_ids;
        let deadline = Instant::now() + spec.point_limit;
        Ok(Conductor { shared, notes, threads, spec, queries, k, interrupted, deadline })
    }

    fn run(&mut self, watch: &mut dyn FnMut(u64, u64)) -> Result<Measured, EngineError> {
        let (mut warmup_queries, mut first_query_ns, mut means) = (0, None, Vec::new());
        for (id, note) in self.collect(&mut |_| {})?.into_iter().enumerate() {
            if let Note::Warm { sent, mean_ns, first_ns } = note {
                warmup_queries += sent;
                means.extend(mean_ns);
                if id == 0 {
                    first_query_ns = first_ns;
                }
            }
        }
        let passes = self.passes(types::stats::mean(&means));
        let per_window = (passes * self.queries) as u64;
        let total = per_window * self.spec.repeats as u64;
        let mut windows = Vec::with_capacity(self.spec.repeats);
        let mut cut_short = None;
        for round in 0..self.spec.repeats {
            match self.window(round, passes, total, watch) {
                Ok(window) => windows.push(window),
                // What was measured before a limit is kept, and the point says so.
                Err(error) if error.kind() == ErrorKind::Timeout && !windows.is_empty() => {
                    cut_short = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if first_query_ns.is_none() {
            let first = windows.first().and_then(|w: &Window| w.clients.first()?.sent.first());
            first_query_ns = first.map(|s| s.done_ns - s.sent_ns);
        }
        Ok(Measured { windows, warmup_queries, first_query_ns, cut_short })
    }

    /// One window: buffers made, started at one instant, the logs handed over.
    fn window(
        &mut self,
        round: usize,
        passes: usize,
        total: u64,
        watch: &mut dyn FnMut(u64, u64),
    ) -> Result<Window, EngineError> {
        let per_window = (passes * self.queries) as u64;
        self.shared.tell(Step::Prepare { round, passes });
        self.collect(&mut |_| {})?;
        let lead = Duration::from_millis(2) + Duration::from_micros(30) * self.spec.clients as u32;
        self.shared.tell(Step::Go { round, start: Instant::now() + lead });
        let before = per_window * round as u64;
        let notes = self.collect(&mut |done| watch(before + done, total))?;
        let clients = notes
            .into_iter()
            .map(|note| if let Note::Log(log) = note { log } else { ClientLog::default() })
            .collect();
        Ok(Window { clients })
    }

    /// Whole passes that fill the shortest window, by the warm-up's mean latency; 1 without one.
    fn passes(&self, mean_ns: Option<f64>) -> usize {
        let Some(mean_ns) = mean_ns else { return 1 };
        let pass_ns = mean_ns * self.queries.div_ceil(self.spec.clients) as f64;
        let wanted = (self.spec.min_window.as_nanos() as f64 / pass_ns.max(1.0)).ceil() as usize;
        let most = (MOST_SENDS / self.queries.max(1)).min(MOST_IDS / (self.queries * self.k).max(1));
        wanted.clamp(1, most.max(1))
    }

    /// One note of every client, by client; a failure or a passed limit ends the wait.
    fn collect(&mut self, watch: &mut dyn FnMut(u64)) -> Result<Vec<Note>, EngineError> {
        let clients = self.spec.clients;
        let mut notes: Vec<Option<Note>> = (0..clients).map(|_| None).collect();
        let mut seen = vec![(u64::MAX, Instant::now()); clients];
        let mut missing = clients;
        while missing > 0 {
            match self.notes.recv_timeout(Duration::from_millis(100)) {
                Ok((_, Note::Failed(error))) => return Err(error),
                Ok((id, note)) => {
                    notes[id] = Some(note);
                    missing -= 1;
                    continue;
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(EngineError::new(ErrorKind::Bug, "a client thread died without a word"));
                }
            }
            let progress = |id: usize| self.shared.progress[id].0.load(Ordering::Relaxed);
            watch((0..clients).map(progress).sum());
            self.check_limits(&notes, &mut seen)?;
        }
        Ok(notes.into_iter().flatten().collect())
    }

    fn check_limits(&self, notes: &[Option<Note>], seen: &mut [(u64, Instant)]) -> Result<(), EngineError> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(EngineError::new(ErrorKind::Stopped, "interrupted"));
        }
        let timeout = |text: String| Err(EngineError::new(ErrorKind::Timeout, text));
        if Instant::now() > self.deadline {
            let limit = types::units::format_duration(self.spec.point_limit);
            return timeout(format!(
                "the point was not through after {limit}; raise it with --point-timeout"
            ));
        }
        for (id, (value, since)) in seen.iter_mut().enumerate() {
            let now = self.shared.progress[id].0.load(Ordering::Relaxed);
            if notes[id].is_some() || now != *value {
                (*value, *since) = (now, Instant::now());
            } else if since.elapsed() > self.spec.query_limit {
                let limit = types::units::format_duration(self.spec.query_limit);
                return timeout(format!(
                    "client {id} got no answer within {limit}; raise it with --query-timeout"
                ));
            }
        }
        // A thread that is through without having told us has panicked.
        if let Some(id) =
            (0..self.threads.len()).find(|&id| notes[id].is_none() && self.threads[id].is_finished())
        {
            return match self.notes.try_recv() {
                Ok((_, Note::Failed(error))) => Err(error),
                _ => {
                    Err(EngineError::new(ErrorKind::Bug, format!("client {id} panicked; see standard error")))
                }
            };
        }
        Ok(())
    }
}
