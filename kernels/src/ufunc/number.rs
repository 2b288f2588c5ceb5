//! Arithmetic and order as NumPy defines them, on every element type.

use crate::element::{Bool, Element};
use num_complex::Complex;

/// Sums and products; integers wrap.
pub(crate) trait Number: Element {
    const ZERO: Self;
    const ONE: Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// The negative; also flips the sign of a zero.
    fn negated(self) -> Self;
}

/// Order; complex numbers compare by real, then by imaginary part.
pub(crate) trait Compare: Element {
    fn lt(self, other: Self) -> bool;
    fn le(self, other: Self) -> bool;
    fn is_nan(self) -> bool;

    /// The larger; NaN if either is.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if other.le(self) || self.is_nan() { self } else { other }
    }

    /// The smaller; NaN if either is.
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        if self.le(other) || self.is_nan() { self } else { other }
    }
}

/// Operations of integers beside arithmetic.
pub(crate) trait Integer: Number + Compare {
    fn floor_div(self, other: Self) -> Self;
    fn floor_rem(self, other: Self) -> Self;
    fn trunc_rem(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn not(self) -> Self;
    fn shift_left(self, by: Self) -> Self;
    fn shift_right(self, by: Self) -> Self;
    fn magnitude(self) -> Self;
    fn signum(self) -> Self;
    fn ones(self) -> u8;
    fn gcd(self, other: Self) -> Self;
    /// Wraps where the multiple does not fit.
    fn lcm(self, other: Self) -> Self;
    /// 1 divided by it, rounded toward zero; for zero, C's conversion of infinity.
    fn reciprocal(self) -> Self;
    /// `None` for a negative exponent.
    fn power(self, exponent: Self) -> Option<Self>;
}

macro_rules! wrapping_number {
    ($($ty:ty),*) => {$(
        impl Number for $ty {
            const ZERO: $ty = 0;
            const ONE: $ty = 1;
            #[inline(always)]
            fn plus(self, other: $ty) -> $ty { self.wrapping_add(other) }
            #[inline(always)]
            fn minus(self, other: $ty) -> $ty { self.wrapping_sub(other) }
            #[inline(always)]
            fn times(self, other: $ty) -> $ty { self.wrapping_mul(other) }
            #[inline(always)]
            fn negated(self) -> $ty { self.wrapping_neg() }
        }
        impl Compare for $ty {
            #[inline(always)]
            fn lt(self, other: $ty) -> bool { self < other }
            #[inline(always)]
            fn le(self, other: $ty) -> bool { self <= other }
            #[inline(always)]
            fn is_nan(self) -> bool { false }
        }
    )*};
}
wrapping_number!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! float_number {
    ($($ty:ty),*) => {$(
        impl Number for $ty {
            const ZERO: $ty = 0.0;
            const ONE: $ty = 1.0;
            #[inline(always)]
            fn plus(self, other: $ty) -> $ty { self + other }
            #[inline(always)]
            fn minus(self, other: $ty) -> $ty { self - other }
            #[inline(always)]
            fn times(self, other: $ty) -> $ty { self * other }
            #[inline(always)]
            fn negated(self) -> $ty { -self }
        }
        impl Compare for $ty {
            #[inline(always)]
            fn lt(self, other: $ty) -> bool { self < other }
            #[inline(always)]
            fn le(self, other: $ty) -> bool { self <= other }
            #[inline(always)]
            fn is_nan(self) -> bool { <$ty>::is_nan(self) }
        }
        impl Number for Complex<$ty> {
            const ZERO: Self = Complex::new(0.0, 0.0);
            const ONE: Self = Complex::new(1.0, 0.0);
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn negated(self) -> Self { -self }
        }
        impl Compare for Complex<$ty> {
            #[inline(always)]
            fn lt(self, o: Self) -> bool {
                (self.re < o.re && !<$ty>::is_nan(self.im) && !<$ty>::is_nan(o.im)) || (self.re == o.re && self.im < o.im)
            }
            #[inline(always)]
            fn le(self, o: Self) -> bool {
                (self.re < o.re && !<$ty>::is_nan(self.im) && !<$ty>::is_nan(o.im)) || (self.re == o.re && self.im <= o.im)
            }
            #[inline(always)]
            fn is_nan(self) -> bool { <$ty>::is_nan(self.re) || <$ty>::is_nan(self.im) }
        }
    )*};
}
float_number!(f32, f64);

impl Number for Bool {
    const ZERO: Bool = Bool(0);
    const ONE: Bool = Bool(1);
    #[inline(always)]
    fn plus(self, other: Bool) -> Bool {
        Bool(self.0 | other.0)
    }
    #[inline(always)]
    fn minus(self, other: Bool) -> Bool {
        Bool(self.0 ^ other.0)
    }
    #[inline(always)]
    fn times(self, other: Bool) -> Bool {
        Bool(self.0 & other.0)
    }
    #[inline(always)]
    fn negated(self) -> Bool {
        self
    }
}

impl Compare for Bool {
    #[inline(always)]
    fn lt(self, other: Bool) -> bool {
        self.0 < other.0
    }
    #[inline(always)]
    fn le(self, other: Bool) -> bool {
        self.0 <= other.0
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
}

macro_rules! integer {
    ($($ty:ty, $unsigned:ty, $of_zero:expr, $signed:literal, $abs:expr, $sign:expr;)*) => {$(
        impl Integer for $ty {
            #[inline(always)]
            fn floor_div(self, other: $ty) -> $ty {
                if other == 0 {
                    return 0;
                }
                let quotient = self.wrapping_div(other);
                let inexact = self.wrapping_rem(other) != 0;
                if inexact && ((self ^ other) < (0 as $ty)) { quotient.wrapping_sub(1) } else { quotient }
            }
            #[inline(always)]
            fn floor_rem(self, other: $ty) -> $ty {
                if other == 0 {
                    return 0;
                }
                let rest = self.wrapping_rem(other);
                if rest != 0 && ((rest ^ other) < (0 as $ty)) { rest.wrapping_add(other) } else { rest }
            }
            #[inline(always)]
            fn trunc_rem(self, other: $ty) -> $ty { if other == 0 { 0 } else { self.wrapping_rem(other) } }
            #[inline(always)]
            fn and(self, other: $ty) -> $ty { self & other }
            #[inline(always)]
            fn or(self, other: $ty) -> $ty { self | other }
            #[inline(always)]
            fn xor(self, other: $ty) -> $ty { self ^ other }
            #[inline(always)]
            fn not(self) -> $ty { !self }
            #[inline(always)]
            fn shift_left(self, by: $ty) -> $ty {
                if (by as u64) < u64::from(<$ty>::BITS) { self << by } else { 0 }
            }
            #[inline(always)]
            fn shift_right(self, by: $ty) -> $ty {
                let most = <$ty>::BITS - 1;
                if (by as u64) < u64::from(<$ty>::BITS) { self >> by } else if $signed { self >> most } else { 0 }
            }
            #[inline(always)]
            fn magnitude(self) -> $ty { $abs(self) }
            #[inline(always)]
            fn signum(self) -> $ty { $sign(self) }
            #[inline(always)]
            fn ones(self) -> u8 { $abs(self).count_ones() as u8 }
            fn gcd(self, other: $ty) -> $ty {
                let (mut a, mut b) = (self, other);
                while b != 0 {
                    (a, b) = (b, a.wrapping_rem(b));
                }
                $abs(a)
            }
            fn lcm(self, other: $ty) -> $ty {
                let (a, b) = ($abs(self) as $unsigned, $abs(other) as $unsigned);
                let divisor = Integer::gcd(a, b);
                if divisor == 0 { 0 } else { (a / divisor).wrapping_mul(b) as $ty }
            }
            #[inline(always)]
            fn reciprocal(self) -> $ty {
                if self == 0 { $of_zero } else if $abs(self) == 1 { self } else { 0 }
            }
            fn power(self, exponent: $ty) -> Option<$ty> {
                if exponent < (0 as $ty) {
                    return None;
                }
                let (mut base, mut rest, mut result) = (self, exponent as u64, 1 as $ty);
                while rest != 0 {
                    if rest & 1 == 1 {
                        result = result.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    rest >>= 1;
                }
                Some(result)
            }
        }
    )*};
}
integer! {
    i8, u8, 0, true, i8::wrapping_abs, i8::signum;
    i16, u16, 0, true, i16::wrapping_abs, i16::signum;
    i32, u32, i32::MIN, true, i32::wrapping_abs, i32::signum;
    i64, u64, i64::MIN, true, i64::wrapping_abs, i64::signum;
    u8, u8, 0, false, std::convert::identity::<u8>, |x: u8| u8::from(x != 0);
    u16, u16, 0, false, std::convert::identity::<u16>, |x: u16| u16::from(x != 0);
    u32, u32, 0, false, std::convert::identity::<u32>, |x: u32| u32::from(x != 0);
    u64, u64, 0, false, std::convert::identity::<u64>, |x: u64| u64::from(x != 0);
}
