//! Filters as people write them: `cat10 = 3 AND (num < 100 OR name IN ('a', 'b'))`.
//!
//! A template may hold `{q}` (the query row's own value of that column) and `{name}` placeholders,
//! which are filled per query.

use crate::{Filter, FilterError, Value};
use std::{fmt, str::FromStr};

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, parts: &[Filter], word: &str| {
            for (i, part) in parts.iter().enumerate() {
                if i > 0 {
                    write!(f, " {word} ")?;
                }
                match part {
                    Filter::And(_) | Filter::Or(_) => write!(f, "({part})")?,
                    _ => write!(f, "{part}")?,
                }
            }
            Ok(())
        };
        match self {
            Filter::Eq(field, value) => write!(f, "{field} = {value}"),
            Filter::In(field, values) => {
                let list: Vec<String> = values.iter().map(Value::to_string).collect();
                write!(f, "{field} IN ({})", list.join(", "))
            }
            Filter::Range { field, low, high } => {
                let mut between = "";
                if let Some((value, included)) = low {
                    write!(f, "{field} {} {value}", if *included { ">=" } else { ">" })?;
                    between = " AND ";
                }
                if let Some((value, included)) = high {
                    write!(f, "{between}{field} {} {value}", if *included { "<=" } else { "<" })?;
                }
                Ok(())
            }
            Filter::And(parts) => joined(f, parts, "AND"),
            Filter::Or(parts) => joined(f, parts, "OR"),
        }
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        FilterTemplate::parse(text)?.fill(&mut |_, name| {
            Err(FilterError::Syntax { text: text.to_owned(), reason: format!("{{{name}}} needs a query") })
        })
    }
}

/// A filter whose operands may be placeholders.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterTemplate {
    text: String,
    tokens: Vec<Token>,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Value(Value),
    Hole(String),
    Sign(&'static str),
}

/// Gives the value of a placeholder: called with the column compared and the placeholder's name.
type Fill<'a> = &'a mut dyn FnMut(&str, &str) -> Result<Value, FilterError>;

