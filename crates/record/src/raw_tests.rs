//! Raw files: what is written comes back, and damage is an error.

use super::*;
use proptest::prelude::*;

/// Three repeats of `queries` queries with `k` ids each; query 1 fails in repeat 0, query 2 has an
/// empty answer.
fn sample(queries: u32, k: u32) -> RawPoint {
    let mut raw = RawPoint::default();
    for repeat in 0..3 {
        for query in 0..queries {
            let sent = u64::from(query) * 100_000 + u64::from(query * 7919 % 1000);
            raw.repeat.push(repeat);
            raw.client.push(query % 2);
            raw.query.push(query);
            raw.due_ns.push(sent);
            raw.sent_ns.push(sent);
            raw.done_ns.push(sent + 90_000 + u64::from(query * 31 % 977));
            let failed = query == 1 && repeat == 0;
            raw.error.push(failed.then(|| "timeout".to_owned()));
            let length = if query == 2 { 0 } else { k };
            if !failed {
                raw.ids
                    .extend((0..length).map(|i| u64::from(query.wrapping_mul(2_654_435_761) % 10_000 + i)));
            }
            raw.ids_end.push(raw.ids.len());
            raw.hits.push((!failed).then_some(length));
            raw.recall.push((!failed).then_some(1.0));
        }
    }
    raw
}

fn written(raw: &RawPoint) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("point.parquet");
    write_raw(&path, raw).unwrap();
    (folder, path)
}

#[test]
fn what_is_written_comes_back_by_query_and_repeat() {
    let raw = sample(50, 10);
    let (folder, path) = written(&raw);
    let back = read_raw(&path).unwrap();
    assert_eq!(back.len(), 150);
    assert_eq!((&back.query[..4], &back.repeat[..4]), (&[0, 0, 0, 1][..], &[0, 1, 2, 0][..]));
    assert_eq!((back.ids_of(0), back.ids_of(149)), (raw.ids_of(0), raw.ids_of(149)));
    assert_eq!((back.ids_of(3), back.error[3].as_deref(), back.hits[3]), (&[][..], Some("timeout"), None));
    assert_eq!((back.ids_of(6), back.recall[6]), (&[][..], Some(1.0)));
    assert_eq!(back.ids_of(148), raw.ids_of(99));
    // Written again, the same comes back; nothing but the file is there.
    write_raw(&path, &back).unwrap();
    assert_eq!(read_raw(&path).unwrap(), back);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let (_folder, path) = written(&RawPoint::default());
    assert_eq!(read_raw(&path).unwrap(), RawPoint::default());
}

#[test]
fn answers_that_repeat_cost_little() {
    let (_folder, path) = written(&sample(10_000, 10));
    // 300,000 ids of 8 bytes and 90,000 times of 8 bytes.
    let size = std::fs::metadata(path).unwrap().len();
    assert!(size < 1_000_000, "{size} bytes");
}

#[test]
fn columns_that_do_not_fit_are_refused_and_leave_no_file() {
    let mut raw = sample(5, 3);
    raw.ids.pop();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("point.parquet");
    let error = write_raw(&path, &raw).unwrap_err().to_string();
    assert!(error.contains("do not fit the"), "{error}");
    let mut raw = sample(5, 3);
    raw.done_ns[2] = u64::MAX;
    let error = write_raw(&path, &raw).unwrap_err().to_string();
    assert!(error.contains("too large"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn damage_is_an_error_or_harmless_never_a_panic(cut in 0.0..1.0f64, at in 0.0..1.0f64, bit in 0u8..8, truncate: bool) {
        let (_folder, path) = written(&sample(20, 5));
        let mut bytes = std::fs::read(&path).unwrap();
        let place = |share: f64, length: usize| (share * length as f64) as usize;
        if truncate {
            bytes.truncate(place(cut, bytes.len()));
        } else {
            let at = place(at, bytes.len() - 1);
            bytes[at] ^= 1 << bit;
        }
        std::fs::write(&path, bytes).unwrap();
        if let Err(error) = read_raw(&path) {
            prop_assert!(!error.to_string().contains('\n'), "{error}");
        } else {
            prop_assert!(!truncate);
        }
    }
}
