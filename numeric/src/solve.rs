//! Systems of linear equations: by LU factors, by triangles, and in the sense of least squares.

use crate::error::{Blame, Result};
use crate::linalg::{epsilon, linear_dtype};
use crate::operand::cast;
use crate::reduction::Axes;
use crate::tensor::{Tensor, carry};
use tharsis_graph::Error as GraphError;
use tharsis_graph::shape::{broadcast, require_known};
use tharsis_kernels::linear::Linear;
use tharsis_kernels::{KernelError, promote};

/// A solution in the sense of least squares, as [`Tensor::lstsq`] gives it.
#[derive(Clone, Debug)]
pub struct LeastSquares {
    /// The solution; (n,) or (n, k).
    pub solution: Tensor,
    /// The sums of squares of what is left of each right side: (1,) or (k,); none, (0,), if the rank is less
    /// than n or there are not more rows than columns.
    pub residuals: Tensor,
    /// The number of singular values above the bound; int64, no axes.
    pub rank: Tensor,
    /// The singular values; (min(m, n),).
    pub singular_values: Tensor,
}

impl Tensor {
    /// NumPy's `linalg.solve`: x with a x = b; (.., n, n) and (.., n, k), or (n,), to the shape of b with the
    /// stack broadcast.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let a = array([2.0, 0.0, 0.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(a.solve(&array([2.0, 2.0])).to_vec::<f64>()?, [1.0, 0.5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `LinAlgError` if matrices are not square, or (when run) singular; `ValueError` if shapes do not fit.
    ///
    /// # Distributed
    /// As [`Tensor::lu`]; right sides are blocks of columns beside the matrix.
    #[track_caller]
    pub fn solve(&self, right: &Tensor) -> Tensor {
        self.solved(right, "solve", Linear::Solve)
    }

    /// SciPy's `linalg.solve_triangular`: x with a x = b, where one triangle of a is read, and its diagonal
    /// is taken to be of ones if `unit`; shapes as [`Tensor::solve`].
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let a = array([2.0, 0.0, 1.0, 4.0]).reshape(&[2, 2]);
    /// assert_eq!(a.solve_triangular(&array([2.0, 9.0]), true, false).to_vec::<f64>()?, [1.0, 2.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::solve`].
    ///
    /// # Distributed
    /// A matrix of 1024 rows or more, or in smaller chunks, is solved block row by block row, each from those
    /// that are solved. A task holds three tiles.
    #[track_caller]
    pub fn solve_triangular(&self, right: &Tensor, lower: bool, unit: bool) -> Tensor {
        self.solved(right, "solve_triangular", Linear::SolveTriangular { lower, unit })
    }

    /// The solutions for right sides that are broadcast to the stack of matrices.
    #[track_caller]
    fn solved(&self, right: &Tensor, name: &'static str, function: Linear) -> Tensor {
        let [_, n] = carry!(self.matrix_extents(true), self);
        if carry!(right.ndim()) == 1 {
            return self.solved(&right.expand_dims(1), name, function).squeeze(Some(&[-1]));
        }
        let (own, other) = (carry!(self.shape()), carry!(right.shape()));
        let fits = 2 <= other.len() && other[other.len() - 2] == n;
        if !fits {
            let (shapes, reason) = (vec![own.to_vec(), other.to_vec()], "rows differ".to_owned());
            return Tensor::refused(GraphError::Shape { function: name, shapes, reason }, &[self, right]);
        }
        let lead = broadcast(name, &[&own[..own.len() - 2], &other[..other.len() - 2]]);
        let lead = carry!(lead, self, right);
        let wide = |x: &Tensor, shape: &[usize]| x.broadcast_to(&[&lead, &shape[shape.len() - 2..]].concat());
        wide(self, own).linear(function, 0, Some(&wide(right, other)))
    }

