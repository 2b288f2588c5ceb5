//! Expressions that operators share: truth values, and readings of clocks.

use crate::error::{Error, Result};
use arrow::datatypes::DataType;
use datafusion::functions::expr_fn::{coalesce, to_local_time};
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

/// The reading of the zone's clock at times that have one; a cast to times without a zone has that of
/// Greenwich.
pub(crate) fn wall_clock(expr: Expr, has_zone: bool) -> Expr {
    if has_zone { to_local_time(vec![expr]) } else { expr }
}
