//! Values as the binder sees them.

use std::fmt::{self, Write};

/// Longest text of a value in a message, in characters.
const SHOWN_MAX: usize = 200;

/// A value as the binder sees it. Its text is Python's.
#[derive(Clone, Debug, PartialEq)]
pub enum Look<'a> {
    /// Python's `None`.
    None,
    /// `True` or `False`.
    Boolean(bool),
    /// A whole number.
    Integer(i128),
    /// A float.
    Real(f64),
    /// A text.
    Text(&'a str),
    /// A list of values.
    List(Vec<Look<'a>>),
    /// A tuple of values.
    Tuple(Vec<Look<'a>>),
    /// An array of the evaluator: a tensor or a sparse matrix.
    Array,
    /// An object of this class, such as an estimator.
    Object(&'a str),
    /// Anything else, by the name of its type.
    Other(&'static str),
}

impl Look<'_> {
    /// Whether Python finds both equal: numbers by their values, booleans as numbers.
    ///
    /// ```
    /// use tharsis_programs::Look;
    /// assert!(Look::Boolean(true).equals(&Look::Real(1.0)));
    /// assert!(!Look::Text("1").equals(&Look::Integer(1)));
    /// ```
    #[must_use]
    pub fn equals(&self, other: &Look<'_>) -> bool {
        match (self, other) {
            (Look::List(a), Look::List(b)) | (Look::Tuple(a), Look::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals(b))
            }
            _ => match (self.number(), other.number()) {
                (Some(a), Some(b)) => a == b,
                _ => self == other,
            },
        }
    }

    /// The value of a number or a boolean.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Look::Boolean(is_true) => Some(f64::from(u8::from(*is_true))),
            Look::Integer(whole) => Some(*whole as f64),
            Look::Real(number) => Some(*number),
            _ => None,
        }
    }

    /// The text in messages: Python's, cut where it is long.
    pub(crate) fn shown(&self) -> String {
        let mut start = Start { text: String::new(), left: SHOWN_MAX };
        match write!(start, "{self}") {
            Ok(()) => start.text,
            Err(_) => start.text + "...",
        }
    }
}

/// The first characters of a text. It refuses more, so that the rest of a long list is not made.
struct Start {
    text: String,
    left: usize,
}

impl fmt::Write for Start {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(letter);
        }
        Ok(())
    }
}

impl fmt::Display for Look<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Look::None => f.write_str("None"),
            Look::Boolean(is_true) => f.write_str(if *is_true { "True" } else { "False" }),
            Look::Integer(whole) => write!(f, "{whole}"),
            Look::Real(number) => f.write_str(&float(*number)),
            Look::Text(text) => f.write_str(&quoted(text)),
            Look::List(parts) => {
                f.write_str("[")?;
                listed(f, parts)?;
                f.write_str("]")
            }
            Look::Tuple(parts) => {
                f.write_str("(")?;
                listed(f, parts)?;
                f.write_str(if parts.len() == 1 { ",)" } else { ")" })
            }
            Look::Array => f.write_str("an array"),
            Look::Object(class) => write!(f, "{class}()"),
            Look::Other(name) => write!(f, "<{name}>"),
        }
    }
}

fn listed(f: &mut fmt::Formatter<'_>, parts: &[Look<'_>]) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        if 0 < at {
            f.write_str(", ")?;
        }
        fmt::Display::fmt(part, f)?;
    }
    Ok(())
}

/// Python's `repr` of a float: exponents have a sign and two digits.
fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    let text = format!("{number:?}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    match exponent.strip_prefix('-') {
        Some(exponent) => format!("{digits}e-{exponent:0>2}"),
        None => format!("{digits}e+{exponent:0>2}"),
    }
}

/// Python's `repr` of a text.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut made = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\\' => made.push_str("\\\\"),
            '\n' => made.push_str("\\n"),
            '\r' => made.push_str("\\r"),
            '\t' => made.push_str("\\t"),
            letter if letter == quote => made.extend(['\\', quote]),
            letter => made.push(letter),
        }
    }
    made.push(quote);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_values_are_those_of_python() {
        let shown = [
            (Look::None, "None"),
            (Look::Boolean(false), "False"),
            (Look::Integer(-7), "-7"),
            (Look::Real(1.0), "1.0"),
            (Look::Real(1e-4), "0.0001"),
            (Look::Real(1e-9), "1e-09"),
            (Look::Real(-2.5e-5), "-2.5e-05"),
            (Look::Real(1e16), "1e+16"),
            (Look::Real(1e300), "1e+300"),
            (Look::Real(f64::NEG_INFINITY), "-inf"),
            (Look::Real(-f64::NAN), "nan"),
            (Look::Text("l2"), "'l2'"),
            (Look::Text("it's"), "\"it's\""),
            (Look::Text("a\\'\"\n"), "'a\\\\\\'\"\\n'"),
            (Look::List(vec![Look::Integer(1), Look::Text("a")]), "[1, 'a']"),
            (Look::Tuple(vec![Look::Integer(1)]), "(1,)"),
            (Look::Tuple(vec![Look::Integer(0), Look::Integer(1)]), "(0, 1)"),
        ];
        for (look, text) in shown {
            assert_eq!(look.to_string(), text);
        }
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let text = "é".repeat(10_000);
        let shown = Look::Text(&text).shown();
        assert_eq!(shown.chars().count(), SHOWN_MAX + 3);
        assert!(shown.ends_with("é..."));
        assert_eq!(Look::List(vec![Look::Integer(7); 67]).shown().len(), 203);
    }

    #[test]
    fn numbers_are_equal_by_value() {
        assert!(Look::Integer(1).equals(&Look::Real(1.0)));
        assert!(Look::Tuple(vec![Look::Integer(1)]).equals(&Look::Tuple(vec![Look::Real(1.0)])));
        assert!(!Look::Tuple(vec![]).equals(&Look::List(vec![])));
        assert!(!Look::Real(f64::NAN).equals(&Look::Real(f64::NAN)));
        assert!(!Look::None.equals(&Look::Boolean(false)));
    }
}
