//! The sums that decide, against obvious loops.

use super::*;

/// SplitMix64, for numbers that are the same on every machine.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    /// -1 to 1.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
    /// A vector of one of the kinds that break careless code.
    pub(crate) fn vector(&mut self, dim: usize, kind: u64) -> Vec<f32> {
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

fn wide(v: &[f32]) -> Vec<f64> {
    v.iter().map(|&x| f64::from(x)).collect()
}

/// All of them; a few under Miri, which takes seconds for what takes microseconds.
pub(crate) fn thinned<T>(all: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    all.step_by(if cfg!(miri) { 13 } else { 1 })
}

fn dims() -> impl Iterator<Item = usize> {
    thinned((1..40).chain((41..300).step_by(37)).chain([511, 1025]))
}

#[test]
fn sums_that_decide_are_the_plain_ones_and_the_same_at_every_level() {
    let mut numbers = Numbers(1);
    for dim in dims() {
        for kind in 0..8 {
            let (a, b) = (numbers.vector(dim, kind), numbers.vector(dim, kind));
            let b64 = wide(&b);
            let dot: f64 = a.iter().zip(&b64).map(|(&x, y)| f64::from(x) * y).sum();
            let size: f64 = a.iter().zip(&b64).map(|(&x, y)| (f64::from(x) * y).abs()).sum();
            let l2: f64 = a.iter().zip(&b64).map(|(&x, y)| (f64::from(x) - y).powi(2)).sum();
            let (dot_ours, l2_ours) = (dot64(Level::Portable, &a, &b), l2_squared64(Level::Portable, &a, &b));
            assert!((dot_ours - dot).abs() <= size * 1e-12, "dim {dim} kind {kind}");
            assert!((l2_ours - l2).abs() <= l2 * 1e-12, "dim {dim} kind {kind}");
            for level in Level::available() {
                assert_eq!(dot64(level, &a, &b).to_bits(), dot_ours.to_bits(), "{level:?} dim {dim}");
                assert_eq!(l2_squared64(level, &a, &b).to_bits(), l2_ours.to_bits(), "{level:?} dim {dim}");
                let norm = norm_squared64(level, &a, &a);
                assert_eq!(norm.to_bits(), dot64(level, &a, &a).to_bits());
            }
        }
    }
}

#[test]
fn sums_of_bytes_are_exact() {
    let mut numbers = Numbers(2);
    for dim in dims() {
        let bytes: Vec<(u8, i8)> = (0..dim).map(|_| (numbers.next() as u8, numbers.next() as i8)).collect();
        let a: Vec<f32> = bytes.iter().map(|b| f32::from(b.0)).collect();
        let b: Vec<f32> = bytes.iter().map(|b| f32::from(b.1)).collect();
        let dot: i64 = bytes.iter().map(|b| i64::from(b.0) * i64::from(b.1)).sum();
        let l2: i64 = bytes.iter().map(|b| (i64::from(b.0) - i64::from(b.1)).pow(2)).sum();
        for level in Level::available() {
            assert_eq!(dot64(level, &a, &b), dot as f64);
            assert_eq!(l2_squared64(level, &a, &b), l2 as f64);
        }
    }
}

#[test]
fn bits_are_counted() {
    let mut numbers = Numbers(3);
    for bytes in 0..70 {
        let a: Vec<u8> = (0..bytes).map(|_| numbers.next() as u8).collect();
        let b: Vec<u8> = (0..bytes).map(|_| numbers.next() as u8).collect();
        let plain: u32 = a.iter().zip(&b).map(|(x, y)| (x ^ y).count_ones()).sum();
        for level in Level::available() {
            assert_eq!(hamming(level, &a, &b), plain);
        }
    }
}
