//! Values of all columns changed alike, and columns moved.

use super::align::Paired;
use super::clean::takes;
use super::{DataFrame, Frame, named};
use crate::error::{Error, Result};
use crate::frame::series::{
    Operand, Operator, Series, absolute, check_numbers, clipped, is_among, mapped, rounded, truth,
};
use crate::promotion::unified;
use crate::value::Value;
use arrow::datatypes::DataType;
use datafusion::common::{JoinType, ScalarValue};
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, ExprSchemable, lit};

impl DataFrame {
    /// The frame with each column replaced by an expression of it and its type.
    #[track_caller]
    fn map_typed(&self, step: impl Fn(Expr, &DataType) -> Result<Expr>) -> DataFrame {
        self.then(|frame| {
            let columns = frame
                .columns
                .iter()
                .map(|column| Ok((column.clone(), step(named(column), &frame.dtype(column)?)?)));
            frame.project(columns.collect::<Result<_>>()?)
        })
    }

    /// The second value of each pair in place of the first, in the columns whose type takes both.
    #[track_caller]
    pub fn replace<K: Into<Value>, V: Into<Value>>(
        &self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> DataFrame {
        let pairs: Vec<(Value, Value)> =
            pairs.into_iter().map(|(from, to)| (from.into(), to.into())).collect();
        self.map_typed(|expr, dtype| {
            let fits = |value: &Value| value.is_missing() || takes(dtype, &value.dtype());
            let fitting = pairs.iter().filter(|(from, to)| fits(from) && fits(to)).cloned();
            mapped(&expr, &fitting.collect::<Vec<_>>(), (expr.clone(), dtype))
        })
    }

    /// All numbers moved into bounds; [`Value::missing`] is no bound.
    #[track_caller]
    pub fn clip(&self, lower: impl Into<Value>, upper: impl Into<Value>) -> DataFrame {
        let (lower, upper) = (lower.into(), upper.into());
        self.map_typed(|expr, dtype| {
            check_numbers(dtype, "clip")?;
            clipped(expr, dtype, &lower, &upper)
        })
    }

    /// All numbers rounded to this many decimals, halves to even ones; other columns stay.
    #[track_caller]
    pub fn round(&self, decimals: i32) -> DataFrame {
        self.map_typed(
            |expr, dtype| if dtype.is_numeric() { rounded(expr, dtype, decimals) } else { Ok(expr) },
        )
    }

    /// The absolute values of all columns, which must be of numbers or durations.
    #[track_caller]
    pub fn abs(&self) -> DataFrame {
        self.map_typed(|expr, dtype| {
            let is_duration = matches!(dtype, DataType::Duration(_));
            if !is_duration {
                check_numbers(dtype, "abs")?;
            }
            Ok(if is_duration || dtype.is_numeric() { absolute(expr, dtype) } else { expr })
        })
    }

    /// Whether each value is one of these; a missing value is if a missing one is among them.
    #[track_caller]
    pub fn isin<T: Into<Value>>(&self, values: impl IntoIterator<Item = T>) -> DataFrame {
        let values: Vec<Value> = values.into_iter().map(Into::into).collect();
        self.map_typed(|expr, dtype| Ok(is_among(expr, dtype, &values)))
    }

    /// The values of the rows in which a condition holds, and another value elsewhere; pandas' `where` with
    /// a series. The other value must fit into all columns, or be missing.
    #[track_caller]
    pub fn keep_where(&self, condition: &Series, other: impl Into<Value>) -> DataFrame {
        let (condition, other) = (Operand::Series(condition.clone()), other.into());
        self.then(|frame| {
            let (frame, condition) = frame.with_operand(&condition)?;
            truth(&condition.get_type(frame.plan.schema())?)?;
            let columns = frame.columns.iter();
            let columns = columns.map(|column| frame.chosen(column, condition.clone(), &other));
            frame.project(columns.collect::<Result<_>>()?)
        })
    }

    /// The values for which a frame of conditions with the same labels has true, and another value
    /// elsewhere; pandas' `where`.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("a", vec![1, 2].into()), ("b", vec![2, 3].into())]);
    /// let twos = frame.keep_where_each(&frame.isin([2]), 0);
    /// assert_eq!(twos.col("b").values::<i64>()?, [Some(2), Some(0)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn keep_where_each(&self, conditions: &DataFrame, other: impl Into<Value>) -> DataFrame {
        let other = other.into();
        self.then(|frame| {
            let conditions = conditions.frame()?;
            let paired = frame.paired(conditions, JoinType::Left)?;
            let columns = frame.columns.iter().map(|label| {
                let (own, holds) = paired.both(label, conditions)?;
                paired.frame.chosen_of(label, own, holds, &other)
            });
            paired.frame.project(columns.collect::<Result<_>>()?)
        })
    }

