//! What a stand writes into its points: figures of load and build, the index read back, marks.

use crate::{
    LoadPlan,
    build::Built,
    load::Loaded,
    material::Material,
    provenance,
    stand::{Cell, Stand},
};
use record::{Flag, Point};
use types::Columns;

/// The kind that a definition gives an engine without an index.
const NO_INDEX: &str = "none";

impl Stand<'_, '_, '_> {
    pub(crate) fn describe_load(&self, point: &mut Point, loaded: &Loaded) {
        let rows = self.material.dataset.base.rows();
        let plan = &self.run.request.plan.load;
        point.load.load_seconds = Some(loaded.seconds);
        point.load.load_rows = Some(rows as u64);
        point.load.load_rows_counted = Some(loaded.counted);
        point.load.load_rows_per_second = (loaded.seconds > 0.0).then(|| rows as f64 / loaded.seconds);
        point.load.load_workers = Some(plan.workers as u64);
        point.load.load_batch_rows = Some(plan.batch_for(&self.engine.definition, rows) as u64);
        point.load.load_retries = Some(loaded.retries);
    }

    pub(crate) fn describe_build(&self, point: &mut Point, loaded: &Loaded, built: &Built) {
        let figures = &mut point.built;
        figures.build_seconds = Some(built.build_seconds);
        figures.ready_seconds = Some(built.ready_seconds);
        figures.queryable_seconds = Some(loaded.seconds + built.build_seconds + built.ready_seconds);
        figures.build_threads = Some(self.build.index.threads as u64);
        figures.built_during_load = Some(self.engine.definition.builds_during_load(&self.build.index));
        figures.index_bytes = built.sizes.index;
        figures.table_bytes = built.sizes.table;
        figures.indexed_rows = built.indexed.or_else(|| built.info.as_ref().and_then(|i| i.indexed));
        figures.index_kind_read = built.info.as_ref().map(|i| i.kind.clone());
        figures.params_read = built.info.as_ref().map(|i| provenance::params(&i.params));
        let remarks = built.info.as_ref().map(|i| i.remarks.clone());
        figures.build_remarks = remarks.filter(|r| !r.is_empty());
        let rows = self.material.dataset.base.rows() as u64;
        if figures.indexed_rows.is_some_and(|indexed| indexed < rows) {
            point.flags.push(Flag::IndexIncomplete);
        }
    }

    /// What the engine read back that is not what was asked for.
    pub(crate) fn wrong_index(&self, built: &Built) -> Option<String> {
        let asked = &self.build.index;
        if built.info.is_none() && asked.kind == NO_INDEX {
            return None;
        }
        let Some(info) = &built.info else {
            return Some(format!("asked for an index of kind {}, the engine has none", asked.kind));
        };
        if info.kind != asked.kind {
            return Some(format!("asked for an index of kind {}, the engine has {}", asked.kind, info.kind));
        }
        asked.params.iter().find_map(|(name, value)| {
            let read = info.params.get(name)?;
            (read != value).then(|| format!("asked for {name}={value}, the engine has {name}={read}"))
        })
    }
}

/// Adds a flag once.
pub(crate) fn push_flag(point: &mut Point, flag: Flag) {
    if !point.flags.contains(&flag) {
        point.flags.push(flag);
    }
}

/// The cell in words.
pub(crate) fn cell_name(point: &Point, cell: &Cell<'_>) -> String {
    let mut name = match (&point.effort_name, cell.effort) {
        (Some(name), Some(effort)) => format!("{name}={effort}"),
        _ => "search".to_owned(),
    };
    if let Some(filter) = &cell.case.name {
        name.push_str(&format!(" [{filter}]"));
    }
    if cell.clients > 1 {
        name.push_str(&format!(" {} clients", cell.clients));
    }
    name
}

/// Recall by effort, for each filter and number of clients, to see where it falls.
#[derive(Default)]
pub(crate) struct Recalls(Vec<(Option<String>, usize, u64, f64)>);

impl Recalls {
    /// Keeps the recall of a point.
    pub(crate) fn add(&mut self, cell: &Cell<'_>, point: &Point) {
        if let (Some(effort), Some(recall)) = (cell.effort, point.search.recall) {
            self.0.push((cell.case.name.clone(), cell.clients, effort, recall));
        }
    }

    /// Marks a recall that is lower, beyond its interval, than at a smaller effort.
    pub(crate) fn flag(&self, cell: &Cell<'_>, point: &mut Point) {
        let (Some(effort), Some(high)) = (cell.effort, point.search.recall_high.or(point.search.recall))
        else {
            return;
        };
        let smaller = |(name, clients, other, recall): &(Option<String>, usize, u64, f64)| {
            *name == cell.case.name && *clients == cell.clients && *other < effort && *recall > high
        };
        if self.0.iter().any(smaller) {
            push_flag(point, Flag::NotMonotonic);
        }
    }
}

/// The columns that are loaded: all where a filter is measured or a column gets an index, else none.
pub(crate) fn loaded_columns<'m>(material: &'m Material, plan: &LoadPlan) -> Option<&'m Columns> {
    let filtered = material.cases.iter().any(|c| c.rows.is_some());
    material.dataset.columns.as_ref().filter(|_| filtered || !plan.index_columns.is_empty())
}
