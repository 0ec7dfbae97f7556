//! The run directory: what a run leaves behind, and the only thing that a report reads.
//!
//! ```text
//! runs/<name>/
//!   manifest.json        what ran, on what, with which settings
//!   records.jsonl        one flat object per point, append-only, synced
//!   raw/<key>.parquet    per query and repeat: times, ids, hits
//!   series/<engine>.jsonl  memory, CPU and I/O over time
//!   logs/                what engines and the run said
//! ```
//!
//! What is here: plain types of their own, versions, atomic writing, masking. What is not: the
//! code that produces records or shows them.

mod error;
mod fields;
mod flag;
mod manifest;
mod mask;
mod point;
mod raw;
mod raw_read;
mod run_dir;
mod series;

pub use error::RecordError;
pub use fields::POINT_FIELDS;
pub use flag::Flag;
pub use manifest::{DatasetEntry, EngineEntry, Finding, Manifest, RunSession, Tool, Verdict};
pub use mask::{mask_address, mask_command};
pub use point::{BuildFigures, LoadFigures, Phase, Point, SearchFigures, Status};
pub use raw::{RAW_COLUMNS, RawPoint, read_raw, write_raw};
pub use run_dir::{RunDir, RunLock};
pub use series::{SeriesWriter, read_series};

/// Records of different measurement versions are never charted together. It goes up when a
/// change makes the same engine on the same machine give other figures.
pub const MEASUREMENT_VERSION: u32 = 1;

/// Version of the file formats: a reader refuses another major and ignores fields of a newer minor.
pub const FORMAT: (u32, u32) = (1, 0);
