//! Frames to files. A file appears whole or not at all.

use crate::error::{Error, Result};
use crate::execute::{default_executor, execute};
use crate::frame::DataFrame;
use crate::stage::Resident;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

impl DataFrame {
    /// Writes all rows to a Parquet file, with the index if it has names.
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or `OSError` if the file cannot be written.
    pub fn to_parquet(&self, path: &str) -> Result<()> {
        let rows = self.written()?;
        whole(path, |file| {
            let level = ZstdLevel::try_new(1).map_err(|error| Error::Internal(error.to_string()))?;
            let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
            let failed = |error| file_error(path, &error);
            let writer = ArrowWriter::try_new(file, rows.schema.clone(), Some(properties));
            let mut writer = writer.map_err(|error| file_error(path, &error))?;
            for part in &rows.parts {
                for batch in part.fetch()? {
                    writer.write(&batch).map_err(failed)?;
                }
            }
            writer.close().map_err(|error| file_error(path, &error))?;
            Ok(())
        })
    }

    /// Writes all rows to a CSV file with a line of labels, with the index if it has names.
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or `OSError` if the file cannot be written.
    pub fn to_csv(&self, path: &str) -> Result<()> {
        let rows = self.written()?;
        whole(path, |file| {
            let mut writer = arrow::csv::Writer::new(file);
            for part in &rows.parts {
                for batch in part.fetch()? {
                    writer.write(&batch).map_err(|error| file_error(path, &error))?;
                }
            }
            Ok(())
        })
    }

    /// The rows with the columns that go to a file.
    fn written(&self) -> Result<Resident> {
        let frame = self.frame()?;
        let named = !frame.index.is_empty() && frame.index.iter().all(|level| level.name.is_some());
        let frame = match named {
            true => frame.index_as_columns()?,
            false => crate::frame::Frame { index: Vec::new(), ..(**frame).clone() },
        };
        Ok(execute(&frame.output()?, &*default_executor())?.0)
    }
}

/// Writes a file beside the path and moves it there when it is complete.
fn whole(path: &str, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let unfinished = Unfinished(beside(path));
    let mut file = File::create(&unfinished.0).map_err(|error| file_error(path, &error))?;
    write(&mut file)?;
    file.sync_all().map_err(|error| file_error(path, &error))?;
    fs::rename(&unfinished.0, path).map_err(|error| file_error(path, &error))
}

/// A file that is removed unless it was moved away.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _gone_if_moved = fs::remove_file(&self.0);
    }
}

fn beside(path: &str) -> PathBuf {
    let path = Path::new(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.unfinished", std::process::id()))
}

fn file_error(path: &str, error: &dyn std::fmt::Display) -> Error {
    Error::File { path: path.to_owned(), reason: error.to_string() }
}
