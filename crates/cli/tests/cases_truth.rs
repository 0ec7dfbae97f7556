//! The cases of ground truth and recall (18 to 43) through the real binary, on the fixtures and on
//! sets made here.

#[path = "support/cases.rs"]
mod cases;
mod support;

use cases::{
    control, described, fake, fbin, findings, generated, has_flag, ibin, json, nearest, numbers, run_refused,
    text, validated,
};
use dataset::{OpenOptions, open};
use serde_json::{Value, json};
use std::path::Path;
use support::{Scratch, fixture};
use types::{Neighbour, Truth};

/// The message of `validate`'s finding on the truth.
fn truth_finding(report: &Value) -> String {
    let found = report["findings"].as_array().expect("findings").iter().find(|f| f["code"] == "truth");
    found.and_then(|f| f["message"].as_str()).unwrap_or_default().to_owned()
}

/// Writes a data set again with another truth.
fn with_truth(from: &Path, to: &Path, change: impl Fn(usize, &[Neighbour]) -> Vec<Neighbour>) {
    let mut set = open(from, &OpenOptions::default()).expect("a good fixture");
    let old = set.truth.take().expect("it has a truth");
    let mut truth = Truth::new(old.depth());
    for query in 0..old.queries() {
        truth.push(change(query, old.of(query)), old.matching(query));
    }
    set.truth = Some(truth);
    dataset::write::hdf5(&set, to).expect("a scratch file");
}

#[test]
fn case_18_truth_of_the_full_set_used_with_a_part() {
    let Some(path) = fixture("F25_base_cut.hdf5") else { return };
    let s = Scratch::new();
    run_refused(&s, &path, &[], &["198", "100 rows", "annvil truth"]);
    // Another part, whose true rows all have numbers that fit: the sample shows it.
    let (base, queries) = (numbers(200 * 8, 1), numbers(5 * 8, 2));
    fbin(&s.path().join("part.fbin"), &base[100 * 8..], 8);
    fbin(&s.path().join("queries.fbin"), &queries, 8);
    ibin(&s.path().join("truth.ibin"), &nearest(&base[..100 * 8], &queries, 8, 20));
    let more = ["--metric", "l2", "--queries", "queries.fbin", "--truth", "truth.ibin"];
    run_refused(&s, &s.path().join("part.fbin"), &more, &["truth", "agreement", "annvil truth"]);
}

#[test]
fn case_19_stale_truth_is_refused_with_the_agreement_found() {
    let Some(path) = fixture("F24_stale_truth.hdf5") else { return };
    let s = Scratch::new();
    let (code, report) = validated(&s, &path, &[]);
    assert_eq!((code, &report["valid"]), (Some(2), &json!(false)));
    assert!(truth_finding(&report).contains("0.06"), "{report}");
    run_refused(&s, &path, &[], &["agreement 0.06", "annvil truth"]);
}

#[test]
fn case_20_which_metric_the_truth_was_made_with() {
    let Some(path) = fixture("F23_truth_by_wrong_metric.hdf5") else { return };
    let s = Scratch::new();
    let (code, report) = validated(&s, &path, &[]);
    assert_eq!(code, Some(2));
    let message = truth_finding(&report);
    assert!(message.contains("made with l2, not with cosine"), "{message}");
    run_refused(&s, &path, &[], &["l2", "cosine", "--metric l2"]);
    control(&s, &path, &["--metric", "l2"]);
    let hashes = described(&s, &path, &[])["hashes"].clone();

    // What the tool writes says what it is of.
    let path = text(&path);
    s.ok(&["dataset", "convert", &path, "--metric", "l2", "--limit", "150", "--k", "7", "--out", "d"]);
    let text = std::fs::read_to_string(s.path().join("d/dataset.toml")).expect("the directory's manifest");
    let manifest: toml::Value = toml::from_str(&text).expect("TOML");
    let truth = &manifest["truth"];
    assert_eq!((truth["metric"].as_str(), truth["k"].as_integer()), (Some("l2"), Some(7)), "{text}");
    assert!(truth["method"].as_str().is_some_and(|m| m.contains("exact")), "{text}");
    assert!(truth["tool"].as_str().is_some_and(|m| m.starts_with("annvil ")), "{text}");
    assert_eq!(truth["base"], manifest["hashes"]["base"]);
    assert_eq!(truth["queries"], manifest["hashes"]["queries"]);
    for (out, beside) in [("t.json", "t.json"), ("t.ibin", "t.ibin.json"), ("t.hdf5", "t.hdf5.json")] {
        s.ok(&["truth", &path, "--metric", "l2", "--k", "7", "--out", out]);
        let said = std::fs::read_to_string(s.path().join(beside)).expect("what the truth is of");
        let said: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!((&said["metric"], &said["k"]), (&json!("l2"), &json!(7)), "{said}");
        assert_eq!(said["base_hash"], hashes["base"]);
        assert_eq!(said["queries_hash"], hashes["queries"]);
        assert!(said["tool"].as_str().is_some_and(|m| m.starts_with("annvil ")), "{said}");
        assert!(said["method"].as_str().is_some_and(|m| m.contains("exact")), "{said}");
    }
}

