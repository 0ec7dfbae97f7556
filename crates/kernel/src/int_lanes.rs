//! The few operations on registers of i32 and f32 that the products need, for each instruction set.

/// A register of 32-bit lanes, integers or floats.
///
/// # Safety
/// Every method may be called only on a CPU that has the instruction set, and is meant to be inlined
/// into a function compiled for it. Loads read `N` lanes.
pub(crate) trait IntLanes: Copy {
    /// Lanes in a register.
    const N: usize;
    /// A register of i32 (or of four i8 or two i16 in each lane).
    type V: Copy;
    /// A register of f32.
    type F: Copy;
    /// `N` lanes from `at`, aligned or not.
    unsafe fn load(at: *const u32) -> Self::V;
    /// The same value in all lanes.
    unsafe fn splat(value: i32) -> Self::V;
    /// `sum` plus, lane by lane, the four products of bytes: those of `query` plus bias, those of
    /// `row` signed. Exact where no component of the query exceeds `largest_in_query`.
    unsafe fn dot8(sum: Self::V, query: Self::V, row: Self::V) -> Self::V;
    /// `sum` plus, lane by lane, the two products of signed 16-bit integers.
    unsafe fn dot16(sum: Self::V, query: Self::V, row: Self::V) -> Self::V;
    /// As f32, rounded once.
    unsafe fn to_f32(v: Self::V) -> Self::F;
    /// `N` floats from `at`.
    unsafe fn load_f32(at: *const f32) -> Self::F;
    /// The same float in all lanes.
    unsafe fn splat_f32(value: f32) -> Self::F;
    /// a * b.
    unsafe fn mul(a: Self::F, b: Self::F) -> Self::F;
    /// a * b + c.
    unsafe fn mul_add(a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// Bit i is set unless a < b in lane i: set for NaN too.
    unsafe fn not_less(a: Self::F, b: Self::F) -> u32;
}

/// Eight lanes in plain Rust: the reference.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl IntLanes for Portable {
    const N: usize = 8;
    type V = [i32; 8];
    type F = [f32; 8];

