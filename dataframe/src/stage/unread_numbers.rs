//! Leaves out the numbers of rows that nobody reads.
//!
//! Frames number rows whenever a later step may want their labels or their order. A step that wants neither,
//! such as an aggregate, leaves the numbers unread: they would only hold filters back and cut the plan.

use super::row_number::RowNumber;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::collections::HashSet;
use std::sync::Arc;

/// The rule for the optimizer.
#[derive(Debug)]
pub(crate) struct UnreadNumbers;

impl OptimizerRule for UnreadNumbers {
    fn name(&self) -> &str {
        "unread_numbers"
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        without_unread(plan, None)
    }
}

/// Names of columns that are read, without the names of tables: more than needed at worst. `None` stands for
/// all columns.
type Read = Option<HashSet<String>>;

/// The plan without numbers that neither it nor a reader of these columns reads.
fn without_unread(plan: LogicalPlan, read: Read) -> Result<Transformed<LogicalPlan>> {
    if let Some(numbers) = numbers(&plan)
        && read.as_ref().is_some_and(|read| !read.contains(&numbers.column))
    {
        let input = without_unread(numbers.input.clone(), read)?;
        return Ok(Transformed::yes(input.data));
    }
    let below = read_below(&plan, read)?;
    let changed = plan.map_children(|child| without_unread(child, below.clone()))?;
    if changed.transformed { changed.map_data(LogicalPlan::recompute_schema) } else { Ok(changed) }
}

fn numbers(plan: &LogicalPlan) -> Option<&RowNumber> {
    match plan {
        LogicalPlan::Extension(extension) => extension.node.as_any().downcast_ref::<RowNumber>(),
        _ => None,
    }
}

/// Names that the children of a plan must give.
fn read_below(plan: &LogicalPlan, read: Read) -> Result<Read> {
    let passes = match plan {
        LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) => Some(HashSet::new()),
        LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Join(_)
        | LogicalPlan::SubqueryAlias(_) => read,
        LogicalPlan::Extension(_) if numbers(plan).is_some() => read,
        _ => None,
    };
    let Some(mut names) = passes else { return Ok(None) };
    let mut nested = false;
    plan.apply_expressions(|expr| {
        expr.apply(|part| {
            match part {
                Expr::Column(column) => {
                    names.insert(column.name.clone());
                }
                // A plan within the expression may read columns of its own.
                Expr::OuterReferenceColumn(..)
                | Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_) => nested = true,
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok((!nested).then_some(names))
}

/// The rule as the session wants it.
pub(crate) fn rule() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(UnreadNumbers)
}
