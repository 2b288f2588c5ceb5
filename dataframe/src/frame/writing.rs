//! Frames to files: `write` has the tasks that write, and what makes their files visible.

use crate::error::{Error, Result};
use crate::execute::{Executor, default_executor, execute_under};
use crate::frame::{DataFrame, Frame};
use crate::write::{FileFormat, Place, WriteExec, WriteOptions};
use std::sync::Arc;

impl DataFrame {
    /// Writes all rows to a Parquet file, with the index if it has names. A path that ends with `/` is a
    /// folder with a file for each partition.
    ///
    /// The tasks write, and the driver moves the complete files: nobody sees a part of them, and after an
    /// error the old file is unchanged. Nodes must share the folder, unless it is in an object store.
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or one of the file system.
    pub fn to_parquet(&self, path: &str) -> Result<()> {
        self.to_parquet_with(path, WriteOptions::new())
    }

    /// As [`to_parquet`](DataFrame::to_parquet), with options.
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or one of the file system.
    pub fn to_parquet_with(&self, path: &str, options: WriteOptions) -> Result<()> {
        self.write(path, FileFormat::Parquet, options)
    }

    /// Writes all rows to a CSV file with a line of labels, with the index if it has names. A path that ends
    /// with `/` is a folder with a file for each partition; `.gz` and `.zst` are compressed.
    ///
    /// Texts are written as they are, also those that a spreadsheet would take for a formula. Lists and
    /// objects are texts of JSON.
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or one of the file system.
    pub fn to_csv(&self, path: &str) -> Result<()> {
        self.to_csv_with(path, WriteOptions::new())
    }

    /// As [`to_csv`](DataFrame::to_csv), with options.
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or one of the file system.
    pub fn to_csv_with(&self, path: &str, options: WriteOptions) -> Result<()> {
        self.write(path, FileFormat::Csv, options)
    }

    /// Writes all rows to a file with one JSON object a line, with the index if it has names. A path that
    /// ends with `/` is a folder with a file for each partition; `.gz` and `.zst` are compressed.
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or one of the file system.
    pub fn to_json(&self, path: &str) -> Result<()> {
        self.to_json_with(path, WriteOptions::new())
    }

    /// As [`to_json`](DataFrame::to_json), with options.
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or one of the file system.
    pub fn to_json_with(&self, path: &str, options: WriteOptions) -> Result<()> {
        self.write(path, FileFormat::Json, options)
    }

    /// Writes all rows to a file of Arrow's IPC (Feather), with the index if it has names. A path that ends
    /// with `/` is a folder with a file for each partition.
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or one of the file system.
    pub fn to_arrow(&self, path: &str) -> Result<()> {
        self.to_arrow_with(path, WriteOptions::new())
    }

    /// As [`to_arrow`](DataFrame::to_arrow), with options.
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or one of the file system.
    pub fn to_arrow_with(&self, path: &str, options: WriteOptions) -> Result<()> {
        self.write(path, FileFormat::Arrow, options)
    }

    fn write(&self, path: &str, format: FileFormat, options: WriteOptions) -> Result<()> {
        self.write_on(path, format, options, &*default_executor())
    }

    /// Writes all rows with the tasks of an executor.
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or one of the file system.
    #[doc(hidden)]
    pub fn write_on(
        &self,
        path: &str,
        format: FileFormat,
        options: WriteOptions,
        executor: &dyn Executor,
    ) -> Result<()> {
        let compression = format.compression(options.compression, path)?;
        let frame = written(self.frame()?, options.index)?;
        let partition_cols = partition_numbers(&frame, format, path, &options.partition_cols)?;
        let place = Place::prepare(path)?;
        let spec = Arc::new(place.spec(format, compression, partition_cols, options));
        let for_tasks = Arc::clone(&spec);
        let rows = execute_under(&frame.output()?, executor, move |plan| {
            Arc::new(WriteExec::new(plan, Arc::clone(&for_tasks)))
        });
        place.finish(&rows?.0.fetch()?, &spec)
    }
}

/// The frame with the columns that go to a file.
pub(crate) fn written(frame: &Frame, index: Option<bool>) -> Result<Frame> {
    let named = !frame.index.is_empty() && frame.index.iter().all(|level| level.name.is_some());
    if index.unwrap_or(named) {
        frame.with_index()?.index_as_columns()
    } else {
        Ok(Frame { index: Vec::new(), ..frame.clone() })
    }
}

/// The numbers of the columns that become folders.
fn partition_numbers(frame: &Frame, format: FileFormat, path: &str, labels: &[String]) -> Result<Vec<usize>> {
    if labels.is_empty() {
        return Ok(Vec::new());
    }
    if !matches!(format, FileFormat::Csv | FileFormat::Parquet) {
        return Err(Error::Value("partition_cols: there are CSV and Parquet".to_owned()));
    }
    if !path.ends_with('/') {
        return Err(Error::Value(format!("partition_cols needs a folder, {path}/")));
    }
    let mut numbers = Vec::new();
    for label in labels {
        frame.check(label)?;
        numbers.extend(frame.columns.iter().position(|column| column == label));
    }
    if numbers.len() < frame.columns.len() {
        Ok(numbers)
    } else {
        Err(Error::Value("partition_cols: no column is left for the files".to_owned()))
    }
}
