//! One small data set in every storage that h5py writes (tests/data/make_hdf5.py): the same numbers
//! come out of each.

mod common;

use dataset::{Dataset, DatasetError, OpenOptions, open};
use std::path::{Path, PathBuf};
use types::{Element, Metric};

const DIM: usize = 8;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hdf5").join(format!("{name}.hdf5"))
}

fn opened(name: &str) -> Dataset {
    open(&path(name), &OpenOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn refused(name: &str) -> String {
    let error: DatasetError = open(&path(name), &OpenOptions::default()).unwrap_err();
    let message = error.to_string();
    assert!(!message.contains('\n') && message.len() < 500, "one line, not a page: {message}");
    message
}

/// The formula of make_hdf5.py.
fn number(row: usize, column: usize, kind: char) -> f32 {
    let raw = ((row * DIM + column) * 37 % 101) as f32;
    match kind {
        'f' => (raw - 50.0) / 4.0,
        'i' => raw - 50.0,
        'u' => raw,
        _ => raw % 2.0,
    }
}

fn check(set: &Dataset, name: &str, kind: char) {
    assert_eq!((set.base.rows(), set.base.dim(), set.queries.rows()), (60, DIM, 5), "{name}");
    for row in 0..60 {
        let expected: Vec<f32> = (0..DIM).map(|column| number(row, column, kind)).collect();
        assert_eq!(set.base.row(row).as_ref(), expected, "{name}, row {row}");
    }
    for row in 0..5 {
        let expected: Vec<f32> = (0..DIM).map(|column| number(row + 100, column, kind)).collect();
        assert_eq!(set.queries.row(row).as_ref(), expected, "{name}, query {row}");
    }
    let truth = set.truth.as_ref().unwrap_or_else(|| panic!("{name}: no truth"));
    for query in 0..5 {
        assert_eq!(truth.of(query).len(), 7, "{name}");
        for neighbour in truth.of(query) {
            let (a, b) = (set.queries.row(query), set.base.row(neighbour.row as usize));
            let squares: f64 = a.iter().zip(b.iter()).map(|(a, b)| f64::from(a - b).powi(2)).sum();
            assert!((squares.sqrt() - neighbour.distance).abs() < 1e-4, "{name}, query {query}");
        }
    }
}

#[test]
fn every_chunking_filter_and_library_version() {
    let mut names: Vec<String> =
        ["one_chunk", "shuffle_fletcher", "lzf", "userblock"].map(str::to_owned).into();
    for version in ["earliest", "latest", "v108", "v110"] {
        for kind in ["contiguous", "gzip", "split_rows", "unlimited", "unlimited_both"] {
            names.push(format!("{kind}_{version}"));
        }
    }
    let first = opened(&names[0]).hashes().clone();
    for name in &names {
        let set = opened(name);
        check(&set, name, 'f');
        assert_eq!(set.hashes(), &first, "{name}: the hash does not depend on the storage");
        assert!(set.notices.is_empty(), "{name}: {:?}", set.notices);
    }
    check(&opened("scaleoffset"), "scaleoffset", 'i');
}

#[test]
fn every_number_type_in_both_byte_orders() {
    for (name, element, kind) in [
        ("big_f4", Element::F32, 'f'),
        ("big_f8", Element::F32, 'f'),
        ("f8", Element::F32, 'f'),
        ("f2", Element::F16, 'f'),
        ("big_f2", Element::F16, 'f'),
        ("i1", Element::I8, 'i'),
        ("u1", Element::U8, 'u'),
        ("i2", Element::F32, 'i'),
        ("big_i2", Element::F32, 'i'),
        ("i4", Element::F32, 'i'),
        ("i8", Element::F32, 'i'),
        ("u2", Element::F32, 'u'),
        ("u4", Element::F32, 'u'),
        ("u8", Element::F32, 'u'),
        ("bool", Element::Bit, 'b'),
    ] {
        let set = opened(&format!("type_{name}"));
        check(&set, name, kind);
        assert_eq!(set.base.element(), element, "{name}");
        let converted = element == Element::F32 && name != "big_f4";
        assert_eq!(set.notices.len(), if converted { 2 } else { 0 }, "{name}: {:?}", set.notices);
        assert!(set.notices.iter().all(|n| n.ends_with("all values exactly")), "{:?}", set.notices);
    }
    for name in ["i8", "big_i4", "u4", "u8", "i2"] {
        check(&opened(&format!("ids_{name}")), name, 'f');
    }
}

#[test]
fn every_way_to_write_the_metric() {
    for name in ["fixed", "fixed_padded", "array", "text_array", "wrapped", "many", "vlen_latest"] {
        let set = opened(&format!("attr_{name}"));
        assert_eq!(set.metric, Some(Metric::L2), "{name}");
        check(&set, name, 'f');
    }
    assert_eq!(opened("attr_number").metric, None);
    check(&opened("neighbours_of_the_arrays"), "odd objects beside the arrays", 'f');
}

#[test]
fn packed_bits_with_distances_as_fractions() {
    let set = opened("special_packed_bits");
    assert_eq!((set.base.element(), set.base.dim(), set.base.rows()), (Element::Bit, 10, 60));
    let truth = set.truth.as_ref().unwrap();
    for query in 0..5 {
        for neighbour in truth.of(query) {
            let (a, b) = (set.queries.row(query), set.base.row(neighbour.row as usize));
            let differing = a.iter().zip(b.iter()).filter(|(a, b)| a != b).count();
            assert!((neighbour.distance - differing as f64).abs() < 1e-9, "query {query}");
        }
    }
    assert!(set.notices.iter().any(|n| n.contains("fractions")), "{:?}", set.notices);
}

#[test]
fn what_is_no_dense_set_is_refused_in_one_line_that_names_it() {
    for (name, words) in [
        ("special_sparse_dot", &["sparse", "inner_product", "90 rows"][..]),
        ("special_never_written", &["train"]),
        ("special_huge_unwritten", &["never filled"]),
        ("special_widths", &["8", "7", "do not belong together"]),
        ("special_few_truth", &["3 of 5"]),
        ("special_float_truth", &["float32", "row numbers"]),
        ("special_text", &["text"]),
        ("special_unknown_metric", &["manhattan", "cosine"]),
        ("special_empty", &["train", "no array"]),
    ] {
        let message = refused(name);
        for word in words {
            assert!(message.contains(word), "{name}: {message}");
        }
    }
}

#[test]
fn an_option_overrules_the_file_with_a_notice() {
    let options = OpenOptions { metric: Some(Metric::Cosine), ..OpenOptions::default() };
    let set = open(&path("contiguous_latest"), &options).unwrap();
    assert_eq!(set.metric, Some(Metric::Cosine));
    assert!(set.notices.iter().any(|n| n.contains("euclidean") && n.contains("cosine")), "{:?}", set.notices);
}
