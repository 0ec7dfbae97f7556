//! The contract suite against both servers: every kind of index, metric, quantization and way of loading.

use crate::{
    cases::json,
    servers::{Database, MariaDb, Postgres, database},
    support::Scratch,
};
use serde_json::Value;

/// Runs `annvil engine check` with these words and expects that every check holds, is lacking by design or
/// makes no sense under the metric. Gives the lacking ones with their reasons.
fn holds(database: &Database, words: &str) -> Vec<(String, String)> {
    let s = Scratch::new();
    let at = database.at();
    let mut args = vec!["engine", "check", database.product.engine(), "--at", &at, "--json"];
    args.extend(words.split_whitespace());
    let done = database.annvil(&s, &args);
    assert_eq!(done.code, Some(0), "{words}\n{}\n{}", done.out, done.err);
    let answer = json(&done);
    assert!(answer["passed"].as_u64().is_some_and(|n| n >= 34), "{words}: {answer}");
    let checks = answer["checks"].as_array().expect("checks");
    let with = |outcome: &str| -> Vec<(String, String)> {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let chosen = checks.iter().filter(|c| c["outcome"] == outcome);
        chosen.map(|c| (text(&c["name"]), text(&c["reason"]))).collect()
    };
    let cosine = words.contains("cosine");
    for (name, reason) in with("skipped") {
        assert!(name == "zero_vector" && !cosine, "{words}: skipped {name}: {reason}");
    }
    let index = checks.iter().find(|c| c["name"] == "index_used").expect("the check");
    assert_eq!(index["outcome"], "passed", "{words}: {index}");
    assert_eq!(database.tables(), Vec::<String>::new(), "{words} left a table");
    with("lacks")
}

/// Quantization that keeps one bit of 32 components finds little without re-ranking more than 10 k.
const COARSE: &str = "--param quantization=bit --least-recall 0.5";

#[test]
fn pgvector_hnsw_keeps_the_contract() {
    let Some(database) = database(Postgres, "contract_hnsw") else { return };
    assert_eq!(holds(&database, "--metric l2"), []);
    assert_eq!(holds(&database, "--metric inner_product --param quantization=halfvec --load insert"), []);
    assert_eq!(holds(&database, &format!("--metric l2 {COARSE}")), []);
    assert_eq!(holds(&database, "--metric hamming --load insert"), []);
    assert_eq!(
        holds(&database, "--metric l2 --param build_time=during_load --param iterative_scan=strict_order"),
        []
    );
    let lacks = holds(&database, "--metric cosine");
    assert_eq!(lacks.len(), 1, "{lacks:?}");
    assert_eq!(lacks[0].0, "zero_vector");
    assert!(lacks[0].1.starts_with("pgvector does not index a vector that is all zero"), "{lacks:?}");
}

#[test]
fn pgvector_ivfflat_keeps_the_contract() {
    let Some(database) = database(Postgres, "contract_ivfflat") else { return };
    assert_eq!(holds(&database, "--kind ivfflat --metric l2 --load insert"), []);
    assert_eq!(holds(&database, "--kind ivfflat --metric inner_product --param quantization=halfvec"), []);
    assert_eq!(holds(&database, "--kind ivfflat --metric hamming"), []);
    let lacks = holds(&database, &format!("--kind ivfflat --metric cosine {COARSE}"));
    assert!(lacks.iter().all(|(name, _)| name == "zero_vector"), "{lacks:?}");
}

/// What MariaDB can't is in its definition, with a reason.
#[test]
fn mariadb_keeps_the_contract() {
    let Some(database) = database(MariaDb, "contract") else { return };
    for words in [
        "--metric l2",
        "--metric l2 --param storage=MyISAM --param build_time=during_load",
        "--metric cosine --param build_time=during_load --load insert",
        "--metric cosine --param storage=MyISAM",
    ] {
        let lacks = holds(&database, words);
        for (name, reason) in &lacks {
            assert!(
                ["filter_few", "zero_vector"].contains(&name.as_str()),
                "{words}: lacks {name}: {reason}"
            );
        }
        // The walk ends early only now and then; the zero vector is always lacking.
        let zero = lacks.iter().find(|(name, _)| name == "zero_vector");
        assert_eq!(zero.is_some(), words.contains("cosine"), "{words}: {lacks:?}");
        assert!(
            zero.is_none_or(|(_, why)| why.contains("the cosine distance 0 to every other")),
            "{lacks:?}"
        );
    }
}
