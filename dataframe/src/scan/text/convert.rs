//! Texts as values of a type, as pandas reads them.

use super::form::{CsvForm, Numbers};
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, BooleanBufferBuilder, PrimitiveArray,
    StringArray,
};
use arrow::compute::kernels::cast_utils::Parser;
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// The meaning of texts of a form.
#[derive(Clone, Debug)]
pub(super) struct Meaning {
    pub(super) missing: Missing,
    numbers: Numbers,
}

impl Meaning {
    pub(super) fn of(form: &CsvForm) -> Meaning {
        Meaning { missing: Missing::new(&form.missing), numbers: form.numbers }
    }

    /// Whether numbers have to be read as texts first.
    pub(super) fn of_texts(&self) -> bool {
        self.numbers != Numbers::PLAIN || self.missing.has_number()
    }

    /// A number as programs write it, without signs between groups of digits and with a point; `None` for a
    /// text that is no number.
    fn number<'a>(&self, text: &'a str) -> Option<Cow<'a, str>> {
        let Numbers { decimal, thousands, in_threes } = self.numbers;
        if self.numbers == Numbers::PLAIN {
            return Some(Cow::Borrowed(text));
        }
        if in_threes && thousands.is_some_and(|sign| !has_groups_of_three(text, decimal, sign)) {
            return None;
        }
        let mut plain = String::with_capacity(text.len());
        // Signs come between digits, before the decimals; twice in a row in whole numbers only.
        let (mut is_whole, mut was_twice, mut last) = (true, false, 0_u8);
        for byte in text.bytes() {
            match byte {
                _ if Some(byte) == thousands && is_whole => {
                    if !last.is_ascii_digit() && last != byte {
                        return None;
                    }
                    was_twice |= last == byte;
                }
                _ if byte == decimal && is_whole => {
                    is_whole = false;
                    plain.push('.');
                }
                b'.' => return None,
                _ => {
                    is_whole &= byte.is_ascii_digit() || matches!(byte, b'+' | b'-');
                    plain.push(char::from(byte));
                }
            }
            last = byte;
        }
        (text.is_ascii() && (is_whole || !was_twice)).then_some(Cow::Owned(plain))
    }
}

/// Whether three digits stand behind each sign of a number, and one to three before the first: a day such as
/// `31.12.2023` is no number of millions.
fn has_groups_of_three(text: &str, decimal: u8, sign: u8) -> bool {
    let whole = text.trim().trim_start_matches(['+', '-']);
    let whole = whole.split(char::from(decimal)).next().unwrap_or_default();
    match whole.split_once(char::from(sign)) {
        Some((first, rest)) => {
            (1..=3).contains(&first.len()) && rest.split(char::from(sign)).all(|group| group.len() == 3)
        }
        None => true,
    }
}

/// Texts that stand for a missing value.
#[derive(Clone, Debug, Default)]
pub(super) struct Missing {
    texts: HashSet<String>,
    longest: usize,
    /// The first bytes of the texts: most values begin otherwise, and are not hashed.
    begins: Vec<u8>,
}

impl Missing {
    pub(super) fn new(texts: &[String]) -> Missing {
        Missing {
            texts: texts.iter().cloned().collect(),
            longest: texts.iter().map(String::len).max().unwrap_or(0),
            begins: texts.iter().filter_map(|text| text.bytes().next()).collect(),
        }
    }

    pub(super) fn has(&self, text: &str) -> bool {
        let Some(first) = text.as_bytes().first() else { return true };
        text.len() <= self.longest && self.begins.contains(first) && self.texts.contains(text)
    }

    /// Whether one of them is a number, so that numbers have to be read as texts first.
    pub(super) fn has_number(&self) -> bool {
        self.texts.iter().any(|text| float(text).is_some_and(|number| !number.is_nan()))
    }

    /// The texts, missing where they stand for that.
    pub(super) fn without(&self, texts: &ArrayRef) -> ArrayRef {
        match texts.data_type() {
            DataType::Utf8 => self.without_in(texts, |row| texts.as_string::<i32>().value(row)),
            DataType::LargeUtf8 => self.without_in(texts, |row| texts.as_string::<i64>().value(row)),
            DataType::Utf8View => self.without_in(texts, |row| texts.as_string_view().value(row)),
            _ => Arc::clone(texts),
        }
    }

