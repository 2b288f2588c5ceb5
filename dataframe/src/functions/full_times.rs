//! Times in texts that lack a part which the library wants: `2024-03-30 6:00`.

use arrow::array::{Array, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, OnceLock};

/// The name of the function.
pub(crate) const FULL_TIMES: &str = "tharsis_full_times";

/// A text with a time as the library reads it: with two digits of each part, and with seconds. `None` for a
/// text that is so already, or is no such time.
pub(crate) fn full_time(text: &str) -> Option<String> {
    let trimmed = text.trim();
    let (year, rest) = number(trimmed, 4..=4)?;
    let (month, rest) = number(rest.strip_prefix('-')?, 1..=2)?;
    let (day, rest) = number(rest.strip_prefix('-')?, 1..=2)?;
    let (between, time) = match rest.strip_prefix('T') {
        Some(time) => ('T', time),
        None => (' ', rest.trim_start()),
    };
    let is_space = rest.len() == time.len() + 1 && rest.starts_with(between);
    let (hour, rest) = number(time, 1..=2)?;
    let (minute, rest) = number(rest.strip_prefix(':')?, 1..=2)?;
    let (second, rest) = match rest.strip_prefix(':') {
        Some(rest) => number(rest, 1..=2)?,
        None => ("0", rest),
    };
    // Most texts are full.
    let is_full = [month, day, hour, minute, second].iter().all(|part| part.len() == 2);
    if is_full && is_space && trimmed.len() == text.len() {
        return None;
    }
    Some(format!("{year}-{month:0>2}-{day:0>2}{between}{hour:0>2}:{minute:0>2}:{second:0>2}{rest}"))
}

/// The digits that a text begins with, and what is behind them.
fn number(text: &str, lengths: std::ops::RangeInclusive<usize>) -> Option<(&str, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    lengths.contains(&end).then(|| text.split_at(end))
}

/// Texts with times as the library reads them.
pub(crate) fn full_times(texts: Expr) -> Expr {
    function().call(vec![texts])
}

/// The function, of which a process has one.
pub(super) fn function() -> Arc<ScalarUDF> {
    static FUNCTION: OnceLock<Arc<ScalarUDF>> = OnceLock::new();
    let made = || {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(FullTimes { signature }))
    };
    Arc::clone(FUNCTION.get_or_init(made))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FullTimes {
    signature: Signature,
}

impl ScalarUDFImpl for FullTimes {
    fn name(&self) -> &str {
        FULL_TIMES
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [text] => Ok(vec![text.clone()]),
            _ => plan_err!("{} takes an argument", self.name()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let first = types.first().cloned();
        first.ok_or_else(|| exec_datafusion_err!("{} without arguments", self.name()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else {
            return plan_err!("{} takes an argument", self.name());
        };
        let given = value.to_array(args.number_rows)?;
        let texts = cast(&given, &DataType::Utf8)?;
        let texts = texts.as_string::<i32>();
        // Most texts are full.
        if texts.iter().flatten().all(|text| full_time(text).is_none()) {
            return Ok(value.clone());
        }
        let full = |text: &str| full_time(text).unwrap_or_else(|| text.to_owned());
        let full: StringArray = texts.iter().map(|text| text.map(full)).collect();
        let full = cast(&full, given.data_type())?;
        Ok(match value {
            ColumnarValue::Array(_) => ColumnarValue::Array(full),
            ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&full, 0)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::full_time;

    #[test]
    fn times_get_the_parts_that_they_lack() {
        for (text, expected) in [
            ("2024-04-03 12:00", "2024-04-03 12:00:00"),
            ("2024-03-30 6:00:00", "2024-03-30 06:00:00"),
            ("2024-3-1T6:05", "2024-03-01T06:05:00"),
            (" 2024-03-30  6:00:07.25 ", "2024-03-30 06:00:07.25"),
            ("2024-01-02 10:30+02", "2024-01-02 10:30:00+02"),
            ("2024-01-02 10:30 Europe/Berlin", "2024-01-02 10:30:00 Europe/Berlin"),
            ("2024-01-02 10:30Z", "2024-01-02 10:30:00Z"),
        ] {
            assert_eq!(full_time(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "2024-01-02 10:30:15",
            "2024-01-02 10:30:15.5+02:00",
            "2024-01-02T10:30:15",
            "2024-01-02",
            "2024-01-02 10",
            "2024-01-02 :30",
            "24-01-02 10:30",
            "10:30",
            "",
            "ü",
            "2024-01-02 100:30",
        ] {
            assert_eq!(full_time(text), None, "{text}");
        }
    }
}
