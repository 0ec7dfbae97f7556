//! Rows of the base made ready for the kernels.

use crate::cut::norm_is_safe;
use crate::distance::{masked_bits, norm};
use kernel::Level;
use rayon::prelude::*;
use types::{Element, Metric, Vectors};

/// Memory that blocks use again.
#[derive(Default)]
pub(crate) struct Buffer {
    floats: Vec<f32>,
    bits: Vec<Vec<u8>>,
}

/// Some rows, ready for the kernels. Rows without a distance are left out.
pub(crate) struct Block<'a> {
    /// Row numbers, ascending.
    pub(crate) ids: Vec<u32>,
    /// The rows as f32; empty for bits.
    pub(crate) rows: Vec<&'a [f32]>,
    /// The rows as bits, unused ones cleared; empty for numbers.
    pub(crate) bits: Vec<&'a [u8]>,
    /// Euclidean norms, where the metric needs them, else 0.
    pub(crate) norms: Vec<f64>,
    /// The same as f32.
    pub(crate) norms_f32: Vec<f32>,
    /// Whether the bound on dot products holds for all rows.
    pub(crate) safe: bool,
}

impl<'a> Block<'a> {
    /// The rows `ids` of `base`.
    pub(crate) fn load(
        base: &'a Vectors,
        metric: Metric,
        level: Level,
        ids: Vec<u32>,
        buffer: &'a mut Buffer,
    ) -> Block<'a> {
        let mut block = Block {
            rows: Vec::new(),
            bits: Vec::new(),
            norms: vec![0.0; ids.len()],
            norms_f32: vec![0.0; ids.len()],
            safe: true,
            ids,
        };
        if metric == Metric::Hamming {
            buffer.bits.resize_with(block.ids.len(), Vec::new);
            let fill = |(bits, &row): (&mut Vec<u8>, &u32)| masked_bits(base, row as usize, bits);
            buffer.bits.par_iter_mut().zip(&block.ids).with_min_len(256).for_each(fill);
            block.bits = buffer.bits.iter().map(Vec::as_slice).collect();
            return block;
        }
        block.rows = float_rows(base, &block.ids, &mut buffer.floats);
        if metric != Metric::L2 {
            let norms = block.rows.par_iter().with_min_len(64).map(|row| norm(level, row));
            block.norms = norms.collect();
            if metric == Metric::Cosine {
                block.leave_out_zero_rows();
            }
            block.safe = block.norms.iter().all(|&n| n == 0.0 || norm_is_safe(n));
            block.norms_f32 = block.norms.iter().map(|&n| n as f32).collect();
        }
        block
    }

    fn leave_out_zero_rows(&mut self) {
        let keep: Vec<bool> = self.norms.iter().map(|&n| n > 0.0).collect();
        let mut kept = keep.iter();
        self.ids.retain(|_| kept.next() == Some(&true));
        kept = keep.iter();
        self.rows.retain(|_| kept.next() == Some(&true));
        self.norms.retain(|&n| n > 0.0);
    }
}

/// The rows as f32: borrowed where they are stored so, else decoded into `buffer`.
fn float_rows<'a>(base: &'a Vectors, ids: &[u32], buffer: &'a mut Vec<f32>) -> Vec<&'a [f32]> {
    let borrow = |&id: &u32| match base.row(id as usize) {
        std::borrow::Cow::Borrowed(row) => Some(row),
        std::borrow::Cow::Owned(_) => None,
    };
    // All rows or none: alignment may differ between rows of a strided view.
    if base.element() == Element::F32
        && let Some(rows) = ids.iter().map(borrow).collect()
    {
        return rows;
    }
    let dim = base.dim();
    buffer.resize(ids.len() * dim, 0.0);
    if dim == 0 {
        return vec![&[]; ids.len()];
    }
    let decode = |(out, &id): (&mut [f32], &u32)| base.row_into(id as usize, out);
    buffer.par_chunks_mut(dim).zip(ids).with_min_len(64).for_each(decode);
    buffer.chunks(dim).collect()
}
