//! The cases of filters (77 to 83) through the real binary: 200 rows with columns of every type.

#[path = "support/cases.rs"]
mod cases;
mod support;

use cases::{fake, fbin, has_flag, json, nearest, numbers, refused, run_words, text};
use serde_json::{Value, json};
use support::{Scratch, fixture, workspace};

/// Options that open the set made by [`made`].
const OPEN: [&str; 8] =
    ["--dataset", "base.fbin", "--queries", "queries.fbin", "--metric", "l2", "--columns", "columns.csv"];

/// Whether a row passes a filter.
type Passes = fn(usize) -> bool;

/// Base, queries and columns in a scratch folder: `n` is the row number, and a column of each type.
fn made(s: &Scratch) -> (Vec<f32>, Vec<f32>) {
    let (base, queries) = (numbers(200 * 8, 1), numbers(5 * 8, 2));
    fbin(&s.path().join("base.fbin"), &base, 8);
    fbin(&s.path().join("queries.fbin"), &queries, 8);
    let mut csv = String::from("n,word,score,even\n");
    for n in 0..200 {
        csv.push_str(&format!("{n},w{},{},{}\n", n % 7, f64::from(n) * 0.5 + 0.25, n % 2 == 0));
    }
    s.write("columns.csv", &csv);
    (base, queries)
}

/// Runs the fake under a filter: exit code and the point under the filter.
fn filtered(s: &Scratch, options: &str, filter: &str) -> (Option<i32>, Value) {
    let (done, points) = fake(s, options, &[&OPEN[..], &["--filter", filter]].concat());
    let point = points.into_iter().find(|p| p["filter"].is_string());
    (done.code, point.unwrap_or_else(|| panic!("no point under {filter}: {}", done.err)))
}

#[test]
fn case_77_fewer_than_k_matches_or_none() {
    let s = Scratch::new();
    made(&s);
    let (code, two) = filtered(&s, "", "n < 2");
    assert_eq!((code, &two["recall"], &two["mean_length"]), (Some(0), &json!(1.0), &json!(2.0)), "{two}");
    assert_eq!((&two["short_share"], &two["filter_violations"]), (&json!(0.0), &json!(0)), "{two}");
    let (code, ten) = filtered(&s, "ignore_filter=true", "n < 2");
    assert_eq!(
        (code, &ten["status"], &ten["code"]),
        (Some(4), &json!("invalid"), &json!("filter_violations"))
    );
    assert!(ten["filter_violations"].as_u64().is_some_and(|n| n > 0), "{ten}");
    let (code, none) = filtered(&s, "", "n < 0");
    assert_eq!((code, none.get("recall"), &none["recall_excluded"]), (Some(0), None, &json!(5)), "{none}");
    let (code, any) = filtered(&s, "ignore_filter=true", "n < 0");
    assert_eq!((code, &any["status"]), (Some(4), &json!("invalid")), "any row is a violation: {any}");
}

#[test]
fn case_78_filtering_afterwards_shows_as_short_answers() {
    let Some(path) = fixture("F00_good.hdf5") else { return };
    let s = Scratch::new();
    made(&s);
    let path = text(&path);
    let set = ["--dataset", &path, "--columns", "columns.csv"];
    let (done, points) = fake(&s, "post_filter=true", &[&set[..], &["--filter", "n < 20"]].concat());
    let point = points.iter().find(|p| p["filter"] == "n < 20").expect("a point under the filter");
    assert_eq!(point["mean_length"], 1.4, "{point}");
    assert_eq!(point["short_share"], 1.0, "{point}");
    assert!(has_flag(point, "short_answers") && !has_flag(point, "chance_level"), "{point}");
    assert!(done.out.contains("1.4"), "the mean length is shown: {}", done.out);
    // How the engine filters is in the definition that the run keeps.
    let mode = &s.manifest("r")["engines"]["fake"]["definition"]["capabilities"]["filter_mode"];
    assert_eq!(mode, "before");
}

#[test]
fn case_79_selectivity_is_counted_not_taken_from_a_name() {
    let s = Scratch::new();
    made(&s);
    s.write(
        "filtered.toml",
        "name = 'filtered'\ndatasets = ['base.fbin']\nmetric = 'l2'\nrepeats = 2\nwarmup = 5\nmin_window = '1ms'\n\
         [source]\nqueries = 'queries.fbin'\ncolumns = 'columns.csv'\n\
         [[filter]]\nname = 'half of them, says the name'\nwhere = 'n < 2'\n\
         [[engine]]\nname = 'flat'\n",
    );
    let done = s.ok(&["run", "--plan", "filtered.toml", "--out", "r", "--no-report"]);
    let points = s.sweep("r");
    let point = points.iter().find(|p| p["filter"].is_string()).expect("a point under the filter");
    assert_eq!((&point["matching_rows"], &point["rows"]), (&json!(2.0), &json!(200)), "{point}");
    assert!(done.out.contains("2 of 200"), "{}", done.out);
    let told = json(&s.ok(&[&["truth", "base.fbin", "--filter", "n < 2", "--json"], &OPEN[2..]].concat()));
    assert_eq!(told[0]["mean_matching"], 2.0, "{told}");
}

