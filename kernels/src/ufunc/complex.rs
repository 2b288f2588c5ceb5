//! Elementary functions of complex numbers, with the branch cuts and special values of C99's Annex G.
//!
//! Sine, tangent and square root follow W. Kahan, "Branch cuts for complex elementary functions" (1987);
//! inverse sine and cosine follow T. E. Hull, T. F. Fairgrieve and P. T. P. Tang, "Implementing the complex
//! arcsine and arccosine functions using exception handling" (1997). Both keep each part accurate where the
//! textbook formulas overflow or cancel. Trigonometric functions are the hyperbolic ones on the imaginary
//! axis, so that one implementation has the special cases.

use num_complex::Complex;
use std::f64::consts::{FRAC_PI_2, LN_2};

type C = Complex<f64>;

/// e to the power of `z`.
pub(super) fn exp(z: C) -> C {
    if z.im == 0.0 {
        return C::new(libm::exp(z.re), z.im);
    }
    if !z.im.is_finite() {
        // The direction is unknown: only a length of zero or infinity determines the result.
        return match z.re {
            f64::NEG_INFINITY => C::new(0.0, 0.0f64.copysign(z.im)),
            f64::INFINITY => C::new(f64::INFINITY, f64::NAN),
            _ => C::new(f64::NAN, f64::NAN),
        };
    }
    scaled_exp(z.re, C::new(libm::cos(z.im), libm::sin(z.im)))
}

/// e^x times `factor`, without overflow where the product has none.
fn scaled_exp(mut x: f64, mut factor: C) -> C {
    // Two steps are enough even for the smallest factor.
    for _ in 0..2 {
        if EXP_STEP < x {
            x -= EXP_STEP;
            factor *= libm::exp(EXP_STEP);
        }
    }
    factor * libm::exp(x)
}

/// The number of modulus one with the same direction; zero for zero.
pub(super) fn sign(z: C) -> C {
    match (z.re.is_infinite(), z.im.is_infinite()) {
        (true, true) => return C::new(f64::NAN, f64::NAN),
        (true, false) => return C::new(z.re.signum(), 0.0),
        (false, true) => return C::new(0.0, z.im.signum()),
        (false, false) => {}
    }
    // The modulus of finite parts may overflow.
    let z = if HUGE < z.re.abs().max(z.im.abs()) { z * 0.5 } else { z };
    let length = libm::hypot(z.re, z.im);
    if length == 0.0 { C::new(0.0, 0.0) } else { C::new(z.re / length, z.im / length) }
}

/// The natural logarithm, cut along the negative real axis.
pub(super) fn log(z: C) -> C {
    C::new(log_modulus(z.re, z.im), libm::atan2(z.im, z.re))
}

/// log |x + iy|, accurate where the modulus is near one.
fn log_modulus(x: f64, y: f64) -> f64 {
    let (large, small) = (x.abs().max(y.abs()), x.abs().min(y.abs()));
    if x.is_nan() || y.is_nan() || large == 0.0 || !large.is_finite() {
        return libm::log(libm::hypot(x, y));
    }
    // Scaling by a power of two is exact, and keeps squares from overflow and underflow.
    if HUGE < large {
        return libm::log(libm::hypot(large * 0.5, small * 0.5)) + LN_2;
    }
    if large < TINY {
        return libm::log(libm::hypot(large * TWO_108, small * TWO_108)) - 108.0 * LN_2;
    }
    if !(0.5..2.0).contains(&large) {
        return libm::log(libm::hypot(large, small));
    }
    0.5 * libm::log1p(square_modulus_minus_one(large, small))
}

/// x^2 + y^2 - 1, with an error of a rounding or two of the result itself.
fn square_modulus_minus_one(x: f64, y: f64) -> f64 {
    let product = |a: f64| (a * a, a.mul_add(a, -(a * a)));
    let ((x_high, x_low), (y_high, y_low)) = (product(x), product(y));
    let mut terms = [-1.0, x_high, y_high, x_low, y_low];
    // Each pass adds the terms without error and keeps the rounding errors as the terms in front. After three
    // passes nothing cancels any more.
    for _ in 0..3 {
        for i in 1..terms.len() {
            let (a, b) = (terms[i - 1], terms[i]);
            let sum = a + b;
            let b_part = sum - a;
            terms[i - 1] = (a - (sum - b_part)) + (b - b_part);
            terms[i] = sum;
        }
    }
    terms.iter().sum()
}

