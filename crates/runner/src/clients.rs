//! Client threads in a closed loop: the one place where queries are timed.
//!
//! The shape (design rule 1). Each client is an OS thread with its own session and buffers that
//! were allocated, and touched, before the clock starts. The conductor (the calling thread) moves
//! all clients through the same steps: connect and warm up; prepare buffers for a window; start at
//! one instant; hand the log over. On the timed path a client reads the clock twice a query,
//! stores two times and the ids, and publishes its progress to a cache line of its own. Nothing
//! else is shared, so a client that hangs can be left behind and the point fails with a reason.
//!
//! Client c of n asks the queries c, c + n, c + 2n ... A window is a whole number of passes over
//! the query set, fixed before it starts, so that every query weighs the same.

use engine::{EncodedSearch, Engine, EngineError, ErrorKind, Hits};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    sync::{Arc, Condvar, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

/// Most queries of a window that is longer than one pass, and most ids stored for it.
pub(crate) const MOST_SENDS: usize = 300_000;
pub(crate) const MOST_IDS: usize = 20_000_000;

/// How a point is asked.
#[derive(Clone, Debug)]
pub struct LoopSpec {
    /// Client threads.
    pub clients: usize,
    /// Queries sent before the clock starts, all clients together.
    pub warmup: usize,
    /// Windows.
    pub repeats: usize,
    /// Shortest window; met by whole passes over the query set.
    pub min_window: Duration,
    /// Longest that one query may take.
    pub query_limit: Duration,
    /// Longest that all windows may take together.
    pub point_limit: Duration,
    /// Rows that an answer can hold: k, or all rows where there are fewer. Buffers are made for it.
    pub most_ids: usize,
}

/// One query as a client saw it. Times in nanoseconds from the start of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Number of the query.
    pub query: u32,
    /// When the call began.
    pub sent_ns: u64,
    /// When it returned.
    pub done_ns: u64,
    /// Where its ids end in [`ClientLog::ids`]; they begin where those of the query before end.
    pub ids_end: usize,
    /// Whether it failed; see [`ClientLog::errors`].
    pub failed: bool,
}

/// What one client did in one window.
#[derive(Debug, Default)]
pub struct ClientLog {
    /// Its queries in order.
    pub sent: Vec<Sent>,
    /// The ids returned, one answer after the other.
    pub ids: Vec<u64>,
    /// Failures: index into `sent`, kind, text.
    pub errors: Vec<(usize, ErrorKind, String)>,
    /// When it was through, from the start of the window (ns).
    pub ended_ns: u64,
    /// Its thread's time on a CPU in the window (ns), where the kernel tells.
    pub on_cpu_ns: Option<u64>,
    /// Its thread's time waiting for a CPU in the window (ns), where the kernel tells.
    pub cpu_wait_ns: Option<u64>,
}

impl ClientLog {
    /// The ids of the query at `index` of [`ClientLog::sent`].
    pub fn ids_of(&self, index: usize) -> &[u64] {
        let start = if index == 0 { 0 } else { self.sent[index - 1].ids_end };
        &self.ids[start..self.sent[index].ids_end]
    }
}

/// One window: the log of each client.
#[derive(Debug)]
pub struct Window {
    /// By client.
    pub clients: Vec<ClientLog>,
}

impl Window {
    /// From the common start until the last client was through (s).
    pub fn seconds(&self) -> f64 {
        self.clients.iter().map(|c| c.ended_ns).max().unwrap_or(0) as f64 / 1e9
    }

    /// Queries answered.
    pub fn answered(&self) -> u64 {
        self.clients.iter().flat_map(|c| &c.sent).filter(|s| !s.failed).count() as u64
    }

    /// Answered / wall time (1/s); 0 where nothing was answered.
    pub fn throughput(&self) -> f64 {
        let seconds = self.seconds();
        if seconds > 0.0 { self.answered() as f64 / seconds } else { 0.0 }
    }
}

/// A measured point.
#[derive(Debug)]
pub struct Measured {
    /// The windows.
    pub windows: Vec<Window>,
    /// Warm-up queries sent.
    pub warmup_queries: u64,
    /// Latency of the first query that client 0 sent.
    pub first_query_ns: Option<u64>,
    /// The limit that ended the point before all windows were measured.
    pub cut_short: Option<EngineError>,
}

/// What the conductor tells the clients.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// Connect, warm up, then wait.
    SetUp,
    /// Make buffers for `passes` passes.
    Prepare { round: usize, passes: usize },
    /// Start at this instant.
    Go { round: usize, start: Instant },
    /// End.
    Quit,
}

/// A cache line of its own, so that one client's progress does not slow another.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Padded(pub(crate) AtomicU64);

pub(crate) struct Shared {
    step: Mutex<Step>,
    changed: Condvar,
    pub(crate) stop: AtomicBool,
    pub(crate) progress: Vec<Padded>,
}

impl Shared {
    pub(crate) fn new(clients: usize) -> Self {
        Shared {
            step: Mutex::new(Step::SetUp),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            progress: (0..clients).map(|_| Padded::default()).collect(),
        }
    }

    pub(crate) fn tell(&self, step: Step) {
        *self.step.lock().unwrap_or_else(PoisonError::into_inner) = step;
        self.changed.notify_all();
    }

