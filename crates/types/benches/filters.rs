//! How long many filters take over a large table, together and one by one: `cargo bench -p types`.
//! Prints, asserts nothing but that both give the same.

use std::{io::Write, sync::Arc, time::Instant};
use types::{Column, ColumnData, Columns, Filter, Filters, RowSet, row_sets};

const ROWS: usize = 1_000_000;
const QUERIES: usize = 10_000;

fn best<T>(run: impl Fn() -> T) -> (f64, T) {
    let timed = || {
        let start = Instant::now();
        let result = run();
        (start.elapsed().as_secs_f64(), result)
    };
    (0..2).map(|_| timed()).fold(timed(), |a, b| if b.0 < a.0 { b } else { a })
}

fn main() {
    let mixed = |row: usize| (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
    let ints = (0..ROWS).map(|row| Some((mixed(row) % 100) as i64)).collect();
    let texts = (0..ROWS).map(|row| Some(format!("section-{}", mixed(row) % 100))).collect();
    let numbers = (0..ROWS).map(|row| Some((mixed(row) % 1_000_000) as i64)).collect();
    let column = |name: &str, data| Column { name: name.into(), data };
    let columns = Columns::new(vec![
        column("int", ColumnData::Int(ints)),
        column("text", ColumnData::Text(texts)),
        column("num", ColumnData::Int(numbers)),
    ]);
    let columns = columns.expect("columns of one length");
    for form in ["int = {}", "text = 'section-{}'", "text = 'section-{}' AND num < 100000"] {
        let filter = |query: usize| form.replace("{}", &(query * 7 % 100).to_string());
        let list = (0..QUERIES).map(|q| Arc::new(filter(q).parse::<Filter>().expect("a filter"))).collect();
        let filters = Filters::PerQuery(list);
        let (grouping, groups) = best(|| filters.groups(QUERIES));
        let filters: Vec<&Filter> = groups.iter().filter_map(|g| g.0.as_deref()).collect();
        let alone =
            || -> Vec<RowSet> { filters.iter().map(|f| f.rows(&columns).expect("it fits")).collect() };
        let (one_by_one, plain) = best(alone);
        let (together, sets) = best(|| row_sets(&filters, &columns).expect("they fit"));
        assert!(plain == sets, "{form}");
        let text = format!(
            "{form:<40} {QUERIES} queries, {} groups: grouped in {:.1} ms; one by one {:.0} ms, together {:.0} ms: {:.1} x",
            groups.len(),
            grouping * 1e3,
            one_by_one * 1e3,
            together * 1e3,
            one_by_one / together
        );
        // A closed pipe is no reason to stop.
        drop(writeln!(std::io::stdout(), "{text}"));
    }
}
