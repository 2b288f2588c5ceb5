//! Random numbers as a function of (seed, element index).
//!
//! Each element hashes its own index: two rounds of multiply and xor-shift (the finalizer of SplitMix64,
//! Stafford's variant 13), with one half of the key before the first and the other between them. So a value
//! does not depend on chunking, order or neighbours, any slice can be computed alone, and the loop has no
//! carried state: it runs at vector speed. Two seeds differ in the middle key too, so their sequences are not
//! shifted copies of each other.
//!
//! Philox, the usual counter-based generator, makes a fifth as many numbers per second on the same vectors;
//! blocks of xoshiro keyed by block index are as fast, but need a whole block for one element.

use serde::{Deserialize, Serialize};

/// The two words to which a seed is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    first: u64,
    second: u64,
}

impl Key {
    /// The key of stream number `stream` under `seed`.
    pub fn new(seed: u64, stream: u64) -> Key {
        let first = mix(seed.wrapping_add(GAMMA));
        let second = mix(first ^ stream.wrapping_mul(GAMMA).wrapping_add(STREAM));
        Key { first: mix(second.wrapping_add(GAMMA)) ^ first, second }
    }

    /// The key of stream number `stream` under `seed` for one purpose: streams for different purposes have
    /// nothing in common.
    pub fn for_purpose(seed: u64, stream: u64, purpose: &str) -> Key {
        // The purpose is hashed by FNV-1a, which suffices for a few words.
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        let purpose = purpose.bytes().fold(0xCBF2_9CE4_8422_2325, hash);
        let Key { first, second } = Key::new(seed, stream);
        Key {
            first: mix(first ^ purpose),
            second: mix(second.wrapping_add(mix(purpose.wrapping_add(GAMMA)))),
        }
    }

    /// The key of a sequence that follows from 64 random bits alone.
    pub fn of_bits(bits: u64) -> Key {
        Key { first: bits, second: mix(bits.wrapping_add(GAMMA)) }
    }

    /// 64 random bits for element `index`.
    #[inline(always)]
    pub fn bits(self, index: u64) -> u64 {
        self.bits_scaled(Key::scale(index))
    }

    /// An index in the form that the hash uses. Loops may add scaled indices instead of scaling each index,
    /// which saves a product per element.
    #[inline(always)]
    pub fn scale(index: u64) -> u64 {
        index.wrapping_mul(GAMMA)
    }

    #[inline(always)]
    fn bits_scaled(self, scaled: u64) -> u64 {
        let z = scaled.wrapping_add(self.first);
        let z = (z ^ (z >> 30)).wrapping_mul(MIX_1) ^ self.second;
        let z = (z ^ (z >> 27)).wrapping_mul(MIX_2);
        z ^ (z >> 31)
    }

    /// A float in [0, 1) with 53 random bits.
    #[inline(always)]
    pub fn uniform(self, index: u64) -> f64 {
        self.uniform_scaled(Key::scale(index))
    }

    /// As `uniform`, for a scaled index.
    #[inline(always)]
    pub fn uniform_scaled(self, scaled: u64) -> f64 {
        (self.bits_scaled(scaled) >> 11) as f64 * UNIT_53
    }
}

/// A float in (0, 1) made of 52 random bits: never 0, never 1, symmetric around a half.
#[inline(always)]
pub fn open_unit(bits: u64) -> f64 {
    ((bits >> 12) as f64 + 0.5) * UNIT_52
}

/// `bits` scaled to `0..span`, all values equally likely but for a bias below `span` / 2^64.
#[inline(always)]
pub fn below(bits: u64, span: u64) -> u64 {
    ((u128::from(bits) * u128::from(span)) >> 64) as u64
}

/// As [`below`], without any bias (Lemire, 2019): some bits are thrown away, and others that follow from them
/// take their place.
#[inline]
pub fn evenly_below(mut bits: u64, span: u64) -> u64 {
    let key = Key::of_bits(bits);
    let mut drawn = 0;
    loop {
        let product = u128::from(bits) * u128::from(span);
        let low = product as u64;
        // As many low words are taken for each value.
        if span <= low || span.wrapping_neg() % span <= low {
            return (product >> 64) as u64;
        }
        drawn += 1;
        bits = key.bits(drawn);
    }
}

