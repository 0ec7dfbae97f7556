//! `annvil truth --check` through the real binary: files of every format, files changed on purpose, the
//! fixtures, and the truths of others beside the project.

mod support;

use serde_json::{Value, json};
use std::path::Path;
use support::{Done, Scratch, fixture, shared_data};

/// The first rows of the built-in set.
const SET: [&str; 4] = ["truth", "builtin", "--limit", "2000"];

fn run(s: &Scratch, more: &[&str]) -> Done {
    s.annvil(&[&SET[..], more].concat())
}

/// The lists of rows of the exact truth, as `annvil truth` writes them.
fn lists(s: &Scratch) -> (Value, Vec<Vec<u32>>) {
    s.ok(&[&SET[..], &["--k", "20", "--out", "t.json"]].concat());
    let whole: Value =
        serde_json::from_slice(&std::fs::read(s.path().join("t.json")).expect("written")).expect("JSON");
    let rows = |list: &Value| serde_json::from_value(list["rows"].clone()).expect("rows");
    let lists = whole["lists"].as_array().expect("lists").iter().map(rows).collect();
    (whole, lists)
}

fn ibin(s: &Scratch, name: &str, lists: &[Vec<u32>]) {
    let head = [lists.len() as u32, lists[0].len() as u32];
    let words = head.iter().chain(lists.iter().flatten());
    std::fs::write(s.path().join(name), words.flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>())
        .expect("written");
}

fn ivecs(s: &Scratch, name: &str, lists: &[Vec<u32>]) {
    let record = |list: &Vec<u32>| [vec![list.len() as u32], list.clone()].concat();
    let bytes: Vec<u8> = lists.iter().flat_map(record).flat_map(u32::to_le_bytes).collect();
    std::fs::write(s.path().join(name), bytes).expect("written");
}

#[track_caller]
fn says(done: &Done, code: i32, parts: &[&str]) {
    assert_eq!(done.code, Some(code), "{}{}", done.out, done.err);
    for part in parts {
        assert!(done.out.contains(part) || done.err.contains(part), "{part:?} in {}{}", done.out, done.err);
    }
}

#[test]
fn our_own_truth_is_right_in_every_format() {
    let s = Scratch::new();
    let (_, rows) = lists(&s);
    for name in ["t.ibin", "t.hdf5"] {
        s.ok(&[&SET[..], &["--k", "20", "--out", name]].concat());
    }
    ibin(&s, "ids.bin", &rows);
    ivecs(&s, "ids.ivecs", &rows);
    s.ok(&[&SET[..], &["--k", "20", "--out", "whole.part", "--shard", "1/1"]].concat());
    for name in ["t.json", "t.ibin", "t.hdf5", "ids.bin", "ids.ivecs", "whole.part"] {
        says(
            &run(&s, &["--check", name]),
            0,
            &[name, "truth is right", "all 500 queries, 20 neighbours: 500 identical"],
        );
    }
    let cached =
        std::fs::read_dir(s.path().join("cache/truth")).expect("a cache").flatten().map(|e| e.path());
    let cached: Vec<_> = cached.filter(|p| p.extension().is_some_and(|e| e == "truth")).collect();
    assert!(!cached.is_empty());
    says(&run(&s, &["--check", &cached[0].display().to_string()]), 0, &["truth is right"]);
    let sampled = run(&s, &["--check", "t.json", "--sample", "7", "--k", "5", "--json"]);
    let values: Value = serde_json::from_str(&sampled.out).expect("JSON");
    let value = &values[0];
    assert_eq!((&value["ok"], &value["checked"], &value["k"]), (&json!(true), &json!(7), &json!(5)));
    assert_eq!((&value["all_queries"], &value["different"]), (&json!(false), &json!(0)));
}

#[test]
fn what_was_done_to_a_file_is_said_with_exit_code_4() {
    let s = Scratch::new();
    let (_, rows) = lists(&s);
    let changed = |change: &dyn Fn(&mut Vec<u32>)| -> Vec<Vec<u32>> {
        let mut lists = rows.clone();
        lists.iter_mut().for_each(change);
        lists
    };
    ibin(&s, "ones.ibin", &changed(&|list| list.iter_mut().for_each(|row| *row += 1)));
    ibin(&s, "reversed.ibin", &changed(&|list| list.reverse()));
    ivecs(&s, "sorted.ivecs", &changed(&|list| list.sort_unstable()));
    let mut turned = rows.clone();
    turned.rotate_left(1);
    ibin(&s, "turned.ibin", &turned);
    let mut one = rows.clone();
    one[3].swap(0, 19);
    ibin(&s, "one.ibin", &one);
    for (name, part) in [
        ("ones.ibin", "counted from 1"),
        ("reversed.ibin", "farthest first"),
        ("sorted.ivecs", "by row number"),
        ("turned.ibin", "other queries"),
        ("one.ibin", "truth is wrong for 1 of 500 queries"),
    ] {
        says(&run(&s, &["--check", name]), 4, &[name, part, "query "]);
    }
    let example = run(&s, &["--check", "one.ibin"]);
    says(&example, 4, &["query 3, rank 1: row ", "exactly: a nearer row is missing"]);
    // The truth of a larger base, and of the first rows of this one.
    s.ok(&["truth", "builtin", "--k", "20", "--out", "all.ibin"]);
    says(&run(&s, &["--check", "all.ibin"]), 4, &["larger base", "by its hash"]);
    says(&s.annvil(&["truth", "builtin", "--check", "t.json"]), 4, &["first rows only"]);
}

