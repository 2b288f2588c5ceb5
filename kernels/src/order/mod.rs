//! The order in which elements are sorted: NumPy's, in which NaN comes last and zeros of both signs are
//! equal.
//!
//! Every element has a key, a number whose own order is that of the elements. So comparisons are those of
//! integers, whatever the dtype.

mod digits;
mod sort;

pub(crate) use digits::Digits;
pub(crate) use sort::{in_order, join, sort_elements, sort_pieces};

use crate::element::{Bool, Element};
use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use num_complex::Complex;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// An element with a place in the order of sorting.
pub trait Ordered: Element {
    /// Number whose order is that of the elements; equal for elements that sorting takes for equal.
    type Key: Key;
    /// The key of this element.
    fn key(self) -> Self::Key;
    /// An element with this key, which elements of one dtype have.
    fn of_key(key: Self::Key) -> Self;
}

/// The key of an element.
pub trait Key: Pod + Ord + Into<Wide> {
    /// Whether [`Key::prefix`] is the whole key.
    const IS_NARROW: bool;
    /// The upper 64 bits: of two keys, the smaller has no larger one.
    fn prefix(self) -> u64;
    /// The key of the opposite order.
    fn flipped(self) -> Self;
    /// The key that became this wide one.
    fn narrowed(wide: Wide) -> Self;
}

/// A key of any dtype: of two keys of one dtype, the smaller stays smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct Wide {
    /// The upper half.
    pub high: u64,
    /// The lower half.
    pub low: u64,
}

/// Whether the smallest element comes first, or the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Direction {
    /// The smallest first, NaN last.
    Ascending,
    /// The largest first, NaN before it. Equal elements keep their order.
    Descending,
}

impl Direction {
    /// The order of two keys.
    #[inline(always)]
    pub fn compare<K: Ord>(self, a: &K, b: &K) -> Ordering {
        match self {
            Direction::Ascending => a.cmp(b),
            Direction::Descending => b.cmp(a),
        }
    }

    /// A key that ascends in this direction.
    #[inline(always)]
    pub fn ascending<K: Key>(self, key: K) -> K {
        match self {
            Direction::Ascending => key,
            Direction::Descending => key.flipped(),
        }
    }
}

impl Key for Wide {
    const IS_NARROW: bool = false;
    #[inline(always)]
    fn prefix(self) -> u64 {
        self.high
    }
    #[inline(always)]
    fn flipped(self) -> Wide {
        Wide { high: !self.high, low: !self.low }
    }
    #[inline(always)]
    fn narrowed(wide: Wide) -> Wide {
        wide
    }
}

macro_rules! unsigned {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Wide {
            fn from(key: $ty) -> Wide {
                Wide { high: 0, low: u64::from(key) }
            }
        }
        impl Key for $ty {
            const IS_NARROW: bool = true;
            #[inline(always)]
            fn prefix(self) -> u64 { u64::from(self) }
            #[inline(always)]
            fn flipped(self) -> $ty { !self }
            #[inline(always)]
            fn narrowed(wide: Wide) -> $ty { wide.low as $ty }
        }
        impl Ordered for $ty {
            type Key = $ty;
            #[inline(always)]
            fn key(self) -> $ty { self }
            #[inline(always)]
            fn of_key(key: $ty) -> $ty { key }
        }
    )*};
}
unsigned!(u8, u16, u32, u64);

macro_rules! signed {
    ($($ty:ty as $unsigned:ty),*) => {$(
        impl Ordered for $ty {
            type Key = $unsigned;
            #[inline(always)]
            fn key(self) -> $unsigned { self as $unsigned ^ (1 << (<$unsigned>::BITS - 1)) }
            #[inline(always)]
            fn of_key(key: $unsigned) -> $ty { (key ^ (1 << (<$unsigned>::BITS - 1))) as $ty }
        }
    )*};
}
signed!(i8 as u8, i16 as u16, i32 as u32, i64 as u64);

impl Ordered for Bool {
    type Key = u8;
    #[inline(always)]
    fn key(self) -> u8 {
        self.0
    }
    #[inline(always)]
    fn of_key(key: u8) -> Bool {
        Bool(key)
    }
}

