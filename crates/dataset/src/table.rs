//! From an array in a file to [`Vectors`]: used in place where it can be, else converted block by
//! block into a flat copy. What is not here: where in a file an array lies.

use crate::{
    DatasetError, OpenOptions,
    convert::{Converter, Stored},
    flat::{self, Flat, Sink},
};
use std::{borrow::Cow, path::Path, sync::Arc};
use types::{ByteStore, Vectors};

/// Bytes converted at a time.
const BLOCK_BYTES: usize = 8 << 20;

/// The most components that a vector may have; a header that says more is damaged or hostile.
pub(crate) const MAX_DIM: usize = 1 << 20;

/// A two-dimensional array in a file.
#[derive(Clone, Copy)]
pub(crate) struct Array<'a> {
    /// The file.
    pub(crate) path: &'a Path,
    /// What the array is called in messages ("train", "base").
    pub(crate) part: &'a str,
    /// Rows to read.
    pub(crate) rows: usize,
    /// Numbers in a row.
    pub(crate) dim: usize,
    /// How a number is stored.
    pub(crate) stored: Stored,
    /// Whether the bytes are big-endian.
    pub(crate) big: bool,
}

impl Array<'_> {
    /// Refuses shapes that nothing can be done with.
    pub(crate) fn check(&self) -> Result<(), DatasetError> {
        let Array { path, part, rows, dim, .. } = self;
        if *dim == 0 || *dim > MAX_DIM {
            let reason = format!("{part} has {dim} components a row; 1 to {MAX_DIM} can be read");
            return Err(DatasetError::invalid(path, reason));
        }
        if u32::try_from(*rows).is_err() {
            let reason = format!("{part} has {rows} rows; at most {} can be read, give a limit", u32::MAX);
            return Err(DatasetError::invalid(path, reason));
        }
        Ok(())
    }

    /// The rows where they lie in `store`, from `offset` on, `gap` bytes before each next row; a
    /// converted copy where the type or byte order is not one that can be searched.
    pub(crate) fn mapped(
        &self,
        options: &OpenOptions,
        store: Arc<dyn ByteStore>,
        offset: usize,
        gap: usize,
    ) -> Result<Flat, DatasetError> {
        self.check()?;
        let row = self.dim * self.stored.size();
        let stride = row + gap;
        if self.stored.in_place() && (!self.big || self.stored.size() == 1) {
            let element = self.stored.element();
            let vectors = Vectors::view(store, offset, stride, self.rows, self.dim, element)
                .map_err(|e| DatasetError::invalid(self.path, e.to_string()))?;
            return Ok(Flat { vectors, notices: Vec::new() });
        }
        self.streamed(options, 1, |start, rows| {
            let bytes = store.bytes();
            let mut block = Vec::with_capacity(rows * row);
            for i in start..start + rows {
                let from = offset + i * stride;
                let found = bytes.get(from..from + row);
                let found = found.ok_or_else(|| self.short(i))?;
                block.extend_from_slice(found);
            }
            Ok(Cow::Owned(block))
        })
    }

    /// A converted copy of what `block(first row, rows)` gives, in blocks of a multiple of
    /// `granule` rows where that is not too much.
    pub(crate) fn streamed<'b>(
        &self,
        options: &OpenOptions,
        granule: usize,
        mut block: impl FnMut(usize, usize) -> Result<Cow<'b, [u8]>, DatasetError>,
    ) -> Result<Flat, DatasetError> {
        self.check()?;
        let cache_dir = options.cache_dir.as_deref();
        let what = format!("{} {} x {} {:?} {}", self.part, self.rows, self.dim, self.stored, self.big);
        let key = flat::key(&[self.path], &what)?;
        if let Some(known) = flat::cached(cache_dir, &key) {
            return Ok(known);
        }
        let mut converter = Converter::new(self.stored, self.big, self.dim);
        let bytes = self.stored.element().row_bytes(self.dim) as u64 * self.rows as u64;
        let mut sink = Sink::new(cache_dir, &key, Some(bytes));
        let step = self.block_rows(granule);
        let mut out = Vec::new();
        for start in (0..self.rows).step_by(step) {
            let rows = step.min(self.rows - start);
            let raw = block(start, rows)?;
            if raw.len() != rows * converter.row_bytes_in() {
                return Err(self.short(start));
            }
            out.clear();
            converter.convert(self.path, self.part, &raw, &mut out)?;
            sink.write(&out)?;
        }
        let notices = converter.notices(self.part);
        sink.finish(self.path, self.dim, converter.element(), notices)
    }

    fn block_rows(&self, granule: usize) -> usize {
        let row = (self.dim * self.stored.size()).max(1);
        let plain = (BLOCK_BYTES / row).max(1);
        let granule = granule.max(1);
        // Whole chunks are read once; a chunk of very many rows is read in parts after all.
        if granule >= plain { granule.min(plain * 16) } else { plain / granule * granule }
    }

    fn short(&self, row: usize) -> DatasetError {
        let reason = format!("{} ends before row {row} of {}; the file is incomplete", self.part, self.rows);
        DatasetError::invalid(self.path, reason)
    }
}
