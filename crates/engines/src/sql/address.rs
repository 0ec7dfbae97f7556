//! Where a server is and how to get in: `postgres://me@db1:5432/bench?sslmode=verify-full&sslrootcert=ca.pem`.
//!
//! One reading for both protocols. TLS is set in the words of libpq or of the mysql client:
//!
//! | libpq | mysql | meaning |
//! |---|---|---|
//! | `sslmode=disable` | `ssl-mode=DISABLED` | no TLS |
//! | `sslmode=prefer` (the default, but off on this machine) | `ssl-mode=PREFERRED` | TLS where the server has it, any certificate |
//! | `sslmode=require` | `ssl-mode=REQUIRED` | TLS, any certificate |
//! | `sslmode=verify-ca` | `ssl-mode=VERIFY_CA` | TLS, a certificate of a known CA |
//! | `sslmode=verify-full` | `ssl-mode=VERIFY_IDENTITY` | and for this host |
//! | `sslrootcert=FILE` | `ssl-ca=FILE` | the CA; alone it means verify-full |
//! | `sslcert=FILE`, `sslkey=FILE` | `ssl-cert=FILE`, `ssl-key=FILE` | the client's certificate and key |

use engine::{EngineError, ErrorKind};
use std::path::PathBuf;
use types::Secret;
use url::Url;

/// How long a connection may take to come about.
pub(crate) const CONNECT_WITHIN: std::time::Duration = std::time::Duration::from_secs(8);

/// A server's address in parts.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) database: Option<String>,
    /// A local socket (its folder for PostgreSQL) in place of host and port.
    pub(crate) socket: Option<PathBuf>,
    pub(crate) tls: Tls,
}

/// What TLS is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tls {
    pub(crate) mode: TlsMode,
    /// The CA's certificate, PEM; the Mozilla list where none is given.
    pub(crate) ca: Option<PathBuf>,
    /// The client's certificate and key, PEM.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
}

/// How much is demanded of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TlsMode {
    Off,
    #[default]
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Address {
    /// Reads an address of one of these schemes. Errors never repeat the address, which may hold a
    /// password.
    ///
    /// # Errors
    /// One line with what is wrong.
    pub(crate) fn parse(text: &str, schemes: &[&str], default_port: u16) -> Result<Self, EngineError> {
        let wrong = |what: String| {
            let form = format!("{}://user@host:{default_port}/database", schemes[0]);
            EngineError::new(
                ErrorKind::Unsupported,
                format!("the address can't be used: {what}; the form is {form}"),
            )
        };
        let url = Url::parse(text).map_err(|e| wrong(e.to_string()))?;
        if !schemes.contains(&url.scheme()) {
            return Err(wrong(format!("the scheme is {:?}", url.scheme())));
        }
        let decoded =
            |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
        let given = |text: &str| Some(decoded(text)).filter(|t| !t.is_empty());
        let mut address = Address {
            host: url.host_str().filter(|h| !h.is_empty()).map_or_else(|| "127.0.0.1".into(), decoded),
            port: url.port().unwrap_or(default_port),
            user: given(url.username()),
            password: url.password().map(|p| Secret::new(decoded(p))),
            database: given(url.path().trim_start_matches('/')),
            socket: None,
            tls: Tls::default(),
        };
        let (mut mode, mut cert, mut key) = (None, None, None);
        for (name, value) in url.query_pairs() {
            let value = value.into_owned();
            match name.as_ref() {
                "host" | "socket" => address.socket = Some(value.into()),
                "user" => address.user = Some(value),
                "password" => address.password = Some(Secret::new(value)),
                "sslmode" | "ssl-mode" => mode = Some(TlsMode::parse(&value).map_err(wrong)?),
                "sslrootcert" | "ssl-ca" => address.tls.ca = Some(value.into()),
                "sslcert" | "ssl-cert" => cert = Some(PathBuf::from(value)),
                "sslkey" | "ssl-key" => key = Some(PathBuf::from(value)),
                other => {
                    let known = "host, socket, user, password, sslmode, sslrootcert, sslcert, sslkey";
                    return Err(wrong(format!("unknown parameter {other:?}; known: {known}")));
                }
            }
        }
        address.tls.identity = match (cert, key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => return Err(wrong("sslcert and sslkey belong together".into())),
        };
        let own = match address.tls.ca {
            Some(_) => TlsMode::VerifyFull,
            None if address.on_this_machine() => TlsMode::Off,
            None => TlsMode::Prefer,
        };
        address.tls.mode = mode.unwrap_or(own);
        for file in
            [address.tls.ca.as_ref(), address.tls.identity.as_ref().map(|(c, _)| c)].into_iter().flatten()
        {
            if let Err(e) = std::fs::metadata(file) {
                return Err(wrong(format!("{}: {e}", file.display())));
            }
        }
        Ok(address)
    }

    /// Whether what is sent never leaves this machine.
    fn on_this_machine(&self) -> bool {
        let loopback =
            self.host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().map(|ip| ip.is_loopback());
        self.socket.is_some() || self.host == "localhost" || loopback.unwrap_or(false)
    }

    /// The server in messages: host and port, or the socket.
    pub(crate) fn place(&self) -> String {
        match &self.socket {
            Some(socket) => socket.display().to_string(),
            None => format!("{}:{}", self.host, self.port),
        }
    }
}

