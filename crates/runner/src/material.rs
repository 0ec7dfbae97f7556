//! A data set made ready to be measured: opened, checked, its truth believed or computed.

use crate::{
    Events, Plan, RunnerError,
    event::Event,
    plan::FilterPlan,
    truth::{SearchSetting, TruthAsk, TruthCase, TruthsAsk, truth, truths, verify_truth},
};
use dataset::{Dataset, OpenOptions};
use exact::{Allowed, FilterRows, Scorer};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    sync::atomic::AtomicBool,
};
use types::{Filters, Metric, Truth};

pub use crate::filters::filters_of;

/// The name of the built-in set.
pub const BUILTIN: &str = "builtin";

/// Queries of a file's truth that are recomputed before it is believed.
const TRUTH_SAMPLE: usize = 100;

/// A data set that can be measured.
pub struct Material {
    /// Where it was read from, as given.
    pub source: String,
    /// It.
    pub dataset: Dataset,
    /// The metric.
    pub metric: Metric,
    /// No filter, then each filter of the plan.
    pub cases: Vec<Case>,
    /// Where the unfiltered truth came from, for the manifest.
    pub truth_origin: String,
    /// Checks that failed and were overridden.
    pub forced: Vec<String>,
}

impl Material {
    /// What scores the answers under a case.
    ///
    /// # Errors
    /// Where the case has no truth, or one too narrow for `k`.
    pub fn scorer(&self, case: &Case, k: usize) -> Result<Scorer, RunnerError> {
        let Some(truth) = &case.truth else {
            return Err(RunnerError::Refused(format!("{} has no truth", self.dataset.name)));
        };
        let allowed = Allowed { filter: case.rows.clone(), live: None };
        let (base, queries) = (self.dataset.base.clone(), self.dataset.queries.clone());
        Ok(Scorer::new(base, queries, self.metric, truth, k, allowed)?)
    }
}

/// A data set under one filter (or none) with its truth.
pub struct Case {
    /// Name of the filter; none for no filter.
    pub name: Option<String>,
    /// The filter's text.
    pub text: Option<String>,
    /// The filter of each query.
    pub filters: Filters,
    /// Rows that pass, by query; none without a filter.
    pub rows: Option<Arc<FilterRows>>,
    /// The truth; none where recall is not wanted.
    pub truth: Option<Arc<Truth>>,
    /// Its hash.
    pub truth_hash: Option<String>,
}

/// Opens a data set by name (`builtin`) or path.
///
/// # Errors
/// As `dataset::open`.
pub fn open_source(source: &str, options: &OpenOptions) -> Result<Dataset, RunnerError> {
    let path = Path::new(source);
    let mut opened = if source == BUILTIN && !path.exists() {
        first_rows(dataset::builtin()?, options.limit)
    } else {
        dataset::open(path, options)?
    };
    if options.metric.is_some() {
        opened.metric = options.metric;
    }
    Ok(opened)
}

/// The built-in set cut to its first rows.
fn first_rows(mut set: Dataset, limit: Option<usize>) -> Dataset {
    if let Some(limit) = limit.filter(|&limit| limit < set.base.rows()) {
        set.base = set.base.slice(0..limit);
        set.ids = types::Ids::RowNumbers(limit);
        set.columns = set.columns.map(|c| c.slice(0..limit));
        set.notices.push(format!("only the first {limit} rows are used (--limit)"));
    }
    set
}

/// What [`prepare`] needs beside the plan.
pub struct Preparation<'a> {
    /// Where computed truth is kept.
    pub cache_dir: Option<PathBuf>,
    /// Use a data set although its checks fail.
    pub force: bool,
    /// Set to stop.
    pub interrupted: &'a AtomicBool,
    /// Listener.
    pub events: Events<'a>,
}

/// Opens, checks and completes one data set of a plan.
///
/// # Errors
/// Where it can't be read, fails a check (and `force` is not given), or has no metric.
pub fn prepare(source: &str, plan: &Plan, with: &Preparation<'_>) -> Result<Material, RunnerError> {
    let dataset = open_source(source, &plan.open_options(with.cache_dir.clone()))?;
    for notice in &dataset.notices {
        (with.events)(&Event::Note(&format!("{}: {notice}", dataset.name)));
    }
    let mut forced = Vec::new();
    check(&dataset, with, &mut forced)?;
    let metric = dataset.require_metric()?;
    exact::check_metric(metric, dataset.base.element())?;
    if dataset.queries.rows() == 0 {
        return Err(RunnerError::Refused(format!("{source} has no queries; give a file with --queries")));
    }
    if plan.k > dataset.base.rows() {
        (with.events)(&Event::Warning(&format!(
            "{}: k is {}, but there are {} rows: every answer is all of them",
            dataset.name,
            plan.k,
            dataset.base.rows()
        )));
    }
    let mut material = Material {
        source: source.to_owned(),
        dataset,
        metric,
        cases: Vec::new(),
        truth_origin: "none (--no-recall)".to_owned(),
        forced,
    };
    let truth = if plan.recall { Some(unfiltered_truth(&mut material, plan, with)?) } else { None };
    material.cases.push(Case {
        name: None,
        text: None,
        filters: Filters::None,
        rows: None,
        truth_hash: truth.as_ref().map(dataset::hash::truth),
        truth: truth.map(Arc::new),
    });
    let cases = filtered_cases(&material, plan, with)?;
    material.cases.extend(cases);
    Ok(material)
}

