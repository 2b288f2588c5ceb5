//! Columns as chunks, and chunks as columns.

use super::errors::to_frames;
use crate::object::TaskOutput;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tharsis_dataframe::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray, RecordBatch,
};
use tharsis_dataframe::arrow::buffer::{Buffer as ArrowBuffer, ScalarBuffer};
use tharsis_dataframe::arrow::compute::concat;
use tharsis_dataframe::arrow::datatypes::{
    DataType, Field, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Schema, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use tharsis_dataframe::{Error, Result, without_nan};
use tharsis_kernels::{Bool, Buffer, Chunk, DType, Element, KernelError};

/// Rows of a column of a frame's part, as a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct View {
    /// The position of the column.
    pub(crate) column: usize,
    /// The first row, and the number of rows.
    pub(crate) from: usize,
    pub(crate) rows: usize,
}

/// A chunk of rows of a tensor, as a frame's part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Form {
    /// The labels of the columns.
    pub(crate) labels: Vec<String>,
}

/// Runs code with the element type and the Arrow type of a dtype, if there are both.
macro_rules! with_types {
    ($dtype:expr, $element:ident, $arrow:ident => $body:expr, else $other:expr) => {
        with_types!(@each $dtype, $element, $arrow, $body, $other;
            I8 i8 Int8Type, I16 i16 Int16Type, I32 i32 Int32Type, I64 i64 Int64Type, U8 u8 UInt8Type,
            U16 u16 UInt16Type, U32 u32 UInt32Type, U64 u64 UInt64Type, F32 f32 Float32Type,
            F64 f64 Float64Type)
    };
    (@each $dtype:expr, $element:ident, $arrow:ident, $body:expr, $other:expr;
        $($name:ident $number:ident $of:ident),*) => {
        match $dtype {
            $(DType::$name => {
                type $element = $number;
                type $arrow = $of;
                $body
            })*
            _ => $other,
        }
    };
}

/// The dtype of a column's tensor.
///
/// # Errors
/// `TypeError` for columns that are no numbers or truth values.
pub(crate) fn dtype_of(label: &str, dtype: &DataType) -> Result<DType> {
    Ok(match dtype {
        DataType::Boolean => DType::Bool,
        DataType::Int8 => DType::I8,
        DataType::Int16 => DType::I16,
        DataType::Int32 => DType::I32,
        DataType::Int64 => DType::I64,
        DataType::UInt8 => DType::U8,
        DataType::UInt16 => DType::U16,
        DataType::UInt32 => DType::U32,
        DataType::UInt64 => DType::U64,
        DataType::Float32 => DType::F32,
        DataType::Float64 => DType::F64,
        other => {
            let text = format!("a tensor is made of numbers or truth values, column {label:?} is {other}");
            return Err(Error::Type(text));
        }
    })
}

/// The type of the columns of a tensor.
///
/// # Errors
/// `TypeError` for dtypes that frames do not have.
pub(crate) fn arrow_type_of(dtype: DType) -> Result<DataType> {
    Ok(match dtype {
        DType::Bool => DataType::Boolean,
        DType::F16 => Float16Type::DATA_TYPE,
        other => with_types!(other, _Number, Arrow => Arrow::DATA_TYPE, else {
            return Err(Error::Type(format!("a frame has no columns of {dtype}")));
        }),
    })
}

impl View {
    /// The chunk of rows in an object. Of one in blocks, those that have the rows are read.
    ///
    /// # Errors
    /// As [`View::chunk`], and those of the store.
    pub(crate) fn chunk_in(&self, object: TaskOutput) -> Result<Chunk> {
        let (mut first, mut before, mut batches) = (0, 0, Vec::new());
        for part in object.into_parts()? {
            let end = first + part.rows();
            match (end <= self.from, self.from + self.rows <= first) {
                (true, _) => before = end,
                (_, true) => break,
                _ => batches.extend(part.fetch()?),
            }
            first = end;
        }
        View { from: self.from - before, ..*self }.chunk(&batches)
    }

