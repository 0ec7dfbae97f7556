//! The numeric core: what runs once per pair of vectors, and all unsafe code of the exact search.
//!
//! Two kinds. [`screen`] and [`scores`] give f32 scores fast; they may only rule pairs out, by a
//! [`Cut`] that allows for their error (crate `exact` makes it). [`dot64`], [`l2_squared64`] and
//! [`hamming`] decide: the same bits on every machine and at every [`Level`], because the order of
//! their additions is fixed.
//!
//! What is not here: metrics, top-k, row sets, threads. The crate depends on nothing, so that it can
//! be built alone for another architecture or under a sanitizer.
//!
//! Each instruction set is a small implementation of [`lanes::Lanes`]; the loops are written once.

#![expect(
    unsafe_code,
    reason = "SIMD: raw loads in bounds checked on entry, and calls under detected features"
)]

mod exact64;
#[cfg(test)]
mod exact64_tests;
mod lanes;
mod screen;

pub use exact64::{dot64, hamming, l2_squared64, norm_squared64};
pub use screen::{Cut, SCORE_ROWS, SCREEN_ROWS, TILE_QUERIES, Tile, scores, screen};

use std::sync::OnceLock;

/// The instruction set that the kernels use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Plain Rust, any machine.
    Portable,
    /// Arm Advanced SIMD.
    Neon,
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// x86-64 with AVX-512F.
    Avx512,
}

impl Level {
    /// The best that this machine has.
    pub fn detect() -> Level {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| Level::available().last().copied().unwrap_or(Level::Portable))
    }

    /// All that this machine has, slowest first.
    pub fn available() -> Vec<Level> {
        #[cfg_attr(
            not(any(target_arch = "x86_64", target_arch = "aarch64")),
            expect(unused_mut, reason = "x86-64 and Arm add theirs")
        )]
        let mut levels = vec![Level::Portable];
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            levels.push(Level::Neon);
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("popcnt")
        {
            levels.push(Level::Avx2);
            if is_x86_feature_detected!("avx512f") {
                levels.push(Level::Avx512);
            }
        }
        levels
    }

    /// The name in records: `portable`, `neon`, `avx2`, `avx512`.
    pub fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Neon => "neon",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }
}
