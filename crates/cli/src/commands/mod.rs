//! One file per command.

mod compare;
mod dataset;
mod dataset_make;
mod dataset_text;
mod doctor;
mod engine;
mod explain;
mod params;
mod passwords;
mod report;
mod run;
mod run_dry;
mod source;
mod truth;
mod truth_check;
mod truth_out;
mod truth_shard;
mod truth_text;

use crate::{args::Command, exit::Outcome, printer::Printer};

/// Does what was asked.
pub(crate) fn dispatch(command: Command, printer: &Printer) -> anyhow::Result<Outcome> {
    match command {
        Command::Run(args) => run::run(&args, printer),
        Command::Dataset(args) => dataset::run(args.command, printer),
        Command::Truth(args) => truth::run(&args, printer),
        Command::Engine(args) => engine::run(args.command, printer),
        Command::Report(args) => report::run(&args, printer),
        Command::Compare(args) => compare::run(&args, printer),
        Command::Explain(args) => explain::run(&args, printer),
        Command::Doctor(args) => doctor::run(&args, printer),
    }
}