    /// The chunk, over the column's memory if it is in one piece, begins at a line of the cache, and all its
    /// values are there.
    ///
    /// # Errors
    /// `ValueError` for missing values of a type that has no sign for them.
    pub(crate) fn chunk(&self, batches: &[RecordBatch]) -> Result<Chunk> {
        let pieces = self.pieces(batches)?;
        let array = match &pieces[..] {
            [piece] => Arc::clone(piece),
            [] => return Err(Error::Internal("a chunk of no rows".to_owned())),
            pieces => concat(&pieces.iter().map(|piece| &**piece).collect::<Vec<_>>())?,
        };
        if array.len() == self.rows {
            chunk_of(&array)
        } else {
            Err(Error::Internal(format!("{} rows were given for {}", array.len(), self.rows)))
        }
    }

    /// The rows of the column, batch by batch.
    fn pieces(&self, batches: &[RecordBatch]) -> Result<Vec<ArrayRef>> {
        let (mut first, mut pieces) = (0, Vec::new());
        for batch in batches {
            let (from, to) = (self.from.max(first), (self.from + self.rows).min(first + batch.num_rows()));
            if from < to {
                let column = batch.columns().get(self.column);
                let column =
                    column.ok_or_else(|| Error::Internal("a column that is not there".to_owned()))?;
                pieces.push(column.slice(from - first, to - from));
            }
            first += batch.num_rows();
        }
        Ok(pieces)
    }
}

fn chunk_of(array: &ArrayRef) -> Result<Chunk> {
    if let Some(truths) = array.as_boolean_opt() {
        refuse_missing(array)?;
        let truths: Vec<Bool> = truths.values().iter().map(Bool::from).collect();
        return Chunk::from_elements(&[truths.len()], &truths).map_err(of_kernel);
    }
    let dtype = dtype_of("", array.data_type())?;
    with_types!(dtype, Number, Arrow => {
        let numbers = array.as_primitive::<Arrow>();
        match numbers.null_count() {
            0 => shared::<Arrow>(numbers, dtype),
            _ => filled::<Number, Arrow>(array, numbers),
        }
    }, else Err(Error::Type(format!("a tensor of {dtype}"))))
}

/// A chunk over the memory of a column; over a copy if that is not aligned as buffers are.
fn shared<A: ArrowPrimitiveType>(numbers: &PrimitiveArray<A>, dtype: DType) -> Result<Chunk> {
    let lent = Arc::new(Column(numbers.values().inner().clone()));
    Chunk::contiguous(dtype, &[numbers.len()], Buffer::shared(lent)).map_err(of_kernel)
}

/// The memory of a column, lent to a chunk.
struct Column(ArrowBuffer);

