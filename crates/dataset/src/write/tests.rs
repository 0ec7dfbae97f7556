//! What is written can be read, by us and (checked by hand and in CI by h5py) by others.

use super::*;
use crate::{OpenOptions, open};
use types::{Element, Metric, Neighbour, Vectors};

fn sample(element: Element, metric: Metric, distances: bool) -> Dataset {
    let dim = 12;
    let vectors = |rows: usize, seed: usize| {
        let bytes: Vec<u8> =
            (0..rows * element.row_bytes(dim)).map(|i| ((i * 7 + seed) % 60) as u8).collect();
        let bytes = if element == Element::Bit { bytes.iter().map(|b| b & 0xf0).collect() } else { bytes };
        Vectors::from_bytes(bytes, rows, dim, element).unwrap()
    };
    let mut set = Dataset::new("sample", vectors(40, 0), vectors(3, 5));
    set.metric = Some(metric);
    let mut truth = Truth::new(4);
    for query in 0..3_u32 {
        let list = (0..4 - query).map(|i| Neighbour {
            row: query * 10 + i,
            distance: if distances { f64::from(i + 1) } else { f64::NAN },
        });
        truth.push(list, 40);
    }
    set.truth = Some(truth);
    set
}

const ELEMENTS: [Element; 5] = [Element::F32, Element::F16, Element::I8, Element::U8, Element::Bit];

fn same(a: &Dataset, b: &Dataset) {
    assert_eq!(a.hashes(), b.hashes(), "{:?}", a.base);
    for query in 0..3 {
        for (x, y) in a.truth.as_ref().unwrap().of(query).iter().zip(b.truth.as_ref().unwrap().of(query)) {
            let close =
                (x.distance - y.distance).abs() < 1e-5 || (x.distance.is_nan() && y.distance.is_nan());
            assert!(close, "{x:?} {y:?}");
        }
    }
}

#[test]
fn hdf5_of_every_element_comes_back_mapped() {
    let dir = tempfile::tempdir().unwrap();
    for element in ELEMENTS {
        let metric = if element == Element::Bit { Metric::Hamming } else { Metric::Cosine };
        for distances in [true, false] {
            let set = sample(element, metric, distances);
            let path = dir.path().join(format!("{element}-{distances}.hdf5"));
            assert!(hdf5(&set, &path).unwrap().is_empty());
            let back = open(&path, &OpenOptions::default()).unwrap();
            assert_eq!((back.metric, back.base.element()), (Some(metric), element));
            same(&set, &back);
            assert!(hdf5(&set, &path).unwrap_err().to_string().contains("exists already"));
        }
    }
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 10, "no half file is left");
}

#[test]
fn fbin_and_its_truth_are_found_beside_each_other() {
    let dir = tempfile::tempdir().unwrap();
    for element in &ELEMENTS[..4] {
        for distances in [true, false] {
            let set = sample(*element, Metric::L2, distances);
            let target = dir.path().join(format!("{element}-{distances}"));
            let said = fbin(&set, &target).unwrap();
            assert!(said.iter().any(|s| s.contains("--metric l2")), "{said:?}");
            let ending = if *element == Element::F32 { "fbin" } else { &format!("{element}bin") };
            let back = open(&target.join(format!("base.{ending}")), &OpenOptions::default()).unwrap();
            same(&set, &back);
        }
    }
    let bits = sample(Element::Bit, Metric::Hamming, true);
    assert!(fbin(&bits, &dir.path().join("bits")).is_err());
    assert!(!dir.path().join("bits").exists());
}

#[test]
fn a_set_without_queries_and_truth_is_written_and_what_is_lost_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let mut set = sample(Element::F32, Metric::L2, true);
    set.queries = set.queries.slice(0..0);
    set.truth = None;
    set.ids = Ids::Ints((0..40).map(|i| i * 3).collect());
    let path = dir.path().join("few.h5");
    let said = hdf5(&set, &path).unwrap();
    assert!(said.len() == 1 && said[0].contains("ids"), "{said:?}");
    let back = open(&path, &OpenOptions::default()).unwrap();
    assert_eq!((back.queries.rows(), back.base.rows()), (0, 40));
}
