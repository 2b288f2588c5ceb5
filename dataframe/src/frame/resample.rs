//! Rows by spans of time: what pandas' `resample` gives, with the spans that have no rows.

use super::group::{Aggregate, GroupBy, Key};
use super::window::Over;
use super::{DataFrame, Frame, Level, OrderKey, named};
use crate::error::{Error, Result};
use arrow::datatypes::{DataType, IntervalMonthDayNano, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn::{coalesce, date_trunc};
use datafusion::functions_aggregate::expr_fn::min;
use datafusion::functions_nested::expr_fn::gen_series;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, lit};
use std::sync::Arc;

/// The type that times are computed in.
const NANOSECONDS: DataType = DataType::Timestamp(TimeUnit::Nanosecond, None);

/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;

/// Spans of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Of so many nanoseconds, from the midnight before the first row.
    Fixed(i64),
    /// From Monday, named by the Sunday at their end.
    Week,
    /// Of so many months, from the start of one or of a year; named by their last day if `at_end`.
    Months { months: i32, unit: &'static str, at_end: bool },
}

/// The nanoseconds of a text like `5min`, if it is of a fixed length.
pub(super) fn duration(text: &str) -> Result<i64> {
    match Rule::parse(text)? {
        Rule::Fixed(nanoseconds) => Ok(nanoseconds),
        _ => Err(Error::Value(format!("{text:?} is no fixed length of time"))),
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Rule> {
        let unknown = || Error::Value(format!("invalid frequency: {text:?}"));
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (count, unit) = text.split_at(digits);
        let count = if count.is_empty() { 1 } else { count.parse::<i64>().map_err(|_| unknown())? };
        let months = |months, unit, at_end| Ok(Rule::Months { months, unit, at_end });
        let fixed = match unit {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" | "S" => 1_000_000_000,
            "min" | "T" => 60_000_000_000,
            "h" | "H" => 3_600_000_000_000,
            "D" => DAY,
            "W" | "W-SUN" | "MS" | "ME" | "M" | "QS" | "QE" | "YS" | "YE" if count != 1 => {
                return Err(Error::NotImplemented(format!("several units of {unit:?} as one span")));
            }
            "W" | "W-SUN" => return Ok(Rule::Week),
            "MS" => return months(1, "month", false),
            "ME" | "M" => return months(1, "month", true),
            "QS" => return months(3, "quarter", false),
            "QE" => return months(3, "quarter", true),
            "YS" => return months(12, "year", false),
            "YE" => return months(12, "year", true),
            _ => return Err(unknown()),
        };
        count.checked_mul(fixed).filter(|span| 0 < *span).map(Rule::Fixed).ok_or_else(unknown)
    }

    /// The length of a span.
    fn length(self) -> Expr {
        match self {
            Rule::Fixed(nanoseconds) => interval(0, 0, nanoseconds),
            Rule::Week => interval(0, 7, 0),
            Rule::Months { months, .. } => interval(months, 0, 0),
        }
    }

    /// The start of the span that a time lies in.
    fn start(self, time: Expr, origin: Expr) -> Expr {
        match self {
            Rule::Fixed(length) => {
                let number = |time: Expr| cast(time, DataType::Int64);
                let from = number(time) - number(origin.clone());
                let whole = from / lit(length) * lit(length);
                cast(number(origin) + whole, NANOSECONDS)
            }
            Rule::Week => date_trunc(lit("week"), time),
            Rule::Months { unit, .. } => date_trunc(lit(unit), time),
        }
    }

    /// The label of a span by its start.
    fn label(self, start: Expr) -> Expr {
        match self {
            Rule::Week => start + interval(0, 6, 0),
            Rule::Months { months, at_end: true, .. } => start + interval(months, 0, 0) - interval(0, 1, 0),
            _ => start,
        }
    }
}

fn interval(months: i32, days: i32, nanoseconds: i64) -> Expr {
    let value = IntervalMonthDayNano::new(months, days, nanoseconds);
    lit(ScalarValue::IntervalMonthDayNano(Some(value)))
}

/// Rows by spans of time, for aggregates: what [`DataFrame::resample`] gives.
#[derive(Clone, Debug)]
pub struct Resample {
    groups: std::result::Result<(GroupBy, Rule), Arc<Error>>,
    on: String,
}

impl DataFrame {
    /// The rows by spans of a time, which is a column or a level of the index. The rule is a number and a
    /// unit: `s`, `min`, `h`, `D`, or one of `W`, `MS`, `ME`, `QS`, `QE`, `YS`, `YE`.
    ///
    /// Spans follow each other from the first row to the last one. In those without rows sums and counts are
    /// zero, and other aggregates are missing.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, dtype_named};
    /// let events = DataFrame::from_columns([
    ///     ("t", vec!["2024-01-05", "2024-03-02"].into()),
    ///     ("v", vec![1, 2].into()),
    /// ]);
    /// let monthly = events.astype([("t", dtype_named("datetime64[ns]")?)]).resample("t", "MS").sum();
    /// assert_eq!(monthly.col("v").values::<i64>()?, [Some(1), Some(0), Some(2)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[must_use]
    pub fn resample(&self, on: &str, rule: &str) -> Resample {
        let made = self.frame().and_then(|frame| {
            let rule = Rule::parse(rule)?;
            let level = frame.index.iter().find(|level| level.name.as_deref() == Some(on));
            let column = match (frame.check(on), level) {
                (Ok(()), _) => on,
                (Err(_), Some(level)) => &level.column,
                (Err(error), None) => return Err(error),
            };
            let (frame, bin) = frame.with_bins(column, rule)?;
            let key = Key { label: on.to_owned(), column: bin };
            Ok((GroupBy::of_keys(DataFrame::new(Ok(frame)), vec![key]), rule))
        });
        Resample { groups: made.map_err(Arc::new), on: on.to_owned() }
    }
}

impl Frame {
    /// The frame with a hidden column of the span that each row lies in.
    fn with_bins(&self, column: &str, rule: Rule) -> Result<(Frame, String)> {
        let dtype = self.dtype(column)?;
        if !matches!(dtype, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64) {
            return Err(Error::Type(format!("spans of time are made of times, not of {dtype}")));
        }
        let time = cast(named(column), NANOSECONDS);
        let midnight = |time: Expr| date_trunc(lit("day"), time);
        let mut frame = self.clone();
        let origin = match rule {
            // Every midnight is the start of a span.
            Rule::Fixed(length) if DAY % length == 0 => midnight(time.clone()),
            Rule::Fixed(_) => {
                frame = self.with_order()?;
                let name = frame.fresh("origin");
                let first = min(time.clone()).alias(&name);
                let first = self.builder().aggregate(Vec::<Expr>::new(), vec![first])?.build()?;
                frame.plan = frame.builder().cross_join(first)?.build()?;
                midnight(named(&name))
            }
            _ => lit(ScalarValue::Null),
        };
        let bin = frame.fresh("bin");
        let mut columns: Vec<(String, Expr)> =
            frame.columns.iter().map(|label| (label.clone(), named(label))).collect();
        columns.push((bin.clone(), rule.start(time, origin)));
        let binned = frame.project(columns)?;
        Ok((Frame { columns: self.columns.clone(), ..binned }, bin))
    }
}

/// Aggregates of no values that are there.
fn of_none(aggregate: Aggregate, dtype: &DataType) -> Result<Expr> {
    Ok(match aggregate {
        Aggregate::Sum | Aggregate::Count | Aggregate::Size | Aggregate::Nunique => {
            cast(lit(0_i64), dtype.clone())
        }
        Aggregate::Prod => cast(lit(1_i64), dtype.clone()),
        Aggregate::Any => lit(false),
        Aggregate::All => lit(true),
        _ => lit(ScalarValue::try_from(dtype)?),
    })
}

impl Resample {
    /// One aggregate of all columns but the time; of those with numbers only if it needs numbers.
    #[track_caller]
    #[must_use]
    pub fn all_columns(&self, aggregate: Aggregate) -> DataFrame {
        let list = self.groups.as_ref().map_err(|error| (**error).clone()).and_then(|(groups, _)| {
            let frame = groups.frame.frame()?;
            let mut list = Vec::new();
            for column in frame.columns.iter().filter(|column| **column != self.on) {
                if aggregate.fits(&frame.dtype(column)?) {
                    list.push((column.clone(), column.clone(), aggregate));
                }
            }
            Ok(list)
        });
        match list {
            Ok(list) => self.aggregate(list),
            Err(error) => DataFrame::new(Err(error)),
        }
    }

    /// Aggregates under labels of their own: label, column, aggregate.
    #[track_caller]
    #[must_use]
    pub fn agg_as<'a>(
        &self,
        aggregates: impl IntoIterator<Item = (&'a str, &'a str, Aggregate)>,
    ) -> DataFrame {
        let owned =
            aggregates.into_iter().map(|(label, column, how)| (label.to_owned(), column.to_owned(), how));
        self.aggregate(owned.collect())
    }

    /// The number of rows of each span, in a column `size`.
    #[track_caller]
    #[must_use]
    pub fn size(&self) -> DataFrame {
        let bin = self.groups.as_ref().ok().and_then(|(groups, _)| groups.keys.as_ref().ok()?.first());
        let bin = bin.map(|key| key.column.clone()).unwrap_or_default();
        self.aggregate(vec![("size".to_owned(), bin, Aggregate::Size)])
    }

    #[track_caller]
    fn aggregate(&self, aggregates: Vec<(String, String, Aggregate)>) -> DataFrame {
        match &self.groups {
            Ok((groups, rule)) => {
                let how: Vec<Aggregate> = aggregates.iter().map(|(_, _, aggregate)| *aggregate).collect();
                groups.aggregate(aggregates).then(|frame| self.with_empty(frame, *rule, &how))
            }
            Err(error) => DataFrame::new(Err((**error).clone())),
        }
    }

    /// The spans with rows, and those without between them: each span makes those up to the next one.
    fn with_empty(&self, frame: &Frame, rule: Rule, aggregates: &[Aggregate]) -> Result<Frame> {
        let Some(level) = frame.index.first() else {
            return Err(Error::Internal("spans without an index".to_owned()));
        };
        let start = named(&level.column);
        let next = Over::default().shift(start.clone(), -1);
        let last = coalesce(vec![next - rule.length(), start.clone()]);
        let (lifted, exprs) = frame.lifted(vec![gen_series(start.clone(), last, rule.length())])?;
        let bins = lifted.fresh("bins");
        let kept = frame.columns.iter().map(|column| named(column)).chain([start.clone()]);
        let exprs: Vec<Expr> = kept.chain(exprs.into_iter().map(|expr| expr.alias(&bins))).collect();
        let plan = lifted.builder().project(exprs)?.unnest_column(bins.as_str())?.build()?;
        let mut columns = Vec::new();
        for (column, aggregate) in frame.columns.iter().zip(aggregates) {
            let none = of_none(*aggregate, &frame.dtype(column)?)?;
            let value = when(named(&bins).eq(start.clone()), named(column)).otherwise(none)?;
            columns.push(value.alias(column));
        }
        columns.push(rule.label(named(&bins)).alias(&level.column));
        let plan = LogicalPlanBuilder::from(plan).project(columns)?.build()?;
        let index = vec![Level { column: level.column.clone(), name: Some(self.on.clone()) }];
        let order = vec![OrderKey::growing(&level.column)];
        Ok(Frame { plan, columns: frame.columns.clone(), index, order })
    }
}

macro_rules! aggregates {
    ($($(#[$doc:meta])* $name:ident $aggregate:ident),*) => {
        impl Resample {
            $($(#[$doc])*
            #[track_caller]
            #[must_use]
            pub fn $name(&self) -> DataFrame {
                self.all_columns(Aggregate::$aggregate)
            })*
        }
    };
}

aggregates!(
    /// The sum of each column with numbers.
    sum Sum,
    /// The mean of each column with numbers.
    mean Mean,
    /// The smallest value of each column.
    min Min,
    /// The largest value of each column.
    max Max,
    /// The number of values of each column that are there.
    count Count,
    /// The number of distinct values of each column.
    nunique Nunique,
    /// The first value of each column that is there.
    first First,
    /// The last value of each column that is there.
    last Last,
    /// The standard deviation of each column with numbers.
    std Std,
    /// The variance of each column with numbers.
    var Var,
    /// The middle value of each column with numbers.
    median Median,
    /// The product of each column with numbers.
    prod Prod
);
