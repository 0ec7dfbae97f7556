//! Rows of the base made ready for the kernels.

use crate::cut::norm_is_safe;
use crate::distance::norm;
use crate::frame::Frame;
use kernel::{IntRows, Level, PANEL_ROWS, RowFigures, Width};
use rayon::prelude::*;
use std::ops::Range;
use types::{Element, Metric, Vectors};

/// Alignment of the integers: a line of the cache, and of a tile.
const LINE: usize = 64;

/// Memory that blocks use again.
#[derive(Default)]
pub(crate) struct Buffer {
    floats: Vec<f32>,
}

/// Some rows, ready for the kernels.
pub(crate) struct Block<'a> {
    /// Row numbers, ascending within a class.
    pub(crate) ids: Vec<u32>,
    /// For each row the cases that it belongs to, a bit each.
    pub(crate) members: Vec<u64>,
    /// Rows that stand together since they have the same strictest case, with all their cases.
    pub(crate) classes: Vec<(Range<usize>, u64)>,
    /// The rows as f32; empty for bits.
    pub(crate) rows: Vec<&'a [f32]>,
    /// The rows as bits; empty for numbers.
    pub(crate) bits: Vec<&'a [u8]>,
    /// Euclidean norms, where the metric needs them, else 0.
    pub(crate) norms: Vec<f64>,
    /// The same as f32.
    pub(crate) norms_f32: Vec<f32>,
    /// Whether the bound on dot products holds for all rows.
    pub(crate) safe: bool,
}

impl<'a> Block<'a> {
    /// The rows named, each with the cases that it belongs to, sorted into classes. `dots` tells
    /// whether dot products in f32 will be compared.
    pub(crate) fn load(
        base: &'a Vectors,
        metric: Metric,
        level: Level,
        rows: &[(u32, u64)],
        dots: bool,
        buffer: &'a mut Buffer,
    ) -> Block<'a> {
        let (ids, members, classes) = by_class(rows);
        let mut block = Block {
            rows: Vec::new(),
            bits: Vec::new(),
            norms: vec![0.0; ids.len()],
            norms_f32: vec![0.0; ids.len()],
            safe: true,
            ids,
            members,
            classes,
        };
        if metric == Metric::Hamming {
            block.bits = block.ids.iter().map(|&row| base.row_bytes(row as usize)).collect();
            return block;
        }
        block.rows = float_rows(base, &block.ids, &mut buffer.floats);
        // Where integers screen, the norms come with them, while a row is at hand.
        if dots && metric != Metric::L2 {
            let norms = block.rows.par_iter().with_min_len(64).map(|row| norm(level, row));
            block.norms = norms.collect();
            block.safe = block.norms.iter().all(|&n| n == 0.0 || norm_is_safe(n));
            block.norms_f32 = block.norms.iter().map(|&n| n as f32).collect();
        }
        block
    }

    /// Whether row `i` of the block has a distance.
    pub(crate) fn is_defined(&self, metric: Metric, i: usize) -> bool {
        metric != Metric::Cosine || self.norms[i] > 0.0
    }
}

type Sorted = (Vec<u32>, Vec<u64>, Vec<(Range<usize>, u64)>);

/// Rows by their strictest case: cases are numbered from the strictest on.
fn by_class(rows: &[(u32, u64)]) -> Sorted {
    let mut starts = [0_usize; 65];
    for &(_, members) in rows {
        starts[members.trailing_zeros() as usize + 1] += 1;
    }
    for i in 0..64 {
        starts[i + 1] += starts[i];
    }
    let (mut ids, mut members) = (vec![0; rows.len()], vec![0; rows.len()]);
    let mut unions = [0_u64; 64];
    let mut next = starts;
    for &(id, of) in rows {
        let class = of.trailing_zeros() as usize;
        ids[next[class]] = id;
        members[next[class]] = of;
        next[class] += 1;
        unions[class] |= of;
    }
    let class = |i: usize| (starts[i] < starts[i + 1]).then(|| (starts[i]..starts[i + 1], unions[i]));
    (ids, members, (0..64).filter_map(class).collect())
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

/// The rows of a block as integers. The memory is used again.
#[derive(Default)]
pub(crate) struct IntBlock {
    integers: Vec<u8>,
    /// Where the first row begins: on a line of the cache.
    start: usize,
    figures: Vec<RowFigures>,
}

impl IntBlock {
    /// Writes the rows of `block`, and where the metric needs them their norms into `block`.
    pub(crate) fn fill(&mut self, frame: &Frame, level: Level, width: Width, block: &mut Block<'_>) {
        let rows = block.rows.len();
        let Some(dim) = block.rows.first().map(|row| row.len()) else { return };
        let stride = width.stride(dim);
        let needed = (rows + PANEL_ROWS) * stride + LINE;
        if self.integers.len() < needed {
            self.integers = vec![0; needed];
        }
        self.start = self.integers.as_ptr().align_offset(LINE).min(LINE);
        self.figures.resize(rows, RowFigures::default());
        let integers = &mut self.integers[self.start..self.start + rows * stride];
        let each = integers.par_chunks_mut(stride * PANEL_ROWS).zip(self.figures.par_chunks_mut(PANEL_ROWS));
        let with_norm = frame.metric() == Metric::Cosine;
        let each = each.zip(block.rows.par_chunks(PANEL_ROWS)).zip(block.norms.par_chunks_mut(PANEL_ROWS));
        each.for_each_init(
            || vec![0.0_f32; dim],
            |work, (((integers, figures), rows), norms)| {
                let lines = integers.chunks_mut(stride);
                for (((out, figures), row), row_norm) in lines.zip(figures).zip(rows).zip(norms) {
                    if with_norm {
                        *row_norm = norm(level, row);
                    }
                    let (out, rest) = out.split_at_mut(dim * width.bytes());
                    *figures = frame.row(level, width, row, *row_norm, work, out);
                    rest.fill(0);
                }
            },
        );
    }

    /// For the kernel.
    pub(crate) fn rows(&self) -> IntRows<'_> {
        IntRows { integers: &self.integers[self.start..], figures: &self.figures }
    }
}
