//! The files of a report, and what is said where there is nothing to report.

use super::*;
use crate::testing;
use record::{Manifest, Point};

/// A run directory with these records.
fn run(folder: &Path, manifest: &Manifest, points: &[Point]) -> RunDir {
    let run = RunDir::create(&folder.join("run")).unwrap();
    run.write_manifest(manifest).unwrap();
    for point in points {
        run.append(point).unwrap();
    }
    run
}

#[test]
fn a_run_gets_its_page_charts_and_tables() {
    let folder = tempfile::tempdir().unwrap();
    let (manifest, points) = testing::realistic();
    let run = run(folder.path(), &manifest, &points);
    let written = write(&run).unwrap();
    if let Some(keep) = std::env::var_os("ANNVIL_KEEP_REPORT") {
        fs::copy(&written.html, keep).unwrap();
    }
    let page = fs::read_to_string(&written.html).unwrap();
    assert!(page.starts_with("<!doctype html>"), "{}", &page[..80]);
    assert!(page.contains("NOT VALID") && page.contains("the index is ivfflat"));
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        let allowed = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!allowed.contains(outside), "{outside}");
    }
    let names = |paths: &[PathBuf]| -> Vec<String> {
        paths.iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(names(&written.charts), ["throughput-recall.svg"]);
    assert_eq!(
        names(&written.tables),
        ["set-up.csv", "loading.csv", "not-valid.csv", "checklist.csv", "best-throughput.csv", "points.csv"]
    );
    for path in written.charts.iter().chain(&written.tables) {
        assert!(fs::metadata(path).unwrap().len() > 20, "{path:?}");
    }
}

#[test]
fn a_folder_without_points_says_what_was_looked_for_and_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (manifest, points) = testing::realistic();
    let empty = run(&folder.path().join("empty"), &manifest, &[]);
    let error = write(&empty).unwrap_err().to_string();
    assert!(error.contains("looked for points in records.jsonl; there is no records.jsonl"), "{error}");
    assert!(error.contains("--resume") && !empty.path().join("report.html").exists(), "{error}");

    let full = run(&folder.path().join("full"), &manifest, &points);
    let other = Selection { dataset: Some("glove".into()) };
    let error = write_selected(&full, &other).unwrap_err().to_string();
    assert!(
        error.contains("points of data set \"glove\"") && error.contains("24 points of \"sentences\""),
        "{error}"
    );
    assert!(error.contains(&*full.path().to_string_lossy()) && !error.contains('\n'), "{error}");
    let same = Selection { dataset: Some("sentences".into()) };
    write_selected(&full, &same).unwrap();
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (manifest, points) = testing::realistic();
    let run = run(folder.path(), &manifest, &points);
    // A folder in the way fails for every user, also for root.
    fs::create_dir_all(run.path().join("report.html").join("x")).unwrap();
    let error = write(&run).unwrap_err().to_string();
    assert!(error.contains("report.html") && error.contains("cannot replace"), "{error}");
}

#[test]
fn measurement_versions_are_never_shown_together() {
    let folder = tempfile::tempdir().unwrap();
    let (manifest, mut points) = testing::realistic();
    for point in &mut points[..3] {
        point.measurement_version = 2;
    }
    let run = run(folder.path(), &manifest, &points);
    let error = write(&run).unwrap_err().to_string();
    assert!(error.contains("versions 1 (21 points) and 2 (3 points)"), "{error}");
    let text = crate::terminal(&manifest, &points, 100);
    assert!(text.contains("measurement version 1)") && text.contains("measurement version 2)"), "{text}");
}

#[test]
fn points_csv_has_a_row_per_point_and_no_figure_that_was_not_measured() {
    let folder = tempfile::tempdir().unwrap();
    let (manifest, points) = testing::realistic();
    let run = run(folder.path(), &manifest, &points);
    let written = write(&run).unwrap();
    let mut reader = ::csv::Reader::from_path(written.tables.last().unwrap()).unwrap();
    let header = reader.headers().unwrap().clone();
    let at = |name: &str| header.iter().position(|h| h == name).unwrap_or_else(|| panic!("no column {name}"));
    let rows: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), points.len());
    let exact = rows.iter().find(|r| &r[at("exact")] == "true" && &r[at("phase")] == "sweep").unwrap();
    assert_eq!((&exact[at("recall")], &exact[at("usable")]), ("1.0", "true"));
    let failed = rows.iter().find(|r| &r[at("status")] == "failed").unwrap();
    assert_eq!((&failed[at("throughput")], &failed[at("recall")], &failed[at("usable")]), ("", "", "false"));
    assert!(failed[at("reason")].contains("out of memory at limit 2.0 GiB"));
    let without = rows.iter().find(|r| r[at("flags")].contains("no_recall")).unwrap();
    assert_eq!((&without[at("recall")], &without[at("throughput")]), ("", "60.0"));
}

#[test]
fn foreign_text_is_escaped_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let (mut manifest, mut points) = testing::realistic();
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{1}\"'&";
    manifest.name = evil.into();
    manifest.datasets[0].name = evil.into();
    let mut engine = manifest.engines["flat"].clone();
    engine.title = evil.into();
    engine.asymmetries.push(evil.into());
    engine.settings = serde_json::json!({ evil: { "value": evil } });
    manifest.engines.insert(evil.into(), engine);
    manifest.plan = serde_json::json!({ evil: [evil] });
    for point in &mut points {
        point.engine_title = evil.into();
        point.dataset = evil.into();
        point.build = format!("{evil}={}", point.build);
        point.params.insert(evil.into(), evil.into());
        point.reason = Some(evil.into());
        point.effort_name = Some(evil.into());
    }
    let run = run(folder.path(), &manifest, &points);
    let written = write(&run).unwrap();
    let page = fs::read_to_string(&written.html).unwrap();
    assert_eq!(page.matches("<script").count(), 2, "the page's own two");
    assert!(!page.contains("<img") && page.contains("&lt;img"));
    let chart = fs::read_to_string(&written.charts[0]).unwrap();
    assert!(!chart.contains("<script") && !chart.contains("<img") && !chart.contains('\u{1}'));
}

#[test]
fn records_of_an_earlier_plan_do_not_count_and_missing_points_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (mut manifest, points) = testing::realistic();
    manifest.planned = points[..5].iter().map(|p| p.key.clone()).collect();
    manifest.planned.push("not yet".into());
    let run = run(folder.path(), &manifest, &points);
    let written = write(&run).unwrap();
    let table = fs::read_to_string(run.path().join("tables/not-valid.csv")).unwrap();
    assert!(table.contains("not measured,1 planned point,"), "{table}");
    assert!(table.contains("not shown,19 records,"), "{table}");
    let rows = ::csv::Reader::from_path(written.tables.last().unwrap()).unwrap().into_records().count();
    assert_eq!(rows, 5);
}
