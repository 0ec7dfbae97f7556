//! Memory of the process that holds the engine, while something is done.

use crate::{RunnerError, resolve::ResolvedEngine, serving::Watched, stand_figures::push_flag};
use host::{ProcessSample, ProcessSampler, Scope};
use record::{Flag, Point, RunDir, SeriesWriter};
use serde::Serialize;
use std::time::Duration;

/// How often memory is looked at, for the peak of a build and for the series of an engine.
const EVERY: Duration = Duration::from_millis(50);
const SERIES_EVERY: Duration = Duration::from_millis(500);

/// A line of `series/<engine>.jsonl`.
#[derive(Serialize)]
struct SeriesLine {
    /// When (UTC, RFC 3339).
    at: String,
    #[serde(flatten)]
    sample: ProcessSample,
}

/// The process to look at, and how much of its tree.
fn target(watched: Watched) -> Option<(u32, Scope)> {
    match watched {
        Watched::Ours => Some((std::process::id(), Scope::Process)),
        Watched::Server(pid) => Some((pid, Scope::Tree)),
        Watched::Unseen => None,
    }
}

/// Writes the series of an engine's processes until dropped; none for an engine elsewhere.
///
/// # Errors
/// Where the series can't be written.
pub(crate) fn record_series(
    dir: &RunDir,
    watched: Watched,
    name: &str,
) -> Result<Option<ProcessSampler<()>>, RunnerError> {
    let Some((pid, scope)) = target(watched) else { return Ok(None) };
    let mut writer = SeriesWriter::open(dir, name)?;
    let sink = move |sample| {
        let line = SeriesLine { at: crate::provenance::now(), sample };
        // A series that can't go on (disk full) must not end the run; its points tell.
        let _lost_sample = writer.append(&line).and_then(|()| writer.flush());
    };
    // Without a thread for it there is no series; the run can do without.
    Ok(ProcessSampler::each(pid, scope, SERIES_EVERY, sink).ok())
}

/// What our own process uses while the queries of a point run (cases.md 58).
pub(crate) struct ProcessWatch {
    sampler: Option<ProcessSampler>,
}

impl ProcessWatch {
    pub(crate) fn start() -> Self {
        ProcessWatch { sampler: ProcessSampler::collect(std::process::id(), Scope::Process, EVERY).ok() }
    }

    /// Fills in the peaks, and marks a point whose client took too much of the CPUs. An embedded
    /// engine computes on our CPUs, so there the share says nothing about the client.
    pub(crate) fn stop(self, engine: &ResolvedEngine, most_cpu: f64, point: &mut Point) {
        let samples: Vec<ProcessSample> = self.sampler.map(ProcessSampler::stop).unwrap_or_default();
        let figures = &mut point.search;
        figures.process_memory_peak_bytes = samples.iter().filter_map(|s| s.rss_anon_bytes).max();
        figures.process_open_files_peak = samples.iter().filter_map(|s| s.open_files).max().map(u64::from);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let cpu = |s: &ProcessSample| s.user_s + s.system_s;
        if let (Some(first), Some(last)) = (samples.first(), samples.last())
            && last.at_s > first.at_s
        {
            figures.process_cpu_share = Some((cpu(last) - cpu(first)) / (last.at_s - first.at_s) / cpus);
        }
        let busy = figures.process_cpu_share.is_some_and(|share| share > most_cpu);
        if busy && !engine.definition.capabilities.embedded {
            push_flag(point, Flag::ClientLimited);
        }
    }
}

/// Watches until stopped. An embedded engine lives in our own process; the memory of a server
/// elsewhere is not ours to see, so its figures stay unknown rather than being ours (cases.md 86).
pub(crate) struct MemoryWatch {
    sampler: Option<ProcessSampler>,
    before: u64,
    watched: Watched,
}

/// Anonymous memory of our own process before an embedded engine is loaded: what is there then (data
/// sets, records of the engine before) is not the engine's.
pub(crate) fn before_load() -> u64 {
    ProcessSample::read(std::process::id(), Scope::Process).and_then(|s| s.rss_anon_bytes).unwrap_or(0)
}

impl MemoryWatch {
    pub(crate) fn start(watched: Watched, before: u64) -> Self {
        let sampler =
            target(watched).and_then(|(pid, scope)| ProcessSampler::collect(pid, scope, EVERY).ok());
        MemoryWatch { sampler, before: if watched == Watched::Ours { before } else { 0 }, watched }
    }

    /// (highest, last) memory in bytes: growth of our own anonymous memory since before the load, unknown
    /// where the engine lives in memory that was given back before, so that nothing grew; or all of a server's
    /// anonymous and shared memory.
    pub(crate) fn stop(self) -> (Option<u64>, Option<u64>) {
        let samples: Vec<ProcessSample> = self.sampler.map(ProcessSampler::stop).unwrap_or_default();
        let used = |s: &ProcessSample| match self.watched {
            Watched::Server(_) => Some(s.rss_anon_bytes? + s.rss_shared_bytes?),
            _ => s.rss_anon_bytes.and_then(|now| now.checked_sub(self.before)).filter(|growth| *growth > 0),
        };
        (samples.iter().filter_map(used).max(), samples.last().and_then(used))
    }
}
