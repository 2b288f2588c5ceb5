//! Sparse matrices from triplets, diagonals and random numbers.

use super::{Function, Sparse, awaits};
use crate::computation::Computation;
use crate::create::{arange, ones};
use crate::error::{Blame, Result};
use crate::manipulate::concatenate;
use crate::operand::cast;
use crate::tensor::Tensor;
use tharsis_graph::ops::{SparseCall, SparseFrom};
use tharsis_graph::tiling::AxisTiling;
use tharsis_graph::{Chunks, Error as GraphError};
use tharsis_kernels::{DType, Key};

impl Sparse {
    /// SciPy's `coo_array((values, (rows, columns)), shape)`: a matrix from places and values, (k,) each;
    /// values at the same place are added up. The triplets are sorted at once, on the default executor, to
    /// find out how they fall into tiles; tiles of `Auto` are blocks of rows.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, array, sparse::Sparse};
    /// let (rows, columns) = (array([0i64, 1, 1]), array([1i64, 0, 0]));
    /// let a = Sparse::from_coo([2, 2], &rows, &columns, &array([5.0, 1.0, 2.0]), Chunks::Auto)?;
    /// assert_eq!(a.to_dense().to_vec::<f64>()?, [0.0, 5.0, 3.0, 0.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `IndexError` for a place out of range; `TypeError` unless places are integers; `ValueError` for
    /// tensors of different lengths, more than one axis, or chunks that do not fit; errors of
    /// [`execute`](crate::execute).
    ///
    /// # Distributed
    /// Triplets are sorted by samples and exchanges, as [`Tensor::sort`] does it.
    #[track_caller]
    pub fn from_coo(
        shape: [usize; 2],
        rows: &Tensor,
        columns: &Tensor,
        values: &Tensor,
        chunks: Chunks,
    ) -> Result<Sparse> {
        if [rows, columns, values].into_iter().any(awaits) {
            let known = Computation::of(&[rows, columns, values]).run()?.tensors;
            return Sparse::from_coo(shape, &known[0], &known[1], &known[2], chunks);
        }
        let count = check_triplets(rows, columns, values).blame()?;
        let (rows, columns) = (cast(rows, DType::I64), cast(columns, DType::I64));
        check_range(&rows, 0, shape[0]).and_then(|()| check_range(&columns, 1, shape[1]))?;
        let [row_cut, column_cut] = cuts(shape, chunks, tile_rows(shape[0], count)).blame()?;
        let tiles = row_cut.count() * column_cut.count();
        let width = column_cut.longest().max(1) as i64;
        let span = i64::try_from(row_cut.longest().max(1)).ok().and_then(|rows| rows.checked_mul(width));
        let Some(span) = span.filter(|span| span.checked_mul(tiles as i64).is_some()) else {
            let text = format!("a matrix of {} by {} has too many places to sort", shape[0], shape[1]);
            return Err(GraphError::Value(text)).blame();
        };
        let ((down, row), (across, column)) = (located(&rows, &row_cut), located(&columns, &column_cut));
        let tile = down.multiply(column_cut.count() as i64).add(across);
        let key = tile.multiply(span).add(row.multiply(width)).add(column);
        let order = key.argsort(0);
        let (sorted, values) = (key.take_at(&order, 0), values.take_at(&order, 0));
        let sorted = Computation::of(&[&sorted, &values]).run()?.tensors;
        let bounds = sorted[0].searchsorted(&arange(tiles + 1).multiply(span)).to_vec::<i64>()?;
        let lengths = bounds.windows(2).map(|pair| (pair[1] - pair[0]) as usize).collect();
        let call = SparseCall {
            function: Function::Assemble { width, span },
            rows: row_cut,
            columns: column_cut,
            grids: vec![],
            from: SparseFrom::Keys(lengths),
        };
        let worked = super::algebra::worked(sorted[1].dtype()?);
        let made = Sparse::made(call, &[&sorted[0], &cast(&sorted[1], worked)]);
        let values = cast(&made.values, sorted[1].dtype()?);
        Ok(made.with_values(values))
    }

    /// SciPy's `csr_array((values, columns, ends), shape)`: a matrix from where the elements of each row
    /// begin, and the end, (m + 1,); the column of each element and its value.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, array, sparse::Sparse};
    /// let (ends, columns) = (array([0i64, 1, 3]), array([1i64, 0, 1]));
    /// let a = Sparse::from_csr([2, 2], &ends, &columns, &array([5.0, 1.0, 2.0]), Chunks::Auto)?;
    /// assert_eq!(a.to_dense().to_vec::<f64>()?, [0.0, 5.0, 1.0, 2.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Sparse::from_coo`]; `ValueError` unless there are m + 1 ends, which ascend from 0 to the number
    /// of elements.
    #[track_caller]
    pub fn from_csr(
        shape: [usize; 2],
        ends: &Tensor,
        columns: &Tensor,
        values: &Tensor,
        chunks: Chunks,
    ) -> Result<Sparse> {
        if [ends, columns, values].into_iter().any(awaits) {
            let known = Computation::of(&[ends, columns, values]).run()?.tensors;
            return Sparse::from_csr(shape, &known[0], &known[1], &known[2], chunks);
        }
        let refused = |text: String| Err(GraphError::Value(text)).blame();
        if ends.shape()? != [shape[0] + 1] || !ends.dtype()?.is_integer() {
            return refused(format!("{} ends of rows are needed, as integers", shape[0] + 1));
        }
        let (ends, count) = (cast(ends, DType::I64), values.size()? as i64);
        let ascend = ends.diff(1, 0).greater_equal(0).all(..);
        let last = ends.max(..).equal(count).logical_and(ends.min(..).equal(0));
        if !ascend.logical_and(&last).item()?.is_true() {
            return refused(format!("ends of rows must ascend from 0 to {count}"));
        }
        let rows = ends.searchsorted_right(&arange(count as usize)).subtract(1);
        Sparse::from_coo(shape, &rows, columns, values, chunks)
    }

