//! A table with the names that its statements use, and those statements filled in.

use super::{
    dialect::Dialect,
    statement::{Statement, vector_marker},
};
use engine::{
    Definition, EngineError, ErrorKind, IndexSpec, LoadMethod, Names, TableSpec, Template,
    sql::{IndexSql, SqlDef, VectorForm},
};
use types::{ColumnType, Element};

/// See the module.
pub(crate) struct Table {
    pub(crate) spec: TableSpec,
    pub(crate) form: VectorForm,
    names: Names,
    dialect: Dialect,
}

/// Fills in a template; a fault of it is one of the definition.
pub(crate) fn fill(template: &Template, names: &Names) -> Result<String, EngineError> {
    template
        .fill(names)
        .map_err(|e| EngineError::caused(ErrorKind::Refused, format!("the definition: {e}"), e))
}

/// Fills in several.
pub(crate) fn fill_all(templates: &[Template], names: &Names) -> Result<Vec<String>, EngineError> {
    let all = templates.iter().map(|t| fill(t, names)).collect::<Result<Vec<String>, _>>()?;
    // A statement may be left out by a condition.
    Ok(all.into_iter().filter(|text| !text.is_empty()).collect())
}

impl Table {
    /// The table `spec` of a database with this definition.
    pub(crate) fn new(spec: &TableSpec, definition: &Definition, sql: &SqlDef, dialect: Dialect) -> Self {
        let mut names = index_names(&spec.index, definition, sql);
        names.set("table", spec.name.as_str());
        names.set("index", format!("{}_iv", spec.name));
        names.set("dim", spec.dim as u64);
        names.set("rows", spec.rows as u64);
        names.set("vectors_bytes", (spec.rows * spec.dim * 4) as u64);
        let bits = spec.element == Element::Bit;
        let form = sql.bits.filter(|_| bits).unwrap_or(sql.vector);
        let mut table = Table { spec: spec.clone(), form, names, dialect };
        let column_names: String =
            spec.columns.iter().map(|(name, _)| format!("{}, ", table.column(name))).collect();
        table.names.set("column_names", column_names);
        table
    }

    /// The names.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// The column of the data set as it is called in the table: with a prefix, so that none is called
    /// like ours.
    pub(crate) fn column(&self, name: &str) -> String {
        self.dialect.quote(&format!("c_{name}"))
    }

    /// What makes the table and its ordinary indexes.
    pub(crate) fn creation(&self, sql: &SqlDef) -> Result<Vec<String>, EngineError> {
        let columns: String = self
            .spec
            .columns
            .iter()
            .map(|(name, kind)| format!("{} {}, ", self.column(name), type_name(sql, *kind)))
            .collect();
        let mut statements = fill_all(&sql.create, &self.names.with("columns", columns))?;
        for (number, name) in self.spec.indexed_columns.iter().enumerate() {
            let Some(template) = &sql.index_column else {
                let text = format!("the definition has no index_column, but {name:?} should get an index");
                return Err(EngineError::new(ErrorKind::Unsupported, text));
            };
            let names = self.names.with("column", self.column(name));
            statements
                .push(fill(template, &names.with("column_index", format!("{}_c{number}", self.spec.name)))?);
        }
        Ok(statements)
    }

    /// The names of all columns, as `INSERT` and `COPY` list them.
    fn column_list(&self) -> String {
        let columns = self.spec.columns.iter().map(|(name, _)| self.column(name));
        std::iter::once("id".to_owned())
            .chain(columns)
            .chain(std::iter::once("v".to_owned()))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// The bulk load, where the definition has one and the plan wants it.
    pub(crate) fn copy(&self, sql: &SqlDef) -> Result<Option<String>, EngineError> {
        let template = sql.copy.as_ref().filter(|_| self.spec.load == LoadMethod::Fastest);
        template.map(|t| fill(t, &self.names.with("names", self.column_list()))).transpose()
    }

    /// An `INSERT` of so many rows.
    pub(crate) fn insert(&self, sql: &SqlDef, rows: usize) -> Result<Statement, EngineError> {
        let cells = self.spec.columns.len() + 2;
        // Filled in once: the load waits for this statement.
        let marker = vector_marker();
        let vector = fill(&sql.insert_vector, &self.names.with("q", marker.as_str()))?;
        let mut text = String::new();
        for row in 0..rows {
            text.push_str(if row == 0 { "(" } else { ", (" });
            for cell in 0..cells {
                let place = self.dialect.place(row * cells + cell + 1, None);
                let last = cell + 1 == cells;
                text.push_str(if cell == 0 { "" } else { ", " });
                text.push_str(&if last { vector.replace(&marker, &place) } else { place });
            }
            text.push(')');
        }
        let text = fill(&sql.insert, &self.names.with("names", self.column_list()).with("rows", text))?;
        Ok(Statement { text, binds: Vec::new() })
    }

    /// The search with a marker at the vector's place. `condition` is the filter's, with its own.
    pub(crate) fn search(
        &self,
        sql: &SqlDef,
        k: usize,
        effort: Option<u64>,
        condition: Option<&str>,
    ) -> Result<String, EngineError> {
        let filter = condition.map(|c| format!("WHERE {c}")).unwrap_or_default();
        let names = self.search_names(k, effort).with("where", filter).with("q", vector_marker());
        fill(&sql.search, &names)
    }

    /// The names with `k` and, where there is one, `effort`.
    pub(crate) fn search_names(&self, k: usize, effort: Option<u64>) -> Names {
        let mut names = self.names.with("k", k as u64);
        if let Some(effort) = effort {
            names.set("effort", effort);
        }
        names
    }
}

/// The statements of an index kind.
pub(crate) fn index_sql(definition: &Definition, kind: &str) -> IndexSql {
    definition.index_def(Some(kind)).ok().and_then(|i| i.sql.clone()).unwrap_or_default()
}

fn index_names(index: &IndexSpec, definition: &Definition, sql: &SqlDef) -> Names {
    let mut names = Names::default();
    let time = if definition.capabilities.build_time == engine::BuildTime::DuringLoad {
        "during_load"
    } else {
        "after_load"
    };
    names.set("build_time", time);
    names.set("kind", index.kind.as_str());
    names.set("threads", index.threads as u64);
    names.set("metric", index.metric.name());
    for (word, value) in sql.metrics.get(&index.metric).into_iter().flatten() {
        names.set(word.as_str(), value.as_str());
    }
    for (name, value) in &index.params {
        names.set(name.as_str(), value);
    }
    names
}

fn type_name(sql: &SqlDef, kind: ColumnType) -> &str {
    match kind {
        ColumnType::Int => &sql.types.int,
        ColumnType::Float => &sql.types.float,
        ColumnType::Bool => &sql.types.bool,
        ColumnType::Text => &sql.types.text,
    }
}
