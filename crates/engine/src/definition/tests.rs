//! Definitions: defaults, ranges, what is refused and in which words.

use super::*;
use std::sync::Arc;
use types::{Element, Filter, Filters, Value, Vectors};

const TEXT: &str = r#"
name = "toy"
title = "Toy"
summary = "For tests."
protocol = "fake"

[capabilities]
metrics = ["l2", "hamming"]
elements = ["f32"]
max_dim = 100
max_k = 50
filters = ["eq_int", "and"]
build_time = "after_load"

[[index]]
kind = "hnsw"
params.m = { default = 16, min = 2, max = 64 }
params.quantization = { default = "f32", metric_default = { hamming = "b1" }, values = ["f32", "b1"] }
effort = { name = "ef", min = 1, max = 500, ladder = [10, 20] }

[[index]]
kind = "flat"
"#;

fn toy() -> Definition {
    Definition::parse(TEXT, "toy.toml").unwrap()
}

fn spec(given: &[(&str, Param)], metric: Metric) -> Result<IndexSpec, DefinitionError> {
    let given = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    toy().index_spec(None, metric, &given, 1)
}

#[test]
fn defaults_are_filled_in_also_those_that_hang_on_the_metric() {
    let text = |word: &str| Param::Text(word.into());
    let l2 = spec(&[("m", Param::Int(8))], Metric::L2).unwrap();
    assert_eq!((&l2.params["m"], &l2.params["quantization"]), (&Param::Int(8), &text("f32")));
    let hamming = spec(&[], Metric::Hamming).unwrap();
    assert_eq!((&hamming.params["m"], &hamming.params["quantization"]), (&Param::Int(16), &text("b1")));
}

#[test]
fn a_build_that_does_not_fit_is_refused_with_what_would() {
    for (given, metric, words) in [
        (vec![("m", Param::Int(1))], Metric::L2, ["m = 1", "2..64"]),
        (vec![("m", Param::Text("x".into()))], Metric::L2, ["m = x", "16"]),
        (vec![("ef", Param::Int(1))], Metric::L2, ["\"ef\"", "m, quantization"]),
        (vec![("quantization", Param::Text("f8".into()))], Metric::L2, ["f8", "f32, b1"]),
        (vec![], Metric::Cosine, ["cosine", "l2, hamming"]),
    ] {
        let error = spec(&given, metric).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)) && error.contains("toy"), "{error}");
    }
    let error = toy().index_spec(Some("ivf"), Metric::L2, &Params::new(), 1).unwrap_err().to_string();
    assert!(error.contains("ivf") && error.contains("hnsw, flat"), "{error}");
}

#[test]
fn a_wrong_file_is_refused_with_place_and_reason() {
    for (from, to, words) in [
        ("protocol = \"fake\"", "protocol = \"fake\"\nflavour = 1", ["line 6", "flavour"]),
        ("max_k = 50", "max_k = -1", ["line 11", "-1"]),
        ("\"eq_int\"", "\"eq_complex\"", ["line 12", "eq_complex"]),
        ("name = \"toy\"", "name = \"to y\"", ["toy.toml", "to y"]),
        ("ladder = [10, 20]", "ladder = [10, 900]", ["900", "1..500"]),
        ("ladder = [10, 20]", "ladder = []", ["ladder", "ef"]),
        ("default = 16", "default = 1", ["hnsw", "2..64"]),
        ("hamming = \"b1\"", "hamming = \"b2\"", ["b2", "f32, b1"]),
        ("kind = \"flat\"", "kind = \"hnsw\"", ["\"hnsw\"", "twice"]),
        ("metrics = [\"l2\", \"hamming\"]", "metrics = []", ["metrics", "no metric"]),
    ] {
        assert!(TEXT.contains(from), "{from}");
        let error = Definition::parse(&TEXT.replace(from, to), "toy.toml").unwrap_err().to_string();
        let all = words.iter().all(|word| error.contains(word));
        assert!(all && error.starts_with("toy.toml: ") && !error.contains('\n'), "{to}: {error}");
    }
}

/// No cut and no changed byte makes the reader panic.
#[test]
fn damaged_files_give_an_error_or_a_definition() {
    for at in 0..TEXT.len() {
        let _ = Definition::parse(&TEXT[..at], "cut");
        for replacement in ["\"", "é", "9", "[", "\n"] {
            let mut damaged = TEXT.to_owned();
            damaged.replace_range(at..=at, replacement);
            if let Err(error) = Definition::parse(&damaged, "damaged") {
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }
}

fn search(k: usize, effort: Option<u64>, filter: Option<Filter>) -> SearchSpec {
    let queries = Vectors::from_f32(vec![0.0; 4], 2, 2).unwrap();
    let filters = filter.map_or(Filters::None, |filter| Filters::Same(Arc::new(filter)));
    SearchSpec { queries, k, effort, filters }
}

/// cases.md 73, 82: what the engine lacks is an error before anything is asked.
#[test]
fn what_an_engine_lacks_is_named() {
    let toy = toy();
    let one = || Filter::Eq("c".into(), Value::Int(1));
    toy.check_search("hnsw", &search(50, Some(10), Some(Filter::And(vec![one(), one()])))).unwrap();
    toy.check_search("flat", &search(1, None, None)).unwrap();
    for (kind, search, words) in [
        ("hnsw", search(51, Some(10), None), ["51", "50"]),
        ("hnsw", search(0, Some(10), None), ["0", "1 to 50"]),
        ("hnsw", search(10, Some(501), None), ["501", "1..500"]),
        ("flat", search(10, Some(10), None), ["flat", "effort"]),
        (
            "hnsw",
            search(10, Some(10), Some(Filter::Eq("c".into(), Value::Bool(true)))),
            ["EqBool", "c = true"],
        ),
        ("hnsw", search(10, Some(10), Some(Filter::Or(vec![one(), one()]))), ["Or", "c = 1 OR c = 1"]),
    ] {
        let error = toy.check_search(kind, &search).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
    }
    let table = |dim, metric| TableSpec {
        name: "t".into(),
        dim,
        element: Element::F32,
        metric,
        rows: 1,
        columns: Vec::new(),
        indexed_columns: Vec::new(),
        load: Default::default(),
        index: toy.index_spec(None, Metric::L2, &Params::new(), 1).unwrap(),
    };
    toy.check_table(&table(100, Metric::L2)).unwrap();
    let error = toy.check_table(&table(101, Metric::L2)).unwrap_err().to_string();
    assert!(error.contains("100") && error.contains("101"), "{error}");
    assert!(toy.check_table(&table(0, Metric::L2)).is_err());
    assert!(toy.check_table(&table(2, Metric::Cosine)).unwrap_err().to_string().contains("cosine"));
}
