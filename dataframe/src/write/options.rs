//! Options of writers, and the description of the files that tasks write.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The compression of a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Compression {
    /// Gzip, for Parquet, CSV and JSON.
    Gzip,
    /// LZ4, for Parquet and Arrow.
    Lz4,
    /// The values as they are.
    None,
    /// Snappy, for Parquet.
    Snappy,
    /// Zstandard, for all formats.
    Zstd,
}

/// Options of [`DataFrame::to_parquet_with`](crate::DataFrame::to_parquet_with) and the other writers of
/// files. An option that a format does not have is an error.
///
/// ```
/// use tharsis_dataframe::{Compression, DataFrame, WriteOptions, read_parquet};
/// let folder = std::env::temp_dir().join(format!("tharsis-write-{}", std::process::id()));
/// let path = format!("{}/", folder.display());
/// let sales = DataFrame::from_columns([
///     ("year", vec![2024, 2025, 2025].into()),
///     ("sold", vec![3, 5, 4].into()),
/// ]);
/// let options = WriteOptions::new().partition_cols(["year"]).compression(Compression::Snappy);
/// sales.to_parquet_with(&path, options)?;
/// let read = read_parquet(&path);
/// assert_eq!(read.columns()?, ["sold", "year"]);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    pub(crate) compression: Option<Compression>,
    pub(super) row_group_rows: Option<usize>,
    pub(crate) partition_cols: Vec<String>,
    pub(crate) index: Option<bool>,
    pub(super) text: TextForm,
}

/// The form of CSV.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TextForm {
    pub(super) sep: u8,
    pub(super) header: bool,
    pub(super) na_rep: String,
    pub(super) quote: u8,
}

impl Default for TextForm {
    fn default() -> TextForm {
        TextForm { sep: b',', header: true, na_rep: String::new(), quote: b'"' }
    }
}

impl WriteOptions {
    /// The options of a writer that was given none.
    pub fn new() -> WriteOptions {
        WriteOptions::default()
    }

    /// The compression; Zstandard for Parquet by default, none for Arrow. Texts follow the path: `.gz` and
    /// `.zst` are compressed.
    pub fn compression(mut self, compression: Compression) -> WriteOptions {
        self.compression = Some(compression);
        self
    }

    /// Rows of a row group of Parquet, or of a batch of Arrow, at most; 2^20 by default.
    pub fn row_group_size(mut self, rows: usize) -> WriteOptions {
        self.row_group_rows = Some(rows.max(1));
        self
    }

    /// Columns whose values become folders, `year=2025/month=1`, for Parquet and CSV. The path must end
    /// with `/`.
    pub fn partition_cols<'a>(mut self, labels: impl IntoIterator<Item = &'a str>) -> WriteOptions {
        self.partition_cols = labels.into_iter().map(str::to_owned).collect();
        self
    }

    /// Whether the index is written as columns; by default it is if all its levels have names.
    pub fn index(mut self, index: bool) -> WriteOptions {
        self.index = Some(index);
        self
    }

    /// The separator of fields of CSV; a comma by default.
    pub fn sep(mut self, sep: u8) -> WriteOptions {
        self.text.sep = sep;
        self
    }

    /// Whether CSV begins with a line of labels; it does by default.
    pub fn header(mut self, header: bool) -> WriteOptions {
        self.text.header = header;
        self
    }

    /// The text of a missing value in CSV; nothing by default.
    pub fn na_rep(mut self, na_rep: &str) -> WriteOptions {
        self.text.na_rep = na_rep.to_owned();
        self
    }

    /// The quote around fields of CSV that need one; a double quote by default.
    pub fn quotechar(mut self, quote: u8) -> WriteOptions {
        self.text.quote = quote;
        self
    }
}

/// The format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileFormat {
    /// Arrow's IPC.
    Arrow,
    /// Lines of fields.
    Csv,
    /// Lines of objects.
    Json,
    /// Parquet.
    Parquet,
}

impl FileFormat {
    fn name(self) -> &'static str {
        match self {
            FileFormat::Arrow => "arrow",
            FileFormat::Csv => "csv",
            FileFormat::Json => "json",
            FileFormat::Parquet => "parquet",
        }
    }

    /// Whether files of the format are texts, which may follow each other.
    pub(super) fn is_text(self) -> bool {
        matches!(self, FileFormat::Csv | FileFormat::Json)
    }

    /// The compression for a path, of those that the format has. A reader goes by the ending of the path, so
    /// a text is not written otherwise unless that is asked for.
    pub(crate) fn compression(self, asked: Option<Compression>, path: &str) -> Result<Compression> {
        let found = match (asked, self) {
            (Some(asked), _) => asked,
            (None, FileFormat::Arrow) => Compression::None,
            (None, FileFormat::Csv | FileFormat::Json) => self.compression_of(path)?,
            (None, FileFormat::Parquet) => Compression::Zstd,
        };
        let known = match self {
            FileFormat::Arrow => &[Compression::Lz4, Compression::None, Compression::Zstd][..],
            FileFormat::Csv | FileFormat::Json => {
                &[Compression::Gzip, Compression::None, Compression::Zstd][..]
            }
            FileFormat::Parquet => return Ok(found),
        };
        if known.contains(&found) {
            Ok(found)
        } else {
            Err(Error::Value(format!("{} has no compression {found:?}; there are {known:?}", self.name())))
        }
    }

    /// The compression that the ending of a text's path says.
    fn compression_of(self, path: &str) -> Result<Compression> {
        let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        match ending.as_deref() {
            Some("gz") => Ok(Compression::Gzip),
            Some("zst") => Ok(Compression::Zstd),
            Some(ending @ ("bz2" | "tar" | "xz" | "zip")) => Err(Error::Value(format!(
                "{path}: {} is written as .gz, .zst or without compression, not as .{ending}",
                self.name()
            ))),
            _ => Ok(Compression::None),
        }
    }
}

/// The description of files for the tasks that write them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileSpec {
    /// The URL of the store that the folder is in, if not on the local disk.
    pub(super) store: Option<String>,
    /// The folder in which each attempt makes files of its own.
    pub(super) folder: String,
    pub(super) format: FileFormat,
    pub(super) compression: Compression,
    pub(super) row_group_rows: usize,
    /// Numbers of the columns that become folders.
    pub(super) partition_cols: Vec<usize>,
    pub(super) text: TextForm,
    /// Whether the files of the tasks stay as they are: each has a header and is brought to the disk. If not,
    /// they are joined as one.
    pub(super) stay: bool,
}

impl FileSpec {
    /// The end of the names of files.
    pub(super) fn extension(&self) -> String {
        let compression = match self.compression {
            Compression::Gzip if self.format.is_text() => ".gz",
            Compression::Zstd if self.format.is_text() => ".zst",
            _ => "",
        };
        format!("{}{compression}", self.format.name())
    }

    /// Whether this is the end of the names of some files.
    pub(super) fn is_extension(text: &str) -> bool {
        let formats = [FileFormat::Arrow, FileFormat::Csv, FileFormat::Json, FileFormat::Parquet];
        formats.into_iter().any(|format| match text.strip_prefix(format.name()) {
            Some("") => true,
            Some(".gz" | ".zst") => format.is_text(),
            _ => false,
        })
    }
}

/// Rows of a row group that is told no size.
pub(super) const ROW_GROUP_ROWS: usize = 1 << 20;
