//! Rust types that are elements of tensors, and their conversions.

use crate::dtype::DType;
use crate::scalar::Scalar;
use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::Complex;

/// A boolean as stored in memory: one byte, 0 or 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::Pod, bytemuck::Zeroable,
)]
#[repr(transparent)]
pub struct Bool(pub u8);

impl Bool {
    /// Whether the byte says true.
    #[inline(always)]
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    #[inline(always)]
    fn from(value: bool) -> Bool {
        Bool(u8::from(value))
    }
}

/// A Rust type that is the element type of one dtype.
pub trait Element: Pod + PartialEq + Send + Sync + std::fmt::Debug + 'static {
    /// The dtype whose elements are values of this type.
    const DTYPE: DType;
    /// The value nearest to `scalar`, by NumPy's casting.
    fn from_scalar(scalar: Scalar) -> Self;
    /// The value as a scalar.
    fn to_scalar(self) -> Scalar;
}

/// Conversion with NumPy's `astype` semantics on x86-64.
pub trait CastFrom<T> {
    /// `value` in this type.
    fn cast_from(value: T) -> Self;
}

macro_rules! int_element {
    ($($ty:ident, $dtype:ident, $variant:ident as $wide:ty;)*) => {$(
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            fn from_scalar(scalar: Scalar) -> $ty {
                match scalar {
                    Scalar::Float(f) | Scalar::Complex(f, _) => <$ty>::cast_from(f),
                    other => other.to_i128() as $ty,
                }
            }
            fn to_scalar(self) -> Scalar {
                Scalar::$variant(<$wide>::from(self))
            }
        }
    )*};
}
int_element! {
    i8, I8, Int as i64; i16, I16, Int as i64; i32, I32, Int as i64; i64, I64, Int as i64;
    u8, U8, Unsigned as u64; u16, U16, Unsigned as u64; u32, U32, Unsigned as u64; u64, U64, Unsigned as u64;
}

impl Element for Bool {
    const DTYPE: DType = DType::Bool;
    fn from_scalar(scalar: Scalar) -> Bool {
        scalar.is_true().into()
    }
    fn to_scalar(self) -> Scalar {
        Scalar::Bool(self.get())
    }
}

/// The nearest float16. (`f16::from_f64` rounds to float32 first, or cuts digits off, as the CPU has it.)
#[inline]
pub fn f16_of(x: f64) -> f16 {
    f16::from_f32(odd_f32(x))
}

/// The nearest bfloat16, rounded once.
#[inline]
pub fn bf16_of(x: f64) -> bf16 {
    bf16::from_f32(odd_f32(x))
}

/// A number in float32 that is odd if it is not exact: rounding it once more gives what rounding the number
/// once does, since it is neither a tie nor beyond one.
#[inline]
fn odd_f32(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) == x || x.is_nan() {
        return near;
    }
    let bits = near.to_bits();
    let towards_zero = bits - u32::from(x.abs() < f64::from(near.abs()));
    f32::from_bits(towards_zero | 1)
}

macro_rules! float_element {
    ($($ty:ident, $dtype:ident, $from:expr, $to:expr;)*) => {$(
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            fn from_scalar(scalar: Scalar) -> $ty {
                $from(scalar.to_f64())
            }
            fn to_scalar(self) -> Scalar {
                Scalar::Float($to(self))
            }
        }
    )*};
}
float_element! {
    f16, F16, f16_of, f16::to_f64;
    bf16, BF16, bf16_of, bf16::to_f64;
    f32, F32, |x: f64| x as f32, f64::from;
    f64, F64, std::convert::identity, std::convert::identity;
}

impl Element for Complex<f32> {
    const DTYPE: DType = DType::C64;
    fn from_scalar(scalar: Scalar) -> Self {
        Complex::new(scalar.to_f64() as f32, scalar.imaginary() as f32)
    }
    fn to_scalar(self) -> Scalar {
        Scalar::Complex(f64::from(self.re), f64::from(self.im))
    }
}

impl Element for Complex<f64> {
    const DTYPE: DType = DType::C128;
    fn from_scalar(scalar: Scalar) -> Self {
        Complex::new(scalar.to_f64(), scalar.imaginary())
    }
    fn to_scalar(self) -> Scalar {
        Scalar::Complex(self.re, self.im)
    }
}

