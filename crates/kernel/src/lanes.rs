//! The few vector operations that the loops need, for each instruction set.

/// A register of f32 lanes.
///
/// # Safety
/// Every method may be called only on a CPU that has the instruction set, and is meant to be inlined
/// into a function compiled for it. `load` reads `N` floats, `store` writes `N`.
pub(crate) trait Lanes: Copy {
    /// Lanes in a register.
    const N: usize;
    /// The register.
    type V: Copy;
    /// All lanes 0.
    unsafe fn zero() -> Self::V;
    /// `N` floats from `at`, aligned or not.
    unsafe fn load(at: *const f32) -> Self::V;
    /// `N` floats to `at`.
    unsafe fn store(at: *mut f32, v: Self::V);
    /// The same value in all lanes.
    unsafe fn splat(value: f32) -> Self::V;
    /// a - b.
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    /// a * b + c.
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// c - a * b.
    unsafe fn neg_mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// Bit i is set unless a < b in lane i: set for NaN too.
    unsafe fn not_less(a: Self::V, b: Self::V) -> u32;
}

/// Eight lanes in plain Rust.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Lanes for Portable {
    const N: usize = 8;
    type V = [f32; 8];

    #[inline(always)]
    unsafe fn zero() -> [f32; 8] {
        [0.0; 8]
    }
    #[inline(always)]
    unsafe fn load(at: *const f32) -> [f32; 8] {
        // SAFETY: the caller gives 8 readable floats.
        unsafe { at.cast::<[f32; 8]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(at: *mut f32, v: [f32; 8]) {
        // SAFETY: the caller gives room for 8 floats.
        unsafe { at.cast::<[f32; 8]>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn splat(value: f32) -> [f32; 8] {
        [value; 8]
    }
    #[inline(always)]
    unsafe fn sub(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i] - b[i])
    }
    #[inline(always)]
    unsafe fn mul_add(a: [f32; 8], b: [f32; 8], c: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    unsafe fn neg_mul_add(a: [f32; 8], b: [f32; 8], c: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| c[i] - a[i] * b[i])
    }
    #[inline(always)]
    unsafe fn not_less(a: [f32; 8], b: [f32; 8]) -> u32 {
        let mut mask = 0;
        for i in 0..8 {
            // Not `a >= b`: that is false for NaN.
            mask |= u32::from(!matches!(a[i].partial_cmp(&b[i]), Some(std::cmp::Ordering::Less))) << i;
        }
        mask
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Lanes;
    use std::arch::x86_64::*;

    /// Sixteen lanes.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512;

    // In all blocks below — SAFETY: `Lanes` may be used only where the CPU has the instruction set;
    // loads and stores stay inside what the caller gives, and need no alignment.
    impl Lanes for Avx512 {
        const N: usize = 16;
        type V = __m512;

        #[inline(always)]
        unsafe fn zero() -> __m512 {
            // SAFETY: see above.
            unsafe { _mm512_setzero_ps() }
        }
        #[inline(always)]
        unsafe fn load(at: *const f32) -> __m512 {
            // SAFETY: see above.
            unsafe { _mm512_loadu_ps(at) }
        }
        #[inline(always)]
        unsafe fn store(at: *mut f32, v: __m512) {
            // SAFETY: see above.
            unsafe { _mm512_storeu_ps(at, v) }
        }
        #[inline(always)]
        unsafe fn splat(value: f32) -> __m512 {
            // SAFETY: see above.
            unsafe { _mm512_set1_ps(value) }
        }
        #[inline(always)]
        unsafe fn sub(a: __m512, b: __m512) -> __m512 {
            // SAFETY: see above.
            unsafe { _mm512_sub_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 {
            // SAFETY: see above.
            unsafe { _mm512_fmadd_ps(a, b, c) }
        }
        #[inline(always)]
        unsafe fn neg_mul_add(a: __m512, b: __m512, c: __m512) -> __m512 {
            // SAFETY: see above.
            unsafe { _mm512_fnmadd_ps(a, b, c) }
        }
        #[inline(always)]
        unsafe fn not_less(a: __m512, b: __m512) -> u32 {
            // SAFETY: see above.
            u32::from(unsafe { _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(a, b) })
        }
    }

    /// Eight lanes.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2;

    impl Lanes for Avx2 {
        const N: usize = 8;
        type V = __m256;

        #[inline(always)]
        unsafe fn zero() -> __m256 {
            // SAFETY: see above.
            unsafe { _mm256_setzero_ps() }
        }
        #[inline(always)]
        unsafe fn load(at: *const f32) -> __m256 {
            // SAFETY: see above.
            unsafe { _mm256_loadu_ps(at) }
        }
        #[inline(always)]
        unsafe fn store(at: *mut f32, v: __m256) {
            // SAFETY: see above.
            unsafe { _mm256_storeu_ps(at, v) }
        }
        #[inline(always)]
        unsafe fn splat(value: f32) -> __m256 {
            // SAFETY: see above.
            unsafe { _mm256_set1_ps(value) }
        }
        #[inline(always)]
        unsafe fn sub(a: __m256, b: __m256) -> __m256 {
            // SAFETY: see above.
            unsafe { _mm256_sub_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 {
            // SAFETY: see above.
            unsafe { _mm256_fmadd_ps(a, b, c) }
        }
        #[inline(always)]
        unsafe fn neg_mul_add(a: __m256, b: __m256, c: __m256) -> __m256 {
            // SAFETY: see above.
            unsafe { _mm256_fnmadd_ps(a, b, c) }
        }
        #[inline(always)]
        unsafe fn not_less(a: __m256, b: __m256) -> u32 {
            // SAFETY: see above.
            unsafe { _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_NLT_UQ>(a, b)) }.cast_unsigned()
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub(crate) use arm::Neon;

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::Lanes;
    use std::arch::aarch64::*;

    /// Four lanes.
    #[derive(Clone, Copy)]
    pub(crate) struct Neon;

    // In all blocks below — SAFETY: `Lanes` may be used only where the CPU has the instruction set;
    // loads and stores stay inside what the caller gives, and need no alignment.
    impl Lanes for Neon {
        const N: usize = 4;
        type V = float32x4_t;

        #[inline(always)]
        unsafe fn zero() -> float32x4_t {
            // SAFETY: see above.
            unsafe { vdupq_n_f32(0.0) }
        }
        #[inline(always)]
        unsafe fn load(at: *const f32) -> float32x4_t {
            // SAFETY: see above.
            unsafe { vld1q_f32(at) }
        }
        #[inline(always)]
        unsafe fn store(at: *mut f32, v: float32x4_t) {
            // SAFETY: see above.
            unsafe { vst1q_f32(at, v) }
        }
        #[inline(always)]
        unsafe fn splat(value: f32) -> float32x4_t {
            // SAFETY: see above.
            unsafe { vdupq_n_f32(value) }
        }
        #[inline(always)]
        unsafe fn sub(a: float32x4_t, b: float32x4_t) -> float32x4_t {
            // SAFETY: see above.
            unsafe { vsubq_f32(a, b) }
        }
        #[inline(always)]
        unsafe fn mul_add(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
            // SAFETY: see above.
            unsafe { vfmaq_f32(c, a, b) }
        }
        #[inline(always)]
        unsafe fn neg_mul_add(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
            // SAFETY: see above.
            unsafe { vfmsq_f32(c, a, b) }
        }
        #[inline(always)]
        unsafe fn not_less(a: float32x4_t, b: float32x4_t) -> u32 {
            const BITS: [u32; 4] = [1, 2, 4, 8];
            // SAFETY: see above; `BITS` holds four words.
            unsafe { vaddvq_u32(vandq_u32(vmvnq_u32(vcltq_f32(a, b)), vld1q_u32(BITS.as_ptr()))) }
        }
    }
}
