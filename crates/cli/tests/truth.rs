//! `annvil truth` through the real binary: filters at once, shards, merging, stopping and going on.

mod support;

use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};
use support::{Done, Scratch, done, shared_data, workspace};

/// A filter that is the same for all queries, one that differs, one that nothing passes.
const FILTERS: [&str; 3] = ["num < 10000", "cat10 = {q}", "num < -1"];

/// The words of a truth over the Debian set with columns and filters; none where it is not there.
fn debian() -> Option<Vec<String>> {
    let [base, columns, queries] =
        ["debian-50k-384-angular.hdf5", "debian-50k-columns.parquet", "debian-50k-query-columns.parquet"]
            .map(shared_data);
    let (base, columns, queries) = (base?, columns?, queries?);
    let mut words = vec!["truth".to_owned(), shown(&base), "--unfiltered".to_owned()];
    words.extend(["--columns".to_owned(), shown(&columns), "--query-columns".to_owned(), shown(&queries)]);
    for filter in FILTERS {
        words.extend(["--filter".to_owned(), filter.to_owned()]);
    }
    Some(words)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn with<'a>(words: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    words.iter().map(String::as_str).chain(more.iter().copied()).collect()
}

/// The files of a folder by name.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let mut files: Vec<_> = entries
        .map(|e| (e.file_name().to_string_lossy().into_owned(), std::fs::read(e.path()).expect("a file")))
        .collect();
    files.sort();
    files
}

fn names(folder: &Path) -> Vec<String> {
    files(folder).into_iter().map(|(name, _)| name).collect()
}

#[track_caller]
fn same_files(a: &Path, b: &Path) {
    assert_eq!(names(a), names(b));
    for ((name, a), (_, b)) in files(a).into_iter().zip(files(b)) {
        assert!(a == b, "{name} differs");
    }
}

fn state_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|e| e.path()).filter(|path| path.extension().is_some_and(|e| e == "state")).collect()
}

