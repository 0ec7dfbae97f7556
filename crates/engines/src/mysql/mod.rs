//! The MySQL protocol, for MariaDB and whatever else speaks it.
//!
//! The client is the crate `mysql`, which blocks: a client is a thread, so mysql_async would bring a runtime
//! for nothing.

mod connection;
mod error;

use crate::{
    Passwords,
    sql::{
        SqlEngine,
        address::{Address, CONNECT_WITHIN, TlsMode},
        dialect::Dialect,
        protocol::Protocol,
    },
};
use connection::MyConnection;
use engine::{Definition, Engine, EngineError};
use mysql::{ClientIdentity, Conn, DriverError, Error, OptsBuilder, SslOpts};

/// The engine behind `address`.
///
/// # Errors
/// Where address or definition can't be used.
pub(crate) fn open(
    definition: &Definition,
    address: &str,
    passwords: &Passwords,
) -> Result<Box<dyn Engine>, EngineError> {
    let mut address = Address::parse(address, &["mysql", "mariadb"], 3306)?;
    address.password = passwords.of(&definition.name, "mysql", &address);
    let tls = tls(&address);
    SqlEngine::open(definition, MySql { address, tls })
}

/// See the module.
struct MySql {
    address: Address,
    tls: Option<SslOpts>,
}

fn tls(address: &Address) -> Option<SslOpts> {
    if address.tls.mode == TlsMode::Off {
        return None;
    }
    let identity = address.tls.identity.clone().map(|(cert, key)| ClientIdentity::new(cert, key));
    let options = SslOpts::default()
        .with_root_cert_path(address.tls.ca.clone())
        .with_client_identity(identity)
        .with_danger_skip_domain_validation(address.tls.mode < TlsMode::VerifyFull)
        .with_danger_accept_invalid_certs(address.tls.mode < TlsMode::VerifyCa);
    Some(options)
}

impl MySql {
    fn options(&self, tls: Option<SslOpts>) -> OptsBuilder {
        let address = &self.address;
        let options = OptsBuilder::new()
            .user(address.user.clone().or_else(|| Some("root".to_owned())))
            .pass(address.password.as_ref().map(|p| p.reveal().to_owned()))
            .db_name(address.database.clone())
            .ssl_opts(tls)
            // A socket is used where the address names one, never found out by the client.
            .prefer_socket(false)
            .tcp_connect_timeout(Some(CONNECT_WITHIN))
            // Each session prepares its own statements once.
            .stmt_cache_size(Some(0));
        match &address.socket {
            Some(socket) => options.socket(Some(socket.display().to_string())),
            None => options.ip_or_hostname(Some(address.host.clone())).tcp_port(address.port),
        }
    }
}

impl Protocol for MySql {
    type Connection = MyConnection;
    const DIALECT: Dialect = Dialect::Mysql;

    fn connect(&self) -> Result<MyConnection, EngineError> {
        let mut options = self.options(self.tls.clone());
        let mut opened = Conn::new(options.clone());
        let lacking = matches!(opened, Err(Error::DriverError(DriverError::TlsNotSupported)));
        if lacking && self.address.tls.mode == TlsMode::Prefer {
            options = self.options(None);
            opened = Conn::new(options.clone());
        }
        let connection = opened.map_err(|e| error::of_connecting(e, &self.address))?;
        Ok(MyConnection::new(connection, options, self.address.place()))
    }

    fn place(&self) -> String {
        self.address.place()
    }

    fn client(&self) -> String {
        "rust-mysql-simple 28".to_owned()
    }

    fn words(&self) -> &'static str {
        "MySQL protocol, prepared statements"
    }
}