/// A float as `i64`, converted as x86-64 does: a value that does not fit becomes the smallest integer.
#[inline(always)]
fn float_to_i64(value: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

#[inline(always)]
fn float_to_i32(value: f64) -> i32 {
    if value > -2_147_483_649.0 && value < 2_147_483_648.0 { value as i32 } else { i32::MIN }
}

#[inline(always)]
fn float_to_u64(value: f64) -> u64 {
    if (9_223_372_036_854_775_808.0..18_446_744_073_709_551_616.0).contains(&value) {
        value as u64
    } else {
        float_to_i64(value) as u64
    }
}

macro_rules! cast_plain {
    ($($from:ty => [$($to:ty),*];)*) => {$($(
        impl CastFrom<$from> for $to {
            #[inline(always)]
            fn cast_from(value: $from) -> $to { value as $to }
        }
    )*)*};
}
cast_plain! {
    i8 => [i8, i16, i32, i64, u8, u16, u32, u64, f32, f64];
    i16 => [i8, i16, i32, i64, u8, u16, u32, u64, f32, f64];
    i32 => [i8, i16, i32, i64, u8, u16, u32, u64, f32, f64];
    i64 => [i8, i16, i32, i64, u8, u16, u32, u64, f32, f64];
    u8 => [i8, i16, i32, i64, u8, u16, u32, u64, f32, f64];
    u16 => [i8, i16, i32, i64, u8, u16, u32, u64, f32, f64];
    u32 => [i8, i16, i32, i64, u8, u16, u32, u64, f32, f64];
    u64 => [i8, i16, i32, i64, u8, u16, u32, u64, f32, f64];
    f32 => [f32, f64];
    f64 => [f32, f64];
}

// NumPy on x86-64 converts through the narrowest of int32 and int64 that holds the target, and wraps from
// there.
macro_rules! cast_float_to_int {
    ($($from:ty),*) => {$(
        impl CastFrom<$from> for i8 { #[inline(always)] fn cast_from(v: $from) -> i8 { float_to_i32(f64::from(v)) as i8 } }
        impl CastFrom<$from> for i16 { #[inline(always)] fn cast_from(v: $from) -> i16 { float_to_i32(f64::from(v)) as i16 } }
        impl CastFrom<$from> for i32 { #[inline(always)] fn cast_from(v: $from) -> i32 { float_to_i32(f64::from(v)) } }
        impl CastFrom<$from> for i64 { #[inline(always)] fn cast_from(v: $from) -> i64 { float_to_i64(f64::from(v)) } }
        impl CastFrom<$from> for u8 { #[inline(always)] fn cast_from(v: $from) -> u8 { float_to_i32(f64::from(v)) as u8 } }
        impl CastFrom<$from> for u16 { #[inline(always)] fn cast_from(v: $from) -> u16 { float_to_i32(f64::from(v)) as u16 } }
        impl CastFrom<$from> for u32 { #[inline(always)] fn cast_from(v: $from) -> u32 { float_to_i64(f64::from(v)) as u32 } }
        impl CastFrom<$from> for u64 { #[inline(always)] fn cast_from(v: $from) -> u64 { float_to_u64(f64::from(v)) } }
    )*};
}
cast_float_to_int!(f32, f64);

macro_rules! cast_half {
    ($half:ident, $of:ident: $($other:ty),*) => {$(
        impl CastFrom<$half> for $other {
            #[inline(always)]
            fn cast_from(value: $half) -> $other { <$other>::cast_from(value.to_f32()) }
        }
        impl CastFrom<$other> for $half {
            #[inline(always)]
            fn cast_from(value: $other) -> $half { $of(f64::cast_from(value)) }
        }
    )*};
}
cast_half!(f16, f16_of: i8, i16, i32, i64, u8, u16, u32, u64, f64);
cast_half!(bf16, bf16_of: i8, i16, i32, i64, u8, u16, u32, u64, f64);

macro_rules! cast_half_f32 {
    ($($half:ident),*) => {$(
        impl CastFrom<$half> for f32 { #[inline(always)] fn cast_from(v: $half) -> f32 { v.to_f32() } }
        impl CastFrom<f32> for $half { #[inline(always)] fn cast_from(v: f32) -> $half { $half::from_f32(v) } }
        impl CastFrom<$half> for $half { #[inline(always)] fn cast_from(v: $half) -> $half { v } }
    )*};
}
cast_half_f32!(f16, bf16);
impl CastFrom<f16> for bf16 {
    #[inline(always)]
    fn cast_from(value: f16) -> bf16 {
        bf16::from_f32(value.to_f32())
    }
}
impl CastFrom<bf16> for f16 {
    #[inline(always)]
    fn cast_from(value: bf16) -> f16 {
        f16::from_f32(value.to_f32())
    }
}

macro_rules! cast_bool_and_complex {
    ($($real:ty),*) => {$(
        impl CastFrom<Bool> for $real {
            #[inline(always)]
            fn cast_from(value: Bool) -> $real { <$real>::cast_from(value.0) }
        }
        impl CastFrom<$real> for Bool {
            #[inline(always)]
            fn cast_from(value: $real) -> Bool { (value != <$real>::cast_from(0u8)).into() }
        }
        impl<T> CastFrom<Complex<T>> for $real where $real: CastFrom<T> {
            #[inline(always)]
            fn cast_from(value: Complex<T>) -> $real { <$real>::cast_from(value.re) }
        }
        impl CastFrom<$real> for Complex<f32> {
            #[inline(always)]
            fn cast_from(value: $real) -> Self { Complex::new(f32::cast_from(value), 0.0) }
        }
        impl CastFrom<$real> for Complex<f64> {
            #[inline(always)]
            fn cast_from(value: $real) -> Self { Complex::new(f64::cast_from(value), 0.0) }
        }
    )*};
}
cast_bool_and_complex!(i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64);

impl CastFrom<Bool> for Bool {
    #[inline(always)]
    fn cast_from(value: Bool) -> Bool {
        value
    }
}
impl<T: Copy + PartialEq + Default> CastFrom<Complex<T>> for Bool {
    #[inline(always)]
    fn cast_from(value: Complex<T>) -> Bool {
        (value.re != T::default() || value.im != T::default()).into()
    }
}
impl CastFrom<Bool> for Complex<f32> {
    #[inline(always)]
    fn cast_from(value: Bool) -> Self {
        Complex::new(f32::from(value.0), 0.0)
    }
}
impl CastFrom<Bool> for Complex<f64> {
    #[inline(always)]
    fn cast_from(value: Bool) -> Self {
        Complex::new(f64::from(value.0), 0.0)
    }
}
impl<A, B: CastFrom<A>> CastFrom<Complex<A>> for Complex<B> {
    #[inline(always)]
    fn cast_from(value: Complex<A>) -> Self {
        Complex::new(B::cast_from(value.re), B::cast_from(value.im))
    }
}

/// Runs `$body` with `$alias` standing for the element type of `$dtype`.
#[macro_export]
macro_rules! with_element {
    ($dtype:expr, $alias:ident => $body:expr) => {
        match $dtype {
            $crate::DType::Bool => {
                type $alias = $crate::Bool;
                $body
            }
            $crate::DType::I8 => {
                type $alias = i8;
                $body
            }
            $crate::DType::I16 => {
                type $alias = i16;
                $body
            }
            $crate::DType::I32 => {
                type $alias = i32;
                $body
            }
            $crate::DType::I64 => {
                type $alias = i64;
                $body
            }
            $crate::DType::U8 => {
                type $alias = u8;
                $body
            }
            $crate::DType::U16 => {
                type $alias = u16;
                $body
            }
            $crate::DType::U32 => {
                type $alias = u32;
                $body
            }
            $crate::DType::U64 => {
                type $alias = u64;
                $body
            }
            $crate::DType::F16 => {
                type $alias = $crate::f16;
                $body
            }
            $crate::DType::BF16 => {
                type $alias = $crate::bf16;
                $body
            }
            $crate::DType::F32 => {
                type $alias = f32;
                $body
            }
            $crate::DType::F64 => {
                type $alias = f64;
                $body
            }
            $crate::DType::C64 => {
                type $alias = $crate::Complex<f32>;
                $body
            }
            $crate::DType::C128 => {
                type $alias = $crate::Complex<f64>;
                $body
            }
        }
    };
}

/// Runs `$body` with `$alias` standing for the words as wide as the elements of `$dtype`; see
/// [`DType::words`].
macro_rules! with_words {
    ($dtype:expr, $alias:ident => $body:expr) => {
        match $dtype.size_bytes() {
            1 => {
                type $alias = u8;
                $body
            }
            2 => {
                type $alias = u16;
                $body
            }
            4 => {
                type $alias = u32;
                $body
            }
            8 => {
                type $alias = u64;
                $body
            }
            _ => {
                type $alias = $crate::Complex<f64>;
                $body
            }
        }
    };
}
pub(crate) use with_words;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_once() {
        let (tie, beyond) = (1.0 + 2f64.powi(-11), 2f64.powi(-40));
        let bits = |x: f64| f16_of(x).to_bits();
        assert_eq!([bits(tie), bits(tie + beyond), bits(tie - beyond)], [0x3C00, 0x3C01, 0x3C00]);
        assert_eq!(bits(-(tie + beyond)), 0xBC01);
        // The least float16 is 2^-24; half of it is a tie with zero.
        let least = 2f64.powi(-24);
        assert_eq!([bits(least / 2.0), bits(least / 2.0 + 1e-22), bits(-least / 4.0)], [0, 1, 0x8000]);
        assert_eq!(
            [bits(65_519.999_999), bits(65_520.0), bits(1e300), bits(-1e300)],
            [0x7BFF, 0x7C00, 0x7C00, 0xFC00]
        );
        assert!(f16_of(f64::NAN).is_nan() && f16_of(f64::INFINITY).is_infinite());
        let tie = 1.0 + 2f64.powi(-8);
        assert_eq!([bf16_of(tie).to_bits(), bf16_of(tie + beyond).to_bits()], [0x3F80, 0x3F81]);
        assert_eq!(f16::cast_from(1.0 + 2f64.powi(-11) + beyond).to_bits(), 0x3C01);
    }
}
