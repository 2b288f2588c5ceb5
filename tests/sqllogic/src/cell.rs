//! Values as the texts that files of SQL logic tests have, by the rules of DataFusion's own runner.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, DurationFormat, FormatOptions};
use sqllogictest::ColumnType;

/// Decimals of a float's text.
const DECIMALS: usize = 12;

/// Kind of a column, a letter in the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// B
    Boolean,
    /// D: dates, and times of a day.
    DateTime,
    /// I
    Integer,
    /// P
    Timestamp,
    /// R: floats and decimals.
    Float,
    /// T
    Text,
    /// Anything else.
    Another,
}

const LETTERS: [(char, Kind); 6] = [
    ('B', Kind::Boolean),
    ('D', Kind::DateTime),
    ('I', Kind::Integer),
    ('P', Kind::Timestamp),
    ('R', Kind::Float),
    ('T', Kind::Text),
];

impl ColumnType for Kind {
    fn from_char(letter: char) -> Option<Kind> {
        let found = LETTERS.iter().find(|(known, _)| *known == letter);
        Some(found.map_or(Kind::Another, |(_, kind)| *kind))
    }

    fn to_char(&self) -> char {
        let found = LETTERS.iter().find(|(_, kind)| kind == self);
        found.map_or('?', |(letter, _)| *letter)
    }
}

impl Kind {
    /// The kind of a column of a type.
    pub fn of(dtype: &DataType) -> Kind {
        match dtype {
            DataType::Boolean => Kind::Boolean,
            dtype if dtype.is_integer() => Kind::Integer,
            dtype if dtype.is_floating() || is_decimal(dtype) => Kind::Float,
            dtype if is_text(dtype) => Kind::Text,
            DataType::Date32 | DataType::Date64 | DataType::Time32(_) | DataType::Time64(_) => Kind::DateTime,
            DataType::Timestamp(..) => Kind::Timestamp,
            DataType::Dictionary(_, values) if is_text(values) => Kind::Text,
            _ => Kind::Another,
        }
    }
}

fn is_text(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_decimal(dtype: &DataType) -> bool {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256};
    matches!(dtype, Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..))
}

/// The rows of a batch as texts. A last value of several lines becomes numbered rows.
pub fn rows(batch: &RecordBatch) -> Result<Vec<Vec<String>>, ArrowError> {
    let mut rows = Vec::new();
    for row in 0..batch.num_rows() {
        let cells = batch.columns().iter().map(|column| cell(column, row));
        push_lines(cells.collect::<Result<Vec<_>, _>>()?, &mut rows);
    }
    Ok(rows)
}

fn push_lines(mut row: Vec<String>, rows: &mut Vec<Vec<String>>) {
    let last = row.pop_if(|last| last.contains('\n'));
    rows.push(row);
    for (line, number) in last.iter().flat_map(|text| text.split('\n')).zip(1..) {
        let text = line.trim_start();
        let indent = "-".repeat(line.len() - text.len());
        rows.push(vec![format!("{number:02}){indent}{text}")]);
    }
}

fn cell(column: &ArrayRef, row: usize) -> Result<String, ArrowError> {
    if column.is_null(row) {
        return Ok("NULL".to_owned());
    }
    Ok(match column.data_type() {
        DataType::Null => "NULL".to_owned(),
        DataType::Float16 => float(f64::from(column.as_primitive::<Float16Type>().value(row)), None),
        DataType::Float32 => {
            let value = column.as_primitive::<Float32Type>().value(row);
            float(f64::from(value), Some(value.to_string()))
        }
        DataType::Float64 => float(column.as_primitive::<Float64Type>().value(row), None),
        DataType::Utf8 => text(column.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => text(column.as_string::<i64>().value(row)),
        DataType::Utf8View => text(column.as_string_view().value(row)),
        DataType::Dictionary(..) => {
            let dictionary = column.as_any_dictionary();
            return cell(dictionary.values(), dictionary.normalized_keys()[row]);
        }
        dtype => {
            let shown = ArrayFormatter::try_new(column, &options())?.value(row).to_string();
            if is_decimal(dtype) { plain(&shown) } else { shown }
        }
    })
}

fn options() -> FormatOptions<'static> {
    FormatOptions::new()
        .with_null("NULL")
        .with_date_format(Some("%Y-%m-%d"))
        .with_datetime_format(Some("%Y-%m-%dT%H:%M:%S%.f"))
        .with_timestamp_format(Some("%Y-%m-%dT%H:%M:%S%.f"))
        .with_time_format(Some("%H:%M:%S%.f"))
        .with_duration_format(DurationFormat::Pretty)
}