    /// SciPy's `linalg.lu(p_indices=True)`, but with the rows of the matrix in order: (.., m, n) to the
    /// order of rows (.., m), int64, the unit lower triangle (.., m, k) and the upper one (.., k, n), k =
    /// min(m, n), with `x.take_at(&order, 0) == l.matmul(&u)`.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let (order, l, u) = array([1.0, 4.0, 2.0, 2.0]).reshape(&[2, 2]).lu();
    /// assert_eq!(order.to_vec::<i64>()?, [1, 0]);
    /// assert_eq!(l.to_vec::<f64>()?, [1.0, 0.0, 0.5, 1.0]);
    /// assert_eq!(u.to_vec::<f64>()?, [2.0, 2.0, 0.0, 3.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `LinAlgError` without two axes.
    ///
    /// # Distributed
    /// A matrix of 1024 rows or columns or more, or in smaller chunks, is factored by blocks of columns: a
    /// task holds one of them and a factored one as a whole. So each pivot is the largest of its column, as
    /// LAPACK has it.
    #[track_caller]
    pub fn lu(&self) -> (Tensor, Tensor, Tensor) {
        let (order, lower) = (self.linear(Linear::Lu, 0, None), self.linear(Linear::Lu, 1, None));
        (order, lower, self.linear(Linear::Lu, 2, None))
    }

    /// NumPy's `linalg.lstsq`: the x of least length that makes the length of a x - b least; (m, n) and (m,)
    /// or (m, k). Singular values up to `rcond` times the largest count as zero; `None` is max(m, n) times
    /// the distance from 1 to the next float, a negative number that distance.
    ///
    /// ```
    /// use tharsis_numeric::array;
    /// let a = array([1.0, 0.0, 1.0, 1.0, 1.0, 2.0]).reshape(&[3, 2]);
    /// let line = a.lstsq(&array([1.0, 3.0, 5.0]), None);
    /// let close = line.solution.isclose(&array([1.0, 2.0]), 1e-12, 1e-12);
    /// assert!(close.all(..).item()?.is_true());
    /// assert_eq!(line.rank.item()?.to_f64(), 2.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `LinAlgError` unless the matrix has two axes, the right side one or two, and as many rows; or (when
    /// run) for NaN or infinity.
    ///
    /// # Memory
    /// As [`Tensor::svd`]: a tall matrix is never in memory as a whole.
    #[track_caller]
    pub fn lstsq(&self, right: &Tensor, rcond: Option<f64>) -> LeastSquares {
        match self.least_squares(right, rcond) {
            Ok(made) => made,
            Err(error) => {
                let refused = || Tensor::refused(error.clone(), &[self, right]);
                LeastSquares {
                    solution: refused(),
                    residuals: refused(),
                    rank: refused(),
                    singular_values: refused(),
                }
            }
        }
    }

    /// NumPy's `linalg.tensorsolve`: x with `a.tensordot(&x, ..) == b` over all axes of x, which are those of
    /// a behind as many as b has. `axes` of a are moved to its end before.
    ///
    /// ```
    /// use tharsis_numeric::{arange, eye};
    /// let a = eye(6, 6, 0).reshape(&[2, 3, 6]);
    /// assert_eq!(a.tensorsolve(&arange(6).reshape(&[2, 3]), &[]).shape()?, [6]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `LinAlgError` if the axes do not make a square matrix, or (when run) if it is singular; `AxisError`.
    #[track_caller]
    pub fn tensorsolve(&self, right: &Tensor, axes: &[i64]) -> Tensor {
        let ends: Vec<i64> = (-(axes.len() as i64)..0).collect();
        let a = if axes.is_empty() { self.clone() } else { self.moveaxes(axes, &ends) };
        let (from, rank) = (carry!(a.shape()).to_vec(), carry!(right.ndim()).min(carry!(a.ndim())));
        carry!(require_known("tensorsolve", &from), self, right);
        let (lead, rest) = from.split_at(rank);
        let extents = |shape: &[usize]| shape.iter().product::<usize>();
        if extents(lead) != extents(rest) {
            let text =
                "Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])";
            return Tensor::refused(singular(text.to_owned()), &[self, right]);
        }
        let (square, to) = (extents(rest) as i64, rest.iter().map(|&extent| extent as i64));
        a.reshape(&[square, square]).solve(&right.ravel()).reshape(&to.collect::<Vec<_>>())
    }

