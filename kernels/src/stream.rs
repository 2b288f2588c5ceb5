//! Stores that bypass the cache, for chunks that would not stay in it anyway, and elements that are fetched
//! into it before they are read.
//!
//! A plain store reads a cache line before it overwrites it, and evicts lines that other steps will need. On
//! two threads, 4 GB take 0.21 s with plain stores and 0.08 s with these.
//!
//! This file has `unsafe` for the instructions that do it.

use crate::cpu::{Level, level};
use bytemuck::{Pod, Zeroable};

/// Smaller results are likely read again while they are in the second-level cache.
pub const STREAM_BYTES_MIN: usize = 4 << 20;

/// Permission to use these stores. Once it is dropped, other threads see the stored values in order.
///
/// It exists only if the CPU has [`Level::Avx2`] or more.
#[derive(Debug)]
pub struct Stream(Level);

/// The numbers of one cache line.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Line([f64; LINE_NUMBERS]);

/// Count of numbers in a cache line.
pub const LINE_NUMBERS: usize = LINE_BYTES / size_of::<f64>();

/// Begins to fetch an element from memory, which is read soon. Nothing happens if there is none.
#[inline(always)]
pub fn prefetch<T>(elements: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction is a hint: it reads nothing, and an address without memory has no effect.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(elements.as_ptr().wrapping_add(index).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (elements, index);
}

impl Stream {
    /// For a result of `bytes` bytes; `None` if it is too small or the CPU lacks the instructions.
    pub fn for_bytes(bytes: usize) -> Option<Stream> {
        let can = cfg!(target_arch = "x86_64") && Level::Portable < level();
        (can && STREAM_BYTES_MIN <= bytes).then(|| Stream(level()))
    }

    /// Stores a line. Loops should store computed numbers directly in this way, rather than copy them later:
    /// the processor computes the next ones while the store is in flight.
    #[inline(always)]
    pub fn line(&mut self, to: &mut Line, numbers: [f64; LINE_NUMBERS]) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a stream is made only where the CPU has AVX2, which includes AVX.
        unsafe {
            line_avx(to, numbers);
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            to.0 = numbers;
        }
    }

    /// Copies bytes; the source should be in the cache.
    pub fn copy(&mut self, to: &mut [u8], from: &[u8]) {
        assert!(to.len() == from.len(), "one source, one place");
        let head = to.as_ptr().align_offset(LINE_BYTES).min(to.len());
        let whole = (to.len() - head) / LINE_BYTES * LINE_BYTES;
        to[..head].copy_from_slice(&from[..head]);
        to[head + whole..].copy_from_slice(&from[head + whole..]);
        let (to, from) = (&mut to[head..head + whole], &from[head..head + whole]);
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `level()` found AVX-512 on this CPU; `to` begins at a line and has as many whole lines
            // as `from`.
            Level::Avx512 => unsafe { lines_avx512(to, from) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above, for AVX2.
            Level::Avx2 => unsafe { lines_avx2(to, from) },
            _ => to.copy_from_slice(from),
        }
    }

    /// Copies rows of `width` bytes to places that begin `distance` bytes apart; the source should be in the
    /// cache.
    pub fn copy_rows(&mut self, to: &mut [u8], distance: usize, from: &[u8], width: usize) {
        assert!(0 < width && width <= distance, "rows of {width} bytes, {distance} apart");
        let is_whole = [width, distance, to.as_ptr().addr()].iter().all(|at| at.is_multiple_of(LINE_BYTES));
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `level()` found AVX-512 on this CPU; all places begin at a line and have whole lines.
            Level::Avx512 if is_whole => unsafe { rows_avx512(to, distance, from, width) },
            _ => {
                let rows = to.chunks_mut(distance).zip(from.chunks_exact(width));
                rows.for_each(|(to, from)| self.copy(&mut to[..width], from));
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: SSE belongs to the baseline of the target; the instruction only orders stores.
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
    }
}

const LINE_BYTES: usize = 64;

/// # Safety
/// The CPU has AVX. It is inlined into loops that are compiled for more.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx")]
unsafe fn line_avx(to: &mut Line, numbers: [f64; LINE_NUMBERS]) {
    use std::arch::x86_64::{_mm256_loadu_pd, _mm256_stream_pd};
    const HALF: usize = LINE_NUMBERS / 2;
    let (low, high) = to.0.split_at_mut(HALF);
    // SAFETY: each side is valid for half a line, and a line lies on a multiple of its size.
    unsafe {
        _mm256_stream_pd(low.as_mut_ptr(), _mm256_loadu_pd(numbers.as_ptr()));
        _mm256_stream_pd(high.as_mut_ptr(), _mm256_loadu_pd(numbers[HALF..].as_ptr()));
    }
}

/// # Safety
/// `to` begins at a line; both have the same number of whole lines.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn lines_avx512(to: &mut [u8], from: &[u8]) {
    use std::arch::x86_64::{_mm512_loadu_si512, _mm512_stream_si512};
    for (to, from) in to.chunks_exact_mut(LINE_BYTES).zip(from.chunks_exact(LINE_BYTES)) {
        // SAFETY: both are valid for a line, and `to` lies on one, as the caller promises.
        unsafe { _mm512_stream_si512(to.as_mut_ptr().cast(), _mm512_loadu_si512(from.as_ptr().cast())) };
    }
}

