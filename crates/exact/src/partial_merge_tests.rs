use super::*;
use crate::{Options, PartFilter, PartHeader, PartJob, Partial, Search, Subset, write_part};
use dataset::hash;
use proptest::prelude::*;
use std::path::Path;
use types::{Element, RowSet, Vectors};

fn vectors(rows: usize, dim: usize, seed: u64) -> Vectors {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Few values, so that ties are common.
        ((state >> 60) as f32) - 7.0
    };
    let bytes = (0..rows * dim).flat_map(|_| next().to_le_bytes()).collect();
    Vectors::from_bytes(bytes, rows, dim, Element::F32).unwrap()
}

/// Searches shard `shard` and writes its part.
fn part(dir: &Path, base: &Vectors, queries: &Vectors, odd: &RowSet, k: usize, (shard, shards): (u32, u32)) {
    let rows = shard_rows(base.rows(), hash::HASH_CHUNK_ROWS, shard, shards);
    let cases = [Subset::All, Subset::Same(odd)];
    let options = Options { threads: Some(1), ..Options::default() };
    let mut search = Search::new(base, queries, Metric::L2, k, &cases, options).unwrap();
    search.resume(Partial::new(rows.start, cases.len(), queries.rows())).unwrap();
    search.advance(rows.end).unwrap();
    let header = PartHeader {
        tool: "annvil test".into(),
        dataset: "set".into(),
        job: PartJob {
            rows: base.rows() as u64,
            dim: base.dim() as u64,
            element: base.element(),
            queries: queries.rows() as u64,
            metric: Metric::L2,
            k: k as u64,
            cases: ["", "odd"].map(|f| PartFilter { filter: None, identity: f.into() }).to_vec(),
            queries_hash: hash::vectors(queries),
            columns_hash: None,
            base_hash: None,
            chunk_rows: hash::HASH_CHUNK_ROWS as u64,
            shards,
        },
        shard,
        begin: rows.start as u64,
        end: rows.end as u64,
        searched: rows.end as u64,
        digests: 0,
    };
    let digests = hash::chunk_digests(base, rows);
    write_part(&dir.join(shard.to_string()), &header, &digests, search.found()).unwrap();
}

fn opened(dir: &Path, shards: &[u32]) -> Vec<PartReader> {
    shards.iter().map(|shard| PartReader::open(&dir.join(shard.to_string())).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn merged_shards_are_one_search_and_know_the_hash_of_the_base(
        rows in 1_usize..6000, shards in 1_u32..9, k in 1_usize..30, seed: u64
    ) {
        let (base, queries) = (vectors(rows, 3, seed), vectors(5, 3, !seed));
        let odd = RowSet::from_fn(rows, |row| row % 2 == 1);
        let dir = tempfile::tempdir().unwrap();
        for shard in 1..=shards {
            part(dir.path(), &base, &queries, &odd, k, (shard, shards));
        }
        let given: Vec<u32> = (1..=shards).rev().collect();
        let parts = in_order(opened(dir.path(), &given)).unwrap();
        prop_assert_eq!(base_hash(&parts), hash::vectors(&base));
        let mut merged = Vec::new();
        merge_parts(parts, |case, truth| {
            merged.push((case, truth));
            Ok::<_, ExactError>(())
        }).unwrap();
        for (i, subset) in [Subset::All, Subset::Same(&odd)].into_iter().enumerate() {
            let whole = crate::neighbours(&base, &queries, Metric::L2, k, subset, &Options::default()).unwrap();
            prop_assert_eq!(&merged[i], &(i, whole));
        }
    }

    #[test]
    fn shards_follow_one_another_and_cover_all_rows(rows in 0_usize..5_000_000, shards in 1_u32..5000) {
        let mut end = 0;
        for shard in 1..=shards {
            let range = shard_rows(rows, 1024, shard, shards);
            prop_assert_eq!(range.start, end);
            prop_assert!(range.end.is_multiple_of(1024) || range.end == rows);
            end = range.end;
        }
        prop_assert_eq!(end, rows);
    }
}

#[test]
fn what_is_missing_doubled_or_of_another_job_is_named() {
    let (base, queries) = (vectors(5000, 3, 1), vectors(5, 3, 2));
    let odd = RowSet::from_fn(5000, |row| row % 2 == 1);
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for shard in 1..=4 {
        part(dir.path(), &base, &queries, &odd, 5, (shard, 4));
    }
    part(other.path(), &base, &queries, &odd, 6, (4, 4));
    let said = |parts: Vec<PartReader>| in_order(parts).unwrap_err().to_string();
    assert_eq!(said(opened(dir.path(), &[3, 1])), "shards 2, 4 of 4 are missing");
    assert_eq!(said(opened(dir.path(), &[3, 1, 2])), "shard 4 of 4 is missing");
    assert!(said(opened(dir.path(), &[3, 1, 2, 4, 2])).starts_with("shard 2 of 4 is given twice: "));
    let mut parts = opened(dir.path(), &[1, 2, 3]);
    parts.extend(opened(other.path(), &[4]));
    let text = said(parts);
    assert!(text.contains("not of one job: the k is 5 here and 6 there"), "{text}");
    assert_eq!(said(Vec::new()), "no parts are given");
}
