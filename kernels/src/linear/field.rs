//! Elements that matrices are factored in, and matrices of chunks as those of faer.

use super::real::Real;
use crate::chunk::Chunk;
use crate::element::Element;
use crate::error::KernelError;
use crate::product::Matrix;
use faer::linalg::solvers::Eigen;
use faer::traits::{ComplexField, Conjugate, RealField};
use faer::{Mat, MatMut, MatRef};
use num_complex::Complex;
use tharsis_dense::DenseField;

/// float32, float64, and complex numbers of them.
pub(crate) trait Field: Element + DenseField + ComplexField<Real = Self::Size> {
    /// The type of absolute values.
    type Size: Element + Real + num_real::Number;

    /// The number without its imaginary part, as a float64.
    fn real_part(self) -> f64;

    /// Whether no part is NaN or infinite.
    fn is_finite_number(self) -> bool;

    /// The number nearest to one of float64.
    fn from_real(x: f64) -> Self;

    /// The absolute value.
    fn size(self) -> f64;

    /// The number times a real one.
    fn times_real(self, factor: f64) -> Self;

    /// The quotient, also where the inverse of the divisor is infinite.
    fn divided_by(self, divisor: Self) -> Self;

    /// The number of absolute value one in the same direction, for one that is not zero.
    fn sign(self) -> Self;

    /// The complex numbers of the same precision.
    type Pair: Element;

    /// Eigenvalues, and right eigenvectors of length one, one a column, row by row; `None` if they were not
    /// found.
    fn unit_eigen(matrix: MatRef<'_, Self>) -> Option<ValuesAndVectors<Self::Pair>>;

    /// The same as elements of the type of absolute values if that is this type, else unchanged.
    fn as_real<'a>(given: Given<'a, Self>) -> Result<Given<'a, Self::Size>, Given<'a, Self>>;
}

/// A matrix, and a place for elements of another one.
pub(crate) type Given<'a, T> = (MatMut<'a, T>, Option<&'a mut [T]>);

/// Eigenvalues, and eigenvectors row by row.
pub(crate) type ValuesAndVectors<T> = (Vec<T>, Vec<T>);

/// Conversions of real numbers.
pub(crate) mod num_real {
    /// float32 or float64.
    pub(crate) trait Number: Copy + PartialOrd {
        /// The least normal number.
        const MIN_POSITIVE: f64;

        fn to_float(self) -> f64;
        fn of_float(x: f64) -> Self;
    }

    impl Number for f32 {
        const MIN_POSITIVE: f64 = f32::MIN_POSITIVE as f64;

        fn to_float(self) -> f64 {
            f64::from(self)
        }

        fn of_float(x: f64) -> f32 {
            x as f32
        }
    }

    impl Number for f64 {
        const MIN_POSITIVE: f64 = f64::MIN_POSITIVE;

        fn to_float(self) -> f64 {
            self
        }

        fn of_float(x: f64) -> f64 {
            x
        }
    }
}

type Pairs<T> = (Vec<Complex<T>>, Vec<Complex<T>>);

fn pairs<T: RealField + Copy + num_real::Number>(eigen: Eigen<T>) -> Pairs<T> {
    let values = eigen.S().column_vector().iter().copied().collect();
    let vectors = eigen.U();
    let n = vectors.ncols();
    let square = |z: Complex<T>| z.re.to_float().powi(2) + z.im.to_float().powi(2);
    let length = |j: usize| (0..n).map(|i| square(vectors[(i, j)])).sum::<f64>().sqrt();
    let lengths: Vec<f64> = (0..n).map(length).collect();
    let scaled = |x: T, j: usize| T::of_float(x.to_float() / lengths[j]);
    let element = |i: usize, j: usize| {
        let z: Complex<T> = vectors[(i, j)];
        Complex { re: scaled(z.re, j), im: scaled(z.im, j) }
    };
    (values, (0..n * n).map(|at| element(at / n, at % n)).collect())
}

