//! Scans of files below operators that leave few rows of many.
//!
//! A plan has as many partitions as its largest operator needs to fit the memory. A partial aggregate, or a
//! filter by ranks, makes its groups anew in each task, and many tasks exchange the same groups many times.
//! Its memory does not depend on the rows of a task: it gives the groups away early, or stops to filter, when
//! it has no room. So there are fewer tasks, each of which reads more files.

use super::rank_filter::RankFilterExec;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use std::sync::Arc;

type Plan = Arc<dyn ExecutionPlan>;

/// The plan with at most `most` partitions of scans below such operators whose rows are exchanged.
pub(super) fn in_few_tasks(plan: Plan, most: usize) -> Result<Plan> {
    let changed = plan.transform_down(|node| {
        let Some(exchange) = node.downcast_ref::<RepartitionExec>() else { return Ok(Transformed::no(node)) };
        let input = exchange.input();
        let reduces = input.is::<RankFilterExec>()
            || input
                .downcast_ref::<AggregateExec>()
                .is_some_and(|made| *made.mode() == AggregateMode::Partial);
        match merged(input, most)?.filter(|_| reduces) {
            Some(input) => Ok(Transformed::yes(replace_children_if_necessary(node, vec![input])?)),
            None => Ok(Transformed::no(node)),
        }
    })?;
    Ok(changed.data)
}

/// The plan of a scan and operators on it, each of which has one input, with at most `most` partitions;
/// `None` if it has no more, or is another plan.
fn merged(plan: &Plan, most: usize) -> Result<Option<Plan>> {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        let files = scan.data_source().downcast_ref::<FileScanConfig>();
        return Ok(files.and_then(|files| merged_scan(files, most)));
    }
    let is_by_row = plan.is::<FilterExec>() || plan.is::<ProjectionExec>();
    if !is_by_row && !plan.is::<RankFilterExec>() && !plan.is::<AggregateExec>() {
        return Ok(None);
    }
    let input = merged(plan.children()[0], most)?;
    input.map(|input| replace_children_if_necessary(Arc::clone(plan), vec![input])).transpose()
}

/// A scan in which files that follow each other are read by one partition.
fn merged_scan(files: &FileScanConfig, most: usize) -> Option<Plan> {
    let (groups, most) = (&files.file_groups, most.max(1));
    // Files that are sorted one by one are not sorted one after the other.
    let is_free = files.output_ordering.is_empty() && files.output_partitioning.is_none();
    if groups.len() <= most || !is_free {
        return None;
    }
    let mut merged: Vec<Vec<PartitionedFile>> = vec![Vec::new(); most];
    for (number, group) in groups.iter().enumerate() {
        merged[number * most / groups.len()].extend(group.iter().cloned());
    }
    let merged = merged.into_iter().map(FileGroup::new).collect();
    let scan = FileScanConfigBuilder::from(files.clone()).with_file_groups(merged).build();
    Some(DataSourceExec::from_data_source(scan))
}
