//! Products of integers at every level against obvious sums.

use super::*;
use crate::exact64_tests::Numbers;

/// A row or query of `dim` components up to `most`: random, or all at an end.
fn integers(numbers: &mut Numbers, dim: usize, most: i32, kind: u64) -> Vec<i16> {
    let any = |n: &mut Numbers| (n.next() % (2 * most as u64 + 1)) as i32 - most;
    let one = |n: &mut Numbers| match kind % 4 {
        0 => most,
        1 => -most,
        _ => any(n),
    };
    (0..dim).map(|_| one(numbers) as i16).collect()
}

/// Rows laid out for the kernel.
struct Block {
    integers: Vec<u8>,
    figures: Vec<RowFigures>,
}

impl Block {
    fn new(width: Width, rows: &[Vec<i16>], [steps, lost, norms, offsets]: [Vec<f32>; 4]) -> Block {
        let stride = width.stride(rows[0].len());
        let mut integers = vec![0; (rows.len() + PANEL_ROWS) * stride];
        for (out, row) in integers.chunks_mut(stride).zip(rows) {
            for (d, &x) in row.iter().enumerate() {
                match width {
                    Width::Eight => out[d] = (x as i8).cast_unsigned(),
                    Width::Sixteen => out[2 * d..2 * d + 2].copy_from_slice(&x.to_ne_bytes()),
                }
            }
        }
        let figures = |(i, row): (usize, &Vec<i16>)| {
            let sum = row.iter().map(|&x| i32::from(x)).sum();
            RowFigures { sum, step: steps[i], lost: lost[i], norm: norms[i], offset: offsets[i] }
        };
        Block { integers, figures: rows.iter().enumerate().map(figures).collect() }
    }

    fn rows(&self) -> IntRows<'_> {
        IntRows { integers: &self.integers, figures: &self.figures }
    }
}

fn dims() -> impl Iterator<Item = usize> {
    (1..20).chain([31, 50, 63, 64, 65, 127, 128, 129, 384, 768, 1023, 4097])
}

fn most_in_row(width: Width, dim: usize) -> i32 {
    match width {
        Width::Eight => 127,
        // As the users of 16 bits must: squares sum to less than 2^31.
        Width::Sixteen => ((46_000.0 / (dim as f64).sqrt()) as i32).min(32_767),
    }
}

fn product(a: &[i16], b: &[i16]) -> i64 {
    a.iter().zip(b).map(|(&x, &y)| i64::from(x) * i64::from(y)).sum()
}

/// The limit at the product itself lets the pair through, the next f32 above does not.
#[test]
fn products_are_exact_at_every_level() {
    let mut numbers = Numbers(7);
    for level in Level::available() {
        for width in [Width::Eight, Width::Sixteen] {
            for dim in dims() {
                let most = most_in_row(width, dim);
                let most_query = most.min(largest_in_query(level, width));
                let rows: Vec<_> = (0..37).map(|i| integers(&mut numbers, dim, most, i)).collect();
                let queries: Vec<_> =
                    (0..32).map(|i| integers(&mut numbers, dim, most_query, i / 4)).collect();
                let count = 1 + dim % TILE_QUERIES;
                let views: Vec<&[i16]> = queries[..count].iter().map(Vec::as_slice).collect();
                let tile = IntTile::new(level, width, dim, &views);
                let ones = || vec![1.0; rows.len()];
                let zeros = || vec![0.0; rows.len()];
                let block = Block::new(width, &rows, [ones(), zeros(), zeros(), zeros()]);
                let zero = [0.0; TILE_QUERIES];
                for (i, row) in rows.iter().enumerate() {
                    let at: Vec<f32> = queries.iter().map(|q| product(q, row) as f32).collect();
                    for above in [false, true] {
                        let limit = std::array::from_fn(|q| if above { at[q].next_up() } else { at[q] });
                        let limits = Limits { per_lost: zero, per_norm: zero, per_offset: zero, limit };
                        // A range that begins anywhere, and whose panel reaches past its end.
                        let range = i.saturating_sub(usize::from(i < 5))..i + 1;
                        let mut masks = vec![u32::MAX; range.len()];
                        let mut products = vec![[0; TILE_QUERIES]; range.len()];
                        tile.screen(&block.rows(), range, &limits, &mut masks, &mut products);
                        let products = products.last().expect("a row");
                        for (q, query) in queries[..count].iter().enumerate().filter(|_| !above) {
                            assert_eq!(i64::from(products[q]), product(query, row), "{level:?} query {q}");
                        }
                        let expected = if above { 0 } else { u32::MAX >> (32 - count) };
                        let found = masks.last().copied();
                        assert_eq!(found, Some(expected), "{level:?} {width:?} dim {dim} row {i}");
                    }
                }
            }
        }
    }
}

