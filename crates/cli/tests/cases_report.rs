//! The cases of plans, engine configuration, results and secrets (66 to 73, 92, 102 to 115) through
//! the real binary.

#[path = "support/cases.rs"]
mod cases;
mod support;

use cases::{fake, generated, has_flag, json, refused, run_words, text};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::Path};
use support::{Scratch, workspace};

/// All files below a folder with their contents as text.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = fs::read(&path).expect("a file");
            found.push((text(&path), String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    found
}

/// The fields of a line of CSV.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().expect("a field").push(c),
        }
    }
    fields
}

/// A column of a CSV table.
fn column(table: &str, name: &str) -> Vec<String> {
    let mut lines = table.lines().map(fields);
    let head = lines.next().expect("a head");
    let at = head.iter().position(|h| h == name).unwrap_or_else(|| panic!("no {name} in {head:?}"));
    lines.map(|line| line[at].clone()).collect()
}

#[test]
fn case_66_unequal_parameters_are_shown_side_by_side_before_anything_starts() {
    let s = Scratch::new();
    s.write(
        "two.toml",
        "name = 'two'\ndatasets = ['builtin']\nlimit = 300\n\
         [[engine]]\nname = 'usearch'\nefforts = [10]\n[[engine.build]]\nparams = { m = 16, ef_construction = 100 }\n\
         [[engine]]\nname = 'fake'\nefforts = [10]\n[[engine.build]]\nparams = { m = 8, ef_construction = 100 }\n",
    );
    let shown = s.ok(&["run", "--plan", "two.toml", "--dry-run", "--out", "r"]);
    let (_, unequal) =
        shown.out.split_once("Not equal between engines").expect("the table of unequal parameters");
    let line = |engine: &str| unequal.lines().find(|l| l.contains(engine)).unwrap_or_default().to_owned();
    assert!(line("usearch").contains("16") && line("fake").contains('8'), "{}", shown.out);
    assert!(!unequal.contains("ef_construction "), "equal ones are not listed: {}", shown.out);
    let told = json(&s.ok(&["run", "--plan", "two.toml", "--dry-run", "--json"]));
    assert_eq!(told["unequal_parameters"][0]["name"], "m", "{told}");
    assert_eq!(told["unequal_parameters"].as_array().map(Vec::len), Some(1), "{told}");
    assert!(!s.path().join("r").exists() && !s.path().join("runs").exists(), "a dry run makes nothing");
}

#[test]
fn case_65_66_an_index_that_is_not_the_one_asked_for_is_not_valid() {
    let s = Scratch::new();
    for (options, said) in [
        ("read_back_kind=flat", "asked for an index of kind hnsw, the engine has flat"),
        ("read_back_kind=none", "the engine has none"),
        ("read_back={m=8}", "asked for m=16, the engine has m=8"),
    ] {
        let (done, points) = fake(&s, options, &["--limit", "300"]);
        assert_eq!(done.code, Some(4), "{}", done.err);
        assert!(done.err.contains(said), "{options}: {}", done.err);
        assert_eq!(points[0]["status"], "failed", "{}", points[0]);
        assert_eq!(points[0].get("throughput"), None);
    }
    // Read back and right: kind and parameters stand in the result.
    let (done, _) = fake(&s, "", &["--limit", "300", "--param", "m=12"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let built = s.points("r").into_iter().find(|p| p["phase"] == "build").expect("a build");
    assert_eq!(
        (&built["index_kind_read"], &built["params_read"]["m"]),
        (&json!("hnsw"), &json!(12)),
        "{built}"
    );
    // An index that is there but not used is an exact scan.
    let (_, points) = fake(&s, "explain=scan", &["--limit", "300"]);
    assert!(has_flag(&points[0], "exact_scan"), "{}", points[0]);
    assert_eq!(points[0]["query_plan"], "Fake Sequential Scan");
}

#[test]
fn case_68_efforts_by_clients_and_throughput_at_equal_recall() {
    let s = Scratch::new();
    let set = text(&generated(&s, "g", 300, 50, "l2"));
    let more = ["--dataset", &set, "--effort", "20,95,230", "--clients", "1,2"];
    let (done, points) = fake(&s, "effort_recall=true,service_ms=1", &more);
    assert_eq!((done.code, points.len()), (Some(0), 6), "{}", done.err);
    let cells: Vec<(u64, u64)> =
        points.iter().map(|p| (p["clients"].as_u64().unwrap(), p["effort"].as_u64().unwrap())).collect();
    assert_eq!(cells, [(1, 20), (1, 95), (1, 230), (2, 20), (2, 95), (2, 230)]);
    for word in ["recall ≥ 0.90", "recall ≥ 0.95", "recall ≥ 0.99", "Not reached"] {
        assert!(done.out.contains(word), "{word}: {}", done.out);
    }
    // The figure quoted is one that was measured.
    s.ok(&["report", "r", "--quiet"]);
    let told = json(&s.ok(&["report", "r", "--json"]));
    let measured: Vec<f64> = points.iter().filter_map(|p| p["throughput"].as_f64()).collect();
    let mut quoted = Vec::new();
    collect(&told, "throughput", &mut quoted);
    assert!(quoted.iter().all(|q| measured.contains(q)), "{quoted:?} {measured:?}");
}

/// All numbers of a name anywhere in a value.
fn collect(value: &Value, name: &str, found: &mut Vec<f64>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get(name).and_then(Value::as_f64));
            fields.values().for_each(|v| collect(v, name, found));
        }
        Value::Array(list) => list.iter().for_each(|v| collect(v, name, found)),
        _ => {}
    }
}