/// Up to this span the bias of [`below`] is less than 2^-32, which fewer than 2^64 numbers do not show.
pub const SPAN_FAST: u64 = 1 << 32;

#[inline(always)]
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(MIX_1);
    let z = (z ^ (z >> 27)).wrapping_mul(MIX_2);
    z ^ (z >> 31)
}

/// 2^64 divided by the golden ratio.
pub(crate) const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;
const MIX_1: u64 = 0xBF58_476D_1CE4_E5B9;
const MIX_2: u64 = 0x94D0_49BB_1331_11EB;
const STREAM: u64 = 0xD1B5_4A32_D192_ED03;
const UNIT_53: f64 = 1.0 / 9_007_199_254_740_992.0;
const UNIT_52: f64 = 1.0 / 4_503_599_627_370_496.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_numbers_have_the_moments_of_the_uniform_distribution() {
        let key = Key::new(42, 0);
        let n = 1_000_000;
        let values: Vec<f64> = (0..n).map(|i| key.uniform(i)).collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        let lag = values.windows(2).map(|w| (w[0] - 0.5) * (w[1] - 0.5)).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.002, "{mean}");
        assert!((variance - 1.0 / 12.0).abs() < 0.001, "{variance}");
        assert!(lag.abs() < 0.001, "{lag}");
    }

    #[test]
    fn every_bit_is_fair_and_neighbouring_seeds_are_unrelated() {
        let (a, b) = (Key::new(7, 0), Key::new(8, 0));
        let n = 100_000u64;
        for bit in 0..64 {
            let ones = (0..n).filter(|&i| a.bits(i) >> bit & 1 == 1).count() as f64;
            let equal = (0..n).filter(|&i| (a.bits(i) ^ b.bits(i)) >> bit & 1 == 0).count() as f64;
            for count in [ones, equal] {
                assert!((count - n as f64 / 2.0).abs() < 5.0 * (n as f64).sqrt() / 2.0, "bit {bit}: {count}");
            }
        }
    }

    #[test]
    fn buckets_of_consecutive_values_pass_a_chi_square_test() {
        let key = Key::new(1, 3);
        let mut counts = [0u32; 256];
        let n = 1u64 << 20;
        (0..n).for_each(|i| counts[(key.uniform(i) * 256.0) as usize] += 1);
        let expected = n as f64 / 256.0;
        let chi2: f64 = counts.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
        assert!((150.0..380.0).contains(&chi2), "{chi2}");
    }

    #[test]
    fn streams_for_different_purposes_are_unrelated() {
        let (a, b) = (Key::for_purpose(7, 0, "uniform"), Key::for_purpose(7, 0, "normal"));
        let n = 200_000;
        let product = |i| (a.uniform(i) - 0.5) * (b.uniform(i) - 0.5);
        let correlation = (0..n).map(product).sum::<f64>() / n as f64 * 12.0;
        assert!(correlation.abs() < 0.01, "{correlation}");
        assert_ne!(a, Key::new(7, 0));
    }

    #[test]
    fn integers_stay_below_their_span() {
        let key = Key::new(5, 5);
        assert!((0..10_000).all(|i| below(key.bits(i), 6) < 6));
        assert_eq!(below(u64::MAX, 10), 9);
        assert_eq!(below(0, 10), 0);
    }

    #[test]
    fn integers_of_wide_spans_are_equally_likely() {
        let key = Key::new(5, 6);
        let n = 90_000;
        for span in [3u64 << 62, 3 << 58, (1 << 63) + 1, u64::MAX] {
            let mut counts = [[0u32; 3]; 2];
            for at in 0..n {
                let value = evenly_below(key.bits(at), span);
                assert!(value < span);
                counts[0][(value % 3) as usize] += 1;
                counts[1][(u128::from(value) * 3 / u128::from(span)) as usize] += 1;
            }
            for count in counts.concat() {
                // Five deviations.
                let away = f64::from(count) - n as f64 / 3.0;
                assert!(away.abs() < 5.0 * (n as f64 * 2.0 / 9.0).sqrt(), "{span}: {counts:?}");
            }
        }
        assert_eq!(evenly_below(key.bits(1), 10), below(key.bits(1), 10), "few numbers are thrown away");
    }
}