impl FilterTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// Where the text is no filter.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let tokens = tokens(text).map_err(|reason| FilterError::Syntax { text: text.to_owned(), reason })?;
        let template = FilterTemplate { text: text.to_owned(), tokens };
        template.fill(&mut |_, _| Ok(Value::Int(0)))?;
        Ok(template)
    }

    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it has placeholders, so that it differs from query to query.
    pub fn per_query(&self) -> bool {
        self.tokens.iter().any(|t| matches!(t, Token::Hole(_)))
    }

    /// The placeholders, each once, as (column compared, name).
    pub fn placeholders(&self) -> Vec<(String, String)> {
        let mut found: Vec<(String, String)> = Vec::new();
        // Parsed once already, with the same answers.
        let _parsed = self.fill(&mut |field, name| {
            if !found.iter().any(|(f, n)| f == field && n == name) {
                found.push((field.to_owned(), name.to_owned()));
            }
            Ok(Value::Int(0))
        });
        found
    }

    /// The filter with every placeholder replaced by what `fill(column, placeholder)` gives.
    ///
    /// # Errors
    /// Where the text is no filter, or `fill` says so.
    pub fn fill(&self, fill: Fill<'_>) -> Result<Filter, FilterError> {
        let mut parser = Parser { text: &self.text, tokens: &self.tokens, at: 0, fill };
        let filter = parser.any()?;
        match parser.tokens.get(parser.at) {
            None => Ok(filter),
            Some(token) => Err(parser.fault(format!("{token} was not expected"))),
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(word) => write!(f, "{word:?}"),
            Token::Value(value) => write!(f, "{value}"),
            Token::Hole(name) => write!(f, "{{{name}}}"),
            Token::Sign(sign) => write!(f, "{sign:?}"),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
    fill: Fill<'a>,
}

impl Parser<'_> {
    fn fault(&self, reason: String) -> FilterError {
        FilterError::Syntax { text: self.text.to_owned(), reason }
    }

    fn keyword(&mut self, word: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Word(w)) if w.eq_ignore_ascii_case(word));
        self.at += usize::from(found);
        found
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Sign(s)) if *s == sign);
        self.at += usize::from(found);
        found
    }

    fn any(&mut self) -> Result<Filter, FilterError> {
        let mut parts = vec![self.all()?];
        while self.keyword("OR") {
            parts.push(self.all()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Filter::Or(parts) })
    }

    fn all(&mut self) -> Result<Filter, FilterError> {
        let mut parts = vec![self.one()?];
        while self.keyword("AND") {
            parts.push(self.one()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Filter::And(parts) })
    }

    fn one(&mut self) -> Result<Filter, FilterError> {
        if self.sign("(") {
            let inner = self.any()?;
            return if self.sign(")") { Ok(inner) } else { Err(self.fault("a ) is missing".into())) };
        }
        let Some(Token::Word(field)) = self.tokens.get(self.at).cloned() else {
            return Err(self.fault("a column name was expected".into()));
        };
        self.at += 1;
        if self.keyword("IN") {
            return self.list(field);
        }
        if self.keyword("BETWEEN") {
            let low = Some((self.value(&field)?, true));
            if !self.keyword("AND") {
                return Err(self.fault("BETWEEN needs AND".into()));
            }
            let high = Some((self.value(&field)?, true));
            return Ok(Filter::Range { field, low, high });
        }
        let Some(Token::Sign(sign)) = self.tokens.get(self.at) else {
            return Err(self.fault(format!("{field:?} needs =, <, <=, >, >=, IN or BETWEEN after it")));
        };
        let sign = *sign;
        self.at += 1;
        let value = self.value(&field)?;
        Ok(match sign {
            "=" => Filter::Eq(field, value),
            "<" | "<=" => Filter::Range { field, low: None, high: Some((value, sign == "<=")) },
            ">" | ">=" => Filter::Range { field, low: Some((value, sign == ">=")), high: None },
            _ => return Err(self.fault(format!("{sign:?} compares nothing"))),
        })
    }

    fn list(&mut self, field: String) -> Result<Filter, FilterError> {
        if !self.sign("(") {
            return Err(self.fault("IN needs a list in ( )".into()));
        }
        let mut values = vec![self.value(&field)?];
        while self.sign(",") {
            values.push(self.value(&field)?);
        }
        if self.sign(")") { Ok(Filter::In(field, values)) } else { Err(self.fault("a ) is missing".into())) }
    }

    fn value(&mut self, field: &str) -> Result<Value, FilterError> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        match token {
            Some(Token::Value(value)) => Ok(value),
            Some(Token::Hole(name)) => (self.fill)(field, &name),
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("true") => Ok(Value::Bool(true)),
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("false") => Ok(Value::Bool(false)),
            Some(token) => {
                Err(self.fault(format!("a value was expected, not {token} (texts stand in 'quotes')")))
            }
            None => Err(self.fault("a value is missing at the end".into())),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    const SIGNS: [&str; 9] = ["<=", ">=", "==", "=", "<", ">", "(", ")", ","];
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if let Some(sign) = SIGNS.iter().find(|s| rest.starts_with(**s)) {
            out.push(Token::Sign(if *sign == "==" { "=" } else { sign }));
            rest = &rest[sign.len()..];
        } else if first == '\'' || first == '"' {
            let (value, after) = quoted(rest, first)?;
            out.push(if first == '\'' { Token::Value(Value::Text(value)) } else { Token::Word(value) });
            rest = after;
        } else if first == '{' {
            let end = rest.find('}').ok_or("a } is missing")?;
            out.push(Token::Hole(rest[1..end].trim().to_owned()));
            rest = &rest[end + 1..];
        } else {
            let end =
                rest.find(|c: char| c.is_whitespace() || "<>=(),'\"{".contains(c)).unwrap_or(rest.len());
            if end == 0 {
                return Err(format!("{first:?} was not expected"));
            }
            out.push(bare(&rest[..end])?);
            rest = &rest[end..];
        }
        rest = rest.trim_start();
    }
    if out.is_empty() { Err("it is empty".into()) } else { Ok(out) }
}

