//! Which data sets two runs have in common, by content and not by name.

use super::{ApartDataset, Difference};
use crate::{ReportError, view::View};
use record::{DatasetEntry, Manifest};
use std::collections::BTreeSet;

/// The data sets of two runs.
pub(super) struct Matched {
    /// Names in A and in B of those with the same content.
    pub(super) shared: Vec<(String, String)>,
    /// The others.
    pub(super) apart: Vec<ApartDataset>,
}

/// Figures made by different rules are never compared.
pub(super) fn same_rules(a: &View<'_>, b: &View<'_>) -> Result<(), ReportError> {
    let versions = |view: &View<'_>| -> BTreeSet<u32> {
        let found: BTreeSet<u32> = view.measurement_versions().into_keys().collect();
        if found.is_empty() { [view.manifest.tool.measurement_version].into() } else { found }
    };
    let (in_a, in_b) = (versions(a), versions(b));
    if in_a == in_b && in_a.len() == 1 {
        return Ok(());
    }
    let words = |all: BTreeSet<u32>| all.iter().map(u32::to_string).collect::<Vec<_>>().join(" and ");
    Err(refused(
        a.manifest,
        b.manifest,
        &format!(
            "the measurement version differs: {} in A, {} in B; measure one of them again with the other's annvil",
            words(in_a),
            words(in_b)
        ),
    ))
}

fn refused(a: &Manifest, b: &Manifest, what: &str) -> ReportError {
    ReportError::NotComparable { a: a.name.clone(), b: b.name.clone(), what: what.to_owned() }
}

/// Pairs data sets of the same content, those of one name first.
pub(super) fn matched(a: &Manifest, b: &Manifest) -> Result<Matched, ReportError> {
    // The truth lists k rows or more, so with another k its hash differs without a fault of the data.
    let truth_counts = a.plan.get("k") == b.plan.get("k");
    let mut rest_a: Vec<&DatasetEntry> = a.datasets.iter().collect();
    let mut rest_b: Vec<&DatasetEntry> = b.datasets.iter().collect();
    let mut shared = Vec::new();
    for by_name in [true, false] {
        rest_a.retain(|x| {
            let same = |y: &&DatasetEntry| {
                (!by_name || x.name == y.name) && differing(x, y, truth_counts).is_empty()
            };
            let Some(at) = rest_b.iter().position(same) else { return true };
            shared.push((x.name.clone(), rest_b.remove(at).name.clone()));
            false
        });
    }
    let mut apart = Vec::new();
    for x in rest_a {
        let namesake = rest_b.iter().position(|y| y.name == x.name).map(|at| rest_b.remove(at));
        let parts = namesake.map(|y| differing(x, y, truth_counts)).unwrap_or_default();
        apart.push(ApartDataset { name: x.name.clone(), parts, in_a: true, in_b: namesake.is_some() });
    }
    apart.extend(rest_b.into_iter().map(|y| ApartDataset {
        name: y.name.clone(),
        parts: Vec::new(),
        in_a: false,
        in_b: true,
    }));
    if shared.is_empty() {
        Err(refused(a, b, &nothing_shared(a, b, &apart)))
    } else {
        Ok(Matched { shared, apart })
    }
}

/// The parts of two data sets that are not the same, with both values.
fn differing(a: &DatasetEntry, b: &DatasetEntry, truth_counts: bool) -> Vec<Difference> {
    let hash = |h: &Option<String>| h.clone().unwrap_or_else(|| "none".into());
    let base = |d: &DatasetEntry| format!("{} ({} x {} {})", d.base_hash, d.rows, d.dim, d.element);
    let queries = |d: &DatasetEntry| format!("{} ({} queries)", d.queries_hash, d.queries);
    let mut parts = vec![
        ("base", base(a), base(b)),
        ("queries", queries(a), queries(b)),
        ("columns", hash(&a.columns_hash), hash(&b.columns_hash)),
        ("metric", a.metric.clone(), b.metric.clone()),
    ];
    // A run without recall knows no truth; its throughput can be compared all the same.
    if truth_counts && a.truth_hash.is_some() && b.truth_hash.is_some() {
        parts.push(("truth", hash(&a.truth_hash), hash(&b.truth_hash)));
    }
    parts.retain(|(_, in_a, in_b)| in_a != in_b);
    let subject = format!("data set {}", a.name);
    let part = |(item, in_a, in_b): (&str, String, String)| Difference {
        subject: subject.clone(),
        item: item.to_owned(),
        a: in_a,
        b: in_b,
    };
    parts.into_iter().map(part).collect()
}

fn nothing_shared(a: &Manifest, b: &Manifest, apart: &[ApartDataset]) -> String {
    let parts: Vec<String> = apart
        .iter()
        .flat_map(|d| &d.parts)
        .map(|p| format!("{} of {} differs: {} in A, {} in B", p.item, p.subject, p.a, p.b))
        .collect();
    if !parts.is_empty() {
        return format!("{}; run both on the same data", parts.join("; "));
    }
    let names = |m: &Manifest| m.datasets.iter().map(|d| d.name.clone()).collect::<Vec<_>>().join(", ");
    let each = format!("no data set in common: {} in A, {} in B", names(a), names(b));
    match (a.datasets.as_slice(), b.datasets.as_slice()) {
        ([x], [y]) => {
            let parts = differing(x, y, true);
            let parts: Vec<String> =
                parts.iter().map(|p| format!("{} differs: {} in A, {} in B", p.item, p.a, p.b)).collect();
            format!("{each}; {}", parts.join("; "))
        }
        _ => each,
    }
}
