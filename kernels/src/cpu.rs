//! Detection of the CPU at run time, and compilation of a loop for each kind of CPU.
//!
//! A [`Kernel`] is a plain loop whose `run` is inlined into one copy per [`Level`]; the compiler vectorises
//! each copy for that level. On AArch64 the portable copy uses NEON, which belongs to the baseline. A loop
//! that gains nothing from a level, since it calls a function for each element, names a lower one
//! ([`Kernel::LEVEL`]) and is compiled less often.
//!
//! This file has `unsafe` for two reasons: calling a function compiled for more CPU features than the caller,
//! and access to the floating-point status of the CPU, for which there is no safe function.

use std::sync::OnceLock;

/// Vector instructions that loops may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The instructions of every CPU of the target.
    Portable,
    /// 256-bit vectors with fused multiply-add.
    Avx2,
    /// 512-bit vectors.
    Avx512,
}

/// A loop over a block. `run` must be `#[inline(always)]`, or it keeps the portable instructions.
pub trait Kernel {
    /// Result of the loop.
    type Output;
    /// The best level whose copy is faster than the one below it; there is no copy for a better one.
    const LEVEL: Level = Level::Avx512;
    /// Runs the loop.
    fn run(self) -> Self::Output;
}

/// The best level of this CPU.
pub fn level() -> Level {
    static FOUND: OnceLock<Level> = OnceLock::new();
    limit().min(*FOUND.get_or_init(detect))
}

/// The best level that is used.
#[cfg(not(test))]
fn limit() -> Level {
    Level::Avx512
}

/// The best level that this thread uses.
#[cfg(test)]
fn limit() -> Level {
    crate::copies::LIMIT.get()
}

/// Runs `kernel` compiled for the best level of this CPU that it has a copy for.
#[inline]
pub fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    dispatch_at(level(), kernel)
}

/// Runs `kernel` compiled for `wanted`, or for the best level below it that this CPU has and the kernel has a
/// copy for.
#[inline]
pub fn dispatch_at<K: Kernel>(wanted: Level, kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    match wanted.min(level()) {
        // Constants: the compiler makes no copy that is not called.
        Level::Avx512 if const { matches!(K::LEVEL, Level::Avx512) } => {
            // SAFETY: `level()` found all features of `run_avx512` on this CPU, and `wanted` is not above it.
            return unsafe { run_avx512(kernel) };
        }
        Level::Avx512 | Level::Avx2 if const { !matches!(K::LEVEL, Level::Portable) } => {
            // SAFETY: as above for `run_avx2`, whose features every AVX-512 level here includes.
            return unsafe { run_avx2(kernel) };
        }
        _ => {}
    }
    let _ = wanted;
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("f16c");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512cd");
    match (avx2, avx512) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        _ => Level::Portable,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Portable
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512cd,avx2,fma,bmi2,f16c")]
fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi2,f16c")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

/// Conditions that arithmetic of this thread has raised since [`clear_raised`], from the flags of the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Raised {
    pub divide: bool,
    pub invalid: bool,
    pub overflow: bool,
}

impl Raised {
    /// Whether any condition was raised.
    pub fn any(self) -> bool {
        self.divide | self.invalid | self.overflow
    }
}

/// Conditions that arithmetic of this thread has raised; none on CPUs whose flags are not read. It takes a
/// few nanoseconds.
#[inline]
pub fn raised() -> Raised {
    let bits = status::read();
    Raised {
        divide: bits & status::DIVIDE != 0,
        invalid: bits & status::INVALID != 0,
        overflow: bits & status::OVERFLOW != 0,
    }
}

/// Clears the raised conditions. Writing the status takes longer than reading it, so it is written only if a
/// flag is set.
#[inline]
pub fn clear_raised() {
    const ALL: u64 = status::DIVIDE | status::INVALID | status::OVERFLOW;
    let bits = status::read();
    if bits & ALL != 0 {
        status::write(bits & !ALL);
    }
}

/// The status register. A block of assembly that may touch memory is a barrier for the compiler: the results
/// of loops before it are stored, and loops after it have not begun.
#[cfg(target_arch = "x86_64")]
mod status {
    use std::arch::asm;

    pub(super) const INVALID: u64 = 1 << 0;
    pub(super) const DIVIDE: u64 = 1 << 2;
    pub(super) const OVERFLOW: u64 = 1 << 3;

    #[inline]
    pub(super) fn read() -> u64 {
        let mut bits = 0u32;
        // SAFETY: it stores MXCSR, which every CPU of this target has, in a local of its size.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut bits, options(nostack, preserves_flags)) };
        u64::from(bits)
    }

    #[inline]
    pub(super) fn write(bits: u64) {
        let bits = bits as u32;
        // SAFETY: the value was read from the register; only exception flags differ, which a block that does
        // not promise to preserve flags may change.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const bits, options(nostack)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod status {
    use std::arch::asm;

    pub(super) const INVALID: u64 = 1 << 0;
    pub(super) const DIVIDE: u64 = 1 << 1;
    pub(super) const OVERFLOW: u64 = 1 << 2;

    #[inline]
    pub(super) fn read() -> u64 {
        let bits: u64;
        // SAFETY: it copies FPSR, which every CPU of this target has and every program may read.
        unsafe { asm!("mrs {}, fpsr", out(reg) bits, options(nostack, preserves_flags)) };
        bits
    }

    #[inline]
    pub(super) fn write(bits: u64) {
        // SAFETY: the value was read from the register; only exception flags differ, which a block that does
        // not promise to preserve flags may change.
        unsafe { asm!("msr fpsr, {}", in(reg) bits, options(nostack)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod status {
    pub(super) const INVALID: u64 = 0;
    pub(super) const DIVIDE: u64 = 0;
    pub(super) const OVERFLOW: u64 = 0;

    pub(super) fn read() -> u64 {
        0
    }

    pub(super) fn write(_: u64) {}
}

#[cfg(test)]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod tests {
    use super::*;
    use std::hint::black_box;

    /// Conditions raised by a function, with its arguments hidden from the optimizer.
    fn of(compute: impl FnOnce(f64, f64) -> f64, a: f64, b: f64) -> [bool; 3] {
        clear_raised();
        black_box(compute(black_box(a), black_box(b)));
        let Raised { divide, invalid, overflow } = raised();
        [divide, invalid, overflow]
    }

    #[test]
    fn conditions_are_told_apart_and_forgotten() {
        assert_eq!(of(|a, b| a / b, 1.0, 0.0), [true, false, false]);
        assert_eq!(of(|a, b| a - b, f64::INFINITY, f64::INFINITY), [false, true, false]);
        assert_eq!(of(|a, b| a * b, 1e200, 1e200), [false, false, true]);
        assert_eq!(of(|a, b| a + b, 1.0, 2.0), [false; 3]);
        assert_eq!(of(|a, b| a + b, f64::NAN, f64::INFINITY), [false; 3]);
    }
}
