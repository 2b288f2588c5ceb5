//! The CPU found at run time, and how a loop is compiled for each kind of it.
//!
//! A [`Kernel`] is a plain loop whose `run` is inlined into one copy per [`Level`]; the compiler vectorises each copy
//! for that level. On AArch64 the portable copy is the NEON one, since NEON belongs to its baseline.
//!
//! This is one of the places with `unsafe`: entering a function compiled for more features than the caller's.

use std::sync::OnceLock;

/// What vector instructions loops may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every CPU of the target has.
    Portable,
    /// 256-bit vectors with fused multiply-add.
    Avx2,
    /// 512-bit vectors.
    Avx512,
}

/// A loop over a block. `run` must be `#[inline(always)]`, or it keeps the portable instructions.
pub trait Kernel {
    /// What the loop computes.
    type Output;
    /// Runs the loop.
    fn run(self) -> Self::Output;
}

/// The best level of this CPU.
pub fn level() -> Level {
    static FOUND: OnceLock<Level> = OnceLock::new();
    *FOUND.get_or_init(detect)
}

/// Runs `kernel` compiled for the best level of this CPU.
#[inline]
pub fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    dispatch_at(level(), kernel)
}

/// Runs `kernel` compiled for `wanted`, or for the best level below it that this CPU has.
#[inline]
pub fn dispatch_at<K: Kernel>(wanted: Level, kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    match wanted.min(level()) {
        // SAFETY: `level()` found all features of `run_avx512` on this CPU, and `wanted` is not above it.
        Level::Avx512 => return unsafe { run_avx512(kernel) },
        // SAFETY: as above for `run_avx2`, whose features every AVX-512 level here includes.
        Level::Avx2 => return unsafe { run_avx2(kernel) },
        Level::Portable => {}
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
