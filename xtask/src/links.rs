//! Links and file names in our Markdown pages must lead somewhere.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

use crate::foreign_paths::tracked;
use crate::steps::Step;

/// Folders at the root: a word in backticks that begins with one is a path of ours.
const FOLDERS: [&str; 6] = ["crates/", "docs/", "engines/", "plans/", "xtask/", ".ci/"];

/// Looks through all tracked pages.
pub(crate) fn check(root: &Path) -> Step {
    match tracked(root) {
        Ok(Some(files)) => Step::faults(faults(root, &files)),
        Ok(None) => Step::skipped("not a git work tree, so the project's files are not known"),
        Err(error) => Step::Failed(vec![format!("{error:#}")]),
    }
}

fn faults(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for path in files.iter().filter(|path| path.ends_with(".md") && root.join(path).exists()) {
        let text = fs::read_to_string(root.join(path)).with_context(|| format!("reading {path}"))?;
        let folder = root.join(path);
        let folder = folder.parent().unwrap_or(root);
        for (number, line) in text.lines().enumerate() {
            let missing_links = links(line).filter(|link| !folder.join(link).exists());
            let missing_paths = paths(line).filter(|path| !root.join(path).exists());
            for target in missing_links.chain(missing_paths) {
                faults.push(format!("{path}:{}: there is no {target}", number + 1));
            }
        }
    }
    Ok(faults)
}

/// The targets of `[text](target)` that are files here, without `#section`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split_once(')')?.0.split('#').next()?;
        (!target.is_empty() && !target.contains("://") && !target.starts_with("mailto:")).then_some(target)
    })
}

/// The words in backticks that are paths of ours; not patterns (`engines/*.toml`, `engines/<name>.toml`).
fn paths(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter(|word| {
        let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        plain && FOLDERS.iter().any(|folder| word.starts_with(folder))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_paths_are_found_and_patterns_are_not() {
        let line = "See [a](docs/a.md#part), [b](https://example.org/b) and [c](#here); `docs/d.md`, `x/y`, `engines/*.toml`.";
        assert_eq!(links(line).collect::<Vec<_>>(), ["docs/a.md"]);
        assert_eq!(paths(line).collect::<Vec<_>>(), ["docs/d.md"]);
    }

    #[test]
    fn a_dead_link_is_named_with_its_line() {
        let root = std::env::temp_dir().join(format!("annvil-links-{}", std::process::id()));
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::write(root.join("docs/a.md"), "[there](a.md) `docs/a.md`\n[gone](b.md) `docs/c.md`\n").unwrap();
        let found = faults(&root, &["docs/a.md".into()]);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found.unwrap(), ["docs/a.md:2: there is no b.md", "docs/a.md:2: there is no docs/c.md"]);
    }
}
