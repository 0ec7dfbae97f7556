//! The worked example of docs/measurement.md, computed by the code that scores runs (case 33).

use exact::{Allowed, FilterRows, Options, Scorer, summary, truth_for};
use std::sync::Arc;
use types::{Column, ColumnData, Columns, Filter, Filters, Metric, Vectors};

const K: usize = 3;
const POSITIONS: [f32; 6] = [1.0, 2.0, 3.0, 3.0, 5.0, 9.0];
/// Position, lowest row allowed, the filter in words, ids returned.
const QUERIES: [(f32, u32, &str, &[u64]); 3] =
    [(0.0, 0, "none", &[0, 1, 3]), (4.0, 0, "none", &[2, 2, 4]), (10.0, 4, "rows 4 and 5", &[5])];

fn line(values: Vec<f32>) -> Vectors {
    let rows = values.len();
    Vectors::from_f32(values, rows, 1).unwrap()
}

/// `2/3` of a share.
fn share(part: Option<f64>, of: usize) -> String {
    format!("{:.0}/{of}", part.unwrap() * of as f64)
}

fn words<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_example_in_the_documentation_is_what_the_code_gives() {
    let page = include_str!("../../docs/measurement.md");
    let positions = format!("| position | {} |", words(POSITIONS).replace(", ", " | "));
    assert!(page.contains(&positions), "the page lacks: {positions}");

    let (base, queries) = (line(POSITIONS.to_vec()), line(QUERIES.map(|q| q.0).to_vec()));
    let row = Column { name: "row".into(), data: ColumnData::Int((0..6).map(Some).collect()) };
    let columns = Columns::new(vec![row]).unwrap();
    let filter = |lowest: u32| Arc::new(format!("row >= {lowest}").parse::<Filter>().unwrap());
    let filters = Filters::PerQuery(QUERIES.iter().map(|q| filter(q.1)).collect());
    let metric = Metric::L2;
    let options = Options::default();
    let truth = truth_for(&base, &queries, Some(&columns), metric, K, &filters, None, &options).unwrap();
    let rows = FilterRows::new(Some(&columns), &filters, base.rows(), queries.rows()).unwrap();
    let allowed = Allowed { filter: Some(Arc::new(rows)), live: None };
    let scorer = Scorer::new(base, queries, metric, &truth, K, allowed).unwrap();

    let mut scores = Vec::new();
    for (number, (at, _, filter, returned)) in QUERIES.iter().enumerate() {
        let shown = scorer.explain(number, returned);
        let score = shown.score;
        let text = format!(
            "| {number} | {at} | {filter} | {} | {} | {} | {} | {} | {} | {} |",
            words(shown.truth.iter().map(|(row, distance)| format!("{row} ({distance})"))),
            shown.threshold.unwrap(),
            words(*returned),
            words(shown.returned.iter().filter(|row| row.hit).map(|row| row.id)),
            share(score.recall, score.wanted),
            share(score.id_overlap, score.wanted),
            share(score.annb, K),
        );
        assert!(page.contains(&text), "the page lacks: {text}");
        scores.push(score);
    }
    let sum = summary(&scores);
    for (name, value) in [
        ("Recall of the point = (1 + 2/3 + 1/2) / 3", sum.mean),
        ("Id overlap = (2/3 + 2/3 + 1/2) / 3", sum.id_overlap_mean),
        ("By ann-benchmarks' rule (1 + 2/3 + 1/3) / 3", sum.annb_mean),
    ] {
        let text = format!("{name} = {:.3}", value.unwrap());
        assert!(page.contains(&text), "the page lacks: {text}");
    }
    let text = format!("Lowest query {:.3}; 5th percentile {:.3}", sum.min.unwrap(), sum.p5.unwrap());
    assert!(page.contains(&text), "the page lacks: {text}");
    assert_eq!((sum.duplicates, sum.short_queries), (1, 1));
}