fn text(value: &str) -> String {
    if value.is_empty() { "(empty)".to_owned() } else { value.trim_end_matches('\n').replace('\0', "\\0") }
}

/// A float, or its shortest text if that is of fewer digits.
fn float(value: f64, shortest: Option<String>) -> String {
    match value {
        value if value.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        value => plain(&rounded(&shortest.unwrap_or_else(|| value.to_string()))),
    }
}

/// A decimal text with as many decimals at most, the last one rounded half to even.
fn rounded(text: &str) -> String {
    let Some((whole, decimals)) = text.split_once('.') else { return text.to_owned() };
    let Some((kept, cut)) = decimals.split_at_checked(DECIMALS) else { return text.to_owned() };
    let last_is_odd = kept.ends_with(['1', '3', '5', '7', '9']);
    let first_cut = cut.chars().next().unwrap_or('0');
    let is_half = first_cut == '5' && cut[1..].chars().all(|digit| digit == '0');
    let up = if is_half { last_is_odd } else { '5' <= first_cut };
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut digits: Vec<u8> = whole.bytes().chain(kept.bytes()).collect();
    if up {
        carry(&mut digits);
    }
    let digits = String::from_utf8_lossy(&digits).into_owned();
    let (whole, kept) = digits.split_at(digits.len() - DECIMALS);
    format!("{sign}{whole}.{kept}")
}

/// Adds one to a number of decimal digits.
fn carry(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
}

/// A decimal text without zeros at its ends, and without the sign of a zero.
fn plain(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let digits =
        if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    let digits = digits.trim_start_matches('0');
    match digits {
        "" => "0".to_owned(),
        _ if digits.starts_with('.') => format!("{sign}0{digits}"),
        _ => format!("{sign}{digits}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_twelve_decimals_at_most() {
        let texts = [1.0, 0.1 + 0.2, 1.000_000_000_000_6, -0.0, 2.5, f64::NAN, 1e21, 0.999_999_999_999_9];
        let texts = texts.map(|value| float(value, None));
        let expected = ["1", "0.3", "1.000000000001", "0", "2.5", "NaN", "1000000000000000000000", "1"];
        assert_eq!(texts, expected);
        assert_eq!(float(f64::from(0.1_f32), Some("0.1".to_owned())), "0.1");
    }

    #[test]
    fn zeros_at_the_ends_are_left_out() {
        let texts = ["0000", "-0.000", "100", "0.10", "-00.5", "-1000"].map(plain);
        assert_eq!(texts, ["0", "0", "100", "0.1", "-0.5", "-1000"]);
    }

    #[test]
    fn halves_are_rounded_to_even() {
        assert_eq!(rounded("0.0000000000005"), "0.000000000000");
        assert_eq!(rounded("0.0000000000015"), "0.000000000002");
        assert_eq!(rounded("-9.9999999999995"), "-10.000000000000");
    }

    #[test]
    fn lines_of_a_last_value_are_numbered() {
        let mut rows = Vec::new();
        push_lines(vec!["plan".to_owned(), "a\n  b".to_owned()], &mut rows);
        assert_eq!(rows, [vec!["plan"], vec!["01)a"], vec!["02)--b"]]);
    }
}
