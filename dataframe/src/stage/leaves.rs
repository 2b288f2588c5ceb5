//! Leaves that only this process can read, such as tables about its own catalog.

use super::codec::can_travel;
use super::input::InputExec;
use super::materialized_rows::MaterializedExec;
use super::part::Resident;
use crate::error::Result;
use datafusion::common::Result as EngineResult;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::memory::LazyMemoryExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::{ExecutionPlan, collect_partitioned};
use std::sync::Arc;

/// Reads the leaves that cannot be sent to tasks; the plan has their rows instead.
pub(crate) async fn read_here(
    plan: Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(with_columns)?.data;
    let mut leaves = Vec::new();
    plan.apply(|node| {
        // Its leaves are its own rows of the round before.
        if node.is::<RecursiveQueryExec>() {
            return Ok(TreeNodeRecursion::Jump);
        }
        if node.children().is_empty() && !is_known(node) && !can_travel(node) {
            leaves.push(Arc::clone(node));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if leaves.is_empty() {
        return Ok(plan);
    }
    let mut read = Vec::new();
    for leaf in leaves {
        let parts = collect_partitioned(Arc::clone(&leaf), Arc::clone(context)).await?;
        let table = Arc::new(Resident::local(leaf.schema(), parts));
        read.push((leaf, InputExec::of_table(&table, None)?));
    }
    let changed = plan.transform_up(|node| {
        let found = read.iter().find(|(leaf, _)| Arc::ptr_eq(leaf, &node));
        Ok(match found {
            Some((_, input)) => Transformed::yes(Arc::new(input.clone()) as Arc<dyn ExecutionPlan>),
            None => Transformed::no(node),
        })
    })?;
    Ok(changed.data)
}

/// A series of which no column is read, with its column and a projection above: its bytes have all columns
/// that it makes, whatever is read.
fn with_columns(node: Arc<dyn ExecutionPlan>) -> EngineResult<Transformed<Arc<dyn ExecutionPlan>>> {
    let lazy = node.downcast_ref::<LazyMemoryExec>().filter(|lazy| lazy.schema().fields().is_empty());
    let Some([generator]) = lazy.map(|lazy| lazy.generators().as_slice()) else {
        return Ok(Transformed::no(node));
    };
    let fresh = || generator.read().reset_state();
    let first = fresh().write().generate_next_batch()?;
    let Some(first) = first else {
        return Ok(Transformed::yes(Arc::new(EmptyExec::new(node.schema()))));
    };
    let series = LazyMemoryExec::try_new(first.schema(), vec![fresh()])?;
    let none: [ProjectionExpr; 0] = [];
    Ok(Transformed::yes(Arc::new(ProjectionExec::try_new(none, Arc::new(series))?)))
}

/// Leaves that travel, whatever is in them.
fn is_known(leaf: &Arc<dyn ExecutionPlan>) -> bool {
    leaf.is::<InputExec>()
        || leaf.is::<MaterializedExec>()
        || leaf.is::<DataSourceExec>()
        || leaf.is::<EmptyExec>()
        || leaf.is::<PlaceholderRowExec>()
}
