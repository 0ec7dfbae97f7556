use super::*;
use std::fs;

fn opened(text: &str, options: &OpenOptions) -> Result<Dataset, DatasetError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.csv");
    fs::write(&path, text).unwrap();
    open(&path, options)
}

#[test]
fn numeric_columns_with_header_id_and_metadata() {
    let set = opened("id,a,b,kind\n10,1,2,x\n7,3,4.5,y\n", &OpenOptions::default()).unwrap();
    assert_eq!((set.base.rows(), set.base.dim()), (2, 2));
    assert_eq!(set.base.row(1).as_ref(), [3.0, 4.5]);
    assert_eq!(set.ids, Ids::Ints(vec![10, 7]));
    let columns = set.columns.unwrap();
    assert_eq!(columns.get("kind").unwrap().value(1), Some(types::Value::Text("y".to_owned())));
}

#[test]
fn no_header_semicolons_and_all_rows_are_data() {
    let set = opened("1;2\n3;4\n", &OpenOptions::default()).unwrap();
    assert_eq!((set.base.rows(), set.base.row(0).as_ref()), (2, &[1.0, 2.0][..]));
    assert_eq!(set.ids, Ids::RowNumbers(2));
}

#[test]
fn a_column_of_lists_leaves_the_others_as_metadata() {
    for cell in ["\"[1, 2, 3]\"", "1 2 3", "\"[1 2 3]\""] {
        let set =
            opened(&format!("name,n,flag,v\na,5,true,{cell}\nb,,false,{cell}\n"), &OpenOptions::default())
                .unwrap();
        assert_eq!(set.base.row(1).as_ref(), [1.0, 2.0, 3.0], "{cell}");
        let columns = set.columns.unwrap();
        assert_eq!(columns.get("n").unwrap().data, ColumnData::Int(vec![Some(5), None]));
        assert_eq!(columns.get("flag").unwrap().data, ColumnData::Bool(vec![Some(true), Some(false)]));
    }
    let named = OpenOptions { id_column: Some("name".to_owned()), ..OpenOptions::default() };
    let set = opened("name,v\na,1 2\nb,3 4\n", &named).unwrap();
    assert_eq!(set.ids, Ids::Texts(vec!["a".to_owned(), "b".to_owned()]));
}

#[test]
fn bad_rows_are_named_with_what_is_wrong() {
    let error = opened("a,b\n1,2\n3\n4,x\n5,6,7\n", &OpenOptions::default()).unwrap_err().to_string();
    for part in ["1 (1 values)", "2 (\"x\" is no number)", "3 (3 cells, expected 2)", "3 bad"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    for (text, part) in [("", "empty"), ("a,b\n", "no rows"), ("a,b\nx,y\n", "no numbers")] {
        let error = opened(text, &OpenOptions::default()).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn metadata_is_matched_by_id_or_by_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("columns.csv");
    fs::write(&path, "id,n\n7,70\n5,50\n6,60\n").unwrap();
    let found = read_columns(&path, &Ids::Ints(vec![5, 6, 7])).unwrap();
    assert_eq!(found.get("n").unwrap().data, ColumnData::Int(vec![Some(50), Some(60), Some(70)]));
    let found = read_columns(&path, &Ids::Ints(vec![1, 2, 3])).unwrap();
    assert_eq!(found.get("n").unwrap().data, ColumnData::Int(vec![Some(70), Some(50), Some(60)]));
    let error = read_columns(&path, &Ids::RowNumbers(2)).unwrap_err().to_string();
    assert!(error.contains("3 lines") && error.contains("2 vectors"), "{error}");
}
