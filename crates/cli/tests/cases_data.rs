//! The cases of data formats (1 to 16) through the real binary, on the fixtures.

#[path = "support/cases.rs"]
mod cases;
mod support;

use cases::{
    control, described, fbin, ibin, json, nearest, npy, numbers, refused, run_refused, run_words, text,
    validated,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use support::{Scratch, fixture, workspace};

/// Base and queries of the small sets made here.
fn small() -> (Vec<f32>, Vec<f32>) {
    (numbers(200 * 8, 1), numbers(5 * 8, 2))
}

/// A fixture and the file of queries that fits it.
fn with_queries(name: &str) -> Option<(PathBuf, String)> {
    Some((fixture(name)?, text(&fixture("F15_test.parquet")?)))
}

#[test]
fn case_1_int8_vectors_are_read_as_they_are_and_do_not_wrap() {
    let Some(path) = fixture("F07a_int8.hdf5") else { return };
    let s = Scratch::new();
    let d = described(&s, &path, &[]);
    assert_eq!((&d["element"], &d["rows"], &d["dim"]), (&json!("i8"), &json!(200), &json!(8)));
    control(&s, &path, &[]);
    // Our own truth, of a wider type, is the one that numpy computed in float64.
    let compared = json(&s.ok(&["truth", &text(&path), "--k", "20", "--compare", "--json"]));
    assert_eq!(compared[0]["compare"]["same"], 100, "{compared}");
    let page = std::fs::read_to_string(workspace().join("docs/add-a-dataset-format.md"))
        .expect("the page of layouts");
    for word in ["train", "test", "neighbors", "distance", "int8"] {
        assert!(page.contains(word), "docs/add-a-dataset-format.md does not say {word}");
    }
}

#[test]
fn case_2_csv_and_npy_become_a_dataset_directory_by_one_command() {
    let s = Scratch::new();
    let (base, queries) = small();
    let mut csv = String::from("a,b,c,d,e,f,g,h\n");
    for row in base.chunks(8) {
        csv.push_str(&row.iter().map(f32::to_string).collect::<Vec<_>>().join(","));
        csv.push('\n');
    }
    s.write("base.csv", &csv);
    npy(&s.path().join("base.npy"), &base, 8);
    npy(&s.path().join("queries.npy"), &queries, 8);
    let mut hashes = Vec::new();
    for (from, out) in [("base.csv", "from-csv"), ("base.npy", "from-npy")] {
        s.ok(&[
            "dataset",
            "convert",
            from,
            "--queries",
            "queries.npy",
            "--metric",
            "l2",
            "--k",
            "20",
            "--out",
            out,
        ]);
        let (code, report) = validated(&s, &s.path().join(out), &[]);
        assert_eq!((code, &report["valid"]), (Some(0), &json!(true)), "{report}");
        control(&s, &s.path().join(out), &[]);
        let d = described(&s, &s.path().join(out), &[]);
        assert_eq!((&d["rows"], &d["dim"], &d["truth"]["depth"]), (&json!(200), &json!(8), &json!(20)));
        hashes.push(d["hashes"].clone());
    }
    assert_eq!(hashes[0], hashes[1], "the same numbers give the same hashes");
    // Every other format that can be written comes back the same.
    for (format, out) in [("hdf5", "out.hdf5"), ("fbin", "out-fbin"), ("parquet", "out-parquet")] {
        s.ok(&["dataset", "convert", "from-csv", "--format", format, "--out", out]);
    }
    let metric: &[&str] = &["--metric", "l2"];
    let fbin: &[&str] =
        &["--metric", "l2", "--queries", "out-fbin/queries.fbin", "--truth", "out-fbin/truth.ibin"];
    for (path, more) in [("out.hdf5", &[][..]), ("out-fbin/base.fbin", fbin), ("out-parquet", metric)] {
        let d = described(&s, &s.path().join(path), more);
        assert_eq!(d["hashes"]["base"], hashes[0]["base"], "{path}");
        assert_eq!(d["hashes"]["truth"], hashes[0]["truth"], "{path}");
    }
}

#[test]
fn case_3_a_missing_metric_is_named_before_anything_starts() {
    let (Some(none), Some(odd)) = (fixture("F01b_no_attr.hdf5"), fixture("F01c_odd_attr.hdf5")) else {
        return;
    };
    let s = Scratch::new();
    let words = ["distance", "--metric", "l2", "cosine", "angular", "hamming"];
    run_refused(&s, &none, &[], &words);
    refused(&s, &["truth", &text(&none)], &words);
    let (code, report) = validated(&s, &none, &[]);
    assert_eq!(code, Some(2));
    assert!(report.to_string().contains("--metric"), "{report}");
    control(&s, &none, &["--metric", "l2"]);
    assert_eq!(control(&s, &odd, &[])["metric"], "cosine");
}

#[test]
fn case_4_a_bytes_attribute_is_text() {
    let Some(path) = fixture("F01a_bytes_attr.hdf5") else { return };
    let s = Scratch::new();
    assert_eq!(control(&s, &path, &[])["metric"], "cosine");
    let path = text(&path);
    for args in [
        vec!["dataset", "describe", &path],
        vec!["dataset", "validate", &path],
        vec!["truth", &path, "--compare", "--k", "20"],
    ] {
        let done = s.ok(&args);
        assert!(!done.out.contains("b'") && !done.err.contains("b'"), "{}{}", done.out, done.err);
    }
}

#[test]
fn case_5_sets_of_unequal_size_are_refused_in_a_line() {
    let Some(path) = fixture("F26_ragged_sets.hdf5") else { return };
    let s = Scratch::new();
    run_refused(&s, &path, &[], &["jaccard", "ragged"]);
    refused(&s, &["dataset", "describe", &text(&path)], &["jaccard", "ragged"]);
}

#[test]
fn case_6_a_header_that_does_not_fit_the_body() {
    let (Some(big), Some(trailing)) = (fixture("F10a_header_too_big.fbin"), fixture("F10b_trailing.fbin"))
    else {
        return;
    };
    let s = Scratch::new();
    run_refused(&s, &big, &["--metric", "l2"], &["6408", "1928", "--limit 60"]);
    run_refused(&s, &trailing, &["--metric", "l2"], &["6408", "6411"]);
    run_refused(&s, &big, &["--metric", "l2", "--limit", "61"], &["1928"]);
    // Said explicitly, the rows that are there may be used.
    fbin(&s.path().join("q.fbin"), &numbers(5 * 8, 2), 8);
    let point = control(&s, &big, &["--metric", "l2", "--limit", "60", "--queries", "q.fbin"]);
    assert_eq!(point["rows"], 60);
}

#[test]
fn case_7_fvecs_under_an_fbin_name_and_the_reverse() {
    let Some(path) = fixture("F11_fvecs_named.fbin") else { return };
    let s = Scratch::new();
    run_refused(&s, &path, &["--metric", "l2"], &["header", "fvecs", "dim 8"]);
    fbin(&s.path().join("a.fvecs"), &small().0, 8);
    run_refused(&s, &s.path().join("a.fvecs"), &["--metric", "l2"], &["fits fbin", "200 x 8"]);
}

#[test]
fn case_8_damaged_fvecs_name_the_record() {
    let (Some(cut), Some(ragged)) = (fixture("F08_truncated.fvecs"), fixture("F09_ragged.fvecs")) else {
        return;
    };
    let s = Scratch::new();
    for (path, parts) in [(&cut, ["record 99", "26 bytes"]), (&ragged, ["record 50", "dimension 7"])] {
        let done = run_refused(&s, path, &["--metric", "l2", "--k", "5"], &parts);
        assert!(!done.err.contains("metric") && !done.err.contains("k ="), "{}", done.err);
    }
}

#[test]
fn case_10_an_unknown_ending_is_refused_with_the_known_ones() {
    let s = Scratch::new();
    let path = s.path().join("data.fbn");
    fbin(&path, &small().0, 8);
    run_refused(
        &s,
        &path,
        &["--metric", "l2"],
        &["\"fbn\"", "fbin", "fvecs", "hdf5", "npy", "parquet", "csv"],
    );
}

#[test]
fn case_11_a_run_opens_the_file_that_the_manifest_lists() {
    let Some(path) = fixture("F00_good.hdf5") else { return };
    let s = Scratch::new();
    s.ok(&["dataset", "convert", &text(&path), "--limit", "60", "--k", "20", "--out", "sixty"]);
    let point = control(&s, &s.path().join("sixty"), &[]);
    assert_eq!(point["rows"], 60);
    std::fs::remove_dir_all(s.path().join("r")).expect("the run");
    std::fs::remove_file(s.path().join("sixty/base.fbin")).expect("the base");
    run_refused(&s, &s.path().join("sixty"), &[], &["base.fbin", "annvil dataset convert"]);
}

#[test]
fn case_13_parquet_in_parts_with_any_letters() {
    let Some((path, queries)) = with_queries("F17_Upper_Dir") else { return };
    let Some(whole) = fixture("F00_good.hdf5") else { return };
    let s = Scratch::new();
    let more = ["--metric", "l2", "--queries", &queries];
    let whole = described(&s, &whole, &[]);
    for path in [path.clone(), path.join("train-*.parquet"), path.join("train-0?-of-02.parquet")] {
        let d = described(&s, &path, &more);
        assert_eq!(d["rows"], 200, "{d}");
        assert_eq!(d["hashes"]["base"], whole["hashes"]["base"], "all rows, in order: {}", path.display());
    }
    control(&s, &path, &more);
    run_refused_after(&s, &path.join("TRAIN-*.parquet"), &more);
}

/// A glob that finds nothing is refused by name.
fn run_refused_after(s: &Scratch, path: &std::path::Path, more: &[&str]) {
    std::fs::remove_dir_all(s.path().join("r")).expect("the run");
    run_refused(s, path, more, &["TRAIN-*.parquet"]);
}

#[test]
fn case_14_without_truth_it_is_offered_and_recall_is_not_a_number() {
    let s = Scratch::new();
    let (base, queries) = small();
    fbin(&s.path().join("base.fbin"), &base, 8);
    fbin(&s.path().join("queries.fbin"), &queries, 8);
    let from = ["dataset", "convert", "base.fbin", "--queries", "queries.fbin", "--metric", "l2", "--k", "0"];
    s.ok(&[&from[..], &["--format", "parquet", "--out", "My Dir"]].concat());
    assert!(!s.path().join("My Dir/neighbors.parquet").exists());
    let run = ["run", "-d", "My Dir", "--metric", "l2", "--engine", "flat", "--min-window", "1ms"];
    let computed = s.ok(&[&run[..], &["--out", "r1"]].concat());
    assert!(computed.err.contains("no truth") && computed.err.contains("--no-recall"), "{}", computed.err);
    assert_eq!(s.sweep("r1")[0]["recall"], 1.0);
    let without = s.ok(&[&run[..], &["--out", "r2", "--no-recall"]].concat());
    let point = s.sweep("r2").remove(0);
    assert_eq!(point.get("recall"), None, "{point}");
    assert!(cases::has_flag(&point, "no_recall"), "{point}");
    assert!(!without.out.contains("1.0000") && !without.out.contains("0.0000"), "{}", without.out);
    let csv = std::fs::read_dir(s.path().join("r2/tables")).expect("tables").flatten();
    assert!(csv.count() > 0, "the report page and its tables are written without recall too");
}

#[test]
fn case_15_doubles_text_ids_and_broken_rows() {
    let Some((doubles, queries)) = with_queries("F14_list_float64.parquet") else { return };
    let (Some(texts), Some(broken)) = (fixture("F16_string_ids.parquet"), fixture("F18_ragged_null.parquet"))
    else {
        return;
    };
    let s = Scratch::new();
    let more = ["--metric", "l2", "--queries", &queries];
    let described = s.ok(&[&["dataset", "describe", &text(&doubles)], &more[..]].concat());
    assert_eq!(described.err.matches("float64").count(), 1, "{}", described.err);
    assert!(described.out.contains("200 x 8 f32"), "{}", described.out);
    control(&s, &doubles, &more);
    control(&s, &texts, &more);
    let shown = s.ok(&["explain", "r", "flat", "--query", "0"]);
    assert!(shown.out.contains("doc-0"), "the set's own ids are shown: {}", shown.out);
    control(&s, &texts, &[&more[..], &["--id-column", "id", "--vector-column", "emb"]].concat());
    std::fs::remove_dir_all(s.path().join("r")).expect("the run");
    run_refused(&s, &broken, &more, &["13 (7 values)", "14 (null)"]);
    run_refused(&s, &texts, &[&more[..], &["--vector-column", "vec"]].concat(), &["\"vec\"", "emb"]);
}

#[test]
fn case_16_nan_and_infinity_are_named_by_row() {
    let Some(path) = fixture("F21_nan_inf.hdf5") else { return };
    let s = Scratch::new();
    let (code, report) = validated(&s, &path, &[]);
    assert_eq!((code, &report["valid"]), (Some(2), &json!(false)));
    let rows = |code: &str| {
        let found: Vec<&Value> = report["findings"].as_array().expect("findings").iter().collect();
        found.iter().find(|f| f["code"] == code).map(|f| f["rows"].clone())
    };
    assert_eq!(rows("non_finite_base"), Some(json!([7])), "{report}");
    assert_eq!(rows("non_finite_query"), Some(json!([2])), "{report}");
    run_refused(&s, &path, &[], &["row 7", "--drop-bad-rows"]);
    let point = control(&s, &path, &["--drop-bad-rows"]);
    assert_eq!((&point["rows"], &point["queries"]), (&json!(199), &json!(4)));
    assert_ne!(s.manifest("r")["datasets"][0]["truth"], json!("file, 4 queries checked"));
}

#[test]
fn every_good_fixture_gives_the_control_recall_1() {
    for name in [
        "F00_good.hdf5",
        "F02_float64.hdf5",
        "F03_narrow_gt.hdf5",
        "F04_wide_gt.hdf5",
        "F05_no_distances.hdf5",
        "F07b_bits.hdf5",
        "F19_duplicates.hdf5",
    ] {
        let Some(path) = fixture(name) else { return };
        let s = Scratch::new();
        control(&s, &path, &[]);
        let (code, report) = validated(&s, &path, &[]);
        assert_eq!(code, Some(0), "{report}");
        s.ok(&["dataset", "convert", &text(&path), "--out", "d"]);
        control(&s, &s.path().join("d"), &[]);
    }
}

#[test]
fn a_hand_made_truth_is_believed_when_it_is_right() {
    let s = Scratch::new();
    let (base, queries) = small();
    fbin(&s.path().join("base.fbin"), &base, 8);
    fbin(&s.path().join("queries.fbin"), &queries, 8);
    ibin(&s.path().join("truth.ibin"), &nearest(&base, &queries, 8, 20));
    let more = ["--metric", "l2", "--queries", "queries.fbin", "--truth", "truth.ibin"];
    control(&s, &s.path().join("base.fbin"), &more);
    assert_eq!(s.manifest("r")["datasets"][0]["truth"], "file, 5 queries checked");
    // The same words in a line of a run that is refused make nothing.
    let mut args = run_words("flat", "other", &["--dataset", "base.fbin", "--k", "300"]);
    args.extend(more);
    let done = s.annvil(&args);
    assert!(done.code == Some(0) || done.code == Some(2), "{}", done.err);
}
