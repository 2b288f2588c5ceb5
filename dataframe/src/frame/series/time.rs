//! Times of a series, row by row: pandas' `.dt`, and what makes times and numbers of texts.

use super::Series;
use crate::error::{Error, Result};
use crate::functions::checked::checked;
use crate::functions::rows::{
    IN_UTC, TIME_BY_FORMAT, TIME_OF_ISO, TIME_OR_NONE, call, has_offset, reads, whole_time,
};
use crate::value::{Value, is_text};
use arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn as functions;
use datafusion::logical_expr::expr_fn::{cast, try_cast, when};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, lit};
use std::sync::Arc;

/// Functions of the times of a series ([`Series::dt`]), under pandas' names. A missing time gives a
/// missing value, or false for a question.
///
/// Parts of times with a zone are those of the zone; [`floor`](Times::floor), [`ceil`](Times::ceil) and
/// [`round`](Times::round) count from midnight in UTC.
///
/// ```
/// use tharsis_dataframe::{Series, to_datetime};
/// let days = to_datetime(&Series::from_values("day", vec!["2024-02-29", "2023-12-31"]));
/// assert_eq!(days.dt().dayofweek().values::<i64>()?, [Some(3), Some(6)]);
/// assert_eq!(days.dt().is_year_end().values::<bool>()?, [Some(false), Some(true)]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[must_use = "it does nothing by itself: call one of its methods"]
#[derive(Clone, Debug)]
pub struct Times(pub(super) Series);

/// The type of times made of texts, as in pandas 3.
pub(super) const TIME: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

impl Series {
    /// Functions of the times or durations; other values carry a `TypeError` from here on.
    #[track_caller]
    pub fn dt(&self) -> Times {
        let made = self.parts().and_then(|(frame, expr)| {
            let expr = match expr.get_type(frame.plan.schema())? {
                DataType::Timestamp(..) | DataType::Duration(_) => expr.clone(),
                DataType::Date32 | DataType::Date64 => cast(expr.clone(), TIME),
                other => return Err(Error::Type(format!(".dt is made for times, not for {other}"))),
            };
            Ok((Arc::clone(frame), expr))
        });
        Times(Series::new(made, self.name.clone()))
    }
}

impl Value {
    /// A point in time, of a text by ISO 8601: for comparisons and differences.
    ///
    /// ```
    /// use tharsis_dataframe::{Value, date_range};
    /// let age = (date_range("2024-03-01", 1, "D") - Value::time("2024-02-01")?).dt().days();
    /// assert_eq!(age.values::<i64>()?, [Some(29)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a text that is no time.
    pub fn time(text: &str) -> Result<Value> {
        let microseconds = microseconds(text)?;
        Ok(Value(ScalarValue::TimestampMicrosecond(Some(microseconds), None)))
    }
}

impl From<std::time::Duration> for Value {
    fn from(duration: std::time::Duration) -> Value {
        let microseconds = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Value(ScalarValue::DurationMicrosecond(Some(microseconds)))
    }
}

/// Ticks of a unit in a second.
pub(super) fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => NANOSECONDS,
    }
}

pub(super) const NANOSECONDS: i64 = 1_000_000_000;

/// The rest of a division that is never negative.
pub(super) fn remainder(value: Expr, divisor: i64) -> Expr {
    (value % lit(divisor) + lit(divisor)) % lit(divisor)
}

/// A sum or difference of whole numbers that ends with an error where it has no room.
fn whole(left: Expr, operator: Operator, right: Expr) -> Expr {
    let binary = BinaryExpr::new(Box::new(left), operator, Box::new(right));
    let checked = checked(&binary, &DataType::Int64, &DataType::Int64);
    checked.unwrap_or(Expr::BinaryExpr(binary))
}

pub(super) fn part(name: &str, expr: Expr) -> Expr {
    functions::date_part(lit(name), expr)
}

fn answered(expr: Expr) -> Expr {
    functions::coalesce(vec![expr, lit(false)])
}

fn leap(expr: Expr) -> Expr {
    let every = |years: i32| (part("year", expr.clone()) % lit(years)).eq(lit(0_i32));
    every(4).and(Expr::Not(Box::new(every(100))).or(every(400)))
}

