//! From a name or a path to a definition, and from a definition to an engine.

use crate::{
    Passwords,
    embedded::{flat, usearch},
};
use engine::{Definition, DefinitionError, Engine, EngineError, ErrorKind};
use std::path::Path;
use std::sync::LazyLock;

/// The files built in: origin for messages, text.
const BUILT_IN: [(&str, &str); 13] = [
    ("engines/usearch.toml", include_str!("../../../engines/usearch.toml")),
    ("engines/flat.toml", include_str!("../../../engines/flat.toml")),
    ("engines/pgvector.toml", include_str!("../../../engines/pgvector.toml")),
    ("engines/mariadb.toml", include_str!("../../../engines/mariadb.toml")),
    ("engines/serenedb.toml", include_str!("../../../engines/serenedb.toml")),
    ("engines/vectorchord.toml", include_str!("../../../engines/vectorchord.toml")),
    ("engines/pgvectorscale.toml", include_str!("../../../engines/pgvectorscale.toml")),
    ("engines/alisql.toml", include_str!("../../../engines/alisql.toml")),
    ("engines/villagesql.toml", include_str!("../../../engines/villagesql.toml")),
    ("engines/mysql-scann.toml", include_str!("../../../engines/mysql-scann.toml")),
    ("engines/seekdb.toml", include_str!("../../../engines/seekdb.toml")),
    ("engines/fake.toml", include_str!("../../../engines/fake.toml")),
    ("engines/null.toml", include_str!("../../../engines/null.toml")),
];

static DEFINITIONS: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    // A file that does not parse is caught by this crate's tests, so none is left out in a release.
    BUILT_IN.iter().filter_map(|(origin, text)| Definition::parse(text, origin).ok()).collect()
});

/// The definitions built in.
pub fn definitions() -> Vec<Definition> {
    DEFINITIONS.clone()
}

/// The definition named: `usearch`, a path (`./my.toml`, anything with a `/` or ending in
/// `.toml`), either with options of the protocol behind a colon: `fake:service_ms=5,fail_share=0.1`. The option
/// `name` gives it another name, so that two versions of a product can stand in one run:
/// `mariadb:name=mariadb-12`.
///
/// # Errors
/// One line: no such name (with the nearest and all there are), no such file, or what is wrong in
/// it.
pub fn find(name_or_path: &str) -> Result<Definition, DefinitionError> {
    let (place, options) = split_options(name_or_path);
    let mut definition =
        if place.contains('/') || place.ends_with(".toml") { read(Path::new(place))? } else { named(place)? };
    for (name, value) in parse_options(options)? {
        match (name.as_str(), value.as_str()) {
            ("name", Some(own)) => definition.rename(own)?,
            _ => drop(definition.options.insert(name, value)),
        }
    }
    Ok(definition)
}

/// The engine that `definition` describes; `address` where a server is reached.
///
/// # Errors
/// Where the protocol is not one of this version, the address is missing or superfluous, or an
/// option is unknown.
pub fn open(
    definition: &Definition,
    address: Option<&str>,
    passwords: &Passwords,
) -> Result<Box<dyn Engine>, EngineError> {
    let unsupported = |what: String| Err(EngineError::new(ErrorKind::Unsupported, what));
    match definition.protocol.as_str() {
        // The address may hold a password, so it is not repeated.
        "usearch" | "flat" | "fake" if address.is_some() => {
            unsupported(format!("{} runs inside Annvil and has no address; leave out --at", definition.name))
        }
        "usearch" => usearch::open(definition),
        "flat" => flat::open(definition),
        "fake" => engine::fake::open(definition),
        "postgres" => crate::postgres::open(definition, address_of(definition, address)?, passwords),
        "mysql" => crate::mysql::open(definition, address_of(definition, address)?, passwords),
        other => unsupported(format!(
            "{} speaks the protocol {other:?}; this version of Annvil knows: usearch, flat, fake, postgres, mysql",
            definition.name
        )),
    }
}

