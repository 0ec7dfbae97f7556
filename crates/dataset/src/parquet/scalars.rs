//! Columns of one value a row, and ids.

use super::{
    pages,
    table::{Field, Kind, Shape, Table, guarded},
};
use crate::DatasetError;
use ::parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use types::{ColumnData, Ids};

const BATCH: usize = 8192;

/// Whether `field` can become a column.
pub(crate) fn readable(field: &Field) -> bool {
    field.shape == Shape::Scalar && !matches!(field.kind, Kind::Other(_) | Kind::F16)
}

/// The first `limit` values of `field`.
pub(crate) fn column(table: &Table, field: &Field, limit: u64) -> Result<ColumnData, DatasetError> {
    guarded(&table.path, || match (&field.kind, field.physical) {
        (Kind::Bool, _) => Ok(ColumnData::Bool(values::<BoolType, _>(table, field, limit, &|_, v| Ok(*v))?)),
        (Kind::Text | Kind::Bytes, _) => {
            Ok(ColumnData::Text(values::<ByteArrayType, _>(table, field, limit, &|row, v| {
                text(table, field, row, v)
            })?))
        }
        (Kind::F32, _) => {
            let data = values::<FloatType, _>(table, field, limit, &|_, v| Ok(f64::from(*v)))?;
            Ok(ColumnData::Float(data))
        }
        (Kind::F64, _) => {
            Ok(ColumnData::Float(values::<DoubleType, _>(table, field, limit, &|_, v| Ok(*v))?))
        }
        (Kind::Int(_), ::parquet::basic::Type::INT32) => {
            Ok(ColumnData::Int(values::<Int32Type, _>(table, field, limit, &|_, v| Ok(i64::from(*v)))?))
        }
        // Unsigned 32-bit values are stored in the bits of a signed one.
        (Kind::UInt(_), ::parquet::basic::Type::INT32) => {
            let data = values::<Int32Type, _>(table, field, limit, &|_, v| Ok(i64::from(v.cast_unsigned())))?;
            Ok(ColumnData::Int(data))
        }
        (Kind::Int(_), _) => {
            Ok(ColumnData::Int(values::<Int64Type, _>(table, field, limit, &|_, v| Ok(*v))?))
        }
        (Kind::UInt(_), _) => Ok(ColumnData::Int(values::<Int64Type, _>(table, field, limit, &|row, v| {
            if *v >= 0 {
                return Ok(*v);
            }
            let found = v.cast_unsigned();
            Err(table.invalid(format!("column {:?}, row {row}: {found} does not fit 63 bits", field.name)))
        })?)),
        _ => Err(table.invalid(format!(
            "column {:?} is {}; no column can hold it",
            field.name,
            field.describe()
        ))),
    })
}

fn text(table: &Table, field: &Field, row: u64, value: &ByteArray) -> Result<String, DatasetError> {
    match std::str::from_utf8(value.data()) {
        Ok(text) => Ok(text.to_owned()),
        Err(e) => Err(table.invalid(format!("column {:?}, row {row}: no UTF-8 text ({e})", field.name))),
    }
}

/// Turns the stored value of a row into the one that is kept.
type Convert<'a, T, V> = &'a dyn Fn(u64, &T) -> Result<V, DatasetError>;

fn values<T: DataType, V>(
    table: &Table,
    field: &Field,
    limit: u64,
    convert: Convert<'_, T::T, V>,
) -> Result<Vec<Option<V>>, DatasetError> {
    let mut out = Vec::new();
    for group in 0..table.reader.num_row_groups() {
        let wanted = table.group_rows(group).min(limit - out.len() as u64);
        let mut reader = pages::reader::<T>(table, field, group)?;
        let (mut definitions, mut batch, mut done) = (Vec::new(), Vec::new(), 0_u64);
        while done < wanted {
            definitions.clear();
            batch.clear();
            let ask = usize::try_from(wanted - done).unwrap_or(BATCH).min(BATCH);
            let (records, ..) = reader
                .read_records(ask, Some(&mut definitions), None, &mut batch)
                .map_err(|e| table.broken(field, &e))?;
            if records == 0 {
                let reason =
                    format!("column {:?} ends after {done} of {wanted} rows of group {group}", field.name);
                return Err(table.invalid(reason + ": the file is damaged, get it anew"));
            }
            let mut present = batch.iter();
            for at in 0..records {
                let there = field.full == 0 || definitions.get(at) == Some(&field.full);
                let value = if there { present.next() } else { None };
                out.push(value.map(|v| convert(out.len() as u64, v)).transpose()?);
            }
            done += records as u64;
        }
    }
    Ok(out)
}

/// The ids in `field`; each row must have one. Ids that are the row numbers become
/// [`Ids::RowNumbers`] only at the end (see [`plain`]), since parts are read one after the other.
pub(crate) fn ids(table: &Table, field: &Field, limit: u64) -> Result<Ids, DatasetError> {
    let missing =
        |row: usize| table.invalid(format!("column {:?}, row {row}: no id; every row needs one", field.name));
    fn all<T>(
        values: Vec<Option<T>>,
        missing: impl Fn(usize) -> DatasetError,
    ) -> Result<Vec<T>, DatasetError> {
        values.into_iter().enumerate().map(|(row, id)| id.ok_or_else(|| missing(row))).collect()
    }
    match column(table, field, limit)? {
        ColumnData::Int(values) => Ok(Ids::Ints(all(values, missing)?)),
        ColumnData::Text(values) => Ok(Ids::Texts(all(values, missing)?)),
        ColumnData::Float(_) | ColumnData::Bool(_) => {
            let reason =
                format!("column {:?} is {}; ids are integers or texts", field.name, field.describe());
            Err(table.invalid(reason + ". Name the right column with the id-column option"))
        }
    }
}

/// `ids` as row numbers where they are just that.
pub(crate) fn plain(ids: Ids) -> Ids {
    match ids {
        Ids::Ints(ints) if ints.iter().zip(0_i64..).all(|(id, row)| *id == row) => {
            Ids::RowNumbers(ints.len())
        }
        other => other,
    }
}
