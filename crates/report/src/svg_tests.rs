//! Nothing is cut off, and any figures can be drawn.

use super::*;
use proptest::prelude::*;

fn chart(points: &[(f64, f64)]) -> ChartData {
    let points = points
        .iter()
        .map(|&(recall, throughput)| ChartPoint {
            key: String::new(),
            recall,
            throughput,
            range: Some((throughput * 0.9, throughput * 1.1)),
            frontier: true,
            client_limited: false,
            details: vec![("a < b".into(), "&".into())],
        })
        .collect();
    let series = vec![ChartSeries { label: "s".into(), points }];
    ChartData { title: "t".into(), x_label: "recall".into(), y_label: "q".into(), series, left_out: vec![] }
}

proptest! {
    #[test]
    fn every_point_lies_inside_the_axes(points in prop::collection::vec((0.0..=1.0f64, -3.0..7.0f64), 1..30)) {
        let points: Vec<(f64, f64)> = points.into_iter().map(|(r, t)| (r, 10f64.powf(t))).collect();
        let data = chart(&points);
        for size in [WIDE, NARROW] {
            let axes = Axes::new(&data, size, 20.0);
            for (recall, throughput) in &points {
                let (x, y) = (axes.x(*recall), axes.y(*throughput));
                prop_assert!(x >= axes.left && x <= axes.right, "{recall} at {x}");
                prop_assert!(y >= axes.top && y <= axes.bottom, "{throughput} at {y}");
            }
            prop_assert!(axes.x_ticks().contains(&1.0) && axes.x_ticks().len() >= 2, "{:?}", axes.x_ticks());
            prop_assert!(axes.y_ticks().len() <= 40);
            let drawn = draw(&data, size, "id");
            prop_assert_eq!(drawn.matches("class=\"pt\"").count(), points.len());
            prop_assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
        }
    }
}

#[test]
fn the_axis_is_stretched_towards_one() {
    let axes = Axes::new(&chart(&[(0.5, 10.0), (1.0, 20.0)]), WIDE, 0.0);
    assert!(axes.x(0.99) - axes.x(0.9) > axes.x(0.9) - axes.x(0.8));
    assert!((axes.x(1.0) - axes.right).abs() < 1e-9);
    for (value, label) in [(0.05, "0.05"), (1.0, "1"), (500.0, "500"), (20_000.0, "20k"), (1e6, "1M")] {
        assert_eq!(tick_label(value), label);
    }
}

#[test]
fn series_differ_without_colour() {
    let marks: std::collections::BTreeSet<String> = (0..8).map(|at| marker(at, 0.0, 0.0, 5.0)).collect();
    assert_eq!(marks.len(), 8);
}
