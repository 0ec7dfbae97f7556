//! One connection to PostgreSQL.

use super::{
    socket::Socket,
    values::{CopyBuffer, append_cells, operand},
    wire::Wire,
};
use crate::sql::{
    address::Address,
    protocol::{Answer, Bound, Canceller, Connection},
    rows::Rows,
    statement::{Bind, Statement},
};
use bytes::BytesMut;
use engine::{EngineError, ErrorKind, Hits, ReplyKey};
use fallible_iterator::FallibleIterator;
use postgres_protocol::{
    IsNull,
    message::{
        backend::{DataRowBody, Message},
        frontend::{self, BindError},
    },
};
use rustls::ClientConfig;
use std::{
    io::{Read, Write},
    sync::Arc,
};
use types::Value;

/// OIDs of `bigint` and `integer`.
const INT8: u32 = 20;
const INT4: u32 = 23;

/// Formats of values.
const TEXT: i16 = 0;
const BINARY: i16 = 1;

/// See the module.
pub(crate) struct PgConnection {
    wire: Wire,
    address: Arc<Address>,
    tls: Arc<ClientConfig>,
    /// Statements prepared so far, for their names.
    prepared: u64,
    copy: CopyBuffer,
}

/// A prepared statement with what is bound at its places.
pub(crate) struct PgPrepared {
    name: String,
    binds: Vec<Bind>,
    /// The type of its first column; none where it gives no rows.
    first: Option<u32>,
}

impl PgConnection {
    pub(super) fn open(address: Arc<Address>, tls: Arc<ClientConfig>) -> Result<Self, EngineError> {
        let wire = Wire::open(&address, &tls)?;
        Ok(PgConnection { wire, address, tls, prepared: 0, copy: CopyBuffer::default() })
    }

    /// Puts Bind, Execute and Sync into the output.
    fn bind<'a>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = Option<&'a [u8]>>,
        results: i16,
    ) -> Result<(), EngineError> {
        let put = |value: Option<&[u8]>, out: &mut BytesMut| match value {
            None => Ok(IsNull::Yes),
            Some(bytes) => {
                out.extend_from_slice(bytes);
                Ok(IsNull::No)
            }
        };
        let output = &mut self.wire.output;
        let bound = frontend::bind("", name, [BINARY], values, put, [results], output);
        bound.map_err(|e| {
            output.clear();
            let why = match e {
                BindError::Conversion(why) => why.to_string(),
                BindError::Serialization(why) => why.to_string(),
            };
            EngineError::new(ErrorKind::Unsupported, format!("the values can't be bound: {why}"))
        })?;
        let ended = frontend::execute("", 0, output);
        frontend::sync(output);
        ended.map_err(|e| self.wire.broken(&e))
    }

    fn bind_query(
        &mut self,
        prepared: &PgPrepared,
        bound: &Bound<'_, Vec<u8>>,
        results: i16,
    ) -> Result<(), EngineError> {
        let value = |bind: &Bind| match bind {
            Bind::Vector => Some(bound.vector),
            Bind::Operand(at) => Some(bound.operands[*at].as_slice()),
        };
        self.bind(&prepared.name, prepared.binds.iter().map(value), results)
    }

    fn query(&mut self, statement: &str) -> Result<(), EngineError> {
        frontend::query(statement, &mut self.wire.output).map_err(|e| self.wire.broken(&e))?;
        self.wire.send()
    }

    /// The rows of an answer that came as texts.
    fn answer(&mut self) -> Result<Answer, EngineError> {
        let mut answer = Vec::new();
        self.wire.finish(|message| {
            if let Message::DataRow(row) = message {
                answer.push(texts(row)?);
            }
            Ok(())
        })?;
        Ok(answer)
    }
}

/// The cells of a row as texts.
fn texts(row: &DataRowBody) -> Result<Vec<Option<String>>, EngineError> {
    let text = |range: Option<std::ops::Range<usize>>| {
        Ok(range.map(|range| String::from_utf8_lossy(&row.buffer()[range]).into_owned()))
    };
    row.ranges().map(text).collect().map_err(unreadable)
}

fn unreadable(error: std::io::Error) -> EngineError {
    EngineError::new(ErrorKind::WrongAnswer, format!("a row of the answer can't be read: {error}"))
}

/// Pushes the key in the first column, which came in binary and is of type `kind`.
fn push(row: &DataRowBody, kind: Option<u32>, hits: &mut Hits) -> Result<(), EngineError> {
    let first = row.ranges().next().map_err(unreadable)?.flatten();
    let Some(bytes) = first.map(|range| &row.buffer()[range]) else {
        return hits.push_reply(ReplyKey::Text("NULL"));
    };
    hits.push_reply(match (kind, bytes.len()) {
        (Some(INT8), 8) => ReplyKey::Int(i64::from_be_bytes(bytes.try_into().unwrap_or_default())),
        (Some(INT4), 4) => ReplyKey::Int(i32::from_be_bytes(bytes.try_into().unwrap_or_default()).into()),
        _ => ReplyKey::Bytes(bytes),
    })
}

