//! `annvil compare`.

use crate::{args::CompareArgs, exit::Outcome, printer::Printer};
use record::{Manifest, Point, RunDir};
use report::CompareOptions;
use std::path::Path;

/// Most lines on standard error; the comparison itself has all.
const MOST_ERRORS: usize = 10;

pub(crate) fn run(args: &CompareArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    let options = CompareOptions { least_effect: args.least_effect };
    let comparison = report::compare((&a.0, &a.1), (&b.0, &b.1), options)?;
    printer.show(&comparison, || report::comparison_text(&comparison, printer.width()))?;
    let worse = comparison.worse().count();
    for change in comparison.worse().take(MOST_ERRORS) {
        printer.error(&format!("worse in B: {}", change.text));
    }
    if let Some(more) = worse.checked_sub(MOST_ERRORS).filter(|more| *more > 0) {
        printer.error(&format!("and {more} more that are worse in B"));
    }
    Ok(if worse > 0 { Outcome::Gate } else { Outcome::Valid })
}

fn read(path: &Path) -> anyhow::Result<(Manifest, Vec<Point>)> {
    let dir = RunDir::open(path)?;
    Ok((dir.manifest()?, dir.points()?))
}
