//! What can be typed: clap types and nothing else.

mod compare;
mod dataset;
mod engine;
mod run;
mod truth;

pub(crate) use compare::CompareArgs;
pub(crate) use dataset::{
    ConvertArgs, DatasetArgs, DatasetCommand, FetchArgs, FormatArg, GenerateArgs, ListArgs, OpenArgs,
    SourceArgs, ValidateArgs,
};
pub(crate) use engine::{CheckArgs, EngineArgs, EngineCommand, ShowArgs};
pub(crate) use run::RunArgs;
pub(crate) use truth::{
    FilterPlanArg, MergeArgs, MethodArg, SearchArgs, Shard, TruthArgs, TruthCommand, TruthFormat,
};

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Measures vector search inside database engines, and gives numbers that can be defended.
///
/// `annvil run` compares two embedded engines on a small real data set in under a minute, offline.
#[derive(Debug, Parser)]
#[command(
    name = "annvil",
    version,
    max_term_width = 100,
    after_help = "Exit codes: 0 valid; 1 our fault; 2 usage, configuration or bad input; 3 a gate was not met or a result got worse; 4 finished but not valid; 5 an engine unreachable or its set-up failed; 130 interrupted."
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// How to say it.
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Options of every command.
#[derive(Clone, Debug, Args)]
pub(crate) struct OutputArgs {
    /// Print JSON and nothing else on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say only what went wrong
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Load, build, search and compare engines
    Run(Box<RunArgs>),
    /// List, fetch, describe, validate, convert and generate data sets
    Dataset(DatasetArgs),
    /// Compute or check exact neighbours
    Truth(Box<TruthArgs>),
    /// List engines, show a definition, check an engine against the contract
    Engine(EngineArgs),
    /// Show a run again and write its page, charts and tables
    Report(ReportArgs),
    /// Compare two runs: what moved, and exit code 3 where it got worse
    Compare(CompareArgs),
    /// Show one query of a point: ids, distances, threshold, hits
    Explain(ExplainArgs),
    /// Say what this machine is, what can be measured on it, and the harness's own ceiling
    Doctor(DoctorArgs),
}

/// Where passwords of servers come from, beside the environment (`ANNVIL_PASSWORD`).
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PasswordArgs {
    /// File whose first line is the servers' password
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// Ask for the servers' password
    #[arg(long, conflicts_with = "password_file")]
    pub(crate) ask_password: bool,
}

/// `annvil report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Run directory; the newest below ./runs where none is given
    pub(crate) run: Option<PathBuf>,
}

/// `annvil explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Run directory
    pub(crate) run: PathBuf,
    /// Point: its key (or the beginning), or engine:effort such as usearch:80
    pub(crate) point: String,
    /// Number of the query
    #[arg(long, default_value_t = 0)]
    pub(crate) query: usize,
    /// Where computed truth and flat copies are kept
    #[arg(long, value_name = "DIR", env = "ANNVIL_CACHE_DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
}

/// `annvil doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Seconds for which the harness's ceiling is measured; 0 to leave it out
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    pub(crate) ceiling: f64,
}
