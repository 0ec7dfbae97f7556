//! What each definition says to its server, as text: a change of a definition is seen in `snapshots/`. For engines
//! that no server can be had of, this is all that is tested.
//!
//! Each kind of index is written out in full under its first metric; for other metrics, and for other values of the
//! parameters that are words, the statements that differ.

use super::{
    dialect::Dialect,
    form,
    statement::{Statement, condition},
    table::{Table, fill, fill_all, index_sql},
};
use engine::{
    Definition, EngineError, IndexDef, LoadMethod, Param, Params, TableSpec,
    sql::{SqlDef, VectorForm},
};
use types::{ColumnType, Element, Filter, FilterKind, Metric, Value, Vectors};

/// Statements with their labels.
type Lines = Vec<(String, String)>;

const K: usize = 10;
const EFFORT: u64 = 40;
const COLUMNS: [(&str, ColumnType); 4] =
    [("c", ColumnType::Int), ("x", ColumnType::Float), ("s", ColumnType::Text), ("b", ColumnType::Bool)];

/// A filter of each kind.
fn filters() -> Vec<(FilterKind, Filter)> {
    let eq = |field: &str, value: Value| Filter::Eq(field.into(), value);
    let (red, three) = (Value::Text("it's".into()), Value::Int(3));
    let from = Filter::Range { field: "c".into(), low: Some((Value::Int(1), true)), high: None };
    let below = Filter::Range { field: "x".into(), low: None, high: Some((Value::Float(0.5), false)) };
    vec![
        (FilterKind::EqInt, eq("c", three.clone())),
        (FilterKind::EqFloat, eq("x", Value::Float(0.5))),
        (FilterKind::EqText, eq("s", red.clone())),
        (FilterKind::EqBool, eq("b", Value::Bool(true))),
        (FilterKind::In, Filter::In("c".into(), vec![three.clone(), Value::Int(4)])),
        (FilterKind::Range, from),
        (FilterKind::And, Filter::And(vec![eq("c", three.clone()), below])),
        (FilterKind::Or, Filter::Or(vec![eq("c", three), eq("s", red)])),
    ]
}

/// A table of this index; its vectors have 8 components.
fn table(
    definition: &Definition,
    sql: &SqlDef,
    kind: &str,
    metric: Metric,
    params: &Params,
    dialect: Dialect,
) -> Table {
    let element = if metric == Metric::Hamming { Element::Bit } else { Element::F32 };
    let indexed_columns = if sql.index_column.is_some() { vec!["c".to_owned()] } else { Vec::new() };
    let spec = TableSpec {
        name: "annvil_t".into(),
        dim: 8,
        element,
        metric,
        rows: 5000,
        columns: COLUMNS.map(|(name, kind)| (name.to_owned(), kind)).to_vec(),
        indexed_columns,
        load: LoadMethod::Fastest,
        index: definition.index_spec(Some(kind), metric, params, 4).unwrap(),
    };
    definition.check_table(&spec).unwrap();
    Table::new(&spec, definition, sql, dialect)
}

/// A search as it is prepared, or as it is sent where values stand inside.
fn search(table: &Table, sql: &SqlDef, filter: Option<&Filter>, dialect: Dialect) -> String {
    let (text, operands) = match filter.map(|filter| condition(filter, &|name| table.column(name))) {
        Some((text, operands)) => (Some(text), operands),
        None => (None, Vec::new()),
    };
    let text = table.search(sql, K, Some(EFFORT), text.as_deref()).unwrap();
    if table.form != VectorForm::Literal {
        return Statement::bound(&text, dialect, &operands).text;
    }
    let query = Vectors::from_f32(vec![1.0, -0.5, 0.25, 0.0, 1e-9, 3.0, 0.1, 2.0], 1, 8).unwrap();
    let mut vector = Vec::new();
    form::append(table.form, &query, 0, &mut Vec::new(), &mut vector).unwrap();
    Statement::inlined(&text, dialect, &operands, std::str::from_utf8(&vector).unwrap()).text
}

