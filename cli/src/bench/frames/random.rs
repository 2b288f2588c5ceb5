//! Pseudorandom numbers for data: the same for the same seed, whatever the number of threads.

use std::num::Wrapping;
use std::ops::Range;

/// A stream of numbers, by splitmix64.
pub struct Random(Wrapping<u64>);

impl Random {
    /// The stream of this seed; streams of different seeds have nothing in common.
    pub fn new(seed: u64) -> Random {
        let mut first = Random(Wrapping(seed));
        Random(Wrapping(first.bits()))
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 += 0x9E37_79B9_7F4A_7C15;
        let mut word = self.0;
        word = (word ^ (word >> 30)) * Wrapping(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)) * Wrapping(0x94D0_49BB_1331_11EB);
        (word ^ (word >> 31)).0
    }

    /// A number of a range. Its bias is below one in 2^32, for ranges of data.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        let width = u128::from(range.end - range.start);
        range.start + ((u128::from(self.bits()) * width) >> 64) as u64
    }

    /// A price: up to a hundred, with six decimals.
    pub fn price(&mut self) -> f64 {
        self.within(0..100_000_000) as f64 / 1e6
    }

    /// The numbers `1..=count` in random order.
    pub fn permutation(&mut self, count: usize) -> Vec<u32> {
        let mut numbers: Vec<u32> = (1..=count as u32).collect();
        for at in (1..numbers.len()).rev() {
            numbers.swap(at, self.within(0..at as u64 + 1) as usize);
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_has_each_number_once() {
        let mut numbers = Random::new(7).permutation(1000);
        assert_ne!(numbers[..5], [1, 2, 3, 4, 5]);
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(1..=1000));
    }

    #[test]
    fn numbers_fill_their_range() {
        let mut random = Random::new(1);
        let mut seen = [0; 5];
        (0..1000).for_each(|_| seen[random.within(1..6) as usize - 1] += 1);
        assert!(seen.iter().all(|count| (150..250).contains(count)), "{seen:?}");
    }
}
