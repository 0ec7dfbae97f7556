//! Data sets: vectors, queries, columns and truth, from files of many formats.
//!
//! What is here: one module per file format, Annvil's own dataset directory,
//! the catalogue of well-known sets, generators, and every check that needs no distance. What is
//! not: distances (crate `exact`) and engines.
//!
//! The way in is [`open`]: it recognises the format, maps what can be mapped, streams what cannot
//! into a cached flat file that is then mapped, and gives a [`Dataset`].

mod bigann;
mod builtin;
pub mod catalogue;
mod convert;
pub mod csv;
pub mod describe;
pub mod directory;
mod error;
pub mod fetch;
mod filtered;
mod flat;
mod format;
pub mod generate;
pub mod hash;
mod hdf5;
mod hdf5_attrs;
mod hdf5_raw;
mod hdf5_types;
mod lzf;
mod mapping;
mod model;
mod neighbours;
mod npy;
mod open;
pub mod parquet;
mod scan;
mod table;
mod texmex;
mod tidy;
mod truth_file;
pub mod validate;
pub mod write;

pub use builtin::builtin;
pub use error::DatasetError;
pub use hash::{HASH_CHUNK_ROWS, chunk_digests, hash_of_chunks};
pub use model::{Dataset, FilteredTruth, Hashes};
pub use open::{OpenOptions, open};
pub use truth_file::{TruthFile, read_truth};
