//! Nothing that is committed may name a path of the machine it was written on, or a package mirror.

use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

use crate::steps::Step;

/// Beginnings of absolute paths that exist on one machine only. Cut in two, so as not to find themselves.
const PATHS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Hosts that packages are fetched from. Which one is the user's own setting.
const HOSTS: [&str; 6] = [
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("proxy.golang", ".org"),
    concat!("registry.npmjs", ".org"),
];

/// The one source that Cargo.lock may name.
const LOCK_SOURCE: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

/// Looks through every tracked text file.
pub(crate) fn check(root: &Path) -> Step {
    let files = match tracked(root) {
        Ok(Some(files)) => files,
        Ok(None) => return Step::skipped("not a git work tree, so the project's files are not known"),
        Err(error) => return Step::Failed(vec![format!("{error:#}")]),
    };
    let mut faults = Vec::new();
    for path in files {
        // What is not UTF-8 is data, not text.
        let Ok(text) = std::fs::read_to_string(root.join(&path)) else { continue };
        for (number, line) in text.lines().enumerate() {
            if let Some(fault) = fault(&path, line) {
                faults.push(format!("{path}:{}: {fault}", number + 1));
            }
        }
    }
    Step::faults(Ok(faults))
}

/// The files that git tracks in `root`; none where there is no git or no work tree.
pub(crate) fn tracked(root: &Path) -> Result<Option<Vec<String>>> {
    let Ok(output) = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output() else {
        return Ok(None);
    };
    if !output.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8(output.stdout).context("a tracked file's name is not UTF-8")?;
    Ok(Some(text.split_terminator('\0').map(String::from).collect()))
}

/// What is wrong with `line` of the file `path`.
fn fault(path: &str, line: &str) -> Option<String> {
    if path.ends_with("Cargo.lock") && line.starts_with("source = ") && line != LOCK_SOURCE {
        return Some(format!("names another package source than crates.io: {line}"));
    }
    let host = HOSTS.iter().find(|host| line.contains(**host));
    if let Some(host) = host {
        return Some(format!("names the package host {host}; leave it to the user's settings"));
    }
    let path = PATHS.iter().find(|start| begins_a_path(line, start))?;
    Some(format!("names a path below {path}, which other machines do not have"))
}

/// Whether `start` stands in `line` where a path begins, not inside one (`some/work/x`).
fn begins_a_path(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-~/}*)".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_paths_and_mirrors_are_found() {
        for start in PATHS {
            assert!(fault("a.md", &format!("see `{start}x`")).is_some(), "{start}");
            assert!(fault("a.md", &format!("some{start}x and ../shared{start}x")).is_none(), "{start}");
        }
        for host in HOSTS {
            assert!(fault("a.toml", &format!("url = \"https://{host}/simple\"")).is_some(), "{host}");
        }
        assert!(fault("a.md", "see https://crates.io/crates/usearch").is_none());
    }

    #[test]
    fn the_lock_file_may_name_the_standard_source_only() {
        assert!(fault("Cargo.lock", LOCK_SOURCE).is_none());
        assert!(fault("Cargo.lock", "source = \"sparse+https://mirror.example/index/\"").is_some());
    }
}
