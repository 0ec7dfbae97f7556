//! Rows of the base made ready for the kernels.

use crate::ExactError;
use crate::cut::norm_is_safe;
use crate::distance::norm;
use crate::frame::Frame;
use kernel::{IntRows, Level, PANEL_ROWS, RowFigures, Width};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use types::{Element, Metric, Vectors};

/// Alignment of the integers: a line of the cache, and of a tile.
const LINE: usize = 64;

/// Some rows, ready for the kernels.
#[derive(Default)]
pub(crate) struct Block<'a> {
    /// Row numbers, ascending within a class.
    pub(crate) ids: Vec<u32>,
    /// For each row the cases that it belongs to, a bit each.
    pub(crate) members: Vec<u64>,
    /// Rows that stand together since they have the same strictest case, with all their cases.
    pub(crate) classes: Vec<(Range<usize>, u64)>,
    /// The rows as f32 where they are stored so; else they are in `decoded`.
    borrowed: Vec<&'a [f32]>,
    decoded: Vec<f32>,
    dim: usize,
    /// The rows as bits; empty for numbers.
    pub(crate) bits: Vec<&'a [u8]>,
    /// Euclidean norms, where the metric needs them, else 0. Where there are integers some are sums in f32,
    /// but 0 only where the row is; [`Norms`] gives those that decide.
    pub(crate) norms: Vec<f64>,
    /// The same as f32; empty where nothing is screened in f32.
    pub(crate) norms_f32: Vec<f32>,
    /// Whether the bound on dot products holds for all rows.
    pub(crate) safe: bool,
    /// The rows as integers; empty where nothing is screened by them.
    integers: IntBlock,
}

impl<'a> Block<'a> {
    /// The rows named, each with the cases that it belongs to, sorted into classes, and the integers
    /// that screen them where there is a frame. The memory of `self` is used again.
    ///
    /// # Errors
    /// [`ExactError::NotFinite`].
    pub(crate) fn load(
        &mut self,
        base: &'a Vectors,
        metric: Metric,
        level: Level,
        rows: &[(u32, u64)],
        integers: Option<(Width, &Frame)>,
    ) -> Result<(), ExactError> {
        (self.ids, self.members, self.classes) = by_class(rows);
        self.dim = base.dim();
        self.safe = true;
        if metric == Metric::Hamming {
            self.bits = self.ids.iter().map(|&row| base.row_bytes(row as usize)).collect();
            return Ok(());
        }
        self.decode(base);
        self.norms.clear();
        self.norms.resize(self.ids.len(), 0.0);
        match integers {
            Some((width, frame)) => self.fill_integers(frame, level, width),
            None => {
                let row = |i| norm(level, self.row(i));
                let norms: Vec<f64> = (0..self.ids.len()).into_par_iter().with_min_len(64).map(row).collect();
                self.safe = norms.iter().all(|&n| n == 0.0 || norm_is_safe(n));
                self.norms_f32 = norms.iter().map(|&n| n as f32).collect();
                self.norms = norms;
            }
        }
        // A norm in f64 of finite f32 is finite.
        match self.norms.iter().position(|norm| !norm.is_finite()) {
            Some(at) => Err(ExactError::NotFinite { what: "base", row: self.ids[at] as usize }),
            None => Ok(()),
        }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Row `i` as f32.
    pub(crate) fn row(&self, i: usize) -> &[f32] {
        match self.borrowed.get(i) {
            Some(row) => row,
            None => &self.decoded[i * self.dim..(i + 1) * self.dim],
        }
    }

    /// The rows as integers.
    pub(crate) fn integers(&self) -> IntRows<'_> {
        let IntBlock { integers, start, figures } = &self.integers;
        IntRows { integers: integers.get(*start..).unwrap_or_default(), figures }
    }

    /// Whether row `i` of the block has a distance.
    pub(crate) fn is_defined(&self, metric: Metric, i: usize) -> bool {
        metric != Metric::Cosine || self.norms[i] > 0.0
    }

