//! PostgreSQL's protocol, for PostgreSQL with any extension and for whatever else speaks it.
//!
//! The client is tokio-postgres in its blocking form (crate `postgres`): each connection has a
//! runtime of its own on the thread that calls, so clients share nothing.

mod connection;
mod error;
mod values;

use crate::{
    Passwords,
    sql::{
        SqlEngine,
        address::{Address, CONNECT_WITHIN, TlsMode},
        dialect::Dialect,
        protocol::Protocol,
        tls,
    },
};
use connection::PgConnection;
use engine::{Definition, Engine, EngineError};
use postgres::{Config, config::SslMode};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_postgres_rustls::MakeRustlsConnect;

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
    let tls = MakeRustlsConnect::new(tls::client_config(&address.tls)?);
    SqlEngine::open(definition, Postgres { address, tls })
}

/// See the module.
struct Postgres {
    address: Address,
    tls: MakeRustlsConnect,
}

impl Protocol for Postgres {
    type Connection = PgConnection;
    const DIALECT: Dialect = Dialect::Postgres;

    fn connect(&self) -> Result<PgConnection, EngineError> {
        let address = &self.address;
        let notices = Arc::new(Mutex::new(Vec::new()));
        let mut config = Config::new();
        match &address.socket {
            Some(folder) => config.host_path(folder),
            None => config.host(&address.host),
        };
        config.port(address.port).application_name("annvil").connect_timeout(CONNECT_WITHIN);
        config.user(address.user.as_deref().unwrap_or("postgres"));
        if let Some(password) = &address.password {
            config.password(password.reveal());
        }
        if let Some(database) = &address.database {
            config.dbname(database);
        }
        config.ssl_mode(match address.tls.mode {
            TlsMode::Off => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            _ => SslMode::Require,
        });
        let heard = notices.clone();
        config.notice_callback(move |notice| {
            let text = match notice.hint() {
                Some(hint) => format!("{}; {hint}", notice.message()),
                None => notice.message().to_owned(),
            };
            heard.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        });
        let client = config.connect(self.tls.clone()).map_err(|e| error::of_connecting(e, address))?;
        Ok(PgConnection::new(client, notices, self.tls.clone(), address.place()))
    }

    fn place(&self) -> String {
        self.address.place()
    }

    fn client(&self) -> String {
        // The version of Cargo.lock; a test holds them together.
        "rust-postgres 0.19 (tokio-postgres 0.7)".to_owned()
    }

    fn words(&self) -> &'static str {
        "PostgreSQL protocol 3, extended query, binary"
    }
}
