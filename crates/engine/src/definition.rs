//! The definition of an engine: one TOML file that says everything about a product that is not
//! code. Unknown fields are refused.

use crate::{
    BuildTime, Capabilities, EngineError, ErrorKind, IndexSpec, Names, Param, Params, SearchSpec, TableSpec,
    Template,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use types::Metric;

mod server;
pub mod sql;
#[cfg(test)]
mod tests;

pub use server::{FileDef, FolderDef, InputDef, ServerDef, StepDef, StopSignal};

/// A definition file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Name on the command line and in records.
    pub name: String,
    /// Name in tables and charts.
    pub title: String,
    /// One sentence.
    pub summary: String,
    /// The protocol, which selects the code that drives it.
    pub protocol: String,
    /// What it has.
    pub capabilities: Capabilities,
    /// The kinds of index, the first is the default.
    pub index: Vec<IndexDef>,
    /// Checks of the contract that it does not pass by design, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lacks: BTreeMap<String, String>,
    /// What a reader must know when comparing it, a sentence each; the report prints them.
    #[serde(default)]
    pub asymmetries: Vec<String>,
    /// Statements of a database that speaks SQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<sql::SqlDef>,
    /// How a program on this machine is made into its server; none where it has no server, or only
    /// one that others start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerDef>,
    /// Options of the protocol's code (behaviour of the fake engine).
    #[serde(default)]
    pub options: toml::Table,
}

/// One kind of index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexDef {
    /// Kind, such as `hnsw`.
    pub kind: String,
    /// Build parameters by name.
    #[serde(default)]
    pub params: BTreeMap<String, ParamDef>,
    /// The search-time knob; none where there is none.
    #[serde(default)]
    pub effort: Option<EffortDef>,
    /// Most dimensions that the index takes under these parameters, as a number; may use the build parameters
    /// and `metric`. None where no limit is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_dim: Option<Template>,
    /// As the definition's `lacks`, for this kind alone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lacks: BTreeMap<String, String>,
    /// Statements of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<sql::IndexSql>,
}

/// A build parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParamDef {
    /// Value where a plan names none.
    pub default: Param,
    /// Value instead of `default` under a metric that needs another.
    #[serde(default)]
    pub metric_default: BTreeMap<Metric, Param>,
    /// Smallest legal number.
    #[serde(default)]
    pub min: Option<i64>,
    /// Largest legal number.
    #[serde(default)]
    pub max: Option<i64>,
    /// Legal words.
    #[serde(default)]
    pub values: Vec<String>,
    /// One sentence.
    #[serde(default)]
    pub help: String,
}

/// The search-time knob.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffortDef {
    /// Its name, such as `ef_search`.
    pub name: String,
    /// Smallest legal value.
    pub min: u64,
    /// Largest legal value.
    pub max: u64,
    /// Values of a sweep where a plan names none.
    pub ladder: Vec<u64>,
    /// The engine raises a value below k to k.
    #[serde(default)]
    pub raised_to_k: bool,
}

/// A definition that can't be used, or a build that does not fit it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DefinitionError(pub String);

impl Definition {
    /// Reads and checks a definition; `origin` names the file in errors.
    ///
    /// # Errors
    /// One line with the file, the place and the reason.
    pub fn parse(text: &str, origin: &str) -> Result<Self, DefinitionError> {
        let definition: Definition =
            toml::from_str(text).map_err(|e| DefinitionError(format!("{origin}: {}", one_line(&e, text))))?;
        definition.check().map_err(|reason| DefinitionError(format!("{origin}: {reason}")))?;
        Ok(definition)
    }

