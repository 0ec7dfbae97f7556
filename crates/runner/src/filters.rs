//! From a filter as typed to the filter of each query.

use crate::RunnerError;
use dataset::{Dataset, FilteredTruth};
use std::{collections::HashMap, sync::Arc};
use types::{Column, Columns, Filter, FilterTemplate, Filters, Value};

/// The filter of each query from its text. Where the data set brings a truth of that name or text
/// with its values, they are taken. Else, for a placeholder after a column:
///
/// | placeholder | value |
/// |---|---|
/// | `{q}` | the query's own value in the column compared |
/// | `{name}` | the query's value in the query column `name` |
/// | `{far}` | a value whose rows lie far from the query ([`exact::far_values`]), where no query column has that name |
/// | `{other}` | any value but its own ([`exact::other_values`]), likewise |
///
/// # Errors
/// Where the text is no filter or does not fit the columns.
pub fn filters_of(dataset: &Dataset, name: &str, text: &str) -> Result<Filters, RunnerError> {
    let Some(columns) = &dataset.columns else {
        return Err(RunnerError::Refused(format!(
            "{}: filter {text}, but it has no columns; give a file of them with --columns",
            dataset.name
        )));
    };
    let template = FilterTemplate::parse(text).map_err(fault)?;
    let holes = template.placeholders();
    let own_only = holes.iter().all(|(_, hole)| hole == "q");
    let known = |f: &&FilteredTruth| {
        let named = f.name == name || f.filter.as_ref().is_some_and(|t| t.text() == text);
        named && (own_only || !f.values.is_empty())
    };
    let filters = if let Some(known) = dataset.filtered.iter().find(known).filter(|_| template.per_query()) {
        known.filters(columns, dataset.query_columns.as_ref()).map_err(fault)?
    } else if template.per_query() {
        per_query(dataset, columns, &template, holes)?
    } else {
        Filters::Same(Arc::new(text.parse().map_err(fault)?))
    };
    for (filter, _) in filters.groups(dataset.queries.rows()) {
        if let Some(filter) = filter {
            filter.check(columns).map_err(fault)?;
        }
    }
    Ok(filters)
}

fn fault(error: types::FilterError) -> RunnerError {
    RunnerError::Refused(error.to_string())
}

fn per_query(
    dataset: &Dataset,
    columns: &Columns,
    template: &FilterTemplate,
    holes: Vec<(String, String)>,
) -> Result<Filters, RunnerError> {
    let mut values: HashMap<(String, String), Values<'_>> = HashMap::new();
    for (field, hole) in holes {
        let found = Values::of(dataset, columns, template.text(), &field, &hole)?;
        values.insert((field, hole), found);
    }
    let mut shared: HashMap<String, Arc<Filter>> = HashMap::new();
    let mut list = Vec::with_capacity(dataset.queries.rows());
    for query in 0..dataset.queries.rows() {
        let filter = template.fill(&mut |field, hole| {
            let value = values.get(&(field.to_owned(), hole.to_owned())).and_then(|v| v.get(query));
            value.ok_or_else(|| types::FilterError::Syntax {
                text: template.text().to_owned(),
                reason: format!("query {query} has no value for {field} = {{{hole}}}"),
            })
        });
        let filter = filter.map_err(fault)?;
        list.push(shared.entry(filter.to_string()).or_insert_with(|| Arc::new(filter)).clone());
    }
    Ok(Filters::PerQuery(list))
}

/// What a placeholder stands for, by query.
enum Values<'a> {
    Column(&'a Column),
    Chosen(Vec<Option<Value>>),
}

impl<'a> Values<'a> {
    fn of(
        dataset: &'a Dataset,
        columns: &Columns,
        text: &str,
        field: &str,
        hole: &str,
    ) -> Result<Values<'a>, RunnerError> {
        let of_queries = dataset.query_columns.as_ref();
        let own = of_queries.and_then(|c| c.get(field));
        let named = if hole == "q" { own } else { of_queries.and_then(|c| c.get(hole)) };
        if let Some(column) = named {
            return Ok(Values::Column(column));
        }
        let refused = |reason: String| Err(RunnerError::Refused(format!("filter {text}: {reason}")));
        if hole == "q" {
            return match of_queries {
                None => refused("it needs the queries' own values; give --query-columns".to_owned()),
                Some(there) => {
                    refused(format!("the query columns lack {field:?}; they are {}", names(there)))
                }
            };
        }
        let Some(column) = columns.get(field) else {
            return refused(format!("there is no column {field:?}; they are {}", names(columns)));
        };
        match hole {
            "far" => {
                let metric = dataset.require_metric()?;
                let values = exact::far_values(&dataset.base, &dataset.queries, metric, column, own)?;
                Ok(Values::Chosen(values))
            }
            "other" => Ok(Values::Chosen(exact::other_values(column, own, dataset.queries.rows())?)),
            _ => {
                let there = of_queries.map_or_else(|| "none".to_owned(), names);
                refused(format!(
                    "{{{hole}}} is nothing; there is {{q}} (the query's own value), {{far}}, {{other}} and the query columns: {there}"
                ))
            }
        }
    }

    fn get(&self, query: usize) -> Option<Value> {
        match self {
            Values::Column(column) => (query < column.data.len()).then(|| column.value(query)).flatten(),
            Values::Chosen(values) => values.get(query).cloned().flatten(),
        }
    }
}

fn names(columns: &Columns) -> String {
    columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ")
}
