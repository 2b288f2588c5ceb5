//! Times at which the clock of a zone shows a reading, for every reading: where the clock is put forward,
//! some are left out, and where it is put back, some come twice. In some zones that is midnight.

use arrow::array::temporal_conversions::as_datetime_with_timezone;
use arrow::array::timezone::Tz;
use arrow::datatypes::{TimeUnit, TimestampSecondType};
use std::ops::Range;

/// More than a clock is away from that of Greenwich, and than it is put forward or back.
const FAR: i64 = 36 * 3_600;

/// The seconds by which the clock is ahead of that of Greenwich.
fn ahead(time: i64, zone: Tz) -> Option<i64> {
    let time_of_zone = as_datetime_with_timezone::<TimestampSecondType>(time, zone)?;
    Some(time_of_zone.naive_local().and_utc().timestamp() - time)
}

/// The seconds by which the clock is ahead of that of Greenwich at a time; `None` near the ends of the
/// calendar and beyond them, where the library panics.
pub(in crate::functions) fn seconds_ahead(time: i64, zone: Tz) -> Option<i64> {
    const DAYS: i64 = 2 * 86_400;
    const WITHIN: Range<i64> = -8_334_601_228_800 + DAYS..8_210_266_876_800 - DAYS;
    WITHIN.contains(&time).then(|| ahead(time, zone)).flatten()
}

/// The first time, in seconds since 1970, at which the clock shows a reading or a later one: in a gap the
/// end of the gap, and of two times with the reading the earlier one. A reading is counted in seconds since
/// that of 1970. `None` for times that no calendar has.
pub(crate) fn time_of_reading(reading: i64, zone: Tz) -> Option<i64> {
    let before = seconds_ahead(reading.checked_sub(FAR)?, zone)?;
    let after = seconds_ahead(reading.checked_add(FAR)?, zone)?;
    let (earlier, later) = (reading - before, reading - after);
    if seconds_ahead(earlier, zone)? == before {
        return Some(earlier);
    }
    if seconds_ahead(later, zone)? == after {
        return Some(later);
    }
    // A clock that is put forward passes over it between these two.
    let (mut shows_less, mut shows_more) = (later, earlier);
    while shows_less + 1 < shows_more {
        let middle = shows_less + (shows_more - shows_less) / 2;
        let reached = middle + seconds_ahead(middle, zone)?;
        if reached < reading { shows_less = middle } else { shows_more = middle }
    }
    Some(shows_more)
}

/// The number of ticks of a unit in a second.
pub(in crate::functions) fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// As [`time_of_reading`], in ticks of which a second has so many.
pub(in crate::functions) fn ticks_of_reading(reading: i64, per_second: i64, zone: Tz) -> Option<i64> {
    let (whole, rest) = (reading.div_euclid(per_second), reading.rem_euclid(per_second));
    let time = time_of_reading(whole, zone)?;
    // Clocks are put forward at whole seconds: in a gap, all readings of a second are at its end.
    let rest = if time + seconds_ahead(time, zone)? == whole { rest } else { 0 };
    time.checked_mul(per_second)?.checked_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, TimeUnit};

    /// The seconds of a text without a zone.
    fn seconds(text: &str) -> i64 {
        let time = datafusion::common::ScalarValue::from(text);
        let time = time.cast_to(&DataType::Timestamp(TimeUnit::Second, None)).unwrap();
        i64::try_from(time.cast_to(&DataType::Int64).unwrap()).unwrap()
    }

    #[track_caller]
    fn assert_time(zone: &str, reading: &str, greenwich: &str) {
        let found = time_of_reading(seconds(reading), zone.parse().unwrap());
        assert_eq!(found, Some(seconds(greenwich)), "{reading} in {zone}");
    }

    #[test]
    fn a_reading_that_is_left_out_is_the_end_of_the_gap() {
        assert_time("America/Santiago", "2024-09-07T00:00:00", "2024-09-07T04:00:00");
        for reading in ["2024-09-08T00:00:00", "2024-09-08T00:59:59", "2024-09-08T01:00:00"] {
            assert_time("America/Santiago", reading, "2024-09-08T04:00:00");
        }
        assert_time("America/Santiago", "2024-09-09T00:00:00", "2024-09-09T03:00:00");
        assert_time("Africa/Cairo", "2024-04-26T00:00:00", "2024-04-25T22:00:00");
        // A day without one hour, and a day that never was.
        assert_time("Europe/Oslo", "2024-03-31T02:30:00", "2024-03-31T01:00:00");
        assert_time("Pacific/Apia", "2011-12-30T12:00:00", "2011-12-30T10:00:00");
    }

    #[test]
    fn of_two_times_with_a_reading_it_is_the_earlier_one() {
        assert_time("America/Havana", "2024-11-03T00:00:00", "2024-11-03T04:00:00");
        assert_time("America/Havana", "2024-11-03T00:59:59", "2024-11-03T04:59:59");
        assert_time("America/Havana", "2024-11-03T01:00:00", "2024-11-03T06:00:00");
        assert_time("Europe/Oslo", "2024-10-27T02:30:00", "2024-10-27T00:30:00");
    }

    #[test]
    fn parts_of_a_second_stay_but_in_a_gap() {
        const SECOND: i64 = 1_000_000_000;
        let found = |zone: &str, reading: i64| ticks_of_reading(reading, SECOND, zone.parse().unwrap());
        let of = |zone: &str, reading: i64| found(zone, reading).unwrap();
        assert_eq!(of("+02:00", -1), -7_200 * SECOND - 1);
        let gap = seconds("2024-09-08T00:30:00") * SECOND;
        assert_eq!(of("America/Santiago", gap + 5), seconds("2024-09-08T04:00:00") * SECOND);
        assert_eq!(found("-12:00", i64::MAX), None);
    }
}
