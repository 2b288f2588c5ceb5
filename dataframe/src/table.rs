//! Tables in memory: what a frame gives when its rows are asked for, and what frames are made of.

use crate::error::{Error, Result};
use crate::frame::{DataFrame, Frame};
use crate::stage::{InputExec, Resident};
use crate::value::{Column, Native, Value};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result as EngineResult;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

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

    /// Number of rows.
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

impl DataFrame {
    /// A frame of labelled columns of equal length.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([
    ///     ("n", vec![1, 2].into()),
    ///     ("name", vec![Some("one"), None].into()),
    /// ]);
    /// assert_eq!(frame.columns()?, ["n", "name"]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    #[must_use]
    pub fn from_columns<'a>(columns: impl IntoIterator<Item = (&'a str, Column)>) -> DataFrame {
        let columns = columns.into_iter().map(|(label, column)| (label, column.into_array(), true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns);
        DataFrame::new(batch.map_err(Error::from).and_then(|batch| {
            let schema = batch.schema();
            Frame::of_batches(schema, vec![batch])
        }))
    }

    /// A frame of Arrow batches.
    #[track_caller]
    #[must_use]
    pub fn from_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> DataFrame {
        DataFrame::new(Frame::of_batches(schema, batches))
    }
}

impl Frame {
    fn of_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<Frame> {
        let batches = batches.into_iter().map(|batch| crate::value::without_nan(&batch));
        let batches = batches.collect::<Result<Vec<_>>>()?;
        Frame::of_table(Resident::local(schema, parts_of(batches)))
    }
}

/// Rows of a part of a table that comes from this process.
const PART_ROWS: usize = 1 << 20;

/// Cuts batches into parts that run beside each other.
fn parts_of(batches: Vec<RecordBatch>) -> Vec<Vec<RecordBatch>> {
    let mut parts = Vec::new();
    for batch in batches {
        let mut from = 0;
        while from < batch.num_rows() {
            let rows = PART_ROWS.min(batch.num_rows() - from);
            parts.push(vec![batch.slice(from, rows)]);
            from += rows;
        }
    }
    parts
}

/// A resident table, as the library's planner wants it.
#[derive(Debug)]
pub(crate) struct ResidentTable(Arc<Resident>);

impl ResidentTable {
    pub(crate) fn new(table: Resident) -> ResidentTable {
        ResidentTable(Arc::new(table))
    }
}

#[async_trait::async_trait]
impl TableProvider for ResidentTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(InputExec::of_table(&self.0, projection.cloned())?))
    }
}
