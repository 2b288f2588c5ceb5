//! Options of readers of CSV, under pandas' names.

use crate::error::{Error, Result};
use crate::scan::{Bad, Charset, Compression, CsvForm, Encoding, NA_DEFAULT, Numbers, TextForm, TextKind};
use arrow::datatypes::DataType;

/// Options of [`read_csv`](crate::read_csv).
///
/// ```
/// use tharsis_dataframe::{CsvOptions, read_csv};
/// let folder = std::env::temp_dir().join(format!("tharsis-csv-options-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// let path = folder.join("prices.csv");
/// std::fs::write(&path, "made by hand\nday;price\n2024-02-29;3.5\n2024-03-01;none\n")?;
/// let options = CsvOptions::new().sep(b';').skiprows(1).na_values(["none"]).parse_dates(["day"]);
/// let prices = read_csv(&path.to_string_lossy(), options);
/// assert_eq!(prices.col("price").count()?.as_i64(), Some(1));
/// assert_eq!(prices.col("day").dt().month().values::<i64>()?, [Some(2), Some(3)]);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct CsvOptions {
    pub(super) sep: u8,
    pub(super) header: Option<bool>,
    pub(super) names: Option<Vec<String>>,
    pub(super) usecols: Option<Vec<String>>,
    pub(super) dtypes: Vec<(String, DataType)>,
    pub(super) dtype_of_all: Option<DataType>,
    pub(super) parse_dates: Vec<String>,
    pub(super) na_values: Vec<String>,
    pub(super) keep_default_na: bool,
    pub(super) skiprows: usize,
    pub(super) nrows: Option<usize>,
    pub(super) quote: u8,
    pub(super) comment: Option<u8>,
    pub(super) decimal: u8,
    pub(super) thousands: Option<u8>,
    pub(super) in_threes: bool,
    pub(super) encoding: String,
    pub(super) encoding_errors: String,
    pub(super) max_line: usize,
    pub(super) infer_bytes: u64,
}

impl Default for CsvOptions {
    fn default() -> CsvOptions {
        CsvOptions {
            sep: b',',
            header: None,
            names: None,
            usecols: None,
            dtypes: Vec::new(),
            dtype_of_all: None,
            parse_dates: Vec::new(),
            na_values: Vec::new(),
            keep_default_na: true,
            skiprows: 0,
            nrows: None,
            quote: b'"',
            comment: None,
            decimal: b'.',
            thousands: None,
            in_threes: false,
            encoding: "utf-8".to_owned(),
            encoding_errors: "strict".to_owned(),
            max_line: MAX_LINE_DEFAULT,
            infer_bytes: INFER_BYTES_DEFAULT,
        }
    }
}

impl CsvOptions {
    /// The options of a reader that was given none.
    pub fn new() -> CsvOptions {
        CsvOptions::default()
    }

    /// The separator of fields; a comma by default.
    pub fn sep(self, sep: u8) -> CsvOptions {
        CsvOptions { sep, ..self }
    }

    /// Whether the first line has the labels. It has by default, unless names are given. Equal labels get
    /// numbers: `a`, `a.1`. Without a header and names the labels are `0`, `1` and so on.
    pub fn header(self, header: bool) -> CsvOptions {
        CsvOptions { header: Some(header), ..self }
    }

