//! Values to put: many different slices of one buffer, so that making one takes no copy and no time.

use anyhow::{Result, bail};
use bytes::Bytes;
use std::num::Wrapping;
use tharsis::Blob;

/// Distance of the values in the buffer: a page, so that copies start with the same alignment as those by
/// hand.
const STEP_BYTES: usize = 4096;
/// Number of different values.
const VALUES: usize = 1024;
/// Distance of the bytes that are checked in a value; one per page costs next to nothing.
const LOOK_BYTES: usize = 4096 - 8;
/// Words of which compressible values consist.
const WORDS: [&[u8]; 8] =
    [b"north ", b"temperature ", b"0.5 ", b"station ", b"reading ", b"2021-07-14 ", b"ok ", b"humidity "];

/// Different values of one length.
#[derive(Clone, Debug)]
pub struct Values {
    buffer: Bytes,
    len: usize,
}

impl Values {
    /// Values that cannot be compressed.
    #[must_use]
    pub fn incompressible(len: usize) -> Values {
        let mut buffer = vec![0; len + STEP_BYTES * VALUES];
        fill(&mut buffer, 1);
        Values { buffer: buffer.into(), len }
    }

    /// Values like a log: words in random order, compressed to a third of their length.
    #[must_use]
    pub fn compressible(len: usize) -> Values {
        let total = len + STEP_BYTES * VALUES;
        let mut picks = vec![0; total / 4];
        fill(&mut picks, 1);
        let mut buffer = Vec::with_capacity(total + 16);
        for pick in picks.iter().cycle() {
            if total <= buffer.len() {
                break;
            }
            buffer.extend_from_slice(WORDS[usize::from(*pick) % WORDS.len()]);
        }
        buffer.truncate(total);
        Values { buffer: buffer.into(), len }
    }

    /// The value of this number.
    #[must_use]
    pub fn value(&self, number: usize) -> Blob {
        let start = number % VALUES * STEP_BYTES;
        Blob::from(self.buffer.slice(start..start + self.len))
    }

    /// Checks that bytes are the value of this number.
    ///
    /// # Errors
    /// If they differ from it.
    pub fn check(&self, number: usize, read: &[u8]) -> Result<()> {
        let expected = self.value(number);
        let is_same = |at: usize| read.get(at) == expected.get(at);
        if read.len() != self.len || !(0..self.len).step_by(LOOK_BYTES).all(is_same) || !is_same(self.len - 1)
        {
            bail!("value {number} is not what was put");
        }
        Ok(())
    }
}

/// Fills a buffer with pseudorandom numbers that depend on the seed.
pub fn fill(buffer: &mut [u8], seed: u64) {
    let mut state = Wrapping(seed);
    for chunk in buffer.chunks_mut(8) {
        // splitmix64: good enough to be incompressible, and any seed works.
        state += 0x9E37_79B9_7F4A_7C15;
        let mut word = state;
        word = (word ^ (word >> 30)) * Wrapping(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)) * Wrapping(0x94D0_49BB_1331_11EB);
        chunk.copy_from_slice(&(word ^ (word >> 31)).0.to_le_bytes()[..chunk.len()]);
    }
}

/// The numbers below `count`, in a fixed pseudorandom order.
#[must_use]
pub fn shuffled(count: usize) -> Vec<usize> {
    let mut keys = vec![0; count * 8];
    fill(&mut keys, 2);
    let mut order: Vec<_> = (0..count).collect();
    order.sort_by_key(|number| keys.get(number * 8..number * 8 + 8).map(<[u8]>::to_vec));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_differ_and_others_are_refused() {
        for values in [Values::incompressible(100_000), Values::compressible(100_000)] {
            let first = values.value(0);
            assert!(values.check(0, &first).is_ok());
            assert!(values.check(1, &first).is_err());
            assert!(values.check(0, &first[1..]).is_err());
        }
    }

    #[test]
    fn an_order_has_each_number_once() {
        let mut order = shuffled(100);
        assert_ne!(order[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        order.sort_unstable();
        assert!(order.into_iter().eq(0..100));
    }
}
