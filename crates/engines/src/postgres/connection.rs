//! One connection to PostgreSQL.

use super::{
    error::of_statement,
    values::{Cells, Raw, Shown, copy_bytes, operand},
};
use crate::sql::{
    protocol::{Answer, Bound, Canceller, Connection},
    rows::Rows,
    statement::{Bind, Statement},
};
use engine::{EngineError, Hits, ReplyKey};
use postgres::{
    Client, Row, SimpleQueryMessage, Statement as Prepared, fallible_iterator::FallibleIterator, types::Type,
};
use std::{
    io::Write,
    sync::{Arc, Mutex, PoisonError},
};
use tokio_postgres_rustls::MakeRustlsConnect;
use types::Value;

/// See the module.
pub(crate) struct PgConnection {
    client: Client,
    notices: Arc<Mutex<Vec<String>>>,
    tls: MakeRustlsConnect,
    /// The server, for messages.
    place: String,
}

/// A prepared statement with what is bound at its places.
pub(crate) struct PgPrepared {
    statement: Prepared,
    binds: Vec<Bind>,
}

impl PgPrepared {
    /// The values in the order of the places.
    fn values<'a>(&'a self, bound: &'a Bound<'_, Vec<u8>>) -> impl ExactSizeIterator<Item = Raw<'a>> {
        self.binds.iter().map(|bind| match bind {
            Bind::Vector => Raw(Some(bound.vector)),
            Bind::Operand(at) => Raw(Some(&bound.operands[*at])),
        })
    }
}

impl PgConnection {
    pub(super) fn new(
        client: Client,
        notices: Arc<Mutex<Vec<String>>>,
        tls: MakeRustlsConnect,
        place: String,
    ) -> Self {
        PgConnection { client, notices, tls, place }
    }

    fn fault(place: &str) -> impl Fn(postgres::Error) -> EngineError {
        move |error| of_statement(error, place)
    }
}

/// Pushes the key in the first column.
fn push(row: &Row, hits: &mut Hits) -> Result<(), EngineError> {
    let wrong = |e: postgres::Error| {
        EngineError::caused(engine::ErrorKind::WrongAnswer, format!("the first column is no key: {e}"), e)
    };
    match row.columns().first().map(|c| c.type_()) {
        Some(&Type::INT8) => hits.push_reply(ReplyKey::Int(row.try_get(0).map_err(wrong)?)),
        Some(&Type::INT4) => hits.push_reply(ReplyKey::Int(row.try_get::<_, i32>(0).map_err(wrong)?.into())),
        _ => hits.push_reply(ReplyKey::Text(row.try_get(0).map_err(wrong)?)),
    }
}

impl Connection for PgConnection {
    type Prepared = PgPrepared;
    type Operand = Vec<u8>;

    fn operand(value: &Value) -> Vec<u8> {
        operand(value)
    }

    fn run(&mut self, statement: &str) -> Result<(), EngineError> {
        self.client.batch_execute(statement).map_err(Self::fault(&self.place))
    }

    fn ask(&mut self, statement: &str) -> Result<Answer, EngineError> {
        let messages = self.client.simple_query(statement).map_err(Self::fault(&self.place))?;
        let texts = |message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect())
            }
            _ => None,
        };
        Ok(messages.into_iter().filter_map(texts).collect())
    }

    fn prepare(&mut self, statement: &Statement) -> Result<PgPrepared, EngineError> {
        let prepared = self.client.prepare(&statement.text).map_err(Self::fault(&self.place))?;
        Ok(PgPrepared { statement: prepared, binds: statement.binds.clone() })
    }

    fn search(
        &mut self,
        prepared: &PgPrepared,
        bound: &Bound<'_, Vec<u8>>,
        hits: &mut Hits,
    ) -> Result<(), EngineError> {
        let fault = Self::fault(&self.place);
        let mut rows = self.client.query_raw(&prepared.statement, prepared.values(bound)).map_err(&fault)?;
        while let Some(row) = rows.next().map_err(&fault)? {
            push(&row, hits)?;
        }
        Ok(())
    }

    fn search_text(&mut self, statement: &str, hits: &mut Hits) -> Result<(), EngineError> {
        for message in self.client.simple_query(statement).map_err(Self::fault(&self.place))? {
            if let SimpleQueryMessage::Row(row) = message {
                hits.push_reply(ReplyKey::Text(row.get(0).unwrap_or("NULL")))?;
            }
        }
        Ok(())
    }

    fn ask_bound(
        &mut self,
        prepared: &PgPrepared,
        bound: &Bound<'_, Vec<u8>>,
    ) -> Result<Answer, EngineError> {
        let fault = Self::fault(&self.place);
        let mut rows = self.client.query_raw(&prepared.statement, prepared.values(bound)).map_err(&fault)?;
        let mut answer = Vec::new();
        while let Some(row) = rows.next().map_err(&fault)? {
            let cells = (0..row.len()).map(|i| row.try_get::<_, Shown>(i).map(|shown| shown.0));
            answer.push(cells.collect::<Result<Vec<_>, _>>().map_err(&fault)?);
        }
        Ok(answer)
    }

    fn insert(&mut self, prepared: &PgPrepared, rows: &Rows<'_>) -> Result<(), EngineError> {
        let cells = Cells::of(rows)?;
        let fault = Self::fault(&self.place);
        let mut answer = self.client.query_raw(&prepared.statement, cells.iter()).map_err(&fault)?;
        while answer.next().map_err(&fault)?.is_some() {}
        Ok(())
    }

    fn copy(&mut self, statement: &str, rows: &Rows<'_>) -> Result<(), EngineError> {
        let bytes = copy_bytes(rows)?;
        let fault = Self::fault(&self.place);
        let mut writer = self.client.copy_in(statement).map_err(&fault)?;
        let sent = writer.write_all(&bytes);
        // Where the server refused, finishing says why; a broken pipe alone does not.
        match (writer.finish(), sent) {
            (Ok(_), Ok(())) => Ok(()),
            (Err(error), _) => Err(fault(error)),
            (Ok(_), Err(error)) => Err(EngineError::caused(
                engine::ErrorKind::Unreachable,
                format!("{}: the connection broke: {error}", self.place),
                error,
            )),
        }
    }

    fn canceller(&self) -> Canceller {
        let (token, tls) = (self.client.cancel_token(), self.tls.clone());
        Box::new(move || {
            // Where it does not get through, it is sent again.
            let _sent_again = token.cancel_query(tls.clone());
        })
    }

    fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
