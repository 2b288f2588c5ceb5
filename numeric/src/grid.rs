//! Tensors of coordinates, and parts of matrices that are chosen by coordinates.

use crate::create::{arange, full, position_along};
use crate::elementwise::where_;
use crate::late::late;
use crate::operand::cast;
use crate::tensor::{Tensor, carry};
use tharsis_graph::Error as GraphError;
use tharsis_graph::shape::{UNKNOWN, check_shape, is_known};
use tharsis_kernels::DType;

/// Order of the first two axes of coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// Cartesian: the first tensor varies along the second axis.
    Xy,
    /// Of matrices: the first tensor varies along the first axis.
    Ij,
}

/// NumPy's `meshgrid`: coordinates of a grid from those along its axes, a tensor for each; `sparse` ones have
/// extent 1 along the axes of the others. Tensors without axes count as of one element, those of several axes
/// as flattened.
///
/// ```
/// use tharsis_numeric::arange;
/// use tharsis_numeric::grid::{Indexing, meshgrid};
/// let grid = meshgrid(&[&arange(2), &arange(3)], Indexing::Xy, false);
/// assert_eq!(grid[0].to_vec::<i64>()?, [0, 1, 0, 1, 0, 1]);
/// assert_eq!(grid[1].shape()?, [3, 2]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` if the grid is too big.
#[track_caller]
pub fn meshgrid(axes: &[&Tensor], indexing: Indexing, sparse: bool) -> Vec<Tensor> {
    let mut flat = Vec::with_capacity(axes.len());
    let mut shapes = Vec::with_capacity(axes.len());
    for axis in axes {
        let axis = axis.ravel();
        match axis.shape() {
            Ok(shape) => shapes.push(shape[0]),
            Err(error) => return vec![Tensor::from(error); axes.len()],
        }
        flat.push(axis);
    }
    let axes: Vec<&Tensor> = flat.iter().collect();
    let place = |axis: usize| match (indexing, axis) {
        (Indexing::Xy, 0 | 1) if 1 < axes.len() => 1 - axis,
        _ => axis,
    };
    let mut shape = vec![1; axes.len()];
    shapes.iter().enumerate().for_each(|(axis, &extent)| shape[place(axis)] = extent);
    let along = |(axis, x): (usize, &&Tensor)| {
        let others: Vec<i64> =
            (0..axes.len()).filter(|&other| other != place(axis)).map(|other| other as i64).collect();
        let column = x.expand_all_dims(&others);
        match (sparse, is_known(&shape)) {
            (true, _) => column,
            (false, true) => column.broadcast_to(&shape),
            // Sizes that are not known yet come from the other tensors.
            (false, false) => broadcast_late(&axes, indexing, axis, &shape),
        }
    };
    axes.iter().enumerate().map(along).collect()
}

/// Coordinates of a grid along one axis, once the sizes of all axes are known.
#[track_caller]
fn broadcast_late(axes: &[&Tensor], indexing: Indexing, axis: usize, shape: &[usize]) -> Tensor {
    let meta = carry!(axes[axis].meta_with(shape.to_vec()));
    late("meshgrid", (axis, indexing), meta, axes, move |x| {
        meshgrid(&x.iter().collect::<Vec<_>>(), indexing, false).swap_remove(axis)
    })
}

/// NumPy's `indices`: for each element of a shape its coordinates, a tensor for each axis; int64.
///
/// ```
/// use tharsis_numeric::grid::indices;
/// assert_eq!(indices(&[2, 2])[0].to_vec::<i64>()?, [0, 0, 1, 1]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` if the shape is too big.
#[track_caller]
pub fn indices(shape: &[usize]) -> Vec<Tensor> {
    let mut all = Vec::with_capacity(shape.len());
    for axis in 0..shape.len() {
        all.push(position_along(shape, axis));
    }
    all
}

/// Whether elements of a matrix lie on a diagonal or below it; bool.
#[track_caller]
fn is_below(rows: usize, columns: usize, offset: i64) -> Tensor {
    let row = position_along(&[rows, columns], 0);
    let column = position_along(&[rows, columns], 1);
    // Beyond the corners every offset is the same.
    let (rows, columns) = (rows.min(1 << 62) as i64, columns.min(1 << 62) as i64);
    column.subtract(row).less_equal(offset.clamp(-rows, columns))
}

/// NumPy's `tri`: ones on a diagonal and below it, zeros elsewhere; `offset` above the main diagonal if
/// positive; (rows, columns), float64.
///
/// ```
/// use tharsis_numeric::grid::tri;
/// assert_eq!(tri(2, 2, 0).to_vec::<f64>()?, [1.0, 0.0, 1.0, 1.0]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` if the shape is too big.
#[track_caller]
pub fn tri(rows: usize, columns: usize, offset: i64) -> Tensor {
    carry!(check_shape(&[rows, columns]));
    is_below(rows, columns, offset).astype(DType::F64)
}