    fn without_in<'a>(&self, texts: &'a ArrayRef, text: impl Fn(usize) -> &'a str) -> ArrayRef {
        if self.texts.is_empty() {
            return Arc::clone(texts);
        }
        let is_missing = |row: usize| texts.is_valid(row) && self.has(text(row));
        let Some(first) = (0..texts.len()).find(|&row| is_missing(row)) else { return Arc::clone(texts) };
        let mut valid = BooleanBufferBuilder::new(texts.len());
        (0..texts.len())
            .for_each(|row| valid.append(texts.is_valid(row) && (row < first || !is_missing(row))));
        let nulls = arrow::buffer::NullBuffer::new(valid.finish());
        match texts.to_data().into_builder().nulls(Some(nulls)).build() {
            Ok(data) => arrow::array::make_array(data),
            Err(_) => Arc::clone(texts),
        }
    }
}

/// A text that cannot be a value of a type.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) row: usize,
    pub(super) text: String,
}

/// Texts as values. The flag says whether the fast reader would have failed on one of them.
pub(super) fn convert(
    texts: &StringArray,
    to: &DataType,
    meaning: &Meaning,
) -> Result<(ArrayRef, bool), Unreadable> {
    match to {
        DataType::Boolean => booleans(texts, &meaning.missing),
        DataType::Float32 => floats::<Float32Type>(texts, meaning, |number| number as f32),
        DataType::Float64 => floats::<Float64Type>(texts, meaning, |number| number),
        DataType::Int8 => integers::<Int8Type>(texts, meaning),
        DataType::Int16 => integers::<Int16Type>(texts, meaning),
        DataType::Int32 => integers::<Int32Type>(texts, meaning),
        DataType::Int64 => integers::<Int64Type>(texts, meaning),
        DataType::UInt8 => integers::<UInt8Type>(texts, meaning),
        DataType::UInt16 => integers::<UInt16Type>(texts, meaning),
        DataType::UInt32 => integers::<UInt32Type>(texts, meaning),
        DataType::UInt64 => integers::<UInt64Type>(texts, meaning),
        other => others(texts, other, &meaning.missing),
    }
}

fn integers<T: ArrowPrimitiveType + Parser>(
    texts: &StringArray,
    meaning: &Meaning,
) -> Result<(ArrayRef, bool), Unreadable> {
    primitives::<T>(texts, meaning, T::parse)
}

fn floats<T: ArrowPrimitiveType>(
    texts: &StringArray,
    meaning: &Meaning,
    fit: impl Fn(f64) -> T::Native,
) -> Result<(ArrayRef, bool), Unreadable> {
    primitives::<T>(texts, meaning, |text| float(text).map(&fit))
}

fn primitives<T: ArrowPrimitiveType>(
    texts: &StringArray,
    meaning: &Meaning,
    parse: impl Fn(&str) -> Option<T::Native>,
) -> Result<(ArrayRef, bool), Unreadable> {
    let mut special = false;
    let mut value = |row: usize| {
        let text = texts.value(row);
        let trimmed = text.trim();
        if texts.is_null(row) || meaning.missing.has(trimmed) {
            special |= !text.is_empty();
            return Ok(None);
        }
        special |= trimmed.len() < text.len();
        let number = meaning.number(trimmed).and_then(|number| parse(&number));
        number.map(Some).ok_or_else(|| Unreadable { row, text: text.to_owned() })
    };
    let values = (0..texts.len()).map(&mut value).collect::<Result<Vec<_>, _>>()?;
    Ok((Arc::new(values.into_iter().collect::<PrimitiveArray<T>>()), special))
}

fn booleans(texts: &StringArray, missing: &Missing) -> Result<(ArrayRef, bool), Unreadable> {
    let mut special = false;
    let mut value = |row: usize| {
        let text = texts.value(row);
        if texts.is_null(row) || missing.has(text) {
            special |= !text.is_empty();
            return Ok(None);
        }
        boolean(text).map(Some).ok_or_else(|| Unreadable { row, text: text.to_owned() })
    };
    let values = (0..texts.len()).map(&mut value).collect::<Result<Vec<_>, _>>()?;
    Ok((Arc::new(BooleanArray::from(values)), special))
}

