//! Tensors of the columns of frames.

use super::convert::{View, dtype_of, missing_values};
use super::errors::to_tensors;
use crate::frame::kept::InStore;
use crate::tensor::kept::ColumnInStore;
use std::any::Any;
use std::sync::Arc;
use tharsis_dataframe::{
    Aggregate, DataFrame, Error, Index, KeptPart, Resident as Rows, Result, Series, Value, default_executor,
};
use tharsis_graph::ops::{KeptChunk, Resident, ResidentChunk};
use tharsis_graph::tiling::{AxisTiling, Tiling};
use tharsis_kernels::{Chunk, DType};
use tharsis_numeric::Tensor;

/// Tensors of columns.
///
/// ```
/// use tharsis::frame::{DataFrame, ToFrame, ToTensor};
///
/// let _runtime = tharsis::init().start()?;
/// let points = DataFrame::from_columns([
///     ("x", vec![3.0, 6.0].into()),
///     ("y", vec![4.0, 8.0].into()),
/// ]);
/// let matrix = points.to_tensor()?;
/// assert_eq!(matrix.shape()?, [2, 2]);
/// let norms = (&matrix * &matrix).sum(1).sqrt().to_series("norm")?;
/// assert_eq!(norms.values::<f64>()?, [Some(5.0), Some(10.0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ToTensor {
    /// The values as a tensor: of a series or an index along one axis, of a frame as a matrix with a column
    /// for each. The columns of a matrix have the dtype that NumPy finds for them all. An index of several
    /// levels has a column for each too.
    ///
    /// Computes the rows, which stay where tasks made them. Tasks of the tensor read a column there without a
    /// copy, if all its values are there and it holds numbers. A missing float is not a number.
    ///
    /// # Errors
    /// `TypeError` for columns of other values than numbers and truth values; `ValueError` if such a column,
    /// other than of floats, misses values; an error of the run.
    fn to_tensor(&self) -> Result<Tensor>;

    /// As [`ToTensor::to_tensor`], with this value for missing ones.
    ///
    /// # Errors
    /// As [`ToTensor::to_tensor`], but for missing values.
    fn to_tensor_filled(&self, value: impl Into<Value>) -> Result<Tensor>;
}

impl ToTensor for Series {
    fn to_tensor(&self) -> Result<Tensor> {
        one(columns(&self.to_frame())?)
    }

    fn to_tensor_filled(&self, value: impl Into<Value>) -> Result<Tensor> {
        self.fillna(value).to_tensor()
    }
}

impl ToTensor for DataFrame {
    fn to_tensor(&self) -> Result<Tensor> {
        let columns = columns(self)?;
        let columns: Vec<&Tensor> = columns.iter().collect();
        Ok(tharsis_numeric::stack(&columns, 1))
    }

    fn to_tensor_filled(&self, value: impl Into<Value>) -> Result<Tensor> {
        self.fillna(value).to_tensor()
    }
}

impl ToTensor for Index {
    fn to_tensor(&self) -> Result<Tensor> {
        match self.nlevels() {
            1 => one(columns(&self.to_frame())?),
            _ => self.to_frame().to_tensor(),
        }
    }

    fn to_tensor_filled(&self, value: impl Into<Value>) -> Result<Tensor> {
        let filled = self.to_frame().fillna(value);
        match self.nlevels() {
            1 => one(columns(&filled)?),
            _ => filled.to_tensor(),
        }
    }
}

fn one(mut columns: Vec<Tensor>) -> Result<Tensor> {
    columns.pop().ok_or_else(|| Error::Internal("a series without a column".to_owned()))
}

/// A tensor of each column.
fn columns(frame: &DataFrame) -> Result<Vec<Tensor>> {
    let labels = frame.dtypes()?;
    if labels.is_empty() {
        return Err(Error::Value("a tensor is made of at least one column".to_owned()));
    }
    let dtypes: Vec<DType> =
        labels.iter().map(|(label, dtype)| dtype_of(label, dtype)).collect::<Result<_>>()?;
    let rows = frame.parts_on(&*default_executor())?;
    check_missing(&rows)?;
    let pieces = pieces(&rows.parts);
    let tensors = dtypes.into_iter().enumerate().map(|(column, dtype)| tensor(&pieces, column, dtype));
    tensors.collect()
}

/// Refuses missing values in columns that have no sign for them.
fn check_missing(rows: &Rows) -> Result<()> {
    let frame = DataFrame::from_parts(rows.clone());
    let columns = frame.dtypes()?;
    let unsigned: Vec<_> = columns.into_iter().filter(|(_, dtype)| !dtype.is_floating()).collect();
    let total = rows.rows();
    for (label, dtype) in unsigned {
        let there = frame.col(&label).agg(Aggregate::Count)?.as_i64().unwrap_or(0) as usize;
        if there < total {
            return Err(missing_values(&format!("column {label:?}"), &dtype, total - there));
        }
    }
    Ok(())
}

