//! The columns of a plan, and plans of other columns.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result as EngineResult};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use std::sync::Arc;

/// The name of a value in the rows of a subquery.
const VALUE: &str = "__tharsis_value";

/// The rows with these expressions for columns.
pub(super) fn projection(exprs: Vec<Expr>, rows: Arc<LogicalPlan>) -> EngineResult<Arc<LogicalPlan>> {
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, rows)?)))
}

/// The columns of a plan.
pub(super) fn columns(plan: &LogicalPlan) -> Vec<Expr> {
    let columns = plan.schema().iter();
    columns.map(|(table, field)| Expr::Column(Column::new(table.cloned(), field.name()))).collect()
}

/// The rows of a subquery with another value, made of theirs. It has a name of its own: the library shows the
/// columns of conditions on the row around beside it.
pub(super) fn with_value(
    rows: Arc<LogicalPlan>,
    change: impl Fn(Expr, &DFSchema) -> Expr,
) -> EngineResult<Arc<LogicalPlan>> {
    let rows = Arc::unwrap_or_clone(rows).recompute_schema()?;
    let values = columns(&rows).into_iter().map(|value| change(value, rows.schema()).alias(VALUE));
    let values = values.collect();
    projection(values, Arc::new(rows))
}

/// The rows with other types of some columns, which `cast` gives a value.
pub(super) fn with_casts(
    rows: Arc<LogicalPlan>,
    types: &[Option<DataType>],
    cast: impl Fn(Expr, DataType) -> Expr,
) -> EngineResult<Arc<LogicalPlan>> {
    if types.iter().all(Option::is_none) {
        return Ok(rows);
    }
    let rows = Arc::unwrap_or_clone(rows).recompute_schema()?;
    let exprs = columns(&rows).into_iter().zip(rows.schema().iter()).zip(types);
    let exprs = exprs.map(|((column, (table, field)), dtype)| match dtype {
        Some(dtype) => cast(column, dtype.clone()).alias_qualified(table.cloned(), field.name()),
        None => column,
    });
    let exprs = exprs.collect();
    projection(exprs, Arc::new(rows))
}

/// The plan with other parts of expressions, whose types the schema tells. The columns of operators keep
/// their names.
pub(super) fn with_parts(
    plan: LogicalPlan,
    change: impl Fn(Expr, &DFSchema) -> EngineResult<Transformed<Expr>>,
) -> EngineResult<LogicalPlan> {
    Ok(plan.transform_up_with_subqueries(|node| with_parts_of(node, &change))?.data)
}

/// The plan with other operators, whose columns may have other types. Operators above a column have the type
/// that it had when they were planned, so they are made anew once there is another one.
pub(super) fn with_other_types(
    plan: LogicalPlan,
    change: impl Fn(LogicalPlan) -> EngineResult<Transformed<LogicalPlan>>,
) -> EngineResult<LogicalPlan> {
    let mut has_other_types = false;
    let changed = plan.transform_up_with_subqueries(|node| {
        let node = if has_other_types { node.recompute_schema()? } else { node };
        let before = Arc::clone(node.schema());
        let changed = change(node)?;
        has_other_types |= changed.transformed && changed.data.schema().inner() != before.inner();
        Ok(Transformed::new_transformed(changed.data, changed.transformed || has_other_types))
    })?;
    Ok(changed.data)
}

/// The operator with other parts of its own expressions. Its columns keep their names.
pub(super) fn with_parts_of(
    node: LogicalPlan,
    change: &impl Fn(Expr, &DFSchema) -> EngineResult<Transformed<Expr>>,
) -> EngineResult<Transformed<LogicalPlan>> {
    let schema = merge_schema(&node.inputs());
    let names = NamePreserver::new(&node);
    let changed = node.map_expressions(|expr| {
        // The names of its parts are those of columns, and they cannot be preserved.
        if matches!(expr, Expr::GroupingSet(_)) {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        let changed = expr.transform_up(|part| change(part, &schema))?;
        Ok(if changed.transformed { changed.update_data(|expr| name.restore(expr)) } else { changed })
    })?;
    if changed.transformed { changed.map_data(LogicalPlan::recompute_schema) } else { Ok(changed) }
}
