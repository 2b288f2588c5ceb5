//! Functions of one and two elements, as types that the loops are compiled for.
//!
//! Each group names the best level that its loops gain from (`LEVEL`), measured on blocks in the first-level
//! cache. A loop with a call or an integer division for each element is not vectorised, and as fast in its
//! portable copy. Division of floats keeps the divider of the CPU busy with 256 bits already. All other loops
//! are 1.2 to 3 times as fast with 512 bits as with 256.

use super::complex;
use super::map::{BinaryFn, UnaryFn};
use super::number::{Compare, Integer, Number};
use super::real::{self, Real, bessel_i0, logaddexp, logaddexp2, normal_quantile};
use super::special;
use super::vector_math;
use crate::cpu::Level::{self, Avx2, Avx512, Portable};
use crate::element::{Bool, Element};
use num_complex::Complex;

/// Declares function types of a level: `Name<T: Bound> -> Out = |x| expression`.
macro_rules! functions {
    (unary, $level:expr; $($name:ident<$t:ident: $bound:path> -> $out:ty = |$x:ident| $body:expr;)*) => {$(
        pub(super) struct $name;
        impl<$t: $bound> UnaryFn<$t> for $name {
            type Out = $out;
            const LEVEL: Level = $level;
            #[inline(always)]
            fn apply($x: $t) -> $out { $body }
        }
    )*};
    (
        binary, $level:expr;
        $($name:ident<$t:ident: $bound:path> -> $out:ty = |$a:ident, $b:ident| $body:expr;)*
    ) => {$(
        pub(super) struct $name;
        impl<$t: $bound> BinaryFn<$t> for $name {
            type Out = $out;
            const LEVEL: Level = $level;
            #[inline(always)]
            fn apply($a: $t, $b: $t) -> $out { $body }
        }
    )*};
}

functions! { unary, Avx512;
    Negative<T: Number> -> T = |x| x.negated();
    Square<T: Number> -> T = |x| x.times(x);
    Magnitude<T: Integer> -> T = |x| x.magnitude();
    Sign<T: Integer> -> T = |x| x.signum();
    Not<T: Integer> -> T = |x| x.not();
    CountOnes<T: Integer> -> u8 = |x| x.ones();
    IntReciprocal<T: Integer> -> T = |x| x.reciprocal();
}

functions! { binary, Avx512;
    Add<T: Number> -> T = |a, b| a.plus(b);
    Subtract<T: Number> -> T = |a, b| a.minus(b);
    Multiply<T: Number> -> T = |a, b| a.times(b);
    Less<T: Compare> -> Bool = |a, b| a.lt(b).into();
    LessEqual<T: Compare> -> Bool = |a, b| a.le(b).into();
    Greater<T: Compare> -> Bool = |a, b| b.lt(a).into();
    GreaterEqual<T: Compare> -> Bool = |a, b| b.le(a).into();
    Maximum<T: Compare> -> T = |a, b| a.larger(b);
    Minimum<T: Compare> -> T = |a, b| a.smaller(b);
    Fmax<T: Compare> -> T = |a, b| if b.le(a) || b.is_nan() { a } else { b };
    Fmin<T: Compare> -> T = |a, b| if a.le(b) || b.is_nan() { a } else { b };
    BitAnd<T: Integer> -> T = |a, b| a.and(b);
    BitOr<T: Integer> -> T = |a, b| a.or(b);
    BitXor<T: Integer> -> T = |a, b| a.xor(b);
    ShiftLeft<T: Integer> -> T = |a, b| a.shift_left(b);
    ShiftRight<T: Integer> -> T = |a, b| a.shift_right(b);
}

// The second comparison of complex numbers waits for the first; 512 bits make that three times as slow.
functions! { binary, if T::DTYPE.is_complex() { Portable } else { Avx512 };
    Equal<T: Element> -> Bool = |a, b| (a == b).into();
    NotEqual<T: Element> -> Bool = |a, b| (a != b).into();
}

functions! { binary, Portable;
    IntFloorDivide<T: Integer> -> T = |a, b| a.floor_div(b);
    IntRemainder<T: Integer> -> T = |a, b| a.floor_rem(b);
    IntFmod<T: Integer> -> T = |a, b| a.trunc_rem(b);
    Gcd<T: Integer> -> T = |a, b| Integer::gcd(a, b);
    Lcm<T: Integer> -> T = |a, b| Integer::lcm(a, b);
}