/// Rows of a part.
struct Piece {
    part: Arc<dyn KeptPart>,
    from: usize,
    rows: usize,
}

/// Most rows of a chunk: 4 MiB of the widest numbers. It is a multiple of 64, so that each chunk begins
/// where a cache line does.
const CHUNK_ROWS: usize = 512 << 10;

/// All rows, in pieces that are chunks.
fn pieces(parts: &[Arc<dyn KeptPart>]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for part in parts {
        let total = part.rows();
        let starts = (0..total).step_by(CHUNK_ROWS);
        pieces.extend(starts.map(|from| {
            let rows = CHUNK_ROWS.min(total - from);
            Piece { part: Arc::clone(part), from, rows }
        }));
    }
    pieces
}

fn tensor(pieces: &[Piece], column: usize, dtype: DType) -> Result<Tensor> {
    let lengths: Vec<usize> = pieces.iter().map(|piece| piece.rows).collect();
    let mut chunks: Vec<ResidentChunk> = pieces.iter().map(|piece| piece.chunk(column)).collect();
    let axis = if chunks.is_empty() {
        let empty = Chunk::contiguous(dtype, &[0], tharsis_kernels::Buffer::default());
        let empty = empty.map_err(|error| Error::Internal(error.to_string()))?;
        chunks.push(ResidentChunk::Here(Arc::new(empty)));
        AxisTiling::whole(0)
    } else {
        AxisTiling::from_lengths(&lengths)
    };
    let tiling = Tiling { axes: vec![axis] };
    Ok(Tensor::apply(Resident { dtype, tiling, chunks: Arc::new(chunks) }, &[]))
}

impl Piece {
    /// A column of these rows as a chunk, which is read where it lies.
    fn chunk(&self, column: usize) -> ResidentChunk {
        let view = View { column, from: self.from, rows: self.rows };
        match (self.part.as_ref() as &dyn Any).downcast_ref::<InStore>() {
            Some(stored) => {
                let (object, client) = stored.source();
                ResidentChunk::Kept(Arc::new(ColumnInStore { object, client, view }))
            }
            None => ResidentChunk::Kept(Arc::new(ColumnOfPart { part: Arc::clone(&self.part), view })),
        }
    }
}

/// Rows of a column of a part that this process can fetch.
struct ColumnOfPart {
    part: Arc<dyn KeptPart>,
    view: View,
}

impl KeptChunk for ColumnOfPart {
    fn fetch(&self) -> std::result::Result<Arc<Chunk>, tharsis_graph::Error> {
        let made = self.part.fetch().and_then(|rows| self.view.chunk(&rows));
        made.map(Arc::new).map_err(to_tensors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::TaskOutput;
    use tharsis_dataframe::arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
    use tharsis_remote::put;

    #[test]
    fn the_labels_of_an_index_are_a_tensor() {
        let frame = DataFrame::from_columns([
            ("k", vec![3, 1, 2].into()),
            ("l", vec![0.5, f64::NAN, 2.0].into()),
            ("v", vec![7, 8, 9].into()),
        ]);
        let labels = frame.set_index(["k"]).index().to_tensor().unwrap();
        assert_eq!(labels.to_vec::<i64>().unwrap(), [3, 1, 2]);
        let levels = frame.set_index(["k", "l"]).index().to_tensor_filled(4.0).unwrap();
        assert_eq!(levels.shape().unwrap(), [3, 2]);
        assert_eq!(levels.to_vec::<f64>().unwrap(), [3.0, 0.5, 1.0, 4.0, 2.0, 2.0]);
        let texts = Index::from_values("t", vec!["a", "b"]).to_tensor().unwrap_err();
        assert!(matches!(texts, Error::Type(_)), "{texts}");
    }

    #[test]
    fn a_column_in_the_store_is_read_where_it_lies() {
        let runtime = crate::init().start_local().unwrap();
        let _entered = runtime.enter();
        let names: ArrayRef = Arc::new(StringArray::from_iter_values((0..5000).map(|n| n.to_string())));
        let x: ArrayRef = Arc::new(Float64Array::from_iter_values((0..5000).map(f64::from)));
        let rows = RecordBatch::try_from_iter([("name", names), ("x", x)]).unwrap();
        let object = put(&TaskOutput::of_rows(vec![rows])).unwrap();
        let rows = object.get().unwrap().into_rows().unwrap();
        let view = View { column: 1, from: 64, rows: 4000 };
        let chunk = view.chunk(&rows).unwrap();
        assert_eq!(chunk.as_slice::<f64>().unwrap()[..2], [64.0, 65.0]);
        let column = rows[0].column(1).to_data().buffers()[0].as_ptr().addr();
        let at = column + 64 * size_of::<f64>();
        assert_eq!(chunk.buffer().bytes().as_ptr().addr(), at, "the column was copied");
    }
}
