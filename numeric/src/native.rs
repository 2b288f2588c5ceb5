//! Rust's numbers and `bool` as elements of tensors.

use tharsis_kernels::element::Bool;
use tharsis_kernels::{Complex, Element, bf16, f16};

/// A Rust type whose values are elements of one dtype.
///
/// ```
/// use tharsis_numeric::array;
/// assert_eq!(array([true, false]).logical_not().to_vec::<bool>()?, [false, true]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
pub trait Native: Copy {
    /// Its type as an element of a tensor.
    type Element: Element;

    /// This value as an element.
    fn into_element(self) -> Self::Element;

    /// An element as a value of this type.
    fn from_element(element: Self::Element) -> Self;
}

macro_rules! natives {
    ($($number:ty),*) => {$(
        impl Native for $number {
            type Element = $number;

            fn into_element(self) -> $number {
                self
            }

            fn from_element(element: $number) -> $number {
                element
            }
        }
    )*};
}
natives!(i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, Complex<f32>, Complex<f64>);

impl Native for bool {
    type Element = Bool;

    fn into_element(self) -> Bool {
        Bool::from(self)
    }

    fn from_element(element: Bool) -> bool {
        element.get()
    }
}
