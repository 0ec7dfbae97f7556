//! `annvil compare` and running a result again, on the real binary (cases 21, 51, 69 and 105).

mod support;

use serde_json::Value;
use support::{Done, Scratch, fake_run};

/// A run of the fake engine that must end well. What `more` says goes before what the harness says.
fn run(s: &Scratch, engine: &str, out: &str, more: &[&str]) {
    let mut words = fake_run(engine, out, &[]);
    for option in more.iter().filter(|word| word.starts_with("--")) {
        if let Some(at) = words.iter().position(|word| word == option) {
            words.drain(at..at + 2);
        }
    }
    words.extend_from_slice(more);
    // On a busy machine no point is to be marked as limited by the client.
    words.extend(["--max-client-share", "1"]);
    s.ok(&words);
}

/// Compares two runs as JSON, with the exit code expected.
fn compared(s: &Scratch, args: &[&str], code: i32) -> Value {
    let mut words = vec!["compare"];
    words.extend_from_slice(args);
    words.push("--json");
    let done = s.annvil(&words);
    assert_eq!(done.code, Some(code), "{words:?}\n{}\n{}", done.out, done.err);
    serde_json::from_str(&done.out).unwrap_or_else(|e| panic!("{words:?}: {e}: {}", done.out))
}

/// A refusal: exit code 2, one line on standard error with all of `parts`.
fn refused(s: &Scratch, args: &[&str], parts: &[&str]) -> Done {
    let done = s.annvil(args);
    assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{args:?}\n{}", done.err);
    assert!(done.err.starts_with("error: ") && done.err.lines().count() == 1, "{}", done.err);
    for part in parts {
        assert!(done.err.contains(part), "{part:?} is not in: {}", done.err);
    }
    done
}

/// The figure `name` of every search pair.
fn figures<'a>(comparison: &'a Value, name: &str) -> Vec<&'a Value> {
    let pairs = comparison["pairs"].as_array().expect("pairs");
    let figures = pairs.iter().flat_map(|p| p["figures"].as_array().expect("figures"));
    figures.filter(|f| f["name"] == name).collect()
}

#[test]
fn a_slower_engine_is_worse_and_a_faster_one_is_not() {
    let s = Scratch::new();
    run(&s, "fake:service_ms=2", "a", &["--effort", "10"]);
    run(&s, "fake:service_ms=6", "b", &["--effort", "10"]);
    let worse = compared(&s, &["a", "b"], 3);
    assert_eq!(worse["outcome"], "moved");
    assert_eq!(worse["changes"][0]["kind"], "throughput");
    assert_eq!(worse["changes"][0]["worse"], true);
    let throughput = figures(&worse, "throughput")[0];
    assert_eq!(throughput["verdict"], "smaller", "{throughput}");
    assert!(throughput["change"].as_f64().expect("a change") < -0.4, "{throughput}");
    // What the engine was told is named with both values.
    let differences = worse["differences"].as_array().expect("differences");
    assert!(
        differences
            .iter()
            .any(|d| d["item"] == "definition options.service_ms" && d["subject"] == "engine fake"),
        "{differences:?}"
    );
    let better = compared(&s, &["b", "a"], 0);
    assert_eq!((&better["outcome"], &better["changes"][0]["worse"]), (&"moved".into(), &false.into()));
    // The same as text: readable in 100 columns, the outcome last, the reason on standard error.
    let done = s.annvil(&["compare", "a", "b"]);
    assert_eq!(done.code, Some(3), "{}", done.err);
    for part in ["ef_search=10", "smaller", "Worse in B", "Result: MOVED", "Tolerance: ", "service_ms"] {
        assert!(done.out.contains(part), "{part:?} is not in\n{}", done.out);
    }
    assert!(done.out.lines().all(|l| l.chars().count() <= 100), "{}", done.out);
    assert!(done.err.starts_with("error: worse in B: "), "{}", done.err);
    // Only a change as large as asked for counts.
    let lax = compared(&s, &["a", "b", "--least-effect", "0.95"], 0);
    assert_eq!(figures(&lax, "throughput")[0]["because"], "below_least_effect");
    assert!(lax["tolerance"].as_str().is_some_and(|t| t.contains("95.0 %")), "{}", lax["tolerance"]);
}

