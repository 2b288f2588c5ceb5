//! Sums of products of a line with a shorter one at each of its places.

use crate::chunk::{Buffer, Chunk};
use crate::dtype::DType;
use crate::error::KernelError;
use crate::ufunc::Number;
use num_complex::Complex;

/// For each place where the second line fits into the first, the sum of the products of its elements with
/// those beneath it: (n + k - 1,) and (k,) to (n,), of int64, uint64, float64 or complex128.
///
/// # Errors
/// `NoLoop` for other dtypes.
pub fn correlate(x: &Chunk, kernel: &Chunk) -> Result<Chunk, KernelError> {
    match x.dtype() {
        DType::I64 => correlate_of::<i64>(x, kernel),
        DType::U64 => correlate_of::<u64>(x, kernel),
        DType::F64 => correlate_of::<f64>(x, kernel),
        DType::C128 => correlate_of::<Complex<f64>>(x, kernel),
        dtype => Err(KernelError::NoLoop { function: "correlate", dtypes: vec![dtype] }),
    }
}

fn correlate_of<T: Number>(x: &Chunk, kernel: &Chunk) -> Result<Chunk, KernelError> {
    let (from, kernel) = (x.to_vec::<T>()?, kernel.to_vec::<T>()?);
    let count = (from.len() + 1).saturating_sub(kernel.len());
    let mut out = Buffer::for_overwrite(count * std::mem::size_of::<T>());
    for (block, to) in out.elements_mut::<T>().chunks_mut(BLOCK).enumerate() {
        let from = &from[block * BLOCK..];
        to.fill(T::ZERO);
        // One element of the kernel at a time over a block that stays in the nearest cache.
        for (shift, &factor) in kernel.iter().enumerate() {
            for (sum, &element) in to.iter_mut().zip(&from[shift..]) {
                *sum = sum.plus(factor.times(element));
            }
        }
    }
    Chunk::contiguous(T::DTYPE, &[count], out)
}

/// Places whose sums are made at once.
const BLOCK: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_the_sum_of_the_products_beneath_the_kernel() {
        let x: Vec<i64> = (0..3000).map(|i| i * 7 % 11 - 5).collect();
        for kernel in [vec![2], vec![1, -1, 3], (0..40).collect::<Vec<i64>>()] {
            let chunks = [&x, &kernel].map(|line| Chunk::from_elements(&[line.len()], line).unwrap());
            let found = correlate(&chunks[0], &chunks[1]).unwrap().to_vec::<i64>().unwrap();
            let at = |i: usize| kernel.iter().zip(&x[i..]).map(|(a, b)| a * b).sum::<i64>();
            let expected: Vec<i64> = (0..x.len() + 1 - kernel.len()).map(at).collect();
            assert_eq!(found, expected);
        }
    }
}
