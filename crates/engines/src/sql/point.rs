//! A point made ready: statements, vectors and operands in the protocol's form.

use super::{
    dialect::Dialect,
    form,
    protocol::{Bound, Connection},
    statement::{Statement, condition},
    table::{Table, fill_all, index_sql},
};
use engine::{
    Definition, EncodedSearch, EngineError, ErrorKind, SearchSpec,
    sql::{SqlDef, VectorForm},
};
use std::collections::HashMap;

/// The queries of a point. Filters of one shape share a statement and differ in their operands.
pub(crate) struct Point<C: Connection> {
    /// Statements that set the effort.
    pub(crate) effort: Vec<String>,
    /// One statement for each shape of filter; where values stand inside, one for each query.
    pub(crate) statements: Vec<Statement>,
    statement_of: Vec<u32>,
    /// Vectors one after the other; `ends[i]` is where that of query i ends. Empty where they stand inside.
    vectors: Vec<u8>,
    ends: Vec<usize>,
    /// The operands of each different filter.
    operands: Vec<Vec<C::Operand>>,
    operands_of: Vec<u32>,
}

impl<C: Connection> Point<C> {
    pub(crate) fn new(
        table: &Table,
        sql: &SqlDef,
        definition: &Definition,
        search: &SearchSpec,
        dialect: Dialect,
    ) -> Result<Self, EngineError> {
        let queries = &search.queries;
        if queries.dim() != table.spec.dim {
            let text = format!("queries of {} dimensions for a table of {}", queries.dim(), table.spec.dim);
            return Err(EngineError::new(ErrorKind::Refused, text));
        }
        let index = index_sql(definition, &table.spec.index.kind);
        let names = table.search_names(search.k, search.effort);
        let effort = if search.effort.is_some() { fill_all(&index.effort, &names)? } else { Vec::new() };
        let mut point = Point {
            effort,
            statements: Vec::new(),
            statement_of: vec![0; queries.rows()],
            vectors: Vec::new(),
            ends: Vec::with_capacity(queries.rows()),
            operands: Vec::new(),
            operands_of: vec![0; queries.rows()],
        };
        let inside = table.form == VectorForm::Literal;
        let mut shapes: HashMap<String, u32> = HashMap::new();
        for (filter, members) in search.filters.groups(queries.rows()) {
            let (condition, operands) = match &filter {
                Some(filter) => {
                    let (text, operands) = condition(filter, &|name| table.column(name));
                    (Some(text), operands)
                }
                None => (None, Vec::new()),
            };
            let text = table.search(sql, search.k, search.effort, condition.as_deref())?;
            if inside {
                for query in members {
                    let vector = text_of(table, search, query)?;
                    point.statement_of[query] = count(point.statements.len());
                    point.statements.push(Statement::inlined(&text, dialect, &operands, &vector));
                }
                continue;
            }
            let next = count(point.statements.len());
            let shape = *shapes.entry(text.clone()).or_insert(next);
            if shape == next {
                point.statements.push(Statement::bound(&text, dialect, &operands));
            }
            let values = count(point.operands.len());
            point.operands.push(operands.iter().map(C::operand).collect());
            for query in members {
                point.statement_of[query] = shape;
                point.operands_of[query] = values;
            }
        }
        if !inside {
            point.encode(table, search)?;
        }
        Ok(point)
    }

    fn encode(&mut self, table: &Table, search: &SearchSpec) -> Result<(), EngineError> {
        let mut scratch = Vec::new();
        for query in 0..search.queries.rows() {
            form::append(table.form, &search.queries, query, &mut scratch, &mut self.vectors)?;
            self.ends.push(self.vectors.len());
        }
        Ok(())
    }

    /// The point inside an encoded search.
    ///
    /// # Errors
    /// Where another engine made it.
    pub(crate) fn of(search: &EncodedSearch) -> Result<&Self, EngineError> {
        search
            .payload
            .downcast_ref()
            .ok_or_else(|| EngineError::new(ErrorKind::Bug, "the search was encoded by another engine"))
    }

    /// The number of the statement of a query.
    pub(crate) fn shape(&self, query: usize) -> usize {
        self.statement_of[query] as usize
    }

    /// The statement of a query.
    pub(crate) fn statement(&self, query: usize) -> &Statement {
        &self.statements[self.shape(query)]
    }

    /// What is bound to a query; none where it stands inside the statement.
    pub(crate) fn bound(&self, query: usize) -> Option<Bound<'_, C::Operand>> {
        let end = *self.ends.get(query)?;
        let start = if query == 0 { 0 } else { self.ends[query - 1] };
        Some(Bound {
            vector: &self.vectors[start..end],
            operands: &self.operands[self.operands_of[query] as usize],
        })
    }
}

/// The vector of a query as it stands inside a statement.
fn text_of(table: &Table, search: &SearchSpec, query: usize) -> Result<String, EngineError> {
    let mut text = Vec::new();
    form::append(table.form, &search.queries, query, &mut Vec::new(), &mut text)?;
    String::from_utf8(text).map_err(|e| EngineError::caused(ErrorKind::Bug, "a vector's text is no text", e))
}

/// As many statements or filters as there are queries at most, which are numbered by 32 bits.
fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
