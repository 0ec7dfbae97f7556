//! What PostgreSQL and its client say, as errors of ours.

use crate::sql::address::{Address, password_hint, unreachable};
use engine::{EngineError, ErrorKind};
use postgres::{Error, error::SqlState};
use std::error::Error as _;

/// An error while connecting.
pub(super) fn of_connecting(error: Error, address: &Address) -> EngineError {
    let place = address.place();
    let Some(said) = error.as_db_error() else {
        let cause = deepest(&error);
        // What the client finds out by itself is no matter of the network.
        if cause.contains("password") {
            let text = format!("{place}: the server wants a password; {}", password_hint(false));
            return EngineError::caused(ErrorKind::Denied, text, error);
        }
        let about_tls = ["certificate", "fatal alert", "TLS"].iter().any(|word| cause.contains(word));
        if about_tls || error.to_string().contains("TLS") {
            let text = format!(
                "{place}: TLS failed: {cause}; name the CA by sslrootcert=FILE, or see sslmode in docs/engines.md"
            );
            return EngineError::caused(ErrorKind::Unreachable, text, error);
        }
        return unreachable(&place, &cause);
    };
    let class = &said.code().code()[..2];
    let message = said.message();
    if class == "28" {
        let hint = password_hint(address.password.is_some());
        return EngineError::new(ErrorKind::Denied, format!("{place}: {message}; {hint}"));
    }
    EngineError::new(kind_of(&error), format!("{place}: {message}"))
}

/// An error of a statement.
pub(super) fn of_statement(error: Error, place: &str) -> EngineError {
    let kind = kind_of(&error);
    let text = match error.as_db_error() {
        Some(said) => {
            let mut text = format!("{place}: {} ({})", said.message(), said.code().code());
            for more in [said.detail(), said.hint()].into_iter().flatten() {
                text.push_str(&format!("; {}", more.replace('\n', " ")));
            }
            // That is all there is; the client's error would say it once more.
            return EngineError::new(kind, text);
        }
        None if error.is_closed() => format!("{place}: the server closed the connection"),
        None if kind == ErrorKind::Unreachable => {
            format!("{place}: the connection broke: {}", deepest(&error))
        }
        None => format!("{place}: {error}: {}", deepest(&error)),
    };
    EngineError::caused(kind, text, error)
}

fn kind_of(error: &Error) -> ErrorKind {
    let Some(code) = error.code() else {
        let broken = error.is_closed() || error.source().is_some_and(|e| e.is::<std::io::Error>());
        return if broken { ErrorKind::Unreachable } else { ErrorKind::Refused };
    };
    if [SqlState::INSUFFICIENT_PRIVILEGE, SqlState::READ_ONLY_SQL_TRANSACTION].contains(code) {
        return ErrorKind::Denied;
    }
    if [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::LOCK_NOT_AVAILABLE]
        .contains(code)
    {
        return ErrorKind::Conflict;
    }
    match &code.code()[..2] {
        "28" => ErrorKind::Denied,
        "08" | "57" if *code == SqlState::QUERY_CANCELED => ErrorKind::Timeout,
        "08" | "57" => ErrorKind::Unreachable,
        "53" => ErrorKind::Overloaded,
        _ => ErrorKind::Refused,
    }
}

fn deepest(error: &Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