impl AsRef<[u8]> for Column {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

/// A copy in which missing values are no numbers.
fn filled<T: Element + NoNumber, A: ArrowPrimitiveType<Native = T>>(
    array: &ArrayRef,
    numbers: &PrimitiveArray<A>,
) -> Result<Chunk> {
    let Some(none) = T::NO_NUMBER else {
        refuse_missing(array)?;
        return Err(Error::Internal("missing values are counted wrong".to_owned()));
    };
    let numbers: Vec<T> = numbers.iter().map(|number| number.unwrap_or(none)).collect();
    Chunk::from_elements(&[numbers.len()], &numbers).map_err(of_kernel)
}

/// The sign for missing values that a type has.
trait NoNumber: Sized {
    const NO_NUMBER: Option<Self>;
}

macro_rules! no_number {
    ($($number:ty => $none:expr),*) => {
        $(impl NoNumber for $number {
            const NO_NUMBER: Option<$number> = $none;
        })*
    };
}

no_number!(i8 => None, i16 => None, i32 => None, i64 => None, u8 => None, u16 => None, u32 => None,
    u64 => None, f32 => Some(f32::NAN), f64 => Some(f64::NAN));

fn refuse_missing(array: &ArrayRef) -> Result<()> {
    match array.null_count() {
        0 => Ok(()),
        missing => Err(missing_values("a column", array.data_type(), missing)),
    }
}

/// The error for missing values of a type that has no sign for them.
pub(crate) fn missing_values(what: &str, dtype: &DataType, missing: usize) -> Error {
    Error::Value(format!("{what} of {dtype} misses {missing} values: give a value for them"))
}

impl Form {
    /// The rows of a chunk, over its memory if it has one column.
    ///
    /// # Errors
    /// `TypeError` for dtypes that frames do not have.
    pub(crate) fn rows(&self, chunk: &Chunk) -> Result<RecordBatch> {
        let width = chunk.shape().get(1).copied().unwrap_or(1);
        if width != self.labels.len() {
            return Err(Error::Internal(format!("{} labels for {width} columns", self.labels.len())));
        }
        let chunk = chunk.to_contiguous().map_err(of_kernel)?;
        let columns =
            (0..width).map(|column| column_of(&chunk, column, width)).collect::<Result<Vec<_>>>()?;
        let fields = self.labels.iter().zip(&columns);
        let fields = fields.map(|(label, column)| Field::new(label, column.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        without_nan(&RecordBatch::try_new(schema, columns)?)
    }
}

/// A column of a chunk in C order.
fn column_of(chunk: &Chunk, column: usize, width: usize) -> Result<ArrayRef> {
    let dtype = chunk.dtype();
    match dtype {
        DType::Bool => {
            let truths = every(&chunk.to_vec::<Bool>().map_err(of_kernel)?, column, width);
            Ok(Arc::new(truths.into_iter().map(|truth| Some(truth.get())).collect::<BooleanArray>()))
        }
        DType::F16 => {
            let halves = every(&chunk.to_vec::<tharsis_kernels::f16>().map_err(of_kernel)?, column, width);
            Ok(Arc::new(PrimitiveArray::<Float16Type>::from_iter_values(halves)))
        }
        _ => with_types!(dtype, Number, Arrow => {
            if width == 1 {
                return Ok(Arc::new(PrimitiveArray::<Arrow>::new(lent::<Number>(chunk), None)));
            }
            let numbers = every(&chunk.to_vec::<Number>().map_err(of_kernel)?, column, width);
            Ok(Arc::new(PrimitiveArray::<Arrow>::from_iter_values(numbers)))
        }, else Err(Error::Type(format!("a frame has no columns of {dtype}")))),
    }
}

/// Every `width`th element from `first` on.
fn every<T: Copy>(elements: &[T], first: usize, width: usize) -> Vec<T> {
    elements.iter().skip(first).step_by(width.max(1)).copied().collect()
}

/// The memory of a chunk, as that of a column.
fn lent<T: tharsis_dataframe::arrow::datatypes::ArrowNativeType>(chunk: &Chunk) -> ScalarBuffer<T> {
    let start = chunk.offset() * chunk.dtype().size_bytes();
    let bytes = match chunk.len_bytes() {
        0 => Bytes::new(),
        len => Bytes::from_owner(Lent(chunk.buffer().clone())).slice(start..start + len),
    };
    ScalarBuffer::new(ArrowBuffer::from(bytes), 0, chunk.len())
}

/// The memory of a chunk, lent to a column.
struct Lent(Arc<Buffer>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

fn of_kernel(error: KernelError) -> Error {
    let text = error.to_string();
    to_frames(&error.into(), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_dataframe::arrow::array::{Float64Array, Int64Array};
    use tharsis_dataframe::arrow::buffer::MutableBuffer;

    fn batch(values: Vec<Option<f64>>) -> RecordBatch {
        let column: ArrayRef = Arc::new(Float64Array::from(values));
        RecordBatch::try_from_iter_with_nullable([("x", column, true)]).unwrap()
    }

    fn numbers(from: usize, to: usize) -> RecordBatch {
        batch((from..to).map(|x| Some(x as f64)).collect())
    }

    /// Rows in memory that is aligned, as objects of the store are. That of a vector is only by chance.
    fn aligned(rows: i32) -> RecordBatch {
        let mut numbers = MutableBuffer::new(0);
        numbers.extend((0..rows).map(f64::from));
        let column: ArrayRef = Arc::new(Float64Array::new(numbers.into(), None));
        RecordBatch::try_from_iter([("x", column)]).unwrap()
    }

    /// The first number of a chunk over 500 rows, and whether it lies in the column's memory.
    fn seen_from(from: usize) -> (f64, bool) {
        let rows = aligned(1000);
        let view = View { column: 0, from, rows: 500 };
        let chunk = view.chunk(std::slice::from_ref(&rows)).unwrap();
        let at = rows.column(0).to_data().buffers()[0].as_ptr().addr() + from * size_of::<f64>();
        (chunk.as_slice::<f64>().unwrap()[0], chunk.buffer().bytes().as_ptr().addr() == at)
    }

    #[test]
    fn a_column_without_missing_values_is_its_buffer() {
        assert_eq!(seen_from(0), (0.0, true));
        assert_eq!(seen_from(64), (64.0, true));
    }

    #[test]
    fn a_column_that_begins_between_lines_of_the_cache_is_copied() {
        assert_eq!(seen_from(1), (1.0, false));
    }

    #[test]
    fn a_chunk_of_one_column_is_its_buffer() {
        let chunk = Chunk::from_elements(&[300], &(0..300_i64).collect::<Vec<_>>()).unwrap();
        let rows = Form { labels: vec!["n".to_owned()] }.rows(&chunk).unwrap();
        let at = rows.column(0).to_data().buffers()[0].as_ptr().addr();
        assert_eq!(at, chunk.buffer().bytes().as_ptr().addr(), "the chunk was copied");
        assert_eq!(rows.column(0).as_primitive::<Int64Type>().value(299), 299);
    }

    #[test]
    fn pieces_are_put_together_and_missing_floats_are_no_numbers() {
        let batches = [numbers(0, 10), batch(vec![None, Some(11.0)]), numbers(12, 20)];
        let view = View { column: 0, from: 8, rows: 6 };
        let found = view.chunk(&batches).unwrap().to_vec::<f64>().unwrap();
        assert_eq!(found[..2], [8.0, 9.0]);
        assert!(found[2].is_nan() && found[3..] == [11.0, 12.0, 13.0]);
        let beyond = View { column: 0, from: 18, rows: 6 };
        assert!(beyond.chunk(&batches).is_err());
    }

    #[test]
    fn integers_and_truth_values_have_no_sign_for_missing_values() {
        let view = View { column: 0, from: 0, rows: 2 };
        let whole: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let truths: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None]));
        for column in [whole, truths] {
            let rows = RecordBatch::try_from_iter_with_nullable([("x", column, true)]).unwrap();
            let error = view.chunk(&[rows]).unwrap_err();
            assert!(
                error.class() == "ValueError" && error.to_string().contains("misses 1 values"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_matrix_has_a_column_for_each_of_its_columns() {
        let chunk = Chunk::from_elements(&[2, 3], &[1.0, 2.0, f64::NAN, 4.0, 5.0, 6.0]).unwrap();
        let labels = ["a", "b", "c"].map(str::to_owned).to_vec();
        let rows = Form { labels }.rows(&chunk).unwrap();
        let column = |at: usize| -> Vec<Option<f64>> {
            rows.column(at).as_primitive::<Float64Type>().iter().collect()
        };
        assert_eq!((column(0), column(2)), (vec![Some(1.0), Some(4.0)], vec![None, Some(6.0)]));
        let truths = Chunk::from_elements(&[2], &[Bool::from(true), Bool::from(false)]).unwrap();
        let rows = Form { labels: vec!["t".to_owned()] }.rows(&truths).unwrap();
        assert_eq!(rows.column(0).as_boolean().true_count(), 1);
        assert!(Form { labels: Vec::new() }.rows(&truths).is_err());
    }
}