/// log(1 + z) by the formula of NumPy, which loses the real part of a tiny argument.
pub(super) fn log1p(z: C) -> C {
    C::new(libm::log(libm::hypot(z.re + 1.0, z.im)), libm::atan2(z.im, z.re + 1.0))
}

/// e^z - 1.
pub(super) fn expm1(z: C) -> C {
    let half = libm::sin(z.im / 2.0);
    let grown = libm::exp(z.re);
    C::new(libm::expm1(z.re) * libm::cos(z.im) - 2.0 * half * half, grown * libm::sin(z.im))
}

/// The square root with a real part that is not negative, cut along the negative real axis.
pub(super) fn sqrt(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if y.is_infinite() {
        return C::new(f64::INFINITY, y);
    }
    if x.is_nan() || y.is_nan() {
        return match x {
            f64::INFINITY => C::new(x, f64::NAN),
            f64::NEG_INFINITY => C::new(f64::NAN, f64::INFINITY),
            _ => C::new(f64::NAN, f64::NAN),
        };
    }
    if x == 0.0 && y == 0.0 {
        return C::new(0.0, y);
    }
    let large = x.abs().max(y.abs());
    let (x, y, back) = if HUGE < large {
        (x * 0.25, y * 0.25, 2.0)
    } else if large < TINY {
        (x * TWO_108, y * TWO_108, TWO_MINUS_54)
    } else {
        (x, y, 1.0)
    };
    if x.is_infinite() {
        let zero = 0.0f64;
        return if 0.0 < x { C::new(x, zero.copysign(y)) } else { C::new(zero, (-x).copysign(y)) };
    }
    let root = ((x.abs() + libm::hypot(x, y)) * 0.5).sqrt();
    let other = y.abs() / (2.0 * root);
    let (re, im) = if 0.0 <= x { (root, other) } else { (other, root) };
    C::new(re * back, (im * back).copysign(y))
}

/// Hyperbolic sine.
pub(super) fn sinh(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return C::new(libm::sinh(x), y);
    }
    if !y.is_finite() {
        return match x {
            0.0 => C::new(x, f64::NAN),
            x if x.is_infinite() => C::new(f64::INFINITY, f64::NAN),
            _ => C::new(f64::NAN, f64::NAN),
        };
    }
    let (sin, cos) = (libm::sin(y), libm::cos(y));
    if EXP_STEP < x.abs() {
        let grown = scaled_exp(x.abs(), C::new(0.5 * cos, 0.5 * sin));
        return C::new(grown.re * 1f64.copysign(x), grown.im);
    }
    C::new(libm::sinh(x) * cos, libm::cosh(x) * sin)
}

/// Hyperbolic cosine.
pub(super) fn cosh(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return C::new(libm::cosh(x), if x.is_nan() { y } else { 0.0f64.copysign(x) * y });
    }
    if !y.is_finite() {
        return match x {
            0.0 => C::new(f64::NAN, 0.0),
            x if x.is_infinite() => C::new(f64::INFINITY, f64::NAN),
            _ => C::new(f64::NAN, f64::NAN),
        };
    }
    let (sin, cos) = (libm::sin(y), libm::cos(y));
    if EXP_STEP < x.abs() {
        let grown = scaled_exp(x.abs(), C::new(0.5 * cos, 0.5 * sin));
        return C::new(grown.re, grown.im * 1f64.copysign(x));
    }
    C::new(libm::cosh(x) * cos, libm::sinh(x) * sin)
}

/// Hyperbolic tangent.
pub(super) fn tanh(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if x.is_infinite() {
        let direction = if y.is_finite() { libm::sin(y) * libm::cos(y) } else { y };
        return C::new(1f64.copysign(x), 0.0f64.copysign(direction));
    }
    if y == 0.0 {
        return C::new(libm::tanh(x), y);
    }
    if x.is_nan() || !y.is_finite() {
        return C::new(if x == 0.0 { x } else { f64::NAN }, f64::NAN);
    }
    if TANH_IS_ONE < x.abs() {
        let small = libm::exp(-x.abs());
        return C::new(1f64.copysign(x), 4.0 * libm::sin(y) * libm::cos(y) * small * small);
    }
    let (t, s) = (libm::tan(y), libm::sinh(x));
    let beta = 1.0 + t * t;
    let denominator = 1.0 + beta * s * s;
    C::new(beta * (1.0 + s * s).sqrt() * s / denominator, t / denominator)
}

