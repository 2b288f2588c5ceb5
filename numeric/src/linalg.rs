//! NumPy's `linalg` on matrices and on stacks of them, real and complex; float32 stays float32.
//!
//! A stack is cut into chunks; each of its matrices is held by one task. A matrix alone with 1024 rows or
//! columns or more, or in smaller chunks, goes by tiles in `cholesky`, `lu`, `solve`, `solve_triangular`,
//! `inv`, `det` and `slogdet` ([`crate::solve`]), and `qr` and `svd` of tall matrices go by blocks of rows
//! ([`crate::factor`]). All others are held by one task. The memory bound of a plan, which is known before
//! anything runs, has the bytes that this takes: a matrix that does not fit is refused with a `MemoryError`
//! that names them.

use crate::error::{Blame, Error, Result};
use crate::operand::cast;
use crate::reduction::Axes;
use crate::tensor::{Tensor, carry};
use tharsis_graph::Error as GraphError;
use tharsis_graph::ops::LinearPart;
use tharsis_graph::shape::{agree, normalize_axis};
use tharsis_kernels::linear::{Linear, QrMode};
use tharsis_kernels::{DType, KernelError, Kind, promote};

/// A norm of vectors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum VectorNorm {
    /// The sum of powers of absolute values, and the root of it: 2 is the length.
    Power(f64),
    /// The largest absolute value.
    Largest,
    /// The smallest absolute value.
    Smallest,
    /// The number of those that are not zero.
    Count,
}

/// A norm of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixNorm {
    /// The root of the sum of squares.
    Frobenius,
    /// The sum of singular values.
    Nuclear,
    /// The largest sum of absolute values along a column.
    Columns,
    /// The smallest sum of absolute values along a column.
    LeastColumns,
    /// The largest sum of absolute values along a row.
    Rows,
    /// The smallest sum of absolute values along a row.
    LeastRows,
    /// The largest singular value.
    Largest,
    /// The smallest singular value.
    Smallest,
}

/// The dtype in which a matrix is factored.
pub(crate) fn linear_dtype(dtype: DType) -> std::result::Result<DType, GraphError> {
    match dtype {
        DType::F16 | DType::BF16 => {
            Err(GraphError::Type(format!("array type {dtype} is unsupported in linalg")))
        }
        DType::F32 | DType::C64 | DType::C128 => Ok(dtype),
        _ => Ok(DType::F64),
    }
}

impl Tensor {
    /// One result of a function of this stack of matrices, and of right sides if there are any.
    #[track_caller]
    pub(crate) fn linear(&self, function: Linear, part: usize, right: Option<&Tensor>) -> Tensor {
        carry!(self.matrix_extents(function.is_square()), self);
        let own = carry!(linear_dtype(carry!(self.dtype())), self);
        let Some(right) = right else {
            return Tensor::apply(LinearPart { function, part }, &[&cast(self, own)]);
        };
        let dtype = promote(own, carry!(linear_dtype(carry!(right.dtype())), right));
        Tensor::apply(LinearPart { function, part }, &[&cast(self, dtype), &cast(right, dtype)])
    }

    /// The extents of the matrices, and an error as NumPy has it if there are none.
    #[track_caller]
    pub(crate) fn matrix_extents(&self, square: bool) -> Result<[usize; 2]> {
        let shape = self.shape()?;
        let &[.., m, n] = shape else {
            let rank = shape.len();
            let text = format!("{rank}-dimensional array given. Array must be at least two-dimensional");
            return Err(Error::here(GraphError::from(KernelError::Singular(text))));
        };
        if square && !agree(m, n) {
            let text = "Last 2 dimensions of the array must be square".to_owned();
            return Err(Error::here(GraphError::from(KernelError::Singular(text))));
        }
        Ok([m, n])
    }

    /// NumPy's `linalg.inv`: inverses; (.., n, n) to the same.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([2.0, 0.0, 0.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(x.inv().to_vec::<f64>()?, [0.5, 0.0, 0.0, 0.25]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `LinAlgError` if they are not square, or (when run) singular.
    ///
    /// # Distributed
    /// As [`Tensor::lu`].
    #[track_caller]
    pub fn inv(&self) -> Tensor {
        self.linear(Linear::Inverse, 0, None)
    }