/// Declares function types of a level on both floats. Where the body is given for `f64` alone, `f32` is
/// computed there and rounded.
macro_rules! on_floats {
    (each, $level:ident; $($name:ident -> $out:ident = |$x:ident $(, $y:ident)?| $body:expr;)*) => {$(
        pub(super) struct $name;
        on_floats!(@imp $name, $level, f32, $out, |$x $(, $y)?| $body);
        on_floats!(@imp $name, $level, f64, $out, |$x $(, $y)?| $body);
    )*};
    (wide, $level:ident; $($name:ident = |$x:ident $(, $y:ident)?| $body:expr;)*) => {$(
        pub(super) struct $name;
        on_floats!(@imp $name, $level, f64, Same, |$x $(, $y)?| $body);
        on_floats!(@narrow $name, $level, |$x $(, $y)?| $body);
    )*};
    (@out Same, $t:ty) => { $t };
    (@out Bool, $t:ty) => { Bool };
    (@imp $name:ident, $level:ident, $t:ty, $out:ident, |$x:ident| $body:expr) => {
        impl UnaryFn<$t> for $name {
            type Out = on_floats!(@out $out, $t);
            const LEVEL: Level = $level;
            #[inline(always)]
            fn apply($x: $t) -> on_floats!(@out $out, $t) { $body }
        }
    };
    (@imp $name:ident, $level:ident, $t:ty, $out:ident, |$x:ident, $y:ident| $body:expr) => {
        impl BinaryFn<$t> for $name {
            type Out = on_floats!(@out $out, $t);
            const LEVEL: Level = $level;
            #[inline(always)]
            fn apply($x: $t, $y: $t) -> on_floats!(@out $out, $t) { $body }
        }
    };
    (@narrow $name:ident, $level:ident, |$x:ident| $body:expr) => {
        impl UnaryFn<f32> for $name {
            type Out = f32;
            const LEVEL: Level = $level;
            #[inline(always)]
            fn apply(narrow: f32) -> f32 { let $x = f64::from(narrow); ($body) as f32 }
        }
    };
    (@narrow $name:ident, $level:ident, |$x:ident, $y:ident| $body:expr) => {
        impl BinaryFn<f32> for $name {
            type Out = f32;
            const LEVEL: Level = $level;
            #[inline(always)]
            fn apply(a: f32, b: f32) -> f32 { let ($x, $y) = (f64::from(a), f64::from(b)); ($body) as f32 }
        }
    };
}

on_floats! { each, Avx512;
    Abs -> Same = |x| x.abs();
    FloatSign -> Same = |x| if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { x + 0.0 };
    Floor -> Same = |x| x.floor();
    Ceil -> Same = |x| x.ceil();
    Trunc -> Same = |x| x.trunc();
    Rint -> Same = |x| x.round_ties_even();
    IsNan -> Bool = |x| x.is_nan().into();
    IsInf -> Bool = |x| x.is_infinite().into();
    IsFinite -> Bool = |x| x.is_finite().into();
    Signbit -> Bool = |x| x.is_sign_negative().into();
    Spacing -> Same = |x| x.spacing();
    Copysign -> Same = |a, b| a.copysign(b);
    Heaviside -> Same = |x, h| if x.is_nan() { x } else if x == 0.0 { h } else if x < 0.0 { 0.0 } else { 1.0 };
    Nextafter -> Same = |a, b| a.next_toward(b);
}

on_floats! { each, Avx2;
    Sqrt -> Same = |x| x.sqrt();
    Reciprocal -> Same = |x| 1.0 / x;
    Divide -> Same = |a, b| a / b;
    FloorDivide -> Same = |a, b| a.floor_div(b);
}

on_floats! { each, Portable;
    Fmod -> Same = |a, b| a % b;
    Remainder -> Same = |a, b| a.floor_rem(b);
}

on_floats! { wide, Avx512;
    Degrees = |x| x * (180.0 / std::f64::consts::PI);
    Exp = |x| vector_math::exp(x);
    Log = |x| vector_math::log(x);
    Radians = |x| x * (std::f64::consts::PI / 180.0);
}