/// The number of days of the month.
fn month_days(expr: Expr) -> Result<Expr> {
    let month = || part("month", expr.clone());
    let short = month().in_list([4, 6, 9, 11].map(lit::<i32>).to_vec(), false);
    let february = when(leap(expr.clone()), lit(29_i32)).otherwise(lit(28_i32))?;
    let mut days = when(month().eq(lit(2_i32)), february).when(short, lit(30_i32));
    Ok(when(expr.is_not_null(), days.otherwise(lit(31_i32))?).end()?)
}

macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident $step:expr),*) => {
        impl Times {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> Series {
                self.map($step)
            }
            )*
        }
    };
}

parts!(
    /// The year of each time.
    year |expr| Ok(part("year", expr)),
    /// The month, from 1.
    month |expr| Ok(part("month", expr)),
    /// The day of the month, from 1.
    day |expr| Ok(part("day", expr)),
    /// The hour, from 0 to 23.
    hour |expr| Ok(part("hour", expr)),
    /// The minute of the hour.
    minute |expr| Ok(part("minute", expr)),
    /// The whole second of the minute.
    second |expr| Ok(part("second", expr)),
    /// The quarter of the year, from 1.
    quarter |expr| Ok(part("quarter", expr)),
    /// The day of the week, from 0 for Monday.
    dayofweek |expr| Ok((part("dow", expr) + lit(6_i32)) % lit(7_i32)),
    /// The day of the week, from 0 for Monday.
    weekday |expr| Ok((part("dow", expr) + lit(6_i32)) % lit(7_i32)),
    /// The day of the week, from 0 for Monday.
    day_of_week |expr| Ok((part("dow", expr) + lit(6_i32)) % lit(7_i32)),
    /// The day of the year, from 1.
    day_of_year |expr| Ok(part("doy", expr)),
    /// The day of the year, from 1.
    dayofyear |expr| Ok(part("doy", expr)),
    /// The week of ISO 8601; pandas' `isocalendar().week`.
    week |expr| Ok(part("week", expr)),
    /// The day of each time, as a date.
    date |expr| Ok(cast(expr, DataType::Date32)),
    /// Midnight of the same day.
    normalize |expr| Ok(functions::date_trunc(lit("day"), expr)),
    /// Whether it is the first day of a month.
    is_month_start |expr| Ok(answered(part("day", expr).eq(lit(1_i32)))),
    /// Whether it is the last day of a month.
    is_month_end |expr| Ok(answered(part("day", expr.clone()).eq(month_days(expr)?))),
    /// Whether it is the first day of a quarter.
    is_quarter_start |expr| {
        let first = (part("month", expr.clone()) % lit(3_i32)).eq(lit(1_i32));
        Ok(answered(first.and(part("day", expr).eq(lit(1_i32)))))
    },
    /// Whether it is the last day of a quarter.
    is_quarter_end |expr| {
        let last = (part("month", expr.clone()) % lit(3_i32)).eq(lit(0_i32));
        Ok(answered(last.and(part("day", expr.clone()).eq(month_days(expr)?))))
    },
    /// Whether it is the first day of a year.
    is_year_start |expr| Ok(answered(part("doy", expr).eq(lit(1_i32)))),
    /// Whether it is the last day of a year.
    is_year_end |expr| {
        let december = part("month", expr.clone()).eq(lit(12_i32));
        Ok(answered(december.and(part("day", expr).eq(lit(31_i32)))))
    },
    /// Whether the year has 366 days.
    is_leap_year |expr| Ok(answered(leap(expr))),
    /// The number of days of the month.
    days_in_month month_days,
    /// The English name of the month.
    month_name |expr| Ok(functions::to_char(expr, lit("%B"))),
    /// The English name of the day of the week.
    day_name |expr| Ok(functions::to_char(expr, lit("%A")))
);

impl Times {
    /// A step for times, not for durations.
    #[track_caller]
    fn map(&self, step: impl FnOnce(Expr) -> Result<Expr>) -> Series {
        self.times(|expr, _| step(expr))
    }

