//! Frames from files.

use crate::engine::{Settings, block_on, session};
use crate::error::{Error, Result};
use crate::frame::{DataFrame, Frame};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::arrow::ArrowFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::LogicalPlanBuilder;
use std::sync::Arc;

/// Options of [`read_csv`].
#[derive(Clone, Debug)]
pub struct CsvOptions {
    delimiter: u8,
    header: bool,
    quote: u8,
    comment: Option<u8>,
}

impl Default for CsvOptions {
    fn default() -> CsvOptions {
        CsvOptions { delimiter: b',', header: true, quote: b'"', comment: None }
    }
}

impl CsvOptions {
    /// The separator of fields; a comma by default.
    #[must_use]
    pub fn delimiter(self, delimiter: u8) -> CsvOptions {
        CsvOptions { delimiter, ..self }
    }

    /// Whether the first line has the labels; it has by default.
    #[must_use]
    pub fn header(self, header: bool) -> CsvOptions {
        CsvOptions { header, ..self }
    }

    /// The quote around fields that contain separators; a double quote by default.
    #[must_use]
    pub fn quote(self, quote: u8) -> CsvOptions {
        CsvOptions { quote, ..self }
    }

    /// The beginning of lines that are left out; nothing by default.
    #[must_use]
    pub fn comment(self, comment: Option<u8>) -> CsvOptions {
        CsvOptions { comment, ..self }
    }

    fn format(&self) -> CsvFormat {
        CsvFormat::default()
            .with_delimiter(self.delimiter)
            .with_has_header(self.header)
            .with_quote(self.quote)
            .with_comment(self.comment)
            .with_newlines_in_values(true)
    }
}

/// A frame of CSV files: a path, a folder, or a pattern with `*`. Types are found from the first rows.
///
/// ```
/// use tharsis_dataframe::{CsvOptions, read_csv};
/// let folder = std::env::temp_dir().join(format!("tharsis-csv-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// let path = folder.join("cities.csv");
/// std::fs::write(&path, "city,people\nOslo,700000\nRome,2800000\n")?;
/// let cities = read_csv(&path.to_string_lossy(), CsvOptions::default());
/// assert_eq!(cities.col("people").max()?.as_i64(), Some(2_800_000));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
#[must_use]
pub fn read_csv(path: &str, options: CsvOptions) -> DataFrame {
    DataFrame::new(listing(path, Arc::new(options.format()), ""))
}

/// A frame of Parquet files: a path, a folder, or a pattern with `*`.
#[track_caller]
#[must_use]
pub fn read_parquet(path: &str) -> DataFrame {
    DataFrame::new(listing(path, Arc::new(ParquetFormat::default()), ""))
}

/// A frame of files with one JSON object a line.
#[track_caller]
#[must_use]
pub fn read_json(path: &str) -> DataFrame {
    DataFrame::new(listing(path, Arc::new(JsonFormat::default()), ""))
}

/// A frame of Arrow IPC files.
#[track_caller]
#[must_use]
pub fn read_arrow(path: &str) -> DataFrame {
    DataFrame::new(listing(path, Arc::new(ArrowFormat), ""))
}

fn listing(path: &str, format: Arc<dyn FileFormat>, extension: &str) -> Result<Frame> {
    let file_error = |reason: String| Error::File { path: path.to_owned(), reason };
    check_exists(path)?;
    let url = ListingTableUrl::parse(path).map_err(|error| file_error(error.to_string()))?;
    let options = ListingOptions::new(format).with_file_extension(extension);
    let session = session(Settings::default());
    let schema = block_on(async {
        let schema = options.infer_schema(&session, &url).await;
        schema.map_err(|error| file_error(error.strip_backtrace()))
    })?;
    let config = ListingTableConfig::new(url).with_listing_options(options).with_schema(schema);
    let table = ListingTable::try_new(config)?;
    Frame::of_plan(LogicalPlanBuilder::scan("file", provider_as_source(Arc::new(table)), None)?.build()?)
}

/// Refuses a path that names nothing; the library would read an empty table.
fn check_exists(path: &str) -> Result<()> {
    let is_pattern = path.contains(['*', '?', '[']) || path.contains("://");
    if is_pattern || std::fs::exists(path).unwrap_or(false) {
        return Ok(());
    }
    Err(Error::File { path: path.to_owned(), reason: "no such file or folder".to_owned() })
}
