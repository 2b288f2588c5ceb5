//! Digits of keys, by which elements are dealt to parts of all keys.

use super::{Direction, Key, Ordered};
use crate::cpu::{Kernel, Level, dispatch};
use bytemuck::Zeroable;

/// The distance of keys from the lowest one of a range, without its lower bits. Keys outside the range have
/// the digit of its nearer end.
#[derive(Clone, Copy)]
pub(crate) struct Digits {
    direction: Direction,
    low: u64,
    high: u64,
    shift: u32,
}

impl Digits {
    /// Digits of keys from the prefix `low` to `high`, which ascend in a direction, without `shift` bits.
    pub(crate) fn new(direction: Direction, low: u64, high: u64, shift: u32) -> Digits {
        assert!(low <= high && shift < u64::BITS, "digits of keys from {low} to {high} without {shift} bits");
        Digits { direction, low, high, shift }
    }

    /// The number of digits.
    pub(crate) fn count(self) -> usize {
        1 + self.of(self.high)
    }

    /// The digit of a key with this prefix, which ascends in the direction.
    #[inline(always)]
    pub(crate) fn of(self, prefix: u64) -> usize {
        ((prefix.clamp(self.low, self.high) - self.low) >> self.shift) as usize
    }

    /// Calls `visit` with the digit of each element in turn, and its key, which ascends in the direction.
    #[inline(always)]
    pub(crate) fn each<T: Ordered>(self, elements: &[T], mut visit: impl FnMut(usize, T::Key)) {
        let (mut digits, mut keys) = ([0; AT_ONCE], [T::Key::zeroed(); AT_ONCE]);
        for elements in elements.chunks(AT_ONCE) {
            dispatch(FindDigits { of: self, elements, digits: &mut digits, keys: &mut keys });
            let found = digits.iter().zip(&keys).take(elements.len());
            found.for_each(|(&digit, &key)| visit(digit as usize, key));
        }
    }
}

/// Finds the digits and keys of elements. Without branches, so that it runs in vectors.
struct FindDigits<'a, T: Ordered> {
    of: Digits,
    elements: &'a [T],
    digits: &'a mut [u32; AT_ONCE],
    keys: &'a mut [T::Key; AT_ONCE],
}

impl<T: Ordered> Kernel for FindDigits<'_, T> {
    type Output = ();
    const LEVEL: Level = LEVEL_OF_SORTS;

    #[inline(always)]
    fn run(self) {
        for ((digit, key), x) in self.digits.iter_mut().zip(self.keys).zip(self.elements) {
            *key = self.of.direction.ascending(x.key());
            *digit = self.of.of(key.prefix()) as u32;
        }
    }
}

/// The best level for passes over keys: a sort is no faster if they use 512 bits.
pub(super) const LEVEL_OF_SORTS: Level = Level::Avx2;

/// Elements whose digits are found before the first of them is used.
const AT_ONCE: usize = 512;
