//! Vectors in a form that small integers describe well, and the proof of what the integers lose.
//!
//! Every metric but hamming is decided by a score that grows with nearness and has one form,
//!
//! > score(q, x) = <a, z> + b(x), with a = s(q) q - m, z = s(x) x - m,
//!
//! where m is a fixed vector (the centre, none or about the mean of the rows) and s scales to length
//! 1 under cosine and is 1 otherwise:
//!
//! * L2: |q - x|^2 = |a|^2 - 2 score, with b = -|z|^2 / 2;
//! * inner product: <q, x> = score + <q, m>, with b = <m, z>;
//! * cosine: <q, x> / (|q| |x|) = score + <s(q) q, m>, with b = <m, z>.
//!
//! a and z become integers times a step, a ~ A and z ~ Z. By Cauchy-Schwarz
//!
//! > <a, z> = <A, Z> + <a, z - Z> + <a - A, Z> <= <A, Z> + |a| |z - Z| + |a - A| |Z|,
//!
//! and |z - Z|, |Z| are known row by row, |a|, |a - A| query by query. A pair whose bound stays below
//! the score that the k-th best key asks for is out. Everything that is rounded on the way is added to
//! the bound: u = 2^-24 is half the distance between 1 and the next f32, v = 2^-53 that of f64.

use crate::distance::norm;
use kernel::{Level, RowFigures, Width, centre, largest_in_query, norm_squared32, quantise8, quantise16};
use types::{Element, Metric, Vectors};

/// Half the distance between 1 and the next f32, a little enlarged for second-order terms.
const U: f64 = 1.01 / (1 << 24) as f64;
/// The same for f64.
const V: f64 = 1.01 / (1_u64 << 53) as f64;
/// What is added, per unit of a term, for the six roundings of the kernel's comparison, for the
/// rounding of its coefficients, and to spare.
const COMPARISON: f64 = 16.0 * U;
/// Components between these sizes keep every square and product in the normal range of f32.
const SMALL: f32 = 1.0 / (1_u64 << 40) as f32;
const LARGE: f32 = (1_u64 << 40) as f32;
/// Most components for which sums of products of bytes stay in 32 bits (255 x 127 x dim).
pub(crate) const MOST_DIM: usize = 1 << 15;
/// Norm of a vector of 16-bit integers: by Cauchy-Schwarz products then stay below 2^31.
const NORM16: f64 = 46_000.0;
/// Rows from which the centre is taken.
pub(crate) const SAMPLE: usize = 1024;

/// The length of a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Length {
    pub(crate) norm: f64,
    /// How far it may be off, as a share of itself. 0 for a sum in f64.
    pub(crate) error: f64,
}

impl Length {
    /// A sum in f64.
    pub(crate) fn exact(level: Level, x: &[f32]) -> Length {
        Length { norm: norm(level, x), error: 0.0 }
    }

    /// A sum in f32 where that is known to be near, else as [`Length::exact`].
    pub(crate) fn near(level: Level, x: &[f32]) -> Length {
        let squares = norm_squared32(level, x);
        // NaN is in no range. Squares that underflow are too small to matter here.
        if !(1e-25..1e25).contains(&squares) {
            return Length::exact(level, x);
        }
        // The root halves what the sum is off.
        let error = 0.51 * (x.len() as f64 / 64.0 + 12.0) * U;
        Length { norm: f64::from(squares).sqrt(), error }
    }
}

/// How vectors are centred and scaled.
#[derive(Debug)]
pub(crate) struct Frame {
    metric: Metric,
    dim: usize,
    /// The centre m; empty for none.
    centre: Vec<f32>,
    centre_norm: f64,
    /// Rows that are bytes already keep their numbers: step 1, nothing lost.
    whole_rows: bool,
}

