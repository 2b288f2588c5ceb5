//! Contents of memory before anybody writes it: in debug builds a pattern, so that reading it shows.
//!
//! No pattern is one that no result has: a byte may well be 0xC7. Who wants to be sure that all was written
//! computes twice, the second time over another pattern ([`with_other`]), and compares.

use std::cell::Cell;

const PATTERN: u8 = 0xC7;
const OTHER: u8 = !PATTERN;

thread_local! {
    static CURRENT: Cell<u8> = const { Cell::new(PATTERN) };
}

/// In debug builds, overwrites memory that is to be written before it is read.
pub(crate) fn fill(bytes: &mut [u8]) {
    if cfg!(debug_assertions) {
        bytes.fill(CURRENT.get());
    }
}

/// Runs `compute` on memory that holds another pattern than otherwise, as far as this thread takes it.
pub fn with_other<R>(compute: impl FnOnce() -> R) -> R {
    /// Sets the pattern back, also when a panic passes.
    struct Back(u8);
    impl Drop for Back {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _back = Back(CURRENT.replace(OTHER));
    compute()
}

#[cfg(all(test, debug_assertions))]
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
