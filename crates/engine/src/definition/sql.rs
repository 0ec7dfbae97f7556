//! The `[sql]` section: everything that a database which speaks SQL says differently from others.
//!
//! Names that every template here may use: `table`, `index` (its name), `kind`, every build parameter,
//! `threads`, `dim`, `metric`, `rows`, `vectors_bytes`, `column_names` (`cat, price, `: the data set's columns, each with a
//! comma behind it; nothing where there is none), the words of the metric (`[sql.metrics.<metric>]`), and
//! `build_time` where it is no parameter. What more a statement may use stands beside it.

use crate::{Pattern, Template};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use types::Metric;

/// How to talk to a database in SQL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlDef {
    /// Statements on every new connection.
    #[serde(default)]
    pub session: Vec<Template>,
    /// Statements once, before the table is made: extensions, global settings.
    #[serde(default)]
    pub prepare: Vec<Template>,
    /// How a vector travels.
    pub vector: VectorForm,
    /// The same where the vectors are bits.
    #[serde(default)]
    pub bits: Option<VectorForm>,
    /// Words of each metric, such as its operator.
    pub metrics: BTreeMap<Metric, BTreeMap<String, String>>,
    /// The database's name of each type of column.
    pub types: TypeNames,
    /// A row where a table of this name stands that Annvil did not make.
    #[serde(default)]
    pub foreign: Option<Template>,
    /// What removes the table, whether it is there or not.
    pub drop: Vec<Template>,
    /// What makes the table. Also `columns`: `cat BIGINT, ` and so on, each with a comma behind it.
    pub create: Vec<Template>,
    /// An ordinary index on a column. Also `column`, and `column_index`, a name for it.
    #[serde(default)]
    pub index_column: Option<Template>,
    /// Inserts rows. Also `names`: `id, cat, v`, and `rows`: `(?, ?, ?), (?, ?, ?)`.
    pub insert: Template,
    /// How a vector's place stands in `rows`. Also `q`, the place.
    #[serde(default = "bare_place")]
    pub insert_vector: Template,
    /// The bulk load in binary (`COPY ... FROM STDIN WITH (FORMAT binary)`). Also `names`.
    #[serde(default)]
    pub copy: Option<Template>,
    /// Statements after the last row.
    #[serde(default)]
    pub loaded: Vec<Template>,
    /// One number: the rows of the table.
    pub count: Template,
    /// Deletes rows. Also `keys`: `1, 2, 3`.
    #[serde(default)]
    pub delete: Option<Template>,
    /// The search. Also `q` (the query vector's place), `k`, `effort` and `where`: `WHERE cat = ?` or
    /// nothing.
    pub search: Template,
    /// What tells the plan of a search. Also `search`.
    #[serde(default)]
    pub explain: Option<Template>,
    /// Stands in the plan where the vector index is used.
    #[serde(default)]
    pub uses_index: Option<Template>,
    /// A counter that tells the same, for databases whose plan does not show it.
    #[serde(default)]
    pub counter: Option<CounterDef>,
    /// One text: the version.
    pub version: Template,
    /// Where the program or extension came from; one text.
    #[serde(default)]
    pub source: Option<Template>,
    /// Rows of name, value, default: all settings.
    #[serde(default)]
    pub settings: Option<Template>,
    /// Settings that differ from run to run and determine nothing (ports, paths).
    #[serde(default)]
    pub volatile: Vec<String>,
    /// How the index is read back.
    #[serde(default)]
    pub read_back: Option<ReadBackDef>,
    /// One number or nothing: bytes of the vector index.
    #[serde(default)]
    pub index_size: Option<Template>,
    /// One number or nothing: bytes of the table without the vector index.
    #[serde(default)]
    pub table_size: Option<Template>,
    /// Two numbers while an index is built: done, total.
    #[serde(default)]
    pub progress: Option<Template>,
    /// A truth value and, where told, the rows in the index: whether the index is complete; no row where there is
    /// no index. Without it an
    /// index is complete when the build statement returns.
    #[serde(default)]
    pub readiness: Option<Template>,
    /// What is too small for the data.
    #[serde(default)]
    pub advice: Vec<AdviceDef>,
    /// Limit of one statement in bytes (`@@max_allowed_packet`); one number.
    #[serde(default)]
    pub packet: Option<Template>,
    /// Rows of one insert where the plan does not say.
    #[serde(default)]
    pub batch: Option<usize>,
}

/// What one kind of index adds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexSql {
    /// Builds the index on a loaded table, or on an empty one where `build_time = during_load`.
    #[serde(default)]
    pub build: Vec<Template>,
    /// Sets the effort on a connection. Also `effort`, `k`.
    #[serde(default)]
    pub effort: Vec<Template>,
    /// Maintenance after many deletes.
    #[serde(default)]
    pub maintain: Vec<Template>,
}

/// How a vector travels to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VectorForm {
    /// pgvector's binary `vector`: 16-bit dimensions, 16-bit zero, big-endian f32.
    PgVec,
    /// PostgreSQL's binary `bit`: 32-bit number of bits, then the bytes.
    PgBit,
    /// PostgreSQL's binary `real[]`.
    PgFloatArray,
    /// Little-endian f32, one after the other.
    F32Le,
    /// The text `[1,2.5]` as a bound parameter.
    Text,
    /// The same text inside the statement, for databases that take no parameter there.
    Literal,
}

/// The database's names of the types of columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeNames {
    /// 64-bit integer.
    pub int: String,
    /// 64-bit float.
    pub float: String,
    /// Truth value.
    pub bool: String,
    /// Text, compared byte by byte.
    pub text: String,
}

/// A counter of the session that shows whether rows were scanned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CounterDef {
    /// Sets it back.
    pub reset: Template,
    /// Reads it: the last column of the first row.
    pub read: Template,
    /// The highest value under which the index was used. Also `k`.
    pub most: Template,
}

/// How kind and parameters of the index are found in what the catalogue says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadBackDef {
    /// What tells about the index; nothing where there is none.
    pub ask: Template,
    /// `kind`, build parameters and `indexed` (rows in it), each by a pattern whose first group is the value.
    pub find: BTreeMap<String, Pattern>,
    /// The catalogue's word of a kind, where it is another (`hnsw = "VECTOR"`).
    #[serde(default)]
    pub kinds: BTreeMap<String, String>,
    /// Must stand in it too, such as the operator class of the metric.
    #[serde(default)]
    pub holds: Vec<Template>,
}

/// A setting that may be too small for the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdviceDef {
    /// The setting's name, for people.
    pub setting: String,
    /// One number: its value in bytes.
    pub ask: Template,
    /// The bytes that it should have. Also `vectors_bytes`.
    pub at_least: Template,
    /// What happens where it is smaller.
    pub why: String,
}

fn bare_place() -> Template {
    Template::fixed("{{ q }}")
}