/// Sine: sinh(iz) / i.
pub(super) fn sin(z: C) -> C {
    let w = sinh(C::new(-z.im, z.re));
    C::new(w.im, -w.re)
}

/// Cosine: cosh(iz).
pub(super) fn cos(z: C) -> C {
    cosh(C::new(-z.im, z.re))
}

/// Tangent: tanh(iz) / i.
pub(super) fn tan(z: C) -> C {
    let w = tanh(C::new(-z.im, z.re));
    C::new(w.im, -w.re)
}

/// Inverse sine, cut along the real axis beyond -1 and 1.
pub(super) fn asin(z: C) -> C {
    let w = asinh(C::new(-z.im, z.re));
    C::new(w.im, -w.re)
}

/// Inverse hyperbolic sine, cut along the imaginary axis beyond -i and i.
pub(super) fn asinh(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if x.is_nan() || y.is_nan() {
        return match () {
            () if y == 0.0 => C::new(f64::NAN, y),
            () if x.is_infinite() => C::new(x, f64::NAN),
            () if y.is_infinite() => C::new(f64::INFINITY, f64::NAN),
            () => C::new(f64::NAN, f64::NAN),
        };
    }
    let arc = Arc::of(y.abs(), x.abs());
    C::new(arc.height.copysign(x), libm::atan2(arc.side, arc.root).copysign(y))
}

/// Inverse cosine, cut along the real axis beyond -1 and 1.
pub(super) fn acos(z: C) -> C {
    let (x, y) = (z.re, z.im);
    if x.is_nan() || y.is_nan() {
        return match () {
            () if y.is_infinite() => C::new(f64::NAN, -y),
            () if x.is_infinite() => C::new(f64::NAN, f64::INFINITY),
            () if x == 0.0 => C::new(FRAC_PI_2, f64::NAN),
            () => C::new(f64::NAN, f64::NAN),
        };
    }
    let arc = Arc::of(x.abs(), y.abs());
    C::new(libm::atan2(arc.root, arc.side.copysign(x)), -arc.height.copysign(y))
}

/// Inverse hyperbolic cosine with a real part that is not negative, cut along the real axis below 1.
pub(super) fn acosh(z: C) -> C {
    let w = acos(z);
    if w.re.is_nan() && w.im.is_nan() {
        return w;
    }
    // Rotates acos(z) by a right angle, to the side with a real part that is not negative.
    if w.re.is_nan() {
        return C::new(w.im.abs(), w.re);
    }
    C::new(w.im.abs(), w.re.copysign(z.im))
}

/// Parts of inverse sine and cosine of x + iy in the first quadrant: sine and cosine of the real part
/// stand to each other as `side` to `root`, and `height` is the imaginary part.
struct Arc {
    side: f64,
    root: f64,
    height: f64,
}

impl Arc {
    fn of(x: f64, y: f64) -> Arc {
        if x.is_infinite() || y.is_infinite() {
            return Arc { side: x, root: y, height: f64::INFINITY };
        }
        if y <= f64::EPSILON * (x - 1.0).abs() {
            return Arc::beside_the_axis(x, y);
        }
        if y < SAFE_MIN {
            // At the branch point: for every other x, the distance from 1 exceeds such a y.
            return Arc { side: 1.0, root: y.sqrt(), height: y.sqrt() };
        }
        if SAFE_MAX < x || SAFE_MAX < y {
            return Arc { side: x, root: y, height: log_of_double(x, y) };
        }
        let (r, s) = (libm::hypot(x + 1.0, y), libm::hypot(x - 1.0, y));
        let a = 0.5 * (r + s);
        // Each difference is computed by the form that does not cancel.
        let beyond_left = y * (y / (r + (x + 1.0)));
        let a_minus_x = if x <= 1.0 {
            0.5 * (beyond_left + (s + (1.0 - x)))
        } else {
            0.5 * (beyond_left + y * (y / (s + (x - 1.0))))
        };
        let a_minus_1 = if x < 1.0 {
            0.5 * (beyond_left + y * (y / (s + (1.0 - x))))
        } else {
            0.5 * (beyond_left + (s + (x - 1.0)))
        };
        let height = if a <= 1.5 {
            libm::log1p(a_minus_1 + (a_minus_1 * (a + 1.0)).sqrt())
        } else {
            libm::log(a + (a * a - 1.0).sqrt())
        };
        Arc { side: x, root: ((a + x) * a_minus_x).sqrt(), height }
    }