/// The whole comparison against f64, but for pairs so near the limit that six roundings decide.
#[test]
fn the_comparison_is_the_formula() {
    let mut numbers = Numbers(8);
    let dim = 96;
    for level in Level::available() {
        for width in [Width::Eight, Width::Sixteen] {
            let rows: Vec<_> = (0..70).map(|_| integers(&mut numbers, dim, 50, 2)).collect();
            let queries: Vec<_> = (0..32).map(|_| integers(&mut numbers, dim, 50, 2)).collect();
            let views: Vec<&[i16]> = queries.iter().map(Vec::as_slice).collect();
            let tile = IntTile::new(level, width, dim, &views);
            let mut some =
                |n: usize, scale: f32| -> Vec<f32> { (0..n).map(|_| numbers.unit() * scale).collect() };
            let figures = [some(70, 1.0), some(70, 3.0), some(70, 9.0), some(70, 500.0)];
            let lane = |v: Vec<f32>| -> [f32; TILE_QUERIES] { v.try_into().expect("32 lanes") };
            let limits = Limits {
                per_lost: lane(some(32, 20.0)),
                per_norm: lane(some(32, 5.0)),
                per_offset: lane(some(32, 2.0)),
                limit: lane(some(32, 2000.0)),
            };
            let block = Block::new(width, &rows, figures);
            let mut masks = vec![0; 70];
            tile.screen(&block.rows(), 0..70, &limits, &mut masks, &mut [[0; TILE_QUERIES]; 70]);
            let (mut in_, mut out) = (0, 0);
            for (r, mask) in masks.iter().enumerate() {
                for q in 0..TILE_QUERIES {
                    let RowFigures { step, lost, norm, offset, .. } = block.figures[r];
                    let [step, lost, norm, offset] = [step, lost, norm, offset].map(f64::from);
                    let per = [&limits.per_lost, &limits.per_norm, &limits.per_offset, &limits.limit];
                    let [per_lost, per_norm, per_offset, limit] = per.map(|f| f64::from(f[q]));
                    let product = product(&rows[r], &queries[q]) as f64;
                    let terms = [product * step, lost * per_lost, norm * per_norm, offset * per_offset];
                    let size: f64 = terms.iter().map(|t| t.abs()).sum();
                    let sum: f64 = terms.iter().sum();
                    if (sum - limit).abs() > size * 6.0 / f64::from(1 << 24) {
                        assert_eq!(mask >> q & 1 == 1, sum >= limit, "{level:?} {width:?} row {r} query {q}");
                        if sum >= limit { in_ += 1 } else { out += 1 }
                    }
                }
            }
            assert!(in_ > 100 && out > 100, "both answers are tried: {in_} in, {out} out");
        }
    }
}

