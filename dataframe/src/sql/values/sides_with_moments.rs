//! Unions and joins whose days, and times without a zone, begin on the clock of moments of another side.

use super::moment_types::{beside, cast, check_days, moments_of};
use crate::sql::plans::{columns, with_casts};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, JoinType, NullEquality, Result as EngineResult};
use datafusion::logical_expr::logical_plan::Join;
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, LogicalPlan, Union};
use std::sync::Arc;

/// The operator whose sides have moments in the place of days, and of times without a zone, that the other
/// sides' moments meet.
pub(in crate::sql) fn with_sides(node: LogicalPlan) -> EngineResult<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Union(union) => united(union),
        LogicalPlan::Join(join) => joined(join),
        node => Ok(Transformed::no(node)),
    }
}

/// A union whose columns are of moments if one of its sides has some there.
pub(in crate::sql) fn united(union: Union) -> EngineResult<Transformed<LogicalPlan>> {
    let types: Vec<Vec<Option<DataType>>> = union.inputs.iter().map(|side| types_of(side)).collect();
    let moments = (0..union.schema.fields().len())
        .map(|column| types.iter().filter_map(|side| side.get(column)?.as_ref()).find_map(moments_of));
    let moments: Vec<Option<&DataType>> = moments.collect();
    if moments.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let mut is_new = false;
    let mut inputs = Vec::new();
    for (side, types) in union.inputs.into_iter().zip(&types) {
        let to = types.iter().zip(&moments).map(|(dtype, moments)| beside(dtype.as_ref(), *moments));
        let to: Vec<Option<DataType>> = to.collect();
        is_new |= to.iter().any(Option::is_some);
        inputs.push(with_types(side, &to)?);
    }
    let fields = union.schema.iter().zip(&moments).map(|((table, field), moments)| {
        let field = match beside(Some(field.data_type()), *moments) {
            Some(dtype) => Arc::new(field.as_ref().clone().with_data_type(dtype)),
            None => Arc::clone(field),
        };
        (table.cloned(), field)
    });
    let schema = DFSchema::new_with_metadata(fields.collect(), union.schema.metadata().clone())?;
    is_new |= schema.inner() != union.schema.inner();
    let union = Union { inputs, schema: Arc::new(schema) };
    Ok(Transformed::new_transformed(LogicalPlan::Union(union), is_new))
}

/// A join whose keys are on one clock. The rows of a set operation are of moments if one of its sides has
/// some.
pub(in crate::sql) fn joined(mut join: Join) -> EngineResult<Transformed<LogicalPlan>> {
    let types = join.on.iter().map(|keys| types_of_keys(keys, &join));
    let types: Vec<[Option<DataType>; 2]> = types.collect::<EngineResult<_>>()?;
    if types.iter().flatten().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let is_of_rows = is_set_operation(&join);
    if is_of_rows {
        let of_left: Vec<Option<DataType>> = types.iter().map(|[left, _]| left.clone()).collect();
        join.left = below_distinct(join.left, |rows| with_types(rows, &of_left))?;
        let of_right: Vec<Option<DataType>> = types.into_iter().map(|[_, right]| right).collect();
        join.right = with_types(join.right, &of_right)?;
        return LogicalPlan::Join(join).recompute_schema().map(Transformed::yes);
    }
    for ((left, right), [of_left, of_right]) in join.on.iter_mut().zip(types) {
        if let Some(dtype) = of_left {
            cast(left, dtype);
        }
        if let Some(dtype) = of_right {
            cast(right, dtype);
        }
    }
    LogicalPlan::Join(join).recompute_schema().map(Transformed::yes)
}

/// The rows with a change below the step that leaves equal ones out: different values of one type may be one
/// of another type.
pub(in crate::sql) fn below_distinct(
    rows: Arc<LogicalPlan>,
    change: impl FnOnce(Arc<LogicalPlan>) -> EngineResult<Arc<LogicalPlan>>,
) -> EngineResult<Arc<LogicalPlan>> {
    match Arc::unwrap_or_clone(rows) {
        LogicalPlan::Distinct(Distinct::All(rows)) => {
            Ok(Arc::new(LogicalPlan::Distinct(Distinct::All(change(rows)?))))
        }
        rows => change(Arc::new(rows)),
    }
}

/// The types that two keys are cast to.
fn types_of_keys((left, right): &(Expr, Expr), join: &Join) -> EngineResult<[Option<DataType>; 2]> {
    let types = [left.get_type(join.left.schema()).ok(), right.get_type(join.right.schema()).ok()];
    check_days(types.iter().flatten())?;
    let Some(moments) = types.iter().flatten().find_map(moments_of) else { return Ok([None, None]) };
    Ok(types.each_ref().map(|dtype| beside(dtype.as_ref(), Some(moments))))
}

/// The types of a side of a union. Those of UNION BY NAME have the schema of the union, whose types are those
/// of the first side.
pub(in crate::sql) fn types_of(side: &LogicalPlan) -> Vec<Option<DataType>> {
    match side {
        LogicalPlan::Projection(side) => {
            side.expr.iter().map(|expr| expr.get_type(side.input.schema()).ok()).collect()
        }
        side => side.schema().fields().iter().map(|field| Some(field.data_type().clone())).collect(),
    }
}

/// The rows with other types of some columns.
fn with_types(rows: Arc<LogicalPlan>, types: &[Option<DataType>]) -> EngineResult<Arc<LogicalPlan>> {
    with_casts(rows, types, |mut value, dtype| {
        cast(&mut value, dtype);
        value
    })
}

/// Whether a join is `INTERSECT` or `EXCEPT`: whole rows are compared, and missing values are equal.
pub(in crate::sql) fn is_set_operation(join: &Join) -> bool {
    let keys = join.on.iter().map(|(left, _)| left.clone());
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && columns(&join.left).into_iter().eq(keys)
}