#[test]
fn case_69_every_knob_of_the_line_is_in_the_result() {
    let s = Scratch::new();
    let set = text(&generated(&s, "g", 200, 20, "l2"));
    let line = [
        "run",
        "--engine",
        "fake:seed=7",
        "--out",
        "r",
        "--no-report",
        "-d",
        &set,
        "--k",
        "9",
        "--effort",
        "11,12",
        "--param",
        "m=13",
        "--param",
        "ef_construction=77",
        "--clients",
        "1,2",
        "--repeats",
        "2",
        "--warmup",
        "3",
        "--min-window",
        "4ms",
        "--load-workers",
        "2",
        "--batch",
        "17",
        "--build-threads",
        "2",
        "--seed",
        "99",
        "--limit",
        "150",
        "--load-timeout",
        "61s",
        "--build-timeout",
        "62s",
        "--ready-timeout",
        "63s",
        "--query-timeout",
        "64s",
        "--point-timeout",
        "65s",
        "--max-errors",
        "0.02",
        "--max-client-share",
        "0.3",
        "--filter",
        "num < 500000",
    ];
    s.ok(&line);
    let manifest = s.manifest("r");
    let plan = &manifest["plan"];
    let limits = |name: &str| plan["limits"][name].clone();
    let knobs = BTreeMap::from([
        ("k", (plan["k"].clone(), json!(9))),
        ("efforts", (plan["engine"][0]["efforts"].clone(), json!([11, 12]))),
        ("m", (plan["engine"][0]["build"][0]["params"]["m"].clone(), json!(13))),
        ("ef_construction", (plan["engine"][0]["build"][0]["params"]["ef_construction"].clone(), json!(77))),
        ("engine", (plan["engine"][0]["name"].clone(), json!("fake:seed=7"))),
        ("clients", (plan["clients"].clone(), json!([1, 2]))),
        ("repeats", (plan["repeats"].clone(), json!(2))),
        ("warmup", (plan["warmup"].clone(), json!(3))),
        ("min_window", (plan["min_window"].clone(), json!("4ms"))),
        ("workers", (plan["load"]["workers"].clone(), json!(2))),
        ("batch", (plan["load"]["batch"].clone(), json!(17))),
        ("build_threads", (plan["build_threads"].clone(), json!(2))),
        ("seed", (plan["seed"].clone(), json!(99))),
        ("limit", (plan["limit"].clone(), json!(150))),
        ("load-timeout", (limits("load"), json!("1m 1s"))),
        ("build-timeout", (limits("build"), json!("1m 2s"))),
        ("ready-timeout", (limits("ready"), json!("1m 3s"))),
        ("query-timeout", (limits("query"), json!("1m 4s"))),
        ("point-timeout", (limits("point"), json!("1m 5s"))),
        ("max-errors", (limits("errors"), json!(0.02))),
        ("max-client-share", (limits("client_share"), json!(0.3))),
        ("filter", (plan["filter"][0]["where"].clone(), json!("num < 500000"))),
    ]);
    for (name, (found, given)) in knobs {
        assert_eq!(found, given, "{name}");
    }
    assert_eq!(manifest["seeds"]["plan"], 99);
    let load = s.points("r").into_iter().find(|p| p["phase"] == "load").expect("a load");
    assert_eq!((&load["load_workers"], &load["load_batch_rows"]), (&json!(2), &json!(17)), "{load}");
    // The same plan again, from the result alone: every point is there already.
    let again = s.ok(&["run", "--resume", "--out", "r", "--no-report"]);
    assert_eq!(s.manifest("r")["plan"], *plan, "{}", again.err);
    assert_eq!(s.sweep("r").len(), 8, "2 efforts x 2 clients x (no filter, a filter)");
}

