//! The development data beside the project: truth that another tool computed in float64.

#[path = "support/cases.rs"]
mod cases;
mod support;

use cases::{json, run_words, text};
use serde_json::Value;
use support::{Scratch, shared_data};

/// Compares our neighbours with those of the data: all that are not the same must be ties.
fn compared(s: &Scratch, words: &[&str], lists: u64) -> Value {
    let done = s.annvil(&[words, &["--k", "100", "--compare", "--json"]].concat());
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    let all = json(&done);
    for value in all.as_array().expect("one for each truth") {
        let compare = &value["compare"];
        assert_eq!(compare["different"], 0, "{value}");
        let of = |name: &str| compare[name].as_u64().unwrap_or(0);
        assert_eq!(of("same") + of("tied"), of("all"), "{value}");
        assert!(lists == 0 || of("all") == lists * 100, "{value}");
        assert!(of("tied") * 20 <= of("all"), "ties are few: {value}");
    }
    all
}

#[test]
fn debian_50k_every_neighbour_is_reproduced_and_the_control_is_1() {
    let Some(path) = shared_data("debian-50k-384-angular.hdf5") else { return };
    let s = Scratch::new();
    let path = text(&path);
    compared(&s, &["truth", &path], 1000);
    s.ok(&run_words("flat", "r", &["--dataset", &path, "--repeats", "1"]));
    let point = s.sweep("r").remove(0);
    assert_eq!((&point["recall"], &point["recall_min"]), (&1.0.into(), &1.0.into()), "{point}");
    let set = s.manifest("r")["datasets"][0].clone();
    assert!(set["truth"].as_str().is_some_and(|t| t.starts_with("file, ")), "{set}");
}

#[test]
fn glove_200k_every_neighbour_is_reproduced() {
    let Some(path) = shared_data("glove-200k-50-angular.hdf5") else { return };
    let s = Scratch::new();
    compared(&s, &["truth", &text(&path)], 1000);
}

#[test]
fn debian_50k_every_filtered_neighbour_is_reproduced() {
    let (Some(path), Some(columns), Some(query_columns), Some(truth), Some(filters)) = (
        shared_data("debian-50k-384-angular.hdf5"),
        shared_data("debian-50k-columns.parquet"),
        shared_data("debian-50k-query-columns.parquet"),
        shared_data("debian-50k-filtered-truth.parquet"),
        shared_data("debian-50k-filters.json"),
    ) else {
        return;
    };
    let s = Scratch::new();
    let filters: Value =
        serde_json::from_str(&std::fs::read_to_string(filters).expect("the filters")).expect("JSON");
    let [path, columns, query_columns, truth] = [path, columns, query_columns, truth].map(|p| text(&p));
    let mut words =
        vec!["truth", &path, "--columns", &columns, "--query-columns", &query_columns, "--truth", &truth];
    for filter in filters.as_object().expect("by name").values() {
        words.extend(["--filter", filter.as_str().expect("a filter")]);
    }
    let all = compared(&s, &words, 0);
    assert_eq!(all.as_array().map(Vec::len), Some(8));
}