macro_rules! floats {
    ($($ty:ty as $bits:ty, $zero:expr;)*) => {$(
        impl Ordered for $ty {
            type Key = $bits;
            /// The bits of a float are ordered like its magnitude: those of negative ones are inverted, and
            /// positive ones put above them.
            #[inline(always)]
            fn key(self) -> $bits {
                if self.is_nan() {
                    return <$bits>::MAX;
                }
                let bits = if self == $zero { 0 } else { self.to_bits() };
                let sign = 1 << (<$bits>::BITS - 1);
                if bits & sign == 0 { bits | sign } else { !bits }
            }
            #[inline(always)]
            fn of_key(key: $bits) -> $ty {
                let sign = 1 << (<$bits>::BITS - 1);
                <$ty>::from_bits(if key & sign == 0 { !key } else { key ^ sign })
            }
        }
    )*};
}
floats! {
    f16 as u16, f16::from_bits(0);
    bf16 as u16, bf16::from_bits(0);
    f32 as u32, 0.0;
    f64 as u64, 0.0;
}

macro_rules! complex {
    ($($ty:ty),*) => {$(
        impl Ordered for Complex<$ty> {
            type Key = Wide;
            /// Ordered by the real part, then by the imaginary one. Those with a NaN part come behind all
            /// others: first those with only a NaN imaginary part, then those with only a NaN real part.
            #[inline]
            fn key(self) -> Wide {
                let (re, im) = (f64::from(self.re), f64::from(self.im));
                match (re.is_nan(), im.is_nan()) {
                    (false, false) => Wide { high: re.key(), low: im.key() },
                    (false, true) => Wide { high: NAN_IMAGINARY, low: re.key() },
                    (true, false) => Wide { high: NAN_REAL, low: im.key() },
                    (true, true) => Wide { high: u64::MAX, low: u64::MAX },
                }
            }
            fn of_key(Wide { high, low }: Wide) -> Complex<$ty> {
                let (first, second) = (f64::of_key(high) as $ty, f64::of_key(low) as $ty);
                match high {
                    NAN_IMAGINARY => Complex::new(second, <$ty>::NAN),
                    NAN_REAL => Complex::new(<$ty>::NAN, second),
                    u64::MAX => Complex::new(<$ty>::NAN, <$ty>::NAN),
                    _ => Complex::new(first, second),
                }
            }
        }
    )*};
}
complex!(f32, f64);

/// Upper halves of keys above that of infinity, which no number has.
const NAN_IMAGINARY: u64 = u64::MAX - 2;
const NAN_REAL: u64 = u64::MAX - 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that keys ascend strictly.
    fn ascending<T: Ordered>(elements: &[T]) {
        for pair in elements.windows(2) {
            let (a, b) = (pair[0].key(), pair[1].key());
            assert!(a < b && a.into() < b.into() && b.flipped() < a.flipped(), "{pair:?}");
            assert!(T::of_key(a).key() == a && T::Key::narrowed(a.into()) == a, "{pair:?}");
        }
    }

    #[test]
    fn keys_ascend_with_their_elements() {
        ascending(&[i8::MIN, -1, 0, 1, i8::MAX]);
        ascending(&[i64::MIN, -1, 0, 1, i64::MAX]);
        ascending(&[0, 1, u64::MAX]);
        ascending(&[Bool(0), Bool(1)]);
        let tiny = f64::from_bits(1);
        ascending(&[f64::NEG_INFINITY, -1.5, -tiny, 0.0, tiny, 1.5, f64::MAX, f64::INFINITY, f64::NAN]);
        ascending(&[f32::NEG_INFINITY, f32::MIN, -1.0, 0.0, 1.0, f32::INFINITY, f32::NAN]);
        ascending(&[f16::NEG_INFINITY, f16::from_f32(-1.0), f16::from_f32(0.0), f16::INFINITY, f16::NAN]);
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let parts = [(-inf, 0.0), (0.0, -1.0), (0.0, 1.0), (1.0, -inf), (inf, inf), (1.0, nan), (2.0, nan)];
        let behind = [(nan, -1.0), (nan, inf), (nan, nan)];
        let all: Vec<Complex<f64>> =
            parts.iter().chain(&behind).map(|&(re, im)| Complex::new(re, im)).collect();
        ascending(&all);
    }

    #[test]
    fn zeros_are_equal_and_so_are_nans_of_any_bits() {
        assert_eq!((-0.0f64).key(), 0.0f64.key());
        assert_eq!((-f32::NAN).key(), f32::NAN.key());
        assert_eq!(Complex::new(-0.0, 0.0f32).key(), Complex::new(0.0, -0.0f32).key());
    }
}