    /// NumPy's `linalg.tensorinv`: the inverse of the tensor as a matrix of its first `lead` axes by the
    /// others, which come first in the result.
    ///
    /// ```
    /// use tharsis_numeric::eye;
    /// assert_eq!(eye(6, 6, 0).reshape(&[6, 2, 3]).tensorinv(1).shape()?, [2, 3, 6]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for `lead` of 0; `LinAlgError` if the matrix is not square, or (when run) singular.
    #[track_caller]
    pub fn tensorinv(&self, lead: usize) -> Tensor {
        if lead == 0 {
            return Tensor::bad_value("Invalid ind argument.", &[self]);
        }
        let from = carry!(self.shape());
        carry!(require_known("tensorinv", from), self);
        let (lead, rest) = from.split_at(lead.min(from.len()));
        let rows = lead.iter().product::<usize>() as i64;
        let columns = rest.iter().product::<usize>() as i64;
        let to: Vec<i64> = rest.iter().chain(lead).map(|&extent| extent as i64).collect();
        self.reshape(&[rows, columns]).inv().reshape(&to)
    }

    #[track_caller]
    fn least_squares(&self, right: &Tensor, rcond: Option<f64>) -> Result<LeastSquares> {
        let &[m, n] = self.shape()? else { return Err(not_two(self.ndim()?)).blame() };
        let columns = match *right.shape()? {
            [rows] if rows == m => None,
            [rows, columns] if rows == m => Some(columns),
            [_] | [_, _] => return Err(singular("Incompatible dimensions".to_owned())).blame(),
            ref other => return Err(not_two(other.len())).blame(),
        };
        require_known("lstsq", &[m, n]).blame()?;
        let (own, other) = (linear_dtype(self.dtype()?).blame()?, linear_dtype(right.dtype()?).blame()?);
        let dtype = promote(own, other);
        let (a, b) = (cast(self, dtype), cast(right, dtype));
        let b = if columns.is_none() { b.expand_dims(1) } else { b };
        let (u, s, vt) = a.svd();
        let rcond = match rcond {
            None => m.max(n) as f64 * epsilon(dtype),
            Some(negative) if negative < 0.0 => epsilon(dtype),
            Some(rcond) => rcond,
        };
        let is_kept = match m.min(n) {
            0 => s.greater(0.0),
            _ => s.greater(s.max(Axes::from(-1).keepdims()).multiply(rcond)),
        };
        // Those that are left out may be zero, which is no division.
        let kept = crate::elementwise::where_(&is_kept, &s, 1.0).reciprocal();
        let inverse = crate::elementwise::where_(&is_kept, kept, 0.0);
        let along = cast(&inverse.expand_dims(-1), dtype).multiply(u.matrix_transpose().conj().matmul(&b));
        let x = vt.matrix_transpose().conj().matmul(&along);
        let rank = is_kept.count_nonzero(..);
        let left = b.subtract(a.matmul(&x)).abs().square().sum(0);
        let is_told = rank.equal(n as i64).logical_and(n < m).expand_dims(0);
        let residuals = left.filter(&is_told.broadcast_to(&[columns.unwrap_or(1)]));
        let solution = if columns.is_none() { x.squeeze(Some(&[-1])) } else { x };
        Ok(LeastSquares { solution, residuals, rank, singular_values: s })
    }
}

fn singular(text: String) -> GraphError {
    GraphError::from(KernelError::Singular(text))
}

fn not_two(rank: usize) -> GraphError {
    singular(format!("{rank}-dimensional array given. Array must be two-dimensional"))
}
