//! The faulty fixtures of the case list, checked; and what is written passes the same checks.

mod common;

use common::{fixture, open_fixture, shared};
use dataset::{
    Dataset, OpenOptions,
    describe::Description,
    directory::{self, Provenance},
    open, parquet,
    validate::{self, Report, Severity},
};
use types::Metric;

fn codes(report: &Report, severity: Severity) -> Vec<&'static str> {
    report.findings.iter().filter(|f| f.severity == severity).map(|f| f.code).collect()
}

fn opened(name: &str, metric: Metric) -> Option<Dataset> {
    let options = OpenOptions { metric: Some(metric), ..OpenOptions::default() };
    Some(open(&fixture(name)?, &options).unwrap_or_else(|e| panic!("{e}")))
}

#[test]
fn a_good_file_passes() {
    let Some(set) = open_fixture("F00_good.hdf5") else { return };
    assert_eq!(validate::check(&set), Report::default());
}

#[test]
fn case_16_rows_with_nan_and_queries_with_infinity_are_named() {
    let Some(set) = open_fixture("F21_nan_inf.hdf5") else { return };
    let report = validate::check(&set);
    assert_eq!(codes(&report, Severity::Error), ["non_finite_base", "non_finite_query"]);
    assert_eq!(report.get("non_finite_base").unwrap().rows, [7]);
    assert_eq!(report.get("non_finite_query").unwrap().rows, [2]);
    assert!(report.get("non_finite_base").unwrap().message.contains("row 7"));
}

#[test]
fn case_24_repeated_ids_are_refused_with_both_counts() {
    let Some(set) = opened("F28_repeated_ids.parquet", Metric::L2) else { return };
    let report = validate::check(&set);
    assert!(report.get("repeated_ids").unwrap().message.contains("200 rows, 20 distinct ids"));
    assert!(!report.is_valid());
}

#[test]
fn case_43_zero_vectors_under_cosine_are_counted() {
    let Some(set) = open_fixture("F20_zero_vectors.hdf5") else { return };
    let report = validate::check(&set);
    assert!(report.is_valid(), "{report:?}");
    assert!(report.get("zero_base").unwrap().message.contains("10 in all"), "{report:?}");
    assert_eq!(report.get("zero_query").unwrap().rows, [2]);
    assert_eq!(report.get("truth_short").unwrap().rows, [2]);
}

#[test]
fn repeated_rows_are_a_note() {
    let Some(set) = open_fixture("F19_duplicates.hdf5") else { return };
    let report = validate::check(&set);
    assert!(report.is_valid(), "{report:?}");
    assert!(report.get("duplicates").unwrap().message.starts_with("150 of 200"), "{report:?}");
}

#[test]
fn case_2_and_39_text_and_parquet_become_a_directory_that_holds_the_same_numbers() {
    let Some(set) = open_fixture("F00_good.hdf5") else { return };
    let dir = tempfile::tempdir().unwrap();
    directory::write(&set, &dir.path().join("own"), &Provenance::default()).unwrap();
    parquet::write_parquet(&set, &dir.path().join("vdbb")).unwrap();
    let lines: String = (0..set.base.rows())
        .map(|row| set.base.row(row).iter().map(f32::to_string).collect::<Vec<_>>().join(",") + "\n")
        .collect();
    std::fs::write(dir.path().join("base.csv"), lines).unwrap();
    let options = |metric| OpenOptions {
        metric,
        queries: fixture("F15_test.parquet"),
        truth: None,
        ..OpenOptions::default()
    };
    let csv = open(&dir.path().join("base.csv"), &options(Some(Metric::L2))).unwrap();
    for found in ["own", "vdbb"].map(|name| open(&dir.path().join(name), &OpenOptions::default()).unwrap()) {
        assert_eq!(found.hashes(), set.hashes(), "{}", found.name);
        assert_eq!(validate::check(&found), Report::default());
    }
    assert_eq!(csv.hashes().base, set.hashes().base);
    assert_eq!(csv.hashes().queries, set.hashes().queries);
    assert_eq!(codes(&validate::check(&csv), Severity::Note), ["no_truth"]);
}

#[test]
fn the_debian_set_with_columns_and_filtered_truth_passes_and_is_described() {
    let Some(base) = shared("debian-50k-384-angular.hdf5") else { return };
    let options = OpenOptions {
        columns: shared("debian-50k-columns.parquet"),
        query_columns: shared("debian-50k-query-columns.parquet"),
        ..OpenOptions::default()
    };
    let mut set = open(&base, &options).unwrap();
    let filtered = OpenOptions { truth: shared("debian-50k-filtered-truth.parquet"), ..options };
    set.filtered = open(&base, &filtered).unwrap().filtered;
    let report = validate::check(&set);
    assert_eq!(codes(&report, Severity::Error), Vec::<&str>::new(), "{report:?}");
    let words = Description::new(&set);
    assert_eq!((words.rows, words.dim, words.filtered.len()), (50_000, 384, 8));
    let norms = words.norms.unwrap();
    assert!((norms.min - 1.0).abs() < 1e-3 && (norms.max - 1.0).abs() < 1e-3, "{norms:?}");
    // As numpy.unique counts them: 49,182 distinct rows, one of them 41 times.
    let duplicates = words.duplicates.unwrap();
    assert_eq!((duplicates.repeats, duplicates.distinct, duplicates.most), (818, 49_182, 41));
    let cat = words.columns.iter().find(|c| c.name == "cat10").unwrap();
    assert_eq!((cat.distinct, cat.missing), (10, 0));
    // Written and read again, nothing is lost: {other} is still filled from the file's values.
    let dir = tempfile::tempdir().unwrap();
    directory::write(&set, &dir.path().join("debian"), &Provenance::default()).unwrap();
    let again = open(&dir.path().join("debian"), &OpenOptions::default()).unwrap();
    assert_eq!(again.hashes(), set.hashes());
    assert_eq!(validate::check(&again).findings, report.findings);
}
