//! Windows of a span of time before each row.

use super::{in_order, rows, window};
use crate::error::{Error, Result};
use crate::frame::aggregate::{Aggregate, numbered};
use crate::frame::group::GroupBy;
use crate::frame::resample::duration;
use crate::frame::series::Series;
use crate::frame::{DataFrame, Frame, named};
use crate::functions::over_span;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::functions::expr_fn::abs;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, ExprSchemable, lit};
use std::sync::Arc;

/// The ends of a span that belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Both of them.
    Both,
    /// The first one.
    Left,
    /// None of them.
    Neither,
    /// The last one, which is the row itself.
    Right,
}

/// Windows of a span of time before each row: what [`Series::rolling_span`] gives. Labels, or a column, must
/// be times that do not fall.
///
/// ```
/// use tharsis_dataframe::{Series, Index, date_range};
/// let days = date_range("2024-01-01", 3, "D").rename("day").to_frame();
/// let frame = days.assign("n", Series::from_values("n", vec![1, 2, 4])).set_index(["day"]);
/// assert_eq!(frame.col("n").rolling_span("2D").sum().values::<f64>()?, [1.0, 3.0, 6.0].map(Some));
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[must_use = "windows do nothing by themselves: call an aggregate"]
#[derive(Clone, Debug)]
pub struct SpanRolling<T> {
    of: T,
    length: Result<i64>,
    ends: Ends,
    min_periods: usize,
    /// The column of times; the index if there is none.
    on: Option<String>,
}

impl<T> SpanRolling<T> {
    fn new(of: T, length: &str, on: Option<String>) -> SpanRolling<T> {
        SpanRolling { of, length: duration(length), ends: Ends::Right, min_periods: 1, on }
    }

    /// The number of values that a window must have; one by default.
    pub fn min_periods(self, values: usize) -> SpanRolling<T> {
        SpanRolling { min_periods: values, ..self }
    }

    /// The ends that belong to a window; the last one by default.
    pub fn closed(self, ends: Ends) -> SpanRolling<T> {
        SpanRolling { ends, ..self }
    }

    /// The times of a frame as numbers of nanoseconds.
    fn times(&self, frame: &Frame) -> Result<Expr> {
        let column = match (&self.on, &frame.index[..]) {
            (Some(on), _) => {
                frame.check(on)?;
                on.clone()
            }
            (None, [level]) => level.column.clone(),
            (None, _) => return Err(Error::Value("window must be an integer 0 or greater".to_owned())),
        };
        match frame.dtype(&column)? {
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => {
                let fine = cast(named(&column), DataType::Timestamp(TimeUnit::Nanosecond, None));
                Ok(cast(fine, DataType::Int64))
            }
            _ => Err(Error::Value("window must be an integer 0 or greater".to_owned())),
        }
    }

    fn expr(
        &self,
        frame: &Frame,
        keys: &[Expr],
        value: Expr,
        dtype: &DataType,
        how: Aggregate,
    ) -> Result<Expr> {
        if !dtype.is_numeric() && *dtype != DataType::Boolean {
            return Err(Error::Type(format!("this window is not made for values of type {dtype}")));
        }
        let ends = match self.ends {
            Ends::Both => 3_i64,
            Ends::Left => 1,
            Ends::Neither => 0,
            Ends::Right => 2,
        };
        let (number, part) = numbered(how)?;
        let times = self.times(frame)?;
        // An infinite value is one of the values, though no aggregate of them takes it.
        let value = match how {
            Aggregate::Count => cast(value, DataType::Float64),
            _ => {
                let value = cast(value, DataType::Float64);
                when(abs(value.clone()).lt(lit(f64::INFINITY)), value).end()?
            }
        };
        let least = self.min_periods as i64;
        let args =
            vec![times, value, lit(self.length.clone()?), lit(ends), lit(least), lit(number), lit(part)];
        Ok(window(over_span(), args, keys, vec![in_order()], rows(None, Some(0))))
    }
}

impl Series {
    /// Windows of a span of time before each value, by the labels, which must be times that do not fall.
    pub fn rolling_span(&self, length: &str) -> SpanRolling<Series> {
        SpanRolling::new(self.clone(), length, None)
    }
}

impl DataFrame {
    /// Windows of a span of time before each row, by the labels, which must be times that do not fall.
    pub fn rolling_span(&self, length: &str) -> SpanRolling<DataFrame> {
        SpanRolling::new(self.clone(), length, None)
    }

    /// As [`DataFrame::rolling_span`], by a column of times.
    pub fn rolling_span_on(&self, on: &str, length: &str) -> SpanRolling<DataFrame> {
        SpanRolling::new(self.clone(), length, Some(on.to_owned()))
    }
}

impl GroupBy {
    /// Windows of a span of time before each row within its group, by a column of times. Rows come by group.
    pub fn rolling_span_on(&self, on: &str, length: &str) -> SpanRolling<GroupBy> {
        SpanRolling::new(self.clone(), length, Some(on.to_owned()))
    }
}

impl SpanRolling<Series> {
    /// One aggregate of each window.
    #[track_caller]
    pub fn agg(&self, aggregate: Aggregate) -> Series {
        let made = self.of.parts().and_then(|(frame, expr)| {
            let dtype = expr.get_type(frame.plan.schema())?;
            Ok((Arc::clone(frame), self.expr(frame, &[], expr.clone(), &dtype, aggregate)?))
        });
        Series::new(made, self.of.name().map(str::to_owned))
    }
}

impl SpanRolling<DataFrame> {
    /// One aggregate of each window, in each column with numbers.
    #[track_caller]
    pub fn agg(&self, aggregate: Aggregate) -> DataFrame {
        self.of.then(|frame| {
            let mut columns = Vec::new();
            for label in &frame.columns {
                let dtype = frame.dtype(label)?;
                if Some(label) == self.on.as_ref() {
                    columns.push((label.clone(), named(label)));
                } else if dtype.is_numeric() || dtype == DataType::Boolean {
                    columns.push((label.clone(), self.expr(frame, &[], named(label), &dtype, aggregate)?));
                }
            }
            frame.project(columns)
        })
    }
}

impl SpanRolling<GroupBy> {
    /// One aggregate of each window, in each column with numbers but the keys.
    #[track_caller]
    pub fn agg(&self, aggregate: Aggregate) -> DataFrame {
        self.of.step_by_group(|frame, keys, label, dtype| {
            let is_number = dtype.is_numeric() || *dtype == DataType::Boolean;
            if Some(label) == self.on.as_deref() || !is_number {
                Ok(None)
            } else {
                self.expr(frame, keys, named(label), dtype, aggregate).map(Some)
            }
        })
    }
}

macro_rules! aggregates {
    ($of:ident $to:ident: $($(#[$doc:meta])* $name:ident $aggregate:ident),*) => {
        impl SpanRolling<$of> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> $to {
                self.agg(Aggregate::$aggregate)
            })*
        }
    };
}

macro_rules! for_each_kind {
    ($($kind:ident $to:ident),*) => {
        $(aggregates!($kind $to:
            /// The sum of each window.
            sum Sum,
            /// The mean of each window.
            mean Mean,
            /// The smallest value of each window.
            min Min,
            /// The largest value of each window.
            max Max,
            /// The number of values of each window that are there.
            count Count,
            /// The standard deviation of each window.
            std Std,
            /// The variance of each window.
            var Var,
            /// The middle value of each window.
            median Median
        );)*
    };
}

for_each_kind!(Series Series, DataFrame DataFrame, GroupBy DataFrame);