fn quoted(rest: &str, quote: char) -> Result<(String, &str), String> {
    let mut value = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c != quote {
            value.push(c);
        } else if chars.peek().is_some_and(|(_, next)| *next == quote) {
            value.push(quote);
            chars.next();
        } else {
            return Ok((value, &rest[at + 1..]));
        }
    }
    Err(format!("a {quote} is missing"))
}

fn bare(word: &str) -> Result<Token, String> {
    if word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        if let Ok(int) = word.parse::<i64>() {
            return Ok(Token::Value(Value::Int(int)));
        }
        return match word.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Token::Value(Value::Float(float))),
            _ => Err(format!("{word:?} is no number")),
        };
    }
    Ok(Token::Word(word.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, ColumnData, Columns};

    fn table() -> Columns {
        Columns::new(vec![
            Column { name: "n".into(), data: ColumnData::Int(vec![Some(1), Some(5), None, Some(9)]) },
            Column { name: "f".into(), data: ColumnData::Float(vec![Some(0.5), Some(1.0), Some(2.0), None]) },
            Column {
                name: "b".into(),
                data: ColumnData::Bool(vec![Some(true), Some(false), Some(true), None]),
            },
            Column {
                name: "s".into(),
                data: ColumnData::Text(["a", "b", "it's", "a"].map(|s| Some(s.to_owned())).to_vec()),
            },
        ])
        .unwrap()
    }

    #[test]
    fn every_form_selects_the_rows_it_says_and_reads_back_from_its_own_text() {
        let columns = table();
        for (text, rows) in [
            ("n = 5", vec![1]),
            ("n IN (1, 9)", vec![0, 3]),
            ("n > 1", vec![1, 3]),
            ("n >= 1 AND n <= 5", vec![0, 1]),
            ("n BETWEEN 1 AND 5", vec![0, 1]),
            ("f = 1", vec![1]),
            ("f < 1.5", vec![0, 1]),
            ("b = true", vec![0, 2]),
            ("s = 'it''s'", vec![2]),
            ("s IN ('a', 'b') AND (n = 1 OR n = 5)", vec![0, 1]),
            ("s >= 'b'", vec![1, 2]),
            ("n = 77", vec![]),
        ] {
            let filter: Filter = text.parse().unwrap();
            assert_eq!(filter.rows(&columns).unwrap().iter().collect::<Vec<_>>(), rows, "{text}");
            assert_eq!(filter.to_string().parse::<Filter>().unwrap().to_string(), filter.to_string());
        }
    }

    #[test]
    fn wrong_types_fields_and_texts_are_refused_by_name() {
        let columns = table();
        for (text, part) in [
            ("n = 'a'", "another type"),
            ("s < 3", "another type"),
            ("b > true", "another type"),
            ("q = 3", "columns are: n, f, b, s"),
        ] {
            let error = text.parse::<Filter>().unwrap().rows(&columns).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        for text in
            ["", "n", "n =", "n = = 3", "(n = 3", "n IN 3", "n = 3 4", "n = 'a", "n = {q}", "n = 1x", "é é"]
        {
            assert!(text.parse::<Filter>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_template_names_its_placeholders_and_takes_their_values() {
        let template = FilterTemplate::parse("s = {q} AND (n < {far} OR s = { q })").unwrap();
        assert!(template.per_query());
        let pair = |field: &str, name: &str| (field.to_owned(), name.to_owned());
        assert_eq!(template.placeholders(), [pair("s", "q"), pair("n", "far")]);
        let filled = template.fill(&mut |field, _| Ok(Value::Text(field.to_owned()))).unwrap();
        assert_eq!(filled.to_string(), "s = 's' AND (n < 'n' OR s = 's')");
    }
}