#[test]
fn case_21_records_hold_the_hashes_of_what_was_measured() {
    let s = Scratch::new();
    let (mut base, queries) = (numbers(200 * 8, 1), numbers(5 * 8, 2));
    fbin(&s.path().join("queries.fbin"), &queries, 8);
    let mut seen = Vec::new();
    for _ in 0..2 {
        fbin(&s.path().join("base.fbin"), &base, 8);
        let point =
            control(&s, &s.path().join("base.fbin"), &["--metric", "l2", "--queries", "queries.fbin"]);
        let set = s.manifest("r")["datasets"][0].clone();
        assert_eq!(point["dataset_hash"], set["base_hash"]);
        assert_eq!(point["truth_hash"], set["truth_hash"]);
        assert!(set["queries_hash"].is_string() && set["truth_hash"].is_string(), "{set}");
        // Of one vector that nobody has among the nearest.
        seen.push((set, point["key"].clone()));
        let far: f32 = 50.0;
        base[0] = far;
    }
    assert_ne!(seen[0].0["base_hash"], seen[1].0["base_hash"]);
    assert_eq!(seen[0].0["queries_hash"], seen[1].0["queries_hash"]);
    assert_ne!(seen[0].1, seen[1].1, "another base, another point");
}

#[test]
fn case_23_truth_is_not_reused_because_the_row_count_fits() {
    let s = Scratch::new();
    let (mut base, queries) = (numbers(200 * 8, 1), numbers(5 * 8, 2));
    fbin(&s.path().join("queries.fbin"), &queries, 8);
    let path = s.path().join("base.fbin");
    let more = ["--metric", "l2", "--queries", "queries.fbin"];
    let origin = |s: &Scratch| s.manifest("r")["datasets"][0]["truth"].clone();
    fbin(&path, &base, 8);
    control(&s, &path, &more);
    assert_eq!(origin(&s), "computed");
    control(&s, &path, &more);
    assert_eq!(origin(&s), "cached");
    base[17] += 0.25;
    fbin(&path, &base, 8);
    control(&s, &path, &more);
    assert_eq!(origin(&s), "computed", "the base is another by one value");
    // A dataset directory whose base was changed under its truth.
    s.ok(&[&["dataset", "convert", "base.fbin", "--out", "d", "--k", "20"][..], &more].concat());
    std::fs::remove_dir_all(s.path().join("r")).expect("the run");
    let file = s.path().join("d/base.fbin");
    let mut bytes = std::fs::read(&file).expect("the base");
    bytes[1000] ^= 0x01;
    std::fs::write(&file, bytes).expect("the base");
    run_refused(&s, &s.path().join("d"), &[], &["base.fbin"]);
}

#[test]
fn case_23_stale_truth_by_force_is_not_valid() {
    let Some(path) = fixture("F24_stale_truth.hdf5") else { return };
    let s = Scratch::new();
    for engine in ["flat", "fake", "usearch"] {
        let path = text(&path);
        let done = s.annvil(&cases::run_words(engine, engine, &["--dataset", &path, "--force"]));
        assert_eq!(done.code, Some(4), "{}{}", done.out, done.err);
        assert!(done.err.contains("not valid"), "{}", done.err);
        for point in s.sweep(engine) {
            assert_eq!(point["status"], "invalid", "{point}");
            assert!(has_flag(&point, "chance_level"), "{point}");
            assert!(point["id_overlap"].as_f64().is_some_and(|o| o < 0.2), "{point}");
        }
        let manifest = s.manifest(engine);
        assert_eq!(manifest["verdict"]["valid"], false);
        assert!(manifest["datasets"][0]["forced"][0].as_str().is_some_and(|t| t.contains("0.06")));
    }
}

