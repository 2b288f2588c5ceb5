//! Contents of memory before the first write: in debug builds a pattern, so that reading it is noticed.
//!
//! Any pattern may also be a correct result: a byte may well be 0xC7. To be sure that all bytes were written,
//! compute twice, the second time over another pattern ([`with_other`]), and compare.

use std::cell::Cell;

const PATTERN: u8 = 0xC7;
const OTHER: u8 = !PATTERN;

thread_local! {
    static CURRENT: Cell<u8> = const { Cell::new(PATTERN) };
}

/// In debug builds, fills memory that must be written before it is read with the pattern.
pub(crate) fn fill(bytes: &mut [u8]) {
    if cfg!(debug_assertions) {
        bytes.fill(CURRENT.get());
    }
}

/// Runs `compute` with another pattern in memory that this thread allocates.
pub fn with_other<R>(compute: impl FnOnce() -> R) -> R {
    /// Restores the pattern, also after a panic.
    struct Back(u8);
    impl Drop for Back {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _back = Back(CURRENT.replace(OTHER));
    compute()
}

#[cfg(test)]
#[cfg(debug_assertions)]
mod tests {
    use super::*;
    use crate::{Buffer, Scratch};

    #[test]
    fn fresh_memory_differs_between_the_two_patterns_in_every_byte() {
        for bytes in [1, 64, 1 << 20] {
            let (one, other) = (Buffer::for_overwrite(bytes), with_other(|| Buffer::for_overwrite(bytes)));
            assert!(one.bytes().iter().zip(other.bytes()).all(|(one, other)| one != other));
            assert_eq!(Buffer::for_overwrite(bytes).bytes()[0], PATTERN);
        }
    }

    #[test]
    fn places_on_offer_forget_what_they_held() {
        let mut scratch = Scratch::new();
        scratch.offer(Buffer::zeroed(128));
        assert!(scratch.result(128).bytes().iter().all(|&byte| byte == PATTERN));
    }
}
