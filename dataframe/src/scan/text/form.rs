//! The form of texts, as it travels to the tasks.

use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_text_scan::encoding::{Bad, Charset, Encoding};

/// The form of CSV or JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TextForm {
    pub(crate) kind: TextKind,
    pub(crate) encoding: Encoding,
    pub(crate) compression: Compression,
    /// Bytes of a record, at most.
    pub(crate) max_line: usize,
}

/// The compression of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Compression {
    /// The one that the end of its name says.
    ByName,
    Bzip2,
    Gzip,
    Xz,
    Zstd,
}

/// The kind of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TextKind {
    Csv(CsvForm),
    Json(JsonForm),
}

/// The form of JSON: lines of objects, or one array of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JsonForm {
    pub(crate) columns: Columns,
    /// Whether a file that was looked at is an array: its records cannot be found from its middle.
    pub(crate) is_array: bool,
}

/// The origin of the columns of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Columns {
    /// The first lines: others have no other fields, and values of no other kinds.
    Found,
    /// A statement, which names the fields that are wanted.
    Declared,
}

/// The form of CSV.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CsvForm {
    pub(crate) sep: u8,
    pub(crate) quote: u8,
    pub(crate) comment: Option<u8>,
    /// Records before the header, or before the first row.
    pub(crate) skip: usize,
    /// The labels in the first record, if it has them: those of all files are the same.
    pub(crate) header: Option<Vec<String>>,
    /// Texts that stand for a missing value, beside the empty one.
    pub(crate) missing: Vec<String>,
    pub(crate) numbers: Numbers,
}

/// The form of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Numbers {
    /// The sign before decimals.
    pub(crate) decimal: u8,
    /// The sign between groups of digits.
    pub(crate) thousands: Option<u8>,
    /// Whether these groups have three digits; pandas takes the sign between any digits.
    pub(crate) in_threes: bool,
}

impl Numbers {
    pub(crate) const PLAIN: Numbers = Numbers { decimal: b'.', thousands: None, in_threes: false };
}

impl TextForm {
    /// Whether a file may be cut anywhere: where a record begins can be found from the bytes around.
    ///
    /// A comment hides quotes, so a text with comments is read as a whole, and so is an array of JSON, whose
    /// objects may have any brackets around them. Bytes that change their number
    /// on the way would shift the cuts.
    pub(crate) fn can_be_cut(&self) -> bool {
        let plain = self.encoding == Encoding { charset: Charset::Utf8, bad: Bad::Error };
        let kind = match &self.kind {
            TextKind::Csv(form) => form.comment.is_none(),
            TextKind::Json(form) => !form.is_array,
        };
        plain && kind
    }
}

impl fmt::Display for TextForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            TextKind::Csv(form) => write!(f, "csv, separator {:?}", char::from(form.sep)),
            TextKind::Json(_) => f.write_str("json"),
        }
    }
}

/// Texts that pandas takes for a missing value unless it is told otherwise, beside the empty one.
pub(crate) const NA_DEFAULT: [&str; 18] = [
    "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A",
    "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
];
