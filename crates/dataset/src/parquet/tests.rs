//! The layout of VectorDBBench, and what is written read back.

use super::*;
use crate::FilteredTruth;
use std::fs;
use types::{FilterTemplate, Id, Neighbour, Truth, Value};

const ROWS: usize = 1000;

/// A set whose ids are shuffled row numbers, as in `shuffle_train`.
fn example(dir: &Path) -> Dataset {
    let base = Vectors::from_f32((0..ROWS * 2).map(|i| i as f32).collect(), ROWS, 2).unwrap();
    let queries = Vectors::from_f32(vec![1.0, 2.0, 5.0, 6.0], 2, 2).unwrap();
    let mut set = Dataset::new("layout", base, queries);
    set.ids = Ids::Ints((0..ROWS as i64).map(|row| row * 7 % ROWS as i64).collect());
    set.metric = Some(Metric::Cosine);
    set.truth = Some(lists(&[&[0, 1], &[5, 4]], ROWS as u64));
    write_parquet(&set, &dir.join("set")).unwrap();
    set
}

fn lists(rows: &[&[u32]], matching: u64) -> Truth {
    let mut truth = Truth::new(2);
    for list in rows {
        truth.push(list.iter().map(|&row| Neighbour { row, distance: f64::from(row) }), matching);
    }
    truth
}

#[test]
fn what_is_written_is_read_back_with_metric_ids_and_truth() {
    let dir = tempfile::tempdir().unwrap();
    let mut set = example(dir.path());
    let found = open(&dir.path().join("set"), &OpenOptions::default()).unwrap();
    assert_eq!(found.hashes(), set.hashes());
    assert_eq!((found.ids, found.metric, found.name.as_str()), (set.ids.clone(), set.metric, "set"));
    assert_eq!(found.truth, set.truth);
    let data = ColumnData::Int((0..ROWS as i64).map(Some).collect());
    set.columns = Columns::new(vec![Column { name: "n".to_owned(), data }]).ok();
    let filter = FilterTemplate::parse("n < 20").ok();
    let truth = lists(&[&[0, 1], &[5, 4]], 20);
    set.filtered = vec![FilteredTruth { name: "few".to_owned(), filter, values: Vec::new(), truth }];
    write_parquet(&set, &dir.path().join("more")).unwrap();
    let found = open(&dir.path().join("more"), &OpenOptions::default()).unwrap();
    assert_eq!(found.columns, set.columns);
    assert_eq!(found.filtered[0].truth, set.filtered[0].truth);
    assert_eq!(found.filtered[0].filter, set.filtered[0].filter);
}

#[test]
fn filters_of_vectordbbench_are_named_by_what_they_remove_or_keep() {
    for (case, filter, words) in [
        ("int_99p", "id >= 990", "keeps 1.0 %"),
        ("int_99.5p", "id >= 995", "keeps 0.5 %"),
        ("int_0.1p", "id >= 1", "keeps 99.9 %"),
        ("head_1p", "id >= 10", "keeps 99.0 %"),
        ("tail_1p", "id >= 990", "keeps 1.0 %"),
        ("labels_label_1p", "labels = 'label_1p'", "keeps 1 %"),
    ] {
        let (found, notice) = truth::case_filter(case, ROWS).unwrap();
        assert_eq!(found, filter, "{case}");
        assert!(notice.contains(words), "{case}: {notice}");
    }
    // Exact where 0.29 * 100 as floats is not.
    assert_eq!(truth::case_filter("int_29p", 100).unwrap().0, "id >= 29");
    for odd in ["int_p", "int_101p", "int_1.23p", "other"] {
        assert_eq!(truth::case_filter(odd, ROWS), None, "{odd}");
    }
}

