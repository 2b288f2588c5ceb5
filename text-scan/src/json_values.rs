//! Values of JSON lines that a decoder would make others of, to fit them into the types of their columns:
//! Arrow's cuts `2.5` to 2 in a column of whole numbers and `1.239` to 1.23 in one of decimals, and takes the
//! text `"7"` for a number.
//!
//! The lines are read by the decoder, and have its grammar. Here a second pass goes over their bytes, which
//! finds where values begin and end. It makes a number of a text only where digits alone do not tell.

use memchr::{memchr2, memchr3};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// The values of a column, as far as the decoder does not look at them.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Anything: the decoder refuses what has no room in the type.
    Any,
    /// A number without a fraction.
    Whole {
        /// Whether texts may be such numbers.
        texts: bool,
    },
    /// A number that a float has room for.
    Float {
        /// Whether texts may be such numbers.
        texts: bool,
        /// The bits of the float: 16, 32 or 64.
        bits: u8,
    },
    /// A number with a bound on its digits behind the point.
    Decimal {
        /// The most digits; below zero, so many digits before the point are zeros.
        scale: i8,
    },
    /// A text of a time, or a number without a fraction.
    Time {
        /// The most digits behind the seconds.
        digits: usize,
    },
    /// A list of such values; see [`list_of`](Shape::list_of).
    List(Box<Shape>),
    /// An object of any labels, with such values; see [`map_of`](Shape::map_of).
    Map(Box<Shape>),
    /// An object with labels of its own, as a line is one; see [`object_of`](Shape::object_of).
    Object(Object),
}

/// Labels of an object, and the values that they may have.
#[derive(Clone, Debug)]
pub struct Object {
    labels: Vec<String>,
    /// As they stand in the lines, if no sign of them is written in another way; none for a label that has
    /// signs which must be.
    quoted: Vec<Option<String>>,
    shapes: Vec<Shape>,
    places: HashMap<String, usize>,
}

impl Shape {
    /// The shape of lists of such values.
    #[must_use]
    pub fn list_of(inner: Shape) -> Shape {
        if matches!(inner, Shape::Any) { Shape::Any } else { Shape::List(Box::new(inner)) }
    }

    /// The shape of objects of any labels with such values.
    #[must_use]
    pub fn map_of(inner: Shape) -> Shape {
        if matches!(inner, Shape::Any) { Shape::Any } else { Shape::Map(Box::new(inner)) }
    }

    /// The shape of objects of these labels, and of lines: others may stand beside them.
    #[must_use]
    pub fn object_of(fields: Vec<(String, Shape)>) -> Shape {
        if fields.iter().all(|(_, shape)| matches!(shape, Shape::Any)) {
            return Shape::Any;
        }
        let (labels, shapes): (Vec<String>, Vec<Shape>) = fields.into_iter().unzip();
        let is_plain =
            |label: &&String| !label.contains(|sign: char| matches!(sign, '"' | '\\') || sign < ' ');
        let quoted =
            labels.iter().map(|label| Some(label).filter(is_plain).map(|label| format!("\"{label}\"")));
        let quoted = quoted.collect();
        let places = labels.iter().enumerate().map(|(at, label)| (label.clone(), at)).collect();
        Shape::Object(Object { labels, quoted, shapes, places })
    }

    /// Looks at all values of whole lines that the decoder could read.
    ///
    /// ```
    /// use tharsis_text_scan::json_values::Shape;
    /// let lines = Shape::object_of(vec![("a".to_owned(), Shape::Whole { texts: false })]);
    /// assert_eq!(lines.check(b"{\"a\": 2, \"b\": 2.5}\n{\"a\": 3.0}\n"), Ok(()));
    /// let reason = lines.check(b"{\"a\": 2.5}\n").unwrap_err();
    /// assert_eq!(reason, "2.5 in column \"a\", which is of whole numbers");
    /// ```
    ///
    /// # Errors
    ///
    /// The reason to refuse a value.
    pub fn check(&self, lines: &[u8]) -> Result<(), String> {
        if matches!(self, Shape::Any) {
            return Ok(());
        }
        let mut rest = Rest { bytes: lines, at: 0 };
        while rest.has_line() {
            rest.value(self, "")?;
        }
        Ok(())
    }

