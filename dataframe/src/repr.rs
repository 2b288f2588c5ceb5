//! Tables as texts and as HTML, as pandas prints them.

use crate::error::Result;
use crate::length_text::{form_of, length_texts};
use crate::table::Table;
use crate::value::Value;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use std::fmt;

/// Tables with more rows are shown by their first and last ones.
const MOST_ROWS: usize = 60;

/// Rows at each end of a table that is too long.
const END_ROWS: usize = 5;

/// Columns of a table as HTML.
const HTML_COLUMNS: usize = 20;

/// Characters in a line.
const WIDTH: usize = 80;

/// Characters of a value, with the blank before it.
const VALUE_WIDTH: usize = 50;

/// Decimals of a float.
const DECIMALS: usize = 6;

/// A column as texts of one width: its header, then its values.
struct Shown {
    header: String,
    values: Vec<String>,
}

impl Shown {
    fn width(&self) -> usize {
        self.values.iter().chain([&self.header]).map(|text| length(text)).max().unwrap_or(0)
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

impl Table {
    /// The rows that are shown: all, or the first and the last ones.
    fn shown_rows(&self) -> Vec<usize> {
        if self.len() > MOST_ROWS {
            (0..END_ROWS).chain(self.len() - END_ROWS..self.len()).collect()
        } else {
            (0..self.len()).collect()
        }
    }

    /// The columns of the index as texts, with repeated outer labels left out.
    fn shown_index(&self) -> Result<Vec<Shown>> {
        let rows = self.shown_rows();
        if self.index_names().is_empty() {
            let values = rows.iter().map(ToString::to_string).collect();
            return Ok(vec![Shown { header: String::new(), values }]);
        }
        let mut levels = Vec::new();
        for (array, name) in self.index_arrays().iter().zip(self.index_names()) {
            let values = texts(array, &rows)?.into_iter().map(|text| text.trim().to_owned()).collect();
            levels.push(Shown { header: name.clone().unwrap_or_default(), values });
        }
        for row in (1..rows.len()).rev() {
            let outer = levels.len() - 1;
            for level in &mut levels[..outer] {
                if level.values[row] != level.values[row - 1] {
                    break;
                }
                level.values[row].clear();
            }
        }
        Ok(levels)
    }

    fn shown_columns(&self) -> Result<Vec<Shown>> {
        let rows = self.shown_rows();
        let schema = self.batch().schema();
        let from = self.index_names().len();
        let columns = schema.fields().iter().zip(self.batch().columns()).skip(from);
        let columns = columns.map(|(field, array)| {
            let dtype = array.data_type();
            let space = if dtype.is_numeric() || *dtype == DataType::Boolean { " " } else { "" };
            Ok(Shown { header: format!("{space}{}", field.name()), values: texts(array, &rows)? })
        });
        columns.collect()
    }

    /// The lines of the table, without what is said of its size, and whether columns were left out.
    fn lines(&self) -> Result<(Vec<String>, bool)> {
        let (index, columns) = (self.shown_index()?, self.shown_columns()?);
        let (columns, left_out) = fitted(&index, columns);
        let names = index.iter().any(|level| !level.header.is_empty());
        let cut = (self.len() > MOST_ROWS).then_some(END_ROWS);
        let mut lines: Vec<String> = Vec::new();
        let rows = self.shown_rows().len();
        let mut line = |label: &dyn Fn(&Shown) -> String, text: &dyn Fn(&Shown) -> String| {
            let fill = |text: &str, width: usize| " ".repeat(width.saturating_sub(length(text)));
            let labels = index.iter().map(|level| {
                let label = label(level);
                format!("{label}{}", fill(&label, level.width()))
            });
            let texts = columns.iter().map(|column| {
                let text = text(column);
                format!("{}{text}", fill(&text, column.width()))
            });
            lines.push(labels.chain(texts).collect::<Vec<_>>().join(" "));
        };
        line(&|_| String::new(), &|column| column.header.clone());
        if names {
            line(&|level| level.header.clone(), &|_| String::new());
        }
        for row in 0..rows {
            if cut == Some(row) {
                line(&|level| dots(level), &dots);
            }
            line(&|level| level.values[row].clone(), &|column| column.values[row].clone());
        }
        Ok((lines, left_out))
    }

    /// The table as HTML, as pandas shows it in a notebook. Long tables are cut to their first and last rows,
    /// wide ones to their first and last columns.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let table = DataFrame::from_columns([("n", vec![1].into())]).collect()?;
    /// assert!(table.to_html()?.contains("<th>0</th>\n      <td>1</td>"));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// Values of a type that has no text.
    pub fn to_html(&self) -> Result<String> {
        let (index, mut columns) = (self.shown_index()?, self.shown_columns()?);
        let all_columns = columns.len();
        if HTML_COLUMNS < all_columns {
            let values = vec!["...".to_owned(); self.shown_rows().len()];
            let dots = Shown { header: "...".to_owned(), values };
            columns.splice(HTML_COLUMNS / 2..all_columns - HTML_COLUMNS / 2, [dots]);
        }
        let mut html = String::from("<table border=\"1\" class=\"dataframe\">\n  <thead>\n");
        let row = |html: &mut String, style: &str, cells: &[(&str, String)]| {
            html.push_str(&format!("    <tr{style}>\n"));
            for (tag, text) in cells {
                html.push_str(&format!("      <{tag}>{}</{tag}>\n", escaped(text.trim())));
            }
            html.push_str("    </tr>\n");
        };
        let heads = columns.iter().map(|column| ("th", column.header.clone()));
        let blanks = |count: usize| (0..count).map(|_| ("th", String::new()));
        let style = " style=\"text-align: right;\"";
        row(&mut html, style, &blanks(index.len()).chain(heads).collect::<Vec<_>>());
        if index.iter().any(|level| !level.header.is_empty()) {
            let names = index.iter().map(|level| ("th", level.header.clone()));
            row(&mut html, "", &names.chain(blanks(columns.len())).collect::<Vec<_>>());
        }
        html.push_str("  </thead>\n  <tbody>\n");
        for at in 0..self.shown_rows().len() {
            if self.len() > MOST_ROWS && at == END_ROWS {
                let dots = index.iter().map(|_| ("th", "...".to_owned()));
                let dots = dots.chain(columns.iter().map(|_| ("td", "...".to_owned())));
                row(&mut html, "", &dots.collect::<Vec<_>>());
            }
            let labels = index.iter().map(|level| ("th", level.values[at].clone()));
            let values = columns.iter().map(|column| ("td", column.values[at].clone()));
            row(&mut html, "", &labels.chain(values).collect::<Vec<_>>());
        }
        html.push_str("  </tbody>\n</table>");
        if self.len() > MOST_ROWS || HTML_COLUMNS < all_columns {
            html.push_str(&format!("\n<p>{} rows × {all_columns} columns</p>", self.len()));
        }
        Ok(html)
    }
}

/// The sign for rows that are left out.
fn dots(column: &Shown) -> String {
    if column.width() > 3 { "...".to_owned() } else { "..".to_owned() }
}

/// The columns that fit into a line: as many of the first as of the last ones.
fn fitted(index: &[Shown], columns: Vec<Shown>) -> (Vec<Shown>, bool) {
    let widths: Vec<usize> = columns.iter().map(|column| column.width() + 1).collect();
    let labels: usize = index.iter().map(|level| level.width() + 1).sum::<usize>().saturating_sub(1);
    if labels + widths.iter().sum::<usize>() <= WIDTH {
        return (columns, false);
    }
    let kept = |half: usize| -> usize {
        widths.iter().take(half).chain(widths.iter().rev().take(half)).sum::<usize>() + labels + 5
    };
    let half = (1..=columns.len() / 2).rev().find(|half| kept(*half) <= WIDTH).unwrap_or(1);
    if columns.len() <= 2 * half {
        return (columns, false);
    }
    let last = columns.len() - half;
    let rows = columns.first().map_or(0, |column| column.values.len());
    let mut fitted: Vec<Shown> = Vec::new();
    for (at, column) in columns.into_iter().enumerate() {
        if at == half {
            fitted.push(Shown { header: " ...".to_owned(), values: vec![" ...".to_owned(); rows] });
        }
        if at < half || at >= last {
            fitted.push(column);
        }
    }
    (fitted, true)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Some values of an array as texts.
fn texts(array: &ArrayRef, rows: &[usize]) -> Result<Vec<String>> {
    let rows = arrow::array::UInt64Array::from_iter_values(rows.iter().map(|row| *row as u64));
    let array = arrow::compute::take(array, &rows, None)?;
    match array.data_type() {
        dtype if dtype.is_floating() => Ok(floats(&cast(&array, &DataType::Float64)?)),
        DataType::Boolean => {
            let values = array.as_boolean().iter();
            Ok(values
                .map(|value| value.map_or("NaN", |value| if value { " True" } else { " False" }).to_owned())
                .collect())
        }
        DataType::Timestamp(..) => times(&array),
        DataType::Duration(_) => {
            let texts = length_texts(&array, form_of(&array)?)?;
            Ok(texts.into_iter().map(|text| text.unwrap_or_else(|| "NaT".to_owned())).collect())
        }
        dtype => {
            let space = if dtype.is_temporal() { "" } else { " " };
            let sign = dtype.is_integer();
            let missing = if dtype.is_temporal() { "NaT" } else { "NaN" };
            let options = FormatOptions::default();
            let formatter = ArrayFormatter::try_new(&array, &options)?;
            let text = |row: usize| {
                if array.is_null(row) {
                    missing.to_owned()
                } else {
                    let text = formatter.value(row).to_string();
                    let space = if sign && text.starts_with('-') { "" } else { space };
                    shortened(&format!("{space}{text}"))
                }
            };
            Ok((0..array.len()).map(text).collect())
        }
    }
}

/// A text of one line that is not too long.
fn shortened(text: &str) -> String {
    let text = text.replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r");
    if length(&text) > VALUE_WIDTH {
        text.chars().take(VALUE_WIDTH - 3).chain("...".chars()).collect()
    } else {
        text
    }
}

/// Times without what is midnight in all of them.
fn times(array: &ArrayRef) -> Result<Vec<String>> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array, &options)?;
    let text = |row: usize| {
        if array.is_null(row) {
            "NaT".to_owned()
        } else {
            formatter.value(row).to_string().replacen('T', " ", 1)
        }
    };
    let texts: Vec<String> = (0..array.len()).map(text).collect();
    const MIDNIGHT: &str = " 00:00:00";
    if texts.iter().all(|text| text == "NaT" || text.ends_with(MIDNIGHT)) {
        Ok(texts.iter().map(|text| text.trim_end_matches(MIDNIGHT).to_owned()).collect())
    } else {
        Ok(texts)
    }
}

/// One time as a text.
pub(crate) fn time_text(value: &Value) -> Result<String> {
    let array = value.0.to_array()?;
    Ok(texts(&array, &[0])?.concat())
}

/// Floats with as many decimals as one of them needs, or with exponents.
fn floats(array: &ArrayRef) -> Vec<String> {
    let values: Vec<Option<f64>> = array.as_primitive::<Float64Type>().iter().collect();
    let signed = |value: f64, text: String| {
        if value.is_sign_negative() { text } else { format!(" {text}") }
    };
    let each = |show: &dyn Fn(f64) -> String| -> Vec<String> {
        let text = |value: &Option<f64>| match value {
            None => "NaN".to_owned(),
            Some(value) if value.is_infinite() => {
                signed(*value, if *value > 0.0 { "inf" } else { "-inf" }.to_owned())
            }
            Some(value) => signed(*value, show(*value)),
        };
        values.iter().map(text).collect()
    };
    let fixed = without_zeros(each(&|value| format!("{value:.DECIMALS$}")));
    let finite = || values.iter().flatten().map(|value| value.abs()).filter(|value| value.is_finite());
    let long = fixed.iter().any(|text| length(text) > DECIMALS + 6);
    let small = finite().any(|value| value > 0.0 && value < 1e-6);
    let large = values.iter().flatten().any(|value| value.abs() > 1e6);
    if small || (long && large) { each(&exponential) } else { fixed }
}

/// The float with two digits of its exponent at least.
fn exponential(value: f64) -> String {
    let text = format!("{value:.DECIMALS$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// The numbers without the zeros that all of them end with, but with one decimal.
fn without_zeros(mut texts: Vec<String>) -> Vec<String> {
    let is_number = |text: &String| text.contains('.');
    while texts.iter().any(is_number)
        && texts
            .iter()
            .filter(|text| is_number(text))
            .all(|text| text.ends_with('0') && !text.ends_with(".0"))
    {
        texts.iter_mut().filter(|text| is_number(text)).for_each(|text| {
            text.pop();
        });
    }
    texts
}

/// The rows as pandas prints them: an index at the left, the first and last rows of a long table, the first
/// and last columns of a wide one.
///
/// ```
/// use tharsis_dataframe::DataFrame;
/// let table = DataFrame::from_columns([("n", vec![Some(1.5), None].into())]).collect()?;
/// assert_eq!(table.to_string(), "     n\n0  1.5\n1  NaN");
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns();
        if self.is_empty() || columns.is_empty() {
            let index = if self.is_empty() { String::new() } else { format!("{} labels", self.len()) };
            return write!(f, "Empty DataFrame\nColumns: [{}]\nIndex: [{index}]", columns.join(", "));
        }
        let (lines, left_out) = self.lines().map_err(|_| fmt::Error)?;
        f.write_str(&lines.join("\n"))?;
        if left_out || self.len() > MOST_ROWS {
            write!(f, "\n\n[{} rows x {} columns]", self.len(), columns.len())?;
        }
        Ok(())
    }
}
