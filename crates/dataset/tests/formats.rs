//! Files made on the spot: npy, texmex and big-ann, with separate queries and truth.

mod common;

use common::{fbin, shared};
use dataset::{OpenOptions, open};
use std::{
    fs,
    path::{Path, PathBuf},
};
use types::{Element, Metric};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Place(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

fn message(path: &Path, options: &OpenOptions) -> String {
    let message = open(path, options).unwrap_err().to_string();
    assert!(!message.contains('\n'), "one line: {message}");
    message
}

fn with_truth(queries: &Path, truth: &Path) -> OpenOptions {
    OpenOptions { queries: Some(queries.to_owned()), truth: Some(truth.to_owned()), ..OpenOptions::default() }
}

fn words(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn npy(descr: &str, fortran: bool, shape: &str, body: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let mut text = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}");
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let length = (text.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes(), body].concat()
}

#[test]
fn npy_of_every_kind() {
    let place = Place::new();
    let halves: Vec<u8> = [0x3c00_u16, 0xc000].iter().flat_map(|h| h.to_le_bytes()).collect();
    let doubles: Vec<u8> = [1.0_f64, -2.0].iter().flat_map(|d| d.to_le_bytes()).collect();
    let big: Vec<u8> = [1.0_f32, -2.0].iter().flat_map(|d| d.to_be_bytes()).collect();
    for (descr, body, element, expected) in [
        ("'<f2'", &halves[..], Element::F16, [1.0, -2.0]),
        ("'<f8'", &doubles, Element::F32, [1.0, -2.0]),
        ("'>f4'", &big, Element::F32, [1.0, -2.0]),
        ("'|i1'", &[1, 0xfe], Element::I8, [1.0, -2.0]),
        ("'|u1'", &[1, 0xfe], Element::U8, [1.0, 254.0]),
        ("'|b1'", &[1, 0], Element::Bit, [1.0, 0.0]),
    ] {
        let path = place.file("x.npy", &npy(descr, false, "(1, 2)", body));
        let set = open(&path, &OpenOptions::default()).unwrap();
        assert_eq!((set.base.element(), set.base.row(0).as_ref()), (element, &expected[..]), "{descr}");
        assert!(set.notices.iter().any(|n| n.contains("no queries")), "{:?}", set.notices);
    }
    for (bytes, word) in [
        (npy("'<f4'", true, "(1, 2)", &[0; 8]), "ascontiguousarray"),
        (npy("'<f4'", false, "(2,)", &[0; 8]), "1 dimensions"),
        (npy("'<f4'", false, "(1, 3)", &[0; 8]), "140"),
        (npy("'<c8'", false, "(1, 1)", &[0; 8]), "<c8"),
        (npy("[('a', '<f4')]", false, "(1,)", &[0; 4]), "cannot be read"),
    ] {
        let text = message(&place.file("x.npy", &bytes), &OpenOptions::default());
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(message(&place.file("x.npz", b"PK\x03\x04"), &OpenOptions::default()).contains("npz"));
}

#[test]
fn truth_in_each_of_its_layouts() {
    let place = Place::new();
    let base = place.file("a.fbin", &fbin(10, 3));
    let queries = place.file("q.fbin", &fbin(2, 3));
    let ids = [4, 2, 9, 0, -1, -1];
    let distances: Vec<u8> =
        [0.5_f32, 1.0, 2.0, 0.25, 0.0, 0.0].iter().flat_map(|d| d.to_le_bytes()).collect();
    let header = words(&[2, 3]);
    let files = [
        ("t.ibin", [&header[..], &words(&ids)].concat(), false),
        ("t.bin", [&header[..], &words(&ids), &distances].concat(), true),
        ("t.gt", [&header[..], &words(&ids), &distances].concat(), true),
        ("t.ivecs", words(&[3, 4, 2, 9, 3, 0, -1, -1]), false),
        ("t.npy", npy("'<i4'", false, "(2, 3)", &words(&ids)), false),
    ];
    for (name, bytes, known) in &files {
        let truth = place.file(name, bytes);
        let set = open(&base, &with_truth(&queries, &truth)).unwrap();
        let truth = set.truth.unwrap();
        let rows = |query| truth.of(query).iter().map(|n| n.row).collect::<Vec<_>>();
        assert_eq!((rows(0), rows(1)), (vec![4, 2, 9], vec![0]), "{name}");
        assert_eq!(truth.of(0)[1].distance.is_nan(), !known, "{name}");
        assert!(!known || truth.of(0)[1].distance == 1.0);
    }
    let refused = |name: &str, bytes: &[u8]| message(&base, &with_truth(&queries, &place.file(name, bytes)));
    // Range truth: counts 1 and 2, three ids, three distances.
    let range = [words(&[2, 3, 1, 2, 4, 2, 9]), distances[..12].to_vec()].concat();
    assert!(refused("r.bin", &range).contains("range truth"));
    assert!(refused("r.bin", &words(&[2, 3, 1])).contains("32 bytes"));
    assert!(refused("r.ibin", &words(&[1, 3, 1, 2, 3])).contains("1 of 2 queries"));
    assert!(refused("r.ivecs", &words(&[1, 10, 1, 3])).contains("up to 10"));
    assert!(refused("r.ivecs", &words(&[1, -2, 1, 3])).contains("-2"));
    let floats = npy("'<f4'", false, "(2, 1)", &[0; 8]);
    assert!(refused("r.npy", &floats).contains("row numbers"));
    assert!(message(&files_of(&place, "t.bin"), &OpenOptions::default()).contains("truth file"));
}

fn files_of(place: &Place, name: &str) -> PathBuf {
    place.0.path().join(name)
}

#[test]
fn queries_and_truth_beside_a_texmex_base_are_found() {
    let place = Place::new();
    let record =
        |values: [f32; 2]| [words(&[2]), values.iter().flat_map(|v| v.to_le_bytes()).collect()].concat();
    let base = place.file("sift_base.fvecs", &[record([0.0, 1.0]), record([2.0, 3.0])].concat());
    place.file("sift_query.fvecs", &record([2.0, 2.0]));
    place.file("sift_groundtruth.ivecs", &words(&[1, 1]));
    let set = open(&base, &OpenOptions::default()).unwrap();
    assert_eq!(set.base.row(1).as_ref(), [2.0, 3.0]);
    assert_eq!((set.queries.rows(), set.truth.unwrap().of(0)[0].row), (1, 1));
    assert_eq!(set.notices.len(), 2, "what was taken is said: {:?}", set.notices);
    let limited = open(&base, &OpenOptions { limit: Some(1), ..OpenOptions::default() }).unwrap();
    assert_eq!((limited.base.rows(), limited.truth.is_none()), (1, true));
    let bvecs = place.file("b.bvecs", &[3, 0, 0, 0, 7, 8, 9, 3, 0, 0, 0, 1, 2, 255]);
    let set = open(&bvecs, &OpenOptions::default()).unwrap();
    assert_eq!((set.base.element(), set.base.row(1).as_ref()), (Element::U8, &[1.0, 2.0, 255.0][..]));
}

#[test]
fn hamming_packs_bytes_of_0_and_1_and_refuses_others() {
    let place = Place::new();
    let bin = |body: &[u8]| [words(&[2, 9]), body.to_vec()].concat();
    let hamming = OpenOptions { metric: Some(Metric::Hamming), ..OpenOptions::default() };
    let mut body = [0; 18];
    (body[0], body[8], body[17]) = (1, 1, 1);
    let set = open(&place.file("a.u8bin", &bin(&body)), &hamming).unwrap();
    assert_eq!((set.base.element(), set.base.dim()), (Element::Bit, 9));
    assert_eq!((set.base.row_bytes(0), set.base.row_bytes(1)), (&[0x80, 0x80][..], &[0, 0x80][..]));
    body[12] = 3;
    let text = message(&place.file("a.u8bin", &bin(&body)), &hamming);
    assert!(text.contains("row 1") && text.contains("component 3"), "{text}");
}

#[test]
fn content_that_is_not_what_the_ending_says() {
    let place = Place::new();
    for (name, bytes, word) in [
        ("a.hdf5", &b"<!DOCTYPE html><html>403</html>"[..], "web page"),
        ("a.hdf5", b"", "empty"),
        ("a.hdf5", b"PAR1....", "parquet"),
        ("a.parquet", b"\x89HDF\r\n\x1a\n", "HDF5"),
        ("a.npy", b"\x1f\x8b\x08\x00", "compressed"),
        ("a.csv", b"\x89HDF\r\n\x1a\n", "HDF5"),
        ("a.fbin", b"<html><body>gone</body></html>", "web page"),
        ("a.fbin", b"abc", "3 bytes"),
        ("a.fbin", &[0; 8], "no data"),
        ("a.fvecs", &[0; 8], "dimension 0"),
        ("noending", b"abc", "no ending"),
    ] {
        let text = message(&place.file(name, bytes), &OpenOptions::default());
        assert!(text.contains(word), "{name} {word}: {text}");
    }
    let missing = message(&place.0.path().join("missing.fbin"), &OpenOptions::default());
    assert!(missing.contains("missing.fbin"), "{missing}");
    let zero = OpenOptions { limit: Some(0), ..OpenOptions::default() };
    assert!(message(&place.file("a.fbin", &fbin(2, 2)), &zero).contains("limit"));
}

#[test]
fn what_cannot_be_mapped_is_streamed_once_and_found_again() {
    let place = Place::new();
    let cache = place.0.path().join("cache");
    // 80 MB of float32 out of 160 MB of float64: more than is kept in memory.
    let (rows, dim) = (200_000_usize, 100_usize);
    let body: Vec<u8> = (0..rows * dim).flat_map(|i| ((i % 4096) as f64 / 8.0).to_le_bytes()).collect();
    let path = place.file("large.npy", &npy("'<f8'", false, "(200000, 100)", &body));
    let options = OpenOptions { cache_dir: Some(cache.clone()), ..OpenOptions::default() };
    let first = open(&path, &options).unwrap();
    let flat: Vec<_> = fs::read_dir(&cache).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(flat.len(), 1, "{flat:?}");
    let made = fs::metadata(&flat[0]).unwrap().modified().unwrap();
    let again = open(&path, &options).unwrap();
    assert_eq!(fs::metadata(&flat[0]).unwrap().modified().unwrap(), made, "not written a second time");
    assert_eq!(first.notices, again.notices);
    assert_eq!(again.base.row(199_999)[99], ((rows * dim - 1) % 4096) as f32 / 8.0);
    assert_eq!(first.hashes(), again.hashes());
    let memory = open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(memory.hashes(), first.hashes());
}

#[test]
fn the_shared_sets_open_with_their_truth_and_columns() {
    for (name, rows, dim) in
        [("debian-50k-384-angular.hdf5", 50_000, 384), ("glove-200k-50-angular.hdf5", 200_000, 50)]
    {
        let Some(path) = shared(name) else { continue };
        let mut options = OpenOptions::default();
        if rows == 50_000 {
            options.columns = shared("debian-50k-columns.parquet");
            options.query_columns = shared("debian-50k-query-columns.parquet");
        }
        let set = open(&path, &options).unwrap();
        assert_eq!((set.base.rows(), set.base.dim(), set.queries.rows()), (rows, dim, 1000), "{name}");
        assert_eq!((set.metric, set.base.as_f32().is_some()), (Some(Metric::Cosine), true));
        assert_eq!(set.columns.as_ref().map(types::Columns::rows), options.columns.map(|_| rows));
        let truth = set.truth.as_ref().unwrap();
        assert_eq!((truth.depth(), truth.queries()), (100, 1000));
        for query in [0, 999] {
            let asked = set.queries.row(query);
            let norm = |v: &[f32]| v.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
            for neighbour in truth.of(query) {
                let row = set.base.row(neighbour.row as usize);
                let dot: f64 = asked.iter().zip(row.iter()).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                let distance = 1.0 - dot / (norm(&asked) * norm(&row));
                assert!((distance - neighbour.distance).abs() < 1e-5, "{name}, query {query}");
            }
        }
    }
}

#[test]
fn case_40_base_queries_and_truth_in_three_parquet_files_with_ids_of_their_own() {
    let Some(base) = common::fixture("F15_ids_from_1000.parquet") else { return };
    let (queries, truth) =
        (base.with_file_name("F15_test.parquet"), base.with_file_name("F15_neighbors.parquet"));
    let set = open(&base, &with_truth(&queries, &truth)).unwrap();
    let truth = set.truth.as_ref().unwrap();
    assert_eq!((set.queries.rows(), truth.queries(), truth.depth()), (5, 5, 20));
    let distance = |query: usize, row: usize| -> f32 {
        set.queries.row(query).iter().zip(set.base.row(row).iter()).map(|(a, b)| (a - b).powi(2)).sum()
    };
    for query in 0..5 {
        let listed: Vec<f32> = truth.of(query).iter().map(|n| distance(query, n.row as usize)).collect();
        assert!(listed.is_sorted(), "query {query}: {listed:?}");
        let nearest = (0..200).map(|row| distance(query, row)).fold(f32::MAX, f32::min);
        assert_eq!(listed[0], nearest);
    }
}
