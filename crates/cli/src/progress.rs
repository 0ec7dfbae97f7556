//! Shows the runner's events: a bar with rate and time left on a terminal, plain lines elsewhere.

use crate::printer::Printer;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use record::{Point, Status};
use runner::Event;
use std::{
    cell::RefCell,
    time::{Duration, Instant},
};
use types::units;

/// A listener for [`Event`]s.
pub(crate) struct Progress<'a> {
    printer: &'a Printer,
    step: RefCell<Option<Step>>,
}

struct Step {
    what: String,
    unit: &'static str,
    bar: Option<ProgressBar>,
    begun: Instant,
    said: Instant,
}

/// Without a terminal, a step says how far it is this often.
const LINE_EVERY: Duration = Duration::from_secs(15);

impl<'a> Progress<'a> {
    /// Shows on `printer`.
    pub(crate) fn new(printer: &'a Printer) -> Self {
        Progress { printer, step: RefCell::new(None) }
    }

    /// Takes an event in.
    pub(crate) fn on(&self, event: &Event<'_>) {
        match event {
            Event::Begin { what, unit } => self.begin(what, unit),
            Event::Progress { done, total } => self.advance(*done, *total),
            Event::End => self.end(),
            Event::Note(text) => self.outside(|p| p.note(text)),
            Event::Warning(text) => self.outside(|p| p.warning(text)),
            Event::Kept(count) => {
                self.outside(|p| p.note(&format!("{count} finished points are kept, not measured again")));
            }
            Event::Point { point, finished, planned } => {
                self.end();
                self.printer.line(&format!("[{finished}/{planned}] {}", point_line(point)));
            }
        }
    }

    fn begin(&self, what: &str, unit: &'static str) {
        self.end();
        let bar = self.printer.draws().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{spinner} {msg} {elapsed}")
                    .unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            bar.set_message(what.to_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        let now = Instant::now();
        *self.step.borrow_mut() = Some(Step { what: what.to_owned(), unit, bar, begun: now, said: now });
    }

    fn advance(&self, done: u64, total: u64) {
        let mut step = self.step.borrow_mut();
        let Some(step) = step.as_mut() else { return };
        let text = how_far(step, done, total);
        if let Some(bar) = &step.bar {
            bar.set_message(text);
        } else if self.printer.talks() && step.said.elapsed() >= LINE_EVERY {
            step.said = Instant::now();
            self.printer.line(&text);
        }
    }

    fn end(&self) {
        if let Some(Step { bar: Some(bar), .. }) = self.step.borrow_mut().take() {
            bar.finish_and_clear();
        }
    }

    /// Prints a line without tearing the bar.
    fn outside(&self, print: impl FnOnce(&Printer)) {
        match self.step.borrow().as_ref().and_then(|step| step.bar.as_ref()) {
            Some(bar) => bar.suspend(|| print(self.printer)),
            None => print(self.printer),
        }
    }
}

/// `usearch m=16: load  12,000 of 50,000 rows, 24 %, 31,000 rows/s, 1.2 s left`.
fn how_far(step: &Step, done: u64, total: u64) -> String {
    let seconds = step.begun.elapsed().as_secs_f64();
    if done == 0 {
        return format!("{}: {}", step.what, units::seconds(seconds));
    }
    let rate = done as f64 / seconds.max(1e-9);
    let (what, unit) = (&step.what, step.unit);
    if total == 0 && unit.is_empty() {
        return format!("{what}: {}", units::seconds(seconds));
    }
    if total == 0 {
        return format!("{what}: {} {unit}, {} {unit}/s", units::count(done), units::rate(rate));
    }
    let left = total.saturating_sub(done) as f64 / rate;
    if unit.is_empty() {
        return format!("{what}: {} %, {} left", done * 100 / total, units::seconds(left));
    }
    format!(
        "{what}: {} of {} {unit}, {} %, {} {unit}/s, {} left",
        units::count(done),
        units::count(total),
        done * 100 / total,
        units::rate(rate),
        units::seconds(left)
    )
}

/// One finished point in a line.
fn point_line(point: &Point) -> String {
    // Where a server is stands in the report; here it would only be in the way.
    let mut text = point.engine.split(" at ").next().unwrap_or_default().to_owned();
    for part in [point.build.as_str(), &point.filter.as_ref().map(|f| format!("[{f}]")).unwrap_or_default()] {
        if !part.is_empty() {
            text.push(' ');
            text.push_str(part);
        }
    }
    if let (Some(name), Some(effort)) = (&point.effort_name, point.effort) {
        text.push_str(&format!(" {name}={effort}"));
    }
    if let Some(clients) = point.clients.filter(|c| *c > 1) {
        text.push_str(&format!(" clients={clients}"));
    }
    let figures = match point.status {
        Status::Valid | Status::Invalid => figures(point),
        Status::Failed => "failed".to_owned(),
        Status::Skipped => "left out".to_owned(),
        Status::Unknown => "unknown".to_owned(),
    };
    let reason = point.reason.as_ref().map(|r| format!(" - {r}")).unwrap_or_default();
    format!("{text}: {figures}{reason}")
}

fn figures(point: &Point) -> String {
    let mut parts = Vec::new();
    if let (Some(seconds), Some(rate)) = (point.load.load_seconds, point.load.load_rows_per_second) {
        parts.push(format!("loaded in {} ({} rows/s)", units::seconds(seconds), units::rate(rate)));
    }
    if let Some(build) = point.built.build_seconds {
        parts.push(format!("built in {}", units::seconds(build + point.built.ready_seconds.unwrap_or(0.0))));
    }
    if let Some(bytes) = point.built.index_bytes {
        parts.push(format!("index {}", units::bytes(bytes)));
    }
    if let Some(recall) = point.search.recall {
        parts.push(format!("recall {recall:.4}"));
    }
    if let Some(throughput) = point.search.throughput {
        parts.push(format!("{} queries/s", units::rate(throughput)));
    }
    if let Some(p99) = point.search.latency_p99_ns {
        parts.push(format!("p99 {}", units::seconds(p99 as f64 / 1e9)));
    }
    if point.status == Status::Invalid {
        parts.push("NOT VALID".to_owned());
    }
    parts.join(", ")
}
