//! Tables in memory: the rows of a frame that were asked for.

use crate::error::{Error, Result};
use crate::value::{Native, Value};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;

/// Rows in memory, with the columns of an index first.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    batch: RecordBatch,
    /// Names of the index's levels, whose columns come first; empty if the index is of positions.
    index: Vec<Option<String>>,
}

impl Table {
    /// A table of these batches, the first columns of which are levels of an index.
    pub(crate) fn new(
        schema: &SchemaRef,
        batches: &[RecordBatch],
        index: Vec<Option<String>>,
    ) -> Result<Table> {
        Ok(Table { batch: concat_batches(schema, batches)?, index })
    }

    /// Number of rows in the table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.batch.num_rows()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The labels of the columns, without the index.
    #[must_use]
    pub fn columns(&self) -> Vec<String> {
        let schema = self.batch.schema();
        schema.fields().iter().skip(self.index.len()).map(|field| field.name().clone()).collect()
    }

    /// The Arrow batch: the index's levels, then the columns.
    #[must_use]
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// Names of the index's levels; empty if the index is of positions.
    #[must_use]
    pub fn index_names(&self) -> &[Option<String>] {
        &self.index
    }

    /// The levels of the index; empty if it is of positions.
    #[must_use]
    pub fn index_arrays(&self) -> &[ArrayRef] {
        &self.batch.columns()[..self.index.len()]
    }

    /// The Arrow array of a column.
    ///
    /// # Errors
    /// `KeyError` for a label that does not exist.
    pub fn array(&self, label: &str) -> Result<&ArrayRef> {
        let labels = self.columns();
        match labels.iter().position(|column| column == label) {
            Some(at) => Ok(&self.batch.columns()[self.index.len() + at]),
            None => Err(Error::Key { label: label.to_owned(), known: labels }),
        }
    }

    /// The values of a column, `None` where they are missing.
    ///
    /// # Errors
    /// `KeyError` for a label that does not exist, `TypeError` for values of another type.
    pub fn column<T: Native>(&self, label: &str) -> Result<Vec<Option<T>>> {
        T::read(self.array(label)?)
    }

    /// The value in a row of a column.
    ///
    /// # Errors
    /// `KeyError` for a label that does not exist, `IndexError` for a row that does not.
    pub fn value(&self, row: usize, label: &str) -> Result<Value> {
        let array = self.array(label)?;
        if row >= self.len() {
            return Err(Error::Index(format!("row {row} of {}", self.len())));
        }
        Value::from_array(array, row)
    }
}