    /// Looks at a number in a column.
    fn check_number(&self, number: &[u8], label: &str) -> Result<(), String> {
        match *self {
            Shape::Whole { .. } | Shape::Time { .. } if !is_whole(number) => {
                Err(refused(&shown(number), label, "whole numbers"))
            }
            Shape::Float { bits, .. } if is_infinite(number, bits) => {
                Err(refused(&shown(number), label, format_args!("numbers of {bits} bits")))
            }
            Shape::Decimal { scale } => check_decimal(number, scale, label),
            _ => Ok(()),
        }
    }

    /// Looks at a text in a column, as it is written between its quotes.
    fn check_text(&self, written: &[u8], label: &str) -> Result<(), String> {
        let text = || format!("the text {:?}", shown(unescaped(written).as_bytes()));
        match *self {
            Shape::Whole { texts: false } | Shape::Float { texts: false, .. } => {
                Err(refused(&text(), label, "numbers"))
            }
            Shape::Float { bits, .. } => {
                let number = unescaped(written);
                // A text of infinity is no number that has no room.
                if number.contains(|sign: char| sign.is_ascii_digit()) && is_infinite(number.as_bytes(), bits)
                {
                    return Err(refused(&text(), label, format_args!("numbers of {bits} bits")));
                }
                Ok(())
            }
            Shape::Decimal { scale } => check_decimal(unescaped(written).as_bytes(), scale, label),
            Shape::Time { digits } if digits < digits_behind_seconds(unescaped(written).as_bytes()) => {
                Err(refused(&text(), label, format_args!("times with {digits} digits behind the seconds")))
            }
            _ => Ok(()),
        }
    }
}

