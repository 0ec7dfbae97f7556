//! CSV: vectors as numeric columns or as one column of lists, ids, and metadata.
//!
//! What is here: reading with or without a header line, separated by comma, semicolon or tab. What
//! is not: writing.
//!
//! With a column of lists (`[1, 2]` or `1 2`), every other column is metadata. Without one, every
//! column whose first cell is a number is a component of the vector, in order, and the others are
//! metadata. A column called `id`, or the one that an option names, holds the ids.

use crate::{
    Dataset, DatasetError, OpenOptions,
    flat::{self, Sink},
    parquet::plain,
};
use std::{
    fs::File,
    io::{BufRead, BufReader, Seek, SeekFrom},
    path::Path,
};
use types::{Column, ColumnData, Columns, Element, Ids};

/// How many bad rows an error names.
const NAMED_ROWS: usize = 6;

/// Opens a CSV file of base vectors; the result has no queries (0 rows).
///
/// # Errors
/// Where a cell is no number or rows differ in length, naming the row (data rows count from 0).
pub fn open(path: &Path, options: &OpenOptions) -> Result<Dataset, DatasetError> {
    let mut text = Text::open(path)?;
    let plan = Plan::new(&text, options)?;
    // Line i of a metadata file belongs to row i of the whole set, so the limit comes after it.
    let limit = options.limit.filter(|_| options.columns.is_none()).unwrap_or(usize::MAX);
    let what = format!("csv {:?} {:?} {limit}", options.id_column, options.vector_column);
    let mut sink = Sink::new(options.cache_dir.as_deref(), &flat::key(&[path], &what)?, None);
    let mut columns: Vec<(usize, Vec<Option<String>>)> =
        plan.metadata.iter().map(|c| (*c, Vec::new())).collect();
    let mut ids: Vec<String> = Vec::new();
    let mut faults = Faults::default();
    let (mut rows, mut vector) = (0, Vec::new());
    while rows < limit && text.next()? {
        vector.clear();
        match plan.vector(&text.record, &mut vector) {
            Err(fault) => faults.add(rows, fault),
            Ok(()) if faults.bad == 0 => sink.write(bytemuck::cast_slice(&vector))?,
            Ok(()) => {}
        }
        for (column, values) in &mut columns {
            values.push(text.record.get(*column).map(str::trim).filter(|v| !v.is_empty()).map(str::to_owned));
        }
        if let Some(id) = plan.id {
            match text.record.get(id).map(str::trim).filter(|id| !id.is_empty()) {
                Some(id) => ids.push(id.to_owned()),
                None => faults.add(rows, "no id".to_owned()),
            }
        }
        rows += 1;
    }
    faults.refuse(path, plan.dim)?;
    if rows == 0 {
        return Err(DatasetError::invalid(path, "no rows"));
    }
    let mut notices = vec![plan.notice(&text)];
    let flat = sink.finish(path, plan.dim, Element::F32, Vec::new())?;
    let none = flat.vectors.slice(0..0);
    let name = path.file_stem().map_or_else(|| "csv".to_owned(), |s| s.to_string_lossy().into_owned());
    let mut dataset = Dataset::new(name, flat.vectors, none);
    if plan.id.is_some() {
        dataset.ids = typed_ids(ids);
    }
    dataset.columns = text.columns(columns, path)?;
    dataset.metric = options.metric;
    notices.append(&mut dataset.notices);
    dataset.notices = notices;
    Ok(dataset)
}

/// Metadata from a CSV file with a header line: matched by its `id` column where that holds the ids
/// of the rows, else line i belongs to row i.
///
/// # Errors
/// Where the number of lines is another than that of the rows.
pub fn read_columns(path: &Path, ids: &Ids) -> Result<Columns, DatasetError> {
    let mut text = Text::open(path)?;
    if text.header.is_none() {
        return Err(DatasetError::invalid(
            path,
            "metadata needs a header line with the names of the columns",
        ));
    }
    let id = text.position("id");
    let mut columns: Vec<(usize, Vec<Option<String>>)> =
        (0..text.width).filter(|c| Some(*c) != id).map(|c| (c, Vec::new())).collect();
    let mut own = Vec::new();
    while text.next()? {
        for (column, values) in &mut columns {
            values.push(text.record.get(*column).map(str::trim).filter(|v| !v.is_empty()).map(str::to_owned));
        }
        own.extend(id.and_then(|id| text.record.get(id)).map(|id| id.trim().to_owned()));
    }
    let all = text
        .columns(columns, path)?
        .ok_or_else(|| DatasetError::invalid(path, "no column of metadata beside the ids"))?;
    let own = if own.len() == all.rows() { Some(typed_ids(own)) } else { None };
    if let Some(own) = own.filter(|own| own != ids && own.distinct() == own.len()) {
        let map = own.rows_by_id();
        let order: Option<Vec<usize>> =
            (0..ids.len()).map(|r| map.get(&ids.get(r)).map(|r| *r as usize)).collect();
        if let Some(order) = order {
            return Ok(all.select(order));
        }
    }
    if all.rows() != ids.len() {
        let reason =
            format!("{} lines of metadata for {} vectors; line i belongs to vector i", all.rows(), ids.len());
        return Err(DatasetError::invalid(path, reason));
    }
    Ok(all)
}

