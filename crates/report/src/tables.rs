//! What stands in each table. One file per table; each makes a [`Table`] from points and draws nothing.

pub(crate) mod checklist;
pub(crate) mod floors;
pub(crate) mod invalid;
pub(crate) mod loading;
pub(crate) mod setup;
pub(crate) mod sweep;

use crate::table::{Cell, Table};
use record::{Flag, Point};

/// Puts the marks of a point at a cell, each with its sentence as a footnote.
fn mark(table: &mut Table, mut cell: Cell, flags: &[Flag]) -> Cell {
    for flag in flags {
        cell = cell.note(table.footnote(flag.sentence()));
    }
    cell
}

/// The names of a point's flags, `-` where there is none.
fn flag_names(point: &Point) -> Cell {
    if point.flags.is_empty() {
        return Cell::new("", "");
    }
    let names: Vec<String> = point.flags.iter().map(|f| f.name()).collect();
    let mut cell = Cell::new("", names.join(" "));
    cell.lines = names.iter().map(|name| name.replace('_', " ")).collect();
    cell
}

/// The last part of a table's file name, where a run has several comparisons.
pub(crate) fn numbered(name: &str, at: usize, of: usize) -> String {
    if of > 1 { format!("{name}-{}", at + 1) } else { name.to_owned() }
}

#[cfg(test)]
mod tests;
