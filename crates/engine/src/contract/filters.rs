//! Filters, each kind that the engine claims, against the suite's own evaluation.

use super::{Subject, Verdict, answers::repeated, data::TEXTS, failed, lacking, subject::K};
use crate::FilterMode;
use std::sync::Arc;
use types::{Filter, FilterKind, Filters, Value};

fn eq(field: &str, value: Value) -> Filter {
    Filter::Eq(field.into(), value)
}

fn between(field: &str, low: Option<(i64, bool)>, high: Option<(i64, bool)>) -> Filter {
    let bound = |side: Option<(i64, bool)>| side.map(|(value, included)| (Value::Int(value), included));
    Filter::Range { field: field.into(), low: bound(low), high: bound(high) }
}

pub(super) fn eq_int(subject: &Subject<'_>) -> Verdict {
    hold(subject, &[eq("c", Value::Int(3)), eq("c", Value::Int(0))])
}

pub(super) fn eq_float(subject: &Subject<'_>) -> Verdict {
    hold(subject, &[eq("x", Value::Float(0.5)), eq("x", Value::Float(-1.0))])
}

pub(super) fn eq_text(subject: &Subject<'_>) -> Verdict {
    hold(subject, &TEXTS.map(|text| eq("s", Value::Text(text.into()))))
}

pub(super) fn eq_bool(subject: &Subject<'_>) -> Verdict {
    hold(subject, &[eq("b", Value::Bool(true)), eq("b", Value::Bool(false))])
}

pub(super) fn one_of(subject: &Subject<'_>) -> Verdict {
    let ints = Filter::In("c".into(), vec![Value::Int(1), Value::Int(7), Value::Int(77)]);
    let texts = Filter::In("s".into(), vec![Value::Text("it's".into()), Value::Text("x".into())]);
    hold(subject, &[ints, texts])
}

pub(super) fn range(subject: &Subject<'_>) -> Verdict {
    let floats = Filter::Range { field: "x".into(), low: Some((Value::Float(0.25), true)), high: None };
    hold(
        subject,
        &[
            between("n", Some((100, true)), Some((299, true))),
            between("n", Some((100, false)), Some((200, false))),
            between("c", None, Some((4, true))),
            floats,
        ],
    )
}

pub(super) fn and(subject: &Subject<'_>) -> Verdict {
    hold(subject, &[Filter::And(vec![eq("c", Value::Int(4)), eq("s", Value::Text("a b".into()))])])
}

pub(super) fn or(subject: &Subject<'_>) -> Verdict {
    hold(subject, &[Filter::Or(vec![eq("c", Value::Int(4)), eq("s", Value::Text("red".into()))])])
}

pub(super) fn none_match(subject: &Subject<'_>) -> Verdict {
    hold(subject, &[first_claimed(subject, 99)?])
}

pub(super) fn few_match(subject: &Subject<'_>) -> Verdict {
    if !subject.has.filters.contains(&FilterKind::Range) {
        return lacking("the engine has no range filter");
    }
    hold(subject, &[between("n", None, Some((3, false)))])
}

/// A condition of a kind that the engine has, on a value that no row has.
fn first_claimed(subject: &Subject<'_>, nowhere: i64) -> Result<Filter, super::Fault> {
    let has = |kind: FilterKind| subject.has.filters.contains(&kind);
    if has(FilterKind::EqInt) {
        Ok(eq("c", Value::Int(nowhere)))
    } else if has(FilterKind::EqText) {
        Ok(eq("s", Value::Text(format!("none {nowhere}"))))
    } else if has(FilterKind::EqFloat) {
        Ok(eq("x", Value::Float(nowhere as f64)))
    } else {
        lacking("the engine has no equality filter")
    }
}

/// Every answer under each filter holds only rows that pass, and as many as there are.
fn hold(subject: &Subject<'_>, filters: &[Filter]) -> Verdict {
    let mut tested = false;
    for filter in filters {
        if let Some(kind) = filter.kinds().into_iter().find(|kind| !subject.has.filters.contains(kind)) {
            if filters.len() == 1 {
                return lacking(format!("the engine has no filter of the kind {kind:?}"));
            }
            continue;
        }
        tested = true;
        holds(subject, filter)?;
    }
    if tested { Ok(()) } else { lacking("the engine has no filter of this kind") }
}

fn holds(subject: &Subject<'_>, filter: &Filter) -> Verdict {
    let rows = subject.query_rows();
    let passing = subject.data.passing(filter);
    let answers = subject.ask(&rows, K, subject.top_effort(), Filters::Same(Arc::new(filter.clone())))?;
    let mut recall = 0.0;
    for (&row, keys) in rows.iter().zip(&answers) {
        if let Some(key) = keys.iter().find(|key| !passing.contains(key)) {
            return failed(format!("{filter}: key {key} came back and does not pass"));
        }
        if let Some(key) = repeated(keys) {
            return failed(format!("{filter}: key {key} came back more than once"));
        }
        recall += subject.data.recall(row, K, &passing, keys);
    }
    // An index that is filtered afterwards may come up short; that is what its mode says.
    if subject.has.filter_mode == Some(FilterMode::After) {
        return Ok(());
    }
    let wanted = K.min(passing.len());
    if let Some(short) = answers.iter().find(|keys| keys.len() < wanted) {
        return failed(format!("{filter}: {} rows for k = {K}, {} pass", short.len(), passing.len()));
    }
    let (recall, least) = (recall / rows.len() as f64, subject.least_recall());
    if recall < least {
        return failed(format!("{filter}: recall {recall:.3}; {least:.3} is the least"));
    }
    Ok(())
}
