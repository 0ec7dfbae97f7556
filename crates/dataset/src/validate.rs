//! Every check that needs no distance.
//!
//! What is here: [`check`], a pure function from a data set to findings; each names rows and the next
//! step. What is not: whether the truth is right, for which the crate `exact` recomputes a sample.

mod truth;

use crate::{
    Dataset,
    scan::{self, NamedRows},
};
use serde::Serialize;
use std::collections::HashMap;
use types::{Columns, Element, Id, Metric, Vectors};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The set must not be measured.
    Error,
    /// The set can be measured; the user should know.
    Warning,
    /// A property of the set.
    Note,
}

/// One thing found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// A short fixed word for scripts, such as `non_finite`.
    pub code: &'static str,
    /// What was found, where, and what to do.
    pub message: String,
    /// The first rows (or queries) concerned.
    pub rows: Vec<u64>,
}

/// Everything found, errors first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether there is no error (warnings and notes are allowed).
    pub fn is_valid(&self) -> bool {
        self.errors().next().is_none()
    }

    /// The errors.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| f.severity == Severity::Error)
    }

    /// The first finding of that code.
    pub fn get(&self, code: &str) -> Option<&Finding> {
        self.findings.iter().find(|f| f.code == code)
    }

    /// Adds a finding of another crate (the recomputed sample of the truth), keeping the order.
    pub fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
        self.findings.sort_by_key(|f| f.severity);
    }
}

/// Where checks put what they find.
struct Findings(Vec<Finding>);

impl Findings {
    fn put(&mut self, severity: Severity, code: &'static str, message: impl Into<String>, rows: &[u64]) {
        self.0.push(Finding { severity, code, message: message.into(), rows: rows.to_vec() });
    }

    fn error(&mut self, code: &'static str, message: impl Into<String>, rows: &[u64]) {
        self.put(Severity::Error, code, message, rows);
    }

    fn warn(&mut self, code: &'static str, message: impl Into<String>, rows: &[u64]) {
        self.put(Severity::Warning, code, message, rows);
    }
}

/// Checks `dataset`. Reads every vector once, on all cores.
pub fn check(dataset: &Dataset) -> Report {
    let mut found = Findings(Vec::new());
    metric(dataset, &mut found);
    shapes(dataset, &mut found);
    vectors(dataset, &mut found);
    ids(dataset, &mut found);
    truth::check(dataset, &mut found);
    found.0.sort_by_key(|finding| finding.severity);
    Report { findings: found.0 }
}

fn metric(dataset: &Dataset, found: &mut Findings) {
    let element = dataset.base.element();
    match (dataset.metric, element) {
        (None, _) => {
            let message = format!(
                "the data names no metric (in HDF5: the attribute \"distance\"); give it with --metric: {}",
                Metric::ACCEPTED
            );
            found.error("no_metric", message, &[]);
        }
        (Some(Metric::Hamming), Element::Bit) => {}
        (Some(Metric::Hamming), other) => {
            found.error(
                "hamming_without_bits",
                format!("the metric is hamming, but the vectors are {other}, not bits"),
                &[],
            );
        }
        (Some(other), Element::Bit) => {
            found.warn(
                "bits_without_hamming",
                format!("the vectors are bits, but the metric is {other}, not hamming"),
                &[],
            );
        }
        _ => {}
    }
}

fn shapes(dataset: &Dataset, found: &mut Findings) {
    let (base, queries) = (&dataset.base, &dataset.queries);
    if base.rows() == 0 {
        found.error("no_base", "the base has no rows", &[]);
    }
    if queries.rows() == 0 {
        found.warn(
            "no_queries",
            "there are no queries, nothing can be asked without; name a file of them with --queries",
            &[],
        );
    }
    if queries.dim() != base.dim() {
        let message = format!(
            "the queries have {} components, the base has {}: they do not belong together",
            queries.dim(),
            base.dim()
        );
        found.error("dimension", message, &[]);
    }
    if queries.rows() > 0 && queries.element() != base.element() {
        let message = format!("the base is {}, the queries are {}", base.element(), queries.element());
        let bits = [base.element(), queries.element()].contains(&Element::Bit);
        found.put(if bits { Severity::Error } else { Severity::Warning }, "element", message, &[]);
    }
    let mut columns = |part: &str, columns: &Option<Columns>, rows: usize| {
        if let Some(columns) = columns.as_ref().filter(|c| c.rows() != rows) {
            let message = format!("the {part} columns have {} rows, the vectors {rows}", columns.rows());
            found.error("columns_length", message, &[]);
        }
    };
    columns("base", &dataset.columns, base.rows());
    columns("query", &dataset.query_columns, queries.rows());
}

fn vectors(dataset: &Dataset, found: &mut Findings) {
    let parts: [(&str, &str, &Vectors); 2] = [
        (
            "base",
            "engines differ in what they do with it; leave them out with --drop-bad-rows if one refuses them",
            &dataset.base,
        ),
        ("query", "it has no answer", &dataset.queries),
    ];
    for (part, why, vectors) in parts {
        let scan = scan::scan(vectors, false, part == "base");
        if scan.non_finite.count > 0 {
            let code = if part == "base" { "non_finite_base" } else { "non_finite_query" };
            let message = format!(
                "{part} {} {} NaN or infinity ({} in all); leave them out with --drop-bad-rows, or repair the file",
                scan.non_finite.words(),
                if scan.non_finite.count == 1 { "holds" } else { "hold" },
                scan.non_finite.count
            );
            found.error(code, message, &scan.non_finite.rows);
        }
        if scan.zero.count > 0 && dataset.metric == Some(Metric::Cosine) {
            let code = if part == "base" { "zero_base" } else { "zero_query" };
            let message = format!(
                "{part} {} {} all zero ({} in all), which has no cosine distance: {why}",
                scan.zero.words(),
                if scan.zero.count == 1 { "is" } else { "are" },
                scan.zero.count
            );
            found.warn(code, message, &scan.zero.rows);
        }
        if scan.repeats.count > 0 {
            let distinct = scan.duplicates.map_or(0, |d| d.distinct);
            let message = format!(
                "{} of {} base rows repeat an earlier row exactly ({distinct} distinct): ties are real, recall must count them",
                scan.repeats.count,
                vectors.rows()
            );
            found.put(Severity::Note, "duplicates", message, &scan.repeats.rows);
        }
    }
}

fn ids(dataset: &Dataset, found: &mut Findings) {
    let (rows, count) = (dataset.base.rows(), dataset.ids.len());
    if count != rows {
        found.error("ids_length", format!("there are {count} ids for {rows} rows"), &[]);
    }
    let distinct = dataset.ids.distinct();
    if distinct == count {
        return;
    }
    let mut first: HashMap<Id, usize> = HashMap::new();
    let mut repeated = NamedRows::default();
    for row in 0..count {
        if first.insert(dataset.ids.get(row), row).is_some() {
            repeated.add(row as u64);
        }
    }
    let example = repeated.rows.first().map_or_else(String::new, |row| {
        format!(" (the id {} of row {row} was there before)", dataset.ids.get(*row as usize))
    });
    let message = format!(
        "{count} rows, {distinct} distinct ids{example}: an engine would keep {distinct} rows; name another id column or number the rows anew"
    );
    found.error("repeated_ids", message, &repeated.rows);
}

#[cfg(test)]
mod tests;
