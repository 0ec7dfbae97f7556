//! The sentence that sums an audit up.

use super::{Cause, TruthAudit};
use types::units;

pub(super) fn message(audit: &TruthAudit) -> String {
    let count = |n: usize| units::count(n as u64);
    let checked = count(audit.checked - audit.undefined);
    if audit.different > 0 {
        let (wrong, metric) = (count(audit.different), audit.metric);
        let why = audit.cause.map_or_else(String::new, |cause| why(cause, audit));
        return format!("truth is wrong for {wrong} of {checked} queries ({metric}): {why}");
    }
    if audit.matching_differs > 0 {
        return format!(
            "truth lists the right rows, but counts other matching rows than the filter for {} of {checked} queries: its columns are others; recompute it (annvil truth)",
            count(audit.matching_differs)
        );
    }
    let ties = match (audit.tied, audit.tie_rule) {
        (0, _) | (_, None) => "all lists are the same row by row".to_owned(),
        (tied, Some(rule)) => {
            let gap = match audit.tie_gap {
                0.0 => String::new(),
                gap => format!(" (by at most {gap:.1e})"),
            };
            format!(
                "{} lists are the same, {tied} differ in ties only: {}{gap}",
                audit.identical,
                rule.text()
            )
        }
    };
    let undefined = match audit.undefined {
        0 => String::new(),
        1 => "; 1 query has no distances and is left out".to_owned(),
        zero => format!("; {} queries have no distances and are left out", count(zero)),
    };
    let scale = match audit.distance_scale {
        None | Some("distance") => String::new(),
        Some("unknown") => "; distances in the file are none of these rows' (they are not used)".to_owned(),
        Some(other) => format!("; distances in the file: {other} (not used)"),
    };
    format!("truth is right for all {checked} queries checked ({}): {ties}{undefined}{scale}", audit.metric)
}

/// The explanation, with what to do.
fn why(cause: Cause, audit: &TruthAudit) -> String {
    // Rounded down: less than all is never shown as 100.
    let percent = (audit.agreement.unwrap_or(0.0) * 1e4).floor() / 100.0;
    let text = match cause {
        Cause::FarthestFirst => "the right rows stand the farthest first; reverse each list".to_owned(),
        Cause::ByRow => {
            "the right rows stand by row number, not by distance; sort each list by distance".to_owned()
        }
        Cause::Unsorted => "the right rows stand in no order; sort each list by distance".to_owned(),
        Cause::RowShift { by: 1 } => {
            "row numbers are one too high, they are counted from 1; subtract 1 from each".to_owned()
        }
        Cause::RowShift { by } if by > 0 => {
            format!("row numbers are too high by {by}; subtract it from each")
        }
        Cause::RowShift { by } => format!("row numbers are too low by {}; add it to each", -by),
        Cause::LargerBase { largest_row } => format!(
            "it is that of a larger base (it names row {largest_row}), of which this is the first part; recompute it (annvil truth)"
        ),
        Cause::QueryLeftOut => {
            "the query itself, which is a row of the base, is left out of its list; recompute it (annvil truth), or take such rows out of the base".to_owned()
        }
        Cause::DuplicatesLeftOut => {
            "of rows that are equal only one is listed; recompute it (annvil truth)".to_owned()
        }
        Cause::OtherMetric { metric } => {
            format!("it was made with {metric}; set --metric {metric} or recompute it (annvil truth)")
        }
        Cause::FilterIgnored => "it is that without the filter; recompute it with --filter".to_owned(),
        Cause::OtherFilter => {
            "it lists rows that do not pass the filter; it is that of another filter or of other columns".to_owned()
        }
        Cause::FirstRows { largest_row } => format!(
            "it is that of the first rows only (none past row {largest_row}); recompute it (annvil truth), or search these rows with --limit"
        ),
        Cause::OtherQueries => {
            "its lists are those of other queries: the queries stand in another order".to_owned()
        }
        Cause::TooShort => "its lists end too soon, though more rows qualify".to_owned(),
        Cause::Repeated => "rows stand in it twice".to_owned(),
        Cause::OtherVectors => format!(
            "{percent:.2} % of its neighbours are right, hardly more than by chance, under every metric; it is of other vectors; recompute it (annvil truth)"
        ),
        Cause::Approximate => format!(
            "{percent:.2} % of its neighbours are right and nearer ones are missing, as in the answers of an approximate search or of rounded vectors; recompute it (annvil truth)"
        ),
        Cause::FewLists => {
            "all others are right: these few were changed, are damaged, or were computed with less precision; recompute it (annvil truth)".to_owned()
        }
        Cause::Unknown => format!(
            "{percent:.2} % of its neighbours are right, and no rule that is known here explains the others; recompute it (annvil truth)"
        ),
    };
    match audit.explained {
        Some((explained, tried)) if 0 < explained && explained < tried => {
            format!("{text} (explains {explained} of {tried})")
        }
        _ => text,
    }
}
