//! Tables and points as CSV.

use crate::{table::Table, view};
use record::{POINT_FIELDS, Point};
use serde_json::Value;

/// A table: raw values under the columns' CSV names, with the notes of each row where there are any.
pub(crate) fn table(table: &Table) -> String {
    let notes = table.rows.iter().flatten().any(|cell| !cell.notes.is_empty());
    let mut header: Vec<&str> = table.columns.iter().map(|c| c.key.as_str()).collect();
    header.extend(notes.then_some("notes"));
    let rows = table.rows.iter().map(|row| {
        let mut fields: Vec<String> = row.iter().map(|cell| cell.raw.clone()).collect();
        if notes {
            let texts: Vec<&str> =
                row.iter().flat_map(|cell| &cell.notes).map(|&n| table.footnotes[n - 1].as_str()).collect();
            fields.push(texts.join(" | "));
        }
        fields
    });
    write(&header, rows)
}

/// A row per point with every field of the record, and whether its figures may be used.
pub(crate) fn points(points: &[&Point]) -> String {
    let mut header = vec!["usable"];
    header.extend(POINT_FIELDS);
    let rows = points.iter().map(|point| {
        let value = serde_json::to_value(point).unwrap_or_default();
        let mut fields = vec![view::usable(point).to_string()];
        fields.extend(POINT_FIELDS.iter().map(|name| field(value.get(name))));
        fields
    });
    write(&header, rows)
}

/// Nothing for what was not measured, lists and objects as JSON.
fn field(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn write(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    // Writing to memory fails only where rows differ in length, which the callers rule out.
    let mut ok = writer.write_record(header).is_ok();
    for row in rows {
        ok &= writer.write_record(row).is_ok();
    }
    debug_assert!(ok, "rows of different length");
    writer.into_inner().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
