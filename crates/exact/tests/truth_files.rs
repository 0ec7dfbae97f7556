//! Truths that files bring: the fixtures of the list of cases and the data for development.

mod common;

use common::{fixture, say, shared_data};
use dataset::{Dataset, OpenOptions};
use exact::{
    Allowed, FilterRows, Options, Scorer, Subset, TieOrder, TruthCheck, TruthVerdict, neighbours, summary,
    truth_for, verify_truth,
};
use std::sync::Arc;
use types::{Metric, Truth};

fn open(test: &str, name: &str) -> Option<Dataset> {
    Some(dataset::open(&fixture(test, name)?, &OpenOptions::default()).unwrap())
}

fn verify(data: &Dataset, metric: Metric) -> TruthVerdict {
    let truth = data.truth.as_ref().unwrap();
    let check = TruthCheck::default();
    verify_truth(&data.base, &data.queries, metric, truth, None, check, &Options::default()).unwrap()
}

/// Recall of our exact search against the file's truth: the control.
fn control(data: &Dataset, metric: Metric, k: usize) -> exact::RecallSummary {
    let truth = data.truth.as_ref().unwrap();
    let ours = neighbours(&data.base, &data.queries, metric, k, Subset::All, &Options::default()).unwrap();
    let scorer =
        Scorer::new(data.base.clone(), data.queries.clone(), metric, truth, k, Allowed::default()).unwrap();
    let ids = |q: usize| ours.of(q).iter().map(|n| u64::from(n.row)).collect::<Vec<_>>();
    summary(&(0..ours.queries()).map(|q| scorer.score(q, &ids(q))).collect::<Vec<_>>())
}

#[test]
fn good_files_have_a_control_of_one() {
    for (name, metric) in [
        ("F00_good.hdf5", Metric::L2),
        ("F01a_bytes_attr.hdf5", Metric::Cosine),
        ("F01c_odd_attr.hdf5", Metric::Cosine),
        ("F02_float64.hdf5", Metric::L2),
        ("F04_wide_gt.hdf5", Metric::L2),
        ("F05_no_distances.hdf5", Metric::L2),
        ("F07a_int8.hdf5", Metric::L2),
        ("F07b_bits.hdf5", Metric::Hamming),
        ("F19_duplicates.hdf5", Metric::L2),
    ] {
        let Some(data) = open("good_files_have_a_control_of_one", name) else { return };
        assert_eq!(control(&data, metric, 10).mean, Some(1.0), "{name}");
        let verdict = verify(&data, metric);
        assert!(verdict.ok && verdict.full_agreement == Some(1.0), "{name}: {}", verdict.message);
        if name.starts_with("F05") {
            assert_eq!(verdict.distance_scale, None);
        }
    }
}

#[test]
fn f03_a_narrow_truth_serves_its_own_k() {
    let Some(data) = open("f03", "F03_narrow_gt.hdf5") else { return };
    assert_eq!(control(&data, Metric::L2, 5).mean, Some(1.0));
    let truth = data.truth.as_ref().unwrap();
    let error =
        Scorer::new(data.base.clone(), data.queries.clone(), Metric::L2, truth, 10, Allowed::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("truth has 5 neighbours, k is 10: use --k 5"), "{error}");
}

#[test]
fn case_18_f25_a_cut_base_is_refused_with_the_largest_row() {
    let Some(path) = fixture("case_18", "F25_base_cut.hdf5") else { return };
    let data = match dataset::open(&path, &OpenOptions::default()) {
        Ok(data) => data,
        // The reader may see it first.
        Err(error) => return assert!(error.to_string().contains("100 rows"), "{error}"),
    };
    let verdict = verify(&data, Metric::L2);
    assert!(!verdict.ok && verdict.row_past_base >= Some(100), "{}", verdict.message);
    assert!(verdict.message.contains("larger base"), "{}", verdict.message);
}

