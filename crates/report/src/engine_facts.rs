//! What a definition says of its engine, in words: how filters run, and what is lacking.

use serde_json::Value;

/// How filters are executed.
pub(crate) fn filters(definition: &Value) -> &'static str {
    match definition.pointer("/capabilities/filter_mode").and_then(Value::as_str) {
        Some("before") => "before the search: the rows that pass are found first and searched exactly",
        Some("during") => "during the search: rows are tested while the index is walked",
        Some("after") => {
            "after the search: the index gives its candidates, then rows are tested; answers may come up short"
        }
        Some("after_continuing") => {
            "after the search, continuing: rows are tested as the index gives them, until k pass or a limit ends it"
        }
        Some("planner") => "as the engine's own planner chooses for each query",
        _ => "no filters",
    }
}

/// What other engines have and this one does not; none of it is emulated.
pub(crate) fn lacks(definition: &Value) -> Vec<String> {
    let mut lacks = Vec::new();
    let lists = |path: &str, word: &str| {
        let list = definition.pointer(path).and_then(Value::as_array);
        list.is_some_and(|l| l.iter().any(|v| v.as_str() == Some(word)))
    };
    for (metric, name) in
        [("l2", "L2"), ("cosine", "cosine"), ("inner_product", "inner product"), ("hamming", "Hamming")]
    {
        if !lists("/capabilities/metrics", metric) {
            lacks.push(name.to_owned());
        }
    }
    for (flag, name) in
        [("delete", "deletes"), ("reinsert", "re-insertion of a deleted key"), ("explain", "a query plan")]
    {
        if definition.pointer(&format!("/capabilities/{flag}")).and_then(Value::as_bool) != Some(true) {
            lacks.push(name.to_owned());
        }
    }
    let kinds = definition.pointer("/index").and_then(Value::as_array);
    for index in kinds.into_iter().flatten() {
        let kind = index.pointer("/kind").and_then(Value::as_str).unwrap_or_default();
        if kind == "hnsw" && index.pointer("/params/ef_construction").is_none() {
            lacks.push("ef_construction".to_owned());
        }
    }
    let reasons = definition.pointer("/lacks").and_then(Value::as_object);
    lacks.extend(reasons.into_iter().flatten().filter_map(|(_, why)| why.as_str().map(str::to_owned)));
    lacks
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_lacking_is_named() {
        let definition = json!({
            "capabilities": { "metrics": ["l2"], "filter_mode": "after_continuing", "delete": true, "explain": true },
            "index": [{ "kind": "hnsw", "params": { "m": {} } }],
            "lacks": { "zero_vector": "a reason" },
        });
        assert_eq!(
            lacks(&definition),
            [
                "cosine",
                "inner product",
                "Hamming",
                "re-insertion of a deleted key",
                "ef_construction",
                "a reason"
            ]
        );
        assert!(filters(&definition).contains("continuing"));
        assert_eq!(filters(&json!({})), "no filters");
    }
}