    /// Waits until `wanted` accepts the step.
    fn wait_for<T>(&self, wanted: impl Fn(Step) -> Option<T>) -> Option<T> {
        let mut step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if matches!(*step, Step::Quit) {
                return None;
            }
            if let Some(value) = wanted(*step) {
                return Some(value);
            }
            step = self.changed.wait(step).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// What clients tell the conductor.
pub(crate) enum Note {
    Warm { sent: u64, mean_ns: Option<f64>, first_ns: Option<u64> },
    Prepared,
    Log(ClientLog),
    Failed(EngineError),
}

/// One client thread.
pub(crate) struct Client {
    pub(crate) id: usize,
    pub(crate) clients: usize,
    pub(crate) most_ids: usize,
    pub(crate) warmup: usize,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) search: Arc<EncodedSearch>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) notes: mpsc::Sender<(usize, Note)>,
}

impl Client {
    pub(crate) fn live(self) {
        if let Err(error) = self.try_live() {
            // The conductor may have given up already; then nobody listens.
            let _nobody = self.notes.send((self.id, Note::Failed(error)));
        }
    }

    fn tell(&self, note: Note) -> Option<()> {
        self.notes.send((self.id, note)).ok()
    }

    fn try_live(&self) -> Result<(), EngineError> {
        let mut session = self.engine.connect()?;
        session.begin(self.search.clone())?;
        let mut hits = Hits::with_capacity(self.search.spec.k);
        let warm = self.warm_up(session.as_mut(), &mut hits);
        self.tell(warm);
        let mut round = 0;
        loop {
            let prepare = |step| match step {
                Step::Prepare { round: r, passes } if r == round => Some(passes),
                _ => None,
            };
            let Some(passes) = self.shared.wait_for(prepare) else { return Ok(()) };
            let mut log = self.empty_log(passes);
            self.shared.progress[self.id].0.store(0, Ordering::Relaxed);
            self.tell(Note::Prepared);
            let go = |step| match step {
                Step::Go { round: r, start } if r == round => Some(start),
                _ => None,
            };
            let Some(start) = self.shared.wait_for(go) else { return Ok(()) };
            sleep_until(start);
            let clock = host::ThreadClock::start();
            self.window(session.as_mut(), &mut hits, passes, start, &mut log);
            log.ended_ns = nanos(start.elapsed());
            let ledger = clock.read();
            (log.on_cpu_ns, log.cpu_wait_ns) = (ledger.on_cpu_ns, ledger.cpu_wait_ns);
            self.tell(Note::Log(log));
            round += 1;
        }
    }

    fn my_queries(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        (self.id..self.search.spec.queries.rows()).step_by(self.clients)
    }

    fn warm_up(&self, session: &mut dyn engine::Session, hits: &mut Hits) -> Note {
        let (mut sent, mut first_ns, mut later_ns) = (0_u64, None, 0_u64);
        for query in self.my_queries().cycle().take(self.warmup) {
            if self.shared.stop.load(Ordering::Relaxed) {
                break;
            }
            let start = Instant::now();
            // Failures show in the windows, where they are counted.
            let _counted_later = session.search(query, hits);
            let took = nanos(start.elapsed());
            if first_ns.is_none() {
                first_ns = Some(took)
            } else {
                later_ns += took
            }
            sent += 1;
            self.shared.progress[self.id].0.store(sent, Ordering::Relaxed);
        }
        // The first query is often slow (connection, cold caches), so it counts only where it is alone.
        let mean_ns = match sent {
            0 => None,
            1 => first_ns.map(|ns| ns as f64),
            _ => Some(later_ns as f64 / (sent - 1) as f64),
        };
        Note::Warm { sent, mean_ns, first_ns }
    }

    /// Buffers for a window, their pages touched so that none faults while the clock runs.
    fn empty_log(&self, passes: usize) -> ClientLog {
        let sends = self.my_queries().count() * passes;
        let mut sent = vec![Sent { query: u32::MAX, ..Sent::default() }; sends];
        let mut ids = vec![u64::MAX; sends * self.most_ids];
        sent.clear();
        ids.clear();
        ClientLog { sent, ids, ..ClientLog::default() }
    }

    /// The timed loop.
    fn window(
        &self,
        session: &mut dyn engine::Session,
        hits: &mut Hits,
        passes: usize,
        start: Instant,
        log: &mut ClientLog,
    ) {
        let progress = &self.shared.progress[self.id].0;
        let mut done = 0;
        for _ in 0..passes {
            for query in self.my_queries() {
                let sent_ns = nanos(start.elapsed());
                let answer = session.search(query, hits);
                let done_ns = nanos(start.elapsed());
                let failed = answer.is_err();
                match answer {
                    Ok(()) => log.ids.extend_from_slice(hits.keys()),
                    Err(error) => log.errors.push((log.sent.len(), error.kind(), chain(&error))),
                }
                let ids_end = log.ids.len();
                log.sent.push(Sent { query: query as u32, sent_ns, done_ns, ids_end, failed });
                done += 1;
                progress.store(done, Ordering::Relaxed);
                if self.shared.stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        }
    }
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        // Said once: many errors repeat their cause.
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = cause.source();
    }
    text
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Sleeps for most of the time and spins for the rest, so that clients start together.
fn sleep_until(start: Instant) {
    const SPIN: Duration = Duration::from_micros(150);
    if let Some(rest) = start.checked_duration_since(Instant::now()).and_then(|d| d.checked_sub(SPIN)) {
        thread::sleep(rest);
    }
    while Instant::now() < start {
        std::hint::spin_loop();
    }
}
