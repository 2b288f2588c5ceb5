//! Rows and elements selected by their values. Their number is known only after the values were read.

use crate::chunk::{Buffer, Chunk};
use crate::dtype::DType;
use crate::element::{Bool, Element, with_words};
use crate::error::KernelError;
use crate::order::{Direction, Ordered, sort_elements};
use crate::ufunc::Compare;
use num_complex::Complex;
use serde::{Deserialize, Serialize};

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
            Select::Compress => {
                let (dtype, words) = (args[0].dtype(), args[0].as_words());
                with_words!(dtype, T => compress::<T>(&words, &args[1]))?.of_words(dtype)
            }
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
            Select::Compress => arg.elements::<Bool>()?.iter().filter(|is_chosen| is_chosen.0 != 0).count(),
            Select::Distinct => distinct(arg)?.len(),
        };
        Chunk::from_elements(&[1, 2], &[rows as i64, chosen as i64])
    }
}

fn compress<T: Element>(x: &Chunk, mask: &Chunk) -> Result<Chunk, KernelError> {
    let (elements, mask) = (x.elements::<T>()?, mask.elements::<Bool>()?);
    let width: usize = x.shape()[1..].iter().product();
    let chosen = || mask.iter().step_by(width.max(1)).map(|is_chosen| is_chosen.get());
    let rows = chosen().filter(|&is_chosen| is_chosen).count();
    let mut kept = Buffer::for_overwrite(rows * width * size_of::<T>());
    let to = &mut kept.elements_mut::<T>()[..rows * width];
    if width == 1 {
        // Each is written, and overwritten by the next one unless it stays: the mask is no branch.
        let mut at = 0;
        for (&x, is_chosen) in elements.iter().zip(chosen()) {
            let Some(place) = to.get_mut(at) else { break };
            *place = x;
            at += usize::from(is_chosen);
        }
    } else if width != 0 {
        let mut places = to.chunks_exact_mut(width);
        for (row, _) in elements.chunks_exact(width).zip(chosen()).filter(|&(_, is_chosen)| is_chosen) {
            places.by_ref().take(1).for_each(|place| place.copy_from_slice(row));
        }
    }
    Chunk::contiguous(T::DTYPE, &[&[rows], &x.shape()[1..]].concat(), kept)
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

/// The distinct elements in order. Of a positive and a negative zero the first one is kept.
fn sorted<T: Ordered + Compare>(x: &Chunk) -> Result<Chunk, KernelError> {
    let from = x.elements::<T>()?;
    let mut memory = Buffer::for_overwrite(from.len() * size_of::<T>());
    let elements = &mut memory.elements_mut::<T>()[..from.len()];
    elements.copy_from_slice(&from);
    sort_elements(elements, Direction::Ascending);
    let mut kept = 0;
    for at in 0..elements.len() {
        let x = elements[at];
        let is_known = 0 < kept && {
            let last = elements[kept - 1];
            last.key() == x.key() || (last.is_nan() && x.is_nan())
        };
        elements[kept] = x;
        kept += usize::from(!is_known);
    }
    if kept == elements.len() {
        Chunk::contiguous(T::DTYPE, &[kept], memory)
    } else {
        Chunk::from_elements(&[kept], &elements[..kept])
    }
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