#[test]
fn case_69_what_no_engine_has_is_refused() {
    let s = Scratch::new();
    refused(
        &s,
        &run_words("usearch", "r", &["--param", "ef_constructoin=3"]),
        &["ef_constructoin", "ef_construction"],
    );
    refused(&s, &run_words("flat", "r", &["--param", "m=3"]), &["m", "flat: none"]);
    refused(&s, &run_words("flat", "r", &["--min-recall", "95"]), &["--min-recall", "0..1"]);
    refused(&s, &["truth", "builtin", "--k", "0"], &["--k 0"]);
    refused(&s, &["run", "--filter", "n = 3", "-d", "builtin"], &["\"n\"", "section"]);
}

#[test]
fn case_73_more_dimensions_than_the_index_takes() {
    let s = Scratch::new();
    let text = fs::read_to_string(workspace().join("engines/fake.toml")).expect("the fake's definition");
    let small = text
        .replace("name = \"fake\"", "name = \"small\"")
        .replace("[capabilities]\n", "[capabilities]\nmax_dim = 16\n");
    s.write("small.toml", &small);
    let done = s.ok(&run_words("small.toml", "r", &["--engine", "flat", "--limit", "300"]));
    let points = s.sweep("r");
    let left_out = points.iter().find(|p| p["engine"] == "small").expect("a record");
    assert_eq!(left_out["status"], "skipped", "{left_out}");
    let reason = left_out["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("16 dimensions") && reason.contains("384"), "{reason}");
    assert!(done.out.contains("16 dimensions"), "{}", done.out);
    assert!(points.iter().any(|p| p["engine"] == "flat" && p["recall"] == 1.0));
}

#[test]
fn case_92_a_dry_run_estimates_time_memory_and_disk() {
    let s = Scratch::new();
    let done = s.ok(&["run", "--limit", "1000", "--dry-run", "--out", "r"]);
    for word in ["usearch", "flat", "LOAD", "BUILD", "SEARCHES", "MEMORY", "in all about", "on disk"] {
        assert!(done.out.contains(word), "{word}: {}", done.out);
    }
    let told = json(&s.ok(&["run", "--limit", "1000", "--dry-run", "--json"]));
    let estimate = &told["estimate"];
    assert!(estimate["seconds"].as_f64().is_some_and(|t| t > 0.0 && t < 600.0), "{estimate}");
    assert!(estimate["disk_bytes"].as_u64().is_some_and(|b| b > 0), "{estimate}");
    assert_eq!(estimate["legs"].as_array().map(Vec::len), Some(2), "{estimate}");
    assert!(!s.path().join("r").exists());
    let smoke = s.ok(&["run", "--plan", "smoke", "--out", "smoke", "--no-report"]);
    assert_eq!(s.manifest("smoke")["verdict"]["valid"], true, "{}", smoke.out);
}

#[test]
fn case_102_what_was_looked_for_and_what_is_there() {
    let s = Scratch::new();
    fs::create_dir(s.path().join("full")).expect("a folder");
    s.write("full/notes.txt", "mine");
    s.write("file", "a file");
    for (args, parts) in [
        (run_words("fake", "full", &["--limit", "300", "--effort", "10"]), vec!["full"]),
        (run_words("fake", "file/below", &["--limit", "300", "--effort", "10"]), vec!["file/below"]),
        (vec!["report", "full"], vec!["full", "manifest.json"]),
        (vec!["report", "nowhere"], vec!["nowhere"]),
        (vec!["explain", "full", "fake:10"], vec!["full", "manifest.json"]),
    ] {
        refused(&s, &args, &parts);
    }
    assert_eq!(fs::read_dir(s.path().join("full")).expect("the folder").count(), 1, "nothing was added");
    // A run that is there is not written over, and what it holds is said.
    fake(&s, "", &["--limit", "300"]);
    let done = s.annvil(&run_words("fake", "r", &["--limit", "300", "--effort", "10"]));
    assert_eq!(done.code, Some(2), "{}", done.err);
    assert!(done.err.contains("--resume") && done.err.contains("--force"), "{}", done.err);
    let done = s.annvil(&["explain", "r", "usearch:10"]);
    assert!(done.code == Some(2) && done.err.contains("fake:10"), "{}", done.err);
}

#[test]
fn case_103_numbers_beside_every_picture() {
    let s = Scratch::new();
    s.ok(&[
        "run",
        "--limit",
        "300",
        "--effort",
        "10,20",
        "--repeats",
        "2",
        "--min-window",
        "1ms",
        "--out",
        "r",
        "--quiet",
    ]);
    let run = s.path().join("r");
    let table = fs::read_to_string(run.join("tables/points.csv")).expect("the table of points");
    let of = |name: &str| column(&table, name);
    assert_eq!(of("phase").iter().filter(|p| *p == "sweep").count(), 3, "{table}");
    let small: u64 = ["records.jsonl", "manifest.json", "tables/points.csv"]
        .iter()
        .map(|f| fs::metadata(run.join(f)).map_or(0, |m| m.len()))
        .sum();
    assert!(small < 1_000_000, "{small} bytes");
    for point in s.sweep("r") {
        for name in ["recall", "recall_p5", "recall_min", "recall_low", "recall_high"] {
            assert!(point[name].is_f64(), "{name}: {point}");
        }
        let raw = run.join("raw").join(format!("{}.parquet", point["key"].as_str().expect("a key")));
        assert!(raw.is_file(), "each query's figures are kept");
    }
    let charts = fs::read_dir(run.join("charts")).expect("charts").flatten();
    assert!(charts.into_iter().any(|c| c.path().extension().is_some_and(|e| e == "svg")));
}

#[test]
fn case_106_which_machine() {
    let s = Scratch::new();
    let (done, _) = fake(&s, "", &["--limit", "300"]);
    let machine = s.manifest("r")["machine"].clone();
    let all = machine.to_string();
    for word in ["cpu", "memory", "kernel", "governor", "numa", "disk"] {
        assert!(all.contains(word), "{word}: {machine}");
    }
    for word in ["cpu ", "memory ", "kernel", "governor ", "disk "] {
        assert!(done.out.contains(word), "{word}: {}", done.out);
    }
    assert!(!all.contains("\"\""), "what cannot be read is unknown, not empty: {machine}");
}

#[test]
fn case_108_from_run_to_table_with_recall_or_with_a_word_why_not() {
    let s = Scratch::new();
    let set = text(&generated(&s, "g", 200, 20, "cosine"));
    let line = ["run", "--engine", "flat", "-d", &set, "--min-window", "1ms", "--quiet"];
    s.ok(&[&line[..], &["--out", "r"]].concat());
    let table = fs::read_to_string(s.path().join("r/tables/points.csv")).expect("the table");
    assert_eq!(column(&table, "recall").last().map(String::as_str), Some("1.0"), "{table}");
    let without = s.ok(&[&line[..], &["--out", "n", "--no-recall"]].concat());
    let table = fs::read_to_string(s.path().join("n/tables/points.csv")).expect("the table");
    assert_eq!(column(&table, "recall").last().map(String::as_str), Some(""), "{table}");
    assert!(
        without.out.contains("n/a") && without.out.contains("Recall was not computed"),
        "{}",
        without.out
    );
    assert!(has_flag(&s.sweep("n")[0], "no_recall"));
}

#[test]
fn case_111_a_definition_from_a_file() {
    let s = Scratch::new();
    let text = fs::read_to_string(workspace().join("engines/fake.toml")).expect("the fake's definition");
    let mine = text
        .replace("name = \"fake\"", "name = \"mine\"")
        .replace("title = \"Fake\"", "title = \"My database\"");
    assert!(mine.lines().count() < 100);
    s.write("mine.toml", &mine);
    let checked = json(&s.ok(&["engine", "check", "mine.toml", "--json"]));
    assert!(checked["passed"].as_u64().is_some_and(|n| n >= 15) && checked["failed"] == 0, "{checked}");
    let done = s.ok(&run_words("mine.toml", "r", &["--limit", "300", "--effort", "10"]));
    assert!(done.out.contains("My database"), "{}", done.out);
    assert_eq!(s.sweep("r")[0]["engine"], "mine");
    assert!(s.ok(&["engine", "show", "mine.toml"]).out.contains("ef_construction"));
    // An engine that breaks the contract is told so.
    s.write("bad.toml", &format!("{mine}\n[options]\nreply = 'reversed'\n"));
    let done = s.annvil(&["engine", "check", "bad.toml"]);
    assert!(
        done.code == Some(4) && done.err.to_lowercase().contains("order"),
        "{:?} {}{}",
        done.code,
        done.out,
        done.err
    );
    s.write("broken.toml", "name = 'x'\nprotocoll = 'fake'\n");
    let done = s.annvil(&["engine", "check", "broken.toml"]);
    assert_eq!((done.code, done.err.lines().count()), (Some(2), 1), "{}", done.err);
    assert!(done.err.contains("broken.toml") && done.err.contains("protocoll"), "{}", done.err);
}

#[test]
fn case_115_a_password_is_nowhere() {
    let s = Scratch::new();
    let at = "postgres://bench:hunter2@db.example:5432/v?sslmode=require&password=hunter3";
    let (done, _) = fake(&s, "", &["--limit", "300"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    for args in [
        run_words("fake", "r", &["--limit", "300", "--effort", "10", "--at", at, "--force"]),
        run_words("fake", "other", &["--limit", "300", "--effort", "10", "--at", "bench:hunter2@db:1"]),
        vec!["engine", "check", "fake", "--at", at],
    ] {
        let done = s.annvil(&args);
        assert!(matches!(done.code, Some(2 | 5)), "{:?}: {}", done.code, done.err);
        assert!(!done.out.contains("hunter") && !done.err.contains("hunter"), "{}{}", done.out, done.err);
        assert!(done.err.contains("no address"), "{}", done.err);
    }
    // A definition that is no embedded engine does not help: nothing with a password is left behind.
    let text = fs::read_to_string(workspace().join("engines/fake.toml")).expect("the fake's definition");
    let server = text
        .replace("name = \"fake\"", "name = \"server\"")
        .replace("protocol = \"fake\"", "protocol = \"later\"")
        .replace("embedded = true", "embedded = false");
    s.write("server.toml", &server);
    let more = ["--engine", "flat", "--limit", "300", "--at", at];
    let done = s.annvil(&run_words("server.toml", "run", &more));
    assert_eq!(done.code, Some(5), "{}", done.err);
    assert!(!done.out.contains("hunter") && !done.err.contains("hunter"), "{}{}", done.out, done.err);
    s.ok(&["report", "run", "--quiet"]);
    let written = files(&s.path().join("run"));
    assert!(written.iter().any(|(path, _)| path.ends_with("report.html")), "{}", written.len());
    for (path, text) in written {
        assert!(!text.contains("hunter"), "{path}: {text}");
    }
    assert!(s.manifest("run").to_string().contains("postgres://bench:***@db.example:5432/v"));
}

/// cases.md 66: parameters that differ between engines stay marked in the result.
#[test]
fn case_66_unequal_parameters_stay_in_the_result() {
    let s = Scratch::new();
    let words =
        ["run", "--engine", "usearch", "--engine", "fake", "--limit", "300", "--repeats", "1", "--out", "r"];
    s.write(
        "unequal.toml",
        "name='x'\ndatasets=['builtin']\nlimit=300\nrepeats=1\nwarmup=10\nmin_window='1ms'\n\
         [[engine]]\nname='usearch'\nefforts=[10]\n[[engine.build]]\nparams={m=8}\n\
         [[engine]]\nname='fake'\nefforts=[10]\n[[engine.build]]\nparams={m=32}\n",
    );
    s.ok(&["run", "--plan", "unequal.toml", "--out", "u", "--no-report"]);
    let findings = s.manifest("u")["verdict"]["findings"].to_string();
    assert!(findings.contains("m is not the same for all engines: 8 in usearch, 32 in fake"), "{findings}");
    s.ok(&[&words[..], &["--effort", "10", "--param", "m=16", "--no-report"]].concat());
    let findings = s.manifest("r")["verdict"]["findings"].to_string();
    assert!(!findings.contains("m is not the same"), "{findings}");
}

/// A control that beats the truth, or fails a query that was answered, is not passed over.
#[test]
fn a_control_is_held_to_every_answer() {
    let s = Scratch::new();
    // An exact control by its definition, that is none.
    let text = s.ok(&["engine", "show", "fake"]).out.replace("exact = false", "exact = true");
    let text = if text.contains("exact = true") {
        text
    } else {
        text.replacen("[capabilities]", "[capabilities]\nexact = true", 1)
    };
    s.write("control.toml", &text);
    for options in ["effort_recall=true", "effort_recall=true,fail_share=0.004"] {
        let out = options.len().to_string();
        let engine = format!("./control.toml:{options}");
        let done = s.annvil(&support::fake_run(&engine, &out, &["--effort", "10"]));
        assert_eq!(done.code, Some(4), "{options}: {}", done.err);
        assert!(done.err.contains("control"), "{options}: {}", done.err);
    }
}
