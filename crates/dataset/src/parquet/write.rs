//! Writing parquet: vectors and truth as lists, columns as optional values, in row groups that a
//! reader can hold.

mod encode;

use super::table::Table;
use crate::{Dataset, DatasetError, FilteredTruth};
use ::parquet::{
    basic::{Compression, ZstdLevel},
    errors::ParquetError,
    file::{metadata::KeyValue, properties::WriterProperties, writer::SerializedFileWriter},
    schema::types::{ColumnPath, Type},
};
use encode::{Source, schema, write_column};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::BufWriter,
    path::Path,
    sync::Arc,
};
use types::{Columns, Ids, Metric, Truth, Vectors};

/// Key of the metric in the footer.
const METRIC_KEY: &str = "annvil.metric";

/// A row group holds about so many bytes of vectors, and at most so many rows.
const GROUP_BYTES: usize = 64 << 20;
const GROUP_ROWS: usize = 1 << 17;

/// Writes `dataset` into the new directory `dir` in the layout of VectorDBBench: `train.parquet`
/// (`id`, `emb`, columns), `test.parquet`, `neighbors.parquet` (`id`, `neighbors_id`,
/// `distances`), and, where there is truth under filters, `filtered-truth.parquet` with
/// `filters.json`. The metric stands in the footer of `train.parquet`.
///
/// # Errors
/// Where `dir` exists or cannot be written; nothing is left under its name then.
pub fn write_parquet(dataset: &Dataset, dir: &Path) -> Result<(), DatasetError> {
    crate::directory::staged(dir, |part| {
        let metric = dataset.metric.map(|m| KeyValue::new(METRIC_KEY.to_owned(), m.name().to_owned()));
        let base = part.join("train.parquet");
        write_rows(&base, &dataset.base, Some(&dataset.ids), dataset.columns.as_ref(), metric)?;
        if dataset.queries.rows() > 0 {
            write_rows(
                &part.join("test.parquet"),
                &dataset.queries,
                None,
                dataset.query_columns.as_ref(),
                None,
            )?;
        }
        if let Some(truth) = &dataset.truth {
            write_truth(&part.join("neighbors.parquet"), truth, &dataset.ids)?;
        }
        if !dataset.filtered.is_empty() {
            write_filtered(&part.join("filtered-truth.parquet"), &dataset.filtered, &dataset.ids)?;
        }
        Ok(())
    })
}

/// The metric in the footer of a file that [`write_parquet`] made.
pub(super) fn metric_of(table: &Table) -> Result<Option<Metric>, DatasetError> {
    let pairs = table.reader.metadata().file_metadata().key_value_metadata();
    let word = pairs
        .into_iter()
        .flatten()
        .find(|pair| pair.key == METRIC_KEY)
        .and_then(|pair| pair.value.as_deref());
    word.map(|word| word.parse().map_err(|e: types::UnknownMetric| table.invalid(e.to_string()))).transpose()
}

fn write_rows(
    path: &Path,
    vectors: &Vectors,
    ids: Option<&Ids>,
    columns: Option<&Columns>,
    metric: Option<KeyValue>,
) -> Result<(), DatasetError> {
    let ints = |row: usize| match ids {
        Some(Ids::Ints(ids)) => ids[row],
        _ => row as i64,
    };
    let texts = |row: usize| match ids {
        Some(Ids::Texts(ids)) => Some(ids[row].clone()),
        _ => None,
    };
    let id = if matches!(ids, Some(Ids::Texts(_))) { Source::Texts(&texts) } else { Source::Ints(&ints) };
    let mut sources = vec![("id", id), ("emb", Source::Vectors(vectors))];
    for column in columns.into_iter().flat_map(Columns::iter) {
        // The ids are there already; a column called id (a copy of them, for filters) is not repeated.
        if column.name != "id" {
            sources.push((&column.name, Source::Column(&column.data)));
        }
    }
    write(path, vectors.rows(), &sources, metric)
}