/// cases.md 51: five repeats with jitter; differences within the spread are not differences.
#[test]
fn case_51_all_repeats_are_kept_and_differences_within_the_spread_are_no_differences() {
    let s = Scratch::new();
    for (out, seed) in
        [("a", "fake:service_ms=2,jitter_ms=0.2,seed=1"), ("b", "fake:service_ms=2,jitter_ms=0.2,seed=2")]
    {
        run(&s, seed, out, &["--effort", "10", "--repeats", "5"]);
        let point = &s.sweep(out)[0];
        let repeats: Vec<f64> =
            serde_json::from_value(point["throughput_repeats"].clone()).expect("all five repeats");
        assert_eq!(repeats.len(), 5);
        let mut sorted = repeats.clone();
        sorted.sort_by(f64::total_cmp);
        assert_eq!(point["throughput"], sorted[2], "the median");
        let spread = point["throughput_spread"].as_f64().expect("a spread");
        assert!((spread - (sorted[4] - sorted[0]) / sorted[2]).abs() < 1e-9);
    }
    // On a busy machine two such runs may differ by more than their spread: what holds always is
    // that the verdict follows from the ranges.
    let done = s.annvil(&["compare", "a", "b", "--json", "--least-effect", "0"]);
    let comparison: Value = serde_json::from_str(&done.out).expect("JSON");
    let figure = figures(&comparison, "throughput")[0];
    let range = |run: &str| {
        let repeats: Vec<f64> =
            serde_json::from_value(s.sweep(run)[0]["throughput_repeats"].clone()).expect("repeats");
        (repeats.iter().copied().fold(f64::MAX, f64::min), repeats.iter().copied().fold(0.0, f64::max))
    };
    let ((low_a, high_a), (low_b, high_b)) = (range("a"), range("b"));
    if low_a <= high_b && low_b <= high_a {
        assert_eq!(
            (&figure["verdict"], &figure["because"]),
            (&"not_distinguishable".into(), &"ranges_overlap".into())
        );
        assert_eq!(done.code, Some(0));
    } else {
        assert_ne!(figure["verdict"], "not_distinguishable");
    }
    // Beside itself a run is always within its spread.
    let own = s.ok(&["compare", "a", "a"]);
    assert!(own.out.contains("not") && own.out.contains("distinguishable"), "{}", own.out);
}

#[test]
fn lower_recall_is_worse_even_where_it_is_faster() {
    let s = Scratch::new();
    let options = "fake:service_ms=1,effort_recall=true,effort_half=";
    run(&s, &format!("{options}2"), "a", &["--effort", "10"]);
    run(&s, &format!("{options}10"), "b", &["--effort", "10"]);
    let worse = compared(&s, &["a", "b", "--least-effect", "1"], 3);
    assert_eq!(figures(&worse, "recall")[0]["verdict"], "smaller");
    assert_eq!(
        (&worse["changes"][0]["kind"], &worse["changes"][0]["worse"]),
        (&"recall".into(), &true.into())
    );
    let better = compared(&s, &["b", "a", "--least-effect", "1"], 0);
    assert_eq!(better["changes"][0]["worse"], false);
}

/// cases.md 21: results on other data are never put side by side.
#[test]
fn case_21_results_on_other_data_are_refused_with_the_part_that_differs() {
    let s = Scratch::new();
    run(&s, "fake", "a", &["--effort", "10"]);
    run(&s, "fake", "fewer", &["--effort", "10", "--limit", "200"]);
    let hash = |run: &str| s.manifest(run)["datasets"][0]["base_hash"].as_str().expect("a hash").to_owned();
    let (a, fewer) = (hash("a"), hash("fewer"));
    assert_ne!(a, fewer);
    refused(&s, &["compare", "a", "fewer"], &["base", &a, &fewer, "300 x", "200 x", "builtin"]);
    // The same rows by another metric have another truth.
    run(&s, "fake", "l2", &["--effort", "10", "--metric", "l2"]);
    refused(&s, &["compare", "a", "l2"], &["metric", "cosine", "l2", "truth"]);
    // Figures made by other rules.
    let path = s.path().join("a/records.jsonl");
    let text = std::fs::read_to_string(&path).expect("records");
    run(&s, "fake", "rules", &["--effort", "10"]);
    let other = text.replace("\"measurement_version\":1", "\"measurement_version\":9");
    std::fs::write(s.path().join("rules/records.jsonl"), other).expect("written");
    refused(&s, &["compare", "a", "rules"], &["measurement version", "1 in A", "9 in B"]);
    refused(&s, &["compare", "a", "nowhere"], &["nowhere", "manifest.json"]);
    assert_eq!(s.annvil(&["compare", "a"]).code, Some(2));
    assert_eq!(s.annvil(&["compare", "a", "a", "--least-effect", "-1"]).code, Some(2));
}

