//! Reading a base that is larger than memory: the next rows come in while these are searched.
//!
//! What is here: the order in which ranges of rows of a mapped file are brought into memory by a
//! thread of its own and given back, below a budget. What is not: how a range is brought in
//! (`types::ByteStore`), and the search.
//!
//! The thread asks the kernel for a few steps ahead of the one it waits for, across the borders of
//! blocks, so that the disk always has something to do.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use types::Vectors;

/// Read ahead at most so much where no budget is given.
const DEFAULT_WINDOW: u64 = 256 << 20;
/// A block of [`read_blocks`] takes at most so much: the search begins when the first is there.
const LARGEST_BLOCK: u64 = 1 << 30;
/// The thread waits for the disk in steps of at most so many bytes; between two it can be stopped.
const LARGEST_STEP: u64 = 8 << 20;
/// Steps that the kernel is asked for ahead of the one that is waited for.
const STEPS_AHEAD: usize = 6;
/// How often a waiting caller looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// `rows` of `base` divided into blocks for [`ReadAhead`] with the same `memory`: a quarter of it
/// each, so that one can be searched, one be given back and two come in; all but the last a
/// multiple of `multiple` rows (at least one such multiple, which may be more than the budget).
/// Vectors in memory are one block.
pub fn read_blocks(
    base: &Vectors,
    rows: Range<usize>,
    memory: Option<u64>,
    multiple: usize,
) -> Vec<Range<usize>> {
    if !base.is_mapped() || rows.is_empty() {
        return vec![rows];
    }
    let row = (base.spanned_bytes(rows.clone()) / rows.len() as u64).max(1);
    let most = usize::try_from((memory.unwrap_or(DEFAULT_WINDOW) / 4).min(LARGEST_BLOCK) / row);
    let multiple = multiple.max(1);
    let step = (most.unwrap_or(usize::MAX) / multiple * multiple).max(multiple);
    rows.clone().step_by(step).map(|start| start..start.saturating_add(step).min(rows.end)).collect()
}

/// Walks ranges of rows of a base, each in memory when it is handed out.
///
/// An iterator: `next` says that the range it gave before is done with, and waits until the next
/// one is in memory. Ranges done with are given back where all together are more than the budget;
/// else they stay, for the next to read the same file. Vectors in memory are handed on at once, by no
/// thread.
///
/// Ends early where its flag says stop, within a few hundredths of a second; the thread ends by itself after the step it
/// is in, and nobody waits for it.
pub struct ReadAhead<'a> {
    blocks: Arc<[Range<usize>]>,
    handed: usize,
    reader: Option<Arc<Shared>>,
    stop: Option<&'a AtomicBool>,
    waited: Duration,
}

impl<'a> ReadAhead<'a> {
    /// A walk over `blocks`, in ascending order, for instance those of [`read_blocks`].
    ///
    /// Of the rows at most `memory` bytes are in memory at a time: the range handed out, those read
    /// ahead and those being given back. The range handed out and the next are read in any case, so
    /// ranges should be a third of the budget or less. Without a budget at most 256 MiB are read
    /// ahead, nothing is given back, and nothing is done where all is in memory already.
    ///
    /// # Panics
    /// Where a range reaches past the last row.
    pub fn new(
        base: &Vectors,
        blocks: impl IntoIterator<Item = Range<usize>>,
        memory: Option<u64>,
        stop: Option<&'a AtomicBool>,
    ) -> ReadAhead<'a> {
        let blocks: Arc<[Range<usize>]> = blocks.into_iter().filter(|rows| !rows.is_empty()).collect();
        let rows = blocks.first().map_or(0, |b| b.start)..blocks.last().map_or(0, |b| b.end);
        // What is in memory already, and need not leave it, needs no reader.
        let at_hand = memory.is_none() && base.is_resident(rows);
        let reader = (base.is_mapped() && !at_hand).then(|| Shared::start(base, &blocks, memory)).flatten();
        ReadAhead { blocks, handed: 0, reader, stop, waited: Duration::ZERO }
    }

    /// How long `next` has waited for the disk so far.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    fn stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

impl Iterator for ReadAhead<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        if self.stopped() {
            return None;
        }
        let number = self.handed;
        if let Some(reader) = &self.reader {
            let start = Instant::now();
            let mut state = reader.lock();
            state.finished = number;
            state.handed = (number + 1).min(self.blocks.len());
            reader.changed.notify_all();
            while state.ready <= number && number < self.blocks.len() && !state.ended {
                if self.stopped() {
                    return None;
                }
                let woken = reader.changed.wait_timeout(state, LOOK);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
            drop(state);
            self.waited += start.elapsed();
        }
        let block = self.blocks.get(number)?.clone();
        self.handed += 1;
        Some(block)
    }
}

