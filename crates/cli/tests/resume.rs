//! A run can be killed at any moment and continued: the same points as an undisturbed run, none
//! twice, none lost (cases.md 90, 91, M12).

mod support;

use serde_json::Value;
use std::{
    collections::BTreeMap,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};
use support::{Scratch, fake_run};

const ENGINE: &str = "fake:service_ms=0.1,effort_recall=true";
const EFFORTS: &[&str] = &["--effort", "10,20,40", "--clients", "1,2"];

/// Everything of a point that must not depend on an interruption: all but times.
fn identity(point: &Value) -> (String, BTreeMap<&'static str, Value>) {
    let names = [
        "phase",
        "status",
        "engine",
        "build",
        "effort",
        "clients",
        "k",
        "recall",
        "queries",
        "answered",
        "dataset_hash",
        "truth_hash",
        "load_rows_counted",
        "indexed_rows",
    ];
    let key = point["key"].as_str().expect("a key").to_owned();
    (key, names.into_iter().map(|name| (name, point[name].clone())).collect())
}

fn identities(s: &Scratch, run: &str) -> BTreeMap<String, BTreeMap<&'static str, Value>> {
    let points = s.points(run);
    let found: BTreeMap<_, _> = points.iter().map(identity).collect();
    assert_eq!(found.len(), points.len(), "a point of {run} stands twice");
    found
}

#[test]
fn killed_at_twenty_moments_and_resumed_a_run_has_the_same_points() {
    let s = Scratch::new();
    // Windows of one pass, so that the number of answers is the same in every run.
    let whole = Instant::now();
    s.ok(&fake_run(ENGINE, "undisturbed", EFFORTS));
    let whole = whole.elapsed();
    let expected = identities(&s, "undisturbed");
    assert_eq!(expected.len(), 8, "load, build, six points");
    let mut killed = 0;
    for moment in 0..20_u32 {
        let run = format!("killed-{moment}");
        let mut child = s
            .command(&fake_run(ENGINE, &run, EFFORTS))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        // Spread over the run, at no round figures.
        let pause = whole.mul_f64(f64::from(moment * 7 % 20) / 20.0 + 0.013);
        thread::sleep(pause);
        killed += u32::from(child.try_wait().expect("it can be asked").is_none());
        // It may have finished just now.
        let _gone = child.kill();
        child.wait().expect("it ends");
        if !s.path().join(&run).join("manifest.json").exists() {
            s.ok(&fake_run(ENGINE, &run, EFFORTS));
        } else if s.manifest(&run)["verdict"].is_null() {
            s.ok(&["run", "--resume", "--out", &run, "--no-report"]);
        }
        assert_eq!(identities(&s, &run), expected, "killed after {pause:?}");
        assert_eq!(s.manifest(&run)["verdict"]["valid"], true);
    }
    assert!(killed >= 10, "only {killed} of 20 runs were killed before their end");
}

#[test]
fn a_finished_point_is_not_measured_again_and_its_engine_is_not_asked() {
    let s = Scratch::new();
    let log = s.path().join("calls.log");
    let engine =
        format!("fake:log={},abort_at_search=1500,abort_once={}/once", log.display(), s.path().display());
    let args = fake_run(&engine, "r", &["--effort", "10,20,40"]);
    let crashed = s.annvil(&args);
    assert_ne!(crashed.code, Some(0), "the fake aborts once");
    let before = s.points("r");
    let finished = before.iter().filter(|p| p["phase"] == "sweep").count();
    assert!((1..3).contains(&finished), "{finished} points before the crash");
    let calls_before = std::fs::read_to_string(&log).expect("a log").lines().count();
    let resumed = s.ok(&["run", "--resume", "--out", "r", "--no-report"]);
    assert!(resumed.err.contains("finished points are kept"), "{}", resumed.err);
    let after = s.points("r");
    assert_eq!(after[..before.len()], before[..], "finished points stay as they are");
    assert_eq!(after.iter().filter(|p| p["phase"] == "sweep").count(), 3);
    let rebuilt = |p: &Value| p["flags"].as_array().expect("flags").contains(&"rebuilt".into());
    assert!(
        after[before.len()..].iter().all(rebuilt),
        "an embedded index had to be built again, which is said"
    );
    // The log of the resumed run: one create, one build, and a begin for each missing point.
    let log = std::fs::read_to_string(&log).expect("a log");
    let begins = log.lines().skip(calls_before).filter(|l| l.contains("begin")).count();
    assert_eq!(begins, 3 - finished, "{log}");
}

