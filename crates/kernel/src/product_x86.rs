//! [`Screen::run`] compiled for each instruction set.
// SAFETY of all: as `Screen::run`, on a CPU with the features named.

use super::{PANEL_ROWS, Products, Screen};
use crate::int_lanes::{Avx2, Vnni};
use crate::screen::TILE_QUERIES;
use std::ops::Range;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn vnni8(
    job: &Screen<'_>,
    range: Range<usize>,
    masks: &mut [u32],
    products: &mut [Products],
) {
    // SAFETY: see above.
    unsafe { job.run::<Vnni, 12, 2, true>(range, masks, products) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn vnni16(
    job: &Screen<'_>,
    range: Range<usize>,
    masks: &mut [u32],
    products: &mut [Products],
) {
    // SAFETY: see above.
    unsafe { job.run::<Vnni, 12, 2, false>(range, masks, products) }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn avx2_8(
    job: &Screen<'_>,
    range: Range<usize>,
    masks: &mut [u32],
    products: &mut [Products],
) {
    // SAFETY: see above.
    unsafe { job.run::<Avx2, 4, 2, true>(range, masks, products) }
}

#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn avx2_16(
    job: &Screen<'_>,
    range: Range<usize>,
    masks: &mut [u32],
    products: &mut [Products],
) {
    // SAFETY: see above.
    unsafe { job.run::<Avx2, 4, 2, false>(range, masks, products) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn amx(
    job: &Screen<'_>,
    range: Range<usize>,
    masks: &mut [u32],
    products: &mut [Products],
) {
    use crate::amx::{SIDE, panel, with_tiles};
    const { assert!(SIDE == PANEL_ROWS && SIDE == TILE_QUERIES) };
    #[repr(align(64))]
    struct Panel([[i32; SIDE]; SIDE]);
    let mut found = Panel([[0; SIDE]; SIDE]);
    let queries = job.tile.packed.as_ptr().cast::<u32>();
    // SAFETY: a whole panel of rows is there, `stride` is a multiple of 64 and the queries have as
    // many lines; lanes are 0 and 16.
    unsafe {
        with_tiles(|| {
            let lines = masks.chunks_mut(SIDE).zip(products.chunks_mut(SIDE));
            for (first, (masks, products)) in range.step_by(SIDE).zip(lines) {
                let rows = job.rows.integers.as_ptr().add(first * job.stride).cast();
                panel(rows, job.stride, queries, job.stride / 64, &mut found.0);
                for (r, mask) in masks.iter_mut().enumerate() {
                    let line = found.0[r].as_ptr();
                    let half = |lane: usize| {
                        let sums = <Vnni as crate::int_lanes::IntLanes>::load(line.add(lane).cast());
                        job.compare::<Vnni>(first + r, lane, sums) << lane
                    };
                    *mask = half(0) | half(16);
                    if *mask != 0 {
                        products[r] = found.0[r];
                    }
                }
            }
        });
    }
}
