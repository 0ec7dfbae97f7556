//! The [`Engine`] of a database that speaks SQL: everything but the timed path.
//!
//! Each call opens a connection of its own: they are rare, and none waits for another. What a statement
//! says comes from the definition; what is here is the order of things and the reading of answers.

use super::{
    address::{CONNECT_WITHIN, unreachable},
    point::Point,
    protocol::{Answer, Connection, Protocol},
    read_back,
    session::SqlSession,
    statement::Statement,
    table::{Table, fill, fill_all, index_sql},
    watch,
};
use engine::{
    Control, Definition, EncodedSearch, Engine, EngineError, ErrorKind, Identity, IndexInfo, IndexSpec,
    Names, QueryPlan, Readiness, SearchSpec, Session, Setting, Sizes, TableSpec, Template, sql::SqlDef,
};
use std::{
    sync::{Arc, Mutex, PoisonError, RwLock, mpsc},
    thread,
    time::Duration,
};

/// How long a connection may take until the server has let us in.
const GREETED_WITHIN: Duration = CONNECT_WITHIN.saturating_add(Duration::from_secs(1));

/// What the engine and its sessions share.
pub(crate) struct Shared<P> {
    pub(crate) protocol: P,
    pub(crate) definition: Definition,
    pub(crate) sql: SqlDef,
    pub(crate) table: RwLock<Option<Arc<Table>>>,
    /// What the server remarked while the index was built.
    remarks: Mutex<Vec<String>>,
}

impl<P: Protocol> Shared<P> {
    /// The table made last.
    ///
    /// # Errors
    /// Where there is none.
    pub(crate) fn table(&self) -> Result<Arc<Table>, EngineError> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner).clone();
        table.ok_or_else(|| {
            let text = format!("{}: there is no table; create it first", self.definition.name);
            EngineError::new(ErrorKind::Refused, text)
        })
    }

    /// A connection with the definition's session settings. Whatever takes the port but says nothing is given
    /// up after a while: the clients themselves limit no more than the connecting.
    pub(crate) fn connect(self: &Arc<Self>) -> Result<P::Connection, EngineError> {
        let (tell, told) = mpsc::channel();
        let shared = self.clone();
        let fault = |e| EngineError::caused(ErrorKind::Overloaded, "a thread could not be started", e);
        let greet = move || {
            // Nobody listens where the connection was given up.
            let _nobody = tell.send(shared.protocol.connect());
        };
        thread::Builder::new().name("connect".into()).spawn(greet).map_err(fault)?;
        let mut connection = told.recv_timeout(GREETED_WITHIN).unwrap_or_else(|_| {
            let text = format!("no answer within {} s", GREETED_WITHIN.as_secs());
            Err(unreachable(&self.protocol.place(), &text))
        })?;
        for statement in fill_all(&self.sql.session, &Names::default())? {
            connection.run(&statement)?;
        }
        Ok(connection)
    }
}

