//! A list column as vectors: rows of one length, handed on block by block as little-endian bytes.

use super::{
    lists::{self, Block, Row},
    table::{Field, Kind, Table, guarded},
};
use crate::DatasetError;
use ::parquet::{
    basic::Type as Physical,
    data_type::{
        BoolType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType, Int32Type,
        Int64Type,
    },
};
use half::f16;
use std::cell::Cell;
use types::Element;

/// How many rows an error names.
const NAMED_ROWS: usize = 6;

/// Rows looked at to learn the dimension, so that a bad first row is not taken for the rule.
const SAMPLE_ROWS: u64 = 64;

/// Receives whole rows, one after the other, as [`Element`] stores them.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), DatasetError>;

/// What a vector column becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) dim: usize,
    pub(crate) element: Element,
    /// Whether numbers are converted on the way (float64 or wide integers to float32).
    pub(crate) converted: bool,
}

/// The vector column: the one that is named, else `emb` or its kin, else the only list of numbers.
pub(crate) fn find<'a>(table: &'a Table, named: Option<&str>) -> Result<&'a Field, DatasetError> {
    const USUAL: [&str; 6] = ["emb", "embedding", "vector", "embeddings", "vec", "values"];
    if let Some(name) = named {
        let field = table.field(name).ok_or_else(|| {
            table.invalid(format!("no column {name:?}; the columns are {}", table.describe_fields()))
        })?;
        if !field.is_number_list() {
            let reason = format!("column {name:?} is {}; vectors are lists of numbers", field.describe());
            return Err(table.invalid(reason));
        }
        return Ok(field);
    }
    let lists: Vec<&Field> = table.fields.iter().filter(|field| field.is_number_list()).collect();
    for usual in USUAL {
        if let Some(field) = lists.iter().find(|field| field.name.eq_ignore_ascii_case(usual)) {
            return Ok(field);
        }
    }
    match lists[..] {
        [only] => Ok(only),
        [] => {
            Err(table.invalid(format!("no column of vectors; the columns are {}", table.describe_fields())))
        }
        _ => {
            let reason = format!("several lists of numbers: {}", table.describe_fields());
            Err(table.invalid(reason + ". Name one with the vector-column option"))
        }
    }
}

/// Learns the dimension from the first rows: the length that most of them have.
pub(crate) fn plan(table: &Table, field: &Field) -> Result<Plan, DatasetError> {
    let (element, converted) = match field.kind {
        Kind::F32 => (Element::F32, false),
        Kind::F16 => (Element::F16, false),
        Kind::Int(8) => (Element::I8, false),
        Kind::UInt(8) => (Element::U8, false),
        Kind::Bool => (Element::Bit, false),
        _ => (Element::F32, true),
    };
    let mut lengths: Vec<usize> = Vec::new();
    rows(table, field, table.rows.min(SAMPLE_ROWS), &mut |row| {
        if let Row::Values(count) = row {
            lengths.push(count);
        }
    })?;
    lengths.sort_unstable();
    let dim = lengths.chunk_by(|a, b| a == b).max_by_key(|same| same.len()).map_or(0, |same| same[0]);
    if dim == 0 && table.rows > 0 {
        return Err(table.invalid(format!("column {:?} holds no vector in its first rows", field.name)));
    }
    Ok(Plan { dim, element, converted })
}

/// The shapes of the first `limit` rows.
fn rows(table: &Table, field: &Field, limit: u64, see: &mut dyn FnMut(Row)) -> Result<(), DatasetError> {
    fn each<T: DataType>(
        t: &Table,
        f: &Field,
        limit: u64,
        see: &mut dyn FnMut(Row),
    ) -> Result<u64, DatasetError> {
        lists::visit::<T>(t, f, limit, &mut |block| {
            block.rows.iter().for_each(|row| see(*row));
            Ok(())
        })
    }
    guarded(&table.path, || match field.physical {
        Physical::BOOLEAN => each::<BoolType>(table, field, limit, see),
        Physical::INT32 => each::<Int32Type>(table, field, limit, see),
        Physical::INT64 => each::<Int64Type>(table, field, limit, see),
        Physical::FLOAT => each::<FloatType>(table, field, limit, see),
        Physical::DOUBLE => each::<DoubleType>(table, field, limit, see),
        _ => each::<FixedLenByteArrayType>(table, field, limit, see),
    })
    .map(drop)
}