fn typed_ids(ids: Vec<String>) -> Ids {
    let ints: Option<Vec<i64>> = ids.iter().map(|id| id.parse().ok()).collect();
    match ints {
        Some(ints) => plain(Ids::Ints(ints)),
        None => Ids::Texts(ids),
    }
}

/// The lines of the file, after its header.
struct Text<'a> {
    path: &'a Path,
    reader: ::csv::Reader<File>,
    header: Option<Vec<String>>,
    /// The first data line, to learn the columns' kinds; it is given again by `next`.
    first: ::csv::StringRecord,
    first_given: bool,
    record: ::csv::StringRecord,
    width: usize,
}

impl<'a> Text<'a> {
    fn open(path: &'a Path) -> Result<Self, DatasetError> {
        let file = File::open(path).map_err(DatasetError::io("read", path))?;
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        // A file without line breaks must not be read whole to find its separator.
        std::io::Read::take(&mut lines, 1 << 20)
            .read_until(b'\n', &mut line)
            .map_err(DatasetError::io("read", path))?;
        let mut file = lines.into_inner();
        file.seek(SeekFrom::Start(0)).map_err(DatasetError::io("read", path))?;
        let separator = [b'\t', b';'].into_iter().find(|s| line.contains(s)).unwrap_or(b',');
        let reader = ::csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(separator)
            .from_reader(file);
        let (first, record) = (::csv::StringRecord::new(), ::csv::StringRecord::new());
        let mut text = Text { path, reader, header: None, first, first_given: true, record, width: 0 };
        if !text.next()? {
            return Err(DatasetError::invalid(path, "an empty file"));
        }
        let cells = text.record.clone();
        if cells.iter().all(|cell| list(cell).is_none()) {
            let names = cells.iter().map(|c| c.trim_start_matches('\u{feff}').trim().to_owned()).collect();
            text.header = Some(names);
            if !text.next()? {
                return Err(DatasetError::invalid(path, "a header line and no rows"));
            }
        }
        text.first = text.record.clone();
        text.width = text.first.len();
        text.first_given = false;
        Ok(text)
    }

    /// Reads the next data line into `record`; false at the end.
    fn next(&mut self) -> Result<bool, DatasetError> {
        if !self.first_given {
            self.first_given = true;
            self.record = self.first.clone();
            return Ok(true);
        }
        self.reader
            .read_record(&mut self.record)
            .map_err(|e| DatasetError::invalid(self.path, format!("no CSV: {e}")))
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.header.as_ref()?.iter().position(|h| h.eq_ignore_ascii_case(name))
    }

    fn wanted(&self, name: &str) -> Result<usize, DatasetError> {
        self.position(name).ok_or_else(|| {
            let names = self.header.as_ref().map_or_else(
                || "there is no header line".to_owned(),
                |h| format!("the columns are {}", h.iter().take(20).cloned().collect::<Vec<_>>().join(", ")),
            );
            DatasetError::invalid(self.path, format!("no column {name:?}; {names}"))
        })
    }

    /// Columns of text as the narrowest type that all values have.
    fn columns(
        &self,
        values: Vec<(usize, Vec<Option<String>>)>,
        path: &Path,
    ) -> Result<Option<Columns>, DatasetError> {
        if values.is_empty() {
            return Ok(None);
        }
        let name = |c: usize| {
            self.header.as_ref().and_then(|h| h.get(c)).cloned().unwrap_or_else(|| format!("column_{c}"))
        };
        let columns = values.into_iter().map(|(c, v)| Column { name: name(c), data: narrowest(v) }).collect();
        Columns::new(columns).map(Some).map_err(|e| DatasetError::invalid(path, e.to_string()))
    }
}

/// Which columns are what.
struct Plan {
    id: Option<usize>,
    /// One column of lists, or many of numbers.
    vector: Vec<usize>,
    listed: bool,
    dim: usize,
    metadata: Vec<usize>,
}

