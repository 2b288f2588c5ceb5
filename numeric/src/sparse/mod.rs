//! Sparse matrices: memory in proportion to the elements that are stored.
//!
//! A [`Sparse`] is a matrix in tiles of compressed rows. Each tile is a chunk of three tensors (ends of rows,
//! columns, values), which are planned, run, stored and sent like all others: lazily, on threads, workers and
//! nodes. How many elements a tile stores is known only after a run where it depends on values
//! ([`tharsis_graph::phases`]); it is counted first, so plans have exact sizes here too.
//!
//! ```
//! use tharsis_numeric::sparse::Sparse;
//! use tharsis_numeric::{Chunks, ones};
//!
//! let a = Sparse::random([1000, 1000], 0.01, 7, Chunks::Auto)?;
//! let b = a.matmul(&a.transpose())?;
//! let sums = b.dot(&ones(&[1000]));
//! assert_eq!(sums.shape()?, [1000]);
//! # Ok::<(), tharsis_numeric::Error>(())
//! ```

mod algebra;
mod create;

use crate::create::arange;
use crate::error::{Blame, Result};
use crate::run::default_executor;
use crate::tensor::Tensor;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use tharsis_graph::Chunks;
use tharsis_graph::Error as GraphError;
use tharsis_graph::ops::{SparseCall, SparseFrom, SparsePart};
use tharsis_graph::shape::UNKNOWN;
use tharsis_graph::tiling::AxisTiling;
use tharsis_graph::{Executor, Metrics};
use tharsis_kernels::DType;
use tharsis_kernels::sparse::Sparse as Function;

/// A matrix of which only some elements are stored; all others are zero.
///
/// In each row stored elements ascend by column and no place is stored twice. Stored elements may be zero
/// ([`Sparse::prune`] leaves them out). Cloning is cheap and shares the expression.
#[derive(Clone)]
pub struct Sparse {
    rows: AxisTiling,
    columns: AxisTiling,
    /// The ends of the rows of each tile.
    ends: Tensor,
    /// Columns within the tile.
    places: Tensor,
    values: Tensor,
}

impl fmt::Debug for Sparse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tiles, values) = (self.grid(), &self.values);
        write!(f, "Sparse({:?} in {tiles:?} tiles, {values:?})", self.shape())
    }
}

