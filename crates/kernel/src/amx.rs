//! The tiles of AMX: 16 x 16 sums of 64 products of bytes in one instruction.
//!
//! The compiler's own intrinsics are not stable, so the instructions stand here as text. The tile
//! registers are configured, used and released inside [`with_tiles`]; nothing else touches them.

/// Rows of one call of [`panel`], and queries.
pub(crate) const SIDE: usize = 32;

/// Whether the CPU has the tiles and the kernel lets this process use them.
pub(crate) fn available() -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    {
        x86::available()
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    {
        false
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use x86::{panel, with_tiles};

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86 {
    use super::SIDE;
    use std::arch::asm;
    use std::arch::x86_64::__cpuid_count;
    use std::sync::OnceLock;

    pub(super) fn available() -> bool {
        static ANSWER: OnceLock<bool> = OnceLock::new();
        *ANSWER.get_or_init(|| has_tiles() && is_x86_feature_detected!("avx512vnni") && permitted())
    }

    /// AMX-TILE and AMX-INT8: bits 24 and 25 of EDX of leaf 7.
    fn has_tiles() -> bool {
        let most = __cpuid_count(0, 0).eax;
        most >= 7 && __cpuid_count(7, 0).edx >> 24 & 0b11 == 0b11
    }

    /// Asks Linux for the tile state, once a process (ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA).
    fn permitted() -> bool {
        let answer: i64;
        // SAFETY: arch_prctl (158) with this request reads and writes no memory of ours; the
        // instruction clobbers rcx and r11 only.
        unsafe {
            asm!("syscall", inlateout("rax") 158_i64 => answer, in("rdi") 0x1023, in("rsi") 18,
                 out("rcx") _, out("r11") _, options(nostack));
        }
        answer == 0
    }

    /// Palette 1: eight tiles of 16 rows of 64 bytes.
    #[repr(C, align(64))]
    struct Config([u8; 64]);

    static CONFIG: Config = {
        let mut bytes = [0; 64];
        bytes[0] = 1;
        let mut tile = 0;
        while tile < 8 {
            bytes[16 + 2 * tile] = 64;
            bytes[48 + tile] = 16;
            tile += 1;
        }
        Config(bytes)
    };

    /// Runs `body` with the tiles configured.
    ///
    /// # Safety
    /// [`available`] has said yes.
    pub(crate) unsafe fn with_tiles<T>(body: impl FnOnce() -> T) -> T {
        struct Release;
        impl Drop for Release {
            fn drop(&mut self) {
                // SAFETY: the tiles are there, see `with_tiles`.
                unsafe { asm!("tilerelease", options(nostack, nomem)) }
            }
        }
        // SAFETY: reads the 64 bytes of `CONFIG`.
        unsafe {
            asm!("ldtilecfg [{config}]", config = in(reg) &raw const CONFIG, options(nostack, readonly))
        }
        let _release = Release;
        body()
    }

    /// `out[r][q]` = sum over all bytes of row r times query q, for 32 rows and 32 queries, signed.
    ///
    /// # Safety
    /// Inside [`with_tiles`]. `rows` points to 32 rows, `stride` bytes apart, each of `steps * 64`
    /// bytes; `queries` to `steps * 16` lines of 32 queries x 4 bytes.
    pub(crate) unsafe fn panel(
        rows: *const i8,
        stride: usize,
        queries: *const u32,
        steps: usize,
        out: &mut [[i32; SIDE]; SIDE],
    ) {
        debug_assert!(steps > 0);
        // SAFETY: the loop reads what the caller vouches for; `out` takes 32 lines of 128 bytes.
        unsafe {
            asm!(
                "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                "2:",
                "tileloadd tmm4, [{a0} + {stride}]",
                "tileloadd tmm6, [{b} + {line}]",
                "tdpbssd tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{b} + {line} + 64]",
                "tdpbssd tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{a1} + {stride}]",
                "tdpbssd tmm2, tmm5, tmm6",
                "tdpbssd tmm3, tmm5, tmm7",
                "add {a0}, 64",
                "add {a1}, 64",
                "add {b}, 2048",
                "dec {n}",
                "jnz 2b",
                "tilestored [{out} + {line}], tmm0",
                "tilestored [{out} + {line} + 64], tmm1",
                "add {out}, 2048",
                "tilestored [{out} + {line}], tmm2",
                "tilestored [{out} + {line} + 64], tmm3",
                a0 = inout(reg) rows => _,
                a1 = inout(reg) rows.wrapping_add(16 * stride) => _,
                b = inout(reg) queries => _,
                n = inout(reg) steps => _,
                out = inout(reg) out.as_mut_ptr() => _,
                stride = in(reg) stride,
                line = in(reg) 128_usize,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        }
    }
}
