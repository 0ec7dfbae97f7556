//! The key of a point: a hash of everything that determines it. A resumed run keeps a recorded
//! point only where its key is the same.

use serde::Serialize;
use serde_json::{Value, json};

/// What all points of one engine, data set and build have in common.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct KeyBase {
    pub(crate) measurement_version: u32,
    pub(crate) base_hash: String,
    pub(crate) queries_hash: String,
    pub(crate) columns_hash: Option<String>,
    pub(crate) metric: &'static str,
    pub(crate) definition: Value,
    pub(crate) address: Option<String>,
    pub(crate) engine_version: String,
    pub(crate) settings: Value,
    pub(crate) server: Option<Value>,
    pub(crate) machine: Value,
    pub(crate) loaded_columns: bool,
    pub(crate) index: Value,
    pub(crate) load: Value,
    pub(crate) limits: Value,
}

impl KeyBase {
    /// The key of the phase `phase` with what only it depends on.
    pub(crate) fn key(&self, phase: &str, more: Value) -> String {
        let text = json!({ "base": self, "phase": phase, "more": more }).to_string();
        blake3::hash(text.as_bytes()).to_hex()[..20].to_owned()
    }
}