#[test]
fn case_18_a_cut_whose_rows_all_fit_is_caught_by_the_sample() {
    let Some(data) = open("case_18", "F00_good.hdf5") else { return };
    let whole = data.truth.as_ref().unwrap();
    let mut fits = Truth::new(whole.depth());
    (0..whole.queries()).for_each(|q| {
        fits.push(whole.of(q).iter().map(|n| types::Neighbour { row: n.row % 100, ..*n }), 100)
    });
    let base = data.base.slice(0..100);
    let verdict = verify_truth(
        &base,
        &data.queries,
        Metric::L2,
        &fits,
        None,
        TruthCheck::default(),
        &Options::default(),
    );
    let verdict = verdict.unwrap();
    assert!(!verdict.ok && verdict.row_past_base.is_none(), "{}", verdict.message);
}

#[test]
fn case_19_f24_a_stale_truth_agrees_by_chance() {
    let Some(data) = open("case_19", "F24_stale_truth.hdf5") else { return };
    let verdict = verify(&data, Metric::L2);
    assert!(!verdict.ok && verdict.agrees_with.is_none());
    assert!((verdict.agreement.unwrap() - 0.06).abs() < 0.005, "{:?}", verdict.agreement);
    assert!(verdict.message.contains("0.06") && verdict.message.contains("chance"), "{}", verdict.message);
    assert!(!verdict.message.contains('\n'));
}

#[test]
fn case_20_f23_the_metric_that_the_truth_was_made_with_is_named() {
    let Some(data) = open("case_20", "F23_truth_by_wrong_metric.hdf5") else { return };
    let verdict = verify(&data, Metric::Cosine);
    assert_eq!((verdict.ok, verdict.agrees_with), (false, Some(Metric::L2)), "{}", verdict.message);
    assert!(verdict.message.contains("made with l2, not with cosine"), "{}", verdict.message);
    assert!(verify(&data, Metric::L2).ok);
}

#[test]
fn case_25_a_truth_that_covers_3_of_5_queries_is_refused() {
    let Some(data) = open("case_25", "F00_good.hdf5") else { return };
    let whole = data.truth.as_ref().unwrap();
    for covered in [0, 3] {
        let mut part = Truth::new(20);
        (0..covered).for_each(|q| part.push(whole.of(q).iter().copied(), whole.matching(q)));
        let check = TruthCheck::default();
        let verdict =
            verify_truth(&data.base, &data.queries, Metric::L2, &part, None, check, &Options::default())
                .unwrap();
        assert!(
            !verdict.ok && verdict.message.contains(&format!("{covered} of 5 queries")),
            "{}",
            verdict.message
        );
    }
}

#[test]
fn case_42_f01a_the_scale_of_the_distances_is_named_and_not_used() {
    let Some(mut data) = open("case_42", "F01a_bytes_attr.hdf5") else { return };
    assert_eq!(verify(&data, Metric::Cosine).distance_scale.as_deref(), Some("distance"));
    let file = data.truth.take().unwrap();
    let mut unit = Truth::new(20);
    for q in 0..file.queries() {
        let list = file.of(q).iter().map(|n| types::Neighbour { distance: (2.0 * n.distance).sqrt(), ..*n });
        unit.push(list, file.matching(q));
    }
    data.truth = Some(unit);
    assert_eq!(control(&data, Metric::Cosine, 10).mean, Some(1.0));
    let verdict = verify(&data, Metric::Cosine);
    assert!(
        verdict.ok && verdict.message.contains("Euclidean distance of unit vectors"),
        "{}",
        verdict.message
    );
}

#[test]
fn case_43_f20_zero_vectors_are_left_out() {
    let Some(data) = open("case_43", "F20_zero_vectors.hdf5") else { return };
    let summary = control(&data, Metric::Cosine, 10);
    assert_eq!((summary.mean, summary.evaluated, summary.excluded), (Some(1.0), 4, 1));
    assert!(verify(&data, Metric::Cosine).ok);
}

