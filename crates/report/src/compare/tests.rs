//! Comparing runs that differ in one thing at a time.

use super::{Because, ChangeKind, CompareOptions, Outcome, RunComparison, compare, comparison_text};
use crate::{
    ReportError,
    testing::{self, Builder},
};
use record::{Flag, Manifest, Point, Status, Verdict as RunVerdict};
use serde_json::json;
use types::stats::Verdict;

const BUILD: &str = "m=16 ef_construction=128";

/// A valid run of one engine: load, build, two efforts.
fn run() -> (Manifest, Vec<Point>) {
    let mut manifest = testing::manifest();
    manifest.verdict = Some(RunVerdict { valid: true, findings: vec![] });
    let mut b = Builder::new();
    b.load("usearch", BUILD, 1.0);
    b.build("usearch", BUILD, 4.0);
    b.sweep("usearch", BUILD, Some(40), 0.9551, 19_870.0);
    b.sweep("usearch", BUILD, Some(80), 0.9816, 12_430.0);
    (manifest, b.points)
}

/// The run beside itself after `change`.
fn after(change: impl FnOnce(&mut Manifest, &mut Vec<Point>)) -> Result<RunComparison, ReportError> {
    let (a, points_a) = run();
    let (mut b, mut points_b) = run();
    b.name = "again".into();
    change(&mut b, &mut points_b);
    compare((&a, &points_a), (&b, &points_b), CompareOptions::default())
}

fn set_rate(point: &mut Point, rate: f64) {
    point.search.throughput = Some(rate);
    point.search.throughput_repeats = Some(vec![rate * 0.99, rate, rate * 1.01]);
}

fn set_recall(point: &mut Point, recall: f64) {
    let s = &mut point.search;
    (s.recall, s.recall_low, s.recall_high) = (Some(recall), Some(recall - 0.004), Some(recall + 0.004));
}

/// The kinds of change, with whether each is for the worse.
fn kinds(c: &RunComparison) -> Vec<(ChangeKind, bool)> {
    c.changes.iter().map(|c| (c.kind, c.worse)).collect()
}

#[test]
fn a_run_beside_itself_is_reproduced_and_the_tolerance_is_said() {
    let c = after(|_, _| {}).unwrap();
    assert_eq!((c.outcome, c.pairs.len(), c.worse().count()), (Outcome::Reproduced, 4, 0));
    assert_eq!((c.changes.len(), c.untold.len(), c.differences.len()), (0, 0, 0));
    let text = comparison_text(&c, 100);
    assert!(text.contains("REPRODUCED") && text.contains("at least 5.0 %"), "{text}");
    let other = CompareOptions { least_effect: 0.2 };
    let (a, points) = run();
    let c = compare((&a, &points), (&a, &points), other).unwrap();
    assert!(c.tolerance.contains("20.0 %"), "{}", c.tolerance);
}

#[test]
fn throughput_moves_only_beyond_its_spread_and_the_least_effect() {
    // 8 % lower, with repeats within 1 %.
    let c = after(|_, p| set_rate(&mut p[2], 19_870.0 * 0.92)).unwrap();
    assert_eq!((c.outcome, kinds(&c)), (Outcome::Moved, vec![(ChangeKind::Throughput, true)]));
    let figure = &c.pairs[2].figures[0];
    assert_eq!((figure.name, figure.verdict), ("throughput", Some(Verdict::Smaller)));
    assert!((figure.change.unwrap() + 0.08).abs() < 1e-9);
    // Higher is no change for the worse.
    let c = after(|_, p| set_rate(&mut p[2], 19_870.0 * 1.08)).unwrap();
    assert_eq!((c.outcome, kinds(&c)), (Outcome::Moved, vec![(ChangeKind::Throughput, false)]));
    // 3 % lower: apart, and too little.
    let c = after(|_, p| set_rate(&mut p[2], 19_870.0 * 0.97)).unwrap();
    assert_eq!(
        (c.outcome, c.pairs[2].figures[0].because),
        (Outcome::Reproduced, Some(Because::BelowLeastEffect))
    );
    // Half, in one of three repeats.
    let c = after(|_, p| {
        p[2].search.throughput = Some(10_000.0);
        p[2].search.throughput_repeats = Some(vec![9_000.0, 10_000.0, 19_900.0]);
    })
    .unwrap();
    assert_eq!(
        (c.outcome, c.pairs[2].figures[0].because),
        (Outcome::Reproduced, Some(Because::RangesOverlap))
    );
}