#[test]
fn case_24_repeated_ids_are_counted() {
    let (Some(path), Some(queries)) = (fixture("F28_repeated_ids.parquet"), fixture("F15_test.parquet"))
    else {
        return;
    };
    let s = Scratch::new();
    let queries = text(&queries);
    let more = ["--metric", "l2", "--queries", &queries];
    let (code, report) = validated(&s, &path, &more);
    assert_eq!(code, Some(2));
    assert!(report.to_string().contains("200 rows, 20 distinct ids"), "{report}");
    run_refused(&s, &path, &more, &["200 rows, 20 distinct ids"]);
}

#[test]
fn case_25_truth_for_no_query_or_for_some() {
    let s = Scratch::new();
    let (base, queries) = (numbers(200 * 8, 1), numbers(5 * 8, 2));
    fbin(&s.path().join("base.fbin"), &base, 8);
    fbin(&s.path().join("queries.fbin"), &queries, 8);
    let truth = nearest(&base, &queries, 8, 20);
    for (name, lists, coverage) in
        [("none.ibin", &truth[..0], ["0 x 10", "no data"]), ("three.ibin", &truth[..3], ["3", "5 queries"])]
    {
        ibin(&s.path().join(name), lists);
        let more = ["--metric", "l2", "--queries", "queries.fbin", "--truth", name];
        run_refused(&s, &s.path().join("base.fbin"), &more, &coverage);
    }
}

