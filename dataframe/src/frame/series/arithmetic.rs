//! Arithmetic of series, row by row, with a number or another series.

use super::expr::present;
use super::operator_traits::operator_traits;
use super::{Operand, Series};
use crate::error::{Error, Result};
use crate::frame::Frame;
use crate::value::is_text;
use arrow::datatypes::DataType;
use datafusion::functions::expr_fn::power;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, ExprSchemable, lit};
use std::ops;
use std::sync::Arc;

impl Series {
    /// A series of two expressions over the same rows.
    #[track_caller]
    pub(crate) fn merged(
        &self,
        other: impl Into<Operand>,
        step: impl FnOnce(&Frame, Expr, Expr) -> Result<Expr>,
    ) -> Series {
        let other = other.into();
        let name = match &other {
            Operand::Series(other) if other.name != self.name => None,
            _ => self.name.clone(),
        };
        let made = self.aligned(&other).and_then(|(frame, left, right)| {
            let expr = step(&frame, left, right)?;
            Ok((frame, expr))
        });
        Series::new(made, name)
    }

    /// Both sides over one frame.
    pub(crate) fn aligned(&self, other: &Operand) -> Result<(Arc<Frame>, Expr, Expr)> {
        let (frame, left) = self.parts()?;
        match other {
            Operand::Value(value) => Ok((Arc::clone(frame), left.clone(), lit(value.0.clone()))),
            Operand::Series(other) => {
                let (others, right) = other.parts()?;
                if Arc::ptr_eq(frame, others) {
                    return Ok((Arc::clone(frame), left.clone(), right.clone()));
                }
                let aligned = frame.align(left, others, right)?;
                Ok((Arc::new(aligned.0), aligned.1, aligned.2))
            }
        }
    }

    /// The absolute value of each number.
    #[track_caller]
    pub fn abs(&self) -> Series {
        self.map_expr(|expr| Ok(datafusion::functions::expr_fn::abs(expr)))
    }

    /// The value rounded to this many decimals, halves to even.
    #[track_caller]
    pub fn round(&self, decimals: i32) -> Series {
        let dtype = self.dtype();
        self.map_expr(|expr| super::elementwise::rounded(expr, &dtype?, decimals))
    }
}

/// Arithmetic by its sign.
pub(super) fn arithmetic(
    schema: &datafusion::common::DFSchema,
    left: Expr,
    right: Expr,
    sign: &'static str,
) -> Result<Expr> {
    let types = (left.get_type(schema)?, right.get_type(schema)?);
    if is_text(&types.0) && is_text(&types.1) && sign == "+" {
        return Ok(datafusion::logical_expr::binary_expr(
            left,
            datafusion::logical_expr::Operator::StringConcat,
            right,
        ));
    }
    if matches!(types.0, DataType::Duration(_)) && sign == "/" && !matches!(types.1, DataType::Duration(_)) {
        return Err(Error::NotImplemented("a duration divided by a number".to_owned()));
    }
    let fits = |dtype: &DataType| {
        dtype.is_numeric() || dtype.is_temporal() || matches!(dtype, DataType::Boolean | DataType::Null)
    };
    if !fits(&types.0) || !fits(&types.1) {
        let (left, right) = types;
        return Err(Error::Type(format!("unsupported operand types for {sign}: {left} and {right}")));
    }
    let (left, right) = (number(left, &types.0), number(right, &types.1));
    let float = |expr: Expr| cast(expr, DataType::Float64);
    let whole = types.0.is_integer() && types.1.is_integer();
    Ok(match sign {
        // Infinities can cancel each other.
        "+" | "-" | "*" if types.0.is_floating() || types.1.is_floating() => {
            present_of(simple(left, right, sign), &types)?
        }
        "+" | "-" | "*" => simple(left, right, sign),
        "/" => present(float(left) / float(right))?,
        // Infinite or missing, as pandas has it for a number. Zeros of a column are seen when it is too late
        // for another type.
        "//" if whole && is_zero(&right) => present(float(left) / lit(0_f64))?,
        "//" if whole => floored_quotient(left, right)?,
        "//" => present(floored_float(float(left), float(right))?)?,
        // The sign of the result is that of the divisor.
        "%" if whole => left.clone() - floored_quotient(left, right.clone())? * right,
        "%" => present(remainder(float(left), float(right))?)?,
        _ if whole => {
            let raised = cast(power(left.clone(), right.clone()), DataType::Int64);
            or_one(left, right, raised, lit(1_i64))?
        }
        _ => {
            let (left, right) = (float(left), float(right));
            or_one(left.clone(), right.clone(), present(power(left, right))?, lit(1_f64))?
        }
    })
}

