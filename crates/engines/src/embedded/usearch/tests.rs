//! The usearch engine on small data of its own.