/// # Safety
/// As [`lines_avx512`], of each place for a row.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn rows_avx512(to: &mut [u8], distance: usize, from: &[u8], width: usize) {
    for (to, from) in to.chunks_mut(distance).zip(from.chunks_exact(width)) {
        // SAFETY: the caller promises it.
        unsafe { lines_avx512(&mut to[..width], from) };
    }
}

/// # Safety
/// As [`lines_avx512`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn lines_avx2(to: &mut [u8], from: &[u8]) {
    use std::arch::x86_64::{_mm256_loadu_si256, _mm256_stream_si256};
    for (to, from) in to.chunks_exact_mut(LINE_BYTES / 2).zip(from.chunks_exact(LINE_BYTES / 2)) {
        // SAFETY: both are valid for half a line, and `to` lies on one, as the caller promises.
        unsafe { _mm256_stream_si256(to.as_mut_ptr().cast(), _mm256_loadu_si256(from.as_ptr().cast())) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_copies_the_same_to_any_place() {
        let source: Vec<u8> = (0..5000u32).map(|i| ((i * 7) >> 3) as u8).collect();
        for wanted in [Level::Portable, Level::Avx2, Level::Avx512] {
            for (skew, len) in [(0, 5000), (1, 4096), (63, 100), (5, 0), (64, 64)] {
                let mut target = vec![0; 5000 + 64];
                let len = len.min(source.len() - skew.min(source.len()));
                Stream(wanted.min(level())).copy(&mut target[skew..skew + len], &source[..len]);
                assert!(target[skew..skew + len] == source[..len]);
                assert!(target[..skew].iter().chain(&target[skew + len..]).all(|byte| *byte == 0));
            }
        }
    }

    #[test]
    fn rows_are_copied_to_places_apart_at_any_width() {
        let source: Vec<u8> = (0..5000u32).map(|i| ((i * 7) >> 3) as u8).collect();
        for wanted in [Level::Portable, Level::Avx2, Level::Avx512] {
            for (skew, width, distance) in
                [(0, 64, 128), (0, 128, 192), (8, 64, 128), (0, 24, 100), (0, 64, 64)]
            {
                let mut target = vec![Line::zeroed(); 30];
                let target: &mut [u8] = bytemuck::cast_slice_mut(&mut target);
                let rows = 5;
                let to = &mut target[skew..skew + (rows - 1) * distance + width];
                Stream(wanted.min(level())).copy_rows(to, distance, &source[..rows * width], width);
                for (at, byte) in target.iter().enumerate() {
                    let (row, column) = (at.wrapping_sub(skew) / distance, at.wrapping_sub(skew) % distance);
                    let is_written = skew <= at && row < rows && column < width;
                    assert_eq!(*byte, if is_written { source[row * width + column] } else { 0 }, "at {at}");
                }
            }
        }
    }
}
