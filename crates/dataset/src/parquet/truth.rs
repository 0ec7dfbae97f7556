//! Truth tables: one line a query (`neighbors.parquet`), or one line a filter and query.

use super::{
    idmap::{self, IdMap, Ragged},
    scalars,
    table::{Field, Table},
};
use crate::{DatasetError, FilteredTruth, OpenOptions, neighbours};
use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};
use types::{ColumnData, Columns, Filter, FilterTemplate, Id, Ids, Metric, Neighbour, Truth};

/// What a truth file holds.
#[derive(Debug, Default)]
pub(crate) struct TruthTable {
    /// Over all rows, where the file names no filter.
    pub(crate) truth: Option<Truth>,
    /// Per filter.
    pub(crate) filtered: Vec<FilteredTruth>,
    /// What the file's metric column says.
    pub(crate) metric: Option<Metric>,
    /// What the user should know.
    pub(crate) notices: Vec<String>,
}

/// What truth is read against.
pub(crate) struct Against<'a> {
    /// The base rows' ids.
    pub(crate) ids: &'a Ids,
    /// The queries' ids, where they have any.
    pub(crate) query_ids: Option<&'a Ids>,
    /// Number of queries.
    pub(crate) queries: usize,
    /// The base rows' columns, to count what a filter lets pass.
    pub(crate) columns: Option<&'a Columns>,
}

const NEIGHBOURS: [&str; 6] = ["neighbors_id", "neighbors", "neighbours", "neighbor_ids", "ids", "nearest"];
const QUERY: [&str; 3] = ["query", "query_id", "id"];
const DISTANCES: [&str; 3] = ["distances", "distance", "neighbors_distance"];

/// Reads a truth file. With a `case` column it is one line a filter and query; with a `filter`
/// column of one text it is the truth under that filter; else it is truth over all rows.
///
/// # Errors
/// Where lines or queries are missing or ids name no row.
pub(crate) fn read(
    path: &Path,
    options: &OpenOptions,
    against: &Against<'_>,
) -> Result<TruthTable, DatasetError> {
    let table = Table::open(path)?;
    let lines = Lines::read(&table, options.truth_column.as_deref(), against.ids)?;
    let metric = match lines.texts("metric").and_then(|v| v.first()) {
        Some(Some(word)) => {
            Some(word.parse().map_err(|e: types::UnknownMetric| table.invalid(e.to_string()))?)
        }
        _ => None,
    };
    let mut out = TruthTable { metric, ..TruthTable::default() };
    if let Some(cases) = lines.texts("case") {
        out.filtered = by_case(&table, &lines, cases, against)?;
        return Ok(out);
    }
    let order = lines.order(&table, against)?;
    if let Some(Some(text)) = lines.texts("filter").and_then(|v| v.first()) {
        let template = FilterTemplate::parse(text).map_err(|e| table.invalid(e.to_string()))?;
        let name = case_name(path);
        out.filtered = vec![lines.filtered(name, Some(template), &order, against)];
    } else {
        let (rows, given) = (against.ids.len() as u64, lines.ints("matching"));
        out.truth = Some(lines.truth(&order, |_, line| {
            given.and_then(|g| g[line]).and_then(|m| u64::try_from(m).ok()).unwrap_or(rows)
        }));
    }
    Ok(out)
}

/// Reads VectorDBBench's `neighbors_<case>.parquet`.
pub(crate) fn read_case(
    case: &str,
    path: &Path,
    options: &OpenOptions,
    against: &Against<'_>,
) -> Result<(FilteredTruth, Option<String>), DatasetError> {
    let table = Table::open(path)?;
    let lines = Lines::read(&table, options.truth_column.as_deref(), against.ids)?;
    let order = lines.order(&table, against)?;
    let (text, notice) = case_filter(case, against.ids.len()).unzip();
    let template = match text {
        Some(text) => Some(FilterTemplate::parse(&text).map_err(|e| table.invalid(e.to_string()))?),
        None => None,
    };
    Ok((lines.filtered(case.to_owned(), template, &order, against), notice))
}

/// The filter that a VectorDBBench case name stands for, and a word on the naming trap: an integer
/// case is named by the share that is REMOVED, a label case by the share that is kept.
pub(crate) fn case_filter(case: &str, rows: usize) -> Option<(String, String)> {
    if let Some(label) = case.strip_prefix("labels_") {
        let share = label.strip_prefix("label_").unwrap_or(label).trim_end_matches('p');
        return Some((
            format!("labels = '{label}'"),
            format!("{case}: the label keeps {share} % of the rows"),
        ));
    }
    let rate =
        ["int_", "head_", "tail_"].iter().find_map(|prefix| case.strip_prefix(prefix))?.strip_suffix('p')?;
    // "99.5" percent as 995 thousandths: exact, where 0.995 as a float is not.
    let (whole, tenth) = rate.split_once('.').unwrap_or((rate, "0"));
    let percent: usize = whole.parse().ok().filter(|p| *p <= 100)?;
    let tenth: usize = tenth.parse().ok().filter(|t| *t <= 9)?;
    let removed = if case.starts_with("tail_") { 990 } else { percent * 10 + tenth };
    let first = usize::try_from(rows as u128 * removed as u128 / 1000).ok()?;
    let kept = 100.0 - removed as f64 / 10.0;
    let removed = removed as f64 / 10.0;
    let notice = format!(
        "{case}: the name is the share removed ({removed} %); the filter id >= {first} keeps {kept:.1} %"
    );
    Some((format!("id >= {first}"), notice))
}