    #[track_caller]
    pub(super) fn times(&self, step: impl FnOnce(Expr, TimeUnit) -> Result<Expr>) -> Series {
        match self.0.dtype() {
            Ok(DataType::Timestamp(unit, _)) => self.0.map_expr(|expr| step(expr, unit)),
            Ok(_) => {
                let error = Error::Type("this is made for times, not for durations".to_owned());
                Series::new(Err(error), self.0.name.clone())
            }
            Err(error) => Series::new(Err(error), self.0.name.clone()),
        }
    }

    #[track_caller]
    pub(super) fn durations(&self, step: impl FnOnce(Expr, TimeUnit) -> Result<Expr>) -> Series {
        match self.0.dtype() {
            Ok(DataType::Duration(unit)) => self.0.map_expr(|expr| step(cast(expr, DataType::Int64), unit)),
            Ok(_) => {
                let error = Error::Type("this is made for durations, not for times".to_owned());
                Series::new(Err(error), self.0.name.clone())
            }
            Err(error) => Series::new(Err(error), self.0.name.clone()),
        }
    }

    /// The microseconds of the second.
    #[track_caller]
    pub fn microsecond(&self) -> Series {
        self.times(|expr, unit| {
            let ticks = remainder(cast(expr, DataType::Int64), per_second(unit));
            let microseconds = match unit {
                TimeUnit::Nanosecond => ticks / lit(1_000_i64),
                _ => ticks * lit(1_000_000 / per_second(unit)),
            };
            Ok(cast(microseconds, DataType::Int32))
        })
    }

    /// The nanoseconds of the microsecond.
    #[track_caller]
    pub fn nanosecond(&self) -> Series {
        self.times(|expr, unit| {
            let ticks = cast(expr, DataType::Int64);
            let nanoseconds = match unit {
                TimeUnit::Nanosecond => remainder(ticks, 1_000),
                // Zero where there is a time.
                _ => ticks * lit(0_i64),
            };
            Ok(cast(nanoseconds, DataType::Int32))
        })
    }

    /// The times as texts, by Python's codes: `%Y-%m-%d`.
    #[track_caller]
    pub fn strftime(&self, format: &str) -> Series {
        let format = with_micros(format);
        self.map(|expr| Ok(functions::to_char(expr, lit(format))))
    }

    /// The last multiple of a length of time: `D`, `h`, `15min`, `s`, `ms`, `us`, `ns`. Durations have
    /// multiples too. A multiple that is no time of the unit ends the plan with an error, here and below.
    #[track_caller]
    pub fn floor(&self, length: &str) -> Series {
        self.to_multiple(length, |ticks, rest, _| Ok(whole(ticks, Operator::Minus, rest)))
    }

    /// The next multiple of a length of time.
    #[track_caller]
    pub fn ceil(&self, length: &str) -> Series {
        self.to_multiple(length, |ticks, rest, step| {
            let above = whole(ticks.clone(), Operator::Plus, lit(step) - rest.clone());
            Ok(when(rest.eq(lit(0_i64)), ticks).otherwise(above)?)
        })
    }

    /// The nearest multiple of a length of time, halves to even ones.
    #[track_caller]
    pub fn round(&self, length: &str) -> Series {
        self.to_multiple(length, |ticks, rest, step| {
            // A multiple that the result is not may be out of bounds.
            let multiples = ticks.clone() / lit(step) - cast(ticks.clone().lt(lit(0_i64)), DataType::Int64);
            let odd = remainder(multiples, 2).eq(lit(1_i64));
            let left = lit(step) - rest.clone();
            let up = rest.clone().gt(left.clone()).or(rest.clone().eq(left.clone()).and(odd));
            let above = whole(ticks.clone(), Operator::Plus, left);
            Ok(when(up, above).otherwise(whole(ticks, Operator::Minus, rest))?)
        })
    }

