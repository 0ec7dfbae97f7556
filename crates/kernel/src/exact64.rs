//! Distances that decide: float64 sums of f32 numbers, and counts of bits.
//!
//! A product of two f32 is exact in f64, so only additions round. Sums of products of 8-bit
//! integers stay below 2^53 and are exact: there is no separate integer path to disagree with.

use crate::Level;

const LANES: usize = 16;

/// Compiles `body` for each instruction set. No level fuses multiply and add here, and all add in
/// the same order, so the results are equal bit by bit.
macro_rules! for_each_level {
    ($(#[$doc:meta])* $name:ident, $body:ident, $a:ty, $b:ty, $out:ty) => {
        $(#[$doc])*
        pub fn $name(level: Level, a: &[$a], b: &[$b]) -> $out {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,popcnt")]
                fn avx2(a: &[$a], b: &[$b]) -> $out {
                    $body(a, b)
                }
                #[target_feature(enable = "avx512f,avx2,popcnt")]
                fn avx512(a: &[$a], b: &[$b]) -> $out {
                    $body(a, b)
                }
                match level {
                    // SAFETY: `Level::available` gives this level only where the CPU has the features.
                    Level::Avx512 | Level::Amx => return unsafe { avx512(a, b) },
                    // SAFETY: as above.
                    Level::Avx2 => return unsafe { avx2(a, b) },
                    Level::Neon | Level::Portable => {}
                }
            }
            let _ = level;
            $body(a, b)
        }
    };
}

for_each_level!(
    /// Dot product; `row` and `query` have one length.
    dot64, dot_body, f32, f64, f64
);
for_each_level!(
    /// Squared Euclidean distance by direct differences, so it is right far from the origin too.
    l2_squared64, l2_body, f32, f64, f64
);
for_each_level!(
    /// Squared norm: give the row twice. The same bits as [`dot64`] of the row with itself.
    norm_squared64, norm_body, f32, f32, f64
);
for_each_level!(
    /// Number of differing bits; the caller has cleared unused bits of the last byte.
    hamming, hamming_body, u8, u8, u32
);

#[inline(always)]
fn dot_body(row: &[f32], query: &[f64]) -> f64 {
    sum_terms(row, query, |x, q| x * q)
}

#[inline(always)]
fn l2_body(row: &[f32], query: &[f64]) -> f64 {
    sum_terms(row, query, |x, q| (x - q) * (x - q))
}

#[inline(always)]
fn norm_body(row: &[f32], same: &[f32]) -> f64 {
    sum_terms(row, same, |x, y| x * y)
}

#[inline(always)]
fn sum_terms<T: Copy + Into<f64>>(row: &[f32], query: &[T], term: impl Fn(f64, f64) -> f64) -> f64 {
    let mut sums = [0.0_f64; LANES];
    let (rows, queries) = (row.chunks_exact(LANES), query.chunks_exact(LANES));
    let (row_rest, query_rest) = (rows.remainder(), queries.remainder());
    for (x, q) in rows.zip(queries) {
        for lane in 0..LANES {
            sums[lane] += term(f64::from(x[lane]), q[lane].into());
        }
    }
    for (lane, (&x, &q)) in row_rest.iter().zip(query_rest).enumerate() {
        sums[lane] += term(f64::from(x), q.into());
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

#[inline(always)]
fn hamming_body(a: &[u8], b: &[u8]) -> u32 {
    let (words_a, words_b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = words_a.remainder().iter().zip(words_b.remainder());
    let rest: u32 = rest.map(|(x, y)| (x ^ y).count_ones()).sum();
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    words_a.zip(words_b).map(|(x, y)| (word(x) ^ word(y)).count_ones()).sum::<u32>() + rest
}
