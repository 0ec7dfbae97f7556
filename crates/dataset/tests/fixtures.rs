//! The files F00 .. of the case list, opened: what is accepted, and the words of what is refused.

mod common;

use common::{error, fixture, open_fixture};
use dataset::{OpenOptions, open};
use types::{Element, Metric};

#[test]
fn the_base_case_has_its_shape_metric_and_truth() {
    let Some(set) = open_fixture("F00_good.hdf5") else { return };
    assert_eq!((set.base.rows(), set.base.dim(), set.queries.rows()), (200, 8, 5));
    assert_eq!((set.metric, set.base.element()), (Some(Metric::L2), Element::F32));
    assert!(set.base.as_f32().is_some(), "a contiguous array is used in place");
    let truth = set.truth.as_ref().unwrap();
    assert_eq!((truth.depth(), truth.queries(), truth.matching(0)), (20, 5, 200));
    for query in 0..5 {
        let asked = set.queries.row(query);
        for neighbour in truth.of(query) {
            let row = set.base.row(neighbour.row as usize);
            let squares: f64 = asked.iter().zip(row.iter()).map(|(a, b)| f64::from(a - b).powi(2)).sum();
            assert!(
                (squares.sqrt() - neighbour.distance).abs() < 1e-5,
                "query {query}, row {}",
                neighbour.row
            );
        }
    }
    assert!(set.notices.is_empty(), "{:?}", set.notices);
}

#[test]
fn case_3_and_4_the_metric_attribute_as_bytes_in_capitals_or_missing() {
    for name in ["F01a_bytes_attr.hdf5", "F01c_odd_attr.hdf5"] {
        let Some(set) = open_fixture(name) else { return };
        assert_eq!(set.metric, Some(Metric::Cosine), "{name}");
    }
    let Some(set) = open_fixture("F01b_no_attr.hdf5") else { return };
    assert_eq!(set.metric, None);
    let message = set.require_metric().unwrap_err().to_string();
    assert!(
        message.contains("distance") && message.contains("angular") && message.contains("--metric"),
        "{message}"
    );
    assert!(!message.contains("b'"), "{message}");
    let options = OpenOptions { metric: Some(Metric::L2), ..OpenOptions::default() };
    let set = open(&fixture("F01b_no_attr.hdf5").unwrap(), &options).unwrap();
    assert_eq!(set.require_metric().unwrap(), Metric::L2);
}

#[test]
fn float64_is_read_as_float32_with_one_notice_each_that_counts_what_was_rounded() {
    let Some(set) = open_fixture("F02_float64.hdf5") else { return };
    let plain = open_fixture("F00_good.hdf5").unwrap();
    assert_eq!(set.hashes().base, plain.hashes().base, "the same numbers have the same hash");
    assert_eq!(set.notices.len(), 2, "{:?}", set.notices);
    assert!(set.notices[0].contains("1600 of 1600 values are rounded"), "{:?}", set.notices);
}

#[test]
fn truth_may_be_narrow_wide_or_without_distances() {
    for (name, depth) in [("F03_narrow_gt.hdf5", 5), ("F04_wide_gt.hdf5", 150), ("F05_no_distances.hdf5", 20)]
    {
        let Some(set) = open_fixture(name) else { return };
        let truth = set.truth.unwrap();
        assert_eq!((truth.depth(), truth.of(4).len()), (depth, depth), "{name}");
        assert_eq!(truth.of(0)[0].distance.is_nan(), name.starts_with("F05"), "{name}");
    }
}

#[test]
fn case_1_signed_bytes_and_bits_keep_their_type() {
    let Some(set) = open_fixture("F07a_int8.hdf5") else { return };
    assert_eq!((set.base.element(), set.base.rows(), set.base.dim()), (Element::I8, 200, 8));
    assert!(set.base.row(0).iter().chain(set.base.row(1).iter()).any(|v| *v < 0.0));
    let set = open_fixture("F07b_bits.hdf5").unwrap();
    assert_eq!((set.base.element(), set.base.dim(), set.metric), (Element::Bit, 64, Some(Metric::Hamming)));
    let truth = set.truth.unwrap();
    let neighbour = truth.of(0)[0];
    let differing = |a: &[u8], b: &[u8]| a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
    let found = differing(set.queries.row_bytes(0), set.base.row_bytes(neighbour.row as usize));
    assert_eq!(f64::from(found), neighbour.distance);
}

