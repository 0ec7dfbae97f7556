use super::*;
use proptest::prelude::*;

fn header(cases: usize, queries: usize, rows: std::ops::Range<usize>, k: usize) -> PartHeader {
    PartHeader {
        tool: "annvil test".into(),
        dataset: "set".into(),
        job: PartJob {
            rows: 100_000,
            dim: 8,
            element: Element::F32,
            queries: queries as u64,
            metric: Metric::L2,
            k: k as u64,
            cases: (0..cases)
                .map(|i| PartFilter { filter: Some(format!("c = {i}")), identity: format!("{i}") })
                .collect(),
            queries_hash: "q".into(),
            columns_hash: None,
            base_hash: None,
            chunk_rows: 1024,
            shards: 16,
        },
        shard: 3,
        begin: rows.start as u64,
        end: rows.end as u64,
        searched: rows.end as u64,
        digests: 0,
    }
}

/// Lists as a search over `rows` would leave them.
fn partial(cases: usize, queries: usize, rows: std::ops::Range<usize>, k: usize, seed: u64) -> Partial {
    let mut state = seed | 1;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut list = || {
        let matching = random() % (rows.len() as u64 + 1);
        let mut list: Vec<Scored> = (0..matching.min(k as u64))
            .map(|i| Scored { key: (random() % 50) as f64 - 10.0, row: (rows.start as u64 + i) as u32 })
            .collect();
        list.sort_unstable();
        (list, matching)
    };
    let lists = (0..cases).map(|_| (0..queries).map(|_| list()).collect()).collect();
    Partial::of_lists(rows.clone(), lists)
}

fn digests(rows: &std::ops::Range<usize>) -> Vec<[u8; 32]> {
    (0..rows.len().div_ceil(1024)).map(|i| [i as u8; 32]).collect()
}

fn written(
    cases: usize,
    queries: usize,
    rows: std::ops::Range<usize>,
    k: usize,
    seed: u64,
) -> (Vec<u8>, Partial) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("part");
    let partial = partial(cases, queries, rows.clone(), k, seed);
    let bytes =
        write_part(&path, &header(cases, queries, rows.clone(), k), &digests(&rows), &partial).unwrap();
    let content = std::fs::read(&path).unwrap();
    assert_eq!(bytes, content.len() as u64);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    (content, partial)
}

fn read(bytes: &[u8]) -> Result<(PartHeader, Vec<[u8; 32]>, Partial), ExactError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("part");
    std::fs::write(&path, bytes).unwrap();
    let reader = PartReader::open(&path)?;
    let (header, digests) = (reader.header().clone(), reader.digests().to_vec());
    Ok((header, digests, reader.into_partial()?))
}

/// Puts the right hash behind changed content, as a hostile writer would.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let body = bytes.len() - 32;
    let hash = blake3::hash(&bytes[..body]);
    bytes[body..].copy_from_slice(hash.as_bytes());
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_and_the_same_bytes_are_written_again(
        cases in 0_usize..4, queries in 0_usize..20, begin in 0_usize..5, len in 0_usize..3000, k in 1_usize..40, seed: u64
    ) {
        let rows = begin * 1024..begin * 1024 + len;
        let (bytes, partial) = written(cases, queries, rows.clone(), k, seed);
        let (found, found_digests, again) = read(&bytes).unwrap();
        prop_assert_eq!(&again, &partial);
        prop_assert_eq!(found_digests, digests(&rows));
        prop_assert_eq!(found.job, header(cases, queries, rows.clone(), k).job);
        prop_assert_eq!(written(cases, queries, rows, k, seed).0, bytes);
    }

    #[test]
    fn a_part_that_was_cut_or_changed_is_refused(at: prop::sample::Index, bit in 0_u8..8, seed: u64) {
        let (bytes, _) = written(2, 5, 1024..2048, 7, seed);
        let cut = read(&bytes[..at.index(bytes.len())]);
        prop_assert!(matches!(cut, Err(ExactError::Part { .. })), "{cut:?}");
        let mut flipped = bytes;
        let at = at.index(flipped.len());
        flipped[at] ^= 1 << bit;
        let found = read(&flipped);
        prop_assert!(matches!(found, Err(ExactError::Part { .. })), "{found:?}");
    }

    #[test]
    fn a_changed_part_under_a_right_hash_never_panics(
        at: prop::sample::Index, value: u8, cut in 0_usize..40, seed: u64
    ) {
        let (bytes, _) = written(2, 5, 1024..2048, 7, seed);
        let mut changed = bytes;
        let at = at.index(changed.len() - 32);
        changed[at] = value;
        let keep = changed.len() - cut;
        changed.truncate(keep);
        // An error or other content; a panic or an allocation beyond the file fails the test.
        if let Ok((header, _, partial)) = read(&sealed(changed)) {
            prop_assert_eq!(partial.cases(), header.job.cases.len());
        }
    }
}

#[test]
fn huge_counts_are_refused_by_name() {
    let (bytes, _) = written(1, 3, 0..1024, 5, 1);
    let text = |from: &str, to: &str| {
        let length = u64::from_le_bytes(bytes[8..16].try_into().unwrap()) as usize;
        let header = String::from_utf8(bytes[16..16 + length].to_vec()).unwrap();
        assert!(header.contains(from), "{header}");
        let header = header.replace(from, to);
        let mut out = bytes[..8].to_vec();
        out.extend((header.len() as u64).to_le_bytes());
        out.extend(header.as_bytes());
        out.extend(&bytes[16 + length..]);
        read(&sealed(out)).unwrap_err().to_string()
    };
    assert!(text("\"queries\":3", "\"queries\":18446744073709551615").contains("more than it has room for"));
    assert!(text("\"digests\":1", "\"digests\":4611686018427387904").contains("digests"));
    assert!(
        text("\"searched\":1024", "\"searched\":9").contains("digest")
            || text("\"searched\":1024", "\"searched\":9").contains("makes no sense")
    );
    assert!(text("\"begin\":0", "\"begin\":5000").contains("make no sense"));
    assert!(text("\"shard\":3", "\"shard\":17").contains("shard 17 of 16"));
    assert!(text("\"k\":5", "\"k\":0").contains("k 0"));
    let mut long = bytes.clone();
    long[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(read(&sealed(long)).unwrap_err().to_string().contains("longer than the file"));
    let mut other = bytes;
    other[7] = b'9';
    assert!(read(&other).unwrap_err().to_string().contains("another version"));
    assert!(read(b"no").unwrap_err().to_string().contains("no part of a truth"));
}
