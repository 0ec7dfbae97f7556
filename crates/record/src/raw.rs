//! The raw figures of a search point: a parquet file with one row per query and repeat, from which
//! every figure of the point can be recomputed.
//!
//! Each row is complete, so that a reader needs no rule: the ids of an answer stand there even where
//! another repeat gave the same. Rows lie in the order of query, then repeat; equal answers are then
//! neighbours, and compression stores them about once.

use crate::{RecordError, raw_read, run_dir::write_with};
use parquet::{
    basic::{Compression, Encoding, ZstdLevel},
    data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        metadata::KeyValue,
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::{parser::parse_message_type, types::ColumnPath},
};
use std::{io::Write, ops::Range, path::Path, sync::Arc};

/// The columns of a raw file, in order, as docs/record-format.md describes them.
pub const RAW_COLUMNS: &[&str] =
    &["repeat", "client", "query", "due_ns", "sent_ns", "done_ns", "error", "ids", "hits", "recall"];

const SCHEMA: &str = "message raw {
    required int32 repeat (INTEGER(32, false));
    required int32 client (INTEGER(32, false));
    required int32 query (INTEGER(32, false));
    required int64 due_ns;
    required int64 sent_ns;
    required int64 done_ns;
    optional binary error (STRING);
    optional group ids (LIST) { repeated group list { required int64 element (INTEGER(64, false)); } }
    optional int32 hits (INTEGER(32, false));
    optional double recall;
}";

/// Rows in a row group.
const GROUP_ROWS: usize = 1 << 18;

/// The raw figures of a point, column by column; entry i of each belongs to row i. Times count from
/// the start of the repeat's window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawPoint {
    /// Number of the repeat, from 0.
    pub repeat: Vec<u32>,
    /// Client thread, from 0.
    pub client: Vec<u32>,
    /// Row number of the query in its set.
    pub query: Vec<u32>,
    /// When the request was due (ns); in a closed loop when it was sent.
    pub due_ns: Vec<u64>,
    /// When it was sent (ns).
    pub sent_ns: Vec<u64>,
    /// When the answer was there, or the failure (ns).
    pub done_ns: Vec<u64>,
    /// Kind of error; none where the query was answered.
    pub error: Vec<Option<String>>,
    /// How many of the ids count as hits; none where recall was not computed.
    pub hits: Vec<Option<u32>>,
    /// Recall of the query; none where it was not computed or no row qualifies.
    pub recall: Vec<Option<f64>>,
    /// The ids of all answers, one after the other, in the order of the rows, as returned: row
    /// numbers of the base.
    pub ids: Vec<u64>,
    /// Where the ids of each row end in `ids`.
    pub ids_end: Vec<usize>,
}

impl RawPoint {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.query.len()
    }

    /// True where nothing was sent.
    pub fn is_empty(&self) -> bool {
        self.query.is_empty()
    }

    /// The ids of row `row`, nearest first; empty where there is no answer.
    pub fn ids_of(&self, row: usize) -> &[u64] {
        let start = if row == 0 { 0 } else { self.ids_end[row - 1] };
        &self.ids[start..self.ids_end[row]]
    }

    /// A sentence where the columns do not fit each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        let rows = self.len();
        for (name, length) in [
            ("repeat", self.repeat.len()),
            ("client", self.client.len()),
            ("due_ns", self.due_ns.len()),
            ("sent_ns", self.sent_ns.len()),
            ("done_ns", self.done_ns.len()),
            ("error", self.error.len()),
            ("ids", self.ids_end.len()),
            ("hits", self.hits.len()),
            ("recall", self.recall.len()),
        ] {
            if length != rows {
                return Err(format!("column {name} has {length} rows, query has {rows}"));
            }
        }
        let rising = self.ids_end.is_sorted() && self.ids_end.last().copied().unwrap_or(0) == self.ids.len();
        if !rising {
            return Err(format!("the ends of the answers do not fit the {} ids", self.ids.len()));
        }
        Ok(())
    }
}

/// Writes the raw figures of a point: temporary file, sync, rename. The rows may come in any order.
///
/// # Errors
/// Where the columns do not fit each other, a time is beyond 2^63 ns, or the file can't be written.
pub fn write_raw(path: &Path, raw: &RawPoint) -> Result<(), RecordError> {
    let invalid = |reason: String| RecordError::Invalid { path: path.to_owned(), reason };
    raw.check().map_err(&invalid)?;
    write_with(path, |file| {
        let mut order: Vec<usize> = (0..raw.len()).collect();
        order.sort_by_key(|&row| (raw.query[row], raw.repeat[row]));
        let schema = Arc::new(parse_message_type(SCHEMA).map_err(|e| broken(path, &e))?);
        let properties = Arc::new(properties().map_err(|e| broken(path, &e))?);
        let mut writer = SerializedFileWriter::new(file, schema, properties).map_err(|e| broken(path, &e))?;
        for start in (0..order.len()).step_by(GROUP_ROWS) {
            let rows = &order[start..order.len().min(start + GROUP_ROWS)];
            let columns = Rows { raw, rows };
            columns.write(&mut writer).map_err(|e| broken(path, &e))?;
        }
        writer.close().map_err(|e| broken(path, &e))?;
        Ok(())
    })
}