#[test]
fn a_point_measured_once_is_never_told_apart_nor_called_reproduced() {
    let once = |p: &mut Point, rate: f64| {
        p.search.throughput = Some(rate);
        p.search.throughput_repeats = Some(vec![rate]);
    };
    let c = after(|_, p| once(&mut p[2], 10_000.0)).unwrap();
    assert_eq!(
        (c.outcome, c.pairs[2].figures[0].because),
        (Outcome::NotConfirmed, Some(Because::MeasuredOnce))
    );
    assert!(c.untold[0].contains("19,870 in A, 10,000 in B"), "{:?}", c.untold);
    let c = after(|_, p| once(&mut p[2], 19_800.0)).unwrap();
    assert_eq!(c.outcome, Outcome::Reproduced);
}

#[test]
fn recall_moves_where_the_intervals_do_not_overlap() {
    let c = after(|_, p| set_recall(&mut p[2], 0.9451)).unwrap();
    assert_eq!((c.outcome, kinds(&c)), (Outcome::Moved, vec![(ChangeKind::Recall, true)]));
    assert!(c.changes[0].text.contains("0.9551 in A, 0.9451 in B (-0.0100)"), "{}", c.changes[0].text);
    let c = after(|_, p| set_recall(&mut p[2], 0.9651)).unwrap();
    assert_eq!((c.outcome, kinds(&c)), (Outcome::Moved, vec![(ChangeKind::Recall, false)]));
    let c = after(|_, p| set_recall(&mut p[2], 0.9501)).unwrap();
    assert_eq!((c.outcome, c.changes.len()), (Outcome::Reproduced, 0));
    // 1.0 at each of 1,000 queries is no promise for all others: 3 / 1,000 is within the interval.
    let whole = |lower: f64| {
        let (m, mut a) = run();
        let s = &mut a[2].search;
        (s.recall, s.recall_low, s.recall_high) = (Some(1.0), Some(1.0), Some(1.0));
        let mut b = a.clone();
        let s = &mut b[2].search;
        (s.recall, s.recall_low, s.recall_high) = (Some(lower), Some(lower - 0.0005), Some(lower + 0.0005));
        compare((&m, &a), (&m, &b), CompareOptions::default()).unwrap().outcome
    };
    assert_eq!((whole(0.999), whole(0.99)), (Outcome::Reproduced, Outcome::Moved));
    // Recall by another truth, or none, is no recall to compare with; the throughput still is.
    for change in
        [|p: &mut Point| p.truth_hash = Some("b3:8888".into()), |p: &mut Point| p.search.recall = None]
    {
        let c = after(|_, p| change(&mut p[2])).unwrap();
        assert_eq!((c.outcome, c.untold.len()), (Outcome::NotConfirmed, 1));
        assert_eq!(c.pairs[2].figures[0].verdict, Some(Verdict::NotDistinguishable));
        assert!(c.pairs[2].figures[1].incomparable.is_some());
    }
}

#[test]
fn a_point_without_usable_figures_is_not_compared() {
    for status in [Status::Failed, Status::Invalid, Status::Skipped] {
        let c = after(|_, p| (p[2].status, p[2].reason) = (status, Some("out of memory".into()))).unwrap();
        assert_eq!((c.outcome, kinds(&c)), (Outcome::Moved, vec![(ChangeKind::Status, true)]));
        let why = c.pairs[2].incomparable.clone().unwrap();
        assert!(why.contains("in B: out of memory") && c.pairs[2].figures.is_empty(), "{why}");
    }
    // The other way round it got better.
    let (a, mut failed) = run();
    (failed[2].status, failed[2].reason) = (Status::Failed, Some("out of memory".into()));
    let c = compare((&a, &failed), (&a, &run().1), CompareOptions::default()).unwrap();
    assert_eq!((c.outcome, kinds(&c)), (Outcome::Moved, vec![(ChangeKind::Status, false)]));
    // What was not usable in A either cannot get worse, and need not be found again.
    let (a, mut points) = run();
    points[2].flags = vec![Flag::FilterViolations];
    let c = compare((&a, &points), (&a, &points), CompareOptions::default()).unwrap();
    assert_eq!((c.outcome, c.changes.len()), (Outcome::Reproduced, 0));
    assert!(c.pairs[2].incomparable.as_ref().unwrap().contains("not valid in A"));
}