impl Plan {
    fn new(text: &Text<'_>, options: &OpenOptions) -> Result<Self, DatasetError> {
        let id = match &options.id_column {
            Some(name) => Some(text.wanted(name)?),
            None => text.position("id"),
        };
        let count = |c: usize| text.first.get(c).and_then(list).map_or(0, |v| v.len());
        let free = || (0..text.width).filter(|c| Some(*c) != id);
        let lists: Vec<usize> = free().filter(|c| count(*c) > 1).collect();
        let named = options.vector_column.as_deref().map(|name| text.wanted(name)).transpose()?;
        let (vector, listed) = match (named, &lists[..]) {
            (Some(column), _) => (vec![column], true),
            (None, [only]) => (vec![*only], true),
            (None, []) => (free().filter(|c| count(*c) == 1).collect(), false),
            (None, _) => {
                let reason = "several columns of lists; name one with the vector-column option";
                return Err(DatasetError::invalid(text.path, reason));
            }
        };
        let dim = if listed { count(vector[0]) } else { vector.len() };
        if dim == 0 {
            let reason = "no numbers in the first row: vectors are numeric columns, or one column of lists";
            return Err(DatasetError::invalid(text.path, reason));
        }
        let metadata = free().filter(|c| !vector.contains(c)).collect();
        Ok(Plan { id, vector, listed, dim, metadata })
    }

    /// The vector of a line, or what is wrong with it.
    fn vector(&self, record: &::csv::StringRecord, out: &mut Vec<f32>) -> Result<(), String> {
        if self.listed {
            let cell = record.get(self.vector[0]).unwrap_or_default();
            out.extend(list(cell).ok_or_else(|| format!("{:?} is no list of numbers", short(cell)))?);
        } else {
            for &column in &self.vector {
                let Some(cell) = record.get(column) else { break };
                let value = cell.trim().parse().map_err(|_text| format!("{:?} is no number", short(cell)))?;
                out.push(value);
            }
            let expected = self.vector.len() + self.metadata.len() + usize::from(self.id.is_some());
            if record.len() > expected {
                return Err(format!("{} cells, expected {expected}", record.len()));
            }
        }
        match out.len() == self.dim {
            true => Ok(()),
            false => Err(format!("{} values", out.len())),
        }
    }

    fn notice(&self, text: &Text<'_>) -> String {
        let header = if text.header.is_some() { "with a header line" } else { "without a header line" };
        let vector = if self.listed { "one column of lists" } else { "numeric columns" };
        let id = if self.id.is_some() { ", ids from their own column" } else { "" };
        format!("CSV {header}; vectors of {} numbers from {vector}{id}", self.dim)
    }
}

#[derive(Default)]
struct Faults {
    named: Vec<String>,
    bad: usize,
}

impl Faults {
    fn add(&mut self, row: usize, fault: String) {
        self.bad += 1;
        if self.named.len() < NAMED_ROWS {
            self.named.push(format!("{row} ({fault})"));
        }
    }

    fn refuse(self, path: &Path, dim: usize) -> Result<(), DatasetError> {
        if self.bad == 0 {
            return Ok(());
        }
        let (named, bad) = (self.named.join(", "), self.bad);
        let reason = format!(
            "row {named}: no vector of {dim} numbers; {bad} bad in all, leave them out or repair them"
        );
        Err(DatasetError::invalid(path, reason))
    }
}

/// The numbers of a cell: `0.5`, `1 2 3`, `[1, 2, 3]`; none where it is something else.
fn list(cell: &str) -> Option<Vec<f32>> {
    let cell = cell.trim().trim_start_matches('\u{feff}');
    let inner = cell.strip_prefix('[').and_then(|c| c.strip_suffix(']'));
    let separators: &[char] = if inner.is_some() { &[',', ' ', '\n', '\r', '\t'] } else { &[' ', '\t'] };
    let parts = inner.unwrap_or(cell).split(separators).filter(|part| !part.is_empty());
    let numbers: Option<Vec<f32>> = parts.map(|part| part.parse().ok()).collect();
    numbers.filter(|n| !n.is_empty())
}

fn short(cell: &str) -> String {
    cell.chars().take(24).collect()
}

fn narrowest(values: Vec<Option<String>>) -> ColumnData {
    fn all<T: std::str::FromStr>(values: &[Option<String>]) -> Option<Vec<Option<T>>> {
        values
            .iter()
            .map(|v| v.as_deref().map(|v| v.parse().ok()).map_or(Some(None), |v| v.map(Some)))
            .collect()
    }
    if let Some(ints) = all(&values) {
        return ColumnData::Int(ints);
    }
    if let Some(floats) = all(&values) {
        return ColumnData::Float(floats);
    }
    let lower: Vec<Option<String>> =
        values.iter().map(|v| v.as_ref().map(|v| v.to_ascii_lowercase())).collect();
    match all(&lower) {
        Some(bools) => ColumnData::Bool(bools),
        None => ColumnData::Text(values),
    }
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
