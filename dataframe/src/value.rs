//! Single values, and columns of values, between Rust and Arrow.

use crate::error::{Error, Result};
use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, BooleanArray, Float64Array, Int64Array,
    PrimitiveArray, RecordBatch, StringArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type, Int64Type, Schema, UInt64Type};
use datafusion::common::ScalarValue;
use std::fmt;
use std::sync::Arc;

/// One value of a frame, of any type; it may be missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Value(pub(crate) ScalarValue);

impl Value {
    /// A missing value of no type.
    #[must_use]
    pub fn missing() -> Value {
        Value(ScalarValue::Null)
    }

    /// A value of a scalar.
    #[doc(hidden)]
    #[must_use]
    pub fn of(scalar: ScalarValue) -> Value {
        Value(scalar)
    }

    /// The scalar of the value.
    #[doc(hidden)]
    #[must_use]
    pub fn scalar(&self) -> &ScalarValue {
        &self.0
    }

    /// A number that is none, as Python's floats have one.
    #[doc(hidden)]
    #[must_use]
    pub fn not_a_number() -> Value {
        Value(ScalarValue::Float64(Some(f64::NAN)))
    }

    /// The value of an array at a row.
    ///
    /// # Errors
    /// The type is none that values have.
    #[doc(hidden)]
    pub fn from_array(array: &ArrayRef, row: usize) -> Result<Value> {
        Ok(Value(ScalarValue::try_from_array(array, row)?))
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.0.is_null()
    }

    /// The value as an integer, if it is one or can be one without loss.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self.0.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(value)) => value.filter(|value| {
                self.as_f64().is_none_or(|float| float.fract() == 0.0 && (*value as f64 - float).abs() < 1.0)
            }),
            _ => None,
        }
    }

    /// The value as a float, if it is a number.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        if !self.0.data_type().is_numeric() {
            return None;
        }
        match self.0.cast_to(&DataType::Float64) {
            Ok(ScalarValue::Float64(value)) => value,
            _ => None,
        }
    }

    /// The value as a truth value, if it is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self.0 {
            ScalarValue::Boolean(value) => value,
            _ => None,
        }
    }

    /// The value as a text, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        self.0.try_as_str().flatten()
    }

    /// The type of the value.
    #[must_use]
    pub fn dtype(&self) -> DataType {
        self.0.data_type()
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_null() { f.write_str("NaN") } else { write!(f, "{}", self.0) }
    }
}

/// A value for an expression: `lit(3)`, `lit("Oslo")`.
#[must_use]
pub fn lit(value: impl Into<Value>) -> Value {
    value.into()
}

macro_rules! values {
    ($($native:ty => $variant:ident),*) => {
        $(impl From<$native> for Value {
            fn from(value: $native) -> Value {
                Value(ScalarValue::$variant(Some(value.into())))
            }
        })*
    };
}

values!(bool => Boolean, i8 => Int64, i16 => Int64, i32 => Int64, i64 => Int64, u8 => Int64, u16 => Int64,
    u32 => Int64, u64 => UInt64, f32 => Float64, &str => Utf8, String => Utf8);

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        // With one zero, as the columns that it meets.
        Value(ScalarValue::Float64((!value.is_nan()).then_some(value + 0.0)))
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or_else(Value::missing, Into::into)
    }
}

/// The values of a column, from Rust.
#[derive(Clone, Debug)]
pub struct Column(ArrayRef);

impl Column {
    /// An Arrow array as a column.
    #[must_use]
    pub fn from_arrow(array: ArrayRef) -> Column {
        Column(array)
    }

    /// The Arrow array of the values.
    #[must_use]
    pub fn array(&self) -> &ArrayRef {
        &self.0
    }

    /// Number of values, missing ones too.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values, `None` where they are missing.
    ///
    /// # Errors
    /// `TypeError` for values of another type.
    pub fn values<T: Native>(&self) -> Result<Vec<Option<T>>> {
        T::read(&self.0)
    }

    pub(crate) fn into_array(self) -> ArrayRef {
        self.0
    }
}

macro_rules! columns {
    ($($native:ty => $array:ty),*) => {
        $(impl From<Vec<$native>> for Column {
            fn from(values: Vec<$native>) -> Column {
                Column(Arc::new(<$array>::from_iter(values.into_iter().map(Some))))
            }
        }
        impl From<Vec<Option<$native>>> for Column {
            fn from(values: Vec<Option<$native>>) -> Column {
                Column(Arc::new(<$array>::from_iter(values)))
            }
        })*
    };
}

