//! The few operations on registers of 64-bit words that counting bits needs, for each instruction set.

/// A register of 64-bit lanes.
///
/// Counts are made in two steps, because most machines count the bits of bytes: [`BitLanes::count`] adds
/// to counts that are kept in whatever form is cheap, at most [`BitLanes::STEPS`] times from zero;
/// [`BitLanes::gather`] adds those to one sum per lane.
///
/// # Safety
/// Every method may be called only on a CPU that has the instruction set, and is meant to be inlined
/// into a function compiled for it. `load` reads `N` words, `store_u32` writes `N` halves.
pub(crate) trait BitLanes: Copy {
    /// Lanes in a register; divides the queries of a tile.
    const N: usize;
    /// How often `count` may add before `gather`.
    const STEPS: usize;
    /// The register.
    type V: Copy;
    /// All bits 0.
    unsafe fn zero() -> Self::V;
    /// `N` words from `at`, aligned or not.
    unsafe fn load(at: *const u64) -> Self::V;
    /// The same word in all lanes.
    unsafe fn splat(word: u64) -> Self::V;
    /// Bits that differ.
    unsafe fn xor(a: Self::V, b: Self::V) -> Self::V;
    /// `part` and the number of set bits of `v`.
    unsafe fn count(part: Self::V, v: Self::V) -> Self::V;
    /// `sum` (one per lane) and what `part` stands for.
    unsafe fn gather(sum: Self::V, part: Self::V) -> Self::V;
    /// The low halves of all lanes to `at`.
    unsafe fn store_u32(at: *mut u32, v: Self::V);
    /// Bit i is set where a < b in lane i; the lanes of a are below 2^63, b is unsigned.
    unsafe fn less(a: Self::V, b: Self::V) -> u32;
}

/// Eight lanes in plain Rust.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

impl BitLanes for Plain {
    const N: usize = 8;
    const STEPS: usize = 31;
    type V = [u64; 8];

