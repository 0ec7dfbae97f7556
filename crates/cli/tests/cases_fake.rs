//! The cases of answers, timing and limits that need an engine with a fault: M2 to M9 and M11 of
//! the scripted fake, through the real binary. Times have wide margins: the machine may be busy.

#[path = "support/cases.rs"]
mod cases;
mod support;

use cases::{fake, findings, generated, has_flag, json, run_words, text};
use serde_json::{Value, json};
use std::time::Duration;
use support::Scratch;

/// A number of a point.
fn number(point: &Value, name: &str) -> f64 {
    point[name].as_f64().unwrap_or_else(|| panic!("no {name} in {point}"))
}

/// The words that run on the first 300 rows of the built-in set with its 500 queries.
const BUILTIN: [&str; 2] = ["--limit", "300"];

/// The load, build and sweep points of run `r`, by phase.
fn phase(s: &Scratch, phase: &str) -> Value {
    s.points("r").into_iter().find(|p| p["phase"] == phase).unwrap_or_else(|| panic!("no {phase} point"))
}

#[test]
fn case_34_the_nearest_ten_times() {
    let s = Scratch::new();
    let (done, points) = fake(&s, "reply=nearest_repeated", &BUILTIN);
    let point = &points[0];
    assert!((number(point, "recall") - 0.1).abs() < 1e-9, "{point}");
    assert_eq!(number(point, "duplicate_ids"), 9.0 * number(point, "sent"), "{point}");
    assert!(has_flag(point, "duplicates"), "{point}");
    assert!(done.out.contains("more than once"), "{}", done.out);
}

#[test]
fn case_35_a_short_list_is_not_full() {
    let s = Scratch::new();
    let (done, points) = fake(&s, "reply=top1", &BUILTIN);
    let point = &points[0];
    assert!((number(point, "recall") - 0.1).abs() < 1e-9, "{point}");
    assert_eq!((number(point, "short_share"), number(point, "mean_length")), (1.0, 1.0), "{point}");
    assert!(has_flag(point, "short_answers"), "{point}");
    assert!(done.out.contains("fewer rows"), "{}", done.out);
}

#[test]
fn case_38_recall_never_above_one() {
    let s = Scratch::new();
    let (done, points) = fake(&s, "reply=two_more", &BUILTIN);
    let point = &points[0];
    assert_eq!((number(point, "recall"), number(point, "recall_min")), (1.0, 1.0), "{point}");
    assert_eq!(number(point, "excess_rows"), 2.0 * number(point, "sent"), "{point}");
    assert!(has_flag(point, "excess_rows"), "{point}");
    assert!(done.out.contains("more than k"), "{}", done.out);
}

#[test]
fn case_39_ids_of_another_type_and_recall_of_nothing() {
    let s = Scratch::new();
    for id_type in ["int", "float", "text", "bytes"] {
        let (done, points) = fake(&s, &format!("id_type={id_type}"), &BUILTIN);
        assert_eq!(done.code, Some(0), "{id_type}: {}", done.err);
        assert_eq!(points[0]["recall"], 1.0, "{id_type}");
    }
    let (done, points) = fake(&s, "id_type=bytes_text", &BUILTIN);
    assert_eq!(done.code, Some(4), "{}", done.err);
    assert_eq!(points[0]["status"], "invalid");
    assert!(done.err.contains("no row number") && done.err.contains("b'"), "{}", done.err);
    // Wrong rows throughout: not a number in a table, but a verdict.
    let (done, points) = fake(&s, "answers=arbitrary", &["--limit", "2000"]);
    assert_eq!(done.code, Some(4), "{}", done.err);
    assert!(number(&points[0], "recall") < 0.02 && has_flag(&points[0], "chance_level"), "{}", points[0]);
    assert!(done.out.contains("NOT VALID") && done.err.contains("random"), "{}{}", done.out, done.err);
    // Rows in the wrong order are seen too.
    let (_, points) = fake(&s, "reply=reversed", &BUILTIN);
    assert_eq!(number(&points[0], "unordered_answers"), number(&points[0], "sent"));
    assert!(has_flag(&points[0], "wrong_order"));
}

