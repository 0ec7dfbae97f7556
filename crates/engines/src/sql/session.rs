//! The [`Session`] of a database that speaks SQL: one connection, one thread.

use super::{
    point::Point,
    protocol::{Connection, Protocol},
    rows::Rows,
    server::Shared,
    table::{Table, fill},
};
use engine::{Batch, EncodedSearch, EngineError, ErrorKind, Hits, Session};
use std::{collections::HashMap, sync::Arc, thread, time::Duration};

/// How often a batch is sent again after a conflict between writers, and the longest pause between.
const MOST_RETRIES: u64 = 50;
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Most places that one statement has, in both protocols.
const MOST_PLACES: usize = 65_535;

/// Share of the server's packet limit that one insert may take.
const PACKET_SHARE: f64 = 0.8;

/// Keys in one `DELETE`.
const KEYS_AT_ONCE: usize = 1000;

/// See the module.
pub(crate) struct SqlSession<P: Protocol> {
    shared: Arc<Shared<P>>,
    connection: P::Connection,
    search: Option<Begun<P::Connection>>,
    loading: Option<Loading<P::Connection>>,
}

/// A point begun: its statements prepared on this connection.
struct Begun<C: Connection> {
    search: Arc<EncodedSearch>,
    prepared: Vec<C::Prepared>,
}

/// A table that rows go into.
struct Loading<C: Connection> {
    table: Arc<Table>,
    copy: Option<String>,
    /// Prepared inserts by their number of rows.
    inserts: HashMap<usize, C::Prepared>,
    /// The server's limit of one statement, in bytes.
    packet: Option<usize>,
}

impl<P: Protocol> SqlSession<P> {
    pub(crate) fn new(shared: Arc<Shared<P>>) -> Result<Self, EngineError> {
        let connection = shared.connect()?;
        Ok(SqlSession { shared, connection, search: None, loading: None })
    }

    /// Makes ready for the table that is there now.
    fn loading(&mut self) -> Result<(), EngineError> {
        let table = self.shared.table()?;
        if self.loading.as_ref().is_some_and(|l| Arc::ptr_eq(&l.table, &table)) {
            return Ok(());
        }
        let packet = match &self.shared.sql.packet {
            None => None,
            Some(template) => {
                let answer = self.connection.ask(&fill(template, table.names())?)?;
                let text = answer.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
                text.and_then(|t| t.parse::<usize>().ok())
            }
        };
        let copy = table.copy(&self.shared.sql)?;
        self.loading = Some(Loading { table, copy, inserts: HashMap::new(), packet });
        Ok(())
    }
}

impl<C: Connection> Loading<C> {
    /// Rows that one `INSERT` takes.
    fn rows_at_once(&self, rows: &Rows<'_>) -> usize {
        let by_places = MOST_PLACES / (self.table.spec.columns.len() + 2);
        let by_bytes = self
            .packet
            .map_or(usize::MAX, |limit| (limit as f64 * PACKET_SHARE / rows.row_bytes() as f64) as usize);
        rows.len().min(by_places).min(by_bytes).max(1)
    }
}

/// Tries again after a conflict between writers, with growing pauses. Gives how often.
fn retried(mut attempt: impl FnMut() -> Result<(), EngineError>) -> Result<u64, EngineError> {
    let mut retries = 0;
    loop {
        match attempt() {
            Ok(()) => return Ok(retries),
            Err(e) if e.kind() == ErrorKind::Conflict && retries < MOST_RETRIES => retries += 1,
            Err(e) if e.kind() == ErrorKind::Conflict => {
                let text =
                    format!("after {MOST_RETRIES} more attempts there is still a conflict between writers");
                return Err(EngineError::caused(ErrorKind::Conflict, text, e));
            }
            Err(e) => return Err(e),
        }
        thread::sleep(Duration::from_millis(retries * retries).min(LONGEST_PAUSE));
    }
}

impl<P: Protocol> Session for SqlSession<P> {
    fn insert(&mut self, batch: &Batch<'_>) -> Result<u64, EngineError> {
        self.loading()?;
        let (shared, connection) = (&self.shared, &mut self.connection);
        let Some(loading) = &mut self.loading else { unreachable!("made above") };
        let rows = Rows::new(batch, &loading.table.spec, loading.table.form)?;
        if let Some(copy) = &loading.copy {
            return retried(|| connection.copy(copy, &rows));
        }
        let (step, mut retries) = (loading.rows_at_once(&rows), 0);
        for start in (0..rows.len()).step_by(step) {
            let part = rows.part(start..(start + step).min(rows.len()));
            if !loading.inserts.contains_key(&part.len()) {
                // Only the full statement and the last, shorter one are worth keeping.
                loading.inserts.retain(|&rows, _| rows == step);
                let statement = loading.table.insert(&shared.sql, part.len())?;
                loading.inserts.insert(part.len(), connection.prepare(&statement)?);
            }
            let prepared = &loading.inserts[&part.len()];
            retries += retried(|| connection.insert(prepared, &part))?;
        }
        Ok(retries)
    }

    fn delete(&mut self, keys: &[u64]) -> Result<(), EngineError> {
        let table = self.shared.table()?;
        let Some(template) = &self.shared.sql.delete else {
            let text = format!("{} has no deletes", self.shared.definition.name);
            return Err(EngineError::new(ErrorKind::Unsupported, text));
        };
        for part in keys.chunks(KEYS_AT_ONCE) {
            let list: Vec<String> = part.iter().map(u64::to_string).collect();
            let statement = fill(template, &table.names().with("keys", list.join(", ")))?;
            retried(|| self.connection.run(&statement))?;
        }
        Ok(())
    }

    fn begin(&mut self, search: Arc<EncodedSearch>) -> Result<(), EngineError> {
        let point = Point::<P::Connection>::of(&search)?;
        for statement in &point.effort {
            self.connection.run(statement)?;
        }
        let mut prepared = Vec::new();
        if point.bound(0).is_some() {
            for statement in &point.statements {
                prepared.push(self.connection.prepare(statement)?);
            }
        }
        self.search = Some(Begun { search, prepared });
        Ok(())
    }

    fn search(&mut self, query: usize, hits: &mut Hits) -> Result<(), EngineError> {
        hits.clear();
        let Some(begun) = &self.search else {
            return Err(EngineError::new(ErrorKind::Bug, "search before begin"));
        };
        let point = Point::<P::Connection>::of(&begun.search)?;
        match point.bound(query) {
            Some(bound) => self.connection.search(&begun.prepared[point.shape(query)], &bound, hits),
            None => self.connection.search_text(&point.statement(query).text, hits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_is_tried_again_and_counted_and_another_error_is_not() {
        let mut left = 3;
        let retries = retried(|| {
            left -= 1;
            if left == 0 { Ok(()) } else { Err(EngineError::new(ErrorKind::Conflict, "deadlock")) }
        });
        assert_eq!(retries.unwrap(), 2);
        let mut calls = 0;
        let error = retried(|| {
            calls += 1;
            Err(EngineError::new(ErrorKind::Refused, "no"))
        });
        assert_eq!((calls, error.unwrap_err().kind()), (1, ErrorKind::Refused));
    }
}
