//! Values as PostgreSQL's binary format has them.

use crate::sql::rows::{Cell, Rows};
use engine::EngineError;
use std::ops::Range;
use types::Value;

/// An operand of a filter: `bigint`, `double precision`, `boolean` or `text`, as the statement casts it.
pub(super) fn operand(value: &Value) -> Vec<u8> {
    match value {
        Value::Int(v) => v.to_be_bytes().to_vec(),
        Value::Float(v) => v.to_be_bytes().to_vec(),
        Value::Bool(v) => vec![u8::from(*v)],
        Value::Text(v) => v.as_bytes().to_vec(),
    }
}

/// Appends the cells of all rows (key, columns, vector) to one buffer; `cells` tells where each is, none for NULL.
///
/// # Errors
/// Where a vector does not fit its form.
pub(super) fn append_cells(
    rows: &Rows<'_>,
    bytes: &mut Vec<u8>,
    cells: &mut Vec<Option<Range<usize>>>,
) -> Result<(), EngineError> {
    let mut scratch = Vec::new();
    for row in 0..rows.len() {
        let start = bytes.len();
        bytes.extend_from_slice(&rows.key(row).to_be_bytes());
        cells.push(Some(start..bytes.len()));
        for cell in rows.cells(row) {
            let start = bytes.len();
            let there = append_cell(&cell, bytes);
            cells.push(there.then_some(start..bytes.len()));
        }
        let start = bytes.len();
        rows.vector(row, &mut scratch, bytes)?;
        cells.push(Some(start..bytes.len()));
    }
    Ok(())
}

/// Appends a value; false where it is NULL.
fn append_cell(cell: &Cell<'_>, out: &mut Vec<u8>) -> bool {
    match cell {
        Cell::Null => return false,
        Cell::Int(v) => out.extend_from_slice(&v.to_be_bytes()),
        Cell::Float(v) => out.extend_from_slice(&v.to_be_bytes()),
        Cell::Bool(v) => out.push(u8::from(*v)),
        Cell::Text(v) => out.extend_from_slice(v.as_bytes()),
    }
    true
}

/// The first bytes of a binary COPY: signature, flags, length of the extension.
const COPY_HEADER: [u8; 19] = *b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// Bytes after which a piece of a COPY is sent.
const PIECE: usize = 256 << 10;

/// Makes the CopyData messages of a binary COPY, piece by piece in one buffer.
#[derive(Default)]
pub(super) struct CopyBuffer {
    piece: Vec<u8>,
    scratch: Vec<f32>,
}

impl CopyBuffer {
    /// Rows as a whole binary COPY: for each row its number of fields, for each field its length and bytes
    /// (-1: NULL), at the end -1 for a row's number of fields. Source: the manual's page on COPY.
    ///
    /// # Errors
    /// Where a vector does not fit its form, or those of `send`.
    pub(super) fn write(
        &mut self,
        rows: &Rows<'_>,
        mut send: impl FnMut(&[u8]) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        // As many columns as a table can have, so it fits.
        let fields = (rows.columns.len() + 2) as i16;
        self.begin();
        self.piece.extend_from_slice(&COPY_HEADER);
        for row in 0..rows.len() {
            self.piece.extend_from_slice(&fields.to_be_bytes());
            self.field(|out, _| {
                out.extend_from_slice(&rows.key(row).to_be_bytes());
                Ok(true)
            })?;
            for cell in rows.cells(row) {
                self.field(|out, _| Ok(append_cell(&cell, out)))?;
            }
            self.field(|out, scratch| rows.vector(row, scratch, out).map(|()| true))?;
            if self.piece.len() >= PIECE {
                self.end(&mut send)?;
                self.begin();
            }
        }
        self.piece.extend_from_slice(&(-1_i16).to_be_bytes());
        self.end(&mut send)
    }

    /// A field: its length, which is known only behind it, and its bytes; false for NULL.
    fn field(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>, &mut Vec<f32>) -> Result<bool, EngineError>,
    ) -> Result<(), EngineError> {
        let place = self.piece.len();
        self.piece.extend_from_slice(&(-1_i32).to_be_bytes());
        if write(&mut self.piece, &mut self.scratch)? {
            set_length(&mut self.piece, place, 4);
        }
        Ok(())
    }

    /// Begins a CopyData message: its letter and room for its length.
    fn begin(&mut self) {
        self.piece.clear();
        self.piece.extend_from_slice(&[b'd', 0, 0, 0, 0]);
    }

    fn end(&mut self, send: &mut impl FnMut(&[u8]) -> Result<(), EngineError>) -> Result<(), EngineError> {
        // A message's length counts itself.
        set_length(&mut self.piece, 1, 0);
        send(&self.piece)
    }
}

/// Writes at `place` how many bytes stand from `place + skip` to the end; less than 2 GB, as pieces are.
fn set_length(bytes: &mut [u8], place: usize, skip: usize) {
    let length = (bytes.len() - place - skip) as u32;
    bytes[place..place + 4].copy_from_slice(&length.to_be_bytes());
}
