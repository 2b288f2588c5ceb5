//! Special functions of real numbers, with SciPy's values at poles, borders, infinities and NaN.
//!
//! SciPy's formulas leave the range of floats in places where the result is in range: the quotient of
//! `kl_div` overflows, the reciprocal of `rgamma` is that of an infinity. The result is given then.

use super::real::{CENTRE, central_quantile, far_quantile};
use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

/// -x log x; 0 at zero, negative infinity below.
pub(super) fn entr(x: f64) -> f64 {
    if x.is_nan() {
        x
    } else if 0.0 < x {
        -x * libm::log(x)
    } else if x == 0.0 {
        0.0
    } else {
        f64::NEG_INFINITY
    }
}

/// The number whose error function is `y`, by the quantile of the normal distribution at (1 + y) / 2.
pub(super) fn erfinv(y: f64) -> f64 {
    let size = y.abs();
    if size < SMALL {
        // The next term of the series is below half a unit in the last place.
        return y * HALF_SQRT_PI;
    }
    if size <= 2.0 * CENTRE {
        return central_quantile(0.5 * y) * FRAC_1_SQRT_2;
    }
    beyond(1.0 - size).copysign(y)
}

/// The number whose complementary error function is `y`.
pub(super) fn erfcinv(y: f64) -> f64 {
    let q = 1.0 - y;
    if q.abs() < SMALL {
        return q * HALF_SQRT_PI;
    }
    if q.abs() <= 2.0 * CENTRE {
        return central_quantile(0.5 * q) * FRAC_1_SQRT_2;
    }
    if y < 1.0 { beyond(y) } else { -beyond(2.0 - y) }
}

/// The positive number whose complementary error function is `y`, which is small: infinite for zero, NaN for
/// negative ones.
fn beyond(y: f64) -> f64 {
    // Half of the smallest number would be zero, so it is taken from the logarithm.
    if y == 0.0 { f64::INFINITY } else { far_quantile(libm::log(y) - LN_2) * FRAC_1_SQRT_2 }
}

const SMALL: f64 = 1e-9;
/// Half the square root of pi.
const HALF_SQRT_PI: f64 = 0.886_226_925_452_758;

/// The logistic function, 1 / (1 + e^-x).
pub(super) fn expit(x: f64) -> f64 {
    if x < 0.0 {
        let grown = libm::exp(x);
        grown / (1.0 + grown)
    } else {
        1.0 / (1.0 + libm::exp(-x))
    }
}

/// The inverse of [`expit`], log(p / (1 - p)).
pub(super) fn logit(p: f64) -> f64 {
    if (0.3..=0.65).contains(&p) {
        // The quotient is near one, where its logarithm would keep the error of its rounding.
        let s = 2.0 * (p - 0.5);
        return libm::log1p(s) - libm::log1p(-s);
    }
    libm::log(p / (1.0 - p))
}

/// The logarithm of the absolute value of the gamma function.
pub(super) fn gammaln(x: f64) -> f64 {
    if x == f64::NEG_INFINITY { x } else { libm::lgamma(x) }
}

/// The sign of the gamma function; NaN at its poles, except at zero.
pub(super) fn gammasgn(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if 0.0 <= x {
        return 1f64.copysign(x);
    }
    let floor = x.floor();
    match () {
        () if floor == x => f64::NAN,
        () if floor % 2.0 == 0.0 => 1.0,
        () => -1.0,
    }
}

/// One divided by the gamma function; 0 at its poles.
pub(super) fn rgamma(x: f64) -> f64 {
    if x.abs() < 1e-17 {
        // The gamma function is 1 / x here, which may be infinite.
        return x;
    }
    if x < 0.0 && x.floor() == x {
        return 0.0;
    }
    if GAMMA_FINITE < x { libm::exp(-libm::lgamma(x)) } else { 1.0 / libm::tgamma(x) }
}

/// Up to this number the gamma function is finite.
const GAMMA_FINITE: f64 = 171.6;

/// x log(x / y); 0 for x = 0, infinite where either is negative, or y zero.
pub(super) fn rel_entr(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    if x <= 0.0 || y <= 0.0 {
        return if x == 0.0 && 0.0 <= y { 0.0 } else { f64::INFINITY };
    }
    let ratio = x / y;
    if 0.5 < ratio && ratio < 2.0 {
        // The quotient is near one, where its logarithm would keep the error of its rounding.
        x * libm::log1p((x - y) / y)
    } else if ratio.is_normal() {
        x * libm::log(ratio)
    } else {
        x * (libm::log(x) - libm::log(y))
    }
}

/// x log(x / y) - x + y; y for x = 0, infinite as [`rel_entr`].
pub(super) fn kl_div(x: f64, y: f64) -> f64 {
    let entropy = rel_entr(x, y);
    if entropy.is_nan() || x <= 0.0 || y <= 0.0 {
        return if x == 0.0 && 0.0 <= y { y } else { entropy };
    }
    entropy - x + y
}

/// x log y; 0 for x = 0, whatever number y is.
pub(super) fn xlogy(x: f64, y: f64) -> f64 {
    if x == 0.0 && !y.is_nan() { 0.0 } else { x * libm::log(y) }
}

/// x log(1 + y); 0 for x = 0, whatever number y is.
pub(super) fn xlog1py(x: f64, y: f64) -> f64 {
    if x == 0.0 && !y.is_nan() { 0.0 } else { x * libm::log1p(y) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(found: f64, expected: f64, relative: f64) {
        assert!((found - expected).abs() <= relative * expected.abs(), "{found} for {expected}");
    }

    /// The numbers were computed with 50 digits by mpmath.
    #[test]
    fn numbers_in_range_are_there_though_a_step_of_the_formula_is_not() {
        assert_near(rgamma(172.0), 8.057_900_396_443_12e-310, 1e-12);
        assert_near(rgamma(1e-20), 1e-20, 1e-15);
        assert_near(erfcinv(5e-324), 27.213_293_210_812_95, 1e-15);
        assert_near(erfinv(1.0 - f64::EPSILON / 2.0), 5.863_584_748_755_167_6, 1e-15);
        assert_near(kl_div(1.0, 5e-324), 743.440_071_921_381_2, 1e-15);
        assert_near(kl_div(1e300, 5e-324), 1.434_215_599_819_595e303, 1e-15);
        assert_near(kl_div(5e-324, 1e300), 1e300, 1e-15);
        assert_near(expit(-740.0), 4.2e-322, 1e-2);
        assert_eq!((expit(-1e4), expit(1e4), erfinv(5e-324)), (0.0, 1.0, 5e-324));
    }
}
