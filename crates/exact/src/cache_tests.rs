//! What is kept comes back; what is damaged does not.

use super::*;

fn truth() -> Truth {
    let mut truth = Truth::new(3);
    let n = |row, distance| Neighbour { row, distance };
    truth.push([n(4, 0.5), n(1, 0.75), n(9, 1.0)], 10);
    truth.push([], 0);
    truth.push([n(7, -1.25)], 1);
    truth
}

#[test]
fn a_deeper_truth_serves_a_smaller_k_and_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let cache = TruthCache::new(directory.path().join("new"));
    let key = TruthKey::new("b", "q", Metric::L2);
    assert_eq!(cache.load(&key, 1), None);
    let (first, kept) = cache.get_or_compute(&key, 3, || Ok(truth())).unwrap();
    assert_eq!((first, kept), (truth(), false));
    let (smaller, kept) = cache.get_or_compute(&key, 2, || unreachable!("it is kept")).unwrap();
    assert!(kept);
    assert_eq!((smaller.depth(), smaller.of(0), smaller.matching(0)), (2, &truth().of(0)[..2], 10));
    cache.store(&key, &smaller).unwrap();
    assert_eq!(cache.load(&key, 3), Some(truth()), "the shallow one did not replace it");
    assert_eq!(cache.load(&key, 4), None);
    assert_eq!(std::fs::read_dir(directory.path().join("new")).unwrap().count(), 1, "no half files");
}

#[test]
fn case_23_every_part_of_the_key_matters() {
    let plain = TruthKey::new("b", "q", Metric::L2);
    let rows = Some(TruthKey::rows_hash(&RowSet::from_fn(9, |r| r < 5)));
    let changed = [
        TruthKey { base: "c".into(), ..plain.clone() },
        TruthKey { queries: "r".into(), ..plain.clone() },
        TruthKey { columns: Some(String::new()), ..plain.clone() },
        TruthKey { metric: "cosine".into(), ..plain.clone() },
        TruthKey { filter: "a = 1".into(), ..plain.clone() },
        TruthKey { rows: rows.clone(), ..plain.clone() },
        TruthKey { base: "bq".into(), queries: String::new(), ..plain.clone() },
    ];
    let mut digests: Vec<String> = changed.iter().map(TruthKey::digest).collect();
    digests.push(plain.digest());
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), changed.len() + 1);
    assert_ne!(rows, Some(TruthKey::rows_hash(&RowSet::from_fn(9, |r| r < 4))));
    assert_ne!(rows, Some(TruthKey::rows_hash(&RowSet::from_fn(10, |r| r < 5))));
}

#[test]
fn a_damaged_file_is_computed_again() {
    let directory = tempfile::tempdir().unwrap();
    let cache = TruthCache::new(directory.path());
    let key = TruthKey::new("b", "q", Metric::Cosine);
    cache.store(&key, &truth()).unwrap();
    let good = std::fs::read(cache.path(&key)).unwrap();
    for cut in 0..good.len() {
        assert_eq!(decode(&good[..cut]), None, "cut at {cut}");
        let mut flipped = good.clone();
        flipped[cut] ^= 1 << (cut % 8);
        assert_eq!(decode(&flipped), None, "flipped at {cut}");
    }
    std::fs::write(cache.path(&key), &good[..good.len() / 2]).unwrap();
    let (again, kept) = cache.get_or_compute(&key, 3, || Ok(truth())).unwrap();
    assert_eq!((again, kept), (truth(), false));
    assert_eq!(cache.load(&key, 3), Some(truth()));
}

/// Numbers that a checksum vouches for but that make no sense: no panic, no huge allocation.
#[test]
fn hostile_counts_give_nothing() {
    for (depth, queries) in [(u64::MAX, u64::MAX), (3, u64::MAX / 16), (3, 1 << 60), (0, 3)] {
        let mut body = MAGIC.to_vec();
        body.extend_from_slice(&depth.to_le_bytes());
        body.extend_from_slice(&queries.to_le_bytes());
        body.extend_from_slice(&[0xFF; 160]);
        let hash = blake3::hash(&body);
        body.extend_from_slice(hash.as_bytes());
        assert_eq!(decode(&body), None);
    }
}