impl Frame {
    /// A frame for some rows of `base`, given by an iterator over a sample of them. The centre is the
    /// sample's mean where subtracting it makes the rows shorter by a twentieth or more.
    pub(crate) fn new(base: &Vectors, metric: Metric, rows: impl Iterator<Item = usize>) -> Frame {
        let dim = base.dim();
        let none = Frame { metric, dim, centre: Vec::new(), centre_norm: 0.0, whole_rows: false };
        match (base.element(), metric) {
            (Element::I8, _) => return Frame { whole_rows: true, ..none },
            (Element::U8, Metric::L2 | Metric::InnerProduct) => {
                let centre = vec![128.0; dim];
                return Frame { whole_rows: true, centre_norm: 128.0 * (dim as f64).sqrt(), centre, ..none };
            }
            _ => {}
        }
        let (mut sum, mut squares, mut count) = (vec![0.0_f64; dim], 0.0_f64, 0.0_f64);
        for row in rows.take(SAMPLE) {
            let row = base.row(row);
            let square: f64 = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
            let scale = if metric == Metric::Cosine { 1.0 / square.sqrt() } else { 1.0 };
            if scale.is_finite() && square.is_finite() {
                sum.iter_mut().zip(row.iter()).for_each(|(s, &x)| *s += f64::from(x) * scale);
                squares += square * scale * scale;
                count += 1.0;
            }
        }
        let mean: Vec<f32> = sum.iter().map(|&s| (s / count) as f32).collect();
        let norm = mean.iter().map(|&m| f64::from(m).powi(2)).sum::<f64>().sqrt();
        // |x - m|^2 is |x|^2 - |m|^2 in the mean.
        let helps = norm * norm > 0.1 * squares / count && norm < f64::from(LARGE);
        if helps { Frame { centre: mean, centre_norm: norm, ..none } } else { none }
    }

    /// The length with which a row is scaled: 0 where the metric asks for none.
    pub(crate) fn length(&self, level: Level, x: &[f32]) -> Length {
        match (self.metric, self.whole_rows) {
            (Metric::Cosine, false) => Length::near(level, x),
            // What is lost of whole numbers is nothing, and stays so.
            (Metric::Cosine, true) => Length::exact(level, x),
            _ => Length::default(),
        }
    }

    /// The factor s for a row or query of this norm.
    fn scale(&self, norm: f64) -> f64 {
        if self.metric == Metric::Cosine { 1.0 / norm } else { 1.0 }
    }

    /// The unit error of a sum of `dim` products in the kernel's lanes.
    fn sum_error(&self) -> f64 {
        (self.dim as f64 / 16.0 + 7.0) * U
    }

