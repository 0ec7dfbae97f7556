//! Runs programs quietly, and makes one line of what they said when they failed; texts of scripts.

use anyhow::{Context, Result, bail};
use std::process::Command;

/// Runs `command` with nothing on its standard input and gives its standard output. The error ends in
/// the line of its output that says most.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    // Messages are searched for words below.
    command.env("LC_ALL", "C").stdin(std::process::Stdio::null());
    let output = command.output().with_context(|| format!("starting {program}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{program}: {}: {}",
            output.status,
            reason(&stderr).or_else(|| reason(&stdout)).unwrap_or("no message")
        );
    }
    Ok(stdout)
}

/// Whether a program of this name starts.
pub(crate) fn there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The line that says most: what kept pip from its index, which pip itself calls a warning; else the
/// first that calls itself an error, as apt's and pip's do; else the last.
fn reason(output: &str) -> Option<&str> {
    let lines = || output.lines().map(str::trim).filter(|line| !line.is_empty());
    let broken = ["connection broken by ", "Could not fetch URL "];
    let cause = |line| broken.iter().find_map(|words| str::find(line, words).map(|at| &line[at..]));
    let named = |line: &&str| line.starts_with("E:") || line.starts_with("ERROR");
    lines().find_map(cause).or_else(|| lines().find(named)).or_else(|| lines().next_back())
}

/// `text` as one word of a POSIX shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_line_is_found_among_warnings() {
        let apt = "W: old lists\nE: Failed to fetch x  Could not resolve 'y'\nE: Some index files failed\n";
        assert_eq!(reason(apt), Some("E: Failed to fetch x  Could not resolve 'y'"));
        let pip = "WARNING: Retrying (Retry(total=1)) after connection broken by 'NewConnectionError'\n\
                   ERROR: Could not find a version that satisfies x (from versions: none)\n";
        assert_eq!(reason(pip), Some("connection broken by 'NewConnectionError'"));
        assert_eq!(reason("ERROR: No matching distribution\n"), Some("ERROR: No matching distribution"));
        assert_eq!(reason("one\n two \n\n"), Some("two"));
        assert_eq!(reason(" \n"), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_failed_program_is_named_with_its_last_words() {
        let error = run(Command::new("sh").args(["-c", "echo out; echo why >&2; exit 7"])).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("sh: ") && text.contains('7') && text.ends_with("why"), "{text}");
        assert_eq!(run(Command::new("sh").args(["-c", "cat; echo out"])).unwrap(), "out\n");
    }

    #[cfg(unix)]
    #[test]
    fn a_quoted_word_comes_back_from_the_shell() {
        let word = "a 'b' $HOME \"c\" \\";
        let echoed = run(Command::new("sh").args(["-c", &format!("printf %s {}", quoted(word))])).unwrap();
        assert_eq!(echoed, word);
    }
}
