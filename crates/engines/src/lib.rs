//! The engines that this version can drive, one module per protocol, and the definitions built in.
//!
//! What is not here: a clock (the runner times), output, and what a product is like beyond its
//! protocol — that is in its definition (`engines/*.toml` at the repository's root).

pub mod embedded;
mod mysql;
mod passwords;
mod postgres;
mod registry;
mod sql;

pub use passwords::Passwords;
pub use registry::{definitions, find, open};
