//! PostgreSQL's protocol, for PostgreSQL with any extension and for whatever else speaks it.
//!
//! The messages are those of the crate `postgres-protocol` (the lower half of tokio-postgres); they go
//! over a socket that the client's thread itself reads and writes. tokio-postgres was tried: its runtime
//! took twice the system calls for each query (`perf/sql`), which would have counted as the server's.

mod connection;
mod error;
mod socket;
mod values;
mod wire;

use crate::{
    Passwords,
    sql::{SqlEngine, address::Address, dialect::Dialect, protocol::Protocol, tls},
};
use connection::PgConnection;
use engine::{Definition, Engine, EngineError};
use rustls::ClientConfig;
use std::sync::Arc;

/// The engine behind `address`.
///
/// # Errors
/// Where address or definition can't be used.
pub(crate) fn open(
    definition: &Definition,
    address: &str,
    passwords: &Passwords,
) -> Result<Box<dyn Engine>, EngineError> {
    let mut address = Address::parse(address, &["postgres", "postgresql"], 5432)?;
    address.password = passwords.of(&definition.name, "postgres", &address);
    let tls = Arc::new(tls::client_config(&address.tls)?);
    SqlEngine::open(definition, Postgres { address: Arc::new(address), tls })
}

/// See the module.
struct Postgres {
    address: Arc<Address>,
    tls: Arc<ClientConfig>,
}

impl Protocol for Postgres {
    type Connection = PgConnection;
    const DIALECT: Dialect = Dialect::Postgres;

    fn connect(&self) -> Result<PgConnection, EngineError> {
        PgConnection::open(self.address.clone(), self.tls.clone())
    }

    fn place(&self) -> String {
        self.address.place()
    }

    fn client(&self) -> String {
        "annvil's own, with postgres-protocol 0.6".to_owned()
    }

    fn words(&self) -> &'static str {
        "PostgreSQL protocol 3, extended query, binary"
    }
}