impl TlsMode {
    fn parse(word: &str) -> Result<Self, String> {
        Ok(match word.to_ascii_lowercase().replace('_', "-").as_str() {
            "disable" | "disabled" => TlsMode::Off,
            "prefer" | "preferred" | "allow" => TlsMode::Prefer,
            "require" | "required" => TlsMode::Require,
            "verify-ca" => TlsMode::VerifyCa,
            "verify-full" | "verify-identity" => TlsMode::VerifyFull,
            other => {
                return Err(format!(
                    "sslmode {other:?} is none of disable, prefer, require, verify-ca, verify-full"
                ));
            }
        })
    }
}

/// What to do about a refused password, for messages.
pub(crate) fn password_hint(given: bool) -> &'static str {
    if given {
        "check user and password"
    } else {
        "give the password by ANNVIL_PASSWORD, --password-file or --ask-password"
    }
}

/// Why no connection came about, and what to do, for an error of the operating system.
pub(crate) fn unreachable(place: &str, cause: &str) -> EngineError {
    let text = format!("no server answers at {place} ({cause}); is it running, are host and port right?");
    EngineError::new(ErrorKind::Unreachable, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Address, String> {
        Address::parse(text, &["postgres", "postgresql"], 5432).map_err(|e| e.to_string())
    }

    #[test]
    fn parts_are_found_and_decoded() {
        let address = parse("postgresql://me:p%40ss@db1/bench?sslmode=require").unwrap();
        assert_eq!((address.host.as_str(), address.port), ("db1", 5432));
        assert_eq!(address.user.as_deref(), Some("me"));
        assert_eq!(address.password.unwrap().reveal(), "p@ss");
        assert_eq!(address.database.as_deref(), Some("bench"));
        assert_eq!(address.tls.mode, TlsMode::Require);
        let address = parse("postgres:///bench?host=/run/postgresql").unwrap();
        assert_eq!(address.place(), "/run/postgresql");
        assert_eq!(parse("postgres://h/b?ssl-mode=VERIFY_IDENTITY").unwrap().tls.mode, TlsMode::VerifyFull);
    }

    /// cases.md 114: a CA alone means that the server is verified.
    #[test]
    fn a_ca_alone_means_full_verification() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let with_ca = format!("postgres://h/b?sslrootcert={}", file.path().display());
        assert_eq!(parse(&with_ca).unwrap().tls.mode, TlsMode::VerifyFull);
        assert!(parse("postgres://h/b?sslrootcert=/no/such.pem").unwrap_err().contains("/no/such.pem"));
        assert!(parse("postgres://h/b?sslcert=x.pem").unwrap_err().contains("sslkey"));
    }

    #[test]
    fn errors_say_what_is_wrong_and_never_repeat_a_password() {
        for text in [
            "mysql://me:hunter2@h/b",
            "postgres://me:hunter2@h/b?sslmod=x",
            "postgres://me:hunter2@h:99999/b",
        ] {
            let error = parse(text).unwrap_err();
            assert!(!error.contains("hunter2") && error.contains("postgres://user@host"), "{error}");
        }
        assert!(parse("postgres://h/b?sslmode=maybe").unwrap_err().contains("verify-full"));
    }
}
