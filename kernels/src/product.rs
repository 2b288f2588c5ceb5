//! Sums of matrix products of chunks.
//!
//! Floats and complex numbers go to faer, which picks its kernels for the CPU at run time; integers wrap and
//! are multiplied by a plain loop.

use crate::chunk::{Buffer, Chunk};
use crate::dtype::DType;
use crate::element::{Bool, Element};
use crate::error::KernelError;
use crate::ufunc::Number;
use faer::linalg::matmul::matmul;
use faer::traits::ComplexField;
use faer::{Accum, MatMut, MatRef, Par};
use num_complex::Complex;

/// The sum of products (.., m, k) x (.., k, n) over pieces of k: an array (.., m, n).
#[derive(Debug)]
pub struct Accumulator {
    dtype: DType,
    shape: Vec<usize>,
    sum: Buffer,
    /// Whether nothing was added yet; then the contents of `sum` are unspecified.
    is_fresh: bool,
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
        Ok(Accumulator { dtype, shape: shape.to_vec(), sum, is_fresh: true })
    }

    /// Adds the product of two chunks.
    ///
    /// # Errors
    /// `Malformed` if the shapes do not fit, `NoLoop` for half precision.
    pub fn add(&mut self, left: &Chunk, right: &Chunk) -> Result<(), KernelError> {
        match self.dtype {
            DType::F32 => self.add_fields::<f32>(left, right),
            DType::F64 => self.add_fields::<f64>(left, right),
            DType::C64 => self.add_fields::<Complex<f32>>(left, right),
            DType::C128 => self.add_fields::<Complex<f64>>(left, right),
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

    /// The sum.
    ///
    /// # Errors
    /// None in practice.
    pub fn finish(mut self) -> Result<Chunk, KernelError> {
        self.clear_if_fresh();
        Chunk::contiguous(self.dtype, &self.shape, self.sum)
    }

    fn clear_if_fresh(&mut self) {
        if std::mem::take(&mut self.is_fresh) {
            self.sum.elements_mut::<u8>().fill(0);
        }
    }

    /// Calls `multiply` for each matrix of the batch with m, k, n, whether to add or to overwrite, both
    /// factors, and the memory of the sum.
    fn each_matrix<T: Element>(
        &mut self,
        left: &Chunk,
        right: &Chunk,
        multiply: impl Fn([usize; 3], Accum, &Matrix<'_, T>, &Matrix<'_, T>, &mut [T]),
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
        let accum = if replaces { Accum::Replace } else { Accum::Add };
        let sums = self.sum.elements_mut::<T>();
        for index in 0..batch {
            let (a, b) = (Matrix::new(left, index)?, Matrix::new(right, index)?);
            multiply([m, k, n], accum, &a, &b, &mut sums[index * m * n..(index + 1) * m * n]);
        }
        Ok(())
    }

    fn add_fields<T: Element + ComplexField>(
        &mut self,
        left: &Chunk,
        right: &Chunk,
    ) -> Result<(), KernelError> {
        self.each_matrix::<T>(left, right, |[m, _, n], accum, a, b, sum| {
            let sum = MatMut::from_row_major_slice_mut(sum, m, n);
            matmul(sum, accum, a.as_faer(), b.as_faer(), T::one_impl(), Par::Seq);
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

/// One matrix of a batch; one of its strides is 1.
pub(crate) struct Matrix<'a, T: Element> {
    elements: std::borrow::Cow<'a, [T]>,
    rows: usize,
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
                rows,
                columns,
                row_stride: row_stride as usize,
                column_stride: 1,
            });
        }
        if row_stride == 1 && rows as i64 <= column_stride {
            let elements = &all[offset as usize..offset as usize + span(columns, column_stride, rows)];
            return Ok(Matrix {
                elements: elements.into(),
                rows,
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
            rows,
            columns,
            row_stride: columns,
            column_stride: 1,
        })
    }

    #[inline]
    fn at(&self, row: usize, column: usize) -> T {
        self.elements[row * self.row_stride + column * self.column_stride]
    }

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