#[test]
fn case_45_percentiles_are_of_single_queries() {
    let s = Scratch::new();
    let set = text(&generated(&s, "g", 200, 50, "l2"));
    let options = "answers=prepared,service_ms=0.5,slow_every=50,slow_ms=50";
    let (_, points) = fake(&s, options, &["--dataset", &set, "--repeats", "20"]);
    let point = &points[0];
    let ms = |name: &str| number(point, name) / 1e6;
    assert_eq!(number(point, "sent"), 1000.0);
    assert!(ms("latency_p50_ns") >= 0.5 && ms("latency_p50_ns") < 25.0, "{point}");
    assert!(ms("latency_p99_ns") >= 50.0, "{point}");
    assert!(ms("latency_mean_ns") >= 1.4 && ms("latency_max_ns") >= ms("latency_p99_ns"), "{point}");
    assert_eq!(point.get("latency_p999_ns"), None, "1,000 samples have no 99.9th percentile");
}

#[test]
fn case_48_warm_up_is_counted_and_not_counted_in() {
    let s = Scratch::new();
    let set = text(&generated(&s, "g", 200, 50, "l2"));
    let more = |warmup: &'static str| ["--dataset", &set, "--warmup", warmup].map(str::to_owned);
    let run = |warmup: &'static str| {
        let more = more(warmup);
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        fake(&s, "answers=prepared,slow_first=3,slow_ms=300", &more).1.remove(0)
    };
    let (cold, warm) = (run("0"), run("3"));
    assert!(number(&cold, "latency_max_ns") >= 300e6, "{cold}");
    assert_eq!(cold["warmup_queries"], 0);
    assert!(number(&warm, "latency_max_ns") < 300e6, "{warm}");
    assert_eq!(warm["warmup_queries"], 3);
    assert!(number(&warm, "first_query_ns") >= 300e6, "the very first is kept apart: {warm}");
    assert_eq!(s.manifest("r")["plan"]["warmup"], 3);
}

#[test]
fn case_51_every_repeat_is_kept_and_the_median_quoted() {
    let s = Scratch::new();
    let set = text(&generated(&s, "g", 200, 50, "l2"));
    let options = "answers=prepared,service_ms=1,jitter_ms=0.2";
    let (done, points) = fake(&s, options, &["--dataset", &set, "--repeats", "5"]);
    let point = &points[0];
    let mut repeats: Vec<f64> =
        point["throughput_repeats"].as_array().expect("repeats").iter().filter_map(Value::as_f64).collect();
    assert_eq!(repeats.len(), 5, "{point}");
    repeats.sort_by(f64::total_cmp);
    assert!((number(point, "throughput") - repeats[2]).abs() < 1e-9, "{point}");
    let spread = (repeats[4] - repeats[0]) / repeats[2];
    assert!((number(point, "throughput_spread") - spread).abs() < 1e-9, "{point}");
    assert!(done.out.contains("spread") && done.out.contains(" to "), "{}", done.out);
}

#[test]
fn case_52_build_time_ends_when_the_index_is_ready() {
    let s = Scratch::new();
    let (_, points) = fake(&s, "ready_after_s=0.8", &BUILTIN);
    let built = phase(&s, "build");
    assert!(number(&built, "build_seconds") < 0.4, "the call returned at once: {built}");
    assert!(number(&built, "ready_seconds") >= 0.8, "{built}");
    assert!(number(&built, "queryable_seconds") >= 0.8, "{built}");
    assert_eq!(points[0]["recall"], 1.0);
    // A wait that passes its limit is a failure, not a fast build.
    let (done, points) = fake(&s, "ready_after_s=30", &["--limit", "300", "--ready-timeout", "200ms"]);
    assert_eq!(done.code, Some(4), "{}", done.err);
    let built = phase(&s, "build");
    assert_eq!((&built["status"], built.get("build_seconds")), (&json!("failed"), None), "{built}");
    assert!(built["reason"].as_str().is_some_and(|r| r.contains("--ready-timeout")), "{built}");
    assert_eq!(points[0]["status"], "failed", "{}", points[0]);
    assert_eq!(points[0].get("throughput"), None);
}

#[test]
fn case_54_an_index_with_a_part_of_the_rows_is_marked() {
    let s = Scratch::new();
    let (done, points) = fake(&s, "indexed_share=0.6", &BUILTIN);
    assert_eq!(phase(&s, "build")["indexed_rows"], 180);
    assert!(has_flag(&points[0], "index_incomplete"), "{}", points[0]);
    assert!(done.out.contains("Not every row was in the index"), "{}", done.out);
}