macro_rules! real_field {
    ($($t:ty),*) => {$(
        impl Field for $t {
            type Size = $t;

            fn real_part(self) -> f64 {
                num_real::Number::to_float(self)
            }

            fn is_finite_number(self) -> bool {
                self.is_finite()
            }

            fn from_real(x: f64) -> $t {
                num_real::Number::of_float(x)
            }

            fn size(self) -> f64 {
                num_real::Number::to_float(self.abs())
            }

            fn times_real(self, factor: f64) -> $t {
                self * factor as $t
            }

            fn divided_by(self, divisor: $t) -> $t {
                self / divisor
            }

            fn sign(self) -> $t {
                self.signum()
            }

            type Pair = Complex<$t>;

            fn unit_eigen(matrix: MatRef<'_, $t>) -> Option<Pairs<$t>> {
                <$t>::eigen(matrix).map(pairs)
            }

            fn as_real(given: Given<'_, $t>) -> Result<Given<'_, $t>, Given<'_, $t>> {
                Ok(given)
            }
        }

        impl Field for Complex<$t> {
            type Size = $t;

            fn real_part(self) -> f64 {
                num_real::Number::to_float(self.re)
            }

            fn is_finite_number(self) -> bool {
                self.re.is_finite() && self.im.is_finite()
            }

            fn from_real(x: f64) -> Complex<$t> {
                Complex::new(num_real::Number::of_float(x), 0.0)
            }

            fn size(self) -> f64 {
                num_real::Number::to_float(self.norm())
            }

            fn times_real(self, factor: f64) -> Complex<$t> {
                Complex::new(self.re * factor as $t, self.im * factor as $t)
            }

            fn divided_by(self, divisor: Self) -> Self {
                // Squares of parts leave the range of the parts.
                let largest = divisor.re.abs().max(divisor.im.abs());
                Complex::new(self.re / largest, self.im / largest)
                    / Complex::new(divisor.re / largest, divisor.im / largest)
            }

            fn sign(self) -> Self {
                let largest = self.re.abs().max(self.im.abs());
                let near = Complex::new(self.re / largest, self.im / largest);
                near / near.norm()
            }

            type Pair = Complex<$t>;

            fn unit_eigen(matrix: MatRef<'_, Complex<$t>>) -> Option<Pairs<$t>> {
                <Complex<$t>>::eigen(matrix).map(pairs)
            }

            fn as_real(given: Given<'_, Self>) -> Result<Given<'_, $t>, Given<'_, Self>> {
                Err(given)
            }
        }
    )*};
}
real_field!(f32, f64);

/// Calls a function of a type of elements for float32, float64, and complex numbers of them.
macro_rules! with_field {
    ($dtype:expr, $function:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
            $crate::DType::C64 => {
                type $T = num_complex::Complex<f32>;
                $body
            }
            $crate::DType::C128 => {
                type $T = num_complex::Complex<f64>;
                $body
            }
            dtype => Err($crate::KernelError::NoLoop { function: $function, dtypes: vec![dtype] }),
        }
    };
}
pub(crate) use with_field;

/// A copy of matrix number `index` of a stack, in columns.
pub(super) fn columns_of<T: Field>(chunk: &Chunk, index: usize) -> Result<Mat<T>, KernelError> {
    let &[.., m, n] = chunk.shape() else {
        return Err(KernelError::Malformed(format!("a matrix of shape {:?}", chunk.shape())));
    };
    if m == 0 || n == 0 {
        return Ok(Mat::zeros(m, n));
    }
    Ok(Matrix::<T>::new(chunk, index)?.as_faer().to_owned())
}

/// Writes a matrix row by row.
pub(super) fn write_rows<T: Field, C: Conjugate<Canonical = T>>(to: &mut [T], matrix: MatRef<'_, C>) {
    let (m, n) = (matrix.nrows(), matrix.ncols());
    if m != 0 && n != 0 {
        MatMut::from_row_major_slice_mut(&mut to[..m * n], m, n).copy_from(matrix);
    }
}

/// The values of a real diagonal.
pub(super) fn real_diagonal<T: Field>(values: impl Iterator<Item = T>) -> Vec<T::Size> {
    values.map(|x| num_real::Number::of_float(x.real_part())).collect()
}

/// Whether all elements of a matrix are finite.
pub(super) fn is_finite<T: Field>(matrix: MatRef<'_, T>) -> bool {
    (0..matrix.ncols()).all(|j| (0..matrix.nrows()).all(|i| matrix[(i, j)].is_finite_number()))
}
