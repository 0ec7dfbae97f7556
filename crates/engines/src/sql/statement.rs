//! Statements with places for bound values.
//!
//! While a template is filled in, a place is a marker; afterwards the markers are numbered in the
//! order in which they stand, because a template may put the filter before the vector or behind it.

use super::dialect::{Dialect, kind_of};
use types::{Filter, Value};

/// What is bound at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bind {
    /// The query vector.
    Vector,
    /// The filter's operand of this number.
    Operand(usize),
}

/// A statement as it is prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    /// The text, with places in the database's own form.
    pub(crate) text: String,
    /// What is bound, place by place.
    pub(crate) binds: Vec<Bind>,
}

/// Markers that no text of a user holds.
const OPEN: char = '\u{1}';
const CLOSE: char = '\u{2}';

/// The marker of the vector's place.
pub(crate) fn vector_marker() -> String {
    format!("{OPEN}v{CLOSE}")
}

fn operand_marker(number: usize) -> String {
    format!("{OPEN}{number}{CLOSE}")
}

impl Statement {
    /// Numbers the markers of `text`. `operands` are those of the filter that made them, for their types.
    pub(crate) fn bound(text: &str, dialect: Dialect, operands: &[Value]) -> Statement {
        let mut binds: Vec<Bind> = Vec::new();
        let text = replace_markers(text, |bind| {
            let again = binds.iter().position(|known| *known == bind);
            let number = match again.filter(|_| dialect == Dialect::Postgres) {
                Some(at) => at + 1,
                None => {
                    binds.push(bind);
                    binds.len()
                }
            };
            let kind = match bind {
                Bind::Vector => None,
                Bind::Operand(at) => operands.get(at).map(kind_of),
            };
            dialect.place(number, kind)
        });
        Statement { text, binds }
    }

    /// Puts the values into the text instead.
    pub(crate) fn inlined(text: &str, dialect: Dialect, operands: &[Value], vector: &str) -> Statement {
        let text = replace_markers(text, |bind| match bind {
            Bind::Vector => vector.to_owned(),
            Bind::Operand(at) => operands.get(at).map(|v| dialect.literal(v)).unwrap_or_default(),
        });
        Statement { text, binds: Vec::new() }
    }
}

fn replace_markers(text: &str, mut with: impl FnMut(Bind) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, marked)) = rest.split_once(OPEN) {
        let (name, after) = marked.split_once(CLOSE).unwrap_or((marked, ""));
        out.push_str(before);
        out.push_str(&with(name.parse().map_or(Bind::Vector, Bind::Operand)));
        rest = after;
    }
    out + rest
}

/// A filter as a condition with markers, and its operands in the markers' order. `name` makes the
/// quoted name of a column.
pub(crate) fn condition(filter: &Filter, name: &dyn Fn(&str) -> String) -> (String, Vec<Value>) {
    let mut operands = Vec::new();
    let text = write(filter, name, &mut operands);
    (text, operands)
}

fn write(filter: &Filter, name: &dyn Fn(&str) -> String, operands: &mut Vec<Value>) -> String {
    let mut place = |value: &Value| {
        operands.push(value.clone());
        operand_marker(operands.len() - 1)
    };
    match filter {
        Filter::Eq(field, value) => format!("{} = {}", name(field), place(value)),
        // No value is in an empty list; SQL has no such list.
        Filter::In(_, values) if values.is_empty() => "1 = 0".to_owned(),
        Filter::In(field, values) => {
            let places: Vec<String> = values.iter().map(place).collect();
            format!("{} IN ({})", name(field), places.join(", "))
        }
        Filter::Range { field, low: None, high: None } => format!("{} IS NOT NULL", name(field)),
        Filter::Range { field, low, high } => {
            let column = name(field);
            let sign = |below: &'static str, included: bool| {
                if included { format!("{below}=") } else { below.into() }
            };
            let low = low.as_ref().map(|(v, inc)| format!("{column} {} {}", sign(">", *inc), place(v)));
            let high = high.as_ref().map(|(v, inc)| format!("{column} {} {}", sign("<", *inc), place(v)));
            low.into_iter().chain(high).collect::<Vec<_>>().join(" AND ")
        }
        Filter::And(parts) if parts.is_empty() => "1 = 1".to_owned(),
        Filter::Or(parts) if parts.is_empty() => "1 = 0".to_owned(),
        Filter::And(parts) | Filter::Or(parts) => {
            let word = if matches!(filter, Filter::And(_)) { " AND " } else { " OR " };
            let parts: Vec<String> =
                parts.iter().map(|p| format!("({})", write(p, name, operands))).collect();
            parts.join(word)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter() -> Filter {
        let int = |v| Value::Int(v);
        Filter::And(vec![
            Filter::In("s".into(), vec![Value::Text("a".into()), Value::Text("it's".into())]),
            Filter::Range { field: "n".into(), low: Some((int(1), true)), high: Some((int(5), false)) },
            Filter::Or(vec![
                Filter::Eq("b".into(), Value::Bool(true)),
                Filter::Eq("x".into(), Value::Float(0.5)),
            ]),
        ])
    }

    /// cases.md 80: operands stay typed and bound.
    #[test]
    fn places_are_numbered_as_they_stand() {
        let (text, operands) = condition(&filter(), &|n| Dialect::Postgres.quote(n));
        let whole = format!("SELECT id FROM t WHERE {text} ORDER BY v <-> {0}, {0}", vector_marker());
        let statement = Statement::bound(&whole, Dialect::Postgres, &operands);
        assert_eq!(
            statement.text,
            "SELECT id FROM t WHERE (\"s\" IN ($1::text, $2::text)) AND (\"n\" >= $3::bigint AND \"n\" < $4::bigint) \
             AND ((\"b\" = $5::boolean) OR (\"x\" = $6::double precision)) ORDER BY v <-> $7, $7"
        );
        assert_eq!(statement.binds.len(), 7);
        let statement = Statement::bound(&whole, Dialect::Mysql, &operands);
        assert_eq!(statement.text.matches('?').count(), 8);
        assert_eq!(statement.binds[6..], [Bind::Vector, Bind::Vector]);
    }

    #[test]
    fn values_can_stand_inside() {
        let (text, operands) = condition(&filter(), &|n| Dialect::Mysql.quote(n));
        let whole =
            format!("SELECT id FROM t WHERE {text} ORDER BY L2_DISTANCE(v, {}) LIMIT 3", vector_marker());
        assert_eq!(
            Statement::inlined(&whole, Dialect::Mysql, &operands, "'[1,2]'").text,
            "SELECT id FROM t WHERE (`s` IN ('a', 'it''s')) AND (`n` >= 1 AND `n` < 5) AND ((`b` = true) OR (`x` = \
             5e-1)) ORDER BY L2_DISTANCE(v, '[1,2]') LIMIT 3"
        );
    }

    #[test]
    fn empty_lists_pass_nothing_and_open_ranges_need_a_value() {
        let name = |n: &str| n.to_owned();
        assert_eq!(condition(&Filter::In("c".into(), vec![]), &name).0, "1 = 0");
        let open = Filter::Range { field: "c".into(), low: None, high: None };
        assert_eq!(condition(&open, &name).0, "c IS NOT NULL");
    }
}
