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
fn terminal_preview() {
    let (manifest, points) = testing::realistic();
    if let Some(keep) = std::env::var_os("ANNVIL_KEEP_TERMINAL") {
        fs::write(keep, crate::terminal(&manifest, &points, 100)).unwrap();
    }
}