#[test]
fn case_80_every_kind_of_filter_against_exact_answers() {
    let s = Scratch::new();
    let (base, queries) = made(&s);
    let all: [(&str, Passes); 9] = [
        ("n = 17", |n| n == 17),
        ("score = 8.75", |n| n == 17),
        ("word = 'w3'", |n| n % 7 == 3),
        ("even = true", |n| n % 2 == 0),
        ("n IN (3, 5, 199)", |n| [3, 5, 199].contains(&n)),
        ("n >= 50 AND n < 120", |n| (50..120).contains(&n)),
        ("score > 90", |n| n as f64 * 0.5 + 0.25 > 90.0),
        ("word = 'w1' OR n < 4", |n| n % 7 == 1 || n < 4),
        ("even = false AND (word IN ('w2', 'w5') OR score < 3)", |n| {
            n % 2 == 1 && (n % 7 == 2 || n % 7 == 5 || (n as f64) * 0.5 + 0.25 < 3.0)
        }),
    ];
    let mut words = run_words("flat", "r", &OPEN);
    words.extend(["--engine", "usearch", "--engine", "fake", "--effort", "200"]);
    all.iter().for_each(|(filter, _)| words.extend(["--filter", filter]));
    let done = s.annvil(&words);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    let points = s.sweep("r");
    assert_eq!(points.len(), 3 * (all.len() + 1));
    for point in &points {
        assert_eq!(point["filter_violations"], 0, "{point}");
        assert!(point["recall"].as_f64().is_some_and(|r| r >= 0.9), "{point}");
        assert!(point["engine"] == "usearch" || point["recall"] == 1.0, "{point}");
    }
    // The truth is that of a plain loop over the rows that pass.
    for (filter, passes) in all {
        s.ok(&[&["truth", "base.fbin", "--k", "10", "--filter", filter, "--out", "t.json"], &OPEN[2..]]
            .concat());
        let written = std::fs::read_to_string(s.path().join("t.json")).expect("the truth");
        let written: Value = serde_json::from_str(&written).expect("JSON");
        let kept: Vec<u32> = (0..200).filter(|n| passes(*n as usize)).collect();
        let part: Vec<f32> = kept.iter().flat_map(|&n| base[n as usize * 8..][..8].iter().copied()).collect();
        for (query, list) in nearest(&part, &queries, 8, 10).iter().enumerate() {
            let rows: Vec<u32> = list.iter().map(|&at| kept[at as usize]).collect();
            assert_eq!(written["lists"][query]["rows"], json!(rows), "{filter}, query {query}");
            assert_eq!(written["lists"][query]["matching"], kept.len(), "{filter}");
        }
    }
}

#[test]
fn case_80_what_does_not_fit_is_refused_before_anything_starts() {
    let s = Scratch::new();
    made(&s);
    for (filter, parts) in [
        ("word = 3", ["word", "text"]),
        ("n = 'w3'", ["\"n\"", "int"]),
        ("n >= true", ["\"n\"", "int"]),
        ("nope = 3", ["nope", "word"]),
        ("n <", ["n <", "value"]),
    ] {
        let words = run_words("fake", "r", &[&OPEN[..], &["--filter", filter]].concat());
        refused(&s, &words, &parts);
    }
    let text = std::fs::read_to_string(workspace().join("engines/fake.toml")).expect("the fake's definition");
    let few = text.lines().map(|l| if l.starts_with("filters = ") { "filters = ['eq_int']" } else { l });
    let few: Vec<&str> = few.collect();
    s.write("plain.toml", &few.join("\n").replace("name = \"fake\"", "name = \"plain\""));
    let words = run_words("plain.toml", "r", &[&OPEN[..], &["--filter", "n < 20"]].concat());
    refused(&s, &words, &["plain", "range", "n < 20"]);
    let words = run_words("plain.toml", "r", &[&OPEN[..], &["--filter", "n = 20"]].concat());
    s.ok(&[&words[..], &["--effort", "10"]].concat());
}

#[test]
fn case_82_every_row_is_held_against_the_filter() {
    let s = Scratch::new();
    let (base, queries) = made(&s);
    // A filter that the nearest neighbours pass but for one row: recall is high, and still wrong.
    let nearest = nearest(&base, &queries, 8, 10);
    let out = nearest[0][9];
    let filter = format!("n < {out} OR n > {out}");
    let (code, point) = filtered(&s, "ignore_filter=true", &filter);
    assert!(point["recall"].as_f64().is_some_and(|r| r > 0.9), "{point}");
    assert!(point["filter_violations"].as_u64().is_some_and(|n| n > 0), "{point}");
    assert_eq!((code, &point["status"]), (Some(4), &json!("invalid")), "{point}");
}

#[test]
fn case_83_short_answers_have_a_column() {
    let s = Scratch::new();
    made(&s);
    let (_, point) = filtered(&s, "reply=top1", "n < 100");
    assert_eq!((&point["short_share"], &point["mean_length"]), (&json!(1.0), &json!(1.0)), "{point}");
    s.ok(&["report", "r", "--quiet"]);
    let points = std::fs::read_to_string(s.path().join("r/tables/points.csv")).expect("the table");
    let head: Vec<&str> = points.lines().next().expect("a head").split(',').collect();
    assert!(head.contains(&"short_share") && head.contains(&"empty_answers"), "{head:?}");
}
