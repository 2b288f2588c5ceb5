//! Text of fitted models.

use ndarray::ArrayD;
use std::fmt;

/// Numbers that are shown of a long array.
const SHOWN_MAX: usize = 8;

/// A line for an attribute: the name, and the numbers with six digits, of which a long array shows the first.
pub(crate) fn line<'a>(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    numbers: impl IntoIterator<Item = &'a f64>,
) -> fmt::Result {
    write!(f, "\n  {name}:")?;
    self::numbers(f, numbers)
}

/// Numbers with six digits, of which many show the first.
pub(crate) fn numbers<'a>(
    f: &mut fmt::Formatter<'_>,
    numbers: impl IntoIterator<Item = &'a f64>,
) -> fmt::Result {
    texts(f, numbers.into_iter().map(|number| rounded(*number)))
}

/// Texts, of which many show the first.
pub(crate) fn texts(
    f: &mut fmt::Formatter<'_>,
    texts: impl IntoIterator<Item = impl fmt::Display>,
) -> fmt::Result {
    let mut left = 0usize;
    for (at, text) in texts.into_iter().enumerate() {
        if at < SHOWN_MAX {
            write!(f, " {text}")?;
        } else {
            left += 1;
        }
    }
    if 0 < left { write!(f, " and {left} more") } else { Ok(()) }
}

/// Lines for an array of one or two axes: one for each row.
pub(crate) fn rows(f: &mut fmt::Formatter<'_>, name: &str, array: &ArrayD<f64>) -> fmt::Result {
    if array.ndim() < 2 {
        return line(f, name, array);
    }
    for (at, row) in array.outer_iter().enumerate().take(SHOWN_MAX) {
        line(f, &format!("{name}[{at}]"), &row)?;
    }
    match array.shape()[0].saturating_sub(SHOWN_MAX) {
        0 => Ok(()),
        left => write!(f, "\n  {name}: and {left} more rows"),
    }
}

/// A number with six significant digits.
fn rounded(number: f64) -> String {
    // Negative zero is shown as zero.
    let number = number + 0.0;
    let size = number.abs();
    if number == 0.0 || (1e-4..1e6).contains(&size) {
        let digits = if number == 0.0 { 0 } else { (5 - size.log10().floor() as i32).max(0) as usize };
        let text = format!("{number:.digits$}");
        return if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        };
    }
    format!("{number:.5e}")
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn numbers_have_six_digits() {
        let texts: Vec<String> =
            [0.0, 2.0, -0.125, 123_456.7, 1.0 / 3.0, 1e-9, 2.5e12, f64::NAN, 600.0].map(rounded).to_vec();
        assert_eq!(
            texts,
            ["0", "2", "-0.125", "123457", "0.333333", "1.00000e-9", "2.50000e12", "NaN", "600"]
        );
    }
}