/// What is not a number is never ruled out, but for lanes without a query.
#[test]
fn an_infinite_loss_rules_nothing_out() {
    let rows = vec![vec![1_i16; 8]; 3];
    let lost = vec![f32::INFINITY; 3];
    let block = Block::new(Width::Eight, &rows, [vec![0.0; 3], lost, vec![0.0; 3], vec![0.0; 3]]);
    for level in Level::available() {
        let tile = IntTile::new(level, Width::Eight, 8, &[&[0; 8], &[1; 8]]);
        let mut limits =
            Limits { per_lost: [0.0; 32], per_norm: [0.0; 32], per_offset: [0.0; 32], limit: [1e30; 32] };
        limits.per_lost[1] = 1.0;
        let mut masks = [0; 3];
        tile.screen(&block.rows(), 0..3, &limits, &mut masks, &mut [[0; TILE_QUERIES]; 3]);
        assert_eq!(masks, [0b11; 3], "{level:?}");
    }
}

#[test]
fn quantised_vectors_are_what_the_plain_loop_gives() {
    let mut numbers = Numbers(9);
    for dim in dims() {
        let x = numbers.vector(dim, 0);
        let mean = numbers.vector(dim, 0);
        let mut plain = None;
        for level in Level::available() {
            let mut y = vec![0.0; dim];
            let centred = centre(level, &x, 0.75, &mean, &mut y);
            let largest = y.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
            assert_eq!(centred.largest, largest);
            assert!((0..dim).all(|d| y[d] == x[d] * 0.75 - mean[d]));
            let squares: f64 = y.iter().map(|&v| f64::from(v) * f64::from(v)).sum();
            assert!((f64::from(centred.squares) - squares).abs() <= squares * 1e-5);
            let step = largest / 127.0;
            let (mut q8, mut q16) = (vec![0_i8; dim], vec![0_i16; dim]);
            let of8 = quantise8(level, &y, 1.0 / step, step, &mut q8);
            let step16 = (largest / 32_000.0).max(squares.sqrt() as f32 / 45_000.0);
            let of16 = quantise16(level, &y, 1.0 / step16, step16, &mut q16);
            assert!(
                (0..dim).all(|d| (y[d] - f32::from(q8[d]) * step).abs() <= step * 0.51),
                "{level:?} {dim}"
            );
            assert!((0..dim).all(|d| (y[d] - f32::from(q16[d]) * step16).abs() <= step16 * 0.51));
            assert_eq!(of8.sum, q8.iter().map(|&q| i64::from(q)).sum::<i64>());
            let near = |found: f32, plain: f64| (f64::from(found) - plain).abs() <= plain * 1e-5;
            assert!(near(of8.squares, q8.iter().map(|&q| f64::from(q).powi(2)).sum()));
            assert!(near(of16.squares, q16.iter().map(|&q| f64::from(q).powi(2)).sum()));
            let lost: f64 = y
                .iter()
                .zip(&q8)
                .map(|(&v, &q)| (f64::from(v) - f64::from(q) * f64::from(step)).powi(2))
                .sum();
            assert!((f64::from(of8.lost) - lost).abs() <= lost * 1e-3 + squares * 1e-12, "{level:?} {dim}");
            // The same integers at every level, so that a run can be repeated elsewhere.
            let all = (q8, q16, of8.sum, of16.sum);
            assert_eq!(*plain.get_or_insert_with(|| all.clone()), all, "{level:?} dim {dim}");
        }
    }
}

#[test]
fn squares_are_summed_within_their_bound() {
    let mut numbers = Numbers(10);
    for dim in dims().chain([193, 255, 256, 257]) {
        for kind in 0..3 {
            let x = numbers.vector(dim, kind);
            let plain: f64 = x.iter().map(|&v| f64::from(v) * f64::from(v)).sum();
            for level in Level::available() {
                let off = (f64::from(crate::norm_squared32(level, &x)) - plain).abs();
                let most = plain * (dim as f64 / 64.0 + 12.0) / f64::from(1 << 24);
                assert!(off <= most, "{level:?} dim {dim} kind {kind}: off by {off}, at most {most}");
            }
        }
    }
}
