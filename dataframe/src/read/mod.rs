//! Frames from files.
//!
//! | concern | module |
//! |---|---|
//! | choices of users | `options` |
//! | paths, patterns, folders with values | `places` |
//! | names and types of columns | `columns` |
//! | JSON as tables of statements | `json_lines` |
//! | footers of Parquet | `parquet` |
//! | the table that is planned | `table` |

mod columns;
pub(crate) mod json_lines;
mod options;
mod parquet;
mod places;
mod prune;
mod table;

pub use options::CsvOptions;
pub use places::local_path;

use crate::engine::{Settings, block_on, session};
use crate::error::{Error, FileFault, Result};
use crate::frame::{DataFrame, Frame};
use crate::scan::{Columns, Compression, JsonForm, store};
use crate::scanned::ScannedTable;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::avro::AvroFormat;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlanBuilder;
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStore;
pub(crate) use places::joined;
use places::{Found, Place};
use std::sync::Arc;
use table::{FileTable, Format};

/// A frame of CSV files: a path, a folder, a pattern with `*`, or a URL. Types are found from the first rows,
/// as pandas finds them.
///
/// Files that end with `.gz`, `.bz2`, `.xz` or `.zst` are decompressed. Folders `label=value` below the path
/// give columns.
///
/// ```
/// use tharsis_dataframe::{CsvOptions, read_csv};
/// let folder = std::env::temp_dir().join(format!("tharsis-csv-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// let path = folder.join("cities.csv");
/// std::fs::write(&path, "city,people\nOslo,700000\nRome,2800000\n")?;
/// let cities = read_csv(&path.to_string_lossy(), CsvOptions::new());
/// assert_eq!(cities.col("people").max()?.as_i64(), Some(2_800_000));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Distributed
/// A file of more than 10 MB is cut between partitions, wherever quotes have line breaks: a partition guesses
/// where its first record begins, the one before it checks that, and if one guess was wrong the files are
/// read again as a whole. Files are not cut if they are compressed, have comments, or are not strict UTF-8.
#[track_caller]
pub fn read_csv(path: &str, options: CsvOptions) -> DataFrame {
    let frame = Opened::at(path).and_then(|opened| {
        let columns = columns::of_csv(&opened.store, &opened.place, &opened.found, &options);
        let (schema, form) = block_on(columns)?;
        opened.frame(Format::Text(Arc::new(form)), schema)
    });
    with_options(DataFrame::new(frame), &options)
}

/// The steps of options that are steps of frames.
#[track_caller]
fn with_options(mut frame: DataFrame, options: &CsvOptions) -> DataFrame {
    for label in &options.parse_dates {
        let times = crate::frame::series::to_datetime(&frame.col(label));
        frame = frame.assign(label, times);
    }
    if let (Some(wanted), Ok(labels)) = (&options.usecols, frame.columns()) {
        let kept: Vec<&str> =
            labels.iter().filter(|label| wanted.contains(label)).map(String::as_str).collect();
        frame = frame.select(kept);
    }
    match options.nrows {
        Some(rows) => frame.head(rows),
        None => frame,
    }
}

/// A frame of Parquet files: a path, a folder, a pattern with `*`, or a URL. Their columns must be the same.
///
/// Filters leave out row groups and pages by their statistics, which are believed. Folders `label=value`
/// below the path give columns, and filters on these leave out files. Times of 96 bits (Hive, Impala, Spark)
/// are read in microseconds.
#[track_caller]
pub fn read_parquet(path: &str) -> DataFrame {
    DataFrame::new(Opened::at(path).and_then(|opened| {
        let mut format = parquet::format();
        if !block_on(opened.check_footers())? {
            format = parquet::without_pruning();
        }
        opened.binary(Arc::new(format))
    }))
}