/// The address of a server.
fn address_of<'a>(definition: &Definition, address: Option<&'a str>) -> Result<&'a str, EngineError> {
    address.ok_or_else(|| {
        let (name, scheme) = (&definition.name, &definition.protocol);
        let text =
            format!("{name} is a server: give its address, such as --at {scheme}://user@host/database");
        EngineError::new(ErrorKind::Unsupported, text)
    })
}

fn named(name: &str) -> Result<Definition, DefinitionError> {
    if let Some(definition) = DEFINITIONS.iter().find(|d| d.name.eq_ignore_ascii_case(name)) {
        return Ok(definition.clone());
    }
    let names: Vec<&str> = DEFINITIONS.iter().map(|d| d.name.as_str()).collect();
    let near = names.iter().map(|known| (edits(name, known), *known)).min().filter(|(edits, _)| *edits <= 2);
    let hint = near.map_or_else(String::new, |(_, known)| format!("did you mean {known:?}? "));
    Err(DefinitionError(format!(
        "unknown engine {name:?}; {hint}Built in: {}; or give the path of a definition file",
        names.join(", ")
    )))
}

fn read(path: &Path) -> Result<Definition, DefinitionError> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| DefinitionError(format!("engine definition {}: {e}", path.display())))?;
    Definition::parse(&text, &path.display().to_string())
}

/// Splits `name:options`; a colon before the last `/` or `\` belongs to the path.
fn split_options(text: &str) -> (&str, &str) {
    let from = text.rfind(['/', '\\']).map_or(0, |at| at + 1);
    // Options may hold paths themselves (`fake:log=/tmp/x`): the first `:` after which a `=` comes.
    let colon = text.find(':').filter(|&at| at >= from || text[at..].contains('='));
    colon.map_or((text, ""), |at| (&text[..at], &text[at + 1..]))
}

/// `a=1,b=word,c=[1,2]` as TOML values; a value that is no TOML is a text.
fn parse_options(text: &str) -> Result<Vec<(String, toml::Value)>, DefinitionError> {
    let mut options = Vec::new();
    for part in split_at_commas(text) {
        let Some((name, value)) = part.split_once('=') else {
            return Err(DefinitionError(format!("engine option {part:?} has no value; write name=value")));
        };
        let parsed = toml::from_str::<toml::Table>(&format!("value = {value}")).ok();
        let value = parsed
            .and_then(|mut table| table.remove("value"))
            .unwrap_or_else(|| toml::Value::String(value.trim().to_owned()));
        options.push((name.trim().to_owned(), value));
    }
    Ok(options)
}