    /// As [`DataFrame::keep_where_each`], with the values of another frame that have the same labels
    /// elsewhere.
    #[track_caller]
    pub fn keep_where_from(&self, conditions: &DataFrame, other: &DataFrame) -> DataFrame {
        const HOLDS: &str = "__tharsis_holds_";
        let conditions = conditions.add_prefix(HOLDS);
        let labels = self.columns().unwrap_or_default();
        let held = self.then(|frame| {
            let conditions = conditions.frame()?;
            let paired = frame.paired(conditions, JoinType::Left)?;
            let own = frame.columns.iter().map(|label| Ok((label.clone(), paired.left_of(label)?)));
            let holds = conditions.columns.iter();
            let holds = holds.map(|label| Ok((label.clone(), paired.right_of(label)?)));
            paired.frame.project(own.chain(holds).collect::<Result<_>>()?)
        });
        held.then(|frame| {
            let paired = frame.paired(other.frame()?, JoinType::Left)?;
            let columns = labels.iter().map(|label| {
                let own = paired.left_of(label)?;
                let holds = paired.left(&format!("{HOLDS}{label}")).unwrap_or_else(|| lit(false));
                let other = match paired.right(label) {
                    Some(other) => other,
                    None => lit(ScalarValue::Null),
                };
                let (own, other) = unified(paired.frame.plan.schema(), own, other)?;
                Ok((label.clone(), when(holds, own).otherwise(other)?))
            });
            paired.frame.project(columns.collect::<Result<_>>()?)
        })
    }

    /// Whether each value equals that of another frame with the same labels of row and column.
    #[track_caller]
    pub fn isin_frame(&self, other: &DataFrame) -> DataFrame {
        self.then(|frame| {
            let paired = frame.paired(other.frame()?, JoinType::Left)?;
            let columns = frame.columns.iter().map(|label| {
                let own = paired.left_of(label)?;
                let same = match paired.right(label) {
                    Some(other) => Operator::Eq.expr(paired.frame.plan.schema(), own, other)?,
                    None => lit(false),
                };
                Ok((label.clone(), same))
            });
            paired.frame.project(columns.collect::<Result<_>>()?)
        })
    }

    /// Whether each value equals that of a series with the same label of its row.
    #[track_caller]
    pub fn isin_series(&self, other: &Series) -> DataFrame {
        self.then(|frame| {
            let other = other.rename("right").to_frame();
            let paired = frame.paired(other.frame()?, JoinType::Left)?;
            let columns = frame.columns.iter().map(|label| {
                let (own, other) = (paired.left_of(label)?, paired.right_of("right")?);
                Ok((label.clone(), Operator::Eq.expr(paired.frame.plan.schema(), own, other)?))
            });
            paired.frame.project(columns.collect::<Result<_>>()?)
        })
    }

    /// Another value in the rows in which a condition holds; pandas' `mask`.
    #[track_caller]
    pub fn mask(&self, condition: &Series, other: impl Into<Value>) -> DataFrame {
        self.keep_where(&!condition, other)
    }

    /// The frame with a new column at a position.
    #[track_caller]
    pub fn insert(&self, position: usize, label: &str, values: impl Into<Operand>) -> DataFrame {
        let known = self.columns().unwrap_or_default();
        if known.iter().any(|column| column == label) {
            return DataFrame::new(Err(Error::Value(format!("cannot insert {label:?}, already exists"))));
        }
        if position > known.len() {
            let error = Error::Index(format!("position {position} of {} columns", known.len()));
            return self.then(|_| Err(error));
        }
        let mut order = known;
        order.insert(position, label.to_owned());
        self.assign(label, values).select(order.iter().map(String::as_str))
    }

    /// A column, and the frame without it.
    #[track_caller]
    pub fn pop(&self, label: &str) -> (Series, DataFrame) {
        (self.col(label), self.drop([label]))
    }

    /// The columns with these labels in this order; those that the frame lacks are missing floats.
    #[track_caller]
    pub fn reindex_columns<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> DataFrame {
        self.then(|frame| {
            let missing = || cast(lit(ScalarValue::Null), DataType::Float64);
            let columns = labels.into_iter().map(|label| match frame.check(label) {
                Ok(()) => (label.to_owned(), named(label)),
                Err(_) => (label.to_owned(), missing()),
            });
            frame.project(columns.collect())
        })
    }
}

impl Frame {
    /// A column where a condition holds, another value elsewhere.
    fn chosen(&self, column: &str, condition: Expr, other: &Value) -> Result<(String, Expr)> {
        self.chosen_of(column, named(column), condition, other)
    }

    /// Values of a column where a condition holds, another value elsewhere.
    fn chosen_of(&self, label: &str, values: Expr, condition: Expr, other: &Value) -> Result<(String, Expr)> {
        let dtype = values.get_type(self.plan.schema())?;
        if !other.is_missing() && !takes(&dtype, &other.dtype()) {
            let other = other.dtype();
            return Err(Error::Type(format!("column {label:?} of {dtype} does not take a {other}")));
        }
        let (values, other) = unified(self.plan.schema(), values, lit(other.0.clone()))?;
        Ok((label.to_owned(), when(condition, values).otherwise(other)?))
    }
}

impl Paired {
    /// The values of a column, and whether the condition of its label holds; one that is missing does not.
    fn both(&self, label: &str, conditions: &Frame) -> Result<(Expr, Expr)> {
        let own = self.left_of(label)?;
        let Some(holds) = self.right(label) else { return Ok((own, lit(false))) };
        truth(&conditions.dtype(label)?)?;
        Ok((own, coalesce(vec![holds, lit(false)])))
    }
}
