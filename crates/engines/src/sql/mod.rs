//! What all databases that speak SQL have in common: from a definition's templates to statements, from filters
//! to conditions with bound operands, from a table to rows on their way.
//!
//! A protocol (`postgres`, `mysql`) gives a [`protocol::Protocol`] and its [`protocol::Connection`]; the
//! [`server::SqlEngine`] and its sessions are the same for all. The shape of the timed path:
//!
//! ```text
//! encode:  statements, vectors and operands in the protocol's form       (before the clock)
//! begin:   effort set, statements prepared on the connection             (before the clock)
//! search:  bound bytes out, rows in, the first column pushed             (timed)
//! ```

pub(crate) mod address;
pub(crate) mod dialect;
mod form;
mod point;
pub(crate) mod protocol;
mod read_back;
pub(crate) mod rows;
pub(crate) mod server;
mod session;
#[cfg(test)]
mod snapshots;
pub(crate) mod statement;
mod table;
pub(crate) mod tls;
mod watch;

pub(crate) use server::SqlEngine;
