//! Sums of matrix products of chunks.
//!
//! Floats and complex numbers go to faer, which picks its kernels for the CPU at run time; integers wrap and
//! are multiplied by a plain loop.

use crate::chunk::{Buffer, Chunk};
use crate::dtype::DType;
use crate::element::{Bool, Element, with_words};
use crate::error::KernelError;
use crate::ufunc::Number;
#[cfg(feature = "dense")]
use faer::{Accum, MatMut, MatRef};
#[cfg(feature = "dense")]
use num_complex::Complex;
#[cfg(feature = "dense")]
use tharsis_dense::DenseField;

/// The sum of products (.., m, k) x (.., k, n) over pieces of k: an array (.., m, n).
#[derive(Debug)]
pub struct Accumulator {
    dtype: DType,
    shape: Vec<usize>,
    sum: Buffer,
    /// Whether nothing was added yet; then the contents of `sum` are unspecified.
    is_fresh: bool,
    /// Whether what is above the diagonal is that below it, and was not computed.
    is_lower: bool,
}

impl Accumulator {
    /// Zeros of this shape, whose last two extents are m and n.
    ///
    /// # Errors
    /// `Malformed` for fewer than two axes.
    pub fn new(dtype: DType, shape: &[usize]) -> Result<Accumulator, KernelError> {
        Accumulator::with_memory(dtype, shape, Buffer::for_overwrite)
    }

    /// As [`Accumulator::new`]; `memory` allocates the given number of bytes.
    ///
    /// # Errors
    /// As [`Accumulator::new`].
    pub fn with_memory(
        dtype: DType,
        shape: &[usize],
        memory: impl FnOnce(usize) -> Buffer,
    ) -> Result<Accumulator, KernelError> {
        if shape.len() < 2 {
            return Err(KernelError::Malformed("a product of fewer than two axes".to_owned()));
        }
        let sum = memory(shape.iter().product::<usize>() * dtype.size_bytes());
        Ok(Accumulator { dtype, shape: shape.to_vec(), sum, is_fresh: true, is_lower: false })
    }

    /// Adds the product of two chunks.
    ///
    /// # Errors
    /// `Malformed` if the shapes do not fit, `NoLoop` for half precision.
    pub fn add(&mut self, left: &Chunk, right: &Chunk) -> Result<(), KernelError> {
        match self.dtype {
            #[cfg(feature = "dense")]
            DType::F32 => self.add_fields::<f32>(left, right),
            #[cfg(feature = "dense")]
            DType::F64 => self.add_fields::<f64>(left, right),
            #[cfg(feature = "dense")]
            DType::C64 => self.add_fields::<Complex<f32>>(left, right),
            #[cfg(feature = "dense")]
            DType::C128 => self.add_fields::<Complex<f64>>(left, right),
            #[cfg(not(feature = "dense"))]
            DType::F32 | DType::F64 | DType::C64 | DType::C128 => {
                Err(KernelError::NotBuilt("products of floats"))
            }
            DType::Bool => self.add_numbers::<Bool>(left, right),
            DType::I8 => self.add_numbers::<i8>(left, right),
            DType::I16 => self.add_numbers::<i16>(left, right),
            DType::I32 => self.add_numbers::<i32>(left, right),
            DType::I64 => self.add_numbers::<i64>(left, right),
            DType::U8 => self.add_numbers::<u8>(left, right),
            DType::U16 => self.add_numbers::<u16>(left, right),
            DType::U32 => self.add_numbers::<u32>(left, right),
            DType::U64 => self.add_numbers::<u64>(left, right),
            DType::F16 | DType::BF16 => {
                Err(KernelError::NoLoop { function: "matmul", dtypes: vec![self.dtype] })
            }
        }
    }

    /// Adds the product of the transpose of a chunk and the chunk itself, of which half is computed where it
    /// is large. All that is added to one sum is added so, or nothing.
    ///
    /// # Errors
    /// As [`Accumulator::add`].
    pub fn add_gram(&mut self, right: &Chunk) -> Result<(), KernelError> {
        let is_large = matches!(self.shape[..], [n, _] if GRAM_COLUMNS_MIN <= n);
        self.is_lower = is_large && (self.dtype.is_float() || self.dtype.is_complex());
        let left = right.transposed()?;
        match self.dtype {
            #[cfg(feature = "dense")]
            DType::F32 if is_large => self.add_lower::<f32>(&left, right),
            #[cfg(feature = "dense")]
            DType::F64 if is_large => self.add_lower::<f64>(&left, right),
            #[cfg(feature = "dense")]
            DType::C64 if is_large => self.add_lower::<Complex<f32>>(&left, right),
            #[cfg(feature = "dense")]
            DType::C128 if is_large => self.add_lower::<Complex<f64>>(&left, right),
            _ => self.add(&left, right),
        }
    }

