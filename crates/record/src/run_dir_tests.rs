//! Records survive kills, full disks, newer versions and a second process.

use super::*;
use crate::{Flag, Phase, Status};
use proptest::prelude::*;
use serde_json::json;
use std::process::Command;
use types::Secret;

fn point(key: &str) -> Point {
    serde_json::from_value(json!({
        "key": key, "measurement_version": 1, "finished_at": "2026-11-30T12:00:00Z", "phase": "sweep",
        "status": "valid", "flags": ["noisy"], "dataset": "d", "dataset_hash": "h", "rows": 10, "dim": 2,
        "metric": "l2", "engine": "e", "engine_title": "Ünï", "engine_version": "1", "index_kind": "hnsw",
        "build": "m=16", "params": {"m": 16}, "exact": false, "point_seconds": 1.5, "throughput": 123.25,
    }))
    .unwrap()
}

fn manifest() -> Manifest {
    serde_json::from_value(json!({
        "format": [FORMAT.0, FORMAT.1],
        "tool": {"name": "annvil", "version": "0.1.0", "commit": null, "measurement_version": 1},
        "name": "r", "created_at": "2026-11-30T12:00:00Z", "plan": {}, "seeds": {}, "machine": {},
        "datasets": [], "engines": {}, "sessions": [], "verdict": null,
    }))
    .unwrap()
}

fn run() -> (tempfile::TempDir, RunDir) {
    let folder = tempfile::tempdir().unwrap();
    let run = RunDir::create(&folder.path().join("run")).unwrap();
    run.write_manifest(&manifest()).unwrap();
    (folder, run)
}

fn keys(points: &[Point]) -> Vec<&str> {
    points.iter().map(|p| p.key.as_str()).collect()
}

#[test]
fn points_and_manifest_come_back() {
    let (_folder, run) = run();
    assert_eq!(run.points().unwrap(), []);
    for key in ["a", "b"] {
        run.append(&point(key)).unwrap();
    }
    assert_eq!(run.points().unwrap(), [point("a"), point("b")]);
    assert_eq!(RunDir::open(run.path()).unwrap().manifest().unwrap(), manifest());
    let again = RunDir::create(run.path()).unwrap_err().to_string();
    assert!(again.contains("--resume") && again.contains("--force"), "{again}");
}

#[test]
fn a_cut_last_line_is_left_out_repaired_and_written_over() {
    let (_folder, run) = run();
    let path = run.path().join(RECORDS);
    for key in ["a", "b"] {
        run.append(&point(key)).unwrap();
    }
    let whole = fs::read(&path).unwrap();
    let cut = &whole[..whole.len() - 5];
    fs::write(&path, cut).unwrap();
    assert_eq!(keys(&run.points().unwrap()), ["a"]);
    assert_eq!(fs::read(&path).unwrap(), cut, "reading changes nothing");
    assert_eq!(keys(&run.repair().unwrap()), ["a"]);
    run.append(&point("c")).unwrap();
    assert_eq!(keys(&run.points().unwrap()), ["a", "c"]);
    // Also without the repair.
    let mut text = fs::read(&path).unwrap();
    text.extend(b"{\"key\":");
    fs::write(&path, text).unwrap();
    run.append(&point("d")).unwrap();
    assert_eq!(keys(&run.points().unwrap()), ["a", "c", "d"]);
}

#[test]
fn a_broken_line_in_the_middle_is_named() {
    let (_folder, run) = run();
    run.append(&point("a")).unwrap();
    let path = run.path().join(RECORDS);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}nonsense\n{text}")).unwrap();
    let error = run.points().unwrap_err().to_string();
    assert!(error.contains("line 2 is broken") && error.contains("records.jsonl"), "{error}");
}

#[test]
fn a_figure_that_is_no_number_is_refused_and_spoils_nothing() {
    let (_folder, run) = run();
    run.append(&point("a")).unwrap();
    let mut bad = point("b");
    bad.search.throughput_repeats = Some(vec![1.0, f64::INFINITY]);
    assert!(run.append(&bad).is_err());
    assert_eq!(keys(&run.points().unwrap()), ["a"]);
}

#[test]
fn a_newer_major_is_refused_and_a_newer_minor_is_read() {
    let (_folder, run) = run();
    let path = run.path().join(MANIFEST);
    let mut value = serde_json::to_value(manifest()).unwrap();
    value["format"] = json!([FORMAT.0, FORMAT.1 + 1]);
    value["invented"] = json!({"later": 1});
    value["tool"]["invented"] = json!(1);
    fs::write(&path, value.to_string()).unwrap();
    assert_eq!(run.manifest().unwrap().name, "r");
    value["format"] = json!([FORMAT.0 + 1, 0]);
    fs::write(&path, value.to_string()).unwrap();
    let error = run.manifest().unwrap_err().to_string();
    assert!(
        error.contains("has format 2.0, this annvil reads 1.x; use an annvil of that version"),
        "{error}"
    );
    for bad in ["", "{", "[]", "{\"format\": \"1.0\"}", "{\"format\":[1,0]}"] {
        fs::write(&path, bad).unwrap();
        let error = run.manifest().unwrap_err().to_string();
        assert!(error.contains("manifest.json") && !error.contains('\n'), "{error}");
    }
}

