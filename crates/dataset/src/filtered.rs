//! From a filtered truth's template to the filter of each query.

use crate::FilteredTruth;
use std::{collections::HashMap, sync::Arc};
use types::{ColumnData, Columns, FilterError, Filters, Value};

impl FilteredTruth {
    /// The filter that each query was answered under: `{q}` is the query's own value in the column
    /// compared, any other placeholder is what [`FilteredTruth::values`] says for that query, read
    /// as the type that the column has in `columns`.
    ///
    /// # Errors
    /// Where the truth names no filter, a value is missing or does not fit the column.
    pub fn filters(
        &self,
        columns: &Columns,
        query_columns: Option<&Columns>,
    ) -> Result<Filters, FilterError> {
        let fault = |reason: String| FilterError::Syntax {
            text: self.filter.as_ref().map_or_else(|| self.name.clone(), |f| f.text().to_owned()),
            reason,
        };
        let template = self.filter.as_ref().ok_or_else(|| {
            fault(format!("the truth for {:?} names no filter; give one with the filter's name", self.name))
        })?;
        let mut known: HashMap<String, Arc<types::Filter>> = HashMap::new();
        let mut filters = Vec::with_capacity(self.truth.queries());
        for query in 0..self.truth.queries() {
            let filter = template.fill(&mut |field, hole| {
                if let Some(text) = self.values.get(query).and_then(Option::as_deref)
                    && hole != "q"
                {
                    return typed(columns, field, text).ok_or_else(|| {
                        fault(format!("query {query}: {text:?} is no value of column {field:?}"))
                    });
                }
                let column =
                    query_columns.and_then(|c| c.get(field)).filter(|_| hole == "q").ok_or_else(|| {
                        fault(format!(
                            "{{{hole}}} has no value for query {query}: the query columns lack {field:?}"
                        ))
                    })?;
                (query < column.data.len())
                    .then(|| column.value(query))
                    .flatten()
                    .ok_or_else(|| fault(format!("query {query} has no value in {field:?}")))
            })?;
            if !template.per_query() {
                return Ok(Filters::Same(Arc::new(filter)));
            }
            filters.push(known.entry(filter.to_string()).or_insert_with(|| Arc::new(filter)).clone());
        }
        Ok(Filters::PerQuery(filters))
    }
}

/// `text` as a value of the column's type.
fn typed(columns: &Columns, field: &str, text: &str) -> Option<Value> {
    match columns.get(field)?.data {
        ColumnData::Int(_) => text.parse().ok().map(Value::Int),
        ColumnData::Float(_) => text.parse().ok().map(Value::Float),
        ColumnData::Bool(_) => text.parse().ok().map(Value::Bool),
        ColumnData::Text(_) => Some(Value::Text(text.to_owned())),
    }
}
