//! Whether the figures of a run may be used: the guards, derived from its records. Marks that only
//! limit what a figure says stay with their points.

use crate::resolve::Unequal;
use record::{Finding, Manifest, Phase, Point, Status};
use std::collections::BTreeMap;

/// Everything that stands against the run, or must be known. A fatal finding makes it not valid.
pub(crate) fn findings(manifest: &Manifest, points: &[Point]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for dataset in &manifest.datasets {
        for text in &dataset.forced {
            findings.push(finding(true, "dataset", None, text.clone()));
        }
    }
    for (engine, entry) in &manifest.engines {
        for text in &entry.advice {
            findings.push(finding(false, "advice", Some(engine), text.clone()));
        }
    }
    measured_nothing(points, &mut findings);
    broken_points(points, &mut findings);
    findings
}

/// Build parameters that differ between engines: no fault, but the reader must know (cases.md 66).
pub(crate) fn unequal(parameters: &[Unequal]) -> Vec<Finding> {
    let text = |p: &Unequal| {
        let values: Vec<String> =
            p.values.iter().map(|(engine, value)| format!("{value} in {engine}")).collect();
        format!("{} is not the same for all engines: {}", p.name, values.join(", "))
    };
    parameters.iter().map(|p| finding(false, "unequal_parameters", None, text(p))).collect()
}

fn finding(fatal: bool, code: &str, engine: Option<&str>, message: String) -> Finding {
    Finding { fatal, code: code.to_owned(), engine: engine.map(str::to_owned), message }
}

fn measured_nothing(points: &[Point], findings: &mut Vec<Finding>) {
    let measured = |p: &&Point| p.phase == Phase::Sweep && p.status == Status::Valid;
    if !points.iter().any(|p| measured(&p)) {
        findings.push(finding(true, "nothing", None, "no point of the run is valid".to_owned()));
    }
}

/// Failed and invalid points: one finding for each engine and reason.
fn broken_points(points: &[Point], findings: &mut Vec<Finding>) {
    let mut groups: BTreeMap<(String, String), (String, usize)> = BTreeMap::new();
    for point in points.iter().filter(|p| p.status != Status::Valid) {
        let code = match point.status {
            Status::Skipped => "skipped",
            _ => point.code.as_deref().unwrap_or("failed"),
        };
        let reason = point.reason.clone().unwrap_or_default();
        let reason = reason.strip_prefix("not measured: ").unwrap_or(&reason).to_owned();
        // The first point of a reason is its cause, so its code counts; the others follow from it.
        let group = groups.entry((point.engine.clone(), reason)).or_insert_with(|| (code.to_owned(), 0));
        group.1 += 1;
    }
    for ((engine, reason), (code, count)) in groups {
        let points = if count == 1 { "1 point".to_owned() } else { format!("{count} points") };
        let fatal = code != "skipped";
        findings.push(finding(fatal, &code, Some(&engine), format!("{points}: {reason}")));
    }
}
