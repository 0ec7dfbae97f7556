//! Metadata of generated rows: independent of the vectors, agreeing with them, fighting them.

use super::shape::{Shape, below};
use super::{Part, Recipe};
use rayon::prelude::*;
use std::ops::Range;
use types::{Column, ColumnData, Columns};

/// One row's values.
struct Row {
    cats: [i64; 3],
    num: i64,
    flag: bool,
    cluster: u32,
    topic: u32,
}

pub(super) fn columns(recipe: &Recipe, shape: &Shape, part: Part, rows: Range<usize>) -> Columns {
    let rows: Vec<Row> = rows.into_par_iter().map(|row| make(recipe, shape, part, row as u64)).collect();
    let int = |name: &str, value: &dyn Fn(&Row) -> i64| Column {
        name: name.to_owned(),
        data: ColumnData::Int(rows.iter().map(|row| Some(value(row))).collect()),
    };
    let mut columns = vec![
        int("cat10", &|row| row.cats[0]),
        int("cat100", &|row| row.cats[1]),
        int("cat1000", &|row| row.cats[2]),
        int("num", &|row| row.num),
        Column {
            name: "flag".to_owned(),
            data: ColumnData::Bool(rows.iter().map(|row| Some(row.flag)).collect()),
        },
        int("cluster", &|row| i64::from(row.cluster)),
        Column {
            name: "topic".to_owned(),
            data: ColumnData::Text(
                rows.iter().map(|row| Some(format!("topic-{}-{}", row.cluster, row.topic))).collect(),
            ),
        },
    ];
    if part == Part::Queries {
        columns.push(int("far", &|row| i64::from(shape.far(row.cluster))));
    }
    Columns::new(columns).expect("the columns above have one length and different names")
}

fn make(recipe: &Recipe, shape: &Shape, part: Part, row: u64) -> Row {
    let stream = match part {
        Part::Base => "base columns",
        Part::Queries => "query columns",
    };
    let mut rng = recipe.stream(stream, row);
    let mut uniform = |n: u64| below(&mut rng, n) as i64;
    let cats = [uniform(10), uniform(100), uniform(1000)];
    let (num, flag) = (uniform(1_000_000), uniform(2) == 1);
    let place = shape.place(recipe, part, row);
    Row { cats, num, flag, cluster: place.cluster, topic: place.topic }
}
