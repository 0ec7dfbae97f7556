//! A table as data, apart from how it is drawn.

use serde::Serialize;

/// A table for people (cells' lines) and for machines (cells' raw values).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Table {
    /// File name without ending.
    pub name: String,
    /// Heading.
    pub title: String,
    /// Columns, left to right.
    pub columns: Vec<Column>,
    /// Rows, each with a cell a column.
    pub rows: Vec<Vec<Cell>>,
    /// Notes below, referred to by number from 1.
    pub footnotes: Vec<String>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Heading.
    pub title: String,
    /// Name in CSV, with its unit.
    pub key: String,
    /// Aligned to the right, never broken.
    pub numeric: bool,
    /// Left out where there is little room (the terminal).
    pub detail: bool,
    /// Long texts, which may be broken into lines; other columns never are.
    pub wraps: bool,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// For people, line by line; a dash where nothing was measured.
    pub lines: Vec<String>,
    /// For machines; empty where nothing was measured.
    pub raw: String,
    /// Footnotes, by number from 1.
    pub notes: Vec<usize>,
}

impl Cell {
    /// What stands for people, and for machines.
    pub fn new(shown: impl Into<String>, raw: impl Into<String>) -> Self {
        Cell { lines: vec![shown.into()], raw: raw.into(), notes: Vec::new() }
    }

    /// The same for both.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Cell::new(text.clone(), text)
    }

    /// Nothing measured.
    pub fn dash() -> Self {
        Cell::new("-", "")
    }

    /// A figure that may be missing, with the way to show it.
    pub fn figure<T: Copy + ToString>(value: Option<T>, show: impl Fn(T) -> String) -> Self {
        value.map_or_else(Cell::dash, |v| Cell::new(show(v), v.to_string()))
    }

    /// With a footnote.
    #[must_use]
    pub fn note(mut self, number: usize) -> Self {
        if !self.notes.contains(&number) {
            self.notes.push(number);
        }
        self
    }

    /// With a further line for people.
    #[must_use]
    pub fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// The lines with the marks of the footnotes after the first: `12,345 [1]`.
    pub fn marked(&self) -> String {
        let mut lines = self.lines.clone();
        if let Some(first) = lines.first_mut() {
            for note in &self.notes {
                *first += &format!(" [{note}]");
            }
        }
        lines.join("\n")
    }
}

impl Table {
    /// An empty table. Columns are (heading, name in CSV); a heading that starts with `>` is
    /// numeric, one with `~` may be broken into lines, one that ends with `?` is left out where
    /// there is little room.
    pub(crate) fn new(name: &str, title: impl Into<String>, columns: &[(&str, &str)]) -> Self {
        let columns = columns
            .iter()
            .map(|(title, key)| Column {
                title: title.trim_start_matches(['>', '~']).trim_end_matches('?').to_owned(),
                key: (*key).to_owned(),
                numeric: title.starts_with('>'),
                detail: title.ends_with('?'),
                wraps: title.starts_with('~'),
            })
            .collect();
        Table { name: name.to_owned(), title: title.into(), columns, rows: Vec::new(), footnotes: Vec::new() }
    }

    /// The number of a footnote; a text that stands already is not repeated.
    pub(crate) fn footnote(&mut self, text: impl Into<String>) -> usize {
        let text = text.into();
        match self.footnotes.iter().position(|t| *t == text) {
            Some(at) => at + 1,
            None => {
                self.footnotes.push(text);
                self.footnotes.len()
            }
        }
    }

    /// One table for each run of rows that agree in the first `columns` columns, which become the
    /// heading. Footnotes go with the rows that refer to them.
    pub(crate) fn split(&self, columns: usize) -> Vec<Table> {
        let mut parts: Vec<(String, Table)> = Vec::new();
        for row in &self.rows {
            let head: Vec<&str> = row[..columns].iter().flat_map(|c| &c.lines).map(String::as_str).collect();
            let head = head.into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(" ");
            if parts.last().is_none_or(|(last, _)| *last != head) {
                let table = Table {
                    title: head.clone(),
                    columns: self.columns[columns..].to_vec(),
                    rows: Vec::new(),
                    footnotes: Vec::new(),
                    name: self.name.clone(),
                };
                parts.push((head, table));
            }
            if let Some((_, part)) = parts.last_mut() {
                let mut cells = row[columns..].to_vec();
                for cell in &mut cells {
                    for note in &mut cell.notes {
                        *note = part.footnote(self.footnotes[*note - 1].clone());
                    }
                }
                part.rows.push(cells);
            }
        }
        parts.into_iter().map(|(_, table)| table).collect()
    }
}
