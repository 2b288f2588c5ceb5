//! Parts of durations, zones and calendars, and durations of texts: the rest of `.dt`.

use super::Series;
use super::expr::wall_clock;
use super::time::{NANOSECONDS, Times, fixed_length, part, per_second, remainder};
use crate::error::{Error, Result};
use crate::frame::DataFrame;
use crate::functions::rows::{Constants, call, duration};
use crate::value::{Column, is_text};
use arrow::array::DurationNanosecondArray;
use arrow::array::timezone::Tz;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::{Expr, lit};
use std::sync::Arc;

/// The name of a unit of time in pandas.
fn unit_text(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

fn unit_named(name: &str) -> Result<TimeUnit> {
    Ok(match name {
        "s" => TimeUnit::Second,
        "ms" => TimeUnit::Millisecond,
        "us" => TimeUnit::Microsecond,
        "ns" => TimeUnit::Nanosecond,
        other => return Err(Error::Value(format!("no unit of time {other:?}; there are s, ms, us, ns"))),
    })
}

/// Times or durations without what a coarser unit does not count. A cast rounds towards 1970.
fn rounded_down(expr: Expr, dtype: &DataType, to: TimeUnit) -> Expr {
    let (DataType::Timestamp(from, _) | DataType::Duration(from)) = dtype else { return expr };
    let length = per_second(*from) / per_second(to);
    if length <= 1 {
        return expr;
    }
    let ticks = cast(expr, DataType::Int64);
    cast(ticks.clone() - remainder(ticks, length), dtype.clone())
}

/// Values of one type as another; times and durations without what a coarser unit does not count.
pub(crate) fn cast_down(expr: Expr, from: &DataType, to: &DataType) -> Expr {
    let expr = match (from, to) {
        (DataType::Timestamp(..), DataType::Timestamp(unit, _))
        | (DataType::Duration(_), DataType::Duration(unit)) => rounded_down(expr, from, *unit),
        _ => expr,
    };
    cast(expr, to.clone())
}

/// Durations as whole nanoseconds.
fn nanoseconds(ticks: Expr, unit: TimeUnit) -> Expr {
    ticks * lit(NANOSECONDS / per_second(unit))
}

impl Times {
    /// The microseconds of each duration beside its whole seconds.
    #[track_caller]
    pub fn microseconds(&self) -> Series {
        self.durations(|ticks, unit| Ok(remainder(nanoseconds(ticks, unit), NANOSECONDS) / lit(1_000_i64)))
    }

    /// The nanoseconds of each duration beside its whole microseconds.
    #[track_caller]
    pub fn nanoseconds(&self) -> Series {
        self.durations(|ticks, unit| Ok(remainder(nanoseconds(ticks, unit), 1_000)))
    }

    /// The parts of each duration as columns: `days`, `hours`, `minutes`, `seconds`, `milliseconds`,
    /// `microseconds`, `nanoseconds`.
    ///
    /// ```
    /// use tharsis_dataframe::{Series, to_timedelta};
    /// let parts = to_timedelta(&Series::from_values("d", vec!["1 days 02:03:04.5"])).dt().components();
    /// assert_eq!(parts.at(0, "hours")?.as_i64(), Some(2));
    /// assert_eq!(parts.at(0, "milliseconds")?.as_i64(), Some(500));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn components(&self) -> DataFrame {
        const MINUTE: i64 = 60 * NANOSECONDS;
        const PARTS: [(&str, i64, i64); 6] = [
            ("hours", 3_600 * NANOSECONDS, 24),
            ("minutes", MINUTE, 60),
            ("seconds", NANOSECONDS, 60),
            ("milliseconds", 1_000_000, 1_000),
            ("microseconds", 1_000, 1_000),
            ("nanoseconds", 1, 1_000),
        ];
        let mut columns = vec![("days".to_owned(), self.days())];
        for (label, length, count) in PARTS {
            let part = self.durations(|ticks, unit| {
                Ok(remainder(nanoseconds(ticks, unit), length * count) / lit(length))
            });
            columns.push((label.to_owned(), part));
        }
        self.columns(columns)
    }

    /// Year, week and day of the calendar of ISO 8601, as columns `year`, `week` and `day`.
    #[track_caller]
    pub fn isocalendar(&self) -> DataFrame {
        let columns = ["isoyear", "week", "isodow"].map(|name| {
            self.times(|expr, _| {
                let found = match name {
                    // From 1 for Monday; the library's own is from 0.
                    "isodow" => (part("dow", expr) + lit(6_i32)) % lit(7_i32) + lit(1_i32),
                    name => part(name, expr),
                };
                Ok(cast(found, DataType::UInt32))
            })
        });
        let labels = ["year", "week", "day"].map(str::to_owned);
        self.columns(labels.into_iter().zip(columns).collect())
    }

    /// A frame of series over the same rows.
    #[track_caller]
    fn columns(&self, columns: Vec<(String, Series)>) -> DataFrame {
        let made = columns.into_iter().map(|(label, series)| Ok((label, series.parts()?.1.clone())));
        let made = made.collect::<Result<Vec<_>>>();
        DataFrame::new(made.and_then(|columns| self.0.parts()?.0.project(columns)))
    }

    /// The time of the day, without the day.
    #[track_caller]
    pub fn time(&self) -> Series {
        self.times(|expr, _| Ok(cast(expr, DataType::Time64(TimeUnit::Nanosecond))))
    }

    /// The zone of the times, if they have one.
    ///
    /// # Errors
    /// The error that the series carries.
    pub fn tz(&self) -> Result<Option<String>> {
        Ok(match self.0.dtype()? {
            DataType::Timestamp(_, zone) => zone.map(|zone| zone.to_string()),
            _ => None,
        })
    }

    /// The unit in which times or durations are counted: `s`, `ms`, `us` or `ns`.
    ///
    /// # Errors
    /// The error that the series carries.
    pub fn unit(&self) -> Result<&'static str> {
        match self.0.dtype()? {
            DataType::Timestamp(unit, _) | DataType::Duration(unit) => Ok(unit_text(unit)),
            other => Err(Error::Type(format!("{other} has no unit of time"))),
        }
    }

    /// The same times or durations, counted in another unit.
    #[track_caller]
    pub fn as_unit(&self, unit: &str) -> Series {
        let dtype = self.0.dtype();
        self.0.map_expr(|expr| {
            let unit = unit_named(unit)?;
            let dtype = dtype?;
            let to = match &dtype {
                DataType::Timestamp(_, zone) => DataType::Timestamp(unit, zone.clone()),
                _ => DataType::Duration(unit),
            };
            Ok(cast_down(expr, &dtype, &to))
        })
    }

    /// The same points in time by the clock of another zone, such as `Europe/Oslo`; the times must have a
    /// zone.
    #[track_caller]
    pub fn tz_convert(&self, zone: &str) -> Series {
        self.zoned(Zone::Convert(zone))
    }

    /// The times of a clock as points in time, by its zone; the times must have none.
    ///
    /// ```
    /// use tharsis_dataframe::date_range;
    /// let noon = date_range("2024-07-01T12:00", 1, "D").dt().tz_localize("Europe/Oslo");
    /// assert_eq!(noon.dt().tz_convert("UTC").dt().hour().values::<i64>()?, [Some(10)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn tz_localize(&self, zone: &str) -> Series {
        self.zoned(Zone::Localize(zone))
    }

    /// The times that the clock of their zone shows, without the zone.
    #[track_caller]
    pub fn tz_remove(&self) -> Series {
        self.zoned(Zone::Remove)
    }

    #[track_caller]
    fn zoned(&self, zone: Zone<'_>) -> Series {
        let dtype = self.0.dtype();
        self.times(|expr, _| in_zone(expr, &dtype?, zone))
    }
}