    /// Writes a row as integers and says what that loses. `length` is that of [`Frame::length`], `work` has
    /// room for the row's components.
    pub(crate) fn row(
        &self,
        level: Level,
        width: Width,
        x: &[f32],
        Length { norm, error: scale_error }: Length,
        work: &mut [f32],
        out: &mut [u8],
    ) -> RowFigures {
        let scale = if self.whole_rows { 1.0 } else { self.scale(norm) as f32 };
        let centred = centre(level, x, scale, &self.centre, work);
        let largest = centred.largest;
        if centred.squares.is_nan()
            || largest > LARGE
            || (largest != 0.0 && largest < SMALL)
            || !scale.is_normal()
        {
            out.fill(0);
            return RowFigures { lost: f32::INFINITY, ..RowFigures::default() };
        }
        let error = self.sum_error();
        let length = (f64::from(centred.squares) * (1.0 + 2.0 * error)).sqrt();
        // A component of z = s x - m is rounded after the product and after the difference; the factor s
        // itself is rounded too, and as far off as the length is (|s x| = 1). The differences of whole
        // numbers are exact.
        let rounded = match (self.whole_rows, self.metric, self.centre.is_empty()) {
            (true, ..) => 0.0,
            (_, Metric::Cosine, true) => 2.1 * U + 1.01 * scale_error,
            (_, Metric::Cosine, false) => 2.1 * U + 1.01 * scale_error + U * length,
            (_, _, true) => 0.0,
            (_, _, false) => U * length,
        };
        let step = if self.whole_rows { 1.0 } else { step(width, largest, length, self.dim) };
        let found = match width {
            Width::Eight => quantise8(level, work, 1.0 / step, step, bytemuck::cast_slice_mut(out)),
            Width::Sixteen => quantise16(level, work, 1.0 / step, step, bytemuck::cast_slice_mut(out)),
        };
        let norm_of_integers = (f64::from(found.squares) * (1.0 + 2.0 * error)).sqrt() * f64::from(step);
        let rest = (f64::from(found.lost) * (1.0 + 2.0 * error)).sqrt();
        let lost = if self.whole_rows { 0.0 } else { rest + U * (norm_of_integers + rest) + rounded };
        // Under cosine rows of whole numbers are divided by their length here.
        let unit = if self.whole_rows { self.scale(norm) } else { 1.0 };
        let offset = match self.metric {
            Metric::L2 => {
                let least = (f64::from(centred.squares).sqrt() * (1.0 - 2.0 * error) - rounded).max(0.0);
                -0.5 * least * least
            }
            _ => f64::from(centred.with_centre) + self.centre_norm * (error * length + rounded),
        };
        RowFigures {
            sum: found.sum as i32,
            step: (f64::from(step) * unit) as f32,
            lost: above(lost * unit),
            // The rounding of step * unit is one more error of the product.
            norm: above(norm_of_integers * unit * (1.0 + 2.0 * U)),
            offset: above(offset + COMPARISON * offset.abs()),
        }
    }

    /// By how much the offset of a row may be above what it stands for: it is so at most, the score
    /// estimated from it may be too good by this.
    pub(crate) fn offset_slack(&self, row: &RowFigures) -> f64 {
        let [offset, norm, lost] = [row.offset.abs(), row.norm, row.lost].map(f64::from);
        let sums = self.sum_error() + 4.0 * U;
        match self.metric {
            Metric::L2 => offset * (8.0 * sums + 2.0 * COMPARISON),
            // A length is off by less than a sum is.
            _ => 2.0 * (COMPARISON * offset + self.centre_norm * sums * (norm + lost + 1.0)),
        }
    }

    /// A query of these components and this length as integers.
    pub(crate) fn query(&self, level: Level, width: Width, q: &[f32], norm: f64) -> IntQuery {
        let scale = self.scale(norm);
        let centre = |d: usize| self.centre.get(d).map_or(0.0, |&m| f64::from(m));
        let a: Vec<f64> = q.iter().enumerate().map(|(d, &x)| f64::from(x) * scale - centre(d)).collect();
        let largest = a.iter().fold(0.0_f64, |l, x| l.max(x.abs()));
        let squares: f64 = a.iter().map(|x| x * x).sum();
        let with_centre = q.iter().enumerate().map(|(d, &x)| f64::from(x) * scale * centre(d)).sum();
        let most = f64::from(largest_in_query(level, width));
        let whole = self.whole_rows && self.metric != Metric::Cosine && a.iter().all(|x| x.fract() == 0.0);
        let step = match width {
            _ if largest == 0.0 || (whole && largest <= most) => 1.0,
            Width::Eight => largest / most,
            Width::Sixteen => (largest / most).max(squares.sqrt() / (NORM16 - (self.dim as f64).sqrt())),
        };
        let integers: Vec<i16> = a.iter().map(|x| (x / step).round().clamp(-most, most) as i16).collect();
        let pairs = || a.iter().zip(&integers).map(|(&x, &i)| (x, f64::from(i) * step));
        let lost = pairs().map(|(x, i)| (x - i) * (x - i)).sum::<f64>().sqrt();
        let norm_of_integers = pairs().map(|(_, i)| i * i).sum::<f64>().sqrt();
        let size = norm * scale + self.centre_norm;
        let safe = (f64::from(SMALL)..f64::from(LARGE)).contains(&largest) || largest == 0.0;
        // All sums above are in f64: off by less than `tiny` of the sizes that go in.
        let tiny = (self.dim as f64 + 16.0) * 2.0 * V;
        IntQuery {
            integers,
            metric: self.metric,
            // What deciding in f64 may be off for inner products: <= dim v |q| |x|, |x| <= |Z| + |z - Z| + |m|.
            length: squares.sqrt() + tiny * size,
            lost: lost + tiny * size,
            norm_of_integers,
            step,
            squares,
            with_centre,
            tiny,
            size,
            centre_norm: self.centre_norm,
            safe: safe && size.is_finite() && size < f64::from(LARGE) * 1e6,
        }
    }
}