    #[track_caller]
    fn to_multiple(&self, length: &str, step: impl FnOnce(Expr, Expr, i64) -> Result<Expr>) -> Series {
        let dtype = self.0.dtype();
        let are_lengths = matches!(dtype, Ok(DataType::Duration(_)));
        let changed = |expr: Expr, unit: TimeUnit| {
            let nanoseconds = fixed_length(length)?;
            let tick = NANOSECONDS / per_second(unit);
            if tick % nanoseconds == 0 {
                return Ok(cast(expr, dtype?));
            }
            if nanoseconds % tick != 0 {
                return Err(Error::Value(format!("{length:?} is no number of {unit:?}s")));
            }
            let (length, dtype) = (nanoseconds / tick, dtype?);
            // Multiples are those of the clock: days begin at midnight, wherever that is.
            let zone = matches!(dtype, DataType::Timestamp(_, Some(_)));
            let ticks = cast(super::wall_clock(expr, zone), DataType::Int64);
            let changed = step(ticks.clone(), remainder(ticks, length), length)?;
            let changed = match dtype {
                DataType::Timestamp(unit, Some(_)) => cast(changed, DataType::Timestamp(unit, None)),
                _ => changed,
            };
            Ok(cast(changed, dtype))
        };
        if are_lengths { self.durations(changed) } else { self.times(changed) }
    }

    /// The length of each duration in seconds.
    #[track_caller]
    pub fn total_seconds(&self) -> Series {
        self.durations(|ticks, unit| Ok(cast(ticks, DataType::Float64) / lit(per_second(unit) as f64)))
    }

    /// The whole days of each duration, rounded down.
    #[track_caller]
    pub fn days(&self) -> Series {
        self.durations(|ticks, unit| {
            let day = per_second(unit) * DAY_SECONDS;
            Ok((ticks.clone() - remainder(ticks, day)) / lit(day))
        })
    }

    /// The seconds of each duration beside its whole days.
    #[track_caller]
    pub fn seconds(&self) -> Series {
        self.durations(|ticks, unit| {
            let second = per_second(unit);
            Ok(remainder(ticks, second * DAY_SECONDS) / lit(second))
        })
    }
}

/// A format of Python's codes in those of the library, whose `%f` is another number.
fn with_micros(format: &str) -> String {
    let (mut made, mut signs) = (String::new(), format.chars());
    while let Some(sign) = signs.next() {
        made.push(sign);
        if sign == '%' {
            match signs.next() {
                Some('f') => made.push_str("6f"),
                Some(code) => made.push(code),
                None => {}
            }
        }
    }
    made
}

pub(super) const DAY_SECONDS: i64 = 86_400;

/// A number and a unit: `15min`, `D`.
pub(super) fn count_and_unit(length: &str) -> Result<(i64, &str)> {
    let unit = length.trim_start_matches(|c: char| c.is_ascii_digit());
    let count = &length[..length.len() - unit.len()];
    let count = if count.is_empty() { Ok(1) } else { count.parse::<i64>() };
    match count {
        Ok(count) if count > 0 => Ok((count, unit)),
        _ => Err(Error::Value(format!("{length:?} is no length of time"))),
    }
}

/// A time in microseconds from 1970.
pub(super) fn microseconds(time: &str) -> Result<i64> {
    let nanoseconds =
        string_to_timestamp_nanos(&whole_time(time)).map_err(|error| Error::Value(error.to_string()))?;
    Ok(nanoseconds.div_euclid(1_000))
}

/// A length of time in nanoseconds.
pub(super) fn fixed_length(length: &str) -> Result<i64> {
    let (count, unit) = count_and_unit(length)?;
    let nanoseconds = match unit {
        "D" => NANOSECONDS * DAY_SECONDS,
        "h" => NANOSECONDS * 3_600,
        "min" => NANOSECONDS * 60,
        "s" => NANOSECONDS,
        "ms" => 1_000_000,
        "us" => 1_000,
        "ns" => 1,
        _ => {
            return Err(Error::Value(format!(
                "{length:?} is no fixed length of time (D, h, min, s, ms, us, ns)"
            )));
        }
    };
    count.checked_mul(nanoseconds).ok_or_else(|| Error::Value(format!("{length:?} is too long")))
}

/// The values as times. Texts are read by ISO 8601, integers count nanoseconds from 1970. A text with an
/// offset from UTC is an error: the type of a column is known before its texts are, and it has no zone.
///
/// A text that is no time is an error of the run; see [`to_datetime_or_missing`].
#[track_caller]
pub fn to_datetime(series: &Series) -> Series {
    times(series, |expr| Ok(cast(call(TIME_OF_ISO, vec![expr])?, TIME)))
}

