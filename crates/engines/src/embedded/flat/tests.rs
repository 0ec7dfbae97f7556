//! The control: exactly right on every kind of data, under filters and after changes.

use crate::{find, open};
use engine::{
    Batch, Control, Engine, Hits, Params, SearchSpec, TableSpec,
    contract::{self, Outcome},
};
use std::sync::Arc;
use types::{Column, ColumnData, ColumnType, Columns, Element, Filter, Filters, Metric, Value, Vectors};

#[test]
fn the_contract_holds_exactly_for_every_element_and_metric() {
    let definition = find("flat").unwrap();
    for (metric, element) in [
        (Metric::L2, Element::F32),
        (Metric::Cosine, Element::F32),
        (Metric::InnerProduct, Element::F32),
        (Metric::Hamming, Element::Bit),
        (Metric::L2, Element::F16),
        (Metric::L2, Element::I8),
        (Metric::L2, Element::U8),
    ] {
        let engine = open(&definition, None, &crate::Passwords::default()).unwrap();
        let (metric, element) = (Some(metric), Some(element));
        let options = contract::Options { metric, element, dim: 40, ..Default::default() };
        let results = contract::run(&*engine, &definition, &options);
        let skipped = results.iter().filter(|r| matches!(r.outcome, Outcome::Skipped(_))).count();
        assert!(skipped <= 1, "only the zero vector is not tested under every metric: {results:?}");
        for result in results {
            assert!(!matches!(result.outcome, Outcome::Failed(_)), "{options:?}: {result:?}");
        }
    }
}

const ROWS: usize = 60;

fn line(rows: impl Iterator<Item = usize>) -> Vectors {
    let values: Vec<f32> = rows.flat_map(|i| [i as f32, 1.0]).collect();
    let rows = values.len() / 2;
    Vectors::from_f32(values, rows, 2).unwrap()
}

fn parity(rows: std::ops::Range<usize>) -> Columns {
    let data = ColumnData::Int(rows.map(|i| Some(i as i64 % 2)).collect());
    Columns::new(vec![Column { name: "odd".into(), data }]).unwrap()
}

fn insert(engine: &dyn Engine, keys: std::ops::Range<usize>, vectors: &Vectors) {
    let columns = parity(keys.clone());
    let keys = keys.start as u64..keys.end as u64;
    engine.connect().unwrap().insert(&Batch { keys, vectors, columns: Some(&columns) }).unwrap();
}

/// Row i at x = i, inserted by two sessions in turns.
fn engine() -> Box<dyn Engine> {
    let definition = find("flat").unwrap();
    let index = definition.index_spec(None, Metric::L2, &Params::new(), 1).unwrap();
    let engine = open(&definition, None, &crate::Passwords::default()).unwrap();
    let columns = vec![("odd".into(), ColumnType::Int)];
    let (name, element, metric) = ("t".into(), Element::F32, Metric::L2);
    let spec = TableSpec {
        name,
        dim: 2,
        element,
        metric,
        rows: ROWS,
        columns,
        indexed_columns: Vec::new(),
        load: Default::default(),
        index,
    };
    engine.create(&spec).unwrap();
    let all = line(0..ROWS);
    for start in [20, 0, 40] {
        insert(&*engine, start..start + 20, &all.slice(start..start + 20));
    }
    engine.finish_load().unwrap();
    engine.build(&spec.index, &Control::default()).unwrap();
    engine
}

fn search(engine: &dyn Engine, filters: Filters) -> impl FnMut() -> Vec<u64> {
    let spec = SearchSpec { queries: line(std::iter::once(10)), k: 3, effort: None, filters };
    let search = engine.encode(spec).unwrap();
    let mut session = engine.connect().unwrap();
    session.begin(search).unwrap();
    move || {
        let mut hits = Hits::default();
        session.search(0, &mut hits).unwrap();
        hits.keys().to_vec()
    }
}

/// Answers stay exact while the table changes under points that were encoded before.
#[test]
fn answers_follow_changes_with_and_without_a_filter() {
    let engine = engine();
    let even = Filters::Same(Arc::new(Filter::Eq("odd".into(), Value::Int(0))));
    let (mut plain, mut even) = (search(&*engine, Filters::None), search(&*engine, even));
    assert_eq!((plain(), even()), (vec![10, 9, 11], vec![10, 8, 12]));
    engine.connect().unwrap().delete(&[10, 9, 12, 777]).unwrap();
    assert_eq!(engine.row_count().unwrap(), ROWS as u64 - 3);
    assert_eq!((plain(), even()), (vec![11, 8, 7], vec![8, 6, 14]));
    // Key 10 comes back elsewhere: it must not be found at its old place.
    insert(&*engine, 10..11, &line(std::iter::once(50)));
    assert_eq!((plain(), even()), (vec![11, 8, 7], vec![8, 6, 14]));
    insert(&*engine, 9..10, &line(std::iter::once(10)));
    assert_eq!(plain(), [9, 11, 8]);
    engine.connect().unwrap().delete(&[9]).unwrap();
    assert_eq!(plain(), [11, 8, 7]);
}

#[test]
fn a_row_is_refused_whole_where_it_does_not_fit() {
    let engine = engine();
    let mut session = engine.connect().unwrap();
    let two = line(0..2);
    let columns = parity(0..2);
    let mut refused = |keys: std::ops::Range<u64>, columns: Option<&Columns>| {
        session.insert(&Batch { keys, vectors: &two, columns }).unwrap_err().to_string()
    };
    assert!(refused(59..61, Some(&columns)).contains("key 59"));
    assert!(refused(70..73, Some(&columns)).contains("3 keys for 2"));
    assert!(refused(70..72, None).contains("columns"));
    assert_eq!(engine.row_count().unwrap(), ROWS as u64);
    let filters = Filters::Same(Arc::new(Filter::Eq("nmae".into(), Value::Int(0))));
    let spec = SearchSpec { queries: line(std::iter::once(1)), k: 3, effort: None, filters };
    let error = engine.encode(spec).err().unwrap().to_string();
    assert!(error.contains("nmae") && error.contains("odd"), "{error}");
}