    /// NumPy's `linalg.det`: determinants; (.., n, n) to (..).
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([2.0, 0.0, 0.0, 4.0]).reshape(&[2, 2]).det().item()?.to_f64(), 8.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `LinAlgError` if they are not square.
    #[track_caller]
    pub fn det(&self) -> Tensor {
        self.linear(Linear::Determinant, 0, None)
    }

    /// NumPy's `linalg.slogdet`: the signs of determinants, and the logarithms of their absolute values;
    /// (.., n, n) to (..) and (..).
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let (sign, log) = array([-1.0, 0.0, 0.0, 1.0]).reshape(&[2, 2]).slogdet();
    /// assert_eq!((sign.item()?.to_f64(), log.item()?.to_f64()), (-1.0, 0.0));
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::det`].
    #[track_caller]
    pub fn slogdet(&self) -> (Tensor, Tensor) {
        (self.linear(Linear::Determinant, 1, None), self.linear(Linear::Determinant, 2, None))
    }

    /// NumPy's `linalg.eigh`: eigenvalues in ascending order and eigenvectors, one a column, of symmetric or
    /// Hermitian matrices, of which one triangle is read; (.., n, n) to (.., n) and (.., n, n).
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let (values, _) = array([2.0, 0.0, 0.0, 1.0]).reshape(&[2, 2]).eigh(false);
    /// assert!(values.isclose(array([1.0, 2.0]), 1e-12, 0.0).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `LinAlgError` if matrices are not square, or (when run) not finite.
    #[track_caller]
    pub fn eigh(&self, upper: bool) -> (Tensor, Tensor) {
        let function = Linear::Hermitian { upper };
        (self.linear(function, 0, None), self.linear(function, 1, None))
    }

    /// NumPy's `linalg.eigvalsh`: as [`Tensor::eigh`], the values alone.
    ///
    /// ```
    /// use tharsis_numeric::eye;
    /// assert_eq!(eye(2, 2, 0).eigvalsh(false).shape()?, [2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::eigh`].
    #[track_caller]
    pub fn eigvalsh(&self, upper: bool) -> Tensor {
        self.linear(Linear::Hermitian { upper }, 0, None)
    }