columns!(bool => BooleanArray, i64 => Int64Array, f64 => Float64Array, &str => StringArray,
    String => StringArray, u64 => PrimitiveArray<UInt64Type>, f32 => PrimitiveArray<Float32Type>);

/// Integers without a suffix are of this type.
impl From<Vec<i32>> for Column {
    fn from(values: Vec<i32>) -> Column {
        values.into_iter().map(i64::from).collect::<Vec<_>>().into()
    }
}

impl From<Vec<Option<i32>>> for Column {
    fn from(values: Vec<Option<i32>>) -> Column {
        values.into_iter().map(|value| value.map(i64::from)).collect::<Vec<_>>().into()
    }
}

/// Rust types that columns can be read as.
pub trait Native: Sized {
    /// The values of an array, `None` where they are missing.
    ///
    /// # Errors
    /// `TypeError` if the array holds values of another type.
    fn read(array: &ArrayRef) -> Result<Vec<Option<Self>>>;
}

/// The array with another type, if its values are of a type that is read as it.
fn read_as(array: &ArrayRef, to: &DataType, fits: bool) -> Result<ArrayRef> {
    if fits {
        Ok(cast(array, to)?)
    } else {
        Err(Error::Type(format!("a column of {} is read as {to}", array.data_type())))
    }
}

impl Native for i64 {
    fn read(array: &ArrayRef) -> Result<Vec<Option<i64>>> {
        let array = read_as(array, &DataType::Int64, array.data_type().is_integer())?;
        Ok(array.as_primitive::<Int64Type>().iter().collect())
    }
}

impl Native for f64 {
    fn read(array: &ArrayRef) -> Result<Vec<Option<f64>>> {
        let array = read_as(array, &DataType::Float64, array.data_type().is_numeric())?;
        Ok(array.as_primitive::<Float64Type>().iter().collect())
    }
}

impl Native for bool {
    fn read(array: &ArrayRef) -> Result<Vec<Option<bool>>> {
        let array = read_as(array, &DataType::Boolean, *array.data_type() == DataType::Boolean)?;
        Ok(array.as_boolean().iter().collect())
    }
}

impl Native for String {
    fn read(array: &ArrayRef) -> Result<Vec<Option<String>>> {
        let is_text = match array.data_type() {
            DataType::Dictionary(_, values) => is_text(values),
            other => is_text(other),
        };
        let array = read_as(array, &DataType::Utf8, is_text)?;
        Ok(array.as_string::<i32>().iter().map(|value| value.map(str::to_owned)).collect())
    }
}

/// Whether values of a type are texts.
pub fn is_text(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// The batch as frames keep it: with missing values where floats are not a number, and with one zero. Columns
/// that have neither are not copied.
///
/// # Errors
/// None for a batch that is one.
pub fn without_nan(batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(array_without_nan).collect();
    let fields = batch
        .schema()
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_nullable(true))
        .collect::<Vec<_>>();
    let schema = Schema::new_with_metadata(fields, batch.schema().metadata().clone());
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}

/// As [`without_nan`], for one column.
pub(crate) fn array_without_nan(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float64 => {
            floats_without_nan::<Float64Type>(array, |value| plain(value).then_some(value + 0.0))
        }
        DataType::Float32 => {
            floats_without_nan::<Float32Type>(array, |value| plain(value.into()).then_some(value + 0.0))
        }
        DataType::Float16 => {
            let zero = <Float16Type as ArrowPrimitiveType>::default_value();
            floats_without_nan::<Float16Type>(array, move |value| {
                (!value.is_nan()).then_some(if value == zero { zero } else { value })
            })
        }
        _ => Arc::clone(array),
    }
}

/// Whether a float is a number.
fn plain(value: f64) -> bool {
    !value.is_nan()
}

/// Floats with missing values where there is no number, and with one zero. Others are not copied.
fn floats_without_nan<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    number: impl Fn(T::Native) -> Option<T::Native>,
) -> ArrayRef {
    let floats = array.as_primitive::<T>();
    let same = |value: T::Native| number(value).is_some_and(|plain| plain.is_eq(value));
    if floats.values().iter().all(|value| same(*value)) {
        Arc::clone(array)
    } else {
        Arc::new(floats.iter().map(|value| value.and_then(&number)).collect::<PrimitiveArray<T>>())
    }
}
