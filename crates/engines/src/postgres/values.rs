//! Values as PostgreSQL's binary format has them.

use crate::sql::rows::{Cell, Rows};
use engine::EngineError;
use postgres::types::{FromSql, IsNull, ToSql, Type, private::BytesMut, to_sql_checked};
use std::{error::Error, ops::Range};
use types::Value;

type Boxed = Box<dyn Error + Sync + Send>;

/// Bytes that are in the binary format already; none is NULL.
#[derive(Debug)]
pub(super) struct Raw<'a>(pub(super) Option<&'a [u8]>);

impl ToSql for Raw<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Boxed> {
        Ok(match self.0 {
            None => IsNull::Yes,
            Some(bytes) => {
                out.extend_from_slice(bytes);
                IsNull::No
            }
        })
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A value of any type, as far as it can be shown.
pub(super) struct Shown(pub(super) Option<String>);

impl<'a> FromSql<'a> for Shown {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Boxed> {
        Ok(Shown(Some(match *kind {
            Type::TEXT | Type::VARCHAR | Type::NAME => String::from_utf8_lossy(raw).into_owned(),
            Type::INT8 => i64::from_sql(kind, raw)?.to_string(),
            _ => format!("({kind})"),
        })))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Boxed> {
        Ok(Shown(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// An operand of a filter: `bigint`, `double precision`, `boolean` or `text`, as the statement casts it.
pub(super) fn operand(value: &Value) -> Vec<u8> {
    match value {
        Value::Int(v) => v.to_be_bytes().to_vec(),
        Value::Float(v) => v.to_be_bytes().to_vec(),
        Value::Bool(v) => vec![u8::from(*v)],
        Value::Text(v) => v.as_bytes().to_vec(),
    }
}

/// The cells of rows one after the other in one buffer.
#[derive(Default)]
pub(super) struct Cells {
    bytes: Vec<u8>,
    at: Vec<Option<Range<usize>>>,
}

impl Cells {
    /// Of all rows: key, columns, vector.
    ///
    /// # Errors
    /// Where a vector does not fit its form.
    pub(super) fn of(rows: &Rows<'_>) -> Result<Self, EngineError> {
        let mut cells = Cells::default();
        let mut scratch = Vec::new();
        for row in 0..rows.len() {
            cells.put(|out| out.extend_from_slice(&rows.key(row).to_be_bytes()));
            for cell in rows.cells(row) {
                match cell {
                    Cell::Null => cells.at.push(None),
                    Cell::Int(v) => cells.put(|out| out.extend_from_slice(&v.to_be_bytes())),
                    Cell::Float(v) => cells.put(|out| out.extend_from_slice(&v.to_be_bytes())),
                    Cell::Bool(v) => cells.put(|out| out.push(u8::from(v))),
                    Cell::Text(v) => cells.put(|out| out.extend_from_slice(v.as_bytes())),
                }
            }
            let start = cells.bytes.len();
            rows.vector(row, &mut scratch, &mut cells.bytes)?;
            cells.at.push(Some(start..cells.bytes.len()));
        }
        Ok(cells)
    }

    fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.at.push(Some(start..self.bytes.len()));
    }

    /// The cells in order.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = Raw<'_>> {
        self.at.iter().map(|at| Raw(at.clone().map(|range| &self.bytes[range])))
    }
}

/// The first bytes of a binary COPY: signature, flags, length of the extension.
const COPY_HEADER: [u8; 19] = *b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// Rows as a whole binary COPY: for each row its number of fields, for each field its length and bytes
/// (-1: NULL), at the end -1 for a row's number of fields. Source: the manual's page on COPY.
///
/// # Errors
/// Where a vector does not fit its form.
pub(super) fn copy_bytes(rows: &Rows<'_>) -> Result<Vec<u8>, EngineError> {
    // As many columns as a table can have, so it fits.
    let fields = (rows.columns.len() + 2) as i16;
    let mut out = Vec::with_capacity(rows.len() * (rows.row_bytes() + 16) + 32);
    out.extend_from_slice(&COPY_HEADER);
    let mut scratch = Vec::new();
    for row in 0..rows.len() {
        out.extend_from_slice(&fields.to_be_bytes());
        sized(&mut out, &rows.key(row).to_be_bytes());
        for cell in rows.cells(row) {
            match cell {
                Cell::Null => out.extend_from_slice(&(-1_i32).to_be_bytes()),
                Cell::Int(v) => sized(&mut out, &v.to_be_bytes()),
                Cell::Float(v) => sized(&mut out, &v.to_be_bytes()),
                Cell::Bool(v) => sized(&mut out, &[u8::from(v)]),
                Cell::Text(v) => sized(&mut out, v.as_bytes()),
            }
        }
        let place = out.len();
        out.extend_from_slice(&[0; 4]);
        rows.vector(row, &mut scratch, &mut out)?;
        let length = (out.len() - place - 4) as u32;
        out[place..place + 4].copy_from_slice(&length.to_be_bytes());
    }
    out.extend_from_slice(&(-1_i16).to_be_bytes());
    Ok(out)
}

/// A field of less than 2 GB, which PostgreSQL does not exceed.
fn sized(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}