    /// The sum.
    ///
    /// # Errors
    /// None in practice.
    pub fn finish(mut self) -> Result<Chunk, KernelError> {
        self.clear_if_fresh();
        if let ([n, _], true) = (&self.shape[..], self.is_lower) {
            let n = *n;
            with_words!(self.dtype, T => mirror(&mut self.sum.elements_mut::<T>()[..n * n], n));
        }
        Chunk::contiguous(self.dtype, &self.shape, self.sum)
    }

    fn clear_if_fresh(&mut self) {
        if std::mem::take(&mut self.is_fresh) {
            self.sum.elements_mut::<u8>().fill(0);
        }
    }

    /// Calls `multiply` for each matrix of the batch with m, k, n, whether to overwrite, both factors, and
    /// the memory of the sum.
    fn each_matrix<T: Element>(
        &mut self,
        left: &Chunk,
        right: &Chunk,
        multiply: impl Fn([usize; 3], bool, &Matrix<'_, T>, &Matrix<'_, T>, &mut [T]),
    ) -> Result<(), KernelError> {
        let rank = self.shape.len();
        let (m, n) = (self.shape[rank - 2], self.shape[rank - 1]);
        let (left_rank, right_rank) = (left.shape().len(), right.shape().len());
        let malformed =
            || KernelError::Malformed(format!("a product of {:?} and {:?}", left.shape(), right.shape()));
        if left_rank < 2 || right_rank < 2 || left.dtype() != T::DTYPE || right.dtype() != T::DTYPE {
            return Err(malformed());
        }
        let k = left.shape()[left_rank - 1];
        let batch: usize = left.shape()[..left_rank - 2].iter().product();
        // A smaller batch would leave some of the matrices without contents.
        let is_whole = self.shape[..rank - 2].iter().product::<usize>() == batch;
        if left.shape()[left_rank - 2] != m || right.shape()[right_rank - 2..] != [k, n] {
            return Err(malformed());
        }
        if m == 0 || n == 0 || k == 0 || batch == 0 {
            return Ok(());
        }
        let replaces = self.is_fresh && is_whole && (T::DTYPE.is_float() || T::DTYPE.is_complex());
        if !replaces {
            self.clear_if_fresh();
        }
        self.is_fresh = false;
        let sums = self.sum.elements_mut::<T>();
        for index in 0..batch {
            let (a, b) = (Matrix::new(left, index)?, Matrix::new(right, index)?);
            multiply([m, k, n], replaces, &a, &b, &mut sums[index * m * n..(index + 1) * m * n]);
        }
        Ok(())
    }

    #[cfg(feature = "dense")]
    fn add_fields<T: Element + DenseField>(
        &mut self,
        left: &Chunk,
        right: &Chunk,
    ) -> Result<(), KernelError> {
        self.each_matrix::<T>(left, right, |[m, _, n], replaces, a, b, sum| {
            let sum = MatMut::from_row_major_slice_mut(sum, m, n);
            T::multiply(sum, accumulation(replaces), a.as_faer(), b.as_faer(), T::one_impl());
        })
    }

    #[cfg(feature = "dense")]
    fn add_lower<T: Element + DenseField>(&mut self, left: &Chunk, right: &Chunk) -> Result<(), KernelError> {
        self.each_matrix::<T>(left, right, |[m, _, n], replaces, a, b, sum| {
            let sum = MatMut::from_row_major_slice_mut(sum, m, n);
            T::multiply_lower(sum, accumulation(replaces), a.as_faer(), b.as_faer());
        })
    }

    fn add_numbers<T: Number>(&mut self, left: &Chunk, right: &Chunk) -> Result<(), KernelError> {
        self.each_matrix::<T>(left, right, |[m, k, n], _, a, b, sum| {
            for i in 0..m {
                let row = &mut sum[i * n..(i + 1) * n];
                for depth in 0..k {
                    let factor = a.at(i, depth);
                    row.iter_mut().enumerate().for_each(|(j, x)| *x = x.plus(factor.times(b.at(depth, j))));
                }
            }
        })
    }
}

#[cfg(feature = "dense")]
fn accumulation(replaces: bool) -> Accum {
    if replaces { Accum::Replace } else { Accum::Add }
}

/// Puts the elements below the diagonal of a matrix (n, n) above it, square by square so that both stay in
/// the cache.
fn mirror<T: Element>(matrix: &mut [T], n: usize) {
    for (top, left) in
        (0..n).step_by(SQUARE).flat_map(|top| (0..=top).step_by(SQUARE).map(move |left| (top, left)))
    {
        for row in top..(top + SQUARE).min(n) {
            for column in left..(left + SQUARE).min(row) {
                matrix[column * n + row] = matrix[row * n + column];
            }
        }
    }
}