    #[inline(always)]
    unsafe fn load(at: *const u32) -> [i32; 8] {
        // SAFETY: the caller gives 8 readable lanes.
        unsafe { at.cast::<[i32; 8]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn splat(value: i32) -> [i32; 8] {
        [value; 8]
    }
    #[inline(always)]
    unsafe fn dot8(sum: [i32; 8], query: [i32; 8], row: [i32; 8]) -> [i32; 8] {
        std::array::from_fn(|i| {
            let (q, x) = (query[i].to_le_bytes(), row[i].to_le_bytes());
            let products =
                q.into_iter().zip(x).map(|(q, x)| i32::from(q.cast_signed()) * i32::from(x.cast_signed()));
            sum[i].wrapping_add(products.sum())
        })
    }
    #[inline(always)]
    unsafe fn dot16(sum: [i32; 8], query: [i32; 8], row: [i32; 8]) -> [i32; 8] {
        let low = |v: i32| v << 16 >> 16;
        std::array::from_fn(|i| {
            let products = (low(query[i]) * low(row[i])).wrapping_add((query[i] >> 16) * (row[i] >> 16));
            sum[i].wrapping_add(products)
        })
    }
    #[inline(always)]
    unsafe fn to_f32(v: [i32; 8]) -> [f32; 8] {
        v.map(|x| x as f32)
    }
    #[inline(always)]
    unsafe fn load_f32(at: *const f32) -> [f32; 8] {
        // SAFETY: the caller gives 8 readable floats.
        unsafe { at.cast::<[f32; 8]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn splat_f32(value: f32) -> [f32; 8] {
        [value; 8]
    }
    #[inline(always)]
    unsafe fn mul(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i] * b[i])
    }
    #[inline(always)]
    unsafe fn mul_add(a: [f32; 8], b: [f32; 8], c: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
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
pub(crate) use x86::{Avx2, Vnni};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::IntLanes;
    use std::arch::x86_64::*;

    /// Sixteen lanes, AVX-512 with VNNI.
    #[derive(Clone, Copy)]
    pub(crate) struct Vnni;

    // In all blocks below — SAFETY: `IntLanes` may be used only where the CPU has the instruction set;
    // loads stay inside what the caller gives, and need no alignment.
    impl IntLanes for Vnni {
        const N: usize = 16;
        type V = __m512i;
        type F = __m512;

        #[inline(always)]
        unsafe fn load(at: *const u32) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_loadu_si512(at.cast()) }
        }
        #[inline(always)]
        unsafe fn splat(value: i32) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_set1_epi32(value) }
        }
        #[inline(always)]
        unsafe fn dot8(sum: __m512i, query: __m512i, row: __m512i) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_dpbusd_epi32(sum, query, row) }
        }
        #[inline(always)]
        unsafe fn dot16(sum: __m512i, query: __m512i, row: __m512i) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_dpwssd_epi32(sum, query, row) }
        }
        #[inline(always)]
        unsafe fn to_f32(v: __m512i) -> __m512 {
            // SAFETY: see above.
            unsafe { _mm512_cvtepi32_ps(v) }
        }
        #[inline(always)]
        unsafe fn load_f32(at: *const f32) -> __m512 {
            // SAFETY: see above.
            unsafe { _mm512_loadu_ps(at) }
        }
        #[inline(always)]
        unsafe fn splat_f32(value: f32) -> __m512 {
            // SAFETY: see above.
            unsafe { _mm512_set1_ps(value) }
        }
        #[inline(always)]
        unsafe fn mul(a: __m512, b: __m512) -> __m512 {
            // SAFETY: see above.
            unsafe { _mm512_mul_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 {
            // SAFETY: see above.
            unsafe { _mm512_fmadd_ps(a, b, c) }
        }
        #[inline(always)]
        unsafe fn not_less(a: __m512, b: __m512) -> u32 {
            // SAFETY: see above.
            u32::from(unsafe { _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(a, b) })
        }
    }

    /// Eight lanes, AVX2.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2;

    impl IntLanes for Avx2 {
        const N: usize = 8;
        type V = __m256i;
        type F = __m256;

        #[inline(always)]
        unsafe fn load(at: *const u32) -> __m256i {
            // SAFETY: see above.
            unsafe { _mm256_loadu_si256(at.cast()) }
        }
        #[inline(always)]
        unsafe fn splat(value: i32) -> __m256i {
            // SAFETY: see above.
            unsafe { _mm256_set1_epi32(value) }
        }
        #[inline(always)]
        unsafe fn dot8(sum: __m256i, query: __m256i, row: __m256i) -> __m256i {
            // Queries are at most 127 with their bias, so two products stay below 2^15.
            // SAFETY: see above.
            unsafe {
                let pairs = _mm256_maddubs_epi16(query, row);
                _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
            }
        }
        #[inline(always)]
        unsafe fn dot16(sum: __m256i, query: __m256i, row: __m256i) -> __m256i {
            // SAFETY: see above.
            unsafe { _mm256_add_epi32(sum, _mm256_madd_epi16(query, row)) }
        }
        #[inline(always)]
        unsafe fn to_f32(v: __m256i) -> __m256 {
            // SAFETY: see above.
            unsafe { _mm256_cvtepi32_ps(v) }
        }
        #[inline(always)]
        unsafe fn load_f32(at: *const f32) -> __m256 {
            // SAFETY: see above.
            unsafe { _mm256_loadu_ps(at) }
        }
        #[inline(always)]
        unsafe fn splat_f32(value: f32) -> __m256 {
            // SAFETY: see above.
            unsafe { _mm256_set1_ps(value) }
        }
        #[inline(always)]
        unsafe fn mul(a: __m256, b: __m256) -> __m256 {
            // SAFETY: see above.
            unsafe { _mm256_mul_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 {
            // SAFETY: see above.
            unsafe { _mm256_fmadd_ps(a, b, c) }
        }
        #[inline(always)]
        unsafe fn not_less(a: __m256, b: __m256) -> u32 {
            // SAFETY: see above.
            unsafe { _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_NLT_UQ>(a, b)) }.cast_unsigned()
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub(crate) use crate::int_neon::{Neon, NeonDot};