on_floats! { wide, Portable;
    Arccos = |x| libm::acos(x);
    Arccosh = |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) };
    Arcsin = |x| libm::asin(x);
    Arcsinh = |x| libm::asinh(x);
    Arctan = |x| libm::atan(x);
    Arctanh = |x| libm::atanh(x);
    Cbrt = |x| libm::cbrt(x);
    Cos = |x| libm::cos(x);
    Cosh = |x| libm::cosh(x);
    Entr = |x| special::entr(x);
    Erf = |x| libm::erf(x);
    Erfc = |x| libm::erfc(x);
    Erfcinv = |y| special::erfcinv(y);
    Erfinv = |y| special::erfinv(y);
    Exp2 = |x| libm::exp2(x);
    Expit = |x| special::expit(x);
    Expm1 = |x| libm::expm1(x);
    FrexpExponent = |x| f64::from(libm::frexp(x).1);
    FrexpMantissa = |x| libm::frexp(x).0;
    Gamma = |x| libm::tgamma(x);
    Gammaln = |x| special::gammaln(x);
    Gammasgn = |x| special::gammasgn(x);
    I0 = |x| bessel_i0(x);
    Log10 = |x| libm::log10(x);
    Log1p = |x| libm::log1p(x);
    Log2 = |x| libm::log2(x);
    Logit = |p| special::logit(p);
    NormalQuantile = |p| normal_quantile(p);
    Rgamma = |x| special::rgamma(x);
    Sin = |x| libm::sin(x);
    Sinh = |x| libm::sinh(x);
    Tan = |x| libm::tan(x);
    Tanh = |x| libm::tanh(x);
    Arctan2 = |y, x| libm::atan2(y, x);
    NextafterHalf = |x, toward| real::next_half(x, toward);
    SpacingHalf = |x| real::spacing_half(x);
    Hypot = |x, y| libm::hypot(x, y);
    KlDiv = |x, y| special::kl_div(x, y);
    // Beyond these powers the result is infinite or zero for every `x`.
    Ldexp = |x, power| libm::ldexp(x, power.clamp(-5000.0, 5000.0) as i32);
    Power = |x, y| libm::pow(x, y);
    Logaddexp = |x, y| logaddexp(x, y);
    Logaddexp2 = |x, y| logaddexp2(x, y);
    RelEntr = |x, y| special::rel_entr(x, y);
    Xlog1py = |x, y| special::xlog1py(x, y);
    Xlogy = |x, y| special::xlogy(x, y);
}

/// Declares function types of a level on both complex dtypes; `complex64` is computed in `complex128` and
/// rounded.
macro_rules! on_complex {
    (unary, $level:ident; $($name:ident = |$x:ident| $body:expr;)*) => {$(
        impl UnaryFn<Complex<f64>> for $name {
            type Out = Complex<f64>;
            const LEVEL: Level = $level;
            #[inline(always)]
            fn apply($x: Complex<f64>) -> Complex<f64> { $body }
        }
        impl UnaryFn<Complex<f32>> for $name {
            type Out = Complex<f32>;
            const LEVEL: Level = $level;
            #[inline(always)]
            fn apply(narrow: Complex<f32>) -> Complex<f32> {
                let $x = Complex::new(f64::from(narrow.re), f64::from(narrow.im));
                let wide: Complex<f64> = $body;
                Complex::new(wide.re as f32, wide.im as f32)
            }
        }
    )*};
}

/// Complex conjugate.
pub(super) struct Conjugate;
/// Complex sign: the direction, of length one.
pub(super) struct ComplexSign;

on_complex! { unary, Avx512;
    Conjugate = |z| z.conj();
    Rint = |z| Complex::new(z.re.round_ties_even(), z.im.round_ties_even());
}

on_complex! { unary, Portable;
    ComplexSign = |z| complex::sign(z);
    Arccos = |z| complex::acos(z);
    Arccosh = |z| complex::acosh(z);
    Arcsin = |z| complex::asin(z);
    Arcsinh = |z| complex::asinh(z);
    Arctan = |z| complex::atan(z);
    Arctanh = |z| complex::atanh(z);
    Cos = |z| complex::cos(z);
    Cosh = |z| complex::cosh(z);
    Exp = |z| complex::exp(z);
    Exp2 = |z| complex::exp(z * std::f64::consts::LN_2);
    Expm1 = |z| complex::expm1(z);
    Log = |z| complex::log(z);
    Log10 = |z| complex::log(z) * std::f64::consts::LOG10_E;
    Log1p = |z| complex::log1p(z);
    Log2 = |z| complex::log(z) * std::f64::consts::LOG2_E;
    Sin = |z| complex::sin(z);
    Sinh = |z| complex::sinh(z);
    Sqrt = |z| complex::sqrt(z);
    Tan = |z| complex::tan(z);
    Tanh = |z| complex::tanh(z);
}

