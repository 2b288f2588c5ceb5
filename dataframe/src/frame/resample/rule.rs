//! The lengths of spans of time: where a span starts, and its label.

use crate::error::{Error, Result};
use arrow::datatypes::{DataType, IntervalMonthDayNano, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn::{date_trunc, greatest};
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::{Expr, lit};

/// The type that times are computed in.
pub(super) const NANOSECONDS: DataType = DataType::Timestamp(TimeUnit::Nanosecond, None);

/// Nanoseconds of a day.
pub(super) const DAY: i64 = 86_400_000_000_000;

/// Spans of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The days of work, Monday to Friday. A weekend belongs to the Friday before it.
    Business,
    /// Of so many nanoseconds, from the midnight before the first row.
    Fixed(i64),
    /// From Monday, named by the Sunday at their end.
    Week,
    /// Of so many months, from the start of one or of a year; named by their last day if `at_end`.
    Months { months: i32, unit: &'static str, at_end: bool },
}

/// The nanoseconds of a text like `5min`, if it is of a fixed length.
pub(in crate::frame) fn duration(text: &str) -> Result<i64> {
    match Rule::parse(text)? {
        Rule::Fixed(nanoseconds) => Ok(nanoseconds),
        _ => Err(Error::Value(format!("{text:?} is no fixed length of time"))),
    }
}

impl Rule {
    pub(super) fn parse(text: &str) -> Result<Rule> {
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
            "B" | "W" | "W-SUN" | "MS" | "ME" | "M" | "QS" | "QE" | "YS" | "YE" if count != 1 => {
                return Err(Error::NotImplemented(format!("several units of {unit:?} as one span")));
            }
            "B" => return Ok(Rule::Business),
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

    /// The length of a span, or of its parts of which some are none.
    pub(super) fn length(self) -> Expr {
        match self {
            Rule::Business => interval(0, 1, 0),
            Rule::Fixed(nanoseconds) => interval(0, 0, nanoseconds),
            Rule::Week => interval(0, 7, 0),
            Rule::Months { months, .. } => interval(months, 0, 0),
        }
    }

    /// The start of the span that a time lies in.
    pub(super) fn start(self, time: Expr, origin: Expr) -> Expr {
        match self {
            Rule::Business => {
                let day = date_trunc(lit("day"), time);
                let behind_friday = greatest(vec![weekday(day.clone()) - lit(FRIDAY), lit(0_i64)]);
                cast(number(day) - behind_friday * lit(DAY), NANOSECONDS)
            }
            Rule::Fixed(length) => {
                let from = number(time) - number(origin.clone());
                let whole = from / lit(length) * lit(length);
                cast(number(origin) + whole, NANOSECONDS)
            }
            Rule::Week => date_trunc(lit("week"), time),
            Rule::Months { unit, .. } => date_trunc(lit(unit), time),
        }
    }

    /// Whether a span starts at a time that is as long after another start as spans are; none if each such
    /// time is a start.
    pub(super) fn is_start(self, time: Expr) -> Option<Expr> {
        matches!(self, Rule::Business).then(|| weekday(time).lt_eq(lit(FRIDAY)))
    }

    /// The label of a span by its start.
    pub(super) fn label(self, start: Expr) -> Expr {
        match self {
            Rule::Week => start + interval(0, 6, 0),
            Rule::Months { months, at_end: true, .. } => start + interval(months, 0, 0) - interval(0, 1, 0),
            _ => start,
        }
    }
}

/// The nanoseconds since 1970.
fn number(time: Expr) -> Expr {
    cast(time, DataType::Int64)
}

/// The place in its week of a day that a midnight begins; Monday is 0.
fn weekday(midnight: Expr) -> Expr {
    // 1970 began with a Thursday. Remainders of days before it are below zero.
    (number(midnight) / lit(DAY) % lit(7_i64) + lit(10_i64)) % lit(7_i64)
}

/// The place of the last day of work in a week.
const FRIDAY: i64 = 4;

fn interval(months: i32, days: i32, nanoseconds: i64) -> Expr {
    let value = IntervalMonthDayNano::new(months, days, nanoseconds);
    lit(ScalarValue::IntervalMonthDayNano(Some(value)))
}
