//! The edges between our crates against the table in ARCHITECTURE.md, the one place that states them.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::steps::cargo;

/// What each crate uses or may use.
type Edges = BTreeMap<String, BTreeSet<String>>;

/// The workspace as cargo sees it.
#[derive(Debug, Default)]
struct Workspace {
    /// Normal and build dependencies on our own crates.
    normal: Edges,
    /// Dev-dependencies on our own crates.
    dev: Edges,
    /// Crates whose folder has another name, with the folder.
    misplaced: Vec<(String, String)>,
}

/// Each difference between the workspace in `root` and its table, a sentence each.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let path = root.join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let output = cargo(root)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("starting cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("reading cargo metadata")?;
    Ok(faults(&workspace(&metadata)?, &table(&text)?))
}

/// Reads the answer of `cargo metadata --no-deps`.
fn workspace(metadata: &Value) -> Result<Workspace> {
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let name = |package: &Value| package["name"].as_str().map(String::from).context("package without name");
    let ours = packages.iter().map(name).collect::<Result<BTreeSet<_>>>()?;
    let mut found = Workspace::default();
    for package in packages {
        let from = name(package)?;
        let (mut normal, mut dev) = (BTreeSet::new(), BTreeSet::new());
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = name(dependency)?;
            // A path tells our `types` from one of that name in a registry.
            if ours.contains(&to) && dependency["path"].is_string() {
                let kind = if dependency["kind"] == "dev" { &mut dev } else { &mut normal };
                kind.insert(to);
            }
        }
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        if folder != from.as_str() {
            found.misplaced.push((from.clone(), folder.into_owned()));
        }
        found.normal.insert(from.clone(), normal);
        found.dev.insert(from, dev);
    }
    Ok(found)
}

/// Reads the table whose first column is `crate` and whose last is `may use`.
fn table(markdown: &str) -> Result<Edges> {
    let mut rows = markdown
        .lines()
        .map(cells)
        .skip_while(|row| !(row.first() == Some(&"crate") && row.last() == Some(&"may use")))
        .skip(2)
        .take_while(|row| !row.is_empty())
        .peekable();
    if rows.peek().is_none() {
        bail!("ARCHITECTURE.md has no table whose columns are: crate … may use");
    }
    let rows: Vec<(String, Vec<String>, bool)> = rows
        .map(|row| {
            let (first, last) = (row[0], row[row.len() - 1]);
            let name = quoted(first).into_iter().next().with_context(|| format!("no crate in {first:?}"))?;
            let uses = quoted(last);
            let all = last == "all";
            if !all && uses.is_empty() && last != "—" {
                bail!("the row of `{name}` may use {last:?}; write names in backticks, all or —");
            }
            Ok((name, uses, all))
        })
        .collect::<Result<_>>()?;
    let shipped: BTreeSet<String> =
        rows.iter().filter(|(name, ..)| name != "xtask").map(|(name, ..)| name.clone()).collect();
    let mut edges = Edges::new();
    for (name, uses, all) in rows {
        let mut uses = if all { shipped.clone() } else { uses.into_iter().collect() };
        uses.remove(&name);
        if edges.insert(name.clone(), uses).is_some() {
            bail!("`{name}` has two rows in ARCHITECTURE.md");
        }
    }
    Ok(edges)
}

/// The cells of a table row; none where the line is no row.
fn cells(line: &str) -> Vec<&str> {
    match line.trim().strip_prefix('|').and_then(|rest| rest.strip_suffix('|')) {
        Some(inner) => inner.split('|').map(str::trim).collect(),
        None => Vec::new(),
    }
}

/// The words in backticks.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(String::from).collect()
}

fn faults(found: &Workspace, allowed: &Edges) -> Vec<String> {
    let mut faults = Vec::new();
    for (from, uses) in &found.normal {
        let Some(may) = allowed.get(from) else {
            faults.push(format!("crate `{from}` has no row in ARCHITECTURE.md; add one"));
            continue;
        };
        for to in uses.difference(may) {
            faults.push(format!("`{from}` uses `{to}`, which its row in ARCHITECTURE.md does not allow"));
        }
    }
    for (name, uses) in allowed {
        if !found.normal.contains_key(name) {
            faults.push(format!("ARCHITECTURE.md has a row for `{name}`, but there is no such crate"));
        }
        for to in uses.iter().filter(|to| !allowed.contains_key(*to)) {
            faults.push(format!("the row of `{name}` allows `{to}`, which has no row itself"));
        }
    }
    for (name, folder) in &found.misplaced {
        faults.push(format!("crate `{name}` lies in the folder {folder}; give both one name"));
    }
    let mut all = found.normal.clone();
    for (from, uses) in &found.dev {
        all.entry(from.clone()).or_default().extend(uses.iter().cloned());
    }
    faults.extend(cycle(&all).map(|path| format!("a cycle, dev-dependencies included: {path}")));
    faults.extend(cycle(allowed).map(|path| format!("the table of ARCHITECTURE.md allows a cycle: {path}")));
    faults
}

