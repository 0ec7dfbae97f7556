//! From a data set as typed to one that is open.

use crate::{args::OpenArgs, paths, progress::Progress, stop};
use dataset::{Dataset, OpenOptions};
use runner::{Preparation, SourcePlan};
use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

/// What the options say of a data set, for a plan.
pub(crate) fn source_plan(args: &OpenArgs) -> SourcePlan {
    SourcePlan {
        queries: args.queries.clone(),
        truth: args.truth.clone(),
        columns: args.columns.clone(),
        query_columns: args.query_columns.clone(),
        id_column: args.id_column.clone(),
        vector_column: args.vector_column.clone(),
        truth_column: args.truth_column.clone(),
        drop_bad_rows: args.drop_bad_rows,
    }
}

/// What the options say of a data set, for opening it.
pub(crate) fn open_options(args: &OpenArgs) -> OpenOptions {
    source_plan(args).open_options(args.metric, args.limit, paths::cache_dir(args.cache_dir.as_ref()))
}

/// Opens a data set and says what the reader said.
pub(crate) fn open(
    source: &str,
    args: &OpenArgs,
    printer: &crate::printer::Printer,
) -> anyhow::Result<Dataset> {
    let opened = runner::material::open_source(source, &open_options(args))?;
    for notice in &opened.notices {
        printer.note(notice);
    }
    Ok(opened)
}

/// What exact searches need beside their question.
pub(crate) struct Setting {
    pub(crate) interrupted: Arc<AtomicBool>,
    pub(crate) cache_dir: Option<PathBuf>,
}

impl Setting {
    /// By the options.
    pub(crate) fn new(cache_dir: Option<&PathBuf>) -> Self {
        Setting { interrupted: stop::flag(), cache_dir: paths::cache_dir(cache_dir) }
    }

    /// Runs `work` with a listener that shows progress.
    pub(crate) fn with<T>(&self, progress: &Progress<'_>, work: impl FnOnce(&Preparation<'_>) -> T) -> T {
        let events = |event: &runner::Event<'_>| progress.on(event);
        work(&Preparation {
            cache_dir: self.cache_dir.clone(),
            force: false,
            interrupted: &self.interrupted,
            events: &events,
        })
    }
}
