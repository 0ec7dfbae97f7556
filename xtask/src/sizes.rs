//! How long source files are: a file should be read in one go.

use anyhow::Result;
use std::path::Path;

use crate::foreign_paths::tracked;
use crate::steps::{Step, say};

/// Above this a file is listed.
const LISTED: usize = 400;
/// Above this the check fails.
const REFUSED: usize = 800;

/// Lists files above 400 lines without their tests; fails above 800.
pub(crate) fn check(root: &Path) -> Step {
    let lengths = match lengths(root) {
        Ok(Some(lengths)) => lengths,
        Ok(None) => return Step::skipped("not a git work tree, so the project's files are not known"),
        Err(error) => return Step::Failed(vec![format!("{error:#}")]),
    };
    for (path, lines) in lengths.iter().filter(|(_, lines)| *lines > LISTED) {
        say(&format!("{lines:>6} lines without tests: {path}"));
    }
    let long = lengths.iter().filter(|(_, lines)| *lines > REFUSED);
    let faults: Vec<String> =
        long.map(|(path, lines)| format!("{path} has {lines} lines; split it (limit {REFUSED})")).collect();
    Step::faults(Ok(faults))
}

/// The tracked Rust files with their lines, the longest first; none outside git.
fn lengths(root: &Path) -> Result<Option<Vec<(String, usize)>>> {
    let Some(files) = tracked(root)? else { return Ok(None) };
    let mut lengths = Vec::new();
    for path in files.into_iter().filter(|path| path.ends_with(".rs") && !is_test_file(path)) {
        // A file that is tracked but deleted in the work tree has no length.
        if let Ok(text) = std::fs::read_to_string(root.join(&path)) {
            lengths.push((path, lines_without_tests(&text)));
        }
    }
    lengths.sort_by_key(|(_, lines)| std::cmp::Reverse(*lines));
    Ok(Some(lengths))
}

/// Whether the whole file is test code.
pub(crate) fn is_test_file(path: &str) -> bool {
    let folder = path.split('/').any(|part| part == "tests" || part == "benches");
    folder || path.ends_with("/tests.rs") || path.ends_with("/testing.rs") || path.ends_with("_tests.rs")
}

/// Lines above an inline test module at the end of the file.
pub(crate) fn lines_without_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let tests =
        lines.windows(2).position(|two| two[0] == "#[cfg(test)]" && two[1].starts_with("mod tests {"));
    tests.unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_not_counted() {
        assert_eq!(lines_without_tests("a\nb\n\n#[cfg(test)]\nmod tests {\n    x\n}\n"), 3);
        assert_eq!(lines_without_tests("a\n#[cfg(test)]\nmod tests;\nb\n"), 4);
        assert!(is_test_file("crates/x/src/tests.rs") && is_test_file("crates/x/tests/a.rs"));
        assert!(is_test_file("crates/x/src/npy_tests.rs") && !is_test_file("crates/x/src/npy.rs"));
    }
}
