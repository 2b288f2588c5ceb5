//! Comparisons of series, and what is asked of truth values.
//!
//! A comparison with a missing value is false, and "not equal" is true, as in pandas.

use super::arithmetic::aligned_pair;
use super::expr::{known, truth};
use super::operator_traits::operator_traits;
use super::{Operand, Operator, Series};
use crate::frame::labels::is_of;
use crate::promotion::unified;
use crate::value::Value;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{Expr, ExprSchemable, lit};
use std::ops;

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident $operator:ident),*) => {
        $($(#[$doc])*
        #[track_caller]
        pub fn $name(&self, other: impl Into<Operand>) -> Series {
            self.operate(Operator::$operator, other)
        }
        )*
    };
}

impl Series {
    comparisons!(
        /// Whether each value is greater.
        gt Gt,
        /// Whether each value is greater or equal.
        ge Ge,
        /// Whether each value is less.
        lt Lt,
        /// Whether each value is less or equal.
        le Le,
        /// Whether each value is equal; a missing value equals nothing.
        eq Eq,
        /// Whether each value differs; a missing value differs from all.
        ne Ne
    );

    /// Whether each value lies between two others, both included.
    #[track_caller]
    pub fn between(&self, low: impl Into<Operand>, high: impl Into<Operand>) -> Series {
        &self.ge(low) & self.le(high)
    }

    /// Whether each value is one of these; a missing value is if a missing one is among them.
    #[track_caller]
    pub fn isin<T: Into<Value>>(&self, values: impl IntoIterator<Item = T>) -> Series {
        let values: Vec<Value> = values.into_iter().map(Into::into).collect();
        let dtype = self.dtype();
        self.map_expr(|expr| Ok(is_among(expr, &dtype?, &values)))
    }

    /// Whether each value is missing.
    #[track_caller]
    pub fn isna(&self) -> Series {
        self.map_expr(|expr| Ok(expr.is_null()))
    }

    /// Whether each value is there.
    #[track_caller]
    pub fn notna(&self) -> Series {
        self.map_expr(|expr| Ok(expr.is_not_null()))
    }

    /// These values, others where they are missing.
    #[track_caller]
    pub fn fillna(&self, value: impl Into<Operand>) -> Series {
        let name = self.name.clone();
        let filled = self.merged(value, |frame, left, right| {
            if left.nullable(frame.plan.schema())? {
                let (left, right) = unified(frame.plan.schema(), left, right)?;
                Ok(coalesce(vec![left, right]))
            } else {
                // Whatever the other values are, none is needed.
                Ok(left)
            }
        });
        Series { name, ..filled }
    }

    /// These values where the condition holds, the others elsewhere; pandas' `where`. A value that is missing
    /// stays so: only rows without the condition get the others.
    #[track_caller]
    pub fn keep_where(&self, condition: &Series, other: impl Into<Operand>) -> Series {
        let other = other.into();
        // In one step: a choice that lacks its last branch cannot be told from a column with missing values
        // once it is one.
        let made = condition.aligned(&Operand::Series(self.clone())).and_then(|(frame, condition, own)| {
            truth(&condition.get_type(frame.plan.schema())?)?;
            let (frame, [condition, own], other) = aligned_pair(frame, [condition, own], &other)?;
            let (own, other) = unified(frame.plan.schema(), own, other)?;
            let holds = vec![(Box::new(condition), Box::new(own))];
            Ok((frame, Expr::Case(Case::new(None, holds, Some(Box::new(other))))))
        });
        Series::new(made, self.name.clone())
    }

    /// The other values where the condition holds, these elsewhere.
    #[track_caller]
    pub fn mask(&self, condition: &Series, other: impl Into<Operand>) -> Series {
        self.keep_where(&!condition, other)
    }

    /// Of each row, the other value of the first condition that holds, or this one if none does.
    ///
    /// ```
    /// use tharsis_dataframe::{Operand, Series};
    /// let n = Series::from_values("n", vec![1, 5, 9]);
    /// let sizes = n.case_when([(n.gt(8), Operand::from(2)), (n.gt(4), Operand::from(1))]);
    /// assert_eq!(sizes.values::<i64>()?, [1, 1, 2].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn case_when(&self, cases: impl IntoIterator<Item = (Series, Operand)>) -> Series {
        let cases: Vec<(Series, Operand)> = cases.into_iter().collect();
        let chosen = cases.into_iter().rev();
        let chosen = chosen.fold(self.clone(), |rest, (condition, value)| rest.mask(&condition, value));
        Series { name: self.name.clone(), ..chosen }
    }
}

/// Whether each value is one of these; a missing value is if a missing one is among them.
pub(crate) fn is_among(expr: Expr, dtype: &DataType, values: &[Value]) -> Expr {
    let list: Vec<Expr> = values.iter().filter_map(|value| member(value, dtype)).map(lit).collect();
    let found = if list.is_empty() { lit(false) } else { known(expr.clone().in_list(list, false), false) };
    if values.iter().any(Value::is_missing) { found.or(expr.is_null()) } else { found }
}

/// The value of a type that equals this one, if there is one: a number is never equal to a text, but true
/// equals 1.
fn member(value: &Value, dtype: &DataType) -> Option<ScalarValue> {
    let dtype = if let DataType::Dictionary(_, values) = dtype { values } else { dtype };
    let number = match value.as_bool() {
        Some(truth) if dtype.is_numeric() => Value::from(i64::from(truth)),
        _ => value.clone(),
    };
    if *dtype == DataType::Boolean && number.dtype().is_numeric() {
        let truth = number.as_f64().filter(|number| *number == 0.0 || *number == 1.0)?;
        return Some(ScalarValue::Boolean(Some(truth == 1.0)));
    }
    let fits = !number.is_missing() && is_of(&number, dtype);
    let found = fits.then(|| number.0.cast_to(dtype).ok()).flatten()?;
    // A time between two of a column's unit is none of them.
    let is_between = number.dtype().is_temporal() && found.cast_to(&number.dtype()).ok()? != number.0;
    (!is_between).then_some(found)
}

operator_traits!(Series, Operand; BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor);

impl ops::Not for &Series {
    type Output = Series;

    #[track_caller]
    fn not(self) -> Series {
        self.map_expr(|expr| Ok(Expr::Not(Box::new(expr))))
    }
}

/// Without the guards of comparisons that a filter does not need, since it drops rows whose condition is
/// missing. Readers of files can prune by what is left.
pub(crate) fn for_filter(expr: Expr) -> Expr {
    match expr {
        Expr::BinaryExpr(mut both) if both.op == datafusion::logical_expr::Operator::And => {
            both.left = Box::new(for_filter(*both.left));
            both.right = Box::new(for_filter(*both.right));
            Expr::BinaryExpr(both)
        }
        Expr::ScalarFunction(mut call)
            if call.name() == "coalesce" && call.args.get(1) == Some(&lit(false)) =>
        {
            call.args.swap_remove(0)
        }
        other => other,
    }
}
