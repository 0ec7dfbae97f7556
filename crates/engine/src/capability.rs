//! What an engine has and lacks. A plan respects it; nothing is emulated silently.

use serde::{Deserialize, Serialize};
use types::{Element, FilterKind, Metric};

/// When the index is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuildTime {
    /// By a statement after the rows are in.
    AfterLoad,
    /// While rows are inserted.
    DuringLoad,
    /// Either; the build's parameter `build_time` chooses.
    Either,
}

/// When a filter is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterMode {
    /// The rows that pass are found first and searched exactly.
    Before,
    /// Rows are tested while the index is walked.
    During,
    /// The index gives its candidates, then rows are tested; answers may come up short.
    After,
    /// As `After`, but the index goes on until k rows pass.
    AfterContinuing,
    /// The engine chooses by its own estimate.
    Planner,
}

/// What an engine has. Lists are complete: what is not in them is lacking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capabilities {
    /// Metrics that its index supports.
    pub metrics: Vec<Metric>,
    /// Element types that it stores without conversion; others are loaded as f32.
    pub elements: Vec<Element>,
    /// Most dimensions that its index takes; none where no limit is known.
    #[serde(default)]
    pub max_dim: Option<usize>,
    /// Most rows that a query may ask for.
    #[serde(default)]
    pub max_k: Option<usize>,
    /// Conditions that a filter may have.
    #[serde(default)]
    pub filters: Vec<FilterKind>,
    /// How filters are executed.
    #[serde(default)]
    pub filter_mode: Option<FilterMode>,
    /// Rows can be deleted.
    #[serde(default)]
    pub delete: bool,
    /// A deleted key can be inserted again.
    #[serde(default)]
    pub reinsert: bool,
    /// When the index is made.
    pub build_time: BuildTime,
    /// The build statement may return before the index is ready.
    #[serde(default)]
    pub asynchronous_build: bool,
    /// Every answer is exact: the control, which must reach recall 1.0.
    #[serde(default)]
    pub exact: bool,
    /// The engine takes a vector that is all zero under cosine.
    #[serde(default)]
    pub zero_vectors: bool,
    /// The engine can say how it runs a query.
    #[serde(default)]
    pub explain: bool,
    /// Runs inside Annvil's own process: no server, no network.
    #[serde(default)]
    pub embedded: bool,
}
