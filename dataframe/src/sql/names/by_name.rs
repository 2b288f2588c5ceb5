//! Columns of one name in `UNION BY NAME`.

use super::namesakes::plain_name;
use crate::error::{Error, Result};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{LogicalPlan, Union};
use std::sync::Arc;

/// Refuses columns of one name in UNION BY NAME: each side has other tags.
pub(in crate::sql) fn check_by_name(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Union(Union { inputs, schema }) = node
            // The library makes the sides of one by name columns of its schema.
            && let Some(LogicalPlan::Projection(side)) = inputs.first().map(AsRef::as_ref)
            && Arc::ptr_eq(&side.schema, schema)
            && let Some(field) = schema.fields().iter().find(|field| plain_name(field.name()) != field.name())
        {
            let name = plain_name(field.name());
            return Err(Error::Value(format!(
                "several columns {name:?} in UNION BY NAME: give them different names, with AS"
            ))
            .into());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}
