//! Arm Advanced SIMD for the integer products, with the dot-product instructions or without.

use crate::int_lanes::IntLanes;
use std::arch::aarch64::*;

/// Four lanes. `DOT`: bytes are multiplied by SDOT, which needs the feature `dotprod`; else they are
/// widened first.
#[derive(Clone, Copy)]
pub(crate) struct Arm<const DOT: bool>;

/// Any 64-bit Arm.
pub(crate) type Neon = Arm<false>;
/// With the feature `dotprod`.
pub(crate) type NeonDot = Arm<true>;

// In all blocks below — SAFETY: `IntLanes` may be used only where the CPU has the instruction set;
// loads stay inside what the caller gives, and need no alignment.
impl<const DOT: bool> IntLanes for Arm<DOT> {
    const N: usize = 4;
    type V = int32x4_t;
    type F = float32x4_t;

    #[inline(always)]
    unsafe fn load(at: *const u32) -> int32x4_t {
        // SAFETY: see above.
        unsafe { vld1q_s32(at.cast()) }
    }
    #[inline(always)]
    unsafe fn splat(value: i32) -> int32x4_t {
        // SAFETY: see above.
        unsafe { vdupq_n_s32(value) }
    }
    #[inline(always)]
    unsafe fn dot8(sum: int32x4_t, query: int32x4_t, row: int32x4_t) -> int32x4_t {
        if DOT {
            let mut sum = sum;
            // The intrinsic is not stable yet.
            // SAFETY: see above; registers only.
            unsafe {
                std::arch::asm!(
                    "sdot {sum:v}.4s, {query:v}.16b, {row:v}.16b",
                    sum = inout(vreg) sum,
                    query = in(vreg) query,
                    row = in(vreg) row,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
            return sum;
        }
        // SAFETY: see above. A product fits 16 bits; pairs of them are added in 32.
        unsafe {
            let (q, x) = (vreinterpretq_s8_s32(query), vreinterpretq_s8_s32(row));
            let low = vpaddlq_s16(vmull_s8(vget_low_s8(q), vget_low_s8(x)));
            let high = vpaddlq_s16(vmull_high_s8(q, x));
            vaddq_s32(sum, vpaddq_s32(low, high))
        }
    }
    #[inline(always)]
    unsafe fn dot16(sum: int32x4_t, query: int32x4_t, row: int32x4_t) -> int32x4_t {
        // SAFETY: see above.
        unsafe {
            let (q, x) = (vreinterpretq_s16_s32(query), vreinterpretq_s16_s32(row));
            let low = vmull_s16(vget_low_s16(q), vget_low_s16(x));
            vaddq_s32(sum, vpaddq_s32(low, vmull_high_s16(q, x)))
        }
    }
    #[inline(always)]
    unsafe fn to_f32(v: int32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vcvtq_f32_s32(v) }
    }
    #[inline(always)]
    unsafe fn load_f32(at: *const f32) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vld1q_f32(at) }
    }
    #[inline(always)]
    unsafe fn splat_f32(value: f32) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vdupq_n_f32(value) }
    }
    #[inline(always)]
    unsafe fn mul(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vmulq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn mul_add(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        // SAFETY: see above.
        unsafe { vfmaq_f32(c, a, b) }
    }
    #[inline(always)]
    unsafe fn not_less(a: float32x4_t, b: float32x4_t) -> u32 {
        const BITS: [u32; 4] = [1, 2, 4, 8];
        // SAFETY: see above; `BITS` holds four words.
        unsafe { vaddvq_u32(vandq_u32(vmvnq_u32(vcltq_f32(a, b)), vld1q_u32(BITS.as_ptr()))) }
    }
}
