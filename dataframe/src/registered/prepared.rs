//! Functions whose arguments are decoded, ready to be called.

use super::row::Row;
use super::value::ValueResult;
use crate::error::FunctionFault;
use crate::table::Table;
use arrow::array::{Array, ArrayRef, NullArray};
use std::fmt;
use std::sync::Arc;

type OfTables = Box<dyn Fn(Vec<Table>) -> Result<Table, FunctionFault> + Send + Sync>;
type OfColumns = Box<dyn Fn(&Columns<'_>) -> Result<ArrayRef, FunctionFault> + Send + Sync>;

/// A function with its arguments.
pub enum Prepared {
    /// A function of chunks.
    Tables(OfTables),
    /// A function of the values in rows, for all rows of a batch.
    Columns(OfColumns),
}

impl Prepared {
    /// A function of one chunk or of two.
    pub fn tables(
        function: impl Fn(Vec<Table>) -> Result<Table, FunctionFault> + Send + Sync + 'static,
    ) -> Prepared {
        Prepared::Tables(Box::new(function))
    }

    /// A function of columns.
    pub fn columns(
        function: impl Fn(&Columns<'_>) -> Result<ArrayRef, FunctionFault> + Send + Sync + 'static,
    ) -> Prepared {
        Prepared::Columns(Box::new(function))
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Prepared::Tables(_) => "Prepared::Tables",
            Prepared::Columns(_) => "Prepared::Columns",
        })
    }
}

/// The columns of a batch, with their labels.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    labels: &'a [String],
    arrays: &'a [ArrayRef],
    rows: usize,
}

impl<'a> Columns<'a> {
    pub(crate) fn new(labels: &'a [String], arrays: &'a [ArrayRef], rows: usize) -> Columns<'a> {
        Columns { labels, arrays, rows }
    }

    /// Number of rows in the batch.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The first column; one of missing values if there is none.
    #[must_use]
    pub fn first(&self) -> ArrayRef {
        self.arrays.first().cloned().unwrap_or_else(|| Arc::new(NullArray::new(self.rows)))
    }

    /// One row of the batch.
    #[must_use]
    pub fn row(&self, at: usize) -> Row<'a> {
        Row::new(self.labels, self.arrays, at)
    }
}

/// The values that a function has given, one for each row.
#[derive(Debug)]
pub struct MadeValues<R: ValueResult>(Vec<Option<R::Value>>);

impl<R: ValueResult> MadeValues<R> {
    /// No values yet, with room for one for each row.
    #[must_use]
    pub fn with_rows(rows: usize) -> MadeValues<R> {
        MadeValues(Vec::with_capacity(rows))
    }

    /// Adds what the function gave for a row.
    ///
    /// # Errors
    /// The error of the function.
    pub fn push(&mut self, result: R) -> Result<(), FunctionFault> {
        self.0.push(result.into_value()?);
        Ok(())
    }

    /// Adds a missing value.
    pub fn push_missing(&mut self) {
        self.0.push(None);
    }

    /// The values as a column.
    #[must_use]
    pub fn finish(self) -> ArrayRef {
        let array = R::array(self.0);
        debug_assert_eq!(array.data_type(), &R::dtype());
        array
    }
}
