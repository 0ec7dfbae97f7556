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
    /// Sum of their squares, in f32.
    pub squares: f32,
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
    let mut sums = CentreSums::default();
    let whole = x.len() - x.len() % LANES;
    if centre.is_empty() {
        let (x, rest) = x.split_at(whole);
        let (out, out_rest) = out.split_at_mut(whole);
        for (x, out) in x.chunks_exact(LANES).zip(out.chunks_exact_mut(LANES)) {
            for lane in 0..LANES {
                out[lane] = x[lane] * scale;
            }
            sums.add_squares(out);
        }
        out_rest.iter_mut().zip(rest).for_each(|(out, x)| *out = x * scale);
        sums.add_rest(out_rest, &[]);
    } else {
        let (x, rest) = x.split_at(whole);
        let (centre, centre_rest) = centre.split_at(whole);
        let (out, out_rest) = out.split_at_mut(whole);
        let of = x.chunks_exact(LANES).zip(centre.chunks_exact(LANES));
        for ((x, c), out) in of.zip(out.chunks_exact_mut(LANES)) {
            for lane in 0..LANES {
                // Scale 1 costs nothing in precision: the product is exact.
                out[lane] = x[lane] * scale - c[lane];
            }
            sums.add_squares(out);
            for lane in 0..LANES {
                sums.with_centre[lane] += out[lane] * c[lane];
            }
        }
        let of = rest.iter().zip(centre_rest);
        out_rest.iter_mut().zip(of).for_each(|(out, (x, c))| *out = x * scale - c);
        sums.add_rest(out_rest, centre_rest);
    }
    Centred {
        largest: sums.largest.iter().fold(0.0, |a: f32, &b| a.max(b)),
        squares: add(sums.squares),
        with_centre: add(sums.with_centre),
    }
}

/// Sums by lane.
#[derive(Default)]
struct CentreSums {
    largest: [f32; LANES],
    squares: [f32; LANES],
    with_centre: [f32; LANES],
}

impl CentreSums {
    /// Takes a component of each lane.
    #[inline(always)]
    fn add_squares(&mut self, y: &[f32]) {
        for (squares, y) in self.squares.iter_mut().zip(y) {
            *squares += y * y;
        }
        for (largest, y) in self.largest.iter_mut().zip(y) {
            // Not `max`, which asks about NaN in three instructions.
            *largest = if y.abs() > *largest { y.abs() } else { *largest };
        }
    }

    /// Takes the components of the last, incomplete lanes.
    fn add_rest(&mut self, y: &[f32], centre: &[f32]) {
        for (lane, &y) in y.iter().enumerate() {
            self.squares[lane] += y * y;
            self.largest[lane] = self.largest[lane].max(y.abs());
        }
        for (lane, (y, c)) in y.iter().zip(centre).enumerate() {
            self.with_centre[lane] += y * c;
        }
    }
}

/// Sum of the squares of `x` in f32: off by at most (n/64 + 12) u of itself, u = 2^-24, where it is neither
/// tiny nor huge (four times as many lanes as the other sums, each a little longer for the rest).
pub fn norm_squared32(level: Level, x: &[f32]) -> f32 {
    at_level!(level, norm_squared_body(x: &[f32]) -> f32)
}

#[inline(always)]
fn norm_squared_body(x: &[f32]) -> f32 {
    let mut sums = [[0.0_f32; LANES]; 4];
    let (chunks, rest) = x.as_chunks::<{ 4 * LANES }>();
    for chunk in chunks {
        for (part, sums) in sums.iter_mut().enumerate() {
            for (lane, sum) in sums.iter_mut().enumerate() {
                let x = chunk[part * LANES + lane];
                *sum += x * x;
            }
        }
    }
    // Else what follows makes the compiler keep the sums of the loop in pieces.
    let [mut first, second, third, last] = std::hint::black_box(sums);
    for x in rest.chunks(LANES) {
        first.iter_mut().zip(x).for_each(|(sum, x)| *sum += x * x);
    }
    add(std::array::from_fn(|lane| (first[lane] + second[lane]) + (third[lane] + last[lane])))
}

/// `q = round(x / step)`: `inverse` is about 1 / `step`, |x| * inverse is below 127.5.
///
/// # Panics
/// Where the lengths differ.
pub fn quantise8(level: Level, x: &[f32], inverse: f32, step: f32, out: &mut [i8]) -> Quantised {
    assert_eq!(x.len(), out.len(), "one length");
    at_level!(level, quantise8_body(x: &[f32], inverse: f32, step: f32, out: &mut [i8]) -> Quantised)
}

/// As [`quantise8`], for |x| * inverse below 32,767.5.
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
    let mut squares = [0.0_f32; LANES];
    let mut sums = [0_i32; LANES];
    let ((chunks, x), (outs, out)) = (x.as_chunks::<LANES>(), out.as_chunks_mut::<LANES>());
    for (x, out) in chunks.iter().zip(outs) {
        let mut integers = [0_i32; LANES];
        for lane in 0..LANES {
            let (integer, q, rest) = round(x[lane], inverse, step);
            integers[lane] = integer;
            lost[lane] += rest * rest;
            squares[lane] += q * q;
        }
        for lane in 0..LANES {
            sums[lane] += integers[lane];
            out[lane] = narrow(integers[lane]);
        }
    }
    for (lane, (x, out)) in x.iter().zip(out).enumerate() {
        let (integer, q, rest) = round(*x, inverse, step);
        lost[lane] += rest * rest;
        squares[lane] += q * q;
        sums[lane] += integer;
        *out = narrow(integer);
    }
    // Else the sums below make the compiler keep the integers of the loop in pieces.
    let sums = std::hint::black_box(sums);
    Quantised { sum: sums.iter().map(|&s| i64::from(s)).sum(), squares: add(squares), lost: add(lost) }
}

/// The integer that stands for `x`, the same as a float, and what is lost.
#[inline(always)]
fn round(x: f32, inverse: f32, step: f32) -> (i32, f32, f32) {
    let rounded = x * inverse + ROUND;
    let integer = rounded.to_bits().cast_signed().wrapping_sub(ROUND.to_bits().cast_signed());
    let q = rounded - ROUND;
    (integer, q, x - q * step)
}

/// The sum of the lanes, by halves.
#[inline(always)]
fn add(lanes: [f32; LANES]) -> f32 {
    // Else the additions by halves make the compiler keep the lanes of the loop in pieces.
    let mut lanes = std::hint::black_box(lanes);
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}
