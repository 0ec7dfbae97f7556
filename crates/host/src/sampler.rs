//! Samples of a process (tree) over time, taken by a thread of its own.

use crate::process::{ProcessSample, Scope, Stat};
use crate::tree::Tree;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The shortest interval: below it, looking would disturb what is looked at.
const SHORTEST: Duration = Duration::from_millis(10);

/// Takes samples until it is stopped, dropped, or the process ends. `T` is what the thread gives back.
#[derive(Debug)]
pub struct ProcessSampler<T = Vec<ProcessSample>> {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<T>>,
}

impl ProcessSampler {
    /// Samples process `pid` every `interval` (10 ms at least), once at once and once at the end, and
    /// keeps all of them.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn collect(pid: u32, scope: Scope, interval: Duration) -> std::io::Result<Self> {
        start(pid, scope, interval, Vec::new(), |samples: &mut Vec<_>, sample| samples.push(sample))
    }
}

impl ProcessSampler<()> {
    /// As [`ProcessSampler::collect`], but gives each sample to `sink`, on the sampling thread.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn each(
        pid: u32,
        scope: Scope,
        interval: Duration,
        mut sink: impl FnMut(ProcessSample) + Send + 'static,
    ) -> std::io::Result<Self> {
        start(pid, scope, interval, (), move |(), sample| sink(sample))
    }
}

impl<T: Default> ProcessSampler<T> {
    /// Takes a last sample, ends the thread and returns what it kept. Nothing is kept of a
    /// thread whose sink panicked.
    pub fn stop(mut self) -> T {
        self.stop = None;
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl<T> ProcessSampler<T> {
    /// Whether sampling has come to its end by itself: the process is gone.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl<T> Drop for ProcessSampler<T> {
    fn drop(&mut self) {
        // The thread sees that the other end of its channel is gone, and ends.
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn start<T: Send + 'static>(
    pid: u32,
    scope: Scope,
    interval: Duration,
    mut kept: T,
    mut keep: impl FnMut(&mut T, ProcessSample) + Send + 'static,
) -> std::io::Result<ProcessSampler<T>> {
    let (stop, stopped) = channel::<()>();
    let interval = interval.max(SHORTEST);
    let begin = Instant::now();
    let tree = Tree::machine();
    let started = Stat::read(&tree, pid).map(|stat| stat.started);
    let mut look = move |kept: &mut T| {
        // A pid that was given to another process has another start time.
        let same = started.is_some() && Stat::read(&tree, pid).map(|stat| stat.started) == started;
        let sample = same.then(|| ProcessSample::read_in(&tree, pid, scope)).flatten();
        let alive = sample.is_some();
        if let Some(sample) = sample {
            keep(kept, ProcessSample { at_s: begin.elapsed().as_secs_f64(), ..sample });
        }
        alive
    };
    let thread = std::thread::Builder::new().name("sampler".into()).spawn(move || {
        let mut due = begin;
        while look(&mut kept) {
            due += interval;
            // A moment that has gone by is left out: samples have no meaning for the past.
            due = due.max(Instant::now());
            match stopped.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                    look(&mut kept);
                    break;
                }
            }
        }
        kept
    })?;
    Ok(ProcessSampler { stop: Some(stop), thread: Some(thread) })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn samples_come_in_order_with_one_at_each_end() {
        let interval = Duration::from_millis(20);
        let sampler = ProcessSampler::collect(std::process::id(), Scope::Process, interval).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let samples = sampler.stop();
        assert!(samples.len() >= 3, "{} samples", samples.len());
        assert!(samples.windows(2).all(|two| two[0].at_s <= two[1].at_s && two[0].user_s <= two[1].user_s));
        assert!(samples[samples.len() - 1].at_s >= 0.3);
    }

    #[test]
    fn stopping_does_not_wait_for_the_interval() {
        let begin = Instant::now();
        let pid = std::process::id();
        let sampler = ProcessSampler::collect(pid, Scope::Process, Duration::from_secs(600)).unwrap();
        assert!(!sampler.stop().is_empty());
        drop(ProcessSampler::collect(pid, Scope::Process, Duration::from_secs(600)).unwrap());
        assert!(begin.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_process_that_ends_ends_its_samples() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let (sender, samples) = channel();
        let sampler = ProcessSampler::each(child.id(), Scope::Tree, SHORTEST, move |sample| {
            sender.send(sample).unwrap_or(());
        })
        .unwrap();
        let first = samples.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(first.processes, 1);
        assert!(!sampler.is_finished());
        child.kill().unwrap();
        child.wait().unwrap();
        let patience = Instant::now() + Duration::from_secs(60);
        while !sampler.is_finished() {
            assert!(Instant::now() < patience, "still sampling a process that has ended");
            std::thread::sleep(SHORTEST);
        }
    }

    #[test]
    fn no_such_process_gives_no_sample() {
        let nobody = u32::MAX;
        let sampler = ProcessSampler::collect(nobody, Scope::Tree, Duration::from_millis(10)).unwrap();
        assert_eq!(sampler.stop(), []);
    }
}
