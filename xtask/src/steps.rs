//! Runs named checks one after the other, times them and sums them up.

use anyhow::Result;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::test_output::Counts;

/// What one check found.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing wrong.
    Passed,
    /// What is wrong, a line each.
    Failed(Vec<String>),
    /// Could not run, and why.
    Skipped(String),
}

impl Step {
    /// Runs `command` with its output shown.
    pub(crate) fn command(command: &mut Command) -> Step {
        match command.status() {
            Ok(status) if status.success() => Step::Passed,
            Ok(status) => Step::Failed(vec![format!("`{}`: {status}", words(command))]),
            Err(error) => Step::Failed(vec![format!("`{}` did not start: {error}", words(command))]),
        }
    }

    /// Passed where there is no fault.
    pub(crate) fn faults(faults: Result<Vec<String>>) -> Step {
        match faults {
            Ok(faults) if faults.is_empty() => Step::Passed,
            Ok(faults) => Step::Failed(faults),
            Err(error) => Step::Failed(vec![format!("{error:#}")]),
        }
    }

    /// Could not run, because of `why`.
    pub(crate) fn skipped(why: &str) -> Step {
        Step::Skipped(why.into())
    }
}

/// The checks so far.
pub(crate) struct Steps {
    ci: bool,
    done: Vec<(String, Step, Duration)>,
}

impl Steps {
    /// None yet; with `ci`, a skipped check fails.
    pub(crate) fn new(ci: bool) -> Self {
        Steps { ci, done: Vec::new() }
    }

    /// Runs `check` and shows what it found.
    pub(crate) fn run(&mut self, name: &str, check: impl FnOnce() -> Step) {
        say(&format!("== {name}"));
        let start = Instant::now();
        let mut step = check();
        if self.ci
            && let Step::Skipped(why) = step
        {
            step = Step::Failed(vec![format!("skipped, which CI=true does not allow: {why}")]);
        }
        if let Step::Failed(faults) = &step {
            faults.iter().for_each(|fault| say(&format!("{name}: {fault}")));
        }
        self.done.push((name.into(), step, start.elapsed()));
    }

    /// Prints the summary, last of all the test counts where the test runs gave them; true where
    /// nothing failed.
    pub(crate) fn finish(self, counts: Option<Counts>) -> bool {
        say("");
        let mut good = true;
        for (name, step, took) in &self.done {
            let verdict = match step {
                Step::Passed => "ok".to_string(),
                Step::Failed(faults) => {
                    good = false;
                    format!("FAILED: {}", faults.first().map_or("", String::as_str))
                }
                Step::Skipped(why) => format!("skipped: {why}"),
            };
            say(&format!("{name:<14} {:>6.1} s  {verdict}", took.as_secs_f64()));
        }
        if let Some(counts) = counts {
            say(&format!("{} passed, {} failed", counts.passed, counts.failed));
        }
        good
    }
}

/// Prints one line. A closed pipe is no fault of ours.
pub(crate) fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").unwrap_or(());
}

/// A cargo command in `root`, without what the cargo that runs us set for this crate: build scripts
/// that watch those variables would run again.
pub(crate) fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let ours = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];
        if ours.iter().any(|start| text.starts_with(start)) || text == "OUT_DIR" {
            command.env_remove(&name);
        }
    }
    command
}

/// The command line, for messages.
fn words(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy();
    let arguments = command.get_args().map(|a| a.to_string_lossy());
    std::iter::once(program).chain(arguments).collect::<Vec<_>>().join(" ")
}