/// The parts between commas that stand outside quotes and brackets.
fn split_at_commas(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0_i32, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth <= 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Levenshtein distance: single-letter edits between two words.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(!x.eq_ignore_ascii_case(y));
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_built_in_parses_and_opens() {
        for (origin, text) in BUILT_IN {
            let definition = Definition::parse(text, origin).unwrap();
            assert_eq!(origin, format!("engines/{}.toml", definition.name));
            if definition.capabilities.embedded {
                open(&definition, None, &Passwords::default()).unwrap();
                assert!(
                    open(&definition, Some("localhost:1"), &Passwords::default()).is_err(),
                    "{origin} has no address"
                );
            } else {
                let error = open(&definition, None, &Passwords::default()).err().unwrap().to_string();
                assert!(error.contains("--at"), "{origin}: {error}");
                open(
                    &definition,
                    Some(&format!("{}://u@localhost:1/b", definition.protocol)),
                    &Passwords::default(),
                )
                .unwrap();
            }
        }
        assert_eq!(definitions().len(), BUILT_IN.len());
    }

    /// The example of docs/add-an-engine.md is one that works, and its list of checks is complete.
    #[test]
    fn the_page_on_adding_an_engine_tells_the_truth() {
        let page = include_str!("../../../docs/add-an-engine.md");
        let example = page.split("```toml").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let definition = Definition::parse(example, "docs/add-an-engine.md").unwrap();
        let engine = open(&definition, None, &Passwords::default()).unwrap();
        for result in engine::contract::run(&*engine, &definition, &engine::contract::Options::default()) {
            assert!(!matches!(result.outcome, engine::contract::Outcome::Failed(_)), "{result:?}");
            assert!(page.contains(&format!("`{}`", result.name)), "{} is not on the page", result.name);
        }
    }

    /// The example of a database that speaks SQL is a whole definition, and every key of `[sql]` that the page names is one.
    #[test]
    fn the_page_shows_a_database_that_speaks_sql() {
        let page = include_str!("../../../docs/add-an-engine.md");
        let example = page.split("```toml").nth(2).and_then(|rest| rest.split("```").next()).unwrap();
        let definition = Definition::parse(example, "docs/add-an-engine.md").unwrap();
        assert!(definition.sql.is_some() && definition.index[0].sql.is_some());
        open(&definition, Some("mysql://me@localhost:1/b"), &Passwords::default()).unwrap();
        for (name, form) in [("f32_le", "pg_vec"), ("text", "pg_float_array"), ("literal", "pg_bit")] {
            for form in [name, form] {
                assert!(page.contains(&format!("| `{form}` |")), "{form} is not on the page");
                let other = example.replace("vector = \"f32_le\"", &format!("vector = \"{form}\""));
                Definition::parse(&other, "docs/add-an-engine.md").unwrap();
            }
        }
    }

    #[test]
    fn a_wrong_name_says_which_is_meant_and_which_there_are() {
        let error = find("usarch").unwrap_err().to_string();
        assert!(error.contains("\"usearch\"") && error.contains("flat") && !error.contains('\n'), "{error}");
        let error = find("postgres").unwrap_err().to_string();
        assert!(!error.contains("did you mean") && error.contains("Built in: usearch, flat"), "{error}");
    }

    #[test]
    fn options_behind_a_name_are_typed() {
        let options =
            find("fake:service_ms=5,fail_share=0.1,log=/tmp/a b,read_back={m=8, ef=2},shared_lock=true")
                .unwrap()
                .options;
        assert_eq!(options["service_ms"].as_integer(), Some(5));
        assert_eq!(options["fail_share"].as_float(), Some(0.1));
        assert_eq!(options["log"].as_str(), Some("/tmp/a b"));
        assert_eq!(options["read_back"]["m"].as_integer(), Some(8));
        assert_eq!(options["shared_lock"].as_bool(), Some(true));
        assert!(find("fake:slow").unwrap_err().to_string().contains("name=value"));
        let error =
            open(&find("fake:sloow_ms=1").unwrap(), None, &Passwords::default()).err().unwrap().to_string();
        assert!(error.contains("sloow_ms") && error.contains("slow_ms"), "{error}");
        let error = open(&find("flat:x=1").unwrap(), None, &Passwords::default()).err().unwrap().to_string();
        assert!(error.contains("flat") && error.contains('x'), "{error}");
    }

    #[test]
    fn a_product_may_stand_twice_under_two_names() {
        let other = find("mariadb:name=mariadb-12").unwrap();
        assert_eq!((other.name.as_str(), other.title.as_str()), ("mariadb-12", "MariaDB (mariadb-12)"));
        assert!(other.options.is_empty());
        assert!(find("mariadb:name='a b'").unwrap_err().to_string().contains("letters"));
    }

    #[test]
    fn a_file_by_path_overrides_what_is_built_in() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.toml");
        let text = include_str!("../../../engines/fake.toml").replace("name = \"fake\"", "name = \"mine\"");
        std::fs::write(&path, &text).unwrap();
        let path = path.to_str().unwrap();
        assert_eq!(find(path).unwrap().name, "mine");
        assert_eq!(find(&format!("{path}:seed=9")).unwrap().options["seed"].as_integer(), Some(9));
        std::fs::write(path, text.replace("protocol = \"fake\"", "protocol = \"gopher\"")).unwrap();
        let error = open(&find(path).unwrap(), None, &Passwords::default()).err().unwrap().to_string();
        assert!(error.contains("gopher") && error.contains("usearch"), "{error}");
        std::fs::write(path, "nme = 1").unwrap();
        assert!(find(path).unwrap_err().to_string().contains("line 1"));
        assert!(find("./none.toml").unwrap_err().to_string().contains("./none.toml"));
    }
}
