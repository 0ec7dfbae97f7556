//! What the tables say, on a realistic run.

use crate::{
    best::{self, Best},
    chart::ChartData,
    json::json,
    terminal,
    testing::{self, Builder},
    view::{Selection, View},
};
use record::{Flag, Manifest, Point};

fn with_view<T>(manifest: &Manifest, points: &[Point], see: impl FnOnce(&View<'_>) -> T) -> T {
    see(&View::new(manifest, points, &Selection::default()))
}

#[test]
fn terminal_of_a_realistic_run() {
    let (manifest, points) = testing::realistic();
    let text = terminal(&manifest, &points, 100);
    if let Some(keep) = std::env::var_os("ANNVIL_KEEP_TERMINAL") {
        std::fs::write(keep, &text).unwrap();
    }
    insta::assert_snapshot!(text, @r##"
quick (2026-11-30T11:58:00Z), annvil 0.1.0
sentences: 10,000 x 384 f32, cosine, 1000 queries
cpu AMD EPYC 7763, cpus 2 usable of 2, memory 8.0 GiB, limited to 4.0 GiB, governor unknown, kernel
  6.1.0, system Debian GNU/Linux 12, disk solid state, ext4
16 search points, 15 valid

Loading and building
  index          load       build    ready  to queryable  rows/s    index     table  peak memory
usearch m=16 ef_construction=128
  hnsw         1.00 s  4.20 s [1]  12.5 ms        5.21 s  10,000  2.2 MiB  14.6 MiB    117.7 MiB
usearch m=32 ef_construction=256
  hnsw         1.10 s      9.80 s  12.5 ms        10.8 s   9,091  2.2 MiB  14.6 MiB    117.7 MiB
flat
  flat         400 ms        0 ns  12.5 ms        1.01 s  25,000  2.2 MiB  14.6 MiB    117.7 MiB
A Database With A Long Name m=16 quantization=product a_rather_long_parameter_name=1234567890
  ivfflat [3]  61.0 s  4 min 00 s  12.5 ms    4 min 01 s     164        -  14.6 MiB    117.7 MiB
  [1] The index is built while rows are inserted; the load holds most of it.
  [2] Peak memory is that of the build: anonymous and shared memory of a server that annvil started;
      for an embedded engine the growth of annvil's own anonymous memory since before the load.
  [3] Asked for hnsw, the engine says ivfflat.

usearch m=16 ef_construction=128
effort         recall      p5     min  queries/s  spread      p50      p95      p99  flags
ef_search=10   0.8312  0.6812  0.4312     41,250   2.0 %  21.8 µs  36.4 µs  53.3 µs  client
                                                                                     limited [1]
ef_search=20   0.9024  0.7524  0.5024     30,110   2.0 %  29.9 µs  49.8 µs  73.1 µs
ef_search=40   0.9551  0.8051  0.5551     19,870   2.0 %  45.3 µs  75.5 µs   111 µs  noisy [2]
ef_search=80   0.9816  0.8316  0.5816     12,430   2.0 %  72.4 µs   121 µs   177 µs
ef_search=160  0.9934  0.8434  0.5934      7,120   2.0 %   126 µs   211 µs   309 µs
ef_search=320  0.9979  0.8479  0.5979      3,980   2.0 %   226 µs   377 µs   553 µs
  [1] client limited: The client, not the engine, was the limit here (its own work, or waiting for a
      CPU that others used); the figure is a lower bound and not the engine's.
  [2] noisy: The repeats differ by more than 10 %; small differences to other points mean nothing.

usearch m=32 ef_construction=256
effort         recall      p5     min  queries/s  spread      p50      p95      p99  flags
ef_search=10   0.9011  0.7511  0.5011     30,300   2.0 %  29.7 µs  49.5 µs  72.6 µs
ef_search=40   0.9822  0.8322  0.5822     14,020   2.0 %  64.2 µs   107 µs   157 µs
ef_search=160  0.9996  0.8496  0.5996      4,950   2.0 %   182 µs   303 µs   444 µs

flat
effort  recall      p5     min  queries/s  spread      p50      p95      p99  flags
-       1.0000  0.8500  0.6000        812   2.0 %  1.11 ms  1.85 ms  2.71 ms

A Database With A Long Name m=16 quantization=product a_rather_long_parameter_name=1234567890
effort               recall      p5     min  queries/s  spread      p50      p95      p99  flags
ef_search=10         0.5200  0.3700  0.1200      1,500   2.0 %   600 µs  1.00 ms  1.47 ms
ef_search=100        0.7100  0.5600  0.3100        620   2.0 %  1.45 ms  2.42 ms  3.55 ms
ef_search=400        0.8712  0.7212  0.4712       80.0   2.0 %  11.2 ms  18.8 ms  27.5 ms
ef_search=800        0.8712  0.7212  0.4712       88.0   2.0 %  10.2 ms  17.0 ms  25.0 ms
ef_search=1200      n/a [1]       -       -       60.0   2.0 %  15.0 ms  25.0 ms  36.7 ms  no
                                                                                           recall
                                                                                           [2]
ef_search=1600 [3]        -       -       -          -       -        -        -        -
  [1] Recall was not computed (no truth), so the throughput has no quality beside it.
  [2] no recall: Recall was not computed (no truth), so the throughput has no quality beside it.
  [3] Not valid: out of memory at limit 2.0 GiB (killed, signal 9).

Best throughput (queries/s) by recall: sentences, k=10, 1 client
engine and build                            recall ≥ 0.90     recall ≥ 0.95   recall ≥ 0.99
usearch m=16 ef_construction=128                   30,110        19,870 [1]           7,120
                                         29,809 to 30,411  19,671 to 20,069  7,049 to 7,191
                                             ef_search=20      ef_search=40   ef_search=160
usearch m=32 ef_construction=256                   30,300            14,020           4,950
                                         29,997 to 30,603  13,880 to 14,160  4,901 to 5,000
                                             ef_search=10      ef_search=40   ef_search=160
flat [2]                                              812               812             812
                                               804 to 820        804 to 820      804 to 820
A Database With A Long Name m=16                    - [3]             - [3]           - [3]
quantization=product
a_rather_long_parameter_name=1234567890
  [1] The repeats differ by more than 10 %; small differences to other points mean nothing.
  [2] The exact control: it scans every row.
  [3] Not reached by A Database With A Long Name m=16 quantization=product
      a_rather_long_parameter_name=1234567890: best 0.8712 at ef_search=800.
  [4] Recall ≥ 0.90: usearch m=16 ef_construction=128 is not distinguishable from usearch m=32
      ef_construction=256 (their repeats overlap).

What is not valid, and what to know
what                  where                                  why
run not valid         A Database With A Long Name            the index is ivfflat, hnsw was asked
                                                             for
note                  the run                                the CPU governor is unknown
failed                A Database With A Long Name m=16       out of memory at limit 2.0 GiB
                      quantization=product a_rather_long_pa  (killed, signal 9)
                      rameter_name=1234567890,
                      ef_search=1600 (sweep)
flag: client limited  usearch m=16 ef_construction=128,      The client, not the engine, was the
                      ef_search=10                           limit here (its own work, or waiting
                                                             for a CPU that others used); the
                                                             figure is a lower bound and not the
                                                             engine's.
flag: noisy           usearch m=16 ef_construction=128,      The repeats differ by more than 10 %;
                      ef_search=40                           small differences to other points
                                                             mean nothing.
flag: no recall       A Database With A Long Name m=16       Recall was not computed (no truth),
                      quantization=product a_rather_long_pa  so the throughput has no quality
                      rameter_name=1234567890,               beside it.
                      ef_search=1200

Result: NOT VALID
  A Database With A Long Name: the index is ivfflat, hnsw was asked for
"##);
}

#[test]
fn lines_fit_the_width_and_hold_no_control_codes() {
    let (manifest, points) = testing::realistic();
    for width in [80, 100, 160] {
        let text = terminal(&manifest, &points, width);
        for line in text.lines() {
            // A heading may be as long as the names in it.
            let heading = line.contains("a_rather_long_parameter_name=1234567890") && !line.starts_with(' ');
            assert!(heading || line.chars().count() <= width, "{width}: {line}");
            assert!(!line.chars().any(char::is_control), "{line:?}");
        }
    }
}

#[test]
fn a_client_limited_point_is_never_the_best() {
    let mut b = Builder::new();
    b.sweep("a", "m=1", Some(10), 0.97, 5000.0).flags = vec![Flag::ClientLimited];
    b.sweep("a", "m=1", Some(20), 0.98, 4000.0);
    b.sweep("b", "m=1", Some(10), 0.97, 9000.0).flags = vec![Flag::ClientLimited];
    b.sweep("b", "m=1", Some(20), 0.999, 8000.0).flags = vec![Flag::ChanceLevel];
    with_view(&testing::manifest(), &b.points, |view| {
        let comparisons = view.comparisons();
        let series = &comparisons[0].series;
        let Best::Reached { point, faster_limited } = best::best(&series[0], 0.95) else {
            panic!("not reached")
        };
        assert_eq!((point.effort, faster_limited.and_then(|p| p.effort)), (Some(20), Some(10)));
        assert!(matches!(best::best(&series[1], 0.95), Best::OnlyLimited(p) if p.effort == Some(10)));
        assert!(
            matches!(best::best(&series[1], 0.99), Best::NotReached(_)),
            "an invalid point reaches nothing"
        );
        let table = super::floors::wide(&comparisons[0]);
        assert_eq!(table.rows[1][1].lines, ["-"]);
        let notes = table.footnotes.join(" ");
        assert!(notes.contains("at least 9,000 queries/s (ef_search=10)"), "{notes}");
        assert!(notes.contains("5,000 queries/s at least, ef_search=10"), "{notes}");
    });
}

#[test]
fn a_point_measured_once_is_not_compared() {
    let mut b = Builder::new();
    b.sweep("a", "", Some(10), 0.97, 5000.0).search.throughput_repeats = Some(vec![5000.0]);
    b.sweep("b", "", Some(10), 0.97, 5000.0);
    b.sweep("c", "", Some(10), 0.97, 5010.0);
    with_view(&testing::manifest(), &b.points, |view| {
        let ties = best::ties(&view.comparisons()[0], 0.9);
        assert_eq!((ties.single, ties.overlapping), (vec![0], vec![(1, 2)]));
    });
}

#[test]
fn other_data_or_another_truth_is_another_comparison() {
    let mut b = Builder::new();
    b.sweep("a", "", Some(10), 0.97, 5000.0);
    b.sweep("a", "", Some(20), 0.98, 4000.0).dataset_hash = "b3:other".into();
    b.sweep("a", "", Some(40), 0.99, 3000.0).truth_hash = Some("b3:other".into());
    b.sweep("a", "", Some(80), 0.99, 2000.0).clients = Some(4);
    b.failed("a", "", 160, "killed").truth_hash = None;
    with_view(&testing::manifest(), &b.points, |view| {
        let comparisons = view.comparisons();
        let sizes: Vec<usize> = comparisons.iter().map(|c| c.series[0].points.len()).collect();
        assert_eq!(sizes, [2, 1, 1, 1]);
        assert!(comparisons[1].title.contains("data b3:other"), "{}", comparisons[1].title);
        let titles: std::collections::BTreeSet<&str> = comparisons.iter().map(|c| c.title.as_str()).collect();
        assert_eq!(titles.len(), 4);
    });
}

#[test]
fn every_point_is_in_the_chart_or_in_its_list() {
    let (manifest, points) = testing::realistic();
    with_view(&manifest, &points, |view| {
        let chart = ChartData::new(&view.comparisons()[0]).unwrap();
        let drawn: usize = chart.series.iter().map(|s| s.points.len()).sum();
        assert_eq!((drawn, chart.left_out.len()), (14, 2));
        assert!(chart.left_out.iter().any(|t| t.contains("recall n/a")), "{:?}", chart.left_out);
        assert!(chart.left_out.iter().any(|t| t.contains("out of memory at limit")), "{:?}", chart.left_out);
        let on: Vec<bool> = chart.series[3].points.iter().map(|p| p.frontier).collect();
        assert_eq!(on, [true, true, false, true], "ef 400 is slower than ef 800 at the same recall");
        let first = &chart.series[0].points[0];
        assert!(first.client_limited && !first.frontier);
        assert!(first.details.contains(&("ef_construction".into(), "128".into())), "{:?}", first.details);
    });
}

#[test]
fn the_last_record_of_a_key_counts() {
    let mut b = Builder::new();
    b.failed("a", "", 10, "timeout");
    b.sweep("a", "", Some(10), 0.9, 100.0);
    b.points[1].key = b.points[0].key.clone();
    with_view(&testing::manifest(), &b.points, |view| assert_eq!(view.points, [&b.points[1]]));
}

#[test]
fn a_split_table_keeps_its_footnotes() {
    let (manifest, points) = testing::realistic();
    with_view(&manifest, &points, |view| {
        let parts = super::sweep::table(&view.comparisons()[0]).split(1);
        assert_eq!(parts.len(), 4);
        for part in &parts {
            let most = part.rows.iter().flatten().flat_map(|c| &c.notes).max().copied().unwrap_or(0);
            assert_eq!(most, part.footnotes.len(), "{}", part.title);
        }
        assert!(parts[3].footnotes.iter().any(|n| n.contains("killed, signal 9")));
    });
}

#[test]
fn the_summary_for_scripts() {
    let (manifest, points) = testing::realistic();
    let value = json(&manifest, &points);
    assert_eq!((&value["verdict"], &value["valid"]), (&"not_valid".into(), &false.into()));
    let floors = &value["comparisons"][0]["series"][3]["floors"];
    assert_eq!(floors[0]["outcome"], "not_reached");
    assert!(floors[0]["throughput"].is_null());
    assert_eq!(value["comparisons"][0]["series"][0]["floors"][2]["throughput"], 7120.0);
    assert_eq!(value["comparisons"][0]["not_distinguishable"].as_array().map(Vec::len), Some(1));
    assert_eq!(value["not_valid"][0]["reason"], "out of memory at limit 2.0 GiB (killed, signal 9)");
}

#[test]
fn recall_is_cut_and_never_rounded_up() {
    for (value, text) in
        [(0.99996, "0.9999"), (1.0, "1.0000"), (0.94999, "0.9499"), (0.95, "0.9500"), (0.0, "0.0000")]
    {
        assert_eq!(crate::format::recall(value), text);
    }
}