    /// SciPy's `csc_array((values, rows, ends), shape)`: as [`Sparse::from_csr`], column by column.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, array, sparse::Sparse};
    /// let (ends, rows) = (array([0i64, 1, 3]), array([1i64, 0, 1]));
    /// let a = Sparse::from_csc([2, 2], &ends, &rows, &array([5.0, 1.0, 2.0]), Chunks::Auto)?;
    /// assert_eq!(a.to_dense().to_vec::<f64>()?, [0.0, 1.0, 5.0, 2.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Sparse::from_csr`].
    #[track_caller]
    pub fn from_csc(
        shape: [usize; 2],
        ends: &Tensor,
        rows: &Tensor,
        values: &Tensor,
        chunks: Chunks,
    ) -> Result<Sparse> {
        let chunks = match chunks {
            Chunks::PerAxis(chunks) => Chunks::PerAxis(chunks.into_iter().rev().collect()),
            Chunks::Lengths(axes) => Chunks::Lengths(axes.into_iter().rev().collect()),
            other => other,
        };
        Ok(Sparse::from_csr([shape[1], shape[0]], ends, rows, values, chunks)?.transpose())
    }

    /// SciPy's `random_array`: each place is stored with a chance of `density`, with a number from 0 to 1,
    /// float64. Which places and numbers there are depends on the seed alone, not on the chunks.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, sparse::Sparse};
    /// let a = Sparse::random([1000, 1000], 0.01, 7, Chunks::Auto)?;
    /// assert!((9_000..11_000).contains(&a.nnz()?));
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a density that is not from 0 to 1, or for chunks that do not fit.
    #[track_caller]
    pub fn random(shape: [usize; 2], density: f64, seed: u64, chunks: Chunks) -> Result<Sparse> {
        if !(0.0..=1.0).contains(&density) {
            let text = format!("density expected to be 0 <= density <= 1, found {density}");
            return Err(GraphError::Value(text)).blame();
        }
        let count = density * shape[0] as f64 * shape[1] as f64;
        let [rows, columns] = cuts(shape, chunks, tile_rows(shape[0], count as usize)).blame()?;
        let key = Key::for_purpose(seed, 0, "sparse");
        let function = Function::Random { key, share: density, columns: shape[1] };
        let call = SparseCall { function, rows, columns, grids: vec![], from: SparseFrom::All };
        // Only what has an input may have a size that is not known yet.
        Ok(Sparse::made(call, &[&Tensor::number(0i64)]))
    }

    /// SciPy's `eye_array`: ones on a diagonal, `offset` above the main one if positive; (m, n), float64.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, sparse::Sparse};
    /// let a = Sparse::eye(2, 2, -1, Chunks::Auto)?;
    /// assert_eq!(a.to_dense().to_vec::<f64>()?, [0.0, 0.0, 1.0, 0.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Sparse::from_coo`].
    #[track_caller]
    pub fn eye(rows: usize, columns: usize, offset: i64, chunks: Chunks) -> Result<Sparse> {
        let values = ones(&[diagonal([rows, columns], offset)]);
        Sparse::diags(&[(offset, &values)], [rows, columns], chunks)
    }

    /// SciPy's `diags_array`: a matrix with these diagonals, each with its offset above the main one and as
    /// many elements as it has places; values of equal offsets are added up; the common dtype.
    ///
    /// ```
    /// use tharsis_numeric::{Chunks, array, sparse::Sparse};
    /// let a = Sparse::diags(&[(0, &array([1.0, 2.0])), (1, &array([3.0]))], [2, 2], Chunks::Auto)?;
    /// assert_eq!(a.to_dense().to_vec::<f64>()?, [1.0, 3.0, 0.0, 2.0]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a diagonal of another length; as [`Sparse::from_coo`].
    #[track_caller]
    pub fn diags(diagonals: &[(i64, &Tensor)], shape: [usize; 2], chunks: Chunks) -> Result<Sparse> {
        let (mut rows, mut columns) = (vec![arange(0)], vec![arange(0)]);
        for (offset, values) in diagonals {
            let count = diagonal(shape, *offset);
            if values.shape()? != [count] {
                let text = format!("diagonal {offset} has {count} places, found shape {:?}", values.shape()?);
                return Err(GraphError::Value(text)).blame();
            }
            rows.push(arange(count).add((-offset).max(0)));
            columns.push(arange(count).add((*offset).max(0)));
        }
        let joined = |parts: &[Tensor]| concatenate(&parts.iter().collect::<Vec<_>>(), 0);
        let values: Vec<&Tensor> = diagonals.iter().map(|(_, values)| *values).collect();
        let values = if values.is_empty() { ones(&[0]) } else { concatenate(&values, 0) };
        Sparse::from_coo(shape, &joined(&rows), &joined(&columns), &values, chunks)
    }
}

