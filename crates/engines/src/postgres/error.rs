//! What PostgreSQL says, as errors of ours. Codes: appendix "PostgreSQL Error Codes" of its manual.

use crate::sql::address::{Address, password_hint};
use engine::{EngineError, ErrorKind};
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::ErrorFields;

/// The parts of an error that matter here.
#[derive(Default)]
struct Said {
    code: String,
    message: String,
    more: Vec<String>,
}

impl Said {
    fn read(fields: ErrorFields<'_>) -> Self {
        let mut said = Said::default();
        let each = |field: postgres_protocol::message::backend::ErrorField<'_>| {
            let value = String::from_utf8_lossy(field.value_bytes()).replace('\n', " ");
            match field.type_() {
                b'C' => said.code = value,
                b'M' => said.message = value,
                // Detail and hint.
                b'D' | b'H' => said.more.push(value),
                _ => {}
            }
            Ok(())
        };
        // An answer that can't be read to its end leaves what was read.
        let _read = fields.for_each(each);
        said
    }

    fn kind(&self) -> ErrorKind {
        match self.code.as_str() {
            // No privilege, or a server that only reads.
            "42501" | "25006" => ErrorKind::Denied,
            // Serialization failure, deadlock, lock not available.
            "40001" | "40P01" | "55P03" => ErrorKind::Conflict,
            // Canceled, by us or by a time limit of the server.
            "57014" => ErrorKind::Timeout,
            code => match code.get(..2) {
                Some("28") => ErrorKind::Denied,
                Some("08" | "57") => ErrorKind::Unreachable,
                Some("53") => ErrorKind::Overloaded,
                _ => ErrorKind::Refused,
            },
        }
    }
}

/// An error of a statement.
pub(super) fn said(fields: ErrorFields<'_>, place: &str) -> EngineError {
    let said = Said::read(fields);
    let mut text = format!("{place}: {} ({})", said.message, said.code);
    // cases.md 100: the usual container gives 64 MB.
    if said.message.contains("shared memory segment") {
        text.push_str("; give the server a larger /dev/shm (--shm-size), or build with --build-threads 1");
    }
    for more in &said.more {
        text.push_str("; ");
        text.push_str(more);
    }
    EngineError::new(said.kind(), text)
}

/// An error while logging in.
pub(super) fn of_login(fields: ErrorFields<'_>, address: &Address) -> EngineError {
    let said = Said::read(fields);
    let place = address.place();
    if said.code.starts_with("28") {
        let hint = password_hint(address.password.is_some());
        return EngineError::new(ErrorKind::Denied, format!("{place}: {}; {hint}", said.message));
    }
    EngineError::new(said.kind(), format!("{place}: {}", said.message))
}

/// We are not let in.
pub(super) fn denied(place: &str, why: &str) -> EngineError {
    EngineError::new(ErrorKind::Denied, format!("{place}: {why}"))
}
