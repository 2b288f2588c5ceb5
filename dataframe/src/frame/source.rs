//! Frames of columns and batches that the program has.

use super::{DataFrame, Frame};
use crate::error::{Error, Result};
use crate::execute::{Executor, execute_in_one_batch};
use crate::stage::Resident;
use crate::value::Column;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

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
    pub fn from_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> DataFrame {
        DataFrame::new(Frame::of_batches(schema, batches))
    }

    /// A frame of rows that exist, in parts that follow each other.
    #[track_caller]
    pub fn from_parts(table: Resident) -> DataFrame {
        DataFrame::new(Frame::of_table(table))
    }

    /// The columns of all rows, without the index, computed by an executor: in parts that follow each other,
    /// where they were made, each in as few batches as the executor can make.
    ///
    /// # Errors
    /// The error that the frame carries, or one of its run.
    pub fn parts_on(&self, executor: &dyn Executor) -> Result<Resident> {
        let frame = self.frame()?;
        let plain = Frame { index: Vec::new(), ..(**frame).clone() };
        execute_in_one_batch(&plain.output()?, executor)
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
