//! Runs a plan: prepares data sets, stands engines up, drives clients, scores answers, writes
//! records.
//!
//! What is here: the clock and everything that is timed by it. What is not: printing (events go
//! to a listener), arguments, and the name of any engine (crate `engines` finds them).

mod build;
mod ceiling;
mod clients;
#[cfg(test)]
mod clients_tests;
mod conductor;
mod error;
mod event;
mod filters;
mod key;
mod limited;
mod load;
pub mod material;
mod memory;
pub mod pilot;
mod plan;
mod provenance;
pub mod resolve;
mod run;
mod serving;
mod source_plan;
mod stand;
mod stand_figures;
mod sweep;
pub mod truth;
mod verdict;

pub use ceiling::ceiling;
pub use clients::{ClientLog, LoopSpec, Measured, Sent, Window};
pub use conductor::closed_loop;
pub use error::RunnerError;
pub use event::{Event, Events};
pub use material::{Material, Preparation};
pub use plan::{BuildPlan, EnginePlan, FilterPlan, Limits, LoadPlan, Plan, ServerPlan};
pub use provenance::timestamp_for_names;
pub use run::{Mode, Prepared, RunOutcome, RunRequest, prepare_plan, run};
pub use serving::LocalEngine;
pub use source_plan::SourcePlan;
