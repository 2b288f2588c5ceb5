//! Rust types of single values: what functions take, and what they give.

use crate::error::{Error, FunctionFault, Result};
use crate::value::{Column, Value};
use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, DataType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use std::fmt::Display;

/// Rust types as which a single value of a column can be read.
pub trait Cell<'a>: Sized {
    /// The value in a row, `None` if it is missing.
    ///
    /// # Errors
    /// `TypeError` if the column has values of another type.
    fn at(array: &'a ArrayRef, row: usize) -> Result<Option<Self>>;
}

/// The number in a row of a column of one type.
fn number<T: ArrowPrimitiveType>(array: &ArrayRef, row: usize) -> Option<T::Native> {
    let numbers: &PrimitiveArray<T> = array.as_primitive::<T>();
    numbers.is_valid(row).then(|| numbers.value(row))
}

fn wrong(array: &ArrayRef, wanted: &str) -> Error {
    Error::Type(format!("a value of type {} is read as {wanted}", array.data_type()))
}

/// The value in a row, of a column with one of these types; missing in one without a type.
macro_rules! number_at {
    ($array:expr, $row:expr, $wanted:expr; $($dtype:ident $arrow:ty),*) => {
        match $array.data_type() {
            $(DataType::$dtype => Ok(number::<$arrow>($array, $row).map(Into::into)),)*
            DataType::Null => Ok(None),
            _ => Err(wrong($array, $wanted)),
        }
    };
}

impl Cell<'_> for i64 {
    fn at(array: &ArrayRef, row: usize) -> Result<Option<i64>> {
        if *array.data_type() == DataType::UInt64 {
            let whole = number::<UInt64Type>(array, row);
            let fits = |whole: u64| {
                i64::try_from(whole)
                    .map_err(|_| Error::Type(format!("{whole} is no 64-bit integer with a sign")))
            };
            return whole.map(fits).transpose();
        }
        number_at!(array, row, "i64"; Int64 Int64Type, Int32 Int32Type, Int16 Int16Type, Int8 Int8Type,
            UInt32 UInt32Type, UInt16 UInt16Type, UInt8 UInt8Type)
    }
}

impl Cell<'_> for u64 {
    fn at(array: &ArrayRef, row: usize) -> Result<Option<u64>> {
        number_at!(array, row, "u64"; UInt64 UInt64Type, UInt32 UInt32Type, UInt16 UInt16Type,
            UInt8 UInt8Type)
    }
}

impl Cell<'_> for f64 {
    fn at(array: &ArrayRef, row: usize) -> Result<Option<f64>> {
        if matches!(array.data_type(), DataType::Int64 | DataType::UInt64 | DataType::Decimal128(..)) {
            return Ok(Value::from_array(array, row)?.as_f64());
        }
        number_at!(array, row, "f64"; Float64 Float64Type, Float32 Float32Type, Int32 Int32Type,
            Int16 Int16Type, Int8 Int8Type, UInt32 UInt32Type, UInt16 UInt16Type, UInt8 UInt8Type)
    }
}

impl Cell<'_> for bool {
    fn at(array: &ArrayRef, row: usize) -> Result<Option<bool>> {
        match array.data_type() {
            DataType::Boolean => Ok(array.is_valid(row).then(|| array.as_boolean().value(row))),
            DataType::Null => Ok(None),
            _ => Err(wrong(array, "bool")),
        }
    }
}

impl<'a> Cell<'a> for &'a str {
    fn at(array: &'a ArrayRef, row: usize) -> Result<Option<&'a str>> {
        if let DataType::Dictionary(keys, _) = array.data_type() {
            return entry(array, keys, row);
        }
        if array.is_null(row) || *array.data_type() == DataType::Null {
            return Ok(None);
        }
        match array.data_type() {
            DataType::Utf8 => Ok(Some(array.as_string::<i32>().value(row))),
            DataType::LargeUtf8 => Ok(Some(array.as_string::<i64>().value(row))),
            DataType::Utf8View => Ok(Some(array.as_string_view().value(row))),
            _ => Err(wrong(array, "a text")),
        }
    }
}

/// The text of a categorical value.
fn entry<'a>(array: &'a ArrayRef, keys: &DataType, row: usize) -> Result<Option<&'a str>> {
    match keys {
        DataType::Int8 => entry_of::<Int8Type>(array, row),
        DataType::Int16 => entry_of::<Int16Type>(array, row),
        DataType::Int32 => entry_of::<Int32Type>(array, row),
        DataType::Int64 => entry_of::<Int64Type>(array, row),
        DataType::UInt8 => entry_of::<UInt8Type>(array, row),
        DataType::UInt16 => entry_of::<UInt16Type>(array, row),
        DataType::UInt32 => entry_of::<UInt32Type>(array, row),
        DataType::UInt64 => entry_of::<UInt64Type>(array, row),
        _ => Err(wrong(array, "a text")),
    }
}

fn entry_of<K: ArrowDictionaryKeyType>(array: &ArrayRef, row: usize) -> Result<Option<&str>> {
    let entries = array.as_dictionary::<K>();
    match entries.key(row) {
        Some(key) => <&str>::at(entries.values(), key),
        None => Ok(None),
    }
}

impl<'a> Cell<'a> for String {
    fn at(array: &'a ArrayRef, row: usize) -> Result<Option<String>> {
        Ok(<&str>::at(array, row)?.map(str::to_owned))
    }
}