    /// Case in which y is negligible beside the distance from the branch point.
    fn beside_the_axis(x: f64, y: f64) -> Arc {
        if x < 1.0 {
            let root = ((1.0 - x) * (1.0 + x)).sqrt();
            return Arc { side: x, root, height: y / root };
        }
        let spread = (x - 1.0).sqrt() * (x + 1.0).sqrt();
        let root = if y == 0.0 { 0.0 } else { y * (x / spread) };
        let height = if SAFE_MAX < x { log_of_double(x, y) } else { libm::log1p(x - 1.0 + spread) };
        Arc { side: x, root, height }
    }
}

/// log(2 |x + iy|) for large numbers.
fn log_of_double(x: f64, y: f64) -> f64 {
    libm::log(libm::hypot(x * 0.5, y * 0.5)) + 2.0 * LN_2
}

/// Inverse tangent, cut along the imaginary axis beyond -i and i: atanh(iz) / i.
pub(super) fn atan(z: C) -> C {
    let w = atanh(C::new(-z.im, z.re));
    C::new(w.im, -w.re)
}

/// Inverse hyperbolic tangent, cut along the real axis beyond -1 and 1.
pub(super) fn atanh(z: C) -> C {
    let (x, y) = (z.re.abs(), z.im.abs());
    let signed = |re: f64, im: f64| C::new(re.copysign(z.re), im.copysign(z.im));
    if x.is_nan() || y.is_nan() {
        return match () {
            () if y.is_infinite() => signed(0.0, FRAC_PI_2),
            () if x.is_infinite() || x == 0.0 => C::new(0.0f64.copysign(z.re), f64::NAN),
            () => C::new(f64::NAN, f64::NAN),
        };
    }
    if FAR < x || FAR < y {
        return signed(reciprocal_real(x, y), FRAC_PI_2);
    }
    if x < NEGLIGIBLE && y < NEGLIGIBLE {
        return z;
    }
    let re = if x == 1.0 && y < f64::EPSILON {
        0.5 * (LN_2 - libm::log(y))
    } else {
        0.25 * libm::log1p(4.0 * (x / ((1.0 - x) * (1.0 - x) + y * y)))
    };
    let im = 0.5 * libm::atan2(2.0 * y, (1.0 - x) * (1.0 + x) - y * y);
    signed(re, im)
}

/// The real part of 1 / (x - iy): x / (x^2 + y^2).
fn reciprocal_real(x: f64, y: f64) -> f64 {
    if x.is_infinite() || y.is_infinite() {
        return 0.0;
    }
    let (x, y) = (x * 0.5, y * 0.5);
    let modulus = libm::hypot(x, y);
    0.5 * (x / modulus / modulus)
}

/// `a` to the power of `b`, unless `b` is a small whole number.
pub(super) fn power(a: C, b: C) -> C {
    let (modulus, logarithm) = (libm::hypot(a.re, a.im), log(a));
    let length = libm::pow(modulus, b.re) * libm::exp(-b.im * logarithm.im);
    let turn = b.im * logarithm.re + b.re * logarithm.im;
    if modulus.is_normal() && length.is_normal() && turn.is_finite() {
        return C::new(length * libm::cos(turn), length * libm::sin(turn));
    }
    let product = b * logarithm;
    if product.re.is_nan() && product.im.is_nan() && logarithm.re.is_infinite() {
        // As C multiplies: an infinite factor gives an infinite product, whatever its other part is.
        return exp(C::new(b.re * logarithm.re, b.im * logarithm.re));
    }
    exp(product)
}

/// The largest whole number whose exponential is finite.
const EXP_STEP: f64 = 709.0;
/// Moduli of parts up to this do not overflow.
const HUGE: f64 = f64::MAX / 4.0;
/// Squares of smaller numbers are not normal any more.
const TINY: f64 = 1.5e-154;
const TWO_108: f64 = (1u128 << 108) as f64;
const TWO_MINUS_54: f64 = 1.0 / (1u64 << 54) as f64;
/// Beyond this, tanh rounds to one, and sinh and cosh round to half of the exponential.
const TANH_IS_ONE: f64 = 22.0;
/// The square roots of the largest and the smallest normal number, with a margin of a few factors of two.
const SAFE_MAX: f64 = 1.6e153;
const SAFE_MIN: f64 = 6e-154;
/// Beyond this, 1 is negligible beside the square of a number.
const FAR: f64 = 1e16;
/// Below this, the cube of a number is negligible beside the number.
const NEGLIGIBLE: f64 = 1e-9;
