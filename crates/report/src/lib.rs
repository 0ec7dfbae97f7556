//! Shows a run: tables for the terminal, CSV, charts and one self-contained HTML page.
//!
//! What is here: pure data first ([`Table`], [`ChartData`]), then one file per way of drawing it. What is
//! not: anything that measures. This crate reads records only, so an old run can be shown with no
//! engine compiled in, and prints nothing.
//!
//! | file | holds |
//! |---|---|
//! | `view.rs` | the points of a run in comparisons and series; which points may be used |
//! | `best.rs`, `frontier.rs` | best throughput at a recall floor; Pareto frontier |
//! | `tables/` | what stands in each table |
//! | `table.rs`, `terminal.rs`, `csv.rs` | the table as data; its ways out |
//! | `chart.rs`, `svg.rs` | the chart as data; its drawing |
//! | `html.rs`, `templates/` | the page |
//! | `compare.rs`, `compare/` | two runs side by side: what moved |

mod best;
mod chart;
mod compare;
mod csv;
mod engine_facts;
mod error;
mod format;
mod frontier;
mod html;
mod json;
mod manifest;
mod svg;
mod table;
mod tables;
mod terminal;
mod view;
mod write;

#[cfg(test)]
mod testing;

pub use best::FLOORS;
pub use chart::{ChartData, ChartPoint, ChartSeries};
pub use compare::{
    ApartDataset, Because, Change, ChangeKind, CompareOptions, Compared, Difference, Figure, Outcome, Pair,
    Place, RunComparison, RunName, compare, comparison_text,
};
pub use error::ReportError;
pub use json::json;
pub use table::{Cell, Column, Table};
pub use terminal::terminal;
pub use view::Selection;
pub use write::{Written, write, write_selected};