fn others(texts: &StringArray, to: &DataType, missing: &Missing) -> Result<(ArrayRef, bool), Unreadable> {
    let plain: ArrayRef = Arc::new(texts.clone());
    let known = missing.without(&plain);
    let special = known.null_count() != plain.null_count();
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    match cast_with_options(&known, to, &strict) {
        Ok(values) => Ok((values, special)),
        Err(error) => {
            let lenient = cast(&known, to).ok();
            let lost = |row: &usize| lenient.as_ref().is_none_or(|values| values.is_null(*row));
            let row = (0..known.len()).find(|row| known.is_valid(*row) && lost(row)).unwrap_or(0);
            let text = if texts.is_empty() { error.to_string() } else { texts.value(row).to_owned() };
            Err(Unreadable { row, text })
        }
    }
}

/// A truth value as pandas reads it.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "True" | "TRUE" | "true" => Some(true),
        "False" | "FALSE" | "false" => Some(false),
        _ => None,
    }
}

/// A number as pandas reads it; one that is too large is infinite.
pub(super) fn float(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let is_name = ["inf", "infinity", "nan"].iter().any(|name| digits.eq_ignore_ascii_case(name));
    if is_number || is_name { text.parse().ok() } else { None }
}

/// Whether a text is digits only, perhaps with a sign.
fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The types that some texts of a column could have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Classes {
    boolean: bool,
    integer: bool,
    /// A whole number that only fits without a sign.
    large: bool,
    /// A whole number that fits into no type of integers.
    huge: bool,
    negative: bool,
    float: bool,
    text: bool,
}

impl Classes {
    /// Takes a text into account; one that stands for a missing value says nothing.
    pub(super) fn add(&mut self, text: &str, meaning: &Meaning) {
        let trimmed = text.trim();
        if meaning.missing.has(text) || meaning.missing.has(trimmed) {
            return;
        }
        if boolean(text).is_some() {
            self.boolean = true;
            return;
        }
        let Some(trimmed) = meaning.number(trimmed) else {
            self.text = true;
            return;
        };
        if let Ok(number) = trimmed.parse::<i64>() {
            self.integer = true;
            self.negative |= number < 0;
        } else if trimmed.parse::<u64>().is_ok() {
            self.large = true;
        } else if is_whole(&trimmed) {
            self.huge = true;
        } else if float(&trimmed).is_some() {
            self.float = true;
        } else {
            self.text = true;
        }
    }

    /// Takes the texts of another part of the column into account.
    pub(crate) fn join(&mut self, other: Classes) {
        self.boolean |= other.boolean;
        self.integer |= other.integer;
        self.large |= other.large;
        self.huge |= other.huge;
        self.negative |= other.negative;
        self.float |= other.float;
        self.text |= other.text;
    }

