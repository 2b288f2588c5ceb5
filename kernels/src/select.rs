//! Rows and elements selected by their values. Their number is known only after the values were read.

use crate::chunk::Chunk;
use crate::dtype::DType;
use crate::element::{Bool, Element};
use crate::error::KernelError;
use crate::ufunc::Compare;
use crate::with_element;
use num_complex::Complex;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Kind of selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Select {
    /// The rows where a mask is true: (n, ..) and a bool mask of the same shape, constant in a row.
    Compress,
    /// The distinct elements in ascending order, NaN last and once: (n).
    Distinct,
}

impl Select {
    /// The selected rows, or the distinct elements.
    ///
    /// # Errors
    /// `NoLoop` for dtypes without an order, `WrongDType` for a mask of another dtype than bool.
    pub fn run(self, args: &[Chunk]) -> Result<Chunk, KernelError> {
        match self {
            Select::Compress => with_element!(args[0].dtype(), T => compress::<T>(&args[0], &args[1])),
            Select::Distinct => distinct(&args[0]),
        }
    }

    /// Number of rows and of selected rows, as (1, 2) of int64. The only argument is the mask, or the
    /// elements.
    ///
    /// # Errors
    /// As [`Select::run`].
    pub fn count(self, arg: &Chunk) -> Result<Chunk, KernelError> {
        let rows = arg.shape().first().copied().unwrap_or(1);
        let chosen = match self {
            Select::Compress => arg.to_vec::<Bool>()?.iter().filter(|is_chosen| is_chosen.0 != 0).count(),
            Select::Distinct => distinct(arg)?.len(),
        };
        Chunk::from_elements(&[1, 2], &[rows as i64, chosen as i64])
    }
}

fn compress<T: Element>(x: &Chunk, mask: &Chunk) -> Result<Chunk, KernelError> {
    let (elements, mask) = (x.to_vec::<T>()?, mask.to_vec::<Bool>()?);
    let width: usize = x.shape()[1..].iter().product();
    let mut kept = Vec::new();
    let mut rows = 0;
    for (row, is_chosen) in mask.iter().step_by(width.max(1)).enumerate() {
        if is_chosen.0 != 0 {
            rows += 1;
            kept.extend_from_slice(&elements[row * width..(row + 1) * width]);
        }
    }
    Chunk::from_elements(&[&[rows], &x.shape()[1..]].concat(), &kept)
}

fn distinct(x: &Chunk) -> Result<Chunk, KernelError> {
    match x.dtype() {
        DType::Bool => sorted::<Bool>(x),
        DType::I8 => sorted::<i8>(x),
        DType::I16 => sorted::<i16>(x),
        DType::I32 => sorted::<i32>(x),
        DType::I64 => sorted::<i64>(x),
        DType::U8 => sorted::<u8>(x),
        DType::U16 => sorted::<u16>(x),
        DType::U32 => sorted::<u32>(x),
        DType::U64 => sorted::<u64>(x),
        DType::F32 => sorted::<f32>(x),
        DType::F64 => sorted::<f64>(x),
        DType::C64 => sorted::<Complex<f32>>(x),
        DType::C128 => sorted::<Complex<f64>>(x),
        dtype => Err(KernelError::NoLoop { function: "unique", dtypes: vec![dtype] }),
    }
}

/// Order in which elements are sorted.
trait Sorted: Compare {
    /// The order of two elements if at least one is NaN: numbers first.
    fn order_nan(self, other: Self) -> Ordering {
        self.is_nan().cmp(&other.is_nan())
    }
}

macro_rules! plainly {
    ($($t:ty),*) => {$(impl Sorted for $t {})*};
}
plainly!(Bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

macro_rules! by_parts {
    ($($t:ty),*) => {$(
        impl Sorted for Complex<$t> {
            /// As in NumPy: elements with only a NaN imaginary part come first, then those with only a NaN
            /// real part.
            fn order_nan(self, other: Self) -> Ordering {
                let place = |z: Self| 2 * u8::from(z.re.is_nan()) + u8::from(z.im.is_nan());
                let part = |z: Self| if z.re.is_nan() { z.im } else { z.re };
                let parts = part(self).partial_cmp(&part(other)).unwrap_or(Ordering::Equal);
                place(self).cmp(&place(other)).then(parts)
            }
        }
    )*};
}
by_parts!(f32, f64);

fn sorted<T: Sorted>(x: &Chunk) -> Result<Chunk, KernelError> {
    let mut elements = x.to_vec::<T>()?;
    // A stable sort, so that of a positive and a negative zero the first one is kept.
    elements.sort_by(|&a, &b| match (a.lt(b), b.lt(a)) {
        _ if a.is_nan() || b.is_nan() => a.order_nan(b),
        (true, _) => Ordering::Less,
        (_, true) => Ordering::Greater,
        _ => Ordering::Equal,
    });
    elements.dedup_by(|b, a| (a.is_nan() && b.is_nan()) || (!a.lt(*b) && !b.is_nan()));
    Chunk::from_elements(&[elements.len()], &elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_where_the_mask_is_true_stay() {
        let x = Chunk::from_elements(&[3, 2], &[1, 2, 3, 4, 5, 6i32]).unwrap();
        let mask = [1, 1, 0, 0, 1, 1].map(Bool);
        let mask = Chunk::from_elements(&[3, 2], &mask).unwrap();
        let made = Select::Compress.run(&[x, mask]).unwrap();
        assert_eq!((made.shape(), made.to_vec::<i32>().unwrap()), (&[2, 2][..], vec![1, 2, 5, 6]));
        let rows = Chunk::from_elements(&[3], &[1, 0, 1].map(Bool)).unwrap();
        assert_eq!(Select::Compress.count(&rows).unwrap().to_vec::<i64>().unwrap(), [3, 2]);
    }

    #[test]
    fn distinct_elements_ascend_and_there_is_one_nan() {
        let x = [2.0, f64::NAN, -0.0, 1.0, 0.0, f64::NAN, f64::NEG_INFINITY, 2.0];
        let x = Chunk::from_elements(&[8], &x).unwrap();
        let made = Select::Distinct.run(std::slice::from_ref(&x)).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(made[..4], [f64::NEG_INFINITY, 0.0, 1.0, 2.0]);
        assert!(made.len() == 5 && made[4].is_nan() && made[1].is_sign_negative());
        assert_eq!(Select::Distinct.count(&x).unwrap().to_vec::<i64>().unwrap(), [8, 5]);
    }

    #[test]
    fn complex_numbers_are_sorted_by_their_parts() {
        let nan = f64::NAN;
        let x = [(nan, 1.0), (1.0, nan), (0.0, 2.0), (0.0, 1.0), (nan, nan), (0.0, 2.0)];
        let x = Chunk::from_elements(&[6], &x.map(|(re, im)| Complex::new(re, im))).unwrap();
        let made = Select::Distinct.run(&[x]).unwrap().to_vec::<Complex<f64>>().unwrap();
        assert_eq!(made[..2], [Complex::new(0.0, 1.0), Complex::new(0.0, 2.0)]);
        assert!(made.len() == 3 && made[2].re == 1.0 && made[2].im.is_nan());
    }
}
