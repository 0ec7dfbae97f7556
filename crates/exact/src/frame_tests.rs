//! The bound of the integers holds: a pair whose key is exactly the worst that counts is never out.

use super::*;
use crate::distance::{Probe, norm};
use crate::test_numbers::Numbers;
use kernel::{IntRows, IntTile, Limits, PANEL_ROWS, TILE_QUERIES};

impl Numbers {
    /// A vector of one of the kinds that break a careless bound.
    fn of_kind(&mut self, dim: usize, kind: usize) -> Vec<f32> {
        (0..dim)
            .map(|d| match kind {
                0 => self.unit(),
                1 => self.unit() + 1e4,
                2 => self.unit() * 1e-3,
                3 => self.unit() * 1e30,
                4 => self.unit() * 1e-40,
                5 if d < 2 => self.unit() * 1e3,
                6 => 0.5,
                7 => 0.0,
                8 => (self.unit() * 127.0).round(),
                9 => f32::from(d as u8 % 2) * 2.0 - 1.0,
                10 => self.unit().powi(9) * 1e6,
                _ => self.unit(),
            })
            .collect()
    }
}

const KINDS: usize = 12;

fn key(metric: Metric, q: &[f32], x: &[f32]) -> f64 {
    Probe::from_floats(q.to_vec()).key(metric, Level::Portable, x, norm(Level::Portable, x))
}

/// The mask of one row for queries whose limits are those of `worst`.
fn screened(frame: &Frame, level: Level, width: Width, x: &[f32], q: &[f32], worst: &[f64]) -> u32 {
    let dim = x.len();
    let length = frame.length(level, x);
    let mut integers = vec![0; width.stride(dim) * (PANEL_ROWS + 1)];
    let mut work = vec![0.0; dim];
    let row = &mut integers[..dim * width.bytes()];
    let figures = frame.row(level, width, x, length, &mut work, row);
    let query = frame.query(level, width, q, norm(level, q));
    let tile = IntTile::new(level, width, dim, &vec![query.integers.as_slice(); worst.len()]);
    let [per_lost, per_norm, per_offset] = query.coefficients().map(|c| [c; TILE_QUERIES]);
    let mut limit = [f32::INFINITY; TILE_QUERIES];
    limit.iter_mut().zip(worst).for_each(|(limit, &worst)| *limit = query.limit(worst));
    let mut masks = [0];
    let rows = IntRows { integers: &integers, figures: &[figures] };
    let limits = Limits { per_lost, per_norm, per_offset, limit };
    tile.screen(&rows, 0..1, &limits, &mut masks, &mut [[0; TILE_QUERIES]]);
    masks[0]
}

/// Rows about which a frame is made: of the row's kind, so that the centre is near or far.
fn frames(numbers: &mut Numbers, metric: Metric, dim: usize, kind: usize) -> Vec<Frame> {
    [kind, 0, 1]
        .into_iter()
        .map(|kind| {
            let rows: Vec<f32> = (0..4).flat_map(|_| numbers.of_kind(dim, kind)).collect();
            let rows = Vectors::from_f32(rows, 4, dim).expect("4 rows");
            Frame::new(&rows, metric, 0..4)
        })
        .collect()
}

#[test]
fn a_pair_at_the_limit_is_never_out_and_a_far_one_often_is() {
    let mut numbers = Numbers(11);
    let (mut out, mut all) = (0, 0);
    for dim in [1, 2, 3, 7, 16, 17, 31, 64, 100, 768, 4097] {
        for pair in 0..KINDS * KINDS {
            // All pairs of kinds at small dimensions, some at large ones.
            if pair % (1 + dim / 50) != 0 {
                continue;
            }
            let (x, q) = (numbers.of_kind(dim, pair % KINDS), numbers.of_kind(dim, pair / KINDS));
            for metric in [Metric::L2, Metric::Cosine, Metric::InnerProduct] {
                let key = key(metric, &q, &x);
                if key.is_nan() {
                    continue;
                }
                let size = norm(Level::Portable, &q) * norm(Level::Portable, &x);
                let far = match metric {
                    Metric::L2 => key * 0.5,
                    Metric::InnerProduct => key - 0.2 * size,
                    _ => key - 0.2,
                };
                for frame in frames(&mut numbers, metric, dim, pair % KINDS) {
                    for level in Level::available() {
                        for width in [Width::Eight, Width::Sixteen] {
                            let mask = screened(&frame, level, width, &x, &q, &[key, f64::INFINITY, far]);
                            assert_eq!(
                                mask & 3,
                                3,
                                "{metric} {level:?} {width:?} dim {dim} pair {pair} {frame:?}"
                            );
                            all += 1;
                            out += u32::from(mask & 4 == 0);
                        }
                    }
                }
            }
        }
    }
    assert!(out > all / 4, "what is far is ruled out: {out} of {all}");
}

/// The nearer the limit may come, the fewer rows are looked at: the window is a few thousandths.
#[test]
fn the_window_is_narrow() {
    let mut numbers = Numbers(12);
    let dim = 768;
    for metric in [Metric::L2, Metric::Cosine, Metric::InnerProduct] {
        let rows: Vec<f32> = (0..64).flat_map(|_| numbers.of_kind(dim, 0)).collect();
        let rows = Vectors::from_f32(rows, 64, dim).expect("64 rows");
        let frame = Frame::new(&rows, metric, 0..64);
        let (x, q) = (numbers.of_kind(dim, 0), numbers.of_kind(dim, 0));
        let size = norm(Level::Portable, &q) * norm(Level::Portable, &x);
        let unit = if metric == Metric::Cosine { 1.0 } else { size };
        for level in Level::available() {
            for (width, window) in [(Width::Eight, 0.05), (Width::Sixteen, 0.002)] {
                let mask = screened(&frame, level, width, &x, &q, &[key(metric, &q, &x) - window * unit]);
                assert_eq!(mask, 0, "{metric} {level:?} {width:?}");
            }
        }
    }
}

#[test]
fn bytes_lose_nothing() {
    let mut numbers = Numbers(13);
    for (element, low) in [(Element::U8, 0), (Element::I8, -128)] {
        let dim = 100;
        let bytes: Vec<u8> = (0..8 * dim).map(|_| numbers.next() as u8).collect();
        let rows = Vectors::from_bytes(bytes, 8, dim, element).expect("8 rows");
        let frame = Frame::new(&rows, Metric::L2, 0..8);
        let mut work = vec![0.0; dim];
        let mut out = vec![0; dim];
        for row in 0..8 {
            let x = rows.row(row);
            assert!(x.iter().all(|&v| v >= low as f32));
            let figures =
                frame.row(Level::detect(), Width::Eight, &x, Length::default(), &mut work, &mut out);
            assert_eq!((figures.step, figures.lost), (1.0, 0.0));
            let centre = if element == Element::U8 { 128.0 } else { 0.0 };
            assert!(x.iter().zip(&out).all(|(&v, &q)| v - centre == f32::from(q.cast_signed())));
        }
    }
}