/// Asks for one text.
fn text<C: Connection>(
    connection: &mut C,
    template: &Template,
    names: &Names,
) -> Result<Option<String>, EngineError> {
    let answer = connection.ask(&fill(template, names)?)?;
    Ok(answer.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
}

/// Asks for one number; none where the answer is NULL or empty.
fn ask_number<C: Connection>(
    connection: &mut C,
    template: &Template,
    names: &Names,
) -> Result<Option<u64>, EngineError> {
    text(connection, template, names)?.map(|text| number(&text, template)).transpose()
}

fn number(text: &str, template: &Template) -> Result<u64, EngineError> {
    // Some databases give sizes as decimals.
    let whole = text.trim().parse::<f64>().ok().filter(|v| (0.0..1e18).contains(v)).map(|v| v as u64);
    whole.ok_or_else(|| {
        let text = format!("{:?} answered {text:?}, which is no number", template.text());
        EngineError::new(ErrorKind::WrongAnswer, text)
    })
}

/// A database that speaks SQL.
pub(crate) struct SqlEngine<P>(Arc<Shared<P>>);

impl<P: Protocol> SqlEngine<P> {
    /// The engine of a definition, behind a protocol.
    ///
    /// # Errors
    /// Where the definition has no `[sql]` section, or options.
    pub(crate) fn open(definition: &Definition, protocol: P) -> Result<Box<dyn Engine>, EngineError> {
        let refused = |what: String| EngineError::new(ErrorKind::Unsupported, what);
        let name = &definition.name;
        let Some(sql) = definition.sql.clone() else {
            return Err(refused(format!(
                "the definition of {name} has no [sql] section, which its protocol needs"
            )));
        };
        if let Some(option) = definition.options.keys().next() {
            return Err(refused(format!("{name} has no option {option:?}; it has none")));
        }
        Ok(Box::new(SqlEngine(Arc::new(Shared {
            protocol,
            definition: definition.clone(),
            sql,
            table: RwLock::default(),
            remarks: Mutex::default(),
        }))))
    }

    fn settings(&self, connection: &mut P::Connection) -> Result<Vec<Setting>, EngineError> {
        let Some(template) = &self.0.sql.settings else { return Ok(Vec::new()) };
        let answer = connection.ask(&fill(template, &Names::default())?)?;
        let setting = |row: Vec<Option<String>>| {
            let mut cells = row.into_iter();
            let (name, value) = (cells.next().flatten()?, cells.next().flatten().unwrap_or_default());
            Some(Setting { name, value, default: cells.next().flatten() })
        };
        let volatile = |name: &str| self.0.sql.volatile.iter().any(|v| v.eq_ignore_ascii_case(name));
        Ok(answer.into_iter().filter_map(setting).filter(|s| !volatile(&s.name)).collect())
    }

    /// Runs the build statements; the first connection's remarks are kept.
    fn run_watched(
        &self,
        statements: &[String],
        names: &Names,
        control: &Control,
    ) -> Result<(), EngineError> {
        let mut connection = self.0.connect()?;
        let progress = self.0.sql.progress.as_ref().map(|t| fill(t, names)).transpose()?;
        let result = watch::run(&self.0, &mut connection, statements, progress.as_deref(), control);
        *self.0.remarks.lock().unwrap_or_else(PoisonError::into_inner) = connection.notices();
        result
    }
}

impl<P: Protocol> Engine for SqlEngine<P> {
    fn identity(&self) -> Result<Identity, EngineError> {
        let sql = &self.0.sql;
        let mut connection = self.0.connect()?;
        let version = text(&mut connection, &sql.version, &Names::default())?.unwrap_or_default();
        let source = match &sql.source {
            Some(template) => text(&mut connection, template, &Names::default())?.unwrap_or_default(),
            None => String::new(),
        };
        Ok(Identity {
            version,
            source,
            client: self.0.protocol.client(),
            protocol: format!(
                "{}; the timed call binds and sends the encoded vector and reads all rows, encoding is before it",
                self.0.protocol.words()
            ),
            settings: self.settings(&mut connection)?,
        })
    }

    fn create(&self, spec: &TableSpec) -> Result<(), EngineError> {
        let shared = &self.0;
        shared.definition.check_table(spec)?;
        let table = Table::new(spec, &shared.definition, &shared.sql, P::DIALECT);
        let mut connection = shared.connect()?;
        if let Some(template) = &shared.sql.foreign
            && !connection.ask(&fill(template, table.names())?)?.is_empty()
        {
            let text = format!(
                "a table {} is there and was not made by Annvil, so it is left alone; drop or rename it",
                spec.name
            );
            return Err(EngineError::new(ErrorKind::Refused, text));
        }
        let mut statements = fill_all(&shared.sql.prepare, table.names())?;
        statements.extend(fill_all(&shared.sql.drop, table.names())?);
        statements.extend(table.creation(&shared.sql)?);
        if shared.definition.builds_during_load(&spec.index) {
            let index = index_sql(&shared.definition, &spec.index.kind);
            statements.extend(fill_all(&index.build, table.names())?);
        }
        for statement in statements {
            connection.run(&statement)?;
        }
        *shared.table.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(table));
        Ok(())
    }

    fn connect(&self) -> Result<Box<dyn Session>, EngineError> {
        Ok(Box::new(SqlSession::new(self.0.clone())?))
    }

    fn finish_load(&self) -> Result<(), EngineError> {
        let table = self.0.table()?;
        let mut connection = self.0.connect()?;
        for statement in fill_all(&self.0.sql.loaded, table.names())? {
            connection.run(&statement)?;
        }
        Ok(())
    }

    fn row_count(&self) -> Result<u64, EngineError> {
        let table = self.0.table()?;
        let counted = ask_number(&mut self.0.connect()?, &self.0.sql.count, table.names())?;
        counted.ok_or_else(|| EngineError::new(ErrorKind::WrongAnswer, "the row count came back empty"))
    }

    fn build(&self, spec: &IndexSpec, control: &Control) -> Result<(), EngineError> {
        let shared = &self.0;
        let table = shared.table()?;
        if shared.definition.builds_during_load(spec) {
            return Ok(());
        }
        let index = index_sql(&shared.definition, &spec.kind);
        // The build may differ from the one that the table was made for.
        let again = TableSpec { index: spec.clone(), ..table.spec.clone() };
        let table = Table::new(&again, &shared.definition, &shared.sql, P::DIALECT);
        let result = self.run_watched(&fill_all(&index.build, table.names())?, table.names(), control);
        *shared.table.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(table));
        result
    }

    fn readiness(&self) -> Result<Readiness, EngineError> {
        let Some(template) = &self.0.sql.readiness else {
            return Ok(Readiness { ready: true, indexed: None });
        };
        let table = self.0.table()?;
        let answer = self.0.connect()?.ask(&fill(template, table.names())?)?;
        let Some(row) = answer.into_iter().next() else {
            let text = format!("{} has no index {}_iv to wait for", self.0.definition.name, table.spec.name);
            return Err(EngineError::new(ErrorKind::WrongAnswer, text));
        };
        let mut row = row.into_iter();
        let ready = row.next().flatten().is_some_and(|v| ["t", "true", "1"].contains(&v.as_str()));
        let indexed = row.next().flatten().map(|v| number(&v, template)).transpose()?;
        Ok(Readiness { ready, indexed })
    }

    fn index_info(&self) -> Result<Option<IndexInfo>, EngineError> {
        let table = self.0.table()?;
        let Some(def) = &self.0.sql.read_back else { return Ok(None) };
        let answer = self.0.connect()?.ask(&fill(&def.ask, table.names())?)?;
        let text = joined(&answer);
        let found = read_back::index(&text, def, &self.0.definition, &table)?;
        let remarks = self.0.remarks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(found.map(|info| IndexInfo { remarks, ..info }))
    }

    fn sizes(&self) -> Result<Sizes, EngineError> {
        let table = self.0.table()?;
        let mut connection = self.0.connect()?;
        // An ordinary user may not be allowed to ask (MariaDB's PROCESS privilege): unknown then, and no failure.
        let mut allowed = |template: &Option<Template>| {
            let Some(template) = template else { return Ok(None) };
            match ask_number(&mut connection, template, table.names()) {
                Err(e) if e.kind() == ErrorKind::Denied => Ok(None),
                known => known,
            }
        };
        Ok(Sizes { index: allowed(&self.0.sql.index_size)?, table: allowed(&self.0.sql.table_size)? })
    }

    fn advice(&self) -> Result<Vec<String>, EngineError> {
        let table = self.0.table()?;
        let mut found = Vec::new();
        if self.0.sql.advice.is_empty() {
            return Ok(found);
        }
        let mut connection = self.0.connect()?;
        for advice in &self.0.sql.advice {
            let wanted = number(&fill(&advice.at_least, table.names())?, &advice.at_least)?;
            let has = ask_number(&mut connection, &advice.ask, table.names())?;
            if let Some(has) = has.filter(|has| *has < wanted) {
                let (has, wanted) = (types::units::bytes(has), types::units::bytes(wanted));
                found.push(format!(
                    "{} is {has}, but {wanted} would be needed: {}",
                    advice.setting, advice.why
                ));
            }
        }
        Ok(found)
    }

    fn encode(&self, search: SearchSpec) -> Result<Arc<EncodedSearch>, EngineError> {
        let table = self.0.table()?;
        self.0.definition.check_search(&table.spec.index.kind, &search)?;
        let point =
            Point::<P::Connection>::new(&table, &self.0.sql, &self.0.definition, &search, P::DIALECT)?;
        Ok(Arc::new(EncodedSearch { spec: search, payload: Box::new(point) }))
    }

    fn explain(&self, search: &EncodedSearch, query: usize) -> Result<Option<QueryPlan>, EngineError> {
        let Some(template) = &self.0.sql.explain else { return Ok(None) };
        let table = self.0.table()?;
        let point = Point::<P::Connection>::of(search)?;
        let mut connection = self.0.connect()?;
        for statement in &point.effort {
            connection.run(statement)?;
        }
        let (spec, binds) = (&search.spec, point.statement(query));
        let names = table.search_names(spec.k, spec.effort).with("search", binds.text.as_str());
        let explained = Statement { text: fill(template, &names)?, ..binds.clone() };
        let answer = ask_query(&mut connection, point, &explained, query)?;
        let mut text = joined(&answer);
        let marker = self.0.sql.uses_index.as_ref().map(|t| fill(t, &names)).transpose()?;
        let mut uses_index = marker.map(|marker| text.contains(&marker));
        if let Some(counter) = &self.0.sql.counter {
            connection.run(&fill(&counter.reset, &names)?)?;
            ask_query(&mut connection, point, binds, query)?;
            let read = fill(&counter.read, &names)?;
            let answer = connection.ask(&read)?;
            let last = answer.into_iter().next().and_then(|row| row.into_iter().next_back()).flatten();
            let most = number(&fill(&counter.most, &names)?, &counter.most)?;
            if let Some(count) = last.map(|v| number(&v, &counter.read)).transpose()? {
                text.push_str(&format!("\n{read}: {count} (at most {most} where the index is used)"));
                uses_index = Some(uses_index.unwrap_or(true) && count <= most);
            }
        }
        Ok(Some(QueryPlan { text, uses_index }))
    }

    fn maintain(&self, control: &Control) -> Result<(), EngineError> {
        let table = self.0.table()?;
        let index = index_sql(&self.0.definition, &table.spec.index.kind);
        self.run_watched(&fill_all(&index.maintain, table.names())?, table.names(), control)
    }

    fn remove(&self) -> Result<(), EngineError> {
        let Ok(table) = self.0.table() else { return Ok(()) };
        let mut connection = self.0.connect()?;
        for statement in fill_all(&self.0.sql.drop, table.names())? {
            connection.run(&statement)?;
        }
        *self.0.table.write().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }
}

/// Runs a statement with what is bound to a query of the point.
fn ask_query<C: Connection>(
    connection: &mut C,
    point: &Point<C>,
    statement: &Statement,
    query: usize,
) -> Result<Answer, EngineError> {
    match point.bound(query) {
        Some(bound) => {
            let prepared = connection.prepare(statement)?;
            connection.ask_bound(&prepared, &bound)
        }
        None => connection.ask(&statement.text),
    }
}

/// An answer as lines.
fn joined(answer: &Answer) -> String {
    let line = |row: &Vec<Option<String>>| {
        row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join(" | ")
    };
    answer.iter().map(line).collect::<Vec<_>>().join("\n")
}
