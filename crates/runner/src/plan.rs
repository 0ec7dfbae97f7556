//! What to run, as people write it: a TOML file with unknown fields refused.
//!
//! A plan is data sets x engines x builds x clients x filters x efforts. `resolve` turns it, with
//! the data sets and definitions at hand, into the list of points.

use crate::{RunnerError, SourcePlan};
use dataset::OpenOptions;
use engine::{Definition, LoadMethod, Params};
use serde::{Deserialize, Serialize};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// A plan file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Name; part of the run directory's name.
    pub name: String,
    /// One sentence.
    #[serde(default)]
    pub summary: String,
    /// Data sets: `builtin` or paths.
    pub datasets: Vec<String>,
    /// Only the first rows of the base; the truth is then computed for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The metric, where the data set names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<types::Metric>,
    /// What else the files of the data sets do not say.
    #[serde(default, skip_serializing_if = "is_default")]
    pub source: SourcePlan,
    /// Rows asked for.
    #[serde(default = "default_k")]
    pub k: usize,
    /// Windows measured at each point.
    #[serde(default = "default_repeats")]
    pub repeats: usize,
    /// Numbers of clients.
    #[serde(default = "default_clients")]
    pub clients: Vec<usize>,
    /// Queries sent before the clock starts, all clients together.
    #[serde(default = "default_warmup")]
    pub warmup: usize,
    /// A window lasts at least this long: the query set is sent as many whole times as that takes.
    #[serde(default = "default_min_window", with = "duration_text")]
    pub min_window: Duration,
    /// Seed of every random stream (sampling of truth checks, bootstrap).
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Whether recall is computed.
    #[serde(default = "yes")]
    pub recall: bool,
    /// How rows are inserted.
    #[serde(default)]
    pub load: LoadPlan,
    /// What servers that Annvil starts may use.
    #[serde(default, skip_serializing_if = "is_default")]
    pub server: ServerPlan,
    /// Threads of a build; 0 for all CPUs.
    #[serde(default)]
    pub build_threads: usize,
    /// Time limits.
    #[serde(default)]
    pub limits: Limits,
    /// Filters, each measured beside the unfiltered sweep.
    #[serde(default, rename = "filter", skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<FilterPlan>,
    /// Engines, in the order in which they are measured, one after the other.
    #[serde(rename = "engine")]
    pub engines: Vec<EnginePlan>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// How rows are inserted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoadPlan {
    /// Threads, each with its own connection.
    pub workers: usize,
    /// Rows in a batch; the definition's where none is given, or 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// By the engine's fastest documented way, or by ordinary inserts for all (`--load`).
    pub method: LoadMethod,
    /// Columns that get an ordinary index of their own (`--index-column`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub index_columns: Vec<String>,
}

impl LoadPlan {
    /// Rows in a batch for an engine and `rows` rows in all: no more than each worker's share.
    pub fn batch_for(&self, definition: &Definition, rows: usize) -> usize {
        let own = definition.sql.as_ref().and_then(|sql| sql.batch);
        // The definition's size is that of its fastest way.
        let own = own.filter(|_| self.method == LoadMethod::Fastest);
        let own = own.map(|batch| batch.min(rows.div_ceil(self.workers)).max(1));
        self.batch.or(own).unwrap_or(DEFAULT_BATCH)
    }
}

/// The budget of a server that Annvil starts, from which the definition's rules compute its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerPlan {
    /// Memory in bytes, written `4GiB` (`--server-memory`); half of the machine's where none is given.
    #[serde(with = "bytes_text", skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Processors (`--server-cpus`); all, shared with Annvil, where none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<std::num::NonZeroU32>,
}

/// One engine of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnginePlan {
    /// Name of a built-in definition, a path to a definition file, or `name:option=value,...`.
    pub name: String,
    /// Address of a server that runs already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The server's program where Annvil starts it; found on PATH where none is given (`--program`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
    /// Builds; one with the definition's defaults where none is given.
    #[serde(default, rename = "build", skip_serializing_if = "Vec::is_empty")]
    pub builds: Vec<BuildPlan>,
    /// Search-time efforts; the definition's ladder where none is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub efforts: Vec<u64>,
}

/// One build of an engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildPlan {
    /// Kind of index; the definition's first where none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Parameters that differ from the defaults.
    #[serde(default)]
    pub params: Params,
}

