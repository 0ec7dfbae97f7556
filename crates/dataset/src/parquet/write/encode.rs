//! What a column becomes in the file: its place in the schema, and its values with their levels.

use ::parquet::{
    basic::{LogicalType, Repetition, Type as Physical},
    data_type::{
        BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
        FloatType, Int32Type, Int64Type,
    },
    errors::ParquetError,
    file::writer::SerializedColumnWriter,
    schema::types::{Type, TypePtr},
};
use bytes::Bytes;
use std::{ops::Range, sync::Arc};
use types::{ColumnData, Element, Vectors};

/// Values handed to the library in one go.
const BATCH_VALUES: usize = 1 << 16;

/// One column to write.
pub(super) enum Source<'a> {
    Column(&'a ColumnData),
    Vectors(&'a Vectors),
    Ints(&'a dyn Fn(usize) -> i64),
    Texts(&'a dyn Fn(usize) -> Option<String>),
    IntLists(&'a dyn Fn(usize) -> Vec<i64>),
    TextLists(&'a dyn Fn(usize) -> Vec<String>),
    FloatLists(&'a dyn Fn(usize) -> Vec<f64>),
}

pub(super) fn schema(name: &str, source: &Source<'_>) -> Result<TypePtr, ParquetError> {
    let int8 = |signed| Some(LogicalType::integer(8, signed));
    let (physical, logical, repetition) = match source {
        Source::Column(ColumnData::Int(_)) => (Physical::INT64, None, Repetition::OPTIONAL),
        Source::Column(ColumnData::Float(_)) => (Physical::DOUBLE, None, Repetition::OPTIONAL),
        Source::Column(ColumnData::Bool(_)) => (Physical::BOOLEAN, None, Repetition::OPTIONAL),
        Source::Column(ColumnData::Text(_)) | Source::Texts(_) => {
            (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::OPTIONAL)
        }
        Source::Ints(_) => (Physical::INT64, None, Repetition::REQUIRED),
        Source::IntLists(_) => return list(name, Physical::INT64, None),
        Source::TextLists(_) => return list(name, Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Source::FloatLists(_) => return list(name, Physical::DOUBLE, None),
        Source::Vectors(vectors) => {
            return match vectors.element() {
                Element::F32 => list(name, Physical::FLOAT, None),
                Element::F16 => list(name, Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Float16)),
                Element::I8 => list(name, Physical::INT32, int8(true)),
                Element::U8 => list(name, Physical::INT32, int8(false)),
                Element::Bit => list(name, Physical::BOOLEAN, None),
            };
        }
    };
    let field = Type::primitive_type_builder(name, physical).with_repetition(repetition);
    Ok(Arc::new(field.with_logical_type(logical).build()?))
}

/// A list in the three levels that the format asks for; neither lists nor elements are ever null.
fn list(name: &str, physical: Physical, logical: Option<LogicalType>) -> Result<TypePtr, ParquetError> {
    let length = if physical == Physical::FIXED_LEN_BYTE_ARRAY { 2 } else { -1 };
    let element = Type::primitive_type_builder("element", physical)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(logical)
        .with_length(length)
        .build()?;
    let middle = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![Arc::new(element)])
        .build()?;
    let outer = Type::group_type_builder(name)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::List))
        .with_fields(vec![Arc::new(middle)])
        .build()?;
    Ok(Arc::new(outer))
}

type Out<'a, 'b> = &'a mut SerializedColumnWriter<'b>;

pub(super) fn write_column(
    out: Out<'_, '_>,
    source: &Source<'_>,
    rows: Range<usize>,
) -> Result<(), ParquetError> {
    let text = |s: &String| ByteArray::from(s.as_str());
    match source {
        Source::Column(ColumnData::Int(v)) => optional::<Int64Type, _>(out, &v[rows], |v| *v),
        Source::Column(ColumnData::Float(v)) => optional::<DoubleType, _>(out, &v[rows], |v| *v),
        Source::Column(ColumnData::Bool(v)) => optional::<BoolType, _>(out, &v[rows], |v| *v),
        Source::Column(ColumnData::Text(v)) => optional::<ByteArrayType, _>(out, &v[rows], text),
        Source::Texts(of) => optional::<ByteArrayType, _>(out, &rows.map(of).collect::<Vec<_>>(), text),
        Source::Ints(of) => {
            let values: Vec<i64> = rows.map(of).collect();
            out.typed::<Int64Type>().write_batch(&values, None, None).map(drop)
        }
        Source::IntLists(of) => lists::<Int64Type>(out, rows, &mut |row, to| to.extend(of(row))),
        Source::TextLists(of) => {
            lists::<ByteArrayType>(out, rows, &mut |row, to| to.extend(of(row).iter().map(text)))
        }
        Source::FloatLists(of) => lists::<DoubleType>(out, rows, &mut |row, to| to.extend(of(row))),
        Source::Vectors(vectors) => write_vectors(out, vectors, rows),
    }
}

fn write_vectors(out: Out<'_, '_>, vectors: &Vectors, rows: Range<usize>) -> Result<(), ParquetError> {
    let bytes = |row: usize| vectors.row_bytes(row);
    match vectors.element() {
        Element::F32 => lists::<FloatType>(out, rows, &mut |row, to| to.extend_from_slice(&vectors.row(row))),
        Element::I8 => lists::<Int32Type>(out, rows, &mut |row, to| {
            to.extend(bytes(row).iter().map(|b| i32::from(b.cast_signed())));
        }),
        Element::U8 => {
            lists::<Int32Type>(out, rows, &mut |row, to| to.extend(bytes(row).iter().map(|b| i32::from(*b))))
        }
        Element::Bit => lists::<BoolType>(out, rows, &mut |row, to| {
            to.extend(vectors.row(row).iter().map(|bit| *bit > 0.0));
        }),
        Element::F16 => lists::<FixedLenByteArrayType>(out, rows, &mut |row, to| {
            let all = Bytes::copy_from_slice(bytes(row));
            let each = (0..vectors.dim()).map(|i| ByteArray::from(all.slice(2 * i..2 * i + 2)));
            to.extend(each.map(FixedLenByteArray::from));
        }),
    }
}

fn optional<T: DataType, V>(
    out: Out<'_, '_>,
    values: &[Option<V>],
    convert: impl Fn(&V) -> T::T,
) -> Result<(), ParquetError> {
    for part in values.chunks(BATCH_VALUES) {
        let there: Vec<T::T> = part.iter().flatten().map(&convert).collect();
        let levels: Vec<i16> = part.iter().map(|value| i16::from(value.is_some())).collect();
        out.typed::<T>().write_batch(&there, Some(&levels), None)?;
    }
    Ok(())
}

fn lists<T: DataType>(
    out: Out<'_, '_>,
    rows: Range<usize>,
    fill: &mut dyn FnMut(usize, &mut Vec<T::T>),
) -> Result<(), ParquetError> {
    let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
    let last = rows.end.saturating_sub(1);
    for row in rows {
        let before = values.len();
        fill(row, &mut values);
        let count = values.len() - before;
        // An empty list still has one level, below that of an element.
        definitions.extend(std::iter::repeat_n(i16::from(count > 0), count.max(1)));
        repetitions.push(0);
        repetitions.extend(std::iter::repeat_n(1, count.saturating_sub(1)));
        if values.len() >= BATCH_VALUES || row == last {
            out.typed::<T>().write_batch(&values, Some(&definitions), Some(&repetitions))?;
            values.clear();
            definitions.clear();
            repetitions.clear();
        }
    }
    Ok(())
}
