//! The rows that queries may see, held against each filter evaluated row by row.

mod common;

use common::Numbers;
use exact::FilterRows;
use std::sync::Arc;
use types::{Column, ColumnData, Columns, Filter, Filters, RowSet};

const ROWS: usize = 700;

fn table(numbers: &mut Numbers) -> Columns {
    let ints = (0..ROWS).map(|_| (numbers.below(9) > 0).then(|| numbers.below(12) as i64)).collect();
    let texts = (0..ROWS).map(|_| (numbers.below(9) > 0).then(|| format!("t{}", numbers.below(7)))).collect();
    Columns::new(vec![
        Column { name: "n".into(), data: ColumnData::Int(ints) },
        Column { name: "t".into(), data: ColumnData::Text(texts) },
    ])
    .unwrap()
}

fn filter(numbers: &mut Numbers) -> Filter {
    let (a, b, c) = (numbers.below(14), numbers.below(8), numbers.below(14));
    let text = match numbers.below(6) {
        0 => format!("n = {a}"),
        1 => format!("t = 't{b}'"),
        2 => format!("t = 't{b}' AND n < {a}"),
        3 => format!("n IN ({a}, {c}) OR t = 't{b}'"),
        4 => format!("n BETWEEN {a} AND {c}"),
        _ => format!("(n = {a} OR n = {c}) AND t IN ('t{b}', 't1')"),
    };
    text.parse().unwrap()
}

#[test]
fn every_query_sees_the_rows_that_its_filter_lets_pass_one_by_one() {
    let mut numbers = Numbers(5);
    for queries in [1, 3, 40, 300] {
        let columns = table(&mut numbers);
        let list: Vec<Arc<Filter>> = (0..queries).map(|_| Arc::new(filter(&mut numbers))).collect();
        let filters = Filters::PerQuery(list.clone());
        let rows = FilterRows::new(Some(&columns), &filters, ROWS, queries).unwrap();
        let live = RowSet::from_fn(ROWS, |row| row % 3 != 1);
        let among = rows.among(&live);
        for (query, filter) in list.iter().enumerate() {
            let plain = RowSet::from_fn(ROWS, |row| filter.passes(&columns, row));
            assert_eq!(**rows.of(query).unwrap(), plain, "{filter}");
            let plain = RowSet::from_fn(ROWS, |row| row % 3 != 1 && filter.passes(&columns, row));
            assert_eq!(**among.of(query).unwrap(), plain, "{filter}");
        }
        // Equal filters are one group, whether or not they are the same object.
        let texts: std::collections::HashSet<String> = list.iter().map(|f| f.to_string()).collect();
        assert_eq!(rows.groups().len(), texts.len());
        let some: Vec<usize> = (0..queries).filter(|q| q % 3 == 0).collect();
        let groups = rows.groups_of(&some);
        let mut seen = vec![0; some.len()];
        for group in &groups {
            for &at in &group.queries {
                seen[at] += 1;
                assert_eq!(group.rows.as_ref(), rows.of(some[at]));
            }
        }
        assert!(seen.iter().all(|&count| count == 1), "each query is in one group");
    }
}
