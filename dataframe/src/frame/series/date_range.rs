//! Series of times at equal distances.

use super::Series;
use super::time::{DAY_SECONDS, count_and_unit, fixed_length, microseconds};
use crate::error::{Error, Result};
use crate::frame::DataFrame;
use crate::value::Column;
use arrow::array::TimestampMicrosecondArray;
use std::sync::Arc;

/// This many times from the first on, at a distance: `D`, `2h`, `15min`, `s`, `B` (days from Monday to
/// Friday), `W` (Sundays), `MS` and `ME` (first and last days of months), `QS` and `QE`, `YS` and `YE`.
///
/// ```
/// use tharsis_dataframe::date_range;
/// let ends = date_range("2024-01-15", 2, "ME").dt().strftime("%d %b");
/// assert_eq!(ends.values::<String>()?, ["31 Jan", "29 Feb"].map(|day| Some(day.to_owned())));
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[track_caller]
pub fn date_range(start: &str, periods: usize, frequency: &str) -> Series {
    series(Frequency::parse(frequency).and_then(|frequency| {
        let start = microseconds(start)?;
        Ok((0..periods).map(|at| frequency.at(start, at as i64)).collect())
    }))
}

/// The times from the first to the last, both included, at a distance as in [`date_range`].
#[track_caller]
pub fn date_range_until(start: &str, end: &str, frequency: &str) -> Series {
    series(Frequency::parse(frequency).and_then(|frequency| {
        let (start, end) = (microseconds(start)?, microseconds(end)?);
        Ok((0..).map(|at| frequency.at(start, at)).take_while(|time| *time <= end).collect())
    }))
}

/// This many days from Monday to Friday, at midnight, from the first one that is not before a day on.
///
/// ```
/// use tharsis_dataframe::bdate_range;
/// let days = bdate_range("2024-03-01T10:00", 2).dt().strftime("%a %d %H");
/// assert_eq!(days.values::<String>()?, ["Fri 01 00", "Mon 04 00"].map(|day| Some(day.to_owned())));
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[track_caller]
pub fn bdate_range(start: &str, periods: usize) -> Series {
    series(
        midnight(start)
            .map(|start| (0..periods).map(|at| Frequency::BusinessDays(1).at(start, at as i64)).collect()),
    )
}

/// The days from Monday to Friday between two days, both included, at midnight.
#[track_caller]
pub fn bdate_range_until(start: &str, end: &str) -> Series {
    series(midnight(start).and_then(|start| {
        let end = midnight(end)?;
        let days = (0..).map(|at| Frequency::BusinessDays(1).at(start, at));
        Ok(days.take_while(|day| *day <= end).collect())
    }))
}

/// The midnight before a time, in microseconds from 1970.
fn midnight(time: &str) -> Result<i64> {
    Ok(microseconds(time)?.div_euclid(DAY) * DAY)
}

#[track_caller]
fn series(times: Result<Vec<i64>>) -> Series {
    let frame = match times {
        Ok(times) => {
            let column = Column::from_arrow(Arc::new(TimestampMicrosecondArray::from(times)));
            DataFrame::from_columns([("0", column)])
        }
        Err(error) => DataFrame::new(Err(error)),
    };
    Series { name: None, ..frame.col("0") }
}

const DAY: i64 = DAY_SECONDS * 1_000_000;

/// A distance of times.
enum Frequency {
    Fixed(i64),
    Weeks(i64),
    BusinessDays(i64),
    /// This many months, at the first or the last day; the first month is one in which such a span begins.
    Months {
        count: i64,
        end: bool,
        span: i64,
    },
}

impl Frequency {
    fn parse(text: &str) -> Result<Frequency> {
        let (count, unit) = count_and_unit(text)?;
        let months = |span: i64, end: bool| Frequency::Months { count: count * span, end, span };
        Ok(match unit {
            "W" => Frequency::Weeks(count),
            "B" => Frequency::BusinessDays(count),
            "MS" => months(1, false),
            "ME" => months(1, true),
            "QS" => months(3, false),
            "QE" => months(3, true),
            "YS" => months(12, false),
            "YE" => months(12, true),
            _ => match fixed_length(text)? / 1_000 {
                0 => return Err(Error::Value(format!("{text:?} is less than a microsecond"))),
                length => Frequency::Fixed(length),
            },
        })
    }

    /// The time at a position, if the first is not before the start.
    fn at(&self, start: i64, position: i64) -> i64 {
        let (day, time) = (start.div_euclid(DAY), start.rem_euclid(DAY));
        let day = match *self {
            Frequency::Fixed(length) => return start + position * length,
            // Day 3 was a Sunday.
            Frequency::Weeks(count) => day + (3 - day).rem_euclid(7) + 7 * count * position,
            Frequency::BusinessDays(count) => business_day(day, count * position),
            Frequency::Months { count, end, span } => {
                let first = first_month(day, end, span) + count * position;
                if end { first_day(first + 1) - 1 } else { first_day(first) }
            }
        };
        day * DAY + time
    }
}

/// The day this many business days after the first one that is not before a day.
fn business_day(day: i64, after: i64) -> i64 {
    // Days of the week from Monday; day 4 was a Monday.
    let weekday = |day: i64| (day - 4).rem_euclid(7);
    let first = if weekday(day) > 4 { day + 7 - weekday(day) } else { day };
    let monday = first - weekday(first);
    let position = weekday(first) + after;
    monday + position.div_euclid(5) * 7 + position.rem_euclid(5)
}

/// The first month, counted from year 0, whose first or last day is not before a day, at a bound of spans.
fn first_month(day: i64, end: bool, span: i64) -> i64 {
    let (year, month, day) = civil(day);
    let mut found = year * 12 + month - 1;
    if !end && day > 1 {
        found += 1;
    }
    let place = if end { span - 1 } else { 0 };
    found + (place - found).rem_euclid(span)
}

/// The first day of a month that is counted from year 0.
fn first_day(month: i64) -> i64 {
    days(month.div_euclid(12), month.rem_euclid(12) + 1)
}

/// Days from 1970 to the first of a month in the Gregorian calendar. Years begin in March here, so that the
/// leap day is the last.
fn days(year: i64, month: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5;
    era * 146_097 + year * 365 + year / 4 - year / 100 + day_of_year - 719_468
}

/// Year, month and day of a number of days from 1970.
fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = (shifted_month + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted_month + 2) / 5 + 1)
}
