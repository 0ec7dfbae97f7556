//! One test for each exit code of docs/exit-codes.md, on the real binary.

mod support;

use std::{
    fs::File,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use support::{Scratch, done, fake_run};

#[test]
fn code_0_a_valid_run() {
    let s = Scratch::new();
    let run = s.ok(&fake_run("fake", "r", &["--effort", "10,20"]));
    assert!(run.out.contains("VALID"), "{}", run.out);
    assert_eq!(s.manifest("r")["verdict"]["valid"], true);
}

#[test]
fn code_1_our_fault_output_that_cannot_be_written() {
    let s = Scratch::new();
    let Ok(full) = File::options().write(true).open("/dev/full") else { return };
    let output = s.command(&["engine", "list"]).stdout(full).output().expect("it starts");
    let done = done(output);
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.err.starts_with("error: "), "{}", done.err);
}

#[test]
fn code_2_usage_configuration_and_input_in_one_line_before_anything_is_made() {
    let s = Scratch::new();
    s.write("unknown-field.toml", "name='x'\ndatasets=['builtin']\nrepeets=3\n[[engine]]\nname='flat'\n");
    s.write("no.fbn", "x");
    for (args, part) in [
        (vec!["run", "--plan", "nothing"], "quick, smoke, full"),
        (vec!["run", "--plan", "unknown-field.toml"], "repeets"),
        (vec!["run", "--engine", "userch"], "usearch"),
        (vec!["run", "--dataset", "no-such.hdf5"], "no-such.hdf5"),
        (vec!["run", "--dataset", "no.fbn"], "fbin"),
        (vec!["run", "--k", "0"], "k = 0"),
        (vec!["run", "--effort", "0"], "ef_search"),
        (vec!["run", "--param", "m=1"], "m = 1"),
        (vec!["run", "--param", "m"], "m=16"),
        (vec!["run", "--at", "db1:5432"], "--engine"),
        (vec!["run", "--filter", "nope = 3"], "nope"),
        (vec!["run", "--filter", "section ="], "value"),
        (vec!["run", "--metric", "hamming"], "hamming"),
        (vec!["run", "--resume"], "no unfinished run"),
        (vec!["run", "--min-window", "soon"], "90s"),
        (vec!["report"], "annvil run"),
        (vec!["report", "."], "manifest.json"),
        (vec!["explain", ".", "x"], "manifest.json"),
        (vec!["truth", "builtin", "--out", "t.xyz"], ".ibin"),
        (vec!["dataset", "fetch", "no-such-set"], "no-such-set"),
        (vec!["engine", "show", "nope"], "nope"),
    ] {
        let done = s.annvil(&args);
        assert_eq!(done.code, Some(2), "{args:?}\n{}\n{}", done.out, done.err);
        assert!(done.err.contains(part), "{args:?}: {}", done.err);
        assert_eq!(done.out, "", "{args:?}");
        assert!(!s.path().join("runs").exists(), "{args:?} made a run directory");
    }
}

#[test]
fn code_2_of_annvil_itself_is_one_line_with_a_label() {
    let s = Scratch::new();
    let done = s.annvil(&["run", "--dataset", "no-such.hdf5"]);
    assert_eq!(done.err.lines().count(), 1, "{}", done.err);
    assert!(done.err.starts_with("error: "), "{}", done.err);
}

#[test]
fn code_3_a_gate_that_is_not_met() {
    let s = Scratch::new();
    let args =
        fake_run("fake:effort_recall=true,effort_half=10", "r", &["--effort", "10", "--min-recall", "0.99"]);
    let done = s.annvil(&args);
    assert_eq!(done.code, Some(3), "{}", done.err);
    assert!(done.err.contains("--min-recall is 0.99"), "{}", done.err);
    s.ok(&fake_run("fake", "r2", &["--effort", "10", "--min-recall", "0.99"]));
}

#[test]
fn code_4_finished_but_not_valid() {
    let s = Scratch::new();
    let done = s.annvil(&fake_run("fake:keep_nothing=true", "r", &["--effort", "10"]));
    assert_eq!(done.code, Some(4), "{}", done.err);
    assert!(done.err.contains("0 of 300 rows"), "{}", done.err);
    assert_eq!(s.manifest("r")["verdict"]["valid"], false);
}

#[test]
fn code_5_an_engine_that_cannot_be_reached_does_not_stop_the_next() {
    let s = Scratch::new();
    let started = Instant::now();
    let mut args = fake_run("fake:unreachable=true", "r", &["--effort", "10"]);
    args.extend(["--engine", "flat"]);
    let done = s.annvil(&args);
    assert_eq!(done.code, Some(5), "{}", done.err);
    assert!(started.elapsed() < Duration::from_secs(10));
    let sweep = s.sweep("r");
    let of = |engine: &str| sweep.iter().find(|p| p["engine"] == engine).expect("a point");
    assert_eq!((&of("fake")["status"], &of("fake")["code"]), (&"failed".into(), &"unreachable".into()));
    assert_eq!(of("fake")["throughput"], serde_json::Value::Null);
    assert_eq!((&of("flat")["status"], &of("flat")["recall"]), (&"valid".into(), &1.0.into()));
}

#[test]
fn code_5_where_no_engine_answers_nothing_is_made() {
    let s = Scratch::new();
    for (option, part) in [("unreachable", "connection refused"), ("denied", "fake")] {
        let engine = format!("fake:{option}=true");
        let done = s.annvil(&fake_run(&engine, "r", &["--effort", "10"]));
        assert_eq!(done.code, Some(5), "{}", done.err);
        assert_eq!(done.err.lines().count(), 1, "{}", done.err);
        assert!(done.err.contains(part), "{}", done.err);
        assert!(!s.path().join("r").exists(), "nothing is written for a run that could not begin");
    }
}

#[test]
fn code_130_interrupted_with_finished_points_saved_and_the_way_on_said() {
    let s = Scratch::new();
    let args = fake_run("fake:service_ms=20", "r", &["--effort", "10,20,40,80"]);
    let mut command = s.command(&args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let started = Instant::now();
    while s.sweep("r").is_empty() {
        assert!(started.elapsed() < Duration::from_secs(120), "no point was finished");
        thread::sleep(Duration::from_millis(50));
    }
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(kill.success());
    let done = done(child.wait_with_output().expect("it ends"));
    assert_eq!(done.code, Some(130), "{}", done.err);
    assert!(done.err.contains("annvil run --resume --out r"), "{}", done.err);
    let finished = s.sweep("r").len();
    assert!((1..4).contains(&finished), "{finished} points");
    assert_eq!(s.manifest("r")["sessions"][0]["outcome"], "interrupted");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let s = Scratch::new();
    let mut child = s.command(&["dataset", "list"]).stdout(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}
