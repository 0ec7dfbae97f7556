//! The project's own checks: `cargo xtask test` is what the README, CONTRIBUTING and `.ci/run` call.
//!
//! What is here: the list of checks, in order, and what each needs. What is not: anything that ships.

mod architecture;
mod arm;
mod fixtures;
mod foreign_paths;
mod leaks;
mod links;
mod sanitize;
mod servers;
mod sizes;
mod steps;
mod test_output;

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use steps::{Step, Steps, cargo, say};

const HELP: &str = "\
cargo xtask test [--quick]   every check; --quick makes no fixtures and no documentation, downloads no server
cargo xtask architecture     the edges between the crates against the table in ARCHITECTURE.md
cargo xtask fixtures         only makes the files that tests read (target/fixtures/fx)
cargo xtask servers          only makes ready the database servers that tests need, in a cache outside the
                             checkout (ANNVIL_SERVERS), and prints the variables that tests read;
                             --also seekdb: one more, which no check needs
cargo xtask arm              tests of the kernels and the exact search for 64-bit Arm, under qemu-user
cargo xtask sanitize         tests of unsafe code under Miri and the address sanitizer
                             both: not part of CI; with --kernel the kernels only
cargo xtask help             this text

With CI=true a check that cannot run is a failure; otherwise it is named as skipped.
";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a binary, which reads its own arguments")]
fn run() -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = root()?;
    match arguments.as_slice() {
        ["test"] => test(&root, false),
        ["test", "--quick"] => test(&root, true),
        ["architecture"] => {
            let faults = architecture::check(&root)?;
            faults.iter().for_each(|fault| say(fault));
            Ok(faults.is_empty())
        }
        ["fixtures"] => {
            let mut steps = Steps::new(true);
            steps.run("fixtures", || fixtures::prepare(&root));
            Ok(steps.finish(None))
        }
        ["servers"] => servers::run(false),
        ["servers", "--also", "seekdb"] => servers::run(true),
        ["arm"] => Ok(arm::run(&root, ci(), false)),
        ["arm", "--kernel"] => Ok(arm::run(&root, ci(), true)),
        ["sanitize"] => Ok(sanitize::run(&root, ci(), false)),
        ["sanitize", "--kernel"] => Ok(sanitize::run(&root, ci(), true)),
        [] | ["help" | "--help" | "-h"] => {
            say(HELP.trim_end());
            Ok(true)
        }
        other => bail!("unknown command {:?}; `cargo xtask help` lists them", other.join(" ")),
    }
}

/// The workspace's folder, from where this crate was built.
fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().context("xtask has no folder above it")?.to_path_buf())
}

/// Whether a check that cannot run fails.
fn ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// All checks. Each runs even where one before it failed, so that one call shows all faults.
fn test(root: &Path, quick: bool) -> Result<bool> {
    let mut steps = Steps::new(ci());
    steps.run("format", || Step::command(cargo(root).args(["fmt", "--all", "--check"])));
    steps.run("architecture", || Step::faults(architecture::check(root)));
    steps.run("leaks", || leaks::check(root));
    steps.run("links", || links::check(root));
    steps.run("file sizes", || sizes::check(root));
    steps.run("foreign paths", || foreign_paths::check(root));
    steps.run("clippy", || {
        let words = ["clippy", "--workspace", "--all-targets", "--release", "--", "-D", "warnings"];
        Step::command(cargo(root).args(words))
    });
    if !quick {
        steps.run("fixtures", || fixtures::prepare(root));
        steps.run("documentation", || {
            let words = ["doc", "--no-deps", "--workspace", "--release", "--quiet"];
            Step::command(cargo(root).args(words).env("RUSTDOCFLAGS", "-D warnings"))
        });
    }
    let mut servers = Vec::new();
    steps.run("servers", || {
        let (step, found) = servers::step(!quick);
        servers = found;
        step
    });
    let chromium = fixtures::chromium();
    if chromium.is_none() {
        let why = "no chromium on PATH and ANNVIL_CHROMIUM is not set, so report pages are not opened";
        steps.run("browser", || Step::skipped(why));
    }
    let mut counts = None;
    steps.run("tests", || {
        let mut command = cargo(root);
        command.args(["test", "--release", "--workspace", "--no-fail-fast", "--", "--show-output"]);
        command.env("ANNVIL_FIXTURES", fixtures::folder(root));
        if let Some(path) = &chromium {
            command.env("ANNVIL_CHROMIUM", path);
        }
        command.envs(servers.iter().map(|server| (server.variable, &server.program)));
        let (step, found) = test_output::follow(&mut command);
        counts = found;
        step
    });
    Ok(steps.finish(counts))
}
