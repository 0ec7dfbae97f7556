//! Truth under filters: queries with equal filters share their rows and their scan.

use crate::{ExactError, Options, Subset, neighbours};
use rayon::prelude::*;
use std::sync::Arc;
use types::{Columns, Filter, Filters, Metric, RowSet, Truth, Vectors};

/// Filters that are evaluated on one thread, because they share the passes over the columns.
const TOGETHER: usize = 16;

/// Queries that may see the same rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The rows; none for all.
    pub rows: Option<Arc<RowSet>>,
    /// The queries, by number.
    pub queries: Vec<usize>,
}

/// For each query of a set, the rows that it may see.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterRows {
    groups: Vec<Group>,
    group_of: Vec<usize>,
}

impl FilterRows {
    /// Evaluates `filters` over the `columns` of `rows` base rows, for `queries` queries.
    ///
    /// # Errors
    /// Where a filter does not fit the columns, or the columns or filters have another length.
    pub fn new(
        columns: Option<&Columns>,
        filters: &Filters,
        rows: usize,
        queries: usize,
    ) -> Result<FilterRows, ExactError> {
        if let Filters::PerQuery(list) = filters
            && list.len() != queries
        {
            let found = list.len();
            return Err(ExactError::Length { what: "filters", unit: "queries", found, expected: queries });
        }
        if let Some(columns) = columns
            && columns.rows() != rows
            && !matches!(filters, Filters::None)
        {
            let found = columns.rows();
            return Err(ExactError::Length { what: "columns", unit: "rows", found, expected: rows });
        }
        let groups = filters.groups(queries);
        let wanted: Vec<&Filter> = groups.iter().filter_map(|(filter, _)| filter.as_deref()).collect();
        let mut passing = match (columns, wanted.first()) {
            (Some(columns), _) => row_sets(&wanted, columns)?,
            (None, None) => Vec::new(),
            (None, Some(filter)) => return Err(ExactError::NoColumns(filter.to_string())),
        }
        .into_iter();
        let group = |(filter, queries): (Option<Arc<Filter>>, Vec<usize>)| Group {
            rows: filter.and_then(|_| passing.next()).map(Arc::new),
            queries,
        };
        let groups = groups.into_iter().map(group).collect();
        Ok(FilterRows::from_groups(groups, queries))
    }

    fn from_groups(groups: Vec<Group>, queries: usize) -> FilterRows {
        let mut group_of = vec![0; queries];
        for (i, group) in groups.iter().enumerate() {
            for &query in &group.queries {
                group_of[query] = i;
            }
        }
        FilterRows { groups, group_of }
    }

    /// The same, seeing only rows that are also in `live`.
    pub fn among(&self, live: &RowSet) -> FilterRows {
        let group = |group: &Group| Group {
            rows: Some(Arc::new(group.rows.as_deref().map_or_else(|| live.clone(), |rows| live.and(rows)))),
            queries: group.queries.clone(),
        };
        FilterRows { groups: self.groups.iter().map(group).collect(), group_of: self.group_of.clone() }
    }

    /// The groups of some queries alone: query i of a group is the i-th of `numbers`.
    pub fn groups_of(&self, numbers: &[usize]) -> Vec<Group> {
        let mut at: Vec<Option<usize>> = vec![None; self.groups.len()];
        let mut groups: Vec<Group> = Vec::new();
        for (i, &query) in numbers.iter().enumerate() {
            let Some(&of) = self.group_of.get(query) else { continue };
            let at = *at[of].get_or_insert_with(|| {
                groups.push(Group { rows: self.groups[of].rows.clone(), queries: Vec::new() });
                groups.len() - 1
            });
            groups[at].queries.push(i);
        }
        groups
    }

    /// The groups, in order of their first query.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The rows that query `query` may see; none for all.
    pub fn of(&self, query: usize) -> Option<&Arc<RowSet>> {
        self.groups.get(*self.group_of.get(query)?)?.rows.as_ref()
    }
}

/// The rows that pass each filter, in their order. A few filters share one pass over the columns; many
/// are divided among the threads.
fn row_sets(filters: &[&Filter], columns: &Columns) -> Result<Vec<RowSet>, ExactError> {
    let share = filters.len().div_ceil(rayon::current_num_threads()).max(TOGETHER);
    let sets = filters.par_chunks(share).map(|filters| types::row_sets(filters, columns));
    let sets: Vec<Vec<RowSet>> = sets.collect::<Result<_, _>>()?;
    Ok(sets.into_iter().flatten().collect())
}

/// The exact neighbours of each query among the rows that pass its filter and, where given, are in
/// `live`. As [`neighbours`], whose lists are shorter where fewer rows qualify.
///
/// # Errors
/// As [`neighbours`] and [`FilterRows::new`].
#[expect(clippy::too_many_arguments, reason = "they are the truth's definition: data, question, rows")]
pub fn truth_for(
    base: &Vectors,
    queries: &Vectors,
    columns: Option<&Columns>,
    metric: Metric,
    k: usize,
    filters: &Filters,
    live: Option<&RowSet>,
    options: &Options<'_>,
) -> Result<Truth, ExactError> {
    if let Some(live) = live
        && live.rows() != base.rows()
    {
        let (found, expected) = (live.rows(), base.rows());
        return Err(ExactError::Length { what: "row set", unit: "rows", found, expected });
    }
    if matches!(filters, Filters::None) {
        let subset = live.map_or(Subset::All, Subset::Same);
        return neighbours(base, queries, metric, k, subset, options);
    }
    let mut rows = FilterRows::new(columns, filters, base.rows(), queries.rows())?;
    if let Some(live) = live {
        rows = rows.among(live);
    }
    neighbours(base, queries, metric, k, Subset::Groups(rows.groups()), options)
}