/// Reads the first `limit` rows into `sink`; gives how many numbers were rounded on the way.
///
/// # Errors
/// Where rows have another length than `plan` says or none, naming them by number, and as the
/// sink does.
pub(crate) fn read(
    table: &Table,
    field: &Field,
    plan: Plan,
    limit: u64,
    sink: Sink<'_>,
) -> Result<u64, DatasetError> {
    let rounded = Cell::new(0_u64);
    let mut reader = Reader { plan, bytes: Vec::new(), faults: Vec::new(), bad: 0, sink };
    let r = &mut reader;
    guarded(&table.path, || match (field.physical, plan.element) {
        (Physical::FLOAT, _) => r.run::<FloatType>(table, field, limit, &|values, out| {
            out.extend_from_slice(bytemuck::cast_slice(values));
            Ok(())
        }),
        (Physical::DOUBLE, _) => {
            r.run::<DoubleType>(table, field, limit, &|values, out| narrow(values, out, &rounded))
        }
        (Physical::INT32, Element::I8) => r.run::<Int32Type>(table, field, limit, &|values, out| {
            bytes(values, out, |v| i8::try_from(v).ok().map(i8::cast_unsigned))
        }),
        (Physical::INT32, Element::U8) => r.run::<Int32Type>(table, field, limit, &|values, out| {
            bytes(values, out, |v| u8::try_from(v).ok())
        }),
        (Physical::INT32, _) => r.run::<Int32Type>(table, field, limit, &|values, out| {
            wide(values.iter().map(|v| i64::from(*v)), out)
        }),
        (Physical::INT64, _) => {
            r.run::<Int64Type>(table, field, limit, &|values, out| wide(values.iter().copied(), out))
        }
        (Physical::BOOLEAN, _) => r.run::<BoolType>(table, field, limit, &|values, out| {
            out.extend(values.chunks(8).map(|eight| {
                eight.iter().enumerate().fold(0, |byte, (i, bit)| byte | u8::from(*bit) << (7 - i))
            }));
            Ok(())
        }),
        _ => r.run::<FixedLenByteArrayType>(table, field, limit, &halves),
    })?;
    reader.finish(table, field)?;
    Ok(rounded.get())
}

/// Appends one row's values as bytes, or says what is wrong with them.
type Convert<'a, V> = &'a dyn Fn(&[V], &mut Vec<u8>) -> Result<(), String>;

struct Reader<'a> {
    plan: Plan,
    bytes: Vec<u8>,
    faults: Vec<String>,
    bad: u64,
    sink: Sink<'a>,
}

impl Reader<'_> {
    fn run<T: DataType>(
        &mut self,
        table: &Table,
        field: &Field,
        limit: u64,
        convert: Convert<'_, T::T>,
    ) -> Result<(), DatasetError> {
        lists::visit::<T>(table, field, limit, &mut |block| self.block(&block, convert)).map(drop)
    }

    fn block<V>(&mut self, block: &Block<'_, V>, convert: Convert<'_, V>) -> Result<(), DatasetError> {
        self.bytes.clear();
        for (number, row, values) in block.each() {
            let fault = match row {
                Row::Values(count) if count == self.plan.dim => convert(values, &mut self.bytes).err(),
                Row::Values(count) => Some(format!("{count} values")),
                Row::Missing => Some("null".to_owned()),
                Row::Holes(count) => Some(format!("nulls among {count} values")),
            };
            if let Some(fault) = fault {
                self.bad += 1;
                if self.faults.len() < NAMED_ROWS {
                    self.faults.push(format!("{number} ({fault})"));
                }
            }
        }
        // After a bad row the rest is only read to name the others; nothing of it is kept.
        if self.bad == 0 { (self.sink)(&self.bytes) } else { Ok(()) }
    }

    fn finish(self, table: &Table, field: &Field) -> Result<(), DatasetError> {
        if self.bad == 0 {
            return Ok(());
        }
        let (word, dots) = (
            if self.bad == 1 { "row" } else { "rows" },
            if self.bad > NAMED_ROWS as u64 { " ..." } else { "" },
        );
        Err(table.invalid(format!(
            "column {:?}, {word} {}{dots}: no vector of {} numbers; {} bad {word} in all, leave them out or repair them",
            field.name,
            self.faults.join(", "),
            self.plan.dim,
            self.bad,
        )))
    }
}

/// Doubles as floats, with a count of those that change.
fn narrow(values: &[f64], out: &mut Vec<u8>, rounded: &Cell<u64>) -> Result<(), String> {
    let mut changed = 0;
    for &value in values {
        let single = value as f32;
        if value.is_finite() && !single.is_finite() {
            return Err(format!("{value:e} is more than float32 holds"));
        }
        changed += u64::from(f64::from(single) != value && !value.is_nan());
        out.extend_from_slice(&single.to_le_bytes());
    }
    rounded.set(rounded.get() + changed);
    Ok(())
}

fn bytes(values: &[i32], out: &mut Vec<u8>, narrow: impl Fn(i32) -> Option<u8>) -> Result<(), String> {
    for value in values {
        out.push(narrow(*value).ok_or_else(|| format!("{value} does not fit 8 bits"))?);
    }
    Ok(())
}

/// Integers as float32, as far as it holds them exactly.
fn wide(values: impl Iterator<Item = i64>, out: &mut Vec<u8>) -> Result<(), String> {
    for value in values {
        if value.unsigned_abs() > 1 << 24 {
            return Err(format!("{value} is not exact as float32"));
        }
        out.extend_from_slice(&(value as f32).to_le_bytes());
    }
    Ok(())
}

fn halves(values: &[FixedLenByteArray], out: &mut Vec<u8>) -> Result<(), String> {
    for value in values {
        let raw: [u8; 2] = value.data().try_into().map_err(|_size| "no 16-bit float".to_owned())?;
        out.extend_from_slice(&f16::from_le_bytes(raw).to_le_bytes());
    }
    Ok(())
}
