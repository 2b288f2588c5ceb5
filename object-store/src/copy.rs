//! Copies of large values at the speed of memory.
//!
//! A plain store reads a cache line before it overwrites it. Streaming stores do not (measured: 16.6 against
//! 6.7 GB/s of stores). A value of many mebibytes does not stay in the caches anyway, so from
//! [`STREAM_BYTES_MIN`] on it is written with streaming stores. From [`SHARE_BYTES_MIN`] on, two threads
//! copy, since one core cannot keep enough lines in flight to saturate memory. With AVX-512 several pages are
//! copied side by side, which keeps several memory banks busy. With AVX2 they are copied one by one: a load
//! whose lowest twelve address bits equal those of a pending store waits for it (measured where both were
//! aligned to pages: 11 against 19 GB/s).
//!
//! `unsafe` is here for those instructions alone. They are detected at run time; without AVX-512 or AVX2 the
//! plain copy of the C library is used.

#![allow(unsafe_code)]

use crate::error::StoreError;
use crate::map::WriteSlot;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

mod helper;

use helper::Side;

/// From this size on, a part is written with streaming stores: it would not fit the second-level cache.
pub const STREAM_BYTES_MIN: usize = 2 << 20;
/// From this size on, two threads share the copy; below, waking the second thread costs as much as it saves.
pub const SHARE_BYTES_MIN: usize = 256 << 10;

/// A copy makes and fills pages in about this number of steps. While one thread waits for the system to clear
/// pages, the other copies, and neither waits long for the last step of the other.
const STEPS: usize = 16;
/// Lower bound on the bytes of a step.
const STEP_BYTES_MIN: usize = 32 << 10;
/// Upper bound on the bytes of a step.
const STEP_BYTES_MAX: usize = 4 << 20;

/// Copies the concatenation of `parts` into a slot, which it must fill exactly, and makes pages on the way.
///
/// # Errors
/// `BadSize` if the parts are longer or shorter than the target; then nothing is copied. `NoSpace` if the
/// system has no memory for the pages.
pub fn copy_large(slot: &mut WriteSlot, parts: &[&[u8]]) -> Result<(), StoreError> {
    let (map, offset) = (Arc::clone(slot.map()), slot.offset());
    copy_in_steps(slot, parts, &|start, len| map.make_pages(offset + start as u64, len as u64))
}