    /// NumPy's `linalg.eig`: eigenvalues and right eigenvectors, one a column, both complex; (.., n, n) to
    /// (.., n) and (.., n, n).
    ///
    /// ```
    /// use tharsis_numeric::{DType, eye};
    /// let (values, vectors) = eye(2, 2, 0).eig();
    /// assert_eq!((values.dtype()?, vectors.shape()?), (DType::C128, &[2, 2][..]));
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::eigh`].
    #[track_caller]
    pub fn eig(&self) -> (Tensor, Tensor) {
        (self.linear(Linear::Eigen, 0, None), self.linear(Linear::Eigen, 1, None))
    }

    /// NumPy's `linalg.svd(full_matrices=True)`: as [`Tensor::svd`], U and Vt square.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// let (u, s, vt) = ones(&[2, 3]).svd_full();
    /// assert_eq!((u.shape()?, s.shape()?, vt.shape()?), (&[2, 2][..], &[2][..], &[3, 3][..]));
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::svd`].
    #[track_caller]
    pub fn svd_full(&self) -> (Tensor, Tensor, Tensor) {
        let function = Linear::Svd { full: true };
        (self.linear(function, 0, None), self.linear(function, 1, None), self.linear(function, 2, None))
    }

    /// NumPy's `linalg.svdvals`: singular values in descending order; (.., m, n) to (.., min(m, n)).
    ///
    /// ```
    /// use tharsis_numeric::eye;
    /// assert_eq!(eye(2, 3, 0).singular_values().shape()?, [2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::svd`].
    #[track_caller]
    pub fn singular_values(&self) -> Tensor {
        if carry!(self.is_tall()) {
            self.tall_singular_values()
        } else {
            self.linear(Linear::SingularValues, 0, None)
        }
    }

    /// NumPy's `linalg.qr(mode='complete')`: Q (.., m, m) and R (.., m, n).
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// let (q, r) = ones(&[3, 2]).qr_complete();
    /// assert_eq!((q.shape()?, r.shape()?), (&[3, 3][..], &[3, 2][..]));
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::qr`].
    #[track_caller]
    pub fn qr_complete(&self) -> (Tensor, Tensor) {
        let function = Linear::Qr(QrMode::Complete);
        (self.linear(function, 0, None), self.linear(function, 1, None))
    }

    /// NumPy's `linalg.pinv`: pseudo-inverses; (.., m, n) to (.., n, m). Singular values up to `rtol` times
    /// the largest count as zero; `None` is max(m, n) times the distance from 1 to the next float, as the
    /// array API standard has it.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([2.0, 0.0, 0.0, 0.0]).reshape(&[2, 2]);
    /// assert_eq!(x.pinv(None).to_vec::<f64>()?, [0.5, 0.0, 0.0, 0.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::svd`].
    #[track_caller]
    pub fn pinv(&self, rtol: Option<f64>) -> Tensor {
        let [m, n] = carry!(self.matrix_extents(false), self);
        if m == 0 || n == 0 {
            return self.matrix_transpose();
        }
        let dtype = carry!(linear_dtype(carry!(self.dtype())), self);
        let rtol = rtol.unwrap_or_else(|| m.max(n) as f64 * epsilon(dtype));
        let (u, s, vt) = self.svd();
        let largest = s.max(Axes::from(-1).keepdims());
        // Those that are left out may be zero, which is no division.
        let is_kept = s.greater(largest.multiply(rtol));
        let kept = crate::elementwise::where_(&is_kept, &s, 1.0).reciprocal();
        let inverse = crate::elementwise::where_(&is_kept, kept, 0.0);
        let right = cast(&inverse.expand_dims(-1), dtype).multiply(u.matrix_transpose().conj());
        vt.matrix_transpose().conj().matmul(&right)
    }

    /// NumPy's `linalg.matrix_rank`: the number of singular values above a bound: `tolerance`, or `rtol`
    /// times the largest one, or max(m, n) times the distance from 1 to the next float in place of `rtol`;
    /// (.., m, n) to (..), int64.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// assert_eq!(ones(&[3, 3]).matrix_rank(None, None).item()?.to_f64(), 1.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::svd`].
    #[track_caller]
    pub fn matrix_rank(&self, tolerance: Option<f64>, rtol: Option<f64>) -> Tensor {
        let [m, n] = carry!(self.matrix_extents(false), self);
        let dtype = carry!(linear_dtype(carry!(self.dtype())), self);
        let s = self.singular_values();
        if m == 0 || n == 0 {
            return s.count_nonzero(-1);
        }
        let bound = match tolerance {
            Some(tolerance) => Tensor::number(tolerance),
            None => {
                let rtol = rtol.unwrap_or_else(|| m.max(n) as f64 * epsilon(dtype));
                s.max(Axes::from(-1).keepdims()).multiply(rtol)
            }
        };
        s.greater(&bound).count_nonzero(-1)
    }

    /// NumPy's `linalg.matrix_power`: products of a matrix with itself, of its inverse for negative numbers;
    /// (.., n, n) to the same.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let x = array([1i64, 1, 0, 1]).reshape(&[2, 2]);
    /// assert_eq!(x.matrix_power(5).to_vec::<i64>()?, [1, 5, 0, 1]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `LinAlgError` if matrices are not square, or (when run) singular for a negative number.
    #[track_caller]
    pub fn matrix_power(&self, times: i64) -> Tensor {
        let [n, _] = carry!(self.matrix_extents(true), self);
        let dtype = carry!(self.dtype());
        if times == 0 {
            let one = cast(&crate::create::eye(n, n, 0), dtype);
            return one.broadcast_to(carry!(self.shape()));
        }
        let mut square = if times < 0 { self.inv() } else { self.clone() };
        let mut left = times.unsigned_abs();
        let mut product: Option<Tensor> = None;
        loop {
            if left & 1 == 1 {
                product = Some(product.map_or_else(|| square.clone(), |product| product.matmul(&square)));
            }
            left >>= 1;
            match product {
                Some(product) if left == 0 => return product,
                _ => square = square.matmul(&square),
            }
        }
    }

    /// NumPy's `linalg.vector_norm`: a norm over axes; float, or the real dtype of complex numbers.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// use tharsis_numeric::linalg::VectorNorm;
    /// assert_eq!(array([3.0, 4.0]).vector_norm(VectorNorm::Power(2.0), ..).item()?.to_f64(), 5.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError`; `ValueError` for the smallest of none.
    #[track_caller]
    pub fn vector_norm(&self, norm: VectorNorm, axes: impl Into<Axes>) -> Tensor {
        let (axes, x) = (axes.into(), carry!(self.inexact(), self));
        let dtype = carry!(x.dtype()).real_part();
        let made = match norm {
            VectorNorm::Largest => x.abs().largest_size(axes),
            VectorNorm::Smallest => x.abs().min(axes),
            VectorNorm::Count => x.not_equal(0).count_nonzero(axes),
            VectorNorm::Power(1.0) => x.abs().sum(axes),
            VectorNorm::Power(2.0) => x.square_sizes().sum(axes).sqrt(),
            VectorNorm::Power(power) => x.abs().power(power).sum(axes).power(1.0 / power),
        };
        cast(&made, dtype)
    }

    /// The squares of absolute values.
    #[track_caller]
    fn square_sizes(&self) -> Tensor {
        if carry!(self.dtype()).is_complex() {
            self.real().square().add(self.imag().square())
        } else {
            self.square()
        }
    }

    /// The largest of numbers that are not negative; zero of none.
    #[track_caller]
    fn largest_size(&self, axes: impl Into<Axes>) -> Tensor {
        if carry!(self.shape(), self).contains(&0) { self.sum(axes) } else { self.max(axes) }
    }

    /// In floats: integers and truth values as float64.
    fn inexact(&self) -> Result<Tensor> {
        let dtype = self.dtype()?;
        Ok(if dtype.kind() < Kind::Float { cast(self, DType::F64) } else { self.clone() })
    }

    /// NumPy's `linalg.matrix_norm`: a norm of matrices (.., m, n) to (..), or to (.., 1, 1).
    ///
    /// ```
    /// use tharsis_numeric::linalg::MatrixNorm;
    /// use tharsis_numeric::ones;
    /// assert_eq!(ones(&[2, 2]).matrix_norm(MatrixNorm::Frobenius, false).item()?.to_f64(), 2.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::svd`]; `ValueError` for the smallest of none.
    #[track_caller]
    pub fn matrix_norm(&self, norm: MatrixNorm, keepdims: bool) -> Tensor {
        carry!(self.matrix_extents(false), self);
        let x = carry!(self.inexact(), self);
        let dtype = carry!(x.dtype()).real_part();
        let made = match norm {
            MatrixNorm::Frobenius => x.square_sizes().sum([-2, -1]).sqrt(),
            MatrixNorm::Nuclear => x.singular_values().sum(-1),
            MatrixNorm::Columns => x.abs().sum(-2).largest_size(-1),
            MatrixNorm::LeastColumns => x.abs().sum(-2).min(-1),
            MatrixNorm::Rows => x.abs().sum(-1).largest_size(-1),
            MatrixNorm::LeastRows => x.abs().sum(-1).min(-1),
            MatrixNorm::Largest => x.singular_values().largest_size(-1),
            MatrixNorm::Smallest => x.singular_values().min(-1),
        };
        let made = cast(&made, dtype);
        if keepdims { made.expand_all_dims(&[-2, -1]) } else { made }
    }

    /// NumPy's `linalg.cond`: the largest singular value by the smallest, infinite if that is zero; (.., m,
    /// n) to (..).
    ///
    /// ```
    /// use tharsis_numeric::eye;
    /// assert_eq!(eye(2, 2, 0).cond().item()?.to_f64(), 1.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::svd`].
    #[track_caller]
    pub fn cond(&self) -> Tensor {
        let s = self.singular_values();
        let (largest, least) = (s.max(-1), s.min(-1));
        let is_singular = least.equal(0.0);
        let ratio = largest.divide(crate::elementwise::where_(&is_singular, 1.0, &least));
        crate::elementwise::where_(&is_singular, f64::INFINITY, ratio)
    }

    /// NumPy's `linalg.outer` of two vectors: products of all pairs; (m,) and (n,) to (m, n).
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(2).outer(&arange(2)).to_vec::<i64>()?, [0, 0, 0, 1]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn outer(&self, other: &Tensor) -> Tensor {
        self.in_one_axis().expand_dims(1).multiply(other.in_one_axis().expand_dims(0))
    }

    /// NumPy's `trace` of the last two axes: the sum of a diagonal; (.., m, n) to (..), small integers in 64
    /// bits.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(4).reshape(&[2, 2]).trace(0).item()?.to_f64(), 3.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for fewer than two axes.
    #[track_caller]
    pub fn trace(&self, offset: i64) -> Tensor {
        self.diagonal(offset).sum(-1)
    }

    /// NumPy's `linalg.cross`: vector products along an axis of extent 3; other axes are broadcast.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let (x, y) = (array([1i64, 0, 0]), array([0i64, 1, 0]));
    /// assert_eq!(x.cross(&y, -1).to_vec::<i64>()?, [0, 0, 1]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another extent, `AxisError`.
    #[track_caller]
    pub fn cross(&self, other: &Tensor, axis: i64) -> Tensor {
        let mut sides = Vec::with_capacity(2);
        for side in [self, other] {
            let shape = carry!(side.shape());
            let at = carry!(normalize_axis(axis, shape.len()), side);
            if shape[at] != 3 {
                let text = format!(
                    "Both input arrays must be (arrays of) 3-dimensional vectors, but they are {} and {} dimensional instead.",
                    carry!(self.shape()).last().copied().unwrap_or(0),
                    carry!(other.shape()).last().copied().unwrap_or(0)
                );
                return Tensor::refused(GraphError::Value(text), &[self, other]);
            }
            sides.push(carry!(side.moveaxis(axis, 0).unstack(0)));
        }
        let (a, b) = (&sides[0], &sides[1]);
        let part = |i: usize, k: usize| a[i].multiply(&b[k]).subtract(a[k].multiply(&b[i]));
        let parts = [part(1, 2), part(2, 0), part(0, 1)];
        crate::manipulate::stack(&parts.iter().collect::<Vec<_>>(), axis)
    }

    /// NumPy's `kron`: each element of this tensor times all of the other.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// assert_eq!(array([1i64, 2]).kron(&array([1i64, 3])).to_vec::<i64>()?, [1, 3, 2, 6]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if a size is not known.
    #[track_caller]
    pub fn kron(&self, other: &Tensor) -> Tensor {
        let (a, b) = (carry!(self.shape()), carry!(other.shape()));
        for shape in [a, b] {
            carry!(tharsis_graph::shape::require_known("kron", shape), self, other);
        }
        let rank = a.len().max(b.len());
        let padded = |shape: &[usize]| [&vec![1; rank - shape.len()][..], shape].concat();
        let (a, b) = (padded(a), padded(b));
        let left: Vec<i64> = a.iter().flat_map(|&extent| [extent as i64, 1]).collect();
        let right: Vec<i64> = b.iter().flat_map(|&extent| [1, extent as i64]).collect();
        let both: Vec<i64> = a.iter().zip(&b).map(|(&m, &n)| (m * n) as i64).collect();
        self.reshape(&left).multiply(other.reshape(&right)).reshape(&both)
    }
}

