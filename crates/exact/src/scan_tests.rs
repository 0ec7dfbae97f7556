//! A guess that is too low is found out and made good.

use super::*;

/// The rows that the sample takes are near, all others far: the sample promises far more near rows than
/// there are, so every guess is too low.
#[test]
fn a_guess_that_is_too_low_is_searched_again() {
    let rows = 9_000;
    let asked: Vec<usize> = (0..40).collect();
    let every = RowSet::from_fn(rows, |row| row % 2 == 0);
    let queries = Vectors::from_f32(vec![0.0; 80], 40, 2).unwrap();
    let frame = Frame::new(&queries, Metric::L2, 0..40);
    let stop = |_| false;
    let decided = AtomicU64::new(0);
    let scan = |base, cases, method| Scan {
        base,
        queries: &queries,
        metric: Metric::L2,
        k: 140,
        level: Level::detect(),
        threads: 1,
        asked: &asked,
        cases,
        frame: &frame,
        block_bytes: usize::MAX,
        pending_bytes: usize::MAX,
        decided: &decided,
        method,
        watch: &stop,
    };
    let cases = [Some(&every), None];
    let sample = Source::new(&cases, 0..rows, Which::Sample(SAMPLE)).take(rows);
    let sampled: Vec<u32> = sample.into_iter().map(|row| row.0).collect();
    assert!((200..400).contains(&sampled.len()), "one row in {SAMPLE}: {}", sampled.len());
    let place = |row: usize| {
        let near = sampled.binary_search(&(row as u32)).is_ok();
        [if near { 1.0 } else { 50.0 } + row as f32 / rows as f32, 1.0]
    };
    let base = Vectors::from_f32((0..rows).flat_map(place).collect(), rows, 2).unwrap();
    let nothing = vec![vec![[].as_slice(); 40]; 2];
    for method in [Method::F32, Method::Int8, Method::Int16] {
        let scan = scan(&base, &cases, method);
        let known = vec![vec![f64::INFINITY; 40]; 2];
        let ranks = scan.ranks(&(0..rows), &known).unwrap();
        let all: Vec<usize> = (0..40).collect();
        let ranks = Some(ranks.as_slice());
        let job = Job { k: 140, bounds: &known, earlier: &nothing, trusting: true, which: Which::All, ranks };
        let (_, complete) = scan.pass(&all, &(0..rows), &job).unwrap();
        assert_eq!(complete, vec![vec![false; 40]; 2], "{method:?}: every guess is too low");
        let found = scan.run(0..rows, &nothing).unwrap();
        for (case, set) in cases.iter().enumerate() {
            let mut expected: Vec<(f64, u32)> = (0..rows)
                .filter(|row| set.is_none_or(|set| set.contains(*row)))
                .map(|row| (kernel::l2_squared64(Level::Portable, &base.row(row), &[0.0, 0.0]), row as u32))
                .collect();
            expected.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            for list in &found.lists[case] {
                assert!(
                    list.iter().map(|s| s.row).eq(expected[..140].iter().map(|e| e.1)),
                    "{method:?}, case {case}"
                );
            }
            assert_eq!(found.matching[case], expected.len() as u64);
        }
    }
}
