//! The one source of chance: a seed and a counter, mixed. Nothing else in the simulator is random.

/// A stream of numbers that depends on its seed only.
#[derive(Clone, Debug)]
pub struct Rng(u64);

/// Mixes two words into one; the finaliser of SplitMix64.
#[must_use]
pub fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.rotate_left(25) ^ b.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Rng {
    /// The stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(mix(seed, 0x7468_6172_7369_7321))
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0, 1)
    }

    /// A number from `low` up to and without `high`; `low` if there is none.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        if high <= low { low } else { low + self.next() % (high - low) }
    }

    /// True in `permille` of 1000 cases.
    pub fn chance(&mut self, permille: u64) -> bool {
        self.range(0, 1000) < permille
    }

    /// An index into a list of `len` items.
    pub fn index(&mut self, len: usize) -> usize {
        self.range(0, len as u64) as usize
    }
}
