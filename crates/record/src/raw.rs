//! The raw figures of a point: one row per query sent, in `raw/<key>.parquet`.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `repeat` | int32 | window, from 0 |
//! | `client` | int32 | client thread, from 0 |
//! | `query` | int32 | number of the query in the data set |
//! | `due_ns` | int64 | when it was due, from the start of the window (closed loop: when it was sent) |
//! | `sent_ns` | int64 | when it was sent |
//! | `done_ns` | int64 | when the answer was there |
//! | `error` | string, null | why it failed |
//! | `hits` | int32, null | rows that count for recall |
//! | `recall` | double, null | its recall |
//! | `ids` | list of uint64, null | row numbers returned, nearest first; null where it failed |

use crate::RecordError;
use parquet::{
    basic::{Compression, ZstdLevel},
    column::{reader::ColumnReaderImpl, writer::ColumnWriterImpl},
    data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        properties::WriterProperties,
        reader::{FileReader, SerializedFileReader},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::{
        parser::parse_message_type,
        types::{ColumnDescPtr, SchemaDescriptor},
    },
};
use std::{fs::File, path::Path, sync::Arc};

const SCHEMA: &str = "message annvil_raw {
    required int32 repeat; required int32 client; required int32 query;
    required int64 due_ns; required int64 sent_ns; required int64 done_ns;
    optional binary error (STRING);
    optional int32 hits; optional double recall;
    optional group ids (LIST) { repeated group list { required int64 element (INTEGER(64,false)); } }
}";

/// One row per query sent, column by column; all columns are of one length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawPoint {
    /// Window.
    pub repeat: Vec<u32>,
    /// Client.
    pub client: Vec<u32>,
    /// Query.
    pub query: Vec<u32>,
    /// When it was due (ns from the start of the window).
    pub due_ns: Vec<u64>,
    /// When it was sent.
    pub sent_ns: Vec<u64>,
    /// When it was done.
    pub done_ns: Vec<u64>,
    /// Why it failed.
    pub error: Vec<Option<String>>,
    /// Rows that count.
    pub hits: Vec<Option<u32>>,
    /// Recall.
    pub recall: Vec<Option<f64>>,
    /// All ids, one answer after the other.
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

    /// The ids of row `row`.
    pub fn ids_of(&self, row: usize) -> &[u64] {
        let start = if row == 0 { 0 } else { self.ids_end[row - 1] };
        &self.ids[start..self.ids_end[row]]
    }
}

fn fault(path: &Path, action: &'static str) -> impl Fn(ParquetError) -> RecordError {
    let path = path.to_owned();
    move |e| RecordError::Invalid { path: path.clone(), reason: format!("could not be {action}: {e}") }
}

/// Writes the raw figures of a point: temporary file, sync, rename.
///
/// # Errors
/// Where the file can't be written.
pub fn write_raw(path: &Path, raw: &RawPoint) -> Result<(), RecordError> {
    let temporary = path.with_extension("tmp");
    let file = File::create(&temporary).map_err(RecordError::io("create", &temporary))?;
    let file = write_to(file, raw).map_err(fault(path, "written"))?;
    file.sync_all().map_err(RecordError::io("sync", &temporary))?;
    std::fs::rename(&temporary, path).map_err(RecordError::io("rename", path))
}

fn write_to(file: File, raw: &RawPoint) -> Result<File, ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let compression = Compression::ZSTD(ZstdLevel::try_new(1)?);
    let properties = Arc::new(
        WriterProperties::builder().set_compression(compression).set_dictionary_enabled(false).build(),
    );
    let mut writer = SerializedFileWriter::new(file, schema, properties)?;
    let mut group = writer.next_row_group()?;
    for part in [&raw.repeat, &raw.client, &raw.query] {
        let values: Vec<i32> = part.iter().map(|&v| v as i32).collect();
        column::<Int32Type>(&mut group, &values, None, None)?;
    }
    for part in [&raw.due_ns, &raw.sent_ns, &raw.done_ns] {
        let values: Vec<i64> = part.iter().map(|&v| v as i64).collect();
        column::<Int64Type>(&mut group, &values, None, None)?;
    }
    let errors = raw.error.iter().map(|e| e.as_deref().map(ByteArray::from));
    optional::<ByteArrayType>(&mut group, errors)?;
    optional::<Int32Type>(&mut group, raw.hits.iter().map(|h| h.map(|h| h as i32)))?;
    optional::<DoubleType>(&mut group, raw.recall.iter().copied())?;
    lists(&mut group, raw)?;
    group.close()?;
    writer.into_inner()
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    definition: Option<&[i16]>,
    repetition: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General("the schema has fewer columns than are written".into()));
    };
    let typed: &mut ColumnWriterImpl<'_, T> = writer.typed::<T>();
    typed.write_batch(values, definition, repetition)?;
    writer.close()
}

fn optional<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let (mut present, mut definition) = (Vec::new(), Vec::new());
    for value in values {
        definition.push(i16::from(value.is_some()));
        present.extend(value);
    }
    column::<T>(group, &present, Some(&definition), None)
}

/// The ids: definition 0 where the query failed, 1 where the answer was empty, 2 for an id.
fn lists(group: &mut SerializedRowGroupWriter<'_, File>, raw: &RawPoint) -> Result<(), ParquetError> {
    let values: Vec<i64> = raw.ids.iter().map(|&id| id as i64).collect();
    let mut definition = Vec::with_capacity(values.len() + raw.len());
    let mut repetition = Vec::with_capacity(values.len() + raw.len());
    for row in 0..raw.len() {
        let length = raw.ids_of(row).len();
        if length == 0 {
            definition.push(i16::from(raw.error[row].is_none()));
            repetition.push(0);
        }
        for i in 0..length {
            definition.push(2);
            repetition.push(i16::from(i > 0));
        }
    }
    column::<Int64Type>(group, &values, Some(&definition), Some(&repetition))
}

