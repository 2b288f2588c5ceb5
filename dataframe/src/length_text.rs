//! Durations as texts, in pandas' form.

use crate::error::{Error, Result};
use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};

const DAY_NANOS: i128 = 86_400 * 1_000_000_000;

/// The parts of each duration that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LengthForm {
    /// Days and the clock, with as many digits behind seconds as each needs: `-1 days +23:59:59.500000`.
    Own,
    /// Days and the clock with this many digits behind seconds.
    Digits(usize),
    /// Days alone, for durations that are whole days: `-1 days`.
    Days,
}

impl LengthForm {
    /// The form of all durations of a series by the finest one: of whole days (0), of seconds (1), of
    /// milliseconds (2), of microseconds (3) or finer.
    pub(crate) fn of_finest(finest: i64) -> LengthForm {
        match finest {
            0 => LengthForm::Days,
            1 => LengthForm::Digits(0),
            2 | 3 => LengthForm::Digits(6),
            _ => LengthForm::Digits(9),
        }
    }
}

/// Durations as texts.
///
/// # Errors
/// `InternalError` for values that are no durations.
pub(crate) fn length_texts(lengths: &ArrayRef, form: LengthForm) -> Result<Vec<Option<String>>> {
    let text = |nanos: Option<i128>| nanos.map(|nanos| text(nanos, form));
    Ok(nanoseconds(lengths)?.into_iter().map(text).collect())
}

/// The form of durations that are shown together: pandas shows no clock if all are whole days.
///
/// # Errors
/// As [`length_texts`].
pub(crate) fn form_of(lengths: &ArrayRef) -> Result<LengthForm> {
    let are_days = nanoseconds(lengths)?.into_iter().flatten().all(|nanos| nanos % DAY_NANOS == 0);
    Ok(if are_days { LengthForm::Days } else { LengthForm::Own })
}

fn nanoseconds(lengths: &ArrayRef) -> Result<Vec<Option<i128>>> {
    let tick = match lengths.data_type() {
        DataType::Duration(TimeUnit::Second) => 1_000_000_000,
        DataType::Duration(TimeUnit::Millisecond) => 1_000_000,
        DataType::Duration(TimeUnit::Microsecond) => 1_000,
        DataType::Duration(TimeUnit::Nanosecond) => 1,
        other => return Err(Error::Internal(format!("{other} is no duration"))),
    };
    let ticks = cast(lengths, &DataType::Int64)?;
    Ok(ticks
        .as_primitive::<Int64Type>()
        .iter()
        .map(|count| count.map(|count| i128::from(count) * tick))
        .collect())
}

fn text(nanos: i128, form: LengthForm) -> String {
    let (days, rest) = (nanos.div_euclid(DAY_NANOS), nanos.rem_euclid(DAY_NANOS));
    if form == LengthForm::Days {
        return format!("{days} days");
    }
    let (seconds, fraction) = (rest / 1_000_000_000, rest % 1_000_000_000);
    let sign = if days < 0 { "+" } else { "" };
    let digits = match form {
        LengthForm::Digits(digits) => digits,
        _ if fraction == 0 => 0,
        _ if fraction % 1_000 == 0 => 6,
        _ => 9,
    };
    let fraction = match digits {
        0 => String::new(),
        digits => format!(".{fraction:09}").chars().take(digits + 1).collect(),
    };
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{days} days {sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{DurationMillisecondArray, DurationNanosecondArray};
    use std::sync::Arc;

    #[test]
    fn durations_have_the_texts_of_pandas() {
        let lengths: ArrayRef =
            Arc::new(DurationMillisecondArray::from(vec![Some(86_461_000), Some(-1_500), None, Some(0)]));
        assert_eq!(form_of(&lengths).expect("durations"), LengthForm::Own);
        let texts = length_texts(&lengths, LengthForm::Own).expect("durations");
        let texts: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
        let expected =
            [Some("1 days 00:01:01"), Some("-1 days +23:59:58.500000"), None, Some("0 days 00:00:00")];
        assert_eq!(texts, expected);
        let same = length_texts(&lengths, LengthForm::of_finest(2)).expect("durations");
        assert_eq!(same[0].as_deref(), Some("1 days 00:01:01.000000"));
        let lengths: ArrayRef = Arc::new(DurationNanosecondArray::from(vec![1, i64::MIN]));
        let texts = length_texts(&lengths, LengthForm::Own).expect("durations");
        assert_eq!(texts[0].as_deref(), Some("0 days 00:00:00.000000001"));
        assert_eq!(texts[1].as_deref(), Some("-106752 days +00:12:43.145224192"));
    }

    #[test]
    fn whole_days_have_no_clock() {
        let lengths: ArrayRef = Arc::new(DurationMillisecondArray::from(vec![86_400_000, -172_800_000]));
        let form = form_of(&lengths).expect("durations");
        let texts = length_texts(&lengths, form).expect("durations");
        assert_eq!(texts, [Some("1 days".to_owned()), Some("-2 days".to_owned())]);
    }
}
