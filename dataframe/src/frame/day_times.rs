//! Rows by the time of the day that their labels have, and rows repeated.

use super::{DataFrame, Frame, named};
use crate::error::{Error, Result};
use crate::frame::series::wall_clock;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::UnnestOptions;
use datafusion::functions::expr_fn::concat;
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::{Expr, lit};

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// The microseconds since midnight of a time like `9:30` or `09:30:15.5`.
fn since_midnight(text: &str) -> Result<i64> {
    let wrong = || Error::Value(format!("{text:?} is no time of the day"));
    let mut parts = text.trim().split(':');
    let mut whole = |bound: i64, default: Option<i64>| -> Result<i64> {
        match (parts.next(), default) {
            (Some(part), _) => {
                part.parse::<i64>().ok().filter(|part| (0..bound).contains(part)).ok_or_else(wrong)
            }
            (None, Some(default)) => Ok(default),
            (None, None) => Err(wrong()),
        }
    };
    let (hour, minute) = (whole(24, None)?, whole(60, None)?);
    let seconds = parts.next().map_or(Ok(0.0), |part| part.parse::<f64>().map_err(|_| wrong()))?;
    if parts.next().is_some() || !(0.0..60.0).contains(&seconds) {
        return Err(wrong());
    }
    Ok((hour * 60 + minute) * 60_000_000 + (seconds * 1e6).round() as i64)
}

impl Frame {
    /// The time of the day of each row's label, in microseconds.
    fn day_time(&self) -> Result<Expr> {
        let [level] = &self.index[..] else {
            return Err(Error::Type("the index must be of times".to_owned()));
        };
        let DataType::Timestamp(_, zone) = self.dtype(&level.column)? else {
            return Err(Error::Type("the index must be of times".to_owned()));
        };
        let local = wall_clock(named(&level.column), zone.is_some());
        let ticks = cast(cast(local, DataType::Timestamp(TimeUnit::Microsecond, None)), DataType::Int64);
        Ok((ticks % lit(DAY) + lit(DAY)) % lit(DAY))
    }
}

impl DataFrame {
    /// The rows whose labels lie between two times of the day, both included; over midnight if the first is
    /// later. `TypeError` if the labels are no times.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, Index, date_range};
    /// let frame = date_range("2024-01-01T08:00", 4, "4h").rename("t").to_frame();
    /// let noon = frame.set_index(["t"]).between_time("11:00", "17:00");
    /// assert_eq!(noon.len()?, 2);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn between_time(&self, start: &str, end: &str) -> DataFrame {
        self.then(|frame| {
            let time = frame.day_time()?;
            let (start, end) = (since_midnight(start)?, since_midnight(end)?);
            let (from, to) = (time.clone().gt_eq(lit(start)), time.lt_eq(lit(end)));
            let kept = if start <= end { from.and(to) } else { from.or(to) };
            Ok(Frame { plan: frame.builder().filter(kept)?.build()?, ..frame.clone() })
        })
    }

    /// The rows whose labels have this time of the day; `TypeError` if the labels are no times.
    #[track_caller]
    pub fn at_time(&self, time: &str) -> DataFrame {
        self.then(|frame| {
            let kept = frame.day_time()?.eq(lit(since_midnight(time)?));
            Ok(Frame { plan: frame.builder().filter(kept)?.build()?, ..frame.clone() })
        })
    }

    /// Each row this many times, with its label.
    #[track_caller]
    pub(crate) fn repeated(&self, label: &str, times: usize) -> DataFrame {
        self.then(|frame| {
            let (frame, _) = frame.with_index()?.with_row()?;
            if times == 0 {
                return frame.limited(0, 0);
            }
            let columns = frame.columns.iter().map(|column| {
                if column == label {
                    (column.clone(), make_array(vec![named(column); times]))
                } else {
                    (column.clone(), named(column))
                }
            });
            let mut frame = frame.project(columns.collect())?;
            let lists = vec![super::clean::named_column(label)];
            let options = UnnestOptions::new().with_preserve_nulls(true);
            frame.plan = frame.builder().unnest_columns_with_options(lists, options)?.build()?;
            Ok(frame)
        })
    }

    /// The rows with texts before and behind each label.
    #[track_caller]
    pub(crate) fn prefixed_rows(&self, prefix: &str, suffix: &str) -> DataFrame {
        self.then(|frame| {
            let mut frame = frame.with_index()?;
            for level in 0..frame.index.len() {
                frame = frame.with_label(level, |label| {
                    Ok(concat(vec![lit(prefix), cast(label, DataType::Utf8), lit(suffix)]))
                })?;
            }
            Ok(frame)
        })
    }
}
