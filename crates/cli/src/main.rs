//! `annvil`: measures vector search inside database engines.
//!
//! This file parses, dispatches and maps the outcome to an exit code; nothing else. Arguments are
//! in `args`, one file per command in `commands`, all output goes through `printer`.

mod args;
mod commands;
mod exit;
mod paths;
mod printer;
mod progress;
mod stop;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::usage(&error),
    };
    let printer = printer::Printer::new(&cli.output);
    let outcome = commands::dispatch(cli.command, &printer);
    exit::finish(outcome, &printer)
}