/// A cycle in `edges`, written out; none where there is none.
fn cycle(edges: &Edges) -> Option<String> {
    // Takes away, again and again, the crates that use nothing that is left.
    let mut left = edges.clone();
    loop {
        let free: Vec<String> = left
            .iter()
            .filter(|(_, uses)| !uses.iter().any(|to| left.contains_key(to)))
            .map(|(name, _)| name.clone())
            .collect();
        if free.is_empty() {
            break;
        }
        for name in free {
            left.remove(&name);
        }
    }
    // Every crate left uses another one left, so walking on must come back to one seen.
    let mut path = vec![left.keys().next()?.clone()];
    loop {
        let next = left[path.last()?].iter().find(|to| left.contains_key(*to))?.clone();
        let seen = path.iter().position(|name| *name == next);
        path.push(next);
        if let Some(start) = seen {
            return Some(path[start..].join(" -> "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TABLE: &str = "\
Some text.

| crate | holds | invariant | may use |
|---|---|---|---|
| `types` | words | no I/O | — |
| `dataset` | files | knows no engine | `types` |
| `cli` | the binary | no measurement | all |

| crate | other |
|---|---|
| `not` | read |
";

    /// Metadata of crates with (name, dependencies as (name, kind)).
    fn found(crates: &[(&str, &[(&str, &str)])]) -> Workspace {
        let packages: Vec<Value> = crates
            .iter()
            .map(|(name, uses)| {
                let dependencies: Vec<Value> = uses
                    .iter()
                    .map(|(to, kind)| match *kind {
                        "registry" => json!({"name": to, "kind": null}),
                        "normal" => json!({"name": to, "kind": null, "path": "p"}),
                        kind => json!({"name": to, "kind": kind, "path": "p"}),
                    })
                    .collect();
                json!({"name": name, "manifest_path": format!("x/{name}/Cargo.toml"), "dependencies": dependencies})
            })
            .collect();
        workspace(&json!({ "packages": packages })).unwrap()
    }

    fn faults_of(crates: &[(&str, &[(&str, &str)])]) -> Vec<String> {
        faults(&found(crates), &table(TABLE).unwrap())
    }

    #[test]
    fn this_workspace_keeps_to_its_table() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert_eq!(check(root).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn allowed_edges_pass() {
        let cli: &[_] = &[("types", "normal"), ("dataset", "normal")];
        let crates = [("types", &[][..]), ("dataset", &[("types", "normal")]), ("cli", cli)];
        assert_eq!(faults_of(&crates), Vec::<String>::new());
    }

    #[test]
    fn a_forbidden_edge_is_caught() {
        for kind in ["normal", "build"] {
            let crates =
                [("types", &[][..]), ("dataset", &[("types", kind)]), ("cli", &[("xtask", "registry")])];
            assert_eq!(faults_of(&crates), Vec::<String>::new());
            let crates = [("types", &[("dataset", kind)][..]), ("dataset", &[]), ("cli", &[])];
            let faults = faults_of(&crates);
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].starts_with("`types` uses `dataset`"), "{faults:?}");
        }
    }

    #[test]
    fn a_crate_without_row_and_a_row_without_crate_are_caught() {
        let faults = faults_of(&[("types", &[]), ("dataset", &[]), ("extra", &[])]);
        assert!(faults.iter().any(|f| f.starts_with("crate `extra` has no row")), "{faults:?}");
        assert!(faults.iter().any(|f| f.contains("row for `cli`")), "{faults:?}");
    }

    #[test]
    fn dev_dependencies_may_be_wider_but_not_in_a_circle() {
        let wider = [("types", &[][..]), ("dataset", &[("types", "normal")]), ("cli", &[("dataset", "dev")])];
        assert_eq!(faults_of(&wider), Vec::<String>::new());
        let circle =
            [("types", &[("dataset", "dev")][..]), ("dataset", &[("types", "normal")]), ("cli", &[])];
        let faults = faults_of(&circle);
        assert_eq!(faults, ["a cycle, dev-dependencies included: dataset -> types -> dataset"]);
    }

    #[test]
    fn a_table_that_cannot_be_read_is_an_error() {
        assert!(table("no table").is_err());
        let vague = TABLE.replace("| all |", "| everything |");
        assert!(table(&vague).unwrap_err().to_string().contains("everything"));
    }
}
