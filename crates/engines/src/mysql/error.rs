//! What MySQL servers and their client say, as errors of ours. Numbers: the servers' own lists of errors.

use crate::sql::address::{Address, password_hint, unreachable};
use engine::{EngineError, ErrorKind};
use mysql::{DriverError, Error};

/// An error while connecting.
pub(super) fn of_connecting(error: Error, address: &Address) -> EngineError {
    let place = address.place();
    match &error {
        Error::MySqlError(said) if matches!(said.code, 1044 | 1045 | 1698) => {
            let hint = password_hint(address.password.is_some());
            EngineError::new(ErrorKind::Denied, format!("{place}: {}; {hint}", said.message))
        }
        Error::MySqlError(said) => {
            EngineError::new(kind_of(&error), format!("{place}: {} ({})", said.message, said.code))
        }
        Error::TlsError(cause) => {
            EngineError::new(ErrorKind::Unreachable, tls_failed(&place, &cause.to_string()))
        }
        Error::DriverError(DriverError::TlsNotSupported) => {
            let text = format!("{place}: the server has no TLS, which sslmode demands");
            EngineError::caused(ErrorKind::Unreachable, text, error)
        }
        Error::DriverError(DriverError::CouldNotConnect(Some((_, cause, _)))) => unreachable(&place, cause),
        Error::DriverError(DriverError::ConnectTimeout) => unreachable(&place, "no answer in time"),
        other => match tls_cause(&other.to_string()) {
            Some(cause) => EngineError::new(ErrorKind::Unreachable, tls_failed(&place, &cause)),
            None => unreachable(&place, &other.to_string()),
        },
    }
}

fn tls_failed(place: &str, cause: &str) -> String {
    format!(
        "{place}: TLS failed: {cause}; name the CA by sslrootcert=FILE, or see sslmode in docs/engines.md"
    )
}

/// What went wrong in a handshake: the client wraps it into an error of reading or writing.
fn tls_cause(text: &str) -> Option<String> {
    let about_tls = ["certificate", "fatal alert", "TLS"].iter().any(|word| text.contains(word));
    let inner = text.rsplit_once('`').map_or(text, |(_, inner)| inner);
    about_tls.then(|| inner.trim_end_matches([' ', '}', '\'']).to_owned())
}

/// An error of a statement.
pub(super) fn of_statement(error: Error, place: &str) -> EngineError {
    let kind = kind_of(&error);
    let text = match &error {
        // That is all there is; the client's error would say it once more.
        Error::MySqlError(said) => {
            return EngineError::new(kind, format!("{place}: {} ({})", said.message, said.code));
        }
        _ if kind == ErrorKind::Unreachable => format!("{place}: the connection broke: {error}"),
        _ => format!("{place}: {error}"),
    };
    EngineError::caused(kind, text, error)
}

fn kind_of(error: &Error) -> ErrorKind {
    let code = match error {
        Error::MySqlError(said) => said.code,
        Error::IoError(_) | Error::CodecError(_) | Error::TlsError(_) => return ErrorKind::Unreachable,
        Error::DriverError(DriverError::ConnectTimeout | DriverError::CouldNotConnect(_)) => {
            return ErrorKind::Unreachable;
        }
        _ => return ErrorKind::Refused,
    };
    match code {
        // Deadlock, lock time-out, row changed since it was read.
        1213 | 1205 | 1020 => ErrorKind::Conflict,
        // No access to database, table, column, for want of a privilege, or to a server that is read-only.
        1044 | 1045 | 1142 | 1143 | 1227 | 1290 | 1698 => ErrorKind::Denied,
        // Disk full, out of memory, too many connections, table full.
        1021 | 1037 | 1038 | 1040 | 1041 | 1114 => ErrorKind::Overloaded,
        // Killed or out of time.
        1317 | 1969 | 3024 => ErrorKind::Timeout,
        // Shutting down, connection killed.
        1053 | 1927 => ErrorKind::Unreachable,
        _ => ErrorKind::Refused,
    }
}
