//! f32 scores against float64 sums: never farther off than the bound that rules pairs out allows.

use crate::exact64_tests::{Numbers, thinned};
use crate::*;

/// The score in float64, and how far an f32 score may lie from it in any order of additions.
fn wide_score(squared: bool, row: &[f32], query: &[f32]) -> (f64, f64) {
    let pairs = || row.iter().zip(query).map(|(&x, &q)| (f64::from(x), f64::from(q)));
    let terms = (row.len() + 2) as f64;
    let unit = f64::from(f32::EPSILON) / 2.0;
    // Underflow: at most the least f32 per operation.
    let least = terms * 4.0 * f64::from(f32::from_bits(1));
    if squared {
        let sum: f64 = pairs().map(|(x, q)| (x - q) * (x - q)).sum();
        return (-sum, sum * (terms + 4.0) * unit * 1.01 + least);
    }
    let size: f64 = pairs().map(|(x, q)| (x * q).abs()).sum();
    (pairs().map(|(x, q)| x * q).sum(), size * terms * unit * 1.01 + least)
}

fn dims() -> impl Iterator<Item = usize> {
    thinned((1..36).chain((37..300).step_by(31)).chain([1025, 4097]))
}

/// Kinds of [`Numbers::vector`] whose sums stay inside f32.
const KINDS: [u64; 6] = [0, 1, 2, 4, 5, 6];

#[test]
fn scores_lie_within_their_bound() {
    let mut numbers = Numbers(30);
    for dim in dims() {
        for kind in KINDS {
            let query = numbers.vector(dim, kind);
            let rows: [Vec<f32>; SCORE_ROWS] = std::array::from_fn(|_| numbers.vector(dim, kind));
            let views: [&[f32]; SCORE_ROWS] = std::array::from_fn(|r| rows[r].as_slice());
            for (level, squared) in Level::available().into_iter().flat_map(|l| [(l, false), (l, true)]) {
                let found = scores(level, squared, &views, &query);
                for (row, found) in views.iter().zip(found) {
                    let (score, error) = wide_score(squared, row, &query);
                    let off = (f64::from(found) - score).abs();
                    assert!(off <= error, "{level:?} dim {dim} kind {kind}: {found} for {score}");
                }
            }
        }
    }
}

#[test]
fn what_certainly_reaches_its_cut_is_never_out_and_what_certainly_does_not_is() {
    let mut numbers = Numbers(31);
    for dim in dims() {
        let kind = KINDS[dim % KINDS.len()];
        let (row_count, query_count) = (1 + dim % SCREEN_ROWS, 1 + dim * 5 % TILE_QUERIES);
        let rows: Vec<Vec<f32>> = (0..row_count).map(|_| numbers.vector(dim, kind)).collect();
        let queries: Vec<Vec<f32>> = (0..query_count).map(|_| numbers.vector(dim, kind)).collect();
        let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
        let queries: Vec<&[f32]> = queries.iter().map(Vec::as_slice).collect();
        let norms: Vec<f32> = (0..row_count).map(|r| r as f32).collect();
        for (level, squared) in Level::available().into_iter().flat_map(|l| [(l, false), (l, true)]) {
            let mut tile = Tile::new(dim, &queries);
            let all = u32::MAX >> (TILE_QUERIES - query_count);
            let mut scores = [[f32::NAN; TILE_QUERIES]; SCREEN_ROWS];
            let open = screen(level, squared, &rows, &norms, &tile, &mut scores);
            assert!(open[..row_count].iter().all(|&mask| mask & all == all), "nothing is out at first");
            for (row, scores) in rows.iter().zip(&scores) {
                for (query, &found) in queries.iter().zip(scores) {
                    let (score, error) = wide_score(squared, row, query);
                    assert!((f64::from(found) - score).abs() <= error, "{level:?} dim {dim}: {found}");
                }
            }
            for (lane, query) in queries.iter().enumerate() {
                // The score of some row, up to a slope of the norm: some rows are above, some below.
                let (score, _) = wide_score(squared, rows[lane % row_count], query);
                let slope = if lane % 2 == 0 { 0.0 } else { -0.25 };
                tile.set_cut(lane, Cut { constant: score as f32, slope });
            }
            let masks = screen(level, squared, &rows, &norms, &tile, &mut scores);
            for (r, row) in rows.iter().enumerate() {
                for (lane, query) in queries.iter().enumerate() {
                    let (score, error) = wide_score(squared, row, query);
                    let (at, _) = wide_score(squared, rows[lane % row_count], query);
                    let slope = if lane % 2 == 0 { 0.0 } else { -0.25 };
                    let cut = f64::from(at as f32) + slope * r as f64;
                    let slack = error + cut.abs() * 1e-6 + f64::from(f32::from_bits(4));
                    let stays = masks[r] >> lane & 1 == 1;
                    let place = format!("{level:?} dim {dim} kind {kind} row {r} query {lane}");
                    assert!(stays || score < cut + slack, "{place}: out with {score}, cut {cut}");
                    assert!(!stays || score > cut - slack, "{place}: not out with {score}, cut {cut}");
                }
            }
            assert!(masks[row_count..].iter().all(|&mask| mask == 0), "rows that are not there");
        }
    }
}

#[test]
fn a_score_that_overflows_is_not_out() {
    // Infinity minus infinity is NaN, which must be decided exactly.
    let row: &[f32] = &[3e38, 3e38, 3e38, 3e38];
    let queries: Vec<&[f32]> = vec![&[3e38, -3e38, 3e38, -3e38]; 32];
    for level in Level::available() {
        let mut tile = Tile::new(4, &queries);
        (0..TILE_QUERIES).for_each(|lane| tile.set_cut(lane, Cut { constant: 0.0, slope: 0.0 }));
        let mut scores = [[0.0; TILE_QUERIES]; SCREEN_ROWS];
        let masks = screen(level, false, &[row], &[1.0], &tile, &mut scores);
        assert_eq!(masks[0], u32::MAX, "{level:?}");
    }
}
