//! What `annvil truth` says of a truth, as JSON and in a line.

use super::truth_out::TruthOf;
use crate::exit::usage_error;
use dataset::Dataset;
use runner::truth::{FoundTruth, SearchFigures};
use serde_json::{Value, json};
use types::{Truth, units};

/// A truth in figures; `took` and `seconds` are those of the whole search, of all filters at once.
pub(super) fn figures(
    of: &TruthOf,
    found: &FoundTruth,
    (took, seconds): (&SearchFigures, f64),
    filter: Option<&str>,
) -> Value {
    let truth = &found.truth;
    let lengths: Vec<usize> = (0..truth.queries()).map(|q| truth.of(q).len()).collect();
    let matching: u64 = (0..truth.queries()).map(|q| truth.matching(q)).sum();
    let mut value = json!({
        "dataset": of.name, "metric": of.metric, "filter": filter, "k": truth.depth(),
        "queries": truth.queries(), "rows": of.rows, "dim": of.dim, "origin": found.origin,
        "seconds": seconds,
        "shortest": lengths.iter().min(), "mean_matching": matching as f64 / truth.queries().max(1) as f64,
        "queries_without_match": (0..truth.queries()).filter(|&q| truth.matching(q) == 0).count(),
    });
    let searched = (found.origin == "computed").then_some(took);
    searching(&mut value, searched);
    value
}

/// Adds what the search took; null where there was none.
pub(super) fn searching(value: &mut Value, searched: Option<&SearchFigures>) {
    value["search_seconds"] = json!(searched.map(|s| s.search_seconds));
    value["filter_seconds"] = json!(searched.map(|s| s.filter_seconds));
    value["searched_together"] = json!(searched.map(|s| s.cases));
    value["pairs"] = json!(searched.map(|s| s.pairs));
    let rate = |s: &SearchFigures| s.pairs as f64 / s.search_seconds.max(1e-9);
    value["pairs_per_second"] = json!(searched.map(rate));
    let how = searched.and_then(|s| s.how);
    value["method"] = json!(how.map(|(method, _)| method.name()));
    value["kernel"] = json!(how.map(|(_, level)| level.name()));
}

/// The same in a line.
pub(super) fn text(value: &Value) -> String {
    let number = |name: &str| value[name].as_f64().unwrap_or(0.0);
    let filter = value["filter"].as_str().map(|f| format!(" where {f}")).unwrap_or_default();
    let together = match value["searched_together"].as_u64() {
        Some(cases @ 2..) => format!(" for {cases} filters at once"),
        _ => String::new(),
    };
    let search = value["search_seconds"].as_f64().map(|seconds| {
        let rate = units::rate(number("pairs_per_second"));
        format!(" (search {}{together}, {rate} pairs/s)", units::seconds(seconds))
    });
    let mut text = format!(
        "{}{filter}: {} neighbours of {} queries over {} rows ({}), {} in {}{}; {:.1} rows qualify on average",
        value["dataset"].as_str().unwrap_or_default(),
        value["k"],
        value["queries"],
        value["rows"],
        value["metric"].as_str().unwrap_or_default(),
        value["origin"].as_str().unwrap_or_default(),
        units::seconds(number("seconds")),
        search.unwrap_or_default(),
        number("mean_matching"),
    );
    if let Some(compared) = value.get("compare") {
        text.push_str(&format!(
            "; {} of {} neighbours are those of the data set, {} more tie with them, {} differ",
            compared["same"], compared["all"], compared["tied"], compared["different"]
        ));
    }
    text
}

/// The truth that the data set brings for the filter.
pub(super) fn known<'a>(dataset: &'a Dataset, filter: Option<&str>) -> anyhow::Result<&'a Truth> {
    let found = match filter {
        None => dataset.truth.as_ref(),
        Some(text) => dataset
            .filtered
            .iter()
            .find(|f| f.name == text || f.filter.as_ref().is_some_and(|t| t.text() == text))
            .map(|f| &f.truth),
    };
    found.ok_or_else(|| usage_error(format!("{} brings no such truth to compare with", dataset.name)))
}

/// Compares rank by rank: the same row, another row at the same distance, or a difference.
pub(super) fn compare(ours: &Truth, theirs: &Truth) -> Value {
    let (mut same, mut tied, mut different) = (0_u64, 0_u64, 0_u64);
    for query in 0..ours.queries().min(theirs.queries()) {
        let (a, b) = (ours.of(query), theirs.of(query));
        let rows: std::collections::HashMap<u32, f64> = a.iter().map(|n| (n.row, n.distance)).collect();
        let last = a.last().map_or(f64::NAN, |n| n.distance);
        for neighbour in b.iter().take(a.len()) {
            if rows.contains_key(&neighbour.row) {
                same += 1;
            } else if (neighbour.distance - last).abs() <= 1e-5 * last.abs().max(1e-3) {
                tied += 1;
            } else {
                different += 1;
            }
        }
        different += b.len().min(ours.depth()).abs_diff(a.len().min(theirs.depth())) as u64;
    }
    different += ours.queries().abs_diff(theirs.queries()) as u64;
    json!({ "all": same + tied + different, "same": same, "tied": tied, "different": different })
}