#[test]
fn case_33_explain_adds_up_to_the_mean() {
    let Some(path) = fixture("F00_good.hdf5") else { return };
    let s = Scratch::new();
    let path = text(&path);
    let (done, points) = fake(&s, "effort_recall=true", &["--dataset", &path, "--effort", "10,20"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    for point in points {
        let effort = format!("fake:{}", point["effort"]);
        let mut recalls = Vec::new();
        for query in 0..5 {
            let told = json(&s.ok(&["explain", "r", &effort, "--query", &query.to_string(), "--json"]));
            let e = &told["explanation"];
            let (threshold, slack) =
                (e["threshold"].as_f64().expect("one"), e["tolerance"].as_f64().expect("one"));
            let near = |row: &&Value| row["distance"].as_f64().is_some_and(|d| d <= threshold + slack);
            let returned = e["returned"].as_array().expect("rows");
            let hits = returned.iter().filter(near).count();
            assert_eq!(json!(hits), e["score"]["hits"], "{e}");
            assert_eq!(e["truth"].as_array().map(Vec::len), Some(10), "{e}");
            recalls.push(hits as f64 / 10.0);
        }
        let mean = recalls.iter().sum::<f64>() / 5.0;
        let reported = point["recall"].as_f64().expect("a recall");
        assert!((mean - reported).abs() < 1e-12 && reported < 1.0, "{mean} {reported}");
    }
    let shown = s.ok(&["explain", "r", "fake:10", "--query", "2"]).out;
    for word in ["RETURNED", "TRUE ROW", "DISTANCE", "threshold", "recall"] {
        assert!(shown.contains(word), "{shown}");
    }
    let done = s.annvil(&["explain", "r", "fake:10", "--query", "5"]);
    assert!(done.code == Some(2) && done.err.contains("0 to 4"), "{}", done.err);
}

#[test]
fn case_36_truth_wider_than_k_does_not_dilute() {
    let Some(path) = fixture("F04_wide_gt.hdf5") else { return };
    let s = Scratch::new();
    assert_eq!(described(&s, &path, &[])["truth"]["depth"], 150);
    for k in ["1", "10", "150"] {
        let point = control(&s, &path, &["--k", k]);
        assert_eq!(point["id_overlap"], 1.0, "{point}");
    }
}

#[test]
fn case_40_ids_that_are_not_row_numbers() {
    let (Some(gaps), Some(queries), Some(truth), Some(texts)) = (
        fixture("F15_ids_from_1000.parquet"),
        fixture("F15_test.parquet"),
        fixture("F15_neighbors.parquet"),
        fixture("F16_string_ids.parquet"),
    ) else {
        return;
    };
    let s = Scratch::new();
    let (queries, truth) = (text(&queries), text(&truth));
    let more = ["--metric", "l2", "--queries", &queries, "--truth", &truth];
    control(&s, &gaps, &more);
    assert_eq!(s.manifest("r")["datasets"][0]["truth"], "file, 5 queries checked");
    // Ids are the set's own where people see them.
    let shown = s.ok(&["explain", "r", "flat"]).out;
    let first: i64 = shown
        .lines()
        .nth(2)
        .and_then(|l| l.split_whitespace().nth(1))
        .expect("a row")
        .parse()
        .expect("an id");
    assert!(first >= 1000 && (first - 1000) % 7 == 0, "{shown}");
    control(&s, &texts, &more[..4]);
    // An id that is no row of ours is counted, and the figures are not valid.
    let gaps = text(&gaps);
    let (done, points) = fake(&s, "reply=foreign", &[&["--dataset", &gaps], &more[..]].concat());
    assert_eq!(done.code, Some(4), "{}", done.err);
    assert!(points[0]["unknown_ids"].as_u64().is_some_and(|n| n > 0) && has_flag(&points[0], "unknown_ids"));
    assert!(done.err.contains("no row that was loaded"), "{}", done.err);
}

#[test]
fn case_42_the_scale_of_stored_distances_does_not_matter() {
    let Some(path) = fixture("F01a_bytes_attr.hdf5") else { return };
    let s = Scratch::new();
    let scaled = |to: &str, scale: fn(f64) -> f64| {
        let to = s.path().join(to);
        with_truth(&path, &to, |_, list| {
            list.iter().map(|n| Neighbour { row: n.row, distance: scale(n.distance) }).collect()
        });
        to
    };
    let mut same = Vec::new();
    for set in [
        scaled("one-minus-cos.hdf5", |d| d),
        scaled("euclidean-of-unit.hdf5", |d| (2.0 * d).sqrt()),
        scaled("similarity.hdf5", |d| 1.0 - d),
        scaled("nothing.hdf5", |_| 0.0),
    ] {
        same.push(control(&s, &set, &[])["truth_hash"].clone());
    }
    assert!(same.windows(2).all(|pair| pair[0] == pair[1]), "{same:?}");
    for metric in ["cosine", "l2", "ip"] {
        let made = generated(&s, metric, 300, 20, metric);
        control(&s, &made, &[]);
    }
}

#[test]
fn case_43_zero_vectors_under_cosine() {
    let Some(path) = fixture("F20_zero_vectors.hdf5") else { return };
    let s = Scratch::new();
    let (code, report) = validated(&s, &path, &[]);
    assert_eq!(code, Some(0), "{report}");
    let all = report.to_string();
    assert!(all.contains("10 in all") && all.contains("query row 2 is all zero"), "{report}");
    let point = control(&s, &path, &[]);
    assert_eq!((&point["recall_excluded"], &point["recall_queries"]), (&json!(1), &json!(4)), "{point}");
    let written = std::fs::read_to_string(s.path().join("r/records.jsonl")).expect("records");
    assert!(!written.contains("NaN") && !written.contains("nan"), "{written}");
    s.ok(&["explain", "r", "flat", "--query", "2"]);
    // An engine that refuses them: why, and how to leave them out.
    let path = text(&path);
    let (done, _) = fake(&s, "refuse_zero_vectors=true", &["--dataset", &path]);
    assert_eq!(done.code, Some(4), "{}", done.err);
    assert!(done.err.contains("zero vector") && done.err.contains("--drop-bad-rows"), "{}", done.err);
    assert!(findings(&s, "r").contains("zero vector"));
    let (done, points) = fake(&s, "refuse_zero_vectors=true", &["--dataset", &path, "--drop-bad-rows"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!((&points[0]["rows"], &points[0]["queries"]), (&json!(190), &json!(4)));
    assert_eq!(points[0]["recall"], 1.0);
}
