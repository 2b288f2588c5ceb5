//! Times of a zone on its clock, which have no zone.
//!
//! The function of the library panics near the end of its calendar.

use super::on_arrays::on_arrays;
use super::rows::{per_second, seconds_ahead};
use crate::error::Error;
use arrow::array::timezone::Tz;
use arrow::array::{Array, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, OnceLock};

/// Times of a zone on its clock. Those that no calendar has are errors, or missing.
pub(crate) fn local_times(times: Expr, or_missing: bool) -> Expr {
    let [or_error, or_null] = functions();
    if or_missing { or_null.call(vec![times]) } else { or_error.call(vec![times]) }
}

/// The functions, of which a process has one each.
pub(super) fn functions() -> [Arc<ScalarUDF>; 2] {
    static FUNCTIONS: OnceLock<[Arc<ScalarUDF>; 2]> = OnceLock::new();
    let made = |or_missing| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(LocalTimes { signature, or_missing }))
    };
    FUNCTIONS.get_or_init(|| [made(false), made(true)]).clone()
}

/// A time on the clock of a zone; `None` for one that no calendar has.
fn local_time(time: i64, unit: TimeUnit, zone: Tz) -> Option<i64> {
    let per_second = per_second(unit);
    let ahead = seconds_ahead(time.div_euclid(per_second), zone)?;
    time.checked_add(ahead.checked_mul(per_second)?)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct LocalTimes {
    signature: Signature,
    or_missing: bool,
}

impl ScalarUDFImpl for LocalTimes {
    fn name(&self) -> &str {
        if self.or_missing { "tharsis_try_local_times" } else { "tharsis_local_times" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::Timestamp(_, Some(_))] => Ok(types.to_vec()),
            _ => plan_err!("{} takes times of a zone", self.name()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::Timestamp(unit, Some(_))] => Ok(DataType::Timestamp(*unit, None)),
            _ => plan_err!("{} takes times of a zone", self.name()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        on_arrays(args, |arrays| {
            let [value] = arrays else {
                return plan_err!("{} takes an argument", self.name());
            };
            let DataType::Timestamp(unit, Some(zone)) = value.data_type() else {
                return plan_err!("{} takes times of a zone", self.name());
            };
            let (unit, clock): (TimeUnit, Tz) = (*unit, zone.parse()?);
            let times = cast(value, &DataType::Int64)?;
            let times = times.as_primitive::<Int64Type>().iter();
            let local: Int64Array = if self.or_missing {
                times.map(|time| local_time(time?, unit, clock)).collect()
            } else {
                let local = |time: i64| {
                    let per_second = per_second(unit);
                    let text =
                        || format!("no calendar has the time {time} of zone {zone}, in 1/{per_second} s");
                    local_time(time, unit, clock).ok_or_else(|| Error::Value(text()))
                };
                times.map(|time| time.map(local).transpose()).collect::<std::result::Result<_, Error>>()?
            };
            Ok(cast(&local, &DataType::Timestamp(unit, None))?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_at_the_ends_of_calendars_have_no_local_time() {
        for zone in ["Asia/Tokyo", "America/Lima", "+14:00", "UTC"] {
            let clock: Tz = zone.parse().expect("a zone");
            for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond]
            {
                for end in [i64::MIN, i64::MAX] {
                    // Nanoseconds end within the calendar.
                    let found = local_time(end, unit, clock);
                    assert_eq!(found.is_some(), local_is_a_number(end, unit, zone), "{end} {unit:?} {zone}");
                }
            }
            for end in [8_210_266_876_799, -8_334_601_228_800] {
                assert_eq!(local_time(end, TimeUnit::Second, clock), None, "{end} {zone}");
            }
        }
        let tokyo: Tz = "Asia/Tokyo".parse().expect("a zone");
        assert_eq!(local_time(-1, TimeUnit::Millisecond, tokyo), Some(32_399_999));
        let berlin: Tz = "Europe/Berlin".parse().expect("a zone");
        assert_eq!(local_time(1_711_846_799, TimeUnit::Second, berlin), Some(1_711_850_399));
        assert_eq!(local_time(1_711_846_800, TimeUnit::Second, berlin), Some(1_711_854_000));
    }

    /// Whether a number of nanoseconds at its end has room for the clock of a zone.
    fn local_is_a_number(end: i64, unit: TimeUnit, zone: &str) -> bool {
        let is_behind = zone == "America/Lima";
        unit == TimeUnit::Nanosecond && (zone == "UTC" || is_behind == (0 < end))
    }
}