    /// Labels of all columns, in place of those in the file.
    pub fn names<'a>(self, names: impl IntoIterator<Item = &'a str>) -> CsvOptions {
        CsvOptions { names: Some(owned(names)), ..self }
    }

    /// Labels of the columns to read, which stay in their order in the file; all by default.
    pub fn usecols<'a>(self, labels: impl IntoIterator<Item = &'a str>) -> CsvOptions {
        CsvOptions { usecols: Some(owned(labels)), ..self }
    }

    /// The type of a column, which is not found from its values then. A column without any value is one of
    /// floats, and is put below texts by [`DataFrame::concat`](crate::DataFrame::concat) only with a type
    /// of texts.
    pub fn dtype(mut self, label: &str, dtype: DataType) -> CsvOptions {
        self.dtypes.push((label.to_owned(), dtype));
        self
    }

    /// The type of all columns that are given no other one.
    pub fn dtype_of_all(self, dtype: DataType) -> CsvOptions {
        CsvOptions { dtype_of_all: Some(dtype), ..self }
    }

    /// Columns to read as times, by ISO 8601.
    pub fn parse_dates<'a>(self, labels: impl IntoIterator<Item = &'a str>) -> CsvOptions {
        CsvOptions { parse_dates: owned(labels), ..self }
    }

    /// Texts that stand for a missing value, beside those of pandas: nothing, `NA`, `NaN`, `null` and others.
    pub fn na_values<'a>(self, texts: impl IntoIterator<Item = &'a str>) -> CsvOptions {
        CsvOptions { na_values: owned(texts), ..self }
    }

    /// Whether pandas' texts stand for a missing value too; they do by default. Nothing always does.
    pub fn keep_default_na(self, keep: bool) -> CsvOptions {
        CsvOptions { keep_default_na: keep, ..self }
    }

    /// Lines to leave out at the begin of each file. A line break in quotes ends no line.
    pub fn skiprows(self, lines: usize) -> CsvOptions {
        CsvOptions { skiprows: lines, ..self }
    }

    /// Rows to read, at most.
    pub fn nrows(self, rows: usize) -> CsvOptions {
        CsvOptions { nrows: Some(rows), ..self }
    }

    /// The quote around fields that contain separators or line breaks; a double quote by default.
    pub fn quotechar(self, quote: u8) -> CsvOptions {
        CsvOptions { quote, ..self }
    }

    /// The begin of lines that are left out; nothing by default.
    pub fn comment(self, comment: Option<u8>) -> CsvOptions {
        CsvOptions { comment, ..self }
    }

    /// The sign before the decimals of numbers; a point by default.
    ///
    /// ```
    /// use tharsis_dataframe::{CsvOptions, read_csv};
    /// let folder = std::env::temp_dir().join(format!("tharsis-csv-decimal-{}", std::process::id()));
    /// std::fs::create_dir_all(&folder)?;
    /// let path = folder.join("prices.csv");
    /// std::fs::write(&path, "name;price\ncar;12.500,5\npen;1,25\n")?;
    /// let options = CsvOptions::new().sep(b';').decimal(b',').thousands(Some(b'.'));
    /// let prices = read_csv(&path.to_string_lossy(), options);
    /// assert_eq!(prices.col("price").values::<f64>()?, [Some(12_500.5), Some(1.25)]);
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decimal(self, decimal: u8) -> CsvOptions {
        CsvOptions { decimal, ..self }
    }

    /// The sign between groups of digits, which numbers may have before their decimals; nothing by default.
    pub fn thousands(self, thousands: Option<u8>) -> CsvOptions {
        CsvOptions { thousands, ..self }
    }

    /// Has groups of thousands three digits. pandas takes their sign between any digits, also those of days.
    pub(crate) fn in_threes(self) -> CsvOptions {
        CsvOptions { in_threes: true, ..self }
    }

    /// The encoding, by its name in Python: `utf-8` by default, `utf-8-sig`, `utf-16` (its mark says the
    /// order of bytes), `latin-1`, `ascii`, `cp1252` and other code pages. Only files of UTF-8 are cut
    /// between tasks.
    pub fn encoding(self, encoding: &str) -> CsvOptions {
        CsvOptions { encoding: encoding.to_owned(), ..self }
    }

    /// The treatment of bytes that are not in the encoding: `strict` is an error, `replace` writes a sign for
    /// them, `ignore` leaves them out.
    pub fn encoding_errors(self, errors: &str) -> CsvOptions {
        CsvOptions { encoding_errors: errors.to_owned(), ..self }
    }

    /// Bytes of a record, at most; 64 MiB by default. A longer one is an error, not a use of memory.
    pub fn max_line(self, bytes: usize) -> CsvOptions {
        CsvOptions { max_line: bytes.max(1), ..self }
    }

    /// Bytes at the begin of the files from which types are found; 8 MiB by default. A value further on that
    /// does not fit is an error.
    pub fn infer_bytes(self, bytes: u64) -> CsvOptions {
        CsvOptions { infer_bytes: bytes.max(1), ..self }
    }

    /// Whether the first record has labels.
    pub(super) fn has_header(&self) -> bool {
        self.header.unwrap_or(self.names.is_none())
    }

    /// The form of the files, which may have other labels in their headers.
    pub(super) fn form(&self, header: Option<Vec<String>>) -> Result<TextForm> {
        let marks = [Some(self.sep), Some(self.quote), self.comment];
        if marks.iter().flatten().any(|mark| !mark.is_ascii() || matches!(mark, b'\n' | b'\r')) {
            return Err(Error::Value("sep, quotechar and comment: expected an ASCII character".to_owned()));
        }
        if self.sep == self.quote {
            return Err(Error::Value("sep and quotechar are the same character".to_owned()));
        }
        let Self { decimal, thousands, in_threes, .. } = *self;
        let in_threes = in_threes && thousands.is_some();
        let numbers = Numbers { decimal, thousands, in_threes };
        let marks = [Some(numbers.decimal), numbers.thousands];
        if marks.iter().flatten().any(|mark| !matches!(mark, b' ' | b'\'' | b',' | b'.' | b'_')) {
            let text =
                "decimal and thousands: expected a comma, a point, a blank, an apostrophe or an underscore";
            return Err(Error::Value(text.to_owned()));
        }
        if numbers.thousands == Some(numbers.decimal) {
            return Err(Error::Value("decimal and thousands are the same character".to_owned()));
        }
        let Some(charset) = Charset::named(&self.encoding) else {
            let known = "utf-8, utf-16, ascii, latin-1, cp1252 and other code pages of one byte a character";
            return Err(Error::NotImplemented(format!("encoding: {:?}; there are {known}", self.encoding)));
        };
        let bad = match self.encoding_errors.as_str() {
            "strict" => Bad::Error,
            "ignore" => Bad::Ignore,
            "replace" => Bad::Replace,
            other => {
                return Err(Error::Value(format!(
                    "encoding_errors: {other:?}; there are strict, replace, ignore"
                )));
            }
        };
        let encoding = Encoding { charset, bad };
        let default = NA_DEFAULT.iter().filter(|_| self.keep_default_na).map(|text| (*text).to_owned());
        let form = CsvForm {
            sep: self.sep,
            quote: self.quote,
            comment: self.comment,
            skip: self.skiprows,
            header,
            missing: default.chain(self.na_values.iter().cloned()).collect(),
            numbers,
        };
        let (kind, compression) = (TextKind::Csv(form), Compression::ByName);
        Ok(TextForm { kind, encoding, compression, max_line: self.max_line })
    }
}

fn owned<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    texts.into_iter().map(str::to_owned).collect()
}

/// Bytes of a record, at most, if nobody says how many.
pub(super) const MAX_LINE_DEFAULT: usize = 64 << 20;
/// Bytes from which types are found.
pub(super) const INFER_BYTES_DEFAULT: u64 = 8 << 20;
