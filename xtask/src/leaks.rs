//! Two rules that the table of crates cannot state: every crate takes the workspace's lints, and no crate
//! outside `engines` and `cli` names a product, because then a new engine would touch it.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

use crate::foreign_paths::tracked;
use crate::sizes::{is_test_file, lines_without_tests};
use crate::steps::Step;

/// Crates that know engines by their traits only.
const BLIND: [&str; 8] = ["types", "dataset", "exact", "engine", "host", "record", "runner", "report"];

/// Engines whose names are everyday words of the field.
const EVERYDAY: [&str; 3] = ["flat", "fake", "null"];

/// Looks through all tracked manifests and sources.
pub(crate) fn check(root: &Path) -> Step {
    match tracked(root) {
        Ok(Some(files)) => Step::faults(faults(root, &files)),
        Ok(None) => Step::skipped("not a git work tree, so the project's files are not known"),
        Err(error) => Step::Failed(vec![format!("{error:#}")]),
    }
}

fn faults(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let products: Vec<&str> = files
        .iter()
        .filter_map(|path| path.strip_prefix("engines/")?.strip_suffix(".toml"))
        .filter(|name| !EVERYDAY.contains(name))
        .collect();
    let mut faults = Vec::new();
    for path in files {
        let manifest = path.ends_with("/Cargo.toml");
        let blind = BLIND.iter().any(|name| path.starts_with(&format!("crates/{name}/src/")));
        let source = blind && path.ends_with(".rs") && !is_test_file(path);
        // A tracked file that was deleted in the work tree has no text to look at.
        if !(manifest || source) || !root.join(path).exists() {
            continue;
        }
        let text = fs::read_to_string(root.join(path)).with_context(|| format!("reading {path}"))?;
        if manifest && !inherits_lints(&text) {
            faults.push(format!("{path} does not take the workspace's lints; add [lints] workspace = true"));
        }
        if source {
            let code = text.lines().take(lines_without_tests(&text)).enumerate();
            for (number, line) in code {
                if let Some(name) = products.iter().find(|name| names(line, name)) {
                    let line = number + 1;
                    faults.push(format!(
                        "{path}:{line}: names {name}; move it to `engines` or the definition file"
                    ));
                }
            }
        }
    }
    Ok(faults)
}

fn inherits_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    lines.next() == Some("workspace = true")
}

/// Whether the code of `line` (not a comment) has `name` as a word.
fn names(line: &str, name: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default().to_lowercase();
    code.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')).any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_in_code_is_found_and_in_a_comment_is_not() {
        assert!(names("if engine.name() == \"usearch\" {", "usearch"));
        assert!(names("use Usearch::Index;", "usearch"));
        assert!(!names("// as usearch does", "usearch"));
        assert!(!names("let usearch_like = 1;", "usearch"));
    }

    #[test]
    fn a_crate_without_the_lints_is_found() {
        assert!(inherits_lints("[package]\nname = \"x\"\n\n[lints]\nworkspace = true\n"));
        assert!(!inherits_lints("[package]\nname = \"x\"\n\n[lints]\n[dependencies]\n"));
        assert!(!inherits_lints("[package]\nname = \"x\"\n"));
    }

    #[test]
    fn faults_name_file_and_line() {
        let root = std::env::temp_dir().join(format!("annvil-leaks-{}", std::process::id()));
        let source = "fn f() {\n    \"usearch\";\n}\n\n#[cfg(test)]\nmod tests {\n    \"usearch\";\n}\n";
        let files = [
            ("engines/usearch.toml", ""),
            ("crates/runner/Cargo.toml", "[lints]\nworkspace = true\n"),
            ("crates/runner/src/a.rs", source),
            ("crates/engines/src/a.rs", source),
        ];
        for (path, text) in files {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        let found = faults(&root, &files.map(|(path, _)| path.to_string()));
        fs::remove_dir_all(&root).unwrap();
        let found = found.unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/runner/src/a.rs:2: names usearch"), "{found:?}");
    }
}