impl Cell<'_> for Value {
    fn at(array: &ArrayRef, row: usize) -> Result<Option<Value>> {
        let value = Value::from_array(array, row)?;
        Ok((!value.is_missing()).then_some(value))
    }
}

/// Types of the parameter that takes a value. A function that takes an `Option` is called for missing values
/// too; for others the result is missing where the value is.
pub trait ValueParameter<'a>: Sized {
    /// The argument of the function in a row, if it is called at all.
    ///
    /// # Errors
    /// `TypeError` if the column has values of another type.
    fn of(array: &'a ArrayRef, row: usize) -> Result<Option<Self>>;
}

/// As [`ValueParameter::of`], for the code of the attribute.
///
/// # Errors
/// The column has values of another type.
pub fn parameter<'a, T: ValueParameter<'a>>(
    array: &'a ArrayRef,
    row: usize,
) -> std::result::Result<Option<T>, FunctionFault> {
    T::of(array, row).map_err(|error| FunctionFault::Types(error.to_string()))
}

/// The result of a function for a row: a value, an `Option` of one, or a `Result` with either.
pub trait ValueResult: Sized {
    /// The type of the values.
    type Value;

    /// The type of the column.
    fn dtype() -> DataType;

    /// The value, `None` if it is missing.
    ///
    /// # Errors
    /// The error of the function.
    fn into_value(self) -> std::result::Result<Option<Self::Value>, FunctionFault>;

    /// Values as a column.
    fn array(values: Vec<Option<Self::Value>>) -> ArrayRef;
}

macro_rules! parameters {
    ($($native:ty),*) => {
        $(impl<'a> ValueParameter<'a> for $native {
            fn of(array: &'a ArrayRef, row: usize) -> Result<Option<$native>> {
                <$native>::at(array, row)
            }
        }
        impl<'a> ValueParameter<'a> for Option<$native> {
            fn of(array: &'a ArrayRef, row: usize) -> Result<Option<Option<$native>>> {
                <$native>::at(array, row).map(Some)
            }
        })*
    };
}

parameters!(i64, u64, f64, bool, &'a str, String, Value);

macro_rules! results {
    ($($native:ty => $dtype:ident),*) => {
        $(impl ValueResult for $native {
            type Value = $native;
            fn dtype() -> DataType {
                DataType::$dtype
            }
            fn into_value(self) -> std::result::Result<Option<$native>, FunctionFault> {
                Ok(Some(self))
            }
            fn array(values: Vec<Option<$native>>) -> ArrayRef {
                Column::from(values).into_array()
            }
        }
        impl ValueResult for Option<$native> {
            type Value = $native;
            fn dtype() -> DataType {
                DataType::$dtype
            }
            fn into_value(self) -> std::result::Result<Option<$native>, FunctionFault> {
                Ok(self)
            }
            fn array(values: Vec<Option<$native>>) -> ArrayRef {
                <$native as ValueResult>::array(values)
            }
        })*
    };
}

results!(bool => Boolean, i64 => Int64, u64 => UInt64, f64 => Float64, f32 => Float32, String => Utf8);

impl<T: ValueResult, E: Display> ValueResult for std::result::Result<T, E> {
    type Value = T::Value;

    fn dtype() -> DataType {
        T::dtype()
    }

    fn into_value(self) -> std::result::Result<Option<T::Value>, FunctionFault> {
        self.map_err(|error| FunctionFault::Failed(error.to_string()))?.into_value()
    }

    fn array(values: Vec<Option<T::Value>>) -> ArrayRef {
        T::array(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::compute::cast;
    use std::sync::Arc;

    fn texts() -> ArrayRef {
        Column::from(vec![Some("Oslo"), None, Some("Rome")]).into_array()
    }

    #[test]
    fn a_text_is_read_from_every_form_of_texts() {
        let keys = Box::new(DataType::Int32);
        let forms = [
            DataType::Utf8,
            DataType::LargeUtf8,
            DataType::Utf8View,
            DataType::Dictionary(keys, Box::new(DataType::Utf8)),
        ];
        for form in forms {
            let array = cast(&texts(), &form).unwrap();
            let read: Vec<Option<&str>> = (0..3).map(|row| <&str>::at(&array, row).unwrap()).collect();
            assert_eq!(read, [Some("Oslo"), None, Some("Rome")], "{form}");
        }
        assert_eq!(i64::at(&texts(), 0).unwrap_err().class(), "TypeError");
    }

    #[test]
    fn integers_of_all_widths_are_numbers() {
        let whole = Column::from(vec![Some(3), None]).into_array();
        for form in [DataType::Int8, DataType::UInt16, DataType::Int64, DataType::UInt64] {
            let array = cast(&whole, &form).unwrap();
            assert_eq!((i64::at(&array, 0).unwrap(), i64::at(&array, 1).unwrap()), (Some(3), None));
            assert_eq!(f64::at(&array, 0).unwrap(), Some(3.0));
        }
        let large: ArrayRef = Arc::new(arrow::array::UInt64Array::from(vec![u64::MAX]));
        assert_eq!(i64::at(&large, 0).unwrap_err().class(), "TypeError");
        assert_eq!(u64::at(&large, 0).unwrap(), Some(u64::MAX));
        assert_eq!(bool::at(&large, 0).unwrap_err().class(), "TypeError");
    }
}