#[test]
fn failed_and_missing_points_are_worse_and_never_compared() {
    let s = Scratch::new();
    run(&s, "fake:service_ms=1", "a", &["--effort", "10,20"]);
    run(&s, "fake:service_ms=1", "less", &["--effort", "10"]);
    let less = compared(&s, &["a", "less", "--least-effect", "1"], 3);
    assert_eq!((&less["outcome"], &less["only_a"][0]["effort"]), (&"not_confirmed".into(), &20.into()));
    let more = compared(&s, &["less", "a", "--least-effect", "1"], 0);
    assert_eq!((&more["outcome"], &more["only_b"][0]["effort"]), (&"reproduced".into(), &20.into()));
    // Above 1 % errors a point is not valid.
    let done = s.annvil(&fake_run(
        "fake:service_ms=1,fail_share=0.5",
        "failing",
        &["--effort", "10,20", "--max-client-share", "1"],
    ));
    assert_eq!(done.code, Some(4), "{}", done.err);
    let failing = compared(&s, &["a", "failing"], 3);
    let pairs = failing["pairs"].as_array().expect("pairs");
    let search: Vec<&Value> = pairs.iter().filter(|p| p["place"]["phase"] == "sweep").collect();
    assert_eq!(search.len(), 2);
    for pair in search {
        assert!(pair["incomparable"].as_str().is_some_and(|why| why.contains("not valid in B")), "{pair}");
        assert_eq!(pair["figures"].as_array().map(Vec::len), Some(0));
    }
}

/// cases.md 69 and 105: a result is run again from itself, and compare says what came of it.
#[test]
fn case_69_and_105_a_result_is_run_again_from_itself_and_compared() {
    let s = Scratch::new();
    // Every knob below is one that the plan does not have of its own.
    run(&s, "fake:service_ms=2", "a", &["--effort", "10,20", "--k", "5", "--seed", "7", "--param", "m=24"]);
    let rerun = s.ok(&["run", "--plan", "a", "--out", "b", "--no-report"]);
    assert!(rerun.out.contains("VALID"), "{}", rerun.out);
    assert_eq!(s.manifest("a")["plan"], s.manifest("b")["plan"], "the same plan");
    let places = |run: &str| -> Vec<[Value; 5]> {
        let fields = ["engine", "build", "effort", "k", "key"];
        s.sweep(run).iter().map(|p| fields.map(|f| p[f].clone())).collect()
    };
    assert_eq!(places("a"), places("b"), "the same points, with the same keys");
    let done = s.annvil(&["compare", "a", "b", "--least-effect", "1", "--json"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let comparison: Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(comparison["outcome"], "reproduced", "{comparison}");
    assert_eq!(comparison["differences"], Value::Array(vec![]), "nothing else differs");
    assert_eq!(figures(&comparison, "throughput").len(), 2);
    for figure in figures(&comparison, "recall") {
        assert_eq!(figure["verdict"], "not_distinguishable");
    }
    let text = s.annvil(&["compare", "a", "b", "--least-effect", "1"]).out;
    assert!(text.contains("REPRODUCED") && text.contains("Tolerance: "), "{text}");
    // Options go over the plan of a run as over any other; what is no run is refused.
    s.ok(&["run", "--plan", "a", "--effort", "40", "--out", "c", "--no-report"]);
    assert_eq!(s.sweep("c").iter().map(|p| p["effort"].clone()).collect::<Vec<_>>(), [40]);
    std::fs::create_dir(s.path().join("empty")).expect("a folder");
    refused(&s, &["run", "--plan", "empty"], &["empty", "manifest.json"]);
}
