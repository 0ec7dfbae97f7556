//! Descriptions and findings as text.

use dataset::{
    describe::{ColumnDescription, Description, Spread},
    validate::{Finding, Severity},
};
use std::fmt::Write;
use types::units;

/// What `annvil dataset describe` prints.
pub(crate) fn description(d: &Description) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a String can't fail.
        let _infallible = writeln!(text, "{name:<14} {value}");
    };
    line("data set", d.name.clone());
    let size = units::bytes(d.bytes);
    line("base", format!("{} x {} {} ({size})", units::count(d.rows as u64), d.dim, d.element));
    line("queries", units::count(d.queries as u64));
    line("metric", d.metric.map_or_else(|| "not named; give --metric".to_owned(), |m| m.to_string()));
    line("ids", d.ids.to_owned());
    if let Some(norms) = d.norms {
        line("norms", spread(norms));
    }
    if let Some(norms) = d.query_norms {
        line("query norms", spread(norms));
    }
    line("zero rows", d.zero.to_string());
    line("NaN, infinity", format!("{} rows", d.non_finite));
    if let Some(duplicates) = &d.duplicates {
        line("duplicates", format!("{} rows repeat an earlier one exactly", duplicates.repeats));
    }
    if let Some(c) = d.contrast {
        line(
            "contrast",
            format!(
                "nearest {:.4}, 100th {:.4}, ratio {:.3} ({} queries; near 1 is hard)",
                c.first, c.hundredth, c.ratio, c.queries
            ),
        );
    }
    match d.truth {
        Some(t) => {
            line("truth", format!("{} neighbours of {} queries", t.depth, units::count(t.queries as u64)))
        }
        None => line("truth", "none; annvil computes it".to_owned()),
    }
    for f in &d.filtered {
        let matching =
            f.matching.map(|m| format!(", {:.0} rows match (median)", m.median)).unwrap_or_default();
        let filter = f.filter.as_ref().map(|f| format!(": {f}")).unwrap_or_default();
        line("filter truth", format!("{}{filter}, {} neighbours{matching}", f.name, f.depth));
    }
    for c in &d.columns {
        line("column", column(c));
    }
    for c in &d.query_columns {
        line("query column", format!("{} ({:?})", c.name, c.kind).to_lowercase());
    }
    line("hash", format!("base {}, queries {}", d.hashes.base, d.hashes.queries));
    text
}

fn spread(s: Spread) -> String {
    format!("{:.4} to {:.4}, median {:.4}", s.min, s.max, s.median)
}

fn column(c: &ColumnDescription) -> String {
    let mut text = format!("{} {}, {} values", c.name, format!("{:?}", c.kind).to_lowercase(), c.distinct);
    if c.missing > 0 {
        text.push_str(&format!(", {} missing", c.missing));
    }
    if let Some((low, high)) = &c.range {
        text.push_str(&format!(", {low} to {high}"));
    }
    let top: Vec<String> = c.top.iter().take(4).map(|(value, rows)| format!("{value} ({rows})")).collect();
    if !top.is_empty() && c.distinct < 1000 {
        text.push_str(&format!(": {}", top.join(", ")));
        if c.distinct > top.len() {
            text.push_str(" ...");
        }
    }
    text
}

/// What `annvil dataset validate` prints.
pub(crate) fn findings(name: &str, valid: bool, findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let label = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        text.push_str(&format!("{label:<8} {}\n", finding.message));
    }
    let verdict = if valid { "valid" } else { "NOT VALID: it must not be used as it is" };
    text.push_str(&format!("{name}: {verdict}\n"));
    text
}
