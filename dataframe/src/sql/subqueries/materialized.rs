//! Rows around subqueries that are made once, whatever reads them.

use super::reads::lateral_of;
use super::same_rows::{is_dependent, is_of_table, is_same_each_time, reads_itself};
use crate::error::Result;
use crate::scanned::ScannedTable;
use crate::sql::plans::{columns, projection};
use crate::stage::{MaterializedTable, materialized_tables, with_tables};
use datafusion::common::Result as EngineResult;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The same rows, made once for all that read this plan.
pub(in crate::sql) fn materialized(rows: Arc<LogicalPlan>) -> EngineResult<Arc<LogicalPlan>> {
    let known = Arc::clone(rows.schema());
    let scan = MaterializedTable::new(rows)?.scan()?;
    let own = columns(&scan).into_iter().zip(known.iter());
    let own = own.map(|(column, (table, field))| column.alias_qualified(table.cloned(), field.name()));
    projection(own.collect(), Arc::new(scan))
}

/// The rows of a plan that depends on a row further out or on a parameter, whose parts that do not are made
/// once. Other plans stay.
pub(in crate::sql) fn with_materialized_parts(plan: Arc<LogicalPlan>) -> EngineResult<Arc<LogicalPlan>> {
    if !is_dependent(&plan)? {
        return Ok(plan);
    }
    let changed = Arc::unwrap_or_clone(plan).transform_down(|node| {
        // It reads the rows beside it.
        if lateral_of(&node).is_some() {
            return Ok(Transformed::new(node, false, TreeNodeRecursion::Jump));
        }
        if is_dependent(&node)? || reads_itself(&node)? {
            return Ok(Transformed::no(node));
        }
        if is_of_table(&node) && is_same_each_time(&node)? {
            return Ok(Transformed::new(node, false, TreeNodeRecursion::Jump));
        }
        let rows = Arc::unwrap_or_clone(materialized(Arc::new(node))?);
        Ok(Transformed::new(rows, true, TreeNodeRecursion::Jump))
    })?;
    Ok(Arc::new(changed.data))
}

/// The operator whose values are compared with rows that are made once, where these may be others each time:
/// they are read for equal ones, and once more for missing ones.
pub(in crate::sql) fn with_materialized_rows(node: LogicalPlan) -> EngineResult<Transformed<LogicalPlan>> {
    node.map_expressions(|expr| {
        expr.transform_down(|mut part| {
            let subquery = match &mut part {
                Expr::InSubquery(asked) => &mut asked.subquery,
                Expr::SetComparison(asked) => &mut asked.subquery,
                _ => return Ok(Transformed::no(part)),
            };
            let rows = &subquery.subquery;
            if is_same_each_time(rows)? || is_dependent(rows)? || reads_itself(rows)? {
                return Ok(Transformed::no(part));
            }
            subquery.subquery = materialized(Arc::clone(rows))?;
            Ok(Transformed::yes(part))
        })
    })
}

/// The plan that a step makes of another one, and of all rows that this makes once.
pub(in crate::sql) fn throughout(
    plan: LogicalPlan,
    step: impl Fn(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<LogicalPlan> {
    let (mut sources, mut has_other_types) = (BTreeMap::new(), false);
    for (id, table) in materialized_tables(&plan)? {
        let rows = LogicalPlan::clone(table.rows());
        let changed = step(with_tables(rows, &sources).and_then(|rows| typed(rows, has_other_types))?)?;
        has_other_types |= changed.schema().inner() != table.rows().schema().inner();
        sources.insert(id, table.of_rows(changed).source());
    }
    if sources.is_empty() {
        return step(plan);
    }
    step(with_tables(plan, &sources).and_then(|plan| typed(plan, has_other_types))?)
}

/// The plan, whose columns have the types that its tables say.
fn typed(plan: Transformed<LogicalPlan>, has_other_types: bool) -> EngineResult<LogicalPlan> {
    if !has_other_types || !plan.transformed {
        return Ok(plan.data);
    }
    let typed =
        plan.data.transform_up_with_subqueries(|node| Ok(Transformed::yes(node.recompute_schema()?)))?;
    Ok(typed.data)
}