/// Lines of which a part has been looked at.
struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Rest<'a> {
    /// Goes to the next value of a line; false at the end.
    fn has_line(&mut self) -> bool {
        let blanks = self.left().iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
        self.at += blanks.count();
        self.at < self.bytes.len()
    }

    fn left(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The next byte behind spaces. A line has no breaks within.
    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\r') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Passes by a sign, if it is the next one.
    fn has(&mut self, sign: u8) -> bool {
        let has = self.peek() == Some(sign);
        self.at += usize::from(has);
        has
    }

    fn expect(&mut self, sign: u8) -> Result<(), String> {
        if self.has(sign) { Ok(()) } else { Err(format!("expected `{}`", char::from(sign))) }
    }

    /// Looks at the next value, which is in a column.
    fn value(&mut self, shape: &Shape, label: &str) -> Result<(), String> {
        match self.peek() {
            Some(b'"') => shape.check_text(self.text()?, label),
            Some(b'-' | b'0'..=b'9') => shape.check_number(self.number(), label),
            Some(b'a'..=b'z') => {
                self.at += self.left().iter().take_while(|byte| byte.is_ascii_lowercase()).count();
                Ok(())
            }
            Some(b'{') => match shape {
                Shape::Object(object) => self.object(object),
                Shape::Map(inner) => self.map(inner, label),
                _ => self.skip(),
            },
            Some(b'[') => match shape {
                Shape::List(inner) => self.list(inner, label),
                _ => self.skip(),
            },
            _ => Err("expected a value".to_owned()),
        }
    }

    fn object(&mut self, object: &Object) -> Result<(), String> {
        self.at += 1;
        if self.has(b'}') {
            return Ok(());
        }
        let mut expected = 0;
        loop {
            let place = self.label(object, expected)?;
            self.expect(b':')?;
            match place {
                Some(at) => self.value(&object.shapes[at], &object.labels[at])?,
                None => self.value(&Shape::Any, "")?,
            }
            expected = place.map_or(expected, |at| at + 1);
            if self.has(b'}') {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    /// The place of the next label, of which one is expected: most lines have theirs in one order.
    fn label(&mut self, object: &Object, expected: usize) -> Result<Option<usize>, String> {
        self.peek();
        if let Some(Some(next)) = object.quoted.get(expected)
            && self.left().starts_with(next.as_bytes())
        {
            self.at += next.len();
            return Ok(Some(expected));
        }
        let label = unescaped(self.text()?);
        Ok(object.places.get(&*label).copied())
    }

    fn map(&mut self, inner: &Shape, label: &str) -> Result<(), String> {
        self.at += 1;
        if self.has(b'}') {
            return Ok(());
        }
        loop {
            self.text()?;
            self.expect(b':')?;
            self.value(inner, label)?;
            if self.has(b'}') {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    fn list(&mut self, inner: &Shape, label: &str) -> Result<(), String> {
        self.at += 1;
        if self.has(b']') {
            return Ok(());
        }
        loop {
            self.value(inner, label)?;
            if self.has(b']') {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    /// Passes by a text; gives what is written between its quotes.
    fn text(&mut self) -> Result<&'a [u8], String> {
        self.expect(b'"')?;
        let begin = self.at;
        while let Some(found) = memchr3(b'"', b'\\', b'\n', self.left()) {
            self.at += found + 1;
            match self.bytes[self.at - 1] {
                b'"' => return Ok(&self.bytes[begin..self.at - 1]),
                b'\\' => self.at += 1,
                _ => break,
            }
        }
        Err("the line ends within a text".to_owned())
    }

    /// Passes by a number.
    fn number(&mut self) -> &'a [u8] {
        let left = self.left();
        let is_of_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let end = left.iter().position(|byte| !is_of_number(byte)).unwrap_or(left.len());
        self.at += end;
        &left[..end]
    }

    /// Passes by a list or an object at whose values nobody looks.
    fn skip(&mut self) -> Result<(), String> {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.text()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth <= 1 => {
                    self.at += 1;
                    return Ok(());
                }
                b'}' | b']' => depth -= 1,
                b'\n' => break,
                _ => {}
            }
            self.at += 1;
        }
        Err("the line ends within a value".to_owned())
    }
}

fn refused(what: &str, label: &str, of: impl fmt::Display) -> String {
    format!("{what} in column {label:?}, which is of {of}")
}

/// The begin of a text.
fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().take(TEXT_SHOWN).collect()
}

/// A text as it is meant, if it can be.
fn unescaped(written: &[u8]) -> Cow<'_, str> {
    if !written.contains(&b'\\') {
        return String::from_utf8_lossy(written);
    }
    let quoted = [b"\"", written, b"\""].concat();
    let text = serde_json::from_slice::<String>(&quoted);
    text.map_or_else(|_| String::from_utf8_lossy(written), Cow::Owned)
}

/// Digits behind the seconds of a time, without zeros at their end.
fn digits_behind_seconds(time: &[u8]) -> usize {
    let Some(point) = time.iter().rposition(|byte| *byte == b'.') else { return 0 };
    let digits = time[point + 1..].iter().take_while(|byte| byte.is_ascii_digit());
    digits.enumerate().filter(|(_, digit)| **digit != b'0').last().map_or(0, |(at, _)| at + 1)
}

/// Whether a number is a whole one that stays what it is: `2.0` and `1e3` are whole numbers that another
/// program has written as floats, which the library reads as floats.
fn is_whole(number: &[u8]) -> bool {
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    if digits.len() <= WHOLE_DIGITS && digits.iter().all(u8::is_ascii_digit) {
        return true;
    }
    let Ok(text) = std::str::from_utf8(number) else { return false };
    if text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok() {
        return true;
    }
    let has_room = text.parse::<f64>().is_ok_and(|number| number.abs() < FLOAT_WHOLE_END);
    has_room && last_power(number).is_none_or(|power| 0 <= power)
}

/// Whether a float of so many bits has no room for a number.
fn is_infinite(number: &[u8], bits: u8) -> bool {
    let digits_max = match bits {
        16 => 4,
        32 => 38,
        _ => 300,
    };
    let whole = number.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'-' | b'+'));
    let has_room = whole.unwrap_or(number.len()) <= digits_max
        && memchr2(b'e', b'E', number).is_none_or(|at| number.get(at + 1) == Some(&b'-'));
    if has_room {
        return false;
    }
    let Ok(text) = std::str::from_utf8(number) else { return false };
    match bits {
        16 => text.parse::<f32>().is_ok_and(|number| FLOAT16_END <= number.abs()),
        32 => text.parse::<f32>().is_ok_and(f32::is_infinite),
        _ => text.parse::<f64>().is_ok_and(f64::is_infinite),
    }
}

fn check_decimal(number: &[u8], scale: i8, label: &str) -> Result<(), String> {
    match last_power(number) {
        Some(power) if power < -i64::from(scale) => {
            Err(refused(&shown(number), label, format_args!("decimals with {scale} digits behind the point")))
        }
        _ => Ok(()),
    }
}

/// The power of ten of the last digit of a number that is no zero; none for zero.
fn last_power(number: &[u8]) -> Option<i64> {
    let (digits, exponent) = match memchr2(b'e', b'E', number) {
        Some(at) => (&number[..at], exponent_of(&number[at + 1..])),
        None => (number, 0),
    };
    let last = |digits: &[u8]| digits.iter().rposition(|digit| matches!(digit, b'1'..=b'9'));
    let (whole, fraction) = match digits.iter().position(|byte| *byte == b'.') {
        Some(point) => (&digits[..point], &digits[point + 1..]),
        None => (digits, &digits[..0]),
    };
    let power = match last(fraction) {
        Some(at) => -(at as i64) - 1,
        None => {
            let at = last(whole)?;
            (whole.len() - 1 - at) as i64
        }
    };
    Some(power.saturating_add(exponent))
}

fn exponent_of(text: &[u8]) -> i64 {
    let exponent = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    exponent.unwrap_or(if text.starts_with(b"-") { i64::MIN } else { i64::MAX })
}

/// So many digits are a whole number of 64 bits, whatever they are.
const WHOLE_DIGITS: usize = 18;
/// Whole floats below this are whole numbers without loss.
const FLOAT_WHOLE_END: f64 = (1_u64 << 53) as f64;
/// Numbers from here on are infinite as floats of 16 bits.
const FLOAT16_END: f32 = 65520.0;
/// Characters of a text in an error.
const TEXT_SHOWN: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(texts: bool) -> Shape {
        let whole = || Shape::Whole { texts };
        let fields = [
            ("a", whole()),
            ("f", Shape::Float { texts, bits: 64 }),
            ("t", Shape::Any),
            ("l", Shape::list_of(whole())),
            ("o", Shape::object_of(vec![("n".to_owned(), whole())])),
        ];
        Shape::object_of(fields.map(|(label, shape)| (label.to_owned(), shape)).into())
    }

    #[test]
    fn values_that_would_become_others_are_refused() {
        let expected = columns(false);
        for lines in [
            "{\"a\":1,\"f\":2.5,\"t\":\"2.5\",\"l\":[1,2],\"o\":{\"n\":3}}\n{\"o\":null,\"a\":2.0}\n",
            "{\"a\":-0.0,\"l\":[null,1e3],\"f\":null}\n\n{\"unknown\":2.5}",
            "{\"a\":9007199254740991.0}\r\n{\"a\":18446744073709551615} {\"a\":1}",
            "{ \"t\" : \"\\\"a\\\":2.5\\\\\" , \"x\" : {\"a\":[2.5,\"}\\\"\"]}, \"l\" : [ ] ,\"o\":{ } }\n{}",
            "{\"b\":[{\"a\":2.5},[2.5]],\"a\":true}",
        ] {
            assert_eq!(expected.check(lines.as_bytes()), Ok(()), "{lines}");
        }
        for (lines, column) in [
            ("{\"a\":1}\n{\"a\":2.5}\n", "a"),
            ("{\"a\":9007199254740993.0}", "a"),
            ("{\"f\":1,\"a\":1e-3}", "a"),
            ("{\"l\":[1,2.5]}", "l"),
            ("{\"t\":\"x\",\"o\":{\"n\":-0.5}}", "n"),
            ("{\"a\":\"7\"}", "a"),
            ("{\"f\":\"nan\"}", "f"),
            ("{\"a\":1} {\"a\":1.5}", "a"),
            ("{\"t\":\"\\\\\",\"\\u0061\":1.5}", "a"),
            ("{\"x\":[\"]\",[]],\"a\":1.5}", "a"),
            ("{\"a\":1,\"a\":1.5}", "a"),
        ] {
            let reason = expected.check(lines.as_bytes()).unwrap_err();
            assert!(reason.contains(&format!("column {column:?}")) && !reason.contains(" line "), "{reason}");
        }
        for lines in ["{\"a\":1\n}", "{\"t\":\"x\n\"}", "{\"a\":1,}", "{\"a\":1 \"f\":1}", "{\"l\":[1 2]}"] {
            assert!(expected.check(lines.as_bytes()).is_err(), "{lines}");
        }
    }

    #[test]
    fn labels_with_quotes_are_no_labels_and_values() {
        let whole = || Shape::Whole { texts: false };
        let fields = [("a\":1,\"b", whole()), ("a", whole()), ("b", Shape::Float { texts: false, bits: 64 })];
        let expected = Shape::object_of(fields.map(|(label, shape)| (label.to_owned(), shape)).into());
        assert_eq!(expected.check(b"{\"a\":1,\"b\":2.5}\n{\"a\\\":1,\\\"b\":3}\n"), Ok(()));
        let reason = expected.check(b"{\"a\\\":1,\\\"b\":3.5}").unwrap_err();
        assert!(reason.starts_with("3.5 in column "), "{reason}");
    }

    #[test]
    fn texts_are_numbers_where_users_say_so() {
        let expected = columns(true);
        assert_eq!(expected.check(b"{\"a\":\"7\",\"f\":\"2.5\"}\n{\"f\":\"-inf\"}\n{\"f\":\"NaN\"}"), Ok(()));
        assert!(expected.check(b"{\"a\":7.5}").is_err());
        assert!(expected.check(b"{\"f\":\"1e400\"}").is_err());
    }

    #[test]
    fn numbers_have_room_in_the_shapes_of_their_columns() {
        let whole = Shape::Whole { texts: true };
        let float = |bits| Shape::Float { texts: true, bits };
        let decimal = |scale| Shape::Decimal { scale };
        let time = |digits| Shape::Time { digits };
        let long = format!("{}.5", "9".repeat(310));
        for (shape, read, refused) in [
            (whole.clone(), "9223372036854775807", "-9223372036854775809"),
            (whole.clone(), "45035996273704970e-1", "4503599627370497.5"),
            (whole.clone(), "0e-9", "1e-400"),
            (whole.clone(), "2.50e1", "2.55e1"),
            (whole.clone(), "18446744073709551615", "18446744073709551616"),
            (float(64), "1.7976931348623157e308", "1E400"),
            (float(64), "-1e-400", "-1e+400"),
            (float(64), "99999999999999999999999999999999999999999.5", long.as_str()),
            (float(32), "3.4e38", "3.5e38"),
            (float(16), "65504", "65520"),
            (decimal(2), "1.2300", "1.239"),
            (decimal(2), "1234e-2", "1234e-3"),
            (decimal(2), "0.000e-7", "1e-99999999999999999999"),
            (decimal(0), "1e99999999999999999999", "1.5"),
            (decimal(-2), "1200", "1210"),
            (decimal(2), "\"2.55\"", "\"2.555\""),
            (time(0), "\"2024-01-01T00:00:00.000Z\"", "\"2024-01-01T00:00:00.5Z\""),
            (time(3), "\"2024-01-01 00:00:00.123\"", "\"2024-01-01 00:00:00.1234\""),
            (time(3), "\"2024-01-01 00:00:00.12\\u0033\"", "\"2024-01-01 00:00:00.123\\u0034\""),
            (time(9), "1.0", "1.5"),
            (Shape::map_of(whole), "{\"x\":1,\"y\":2}", "{\"x\":1,\"y\":2.5}"),
        ] {
            let told = format!("{shape:?}: {read}, {refused}");
            let expected = Shape::object_of(vec![("v".to_owned(), shape)]);
            let check = |value: &str| expected.check(format!("{{\"v\":{value}}}\n").as_bytes());
            assert_eq!(check(read), Ok(()), "{told}");
            let reason = check(refused).expect_err(&told);
            assert!(reason.contains("in column \"v\", which is of "), "{told}: {reason}");
        }
    }
}
