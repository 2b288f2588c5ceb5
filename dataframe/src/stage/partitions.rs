//! The number of partitions of a plan: enough for each task to fit its share of the memory.

use super::materialized_rows::MaterializedExec;
use arrow::datatypes::{DataType, Schema};
use datafusion::common::Result;
use datafusion::common::stats::Precision;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use std::sync::Arc;

/// Bytes in a task for each byte that it reads: its rows, a table of their hashes or their sorted copy, and
/// its outputs.
const BYTES_PER_BYTE_READ: u64 = 3;
/// More partitions than this cost more than they save: an exchange has an object for each pair of them.
pub(crate) const PARTITIONS_MAX: usize = 512;
/// Guess of the bytes of a text or a list.
const VARIABLE_BYTES: u64 = 24;

/// The number of partitions with which no task of a plan should take more than its share of the memory. It is
/// a multiple of the number of threads.
///
/// The largest input counts: nobody knows before a filter or a join runs how many rows it leaves.
pub(crate) fn partitions(plan: &Arc<dyn ExecutionPlan>, threads: usize, memory_bytes: u64) -> Result<usize> {
    let share = (memory_bytes / threads as u64).max(1);
    let wanted = largest_input_bytes(plan)?.saturating_mul(BYTES_PER_BYTE_READ).div_ceil(share);
    let most = PARTITIONS_MAX.max(threads);
    let wanted = usize::try_from(wanted).unwrap_or(most).clamp(1, most);
    Ok(wanted.next_multiple_of(threads))
}

/// Bytes of the largest rows that a plan reads.
pub(crate) fn largest_input_bytes(plan: &Arc<dyn ExecutionPlan>) -> Result<u64> {
    if let Some(reader) = plan.downcast_ref::<MaterializedExec>() {
        return Ok(reader.input_bytes());
    }
    let children = plan.children();
    if children.is_empty() {
        return input_bytes(plan);
    }
    children.into_iter().try_fold(0, |largest, child| Ok(largest_input_bytes(child)?.max(largest)))
}

/// Bytes of the rows that a leaf of the plan gives.
fn input_bytes(leaf: &Arc<dyn ExecutionPlan>) -> Result<u64> {
    Ok(estimated_bytes(leaf)?.unwrap_or_else(|| file_bytes(leaf)))
}

/// Bytes of the rows that a plan gives; those of its largest input if there is no estimate.
pub(super) fn result_bytes(plan: &Arc<dyn ExecutionPlan>) -> Result<u64> {
    estimated_bytes(plan)?.map_or_else(|| largest_input_bytes(plan), Ok)
}

fn estimated_bytes(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<u64>> {
    let statistics = StatisticsContext::new().compute(&**plan, &StatisticsArgs::new())?;
    Ok(match (statistics.num_rows, statistics.total_byte_size) {
        (Precision::Exact(rows) | Precision::Inexact(rows), _) => {
            Some(rows as u64 * row_bytes(&plan.schema()))
        }
        (_, Precision::Exact(bytes) | Precision::Inexact(bytes)) => Some(bytes as u64),
        _ => None,
    })
}

fn row_bytes(schema: &Schema) -> u64 {
    schema.fields().iter().map(|field| value_bytes(field.data_type())).sum()
}

fn value_bytes(dtype: &DataType) -> u64 {
    dtype.primitive_width().map_or(VARIABLE_BYTES, |bytes| bytes as u64)
}

/// Bytes of the files of a scan; 0 for another leaf.
fn file_bytes(leaf: &Arc<dyn ExecutionPlan>) -> u64 {
    let scan = leaf.downcast_ref::<DataSourceExec>();
    let files = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
    let groups = files.into_iter().flat_map(|files| &files.file_groups);
    groups.flat_map(|group| group.files()).map(|file| file.object_meta.size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Settings, block_on};
    use crate::planning::physical;
    use crate::{Aggregate, DataFrame};

    #[test]
    fn partitions_grow_with_the_rows_and_shrink_with_the_memory() {
        let rows = 1 << 20;
        let frame = DataFrame::from_columns([("k", (0..rows).collect::<Vec<i64>>().into())])
            .groupby(["k"])
            .agg([("k", Aggregate::Count)]);
        let count = |threads, memory_bytes| {
            let plan = frame.frame().and_then(|frame| frame.output()).expect("a plan");
            let plan = block_on(physical(&plan, Settings { partitions: threads, ..Settings::default() }))
                .expect("a physical plan");
            partitions(&plan, threads, memory_bytes).expect("statistics")
        };
        assert_eq!(count(2, 1 << 30), 2);
        // 8 MiB, thrice, in shares of 1 MiB.
        assert_eq!(count(2, 2 << 20), 24);
        assert_eq!(count(4, 1), 512);
    }
}
