//! The operators of two values, for series, frames and expressions in texts.

use super::arithmetic::arithmetic;
use super::expr::{known, truth};
use super::{Operand, Series};
use crate::error::{Error, Result};
use crate::promotion::{OutOfRange, as_type, of_exprs};
use crate::value::is_text;
use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Expr, ExprSchemable, lit};

/// An operator of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The sum; of texts, one after the other.
    Add,
    /// Whether both hold.
    And,
    /// The quotient, a float.
    Div,
    /// Whether both are equal.
    Eq,
    /// The quotient rounded down.
    FloorDiv,
    /// Whether the left one is greater or equal.
    Ge,
    /// Whether the left one is greater.
    Gt,
    /// Whether the left one is less or equal.
    Le,
    /// Whether the left one is less.
    Lt,
    /// The product of both.
    Mul,
    /// Whether they differ.
    Ne,
    /// Whether one holds.
    Or,
    /// The left one to the power of the right one.
    Pow,
    /// The remainder, with the sign of the divisor.
    Rem,
    /// The difference of both.
    Sub,
    /// Whether exactly one holds.
    Xor,
}

impl Operator {
    /// The operator for a pandas name of its method, such as `floordiv`.
    ///
    /// ```
    /// use tharsis_dataframe::Operator;
    /// assert_eq!(Operator::named("truediv")?, Operator::Div);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a name that is none.
    pub fn named(name: &str) -> Result<Operator> {
        Ok(match name {
            "add" => Operator::Add,
            "and" => Operator::And,
            "div" | "divide" | "truediv" => Operator::Div,
            "eq" => Operator::Eq,
            "floordiv" => Operator::FloorDiv,
            "ge" => Operator::Ge,
            "gt" => Operator::Gt,
            "le" => Operator::Le,
            "lt" => Operator::Lt,
            "mul" | "multiply" => Operator::Mul,
            "ne" => Operator::Ne,
            "or" => Operator::Or,
            "pow" => Operator::Pow,
            "mod" => Operator::Rem,
            "sub" | "subtract" => Operator::Sub,
            "xor" => Operator::Xor,
            other => return Err(Error::Value(format!("no operator {other:?}"))),
        })
    }

    /// Its sign, for arithmetic.
    fn sign(self) -> Option<&'static str> {
        match self {
            Operator::Add => Some("+"),
            Operator::Div => Some("/"),
            Operator::FloorDiv => Some("//"),
            Operator::Mul => Some("*"),
            Operator::Pow => Some("**"),
            Operator::Rem => Some("%"),
            Operator::Sub => Some("-"),
            _ => None,
        }
    }

    /// The expression that computes it of two others.
    pub(crate) fn expr(self, schema: &DFSchema, left: Expr, right: Expr) -> Result<Expr> {
        if let Some(sign) = self.sign() {
            return arithmetic(schema, left, right, sign);
        }
        let types = (left.get_type(schema)?, right.get_type(schema)?);
        if matches!(self, Operator::And | Operator::Or | Operator::Xor) {
            truth(&types.0)?;
            truth(&types.1)?;
            return Ok(match self {
                Operator::And => left.and(right),
                Operator::Or => left.or(right),
                _ => left.not_eq(right),
            });
        }
        self.comparison(left, right, &types)
    }

    fn comparison(self, left: Expr, right: Expr, types: &(DataType, DataType)) -> Result<Expr> {
        let number_and_other = |one: &DataType, other: &DataType| {
            (one.is_numeric() || *one == DataType::Boolean)
                && (is_text(other) || matches!(other, DataType::Duration(_)))
        };
        if number_and_other(&types.0, &types.1) || number_and_other(&types.1, &types.0) {
            // A number is never equal to a text or to a duration, and neither is less.
            return match self {
                Operator::Eq => Ok(lit(false)),
                Operator::Ne => Ok(lit(true)),
                _ => Err(Error::Type(format!("values of {} and {} have no order", types.0, types.1))),
            };
        }
        let (left, right) = comparable(left, right, types)?;
        Ok(match self {
            Operator::Eq => known(left.eq(right), false),
            Operator::Ge => known(left.gt_eq(right), false),
            Operator::Gt => known(left.gt(right), false),
            Operator::Le => known(left.lt_eq(right), false),
            Operator::Lt => known(left.lt(right), false),
            _ => known(left.not_eq(right), true),
        })
    }
}

/// Two values in a type in which they compare as they are: numbers in that of both, but whole numbers with
/// and without a sign as decimals, which hold all of them.
pub(crate) fn comparable(left: Expr, right: Expr, types: &(DataType, DataType)) -> Result<(Expr, Expr)> {
    let Some(common) = of_exprs((&left, &types.0), (&right, &types.1), OutOfRange::Widens)? else {
        return Ok((left, right));
    };
    let whole = types.0.is_integer() && types.1.is_integer();
    let common = if whole && common.is_floating() { DataType::Decimal128(20, 0) } else { common };
    Ok((as_type(left, &types.0, &common), as_type(right, &types.1, &common)))
}

impl Series {
    /// The quotient rounded down, as Python's `//`.
    #[track_caller]
    pub fn floordiv(&self, other: impl Into<Operand>) -> Series {
        self.operate(Operator::FloorDiv, other)
    }

    /// The power, as Python's `**`.
    #[track_caller]
    pub fn pow(&self, other: impl Into<Operand>) -> Series {
        self.operate(Operator::Pow, other)
    }

    /// An operator of this series and another one, or one value; `a + b` is `a.operate(Operator::Add, b)`.
    #[track_caller]
    pub fn operate(&self, operator: Operator, other: impl Into<Operand>) -> Series {
        self.merged(other, |frame, left, right| operator.expr(frame.plan.schema(), left, right))
    }
}
