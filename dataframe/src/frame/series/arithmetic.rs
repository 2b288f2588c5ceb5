//! Arithmetic of series, row by row, with a number or another series.

use super::lengths::with_lengths;
use super::operator_traits::operator_traits;
use super::{Operand, Series};
use crate::error::{Error, Result};
use crate::frame::Frame;
use crate::functions::arithmetic::{floordiv, negative_exponent, pow, present, rem};
use crate::promotion::{OutOfRange, as_type, of_exprs};
use crate::value::{Value, is_text};
use arrow::datatypes::DataType;
use datafusion::functions::expr_fn::abs;
use datafusion::logical_expr::expr_fn::cast;
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
                if let Some(both) = frame.meeting(others)? {
                    return Ok((Arc::new(both), left.clone(), right.clone()));
                }
                let aligned = frame.align(left, others, right)?;
                Ok((Arc::new(aligned.0), aligned.1, aligned.2))
            }
        }
    }

    /// The absolute value of each number, or of each duration.
    #[track_caller]
    pub fn abs(&self) -> Series {
        let dtype = self.dtype();
        self.map_expr(|expr| Ok(absolute(expr, &dtype?)))
    }

    /// The value rounded to this many decimals, halves to even.
    #[track_caller]
    pub fn round(&self, decimals: i32) -> Series {
        let dtype = self.dtype();
        self.map_expr(|expr| super::elementwise::rounded(expr, &dtype?, decimals))
    }
}

/// The absolute value of a number or of a duration.
pub(crate) fn absolute(value: Expr, dtype: &DataType) -> Expr {
    match dtype {
        DataType::Duration(_) => cast(abs(cast(value, DataType::Int64)), dtype.clone()),
        _ => abs(value),
    }
}

/// Two expressions of a frame and the other side over one frame, as [`Series::aligned`] has it for one.
pub(super) fn aligned_pair(
    frame: Arc<Frame>,
    pair: [Expr; 2],
    other: &Operand,
) -> Result<(Arc<Frame>, [Expr; 2], Expr)> {
    const LABELS: [&str; 2] = ["first", "second"];
    let other = match other {
        Operand::Value(value) => return Ok((frame, pair, lit(value.0.clone()))),
        Operand::Series(other) => other,
    };
    let (others, right) = other.parts()?;
    if Arc::ptr_eq(&frame, others) {
        return Ok((frame, pair, right.clone()));
    }
    if let Some(both) = frame.meeting(others)? {
        return Ok((Arc::new(both), pair, right.clone()));
    }
    let columns = LABELS.iter().zip(pair).map(|(label, expr)| ((*label).to_owned(), expr));
    let own = frame.project(columns.collect())?;
    let (frame, pair, right) = own.align_columns(LABELS, others, right)?;
    Ok((Arc::new(frame), pair, right))
}

/// Arithmetic by its sign. Each operand stands once in the result, so that chains of operators grow as their
/// texts do.
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
    if let Some(made) = with_lengths(&left, &right, &types, sign)? {
        return Ok(made);
    }
    let fits = |dtype: &DataType| {
        dtype.is_numeric() || dtype.is_temporal() || matches!(dtype, DataType::Boolean | DataType::Null)
    };
    if !fits(&types.0) || !fits(&types.1) {
        let (left, right) = types;
        return Err(Error::Type(format!("unsupported operand types for {sign}: {left} and {right}")));
    }
    match of_exprs((&left, &types.0), (&right, &types.1), OutOfRange::Refused)? {
        // Truth values are numbers here.
        Some(common) => {
            let common = if common == DataType::Boolean { DataType::Int64 } else { common };
            let zero = is_zero(&right);
            let (left, right) = (as_type(left, &types.0, &common), as_type(right, &types.1, &common));
            of_numbers(left, right, &common, zero, sign)
        }
        None => of_others(left, right, sign),
    }
}

/// Arithmetic of two numbers of one type.
fn of_numbers(left: Expr, right: Expr, common: &DataType, zero: bool, sign: &str) -> Result<Expr> {
    let float = |expr: Expr| if common.is_floating() { expr } else { cast(expr, DataType::Float64) };
    let whole = common.is_integer();
    Ok(match sign {
        // Infinities can cancel each other.
        "+" | "-" | "*" if common.is_floating() => present(simple(left, right, sign)),
        "+" | "-" | "*" => simple(left, right, sign),
        "/" => present(float(left) / float(right)),
        // Infinite or missing, as pandas has it for a number. Zeros of a column are seen when it is too late
        // for another type.
        "//" if whole && zero => present(float(left) / lit(0_f64)),
        "//" => floordiv(left, right),
        "%" => rem(left, right),
        _ if whole && is_negative(&right) => return Err(negative_exponent()),
        _ => pow(left, right),
    })
}

/// Arithmetic with times, decimals or values that are all missing.
fn of_others(left: Expr, right: Expr, sign: &str) -> Result<Expr> {
    let float = |expr: Expr| cast(expr, DataType::Float64);
    Ok(match sign {
        "+" | "-" | "*" => simple(left, right, sign),
        "/" => present(float(left) / float(right)),
        "//" => floordiv(float(left), float(right)),
        "%" => rem(float(left), float(right)),
        _ => pow(float(left), float(right)),
    })
}

/// Whether an expression is the number zero.
fn is_zero(expr: &Expr) -> bool {
    literal(expr).is_some_and(|value| value.as_f64() == Some(0.0))
}

/// Whether an expression is a number below zero.
fn is_negative(expr: &Expr) -> bool {
    literal(expr).and_then(|value| value.as_f64()).is_some_and(|number| number < 0.0)
}

fn literal(expr: &Expr) -> Option<Value> {
    match expr {
        Expr::Literal(value, _) => Some(Value(value.clone())),
        _ => None,
    }
}

/// A sum, a difference or a product.
fn simple(left: Expr, right: Expr, sign: &str) -> Expr {
    match sign {
        "+" => left + right,
        "-" => left - right,
        _ => left * right,
    }
}

operator_traits!(Series, Operand; Add add Add, Sub sub Sub, Mul mul Mul, Div div Div, Rem rem Rem);

impl ops::Neg for &Series {
    type Output = Series;

    #[track_caller]
    fn neg(self) -> Series {
        match self.dtype() {
            // Zero has one sign, so that it is no negation.
            Ok(dtype) if dtype.is_floating() => {
                let zero = as_type(lit(0_f64), &DataType::Float64, &dtype);
                self.map_expr(|expr| Ok(zero - expr))
            }
            Ok(dtype @ DataType::Duration(_)) => self.map_expr(|expr| {
                let units = Expr::Negative(Box::new(cast(expr, DataType::Int64)));
                Ok(cast(units, dtype))
            }),
            _ => self.map_expr(|expr| Ok(Expr::Negative(Box::new(expr)))),
        }
    }
}
