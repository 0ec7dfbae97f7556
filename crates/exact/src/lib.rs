//! Exact neighbours and recall: the figures that everything else stands on.
//!
//! What is here: distances in float64, the search for exact neighbours over any rows, the truth
//! under filters, its cache on disk, the check of a truth that a file brings, and the score of an
//! answer. What is not: file formats (crate `dataset`) and engines.
//!
//! Exactness: a search screens by integers or in f32 with an error bound that holds for every input, and
//! decides in float64 what the bounds leave open (see [`neighbours`]). Its order is that of the float64 distances, equal ones by the
//! lower row. One distance function serves search, recall and checks, so they never disagree.

mod audit;
mod block;
mod cache;
mod contrast;
mod cut;
mod distance;
mod error;
mod far;
mod filtered;
mod frame;
mod guess;
mod method;
mod partial;
mod partial_file;
mod partial_merge;
mod readahead;
mod scale;
mod scan;
mod score;
mod screening;
mod search;
mod searcher;
mod settle;
mod sharing;
mod shortlist;
mod source;
mod summary;
#[cfg(test)]
mod test_numbers;
mod tile;
mod topk;
mod trial;
mod verify;

pub use audit::{AuditAsk, Cause, Difference, TieRule, TruthAudit, Wrong, audit_truth};
pub use cache::{TruthCache, TruthKey};
pub use contrast::{Contrast, contrast};
pub use distance::{check_metric, distance};
pub use error::ExactError;
pub use far::{far_values, other_values};
pub use filtered::{FilterRows, Group, truth_for};
pub use kernel::Level;
pub use method::Method;
pub use partial::Partial;
pub use partial_file::{PartFilter, PartHeader, PartJob, PartReader, write_part};
pub use partial_merge::{base_hash, in_order, merge_parts, shard_rows};
pub use readahead::{ReadAhead, read_blocks};
pub use score::{Allowed, Explanation, QueryScore, ReturnedRow, Scorer};
pub use search::{Options, Search, Subset, neighbours};
pub use searcher::{Scratch, Searcher};
pub use sharing::Sharing;
pub use summary::{RecallSummary, chance_recall, is_chance_level, summary};
pub use verify::{TieOrder, TruthCheck, TruthVerdict, verify_truth};
