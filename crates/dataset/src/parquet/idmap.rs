//! From the ids that a truth file names to row numbers.

use super::{
    lists::{self, Row},
    table::{Field, Kind, Table, guarded},
};
use crate::DatasetError;
use ::parquet::{
    basic::Type as Physical,
    data_type::{ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type},
};
use std::collections::HashMap;
use types::Ids;

/// Looks rows up by id.
pub(crate) enum IdMap<'a> {
    RowNumbers(usize),
    Ints(HashMap<i64, u32>),
    Texts(HashMap<&'a str, u32>),
}

impl<'a> IdMap<'a> {
    /// Of repeated ids the last row counts; `validate` refuses such a set.
    pub(crate) fn new(ids: &'a Ids) -> Self {
        match ids {
            Ids::RowNumbers(rows) => IdMap::RowNumbers(*rows),
            Ids::Ints(ids) => IdMap::Ints(ids.iter().copied().zip(0..).collect()),
            Ids::Texts(ids) => IdMap::Texts(ids.iter().map(String::as_str).zip(0..).collect()),
        }
    }

    /// The row of an integer id.
    pub(crate) fn int(&self, id: i64) -> Option<u32> {
        match self {
            IdMap::RowNumbers(rows) => u32::try_from(id).ok().filter(|row| (*row as usize) < *rows),
            IdMap::Ints(map) => map.get(&id).copied(),
            IdMap::Texts(map) => map.get(id.to_string().as_str()).copied(),
        }
    }

    /// The row of a text id.
    pub(crate) fn text(&self, id: &str) -> Option<u32> {
        match self {
            IdMap::Texts(map) => map.get(id).copied(),
            IdMap::RowNumbers(_) | IdMap::Ints(_) => self.int(id.parse().ok()?),
        }
    }

    fn words(&self) -> &'static str {
        match self {
            IdMap::RowNumbers(_) => "row numbers",
            IdMap::Ints(_) => "integer ids",
            IdMap::Texts(_) => "text ids",
        }
    }
}

/// Lists of any length, one after the other.
pub(crate) struct Ragged<T> {
    ends: Vec<usize>,
    items: Vec<T>,
}

impl<T> Ragged<T> {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// List `i`.
    pub(crate) fn of(&self, i: usize) -> &[T] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.items[start..self.ends[i]]
    }

    /// The longest list's length.
    pub(crate) fn longest(&self) -> usize {
        (0..self.len()).map(|i| self.of(i).len()).max().unwrap_or(0)
    }
}

/// Ids that no row has: how many, the first place, and the largest.
#[derive(Default)]
struct Unknown {
    count: u64,
    first: Option<(u64, String)>,
    largest: Option<i64>,
}

/// The neighbours' rows. A null list or an id of -1 means that there is no (further) neighbour.
///
/// # Errors
/// Where ids name no row of the base; the first and the largest are named.
pub(crate) fn neighbours(table: &Table, field: &Field, map: &IdMap<'_>) -> Result<Ragged<u32>, DatasetError> {
    let mut unknown = Unknown::default();
    let ragged = guarded(&table.path, || match field.physical {
        Physical::INT32 => gather::<Int32Type, u32>(table, field, &mut |row, id| {
            let id = if matches!(field.kind, Kind::UInt(_)) {
                i64::from(id.cast_unsigned())
            } else {
                i64::from(*id)
            };
            int(map, row, id, &mut unknown)
        }),
        Physical::INT64 => {
            gather::<Int64Type, u32>(table, field, &mut |row, id| int(map, row, *id, &mut unknown))
        }
        _ => gather::<ByteArrayType, u32>(table, field, &mut |row, id| {
            let found = std::str::from_utf8(id.data()).ok().and_then(|text| map.text(text));
            if found.is_none() {
                unknown.count += 1;
                unknown.first.get_or_insert((row, format!("{:?}", String::from_utf8_lossy(id.data()))));
            }
            found
        }),
    })?;
    let Some((query, first)) = unknown.first else { return Ok(ragged) };
    let largest = unknown.largest.map_or_else(String::new, |id| format!(", the largest is {id}"));
    Err(table.invalid(format!(
        "{} entries of {:?} name no base row (first: {first} in line {query}{largest}; the base has {}): it was made for \
         other data or another id column; remake it with `annvil truth`",
        unknown.count,
        field.name,
        map.words(),
    )))
}

fn int(map: &IdMap<'_>, row: u64, id: i64, unknown: &mut Unknown) -> Option<u32> {
    let found = map.int(id);
    if found.is_none() && id != -1 {
        unknown.count += 1;
        unknown.first.get_or_insert((row, id.to_string()));
        unknown.largest = unknown.largest.max(Some(id));
    }
    found
}

/// The numbers of a list column as f64 (the truth's distances).
pub(crate) fn numbers(table: &Table, field: &Field) -> Result<Ragged<f64>, DatasetError> {
    guarded(&table.path, || match (&field.kind, field.physical) {
        (Kind::F32, _) => gather::<FloatType, _>(table, field, &mut |_, v| Some(f64::from(*v))),
        (Kind::F64, _) => gather::<DoubleType, _>(table, field, &mut |_, v| Some(*v)),
        (Kind::Int(_), Physical::INT32) => {
            gather::<Int32Type, _>(table, field, &mut |_, v| Some(f64::from(*v)))
        }
        _ => Err(table.invalid(format!(
            "column {:?} is {}; distances are floats",
            field.name,
            field.describe()
        ))),
    })
}

fn gather<T: DataType, V>(
    table: &Table,
    field: &Field,
    each: &mut dyn FnMut(u64, &T::T) -> Option<V>,
) -> Result<Ragged<V>, DatasetError> {
    let mut ragged = Ragged { ends: Vec::new(), items: Vec::new() };
    lists::visit::<T>(table, field, u64::MAX, &mut |block| {
        for (number, row, values) in block.each() {
            if let Row::Holes(_) = row {
                let reason = format!("column {:?}, row {number}: nulls inside the list", field.name);
                return Err(table.invalid(reason));
            }
            ragged.items.extend(values.iter().filter_map(|value| each(number, value)));
            ragged.ends.push(ragged.items.len());
        }
        Ok(())
    })?;
    Ok(ragged)
}
