//! `annvil engine`.

use clap::{Args, Subcommand};
use std::path::PathBuf;
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
    /// Address of a server that runs already; without it annvil starts one
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) at: Option<String>,
    /// Program of the server that annvil starts
    #[arg(long, value_name = "PATH", conflicts_with = "at")]
    pub(crate) program: Option<PathBuf>,
    /// Passwords
    #[command(flatten)]
    pub(crate) passwords: super::PasswordArgs,
    /// Metric to check with; the definition's first where none is given
    #[arg(long)]
    pub(crate) metric: Option<Metric>,
    /// Kind of index; the definition's first where none is given
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// How rows are inserted
    #[arg(long, value_enum, value_name = "HOW", default_value = "fastest")]
    pub(crate) load: super::run::LoadArg,
    /// Recall that the highest effort must reach; coarse quantization may need less
    #[arg(long, value_name = "RECALL", default_value_t = 0.9)]
    pub(crate) least_recall: f64,
    /// Build parameter, such as m=16; may be repeated
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub(crate) params: Vec<String>,
}
