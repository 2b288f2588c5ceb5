//! One column of a frame, as an expression.

mod arithmetic;
mod category;
mod compare;
mod cut;
mod date_range;
mod elementwise;
mod expr;
mod factorize;
mod lengths;
mod mapped;
mod operator;
mod operator_traits;
mod rows;
mod text;
mod text_parts;
mod text_splits;
mod time;
mod time_format;
mod time_parts;
mod whole;

pub(crate) use arithmetic::absolute;
pub use category::Categories;
pub(crate) use compare::{for_filter, is_among};
pub use cut::{Cut, cut, qcut};
pub use date_range::{bdate_range, bdate_range_until, date_range, date_range_until};
pub use elementwise::Mapping;
pub(crate) use elementwise::{check_numbers, clipped, rounded};
pub(crate) use expr::{truth, wall_clock};
pub use factorize::Factorize;
pub(crate) use mapped::mapped;
pub use operator::Operator;
pub(crate) use operator::comparable;
pub(crate) use operator_traits::operator_traits;
pub use text::Texts;
pub(crate) use text::matches;
pub use time::{
    Times, to_datetime, to_datetime_as, to_datetime_or_missing, to_datetime_utc, to_numeric,
    to_numeric_or_missing,
};

pub(crate) use time_format::text_of_lengths;
pub(crate) use time_parts::{Zone, cast_down, in_zone};
pub use time_parts::{timedelta_range, to_timedelta, to_timedelta_or_missing};

use crate::error::{Error, Result};
use crate::frame::{DataFrame, Frame};
use crate::table::Table;
use crate::value::{Column, Native, Value};
use arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, ExprSchemable, lit};
use std::panic::Location;
use std::sync::Arc;

/// A column of a frame, or what is computed of its columns row by row. It is lazy like its frame.
///
/// ```
/// use tharsis_dataframe::DataFrame;
/// let frame = DataFrame::from_columns([("a", vec![1, 2].into()), ("b", vec![10, 20].into())]);
/// let sum = &frame.col("a") + &frame.col("b") * 2;
/// assert_eq!(sum.values::<i64>()?, [Some(21), Some(42)]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[must_use = "it is lazy: nothing is computed until values are asked for"]
#[derive(Clone, Debug)]
pub struct Series {
    state: std::result::Result<(Arc<Frame>, Expr), Arc<Error>>,
    name: Option<String>,
}

/// The other side of an operator: a series, or one value for all rows.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A series; rows with equal labels of the index belong together.
    Series(Series),
    /// One value.
    Value(Value),
}

impl From<&Series> for Operand {
    fn from(series: &Series) -> Operand {
        Operand::Series(series.clone())
    }
}

impl From<Series> for Operand {
    fn from(series: Series) -> Operand {
        Operand::Series(series)
    }
}

impl<T: Into<Value>> From<T> for Operand {
    fn from(value: T) -> Operand {
        Operand::Value(value.into())
    }
}

impl Series {
    /// A series of a state, or of the first error on the way to it.
    #[track_caller]
    pub(crate) fn new(state: Result<(Arc<Frame>, Expr)>, name: Option<String>) -> Series {
        let place = Location::caller();
        let state = state.and_then(|(frame, expr)| crate::frame::shared::shared(frame, expr));
        let state = state.map_err(|error| match error {
            placed @ Error::At { .. } => Arc::new(placed),
            error => Arc::new(Error::At { error: Arc::new(error), file: place.file(), line: place.line() }),
        });
        Series { state, name }
    }

    /// A series of these values, with an index of positions.
    ///
    /// ```
    /// use tharsis_dataframe::Series;
    /// assert_eq!(Series::from_values("n", vec![1, 2, 3]).sum()?.as_i64(), Some(6));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn from_values(name: &str, values: impl Into<Column>) -> Series {
        DataFrame::from_columns([(name, values.into())]).col(name)
    }

    /// The frame and the expression, or the error that the series carries.
    pub(crate) fn parts(&self) -> Result<(&Arc<Frame>, &Expr)> {
        match &self.state {
            Ok((frame, expr)) => Ok((frame, expr)),
            Err(error) => Err((**error).clone()),
        }
    }

    /// The name, if there is one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The same values with another name.
    pub fn rename(&self, name: &str) -> Series {
        Series { state: self.state.clone(), name: Some(name.to_owned()) }
    }

    /// The same values with another name, or none.
    #[doc(hidden)]
    pub fn named(&self, name: Option<String>) -> Series {
        Series { state: self.state.clone(), name }
    }

    /// A value in each row of this series.
    #[doc(hidden)]
    #[track_caller]
    pub fn filled_with(&self, value: Value) -> Series {
        self.map_expr(|_| Ok(lit(value.0)))
    }

    /// The values for which a condition holds.
    ///
    /// ```
    /// use tharsis_dataframe::Series;
    /// let n = Series::from_values("n", vec![1, 2, 3]);
    /// assert_eq!(n.filter(&n.gt(1)).values::<i64>()?, [Some(2), Some(3)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn filter(&self, condition: &Series) -> Series {
        let label = self.label();
        let kept = self.parts().and_then(|(frame, expr)| {
            let column = frame.fresh("value");
            let (frame, condition) = frame.with_operand(&Operand::Series(condition.clone()))?;
            truth(&condition.get_type(frame.plan.schema())?)?;
            let kept = frame.fresh("kept");
            let columns = vec![(column.clone(), expr.clone()), (kept.clone(), condition)];
            let made = DataFrame::new(frame.project(columns));
            let made = made.filter(&made.col(&kept)).select([column.as_str()]);
            Ok(made.rename([(column.as_str(), label.as_str())]))
        });
        match kept {
            Ok(kept) => kept.col(&label).named(self.name.clone()),
            Err(error) => Series::new(Err(error), self.name.clone()),
        }
    }

    /// The label of its column in a frame: its name, or `0`.
    #[doc(hidden)]
    #[must_use]
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| "0".to_owned())
    }

    /// A series of an expression over this one, with the same name.
    #[track_caller]
    pub(crate) fn map_expr(&self, step: impl FnOnce(Expr) -> Result<Expr>) -> Series {
        let made = self.parts().and_then(|(frame, expr)| Ok((Arc::clone(frame), step(expr.clone())?)));
        Series::new(made, self.name.clone())
    }

    /// The type of the values.
    ///
    /// # Errors
    /// The error that the series carries.
    pub fn dtype(&self) -> Result<DataType> {
        let (frame, expr) = self.parts()?;
        Ok(expr.get_type(frame.plan.schema())?)
    }

    /// A frame of this one column.
    #[track_caller]
    pub fn to_frame(&self) -> DataFrame {
        let label = self.label();
        let frame = self.parts().and_then(|(frame, expr)| frame.project(vec![(label, expr.clone())]));
        DataFrame::new(frame)
    }

    /// All values, in memory.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    pub fn collect(&self) -> Result<Table> {
        self.to_frame().collect()
    }

    /// All values, `None` where they are missing.
    ///
    /// # Errors
    /// The error that the series carries, one of its run, or `TypeError` for values of another type.
    pub fn values<T: Native>(&self) -> Result<Vec<Option<T>>> {
        self.collect()?.column(&self.label())
    }
}
