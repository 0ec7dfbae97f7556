//! What two families of SQL spell differently.

use types::{ColumnType, Value};

/// The family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Names in double quotes, places `$1`, one place may be used twice.
    Postgres,
    /// Names in backticks, places `?`, each stands for the next value.
    Mysql,
}

impl Dialect {
    /// A name of any letters as a quoted identifier.
    pub(crate) fn quote(self, name: &str) -> String {
        match self {
            Dialect::Postgres => format!("\"{}\"", name.replace('"', "\"\"")),
            Dialect::Mysql => format!("`{}`", name.replace('`', "``")),
        }
    }

    /// The place of a bound value, the `number`-th (from 1) of its statement. PostgreSQL is told the type, so
    /// that the bytes sent are of the type that it expects.
    pub(crate) fn place(self, number: usize, kind: Option<ColumnType>) -> String {
        match self {
            Dialect::Mysql => "?".to_owned(),
            Dialect::Postgres => {
                let cast = match kind {
                    None => "",
                    Some(ColumnType::Int) => "::bigint",
                    Some(ColumnType::Float) => "::double precision",
                    Some(ColumnType::Bool) => "::boolean",
                    Some(ColumnType::Text) => "::text",
                };
                format!("${number}{cast}")
            }
        }
    }

    /// A value inside a statement.
    pub(crate) fn literal(self, value: &Value) -> String {
        match (value, self) {
            (Value::Bool(v), _) => v.to_string(),
            (Value::Int(v), _) => v.to_string(),
            // Exponent form, so that it is no exact decimal.
            (Value::Float(v), _) => format!("{v:e}"),
            (Value::Text(text), Dialect::Postgres) if text.contains('\\') => {
                format!(" E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
            }
            (Value::Text(text), Dialect::Postgres) => format!("'{}'", text.replace('\'', "''")),
            (Value::Text(text), Dialect::Mysql) => {
                format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
            }
        }
    }
}

/// The type of a filter's operand.
pub(crate) fn kind_of(value: &Value) -> ColumnType {
    match value {
        Value::Bool(_) => ColumnType::Bool,
        Value::Int(_) => ColumnType::Int,
        Value::Float(_) => ColumnType::Float,
        Value::Text(_) => ColumnType::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_cannot_break_out() {
        assert_eq!(Dialect::Postgres.quote("a\"b"), "\"a\"\"b\"");
        assert_eq!(Dialect::Mysql.quote("a`b"), "`a``b`");
        let text = Value::Text("it's \\ x".into());
        assert_eq!(Dialect::Mysql.literal(&text), "'it''s \\\\ x'");
        assert_eq!(Dialect::Postgres.literal(&text), " E'it''s \\\\ x'");
        assert_eq!(Dialect::Postgres.literal(&Value::Text("it's".into())), "'it''s'");
    }
}