const SQUARE: usize = 32;
/// With fewer columns, halves take longer than the whole.
const GRAM_COLUMNS_MIN: usize = 256;

/// One matrix of a batch; one of its strides is 1.
pub(crate) struct Matrix<'a, T: Element> {
    elements: std::borrow::Cow<'a, [T]>,
    #[cfg(feature = "dense")]
    rows: usize,
    #[cfg(feature = "dense")]
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a, T: Element> Matrix<'a, T> {
    /// Matrix number `index` of the leading axes; copied if neither of its strides is 1.
    pub(crate) fn new(chunk: &'a Chunk, mut index: usize) -> Result<Matrix<'a, T>, KernelError> {
        let (shape, strides) = (chunk.shape(), chunk.strides());
        let rank = shape.len();
        let mut offset = chunk.offset() as i64;
        for axis in (0..rank - 2).rev() {
            offset += (index % shape[axis]) as i64 * strides[axis];
            index /= shape[axis];
        }
        let (rows, columns) = (shape[rank - 2], shape[rank - 1]);
        let (row_stride, column_stride) = (strides[rank - 2], strides[rank - 1]);
        let all = chunk.buffer().elements::<T>();
        let span = |outer: usize, stride: i64, inner: usize| (outer - 1) * stride as usize + inner;
        if column_stride == 1 && columns as i64 <= row_stride {
            let elements = &all[offset as usize..offset as usize + span(rows, row_stride, columns)];
            return Ok(Matrix {
                elements: elements.into(),
                #[cfg(feature = "dense")]
                rows,
                #[cfg(feature = "dense")]
                columns,
                row_stride: row_stride as usize,
                column_stride: 1,
            });
        }
        if row_stride == 1 && rows as i64 <= column_stride {
            let elements = &all[offset as usize..offset as usize + span(columns, column_stride, rows)];
            return Ok(Matrix {
                elements: elements.into(),
                #[cfg(feature = "dense")]
                rows,
                #[cfg(feature = "dense")]
                columns,
                row_stride: 1,
                column_stride: column_stride as usize,
            });
        }
        let view = Chunk::strided(
            T::DTYPE,
            &[rows, columns],
            &[row_stride, column_stride],
            offset as usize,
            chunk.buffer().clone(),
        )?;
        Ok(Matrix {
            elements: view.to_vec::<T>()?.into(),
            #[cfg(feature = "dense")]
            rows,
            #[cfg(feature = "dense")]
            columns,
            row_stride: columns,
            column_stride: 1,
        })
    }

    #[inline]
    fn at(&self, row: usize, column: usize) -> T {
        self.elements[row * self.row_stride + column * self.column_stride]
    }

    #[cfg(feature = "dense")]
    pub(crate) fn as_faer(&self) -> MatRef<'_, T> {
        if self.column_stride == 1 {
            MatRef::from_row_major_slice_with_stride(&self.elements, self.rows, self.columns, self.row_stride)
        } else {
            MatRef::from_column_major_slice_with_stride(
                &self.elements,
                self.rows,
                self.columns,
                self.column_stride,
            )
        }
    }
}

#[cfg(test)]
#[cfg(feature = "dense")]
mod tests {
    use super::*;

    #[test]
    fn a_product_with_the_own_transpose_is_that_of_both_factors() {
        let n = GRAM_COLUMNS_MIN + SQUARE + 3;
        let elements: Vec<f64> = (0..2 * 5 * n).map(|at| ((at * 37) % 101) as f64 - 50.0).collect();
        let pieces = elements.chunks(5 * n).map(|piece| Chunk::from_elements(&[5, n], piece).unwrap());
        let [mut half, mut whole] = [(); 2].map(|()| Accumulator::new(DType::F64, &[n, n]).unwrap());
        for piece in pieces {
            half.add_gram(&piece).unwrap();
            whole.add(&piece.transposed().unwrap(), &piece).unwrap();
        }
        let made = |sum: Accumulator| sum.finish().unwrap().to_vec::<f64>().unwrap();
        assert!(made(half) == made(whole));
        let mut integers = Accumulator::new(DType::I64, &[2, 2]).unwrap();
        integers.add_gram(&Chunk::from_elements(&[1, 2], &[3i64, 4]).unwrap()).unwrap();
        assert_eq!(integers.finish().unwrap().to_vec::<i64>().unwrap(), [9, 12, 12, 16]);
    }
}
