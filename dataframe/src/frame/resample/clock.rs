//! The clock that spans of time are counted by.
//!
//! Times without a zone are what a clock shows. Of times with one, spans of days, weeks and months are those
//! of the zone's calendar, some of which have 23 or 25 hours; spans of hours and less are of equal length,
//! counted from the midnight before the first time, as in pandas.

use super::rule::{DAY, NANOSECONDS, Rule};
use crate::functions::zoned_times::zoned_times;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::functions::expr_fn::{date_trunc, to_local_time};
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::{Expr, lit};
use std::sync::Arc;

/// Times of a column as nanoseconds without a zone, and back.
#[derive(Clone, Debug)]
pub(super) enum Clock {
    /// The times have no zone.
    Plain,
    /// The readings of the zone's clock.
    Wall(Arc<str>),
    /// The time since 1970, which has no summer.
    Even(Arc<str>),
}

impl Clock {
    pub(super) fn of(dtype: &DataType, rule: Rule) -> Clock {
        match (dtype, rule) {
            (DataType::Timestamp(_, Some(zone)), Rule::Fixed(length)) if length % DAY != 0 => {
                Clock::Even(Arc::clone(zone))
            }
            (DataType::Timestamp(_, Some(zone)), _) => Clock::Wall(Arc::clone(zone)),
            _ => Clock::Plain,
        }
    }

    /// Whether midnights of the clock are at equal distances.
    pub(super) fn has_equal_days(&self) -> bool {
        !matches!(self, Clock::Even(_))
    }

    /// The type of times and of the labels of spans.
    pub(super) fn dtype(&self) -> DataType {
        match self {
            Clock::Plain => NANOSECONDS,
            Clock::Wall(zone) | Clock::Even(zone) => {
                DataType::Timestamp(TimeUnit::Nanosecond, Some(Arc::clone(zone)))
            }
        }
    }

    /// The reading of the clock at a time.
    pub(super) fn read(&self, time: Expr) -> Expr {
        let time = cast(time, self.dtype());
        match self {
            Clock::Plain => time,
            Clock::Wall(_) => to_local_time(vec![time]),
            // Between a zone and none, a cast has the time of Greenwich.
            Clock::Even(_) => cast(time, NANOSECONDS),
        }
    }

    /// The midnight before a reading, by the calendar.
    pub(super) fn midnight(&self, reading: Expr) -> Expr {
        match self {
            Clock::Plain | Clock::Wall(_) => date_trunc(lit("day"), reading),
            Clock::Even(_) => cast(date_trunc(lit("day"), self.time(reading)), NANOSECONDS),
        }
    }

    /// The time at which the clock shows this. If it never does, as the clock is put forward, it is the time
    /// at which that happens; if it does twice, the first one.
    pub(super) fn time(&self, reading: Expr) -> Expr {
        match self {
            Clock::Plain => reading,
            Clock::Wall(zone) => zoned_times(reading, TimeUnit::Nanosecond, zone, false),
            Clock::Even(_) => {
                let greenwich = DataType::Timestamp(TimeUnit::Nanosecond, Some("+00:00".into()));
                cast(cast(reading, greenwich), self.dtype())
            }
        }
    }
}