    /// The type that pandas would find; `None` if all values are missing.
    pub(crate) fn dtype(self) -> Option<DataType> {
        let number = self.integer || self.large || self.huge || self.float;
        match self {
            Classes { text: true, .. } => Some(DataType::Utf8),
            Classes { boolean: true, .. } if number => Some(DataType::Utf8),
            Classes { boolean: true, .. } => Some(DataType::Boolean),
            Classes { float: true, .. } => Some(DataType::Float64),
            // As floats, numbers that differ would be equal.
            Classes { huge: true, .. } | Classes { large: true, negative: true, .. } => Some(DataType::Utf8),
            Classes { large: true, .. } => Some(DataType::UInt64),
            Classes { integer: true, .. } => Some(DataType::Int64),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dtype(texts: &[&str]) -> Option<DataType> {
        dtype_of(texts, Numbers::PLAIN)
    }

    fn meaning(numbers: Numbers) -> Meaning {
        Meaning { missing: Missing::new(&["NA".to_owned()]), numbers }
    }

    fn dtype_of(texts: &[&str], numbers: Numbers) -> Option<DataType> {
        let mut classes = Classes::default();
        texts.iter().for_each(|text| classes.add(text, &meaning(numbers)));
        classes.dtype()
    }

    #[test]
    fn numbers_have_the_signs_of_a_form() {
        let german = Numbers { decimal: b',', thousands: Some(b'.'), in_threes: false };
        assert_eq!(dtype_of(&["1.234", "-12"], german), Some(DataType::Int64));
        assert_eq!(dtype_of(&["1.234,5", "1e3", "inf"], german), Some(DataType::Float64));
        assert_eq!(dtype_of(&["1..2,5"], german), Some(DataType::Utf8));
        assert_eq!(dtype_of(&[".5"], german), Some(DataType::Utf8));
        let decimal = Numbers { decimal: b',', thousands: None, in_threes: false };
        assert_eq!(dtype_of(&["1,5", ",5"], decimal), Some(DataType::Float64));
        assert_eq!(dtype_of(&["1.5"], decimal), Some(DataType::Utf8));
        let thousands = Numbers { decimal: b'.', thousands: Some(b','), in_threes: false };
        assert_eq!(dtype_of(&["1,234", "1,,2", "3,"], thousands), Some(DataType::Int64));
        assert_eq!(dtype_of(&["1,234.5"], thousands), Some(DataType::Float64));
        assert_eq!(dtype_of(&["1.5,0"], thousands), Some(DataType::Utf8));
        let threes = Numbers { in_threes: true, ..german };
        for number in ["1.234", "-12", "12.345.678", "1234", ""] {
            assert_eq!(dtype_of(&["1", number], threes), Some(DataType::Int64), "{number}");
        }
        assert_eq!(dtype_of(&["-1.234,5", "0,1234", "1e3"], threes), Some(DataType::Float64));
        for text in ["31.12.2023", "1.1.2024", "1.23", "1.2345", "1234.567", "192.168.1.10", ".123"] {
            assert_eq!(dtype_of(&["1", text], threes), Some(DataType::Utf8), "{text}");
        }
        assert_eq!(dtype_of(&["31.12.2023"], german), Some(DataType::Int64));
        let read = |text: &str, to, numbers| {
            let texts = StringArray::from(vec![text]);
            let (values, _) = convert(&texts, &to, &meaning(numbers)).unwrap();
            arrow::util::display::array_value_to_string(&values, 0).unwrap()
        };
        assert_eq!(read(" -1.234,5", DataType::Float64, german), "-1234.5");
        assert_eq!(read("1,234", DataType::Int16, thousands), "1234");
        assert_eq!(read("18.446.744.073.709.551.615", DataType::UInt64, german), "18446744073709551615");
    }

    #[test]
    fn the_type_of_texts_is_that_of_pandas() {
        assert_eq!(dtype(&["1", "", "-2", "+3", "007", "NA", " 4 "]), Some(DataType::Int64));
        assert_eq!(dtype(&["1", "2.5"]), Some(DataType::Float64));
        assert_eq!(dtype(&["1e400", "inf", ".5", "5."]), Some(DataType::Float64));
        assert_eq!(dtype(&["18446744073709551615", "1"]), Some(DataType::UInt64));
        assert_eq!(dtype(&["18446744073709551615", "-1"]), Some(DataType::Utf8));
        assert_eq!(dtype(&["12345678901234567890123", "1"]), Some(DataType::Utf8));
        assert_eq!(dtype(&["-12345678901234567890123"]), Some(DataType::Utf8));
        assert_eq!(dtype(&["12345678901234567890123", "1.5"]), Some(DataType::Float64));
        assert_eq!(dtype(&["True", "false", ""]), Some(DataType::Boolean));
        assert_eq!(dtype(&["True", "1"]), Some(DataType::Utf8));
        assert_eq!(dtype(&["2024-01-01"]), Some(DataType::Utf8));
        assert_eq!(dtype(&["1_000", "1"]), Some(DataType::Utf8));
        assert_eq!(dtype(&["", "NA"]), None);
    }

    #[test]
    fn a_text_that_is_no_value_is_told_with_its_row() {
        let texts = StringArray::from(vec![Some(" 1"), Some("NA"), None, Some("x")]);
        let missing = meaning(Numbers::PLAIN);
        let error = convert(&texts, &DataType::Int64, &missing).unwrap_err();
        assert_eq!(error, Unreadable { row: 3, text: "x".to_owned() });
        let error = convert(&texts, &DataType::Date32, &missing).unwrap_err();
        assert_eq!(error.text, " 1");
        let (values, special) = convert(&texts.slice(0, 3), &DataType::Int64, &missing).unwrap();
        assert_eq!(values.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(1), None, None]);
        assert!(special);
    }
}
