//! Vectors as small integers: x ~ step * q, with the norms that bound what is lost.
//!
//! Each function is a plain loop over 16 lanes, compiled for each instruction set. Sums of f32 run
//! in 16 lanes that are added up at the end, so a sum of n terms is off by at most
//! (n/16 + 6) u times the sum of their sizes, u = 2^-24 (each product rounds once, each lane adds
//! n/16 times, the lanes four times). Sums of integers are exact.

use crate::Level;

const LANES: usize = 16;
/// Adding it rounds an f32 of less than 2^22 to the nearest integer, ties to even, which then
/// stands in the low bits.
const ROUND: f32 = 12_582_912.0;

/// What quantising one vector gave, beside the integers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quantised {
    /// Sum of the integers.
    pub sum: i64,
    /// Sum of their squares.
    pub squares: i64,
    /// Sum of the squares of what is lost, x - step * q, in f32.
    pub lost: f32,
}

/// Sums over a centred vector, in f32.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Centred {
    /// The largest component by size.
    pub largest: f32,
    /// Sum of squares.
    pub squares: f32,
    /// Dot product with the centre.
    pub with_centre: f32,
}

macro_rules! at_level {
    ($level:expr, $body:ident ( $($name:ident : $type:ty),* ) -> $out:ty) => {{
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($name: $type),*) -> $out { $body($($name),*) }
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,fma")]
            fn avx512($($name: $type),*) -> $out { $body($($name),*) }
            match $level {
                // SAFETY: `Level::available` gives these levels only where the CPU has the features
                // (every CPU with AVX-512 BW has VL).
                Level::Avx512 | Level::Amx => return unsafe { avx512($($name),*) },
                // SAFETY: as above.
                Level::Avx2 => return unsafe { avx2($($name),*) },
                Level::Neon | Level::Portable => {}
            }
        }
        let _ = $level;
        $body($($name),*)
    }};
}

/// `out = x * scale - centre`, each rounded once; without a centre, `x * scale`.
///
/// # Panics
/// Where the lengths differ (an empty centre stands for none).
pub fn centre(level: Level, x: &[f32], scale: f32, centre: &[f32], out: &mut [f32]) -> Centred {
    assert!(x.len() == out.len() && (centre.is_empty() || centre.len() == x.len()), "one length");
    at_level!(level, centre_body(x: &[f32], scale: f32, centre: &[f32], out: &mut [f32]) -> Centred)
}

#[inline(always)]
fn centre_body(x: &[f32], scale: f32, centre: &[f32], out: &mut [f32]) -> Centred {
    if centre.is_empty() {
        centre_loop(x, |_| 0.0, |_, x| x * scale, out)
    } else {
        // Scale 1 costs nothing in precision: the product is exact.
        centre_loop(x, |i| centre[i], |i, x| x * scale - centre[i], out)
    }
}

#[inline(always)]
fn centre_loop(
    x: &[f32],
    centre: impl Fn(usize) -> f32,
    value: impl Fn(usize, f32) -> f32,
    out: &mut [f32],
) -> Centred {
    let mut largest = [0.0_f32; LANES];
    let mut squares = [0.0_f32; LANES];
    let mut with_centre = [0.0_f32; LANES];
    let whole = x.len() - x.len() % LANES;
    let mut step = |first: usize, lanes: usize| {
        for lane in 0..lanes {
            let i = first + lane;
            let y = value(i, x[i]);
            out[i] = y;
            largest[lane] = largest[lane].max(y.abs());
            squares[lane] += y * y;
            with_centre[lane] += y * centre(i);
        }
    };
    for first in (0..whole).step_by(LANES) {
        step(first, LANES);
    }
    step(whole, x.len() - whole);
    Centred {
        largest: largest.iter().fold(0.0, |a: f32, &b| a.max(b)),
        squares: add(squares),
        with_centre: add(with_centre),
    }
}

/// `q = round(x / step)`: `inverse` is about 1 / `step`, |x| * inverse is below 127.5, and the squares
/// of all q sum to less than 2^31.
///
/// # Panics
/// Where the lengths differ.
pub fn quantise8(level: Level, x: &[f32], inverse: f32, step: f32, out: &mut [i8]) -> Quantised {
    assert_eq!(x.len(), out.len(), "one length");
    at_level!(level, quantise8_body(x: &[f32], inverse: f32, step: f32, out: &mut [i8]) -> Quantised)
}

/// As [`quantise8`], for |x| * inverse below 32,767.5 (and squares that sum to less than 2^31).
///
/// # Panics
/// Where the lengths differ.
pub fn quantise16(level: Level, x: &[f32], inverse: f32, step: f32, out: &mut [i16]) -> Quantised {
    assert_eq!(x.len(), out.len(), "one length");
    at_level!(level, quantise16_body(x: &[f32], inverse: f32, step: f32, out: &mut [i16]) -> Quantised)
}

#[inline(always)]
fn quantise8_body(x: &[f32], inverse: f32, step: f32, out: &mut [i8]) -> Quantised {
    quantise_loop(x, inverse, step, out, |q| q as i8)
}

#[inline(always)]
fn quantise16_body(x: &[f32], inverse: f32, step: f32, out: &mut [i16]) -> Quantised {
    quantise_loop(x, inverse, step, out, |q| q as i16)
}

#[inline(always)]
fn quantise_loop<T>(
    x: &[f32],
    inverse: f32,
    step: f32,
    out: &mut [T],
    narrow: impl Fn(i32) -> T,
) -> Quantised {
    let mut lost = [0.0_f32; LANES];
    let mut sums = [0_i32; LANES];
    let mut squares = [0_i32; LANES];
    let whole = x.len() - x.len() % LANES;
    let mut step_over = |first: usize, lanes: usize| {
        for lane in 0..lanes {
            let i = first + lane;
            let rounded = x[i] * inverse + ROUND;
            let q = rounded.to_bits().cast_signed().wrapping_sub(ROUND.to_bits().cast_signed());
            let rest = x[i] - (rounded - ROUND) * step;
            lost[lane] += rest * rest;
            sums[lane] = sums[lane].wrapping_add(q);
            squares[lane] = squares[lane].wrapping_add(q.wrapping_mul(q));
            out[i] = narrow(q);
        }
    };
    for first in (0..whole).step_by(LANES) {
        step_over(first, LANES);
    }
    step_over(whole, x.len() - whole);
    Quantised {
        sum: sums.iter().map(|&s| i64::from(s)).sum(),
        squares: squares.iter().map(|&s| i64::from(s)).sum(),
        lost: add(lost),
    }
}

/// The sum of the lanes, by halves.
#[inline(always)]
fn add(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}
