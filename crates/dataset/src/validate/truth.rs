//! Checks of the truth that need no distance: coverage, ids, order, and what its filters say.

use super::{Findings, Severity};
use crate::{Dataset, FilteredTruth, scan::NamedRows};
use types::{Filters, RowSet, Truth};

/// Distances may go down by this share before they count as out of order: files round to float32.
const ROUNDING: f64 = 1e-5;

pub(super) fn check(dataset: &Dataset, found: &mut Findings) {
    match &dataset.truth {
        Some(truth) => lists(dataset, "the truth", truth, found),
        None if dataset.queries.rows() > 0 && dataset.filtered.is_empty() => {
            let message = "there is no truth; recall needs it: make it with `annvil truth`";
            found.put(Severity::Note, "no_truth", message, &[]);
        }
        None => {}
    }
    if let Some(truth) = &dataset.truth {
        short(truth, found);
    }
    for case in &dataset.filtered {
        lists(dataset, &format!("the truth under {:?}", case.name), &case.truth, found);
        filtered(dataset, case, found);
    }
}

fn lists(dataset: &Dataset, what: &str, truth: &Truth, found: &mut Findings) {
    let (rows, queries) = (dataset.base.rows(), dataset.queries.rows());
    if truth.queries() != queries {
        let message = format!(
            "{what} covers {} of {queries} queries; it must have one list for each, remake it with `annvil truth`",
            truth.queries()
        );
        found.error("truth_coverage", message, &[]);
    }
    let (mut outside, mut largest, mut repeated) = (NamedRows::default(), 0, NamedRows::default());
    let (mut up, mut down) = (NamedRows::default(), 0_u64);
    let mut seen: Vec<u32> = Vec::new();
    for query in 0..truth.queries() {
        let list = truth.of(query);
        if let Some(far) = list.iter().map(|n| n.row).filter(|row| *row as usize >= rows).max() {
            outside.add(query as u64);
            largest = largest.max(far);
        }
        seen.clear();
        seen.extend(list.iter().map(|n| n.row));
        seen.sort_unstable();
        if seen.windows(2).any(|pair| pair[0] == pair[1]) {
            repeated.add(query as u64);
        }
        let steps = || list.windows(2).map(|pair| (pair[0].distance, pair[1].distance));
        let slack = |a: f64| ROUNDING * a.abs().max(1e-3);
        if steps().any(|(a, b)| b < a - slack(a)) {
            up.add(query as u64);
            down += u64::from(steps().all(|(a, b)| b <= a + slack(a)));
        }
    }
    if outside.count > 0 {
        let message = format!(
            "{what} names rows up to {largest}, the base has {rows} rows: it was made for other data; remake it with `annvil truth`"
        );
        found.error("truth_out_of_range", message, &outside.rows);
    }
    if repeated.count > 0 {
        let message = format!("{what} names a row twice for the same query (query {})", repeated.words());
        found.error("truth_repeats", message, &repeated.rows);
    }
    if up.count > 0 && down == up.count {
        let message = format!(
            "{what} has falling distances, as if they were similarities; they are recomputed, not used"
        );
        found.warn("truth_similarities", message, &up.rows);
    } else if up.count > 0 {
        let message = format!(
            "{what} is not nearest first for {} queries (query {}); remake it with `annvil truth`",
            up.count,
            up.words()
        );
        found.error("truth_order", message, &up.rows);
    }
}

/// Lists over all rows that are shorter than the others.
fn short(truth: &Truth, found: &mut Findings) {
    let mut fewer = NamedRows::default();
    for query in 0..truth.queries() {
        if truth.of(query).len() < truth.wanted(query, truth.depth()) {
            fewer.add(query as u64);
        }
    }
    if fewer.count > 0 {
        let message = format!(
            "the truth has fewer than {} neighbours for {} queries ({}), though more rows qualify",
            truth.depth(),
            fewer.count,
            fewer.words()
        );
        found.warn("truth_short", message, &fewer.rows);
    }
}

/// Whether the filter can be evaluated, lets pass as many rows as the file says, and every listed
/// neighbour passes it.
fn filtered(dataset: &Dataset, case: &FilteredTruth, found: &mut Findings) {
    let name = &case.name;
    let Some(columns) = dataset.columns.as_ref().filter(|c| c.rows() == dataset.base.rows()) else {
        let message = format!("the truth under {name:?} cannot be checked: there are no columns");
        found.warn("filter_unchecked", message, &[]);
        return;
    };
    if case.filter.is_none() {
        let message = format!("the truth under {name:?} names no filter; it cannot be used without");
        found.warn("filter_unchecked", message, &[]);
        return;
    }
    let filters = match case.filters(columns, dataset.query_columns.as_ref()) {
        Ok(filters) => filters,
        Err(e) => return found.error("filter_unusable", format!("the truth under {name:?}: {e}"), &[]),
    };
    let (mut counts, mut strangers) = (NamedRows::default(), NamedRows::default());
    let mut example = None;
    let queries = case.truth.queries();
    for (filter, members) in filters.groups(queries) {
        let passing = filter.map_or_else(|| Ok(RowSet::all(columns.rows())), |f| f.rows(columns));
        let passing = match passing {
            Ok(rows) => rows,
            Err(e) => return found.error("filter_unusable", format!("the truth under {name:?}: {e}"), &[]),
        };
        let count = passing.count() as u64;
        for query in members {
            if case.truth.matching(query) != count {
                counts.add(query as u64);
                example.get_or_insert((query, case.truth.matching(query), count));
            }
            let inside = |row: u32| (row as usize) < columns.rows() && passing.contains(row as usize);
            if !case.truth.of(query).iter().all(|n| inside(n.row)) {
                strangers.add(query as u64);
            }
        }
    }
    if let Some((query, said, counted)) = example {
        let message = format!(
            "the truth under {name:?} says that {said} rows match query {query}, the columns say {counted} ({} queries differ)",
            counts.count
        );
        found.error("filter_matching", message, &counts.rows);
    }
    if strangers.count > 0 {
        let message = format!(
            "the truth under {name:?} lists rows that do not pass the filter ({} queries, {})",
            strangers.count,
            strangers.words()
        );
        found.error("filter_violations", message, &strangers.rows);
    }
    if matches!(filters, Filters::None) {
        found.warn("filter_unchecked", format!("the truth under {name:?} has no filter"), &[]);
    }
}
