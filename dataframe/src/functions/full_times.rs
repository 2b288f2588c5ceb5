//! Times in texts that lack a part which the library wants: `2024-03-30 6:00`.

use super::text_function::{Step, text_function};
use datafusion::logical_expr::{Expr, ScalarUDF};
use std::sync::{Arc, LazyLock};

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
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| text_function(FULL_TIMES, Step::Plain(|text| Ok(full_time(text)))));
    Arc::clone(&FUNCTION)
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
