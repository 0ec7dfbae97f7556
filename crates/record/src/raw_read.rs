//! Reading raw files. Nothing in a file's header decides how much memory is taken: columns are read in
//! batches, and grow with what is really there.

use crate::{RAW_COLUMNS, RawPoint, RecordError};
use bytes::Bytes;
use parquet::{
    column::reader::{ColumnReaderImpl, get_typed_column_reader},
    data_type::{ByteArrayType, DataType, DoubleType, Int32Type, Int64Type},
    errors::ParquetError,
    file::reader::{FileReader, RowGroupReader, SerializedFileReader},
};
use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

/// Records asked for at a time.
const BATCH: usize = 1 << 14;

pub(crate) fn read(path: &Path) -> Result<RawPoint, RecordError> {
    let bytes = fs::read(path).map_err(RecordError::io("read", path))?;
    let invalid = |reason: String| RecordError::Invalid {
        path: path.to_owned(),
        reason: format!("{reason}; the raw figures of this point are lost, its line in records.jsonl is not"),
    };
    // The parquet library still panics on some damaged files, which must not end the process.
    let result = catch_unwind(AssertUnwindSafe(|| decode(Bytes::from(bytes))));
    let raw = match result {
        Ok(Ok(raw)) => raw,
        Ok(Err(error)) => {
            return Err(invalid(format!("is damaged: {}", error.to_string().replace('\n', " "))));
        }
        Err(_panic) => return Err(invalid("is damaged: the parquet library gave up on it".into())),
    };
    raw.check().map_err(|reason| invalid(format!("is damaged: {reason}")))?;
    Ok(raw)
}

fn decode(bytes: Bytes) -> Result<RawPoint, ParquetError> {
    let reader = SerializedFileReader::new(bytes)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let leaf = |name: &str| {
        (0..schema.num_columns())
            .find(|&at| schema.column(at).path().parts().first().is_some_and(|part| part == name))
            .ok_or_else(|| ParquetError::General(format!("there is no column {name:?}")))
    };
    let leaves = RAW_COLUMNS.iter().map(|name| leaf(name)).collect::<Result<Vec<usize>, _>>()?;
    let mut raw = RawPoint::default();
    for group in 0..reader.num_row_groups() {
        read_group(reader.get_row_group(group)?.as_ref(), &leaves, &mut raw)?;
    }
    Ok(raw)
}

fn read_group(group: &dyn RowGroupReader, leaves: &[usize], raw: &mut RawPoint) -> Result<(), ParquetError> {
    let numbers = |at: usize, out: &mut Vec<u32>| {
        required::<Int32Type>(group, leaves[at], |v| out.push(v.cast_unsigned()))
    };
    numbers(0, &mut raw.repeat)?;
    numbers(1, &mut raw.client)?;
    numbers(2, &mut raw.query)?;
    let times = |at: usize, out: &mut Vec<u64>| {
        let mut negative = false;
        required::<Int64Type>(group, leaves[at], |v| match u64::try_from(*v) {
            Ok(time) => out.push(time),
            Err(_negative) => negative = true,
        })?;
        if negative { Err(ParquetError::General("a time is negative".to_owned())) } else { Ok(()) }
    };
    times(3, &mut raw.due_ns)?;
    times(4, &mut raw.sent_ns)?;
    times(5, &mut raw.done_ns)?;
    let mut bad_text = false;
    optional::<ByteArrayType>(group, leaves[6], |v| {
        let text = v.map(|bytes| bytes.as_utf8().map(str::to_owned));
        raw.error.push(text.and_then(|text| {
            bad_text |= text.is_err();
            text.ok()
        }));
    })?;
    if bad_text {
        return Err(ParquetError::General("an error's text is not UTF-8".to_owned()));
    }
    read_ids(group, leaves[7], raw)?;
    optional::<Int32Type>(group, leaves[8], |v| raw.hits.push(v.map(|v| v.cast_unsigned())))?;
    optional::<DoubleType>(group, leaves[9], |v| raw.recall.push(v.copied()))
}

/// The reader of a column; an error where it has another type.
fn typed<T: DataType>(group: &dyn RowGroupReader, leaf: usize) -> Result<ColumnReaderImpl<T>, ParquetError> {
    let column = group.metadata().column(leaf);
    if column.column_type() != T::get_physical_type() {
        let reason = format!("column {} has the type {}", column.column_path(), column.column_type());
        return Err(ParquetError::General(reason));
    }
    Ok(get_typed_column_reader(group.get_column_reader(leaf)?))
}

fn required<T: DataType>(
    group: &dyn RowGroupReader,
    leaf: usize,
    mut see: impl FnMut(&T::T),
) -> Result<(), ParquetError> {
    optional::<T>(group, leaf, |value| {
        if let Some(value) = value {
            see(value);
        }
    })
}

/// Visits a column that is no list, missing values too.
fn optional<T: DataType>(
    group: &dyn RowGroupReader,
    leaf: usize,
    mut see: impl FnMut(Option<&T::T>),
) -> Result<(), ParquetError> {
    let full = group.metadata().schema_descr().column(leaf).max_def_level();
    let mut reader = typed::<T>(group, leaf)?;
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    loop {
        levels.clear();
        values.clear();
        let (records, ..) = reader.read_records(BATCH, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Ok(());
        }
        let mut present = values.iter();
        if full == 0 {
            present.for_each(|value| see(Some(value)));
        } else {
            levels.iter().for_each(|level| see(if *level == full { present.next() } else { None }));
        }
    }
}

fn read_ids(group: &dyn RowGroupReader, leaf: usize, raw: &mut RawPoint) -> Result<(), ParquetError> {
    let descriptor = group.metadata().schema_descr().column(leaf);
    if (descriptor.max_def_level(), descriptor.max_rep_level()) != (2, 1) {
        return Err(ParquetError::General("column ids is no list".to_owned()));
    }
    let mut reader = typed::<Int64Type>(group, leaf)?;
    let (mut definitions, mut repetitions, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        definitions.clear();
        repetitions.clear();
        ids.clear();
        let (records, ..) =
            reader.read_records(BATCH, Some(&mut definitions), Some(&mut repetitions), &mut ids)?;
        if records == 0 {
            return Ok(());
        }
        let mut end = raw.ids.len();
        raw.ids.extend(ids.iter().map(|id| id.cast_unsigned()));
        for (definition, repetition) in definitions.iter().zip(&repetitions) {
            end += usize::from(*definition == 2);
            match raw.ids_end.last_mut() {
                Some(last) if *repetition != 0 => *last = end,
                _ => raw.ids_end.push(end),
            }
        }
    }
}
