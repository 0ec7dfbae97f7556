//! Every command in README.md is run, in order, on small real input.

mod support;

use support::{Scratch, workspace};

/// What stands in the README for the user's own files, and what the test puts there.
fn user_files(s: &Scratch) {
    s.ok(&["dataset", "generate", "--out", "my-dataset", "--rows", "2000", "--queries", "50", "--dim", "16"]);
    s.ok(&["dataset", "convert", "my-dataset", "--format", "hdf5", "--out", "my.hdf5"]);
    s.ok(&["dataset", "convert", "my-dataset", "--format", "parquet", "--out", "parquet"]);
    let from = s.path().join("parquet");
    std::fs::copy(from.join("train.parquet"), s.path().join("my.parquet")).expect("train.parquet");
    std::fs::copy(from.join("test.parquet"), s.path().join("my-queries.parquet")).expect("test.parquet");
}

/// The lines that begin with `annvil`, comments left out, words split as a shell would.
fn commands(readme: &str) -> Vec<Vec<String>> {
    let lines = readme.lines().filter_map(|line| line.strip_prefix("    annvil "));
    lines.map(|line| words(line.split(" #").next().unwrap_or(line))).collect()
}

fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.trim().chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' if !quoted => words.extend(Some(std::mem::take(&mut word)).filter(|w| !w.is_empty())),
            _ => word.push(c),
        }
    }
    words.extend(Some(word).filter(|w| !w.is_empty()));
    words
}

/// The newest run directory.
fn newest(s: &Scratch) -> Option<String> {
    let entries = std::fs::read_dir(s.path().join("runs")).ok()?.flatten();
    entries.map(|e| e.path().display().to_string()).max()
}

#[test]
fn every_command_of_the_readme_works() {
    let readme = std::fs::read_to_string(workspace().join("README.md")).expect("README.md");
    let s = Scratch::new();
    user_files(&s);
    // Those for databases are run by `sql/readme.rs`, which has servers.
    let commands: Vec<_> =
        commands(&readme).into_iter().filter(|words| !words.iter().any(|w| w == "pgvector")).collect();
    assert!(commands.len() >= 12, "the README has fewer commands than expected: {commands:?}");
    for command in commands {
        let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
        let run = newest(&s).unwrap_or_default();
        for arg in &mut args {
            if ["RUN", "RUN_A", "RUN_B"].contains(arg) {
                *arg = &run;
            }
        }
        if args.contains(&"--resume") {
            // Something to go on with: the newest run without its verdict.
            let path = std::path::Path::new(&run).join("manifest.json");
            let text = std::fs::read_to_string(&path).expect("a manifest");
            let mut manifest: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            manifest["verdict"] = serde_json::Value::Null;
            std::fs::write(&path, manifest.to_string()).expect("written");
        } else if args[0] == "run" && !args.contains(&"--plan") {
            // The same command on less: a tenth of the rows, short windows.
            args.extend(["--limit", "1000", "--repeats", "2", "--min-window", "5ms"]);
        } else if args.contains(&"full") {
            args.extend(["--limit", "500", "--repeats", "2", "--min-window", "1ms", "--warmup", "10"]);
        }
        let done = s.annvil(&args);
        assert_eq!(done.code, Some(0), "annvil {args:?}\n{}\n{}", done.out, done.err);
    }
}

#[test]
fn the_first_command_of_the_readme_is_the_default_run() {
    let readme = std::fs::read_to_string(workspace().join("README.md")).expect("README.md");
    assert!(readme.contains("\n    cargo run --release -- run\n"));
    assert!(readme.contains("\n    cargo xtask test\n"));
    let s = Scratch::new();
    let done = s.ok(&["run"]);
    for part in
        ["recall ≥ 0.90", "recall ≥ 0.95", "recall ≥ 0.99", "to queryable", "USearch", "Flat", "VALID"]
    {
        assert!(done.out.contains(part), "{part} is missing in\n{}", done.out);
    }
    let run = newest(&s).expect("a run directory");
    for file in
        ["report.html", "manifest.json", "records.jsonl", "charts", "tables", "raw", "series/usearch.jsonl"]
    {
        assert!(std::path::Path::new(&run).join(file).exists(), "{file}");
    }
}
