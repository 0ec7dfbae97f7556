//! What a data set is, in figures: for `describe`, for records and for pages.
//!
//! What is not here: the distance contrast, which needs neighbours; the caller fills it in.

use crate::{
    Dataset,
    scan::{self, Duplicates},
};
use serde::Serialize;
use types::{ColumnData, ColumnType, Columns, Element, Ids, Metric, Value};

/// How many values of a column are listed.
const TOP_VALUES: usize = 10;

/// A data set in figures.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    /// Name.
    pub name: String,
    /// Base rows.
    pub rows: usize,
    /// Components of a vector.
    pub dim: usize,
    /// Type of a component.
    pub element: Element,
    /// Bytes of the base vectors.
    pub bytes: u64,
    /// Metric, where it is known.
    pub metric: Option<Metric>,
    /// Number of queries.
    pub queries: usize,
    /// `row numbers`, `integers` or `texts`.
    pub ids: &'static str,
    /// Euclidean norms of the base rows that are finite; none where no row is.
    pub norms: Option<Spread>,
    /// The same of the queries.
    pub query_norms: Option<Spread>,
    /// Base rows with NaN or infinity.
    pub non_finite: u64,
    /// Base rows that are all zero.
    pub zero: u64,
    /// Exactly repeated base rows; none where there are too many rows to look.
    pub duplicates: Option<Duplicates>,
    /// 1st to 100th neighbour; filled in by who can measure it.
    pub contrast: Option<Contrast>,
    /// Columns of the base.
    pub columns: Vec<ColumnDescription>,
    /// Columns of the queries.
    pub query_columns: Vec<ColumnDescription>,
    /// Truth over all rows.
    pub truth: Option<TruthDescription>,
    /// Truth under filters.
    pub filtered: Vec<FilterDescription>,
    /// Content hashes.
    pub hashes: HashDescription,
    /// What the reader said.
    pub notices: Vec<String>,
}

/// Least, median and greatest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Least.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// Greatest.
    pub max: f64,
}

/// How far the neighbours stand out, as medians over some queries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Contrast {
    /// Distance to the nearest row.
    pub first: f64,
    /// Distance to the 100th nearest row (or the last, where there are fewer).
    pub hundredth: f64,
    /// Median of first / hundredth: near 1 where all rows are about as far.
    pub ratio: f64,
    /// Queries that were measured.
    pub queries: usize,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnDescription {
    /// Name.
    pub name: String,
    /// Type.
    pub kind: ColumnType,
    /// Different values.
    pub distinct: usize,
    /// Rows without a value.
    pub missing: usize,
    /// The most frequent values with the number of rows, at most ten.
    pub top: Vec<(String, usize)>,
    /// Least and greatest of numbers.
    pub range: Option<(Value, Value)>,
}

/// Truth over all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TruthDescription {
    /// Longest list.
    pub depth: usize,
    /// Shortest list.
    pub shortest: usize,
    /// Number of lists.
    pub queries: usize,
    /// Whether the file gives distances.
    pub distances: bool,
}

/// Truth under one filter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FilterDescription {
    /// Name.
    pub name: String,
    /// The filter as written.
    pub filter: Option<String>,
    /// Longest list.
    pub depth: usize,
    /// How many rows match a query.
    pub matching: Option<Spread>,
}

/// Content hashes, as [`crate::Hashes`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HashDescription {
    /// Of the base vectors.
    pub base: String,
    /// Of the query vectors.
    pub queries: String,
    /// Of base and query columns.
    pub columns: Option<String>,
    /// Of the truth.
    pub truth: Option<String>,
}