    fn check(&self) -> Result<(), String> {
        if self.name.is_empty() || !self.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
            return Err(format!("name {:?} may hold letters, digits, - and _ only", self.name));
        }
        if self.capabilities.metrics.is_empty() {
            return Err("capabilities.metrics names no metric".into());
        }
        let lacks = self.index.iter().flat_map(|index| index.lacks.keys()).chain(self.lacks.keys());
        if let Some(name) = lacks.into_iter().find(|name| !crate::contract::is_check(name)) {
            return Err(format!("lacks.{name} names no check of the contract"));
        }
        if self.index.is_empty() {
            return Err("at least one [[index]] is needed".into());
        }
        for (i, index) in self.index.iter().enumerate() {
            if self.index[..i].iter().any(|other| other.kind == index.kind) {
                return Err(format!("index kind {:?} stands twice", index.kind));
            }
        }
        for index in &self.index {
            for (name, param) in &index.params {
                for default in std::iter::once(&param.default).chain(param.metric_default.values()) {
                    param.check(name, default).map_err(|e| format!("default of {}: {e}", index.kind))?;
                }
            }
            if let Some(effort) = &index.effort {
                if effort.ladder.is_empty() {
                    return Err(format!("the ladder of {} is empty", effort.name));
                }
                for value in &effort.ladder {
                    effort.check(*value)?;
                }
            }
        }
        self.server.as_ref().map_or(Ok(()), ServerDef::check)
    }

    /// Gives it another name, which its title tells too.
    ///
    /// # Errors
    /// Where the name may not be one.
    pub fn rename(&mut self, name: &str) -> Result<(), DefinitionError> {
        self.title = format!("{} ({name})", self.title);
        name.clone_into(&mut self.name);
        self.check().map_err(DefinitionError)
    }

    /// The index kind named, or the first.
    ///
    /// # Errors
    /// Where there is none of that name.
    pub fn index_def(&self, kind: Option<&str>) -> Result<&IndexDef, DefinitionError> {
        let Some(kind) = kind else { return Ok(&self.index[0]) };
        self.index.iter().find(|i| i.kind == kind).ok_or_else(|| {
            let known: Vec<&str> = self.index.iter().map(|i| i.kind.as_str()).collect();
            DefinitionError(format!("{} has no index kind {kind:?}; it has: {}", self.name, known.join(", ")))
        })
    }

    /// Why a check of the contract does not hold by design under an index of `kind`; none where it must hold.
    pub fn lack(&self, kind: &str, check: &str) -> Option<&str> {
        let own = self.index.iter().find(|i| i.kind == kind).and_then(|i| i.lacks.get(check));
        own.or_else(|| self.lacks.get(check)).map(String::as_str)
    }

    /// A build from what a plan says: defaults filled in, every value checked.
    ///
    /// # Errors
    /// Where a parameter is unknown or out of range, or the metric is lacking.
    pub fn index_spec(
        &self,
        kind: Option<&str>,
        metric: Metric,
        given: &Params,
        threads: usize,
    ) -> Result<IndexSpec, DefinitionError> {
        let def = self.index_def(kind)?;
        if !self.capabilities.metrics.contains(&metric) {
            let has: Vec<&str> = self.capabilities.metrics.iter().map(|m| m.name()).collect();
            return Err(DefinitionError(format!(
                "{} has no {metric}; it has: {}",
                self.name,
                has.join(", ")
            )));
        }
        let mut params: Params =
            def.params.iter().map(|(name, p)| (name.clone(), p.default_under(metric).clone())).collect();
        for (name, value) in given {
            let param = def.params.get(name).ok_or_else(|| {
                let known: Vec<&str> = def.params.keys().map(String::as_str).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                DefinitionError(format!(
                    "{} {} has no parameter {name:?}; it has: {known}",
                    self.name, def.kind
                ))
            })?;
            param.check(name, value).map_err(|e| DefinitionError(format!("{}: {e}", self.name)))?;
            params.insert(name.clone(), value.clone());
        }
        Ok(IndexSpec { kind: def.kind.clone(), metric, params, threads })
    }

    /// Whether the index is made before the rows come and grows while they do.
    pub fn builds_during_load(&self, index: &IndexSpec) -> bool {
        match self.capabilities.build_time {
            BuildTime::AfterLoad => false,
            BuildTime::DuringLoad => true,
            BuildTime::Either => index.params.get("build_time") == Some(&Param::Text("during_load".into())),
        }
    }

    /// Whether the engine can hold such a table: metric, dimensions, index kind.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] with what is lacking.
    pub fn check_table(&self, table: &TableSpec) -> Result<(), EngineError> {
        let lacking = |what: String| Err(EngineError::new(ErrorKind::Unsupported, what));
        let (name, has) = (&self.name, &self.capabilities);
        self.index_def(Some(&table.index.kind))
            .map_err(|e| EngineError::new(ErrorKind::Unsupported, e.to_string()))?;
        if !has.metrics.contains(&table.metric) {
            return lacking(format!("{name} has no {}", table.metric));
        }
        if table.dim == 0 {
            return lacking(format!("{name} takes no vectors of 0 dimensions"));
        }
        self.too_many_dims(&table.index, table.dim).map_or(Ok(()), lacking)
    }

    /// Why the index can't take vectors of `dim` dimensions; none where it can, as far as is known.
    pub fn too_many_dims(&self, index: &IndexSpec, dim: usize) -> Option<String> {
        let mut names = Names::default();
        names.set("metric", index.metric.name());
        for (name, value) in &index.params {
            names.set(name.as_str(), value);
        }
        let own = self.index.iter().find(|i| i.kind == index.kind).and_then(|i| i.max_dim.as_ref());
        let own = own.and_then(|t| t.fill(&names).ok()).and_then(|text| text.parse::<usize>().ok());
        let max = own.into_iter().chain(self.capabilities.max_dim).min().filter(|&max| dim > max)?;
        let how = index.params.get("quantization").filter(|_| own.is_some());
        let how = how.map_or_else(String::new, |value| format!(" with quantization={value}"));
        Some(format!(
            "an index {} of {}{how} takes at most {max} dimensions, the data has {dim}",
            index.kind, self.name
        ))
    }

    /// Whether the engine can be asked this under an index of `kind`: k, effort, the filters' kinds.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] with what is lacking or out of range.
    pub fn check_search(&self, kind: &str, search: &SearchSpec) -> Result<(), EngineError> {
        let lacking = |what: String| Err(EngineError::new(ErrorKind::Unsupported, what));
        let (name, has) = (&self.name, &self.capabilities);
        if search.k == 0 || has.max_k.is_some_and(|max| search.k > max) {
            let max = has.max_k.map_or_else(|| "any".to_owned(), |max| max.to_string());
            return lacking(format!("{name} can't be asked for k = {}; it takes 1 to {max}", search.k));
        }
        let knob = self.index.iter().find(|i| i.kind == kind).and_then(|i| i.effort.as_ref());
        match (knob, search.effort) {
            (None, Some(effort)) => {
                return lacking(format!(
                    "{name} {kind} has no search-time knob, but effort = {effort} is asked"
                ));
            }
            (Some(knob), Some(effort)) => {
                if let Err(reason) = knob.check(effort) {
                    return lacking(format!("{name}: {reason}"));
                }
            }
            (_, None) => {}
        }
        for (filter, _) in search.filters.groups(search.queries.rows()) {
            let Some(filter) = filter else { continue };
            if let Some(kind) = filter.kinds().into_iter().find(|kind| !has.filters.contains(kind)) {
                return lacking(format!("{name} has no filter of the kind {kind:?}, which {filter} needs"));
            }
        }
        Ok(())
    }
}