#[test]
fn the_layout_with_shuffled_rows_labels_by_id_and_filtered_truth() {
    let dir = tempfile::tempdir().unwrap();
    let set = example(dir.path());
    let path = dir.path().join("set");
    fs::rename(path.join("train.parquet"), path.join("shuffle_train.parquet")).unwrap();
    let label = |id: usize| Some(if id < 10 { "label_1p" } else { "label_99p" }.to_owned());
    let data = ColumnData::Text((0..ROWS).map(label).collect());
    let labels = Columns::new(vec![Column { name: "labels".to_owned(), data }]).unwrap();
    write_columns(&path.join("scalar_labels.parquet"), &labels).unwrap();
    let row_of = |id: i64| (0..ROWS as u32).find(|row| set.ids.get(*row as usize) == Id::Int(id)).unwrap();
    let kept = lists(&[&[row_of(995), row_of(991)], &[row_of(999), row_of(990)]], 10);
    write_truth(&path.join("neighbors_int_99p.parquet"), &kept, &set.ids).unwrap();
    let labelled = lists(&[&[row_of(3)], &[row_of(9)]], 10);
    write_truth(&path.join("neighbors_labels_label_1p.parquet"), &labelled, &set.ids).unwrap();

    let found = open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(found.filtered.len(), 2);
    let columns = found.columns.as_ref().unwrap();
    for row in [0, 1, 500] {
        let Id::Int(id) = found.ids.get(row) else { panic!() };
        assert_eq!(columns.get("labels").unwrap().value(row).map(|v| v.plain()), label(id as usize));
        assert_eq!(columns.get("id").unwrap().value(row), Some(Value::Int(id)));
    }
    for case in &found.filtered {
        let rows = case.filters(columns, None).unwrap().of(0).unwrap().rows(columns).unwrap();
        assert_eq!((rows.count(), case.truth.matching(1)), (10, 10), "{}", case.name);
        for query in 0..2 {
            assert!(case.truth.of(query).iter().all(|n| rows.contains(n.row as usize)), "{}", case.name);
        }
    }
    assert!(found.notices.iter().any(|n| n.contains("removed (99 %)")), "{:?}", found.notices);
}

#[test]
fn truth_lines_are_matched_by_query_id_where_they_can_be() {
    let dir = tempfile::tempdir().unwrap();
    let set = example(dir.path());
    let path = dir.path().join("set");
    // The lines of queries 1 and 0, in this order.
    let lines = lists(&[&[5, 4], &[0, 1]], ROWS as u64);
    let swapped = Ids::Ints(vec![1, 0]);
    let list = |line: usize| lines.of(line).iter().map(|n| n.row as usize).collect::<Vec<_>>();
    write::write_lines(&path.join("neighbors.parquet"), &swapped, &set.ids, &list).unwrap();
    let found = open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(found.truth.unwrap().of(0)[1].row, 1);
}

#[test]
fn metadata_is_matched_by_id_where_it_can_be() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("columns.parquet");
    let column = |name: &str, values: [i64; 3]| Column {
        name: name.to_owned(),
        data: ColumnData::Int(values.map(Some).to_vec()),
    };
    let columns = Columns::new(vec![column("id", [7, 5, 6]), column("n", [70, 50, 60])]).unwrap();
    write_columns(&path, &columns).unwrap();
    let numbers = |ids: Ids| -> Vec<Option<Value>> {
        let found = read_columns(&path, &ids).unwrap();
        (0..found.rows()).map(|row| found.get("n").unwrap().value(row)).collect()
    };
    let ints =
        |values: &[i64]| -> Vec<Option<Value>> { values.iter().map(|v| Some(Value::Int(*v))).collect() };
    assert_eq!(numbers(Ids::Ints(vec![5, 6])), ints(&[50, 60]));
    assert_eq!(numbers(Ids::Texts(vec!["6".to_owned(), "7".to_owned()])), ints(&[60, 70]));
    assert_eq!(numbers(Ids::RowNumbers(3)), ints(&[70, 50, 60]), "other ids: line i belongs to row i");
    let error = read_columns(&path, &Ids::RowNumbers(4)).unwrap_err().to_string();
    assert!(error.contains("3 rows of metadata for 4 vectors"), "{error}");
}
