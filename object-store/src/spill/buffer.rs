//! Buffers that direct reads and writes can use, kept for the next call.
//!
//! A fresh buffer of 4 MiB costs a thousand page faults, as long as writing it to a fast disk takes. So a few
//! are kept.

use super::codec::compressed_bytes_max;
use super::header::{ALIGN, BLOCK_BYTES};
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// Buffers kept: two calls at work at once need no more. With those in use this bounds the memory of a
/// directory.
const KEPT_COUNT_MAX: usize = 6;

/// Memory that begins at a multiple of [`ALIGN`].
struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    fn new(len: usize) -> AlignedBuffer {
        // Too long by one alignment, so that an aligned part of it is long enough; this needs no `unsafe`.
        let memory = vec![0; len + ALIGN];
        let start = memory.as_ptr().align_offset(ALIGN).min(ALIGN);
        AlignedBuffer { memory, start, len }
    }
}

/// Where buffers come from and go back to.
#[derive(Default)]
pub(crate) struct BufferPool {
    kept: Mutex<Vec<AlignedBuffer>>,
}

impl BufferPool {
    /// A buffer for a block and its compressed form, with whatever was in it before.
    pub(crate) fn take(&self) -> PooledBuffer<'_> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let buffer = kept.unwrap_or_else(|| AlignedBuffer::new(buffer_bytes()));
        PooledBuffer { buffer: Some(buffer), pool: self }
    }
}

/// A buffer that goes back to its pool.
pub(crate) struct PooledBuffer<'p> {
    buffer: Option<AlignedBuffer>,
    pool: &'p BufferPool,
}

impl Deref for PooledBuffer<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], |b| &b.memory[b.start..b.start + b.len])
    }
}

impl DerefMut for PooledBuffer<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.buffer.as_mut().map_or(&mut [], |b| &mut b.memory[b.start..b.start + b.len])
    }
}

impl Drop for PooledBuffer<'_> {
    fn drop(&mut self) {
        let mut kept = self.pool.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_COUNT_MAX {
            kept.extend(self.buffer.take());
        }
    }
}

fn buffer_bytes() -> usize {
    compressed_bytes_max().max(BLOCK_BYTES as usize).next_multiple_of(ALIGN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_come_back() {
        let pool = BufferPool::default();
        let mut first = pool.take();
        let second = pool.take();
        assert!(first.as_ptr().addr().is_multiple_of(ALIGN) && second.as_ptr().addr().is_multiple_of(ALIGN));
        assert!(BLOCK_BYTES as usize <= first.len() && first.len().is_multiple_of(ALIGN));
        first[0] = 9;
        let place = first.as_ptr();
        drop(first);
        assert_eq!(pool.take().as_ptr(), place);
    }
}