/// A filter to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilterPlan {
    /// Name in tables.
    pub name: String,
    /// The filter; `{q}` is the query's own value of the column compared.
    #[serde(rename = "where")]
    pub text: String,
}

/// Limits for everything that can hang. Each is an option of `annvil run`, named in its error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// A load (`--load-timeout`).
    #[serde(with = "duration_text")]
    pub load: Duration,
    /// A build call (`--build-timeout`).
    #[serde(with = "duration_text")]
    pub build: Duration,
    /// From the build call's return until the index is ready (`--ready-timeout`).
    #[serde(with = "duration_text")]
    pub ready: Duration,
    /// One query, or anything else asked of an engine (`--query-timeout`).
    #[serde(with = "duration_text")]
    pub query: Duration,
    /// All windows of a point together (`--point-timeout`).
    #[serde(with = "duration_text")]
    pub point: Duration,
    /// Share of failed queries above which a point is not valid (`--max-errors`).
    pub errors: f64,
    /// Share of the client's own time above which a point is marked client_limited
    /// (`--max-client-share`).
    pub client_share: f64,
    /// Share of the CPUs that Annvil may use itself before a point of an engine elsewhere is marked
    /// client_limited (`--max-client-cpu`).
    pub client_cpu: f64,
}

impl Default for LoadPlan {
    fn default() -> Self {
        LoadPlan { workers: 1, batch: None, method: LoadMethod::Fastest, index_columns: Vec::new() }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            load: Duration::from_secs(24 * 3600),
            build: Duration::from_secs(24 * 3600),
            ready: Duration::from_secs(4 * 3600),
            query: Duration::from_secs(60),
            point: Duration::from_secs(3600),
            errors: 0.01,
            client_share: 0.1,
            client_cpu: 0.8,
        }
    }
}

fn default_k() -> usize {
    10
}
fn default_repeats() -> usize {
    3
}
fn default_clients() -> Vec<usize> {
    vec![1]
}
fn default_warmup() -> usize {
    200
}
fn default_min_window() -> Duration {
    Duration::from_millis(500)
}
fn default_seed() -> u64 {
    1
}
fn yes() -> bool {
    true
}

/// Most client threads and repeats that a plan may ask for.
const MOST_CLIENTS: usize = 4096;
const MOST_REPEATS: usize = 1000;

/// Rows of a batch where neither plan nor definition says.
const DEFAULT_BATCH: usize = 1000;

impl Plan {
    /// The built-in plans: name and text.
    pub const BUILT_IN: [(&'static str, &'static str); 3] = [
        ("quick", include_str!("../../../plans/quick.toml")),
        ("smoke", include_str!("../../../plans/smoke.toml")),
        ("full", include_str!("../../../plans/full.toml")),
    ];

    /// Reads a plan; `origin` names it in errors.
    ///
    /// # Errors
    /// One line with the place and the reason.
    pub fn parse(text: &str, origin: &str) -> Result<Self, RunnerError> {
        let plan: Plan = toml::from_str(text).map_err(|e| {
            let line = e.span().map_or(0, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
            RunnerError::Plan(format!("{origin}, line {line}: {}", e.message().replace('\n', "; ")))
        })?;
        plan.check().map_err(|reason| RunnerError::Plan(format!("{origin}: {reason}")))?;
        Ok(plan)
    }

    /// The plan named `name`, read from the file of that path, or that of the run in the directory of
    /// that path (which runs it again).
    ///
    /// # Errors
    /// Where there is none of these, or it is no plan.
    pub fn find(name: &str) -> Result<Self, RunnerError> {
        if let Some((_, text)) = Self::BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Self::parse(text, name);
        }
        if Path::new(name).is_dir() {
            return Self::of_run(Path::new(name));
        }
        let text = std::fs::read_to_string(name).map_err(|e| {
            let known: Vec<&str> = Self::BUILT_IN.iter().map(|(name, _)| *name).collect();
            RunnerError::Plan(format!(
                "no plan {name:?}: it is none of {}, and as a file: {e}",
                known.join(", ")
            ))
        })?;
        Self::parse(&text, name)
    }

    /// The plan that the run in the directory `path` was made with.
    ///
    /// # Errors
    /// Where there is no run, or its plan is none that this version can run.
    pub fn of_run(path: &Path) -> Result<Self, RunnerError> {
        let manifest = record::RunDir::open(path)?.manifest()?;
        let origin = || format!("the plan of the run {}", path.display());
        let plan: Plan = serde_json::from_value(manifest.plan)
            .map_err(|e| RunnerError::Plan(format!("{} can't be read: {e}", origin())))?;
        plan.check().map_err(|reason| RunnerError::Plan(format!("{}: {reason}", origin())))?;
        Ok(plan)
    }

