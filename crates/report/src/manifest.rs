//! The manifest in a form for people.

use crate::format;
use record::{EngineEntry, Manifest};
use serde::Serialize;
use serde_json::Value;

/// A heading with rows of (name, value).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) rows: Vec<(String, String)>,
}

/// `annvil 0.1.0, commit abc, measurement version 1`.
pub(crate) fn tool(m: &Manifest) -> String {
    let commit = m.tool.commit.as_deref().unwrap_or("unknown");
    format!(
        "{} {}, commit {commit}, measurement version {}",
        m.tool.name, m.tool.version, m.tool.measurement_version
    )
}

/// The verdict in a word and its reasons.
pub(crate) fn verdict(m: &Manifest) -> (&'static str, Vec<String>) {
    match &m.verdict {
        None => (
            "NOT FINISHED",
            vec!["The run goes on, or was ended before its verdict; figures may be missing.".into()],
        ),
        Some(v) => {
            let reasons = v.findings.iter().filter(|f| f.fatal).map(|f| match &f.engine {
                Some(engine) => format!("{engine}: {}", f.message),
                None => f.message.clone(),
            });
            (if v.valid { "VALID" } else { "NOT VALID" }, reasons.collect())
        }
    }
}

/// The machine in a few words; a fact that could not be read says unknown.
pub(crate) fn machine_summary(m: &Manifest) -> Vec<(String, String)> {
    let fact = |path: &str| m.machine.pointer(path).filter(|v| !v.is_null());
    let text = |path: &str| fact(path).map_or_else(|| "unknown".into(), format::plain);
    let size = |path: &str| fact(path).and_then(Value::as_u64).map(types::units::bytes);
    let governor = match fact("/cpu/governor") {
        Some(Value::Array(all)) => all.iter().map(format::plain).collect::<Vec<_>>().join(" "),
        _ => text("/cpu/governor"),
    };
    let disk = match fact("/disk/rotational").and_then(Value::as_bool) {
        Some(true) => "spinning",
        Some(false) => "solid state",
        None => "unknown kind",
    };
    let limit =
        size("/cgroup/memory_bytes/at").map_or_else(String::new, |limit| format!(", limited to {limit}"));
    [
        ("cpu", text("/cpu/model")),
        ("cpus", format!("{} usable of {}", text("/cpu/allowed_count"), text("/cpu/logical"))),
        ("memory", size("/memory/total_bytes").unwrap_or_else(|| "unknown".into()) + &limit),
        ("governor", governor),
        ("kernel", text("/kernel")),
        ("system", text("/system")),
        ("disk", format!("{disk}, {}", text("/disk/file_system"))),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Every part of the manifest but the engines, flattened.
pub(crate) fn sections(m: &Manifest) -> Vec<Section> {
    let section = |title: &str, value: Value| Section { title: title.into(), rows: flatten(&value) };
    let mut all = vec![
        section("Plan", m.plan.clone()),
        section("Seeds", json(&m.seeds)),
        section("Machine", m.machine.clone()),
    ];
    for dataset in &m.datasets {
        all.push(section(&format!("Data set {}", dataset.name), json(dataset)));
    }
    all.push(section("Starts of this run", json(&m.sessions)));
    all.retain(|s| !s.rows.is_empty());
    all
}

fn json(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Leaves of a JSON value by their path: `a.b[0]`; lists of plain values on one line.
pub(crate) fn flatten(value: &Value) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    walk(value, String::new(), &mut rows);
    rows
}

fn walk(value: &Value, path: String, rows: &mut Vec<(String, String)>) {
    let nested = |v: &Value| v.is_object() || v.is_array();
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                walk(inner, path, rows);
            }
        }
        Value::Array(items) if items.iter().any(nested) => {
            for (at, inner) in items.iter().enumerate() {
                walk(inner, format!("{path}[{at}]"), rows);
            }
        }
        Value::Array(items) => {
            rows.push((path, items.iter().map(format::plain).collect::<Vec<_>>().join(" ")));
        }
        leaf => rows.push((path, format::plain(leaf))),
    }
}

/// A setting of an engine as read back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) default: String,
    pub(crate) differs: bool,
}

/// The settings of an engine: a list of {name, value, default}, or an object of name to {value,
/// default} or to a plain value. An unknown default counts as a difference, so that nothing is hidden.
pub(crate) fn settings(engine: &EngineEntry) -> Vec<Setting> {
    let make = |name: String, setting: &Value| {
        let parts = setting.as_object().filter(|o| o.contains_key("value"));
        let value = parts.map_or(setting, |o| &o["value"]);
        let default = parts.and_then(|o| o.get("default")).filter(|d| !d.is_null());
        Setting {
            name,
            value: format::plain(value),
            default: default.map_or_else(|| "unknown".into(), format::plain),
            differs: default != Some(value),
        }
    };
    match &engine.settings {
        Value::Array(items) => items
            .iter()
            .map(|item| make(item.get("name").map(format::plain).unwrap_or_default(), item))
            .collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| make(name.clone(), value)).collect(),
        _ => Vec::new(),
    }
}
