//! Distances that decide: float64 sums of f32 numbers, and counts of bits.
//!
//! A product of two f32 is exact in f64, so only additions round, and a fused operation gives the same
//! bits as two. Sums of products of 8-bit integers stay below 2^53 and are exact: there is no separate
//! integer path to disagree with.

use crate::Level;

/// Sums that run side by side: enough to hide the time that an addition takes.
const LANES: usize = GROUP * GROUPS;
/// Sums in a register of 512 bits, and registers.
const GROUP: usize = 8;
const GROUPS: usize = 4;

/// Compiles `body` for each instruction set. All add in the same order, so the results are equal bit by
/// bit.
macro_rules! for_each_level {
    ($(#[$doc:meta])* $name:ident, $body:ident, $a:ty, $b:ty, $out:ty) => {
        $(#[$doc])*
        pub fn $name(level: Level, a: &[$a], b: &[$b]) -> $out {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma,popcnt")]
                fn avx2(a: &[$a], b: &[$b]) -> $out {
                    $body::<true>(a, b)
                }
                #[target_feature(enable = "avx512f,avx512vl,avx2,fma,popcnt")]
                fn avx512(a: &[$a], b: &[$b]) -> $out {
                    $body::<true>(a, b)
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
            $body::<false>(a, b)
        }
    };
}

for_each_level!(
    /// Dot product; `row` and `query` have one length.
    dot64, dot_body, f32, f32, f64
);
for_each_level!(
    /// Squared Euclidean distance by direct differences, so it is right far from the origin too.
    l2_squared64, l2_body, f32, f32, f64
);
for_each_level!(
    /// Squared norm: give the row twice. The same bits as [`dot64`] of the row with itself.
    norm_squared64, norm_body, f32, f32, f64
);
for_each_level!(
    /// Number of differing bits; the caller has cleared unused bits of the last byte.
    hamming, hamming_body, u8, u8, u32
);

/// a * b + c, with one instruction where that is fast; a * b is exact.
#[inline(always)]
fn add_product<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn dot_body<const FUSED: bool>(row: &[f32], query: &[f32]) -> f64 {
    sum(row, query, |x, q, sum| add_product::<FUSED>(f64::from(x), f64::from(q), sum))
}

#[inline(always)]
fn l2_body<const FUSED: bool>(row: &[f32], query: &[f32]) -> f64 {
    // The square of a difference is not exact, so nothing is fused.
    sum(row, query, |x, q, sum| {
        let difference = f64::from(x) - f64::from(q);
        sum + difference * difference
    })
}

#[inline(always)]
fn norm_body<const FUSED: bool>(row: &[f32], _same: &[f32]) -> f64 {
    sum(row, row, |x, _, sum| add_product::<FUSED>(f64::from(x), f64::from(x), sum))
}

/// The sum of the terms that `add` adds, pair by pair, lane by lane.
#[inline(always)]
fn sum<A: Copy, B: Copy>(a: &[A], b: &[B], add: impl Fn(A, B, f64) -> f64) -> f64 {
    // In groups of a register's width: the compiler then keeps them in registers.
    let mut sums = [[0.0_f64; GROUP]; GROUPS];
    let ((chunks_a, a), (chunks_b, b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in chunks_a.iter().zip(chunks_b) {
        for (group, sums) in sums.iter_mut().enumerate() {
            for (lane, sum) in sums.iter_mut().enumerate() {
                *sum = add(a[group * GROUP + lane], b[group * GROUP + lane], *sum);
            }
        }
    }
    // Else the additions by halves below make the compiler keep the sums of this loop in pairs.
    let mut sums = std::hint::black_box(sums);
    let ((groups_a, a), (groups_b, b)) = (a.as_chunks::<GROUP>(), b.as_chunks::<GROUP>());
    for ((a, b), sums) in groups_a.iter().zip(groups_b).zip(&mut sums) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            *sum = add(a[lane], b[lane], *sum);
        }
    }
    let [mut first, second, third, last] = sums;
    for (sum, (&a, &b)) in first.iter_mut().zip(a.iter().zip(b)) {
        *sum = add(a, b, *sum);
    }
    let mut total: [f64; GROUP] = std::array::from_fn(|i| (first[i] + second[i]) + (third[i] + last[i]));
    let mut width = GROUP / 2;
    while width > 0 {
        for lane in 0..width {
            total[lane] += total[lane + width];
        }
        width /= 2;
    }
    total[0]
}

#[inline(always)]
fn hamming_body<const FUSED: bool>(a: &[u8], b: &[u8]) -> u32 {
    let (words_a, words_b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = words_a.remainder().iter().zip(words_b.remainder());
    let rest: u32 = rest.map(|(x, y)| (x ^ y).count_ones()).sum();
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    words_a.zip(words_b).map(|(x, y)| (word(x) ^ word(y)).count_ones()).sum::<u32>() + rest
}
