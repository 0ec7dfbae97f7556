use super::*;
use crate::FilteredTruth;
use types::{Column, ColumnData, FilterTemplate, Ids, Neighbour, Truth};

/// Ten rows on a line, two queries, a good truth.
fn good() -> Dataset {
    let base = Vectors::from_f32((0..20).map(|i| i as f32 + 1.0).collect(), 10, 2).unwrap();
    let queries = Vectors::from_f32(vec![1.0, 2.0, 5.0, 6.0], 2, 2).unwrap();
    let mut set = Dataset::new("good", base, queries);
    set.metric = Some(Metric::L2);
    set.truth = Some(truth(&[&[(0, 0.0), (1, 2.8)], &[(2, 0.0), (1, 2.8)]]));
    set
}

fn truth(lists: &[&[(u32, f64)]]) -> Truth {
    let mut truth = Truth::new(lists.iter().map(|l| l.len()).max().unwrap());
    for list in lists {
        truth.push(list.iter().map(|&(row, distance)| Neighbour { row, distance }), 10);
    }
    truth
}

fn finding(set: &Dataset, code: &str) -> Finding {
    let report = check(set);
    report.get(code).cloned().unwrap_or_else(|| panic!("no {code} in {report:#?}"))
}

#[test]
fn a_good_set_has_nothing_to_say() {
    assert_eq!(check(&good()), Report::default());
}

#[test]
fn metric_and_element_must_fit() {
    let mut set = good();
    set.metric = None;
    assert!(finding(&set, "no_metric").message.contains("cosine (angular)"));
    set.metric = Some(Metric::Hamming);
    assert_eq!(finding(&set, "hamming_without_bits").severity, Severity::Error);
    set.base = Vectors::from_bytes(vec![0; 10], 10, 2, Element::Bit).unwrap();
    assert_eq!(finding(&set, "element").severity, Severity::Error);
    set.metric = Some(Metric::L2);
    assert_eq!(finding(&set, "bits_without_hamming").severity, Severity::Warning);
}

#[test]
fn non_finite_zero_and_repeated_rows_are_named() {
    let mut set = good();
    let mut values: Vec<f32> = (0..20).map(|i| i as f32 + 1.0).collect();
    values[14] = f32::NAN;
    (values[6], values[7]) = (0.0, 0.0);
    (values[18], values[19]) = (1.0, 2.0);
    set.base = Vectors::from_f32(values, 10, 2).unwrap();
    set.metric = Some(Metric::Cosine);
    assert_eq!(finding(&set, "non_finite_base").rows, [7]);
    assert_eq!(finding(&set, "zero_base").rows, [3]);
    let repeats = finding(&set, "duplicates");
    assert_eq!((repeats.severity, repeats.rows), (Severity::Note, vec![9]));
    set.metric = Some(Metric::L2);
    assert!(check(&set).get("zero_base").is_none(), "zero is a point like any other under l2");
    set.queries = Vectors::from_f32(vec![1.0, 2.0, f32::INFINITY, 0.0], 2, 2).unwrap();
    assert_eq!(finding(&set, "non_finite_query").rows, [1]);
}

#[test]
fn ids_and_columns_belong_to_the_rows() {
    let mut set = good();
    set.ids = Ids::Ints(vec![0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    let repeated = finding(&set, "repeated_ids");
    assert!(repeated.message.contains("10 rows, 5 distinct ids"), "{}", repeated.message);
    assert_eq!(repeated.rows, [5, 6, 7, 8, 9]);
    set.ids = Ids::RowNumbers(9);
    assert!(finding(&set, "ids_length").message.contains("9 ids for 10 rows"));
    let column = Column { name: "n".to_owned(), data: ColumnData::Int(vec![Some(1); 8]) };
    set.columns = Columns::new(vec![column]).ok();
    assert!(finding(&set, "columns_length").message.contains("8 rows, the vectors 10"));
}

#[test]
fn truth_is_held_against_rows_queries_and_order() {
    let mut set = good();
    set.truth = Some(truth(&[&[(0, 0.0), (1, 2.8)]]));
    assert!(finding(&set, "truth_coverage").message.contains("1 of 2 queries"));
    set.truth = Some(truth(&[&[(0, 0.0), (12, 2.8)], &[(2, 0.0), (1, 2.8)]]));
    let outside = finding(&set, "truth_out_of_range");
    assert!(
        outside.message.contains("up to 12") && outside.message.contains("10 rows"),
        "{}",
        outside.message
    );
    set.truth = Some(truth(&[&[(0, 0.0), (1, 2.8)], &[(2, 0.0), (2, 0.0)]]));
    assert_eq!(finding(&set, "truth_repeats").rows, [1]);
    set.truth = Some(truth(&[&[(0, 3.0), (1, 2.0), (2, 4.0)], &[(2, 0.0), (1, 2.8), (3, 2.9)]]));
    assert_eq!(finding(&set, "truth_order").rows, [0]);
    set.truth = Some(truth(&[&[(0, 0.9), (1, 0.8)], &[(2, 0.9), (1, 0.7)]]));
    assert_eq!(finding(&set, "truth_similarities").severity, Severity::Warning);
    set.truth = Some(truth(&[&[(0, 1.0), (1, 0.999_999_9)], &[(2, 0.0), (1, f64::NAN)]]));
    assert_eq!(check(&set), Report::default(), "rounding and missing distances are no fault");
    set.truth = Some(truth(&[&[(0, 0.0), (1, 2.8)], &[]]));
    assert_eq!(finding(&set, "truth_short").rows, [1]);
    set.truth = None;
    assert_eq!(finding(&set, "no_truth").severity, Severity::Note);
}

#[test]
fn filtered_truth_is_held_against_the_columns() {
    let mut set = good();
    let numbers = ColumnData::Int((0..10).map(Some).collect());
    set.columns = Columns::new(vec![Column { name: "n".to_owned(), data: numbers }]).ok();
    let case = |filter: &str, rows: [u32; 2], matching: u64| {
        let mut truth = Truth::new(2);
        for _query in 0..2 {
            truth.push(rows.map(|row| Neighbour { row, distance: f64::NAN }), matching);
        }
        let filter = FilterTemplate::parse(filter).ok();
        vec![FilteredTruth { name: "case".to_owned(), filter, values: Vec::new(), truth }]
    };
    set.filtered = case("n < 3", [0, 2], 3);
    assert_eq!(check(&set), Report::default());
    set.filtered = case("n < 3", [0, 3], 3);
    assert_eq!(finding(&set, "filter_violations").rows, [0, 1]);
    set.filtered = case("n < 3", [0, 2], 4);
    assert!(finding(&set, "filter_matching").message.contains("4 rows match query 0, the columns say 3"));
    set.filtered = case("m < 3", [0, 2], 4);
    assert!(finding(&set, "filter_unusable").message.contains("\"m\""));
    set.columns = None;
    assert_eq!(finding(&set, "filter_unchecked").severity, Severity::Warning);
}

#[test]
fn a_report_serializes_with_errors_first() {
    let mut set = good();
    set.truth = None;
    set.metric = None;
    let report = check(&set);
    assert!(!report.is_valid() && report.findings[0].severity == Severity::Error);
    let json = serde_json::to_string(&report).unwrap();
    assert!(json.contains("\"severity\":\"error\",\"code\":\"no_metric\""), "{json}");
}