/// Metadata as a file of its own: line i belongs to row i.
pub(crate) fn write_columns(path: &Path, columns: &Columns) -> Result<(), DatasetError> {
    let sources: Vec<_> = columns.iter().map(|c| (c.name.as_str(), Source::Column(&c.data))).collect();
    write(path, columns.rows(), &sources, None)
}

/// Ids as a file of their own.
pub(crate) fn write_ids(path: &Path, ids: &Ids) -> Result<(), DatasetError> {
    let ints = |row: usize| if let Ids::Ints(ids) = ids { ids[row] } else { row as i64 };
    let texts = |row: usize| if let Ids::Texts(ids) = ids { Some(ids[row].clone()) } else { None };
    let source = if matches!(ids, Ids::Texts(_)) { Source::Texts(&texts) } else { Source::Ints(&ints) };
    write(path, ids.len(), &[("id", source)], None)
}

/// Truth over all rows, in terms of the base's ids.
pub(crate) fn write_truth(path: &Path, truth: &Truth, ids: &Ids) -> Result<(), DatasetError> {
    let list = |query: usize| -> Vec<usize> { truth.of(query).iter().map(|n| n.row as usize).collect() };
    let matching = |query: usize| i64::try_from(truth.matching(query)).unwrap_or(i64::MAX);
    let more = vec![("matching", Source::Ints(&matching))];
    write_lists(
        path,
        truth.queries(),
        ids,
        &list,
        &|query| distances(truth, query),
        more,
        ("id", "neighbors_id"),
    )
}

/// Lines of rows under line ids of their own.
#[cfg(test)]
pub(super) fn write_lines(
    path: &Path,
    lines: &Ids,
    ids: &Ids,
    list: &dyn Fn(usize) -> Vec<usize>,
) -> Result<(), DatasetError> {
    let number = |line: usize| if let Ids::Ints(ids) = lines { ids[line] } else { line as i64 };
    let far = |line: usize| list(line).iter().map(|_| f64::NAN).collect();
    write_lists(path, lines.len(), ids, list, &far, vec![("id", Source::Ints(&number))], ("", "neighbors_id"))
}

fn distances(truth: &Truth, query: usize) -> Vec<f64> {
    truth.of(query).iter().map(|n| n.distance).collect()
}

/// Truth per filter, one line a filter and query (`case`, `query`, `value`, `matching`,
/// `neighbors`, `distances`), and the filters as `filters.json` beside it.
pub(crate) fn write_filtered(path: &Path, cases: &[FilteredTruth], ids: &Ids) -> Result<(), DatasetError> {
    let lines: Vec<(&FilteredTruth, usize)> =
        cases.iter().flat_map(|case| (0..case.truth.queries()).map(move |query| (case, query))).collect();
    let list = |line: usize| -> Vec<usize> {
        let (case, query) = lines[line];
        case.truth.of(query).iter().map(|n| n.row as usize).collect()
    };
    let (name, value) = (
        |line: usize| Some(lines[line].0.name.clone()),
        |line: usize| lines[line].0.values.get(lines[line].1).cloned().flatten(),
    );
    let query = |line: usize| lines[line].1 as i64;
    let matching = |line: usize| {
        let (case, query) = lines[line];
        i64::try_from(case.truth.matching(query)).unwrap_or(i64::MAX)
    };
    let sources = vec![
        ("case", Source::Texts(&name)),
        ("query", Source::Ints(&query)),
        ("value", Source::Texts(&value)),
        ("matching", Source::Ints(&matching)),
    ];
    let far = |line: usize| distances(&lines[line].0.truth, lines[line].1);
    write_lists(path, lines.len(), ids, &list, &far, sources, ("", "neighbors"))?;
    let filters: BTreeMap<&str, &str> =
        cases.iter().filter_map(|c| Some((c.name.as_str(), c.filter.as_ref()?.text()))).collect();
    let target = path.with_file_name("filters.json");
    let text = serde_json::to_string_pretty(&filters).unwrap_or_default();
    fs::write(&target, text + "\n").map_err(DatasetError::io("write", &target))
}

