//! Expressions that operators share: truth values.

use crate::error::{Error, Result};
use arrow::datatypes::DataType;
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::{Expr, lit};

/// A truth value that is never missing.
pub(super) fn known(expr: Expr, otherwise: bool) -> Expr {
    coalesce(vec![expr, lit(otherwise)])
}

/// Refuses what is no truth value.
pub(crate) fn truth(dtype: &DataType) -> Result<()> {
    match dtype {
        DataType::Boolean | DataType::Null => Ok(()),
        other => Err(Error::Type(format!("truth values are needed, not {other}"))),
    }
}
