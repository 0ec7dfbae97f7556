//! Exact neighbours of one query at a time over a prepared base: the `flat` engine's search.

use crate::ExactError;
use crate::cut::{cut_at, norm_is_safe};
use crate::distance::{Probe, check_metric, key_distance, masked_bits, norm};
use crate::topk::{Scored, TopK};
use kernel::{Cut, Level, SCORE_ROWS, scores};
use rayon::prelude::*;
use std::ops::Range;
use types::{Element, Metric, Neighbour, RowSet, Vectors};

/// A base made ready for single queries; clients share it.
#[derive(Debug)]
pub struct Searcher {
    base: Vectors,
    metric: Metric,
    level: Level,
    /// Norms of the rows; empty where the metric needs none.
    norms: Vec<f64>,
    /// Whether the bound on dot products holds for all rows.
    safe: bool,
}

/// Memory of one client, used again from query to query.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) probe: Probe,
    pub(crate) sorted: Vec<Scored>,
    best: TopK,
    decoded: Vec<f32>,
    bits: Vec<u8>,
}

impl Searcher {
    /// Prepares `base` (computes norms, on all cores).
    ///
    /// # Errors
    /// Where the metric does not fit the vectors, or there are too many rows.
    pub fn new(base: Vectors, metric: Metric) -> Result<Searcher, ExactError> {
        check_metric(metric, base.element())?;
        if u32::try_from(base.rows()).is_err() {
            return Err(ExactError::TooManyRows(base.rows()));
        }
        Ok(Searcher::prepared(base, metric, Level::detect()))
    }

    /// As [`Searcher::new`], for a base that is checked already.
    pub(crate) fn prepared(base: Vectors, metric: Metric, level: Level) -> Searcher {
        let norms: Vec<f64> = match metric {
            Metric::Cosine | Metric::InnerProduct => (0..base.rows())
                .into_par_iter()
                .with_min_len(256)
                .map(|i| norm(level, &base.row(i)))
                .collect(),
            Metric::L2 | Metric::Hamming => Vec::new(),
        };
        let safe = norms.iter().all(|&n| n == 0.0 || norm_is_safe(n));
        Searcher { base, metric, level, norms, safe }
    }

    /// The base that is searched.
    pub fn base(&self) -> &Vectors {
        &self.base
    }

    /// The metric.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// The `k` nearest of `rows` (all rows where none), as [`crate::neighbours`] gives them, into
    /// `out`. Returns how many rows qualify.
    ///
    /// # Errors
    /// Where the query has another length, the base holds bits, or the row set has another length.
    pub fn search(
        &self,
        query: &[f32],
        k: usize,
        rows: Option<&RowSet>,
        scratch: &mut Scratch,
        out: &mut Vec<Neighbour>,
    ) -> Result<u64, ExactError> {
        if self.base.element() == Element::Bit {
            return Err(ExactError::Elements { base: Element::Bit, queries: Element::F32 });
        }
        if query.len() != self.base.dim() {
            return Err(ExactError::Dimensions { base: self.base.dim(), queries: query.len() });
        }
        scratch.probe.set_floats(query);
        self.finish(k, rows, scratch, out)
    }

    /// [`Searcher::search`] for bits: the query packed as [`Element::Bit`] says.
    ///
    /// # Errors
    /// Where the query has another length, the base holds no bits, or the row set has another length.
    pub fn search_bits(
        &self,
        query: &[u8],
        k: usize,
        rows: Option<&RowSet>,
        scratch: &mut Scratch,
        out: &mut Vec<Neighbour>,
    ) -> Result<u64, ExactError> {
        if self.base.element() != Element::Bit {
            return Err(ExactError::Elements { base: self.base.element(), queries: Element::Bit });
        }
        let query = Vectors::from_bytes(query.to_vec(), 1, self.base.dim(), Element::Bit)
            .ok()
            .ok_or(ExactError::Dimensions { base: self.base.dim(), queries: query.len() * 8 })?;
        scratch.probe = Probe::new(&query, 0);
        self.finish(k, rows, scratch, out)
    }