impl Drop for ReadAhead<'_> {
    fn drop(&mut self) {
        if let Some(reader) = &self.reader {
            reader.lock().stop = true;
            reader.changed.notify_all();
        }
    }
}

/// What the caller and the thread tell each other. All numbers count blocks from the first.
#[derive(Default)]
struct State {
    /// Blocks handed out, the one that `next` waits for included.
    handed: usize,
    /// Blocks that the caller is done with.
    finished: usize,
    /// Blocks that are in memory, or were.
    ready: usize,
    /// Blocks that are given back.
    given_back: usize,
    /// Whether the caller has gone.
    stop: bool,
    /// Whether the thread has gone; then pages come when they are touched.
    ended: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Bytes of all blocks before each, and of all.
    bytes_before: Vec<u64>,
    window: u64,
    gives_back: bool,
}

impl Shared {
    /// Starts the thread; none where the system has none left, which makes reading slower, not wrong.
    fn start(base: &Vectors, blocks: &Arc<[Range<usize>]>, memory: Option<u64>) -> Option<Arc<Shared>> {
        let mut bytes_before = vec![0];
        let mut all = 0;
        for rows in blocks.iter() {
            all += base.spanned_bytes(rows.clone());
            bytes_before.push(all);
        }
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            bytes_before,
            window: memory.unwrap_or(DEFAULT_WINDOW),
            gives_back: memory.is_some_and(|memory| all > memory),
        });
        let reader = Reader { base: base.clone(), blocks: Arc::clone(blocks), shared: Arc::clone(&shared) };
        let thread = std::thread::Builder::new().name("read-ahead".to_owned());
        thread.spawn(move || reader.run()).is_ok().then_some(shared)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `block` may come into memory now.
    fn may_read(&self, state: &State, block: usize) -> bool {
        let held = self.bytes_before[block + 1] - self.bytes_before[state.given_back];
        block <= state.handed || held <= self.window
    }
}

struct Reader {
    base: Vectors,
    blocks: Arc<[Range<usize>]>,
    shared: Arc<Shared>,
}

/// However the thread ends, nobody waits for it afterwards.
impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
    }
}

impl Reader {
    fn run(self) {
        let mut ahead = self.steps().enumerate().peekable();
        for (step, (block, rows)) in self.steps().enumerate() {
            if !self.wait_until(|state| self.shared.may_read(state, block)) {
                return self.leave();
            }
            let near = |(at, (block, _)): &(usize, (usize, Range<usize>))| {
                *at <= step + STEPS_AHEAD && self.shared.may_read(&self.shared.lock(), *block)
            };
            while let Some((_, (_, rows))) = ahead.next_if(near) {
                self.base.will_need(rows);
            }
            let last = rows.end == self.blocks[block].end;
            self.base.make_resident(rows);
            if last {
                self.shared.lock().ready = block + 1;
                self.shared.changed.notify_all();
            }
        }
        self.wait_until(|state| state.given_back == self.blocks.len());
        self.leave();
    }

    /// Every block in parts that are read at a time, with the number of the block.
    fn steps(&self) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
        let bytes = (self.shared.window / 16).clamp(1, LARGEST_STEP);
        self.blocks.iter().enumerate().flat_map(move |(block, rows)| {
            let row = (self.base.spanned_bytes(rows.clone()) / rows.len() as u64).max(1);
            let step = usize::try_from(bytes / row).unwrap_or(usize::MAX).max(1);
            let part = move |start: usize| (block, start..start.saturating_add(step).min(rows.end));
            rows.clone().step_by(step).map(part)
        })
    }

    /// Gives back what the caller is done with until `met`; false where it has gone.
    fn wait_until(&self, met: impl Fn(&State) -> bool) -> bool {
        let mut state = self.shared.lock();
        loop {
            if state.stop {
                return false;
            }
            if state.given_back < state.finished {
                let block = state.given_back;
                drop(state);
                self.give_back(block);
                state = self.shared.lock();
                state.given_back = block + 1;
            } else if met(&state) {
                return true;
            } else {
                state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn give_back(&self, block: usize) {
        if self.shared.gives_back {
            let mut rows = self.blocks[block].clone();
            // The kernel drops pages in whole folios, so one that reaches from the block before into
            // this one is still there; with that block named again it goes.
            if let Some(before) = block.checked_sub(1).map(|before| &self.blocks[before])
                && before.end == rows.start
            {
                rows.start = before.start;
            }
            self.base.no_longer_needed(rows);
        }
    }

    /// Gives back what was read and will not be asked for.
    fn leave(&self) {
        let given_back = self.shared.lock().given_back;
        (given_back..self.blocks.len())
            .take_while(|_| self.shared.gives_back)
            .for_each(|b| self.give_back(b));
    }
}

#[cfg(test)]
#[path = "readahead_tests.rs"]
mod tests;