impl Connection for PgConnection {
    type Prepared = PgPrepared;
    type Operand = Vec<u8>;

    fn operand(value: &Value) -> Vec<u8> {
        operand(value)
    }

    fn run(&mut self, statement: &str) -> Result<(), EngineError> {
        self.query(statement)?;
        self.wire.finish(|_| Ok(()))
    }

    fn ask(&mut self, statement: &str) -> Result<Answer, EngineError> {
        self.query(statement)?;
        self.answer()
    }

    fn prepare(&mut self, statement: &Statement) -> Result<PgPrepared, EngineError> {
        self.prepared += 1;
        let name = format!("annvil_{}", self.prepared);
        let output = &mut self.wire.output;
        let put = frontend::parse(&name, &statement.text, [], output)
            .and_then(|()| frontend::describe(b'S', &name, output));
        frontend::sync(output);
        put.map_err(|e| self.wire.broken(&e))?;
        self.wire.send()?;
        let mut first = None;
        self.wire.finish(|message| {
            if let Message::RowDescription(body) = message {
                first = body.fields().next().map_err(unreadable)?.map(|field| field.type_oid());
            }
            Ok(())
        })?;
        Ok(PgPrepared { name, binds: statement.binds.clone(), first })
    }

    fn search(
        &mut self,
        prepared: &PgPrepared,
        bound: &Bound<'_, Vec<u8>>,
        hits: &mut Hits,
    ) -> Result<(), EngineError> {
        self.bind_query(prepared, bound, BINARY)?;
        self.wire.send()?;
        self.wire.finish(|message| match message {
            Message::DataRow(row) => push(row, prepared.first, hits),
            _ => Ok(()),
        })
    }

    fn search_text(&mut self, statement: &str, hits: &mut Hits) -> Result<(), EngineError> {
        self.query(statement)?;
        self.wire.finish(|message| match message {
            // In a simple query every value is a text.
            Message::DataRow(row) => push(row, None, hits),
            _ => Ok(()),
        })
    }

    fn ask_bound(
        &mut self,
        prepared: &PgPrepared,
        bound: &Bound<'_, Vec<u8>>,
    ) -> Result<Answer, EngineError> {
        self.bind_query(prepared, bound, TEXT)?;
        self.wire.send()?;
        self.answer()
    }

    fn insert(&mut self, prepared: &PgPrepared, rows: &Rows<'_>) -> Result<(), EngineError> {
        let (mut bytes, mut cells) = (Vec::new(), Vec::new());
        append_cells(rows, &mut bytes, &mut cells)?;
        let values = cells.iter().map(|cell| cell.clone().map(|range| &bytes[range]));
        self.bind(&prepared.name, values, BINARY)?;
        self.wire.send()?;
        self.wire.finish(|_| Ok(()))
    }

    fn copy(&mut self, statement: &str, rows: &Rows<'_>) -> Result<(), EngineError> {
        self.query(statement)?;
        match self.wire.receive()? {
            Message::CopyInResponse(_) => {}
            Message::ErrorResponse(body) => {
                let error = super::error::said(body.fields(), &self.wire.place);
                self.wire.finish(|_| Ok(()))?;
                return Err(error);
            }
            _ => return Err(self.wire.unexpected()),
        }
        // The server reads what is sent while the next piece is made.
        let wire = &mut self.wire;
        match self.copy.write(rows, |piece| wire.send_bytes(piece)) {
            Ok(()) => frontend::copy_done(&mut wire.output),
            Err(error) if error.kind() == ErrorKind::Unreachable => return Err(error),
            Err(error) => {
                let put = frontend::copy_fail(&error.to_string(), &mut wire.output);
                put.map_err(|e| wire.broken(&e))?;
                wire.send()?;
                // The server repeats our own reason.
                let _repeated = wire.finish(|_| Ok(()));
                return Err(error);
            }
        }
        wire.send()?;
        wire.finish(|_| Ok(()))
    }

    fn canceller(&self) -> Canceller {
        let (address, tls, (process, key)) = (self.address.clone(), self.tls.clone(), self.wire.process);
        Box::new(move || {
            let mut request = BytesMut::new();
            frontend::cancel_request(process, key, &mut request);
            // Where it does not get through, it is sent again. The server closes when it has taken it.
            if let Ok(mut socket) = Socket::connect(&address, &tls)
                && socket.write_all(&request).and_then(|()| socket.flush()).is_ok()
            {
                let _closed = socket.read(&mut [0]);
            }
        })
    }

    fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.wire.notices)
    }
}

impl Drop for PgConnection {
    fn drop(&mut self) {
        self.wire.output.clear();
        frontend::terminate(&mut self.wire.output);
        // A server that is gone needs no goodbye.
        let _gone = self.wire.send();
    }
}