/// Whether an expression is the number zero.
fn is_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => {
            let zero = datafusion::common::ScalarValue::Int64(Some(0));
            value.cast_to(&DataType::Int64).is_ok_and(|value| value == zero)
        }
        _ => false,
    }
}

/// A power, which is 1 for a base of 1 and for an exponent of 0, also if the other one is missing.
fn or_one(base: Expr, exponent: Expr, power: Expr, one: Expr) -> Result<Expr> {
    let is_one = base.eq(one.clone()).or(exponent.eq(lit(0_i64)));
    Ok(when(is_one, one).otherwise(power)?)
}

/// A sum, a difference or a product.
fn simple(left: Expr, right: Expr, sign: &str) -> Expr {
    match sign {
        "+" => left + right,
        "-" => left - right,
        _ => left * right,
    }
}

/// A result of floats that is missing where it is not a number.
fn present_of(expr: Expr, types: &(DataType, DataType)) -> Result<Expr> {
    let narrow = |dtype: &DataType| *dtype == DataType::Float32;
    if narrow(&types.0) && narrow(&types.1) {
        Ok(cast(present(cast(expr, DataType::Float64))?, DataType::Float32))
    } else {
        present(expr)
    }
}

/// Truth values as numbers.
pub(super) fn number(expr: Expr, dtype: &DataType) -> Expr {
    match dtype {
        DataType::Boolean => cast(expr, DataType::Int64),
        _ => expr,
    }
}

/// The remainder of floats with the sign of the divisor.
fn remainder(left: Expr, right: Expr) -> Result<Expr> {
    let rest = left % right.clone();
    let other_sign = rest.clone().lt(lit(0_f64)).not_eq(right.clone().lt(lit(0_f64)));
    let shifted = rest.clone().not_eq(lit(0_f64)).and(other_sign);
    Ok(when(shifted, rest.clone() + right).otherwise(rest)?)
}

/// The quotient of floats rounded down. It is made of the remainder, as the plain quotient may round up to
/// a whole number.
fn floored_float(left: Expr, right: Expr) -> Result<Expr> {
    let rest = remainder(left.clone(), right.clone())?;
    let whole = datafusion::functions::expr_fn::round(vec![(left.clone() - rest) / right.clone()]);
    Ok(when(right.clone().eq(lit(0_f64)), left / right).otherwise(whole)?)
}

/// The integer quotient rounded down; missing for a divisor of zero.
fn floored_quotient(left: Expr, right: Expr) -> Result<Expr> {
    let divisor = datafusion::functions::expr_fn::nullif(right, lit(0_i64));
    let quotient = left.clone() / divisor.clone();
    let inexact = (left.clone() % divisor.clone()).not_eq(lit(0_i64));
    let below = left.lt(lit(0_i64)).not_eq(divisor.lt(lit(0_i64)));
    Ok(when(inexact.and(below), quotient.clone() - lit(1_i64)).otherwise(quotient)?)
}

operator_traits!(Series, Operand; Add add Add, Sub sub Sub, Mul mul Mul, Div div Div, Rem rem Rem);

impl ops::Neg for &Series {
    type Output = Series;

    #[track_caller]
    fn neg(self) -> Series {
        match self.dtype() {
            Ok(dtype) if dtype.is_floating() => self.map_expr(|expr| Ok(lit(0_f64) - expr)),
            _ => self.map_expr(|expr| Ok(Expr::Negative(Box::new(expr)))),
        }
    }
}