#[test]
fn case_55_failures_are_no_throughput() {
    let s = Scratch::new();
    let (done, points) = fake(&s, "fail_share=1", &BUILTIN);
    assert_eq!(done.code, Some(4), "{}", done.err);
    assert_eq!((number(&points[0], "throughput"), number(&points[0], "answered")), (0.0, 0.0));
    assert_eq!(points[0].get("latency_p50_ns"), None, "no answer has no latency");
    assert!(done.err.contains("100.0 %") && done.err.contains("--max-errors"), "{}", done.err);

    let (done, points) = fake(&s, "fail_share=0.05", &BUILTIN);
    assert_eq!((done.code, &points[0]["code"]), (Some(4), &json!("errors")), "{}", done.err);
    let (done, points) = fake(&s, "fail_share=0.05", &["--limit", "300", "--max-errors", "0.06"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let point = &points[0];
    assert!(has_flag(point, "errors"), "{point}");
    assert_eq!(number(point, "sent") - number(point, "answered"), 50.0, "{point}");
    assert_eq!(point["errors"]["refused"], 50, "{point}");
    let windows: f64 =
        point["window_seconds"].as_array().expect("windows").iter().filter_map(Value::as_f64).sum();
    let sent_rate = number(point, "sent") / windows;
    assert!(number(point, "throughput") < sent_rate * 0.99 * 1.5, "{point}");
    assert!(number(point, "recall") < 1.0, "an unanswered query has recall 0: {point}");
}

#[test]
fn case_56_throughput_grows_with_the_clients_or_the_client_is_named() {
    let s = Scratch::new();
    let set = text(&generated(&s, "g", 200, 64, "l2"));
    let more = ["--dataset", &set, "--clients", "1,8,64", "--min-window", "400ms", "--warmup", "64"];
    let (done, points) =
        fake(&s, "answers=prepared,service_ms=10", &[&more[..], &["--repeats", "1"]].concat());
    assert_eq!(points.len(), 3, "{}", done.err);
    for point in &points {
        let clients = number(point, "clients");
        let (rate, most) = (number(point, "throughput"), 100.0 * clients);
        assert!(rate <= most * 1.001, "more than can be: {point}");
        assert!(rate >= 0.95 * most || has_flag(point, "client_limited"), "{point}");
        // Throughput x mean latency is what was in service: no more than there were clients.
        assert!(number(point, "in_service") <= clients * 1.001, "{point}");
        let window = point["window_seconds"][0].as_f64().expect("a window");
        assert!((rate - number(point, "answered") / window).abs() < rate * 1e-6, "{point}");
    }
}

#[test]
fn case_58_the_clients_own_load_is_in_the_result() {
    let s = Scratch::new();
    let (_, points) = fake(&s, "", &BUILTIN);
    for name in ["client_share", "in_service", "process_cpu_share", "process_memory_peak_bytes"] {
        assert!(number(&points[0], name) > 0.0, "{name}: {}", points[0]);
    }
    assert!(number(&points[0], "process_open_files_peak") >= 3.0, "{}", points[0]);
    // One search at a time for eight clients: seven wait, and the figure says so.
    let set = text(&generated(&s, "g", 200, 50, "l2"));
    let more = ["--dataset", &set, "--clients", "8", "--max-client-share", "0"];
    let (done, points) = fake(&s, "answers=prepared,service_ms=1", &more);
    assert!(has_flag(&points[0], "client_limited"), "{}", points[0]);
    assert!(done.out.contains("The client, not the engine, was the limit"), "{}", done.out);
}

#[test]
fn case_88_a_point_that_ran_out_of_memory_is_listed_not_missing() {
    let s = Scratch::new();
    let engine = "fake:max_rows=200";
    let done = s.annvil(&run_words(engine, "r", &["--limit", "300", "--effort", "10,20,40"]));
    assert_eq!(done.code, Some(4), "{}", done.err);
    let points = s.sweep("r");
    assert_eq!(points.len(), 3, "every point of the plan has a record");
    for point in points {
        assert_eq!(point["status"], "failed", "{point}");
        assert!(
            point["reason"].as_str().is_some_and(|r| r.contains("out of memory above 200 rows")),
            "{point}"
        );
        assert_eq!(point.get("throughput"), None, "nothing is zero that was not measured");
    }
    assert!(done.out.contains("out of memory above 200"), "{}", done.out);
}

#[test]
fn case_89_every_limit_is_an_option_and_its_error_names_it() {
    let s = Scratch::new();
    let help = s.ok(&["run", "--help"]).out;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for (option, default) in [
        ("--load-timeout", "1day"),
        ("--build-timeout", "1day"),
        ("--ready-timeout", "4h"),
        ("--query-timeout", "1m"),
        ("--point-timeout", "1h"),
        ("--max-errors", "0.01"),
    ] {
        let (_, after) = help.split_once(option).unwrap_or_else(|| panic!("{option} is not in the help"));
        let own = after.split(" --").next().unwrap_or_default();
        assert!(own.contains(&format!("[default: {default}]")), "{option}: {own}");
    }
    let set = text(&generated(&s, "g", 200, 50, "l2"));
    for (options, option, limit) in [
        ("build_s=5", "--build-timeout", "200ms"),
        ("build_hangs=true", "--build-timeout", "200ms"),
        ("ready_after_s=30", "--ready-timeout", "200ms"),
        ("hang_at_search=20", "--query-timeout", "300ms"),
        ("answers=prepared,service_ms=10", "--point-timeout", "300ms"),
    ] {
        let started = std::time::Instant::now();
        let (done, points) = fake(&s, options, &["--dataset", &set, option, limit]);
        assert_eq!(done.code, Some(4), "{options}: {}", done.err);
        assert!(done.err.contains(option) && done.err.contains(limit), "{options}: {}", done.err);
        assert_eq!(points[0]["status"], "failed", "{options}");
        assert!(started.elapsed() < Duration::from_secs(20), "{options}");
    }
    let (done, points) = fake(&s, "build_s=0.3", &["--dataset", &set, "--build-timeout", "60s"]);
    assert_eq!((done.code, &points[0]["status"]), (Some(0), &json!("valid")), "{}", done.err);
}

#[test]
fn case_90_a_failure_is_not_stored_as_zeros() {
    let s = Scratch::new();
    let (done, points) = fake(&s, "build_fails=true", &BUILTIN);
    assert_eq!(done.code, Some(4), "{}", done.err);
    assert_eq!(phase(&s, "load")["status"], "valid", "the finished phase is kept");
    let built = phase(&s, "build");
    assert_eq!(built["status"], "failed", "{built}");
    for name in ["build_seconds", "ready_seconds", "index_bytes"] {
        assert_eq!(built.get(name), None, "{name}: {built}");
    }
    for name in ["throughput", "recall", "latency_p50_ns", "sent"] {
        assert_eq!(points[0].get(name), None, "{name}: {}", points[0]);
    }
    assert!(!done.out.contains("0.00 queries"), "{}", done.out);
    assert!(findings(&s, "r").contains("fails as scripted"));
}

#[test]
fn case_101_rows_are_counted_after_the_load() {
    let s = Scratch::new();
    let set = text(&generated(&s, "g", 200, 50, "l2"));
    for (options, said) in
        [("keep_nothing=true", "0 of 200 rows"), ("lose_last_batch=true", "190 of 200 rows")]
    {
        let (done, points) = fake(&s, options, &["--dataset", &set, "--batch", "10"]);
        assert_eq!(done.code, Some(4), "{}", done.err);
        assert!(done.err.contains(said), "{}", done.err);
        assert_eq!(phase(&s, "load")["code"], "row_count");
        assert_eq!(points[0].get("throughput"), None, "nothing is searched: {}", points[0]);
    }
    let (_, _) = fake(&s, "", &["--dataset", &set]);
    let manifest = s.manifest("r");
    let engine = &manifest["engines"]["fake"];
    assert!(engine["version"].is_string() && engine["client"].is_string(), "{engine}");
}

#[test]
fn case_118_one_line_for_each_way_not_to_get_in() {
    let s = Scratch::new();
    let mut said = Vec::new();
    for options in ["unreachable=true", "denied=true"] {
        let (done, points) = fake(&s, options, &BUILTIN);
        assert_eq!((done.code, done.out.as_str()), (Some(5), ""), "{}", done.err);
        let lines: Vec<&str> = done.err.lines().collect();
        assert_eq!(lines.len(), 1, "{}", done.err);
        said.push(lines[0].to_owned());
        assert!(points.is_empty(), "nothing was measured: {points:?}");
    }
    assert!(said[0].contains("connection refused") && said[1].contains("password"), "{said:?}");
    // Another engine of the same run is measured all the same.
    let done = s.annvil(&run_words("fake:unreachable=true", "two", &["--engine", "flat", "--limit", "300"]));
    assert_eq!(done.code, Some(5), "{}", done.err);
    assert!(s.sweep("two").iter().any(|p| p["engine"] == "flat" && p["recall"] == 1.0));
    let listed = json(&s.ok(&["engine", "list", "--json"]));
    assert!(listed.as_array().is_some_and(|l| l.len() >= 3), "{listed}");
}