#[test]
fn words_and_fields_of_a_newer_minor_do_not_break_a_line() {
    let (_folder, run) = run();
    let mut value = serde_json::to_value(point("a")).unwrap();
    value["flags"] = json!(["noisy", "from_the_future"]);
    value["phase"] = json!("churn");
    value["status"] = json!("half_valid");
    value["invented_ns"] = json!(7);
    fs::write(run.path().join(RECORDS), format!("{value}\n")).unwrap();
    let points = run.points().unwrap();
    assert_eq!(points[0].flags, [Flag::Noisy, Flag::Unknown]);
    assert_eq!((points[0].phase, points[0].status), (Phase::Unknown, Status::Unknown));
}

#[test]
fn a_secret_in_a_plan_is_a_mask_in_the_manifest() {
    #[derive(serde::Serialize)]
    struct Login {
        user: &'static str,
        password: Secret,
    }
    let (_folder, run) = run();
    let mut with = manifest();
    let login = Login { user: "bench", password: Secret::new("hunter2-\"quoted\"") };
    with.plan = serde_json::to_value(&login).unwrap();
    with.sessions.push(crate::RunSession {
        started_at: String::new(),
        ended_at: None,
        outcome: None,
        command: crate::mask_command([
            "annvil",
            "run",
            "--at",
            "pg://bench:hunter2@db",
            "--password=hunter2",
        ]),
    });
    run.write_manifest(&with).unwrap();
    let text = fs::read_to_string(run.path().join(MANIFEST)).unwrap();
    assert!(!text.contains("hunter2") && text.contains("\"password\": \"***\""), "{text}");
}

#[test]
fn a_folder_without_a_run_says_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let error = RunDir::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("looked for manifest.json, the folder is empty"), "{error}");
    fs::write(folder.path().join("base.fbin"), "x").unwrap();
    let error = RunDir::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("it holds: base.fbin"), "{error}");
    let error = RunDir::open(&folder.path().join("no")).unwrap_err().to_string();
    assert!(error.contains("can't be read"), "{error}");
}

/// Not a test by itself: holds the lock of the folder named in the environment until its input ends.
#[test]
fn child_that_holds_the_lock() {
    let Some(path) = std::env::var_os("ANNVIL_TEST_LOCK") else { return };
    let run = RunDir::open(Path::new(&path)).unwrap();
    let _lock = run.lock().unwrap();
    fs::write(run.path().join("locked"), "").unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn two_processes_cannot_write_at_once_and_a_killed_one_does_not_block() {
    let (_folder, run) = run();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "run_dir::tests::child_that_holds_the_lock"])
        .env("ANNVIL_TEST_LOCK", run.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !run.path().join("locked").exists() {
        assert!(std::time::Instant::now() < end, "the child never took the lock");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let error = run.lock().unwrap_err().to_string();
    assert!(error.contains(&format!("process {}", child.id())), "{error}");
    child.kill().unwrap();
    child.wait().unwrap();
    let lock = run.lock().unwrap();
    assert!(run.lock().is_err(), "twice in one process");
    drop(lock);
    run.lock().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// A kill may end the file at any byte: every line that was whole is still there.
    #[test]
    fn a_file_cut_anywhere_keeps_every_whole_line(names in prop::collection::vec("[a-zé\"\\\\\n]{0,6}", 1..4), share in 0.0..=1.0f64) {
        let (_folder, run) = run();
        for name in &names {
            run.append(&point(name)).unwrap();
        }
        let path = run.path().join(RECORDS);
        let bytes = fs::read(&path).unwrap();
        let cut = (share * bytes.len() as f64) as usize;
        fs::write(&path, &bytes[..cut]).unwrap();
        let whole = bytes[..cut].iter().filter(|&&b| b == b'\n').count();
        let points = run.points().unwrap();
        prop_assert_eq!(keys(&points), &names[..whole]);
        run.repair().unwrap();
        run.append(&point("next")).unwrap();
        let points = run.points().unwrap();
        prop_assert_eq!(points.len(), whole + 1);
        prop_assert_eq!(points[whole].key.as_str(), "next");
    }
}

#[test]
fn every_single_cut_of_two_lines_reads() {
    let (_folder, run) = run();
    for key in ["a", "b"] {
        run.append(&point(key)).unwrap();
    }
    let path = run.path().join(RECORDS);
    let bytes = fs::read(&path).unwrap();
    for cut in 0..=bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let whole = bytes[..cut].iter().filter(|&&b| b == b'\n').count();
        assert_eq!(run.points().unwrap().len(), whole, "cut at {cut}");
    }
}