/// As [`copy_large`]; `prepare` is called for each range (first byte, bytes) before it is written.
fn copy_in_steps(
    target: &mut [u8],
    parts: &[&[u8]],
    prepare: &(impl Fn(usize, usize) -> Result<(), StoreError> + Sync),
) -> Result<(), StoreError> {
    let bytes = parts.iter().map(|p| p.len() as u64).sum::<u64>();
    let room = target.len() as u64;
    if bytes != room {
        let what = "the parts of a copy";
        return Err(StoreError::BadSize { what, bytes, min_bytes: room, max_bytes: room });
    }
    let step_bytes = (target.len() / STEPS).next_multiple_of(4096).clamp(STEP_BYTES_MIN, STEP_BYTES_MAX);
    let is_large = STREAM_BYTES_MIN <= target.len();
    let is_shared = SHARE_BYTES_MIN <= target.len();
    let steps = Mutex::new(target.chunks_mut(step_bytes).enumerate());
    let failure = Mutex::new(None);
    // The threads start from opposite ends, so that each finds its part in its cache if the copy is repeated.
    let next = |side| match side {
        Side::Here => lock(&steps).next(),
        Side::There => lock(&steps).next_back(),
    };
    let work = |side| {
        while let Some((index, step)) = next(side) {
            let start = index * step_bytes;
            match prepare(start, step.len()) {
                Ok(()) => copy_parts(step, window(parts, start, start + step.len()), is_large),
                Err(error) => return drop(lock(&failure).replace(error)),
            }
        }
    };
    if is_shared {
        helper::share(&work)?;
    } else {
        work(Side::Here);
    }
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pieces of `parts` within `start..end` of their concatenation.
fn window<'a>(parts: &'a [&'a [u8]], start: usize, end: usize) -> impl Iterator<Item = &'a [u8]> {
    let mut at = 0;
    parts.iter().filter_map(move |part| {
        let from = start.saturating_sub(at).min(part.len());
        let to = end.saturating_sub(at).min(part.len());
        at += part.len();
        (from < to).then(|| &part[from..to])
    })
}

fn copy_parts<'a>(target: &mut [u8], parts: impl Iterator<Item = &'a [u8]>, is_large: bool) {
    let mut rest = target;
    for part in parts {
        let (head, tail) = rest.split_at_mut(part.len());
        if is_large {
            copy_away(head, part);
        } else {
            head.copy_from_slice(part);
        }
        rest = tail;
    }
    debug_assert!(rest.is_empty(), "the parts fill the target");
}

/// Copies to memory that this core will not read soon, for any length.
pub(crate) fn copy_away(target: &mut [u8], source: &[u8]) {
    if target.len() != source.len() || !stream(target, source) {
        target.copy_from_slice(source);
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn stream(_target: &mut [u8], _source: &[u8]) -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
fn stream(target: &mut [u8], source: &[u8]) -> bool {
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the CPU has AVX-512.
        unsafe { x86::stream_avx512(target, source) };
        true
    } else if is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has AVX2.
        unsafe { x86::stream_avx2(target, source) };
        true
    } else {
        false
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Two kernels of the same shape: align the target to a line, copy blocks of pages side by side, finish
    //! with a plain copy.

    use std::arch::x86_64::{
        _MM_HINT_T0, _mm_prefetch, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256, _mm512_loadu_si512,
        _mm512_stream_si512,
    };

    const LINE: usize = 64;
    const PAGE: usize = 4096;
    /// Pages copied side by side. Two threads reach 9.9 GB/s, 8.7 with one page at a time, 9.6 with the C
    /// library.
    const LANES_AVX512: usize = 8;
    /// The same for a processor without AVX-512: 19.8 GB/s, 13 with eight pages, 19 with the C library.
    const LANES_AVX2: usize = 1;
    const RUN: usize = 4 * LINE;
    /// Prefetch distance: a line is requested one run ahead of its load.
    const AHEAD: usize = RUN;

    macro_rules! kernel {
        ($name:ident, $feature:literal, $lanes:ident, $copy_run:ident) => {
            #[target_feature(enable = $feature)]
            pub(super) fn $name(target: &mut [u8], source: &[u8]) {
                assert!(target.len() == source.len(), "one part, one place");
                let head = target.as_ptr().align_offset(LINE).min(target.len());
                target[..head].copy_from_slice(&source[..head]);
                let block = $lanes * PAGE;
                let blocks = target[head..].chunks_exact_mut(block).zip(source[head..].chunks_exact(block));
                for (to, from) in blocks {
                    for at in (0..PAGE).step_by(RUN) {
                        for lane in 0..$lanes {
                            let at = lane * PAGE + at;
                            // SAFETY: `at + RUN <= block`, the length of both; `to` is aligned to a line.
                            unsafe { $copy_run(from.as_ptr().add(at), to.as_mut_ptr().add(at)) };
                        }
                    }
                }
                let done = head + (target.len() - head) / block * block;
                target[done..].copy_from_slice(&source[done..]);
                // Streaming stores are not ordered with later stores. Without this fence, a reader that sees
                // the object sealed could miss its bytes.
                _mm_sfence();
            }
        };
    }

    kernel!(stream_avx512, "avx512f", LANES_AVX512, run_avx512);
    kernel!(stream_avx2, "avx2", LANES_AVX2, run_avx2);

    /// # Safety
    /// Both are valid for a run, and `to` is aligned to a line.
    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn run_avx512(from: *const u8, to: *mut u8) {
        prefetch_run(from);
        for at in (0..RUN).step_by(LINE) {
            // SAFETY: as the caller promises.
            unsafe { _mm512_stream_si512(to.add(at).cast(), _mm512_loadu_si512(from.add(at).cast())) };
        }
    }

    /// # Safety
    /// Both are valid for a run, and `to` is aligned to a line.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn run_avx2(from: *const u8, to: *mut u8) {
        prefetch_run(from);
        for at in (0..RUN).step_by(LINE / 2) {
            // SAFETY: as the caller promises.
            unsafe { _mm256_stream_si256(to.add(at).cast(), _mm256_loadu_si256(from.add(at).cast())) };
        }
    }

    #[inline]
    fn prefetch_run(from: *const u8) {
        for at in (0..RUN).step_by(LINE) {
            // SAFETY: a prefetch does nothing where there is no memory, so it may point past the end.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD + at).cast()) };
        }
    }
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn noise(len: usize, seed: u32) -> Vec<u8> {
        let mut state = seed;
        let mut bytes = Vec::with_capacity(len);
        bytes.resize_with(len, || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        });
        bytes
    }

    fn check(lens: &[usize], skew: usize) {
        let parts: Vec<Vec<u8>> = lens.iter().enumerate().map(|(i, len)| noise(*len, i as u32)).collect();
        let borrowed: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let total: usize = lens.iter().sum();
        let mut target = vec![0xEE; total + 2 * skew];
        let prepared = AtomicUsize::new(0);
        let prepare = |_, len| {
            prepared.fetch_add(len, Ordering::Relaxed);
            Ok(())
        };
        copy_in_steps(&mut target[skew..skew + total], &borrowed, &prepare).unwrap();
        assert_eq!(prepared.into_inner(), total);
        assert!(target[skew..skew + total] == parts.concat(), "{lens:?} at {skew}");
        assert!(target[..skew].iter().chain(&target[skew + total..]).all(|b| *b == 0xEE));
    }

    #[test]
    fn every_shape_arrives_whole() {
        for skew in [0, 1, 63, 100] {
            check(&[], skew);
            check(&[0, 1, 0, 64, 4095], skew);
            check(&[STREAM_BYTES_MIN - 1, STREAM_BYTES_MIN, 3, STREAM_BYTES_MIN + 4097], skew);
            check(&[17, SHARE_BYTES_MIN + 12_345, 9], skew);
            check(&[SHARE_BYTES_MIN / 2 + 4096, 5, SHARE_BYTES_MIN / 2], skew);
            check(&[17, 8 * STREAM_BYTES_MIN + 12_345, 9], skew);
        }
    }

    #[test]
    fn every_kernel_copies_the_same() {
        let source = noise(100_003, 1);
        for kernel in kernels() {
            let mut target = vec![0; source.len()];
            kernel(&mut target[1..], &source[1..]);
            assert!(target[1..] == source[1..]);
        }
    }

    type Kernel = fn(&mut [u8], &[u8]);

    fn kernels() -> Vec<Kernel> {
        let mut kernels: Vec<Kernel> = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                // SAFETY: the CPU has it.
                kernels.push(|t, s| unsafe { x86::stream_avx512(t, s) });
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the CPU has it.
                kernels.push(|t, s| unsafe { x86::stream_avx2(t, s) });
            }
        }
        kernels
    }

    #[test]
    fn parts_must_fill_the_target() {
        assert!(copy_in_steps(&mut [0; 3], &[&[1; 2]], &|_, _| Ok(())).is_err());
        assert!(copy_in_steps(&mut [0; 3], &[&[1; 2], &[1; 2]], &|_, _| Ok(())).is_err());
    }
}