#[test]
fn a_complete_run_resumed_measures_nothing_and_a_changed_parameter_only_what_it_touches() {
    let s = Scratch::new();
    let log = s.path().join("calls.log");
    let engine = format!("fake:log={}", log.display());
    s.ok(&fake_run(&engine, "r", &["--effort", "10,20"]));
    let first = s.points("r");
    let calls = || std::fs::read_to_string(&log).expect("a log").lines().count();
    let before = calls();
    let mut again = fake_run(&engine, "r", &["--effort", "10,20"]);
    again.push("--resume");
    s.ok(&again);
    assert_eq!(calls(), before, "nothing was asked of the engine");
    assert_eq!(s.points("r"), first);
    let mut more = fake_run(&engine, "r", &["--effort", "10,20,40"]);
    more.push("--resume");
    s.ok(&more);
    let efforts: Vec<Value> = s.sweep("r").iter().map(|p| p["effort"].clone()).collect();
    assert_eq!(efforts, [10, 20, 40]);
    let mut budget = fake_run(&engine, "r", &["--effort", "10,20,40", "--seed", "2"]);
    budget.push("--resume");
    s.ok(&budget);
    assert_eq!(s.sweep("r").len(), 6, "a changed budget reuses no old figure");
    assert_eq!(
        s.manifest("r")["planned"].as_array().expect("keys").len(),
        5,
        "and the result holds the new ones"
    );
}

#[test]
fn a_failed_point_is_tried_again_and_a_larger_limit_costs_no_finished_point() {
    let s = Scratch::new();
    let engine = "fake:build_s=1";
    let short = s.annvil(&fake_run(engine, "r", &["--effort", "10", "--build-timeout", "100ms"]));
    assert_eq!(short.code, Some(4), "{}", short.err);
    assert!(short.err.contains("--build-timeout"), "{}", short.err);
    let mut longer = fake_run(engine, "r", &["--effort", "10", "--build-timeout", "1m"]);
    longer.push("--resume");
    s.ok(&longer);
    assert_eq!(s.manifest("r")["verdict"]["valid"], true);
    let loads = s.points("r").iter().filter(|p| p["phase"] == "load").count();
    assert_eq!(loads, 1, "the load was finished and is kept");
    let before = s.points("r").len();
    let mut again = fake_run(engine, "r", &["--effort", "10", "--point-timeout", "2h"]);
    again.push("--resume");
    s.ok(&again);
    assert_eq!(s.points("r").len(), before, "another limit measures no finished point again");
}

#[test]
fn a_line_cut_off_by_a_crash_is_measured_again() {
    let s = Scratch::new();
    s.ok(&fake_run("fake", "r", &["--effort", "10,20"]));
    let path = s.path().join("r/records.jsonl");
    let text = std::fs::read_to_string(&path).expect("records");
    std::fs::write(&path, &text[..text.len() - 40]).expect("cut");
    let mut again = fake_run("fake", "r", &["--effort", "10,20"]);
    again.push("--resume");
    s.ok(&again);
    let efforts: Vec<Value> = s.sweep("r").iter().map(|p| p["effort"].clone()).collect();
    assert_eq!(efforts, [10, 20]);
}

#[test]
fn a_run_directory_is_neither_overwritten_nor_shared_by_accident() {
    let s = Scratch::new();
    s.ok(&fake_run("fake", "r", &["--effort", "10"]));
    let again = s.annvil(&fake_run("fake", "r", &["--effort", "10"]));
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("--resume") && again.err.contains("--force"), "{}", again.err);
    let mut forced = fake_run("fake", "r", &["--effort", "20"]);
    forced.push("--force");
    s.ok(&forced);
    assert_eq!(s.sweep("r").len(), 1, "--force replaces the run");
    std::fs::create_dir(s.path().join("mine")).expect("a folder");
    s.write("mine/thesis.txt", "precious");
    let mut others = fake_run("fake", "mine", &["--effort", "20"]);
    others.push("--force");
    s.annvil(&others);
    assert!(s.path().join("mine/thesis.txt").exists(), "nothing that is no run is ever removed");
    // While one annvil writes, a second is refused.
    let slow = fake_run("fake:service_ms=50", "busy", &["--effort", "10"]);
    let mut child = s.command(&slow).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    while !s.path().join("busy/manifest.json").exists() {
        thread::sleep(Duration::from_millis(20));
    }
    let mut second = slow.clone();
    second.push("--resume");
    let second = s.annvil(&second);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(second.code, Some(2), "{}", second.err);
    assert!(second.err.contains("another annvil"), "{}", second.err);
}