/// Places on a diagonal.
fn diagonal([rows, columns]: [usize; 2], offset: i64) -> usize {
    let (down, right) = ((-offset).max(0) as usize, offset.max(0) as usize);
    rows.saturating_sub(down).min(columns.saturating_sub(right))
}

/// Rows of a tile, of a matrix that stores about this many elements. The number of tiles changes with the
/// elements only where there are few or many, so that matrices of one shape are mostly cut alike.
fn tile_rows(rows: usize, stored: usize) -> usize {
    let tiles = TILES.min(stored / TILE_ELEMENTS_MIN).max(stored.div_ceil(TILE_ELEMENTS_MAX)).max(1);
    rows.div_ceil(tiles).max(1)
}

/// The cut of rows and of columns; those of `Auto` are blocks of up to this number of rows.
pub(super) fn cuts(
    shape: [usize; 2],
    chunks: Chunks,
    auto_rows: usize,
) -> std::result::Result<[AxisTiling; 2], GraphError> {
    let found = match chunks.tiling(&shape)? {
        Some(tiling) => tiling.axes,
        None => vec![AxisTiling::balanced(shape[0], auto_rows), AxisTiling::balanced(shape[1], COLUMNS_MAX)],
    };
    match <[AxisTiling; 2]>::try_from(found) {
        Ok(cuts) if cuts.iter().all(|cut| cut.longest() <= COLUMNS_MAX) => Ok(cuts),
        _ => Err(GraphError::Value(format!("tiles have at most {COLUMNS_MAX} rows and columns"))),
    }
}

/// The number of triplets.
fn check_triplets(
    rows: &Tensor,
    columns: &Tensor,
    values: &Tensor,
) -> std::result::Result<usize, GraphError> {
    let shape = |x: &Tensor| x.shape().map(<[usize]>::to_vec).map_err(|error| error.cause().clone());
    let shapes = [shape(rows)?, shape(columns)?, shape(values)?];
    let &[count] = shapes[0].as_slice() else {
        return Err(GraphError::Value("places and values have one axis each".to_owned()));
    };
    if shapes.iter().any(|shape| *shape != [count]) {
        let reason = "row, column, and data array must all be the same length".to_owned();
        return Err(GraphError::Shape { function: "coo", shapes: shapes.to_vec(), reason });
    }
    let is_integer = |x: &Tensor| x.dtype().is_ok_and(DType::is_integer);
    if count == 0 || (is_integer(rows) && is_integer(columns)) {
        Ok(count)
    } else {
        Err(GraphError::Type("places must be integers".to_owned()))
    }
}

/// Refuses places that an axis does not have.
#[track_caller]
fn check_range(places: &Tensor, axis: usize, extent: usize) -> Result<()> {
    if places.size()? == 0 {
        return Ok(());
    }
    let ends = [places.min(..), places.max(..)];
    let found = Computation::of(&[&ends[0], &ends[1]]).run()?.tensors;
    for end in found {
        let index = end.to_vec::<i64>()?[0];
        if index < 0 || extent as i64 <= index {
            let text = match index {
                ..0 => format!("negative axis {axis} index: {index}"),
                _ => format!("axis {axis} index {index} exceeds matrix dimension {extent}"),
            };
            return Err(GraphError::Value(text)).blame();
        }
    }
    Ok(())
}

/// The number of the piece in which each place is, and the place within it.
fn located(places: &Tensor, cut: &AxisTiling) -> (Tensor, Tensor) {
    if let AxisTiling::Even { chunk, .. } = cut {
        return (places.floor_divide(*chunk as i64), places.remainder(*chunk as i64));
    }
    let starts: Vec<i64> = (0..cut.count()).map(|piece| cut.piece(piece).0 as i64).collect();
    let starts = Tensor::from_elements(&[starts.len()], &starts);
    let piece = starts.searchsorted_right(places).subtract(1);
    let local = places.subtract(starts.take_at(&piece, 0));
    (piece, local)
}

/// Columns within a tile are uint32.
const COLUMNS_MAX: usize = 1 << 31;
/// Tiles that a matrix is cut into, if they are neither too small to be worth a task nor too large.
const TILES: usize = 16;
const TILE_ELEMENTS_MIN: usize = 1 << 15;
const TILE_ELEMENTS_MAX: usize = 1 << 21;
