//! The numeric core: what runs once per pair of vectors, and all unsafe code of the exact search.
//!
//! Two kinds. [`screen`] and [`scores`] give f32 scores fast; they may only rule pairs out, by a
//! [`Cut`] that allows for their error (crate `exact` makes it). [`dot64`], [`l2_squared64`] and
//! [`hamming`] decide: the same bits on every machine and at every [`Level`], because the order of
//! their additions is fixed.
//!
//! Between them stand [`quantise8`], [`quantise16`] and [`IntTile`]: products of 8-bit and 16-bit integers that stand
//! for vectors, exact, compared with a limit in f32.
//!
//! What is not here: metrics, top-k, row sets, threads. The crate depends on nothing, so that it can
//! be built alone for another architecture or under a sanitizer.
//!
//! Each instruction set is a small implementation of `lanes::Lanes`; the loops are written once.

#![expect(
    unsafe_code,
    reason = "SIMD: raw loads in bounds checked on entry, and calls under detected features"
)]

#[cfg(target_arch = "x86_64")]
mod amx;
mod bit_lanes;
mod bits;
#[cfg(test)]
mod bits_tests;
mod exact64;
#[cfg(test)]
mod exact64_tests;
mod int_lanes;
#[cfg(target_arch = "aarch64")]
mod int_neon;
mod lanes;
mod level;
mod prefetch;
mod product;
#[cfg(test)]
mod product_tests;
mod quantise;
mod screen;
#[cfg(test)]
mod screen_tests;

pub use bits::{BitCounts, BitTile, screen_bits};
pub use exact64::{dot64, hamming, l2_squared64, norm_squared64};
pub use level::Level;
pub use prefetch::prefetch;
pub use product::{IntRows, IntTile, Limits, PANEL_ROWS, Products, RowFigures, Width, largest_in_query};
pub use quantise::{Centred, Quantised, centre, norm_squared32, quantise8, quantise16};
pub use screen::{Cut, SCORE_ROWS, SCREEN_ROWS, Scores, TILE_QUERIES, Tile, scores, screen};