    /// What to tell `dataset::open`.
    pub fn open_options(&self, cache_dir: Option<PathBuf>) -> OpenOptions {
        self.source.open_options(self.metric, self.limit, cache_dir)
    }

    /// Checks what needs neither data set nor engine.
    ///
    /// # Errors
    /// A sentence.
    pub fn check(&self) -> Result<(), String> {
        let positive = |what: &str, value: usize, most: usize| {
            if (1..=most).contains(&value) {
                Ok(())
            } else {
                Err(format!("{what} = {value} is outside 1..{most}"))
            }
        };
        positive("k", self.k, 1_000_000)?;
        positive("repeats", self.repeats, MOST_REPEATS)?;
        positive("load.workers", self.load.workers, MOST_CLIENTS)?;
        positive("load.batch", self.load.batch.unwrap_or(DEFAULT_BATCH), 10_000_000)?;
        if self.clients.is_empty() {
            return Err("clients is empty".into());
        }
        for &clients in &self.clients {
            positive("clients", clients, MOST_CLIENTS)?;
        }
        for (what, share) in [
            ("limits.errors", self.limits.errors),
            ("limits.client_share", self.limits.client_share),
            ("limits.client_cpu", self.limits.client_cpu),
        ] {
            if !(0.0..=1.0).contains(&share) {
                return Err(format!("{what} = {share} is outside 0..1"));
            }
        }
        if self.limit == Some(0) {
            return Err("limit = 0 leaves no row".into());
        }
        if self.datasets.is_empty() {
            return Err("datasets is empty".into());
        }
        if self.engines.is_empty() {
            return Err("no [[engine]]".into());
        }
        let repeated = |what: &str, values: &[String]| {
            let twice = values.iter().enumerate().find(|(i, v)| values[..*i].contains(v));
            twice.map_or(Ok(()), |(_, v)| Err(format!("{what} {v} stands twice")))
        };
        repeated("data set", &self.datasets)?;
        repeated("number of clients", &self.clients.iter().map(usize::to_string).collect::<Vec<_>>())?;
        for engine in &self.engines {
            let efforts: Vec<String> = engine.efforts.iter().map(u64::to_string).collect();
            repeated(&format!("effort of {}", engine.name), &efforts)?;
        }
        let mut names: Vec<&str> = self.filters.iter().map(|f| f.name.as_str()).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("two filters have one name".into());
        }
        Ok(())
    }
}

/// Sizes as `4GiB`.
mod bytes_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(value: &Option<u64>, s: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(bytes) => s.serialize_str(&format!("{bytes}B")),
            None => s.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
        let text = Option::<String>::deserialize(d)?;
        text.map(|t| types::units::parse_bytes(&t).map_err(D::Error::custom)).transpose()
    }
}

/// Durations as `90s` or `1h 30m`.
mod duration_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(value: &Duration, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&types::units::format_duration(*value))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
        types::units::parse_duration(&String::deserialize(d)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_plans_are_plans_and_survive_a_round_trip() {
        for (name, text) in Plan::BUILT_IN {
            let plan = Plan::parse(text, name).unwrap();
            assert_eq!(plan.name, name);
            let again: Plan = serde_json::from_value(serde_json::to_value(&plan).unwrap()).unwrap();
            assert_eq!(again, plan);
        }
    }

    #[test]
    fn unknown_fields_and_senseless_values_are_refused_with_their_place() {
        let base = "name='x'\ndatasets=['builtin']\n";
        for (text, part) in [
            (format!("{base}repeets=3\n[[engine]]\nname='flat'"), "repeets"),
            (format!("{base}repeats=0\n[[engine]]\nname='flat'"), "repeats = 0"),
            (format!("{base}min_window='soon'\n[[engine]]\nname='flat'"), "90s"),
            (format!("{base}clients=[]\n[[engine]]\nname='flat'"), "clients"),
            (base.to_owned(), "engine"),
        ] {
            let error = Plan::parse(&text, "my.toml").unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("my.toml"), "{text}: {error}");
        }
        assert!(Plan::find("no-such-plan").unwrap_err().to_string().contains("quick, smoke, full"));
    }
}