    fn finish(
        &self,
        k: usize,
        rows: Option<&RowSet>,
        scratch: &mut Scratch,
        out: &mut Vec<Neighbour>,
    ) -> Result<u64, ExactError> {
        if let Some(rows) = rows
            && rows.rows() != self.base.rows()
        {
            let (found, expected) = (rows.rows(), self.base.rows());
            return Err(ExactError::Length { what: "row set", unit: "rows", found, expected });
        }
        let matching = self.scan(k, rows, 0..self.base.rows(), scratch);
        out.clear();
        let list = scratch.sorted.iter();
        out.extend(list.map(|s| Neighbour { row: s.row, distance: key_distance(self.metric, s.key) }));
        Ok(matching)
    }

    /// The search for `scratch.probe` among rows of `range`, into `scratch.sorted`; returns how many
    /// of them qualify.
    pub(crate) fn scan(
        &self,
        k: usize,
        rows: Option<&RowSet>,
        range: Range<usize>,
        scratch: &mut Scratch,
    ) -> u64 {
        scratch.sorted.clear();
        if !scratch.probe.is_defined(self.metric) {
            return 0;
        }
        scratch.best.reset(k.min(self.base.rows()));
        let matching = match rows {
            None => self.scan_rows(range, scratch),
            Some(rows) => self.scan_rows(rows.iter_in(range), scratch),
        };
        let Scratch { best, sorted, .. } = scratch;
        best.drain_sorted(sorted);
        matching
    }

    /// Scans the rows named, ascending; returns how many have a distance.
    fn scan_rows(&self, rows: impl Iterator<Item = usize>, scratch: &mut Scratch) -> u64 {
        if self.metric == Metric::Hamming {
            let mut count = 0;
            for row in rows {
                count += 1;
                masked_bits(&self.base, row, &mut scratch.bits);
                let key = scratch.probe.bit_key(self.level, &scratch.bits);
                scratch.best.offer(Scored { key, row: row as u32 });
            }
            return count;
        }
        let zero = |row: &usize| self.metric == Metric::Cosine && self.norms[*row] == 0.0;
        let mut rows = rows.filter(|row| !zero(row));
        let mut cut = Cut::NONE;
        let mut count = 0;
        loop {
            let mut batch = [0; SCORE_ROWS];
            let mut len = 0;
            for (slot, row) in batch.iter_mut().zip(rows.by_ref()) {
                *slot = row;
                len += 1;
            }
            if len == 0 {
                return count;
            }
            let last = batch[len - 1];
            batch[len..].fill(last);
            self.scan_batch(&batch, len, &mut cut, scratch);
            count += len as u64;
        }
    }

    /// Offers the first `len` rows of a batch.
    fn scan_batch(&self, batch: &[usize; SCORE_ROWS], len: usize, cut: &mut Cut, scratch: &mut Scratch) {
        let dim = self.base.dim();
        let Scratch { probe, best, decoded, .. } = scratch;
        let cows = batch.map(|row| {
            // Rows that are stored as f32 are read in place; others are decoded below.
            if self.base.element() == Element::F32 { Some(self.base.row(row)) } else { None }
        });
        if cows[0].is_none() {
            decoded.resize(dim * SCORE_ROWS, 0.0);
            for (i, &row) in batch.iter().enumerate() {
                self.base.row_into(row, &mut decoded[i * dim..(i + 1) * dim]);
            }
        }
        let views: [&[f32]; SCORE_ROWS] = std::array::from_fn(|i| match &cows[i] {
            Some(row) => row.as_ref(),
            None => &decoded[i * dim..(i + 1) * dim],
        });
        let scores = scores(self.level, self.metric == Metric::L2, &views, &probe.floats);
        for i in 0..len {
            let norm = self.norms.get(batch[i]).copied().unwrap_or(0.0);
            let limit = cut.slope * norm as f32 + cut.constant;
            // Not `score >= limit`: a score that is NaN (overflow) must be decided exactly.
            if scores[i] < limit {
                continue;
            }
            let key = probe.key(self.metric, self.level, views[i], norm);
            if best.offer(Scored { key, row: batch[i] as u32 }) {
                *cut = cut_at(self.metric, best.worst(), dim, probe.norm, self.safe);
            }
        }
    }
}