#[test]
fn sixteen_shards_merged_are_one_run_byte_for_byte() {
    let Some(words) = debian() else { return };
    let (one, split) = (Scratch::new(), Scratch::new());
    let values = one.ok(&with(&words, &["--k", "20", "--out", "truths/", "--json"])).out;
    let values: Value = serde_json::from_str(&values).expect("JSON");
    assert_eq!(values.as_array().map(Vec::len), Some(4));
    for value in values.as_array().expect("a list") {
        assert_eq!((&value["searched_together"], &value["origin"]), (&json!(4), &json!("computed")));
        assert!(value["search_seconds"].as_f64() < value["seconds"].as_f64(), "{value}");
        assert!(value["pairs_per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{value}");
    }
    let expected = ["1-all-rows.ibin", "1-all-rows.ibin.json", "2-num-10000.ibin", "2-num-10000.ibin.json"];
    assert_eq!(names(&one.path().join("truths"))[..4], expected);
    let mut parts = Vec::new();
    for shard in 1..=16 {
        let (part, number) = (format!("{shard}.truth"), format!("{shard}/16"));
        let said = split.ok(&with(&words, &["--k", "20", "--shard", &number, "--out", &part, "--json"])).out;
        let said: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!((&said["shard"], &said["shards"]), (&json!(shard), &json!(16)), "{said}");
        parts.push(part);
    }
    assert!(state_files(split.path()).is_empty(), "a finished shard leaves no state");
    // A shard is a function of its number: made again with other threads, it is the same.
    let again =
        split.ok(&with(&words, &["--k", "20", "--shard", "3/16", "--out", "again", "--threads", "1"]));
    assert!(again.out.contains("shard 3 of 16"), "{}", again.out);
    let read = |name: &str| std::fs::read(split.path().join(name)).expect("a part");
    assert!(read("again") == read("3.truth"), "shard 3 differs from itself");
    parts.reverse();
    let merge = |s: &Scratch, more: &[&str]| {
        let parts = parts.iter().map(String::as_str);
        s.ok(&["truth", "merge"].into_iter().chain(parts).chain(more.iter().copied()).collect::<Vec<_>>())
    };
    merge(&split, &["--out", "truths"]);
    same_files(&one.path().join("truths"), &split.path().join("truths"));
    for format in ["json", "hdf5"] {
        let folder = format!("{format}/");
        let cached = one.ok(&with(&words, &["--k", "20", "--out", &folder, "--format", format, "--json"]));
        assert!(cached.out.contains("\"cached\""), "{}", cached.out);
        let mut more = vec!["--out", &folder, "--format", format, "--dataset", &words[1]];
        more.extend(words[3..7].iter().map(String::as_str));
        merge(&split, &more);
        same_files(&one.path().join(format), &split.path().join(format));
    }
    // What was merged is in the cache: the same truth is not searched again.
    let cached = split.ok(&with(&words, &["--k", "20", "--json"]));
    assert!(!cached.out.contains("\"computed\""), "{}", cached.out);
}

#[test]
fn glove_in_shards_and_a_single_file() {
    let Some(base) = shared_data("glove-200k-50-angular.hdf5").map(|path| shown(&path)) else { return };
    let s = Scratch::new();
    s.ok(&["truth", &base, "--out", "one.ibin"]);
    let mut words = vec!["truth", "merge", "--out", "merged.ibin"];
    let shards: Vec<(String, String)> = (1..=16).map(|i| (format!("{i}/16"), format!("p{i}"))).collect();
    for (shard, part) in &shards {
        s.ok(&["truth", &base, "--shard", shard, "--out", part]);
        words.push(part);
    }
    s.ok(&words);
    for ending in ["", ".json"] {
        let read =
            |name: &str| std::fs::read(s.path().join(format!("{name}.ibin{ending}"))).expect("a truth");
        assert!(read("one") == read("merged"), "{ending} differs");
    }
}

#[test]
fn more_shards_than_blocks_of_rows() {
    let s = Scratch::new();
    let set = ["truth", "builtin", "--limit", "3000", "--k", "5"];
    s.ok(&[&set[..], &["--out", "one.json"]].concat());
    let mut words = vec!["truth", "merge", "--out", "merged.json"];
    let shards: Vec<(String, String)> = (1..=5).map(|i| (format!("{i}/5"), format!("p{i}"))).collect();
    for (shard, part) in &shards {
        s.ok(&[&set[..], &["--shard", shard, "--out", part]].concat());
        words.push(part);
    }
    let said = s.ok(&[&set[..], &["--shard", "1/5", "--out", "p1"]].concat()).out;
    assert!(said.contains("no rows"), "{said}");
    s.ok(&words);
    let read = |name: &str| std::fs::read(s.path().join(name)).expect("a truth");
    assert!(read("one.json") == read("merged.json"));
}

/// Starts a search that takes seconds, on the slowest kernel, keeping its state often.
fn slow(s: &Scratch, words: &[&str]) -> Child {
    let slow = ["--kernel", "portable", "--threads", "1", "--keep-every", "100ms"];
    let mut command = s.command(&[words, &slow[..]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("annvil starts")
}

/// Waits until a state lies in `folder`.
fn wait_for_state(folder: &Path, child: &mut Child) -> PathBuf {
    let begun = Instant::now();
    loop {
        if let Some(path) = state_files(folder).pop() {
            return path;
        }
        assert!(child.try_wait().expect("a child").is_none(), "it ended before its state was kept");
        assert!(begun.elapsed() < Duration::from_secs(120), "no state is kept");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn stop(child: &Child) {
    let id = i32::try_from(child.id()).expect("a process id");
    let killed = std::process::Command::new("kill").args(["-INT", &id.to_string()]).status();
    assert!(killed.expect("kill").success());
}

fn ended(child: Child) -> Done {
    done(child.wait_with_output().expect("it ends"))
}

#[test]
fn a_killed_and_a_stopped_search_go_on_and_give_the_same_bytes() {
    let Some(base) = shared_data("glove-200k-50-angular.hdf5").map(|path| shown(&path)) else { return };
    let (whole, s) = (Scratch::new(), Scratch::new());
    let words = ["truth", &base, "--k", "10", "--out", "t.ibin"];
    whole.ok(&words);
    let cache = s.path().join("cache/truth");
    let mut child = slow(&s, &words);
    wait_for_state(&cache, &mut child);
    child.kill().expect("killed");
    assert_eq!(ended(child).code, None);
    let state = state_files(&cache).pop().expect("the state outlives the process");
    // The state of one search is never used for another.
    let other = s.ok(&["truth", &base, "--k", "9", "--limit", "5000"]);
    assert!(!other.err.contains("continues"), "{}", other.err);
    // Goes on, is stopped, and goes on again.
    let mut child = slow(&s, &words);
    let kept = std::fs::metadata(&state).and_then(|m| m.modified()).expect("a time");
    while std::fs::metadata(&state).and_then(|m| m.modified()).is_ok_and(|time| time == kept) {
        assert!(child.try_wait().expect("a child").is_none(), "it ended too early");
        std::thread::sleep(Duration::from_millis(5));
    }
    stop(&child);
    let stopped = ended(child);
    assert_eq!(stopped.code, Some(130), "{}", stopped.err);
    for part in ["continues at row", "of 200,000", "stopped at row", "the same command goes on"] {
        assert!(stopped.err.contains(part), "{part}: {}", stopped.err);
    }
    let last = s.ok(&words);
    assert!(last.err.contains("continues at row"), "{}", last.err);
    assert!(state_files(&cache).is_empty(), "a finished search removes its state");
    let read = |s: &Scratch| std::fs::read(s.path().join("t.ibin")).expect("a truth");
    assert!(read(&whole) == read(&s), "what went on differs");
}

#[test]
fn a_killed_shard_goes_on_unless_it_is_another() {
    let Some(base) = shared_data("glove-200k-50-angular.hdf5").map(|path| shown(&path)) else { return };
    let s = Scratch::new();
    let words = ["truth", &base, "--k", "10", "--shard", "1/1", "--out", "p"];
    s.ok(&["truth", &base, "--k", "10", "--shard", "1/1", "--out", "whole"]);
    let mut child = slow(&s, &words);
    let state = wait_for_state(s.path(), &mut child);
    child.kill().expect("killed");
    assert_eq!(ended(child).code, None);
    let refused = s.annvil(&["truth", "merge", "p.state"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("was stopped at row"), "{}", refused.err);
    let kept = std::fs::read(&state).expect("a state");
    // Another question in the same place begins anew, and says so.
    let other = s.ok(&["truth", &base, "--k", "9", "--shard", "1/1", "--out", "p"]);
    assert!(other.err.contains("begins anew") && other.err.contains("the k is 10, not 9"), "{}", other.err);
    std::fs::write(&state, &kept[..kept.len() - 1]).expect("written");
    let damaged = s.ok(&["truth", &base, "--limit", "1024", "--shard", "1/1", "--out", "p"]);
    assert!(damaged.err.contains("begins anew") && damaged.err.contains("cut short"), "{}", damaged.err);
    std::fs::write(&state, &kept).expect("written");
    let last = s.ok(&words);
    assert!(last.err.contains("continues at row"), "{}", last.err);
    assert!(!state.exists(), "a finished shard removes its state");
    let read = |name: &str| std::fs::read(s.path().join(name)).expect("a part");
    assert!(read("p") == read("whole"), "the part differs");
}

#[test]
fn what_cannot_be_done_is_said_with_what_to_do() {
    let s = Scratch::new();
    for (shard, out) in [("1/3", "p1"), ("3/3", "p3")] {
        s.ok(&["truth", "builtin", "--k", "5", "--shard", shard, "--out", out]);
    }
    s.ok(&["truth", "builtin", "--k", "6", "--shard", "2/3", "--out", "k6"]);
    s.ok(&["truth", "builtin", "--k", "5", "--limit", "9000", "--shard", "2/3", "--out", "cut"]);
    s.write("junk", "no part");
    let bytes = std::fs::read(s.path().join("p1")).expect("a part");
    std::fs::write(s.path().join("short"), &bytes[..bytes.len() / 2]).expect("written");
    for (words, parts) in [
        (&["truth", "merge", "p1", "p3"][..], &["shard 2 of 3 is missing"][..]),
        (&["truth", "merge", "p1", "p1"], &["shard 1 of 3 is given twice"]),
        (&["truth", "merge", "p1", "k6", "p3"], &["not of one job", "the k is 5 here and 6 there"]),
        (&["truth", "merge", "p1", "cut"], &["not of one job", "10000 rows", "9000 rows"]),
        (&["truth", "merge", "junk"], &["no part of a truth"]),
        (&["truth", "merge", "short", "p3"], &["cut short"]),
        (&["truth", "merge", "gone"], &["cannot read gone"]),
        (&["truth", "builtin", "--shard", "0/3", "--out", "p"], &["numbered from 1"]),
        (&["truth", "builtin", "--shard", "4/3", "--out", "p"], &["3/16"]),
        (&["truth", "builtin", "--shard", "1/3"], &["--out"]),
        (&["truth", "builtin", "--shard", "1/3", "--out", "p.ibin"], &["part-03.truth"]),
        (&["truth", "builtin", "--kernel", "x"], &["portable"]),
        (
            &["truth", "builtin", "--filter", "a = 1", "--filter", "a = 2", "--out", "t.ibin"],
            &["name a folder"],
        ),
        (&["truth", "builtin", "--unfiltered"], &["--filter"]),
        (&["truth", "builtin", "--memory", "100kB"], &["781.2 KiB", "lower --k"]),
        (&["truth", "builtin", "--memory", "much"], &["512MiB"]),
    ] {
        let done = s.annvil(words);
        assert_eq!(done.code, Some(2), "{words:?}: {}", done.err);
        for part in parts {
            assert!(done.err.contains(part), "{words:?}: {part} is missing in {}", done.err);
        }
    }
    s.ok(&["truth", "builtin", "--k", "5", "--shard", "2/3", "--out", "p2"]);
    let hdf5 = s.annvil(&["truth", "merge", "p1", "p2", "p3", "--out", "t.hdf5"]);
    assert!(hdf5.code == Some(2) && hdf5.err.contains("--dataset"), "{}", hdf5.err);
    let other = s.annvil(&["truth", "merge", "p1", "p2", "p3", "--dataset", "builtin", "--limit", "9000"]);
    assert!(other.code == Some(2) && other.err.contains("their base is"), "{}", other.err);
    s.ok(&["truth", "merge", "p1", "p2", "p3", "--out", "t.hdf5", "--dataset", "builtin"]);
    // A data set named like the subcommand.
    s.ok(&[
        "dataset",
        "generate",
        "--out",
        "merge",
        "--rows",
        "2000",
        "--queries",
        "5",
        "--dim",
        "8",
        "--k",
        "0",
    ]);
    assert!(s.ok(&["truth", "./merge", "--k", "3"]).out.contains("of 5 queries over 2000 rows"));
    for json in [["--json", "truth", "merge"], ["truth", "--json", "merge"], ["truth", "merge", "--json"]] {
        assert!(s.ok(&[&json[..], &["p1", "p2", "p3"]].concat()).out.contains("\"merged\""));
    }
    let both = s.annvil(&["truth", "builtin", "merge", "p1"]);
    assert!(both.code == Some(2) && both.err.contains("./merge"), "{}", both.err);
}

/// The scripts in docs/scale.md, by what they begin with.
fn scripts() -> Vec<String> {
    let text = std::fs::read_to_string(workspace().join("docs/scale.md")).expect("docs/scale.md");
    let blocks = |language: &str| -> Vec<String> {
        let fence = format!("```{language}\n");
        let parts = text.split(&fence).skip(1);
        parts.map(|part| part.split("```").next().unwrap_or_default().to_owned()).collect()
    };
    let mut scripts = blocks("bash");
    for yaml in blocks("yaml") {
        let lines = yaml.lines().skip_while(|line| line.trim() != "- |").skip(1);
        let script: Vec<&str> =
            lines.take_while(|line| line.starts_with("              ")).map(str::trim_start).collect();
        scripts.push(script.join("\n"));
    }
    scripts
}

#[test]
fn the_scripts_of_the_documentation_work() {
    let scripts = scripts();
    assert_eq!(scripts.len(), 4, "{scripts:?}");
    let binary = Path::new(env!("CARGO_BIN_EXE_annvil")).parent().expect("a folder");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let mut truths = Vec::new();
    for (pair, (variable, first)) in
        scripts.chunks(2).zip([("SLURM_ARRAY_TASK_ID", 1), ("JOB_COMPLETION_INDEX", 0)])
    {
        let s = Scratch::new();
        s.ok(&[
            "dataset",
            "generate",
            "--out",
            "my-dataset",
            "--rows",
            "20000",
            "--queries",
            "20",
            "--dim",
            "16",
            "--k",
            "0",
        ]);
        let run = |script: &str, task: usize| {
            let mut command = std::process::Command::new("bash");
            command.args(["-c", script]).current_dir(s.path()).env("PATH", &path);
            command.env("ANNVIL_CACHE_DIR", s.path().join("cache")).env(variable, task.to_string());
            let done = done(command.output().expect("bash"));
            assert_eq!(done.code, Some(0), "{script}\n{}{}", done.out, done.err);
        };
        assert!(pair[0].contains("SHARDS=16"), "{}", pair[0]);
        (first..first + 16).for_each(|task| run(&pair[0], task));
        run(&pair[1], 0);
        s.ok(&[
            "truth",
            "my-dataset",
            "--unfiltered",
            "--filter",
            "num < 100000",
            "--out",
            "one/",
            "--cache-dir",
            "c2",
        ]);
        same_files(&s.path().join("one"), &s.path().join("truths"));
        truths.push(files(&s.path().join("truths")));
    }
    assert!(truths[0] == truths[1]);
}
