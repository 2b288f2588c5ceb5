//! Tables in memory: the rows of a frame that were asked for.

use crate::error::{Error, Result};
use crate::value::{Column, Native, Value, without_nan};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{Schema, SchemaRef};
use std::sync::Arc;

/// Rows in memory, with the columns of an index first.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    batch: RecordBatch,
    /// Names of the index's levels, whose columns come first; empty if the index is of positions.
    index: Vec<Option<String>>,
}

/// No rows, and no columns.
impl Default for Table {
    fn default() -> Table {
        Table::from(RecordBatch::new_empty(Arc::new(Schema::empty())))
    }
}

/// The columns of a batch, with an index of positions.
impl From<RecordBatch> for Table {
    fn from(batch: RecordBatch) -> Table {
        Table { batch, index: Vec::new() }
    }
}

impl Table {
    /// A table of labelled columns of equal length.
    ///
    /// ```
    /// use tharsis_dataframe::Table;
    /// let table = Table::from_columns([("n", vec![1, 2].into()), ("half", vec![0.5, 1.0].into())])?;
    /// assert_eq!((table.len(), table.columns()), (2, vec!["n".to_owned(), "half".to_owned()]));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for columns of different length.
    pub fn from_columns<'a>(columns: impl IntoIterator<Item = (&'a str, Column)>) -> Result<Table> {
        let columns = columns.into_iter().map(|(label, column)| (label, column.into_array(), true));
        Ok(Table::from(without_nan(&RecordBatch::try_from_iter_with_nullable(columns)?)?))
    }

    /// The table with columns as its index, in place of the one there was.
    ///
    /// # Errors
    /// `KeyError` for a label that does not exist.
    pub fn set_index<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> Result<Table> {
        let labels: Vec<&str> = labels.into_iter().collect();
        let all = self.columns();
        let mut order = Vec::new();
        for label in &labels {
            order.push(self.index.len() + position(&all, label)?);
        }
        let rest = all.iter().enumerate().filter(|(_, label)| !labels.contains(&label.as_str()));
        order.extend(rest.map(|(at, _)| self.index.len() + at));
        let index = labels.into_iter().map(|label| Some(label.to_owned())).collect();
        Ok(Table { batch: self.batch.project(&order)?, index })
    }

    /// A table of a batch, the first columns of which are levels of an index with these names.
    pub(crate) fn of_batch(batch: RecordBatch, index: Vec<Option<String>>) -> Table {
        Table { batch, index }
    }

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
        Ok(&self.batch.columns()[self.index.len() + position(&self.columns(), label)?])
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

    /// The rows, one after the other; pandas' `iterrows` and `itertuples`.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let table = DataFrame::from_columns([("n", vec![1, 2].into())]).collect()?;
    /// let sum: i64 = table.rows().filter_map(|row| row.get("n").ok()?.as_i64()).sum();
    /// assert_eq!(sum, 3);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    pub fn rows(&self) -> impl Iterator<Item = TableRow<'_>> {
        (0..self.len()).map(|at| TableRow { table: self, at })
    }
}

/// One row of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableRow<'a> {
    table: &'a Table,
    at: usize,
}

impl TableRow<'_> {
    /// The labels of the row, one for each level of the index; its position if there is no other.
    ///
    /// # Errors
    /// A value of a type that this crate does not know.
    pub fn labels(&self) -> Result<Vec<Value>> {
        match self.table.index_arrays() {
            [] => Ok(vec![Value::from(self.at as i64)]),
            levels => levels.iter().map(|level| Value::from_array(level, self.at)).collect(),
        }
    }

    /// The value of a column.
    ///
    /// # Errors
    /// `KeyError` for a label that does not exist.
    pub fn get(&self, label: &str) -> Result<Value> {
        self.table.value(self.at, label)
    }

    /// All values, in the order of the columns.
    ///
    /// # Errors
    /// A value of a type that this crate does not know.
    pub fn values(&self) -> Result<Vec<Value>> {
        let columns = &self.table.batch.columns()[self.table.index.len()..];
        columns.iter().map(|column| Value::from_array(column, self.at)).collect()
    }
}

/// The position of a label among others.
fn position(labels: &[String], label: &str) -> Result<usize> {
    let found = labels.iter().position(|known| known == label);
    found.ok_or_else(|| Error::Key { label: label.to_owned(), known: labels.to_vec() })
}
