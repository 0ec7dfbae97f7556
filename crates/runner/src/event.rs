//! What happens in a run, for whoever shows it. The runner prints nothing.

use record::Point;

/// One event. All are sent from the thread that called the runner.
#[derive(Debug)]
pub enum Event<'a> {
    /// A long step begins.
    Begin {
        /// What, for people: `usearch m=16: build`.
        what: &'a str,
        /// The unit counted, such as `rows`; empty where only time passes.
        unit: &'static str,
    },
    /// How far the step is; total 0 where it is not known.
    Progress {
        /// Units done.
        done: u64,
        /// Units in all.
        total: u64,
    },
    /// The step is over.
    End,
    /// Something that the user should know.
    Note(&'a str),
    /// Something that the user must know.
    Warning(&'a str),
    /// A point is finished and recorded.
    Point {
        /// It.
        point: &'a Point,
        /// How many points of the plan are finished.
        finished: usize,
        /// Points of the plan.
        planned: usize,
    },
    /// Points that a resumed run has already.
    Kept(usize),
}

/// Where events go.
pub type Events<'a> = &'a dyn Fn(&Event<'_>);
