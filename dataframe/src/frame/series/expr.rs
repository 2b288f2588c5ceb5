//! Expressions that operators share: values that are there, and truth values.

use crate::error::{Error, Result};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn::{coalesce, isnan};
use datafusion::logical_expr::expr_fn::when;
use datafusion::logical_expr::{Expr, lit};

/// An expression whose result is missing where it is not a number, and has one zero: minus zero would be
/// another key, and differ from zero, for the library.
pub(crate) fn present(expr: Expr) -> Result<Expr> {
    let one_zero = expr + lit(0_f64);
    Ok(when(isnan(one_zero.clone()), lit(ScalarValue::Float64(None))).otherwise(one_zero)?)
}

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