#[test]
fn what_cannot_be_checked_is_refused_with_exit_code_2() {
    let s = Scratch::new();
    let (whole, rows) = lists(&s);
    ibin(&s, "few.ibin", &rows[..400]);
    let mut range = vec![500_u32, 500];
    range.extend([1; 500].into_iter().chain(rows.iter().map(|list| list[0])).chain([0; 500]));
    let bytes: Vec<u8> = range.iter().flat_map(|w| w.to_le_bytes()).collect();
    std::fs::write(s.path().join("range.ibin"), &bytes).expect("written");
    std::fs::write(s.path().join("cut.ibin"), &bytes[..1999]).expect("written");
    let mut beside = whole;
    beside.as_object_mut().expect("an object").remove("lists");
    s.write("beside.json", &beside.to_string());
    s.ok(&[&SET[..], &["--k", "20", "--out", "half.part", "--shard", "1/2"]].concat());
    for (name, part) in [
        ("few.ibin", "400 of 500 queries"),
        ("range.ibin", "range truth"),
        ("cut.ibin", "the file has 1999"),
        ("beside.json", "not the file beside it"),
        ("half.part", "shard 1 of 2"),
        ("nowhere.ibin", "no such file"),
    ] {
        says(&run(&s, &["--check", name]), 2, &["error: ", part]);
    }
    let two = run(&s, &["--check", "few.ibin", "--filter", "a = 1", "--filter", "b = 2"]);
    says(&two, 2, &["at most one --filter"]);
    says(&run(&s, &["--check", "few.ibin", "--out", "x.ibin"]), 2, &["cannot be used with"]);
    says(&run(&s, &["--sample", "3"]), 2, &["--check"]);
}

#[test]
fn the_fixtures_say_what_is_wrong_with_them() {
    for (name, code, part) in [
        ("F00_good.hdf5", 0, "truth is right"),
        ("F05_no_distances.hdf5", 0, "truth is right"),
        ("F07b_bits.hdf5", 0, "truth is right"),
        ("F19_duplicates.hdf5", 0, "truth is right"),
        ("F20_zero_vectors.hdf5", 0, "1 query has no distances"),
        ("F23_truth_by_wrong_metric.hdf5", 4, "it was made with l2"),
        ("F24_stale_truth.hdf5", 4, "it is of other vectors"),
        ("F25_base_cut.hdf5", 2, "rows up to 198"),
    ] {
        let Some(path) = fixture(name) else { return };
        let s = Scratch::new();
        let path = shown(&path);
        says(&s.annvil(&["truth", &path, "--check", &path]), code, &[part]);
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn the_truths_of_another_tool_are_right_case_by_case() {
    let names = [
        "debian-50k-384-angular.hdf5",
        "debian-50k-columns.parquet",
        "debian-50k-query-columns.parquet",
        "debian-50k-filtered-truth.parquet",
    ];
    let [Some(base), Some(columns), Some(queries), Some(truth)] =
        names.map(|n| shared_data(n).map(|p| shown(&p)))
    else {
        return;
    };
    let s = Scratch::new();
    let set = ["truth", &base, "--columns", &columns, "--query-columns", &queries];
    let run = |more: &[&str]| s.annvil(&[&set[..], more].concat());
    let all = run(&["--check", &truth, "--sample", "60", "--json"]);
    let values: Value = serde_json::from_str(&all.out).expect("JSON");
    assert_eq!((all.code, values.as_array().map(Vec::len)), (Some(0), Some(8)), "{}", all.out);
    assert!(values.as_array().expect("cases").iter().all(|v| v["identical"] == 60), "{values}");
    says(&run(&["--check", &truth, "--case", "other_section", "--sample", "20"]), 0, &["section = {other}"]);
    says(&run(&["--check", &truth, "--case", "nothing"]), 2, &["cat10_num10"]);
    // Far and other values can be asked for; the file beside a truth says its filter.
    says(&run(&["--filter", "section = {far}", "--k", "10", "--out", "far.ibin"]), 0, &["1000 queries"]);
    says(&run(&["--check", "far.ibin", "--sample", "50"]), 0, &["far.ibin.json says", "truth is right"]);
    let other = run(&["--check", "far.ibin", "--filter", "section = {q}", "--sample", "50"]);
    says(&other, 4, &["do not pass the filter", "another filter"]);
    says(&run(&["--filter", "section = {nothing}"]), 2, &["{far}", "installed_kib"]);
    says(&run(&["--filter", "cat10 = {cat100}", "--k", "5"]), 0, &["rows qualify"]);
}
