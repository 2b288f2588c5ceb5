//! Functions of real numbers that neither the standard library nor libm has.

use half::f16;

/// Operations of both floats that the loops need beyond their inherent methods.
pub(super) trait Real: Copy {
    /// Division rounded down, as Python's `//`.
    fn floor_div(self, other: Self) -> Self;
    /// Remainder with the sign of the divisor, as Python's `%`.
    fn floor_rem(self, other: Self) -> Self;
    /// The next float toward `other`.
    fn next_toward(self, other: Self) -> Self;
    /// Distance to the next float away from zero.
    fn spacing(self) -> Self;
}

macro_rules! real {
    ($($t:ident),*) => {$(
        impl Real for $t {
            #[inline(always)]
            fn floor_div(self, other: $t) -> $t {
                if other == 0.0 {
                    return self / other;
                }
                let rest = self % other;
                let mut quotient = (self - rest) / other;
                if rest != 0.0 && (rest < 0.0) != (other < 0.0) {
                    quotient -= 1.0;
                }
                if quotient == 0.0 {
                    return (0.0 as $t).copysign(self / other);
                }
                let floor = quotient.floor();
                if quotient - floor > 0.5 { floor + 1.0 } else { floor }
            }

            #[inline(always)]
            fn floor_rem(self, other: $t) -> $t {
                let rest = self % other;
                if rest == 0.0 {
                    (0.0 as $t).copysign(other)
                } else if (rest < 0.0) != (other < 0.0) {
                    rest + other
                } else {
                    rest
                }
            }

            #[inline(always)]
            fn next_toward(self, other: $t) -> $t {
                if self.is_nan() || other.is_nan() {
                    self + other
                } else if self == other {
                    other
                } else if self < other {
                    self.next_up()
                } else {
                    self.next_down()
                }
            }

            #[inline(always)]
            fn spacing(self) -> $t {
                if !self.is_finite() {
                    return $t::NAN;
                }
                let away = if self < 0.0 { self.next_down() } else { self.next_up() };
                away - self
            }
        }
    )*};
}
real!(f32, f64);

/// The float16 next to the float16 `x`, in the direction of `toward`.
pub(super) fn next_half(x: f64, toward: f64) -> f64 {
    if x.is_nan() || toward.is_nan() {
        return f64::NAN;
    }
    if x == toward {
        return x;
    }
    let bits = f16::from_f64(x).to_bits();
    let next = match () {
        () if x == 0.0 => f16::from_f64(toward).to_bits() & 0x8000 | 1,
        () if (x < toward) == (0.0 < x) => bits + 1,
        () => bits - 1,
    };
    f16::from_bits(next).to_f64()
}

/// The distance from `x`, a float16, to the next one above.
pub(super) fn spacing_half(x: f64) -> f64 {
    if x.is_finite() { next_half(x, f64::INFINITY) - x } else { f64::NAN }
}

/// log(exp(x) + exp(y)) without overflow.
pub(super) fn logaddexp(x: f64, y: f64) -> f64 {
    if x == y {
        return x + std::f64::consts::LN_2;
    }
    let difference = x - y;
    if difference > 0.0 {
        x + libm::log1p(libm::exp(-difference))
    } else if difference <= 0.0 {
        y + libm::log1p(libm::exp(difference))
    } else {
        difference
    }
}

/// log2(2^x + 2^y) without overflow.
pub(super) fn logaddexp2(x: f64, y: f64) -> f64 {
    if x == y {
        return x + 1.0;
    }
    let log2_1p = |t: f64| libm::log1p(t) * std::f64::consts::LOG2_E;
    let difference = x - y;
    if difference > 0.0 {
        x + log2_1p(libm::exp2(-difference))
    } else if difference <= 0.0 {
        y + log2_1p(libm::exp2(difference))
    } else {
        difference
    }
}

/// The modified Bessel function of the first kind, order 0; relative accuracy about 1e-15. All terms of its
/// power series are positive, and far from zero those of the asymptotic series shrink fast. NaN for
/// infinities, as in NumPy.
pub(super) fn bessel_i0(x: f64) -> f64 {
    let x = x.abs();
    if x <= POWER_SERIES_MAX {
        let quarter = 0.25 * x * x;
        let (mut term, mut sum, mut k) = (1.0, 1.0, 1.0);
        while sum * (0.25 * f64::EPSILON) < term {
            term *= quarter / (k * k);
            sum += term;
            k += 1.0;
        }
        return sum;
    }
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..=ASYMPTOTIC_TERMS {
        let odd = f64::from(2 * k - 1);
        term *= odd * odd / (8.0 * x * f64::from(k));
        sum += term;
    }
    // The power is applied in halves, as the whole may be infinite where the result is not.
    let half = libm::exp(0.5 * x);
    half * (half / (std::f64::consts::TAU * x).sqrt()) * sum
}

/// Up to this number the power series takes up to some fifty terms.
const POWER_SERIES_MAX: f64 = 25.0;
/// Beyond, these terms of the asymptotic one are enough.
const ASYMPTOTIC_TERMS: i32 = 24;