/// NumPy's `vander`: powers of the elements in columns, the highest first unless `increasing`; (n,) to (n,
/// columns).
///
/// ```
/// use tharsis_numeric::{arange, grid::vander};
/// assert_eq!(vander(&arange(3), 2, false).to_vec::<i64>()?, [0, 1, 1, 1, 2, 1]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` unless the tensor has one axis.
#[track_caller]
pub fn vander(x: &Tensor, columns: usize, increasing: bool) -> Tensor {
    if carry!(x.ndim()) != 1 {
        let text = "x must be a one-dimensional array or sequence.".to_owned();
        return Tensor::refused(GraphError::Value(text), &[x]);
    }
    let dtype = tharsis_kernels::promote(carry!(x.dtype()), DType::I64);
    let x = cast(x, dtype).expand_dims(1);
    let powers = cast(&arange(columns), dtype);
    let ascending = x.power(&powers);
    if increasing { ascending } else { ascending.flip(Some(&[1])) }
}

impl Tensor {
    /// NumPy's `tril`: the elements of matrices on a diagonal and below it, zeros elsewhere; `offset` above
    /// the main diagonal if positive; (.., m, n), any dtype. A tensor of one axis is repeated as rows.
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// assert_eq!(ones(&[2, 2]).tril(0).to_vec::<f64>()?, [1.0, 0.0, 1.0, 1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for no axes.
    #[track_caller]
    pub fn tril(&self, offset: i64) -> Tensor {
        self.triangle("tril", offset)
    }

    /// NumPy's `triu`: the elements of matrices on a diagonal and above it; as [`Tensor::tril`].
    ///
    /// ```
    /// use tharsis_numeric::ones;
    /// assert_eq!(ones(&[2, 2]).triu(0).to_vec::<f64>()?, [1.0, 1.0, 0.0, 1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::tril`].
    #[track_caller]
    pub fn triu(&self, offset: i64) -> Tensor {
        self.triangle("triu", offset)
    }

    #[track_caller]
    fn triangle(&self, name: &'static str, offset: i64) -> Tensor {
        let shape = carry!(self.shape());
        let (rows, columns) = match shape {
            [] => {
                let text = format!("{name} needs an array of at least one axis");
                return Tensor::refused(GraphError::Value(text), &[self]);
            }
            &[columns] => (columns, columns),
            &[.., rows, columns] => (rows, columns),
        };
        if !is_known(&[rows, columns]) {
            let mut whole = shape.to_vec();
            if whole.len() == 1 {
                whole.push(UNKNOWN);
            }
            let meta = carry!(self.meta_with(whole));
            return late(name, offset, meta, &[self], move |x| x[0].triangle(name, offset));
        }
        let zero = full(&[], 0i64, carry!(self.dtype()));
        match name {
            "tril" => where_(&is_below(rows, columns, offset), self, &zero),
            _ => where_(&is_below(rows, columns, offset.saturating_sub(1)), &zero, self),
        }
    }

    /// NumPy's `diag`: a matrix with these elements on a diagonal, (n,) to (n + k, n + k); or the diagonal of
    /// a matrix, (m, n) to (k,). `offset` is above the main diagonal if positive; any dtype.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert_eq!(arange(2).diag(0).to_vec::<i64>()?, [0, 0, 0, 1]);
    /// assert_eq!(arange(4).reshape(&[2, 2]).diag(0).to_vec::<i64>()?, [0, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for other numbers of axes, or if the matrix is too big.
    #[track_caller]
    pub fn diag(&self, offset: i64) -> Tensor {
        match *carry!(self.shape()) {
            [_, _] => self.diagonal(offset),
            [UNKNOWN] => {
                let meta = carry!(self.meta_with(vec![UNKNOWN; 2]));
                late("diag", offset, meta, &[self], move |x| x[0].diag(offset))
            }
            [extent] => {
                let side = extent as u64 + offset.unsigned_abs();
                let Ok(side) = usize::try_from(side) else {
                    let text = format!("diag: a matrix of {side} rows is too big");
                    return Tensor::refused(GraphError::Value(text), &[self]);
                };
                carry!(check_shape(&[side, side]), self);
                let (row, column) = (position_along(&[side, side], 0), position_along(&[side, side], 1));
                let on = column.subtract(&row).equal(offset);
                let zeros = full(&[offset.unsigned_abs() as usize], 0i64, carry!(self.dtype()));
                // Row r of the matrix has element r, or r + offset above.
                let rows = if offset < 0 {
                    crate::manipulate::concatenate(&[&zeros, self], 0)
                } else {
                    crate::manipulate::concatenate(&[self, &zeros], 0)
                };
                where_(&on, rows.expand_dims(1), full(&[], 0i64, carry!(self.dtype())))
            }
            _ => Tensor::refused(GraphError::Value("Input must be 1- or 2-d.".to_owned()), &[self]),
        }
    }
}
