//! Times of a zone on its clock, which have no zone.
//!
//! The function of the library panics near the end of its calendar.

use super::rows::{per_second, seconds_ahead};
use super::try_pair::TryPair;
use arrow::array::timezone::Tz;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::logical_expr::{Expr, ScalarUDF};
use std::sync::{Arc, LazyLock};

/// Times of a zone on its clock. Those that no calendar has are errors, or missing.
pub(crate) fn local_times(times: Expr, or_missing: bool) -> Expr {
    let [or_error, or_null] = functions();
    if or_missing { or_null.call(vec![times]) } else { or_error.call(vec![times]) }
}

/// The functions, of which a process has one each.
pub(super) fn functions() -> [Arc<ScalarUDF>; 2] {
    static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 2]> = LazyLock::new(|| PAIR.functions());
    FUNCTIONS.clone()
}

static PAIR: TryPair = TryPair {
    names: ["tharsis_local_times", "tharsis_try_local_times"],
    takes: "times of a zone",
    gives: |types| match types {
        [DataType::Timestamp(unit, Some(_))] => Some(DataType::Timestamp(*unit, None)),
        _ => None,
    },
    step: local_time,
    refused: |time, zone| format!("no calendar has the time {time} of zone {zone}"),
};

/// A time on the clock of a zone; `None` for one that no calendar has.
fn local_time(time: i64, unit: TimeUnit, zone: Tz) -> Option<i64> {
    let per_second = per_second(unit);
    let ahead = seconds_ahead(time.div_euclid(per_second), zone)?;
    time.checked_add(ahead.checked_mul(per_second)?)
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
