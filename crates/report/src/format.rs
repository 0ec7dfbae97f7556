//! How figures are written for people. Where a figure is missing the caller writes a dash.

use record::Point;

/// A recall with four digits, cut off and not rounded: 0.94996 must not read as 0.9500, nor
/// 0.99996 as 1.0000.
pub(crate) fn recall(value: f64) -> String {
    format!("{:.4}", (value * 1e4 + 1e-6).floor() / 1e4)
}

/// A latency given in nanoseconds.
pub(crate) fn latency(ns: f64) -> String {
    types::units::seconds(ns / 1e9)
}

/// A share as per cent with one digit.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The effort of a point in words: `ef_search=64`; none where the index has no knob.
pub(crate) fn effort(point: &Point) -> Option<String> {
    let value = point.effort?;
    Some(match &point.effort_name {
        Some(name) => format!("{name}={value}"),
        None => value.to_string(),
    })
}

/// Engine and build in words: `usearch m=16 ef_construction=128`.
pub(crate) fn label(point: &Point) -> String {
    [point.engine_title.as_str(), point.build.as_str()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// A point in words, for lists: `usearch m=16, ef_search=64`.
pub(crate) fn place(point: &Point) -> String {
    match effort(point) {
        Some(effort) => format!("{}, {effort}", label(point)),
        None => label(point),
    }
}

/// A JSON value on one line, texts without quotes.
pub(crate) fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "unknown".into(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// `1 point`, `2 points`.
pub(crate) fn counted(n: usize, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}
