//! Follows `cargo test`: shows its lines, counts results and collects what tests skipped.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::steps::{Step, say};

/// Results of all test binaries together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Tests that passed.
    pub(crate) passed: u64,
    /// Tests that failed.
    pub(crate) failed: u64,
}

/// Reads the lines of libtest's output.
#[derive(Debug, Default)]
struct Reader {
    counts: Option<Counts>,
    skipped: Vec<String>,
    in_successes: bool,
    /// Test binaries that began and have not given their result: more than 0 at the end is a crash.
    open: u64,
}

impl Reader {
    /// Takes one line; true where it is to be shown. What passing tests print is not, but is looked
    /// through for `skipped …`.
    fn line(&mut self, line: &str) -> bool {
        if let Some((passed, failed)) = result(line) {
            let counts = self.counts.get_or_insert_default();
            counts.passed += passed;
            counts.failed += failed;
            self.open = self.open.saturating_sub(1);
        }
        if line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test")) {
            self.open += 1;
        }
        if line.starts_with("skipped ") {
            self.skipped.push(line.into());
        }
        if line == "successes:" {
            self.in_successes = true;
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.in_successes = false;
        }
        !self.in_successes
    }
}

/// Reads `test result: ok. 3 passed; 0 failed; …`.
fn result(line: &str) -> Option<(u64, u64)> {
    let rest = line.strip_prefix("test result: ")?;
    let number = |word: &str| {
        let before = rest.split(word).next()?;
        before.trim_end().rsplit([' ', ';']).next()?.parse().ok()
    };
    Some((number(" passed;")?, number(" failed;")?))
}

/// Runs `command` (cargo test with `--show-output`) to its end. The counts are none where the tests
/// did not run to their end, so that no figure is shown that was not counted.
pub(crate) fn follow(command: &mut Command) -> (Step, Option<Counts>) {
    let failed = |what: String| (Step::Failed(vec![what]), None);
    let mut child = match command.stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return failed(format!("cargo test did not start: {error}")),
    };
    let mut reader = Reader::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            if reader.line(&line) {
                say(&line);
            }
        }
    }
    let status = match child.wait() {
        Ok(status) => status,
        Err(error) => return failed(format!("cargo test: {error}")),
    };
    for line in &reader.skipped {
        say(line);
    }
    let counts = reader.counts.unwrap_or_default();
    if reader.open > 0 {
        return failed(format!("{} test binaries ended without a result (a crash, see above)", reader.open));
    }
    if status.success() && counts.failed == 0 {
        (Step::Passed, Some(counts))
    } else if counts.failed > 0 {
        (Step::Failed(vec![format!("{} failed; the names stand above", counts.failed)]), Some(counts))
    } else {
        failed(format!("cargo test: {status}, without a failed test: a build fault or a crash, see above"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 2 tests
test a ... ok

successes:

---- a stdout ----
skipped a: fixtures missing, run cargo xtask test
noise

successes:
    a

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

failures:
    b
running 13 tests
test result: FAILED. 10 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s
";

    #[test]
    fn results_are_added_and_skipped_tests_are_named() {
        let mut reader = Reader::default();
        let shown: Vec<&str> = OUTPUT.lines().filter(|line| reader.line(line)).collect();
        assert_eq!(reader.counts, Some(Counts { passed: 12, failed: 3 }));
        assert_eq!(reader.open, 0);
        assert_eq!(reader.skipped, ["skipped a: fixtures missing, run cargo xtask test"]);
        assert!(shown.contains(&"test a ... ok") && shown.contains(&"    b"));
        assert!(!shown.contains(&"noise"));
    }

    #[test]
    fn nothing_counted_is_not_zero() {
        let mut reader = Reader::default();
        assert!(reader.line("error: could not compile"));
        assert_eq!(reader.counts, None);
        reader.line("running 1 test");
        assert_eq!(reader.open, 1);
    }
}
