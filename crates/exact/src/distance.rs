//! The distance of a pair, in float64: the reference for everything else.

use crate::ExactError;
use kernel::{Level, dot64, hamming, l2_squared64, norm_squared64};
use types::{Element, Metric, Vectors};

/// Whether `metric` has a meaning for vectors of `element`.
///
/// # Errors
/// [`ExactError::Incompatible`]: bits take hamming, everything else does not.
pub fn check_metric(metric: Metric, element: Element) -> Result<(), ExactError> {
    if (metric == Metric::Hamming) == (element == Element::Bit) {
        Ok(())
    } else {
        Err(ExactError::Incompatible { metric, element })
    }
}

/// Checks that base, queries and metric go together and that rows have numbers.
pub(crate) fn check_pair(base: &Vectors, queries: &Vectors, metric: Metric) -> Result<(), ExactError> {
    if (base.element() == Element::Bit) != (queries.element() == Element::Bit) {
        return Err(ExactError::Elements { base: base.element(), queries: queries.element() });
    }
    check_metric(metric, base.element())?;
    if base.dim() != queries.dim() {
        return Err(ExactError::Dimensions { base: base.dim(), queries: queries.dim() });
    }
    if u32::try_from(base.rows()).is_err() {
        return Err(ExactError::TooManyRows(base.rows()));
    }
    Ok(())
}

/// Distance between two vectors of one length, as [`Metric`] defines it, in float64; NaN where it is
/// undefined (a zero vector under cosine). Hamming counts components that differ.
///
/// # Panics
/// Where the lengths differ.
pub fn distance(metric: Metric, a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    if metric == Metric::Hamming {
        return a.iter().zip(b).filter(|(x, y)| x != y).count() as f64;
    }
    let probe = Probe::from_floats(a.to_vec());
    key_distance(metric, probe.key(metric, Level::detect(), b, norm(Level::detect(), b)))
}

/// Euclidean norm.
pub(crate) fn norm(level: Level, row: &[f32]) -> f64 {
    norm_squared64(level, row, row).sqrt()
}

/// A query made ready.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    /// As f32; empty for bits.
    pub(crate) floats: Vec<f32>,
    /// Euclidean norm.
    pub(crate) norm: f64,
    /// Packed bits, unused ones cleared; empty for numbers.
    pub(crate) bits: Vec<u8>,
}

impl Probe {
    /// Row `query` of `queries`.
    pub(crate) fn new(queries: &Vectors, query: usize) -> Probe {
        if queries.element() == Element::Bit {
            let mut bits = Vec::new();
            masked_bits(queries, query, &mut bits);
            return Probe { floats: Vec::new(), norm: 0.0, bits };
        }
        Probe::from_floats(queries.row(query).into_owned())
    }

    /// Numbers given as f32.
    pub(crate) fn from_floats(floats: Vec<f32>) -> Probe {
        let norm = norm(Level::detect(), &floats);
        Probe { floats, norm, bits: Vec::new() }
    }

    /// Takes other numbers, keeping the memory.
    pub(crate) fn set_floats(&mut self, floats: &[f32]) {
        self.floats.clear();
        self.floats.extend_from_slice(floats);
        self.norm = norm(Level::detect(), floats);
    }

    /// Whether the query has a distance to any row at all.
    pub(crate) fn is_defined(&self, metric: Metric) -> bool {
        metric != Metric::Cosine || self.norm > 0.0
    }

    /// The key that orders rows: smaller is nearer, NaN where undefined. Equal to the distance but
    /// for L2, where it is the square (no root is taken, so nothing is rounded together).
    pub(crate) fn key(&self, metric: Metric, level: Level, row: &[f32], row_norm: f64) -> f64 {
        match metric {
            Metric::L2 => l2_squared64(level, row, &self.floats),
            Metric::InnerProduct => -dot64(level, row, &self.floats),
            Metric::Cosine if self.norm > 0.0 && row_norm > 0.0 => {
                (1.0 - dot64(level, row, &self.floats) / (self.norm * row_norm)).clamp(0.0, 2.0)
            }
            Metric::Cosine | Metric::Hamming => f64::NAN,
        }
    }

    /// Number of bits that differ from `row`, whose unused bits are cleared.
    pub(crate) fn bit_key(&self, level: Level, row: &[u8]) -> f64 {
        f64::from(hamming(level, row, &self.bits))
    }
}

/// The distance that a key of [`Probe::key`] stands for.
pub(crate) fn key_distance(metric: Metric, key: f64) -> f64 {
    if metric == Metric::L2 { key.sqrt() } else { key }
}

/// Writes row `i` of bit vectors with the unused bits of its last byte cleared.
pub(crate) fn masked_bits(vectors: &Vectors, i: usize, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(vectors.row_bytes(i));
    let used = vectors.dim() % 8;
    if used != 0
        && let Some(last) = out.last_mut()
    {
        *last &= 0xFF_u8 << (8 - used);
    }
}

/// Distances from one query to rows named one by one: for recall and checks.
pub(crate) struct Measure<'a> {
    base: &'a Vectors,
    metric: Metric,
    level: Level,
    /// The query.
    pub(crate) probe: Probe,
}

impl<'a> Measure<'a> {
    /// From row `query` of `queries` to rows of `base`, which [`check_pair`] has passed.
    pub(crate) fn new(base: &'a Vectors, queries: &Vectors, query: usize, metric: Metric) -> Measure<'a> {
        Measure { base, metric, level: Level::detect(), probe: Probe::new(queries, query) }
    }

    /// The distance of `row`; NaN where undefined.
    pub(crate) fn distance(&self, row: usize) -> f64 {
        if self.metric == Metric::Hamming {
            let mut bits = Vec::new();
            masked_bits(self.base, row, &mut bits);
            return self.probe.bit_key(self.level, &bits);
        }
        let values = self.base.row(row);
        let row_norm = if self.metric == Metric::Cosine { norm(self.level, &values) } else { 0.0 };
        key_distance(self.metric, self.probe.key(self.metric, self.level, &values, row_norm))
    }

    /// Norm of a row.
    pub(crate) fn row_norm(&self, row: usize) -> f64 {
        norm(self.level, &self.base.row(row))
    }
}
