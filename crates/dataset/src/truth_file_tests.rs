use super::*;
use types::Vectors;

fn set(rows: usize, queries: usize) -> Dataset {
    let vectors = |n: usize| Vectors::from_f32(vec![1.0; n * 2], n, 2).unwrap();
    Dataset::new("made", vectors(rows), vectors(queries))
}

fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, bytes).unwrap();
    (dir, path)
}

fn read_bytes(name: &str, bytes: &[u8], rows: usize, queries: usize) -> Result<TruthFile, DatasetError> {
    let (_dir, path) = file(name, bytes);
    read_truth(&path, &set(rows, queries), &OpenOptions::default())
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

#[test]
fn rows_past_the_base_stay_for_a_check_and_are_refused_for_use() {
    let bytes = words(&[2, 2, 0, 5, 1, 9]);
    let found = read_bytes("t.ibin", &bytes, 4, 2).unwrap().truth.unwrap();
    let rows: Vec<u32> = found.of(1).iter().map(|n| n.row).collect();
    assert_eq!((rows, found.matching(0), found.depth()), (vec![1, 9], 4, 2));
    let (_dir, path) = file("t.ibin", &bytes);
    let error = read(&path, &set(4, 2), None, &OpenOptions::default(), 4).unwrap_err().to_string();
    assert!(error.contains("rows up to 9"), "{error}");
}

#[test]
fn both_forms_of_big_ann_are_read_and_range_truth_is_refused_by_name() {
    let ids = words(&[1, 2, 0, 1]);
    assert!(read_bytes("t.ibin", &ids, 4, 1).unwrap().truth.unwrap().of(0)[0].distance.is_nan());
    let both: Vec<u8> = [ids, 0.5_f32.to_le_bytes().to_vec(), 0.75_f32.to_le_bytes().to_vec()].concat();
    assert_eq!(read_bytes("t.bin", &both, 4, 1).unwrap().truth.unwrap().of(0)[1].distance, 0.75);
    let range = [words(&[2, 3, 1, 2, 0, 1, 2]), words(&[0, 0, 0])].concat();
    let error = read_bytes("t.ibin", &range, 4, 2).unwrap_err().to_string();
    assert!(error.contains("range truth"), "{error}");
    for ending in ["csv", "fbin", "fvecs"] {
        let error = read_bytes(&format!("t.{ending}"), &both, 4, 1).unwrap_err().to_string();
        assert!(error.contains("truth is read from"), "{error}");
    }
}

#[test]
fn our_json_is_read_and_damage_is_an_error() {
    let text = r#"{"metric":"l2","k":2,"filter":"c = 1","base_hash":"ab","lists":[
        {"query":0,"matching":2,"rows":[3,1],"distances":[0.5,null]},{"query":1,"matching":0,"rows":[]}]}"#;
    let found = read_bytes("t.json", text.as_bytes(), 4, 2).unwrap();
    let (truth, name) = (&found.filtered[0].truth, found.filtered[0].name.as_str());
    assert_eq!((truth.depth(), truth.of(0)[0].distance, truth.matching(0)), (2, 0.5, 2));
    assert!(truth.of(0)[1].distance.is_nan() && truth.of(1).is_empty());
    assert_eq!((found.metric, name, found.truth.is_none()), (Some(Metric::L2), "c = 1", true));
    let unfiltered = read_bytes("t.json", text.replace("\"c = 1\"", "null").as_bytes(), 4, 2).unwrap();
    let rows = unfiltered.truth.unwrap().of(0).len();
    assert_eq!((rows, unfiltered.filtered.len()), (2, 0));
    let error = read_bytes("t.json", text.as_bytes(), 4, 3).unwrap_err().to_string();
    assert!(error.contains("2 of 3 queries"), "{error}");
    let beside = r#"{"metric":"l2","k":2}"#;
    let error = read_bytes("t.json", beside.as_bytes(), 4, 2).unwrap_err().to_string();
    assert!(error.contains("not the file beside it"), "{error}");
    // Cut anywhere and with any byte changed it may be refused, and never brings the reader down.
    for at in 0..text.len() {
        assert!(read_bytes("t.json", &text.as_bytes()[..at], 4, 2).is_err());
        let mut bytes = text.as_bytes().to_vec();
        bytes[at] ^= 1 << (at % 8);
        drop(read_bytes("t.json", &bytes, 4, 2));
    }
}
