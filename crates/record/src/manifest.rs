//! What ran, on what, with which settings.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// (major, minor) of the format.
    pub format: (u32, u32),
    /// The program.
    pub tool: Tool,
    /// Name of the run.
    pub name: String,
    /// When it was first started (UTC, RFC 3339).
    pub created_at: String,
    /// The resolved plan, enough to repeat the run.
    pub plan: Value,
    /// Seeds of every random stream.
    pub seeds: BTreeMap<String, u64>,
    /// The client's machine.
    pub machine: Value,
    /// The data sets.
    pub datasets: Vec<DatasetEntry>,
    /// One section per engine.
    pub engines: BTreeMap<String, EngineEntry>,
    /// Keys of the points that the plan asks for, in order, as far as the run has come. Points in
    /// `records.jsonl` with other keys are of an earlier plan and are not part of the result.
    #[serde(default)]
    pub planned: Vec<String>,
    /// Every start of the run: the first and each resume.
    pub sessions: Vec<RunSession>,
    /// Whether the result may be used; none while the run goes on.
    pub verdict: Option<Verdict>,
}

/// The program that measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// `annvil`.
    pub name: String,
    /// Version.
    pub version: String,
    /// Commit, where the build knew it.
    pub commit: Option<String>,
    /// [`crate::MEASUREMENT_VERSION`].
    pub measurement_version: u32,
}

/// A data set of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DatasetEntry {
    /// Name.
    pub name: String,
    /// Where it was read from, as given.
    pub source: String,
    /// Rows in the base.
    pub rows: u64,
    /// Queries.
    pub queries: u64,
    /// Components.
    pub dim: u64,
    /// Type of a component.
    pub element: String,
    /// Metric.
    pub metric: String,
    /// Content hash of the base.
    pub base_hash: String,
    /// Content hash of the queries.
    pub queries_hash: String,
    /// Content hash of the columns.
    pub columns_hash: Option<String>,
    /// Where the truth came from: "computed", "cached", "file, 50 queries checked", "none".
    pub truth: String,
    /// Its hash.
    pub truth_hash: Option<String>,
    /// What the reader said.
    pub notices: Vec<String>,
    /// Checks that failed and were overridden by `--force`, a sentence each.
    #[serde(default)]
    pub forced: Vec<String>,
}

/// An engine of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineEntry {
    /// Title.
    pub title: String,
    /// Version as it says.
    pub version: String,
    /// Where it came from.
    pub source: String,
    /// Client library.
    pub client: String,
    /// Protocol.
    pub protocol: String,
    /// Address without credentials; none for an embedded engine.
    pub address: Option<String>,
    /// The definition file as used.
    pub definition: Value,
    /// Settings as read back: name, value, default.
    pub settings: Value,
    /// Known asymmetries.
    pub asymmetries: Vec<String>,
    /// Where Annvil started the server: its program, version, budget and the settings computed from it.
    #[serde(default)]
    pub server: Option<Value>,
    /// What was set too small for the data, a sentence each with both figures.
    #[serde(default)]
    pub advice: Vec<String>,
}

/// One start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSession {
    /// When (UTC, RFC 3339).
    pub started_at: String,
    /// When it ended; none where it was killed.
    pub ended_at: Option<String>,
    /// "finished", "interrupted", "failed"; none where it was killed.
    pub outcome: Option<String>,
    /// The command line, credentials masked.
    pub command: Vec<String>,
}

/// Whether the run's figures may be used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// No finding forbids it.
    pub valid: bool,
    /// What stands against it or must be known.
    pub findings: Vec<Finding>,
}

/// One finding of the guards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Whether it makes the run not valid.
    pub fatal: bool,
    /// A word for machines, such as `row_count`.
    pub code: String,
    /// The engine concerned.
    pub engine: Option<String>,
    /// The sentence for people.
    pub message: String,
}
