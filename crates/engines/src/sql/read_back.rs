//! The index as the catalogue shows it.

use super::table::{Table, fill};
use engine::{Definition, EngineError, ErrorKind, IndexInfo, Param, Params, sql::ReadBackDef};

/// Finds kind and parameters in `text`; none where it is empty, or no kind stands in it.
///
/// # Errors
/// Where a value is of another type than the parameter, or what must stand in it does not.
pub(crate) fn index(
    text: &str,
    def: &ReadBackDef,
    definition: &Definition,
    table: &Table,
) -> Result<Option<IndexInfo>, EngineError> {
    let Some(kind) = def.find.get("kind").and_then(|pattern| pattern.find(text)) else { return Ok(None) };
    let ours = def.kinds.iter().find(|(_, theirs)| theirs.eq_ignore_ascii_case(kind)).map(|(ours, _)| ours);
    let kind = ours.cloned().unwrap_or_else(|| kind.to_ascii_lowercase());
    for template in &def.holds {
        let expected = fill(template, table.names())?;
        if !text.contains(&expected) {
            let text = format!("the index is not the one asked for: {expected:?} does not stand in {text:?}");
            return Err(EngineError::new(ErrorKind::WrongAnswer, text));
        }
    }
    let mut params = Params::new();
    let known = definition.index.iter().find(|i| i.kind == kind).map(|i| &i.params);
    for (name, pattern) in &def.find {
        let default = known.and_then(|params| params.get(name)).map(|p| &p.default);
        if let (Some(default), Some(value)) = (default, pattern.find(text)) {
            params.insert(name.clone(), typed(name, value, default)?);
        }
    }
    let indexed = def.find.get("indexed").and_then(|p| p.find(text)).and_then(|v| v.parse().ok());
    Ok(Some(IndexInfo { kind, params, indexed, remarks: Vec::new() }))
}

/// A text as a value of the type of `like`.
fn typed(name: &str, text: &str, like: &Param) -> Result<Param, EngineError> {
    let value = match like {
        Param::Int(_) => text.parse().ok().map(Param::Int),
        Param::Float(_) => text.parse().ok().map(Param::Float),
        Param::Bool(_) => match text {
            "true" | "on" | "1" => Some(Param::Bool(true)),
            "false" | "off" | "0" => Some(Param::Bool(false)),
            _ => None,
        },
        Param::Text(_) => Some(Param::Text(text.to_owned())),
    };
    value.ok_or_else(|| {
        let text = format!("{name} was read back as {text:?}, which is of another type than {like}");
        EngineError::new(ErrorKind::WrongAnswer, text)
    })
}
