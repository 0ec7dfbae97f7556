//! What a kernel lets through is a candidate until its bound says that it is none.

use super::*;
use crate::block::Norms;
use crate::test_numbers::Numbers;
use kernel::Level;
use std::sync::atomic::AtomicU64;
use types::Vectors;

/// Rows and queries of kinds that break a careless bound.
fn vectors(numbers: &mut Numbers, rows: usize, dim: usize, kind: usize) -> Vectors {
    let mut values: Vec<f32> = (0..rows * dim).map(|_| numbers.unit()).collect();
    for (at, x) in values.iter_mut().enumerate() {
        match kind {
            1 => *x += 1e4,
            2 => *x *= 1e18,
            3 => *x = 0.7,
            4 if at % dim < 2 => *x *= 1e3,
            5 => *x = (*x * 100.0).round(),
            6 if at / dim % 3 != at % dim % 3 => *x = 0.0,
            7 => *x *= 1e-21,
            _ => {}
        }
    }
    Vectors::from_f32(values, rows, dim).expect("rows x dim")
}

/// A limit at the pair's own key keeps it, and what it promises is no less than its key; a limit that is far
/// below drops it.
#[test]
fn a_candidate_stays_as_long_as_its_key_may_count() {
    let mut numbers = Numbers(71);
    let decided = AtomicU64::new(0);
    let (mut dropped, mut all, mut vague) = (0, 0, 0);
    for (kind, dim) in (0..8).flat_map(|kind| [1, 3, 17, 64, 300].map(|dim| (kind, dim))) {
        let (base, queries) =
            (vectors(&mut numbers, 40, dim, kind), vectors(&mut numbers, 5, dim, kind * 3 % 8));
        let ids: Vec<(u32, u64)> = (0..40).map(|row| (row, 1)).collect();
        for metric in [Metric::L2, Metric::Cosine, Metric::InnerProduct] {
            let frame = Frame::new(&base, metric, 0..40);
            for (level, width) in Level::available()
                .into_iter()
                .flat_map(|level| [None, Some(Width::Eight), Some(Width::Sixteen)].map(|w| (level, w)))
            {
                let setting = Setting {
                    base: &base,
                    queries: &queries,
                    metric,
                    level,
                    integers: width.map(|width| (width, &frame)),
                    k: 1,
                    dim,
                    trusting: true,
                    most_pending: 100,
                    decided: &decided,
                };
                let probes: Vec<Probe> = (0..5).map(|q| Probe::new(&queries, q)).collect();
                let mut screen = Screen::new(&setting, &[0, 1, 2, 3, 4], &probes);
                let mut block = Block::default();
                block.load(&base, metric, level, &ids, setting.integers).expect("finite rows");
                let norms = Norms::new(&(0..40), true);
                norms.keep(&block);
                for (lane, probe) in probes.iter().enumerate() {
                    screen.set_limit(&setting, lane, probe, f64::INFINITY, block.safe, false);
                }
                let mut masks = [0; 40];
                screen.masks(&setting, &block, &block.integers(), 0..40, 0b11111, &mut masks);
                for (i, (lane, probe)) in (0..40).flat_map(|i| probes.iter().enumerate().map(move |p| (i, p)))
                {
                    let key = probe.key(metric, level, block.row(i), norms.of(level, i as u32, block.row(i)));
                    if key.is_nan() {
                        continue;
                    }
                    let place =
                        format!("{metric} {level:?} {width:?} kind {kind} dim {dim} row {i} query {lane}");
                    assert_eq!(masks[i] >> lane & 1, 1, "nothing is ruled out: {place}");
                    let candidate = screen.candidate(&setting, &block, (i, i), lane, probe);
                    assert!(f64::from(candidate.high) >= key, "{} promises {key}: {place}", candidate.high);
                    let reaches = |worst| {
                        let limit = screen.limit(&setting, lane, probe, worst);
                        screen.reaches(&candidate, limit, || norms.kept(candidate.row))
                    };
                    assert!(reaches(key), "{place}");
                    assert!(reaches(f64::INFINITY), "{place}");
                    let size = probe.norm * crate::distance::norm(level, &base.row(i));
                    all += 1;
                    vague += u32::from(candidate.high == f32::INFINITY);
                    dropped += u32::from(!reaches(
                        key - 0.1 * key.abs() - 0.2 * if metric == Metric::Cosine { 1.0 } else { size },
                    ));
                }
            }
        }
    }
    assert!(dropped > all / 2, "what is far is dropped: {dropped} of {all}");
    assert!(vague < all / 3, "most candidates promise something: {vague} of {all} do not");
}