#[test]
fn a_throughput_limited_by_the_client_is_no_figure_and_recall_still_is() {
    let c = after(|_, p| {
        p[2].flags = vec![Flag::ClientLimited];
        set_rate(&mut p[2], 5_000.0);
        set_recall(&mut p[2], 0.90);
    })
    .unwrap();
    assert_eq!(kinds(&c), [(ChangeKind::Recall, true)]);
    let figures = &c.pairs[2].figures;
    assert_eq!((figures[0].verdict, figures[0].change, figures[0].b), (None, None, None));
    assert_eq!(figures[0].incomparable.as_deref(), Some("limited by the client in B"));
    assert_eq!(c.pairs[2].marks_only_b, [Flag::ClientLimited]);
    assert_eq!(c.untold.len(), 1, "{:?}", c.untold);
}

#[test]
fn nothing_is_reproduced_where_no_throughput_could_be_compared() {
    let (m, mut points) = run();
    points[2].flags = vec![Flag::ClientLimited];
    let c = compare((&m, &points), (&m, &points), CompareOptions::default()).unwrap();
    assert_eq!((c.outcome, c.compared.throughput, c.compared.recall), (Outcome::Reproduced, 1, 2));
    points[3].flags = vec![Flag::ClientLimited];
    let c = compare((&m, &points), (&m, &points), CompareOptions::default()).unwrap();
    assert_eq!((c.outcome, c.compared.throughput, c.compared.recall), (Outcome::NotConfirmed, 0, 2));
    assert!(comparison_text(&c, 100).contains("throughput at 0 and recall at 2 of 2 search points"));
}

#[test]
fn missing_points_are_worse_and_further_ones_are_listed() {
    let c = after(|_, p| drop(p.remove(3))).unwrap();
    assert_eq!((c.outcome, kinds(&c)), (Outcome::NotConfirmed, vec![(ChangeKind::Missing, true)]));
    assert_eq!((c.only_a.len(), c.only_b.len()), (1, 0));
    let c = after(|_, p| p[3].effort = Some(160)).unwrap();
    assert_eq!((c.only_a[0].effort, c.only_b[0].effort), (Some(80), Some(160)));
    for change in [
        |p: &mut Point| p.clients = Some(2),
        |p: &mut Point| p.k = Some(100),
        |p: &mut Point| p.filter = Some("cat = 1".into()),
        |p: &mut Point| drop(p.params.insert("m".into(), json!(17))),
        |p: &mut Point| p.index_kind = "ivf".into(),
        |p: &mut Point| p.engine = "usearch at db1".into(),
    ] {
        let c = after(|_, p| change(&mut p[3])).unwrap();
        assert_eq!((c.only_a.len(), c.only_b.len(), c.pairs.len()), (1, 1, 3));
    }
}

#[test]
fn other_data_is_refused_with_the_part_and_both_values() {
    type Change = fn(&mut Manifest);
    let changes: [(Change, &[&str]); 5] = [
        (|m| m.datasets[0].base_hash = "b3:eeee".into(), &["base", "b3:aa11bb22cc33dd44", "b3:eeee"]),
        (|m| m.datasets[0].queries_hash = "b3:56".into(), &["queries", "b3:55", "b3:56"]),
        (|m| m.datasets[0].columns_hash = Some("b3:cc".into()), &["columns", "none", "b3:cc"]),
        (|m| m.datasets[0].metric = "l2".into(), &["metric", "cosine", "l2"]),
        (|m| m.datasets[0].truth_hash = Some("b3:8888".into()), &["truth", "b3:7777", "b3:8888"]),
    ];
    for (change, parts) in changes {
        let error = after(|m, _| change(m)).unwrap_err().to_string();
        assert!(parts.iter().all(|p| error.contains(p)), "{error}");
        assert!(error.contains("quick (A) and again (B)") && !error.contains('\n'), "{error}");
    }
    let error = after(|_, p| p.iter_mut().for_each(|p| p.measurement_version = 2)).unwrap_err().to_string();
    assert!(error.contains("measurement version differs: 1 in A, 2 in B"), "{error}");
}

