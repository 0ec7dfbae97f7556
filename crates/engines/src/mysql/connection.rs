//! One connection of the MySQL protocol.

use super::error::of_statement;
use crate::sql::{
    protocol::{Answer, Bound, Canceller, Connection},
    rows::{Cell, Rows},
    statement::{Bind, Statement},
};
use engine::{EngineError, ErrorKind, Hits, ReplyKey};
use mysql::{
    Conn, OptsBuilder, Params, QueryResult, Row, Statement as Prepared, Value as Sent,
    prelude::{Protocol, Queryable},
};
use types::Value;

/// See the module.
pub(crate) struct MyConnection {
    connection: Conn,
    options: OptsBuilder,
    /// The server, for messages.
    place: String,
    notices: Vec<String>,
}

/// A prepared statement with what is bound at its places.
pub(crate) struct MyPrepared {
    statement: Prepared,
    binds: Vec<Bind>,
}

impl MyPrepared {
    fn values(&self, bound: &Bound<'_, Sent>) -> Params {
        let value = |bind: &Bind| match bind {
            Bind::Vector => Sent::Bytes(bound.vector.to_vec()),
            Bind::Operand(at) => bound.operands[*at].clone(),
        };
        params(self.binds.iter().map(value).collect())
    }
}

fn params(values: Vec<Sent>) -> Params {
    if values.is_empty() { Params::Empty } else { Params::Positional(values) }
}

impl MyConnection {
    pub(super) fn new(connection: Conn, options: OptsBuilder, place: String) -> Self {
        MyConnection { connection, options, place, notices: Vec::new() }
    }
}

/// Pushes the key in the first column of each row.
fn push_all<P: Protocol>(
    rows: QueryResult<'_, '_, '_, P>,
    place: &str,
    hits: &mut Hits,
) -> Result<(), EngineError> {
    for row in rows {
        let row = row.map_err(|e| of_statement(e, place))?;
        hits.push_reply(match row.as_ref(0) {
            Some(Sent::Int(key)) => ReplyKey::Int(*key),
            Some(Sent::UInt(key)) => ReplyKey::Unsigned(*key),
            Some(Sent::Double(key)) => ReplyKey::Float(*key),
            Some(Sent::Bytes(key)) => ReplyKey::Bytes(key),
            _ => ReplyKey::Text("NULL"),
        })?;
    }
    Ok(())
}

fn all_texts<P: Protocol>(rows: QueryResult<'_, '_, '_, P>, place: &str) -> Result<Answer, EngineError> {
    rows.map(|row| row.map(texts).map_err(|e| of_statement(e, place))).collect()
}

fn texts(row: Row) -> Vec<Option<String>> {
    let text = |value: Sent| match value {
        Sent::NULL => None,
        Sent::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Sent::Int(v) => Some(v.to_string()),
        Sent::UInt(v) => Some(v.to_string()),
        Sent::Float(v) => Some(v.to_string()),
        Sent::Double(v) => Some(v.to_string()),
        other => Some(other.as_sql(true).trim_matches('\'').to_owned()),
    };
    row.unwrap().into_iter().map(text).collect()
}

impl Connection for MyConnection {
    type Prepared = MyPrepared;
    type Operand = Sent;

    fn operand(value: &Value) -> Sent {
        match value {
            Value::Int(v) => Sent::Int(*v),
            Value::Float(v) => Sent::Double(*v),
            Value::Bool(v) => Sent::Int(i64::from(*v)),
            Value::Text(v) => Sent::Bytes(v.as_bytes().to_vec()),
        }
    }

    fn run(&mut self, statement: &str) -> Result<(), EngineError> {
        self.connection.query_drop(statement).map_err(|e| of_statement(e, &self.place))?;
        if self.connection.warnings() > 0 {
            let warnings = self.ask("SHOW WARNINGS")?;
            self.notices.extend(warnings.into_iter().filter_map(|row| row.into_iter().nth(2).flatten()));
        }
        Ok(())
    }

    fn ask(&mut self, statement: &str) -> Result<Answer, EngineError> {
        let rows = self.connection.query_iter(statement).map_err(|e| of_statement(e, &self.place))?;
        all_texts(rows, &self.place)
    }

    fn prepare(&mut self, statement: &Statement) -> Result<MyPrepared, EngineError> {
        let prepared = self.connection.prep(&statement.text).map_err(|e| of_statement(e, &self.place))?;
        Ok(MyPrepared { statement: prepared, binds: statement.binds.clone() })
    }

    fn search(
        &mut self,
        prepared: &MyPrepared,
        bound: &Bound<'_, Sent>,
        hits: &mut Hits,
    ) -> Result<(), EngineError> {
        let rows = self
            .connection
            .exec_iter(&prepared.statement, prepared.values(bound))
            .map_err(|e| of_statement(e, &self.place))?;
        push_all(rows, &self.place, hits)
    }

    fn search_text(&mut self, statement: &str, hits: &mut Hits) -> Result<(), EngineError> {
        let rows = self.connection.query_iter(statement).map_err(|e| of_statement(e, &self.place))?;
        push_all(rows, &self.place, hits)
    }

    fn ask_bound(&mut self, prepared: &MyPrepared, bound: &Bound<'_, Sent>) -> Result<Answer, EngineError> {
        let rows = self
            .connection
            .exec_iter(&prepared.statement, prepared.values(bound))
            .map_err(|e| of_statement(e, &self.place))?;
        all_texts(rows, &self.place)
    }

    fn insert(&mut self, prepared: &MyPrepared, rows: &Rows<'_>) -> Result<(), EngineError> {
        let mut values = Vec::with_capacity(rows.len() * (rows.columns.len() + 2));
        let mut scratch = Vec::new();
        for row in 0..rows.len() {
            values.push(Sent::Int(rows.key(row)));
            values.extend(rows.cells(row).map(|cell| match cell {
                Cell::Null => Sent::NULL,
                Cell::Int(v) => Sent::Int(v),
                Cell::Float(v) => Sent::Double(v),
                Cell::Bool(v) => Sent::Int(i64::from(v)),
                Cell::Text(v) => Sent::Bytes(v.as_bytes().to_vec()),
            }));
            let mut vector = Vec::new();
            rows.vector(row, &mut scratch, &mut vector)?;
            values.push(Sent::Bytes(vector));
        }
        self.connection
            .exec_drop(&prepared.statement, params(values))
            .map_err(|e| of_statement(e, &self.place))
    }

    fn copy(&mut self, _statement: &str, _rows: &Rows<'_>) -> Result<(), EngineError> {
        let text = "the MySQL protocol has no binary bulk load; leave `copy` out of the definition";
        Err(EngineError::new(ErrorKind::Unsupported, text))
    }

    fn canceller(&self) -> Canceller {
        let (options, id) = (self.options.clone(), self.connection.connection_id());
        Box::new(move || {
            // Where it does not get through, it is sent again.
            let _sent_again =
                Conn::new(options.clone()).and_then(|mut c| c.query_drop(format!("KILL QUERY {id}")));
        })
    }

    fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }
}
