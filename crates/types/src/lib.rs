//! The words that every part of Annvil shares: metrics, vectors, ids, columns, filters, truth,
//! recall figures, units and statistics.
//!
//! What is here: plain values and pure functions over them. What is not: I/O, threads, clocks,
//! knowledge of a file format or of a database. Everything else may use this crate; it uses none
//! of ours.

mod columns;
mod dictionary;
mod filter;
mod filter_rows;
mod filter_text;
mod ids;
mod metric;
mod rowset;
mod secret;
pub mod stats;
mod truth;
pub mod units;
mod vectors;

pub use columns::{Column, ColumnData, ColumnType, Columns, ColumnsError};
pub use dictionary::Dictionary;
pub use filter::{Filter, FilterError, FilterKind, Filters, Value};
pub use filter_rows::row_sets;
pub use filter_text::FilterTemplate;
pub use ids::{Id, Ids};
pub use metric::{Metric, UnknownMetric};
pub use rowset::RowSet;
pub use secret::Secret;
pub use truth::{Neighbour, Truth};
pub use vectors::{ByteStore, Element, ShapeError, Vectors};
