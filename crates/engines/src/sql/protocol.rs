//! What a protocol must do for the SQL engine: one connection, blocking, nothing shared.

use super::{dialect::Dialect, rows::Rows, statement::Statement};
use engine::{EngineError, Hits};
use types::Value;

/// Rows of texts, as a database shows them; none is NULL.
pub(crate) type Answer = Vec<Vec<Option<String>>>;

/// Stops what a connection is doing, from another thread.
pub(crate) type Canceller = Box<dyn Fn() + Send + Sync>;

/// A protocol with the address and credentials of one server.
pub(crate) trait Protocol: Send + Sync + 'static {
    /// One connection.
    type Connection: Connection;
    /// How SQL is spelt.
    const DIALECT: Dialect;

    /// A new connection.
    ///
    /// # Errors
    /// Where the server can't be reached or does not let us in.
    fn connect(&self) -> Result<Self::Connection, EngineError>;

    /// The server, for messages: host and port, or the socket.
    fn place(&self) -> String;

    /// The client library with its version.
    fn client(&self) -> String;

    /// The protocol, in words.
    fn words(&self) -> &'static str;
}

/// What is bound to one query of a point.
pub(crate) struct Bound<'a, O> {
    /// The vector in its form.
    pub(crate) vector: &'a [u8],
    /// The filter's operands.
    pub(crate) operands: &'a [O],
}

/// One connection.
pub(crate) trait Connection: Send + 'static {
    /// A statement that the server has prepared.
    type Prepared: Send;
    /// A filter's operand, encoded before the clock starts.
    type Operand: Send + Sync;

    /// Encodes an operand.
    fn operand(value: &Value) -> Self::Operand;

    /// Runs a statement whose answer does not matter.
    ///
    /// # Errors
    /// What the server says.
    fn run(&mut self, statement: &str) -> Result<(), EngineError>;

    /// Runs a statement and gives its answer as texts.
    ///
    /// # Errors
    /// What the server says.
    fn ask(&mut self, statement: &str) -> Result<Answer, EngineError>;

    /// Prepares a statement.
    ///
    /// # Errors
    /// What the server says.
    fn prepare(&mut self, statement: &Statement) -> Result<Self::Prepared, EngineError>;

    /// Runs a prepared search and pushes the first column of each row. The timed call.
    ///
    /// # Errors
    /// What the server says, or a key that is none of ours.
    fn search(
        &mut self,
        prepared: &Self::Prepared,
        bound: &Bound<'_, Self::Operand>,
        hits: &mut Hits,
    ) -> Result<(), EngineError>;

    /// The same for a statement with its values inside.
    ///
    /// # Errors
    /// As [`Connection::search`].
    fn search_text(&mut self, statement: &str, hits: &mut Hits) -> Result<(), EngineError>;

    /// Runs a prepared statement with bound values and gives its answer as texts.
    ///
    /// # Errors
    /// What the server says.
    fn ask_bound(
        &mut self,
        prepared: &Self::Prepared,
        bound: &Bound<'_, Self::Operand>,
    ) -> Result<Answer, EngineError>;

    /// Inserts rows by a prepared `INSERT` that has as many places.
    ///
    /// # Errors
    /// What the server says.
    fn insert(&mut self, prepared: &Self::Prepared, rows: &Rows<'_>) -> Result<(), EngineError>;

    /// Inserts rows by the protocol's bulk load.
    ///
    /// # Errors
    /// What the server says; [`engine::ErrorKind::Unsupported`] where the protocol has none.
    fn copy(&mut self, statement: &str, rows: &Rows<'_>) -> Result<(), EngineError>;

    /// What stops the statement that this connection runs.
    fn canceller(&self) -> Canceller;

    /// What the server remarked since the last call, a line each.
    fn notices(&mut self) -> Vec<String>;
}