/// The values as times; missing where a text is none.
#[track_caller]
pub fn to_datetime_or_missing(series: &Series) -> Series {
    times(series, |expr| Ok(cast(call(TIME_OR_NONE, vec![expr])?, TIME)))
}

/// The texts as times, by a format of Python's codes: `%d/%m/%Y`.
#[track_caller]
pub fn to_datetime_as(series: &Series, format: &str) -> Series {
    if has_offset(format) {
        let text = "%z: times without a zone cannot hold an offset from UTC; read them with to_datetime_utc";
        return series.map_expr(|_| Err(Error::NotImplemented(text.to_owned())));
    }
    if reads(format) {
        return times(series, |expr| Ok(cast(call(TIME_BY_FORMAT, vec![expr, lit(format)])?, TIME)));
    }
    let format = format.replace(".%f", "%.f");
    times(series, |expr| Ok(functions::to_timestamp_micros(vec![expr, lit(format)])))
}

/// The values as times of UTC. Texts are read by ISO 8601, or by a format of Python's codes if there is one;
/// they may have offsets from UTC (`Z`, `+02:00`, `%z`), and are times of UTC without. pandas'
/// `to_datetime(.., utc=True)`.
///
/// ```
/// use tharsis_dataframe::{Series, to_datetime_utc};
/// let texts = Series::from_values("at", vec!["2024-03-01T01:00:00+02:00", "2024-03-01T01:00:00Z"]);
/// assert_eq!(to_datetime_utc(&texts, None).dt().hour().values::<i64>()?, [Some(23), Some(1)]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[track_caller]
pub fn to_datetime_utc(series: &Series, format: Option<&str>) -> Series {
    let zoned = |unit| DataType::Timestamp(unit, Some("UTC".into()));
    let read = times(series, |expr| match format {
        None => Ok(cast(call(TIME_OF_ISO, vec![expr, lit(IN_UTC)])?, TIME)),
        Some(format) if reads(format) => Ok(cast(call(TIME_BY_FORMAT, vec![expr, lit(format)])?, TIME)),
        Some(format) => Err(Error::NotImplemented(format!("the format {format:?} for times of UTC"))),
    });
    let dtype = read.dtype();
    read.map_expr(|expr| match dtype? {
        DataType::Timestamp(unit, _) => Ok(cast(expr, zoned(unit))),
        _ => Ok(cast(expr, zoned(TimeUnit::Microsecond))),
    })
}

#[track_caller]
fn times(series: &Series, of_text: impl FnOnce(Expr) -> Result<Expr>) -> Series {
    let dtype = series.dtype();
    series.map_expr(|expr| match dtype? {
        DataType::Timestamp(..) => Ok(expr),
        DataType::Date32 | DataType::Date64 | DataType::Null => Ok(cast(expr, TIME)),
        dtype if dtype.is_integer() => {
            Ok(cast(cast(expr, DataType::Int64), DataType::Timestamp(TimeUnit::Nanosecond, None)))
        }
        dtype if is_text(&dtype) => of_text(expr),
        other => Err(Error::Type(format!("{other} is not convertible to times"))),
    })
}

/// The values as numbers. Texts become floats, since their values are not known before a run; other values
/// keep their types.
///
/// A text that is no number is an error of the run; see [`to_numeric_or_missing`].
#[track_caller]
pub fn to_numeric(series: &Series) -> Series {
    numbers(series, |expr| cast(expr, DataType::Float64))
}

/// The values as numbers; missing where a text is none.
#[track_caller]
pub fn to_numeric_or_missing(series: &Series) -> Series {
    numbers(series, |expr| try_cast(expr, DataType::Float64))
}

#[track_caller]
fn numbers(series: &Series, of_text: impl FnOnce(Expr) -> Expr) -> Series {
    let dtype = series.dtype();
    series.map_expr(|expr| match dtype? {
        dtype if is_text(&dtype) => {
            Ok(crate::functions::arithmetic::present(of_text(functions::btrim(vec![expr]))))
        }
        DataType::Null => Ok(cast(expr, DataType::Float64)),
        dtype if dtype.is_numeric() || dtype == DataType::Boolean => Ok(expr),
        other => Err(Error::Type(format!("{other} is not convertible to numbers"))),
    })
}