    #[inline(always)]
    unsafe fn zero() -> [u64; 8] {
        [0; 8]
    }
    #[inline(always)]
    unsafe fn load(at: *const u64) -> [u64; 8] {
        // SAFETY: the caller gives 8 readable words.
        unsafe { at.cast::<[u64; 8]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn splat(word: u64) -> [u64; 8] {
        [word; 8]
    }
    #[inline(always)]
    unsafe fn xor(a: [u64; 8], b: [u64; 8]) -> [u64; 8] {
        std::array::from_fn(|i| a[i] ^ b[i])
    }
    #[inline(always)]
    unsafe fn count(part: [u64; 8], v: [u64; 8]) -> [u64; 8] {
        std::array::from_fn(|i| part[i] + u64::from(v[i].count_ones()))
    }
    #[inline(always)]
    unsafe fn gather(sum: [u64; 8], part: [u64; 8]) -> [u64; 8] {
        std::array::from_fn(|i| sum[i] + part[i])
    }
    #[inline(always)]
    unsafe fn store_u32(at: *mut u32, v: [u64; 8]) {
        // SAFETY: the caller gives room for 8.
        unsafe { at.cast::<[u32; 8]>().write_unaligned(v.map(|x| x as u32)) }
    }
    #[inline(always)]
    unsafe fn less(a: [u64; 8], b: [u64; 8]) -> u32 {
        (0..8).fold(0, |mask, i| mask | u32::from(a[i] < b[i]) << i)
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::BitLanes;
    use std::arch::x86_64::*;

    /// Eight lanes, with VPOPCNTDQ.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512;

    // In all blocks below — SAFETY: `BitLanes` may be used only where the CPU has the instruction set;
    // loads and stores stay inside what the caller gives, and need no alignment.
    impl BitLanes for Avx512 {
        const N: usize = 8;
        const STEPS: usize = usize::MAX;
        type V = __m512i;

        #[inline(always)]
        unsafe fn zero() -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_setzero_si512() }
        }
        #[inline(always)]
        unsafe fn load(at: *const u64) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_loadu_epi64(at.cast()) }
        }
        #[inline(always)]
        unsafe fn splat(word: u64) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_set1_epi64(word.cast_signed()) }
        }
        #[inline(always)]
        unsafe fn xor(a: __m512i, b: __m512i) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_xor_si512(a, b) }
        }
        #[inline(always)]
        unsafe fn count(part: __m512i, v: __m512i) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_add_epi64(part, _mm512_popcnt_epi64(v)) }
        }
        #[inline(always)]
        unsafe fn gather(sum: __m512i, part: __m512i) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_add_epi64(sum, part) }
        }
        #[inline(always)]
        unsafe fn store_u32(at: *mut u32, v: __m512i) {
            // SAFETY: see above.
            unsafe { at.cast::<__m256i>().write_unaligned(_mm512_cvtepi64_epi32(v)) }
        }
        #[inline(always)]
        unsafe fn less(a: __m512i, b: __m512i) -> u32 {
            // SAFETY: see above.
            u32::from(unsafe { _mm512_cmplt_epu64_mask(a, b) })
        }
    }

    /// Four lanes; bits are counted in a table of half bytes (Muła, Kurz, Lemire, Faster Population
    /// Counts Using AVX2 Instructions, 2018).
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2;

    impl BitLanes for Avx2 {
        const N: usize = 4;
        // A byte counts up to 8 bits at a time.
        const STEPS: usize = 31;
        type V = __m256i;

        #[inline(always)]
        unsafe fn zero() -> __m256i {
            // SAFETY: see above.
            unsafe { _mm256_setzero_si256() }
        }
        #[inline(always)]
        unsafe fn load(at: *const u64) -> __m256i {
            // SAFETY: see above.
            unsafe { _mm256_loadu_si256(at.cast()) }
        }
        #[inline(always)]
        unsafe fn splat(word: u64) -> __m256i {
            // SAFETY: see above.
            unsafe { _mm256_set1_epi64x(word.cast_signed()) }
        }
        #[inline(always)]
        unsafe fn xor(a: __m256i, b: __m256i) -> __m256i {
            // SAFETY: see above.
            unsafe { _mm256_xor_si256(a, b) }
        }
        #[inline(always)]
        unsafe fn count(part: __m256i, v: __m256i) -> __m256i {
            // SAFETY: see above.
            unsafe {
                #[rustfmt::skip]
                let table = _mm256_setr_epi8(
                    0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
                    0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
                );
                let low = _mm256_set1_epi8(15);
                let halves = _mm256_and_si256(v, low);
                let others = _mm256_and_si256(_mm256_srli_epi16::<4>(v), low);
                let part = _mm256_add_epi8(part, _mm256_shuffle_epi8(table, halves));
                _mm256_add_epi8(part, _mm256_shuffle_epi8(table, others))
            }
        }
        #[inline(always)]
        unsafe fn gather(sum: __m256i, part: __m256i) -> __m256i {
            // SAFETY: see above.
            unsafe { _mm256_add_epi64(sum, _mm256_sad_epu8(part, _mm256_setzero_si256())) }
        }
        #[inline(always)]
        unsafe fn store_u32(at: *mut u32, v: __m256i) {
            // SAFETY: see above.
            unsafe {
                let low = _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
                at.cast::<__m128i>().write_unaligned(_mm256_castsi256_si128(low));
            }
        }
        #[inline(always)]
        unsafe fn less(a: __m256i, b: __m256i) -> u32 {
            // SAFETY: see above. There is a signed comparison only, so b is cut to the largest signed
            // number; a lies below 2^63 by contract, and counts never come near it.
            unsafe {
                let most = _mm256_set1_epi64x(i64::MAX);
                let negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), b);
                let b = _mm256_blendv_epi8(b, most, negative);
                _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(b, a))).cast_unsigned()
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub(crate) use arm::Neon;

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::BitLanes;
    use std::arch::aarch64::*;

    /// Two lanes; the machine counts the bits of bytes.
    #[derive(Clone, Copy)]
    pub(crate) struct Neon;

    // In all blocks below — SAFETY: `BitLanes` may be used only where the CPU has the instruction set;
    // loads and stores stay inside what the caller gives, and need no alignment.
    impl BitLanes for Neon {
        const N: usize = 2;
        // A byte counts up to 8 bits at a time.
        const STEPS: usize = 31;
        type V = uint64x2_t;

        #[inline(always)]
        unsafe fn zero() -> uint64x2_t {
            // SAFETY: see above.
            unsafe { vdupq_n_u64(0) }
        }
        #[inline(always)]
        unsafe fn load(at: *const u64) -> uint64x2_t {
            // SAFETY: see above.
            unsafe { vld1q_u64(at) }
        }
        #[inline(always)]
        unsafe fn splat(word: u64) -> uint64x2_t {
            // SAFETY: see above.
            unsafe { vdupq_n_u64(word) }
        }
        #[inline(always)]
        unsafe fn xor(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t {
            // SAFETY: see above.
            unsafe { veorq_u64(a, b) }
        }
        #[inline(always)]
        unsafe fn count(part: uint64x2_t, v: uint64x2_t) -> uint64x2_t {
            // SAFETY: see above.
            unsafe {
                let bytes = vcntq_u8(vreinterpretq_u8_u64(v));
                vreinterpretq_u64_u8(vaddq_u8(vreinterpretq_u8_u64(part), bytes))
            }
        }
        #[inline(always)]
        unsafe fn gather(sum: uint64x2_t, part: uint64x2_t) -> uint64x2_t {
            // SAFETY: see above.
            unsafe { vpadalq_u32(sum, vpaddlq_u16(vpaddlq_u8(vreinterpretq_u8_u64(part)))) }
        }
        #[inline(always)]
        unsafe fn store_u32(at: *mut u32, v: uint64x2_t) {
            // SAFETY: see above.
            unsafe { vst1_u32(at, vmovn_u64(v)) }
        }
        #[inline(always)]
        unsafe fn less(a: uint64x2_t, b: uint64x2_t) -> u32 {
            // SAFETY: see above.
            unsafe {
                let mask = vcltq_u64(a, b);
                u32::from(vgetq_lane_u64::<0>(mask) != 0) | u32::from(vgetq_lane_u64::<1>(mask) != 0) << 1
            }
        }
    }
}
