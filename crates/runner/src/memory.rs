//! Memory of the process that holds the engine, while something is done.

use engine::Definition;
use host::{ProcessSample, ProcessSampler, Scope};
use std::time::Duration;

/// How often memory is looked at.
const EVERY: Duration = Duration::from_millis(50);

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