impl ParamDef {
    /// The value where a plan names none, under `metric`.
    pub fn default_under(&self, metric: Metric) -> &Param {
        self.metric_default.get(&metric).unwrap_or(&self.default)
    }

    fn check(&self, name: &str, value: &Param) -> Result<(), String> {
        let same_type = std::mem::discriminant(value) == std::mem::discriminant(&self.default);
        match value {
            _ if !same_type => {
                Err(format!("{name} = {value} has another type than its default {}", self.default))
            }
            Param::Int(v) if self.min.is_some_and(|min| *v < min) || self.max.is_some_and(|max| *v > max) => {
                let bound = |b: Option<i64>| b.map_or_else(String::new, |b| b.to_string());
                Err(format!("{name} = {v} is outside {}..{}", bound(self.min), bound(self.max)))
            }
            Param::Text(v) if !self.values.is_empty() && !self.values.contains(v) => {
                Err(format!("{name} = {v} is none of: {}", self.values.join(", ")))
            }
            _ => Ok(()),
        }
    }
}

impl EffortDef {
    /// Whether `value` is legal.
    ///
    /// # Errors
    /// A sentence with the legal range.
    pub fn check(&self, value: u64) -> Result<(), String> {
        if (self.min..=self.max).contains(&value) {
            Ok(())
        } else {
            Err(format!("{} = {value} is outside {}..{}", self.name, self.min, self.max))
        }
    }
}

/// A TOML error as one line: where, what.
fn one_line(error: &toml::de::Error, text: &str) -> String {
    let line = error.span().and_then(|span| Some(text.get(..span.start)?.matches('\n').count() + 1));
    let message = error.message().replace('\n', "; ");
    line.map_or_else(|| message.clone(), |line| format!("line {line}: {message}"))
}