/// Groups lines by their case, in order of first appearance.
fn by_case(
    table: &Table,
    lines: &Lines,
    cases: &[Option<String>],
    against: &Against<'_>,
) -> Result<Vec<FilteredTruth>, DatasetError> {
    let templates = templates(&table.path)?;
    let mut names: Vec<&str> = Vec::new();
    let mut members: HashMap<&str, Vec<usize>> = HashMap::new();
    for (line, case) in cases.iter().enumerate() {
        let case = case.as_deref().ok_or_else(|| table.invalid(format!("line {line}: no case")))?;
        let list = members.entry(case).or_default();
        if list.is_empty() {
            names.push(case);
        }
        list.push(line);
    }
    names
        .iter()
        .map(|name| {
            let order = lines.arrange(table, &members[name], against).map_err(|e| match e {
                DatasetError::Invalid { path, reason } => {
                    DatasetError::Invalid { path, reason: format!("case {name:?}: {reason}") }
                }
                other => other,
            })?;
            Ok(lines.filtered((*name).to_owned(), templates.get(*name).cloned(), &order, against))
        })
        .collect()
}

/// The filters that a JSON file beside the truth names: `x-filtered-truth.parquet` has
/// `x-filters.json`, else `filters.json` in the same directory. An object of case and filter.
fn templates(truth: &Path) -> Result<HashMap<String, FilterTemplate>, DatasetError> {
    let Some(path) = filters_beside(truth) else { return Ok(HashMap::new()) };
    let text = fs::read_to_string(&path).map_err(DatasetError::io("read", &path))?;
    let texts: HashMap<String, String> = serde_json::from_str(&text)
        .map_err(|e| DatasetError::invalid(&path, format!("no object of filter names and filters: {e}")))?;
    texts
        .into_iter()
        .map(|(name, text)| match FilterTemplate::parse(&text) {
            Ok(template) => Ok((name, template)),
            Err(e) => Err(DatasetError::invalid(&path, format!("{name:?}: {e}"))),
        })
        .collect()
}

fn filters_beside(truth: &Path) -> Option<PathBuf> {
    let dir = truth.parent()?;
    let stem = truth.file_stem()?.to_string_lossy().into_owned();
    let own = stem.strip_suffix("filtered-truth").map(|prefix| dir.join(format!("{prefix}filters.json")));
    [own, Some(dir.join("filters.json"))].into_iter().flatten().find(|path| path.is_file())
}

fn case_name(path: &Path) -> String {
    let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    stem.strip_prefix("neighbors_").map(str::to_owned).unwrap_or(stem)
}

/// A truth table's lines, before they are put in the order of the queries.
struct Lines {
    rows: Ragged<u32>,
    distances: Option<Ragged<f64>>,
    scalars: Vec<(String, ColumnData)>,
}

impl Lines {
    fn read(table: &Table, named: Option<&str>, ids: &Ids) -> Result<Self, DatasetError> {
        let field = find(table, named)?;
        let rows = idmap::neighbours(table, field, &IdMap::new(ids))?;
        let is_list = |f: &&Field| f.is_number_list() && f.name != field.name;
        let distances = table
            .fields
            .iter()
            .filter(is_list)
            .find(|f| DISTANCES.contains(&f.name.to_ascii_lowercase().as_str()))
            .map(|f| idmap::numbers(table, f))
            .transpose()?;
        let scalars = table
            .fields
            .iter()
            .filter(|f| scalars::readable(f))
            .map(|f| Ok((f.name.clone(), scalars::column(table, f, u64::MAX)?)))
            .collect::<Result<_, DatasetError>>()?;
        Ok(Lines { rows, distances, scalars })
    }

    fn scalar(&self, name: &str) -> Option<&ColumnData> {
        self.scalars.iter().find(|(n, _)| n == name).map(|(_, data)| data)
    }

    fn texts(&self, name: &str) -> Option<&[Option<String>]> {
        match self.scalar(name)? {
            ColumnData::Text(values) => Some(values),
            _ => None,
        }
    }

    fn ints(&self, name: &str) -> Option<&[Option<i64>]> {
        match self.scalar(name)? {
            ColumnData::Int(values) => Some(values),
            _ => None,
        }
    }

