//! What the fake engine is told to do: the `[options]` of its definition, or
//! `--engine fake:service_ms=5,fail_share=0.1`.

use crate::{ErrorKind, Params};
use serde::Deserialize;

/// The fake's script. Everything is off by default: an honest engine that answers exactly.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FakeOptions {
    /// Where answers come from.
    pub answers: Answers,
    /// Seed of everything random.
    pub seed: u64,

    /// Time that each search takes, in ms (M11: 10).
    pub service_ms: f64,
    /// Added to `service_ms`: evenly spread over 0 to this, by seed.
    pub jitter_ms: f64,
    /// What a slow call takes on top, in ms.
    pub slow_ms: f64,
    /// Every n-th call is slow; 0 for none.
    pub slow_every: u64,
    /// The first n calls after `create` are slow.
    pub slow_first: u64,
    /// One search at a time, the others wait.
    pub shared_lock: bool,
    /// No search is answered from this second on, counted from a point's first search, ...
    pub stall_from_s: f64,
    /// ... until this one; then `service_ms` more (M1: 5, 5 and 7).
    pub stall_to_s: f64,

    /// What is wrong with the list of keys (M2 to M4).
    pub reply: Reply,
    /// Type in which keys are returned (M5).
    pub id_type: IdType,
    /// Share of searches that fail at once (M6), spread evenly.
    pub fail_share: f64,
    /// Share of insert calls that fail at once, spread evenly.
    pub fail_insert_share: f64,
    /// Kind of those failures.
    pub fail_kind: ErrorKind,
    /// Accepts inserts and keeps nothing (M7).
    pub keep_nothing: bool,
    /// Loses the batch inserted last (M9).
    pub lose_last_batch: bool,
    /// `create` keeps what was there.
    pub keep_old_rows: bool,
    /// Deleted rows are still returned.
    pub ghosts: bool,
    /// A key inserted again stays away.
    pub lose_reinserted: bool,
    /// Takes vectors of any length.
    pub any_dimension: bool,
    /// Retries that each insert call reports.
    pub insert_retries: u64,

    /// Index is ready so long after `build` returned (M8: 3).
    pub ready_after_s: f64,
    /// Time that `build` takes.
    pub build_s: f64,
    /// `build` ends only when it is stopped.
    pub build_hangs: bool,
    /// `build` fails with `fail_kind`.
    pub build_fails: bool,
    /// The n-th search does not return before the engine is dropped; 0 for none.
    pub hang_at_search: u64,
    /// The process aborts in the n-th search, as by a crash; 0 for none.
    pub abort_at_search: u64,
    /// ... but not where this file exists, which is made before: a resumed run has the same options
    /// and goes on.
    pub abort_once: Option<String>,

    /// Filters are accepted and not applied.
    pub ignore_filter: bool,
    /// Filters are applied to the k nearest only.
    pub post_filter: bool,
    /// Share of the rows that the index holds, as it says of itself.
    pub indexed_share: f64,
    /// Index kind as read back instead of the one built; `none` for no index.
    pub read_back_kind: Option<String>,
    /// Index parameters as read back instead of those built with.
    pub read_back: Params,
    /// What the query plan says.
    pub explain: Explain,
    /// Recall rises with the effort: a true neighbour is found with probability
    /// `effort / (effort + effort_half)`, by seed.
    pub effort_recall: bool,
    /// The effort asked for is taken for 1.
    pub ignore_effort: bool,
    /// The effort at which half of the true neighbours are found.
    pub effort_half: f64,
    /// Refuses vectors that are all zero.
    pub refuse_zero_vectors: bool,

    /// Can't be reached.
    pub unreachable: bool,
    /// Does not let us in.
    pub denied: bool,
    /// Is out of memory above so many rows; 0 for no limit.
    pub max_rows: u64,
    /// File to which each call of create, build, begin and remove adds a line.
    pub log: Option<String>,
}

impl Default for FakeOptions {
    fn default() -> Self {
        FakeOptions {
            answers: Answers::Scan,
            seed: 1,
            service_ms: 0.0,
            jitter_ms: 0.0,
            slow_ms: 0.0,
            slow_every: 0,
            slow_first: 0,
            shared_lock: false,
            stall_from_s: 0.0,
            stall_to_s: 0.0,
            reply: Reply::Right,
            id_type: IdType::Unsigned,
            fail_share: 0.0,
            fail_insert_share: 0.0,
            fail_kind: ErrorKind::Refused,
            keep_nothing: false,
            lose_last_batch: false,
            keep_old_rows: false,
            ghosts: false,
            lose_reinserted: false,
            any_dimension: false,
            insert_retries: 0,
            ready_after_s: 0.0,
            build_s: 0.0,
            build_hangs: false,
            build_fails: false,
            hang_at_search: 0,
            abort_at_search: 0,
            abort_once: None,
            ignore_filter: false,
            post_filter: false,
            indexed_share: 1.0,
            read_back_kind: None,
            read_back: Params::new(),
            explain: Explain::Index,
            effort_recall: false,
            ignore_effort: false,
            effort_half: 10.0,
            refuse_zero_vectors: false,
            unreachable: false,
            denied: false,
            max_rows: 0,
            log: None,
        }
    }
}

/// Where answers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answers {
    /// A scan of the rows as they are, in the timed call.
    Scan,
    /// A scan when the point is encoded; the timed call copies the keys. Rows changed afterwards
    /// do not show.
    Prepared,
    /// Some keys, made when the point is encoded: nothing is compared at all. The `null` engine.
    Arbitrary,
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Nothing.
    Right,
    /// The nearest row k times (M2).
    NearestRepeated,
    /// The nearest row only (M3).
    Top1,
    /// Two rows more than asked (M4).
    TwoMore,
    /// Farthest of the k first.
    Reversed,
    /// Keys that we never gave, among the right ones.
    Foreign,
}

/// The type in which keys come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdType {
    /// u64.
    Unsigned,
    /// i64.
    Int,
    /// f64.
    Float,
    /// Text of digits.
    Text,
    /// Bytes of digits.
    Bytes,
    /// Text that is no number (`b'42'`).
    BytesText,
}

/// What the query plan says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Explain {
    /// The index is used.
    Index,
    /// All rows are scanned.
    Scan,
    /// There is no plan.
    None,
}
