//! What an engine is, for the rest of Annvil: the traits, the definition file, the error kinds,
//! the contract that every engine is held to, and a scripted fake.
//!
//! What is not here: the name of any product, and the clock. An engine is told what to do; the
//! runner times it. Rows are known to every engine by their number (`u64` key), so answers need
//! no translation.
//!
//! Order of calls in a run: [`Engine::identity`], [`Engine::create`], sessions
//! [`Session::insert`], [`Engine::row_count`], [`Engine::build`], [`Engine::readiness`] until
//! ready, [`Engine::index_info`], [`Engine::sizes`], then for each point [`Engine::encode`],
//! [`Engine::explain`] and sessions [`Session::begin`], [`Session::search`] many times; at the end
//! [`Engine::remove`].

mod capability;
pub mod contract;
mod definition;
mod error;
pub mod fake;
mod hits;
mod pattern;
mod reference;
mod spec;
mod template;
mod traits;

pub use capability::{BuildTime, Capabilities, FilterMode};
pub use definition::{
    Definition, DefinitionError, EffortDef, FileDef, FolderDef, IndexDef, InputDef, ParamDef, ServerDef,
    StepDef, StopSignal, sql,
};
pub use error::{EngineError, ErrorKind};
pub use hits::{Hits, ReplyKey};
pub use pattern::Pattern;
pub use spec::{
    Batch, Control, EncodedSearch, Identity, IndexInfo, IndexSpec, LoadMethod, Param, Params, QueryPlan,
    Readiness, SearchSpec, Setting, Sizes, TableSpec,
};
pub use template::{Names, Template, TemplateError};
pub use traits::{Engine, Session};
