//! Engines that run inside Annvil's process: the usearch library and our own exact scan.
//!
//! No server and no network: what they show is an index alone, which every definition says in its
//! asymmetries.

pub mod flat;
mod point;
mod table;
pub mod usearch;

use engine::{Definition, EngineError, ErrorKind};

/// Embedded engines take no options of the protocol.
fn no_options(definition: &Definition) -> Result<(), EngineError> {
    match definition.options.keys().next() {
        None => Ok(()),
        Some(name) => Err(EngineError::new(
            ErrorKind::Unsupported,
            format!("{} has no option {name:?}; it has none", definition.name),
        )),
    }
}

fn no_table(name: &str) -> EngineError {
    EngineError::new(ErrorKind::Refused, format!("{name}: there is no table; create it first"))
}