/// Quantile of the standard normal distribution at `p`, by Wichura's AS 241 (PPND16), relative accuracy about
/// 1e-16. NaN outside of [0, 1]; infinite at the ends.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= CENTRE {
        return central_quantile(q);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail == 0.0 {
        return f64::INFINITY.copysign(q);
    }
    far_quantile(libm::log(tail)).copysign(q)
}

/// Distance of a probability from one half up to which [`central_quantile`] is for it.
pub(super) const CENTRE: f64 = 0.425;

/// The quantile at one half plus `q`.
pub(super) fn central_quantile(q: f64) -> f64 {
    let r = 0.180625 - q * q;
    q * polynomial(r, &CENTRE_NUMERATOR) / polynomial(r, &CENTRE_DENOMINATOR)
}

/// The distance of a quantile from zero, from the logarithm of the probability beyond it.
pub(super) fn far_quantile(log_tail: f64) -> f64 {
    let r = (-log_tail).sqrt();
    if r <= 5.0 {
        polynomial(r - 1.6, &MIDDLE_NUMERATOR) / polynomial(r - 1.6, &MIDDLE_DENOMINATOR)
    } else {
        polynomial(r - 5.0, &FAR_NUMERATOR) / polynomial(r - 5.0, &FAR_DENOMINATOR)
    }
}

#[inline(always)]
fn polynomial(x: f64, coefficients: &[f64; 8]) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, &c| sum * x + c)
}

#[rustfmt::skip]
const CENTRE_NUMERATOR: [f64; 8] = [
    3.387_132_872_796_366_5, 133.141_667_891_784_38, 1_971.590_950_306_551_3, 13_731.693_765_509_46,
    45_921.953_931_549_87, 67_265.770_927_008_7, 33_430.575_583_588_13, 2_509.080_928_730_122_7,
];
#[rustfmt::skip]
const CENTRE_DENOMINATOR: [f64; 8] = [
    1.0, 42.313_330_701_600_91, 687.187_007_492_057_9, 5_394.196_021_424_751,
    21_213.794_301_586_597, 39_307.895_800_092_71, 28_729.085_735_721_943, 5_226.495_278_852_854,
];
#[rustfmt::skip]
const MIDDLE_NUMERATOR: [f64; 8] = [
    1.423_437_110_749_683_5, 4.630_337_846_156_546, 5.769_497_221_460_691, 3.647_848_324_763_204_5,
    1.270_458_252_452_368_4, 0.241_780_725_177_450_6, 0.022_723_844_989_269_184, 0.000_774_545_014_278_341_4,
];
#[rustfmt::skip]
const MIDDLE_DENOMINATOR: [f64; 8] = [
    1.0, 2.053_191_626_637_759, 1.676_384_830_183_803_8, 0.689_767_334_985_1,
    0.148_103_976_427_480_08, 0.015_198_666_563_616_457, 0.000_547_593_808_499_534_5, 0.000_000_001_050_750_071_644_416_9,
];
#[rustfmt::skip]
const FAR_NUMERATOR: [f64; 8] = [
    6.657_904_643_501_103, 5.463_784_911_164_114, 1.784_826_539_917_291_3, 0.296_560_571_828_504_87,
    0.026_532_189_526_576_124, 0.001_242_660_947_388_078_4, 0.000_027_115_555_687_434_876, 0.000_000_201_033_439_929_228_8,
];
#[rustfmt::skip]
const FAR_DENOMINATOR: [f64; 8] = [
    1.0, 0.599_832_206_555_888, 0.136_929_880_922_735_8, 0.014_875_361_290_850_615,
    0.000_786_869_131_145_613_3, 0.000_018_463_183_175_100_547, 0.000_000_142_151_175_831_644_6, 0.000_000_000_000_002_044_263_103_389_939_8,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantile_matches_known_values() {
        for (p, z) in [
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_054),
            (0.001, -3.090_232_306_167_813_5),
            (1e-20, -9.262_340_089_798_408),
        ] {
            assert!(
                (normal_quantile(p) - z).abs() < 1e-14 * z.abs().max(1.0),
                "{p}: {} {z}",
                normal_quantile(p)
            );
        }
    }

    #[test]
    fn bessel_i0_matches_known_values_on_both_sides_of_its_border() {
        for (x, expected) in [
            (0.0, 1.0),
            (1.0, 1.266_065_877_752_008_4),
            (-10.0, 2_815.716_628_466_254_4),
            (25.0, 5_774_560_606.466_310_5),
            (25.5, 9_425_875_965.317_677),
            (700.0, 1.529_593_347_671_874e302),
        ] {
            let found = bessel_i0(x);
            assert!((found - expected).abs() <= 4e-15 * expected, "{x}: {found} {expected}");
        }
        assert!(bessel_i0(f64::NAN).is_nan() && bessel_i0(f64::INFINITY).is_nan());
    }

    #[test]
    fn floor_division_follows_python() {
        assert_eq!(Real::floor_div(-7.0, 2.0), -4.0);
        assert_eq!(Real::floor_rem(-7.0, 2.0), 1.0);
        assert_eq!(Real::floor_rem(7.0, -2.0), -1.0);
        assert!(Real::floor_rem(1.0f64, 0.0).is_nan());
    }
}
