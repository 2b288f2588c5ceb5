//! Texts that name a time less exactly than the labels of an index: `2024-01-02` is the whole day.

use crate::functions::rows::{days_of, time_of_reading};
use crate::value::Value;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use std::ops::RangeInclusive;

/// A moment of a calendar, and what its text does not say.
struct Said {
    /// Year, month, day, hour, minute, second.
    parts: [i64; 6],
    /// The number of those that the text has.
    count: usize,
}

/// The moment of a text: `2024`, `2024-05`, `2024-05-06`, `2024-05-06 07`, `2024-05-06T07:08`, `2024-05-06
/// 07:08:09`; `None` for any other form.
fn said(text: &str) -> Option<Said> {
    let text = text.trim();
    let (date, clock) = match text.split_once(['T', ' ']) {
        Some((date, clock)) => (date, Some(clock)),
        None => (text, None),
    };
    let mut texts: Vec<&str> = date.split('-').collect();
    let dates = texts.len();
    if let Some(clock) = clock {
        texts.extend(clock.split(':'));
    }
    let whole_date = clock.is_none() || dates == 3;
    if !whole_date || dates > 3 || texts.len() > 6 {
        return None;
    }
    let mut parts = [1970, 1, 1, 0, 0, 0];
    for (at, text) in texts.iter().enumerate() {
        let digits = if at == 0 { 4..=4 } else { 1..=2 };
        if !digits.contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        parts[at] = text.parse().ok()?;
    }
    let bounds = [0..=9999, 1..=12, 1..=days_of(parts[0], parts[1]), 0..=23, 0..=59, 0..=59];
    let fits = parts.iter().zip(bounds).all(|(part, bound)| bound.contains(part));
    fits.then_some(Said { parts, count: texts.len() })
}

impl Said {
    fn text(&self) -> String {
        let [year, month, day, hour, minute, second] = self.parts;
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
    }

    /// The moment behind all that the text names.
    fn next(&self) -> Said {
        let mut parts = self.parts;
        let mut at = self.count - 1;
        loop {
            parts[at] += 1;
            let last = match at {
                0 => i64::MAX,
                1 => 12,
                2 => days_of(parts[0], parts[1]),
                3 => 23,
                _ => 59,
            };
            if parts[at] <= last {
                return Said { parts, count: self.count };
            }
            parts[at] = if at < 3 { 1 } else { 0 };
            at -= 1;
        }
    }
}

/// Ticks of a second.
fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// The first and the last time of a type that a text names, if it is a text that names more than one, or
/// exactly one in the form of a date or a clock; the zone is that of the type.
pub(super) fn span(label: &Value, dtype: &DataType) -> Option<RangeInclusive<i64>> {
    let DataType::Timestamp(unit, zone) = dtype else { return None };
    let said = said(label.as_str()?)?;
    let ticks = |moment: &Said| {
        let reading = ScalarValue::Utf8(Some(moment.text()));
        let reading = reading.cast_to(&DataType::Timestamp(TimeUnit::Second, None)).ok()?;
        let ScalarValue::Int64(Some(reading)) = reading.cast_to(&DataType::Int64).ok()? else { return None };
        // A day of a type with a zone begins at the midnight of its clock, or where that is left out.
        let time = match zone {
            Some(zone) => time_of_reading(reading, zone.parse().ok()?)?,
            None => reading,
        };
        time.checked_mul(per_second(*unit))
    };
    let (first, next) = (ticks(&said)?, ticks(&said.next())?);
    Some(first..=next.checked_sub(1)?)
}

/// A time of a type by its ticks.
pub(super) fn at_ticks(ticks: i64, dtype: &DataType) -> Option<ScalarValue> {
    ScalarValue::Int64(Some(ticks)).cast_to(dtype).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, dtype: &DataType) -> Option<[String; 2]> {
        let span = span(&Value::from(text), dtype)?;
        let show = |ticks: i64| {
            let time = at_ticks(ticks, dtype)?.cast_to(&DataType::Utf8).ok()?;
            time.try_as_str()?.map(str::to_owned)
        };
        Some([show(*span.start())?, show(*span.end())?])
    }

    #[test]
    fn a_text_names_all_that_it_does_not_exclude() {
        let seconds = DataType::Timestamp(TimeUnit::Second, None);
        let found = |text: &str| shown(text, &seconds).unwrap().join(" ");
        assert_eq!(found("2024"), "2024-01-01T00:00:00 2024-12-31T23:59:59");
        assert_eq!(found("2024-02"), "2024-02-01T00:00:00 2024-02-29T23:59:59");
        assert_eq!(found("2023-12-31"), "2023-12-31T00:00:00 2023-12-31T23:59:59");
        assert_eq!(found("2024-01-02 23"), "2024-01-02T23:00:00 2024-01-02T23:59:59");
        assert_eq!(found("2024-01-02T03:04"), "2024-01-02T03:04:00 2024-01-02T03:04:59");
        assert_eq!(found("2024-01-02 03:04:05"), "2024-01-02T03:04:05 2024-01-02T03:04:05");
        for text in ["", "24-01-01", "2024-13", "2024-02-30", "2024-01 03", "2024-01-02 03:04:05.5", "x"] {
            assert_eq!(span(&Value::from(text), &seconds), None, "{text}");
        }
    }

    #[test]
    fn a_day_is_that_of_the_zone() {
        let oslo = DataType::Timestamp(TimeUnit::Second, Some("Europe/Oslo".into()));
        let found = span(&Value::from("2024-03-31"), &oslo).unwrap();
        assert_eq!(found.end() - found.start() + 1, 23 * 3600);
    }

    #[test]
    fn a_day_whose_midnight_is_left_out_or_comes_twice_is_whole() {
        let hours = |text: &str, zone: &str| {
            let dtype = DataType::Timestamp(TimeUnit::Second, Some(zone.into()));
            let found = span(&Value::from(text), &dtype).unwrap();
            (found.end() - found.start() + 1) / 3600
        };
        assert_eq!(hours("2024-09-07", "America/Santiago"), 24);
        assert_eq!(hours("2024-09-08", "America/Santiago"), 23);
        assert_eq!(hours("2024-04-26", "Africa/Cairo"), 23);
        assert_eq!(hours("2024-11-02", "America/Havana"), 24);
        assert_eq!(hours("2024-11-03", "America/Havana"), 25);
    }
}