#[test]
fn data_is_known_by_its_content_and_what_is_shared_is_compared() {
    // The same data under another name.
    let c = after(|m, p| {
        m.datasets[0].name = "renamed".into();
        p.iter_mut().for_each(|p| p.dataset = "renamed".into());
    })
    .unwrap();
    assert_eq!((c.outcome, c.datasets), (Outcome::Reproduced, vec!["sentences".to_owned()]));
    // A second set that differs, and a third that only B has.
    let two = |other: &str| {
        let (mut m, points) = run();
        let mut second = m.datasets[0].clone();
        (second.name, second.base_hash) = ("second".into(), other.into());
        m.datasets.push(second);
        (m, points)
    };
    let ((a, points_a), (mut b, points_b)) = (two("b3:1"), two("b3:2"));
    b.datasets.push(record::DatasetEntry {
        name: "third".into(),
        base_hash: "b3:3".into(),
        ..b.datasets[0].clone()
    });
    let c = compare((&a, &points_a), (&b, &points_b), CompareOptions::default()).unwrap();
    assert_eq!((c.datasets.len(), c.datasets_apart.len(), c.pairs.len()), (1, 2, 4));
    assert_eq!(c.datasets_apart[0].parts[0].item, "base");
    assert_eq!((c.outcome, kinds(&c)), (Outcome::NotConfirmed, vec![(ChangeKind::Missing, true)]));
    // Nothing in common at all.
    let (mut b, points_b) = run();
    (b.datasets[0].name, b.datasets[0].base_hash) = ("other".into(), "b3:9".into());
    let error = compare((&a, &points_a), (&b, &points_b), CompareOptions::default()).unwrap_err().to_string();
    assert!(error.contains("no data set in common: sentences, second in A, other in B"), "{error}");
}

#[test]
fn a_truth_for_another_k_is_no_other_data() {
    let c = after(|m, p| {
        m.plan["k"] = json!(100);
        m.datasets[0].truth_hash = Some("b3:100".into());
        p[2..].iter_mut().for_each(|p| p.k = Some(100));
    })
    .unwrap();
    assert_eq!((c.pairs.len(), c.only_a.len(), c.only_b.len()), (2, 2, 2));
}

#[test]
fn what_else_differs_is_named_with_both_values() {
    let c = after(|m, _| {
        m.machine["cpu"]["model"] = json!("Another CPU");
        m.tool.commit = Some("4567def".into());
        m.plan["phases"][0]["repeats"] = json!(5);
        let engine = m.engines.get_mut("usearch").unwrap();
        engine.version = "2.18.0".into();
        engine.settings[0]["value"] = json!(1);
        engine.definition["index"][0]["params"]["m"]["default"] = json!(32);
    })
    .unwrap();
    let said: Vec<String> =
        c.differences.iter().map(|d| format!("{} {}: {} {}", d.subject, d.item, d.a, d.b)).collect();
    assert_eq!(
        said,
        [
            "engine usearch definition index[0].params.m.default: 16 32",
            "engine usearch setting threads: 2 1",
            "engine usearch version: 2.17.0 2.18.0",
            "machine cpu: AMD EPYC 7763 Another CPU",
            "tool commit: 0123abc 4567def",
            "plan phases[0].repeats: 3 5",
        ]
    );
    assert_eq!(c.outcome, Outcome::Reproduced, "differences explain; they are not figures");
}

