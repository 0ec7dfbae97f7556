//! Texts of a definition with places to fill in: statements, arguments, budget rules.
//!
//! The language is Jinja's (the minijinja crate): `{{ name }}`, `{% if quantization == "halfvec" %}`.
//! A name that is not known is an error, never an empty place. Templates are filled in before the
//! clock starts; on the timed path no text is made.

use minijinja::{Environment, UndefinedBehavior, Value};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A text with places to fill in. Checked for its syntax when a definition is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template(String);

/// The names that a template may use, with their values.
#[derive(Clone, Debug, Default)]
pub struct Names(BTreeMap<String, Value>);

/// A template that can't be read or filled in: one line with the reason and the template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(String);

impl TryFrom<String> for Template {
    type Error = TemplateError;

    fn try_from(text: String) -> Result<Self, TemplateError> {
        environment().template_from_str(&text).map_err(|e| fault(&text, &e))?;
        Ok(Template(text))
    }
}

impl From<Template> for String {
    fn from(template: Template) -> String {
        template.0
    }
}

impl Template {
    /// A template of this program's own.
    pub(crate) fn fixed(text: &str) -> Self {
        Template(text.to_owned())
    }

    /// The text as written.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The text with every place filled in; runs of spaces and line ends become one space, so that
    /// a statement may be written over several lines.
    ///
    /// # Errors
    /// Where it uses a name that is not among `names`.
    pub fn fill(&self, names: &Names) -> Result<String, TemplateError> {
        let text = self.fill_as_written(names)?;
        Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// The text with every place filled in and every space kept: arguments of programs, which may
    /// be paths.
    ///
    /// # Errors
    /// Where it uses a name that is not among `names`.
    pub fn fill_as_written(&self, names: &Names) -> Result<String, TemplateError> {
        environment().render_str(&self.0, &names.0).map_err(|e| fault(&self.0, &e))
    }

    /// The names it uses, in any branch.
    pub fn uses(&self) -> BTreeSet<String> {
        let environment = environment();
        let template = environment.template_from_str(&self.0);
        template.map(|t| t.undeclared_variables(false).into_iter().collect()).unwrap_or_default()
    }
}

impl Names {
    /// Adds a name or replaces its value.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) -> &mut Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// These names and one more.
    #[must_use]
    pub fn with(&self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        let mut names = self.clone();
        names.set(name, value);
        names
    }
}

impl From<&crate::Param> for Value {
    fn from(param: &crate::Param) -> Value {
        match param {
            crate::Param::Int(v) => Value::from(*v),
            crate::Param::Float(v) => Value::from(*v),
            crate::Param::Bool(v) => Value::from(*v),
            crate::Param::Text(v) => Value::from(v.as_str()),
        }
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
}

fn fault(text: &str, error: &minijinja::Error) -> TemplateError {
    let detail = error.detail().map(|d| format!(": {d}")).unwrap_or_default();
    let short: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    TemplateError(format!("the template {short:?} can't be used: {}{detail}", error.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Param;

    fn template(text: &str) -> Result<Template, TemplateError> {
        Template::try_from(text.to_owned())
    }

    #[test]
    fn names_are_filled_in_and_lines_joined() {
        let mut names = Names::default();
        names.set("m", Value::from(&Param::Int(16))).set("quantization", "halfvec");
        let text =
            template("WITH (m = {{ m }})\n  {% if quantization == 'halfvec' %}::halfvec{% endif %}").unwrap();
        assert_eq!(text.fill(&names).unwrap(), "WITH (m = 16) ::halfvec");
        let rule = template("{{ (memory_mib * 0.25) | int }}MB").unwrap();
        assert_eq!(rule.fill(&names.with("memory_mib", 4096)).unwrap(), "1024MB");
    }

    #[test]
    fn arguments_keep_their_spaces_and_names_are_told() {
        let text = template("-D {{ data }}{% if deep %}/{{ below }}{% endif %}").unwrap();
        let mut names = Names::default();
        names.set("data", "/a  b").set("deep", false);
        assert_eq!(text.fill_as_written(&names).unwrap(), "-D /a  b");
        assert_eq!(text.fill(&names).unwrap(), "-D /a b");
        assert_eq!(text.uses(), ["below", "data", "deep"].map(String::from).into());
    }

    #[test]
    fn what_is_not_known_is_named_and_never_left_empty() {
        let error = template("SET x = {{ effrt }}").unwrap().fill(&Names::default()).unwrap_err().to_string();
        assert!(error.contains("effrt") && !error.contains('\n'), "{error}");
        let error = template("SET x = {{ effort").unwrap_err().to_string();
        assert!(error.contains("effort") && !error.contains('\n'), "{error}");
    }
}