/// Reads the raw figures of a point back.
///
/// # Errors
/// Where the file is missing or is not what [`write_raw`] writes.
pub fn read_raw(path: &Path) -> Result<RawPoint, RecordError> {
    let file = File::open(path).map_err(RecordError::io("open", path))?;
    read_from(file).map_err(fault(path, "read"))
}

fn read_from(file: File) -> Result<RawPoint, ParquetError> {
    let reader = SerializedFileReader::new(file)?;
    let ours = SchemaDescriptor::new(Arc::new(parse_message_type(SCHEMA)?));
    let theirs = reader.metadata().file_metadata().schema_descr();
    let shape = |schema: &SchemaDescriptor| -> Vec<_> {
        let column =
            |c: &ColumnDescPtr| (c.path().string(), c.physical_type(), c.max_def_level(), c.max_rep_level());
        schema.columns().iter().map(column).collect()
    };
    if shape(theirs) != shape(&ours) {
        return Err(ParquetError::General("its columns are not those of raw figures".into()));
    }
    let mut raw = RawPoint::default();
    for at in 0..reader.num_row_groups() {
        let group = reader.get_row_group(at)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let ints = |column: usize| -> Result<Vec<u32>, ParquetError> {
            let (values, _, _) = read::<Int32Type>(group.get_column_reader(column)?, rows)?;
            Ok(values.into_iter().map(|v| v as u32).collect())
        };
        let longs = |column: usize| -> Result<Vec<u64>, ParquetError> {
            let (values, _, _) = read::<Int64Type>(group.get_column_reader(column)?, rows)?;
            Ok(values.into_iter().map(|v| v as u64).collect())
        };
        raw.repeat.extend(ints(0)?);
        raw.client.extend(ints(1)?);
        raw.query.extend(ints(2)?);
        raw.due_ns.extend(longs(3)?);
        raw.sent_ns.extend(longs(4)?);
        raw.done_ns.extend(longs(5)?);
        let (errors, levels, _) = read::<ByteArrayType>(group.get_column_reader(6)?, rows)?;
        let text = |e: ByteArray| String::from_utf8_lossy(e.data()).into_owned();
        raw.error.extend(spread(errors, &levels).map(|e| e.map(text)));
        let (hits, levels, _) = read::<Int32Type>(group.get_column_reader(7)?, rows)?;
        raw.hits.extend(spread(hits, &levels).map(|h| h.map(|h| h as u32)));
        let (recall, levels, _) = read::<DoubleType>(group.get_column_reader(8)?, rows)?;
        raw.recall.extend(spread(recall, &levels));
        let (ids, definition, repetition) = read::<Int64Type>(group.get_column_reader(9)?, rows)?;
        let mut ids = ids.into_iter();
        for (definition, repetition) in definition.into_iter().zip(repetition) {
            if repetition == 0 {
                raw.ids_end.push(raw.ids.len());
            }
            if definition == 2 {
                raw.ids.extend(ids.next().map(|id| id as u64));
                if let Some(end) = raw.ids_end.last_mut() {
                    *end = raw.ids.len();
                }
            }
        }
    }
    if raw.ids_end.len() != raw.len() || raw.error.len() != raw.len() {
        return Err(ParquetError::General("its columns differ in length".into()));
    }
    Ok(raw)
}

/// Values, definition levels and repetition levels of a column.
type Levels<T> = (Vec<T>, Vec<i16>, Vec<i16>);

fn read<T: DataType>(
    reader: parquet::column::reader::ColumnReader,
    rows: usize,
) -> Result<Levels<T::T>, ParquetError> {
    let mut typed: ColumnReaderImpl<T> = parquet::column::reader::get_typed_column_reader(reader);
    let (mut values, mut definition, mut repetition) = (Vec::new(), Vec::new(), Vec::new());
    let mut left = rows;
    while left > 0 {
        let (records, _, _) =
            typed.read_records(left, Some(&mut definition), Some(&mut repetition), &mut values)?;
        if records == 0 {
            return Err(ParquetError::EOF(format!("a column ends {left} rows early")));
        }
        left -= records;
    }
    Ok((values, definition, repetition))
}

fn spread<T>(values: Vec<T>, definition: &[i16]) -> impl Iterator<Item = Option<T>> {
    let mut values = values.into_iter();
    definition.iter().map(move |&level| if level == 1 { values.next() } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> RawPoint {
        RawPoint {
            repeat: vec![0, 0, 1, 1],
            client: vec![0, 1, 0, 1],
            query: vec![0, 1, 0, 1],
            due_ns: vec![0, 1, 2, 3],
            sent_ns: vec![0, 1, 2, u64::from(u32::MAX) * 9],
            done_ns: vec![5, 6, 7, u64::from(u32::MAX) * 10],
            error: vec![None, Some("no answer — x".into()), None, None],
            hits: vec![Some(2), None, Some(0), Some(1)],
            recall: vec![Some(1.0), None, Some(0.0), Some(0.5)],
            ids: vec![4, 9, u64::MAX],
            ids_end: vec![2, 2, 2, 3],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.parquet");
        for raw in [sample(), RawPoint::default()] {
            write_raw(&path, &raw).unwrap();
            assert_eq!(read_raw(&path).unwrap(), raw);
        }
    }

    #[test]
    fn a_cut_file_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.parquet");
        write_raw(&path, &sample()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for cut in [0, 3, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            assert!(read_raw(&path).unwrap_err().to_string().contains("p.parquet"));
        }
    }
}
