//! Parquet as others write it: every kind of list, every codec, the fixtures of the case list, and
//! damage.

mod common;

use common::{fixture, shared};
use dataset::{Dataset, DatasetError, OpenOptions, parquet};
use proptest::prelude::*;
use std::{
    fs,
    path::{Path, PathBuf},
};
use types::{ColumnData, Element, Ids, Value};

const ROWS: usize = 30;
const DIM: usize = 4;

fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/parquet").join(format!("{name}.parquet"))
}

fn opened(path: &Path) -> Dataset {
    parquet::open(path, &OpenOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn refused(path: &Path, options: &OpenOptions) -> String {
    let message = parquet::open(path, options).map(|_| ()).unwrap_err().to_string();
    assert!(!message.contains('\n') && message.len() < 600, "one line, not a page: {message}");
    message
}

/// The formula of make_parquet.py.
fn number(row: usize, column: usize) -> f32 {
    ((row * DIM + column) * 37 % 101) as f32 - 50.0
}

fn check(set: &Dataset, name: &str, of: impl Fn(f32) -> f32) {
    assert_eq!((set.base.rows(), set.base.dim()), (ROWS, DIM), "{name}");
    for row in 0..ROWS {
        let expected: Vec<f32> = (0..DIM).map(|column| of(number(row, column))).collect();
        assert_eq!(set.base.row(row).as_ref(), expected, "{name}, row {row}");
    }
    assert_eq!(set.ids, Ids::RowNumbers(ROWS), "{name}");
}

#[test]
fn float32_lists_of_every_kind_and_codec_give_the_same_numbers() {
    let codecs = ["none", "snappy", "gzip", "zstd", "lz4"].map(|c| format!("codec_{c}"));
    let lists = ["page_1", "page_2", "split_bytes", "large_list", "fixed_list", "legacy_names", "required"];
    for name in codecs.into_iter().chain(lists.map(str::to_owned)) {
        let set = opened(&own(&name));
        assert_eq!(set.base.element(), Element::F32, "{name}");
        assert!(set.notices.is_empty(), "{name}: {:?}", set.notices);
        check(&set, &name, |x| x / 2.0);
    }
}

#[test]
fn other_numbers_keep_their_type_or_become_float32_with_a_notice() {
    for (name, element, notices) in [
        ("float64", Element::F32, 1),
        ("float16", Element::F16, 0),
        ("int8", Element::I8, 0),
        ("uint8", Element::U8, 0),
        ("int64", Element::F32, 1),
        ("bool", Element::Bit, 0),
    ] {
        let set = opened(&own(name));
        assert_eq!((set.base.element(), set.notices.len()), (element, notices), "{name}: {:?}", set.notices);
        check(&set, name, |x| match name {
            "float64" | "float16" => x / 2.0,
            "uint8" => x + 50.0,
            "bool" => f32::from(u8::from(x > 0.0)),
            _ => x,
        });
    }
}

#[test]
fn rows_without_a_vector_are_named_by_number() {
    let options = OpenOptions::default();
    for (name, parts) in [
        ("bad_null_inside", &["row 9 (nulls among 3 values)", "\"emb\""][..]),
        ("bad_empty", &["row 0 (0 values)", "no vector of 4 numbers"]),
        ("bad_too_large", &["row 3 (1e39 is more than float32 holds)"]),
    ] {
        let message = refused(&own(name), &options);
        for part in parts {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
}

#[test]
fn columns_of_single_values_are_metadata_and_the_rest_is_said() {
    let set = opened(&own("columns"));
    let columns = set.columns.as_ref().unwrap();
    let value = |name: &str, row: usize| columns.get(name).unwrap().value(row);
    assert_eq!(value("i8", 0), Some(Value::Int(-15)));
    assert_eq!(value("u32", 1), Some(Value::Int(4_294_967_294)));
    assert_eq!((value("text", 4), value("text", 5)), (None, Some(Value::Text("t2".to_owned()))));
    assert_eq!(value("dictionary", 3), Some(Value::Text("d1".to_owned())));
    assert_eq!(value("real", 3), Some(Value::Float(0.75)));
    assert_eq!((value("flag", 3), value("day", 7)), (Some(Value::Bool(false)), Some(Value::Int(7))));
    assert!(columns.get("id").is_none() && columns.get("emb").is_none());
    for word in ["blob", "price", "place"] {
        assert!(set.notices.iter().any(|n| n.contains(word)), "{word}: {:?}", set.notices);
    }
}

#[test]
fn columns_are_found_by_the_names_that_options_give() {
    let with = |vector: Option<&str>, id: Option<&str>| OpenOptions {
        vector_column: vector.map(str::to_owned),
        id_column: id.map(str::to_owned),
        ..OpenOptions::default()
    };
    let set = parquet::open(&own("columns"), &with(Some("emb"), Some("u32"))).unwrap();
    assert_eq!(set.ids.get(2), types::Id::Int(4_294_967_293));
    let message = refused(&own("columns"), &with(Some("embedding"), None));
    assert!(message.contains("embedding") && message.contains("emb (list of float32)"), "{message}");
    let message = refused(&own("columns"), &with(Some("text"), None));
    assert!(message.contains("is text; vectors are lists"), "{message}");
    let message = refused(&own("columns"), &with(None, Some("text")));
    assert!(message.contains("row 4: no id"), "{message}");
    let message = refused(&own("columns"), &with(None, Some("flag")));
    assert!(message.contains("ids are integers or texts"), "{message}");
}

#[test]
fn case_13_two_parts_in_order_by_directory_by_part_and_by_glob() {
    let Some(dir) = fixture("F17_Upper_Dir") else { return };
    let plain = dataset::open(&fixture("F00_good.hdf5").unwrap(), &OpenOptions::default()).unwrap();
    for path in [dir.clone(), dir.join("train-01-of-02.parquet"), dir.join("train-*-of-02.parquet")] {
        let set = opened(&path);
        assert_eq!(set.hashes().base, plain.hashes().base, "{}", path.display());
        assert_eq!((set.ids.clone(), set.name.as_str()), (Ids::RowNumbers(200), "F17_Upper_Dir"));
    }
    let limited = OpenOptions { limit: Some(103), ..OpenOptions::default() };
    let set = parquet::open(&dir, &limited).unwrap();
    assert_eq!((set.base.rows(), set.base.row(102)), (103, plain.base.row(102)));
}

#[test]
fn case_15_float64_strings_and_ragged_rows() {
    let Some(path) = fixture("F14_list_float64.parquet") else { return };
    let set = opened(&path);
    assert_eq!((set.base.rows(), set.base.dim(), set.notices.len()), (200, 8, 1));
    assert!(set.notices[0].contains("float64") && set.notices[0].contains("float32"), "{:?}", set.notices);
    let set = opened(&fixture("F16_string_ids.parquet").unwrap());
    assert_eq!(set.ids.get(199), types::Id::Text("doc-0199".to_owned()));
    let message = refused(&fixture("F18_ragged_null.parquet").unwrap(), &OpenOptions::default());
    assert!(message.contains("rows 13 (7 values), 14 (null)") && message.contains("8 numbers"), "{message}");
}

#[test]
fn case_40_ids_with_gaps_in_any_order_become_row_numbers_in_the_truth() {
    let Some(base) = fixture("F15_ids_from_1000.parquet") else { return };
    let dir = tempfile::tempdir().unwrap();
    fs::copy(base, dir.path().join("train.parquet")).unwrap();
    for (from, to) in [("F15_test.parquet", "test.parquet"), ("F15_neighbors.parquet", "neighbors.parquet")] {
        fs::copy(fixture(from).unwrap(), dir.path().join(to)).unwrap();
    }
    let set = opened(dir.path());
    let plain = dataset::open(&fixture("F00_good.hdf5").unwrap(), &OpenOptions::default()).unwrap();
    let (truth, expected) = (set.truth.as_ref().unwrap(), plain.truth.as_ref().unwrap());
    assert_eq!((truth.queries(), truth.depth(), truth.matching(4)), (5, 20, 200));
    for query in 0..5 {
        for (found, right) in truth.of(query).iter().zip(expected.of(query)) {
            // The rows are shuffled, but vector and neighbour are the same.
            assert_eq!(set.base.row(found.row as usize), plain.base.row(right.row as usize), "query {query}");
        }
    }
    fs::copy(fixture("F16_string_ids.parquet").unwrap(), dir.path().join("train.parquet")).unwrap();
    let message = refused(dir.path(), &OpenOptions::default());
    assert!(message.contains("name no base row") && message.contains("text ids"), "{message}");
}

#[test]
fn case_25_a_truth_of_no_rows_or_of_three_queries_is_refused_with_its_coverage() {
    let Some(base) = fixture("F15_ids_from_1000.parquet") else { return };
    let dir = tempfile::tempdir().unwrap();
    fs::copy(base, dir.path().join("train.parquet")).unwrap();
    fs::copy(fixture("F15_test.parquet").unwrap(), dir.path().join("test.parquet")).unwrap();
    let set = opened(dir.path());
    assert!(set.truth.is_none(), "case 14: no truth is no error and no truth");
    let whole = opened(dir.path());
    let mut part = whole.clone();
    for queries in [0, 3] {
        let mut truth = types::Truth::new(1);
        for row in 0..queries {
            truth.push([types::Neighbour { row, distance: 0.5 }], 200);
        }
        part.truth = Some(truth);
        let out = dir.path().join(format!("out{queries}"));
        parquet::write_parquet(&part, &out).unwrap();
        let message = refused(&out, &OpenOptions::default());
        assert!(message.contains(&format!("covers {queries} of 5 queries")), "{message}");
    }
}

#[test]
fn columns_of_the_debian_set_and_its_filtered_truth() {
    let Some(base) = shared("debian-50k-384-angular.hdf5") else { return };
    let options = OpenOptions {
        columns: shared("debian-50k-columns.parquet"),
        query_columns: shared("debian-50k-query-columns.parquet"),
        truth: shared("debian-50k-filtered-truth.parquet"),
        ..OpenOptions::default()
    };
    let set = dataset::open(&base, &options).unwrap();
    let (columns, asked) = (set.columns.as_ref().unwrap(), set.query_columns.as_ref().unwrap());
    assert_eq!((columns.rows(), asked.rows(), set.filtered.len()), (50_000, 1000, 8));
    assert!(matches!(columns.get("num").unwrap().data, ColumnData::Int(_)));
    for case in &set.filtered {
        assert_eq!(case.truth.queries(), 1000, "{}", case.name);
        let filters = case.filters(columns, Some(asked)).unwrap();
        for query in [0, 17, 999] {
            let rows = filters.of(query).unwrap().rows(columns).unwrap();
            assert_eq!(rows.count() as u64, case.truth.matching(query), "{} {query}", case.name);
            let list = case.truth.of(query);
            assert_eq!(list.len(), rows.count().min(100), "{} {query}", case.name);
            assert!(list.iter().all(|n| rows.contains(n.row as usize)), "{} {query}", case.name);
            assert!(
                list.windows(2).all(|pair| pair[0].distance <= pair[1].distance),
                "{} {query}",
                case.name
            );
        }
    }
}

#[test]
fn case_77_truth_under_one_filter_is_read_with_the_filter() {
    let Some(base) = fixture("F00_good.hdf5") else { return };
    for (share, matching) in [("1pct", 2), ("10pct", 20), ("50pct", 100)] {
        let dir = tempfile::tempdir().unwrap();
        let columns = dir.path().join("columns.csv");
        let lines: String = (0..200).map(|row| format!("{row}\n")).collect();
        fs::write(&columns, format!("n\n{lines}")).unwrap();
        let truth = fixture(&format!("F30_filter_{share}.parquet"));
        let options = OpenOptions { columns: Some(columns), truth, ..OpenOptions::default() };
        let set = dataset::open(&base, &options).unwrap();
        let case = &set.filtered[0];
        assert_eq!(case.filter.as_ref().unwrap().text(), format!("n < {matching}"));
        assert_eq!((case.truth.matching(3), case.truth.of(3).len()), (matching, 10.min(matching as usize)));
    }
}

#[test]
fn a_row_limit_cuts_vectors_and_metadata_alike_and_drops_the_truth() {
    let dir = tempfile::tempdir().unwrap();
    let mut set = opened(&own("codec_none"));
    set.queries = set.base.slice(0..2);
    let mut truth = types::Truth::new(1);
    (0..2).for_each(|row| truth.push([types::Neighbour { row, distance: 0.0 }], ROWS as u64));
    set.truth = Some(truth);
    parquet::write_parquet(&set, &dir.path().join("set")).unwrap();
    let lines: String = (0..ROWS).map(|row| format!("{}\n", row * 10)).collect();
    fs::write(dir.path().join("n.csv"), format!("n\n{lines}")).unwrap();
    for columns in [None, Some(dir.path().join("n.csv"))] {
        let options = OpenOptions { limit: Some(7), columns: columns.clone(), ..OpenOptions::default() };
        let found = dataset::open(&dir.path().join("set"), &options).unwrap();
        assert_eq!((found.base.rows(), found.ids.clone()), (7, Ids::RowNumbers(7)));
        assert_eq!(found.columns.map(|c| c.rows()), columns.map(|_| 7));
        assert!(found.truth.is_none());
        assert_eq!(found.notices.iter().filter(|n| n.contains("truth")).count(), 1, "{:?}", found.notices);
    }
}

fn damaged(bytes: &[u8]) -> Result<Dataset, DatasetError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("train.parquet");
    fs::write(&path, bytes).unwrap();
    parquet::open(&path, &OpenOptions::default())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_truncated_file_is_an_error(cut in 0.0..1.0_f64) {
        let whole = fs::read(own("page_1")).unwrap();
        let length = (whole.len() as f64 * cut) as usize;
        let message = damaged(&whole[..length]).unwrap_err().to_string();
        prop_assert!(message.contains("train.parquet") && !message.contains('\n'), "{}", message);
    }

    #[test]
    fn flipped_bits_never_panic(flips in prop::collection::vec((0.0..1.0_f64, 0..8_u32), 1..6), name in 0..4_usize) {
        let mut bytes = fs::read(own(["page_1", "page_2", "columns", "split_bytes"][name])).unwrap();
        for (place, bit) in flips {
            let at = (bytes.len() as f64 * place) as usize;
            bytes[at] ^= 1 << bit;
        }
        if let Ok(set) = damaged(&bytes) {
            prop_assert!(set.base.rows() <= 1000);
        }
    }
}