    /// The rows as f32: borrowed where they are stored so, else decoded.
    fn decode(&mut self, base: &'a Vectors) {
        let borrow = |&id: &u32| match base.row(id as usize) {
            std::borrow::Cow::Borrowed(row) => Some(row),
            std::borrow::Cow::Owned(_) => None,
        };
        self.borrowed.clear();
        // All rows or none: alignment may differ between rows of a strided view.
        if base.element() == Element::F32
            && let Some(rows) = self.ids.iter().map(borrow).collect()
        {
            self.borrowed = rows;
            return;
        }
        self.decoded.resize(self.ids.len() * self.dim, 0.0);
        if self.dim > 0 {
            let decode = |(out, &id): (&mut [f32], &u32)| base.row_into(id as usize, out);
            self.decoded.par_chunks_mut(self.dim).zip(&self.ids).with_min_len(64).for_each(decode);
        }
    }

    /// Writes the rows as integers, with their norms while a row is at hand.
    fn fill_integers(&mut self, frame: &Frame, level: Level, width: Width) {
        let (rows, dim) = (self.ids.len(), self.dim);
        let stride = width.stride(dim);
        let IntBlock { mut integers, mut figures, .. } = std::mem::take(&mut self.integers);
        let mut norms = std::mem::take(&mut self.norms);
        let needed = (rows + PANEL_ROWS) * stride + LINE;
        if integers.len() < needed {
            integers = vec![0; needed];
        }
        let start = integers.as_ptr().align_offset(LINE).min(LINE);
        figures.resize(rows, RowFigures::default());
        let lines = integers[start..start + rows * stride].par_chunks_mut(stride * PANEL_ROWS);
        let each = lines.zip(figures.par_chunks_mut(PANEL_ROWS)).zip(norms.par_chunks_mut(PANEL_ROWS));
        each.enumerate().for_each_init(
            || vec![0.0_f32; dim],
            |work, (panel, ((lines, figures), norms))| {
                let lines = lines.chunks_mut(stride).zip(figures).zip(norms).enumerate();
                for (i, ((out, figures), row_norm)) in lines {
                    let row = self.row(panel * PANEL_ROWS + i);
                    let length = frame.length(level, row);
                    *row_norm = length.norm;
                    let (out, rest) = out.split_at_mut(dim * width.bytes());
                    *figures = frame.row(level, width, row, length, work, out);
                    rest.fill(0);
                    // What f32 cannot hold may still be finite.
                    if figures.lost == f32::INFINITY && !row.iter().all(|x| x.is_finite()) {
                        *row_norm = f64::NAN;
                    }
                }
            },
        );
        self.norms = norms;
        self.integers = IntBlock { integers, start, figures };
    }
}

/// Norms of the rows of a range as sums in float64: computed when first asked for, by any thread.
#[derive(Default)]
pub(crate) struct Norms {
    first: usize,
    /// Their bits; 0 for what nobody asked for yet.
    of: Vec<AtomicU64>,
}

impl Norms {
    /// Of `rows`, if keys or bounds need them: else every norm is 0.
    pub(crate) fn new(rows: &Range<usize>, needed: bool) -> Norms {
        let count = if needed { rows.len() } else { 0 };
        Norms { first: rows.start, of: (0..count).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Keeps those of a block that is screened in f32.
    pub(crate) fn keep(&self, block: &Block<'_>) {
        if !block.norms_f32.is_empty() {
            for (&id, &norm) in block.ids.iter().zip(&block.norms) {
                if let Some(of) = self.of.get(id as usize - self.first) {
                    of.store(norm.to_bits(), Ordering::Relaxed);
                }
            }
        }
    }

    /// That of row `row`, whose components are `values`.
    pub(crate) fn of(&self, level: Level, row: u32, values: &[f32]) -> f64 {
        let Some(of) = (row as usize).checked_sub(self.first).and_then(|at| self.of.get(at)) else {
            return 0.0;
        };
        let known = of.load(Ordering::Relaxed);
        if known != 0 {
            return f64::from_bits(known);
        }
        let norm = norm(level, values);
        // Whoever comes at the same time stores the same.
        of.store(norm.to_bits(), Ordering::Relaxed);
        norm
    }

    /// That of a row of a block that was kept.
    pub(crate) fn kept(&self, row: u32) -> f64 {
        let of = (row as usize).checked_sub(self.first).and_then(|at| self.of.get(at));
        of.map_or(0.0, |of| f64::from_bits(of.load(Ordering::Relaxed)))
    }
}

/// Rows of a block as integers.
#[derive(Default)]
struct IntBlock {
    integers: Vec<u8>,
    /// Where the first row begins: on a line of the cache.
    start: usize,
    figures: Vec<RowFigures>,
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