impl Description {
    /// Describes `dataset`: reads every vector twice (figures, hashes), on all cores.
    pub fn new(dataset: &Dataset) -> Self {
        let base = scan::scan(&dataset.base, true, true);
        let queries = scan::scan(&dataset.queries, true, false);
        let hashes = dataset.hashes();
        Description {
            name: dataset.name.clone(),
            rows: dataset.base.rows(),
            dim: dataset.base.dim(),
            element: dataset.base.element(),
            bytes: dataset.base.payload_bytes(),
            metric: dataset.metric,
            queries: dataset.queries.rows(),
            ids: match dataset.ids {
                Ids::RowNumbers(_) => "row numbers",
                Ids::Ints(_) => "integers",
                Ids::Texts(_) => "texts",
            },
            norms: Spread::of(base.norms.iter().map(|n| f64::from(*n))),
            query_norms: Spread::of(queries.norms.iter().map(|n| f64::from(*n))),
            non_finite: base.non_finite.count,
            zero: base.zero.count,
            duplicates: base.duplicates,
            contrast: None,
            columns: describe_columns(dataset.columns.as_ref()),
            query_columns: describe_columns(dataset.query_columns.as_ref()),
            truth: dataset.truth.as_ref().map(|truth| {
                let lists = || (0..truth.queries()).map(|query| truth.of(query));
                TruthDescription {
                    depth: truth.depth(),
                    shortest: lists().map(<[_]>::len).min().unwrap_or(0),
                    queries: truth.queries(),
                    distances: lists().flatten().next().is_some_and(|n| !n.distance.is_nan()),
                }
            }),
            filtered: dataset.filtered.iter().map(describe_filter).collect(),
            hashes: HashDescription {
                base: hashes.base.clone(),
                queries: hashes.queries.clone(),
                columns: hashes.columns.clone(),
                truth: hashes.truth.clone(),
            },
            notices: dataset.notices.clone(),
        }
    }
}

impl Spread {
    /// Of the finite ones among `values`.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let half = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) };
        Some(Spread { min, median, max })
    }
}

fn describe_columns(columns: Option<&Columns>) -> Vec<ColumnDescription> {
    columns
        .into_iter()
        .flat_map(Columns::iter)
        .map(|column| {
            let mut counts = column.value_counts();
            let present: usize = counts.iter().map(|(_, count)| count).sum();
            let distinct = counts.len();
            counts.truncate(TOP_VALUES);
            ColumnDescription {
                name: column.name.clone(),
                kind: column.kind(),
                distinct,
                missing: column.data.len() - present,
                top: counts,
                range: range(&column.data),
            }
        })
        .collect()
}

fn range(data: &ColumnData) -> Option<(Value, Value)> {
    match data {
        ColumnData::Int(values) => {
            let present = || values.iter().flatten();
            Some((Value::Int(*present().min()?), Value::Int(*present().max()?)))
        }
        ColumnData::Float(values) => {
            let spread = Spread::of(values.iter().flatten().copied())?;
            Some((Value::Float(spread.min), Value::Float(spread.max)))
        }
        ColumnData::Bool(_) | ColumnData::Text(_) => None,
    }
}

fn describe_filter(case: &crate::FilteredTruth) -> FilterDescription {
    FilterDescription {
        name: case.name.clone(),
        filter: case.filter.as_ref().map(|f| f.text().to_owned()),
        depth: case.truth.depth(),
        matching: Spread::of((0..case.truth.queries()).map(|query| case.truth.matching(query) as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{Column, Neighbour, Truth, Vectors};

    #[test]
    fn figures_of_a_small_set() {
        let base = Vectors::from_f32(vec![3.0, 4.0, 0.0, 0.0, 3.0, 4.0, f32::NAN, 1.0], 4, 2).unwrap();
        let queries = Vectors::from_f32(vec![1.0, 0.0], 1, 2).unwrap();
        let mut set = Dataset::new("small", base, queries);
        let column = |name: &str, data| Column { name: name.to_owned(), data };
        let text = |t: &str| Some(t.to_owned());
        set.columns = Columns::new(vec![
            column("kind", ColumnData::Text(vec![text("a"), text("b"), text("a"), None])),
            column("x", ColumnData::Float(vec![Some(0.5), Some(f64::NAN), Some(-1.0), None])),
        ])
        .ok();
        let mut truth = Truth::new(2);
        truth.push([Neighbour { row: 1, distance: f64::NAN }], 4);
        set.truth = Some(truth);
        let d = Description::new(&set);
        assert_eq!(d.norms, Some(Spread { min: 0.0, median: 5.0, max: 5.0 }));
        assert_eq!((d.zero, d.non_finite), (1, 1));
        assert_eq!(d.duplicates, Some(Duplicates { repeats: 1, distinct: 3, most: 2 }));
        assert_eq!((d.columns[0].distinct, d.columns[0].missing), (2, 1));
        assert_eq!(d.columns[0].top, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
        assert_eq!(d.columns[1].range, Some((Value::Float(-1.0), Value::Float(0.5))));
        assert_eq!(d.truth, Some(TruthDescription { depth: 2, shortest: 1, queries: 1, distances: false }));
        let json = serde_json::to_string(&d).unwrap();
        let again: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&again["rows"], &again["columns"][1]["range"][0]), (&4.into(), &(-1.0).into()));
    }
}
