//! Which cases share a scan: the cost rule of [`crate::Search`].

use crate::ExactError;
use crate::method::Method;
use crate::scan::MOST_CASES;
use crate::search::Subset;
use crate::source::{count, union_count};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;
use types::{RowSet, Vectors};

/// Whether cases (filters) of the same queries go over the rows together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// As the cost rule says: see [`crate::Search`].
    #[default]
    Auto,
    /// Always.
    Together,
    /// Never: each case reads its own rows.
    Apart,
}

/// Queries that go over the rows of some cases together.
pub(crate) struct Planned<'a> {
    pub(crate) queries: Vec<usize>,
    /// Numbers of the cases, and their rows (none for all), from the fewest to the most.
    pub(crate) numbers: Vec<usize>,
    pub(crate) rows: Vec<Option<&'a RowSet>>,
    /// Chosen at the first step.
    pub(crate) method: OnceLock<Method>,
}

impl Planned<'_> {
    /// Rows that are looked at in `range`.
    pub(crate) fn row_count(&self, range: &Range<usize>) -> usize {
        match self.rows.as_slice() {
            [one] => count(*one, range),
            rows if rows.contains(&None) => range.len(),
            rows => union_count(rows, range),
        }
    }

    /// Pairs of a query and a row that is looked at.
    pub(crate) fn pairs(&self, range: &Range<usize>) -> u64 {
        self.row_count(range) as u64 * self.queries.len() as u64
    }
}

/// Rows (none for all) and the queries that look at them.
pub(crate) type Unit<'a> = (Option<&'a RowSet>, Vec<usize>);

/// The units of one case.
pub(crate) fn units_of<'a>(
    base: &Vectors,
    queries: &Vectors,
    subset: Subset<'a>,
) -> Result<Vec<Unit<'a>>, ExactError> {
    let all = || (0..queries.rows()).collect();
    let units: Vec<Unit<'a>> = match subset {
        Subset::All => vec![(None, all())],
        Subset::Same(rows) => vec![(Some(rows), all())],
        Subset::Groups(groups) => groups.iter().map(|g| (g.rows.as_deref(), g.queries.clone())).collect(),
    };
    for (rows, asked) in &units {
        if let Some(rows) = rows
            && rows.rows() != base.rows()
        {
            let (found, expected) = (rows.rows(), base.rows());
            return Err(ExactError::Length { what: "row set", unit: "rows", found, expected });
        }
        if let Some(&past) = asked.iter().find(|&&q| q >= queries.rows()) {
            let (found, expected) = (past + 1, queries.rows());
            return Err(ExactError::Length { what: "groups", unit: "queries", found, expected });
        }
    }
    Ok(units)
}

/// Units, with the numbers of their cases, put into scans by the cost rule of [`Search`].
pub(crate) fn plan<'a>(
    units: Vec<(usize, Option<&'a RowSet>, Vec<usize>)>,
    rows: usize,
    sharing: Sharing,
) -> Vec<Planned<'a>> {
    let mut places: HashMap<Vec<usize>, usize> = HashMap::new();
    let mut by_queries: Vec<Vec<(usize, Option<&'a RowSet>)>> = Vec::new();
    for (number, set, queries) in units {
        let place = *places.entry(queries).or_insert(by_queries.len());
        if place == by_queries.len() {
            by_queries.push(Vec::new());
        }
        by_queries[place].push((number, set));
    }
    let mut asked: Vec<(Vec<usize>, usize)> = places.into_iter().collect();
    asked.sort_unstable_by_key(|(_, place)| *place);
    let mut scans = Vec::new();
    for ((queries, _), mut cases) in asked.into_iter().zip(by_queries) {
        let size = |set: Option<&RowSet>| set.map_or(rows, RowSet::count);
        cases.sort_by_key(|(_, set)| size(*set));
        for cases in cases.chunks(MOST_CASES) {
            let sets: Vec<Option<&RowSet>> = cases.iter().map(|(_, set)| *set).collect();
            let apart: usize = sets.iter().map(|set| size(*set)).sum();
            let together = match sharing {
                Sharing::Together => true,
                Sharing::Apart => false,
                Sharing::Auto => {
                    cases.len() > 1 && union_count(&sets, &(0..rows)) as f64 * 1.05 < apart as f64
                }
            };
            let width = if together { cases.len() } else { 1 };
            for cases in cases.chunks(width) {
                scans.push(Planned {
                    queries: queries.clone(),
                    numbers: cases.iter().map(|(number, _)| *number).collect(),
                    rows: cases.iter().map(|(_, set)| *set).collect(),
                    method: OnceLock::new(),
                });
            }
        }
    }
    scans
}