impl Sparse {
    /// Rows and columns.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, sparse::Sparse};
    /// assert_eq!(Sparse::eye(2, 3, 0, Chunks::Auto)?.shape(), [2, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn shape(&self) -> [usize; 2] {
        [self.rows.len(), self.columns.len()]
    }

    /// The dtype of the elements.
    ///
    /// # Errors
    /// The error that its values carry.
    pub fn dtype(&self) -> Result<DType> {
        self.values.dtype()
    }

    /// Tiles down and across.
    pub fn grid(&self) -> [usize; 2] {
        [self.rows.count(), self.columns.count()]
    }

    /// SciPy's `data`: the stored elements, tile by tile and row by row; (nnz,).
    pub fn values(&self) -> &Tensor {
        &self.values
    }

    /// SciPy's `nnz`: how many elements are stored. Runs what that depends on, unless it is known.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, sparse::Sparse};
    /// assert_eq!(Sparse::eye(2, 3, 1, Chunks::Auto)?.nnz()?, 2);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`execute`](crate::execute).
    #[track_caller]
    pub fn nnz(&self) -> Result<u64> {
        if self.values.is_known()? { self.values.size() } else { self.values.compute_chunk_sizes()?.size() }
    }

    /// The same matrix, computed: it is not computed again by what uses it.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, ones, sparse::Sparse};
    /// let a = ones(&[2, 2]).to_sparse(Chunks::Auto)?.persist()?;
    /// assert_eq!(a.nnz()?, 4);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`execute`](crate::execute).
    #[track_caller]
    pub fn persist(&self) -> Result<Sparse> {
        Ok(self.persist_on(&*default_executor())?.0)
    }

    /// The same matrix, computed on this executor.
    #[track_caller]
    pub(crate) fn persist_on(&self, executor: &dyn Executor) -> Result<(Sparse, Metrics)> {
        let (computed, metrics) = crate::run::execute(&self.parts(), executor)?;
        match <[Tensor; 3]>::try_from(computed) {
            Ok([ends, places, values]) => Ok((Sparse { ends, places, values, ..self.clone() }, metrics)),
            Err(_) => Err(GraphError::Internal("a sparse matrix has three tensors".to_owned())).blame(),
        }
    }

    /// SciPy's `toarray`: all elements; (m, n).
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, sparse::Sparse};
    /// let a = Sparse::eye(2, 2, 0, Chunks::Auto)?;
    /// assert_eq!(a.to_dense().to_vec::<f64>()?, [1.0, 0.0, 0.0, 1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn to_dense(&self) -> Tensor {
        let call = self.call(Function::ToDense, self.rows.clone(), self.columns.clone());
        Tensor::apply(SparsePart::new(Arc::new(call), 0), &self.parts())
    }

    /// SciPy's `tocoo`: the row, the column (int64) and the value of each stored element, tile by tile;
    /// (nnz,) each.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, sparse::Sparse};
    /// let [rows, columns, values] = Sparse::eye(2, 3, 1, Chunks::Auto)?.to_coo();
    /// assert_eq!((rows.to_vec::<i64>()?, columns.to_vec::<i64>()?), (vec![0, 1], vec![1, 2]));
    /// assert_eq!(values.to_vec::<f64>()?, [1.0, 1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn to_coo(&self) -> [Tensor; 3] {
        let call = Arc::new(self.call(Function::Coordinates, self.rows.clone(), self.columns.clone()));
        let part = |part| Tensor::apply(SparsePart::new(call.clone(), part), &self.parts());
        [part(0), part(1), self.values.clone()]
    }

    /// The triplets in the order of rows and then columns, however the matrix is cut.
    pub(crate) fn ordered_triplets(&self) -> [Tensor; 3] {
        let triplets = self.to_coo();
        if self.columns.count() == 1 {
            return triplets;
        }
        let place = triplets[0].multiply(self.columns.len() as i64).add(&triplets[1]);
        let order = place.argsort(0);
        triplets.map(|part| part.take_at(&order, 0))
    }

    /// SciPy's `tocsr`: where the elements of each row begin, and the end, (m + 1,) of int64; the column of
    /// each stored element, int64, and its value. Columns that are cut are put together first.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, sparse::Sparse};
    /// let [ends, columns, _] = Sparse::eye(2, 3, 1, Chunks::Auto)?.to_csr()?;
    /// assert_eq!((ends.to_vec::<i64>()?, columns.to_vec::<i64>()?), (vec![0, 1, 2], vec![1, 2]));
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Sparse::from_coo`], if columns are cut.
    #[track_caller]
    pub fn to_csr(&self) -> Result<[Tensor; 3]> {
        let [m, n] = self.shape();
        if self.columns.count() != 1 {
            let whole = Chunks::PerAxis(vec![self.rows.longest().max(1), n.max(1)]);
            return self.rechunk(whole)?.to_csr();
        }
        let [rows, columns, values] = self.to_coo();
        Ok([rows.searchsorted(&arange(m + 1)), columns, values])
    }

    /// SciPy's `tocsc`: as [`Sparse::to_csr`] of the transposed matrix: the ends of columns, rows, values.
    ///
    /// # Errors
    /// As [`Sparse::to_csr`].
    #[track_caller]
    pub fn to_csc(&self) -> Result<[Tensor; 3]> {
        self.transpose().to_csr()
    }

    /// The same matrix in other tiles.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, sparse::Sparse};
    /// let a = Sparse::eye(4, 4, 0, Chunks::Auto)?;
    /// assert_eq!(a.rechunk(Chunks::Each(2))?.grid(), [2, 2]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Sparse::from_coo`].
    #[track_caller]
    pub fn rechunk(&self, chunks: Chunks) -> Result<Sparse> {
        let [rows, columns, values] = self.to_coo();
        Sparse::from_coo(self.shape(), &rows, &columns, &values, chunks)
    }

    /// The transposed matrix, (n, m): SciPy's `T`.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, sparse::Sparse};
    /// let a = Sparse::eye(2, 3, 1, Chunks::Auto)?.transpose();
    /// assert_eq!(a.to_dense().to_vec::<f64>()?, [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn transpose(&self) -> Sparse {
        let call = self.call(Function::Transpose, self.columns.clone(), self.rows.clone());
        Sparse::made(call, &self.parts())
    }

    /// The matrix of some rows, NumPy's `a[start:stop]`: (stop - start, n). A range beyond the end is cut.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, sparse::Sparse};
    /// let a = Sparse::eye(3, 2, 0, Chunks::Auto)?.rows(1..3);
    /// assert_eq!(a.to_dense().to_vec::<f64>()?, [0.0, 1.0, 0.0, 0.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn rows(&self, range: Range<usize>) -> Sparse {
        let end = range.end.min(self.rows.len());
        let start = range.start.min(end);
        let (mut lengths, mut first_tile, mut first) = (Vec::new(), 0, 0);
        for tile in 0..self.rows.count() {
            let (from, len) = self.rows.piece(tile);
            let (low, high) = (from.max(start), (from + len).min(end));
            if low < high {
                if lengths.is_empty() {
                    (first_tile, first) = (tile, low - from);
                }
                lengths.push(high - low);
            }
        }
        if lengths.is_empty() {
            lengths.push(0);
        }
        let rows = AxisTiling::from_lengths(&lengths);
        let mut call = self.call(Function::Rows { first }, rows, self.columns.clone());
        call.from = SparseFrom::Tile(first_tile * self.columns.count());
        Sparse::made(call, &self.parts())
    }

    /// SciPy's `eliminate_zeros` as a new matrix: stored elements that are zero are left out.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, sparse::Sparse};
    /// let a = Sparse::eye(2, 2, 0, Chunks::Auto)?;
    /// assert_eq!(a.subtract(&a)?.prune().nnz()?, 0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn prune(&self) -> Sparse {
        let call = self.call(Function::Prune, self.rows.clone(), self.columns.clone());
        Sparse::made(call, &self.parts())
    }

    /// A function of this matrix alone.
    fn call(&self, function: Function, rows: AxisTiling, columns: AxisTiling) -> SparseCall {
        SparseCall { function, rows, columns, grids: vec![self.grid()], from: SparseFrom::All }
    }

    /// The tensors of this matrix, as inputs.
    fn parts(&self) -> [&Tensor; 3] {
        [&self.ends, &self.places, &self.values]
    }

    /// The matrix that a function makes.
    #[track_caller]
    fn made(call: SparseCall, inputs: &[&Tensor]) -> Sparse {
        let (rows, columns) = (call.rows.clone(), call.columns.clone());
        let call = Arc::new(call);
        let [ends, places, values] =
            [0, 1, 2].map(|part| Tensor::apply(SparsePart::new(call.clone(), part), inputs));
        Sparse { rows, columns, ends, places, values }
    }

    /// The matrix with other values at the same places.
    fn with_values(&self, values: Tensor) -> Sparse {
        Sparse { values, ..self.clone() }
    }
}