/// The distance from 1 to the next number of a float dtype, or of the parts of a complex one.
pub(crate) fn epsilon(dtype: DType) -> f64 {
    match dtype.real_part() {
        DType::F32 => f64::from(f32::EPSILON),
        _ => f64::EPSILON,
    }
}

/// The order of a norm, by number.
///
/// # Errors
/// `ValueError` for a norm of matrices that does not exist.
#[track_caller]
pub fn matrix_norm_of(order: f64) -> Result<MatrixNorm> {
    Ok(match order {
        1.0 => MatrixNorm::Columns,
        -1.0 => MatrixNorm::LeastColumns,
        2.0 => MatrixNorm::Largest,
        -2.0 => MatrixNorm::Smallest,
        f64::INFINITY => MatrixNorm::Rows,
        f64::NEG_INFINITY => MatrixNorm::LeastRows,
        _ => return Err(GraphError::Value("Invalid norm order for matrices.".to_owned())).blame(),
    })
}

/// The order of a norm of vectors, by number.
pub fn vector_norm_of(order: f64) -> VectorNorm {
    match order {
        f64::INFINITY => VectorNorm::Largest,
        f64::NEG_INFINITY => VectorNorm::Smallest,
        0.0 => VectorNorm::Count,
        power => VectorNorm::Power(power),
    }
}
