//! Rows whose last column is the number of a range: parted by it, and without it.

use arrow::array::{AsArray, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{Int32Type, Schema};
use datafusion::common::{Result, internal_datafusion_err};
use std::sync::Arc;

/// The columns without the number of the range, which is the last one.
pub(super) fn without_range(schema: &Schema) -> Arc<Schema> {
    let fields = schema.fields();
    let kept = fields.iter().take(fields.len().saturating_sub(1)).cloned().collect::<Vec<_>>();
    Arc::new(Schema::new_with_metadata(kept, schema.metadata().clone()))
}

/// Parts the rows of a batch by their last column, the number of the range, and removes that column.
pub(super) fn part(batch: &RecordBatch, count: usize) -> Result<Vec<(usize, RecordBatch)>> {
    let missing = || internal_datafusion_err!("rows without a range");
    let (last, columns) = batch.columns().split_last().ok_or_else(missing)?;
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); count];
    for (row, range) in last.as_primitive::<Int32Type>().values().iter().enumerate() {
        rows.get_mut(*range as usize).ok_or_else(missing)?.push(row as u32);
    }
    let batch = RecordBatch::try_new(without_range(&batch.schema()), columns.to_vec())?;
    let taken = rows.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty());
    taken.map(|(range, rows)| Ok((range, take_record_batch(&batch, &UInt32Array::from(rows))?))).collect()
}
