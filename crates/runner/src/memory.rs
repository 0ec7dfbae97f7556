//! Memory of the process that holds the engine, while something is done.

use crate::RunnerError;
use engine::Definition;
use host::{ProcessSample, ProcessSampler, Scope};
use record::{RunDir, SeriesWriter};
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

/// Writes the series of an engine in our own process until dropped; none for an engine elsewhere.
///
/// # Errors
/// Where the series can't be written.
pub(crate) fn record_series(
    dir: &RunDir,
    definition: &Definition,
    name: &str,
) -> Result<Option<ProcessSampler<()>>, RunnerError> {
    if !definition.capabilities.embedded {
        return Ok(None);
    }
    let mut writer = SeriesWriter::open(dir, name)?;
    let sink = move |sample| {
        let line = SeriesLine { at: crate::provenance::now(), sample };
        // A series that can't go on (disk full) must not end the run; its points tell.
        let _lost_sample = writer.append(&line).and_then(|()| writer.flush());
    };
    // Without a thread for it there is no series; the run can do without.
    Ok(ProcessSampler::each(std::process::id(), Scope::Process, SERIES_EVERY, sink).ok())
}

/// Watches until stopped. An embedded engine lives in our own process; the memory of a server
/// elsewhere is not ours to see, so its figures stay unknown rather than being ours.
pub(crate) struct MemoryWatch {
    sampler: Option<ProcessSampler>,
}

impl MemoryWatch {
    pub(crate) fn start(definition: &Definition) -> Self {
        let sampler = definition
            .capabilities
            .embedded
            .then(|| ProcessSampler::collect(std::process::id(), Scope::Process, EVERY).ok())
            .flatten();
        MemoryWatch { sampler }
    }

    /// (highest, last) anonymous memory in bytes.
    pub(crate) fn stop(self) -> (Option<u64>, Option<u64>) {
        let samples: Vec<ProcessSample> = self.sampler.map(ProcessSampler::stop).unwrap_or_default();
        let anonymous = |s: &ProcessSample| s.rss_anon_bytes;
        (samples.iter().filter_map(anonymous).max(), samples.last().and_then(anonymous))
    }
}