/// Everything that is said to the server about one table.
fn statements(definition: &Definition, table: &Table, dialect: Dialect) -> Result<Lines, EngineError> {
    let sql = definition.sql.as_ref().unwrap();
    let index = index_sql(definition, &table.spec.index.kind);
    let names = table.search_names(K, Some(EFFORT));
    let mut lines = Lines::new();
    let mut put = |label: &str, texts: Vec<String>| {
        lines.extend(texts.into_iter().map(|text| (label.to_owned(), text)));
    };
    let one = |template: &Option<engine::Template>| fill_all(template.as_slice(), &names);
    put("session", fill_all(&sql.session, &engine::Names::default())?);
    put("prepare", fill_all(&sql.prepare, &names)?);
    put("foreign", one(&sql.foreign)?);
    put("drop", fill_all(&sql.drop, &names)?);
    put("create", table.creation(sql)?);
    put("insert", vec![table.insert(sql, 2)?.text]);
    put("copy", table.copy(sql)?.into_iter().collect());
    put("loaded", fill_all(&sql.loaded, &names)?);
    put("count", vec![fill(&sql.count, &names)?]);
    put("build", fill_all(&index.build, &names)?);
    put("progress", one(&sql.progress)?);
    put("readiness", one(&sql.readiness)?);
    if let Some(read_back) = &sql.read_back {
        put("read back", vec![fill(&read_back.ask, &names)?]);
        put("holds", fill_all(&read_back.holds, &names)?);
    }
    put("index size", one(&sql.index_size)?);
    put("table size", one(&sql.table_size)?);
    for advice in &sql.advice {
        let text = format!("{} >= {}", fill(&advice.ask, &names)?, fill(&advice.at_least, &names)?);
        put(&advice.setting, vec![text]);
    }
    put("effort", fill_all(&index.effort, &names)?);
    put("search", vec![search(table, sql, None, dialect)]);
    for (kind, filter) in filters() {
        if definition.capabilities.filters.contains(&kind) {
            put(&format!("search, {kind:?}"), vec![search(table, sql, Some(&filter), dialect)]);
        }
    }
    if let Some(explain) = &sql.explain {
        let names = names.with("search", search(table, sql, None, dialect));
        put("explain", vec![fill(explain, &names)?]);
    }
    put("marker", one(&sql.uses_index)?);
    if let Some(counter) = &sql.counter {
        put(
            "counter",
            fill_all(&[counter.reset.clone(), counter.read.clone(), counter.most.clone()], &names)?,
        );
    }
    let delete = sql.delete.as_ref().map(|t| fill(t, &names.with("keys", "1, 2"))).transpose()?;
    put("delete", delete.into_iter().collect());
    put("maintain", fill_all(&index.maintain, &names)?);
    Ok(lines)
}

fn written(lines: &[(String, String)]) -> String {
    lines.iter().map(|(label, text)| format!("{label}: {text}\n")).collect()
}

/// Of `lines` those that `base` has not.
fn differing(lines: Lines, base: &Lines) -> Lines {
    lines.into_iter().filter(|line| !base.contains(line)).collect()
}

fn kind_text(definition: &Definition, index: &IndexDef, dialect: Dialect) -> String {
    let sql = definition.sql.as_ref().unwrap();
    let all = |metric, params: &Params| {
        let table = table(definition, sql, &index.kind, metric, params, dialect);
        statements(definition, &table, dialect).unwrap_or_else(|e| panic!("{}: {e}", definition.name))
    };
    let metrics = &definition.capabilities.metrics;
    let base = all(metrics[0], &Params::new());
    let mut text = format!("# {}, {}\n{}", index.kind, metrics[0], written(&base));
    for metric in &metrics[1..] {
        let lines = differing(all(*metric, &Params::new()), &base);
        text.push_str(&format!("\n# {}, {metric}\n{}", index.kind, written(&lines)));
    }
    for (name, param) in &index.params {
        for value in param.values.iter().filter(|v| Param::Text((*v).clone()) != param.default) {
            let params = Params::from([(name.clone(), Param::Text(value.clone()))]);
            let lines = differing(all(metrics[0], &params), &base);
            text.push_str(&format!(
                "\n# {}, {}, {name} = {value}\n{}",
                index.kind,
                metrics[0],
                written(&lines)
            ));
        }
    }
    text
}

#[test]
fn what_each_definition_says_to_its_server() {
    let mut written = 0;
    for definition in crate::definitions().iter().filter(|d| d.sql.is_some()) {
        let dialect = match definition.protocol.as_str() {
            "postgres" => Dialect::Postgres,
            "mysql" => Dialect::Mysql,
            other => panic!("{} speaks {other}", definition.name),
        };
        let kinds: Vec<String> =
            definition.index.iter().map(|index| kind_text(definition, index, dialect)).collect();
        insta::assert_snapshot!(definition.name.as_str(), kinds.join("\n"));
        written += 1;
    }
    assert_eq!(written, 9, "definitions with an [sql] section; one was added or lost");
}
