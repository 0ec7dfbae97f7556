//! The f32 screening never rules out what is at the limit.

use super::*;
use crate::test_numbers::Numbers;
use kernel::{Level, SCORE_ROWS, SCREEN_ROWS, TILE_QUERIES, Tile, dot64, l2_squared64, scores, screen};

impl Numbers {
    /// A vector of one of the kinds that break careless code.
    fn vector(&mut self, dim: usize, kind: u64) -> Vec<f32> {
        let scale = [1.0, 1.0, 1e-3, 1e30, 1e-40, 1e15, 1.0, 1.0][kind as usize % 8];
        let offset = if kind % 8 == 1 { 1e4 } else { 0.0 };
        (0..dim)
            .map(|d| match kind % 8 {
                6 => 0.5,
                7 if d % 2 == 0 => self.unit() * 1e18,
                _ => self.unit() * scale + offset,
            })
            .collect()
    }
}

fn dims() -> impl Iterator<Item = usize> {
    (1..40).chain((41..300).step_by(37)).chain([511, 1025])
}

/// A pair exactly at the limit is the hardest: its key equals the worst that still counts.
#[test]
fn a_pair_at_the_limit_is_never_ruled_out() {
    let mut numbers = Numbers(4);
    let mut ruled_out = 0;
    for dim in dims() {
        for kind in 0..64 {
            // Kinds of row and query apart, so that sizes mix.
            let query = numbers.vector(dim, kind % 8);
            let mut row = numbers.vector(dim, kind / 8);
            if kind % 3 == 0 {
                // Cancellation: the dot product is far below the product of the norms.
                for (d, x) in row.iter_mut().enumerate() {
                    if d % 2 == 1 {
                        *x = -*x;
                    }
                }
            }
            let (norm, row_norm) =
                (dot64(Level::Portable, &query, &query).sqrt(), dot64(Level::Portable, &row, &row).sqrt());
            let safe = row_norm == 0.0 || norm_is_safe(row_norm);
            for metric in [Metric::L2, Metric::Cosine, Metric::InnerProduct] {
                let key = match metric {
                    Metric::L2 => l2_squared64(Level::Portable, &row, &query),
                    Metric::InnerProduct => -dot64(Level::Portable, &row, &query),
                    _ => (1.0 - dot64(Level::Portable, &row, &query) / (norm * row_norm)).clamp(0.0, 2.0),
                };
                let cut = cut_at(metric, key, dim, norm, safe);
                let far = cut_at(metric, key - key.abs() * 0.5 - 0.1 * norm * row_norm, dim, norm, safe);
                for level in Level::available() {
                    ruled_out += check(level, metric, &row, row_norm as f32, &query, cut, far);
                }
            }
        }
    }
    assert!(ruled_out > 1000, "the screening rules out what is far: {ruled_out}");
}

/// Asserts that `cut` keeps the pair, by both kernels; 1 where `far` rules it out.
fn check(level: Level, metric: Metric, row: &[f32], norm: f32, query: &[f32], cut: Cut, far: Cut) -> u32 {
    let squared = metric == Metric::L2;
    let mut tile = Tile::new(query.len(), &[query, query, query]);
    tile.set_cut(1, cut);
    tile.set_cut(2, far);
    let mut found = [[0.0; TILE_QUERIES]; SCREEN_ROWS];
    for rows in 1..=SCREEN_ROWS {
        let masks = screen(level, squared, &vec![row; rows], &vec![norm; rows], &tile, &mut found);
        for mask in &masks[..rows] {
            assert_eq!(mask & 0b11, 0b11, "{level:?} {metric} dim {}", row.len());
            assert_eq!(mask >> 3, 0, "lanes without a query rule all out");
        }
        assert!(masks[rows..].iter().all(|&m| m == 0));
    }
    let limit = cut.slope * norm + cut.constant;
    for score in scores(level, squared, &[row; SCORE_ROWS], query) {
        assert!(
            !matches!(score.partial_cmp(&limit), Some(std::cmp::Ordering::Less)),
            "{level:?} {metric}: {score} < {limit}"
        );
    }
    let mask = screen(level, squared, &[row], &[norm], &tile, &mut found)[0];
    u32::from(mask & 0b100 == 0)
}
