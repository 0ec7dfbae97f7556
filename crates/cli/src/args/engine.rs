//! `annvil engine`.

use clap::{Args, Subcommand};
use types::Metric;

/// `annvil engine`.
#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: EngineCommand,
}

/// The sub-commands.
#[derive(Debug, Subcommand)]
pub(crate) enum EngineCommand {
    /// List the engines that this annvil can drive
    List,
    /// Show a definition: what the engine has, its parameters and their ranges
    Show(ShowArgs),
    /// Run the contract suite against an engine and say what holds
    Check(CheckArgs),
}

/// `annvil engine show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Name, or path of a definition file
    pub(crate) engine: String,
}

/// `annvil engine check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Name, or path of a definition file
    pub(crate) engine: String,
    /// Address of the server
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) at: Option<String>,
    /// Metric to check with; the definition's first where none is given
    #[arg(long)]
    pub(crate) metric: Option<Metric>,
    /// Build parameter, such as m=16; may be repeated
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub(crate) params: Vec<String>,
}