/// A change of the zone of times.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Zone<'a> {
    /// The same points in time by another clock.
    Convert(&'a str),
    /// Times of a clock as points in time.
    Localize(&'a str),
    /// Points in time as times of their clock.
    Remove,
}

/// Times with another zone.
pub(crate) fn in_zone(expr: Expr, dtype: &DataType, zone: Zone<'_>) -> Result<Expr> {
    let DataType::Timestamp(unit, known) = dtype else {
        return Err(Error::Type(format!("times have zones, values of {dtype} have none")));
    };
    match (zone, known) {
        (Zone::Convert(_) | Zone::Remove, None) => {
            Err(Error::Type("cannot convert times without a zone; use tz_localize".to_owned()))
        }
        (Zone::Localize(_), Some(_)) => {
            Err(Error::Type("the times have a zone already; use tz_convert".to_owned()))
        }
        (Zone::Remove, Some(_)) => Ok(wall_clock(expr, true)),
        (Zone::Convert(zone) | Zone::Localize(zone), _) => {
            zone.parse::<Tz>().map_err(|_| Error::Value(format!("no time zone has the name {zone:?}")))?;
            Ok(cast(expr, DataType::Timestamp(*unit, Some(zone.into()))))
        }
    }
}

/// The values as durations: texts such as `1 days 02:00:00` or `5min`; numbers count nanoseconds. A text that
/// is no duration is an error of the run; see [`to_timedelta_or_missing`].
///
/// ```
/// use tharsis_dataframe::{Series, to_timedelta};
/// let lengths = to_timedelta(&Series::from_values("d", vec!["90s", "1 days 00:00:01"]));
/// assert_eq!(lengths.dt().total_seconds().values::<f64>()?, [Some(90.0), Some(86_401.0)]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[track_caller]
pub fn to_timedelta(series: &Series) -> Series {
    durations(series, "tharsis_text_duration")
}

/// The values as durations; missing where a text is none.
#[track_caller]
pub fn to_timedelta_or_missing(series: &Series) -> Series {
    durations(series, "tharsis_text_duration_or_missing")
}

#[track_caller]
fn durations(series: &Series, of_text: &str) -> Series {
    const DURATION: DataType = DataType::Duration(TimeUnit::Nanosecond);
    let dtype = series.dtype();
    series.map_expr(|expr| match dtype? {
        DataType::Duration(_) => Ok(expr),
        DataType::Null => Ok(cast(cast(expr, DataType::Int64), DURATION)),
        dtype if dtype.is_integer() => Ok(cast(cast(expr, DataType::Int64), DURATION)),
        dtype if is_text(&dtype) => Ok(cast(call(of_text, vec![expr])?, DURATION)),
        other => Err(Error::Type(format!("{other} is not convertible to durations"))),
    })
}

/// This many durations from the first on, at a distance: `1h`, `D`, `15min`.
#[track_caller]
pub fn timedelta_range(start: &str, periods: usize, frequency: &str) -> Series {
    let made = fixed_length(frequency).and_then(|step| {
        let start = duration(start, &Constants(Vec::new())).map_err(Error::Value)?;
        Ok((0..periods as i64).map(|at| start + at * step).collect::<Vec<i64>>())
    });
    let frame = match made {
        Ok(lengths) => {
            let column = Column::from_arrow(Arc::new(DurationNanosecondArray::from(lengths)));
            DataFrame::from_columns([("0", column)])
        }
        Err(error) => DataFrame::new(Err(error)),
    };
    Series { name: None, ..frame.col("0") }
}