/// Reads what [`write_raw`] wrote, ordered by query and repeat. Columns that a newer version may have
/// added are left out.
///
/// # Errors
/// Where the file is missing, damaged, or lacks a column.
pub fn read_raw(path: &Path) -> Result<RawPoint, RecordError> {
    raw_read::read(path)
}

fn broken(path: &Path, error: &ParquetError) -> RecordError {
    let reason = format!("can't be written: {}", error.to_string().replace('\n', " "));
    RecordError::Invalid { path: path.to_owned(), reason }
}

fn properties() -> Result<WriterProperties, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by(concat!("annvil ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![KeyValue::new(
            "annvil.format".to_owned(),
            format!("{}.{}", crate::FORMAT.0, crate::FORMAT.1),
        )]));
    for name in ["due_ns", "sent_ns", "done_ns"] {
        let path = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    // Plain ids: a repeated answer is then a repeated run of bytes, which the compression finds.
    let ids = ColumnPath::new(vec!["ids".into(), "list".into(), "element".into()]);
    Ok(properties.set_column_dictionary_enabled(ids, false).build())
}

/// Some rows of a point, in an order.
struct Rows<'a> {
    raw: &'a RawPoint,
    rows: &'a [usize],
}

impl Rows<'_> {
    fn write<W: Write + Send>(&self, writer: &mut SerializedFileWriter<W>) -> Result<(), ParquetError> {
        let raw = self.raw;
        let mut group = writer.next_row_group()?;
        self.numbers(&mut group, &raw.repeat)?;
        self.numbers(&mut group, &raw.client)?;
        self.numbers(&mut group, &raw.query)?;
        self.times(&mut group, &raw.due_ns)?;
        self.times(&mut group, &raw.sent_ns)?;
        self.times(&mut group, &raw.done_ns)?;
        self.optional::<ByteArrayType, _>(&mut group, &raw.error, |text: &String| {
            ByteArray::from(text.as_str())
        })?;
        self.ids(&mut group)?;
        // An unsigned number stands in the file with the same bits.
        self.optional::<Int32Type, _>(&mut group, &raw.hits, |n: &u32| n.cast_signed())?;
        self.optional::<DoubleType, _>(&mut group, &raw.recall, |v: &f64| *v)?;
        group.close().map(drop)
    }

    fn numbers<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        values: &[u32],
    ) -> Result<(), ParquetError> {
        let values: Vec<i32> = self.rows.iter().map(|&row| values[row].cast_signed()).collect();
        put::<Int32Type, W>(group, &values, None, None)
    }

    fn times<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        values: &[u64],
    ) -> Result<(), ParquetError> {
        let time = |&row: &usize| {
            i64::try_from(values[row])
                .map_err(|_too_large| ParquetError::General(format!("time {} ns is too large", values[row])))
        };
        let values = self.rows.iter().map(time).collect::<Result<Vec<i64>, _>>()?;
        put::<Int64Type, W>(group, &values, None, None)
    }

    fn optional<T: DataType, V>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
        values: &[Option<V>],
        convert: impl Fn(&V) -> T::T,
    ) -> Result<(), ParquetError> {
        let present: Vec<T::T> =
            self.rows.iter().filter_map(|&row| values[row].as_ref().map(&convert)).collect();
        let levels: Vec<i16> = self.rows.iter().map(|&row| i16::from(values[row].is_some())).collect();
        put::<T, _>(group, &present, Some(&levels), None)
    }

    /// Definition levels: 0 no answer, 1 an empty one, 2 an id. Repetition levels: 0 begins a row.
    fn ids<W: Write + Send>(&self, group: &mut SerializedRowGroupWriter<'_, W>) -> Result<(), ParquetError> {
        let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
        for &row in self.rows {
            let ids = self.raw.ids_of(row);
            let first: i16 = match (ids.is_empty(), &self.raw.error[row]) {
                (false, _) => 2,
                (true, None) => 1,
                (true, Some(_)) => 0,
            };
            definitions.push(first);
            repetitions.push(0_i16);
            let more: Range<usize> = 1..ids.len().max(1);
            definitions.extend(more.clone().map(|_| 2_i16));
            repetitions.extend(more.map(|_| 1_i16));
            values.extend(ids.iter().map(|id| id.cast_signed()));
        }
        put::<Int64Type, W>(group, &values, Some(&definitions), Some(&repetitions))
    }
}

/// Writes the next column of the group.
fn put<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    definitions: Option<&[i16]>,
    repetitions: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("more columns than the schema has".to_owned()))?;
    column.typed::<T>().write_batch(values, definitions, repetitions)?;
    column.close()
}

#[cfg(test)]
#[path = "raw_tests.rs"]
mod tests;