#[test]
fn case_5_sets_of_unequal_size_are_refused_with_metric_and_shape() {
    let Some(message) = error("F26_ragged_sets.hdf5") else { return };
    assert!(
        message.contains("jaccard") && message.contains("200 rows") && message.contains("ragged"),
        "{message}"
    );
}

#[test]
fn case_6_a_header_that_does_not_match_the_body() {
    let Some(message) = error("F10a_header_too_big.fbin") else { return };
    assert!(message.contains("6408") && message.contains("1928"), "{message}");
    let message = error("F10b_trailing.fbin").unwrap();
    assert!(message.contains("6408") && message.contains("6411"), "{message}");
    let path = fixture("F10a_header_too_big.fbin").unwrap();
    let limited = |limit| open(&path, &OpenOptions { limit: Some(limit), ..OpenOptions::default() });
    assert_eq!(limited(60).unwrap().base.rows(), 60);
    assert_eq!(limited(7).unwrap().base.rows(), 7);
    assert!(limited(61).unwrap_err().to_string().contains("--limit 60"));
    // A limit is no excuse for bytes that should not be there.
    let path = fixture("F10b_trailing.fbin").unwrap();
    assert!(open(&path, &OpenOptions { limit: Some(60), ..OpenOptions::default() }).is_err());
}

#[test]
fn case_7_fvecs_named_fbin_and_the_reverse() {
    let Some(message) = error("F11_fvecs_named.fbin") else { return };
    assert!(message.contains("fvecs with dim 8") && message.contains("100 records"), "{message}");
    let dir = tempfile::tempdir().unwrap();
    let renamed = dir.path().join("data.fvecs");
    std::fs::write(&renamed, common::fbin(200, 8)).unwrap();
    let message = open(&renamed, &OpenOptions::default()).unwrap_err().to_string();
    assert!(message.contains("fbin with 200 x 8"), "{message}");
}

#[test]
fn case_8_damaged_fvecs_are_refused_by_record() {
    let Some(message) = error("F08_truncated.fvecs") else { return };
    assert!(message.contains("record 99") && message.contains("26 bytes"), "{message}");
    let message = error("F09_ragged.fvecs").unwrap();
    assert!(
        message.contains("record 50") && message.contains("dimension 7") && message.contains('8'),
        "{message}"
    );
}

#[test]
fn case_10_an_unknown_ending_is_refused_with_those_known() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.fbn");
    std::fs::write(&path, common::fbin(200, 8)).unwrap();
    let message = open(&path, &OpenOptions::default()).unwrap_err().to_string();
    assert!(message.contains("fbn") && message.contains("fbin") && message.contains("parquet"), "{message}");
}

#[test]
fn case_18_truth_of_more_rows_than_there_are_is_refused_by_its_largest_id() {
    let Some(message) = error("F25_base_cut.hdf5") else { return };
    assert!(message.contains("up to 19") && message.contains("100 rows"), "{message}");
}

#[test]
fn case_11_and_18_a_limit_drops_the_truth_with_a_notice() {
    let Some(path) = fixture("F00_good.hdf5") else { return };
    let set = open(&path, &OpenOptions { limit: Some(60), ..OpenOptions::default() }).unwrap();
    assert_eq!((set.base.rows(), set.ids.len(), set.truth.is_some()), (60, 60, false));
    assert_eq!(set.notices.iter().filter(|n| n.contains("truth")).count(), 1, "{:?}", set.notices);
    let set = open(&path, &OpenOptions { limit: Some(200), ..OpenOptions::default() }).unwrap();
    assert!(set.truth.is_some(), "a limit that cuts nothing keeps the truth");
}

#[test]
fn padding_makes_shorter_lists_and_nan_rows_can_be_left_out() {
    let Some(set) = open_fixture("F20_zero_vectors.hdf5") else { return };
    let truth = set.truth.unwrap();
    assert_eq!((truth.of(2).len(), truth.of(1).len()), (0, 20));
    let path = fixture("F21_nan_inf.hdf5").unwrap();
    let set = open(&path, &OpenOptions { drop_bad_rows: true, ..OpenOptions::default() }).unwrap();
    assert_eq!((set.base.rows(), set.queries.rows(), set.truth.is_some()), (199, 4, false));
    assert_eq!(set.ids.get(7), types::Id::Int(8));
}
