//! Numbers that members of a group reduce.

use crate::Element;
use serde::{Deserialize, Serialize};

/// The way in which the values of the members become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reduce {
    /// The sum. Integers wrap.
    Sum,
    /// The product. Integers wrap.
    Product,
    /// The smallest one; NaN if one is NaN.
    Min,
    /// The largest one; NaN if one is NaN.
    Max,
}

/// Numbers that can be reduced.
pub trait Number: Element {
    /// Two values as one.
    #[must_use]
    fn reduce(self, other: Self, reduce: Reduce) -> Self;
}

macro_rules! integers {
    ($($ty:ty)*) => {$(
        impl Number for $ty {
            fn reduce(self, other: Self, reduce: Reduce) -> Self {
                match reduce {
                    Reduce::Sum => self.wrapping_add(other),
                    Reduce::Product => self.wrapping_mul(other),
                    Reduce::Min => self.min(other),
                    Reduce::Max => self.max(other),
                }
            }
        }
    )*};
}

macro_rules! floats {
    ($($ty:ty)*) => {$(
        impl Number for $ty {
            fn reduce(self, other: Self, reduce: Reduce) -> Self {
                match reduce {
                    Reduce::Sum => self + other,
                    Reduce::Product => self * other,
                    Reduce::Min if self < other || self.is_nan() => self,
                    Reduce::Max if self > other || self.is_nan() => self,
                    Reduce::Min | Reduce::Max => other,
                }
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);
floats!(f32 f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nan_is_never_lost() {
        for reduce in [Reduce::Sum, Reduce::Product, Reduce::Min, Reduce::Max] {
            assert!(1.0_f64.reduce(f64::NAN, reduce).is_nan(), "{reduce:?}");
            assert!(f64::NAN.reduce(1.0, reduce).is_nan(), "{reduce:?}");
        }
        assert_eq!((3.0_f32.reduce(2.0, Reduce::Min), 3.0_f32.reduce(2.0, Reduce::Max)), (2.0, 3.0));
        assert_eq!(200_u8.reduce(100, Reduce::Sum), 44);
    }
}
