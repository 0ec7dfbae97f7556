//! The recall rule, case by case (numbers are those of the project's list of cases).

mod common;

use common::Numbers;
use exact::{
    Allowed, ExactError, FilterRows, Options, Scorer, Subset, chance_recall, is_chance_level, neighbours,
    summary,
};
use proptest::prelude::*;
use std::sync::Arc;
use types::{Element, Filter, Filters, Metric, Neighbour, RowSet, Truth, Vectors};

/// Points on a line: row i lies at `at[i]`. One query at 0 unless said otherwise.
fn line(at: &[f32]) -> Vectors {
    Vectors::from_f32(at.to_vec(), at.len(), 1).unwrap()
}

fn truth_of(base: &Vectors, queries: &Vectors, metric: Metric, depth: usize) -> Truth {
    neighbours(base, queries, metric, depth, Subset::All, &Options::default()).unwrap()
}

fn scorer(base: &Vectors, queries: &Vectors, metric: Metric, depth: usize, k: usize) -> Scorer {
    let truth = truth_of(base, queries, metric, depth);
    Scorer::new(base.clone(), queries.clone(), metric, &truth, k, Allowed::default()).unwrap()
}

/// 20 rows at 0, 1, 2 ... and a query at 0: the true neighbours are 0, 1, 2 ...
fn twenty() -> Scorer {
    let at: Vec<f32> = (0..20).map(|i| i as f32).collect();
    scorer(&line(&at), &line(&[0.0]), Metric::L2, 20, 10)
}

#[test]
fn case_32a_without_ties_recall_is_the_overlap_of_sets() {
    let mut numbers = Numbers(1);
    let (base, queries) = (numbers.vectors(300, 16), numbers.vectors(30, 16));
    for metric in [Metric::L2, Metric::Cosine, Metric::InnerProduct] {
        let scorer = scorer(&base, &queries, metric, 100, 10);
        let truth = truth_of(&base, &queries, metric, 10);
        for query in 0..30 {
            let answer: Vec<u64> = (0..10).map(|_| numbers.below(300) as u64).collect();
            let mut distinct = answer.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let common = truth.of(query).iter().filter(|n| distinct.contains(&u64::from(n.row))).count();
            let score = scorer.score(query, &answer);
            assert_eq!(score.recall, Some(common as f64 / 10.0));
            assert_eq!(score.id_overlap, score.recall);
        }
    }
}

