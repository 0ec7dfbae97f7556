//! The instruction sets that the kernels know.

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
    /// x86-64 with AVX-512 F and BW; with VNNI where the CPU has it.
    Avx512,
    /// x86-64 with AVX-512 VNNI and the tiles of AMX for products of bytes.
    Amx,
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
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                levels.push(Level::Avx512);
                if crate::amx::available() {
                    levels.push(Level::Amx);
                }
            }
        }
        levels
    }

    /// The name in records: `portable`, `neon`, `avx2`, `avx512`, `amx`.
    pub fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Neon => "neon",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
            Level::Amx => "amx",
        }
    }
}