/// The step with which the largest component still fits, and under 16 bits the norm too.
fn step(width: Width, largest: f32, length: f64, dim: usize) -> f32 {
    if largest == 0.0 {
        return 1.0;
    }
    match width {
        Width::Eight => (largest / 127.0).next_up(),
        Width::Sixteen => {
            let by_norm = length / (NORM16 - (dim as f64).sqrt());
            (f64::from(largest) / 32_767.0).max(by_norm) as f32
        }
    }
    .next_up()
}

/// The f32 at or above `value`.
fn above(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) < value { near.next_up() } else { near }
}

/// The f32 at or below `value`.
fn below(value: f64) -> f32 {
    -above(-value)
}

/// A query as integers, and what turns a key into the limit of the kernel's comparison.
#[derive(Clone, Debug)]
pub(crate) struct IntQuery {
    /// The integers.
    pub(crate) integers: Vec<i16>,
    metric: Metric,
    /// |a|, at most.
    length: f64,
    /// |a - A|, at most.
    lost: f64,
    /// |A|.
    norm_of_integers: f64,
    step: f64,
    /// |a|^2.
    squares: f64,
    /// <s(q) q, m>.
    with_centre: f64,
    tiny: f64,
    /// |s(q) q| + |m|.
    size: f64,
    centre_norm: f64,
    safe: bool,
}

impl IntQuery {
    /// Coefficients of a row's loss, norm and offset, in units of the query's step.
    pub(crate) fn coefficients(&self) -> [f32; 3] {
        let spare = 1.0 + COMPARISON;
        let inner = self.tiny * self.size;
        let per_lost = (self.length + inner) * spare / self.step;
        let per_norm = (self.lost + inner + COMPARISON * self.norm_of_integers) * spare / self.step;
        [above(per_lost), above(per_norm), (1.0 / self.step) as f32]
    }

    /// The least score that a row with a key of at most `worst` may have, as the kernel's limit.
    pub(crate) fn limit(&self, worst: f64) -> f32 {
        if !self.safe || !worst.is_finite() {
            return if worst == f64::NEG_INFINITY { f32::INFINITY } else { f32::NEG_INFINITY };
        }
        let least = match self.metric {
            // A key of 0 may stand for differences whose squares underflow.
            Metric::L2 => (self.squares * (1.0 - self.tiny) - worst * (1.0 + self.tiny) - 1e-300) * 0.5,
            Metric::InnerProduct => {
                -worst - self.with_centre - self.tiny * self.size * (self.centre_norm + self.size)
            }
            _ => 1.0 - worst - self.with_centre - self.tiny * (2.0 + self.size * self.size),
        } / self.step;
        below(least - COMPARISON * least.abs())
    }

    /// The key of a row with this score, in units of the query's step, but for rounding: the opposite of
    /// [`IntQuery::limit`]. NaN where the integers say nothing.
    pub(crate) fn key_of(&self, score: f64) -> f64 {
        let score = score * self.step;
        match self.metric {
            _ if !self.safe => f64::NAN,
            Metric::L2 => self.squares - 2.0 * score,
            Metric::InnerProduct => -(score + self.with_centre),
            _ => 1.0 - score - self.with_centre,
        }
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