#[test]
fn case_32b_any_member_of_a_tie_at_rank_k_counts_and_never_more_than_k() {
    // Rows 3 to 9 all lie at distance 5.
    let base = line(&[1.0, 2.0, 3.0, 5.0, -5.0, 5.0, -5.0, 5.0, -5.0, 5.0, 6.0]);
    let scorer = scorer(&base, &line(&[0.0]), Metric::L2, 11, 5);
    for answer in [[0, 1, 2, 3, 4], [0, 1, 2, 8, 9], [2, 1, 0, 6, 5]] {
        assert_eq!(scorer.score(0, &answer).recall, Some(1.0), "{answer:?}");
    }
    assert_eq!(scorer.score(0, &[3, 4, 5, 6, 7]).recall, Some(1.0), "all within the distance of rank 5");
    assert_eq!(scorer.score(0, &[3, 4, 5, 6, 10]).recall, Some(0.8));
    let all = scorer.score(0, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!((all.recall, all.hits, all.excess), (Some(1.0), 5, 5));
    assert_eq!(scorer.score(0, &[0, 1, 2, 8, 9]).id_overlap, Some(0.6));
}

#[test]
fn case_32c_inner_products_grow_with_nearness_and_may_be_negative() {
    let base = line(&[-3.0, -1.0, -2.0, -0.5, -4.0]);
    let scorer = scorer(&base, &line(&[1.0]), Metric::InnerProduct, 5, 2);
    assert_eq!(scorer.score(0, &[3, 1]).recall, Some(1.0));
    assert_eq!(scorer.score(0, &[4, 0]).recall, Some(0.0));
    assert_eq!(scorer.score(0, &[3, 0]).recall, Some(0.5));
    assert_eq!((scorer.score(0, &[3, 1]).out_of_order, scorer.score(0, &[1, 3]).out_of_order), (0, 1));
}

#[test]
fn case_32d_ties_beyond_the_truths_columns_are_flagged() {
    let base = line(&[1.0, 2.0, 2.0, 2.0, 2.0, 3.0]);
    let narrow = scorer(&base, &line(&[0.0]), Metric::L2, 2, 2);
    let score = narrow.score(0, &[0, 4]);
    assert_eq!((score.recall, score.ties_beyond_truth), (Some(1.0), 1));
    assert_eq!(narrow.score(0, &[0, 1]).ties_beyond_truth, 0);
    assert_eq!(narrow.score(0, &[1, 2, 3, 4]).recall, Some(1.0), "and still at most k");
}

#[test]
fn case_33_an_explanation_adds_up() {
    let base = line(&[0.0, 1.0, 2.0, 3.0, 4.0]);
    let queries = line(&[0.0, 4.0, 2.2]);
    let scorer = scorer(&base, &queries, Metric::L2, 5, 2);
    let answers: [&[u64]; 3] = [&[0, 1], &[4, 0], &[2, 2, 77]];
    let scores: Vec<_> = answers.iter().enumerate().map(|(q, a)| scorer.score(q, a)).collect();
    let explained = scorer.explain(2, answers[2]);
    assert_eq!(explained.truth.iter().map(|t| t.0).collect::<Vec<_>>(), [2, 3]);
    assert!((explained.threshold.unwrap() - 0.8).abs() < 1e-6);
    let notes: Vec<_> = explained.returned.iter().map(|r| (r.id, r.hit, r.note)).collect();
    assert_eq!(notes, [(2, true, None), (2, false, Some("repeated")), (77, false, Some("no such row"))]);
    assert_eq!(explained.score, scores[2]);
    let summary = summary(&scores);
    assert_eq!(summary.mean, Some((1.0 + 0.5 + 0.5) / 3.0));
    assert_eq!(
        (summary.min, summary.evaluated, summary.unmappable, summary.duplicates),
        (Some(0.5), 3, 1, 1)
    );
    assert!(summary.violates());
}

#[test]
fn case_34_the_nearest_ten_times_is_one_hit() {
    let score = twenty().score(0, &[0; 10]);
    assert_eq!((score.recall, score.duplicates, score.violates()), (Some(0.1), 9, true));
    assert_eq!((score.id_overlap, score.annb), (Some(0.1), Some(0.1)));
}

#[test]
fn case_35_a_short_list_is_short() {
    let scorer = twenty();
    let one = scorer.score(0, &[0]);
    assert_eq!((one.recall, one.short, one.returned), (Some(0.1), true, 1));
    let summary = summary(&[one, scorer.score(0, &[])]);
    assert_eq!((summary.short_queries, summary.mean_returned, summary.mean), (2, Some(0.5), Some(0.05)));
}

#[test]
fn case_36_a_truth_wider_than_k_is_cut() {
    let mut numbers = Numbers(2);
    let (base, queries) = (numbers.vectors(200, 8), numbers.vectors(5, 8));
    let truth = truth_of(&base, &queries, Metric::L2, 150);
    let scorer = Scorer::new(base, queries, Metric::L2, &truth, 10, Allowed::default()).unwrap();
    for query in 0..5 {
        let answer: Vec<u64> = truth.of(query)[..10].iter().map(|n| u64::from(n.row)).collect();
        assert_eq!(scorer.score(query, &answer).recall, Some(1.0));
    }
}

#[test]
fn a_truth_narrower_than_k_is_refused_by_name_unless_no_more_rows_match() {
    let base = line(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let queries = line(&[0.0]);
    let truth = truth_of(&base, &queries, Metric::L2, 5);
    let error = Scorer::new(base.clone(), queries.clone(), Metric::L2, &truth, 10, Allowed::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("truth has 5 neighbours, k is 10: use --k 5 or recompute"), "{error}");
    let whole = truth_of(&base, &queries, Metric::L2, 10);
    let scorer = Scorer::new(base, queries, Metric::L2, &whole, 10, Allowed::default()).unwrap();
    let score = scorer.score(0, &[0, 1, 2, 3, 4, 5, 6]);
    assert_eq!((score.recall, score.wanted, score.short), (Some(1.0), 7, false));
    assert_eq!(score.annb, Some(0.7), "ann-benchmarks divides by k all the same");
}

#[test]
fn case_25_a_truth_of_fewer_queries_is_refused_with_both_counts() {
    let base = line(&[0.0, 1.0]);
    let truth = truth_of(&base, &line(&[0.0, 1.0, 2.0]), Metric::L2, 1);
    let error = Scorer::new(base, line(&[0.0; 5]), Metric::L2, &truth, 1, Allowed::default()).unwrap_err();
    assert!(error.to_string().contains("truth cover 3 queries, the data set has 5"), "{error}");
}

#[test]
fn case_38_more_than_k_never_gives_more_than_one() {
    let score = twenty().score(0, &(0..12).collect::<Vec<u64>>());
    assert_eq!((score.recall, score.excess, score.violates()), (Some(1.0), 2, true));
    let late = twenty().score(0, &[19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 0, 1]);
    assert_eq!(late.recall, Some(0.0), "what stands past k does not count");
}

#[test]
fn case_39_chance_level_is_recognised() {
    assert_eq!((chance_recall(10, 200), chance_recall(10, 5), chance_recall(1, 0)), (0.05, 1.0, 1.0));
    assert!(is_chance_level(0.06, 10, 200, 5));
    assert!(is_chance_level(0.015, 10, 1_000_000, 1000));
    assert!(!is_chance_level(0.2, 10, 200, 1000));
    assert!(!is_chance_level(0.9, 10, 12, 5), "a set of 12 rows cannot tell");
}

#[test]
fn case_40_an_id_that_names_no_row_is_counted() {
    let score = twenty().score(0, &[0, 1, 2, 3, 4, 5, 6, 7, 8, u64::MAX]);
    assert_eq!((score.recall, score.unmappable, score.violates()), (Some(0.9), 1, true));
}

#[test]
fn case_42_the_scale_of_a_files_distances_does_not_matter() {
    let mut numbers = Numbers(3);
    let (base, queries) = (numbers.vectors(200, 8), numbers.vectors(5, 8));
    let truth = truth_of(&base, &queries, Metric::Cosine, 20);
    for scale in [|d: f64| d, |d: f64| (2.0 * d).sqrt(), |_: f64| f64::NAN] {
        let mut file = Truth::new(20);
        for q in 0..5 {
            file.push(truth.of(q).iter().map(|n| Neighbour { distance: scale(n.distance), ..*n }), 200);
        }
        let scorer =
            Scorer::new(base.clone(), queries.clone(), Metric::Cosine, &file, 10, Allowed::default())
                .unwrap();
        for q in 0..5 {
            let answer: Vec<u64> = truth.of(q)[..10].iter().map(|n| u64::from(n.row)).collect();
            let score = scorer.score(q, &answer);
            assert_eq!((score.recall, score.annb, score.out_of_order), (Some(1.0), Some(1.0), 0));
        }
    }
}

#[test]
fn case_43_a_zero_query_is_left_out_of_the_mean() {
    let base = Vectors::from_f32(vec![1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0], 4, 2).unwrap();
    let queries = Vectors::from_f32(vec![1.0, 0.1, 0.0, 0.0], 2, 2).unwrap();
    let scorer = scorer(&base, &queries, Metric::Cosine, 4, 2);
    let good = scorer.score(0, &[0, 3]);
    assert_eq!(good.recall, Some(1.0));
    let zero_row = scorer.score(0, &[0, 1]);
    assert_eq!(zero_row.recall, Some(0.5), "a row without a distance is no hit");
    let zero_query = scorer.score(1, &[0, 1]);
    assert_eq!((zero_query.recall, zero_query.violates()), (None, false));
    let summary = summary(&[good, zero_query]);
    assert_eq!((summary.mean, summary.evaluated, summary.excluded), (Some(1.0), 1, 1));
    let json = serde_json::to_string(&summary).unwrap();
    assert!(!json.contains("NaN"), "{json}");
    assert_eq!(serde_json::from_str::<exact::RecallSummary>(&json).unwrap(), summary);
}

#[test]
fn a_filter_that_matches_nothing_makes_every_returned_row_a_violation() {
    let base = line(&[0.0, 1.0, 2.0]);
    let queries = line(&[0.0]);
    let nothing = RowSet::from_fn(3, |_| false);
    let truth =
        neighbours(&base, &queries, Metric::L2, 2, Subset::Same(&nothing), &Options::default()).unwrap();
    let scorer = Scorer::new(base, queries, Metric::L2, &truth, 2, Allowed::default()).unwrap();
    let score = scorer.score(0, &[0, 1]);
    assert_eq!((score.recall, score.filter_violations, score.short), (None, 2, false));
    assert_eq!(scorer.score(0, &[]).filter_violations, 0);
}

#[test]
fn filtered_and_deleted_rows_are_counted_and_never_hits() {
    let base = line(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let queries = line(&[0.0, 7.0]);
    let ints = types::ColumnData::Int((0..8).map(|i| (i != 6).then_some(i % 2)).collect());
    let columns = types::Columns::new(vec![types::Column { name: "odd".into(), data: ints }]).unwrap();
    let parse = |text: &str| Arc::new(text.parse::<Filter>().unwrap());
    let filters = Filters::PerQuery(vec![parse("odd = 0"), parse("odd = 1")]);
    let live = Arc::new(RowSet::from_fn(8, |row| row != 2));
    let options = Options::default();
    let truth =
        exact::truth_for(&base, &queries, Some(&columns), Metric::L2, 3, &filters, Some(&live), &options)
            .unwrap();
    assert_eq!(truth.of(0).iter().map(|n| n.row).collect::<Vec<_>>(), [0, 4]);
    assert_eq!((truth.matching(0), truth.matching(1)), (2, 4));
    let filter = Arc::new(FilterRows::new(Some(&columns), &filters, 8, 2).unwrap());
    let allowed = Allowed { filter: Some(filter.clone()), live: Some(live) };
    let scorer = Scorer::new(base.clone(), queries.clone(), Metric::L2, &truth, 3, allowed.clone()).unwrap();
    let score = scorer.score(0, &[0, 1, 2]);
    assert_eq!((score.recall, score.filter_violations, score.not_live), (Some(0.5), 1, 1));
    assert_eq!(scorer.score(0, &[0, 4]).recall, Some(1.0));
    assert_eq!(scorer.score(1, &[7, 6, 5]).filter_violations, 1, "a missing value passes no filter");
    // Truth without the filter is the answer to another question.
    let other = truth_of(&base, &queries, Metric::L2, 3);
    let error = Scorer::new(base, queries, Metric::L2, &other, 3, allowed).unwrap_err();
    assert!(matches!(error, ExactError::TruthNotAllowed { query: 0, row: 1 }), "{error}");
}

#[test]
fn case_28_half_of_the_rows_present() {
    let mut numbers = Numbers(4);
    let (base, queries) = (numbers.vectors(200, 8), numbers.vectors(5, 8));
    let live = RowSet::from_fn(200, |row| row < 100);
    let truth =
        neighbours(&base, &queries, Metric::L2, 10, Subset::Same(&live), &Options::default()).unwrap();
    let whole = truth_of(&base, &queries, Metric::L2, 10);
    let left = (0..5).map(|q| whole.of(q).iter().filter(|n| n.row < 100).count());
    assert!(left.max() < Some(10), "intersecting the old lists leaves too few");
    let allowed = Allowed { filter: None, live: Some(Arc::new(live)) };
    let scorer = Scorer::new(base, queries, Metric::L2, &truth, 10, allowed).unwrap();
    for q in 0..5 {
        let answer: Vec<u64> = truth.of(q).iter().map(|n| u64::from(n.row)).collect();
        assert_eq!(scorer.score(q, &answer).recall, Some(1.0));
    }
}

#[test]
fn f32_rounding_in_an_engine_costs_no_recall_but_a_real_difference_does() {
    // Row 1 is tied with row 0 but for an error that f32 arithmetic makes.
    let base = line(&[1.0, 1.000_000_5, 1.000_01]);
    let scorer = scorer(&base, &line(&[0.0]), Metric::L2, 3, 1);
    assert_eq!(scorer.score(0, &[1]).recall, Some(1.0));
    assert_eq!(scorer.score(0, &[2]).recall, Some(0.0));
    assert_eq!(scorer.score(0, &[2]).annb, Some(1.0), "ann-benchmarks' 1e-3 is absolute");
    let bytes = |v: &[u8]| Vectors::from_bytes(v.to_vec(), v.len() / 2, 2, Element::U8).unwrap();
    let scorer = self::scorer(&bytes(&[200, 201, 201, 201, 0, 0]), &bytes(&[0, 0]), Metric::L2, 3, 2);
    assert_eq!(scorer.score(0, &[2, 1]).recall, Some(0.5), "integers differ by whole numbers");
}

#[test]
fn bits_are_scored_by_whole_numbers() {
    let base = Vectors::from_bytes(vec![0b1111_0000, 0b1111_1000, 0b0000_1111], 3, 8, Element::Bit).unwrap();
    let query = Vectors::from_bytes(vec![0b1111_0000], 1, 8, Element::Bit).unwrap();
    let scorer = scorer(&base, &query, Metric::Hamming, 3, 2);
    assert_eq!(scorer.score(0, &[0, 1]).recall, Some(1.0));
    assert_eq!(scorer.score(0, &[0, 2]).recall, Some(0.5));
}

proptest! {
    #[test]
    fn recall_is_always_in_0_to_1(
        seed in 0_u64..1000, rows in 1_usize..40, dim in 1_usize..6, k in 1_usize..15, metric in 0_usize..3,
        answer in prop::collection::vec(0_u64..50, 0..30),
    ) {
        let mut numbers = Numbers(seed);
        // Few different values, so that ties and zero vectors are common.
        let mut values = |n: usize| (0..n).map(|_| numbers.below(3) as f32 - 1.0).collect::<Vec<f32>>();
        let base = Vectors::from_f32(values(rows * dim), rows, dim).unwrap();
        let queries = Vectors::from_f32(values(dim), 1, dim).unwrap();
        let metric = Metric::ALL[metric];
        let scorer = scorer(&base, &queries, metric, k + seed as usize % 3, k);
        let score = scorer.score(0, &answer);
        for part in [score.recall, score.id_overlap, score.annb].into_iter().flatten() {
            prop_assert!((0.0..=1.0).contains(&part), "{score:?}");
        }
        prop_assert!(score.hits <= score.wanted && score.wanted <= k);
        let truth = truth_of(&base, &queries, metric, k);
        let right: Vec<u64> = truth.of(0).iter().map(|n| u64::from(n.row)).collect();
        let score = scorer.score(0, &right);
        prop_assert!(score.recall.is_none_or(|r| r == 1.0) && score.out_of_order == 0 && !score.violates());
    }
}
