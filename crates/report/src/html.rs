//! The page: one file, no request to anywhere, readable without scripts.

use crate::{
    ChartData, ReportError, Table, engine_facts, manifest, svg,
    tables::{checklist, floors, invalid, loading, setup, sweep},
    view::{Comparison, View},
};
use minijinja::{Environment, Value, context, syntax::SyntaxConfig, value::Serde};
use serde::Serialize;

/// The whole page. Everything from records is escaped by the template, but drawings (which escape
/// by themselves) and the embedded JSON.
pub(crate) fn page(
    view: &View<'_>,
    comparisons: &[Comparison<'_>],
    charts: &[ChartData],
) -> Result<String, ReportError> {
    let m = view.manifest;
    let mut environment = Environment::new();
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    let source = concat!(include_str!("templates/table.html"), include_str!("templates/report.html"));
    environment.add_template("report.html", source)?;
    let (verdict, reasons) = manifest::verdict(m);
    let drawings: Vec<Value> = charts
        .iter()
        .enumerate()
        .map(|(at, chart)| {
            let wide = svg::draw(chart, svg::WIDE, &format!("wide{at}"));
            let narrow = svg::draw(chart, svg::NARROW, &format!("narrow{at}"));
            let limited: usize =
                chart.series.iter().flat_map(|s| &s.points).filter(|p| p.client_limited).count();
            context! {
                title => &chart.title,
                left_out => value(&chart.left_out),
                limited,
                wide => Value::from_safe_string(wide),
                narrow => Value::from_safe_string(narrow),
            }
        })
        .collect();
    let engines: Vec<Value> = m
        .engines
        .iter()
        .map(|(name, engine)| {
            let settings = manifest::settings(engine);
            let (differing, same): (Vec<_>, Vec<_>) = settings.into_iter().partition(|s| s.differs);
            context! {
                name,
                engine => value(engine),
                differing => value(differing),
                same => value(same),
                filters => engine_facts::filters(&engine.definition),
                lacks => value(engine_facts::lacks(&engine.definition)),
                server => value(engine.server.as_ref().map(manifest::flatten).unwrap_or_default()),
                definition => value(manifest::flatten(&engine.definition)),
            }
        })
        .collect();
    let floors: Vec<Table> = comparisons.iter().map(floors::wide).collect();
    let sweeps: Vec<Value> = comparisons
        .iter()
        .map(|comparison| {
            let table = sweep::table(comparison);
            context! { title => &table.title, count => table.rows.len(), parts => value(table.split(1)) }
        })
        .collect();
    Ok(environment.get_template("report.html")?.render(context! {
        name => &m.name,
        date => &m.created_at,
        tool => manifest::tool(m),
        verdict,
        reasons,
        verdict_class => verdict.to_lowercase().replace(' ', "-"),
        setup => value(setup::table(view)),
        floors => value(floors),
        loading => value(without_constant(loading::table(view), "dataset")),
        sweeps,
        invalid => value(invalid::table(view)),
        checklist => value(checklist::table(view, comparisons)),
        charts => drawings,
        engines,
        sections => value(manifest::sections(m)),
        data => Value::from_safe_string(embedded(charts)),
        style => Value::from_safe_string(include_str!("templates/report.css").into()),
        script => Value::from_safe_string(include_str!("templates/report.js").into()),
    })?)
}

/// Leaves out a column that says the same in each row, to save room.
fn without_constant(mut table: Table, key: &str) -> Table {
    let same = |at: &usize| table.rows.windows(2).all(|pair| pair[0][*at].raw == pair[1][*at].raw);
    if let Some(at) = table.columns.iter().position(|c| c.key == key).filter(same) {
        table.columns.remove(at);
        for row in &mut table.rows {
            row.remove(at);
        }
    }
    table
}

/// JSON that is safe inside a script element: no `<`, `>` or `&` stands in it as such.
fn embedded(charts: &[ChartData]) -> String {
    let text = serde_json::to_string(charts).unwrap_or_else(|_| "[]".into());
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

fn value(data: impl Serialize) -> Value {
    Value::from(Serde(data))
}

#[cfg(test)]
#[path = "browser_tests.rs"]
mod browser_tests;
