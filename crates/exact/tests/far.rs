//! Far and other values of a column.

use exact::{far_values, other_values};
use types::{Column, ColumnData, Metric, Value, Vectors};

fn column(texts: Vec<Option<&str>>) -> Column {
    let data = ColumnData::Text(texts.into_iter().map(|t| t.map(str::to_owned)).collect());
    Column { name: "c".into(), data }
}

/// Three clusters on a line at 0, 10 and 30, and one row of a rare value far out.
fn line() -> (Vectors, Column) {
    let mut values = Vec::new();
    let mut names = Vec::new();
    for i in 0..30_usize {
        let (name, at) = [("near", 1.0), ("middle", 10.0), ("far", 30.0)][i % 3];
        values.extend([at + (i / 3) as f32 * 0.01, 1.0]);
        names.push(Some(name));
    }
    values.extend([1000.0, 1.0, 5.0, 1.0]);
    names.extend([Some("rare"), None]);
    (Vectors::from_f32(values, 32, 2).unwrap(), column(names))
}

#[test]
fn the_far_value_is_that_of_the_farthest_well_filled_cluster() {
    let (base, column) = line();
    let queries = Vectors::from_f32(vec![0.0, 1.0, 29.0, 1.0, 60.0, 1.0], 3, 2).unwrap();
    let found = far_values(&base, &queries, Metric::L2, &column, None).unwrap();
    let text = |t: &str| Some(Value::Text(t.into()));
    assert_eq!(found, [text("far"), text("near"), text("near")]);
    // The own value is left out even where it is the farthest.
    let own = Column {
        name: "c".into(),
        data: ColumnData::Text(vec![Some("far".into()), None, Some("near".into())]),
    };
    let found = far_values(&base, &queries, Metric::L2, &column, Some(&own)).unwrap();
    assert_eq!(found, [text("middle"), text("near"), text("middle")]);
    for metric in [Metric::Cosine, Metric::InnerProduct] {
        let found = far_values(&base, &queries, metric, &column, None).unwrap();
        assert_eq!(found[1], text("near"), "{metric}");
    }
}

#[test]
fn other_values_are_well_filled_not_the_own_and_the_same_each_time() {
    let (_, column) = line();
    let own = Column {
        name: "c".into(),
        data: ColumnData::Text((0..200).map(|q| Some(["near", "far"][q % 2].to_owned())).collect()),
    };
    let found = other_values(&column, Some(&own), 200).unwrap();
    assert_eq!(found, other_values(&column, Some(&own), 200).unwrap());
    let mut seen = std::collections::BTreeSet::new();
    for (query, value) in found.iter().enumerate() {
        let value = value.clone().unwrap().plain();
        assert_ne!(value, ["near", "far"][query % 2]);
        assert_ne!(value, "rare");
        seen.insert(value);
    }
    assert_eq!(seen.len(), 3);
}

#[test]
fn no_other_value_gives_the_own_and_no_value_none() {
    let one = column(vec![Some("a"); 4]);
    let own = column(vec![Some("a"); 2]);
    let a = Some(Value::Text("a".into()));
    assert_eq!(other_values(&one, Some(&own), 2).unwrap(), [a.clone(), a.clone()]);
    let vectors = Vectors::from_f32(vec![1.0; 8], 4, 2).unwrap();
    let queries = vectors.slice(0..2);
    assert_eq!(far_values(&vectors, &queries, Metric::L2, &one, Some(&own)).unwrap(), [a.clone(), a]);
    let none = column(vec![None; 4]);
    assert_eq!(far_values(&vectors, &queries, Metric::L2, &none, None).unwrap(), [None, None]);
    assert!(other_values(&one, Some(&own), 3).is_err());
    assert!(far_values(&vectors, &queries, Metric::L2, &own, None).is_err());
}
