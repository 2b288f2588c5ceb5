//! Rust types of chunks and of columns: what functions take, and what they give.

use super::prepared::Columns;
use super::value::ValueResult;
use crate::error::{FunctionFault, Result};
use crate::table::Table;
use crate::value::Column;
use arrow::array::{ArrayRef, RecordBatch};
use std::fmt::Display;

/// Types of the parameters that take rows.
pub trait ChunkParameter: Sized {
    /// Whether it has the levels of the frame's index too.
    const INDEXED: bool;

    /// The rows as this type.
    ///
    /// # Errors
    /// Rows that the type cannot have.
    fn from_table(table: Table) -> Result<Self>;
}

impl ChunkParameter for Table {
    const INDEXED: bool = true;

    fn from_table(table: Table) -> Result<Table> {
        Ok(table)
    }
}

impl ChunkParameter for RecordBatch {
    const INDEXED: bool = false;

    fn from_table(table: Table) -> Result<RecordBatch> {
        Ok(table.batch().clone())
    }
}

/// The next chunk of a call.
///
/// # Errors
/// Rows that the type cannot have.
pub fn chunk<T: ChunkParameter>(
    tables: &mut impl Iterator<Item = Table>,
) -> std::result::Result<T, FunctionFault> {
    let table = tables.next().unwrap_or_default();
    T::from_table(table).map_err(|error| FunctionFault::Types(error.to_string()))
}

/// The result of a function of chunks: rows, a single value, or a `Result` with either. A single value is a
/// row with a column `0`.
pub trait ChunkResult {
    /// The rows as a table.
    ///
    /// # Errors
    /// The error of the function.
    fn into_table(self) -> std::result::Result<Table, FunctionFault>;
}

impl ChunkResult for Table {
    fn into_table(self) -> std::result::Result<Table, FunctionFault> {
        Ok(self)
    }
}

impl ChunkResult for RecordBatch {
    fn into_table(self) -> std::result::Result<Table, FunctionFault> {
        Ok(Table::from(self))
    }
}

impl<T: ChunkResult, E: Display> ChunkResult for std::result::Result<T, E> {
    fn into_table(self) -> std::result::Result<Table, FunctionFault> {
        self.map_err(|error| FunctionFault::Failed(error.to_string()))?.into_table()
    }
}

macro_rules! single_values {
    ($($native:ty),*) => {
        $(impl ChunkResult for $native {
            fn into_table(self) -> std::result::Result<Table, FunctionFault> {
                let array = <$native>::array(vec![self.into_value()?]);
                Table::from_columns([("0", Column::from_arrow(array))])
                    .map_err(|error| FunctionFault::Types(error.to_string()))
            }
        })*
    };
}

single_values!(
    bool,
    i64,
    u64,
    f64,
    f32,
    String,
    Option<bool>,
    Option<i64>,
    Option<u64>,
    Option<f64>,
    Option<f32>,
    Option<String>
);

/// As [`ChunkResult::into_table`], for the code of the attribute.
///
/// # Errors
/// The error of the function.
pub fn table<R: ChunkResult>(result: R) -> std::result::Result<Table, FunctionFault> {
    result.into_table()
}

/// The result of a function of columns: a column, or a `Result` with one.
pub trait ColumnResult {
    /// The values as an array.
    ///
    /// # Errors
    /// The error of the function.
    fn into_array(self) -> std::result::Result<ArrayRef, FunctionFault>;
}

impl ColumnResult for Column {
    fn into_array(self) -> std::result::Result<ArrayRef, FunctionFault> {
        Ok(Column::into_array(self))
    }
}

impl<E: Display> ColumnResult for std::result::Result<Column, E> {
    fn into_array(self) -> std::result::Result<ArrayRef, FunctionFault> {
        self.map(Column::into_array).map_err(|error| FunctionFault::Failed(error.to_string()))
    }
}

/// The column of a call.
#[must_use]
pub fn column(columns: &Columns<'_>) -> Column {
    Column::from_arrow(columns.first())
}