    /// All lines in the order of the queries.
    fn order(&self, table: &Table, against: &Against<'_>) -> Result<Vec<usize>, DatasetError> {
        self.arrange(table, &(0..self.rows.len()).collect::<Vec<_>>(), against)
    }

    /// `lines` in the order of the queries: by query id where the ids of the lines are those of the
    /// queries, each once; else as they stand.
    fn arrange(
        &self,
        table: &Table,
        lines: &[usize],
        against: &Against<'_>,
    ) -> Result<Vec<usize>, DatasetError> {
        if lines.len() != against.queries {
            return Err(neighbours::coverage(&table.path, lines.len(), self.rows.longest(), against.queries));
        }
        if !lines.is_empty()
            && lines.iter().all(|&line| self.rows.of(line).is_empty())
            && self.rows.longest() == 0
        {
            return Err(neighbours::coverage(&table.path, lines.len(), 0, against.queries));
        }
        let by_number = Ids::RowNumbers(against.queries);
        for ids in against.query_ids.into_iter().chain([&by_number]) {
            for name in QUERY {
                if let Some(order) = self.scalar(name).and_then(|column| by_id(column, lines, ids)) {
                    return Ok(order);
                }
            }
        }
        Ok(lines.to_vec())
    }

    fn truth(&self, order: &[usize], matching: impl Fn(usize, usize) -> u64) -> Truth {
        let depth = order.iter().map(|&line| self.rows.of(line).len()).max().unwrap_or(0);
        let mut truth = Truth::new(depth);
        for (query, &line) in order.iter().enumerate() {
            let rows = self.rows.of(line);
            let distances = self.distances.as_ref().map(|d| d.of(line)).filter(|d| d.len() == rows.len());
            let list = rows
                .iter()
                .enumerate()
                .map(|(i, &row)| Neighbour { row, distance: distances.map_or(f64::NAN, |d| d[i]) });
            truth.push(list, matching(query, line));
        }
        truth
    }

    /// The truth under one filter. How many rows match is read from the file, else counted from
    /// the columns; where neither is possible, it is as many as are listed.
    fn filtered(
        &self,
        name: String,
        filter: Option<FilterTemplate>,
        order: &[usize],
        against: &Against<'_>,
    ) -> FilteredTruth {
        let counted = filter.as_ref().filter(|f| !f.per_query()).and_then(|f| {
            let filter: Filter = f.fill(&mut |_, _| Ok(types::Value::Int(0))).ok()?;
            Some(filter.rows(against.columns?).ok()?.count() as u64)
        });
        let given = self.ints("matching");
        let truth = self.truth(order, |_, line| {
            let given = given.and_then(|g| g[line]).and_then(|m| u64::try_from(m).ok());
            given.or(counted).unwrap_or(self.rows.of(line).len() as u64)
        });
        let values =
            self.texts("value").map_or_else(Vec::new, |v| order.iter().map(|&l| v[l].clone()).collect());
        FilteredTruth { name, filter, values, truth }
    }
}

/// The neighbours column: the one named, else `neighbors_id` or its kin, else the only list of ids.
fn find<'a>(table: &'a Table, named: Option<&str>) -> Result<&'a Field, DatasetError> {
    if let Some(name) = named {
        let field = table.field(name).ok_or_else(|| {
            table.invalid(format!("no column {name:?}; the columns are {}", table.describe_fields()))
        })?;
        return match field.is_id_list() {
            true => Ok(field),
            false => {
                let reason = format!("column {name:?} is {}; neighbours are lists of ids", field.describe());
                Err(table.invalid(reason))
            }
        };
    }
    let lists: Vec<&Field> = table.fields.iter().filter(|f| f.is_id_list()).collect();
    let usual = |field: &&&Field| NEIGHBOURS.contains(&field.name.to_ascii_lowercase().as_str());
    match (lists.iter().find(usual), &lists[..]) {
        (Some(field), _) => Ok(field),
        (None, [only]) => Ok(only),
        _ => {
            let reason = format!("which column holds the neighbours? There are {}", table.describe_fields());
            Err(table.invalid(reason + "; name it with the truth-column option"))
        }
    }
}

/// The order of `lines` in which their ids are those of the queries; none where they are not, each
/// once.
fn by_id(column: &ColumnData, lines: &[usize], ids: &Ids) -> Option<Vec<usize>> {
    let mut place: HashMap<Id, usize> = HashMap::new();
    for &line in lines {
        let id = match column {
            ColumnData::Int(values) => Id::Int(values[line]?),
            ColumnData::Text(values) => Id::Text(values[line].clone()?),
            ColumnData::Float(_) | ColumnData::Bool(_) => return None,
        };
        if place.insert(id, line).is_some() {
            return None;
        }
    }
    (0..ids.len()).map(|query| place.get(&ids.get(query)).copied()).collect()
}