/// A frame of files of JSON, each of an object a line or of one array of objects: a path, a folder, a pattern
/// with `*`, or a URL.
///
/// Both forms are read block by block; an array is not cut between tasks.
/// Files that end with `.gz`, `.bz2`, `.xz` or `.zst` are decompressed.
#[track_caller]
pub fn read_json(path: &str) -> DataFrame {
    DataFrame::new(Opened::at(path).and_then(|opened| {
        let form = |is_array: bool| {
            let form = JsonForm { columns: Columns::Found, is_array };
            Arc::new(json_lines::form(form, Compression::ByName))
        };
        let bytes = options::INFER_BYTES_DEFAULT;
        let lines = form(false);
        let found = columns::of_json(&opened.store, &opened.place, &opened.found, &lines, bytes);
        let (schema, is_array) = block_on(found)?;
        opened.frame(Format::Text(form(is_array)), schema)
    }))
}

/// A frame of files of Arrow's IPC (Feather), or of its streams: a path, a folder, a pattern with `*`, or a
/// URL.
#[track_caller]
pub fn read_arrow(path: &str) -> DataFrame {
    DataFrame::new(Opened::at(path).and_then(|opened| {
        let schema = block_on(columns::of_ipc(&opened.store, &opened.place, &opened.found))?;
        opened.frame(Format::Ipc, schema)
    }))
}

/// A frame of Avro files: a path, a folder, a pattern with `*`, or a URL.
#[track_caller]
pub fn read_avro(path: &str) -> DataFrame {
    DataFrame::new(Opened::at(path).and_then(|opened| opened.binary(Arc::new(AvroFormat))))
}

/// The paths of the files that a path names, in their order; none if there are no such files.
pub(crate) fn files(path: &str) -> Result<Vec<String>> {
    match Opened::at(path) {
        Ok(opened) => Ok(opened.found.iter().map(|file| opened.place.shown(&file.meta.location)).collect()),
        Err(Error::File { fault: FileFault::Missing, .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The files that a path names, and what it takes to look into them.
struct Opened {
    session: SessionState,
    store: Arc<dyn ObjectStore>,
    place: Place,
    found: Vec<Found>,
}

impl Opened {
    fn at(path: &str) -> Result<Opened> {
        let place = Place::parse(path)?;
        let session = session(Settings::default());
        let store = store(session.runtime_env(), &place.store)?;
        let found = block_on(place.files(&*store, None))?;
        Ok(Opened { session, store, place, found })
    }

    /// Checks the footers of files of Parquet; gives whether their statistics can be true.
    async fn check_footers(&self) -> Result<bool> {
        let checks: Vec<_> = self.found.iter().map(|file| self.check_footer(file)).collect();
        let sound: Vec<bool> =
            futures::stream::iter(checks).buffered(columns::FILES_AT_ONCE).try_collect().await?;
        Ok(sound.into_iter().all(|sound| sound))
    }

    async fn check_footer(&self, file: &Found) -> Result<bool> {
        let path = self.place.shown(&file.meta.location);
        parquet::check_end(&self.store, &path, &file.meta).await?;
        parquet::check_footer(&self.session, &self.store, &path, &file.meta).await
    }

    fn binary(self, format: Arc<dyn FileFormat>) -> Result<Frame> {
        let columns = columns::of_binary(&self.session, &self.store, &self.place, &self.found, &*format);
        let schema = block_on(columns)?;
        self.frame(Format::Binary(format), schema)
    }

    fn frame(self, format: Format, schema: arrow::datatypes::SchemaRef) -> Result<Frame> {
        let is_text = matches!(format, Format::Text(_));
        let table = FileTable::new(self.place, format, schema, &self.found)?;
        let plan = LogicalPlanBuilder::scan("file", table.source(), None)?.build()?;
        // The reader of texts makes floats as frames have them.
        let made = if is_text { Frame::of_plan(plan) } else { Frame::of_foreign_rows(plan) };
        made.map_err(|error| match error {
            // No label of a file is a mistake of the program.
            Error::Internal(text) => Error::Value(text),
            other => other,
        })
    }
}