#[test]
fn an_index_of_another_size_moved_and_times_are_only_shown() {
    let c = after(|_, p| {
        p[1].built.index_bytes = Some(3_000_000);
        p[1].built.build_seconds = Some(40.0);
        p[0].load.load_seconds = Some(10.0);
    })
    .unwrap();
    assert_eq!((c.outcome, kinds(&c)), (Outcome::Moved, vec![(ChangeKind::IndexSize, false)]));
    let figure = |pair: usize, name: &str| c.pairs[pair].figures.iter().find(|f| f.name == name).cloned();
    assert_eq!(figure(1, "build_seconds").unwrap().change, Some(9.0));
    assert_eq!(figure(0, "load_seconds").unwrap().verdict, None);
}

#[test]
fn a_run_that_is_not_valid_or_not_finished_reproduces_nothing() {
    for (verdict, word) in [
        (None, "B as a whole is not finished"),
        (Some(RunVerdict { valid: false, findings: vec![] }), "B as a whole is not valid"),
    ] {
        let c = after(|m, _| m.verdict = verdict).unwrap();
        assert_eq!((c.outcome, c.untold), (Outcome::NotConfirmed, vec![word.to_owned()]));
    }
}

#[test]
fn the_same_engine_twice_in_a_run_is_matched_by_key() {
    let (m, mut points) = run();
    let mut twin = points[2].clone();
    twin.key = "twin".into();
    set_rate(&mut twin, 5_000.0);
    points.push(twin);
    let mut turned = points.clone();
    turned.swap(2, 4);
    let c = compare((&m, &points), (&m, &turned), CompareOptions::default()).unwrap();
    assert_eq!(c.outcome, Outcome::Reproduced, "{:?}", c.changes);
}

#[test]
fn the_text_fits_its_width_and_says_it_all() {
    let c = after(|m, p| {
        m.engines.get_mut("usearch").unwrap().version = "2.18.0".into();
        set_rate(&mut p[2], 9_000.0);
        set_recall(&mut p[2], 0.90);
        (p[3].status, p[3].reason) = (Status::Failed, Some("out of memory at limit 2.0 GiB".into()));
        p[1].built.build_seconds = Some(5.0);
    })
    .unwrap();
    for width in [60, 100, 160] {
        let text = comparison_text(&c, width);
        assert!(text.lines().all(|l| l.chars().count() <= width), "{width}\n{text}");
    }
    insta::assert_snapshot!(comparison_text(&c, 100), @r##"
A: quick (2026-11-30T11:58:00Z), annvil 0.1.0, commit 0123abc, measurement version 1; valid
B: again (2026-11-30T11:58:00Z), annvil 0.1.0, commit 0123abc, measurement version 1; valid
Same data in both: sentences. Changes are from A to B.

What else differs
of              what     A       B
engine usearch  version  2.17.0  2.18.0

usearch m=16 ef_construction=128: loading and building
figure              A        B   change
load           1.00 s   1.00 s   +0.0 %
build          4.00 s   5.00 s  +25.0 %
to queryable   5.01 s   5.01 s   +0.0 %
index         2.2 MiB  2.2 MiB   +0.0 %

usearch m=16 ef_construction=128: sentences, k=10, 1 client
effort             A 1/s  B 1/s   change  throughput  recall A  recall B  moved  p99 change
ef_search=40      19,870  9,000  -54.7 %  smaller       0.9551    0.9000  lower      +0.0 %
ef_search=80 [1]       -      -        -  -                  -         -  -               -
  [1] Not compared: failed in B: out of memory at limit 2.0 GiB

Worse in B
  usearch m=16 ef_construction=128, ef_search=40 (sentences, k=10, 1 client): queries/s 19,870 in A,
      9,000 in B (-54.7 %)
  usearch m=16 ef_construction=128, ef_search=40 (sentences, k=10, 1 client): recall 0.9551 in A,
      0.9000 in B (-0.0551)
  usearch m=16 ef_construction=128, ef_search=80 (sentences, k=10, 1 client): failed in B: out of
      memory at limit 2.0 GiB

Result: MOVED
  Compared: throughput at 1 and recall at 1 of 2 search points of A.
  Tolerance: throughput moved where the ranges over the repeats do not overlap and the medians
      differ by at least 5.0 %; recall where the 95 % intervals do not overlap; index size by at
      least 5.0 %. Times and latencies are shown and not judged.
"##);
}
