//! When an f32 score proves that a pair is out.

use kernel::Cut;
use types::Metric;

/// Half the distance between 1 and the next f32.
const U: f64 = 1.0 / (1 << 24) as f64;
/// Norms between these bounds keep every product of the bound in the normal range of f32.
const SMALL: f64 = 1.0 / (1_u64 << 60) as f64;
const LARGE: f64 = (1_u64 << 60) as f64;
/// The least positive f32.
const LEAST: f64 = 1.401_298_464_324_817e-45;

/// The cut for keys worse than `worst` (see `distance::key`), over `dim` components, for a query
/// of norm `norm`. `rows_safe`: see [`norm_is_safe`].
///
/// The f32 score is a sum of n terms in any order, with or without fused operations. With u = 2^-24:
///
/// * dot product: |score - q.x| <= g |q| |x|, g = n u / (1 - n u) (Higham, Accuracy and Stability of
///   Numerical Algorithms, 3.1, with Cauchy-Schwarz); we take g = (n + 16) u (1 + 2^-8), which also
///   pays for rounding |x|, the cut itself and its evaluation.
/// * minus the squared distance: all terms have one sign, each carries a subtraction and a square, so
///   the error is relative to the distance itself, wherever the vectors lie.
///
/// Underflow adds at most the least f32 per operation. Where a norm leaves 2^-60..2^60 (overflow, or
/// underflow of the bound) or n is so large that g is no bound, nothing is ruled out.
pub(crate) fn cut_at(metric: Metric, worst: f64, dim: usize, norm: f64, rows_safe: bool) -> Cut {
    let terms = dim as f64 + 16.0;
    let gamma = terms * U * (1.0 + 1.0 / 256.0);
    let tiny = terms * 4.0 * LEAST;
    if !worst.is_finite() || gamma > 1.0 / 16.0 {
        return Cut::NONE;
    }
    match metric {
        Metric::L2 => Cut { constant: below(-(worst * (1.0 + 2.0 * gamma) + tiny)), slope: 0.0 },
        Metric::InnerProduct if rows_safe && norm_is_safe(norm) => {
            Cut { constant: below(-worst - worst.abs() * 8.0 * U - tiny), slope: below(-gamma * norm) }
        }
        Metric::Cosine if rows_safe && norm_is_safe(norm) => {
            Cut { constant: below(-tiny), slope: below((1.0 - worst - gamma) * norm) }
        }
        Metric::InnerProduct | Metric::Cosine | Metric::Hamming => Cut::NONE,
    }
}

/// What the key of a pair with this f32 score is hardly above: the bound of [`cut_at`] on the other side,
/// without its care for underflow. Not proven, and nothing rests on it unverified; NaN where nothing is known.
pub(crate) fn highest_key(metric: Metric, score: f32, dim: usize, norm: f64, row_norm: f64) -> f64 {
    let gamma = (dim as f64 + 16.0) * U * (1.0 + 1.0 / 256.0);
    let score = f64::from(score);
    match metric {
        Metric::L2 => -score * (1.0 + 2.0 * gamma),
        Metric::InnerProduct => gamma * norm * row_norm - score,
        Metric::Cosine => 1.0 - score / (norm * row_norm) + gamma,
        Metric::Hamming => f64::NAN,
    }
}

/// Whether the bound holds for dot products with a vector of this norm.
pub(crate) fn norm_is_safe(norm: f64) -> bool {
    (SMALL..=LARGE).contains(&norm)
}

/// The f32 at or below `value`.
fn below(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) > value { near.next_down() } else { near }
}

#[cfg(test)]
#[path = "cut_tests.rs"]
mod tests;