/// Functions from complex numbers to real ones or `bool`, and complex division.
macro_rules! complex_parts {
    ($($t:ty),*) => {$(
        impl UnaryFn<Complex<$t>> for Abs {
            type Out = $t;
            const LEVEL: Level = Portable;
            #[inline(always)]
            fn apply(z: Complex<$t>) -> $t { libm::hypot(f64::from(z.re), f64::from(z.im)) as $t }
        }
        impl UnaryFn<Complex<$t>> for RealPart {
            type Out = $t;
            #[inline(always)]
            fn apply(z: Complex<$t>) -> $t { z.re }
        }
        impl UnaryFn<Complex<$t>> for ImagPart {
            type Out = $t;
            #[inline(always)]
            fn apply(z: Complex<$t>) -> $t { z.im }
        }
        impl UnaryFn<Complex<$t>> for IsNan {
            type Out = Bool;
            #[inline(always)]
            fn apply(z: Complex<$t>) -> Bool { (z.re.is_nan() || z.im.is_nan()).into() }
        }
        impl UnaryFn<Complex<$t>> for IsInf {
            type Out = Bool;
            #[inline(always)]
            fn apply(z: Complex<$t>) -> Bool { (z.re.is_infinite() || z.im.is_infinite()).into() }
        }
        impl UnaryFn<Complex<$t>> for IsFinite {
            type Out = Bool;
            #[inline(always)]
            fn apply(z: Complex<$t>) -> Bool { (z.re.is_finite() && z.im.is_finite()).into() }
        }
        impl BinaryFn<Complex<$t>> for Divide {
            type Out = Complex<$t>;
            const LEVEL: Level = Avx2;
            /// Smith's method, in the dtype itself, as NumPy.
            #[inline(always)]
            fn apply(a: Complex<$t>, b: Complex<$t>) -> Complex<$t> {
                if b.re.abs() >= b.im.abs() {
                    if b.re == 0.0 && b.im == 0.0 {
                        return Complex::new(a.re / b.re.abs(), a.im / b.re.abs());
                    }
                    let ratio = b.im / b.re;
                    let scale = 1.0 / (b.re + b.im * ratio);
                    Complex::new((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale)
                } else {
                    let ratio = b.re / b.im;
                    let scale = 1.0 / (b.im + b.re * ratio);
                    Complex::new((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale)
                }
            }
        }
        impl UnaryFn<Complex<$t>> for ComplexReciprocal {
            type Out = Complex<$t>;
            const LEVEL: Level = Avx2;
            #[inline(always)]
            fn apply(z: Complex<$t>) -> Complex<$t> {
                if z.im.abs() <= z.re.abs() {
                    let ratio = z.im / z.re;
                    let size = z.re + z.im * ratio;
                    Complex::new(1.0 / size, -ratio / size)
                } else {
                    let ratio = z.re / z.im;
                    let size = z.re * ratio + z.im;
                    Complex::new(ratio / size, -1.0 / size)
                }
            }
        }
        impl BinaryFn<Complex<$t>> for Power {
            type Out = Complex<$t>;
            const LEVEL: Level = Portable;
            #[inline(always)]
            fn apply(a: Complex<$t>, b: Complex<$t>) -> Complex<$t> {
                if b.re == 0.0 && b.im == 0.0 {
                    return Complex::new(1.0, 0.0);
                }
                if a.re == 0.0 && a.im == 0.0 {
                    let part = if 0.0 < b.re { 0.0 } else { <$t>::NAN };
                    return Complex::new(part, part);
                }
                if b.im == 0.0 && b.re == b.re.trunc() && b.re.abs() < 100.0 {
                    let power = whole_power(a, b.re as i32);
                    return if b.re < 0.0 { Divide::apply(Complex::new(1.0, 0.0), power) } else { power };
                }
                let wide = |z: Complex<$t>| Complex::new(f64::from(z.re), f64::from(z.im));
                let power = complex::power(wide(a), wide(b));
                Complex::new(power.re as $t, power.im as $t)
            }
        }
        impl BinaryFn<$t> for FromParts {
            type Out = Complex<$t>;
            #[inline(always)]
            fn apply(re: $t, im: $t) -> Complex<$t> { Complex::new(re, im) }
        }
    )*};
}

/// Complex reciprocal.
pub(super) struct ComplexReciprocal;
/// Complex number of a real and an imaginary part.
pub(super) struct FromParts;
/// Real part of a complex number.
pub(super) struct RealPart;
/// Imaginary part of a complex number.
pub(super) struct ImagPart;

complex_parts!(f32, f64);

/// `base` to the absolute value of a power other than zero, by the same multiplications as NumPy, so that
/// infinities and NaN are the same.
fn whole_power<T: Number>(base: T, exponent: i32) -> T {
    match exponent {
        1 => return base,
        2 => return base.times(base),
        3 => return base.times(base.times(base)),
        _ => {}
    }
    let (mut result, mut square, mut rest) = (T::ONE, base, exponent.unsigned_abs());
    loop {
        if rest & 1 == 1 {
            result = result.times(square);
        }
        rest >>= 1;
        if rest == 0 {
            return result;
        }
        square = square.times(square);
    }
}