/// Lists of neighbours by row, written by id, with `more` columns before them; a column of line
/// numbers where `names.0` is not empty.
fn write_lists<'a>(
    path: &Path,
    lines: usize,
    ids: &Ids,
    list: &'a dyn Fn(usize) -> Vec<usize>,
    distances: &'a dyn Fn(usize) -> Vec<f64>,
    more: Vec<(&'a str, Source<'a>)>,
    names: (&'a str, &'a str),
) -> Result<(), DatasetError> {
    let ints = |line: usize| -> Vec<i64> {
        let id = |row: usize| if let Ids::Ints(ids) = ids { ids[row] } else { row as i64 };
        list(line).into_iter().map(id).collect()
    };
    let texts = |line: usize| -> Vec<String> {
        let id = |row: usize| if let Ids::Texts(ids) = ids { ids[row].clone() } else { String::new() };
        list(line).into_iter().map(id).collect()
    };
    let number = |line: usize| line as i64;
    let mut sources: Vec<(&str, Source<'_>)> = Vec::new();
    if !names.0.is_empty() {
        sources.push((names.0, Source::Ints(&number)));
    }
    sources.extend(more);
    let by_text = matches!(ids, Ids::Texts(_));
    sources.push((names.1, if by_text { Source::TextLists(&texts) } else { Source::IntLists(&ints) }));
    if (0..lines).flat_map(distances).all(|d| !d.is_nan()) {
        sources.push(("distances", Source::FloatLists(distances)));
    }
    write(path, lines, &sources, None)
}

fn write(
    path: &Path,
    rows: usize,
    sources: &[(&str, Source<'_>)],
    metadata: Option<KeyValue>,
) -> Result<(), DatasetError> {
    let failed = |e: ParquetError| DatasetError::invalid(path, format!("cannot be written: {e}"));
    let file = File::create(path).map_err(DatasetError::io("create", path))?;
    let fields = sources.iter().map(|(name, source)| schema(name, source)).collect::<Result<Vec<_>, _>>();
    let root = fields.and_then(|fields| Type::group_type_builder("schema").with_fields(fields).build());
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(metadata.map(|pair| vec![pair]));
    for (name, source) in sources {
        // Vectors do not repeat; a dictionary would only hold their pages back in memory.
        if matches!(source, Source::Vectors(_) | Source::FloatLists(_)) {
            let place = ["list", "element"].iter().map(|s| (*s).to_owned());
            let column = ColumnPath::new(std::iter::once((*name).to_owned()).chain(place).collect());
            properties = properties.set_column_dictionary_enabled(column, false);
        }
    }
    let root = root.map_err(failed)?;
    let buffer = BufWriter::with_capacity(1 << 20, file);
    let mut writer =
        SerializedFileWriter::new(buffer, Arc::new(root), Arc::new(properties.build())).map_err(failed)?;
    let group = group_rows(sources);
    for start in (0..rows).step_by(group) {
        let range = start..rows.min(start + group);
        let mut out = writer.next_row_group().map_err(failed)?;
        for (_, source) in sources {
            let Some(mut column) = out.next_column().map_err(failed)? else { break };
            write_column(&mut column, source, range.clone()).map_err(failed)?;
            column.close().map_err(failed)?;
        }
        out.close().map_err(failed)?;
    }
    let buffer = writer.into_inner().map_err(failed)?;
    let file = buffer.into_inner().map_err(|e| DatasetError::io("write", path)(e.into_error()))?;
    file.sync_all().map_err(DatasetError::io("write", path))
}

fn group_rows(sources: &[(&str, Source<'_>)]) -> usize {
    let bytes = sources.iter().find_map(|(_, source)| match source {
        Source::Vectors(vectors) => Some(vectors.element().row_bytes(vectors.dim())),
        _ => None,
    });
    (GROUP_BYTES / bytes.unwrap_or(1).max(1)).clamp(1, GROUP_ROWS)
}
