//! The time ledger of a client thread: on a CPU, waiting for one, or waiting for something else.
//!
//! Design rule 2. Two clocks of the kernel are used. Time on CPU is the thread's CPU clock
//! (`CLOCK_THREAD_CPUTIME_ID`), because the same figure in schedstat is brought up to date at scheduler
//! ticks only, which would lose up to some milliseconds of a short window. Time waiting for a CPU
//! is known to schedstat alone.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;
use std::time::{Duration, Instant};

/// Where a thread's time went. None is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadLedger {
    /// Wall time.
    pub wall_ns: u64,
    /// On a CPU, system calls included: the client's own work.
    pub on_cpu_ns: Option<u64>,
    /// Ready to run, but no CPU was free: the machine is too small for client and server.
    pub cpu_wait_ns: Option<u64>,
}

impl ThreadLedger {
    /// The rest: network and server. None where a part is unknown. The clocks are not read at the
    /// same instant, so a rest that would be slightly below 0 is 0.
    pub fn elsewhere_ns(&self) -> Option<u64> {
        Some(self.wall_ns.saturating_sub(self.on_cpu_ns?.saturating_add(self.cpu_wait_ns?)))
    }

    /// The share of wall time, 0 to 1, that the client took for itself: on CPU or waiting for one.
    /// None where a part is unknown or no time went by.
    pub fn own_share(&self) -> Option<f64> {
        let own = self.on_cpu_ns?.saturating_add(self.cpu_wait_ns?);
        (self.wall_ns > 0).then(|| (own as f64 / self.wall_ns as f64).min(1.0))
    }

    /// The sum of two threads' or windows' ledgers; unknown where either is.
    pub fn plus(self, other: ThreadLedger) -> ThreadLedger {
        let add = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        ThreadLedger {
            wall_ns: self.wall_ns.saturating_add(other.wall_ns),
            on_cpu_ns: add(self.on_cpu_ns, other.on_cpu_ns),
            cpu_wait_ns: add(self.cpu_wait_ns, other.cpu_wait_ns),
        }
    }
}

/// Measures the thread that made it. It cannot be sent to another, whose clock would be read instead.
///
/// Starting and reading take some 10 µs each (a file of `/proc` is read): do both outside of
/// the timed path.
#[derive(Debug)]
pub struct ThreadClock {
    wall: Instant,
    on_cpu: Option<Duration>,
    waited_ns: Option<u64>,
    _this_thread: PhantomData<*const ()>,
}

impl ThreadClock {
    /// Starts now.
    pub fn start() -> Self {
        ThreadClock {
            waited_ns: waited_ns(),
            on_cpu: on_cpu(),
            wall: Instant::now(),
            _this_thread: PhantomData,
        }
    }

    /// What this thread did since the start.
    pub fn read(&self) -> ThreadLedger {
        let wall = self.wall.elapsed();
        let on_cpu = self.on_cpu.and_then(|start| Some(on_cpu()?.saturating_sub(start)));
        let waited = self.waited_ns.and_then(|start| Some(waited_ns()?.saturating_sub(start)));
        ThreadLedger { wall_ns: nanos(wall), on_cpu_ns: on_cpu.map(nanos), cpu_wait_ns: waited }
    }
}

/// CPU time of this thread.
fn on_cpu() -> Option<Duration> {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
}

/// Time this thread has waited for a CPU.
fn waited_ns() -> Option<u64> {
    parse_wait(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Reads `time on CPU, time waiting, time slices`. A kernel that does not count writes three zeros,
/// and a thread that runs has had at least one slice.
fn parse_wait(text: &str) -> Option<u64> {
    let mut numbers = text.split_whitespace().map(|word| word.parse::<u64>().ok());
    let (_on_cpu, waited, slices) = (numbers.next()??, numbers.next()??, numbers.next()??);
    (slices > 0).then_some(waited)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn schedstat_is_parsed() {
        assert_eq!(parse_wait("458500 413651 5\n"), Some(413_651));
        assert_eq!(parse_wait("0 0 0\n"), None);
        assert_eq!(parse_wait("1 2"), None);
        assert_eq!(parse_wait("a b c"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn work_is_on_cpu_and_sleep_is_elsewhere() {
        // By its own clock, not the wall's: a busy machine, or its host, may take the CPU away.
        let clock = ThreadClock::start();
        let mut work = clock.read();
        while work.on_cpu_ns.unwrap() < 30 * MS {
            work = clock.read();
        }
        assert!(work.wall_ns >= 30 * MS && work.own_share().unwrap() > 0.0, "{work:?}");
        assert!(work.elsewhere_ns().unwrap() <= work.wall_ns - 30 * MS, "{work:?}");

        let clock = ThreadClock::start();
        std::thread::sleep(Duration::from_millis(60));
        let sleep = clock.read();
        assert!(sleep.wall_ns >= 60 * MS && sleep.on_cpu_ns.unwrap() < 20 * MS, "{sleep:?}");
    }

    #[test]
    fn shares_are_of_wall_time_and_unknown_stays_unknown() {
        let a = ThreadLedger { wall_ns: 100, on_cpu_ns: Some(30), cpu_wait_ns: Some(20) };
        assert_eq!((a.elsewhere_ns(), a.own_share()), (Some(50), Some(0.5)));
        let unknown = ThreadLedger { cpu_wait_ns: None, ..a };
        assert_eq!((unknown.elsewhere_ns(), unknown.own_share()), (None, None));
        let sum = a.plus(unknown);
        assert_eq!((sum.wall_ns, sum.on_cpu_ns, sum.cpu_wait_ns), (200, Some(60), None));
        assert_eq!(ThreadLedger::default().own_share(), None);
    }
}