/// The data for development: every neighbour, ties aside, and the control.
fn reproduce(file: &str) {
    let Some(folder) = shared_data() else {
        say(&format!("skipped {file}: the data for development is not here"));
        return;
    };
    let data = dataset::open(&folder.join(file), &OpenOptions::default()).unwrap();
    let truth = data.truth.as_ref().unwrap();
    let (metric, queries) = (Metric::Cosine, data.queries.rows());
    assert_eq!((queries, truth.depth(), data.metric), (1000, 100, Some(metric)));
    let ours = neighbours(&data.base, &data.queries, metric, 100, Subset::All, &Options::default()).unwrap();
    for q in 0..queries {
        same_but_for_ties(ours.of(q), truth.of(q), &format!("{file} query {q}"));
    }
    assert_eq!(control(&data, metric, 100).mean, Some(1.0));
    let verdict = verify(&data, metric);
    assert!(verdict.ok && verdict.full_agreement == Some(1.0), "{}", verdict.message);
    assert_ne!(verdict.tie_order, TieOrder::HigherRowFirst);
    say(&verdict.message);
}

/// Rows equal one by one, except where distances (f32 in the file) tie with a neighbour in the list or
/// with the last.
fn same_but_for_ties(ours: &[types::Neighbour], theirs: &[types::Neighbour], context: &str) {
    assert_eq!(ours.len(), theirs.len(), "{context}: length");
    for (rank, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!((a.distance - b.distance).abs() <= 1e-6, "{context} rank {rank}: {a:?} against {b:?}");
        if a.row != b.row {
            let tied = |n: &types::Neighbour| (n.distance - a.distance).abs() <= 1e-12;
            let at_end = ours.last().is_some_and(tied);
            let elsewhere = ours.iter().any(|n| n.row == b.row && tied(n));
            assert!(at_end || elsewhere, "{context} rank {rank}: {a:?} against {b:?} and no tie");
        }
    }
}

#[test]
fn debian_is_reproduced() {
    reproduce("debian-50k-384-angular.hdf5");
}

#[test]
fn glove_is_reproduced() {
    reproduce("glove-200k-50-angular.hdf5");
}

#[test]
fn every_row_of_the_filtered_truth_is_reproduced() {
    let Some(folder) = shared_data() else {
        say("skipped every_row_of_the_filtered_truth_is_reproduced: the data for development is not here");
        return;
    };
    let options = OpenOptions {
        columns: Some(folder.join("debian-50k-columns.parquet")),
        query_columns: Some(folder.join("debian-50k-query-columns.parquet")),
        truth: Some(folder.join("debian-50k-filtered-truth.parquet")),
        ..OpenOptions::default()
    };
    let data = dataset::open(&folder.join("debian-50k-384-angular.hdf5"), &options).unwrap();
    let columns = data.columns.as_ref().unwrap();
    assert_eq!(data.filtered.len(), 8);
    for case in &data.filtered {
        let filters = case.filters(columns, data.query_columns.as_ref()).unwrap();
        let options = Options::default();
        let ours = truth_for(
            &data.base,
            &data.queries,
            Some(columns),
            Metric::Cosine,
            100,
            &filters,
            None,
            &options,
        )
        .unwrap();
        for q in 0..1000 {
            let context = format!("{} query {q}", case.name);
            assert_eq!(ours.matching(q), case.truth.matching(q), "{context}: matching");
            same_but_for_ties(ours.of(q), case.truth.of(q), &context);
        }
        let rows = FilterRows::new(Some(columns), &filters, data.base.rows(), 1000).unwrap();
        let verdict = verify_truth(
            &data.base,
            &data.queries,
            Metric::Cosine,
            &case.truth,
            Some(&rows),
            TruthCheck::default(),
            &options,
        )
        .unwrap();
        assert!(verdict.ok, "{}: {}", case.name, verdict.message);
        let allowed = Allowed { filter: Some(Arc::new(rows)), live: None };
        let scorer =
            Scorer::new(data.base.clone(), data.queries.clone(), Metric::Cosine, &case.truth, 10, allowed)
                .unwrap();
        let scores: Vec<_> = (0..1000)
            .map(|q| {
                scorer.score(q, &ours.of(q).iter().take(10).map(|n| u64::from(n.row)).collect::<Vec<_>>())
            })
            .collect();
        let summary = summary(&scores);
        assert_eq!(
            (summary.mean, summary.filter_violations, summary.short_queries),
            (Some(1.0), 0, 0),
            "{}",
            case.name
        );
    }
}