impl Tensor {
    /// The elements of a matrix that are not zero; (m, n). NaN is stored, minus zero is not. Tiles of `Auto`
    /// are blocks of rows.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, array};
    /// let a = array([0.0, 2.0, 0.0, 3.0]).reshape(&[2, 2]).to_sparse(Chunks::Auto)?;
    /// assert_eq!(a.nnz()?, 2);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` without two axes, or for chunks that do not fit; the errors of
    /// [`execute`](crate::execute) if a size is not known yet.
    ///
    /// # Distributed
    /// Each task makes a tile of the dense one in its place.
    #[track_caller]
    pub fn to_sparse(&self, chunks: Chunks) -> Result<Sparse> {
        if !self.is_known()? {
            return self.compute_chunk_sizes()?.to_sparse(chunks);
        }
        let &[m, n] = self.shape()? else {
            let text = format!("a sparse matrix has two axes, the array has {}", self.ndim()?);
            return Err(GraphError::Value(text)).blame();
        };
        let size = self.dtype()?.size_bytes();
        let rows = (DENSE_TILE_BYTES / (n.max(1) * size)).max(1);
        let [rows, columns] = create::cuts([m, n], chunks, rows).blame()?;
        let call =
            SparseCall { function: Function::FromDense, rows, columns, grids: vec![], from: SparseFrom::All };
        Ok(Sparse::made(call, &[self]))
    }
}

/// Bytes of the dense part that a task makes a tile of.
const DENSE_TILE_BYTES: usize = 16 << 20;

/// Whether a tensor's size awaits a run.
fn awaits(tensor: &Tensor) -> bool {
    tensor.shape().is_ok_and(|shape| shape.contains(&UNKNOWN))
}

#[cfg(test)]
mod tests;
