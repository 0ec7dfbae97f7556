//! Asking for memory before it is needed.

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Asks for a row that will be read soon; changes nothing but the time that takes.
pub fn prefetch(row: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    for part in row.chunks(LINE / size_of::<f32>()) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is a hint, reads nothing and is there on every x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(part.as_ptr().cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (row, LINE);
}