/// The checks that need no distance.
fn check(dataset: &Dataset, with: &Preparation<'_>, forced: &mut Vec<String>) -> Result<(), RunnerError> {
    let report = dataset::validate::check(dataset);
    for finding in &report.findings {
        let text = format!("{}: {}", dataset.name, finding.message);
        match finding.severity {
            dataset::validate::Severity::Error => refuse_or_force(text, with, forced)?,
            dataset::validate::Severity::Warning => (with.events)(&Event::Warning(&text)),
            dataset::validate::Severity::Note => {}
        }
    }
    Ok(())
}

fn refuse_or_force(
    text: String,
    with: &Preparation<'_>,
    forced: &mut Vec<String>,
) -> Result<(), RunnerError> {
    if !with.force {
        return Err(RunnerError::Refused(text));
    }
    (with.events)(&Event::Warning(&format!("{text} (used all the same: --force)")));
    forced.push(text);
    Ok(())
}

/// The truth over all rows: the file's, once a sample agrees, or our own.
fn unfiltered_truth(
    material: &mut Material,
    plan: &Plan,
    with: &Preparation<'_>,
) -> Result<Truth, RunnerError> {
    let Some(truth) = material.dataset.truth.clone() else {
        (with.events)(&Event::Note(&format!(
            "{}: has no truth, it is computed now (--no-recall leaves it out)",
            material.dataset.name
        )));
        return computed(material, &Filters::None, plan, with);
    };
    let shortest = (0..truth.queries()).filter(|&q| truth.of(q).len() < truth.wanted(q, plan.k));
    if let Some(shortest) = shortest.map(|q| truth.of(q).len()).min() {
        (with.events)(&Event::Note(&format!(
            "{}: its truth has {shortest} neighbours for some queries, k is {}: the truth is computed anew",
            material.dataset.name, plan.k
        )));
        return computed(material, &Filters::None, plan, with);
    }
    let check = exact::TruthCheck { sample: TRUTH_SAMPLE, seed: plan.seed };
    let verdict = verify_truth(&material.dataset, material.metric, &truth, check, with)?;
    if !verdict.ok {
        let text = format!("{}: {}", material.dataset.name, verdict.message);
        refuse_or_force(text, with, &mut material.forced)?;
    }
    material.truth_origin = format!("file, {} queries checked", verdict.sampled);
    Ok(truth)
}

/// Our own truth, from the cache where it is there.
fn computed(
    material: &mut Material,
    filters: &Filters,
    plan: &Plan,
    with: &Preparation<'_>,
) -> Result<Truth, RunnerError> {
    let what = format!("{}: exact neighbours", material.dataset.name);
    let ask = TruthAsk { metric: material.metric, k: plan.k, filters, threads: None };
    let (truth, origin) = truth(&material.dataset, &ask, &what, with)?;
    material.truth_origin = origin;
    Ok(truth)
}

/// The plan's filters, the truths that are not kept yet computed in one scan.
fn filtered_cases(
    material: &Material,
    plan: &Plan,
    with: &Preparation<'_>,
) -> Result<Vec<Case>, RunnerError> {
    let dataset = &material.dataset;
    let of_each = |f: &FilterPlan| filters_of(dataset, &f.name, &f.text);
    let filters = plan.filters.iter().map(of_each).collect::<Result<Vec<_>, _>>()?;
    let case = |(f, filters): (&FilterPlan, &Filters)| -> Result<Case, RunnerError> {
        let (rows, queries) = (dataset.base.rows(), dataset.queries.rows());
        let passing = FilterRows::new(dataset.columns.as_ref(), filters, rows, queries)?;
        Ok(Case {
            name: Some(f.name.clone()),
            text: Some(f.text.clone()),
            filters: filters.clone(),
            rows: Some(Arc::new(passing)),
            truth: None,
            truth_hash: None,
        })
    };
    let mut cases = plan.filters.iter().zip(&filters).map(case).collect::<Result<Vec<_>, _>>()?;
    if plan.recall && !cases.is_empty() {
        let pairs = plan.filters.iter().zip(&filters);
        let asked: Vec<_> = pairs.map(|(f, filters)| TruthCase { text: Some(&f.text), filters }).collect();
        let (metric, setting) = (material.metric, SearchSetting::default());
        let ask = TruthsAsk { metric, k: plan.k, cases: &asked, setting };
        let what = format!("{}: exact neighbours under filters", dataset.name);
        for (case, found) in cases.iter_mut().zip(truths(dataset, &ask, &what, with)?.0) {
            case.truth_hash = Some(dataset::hash::truth(&found.truth));
            case.truth = Some(Arc::new(found.truth));
        }
    }
    Ok(cases)
}
