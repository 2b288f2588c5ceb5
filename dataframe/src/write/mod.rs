//! Rows to files. The tasks of a plan write them; the driver makes all of them visible at once.
//!
//! | concern | module |
//! |---|---|
//! | choices of users | `options` |
//! | the operator in the tasks | `node` |
//! | one file of a format | `encoder`, of Arrow `arrow_file` |
//! | lines of CSV | `csv` |
//! | encodings of Parquet's columns | `dictionaries` |
//! | folders of values | `partitions` |
//! | reports of tasks | `report` |
//! | from reported files to the target | `target`, in an object store `stored` |
//! | files that the library writes | `staged` |
//! | folders that go if nothing is written | `made_folders` |
//!
//! A task may run twice, and after its driver has given up. So each attempt makes files under names of its
//! own in a folder beside the target, and reports them as rows. Only reported files are moved.

mod arrow_file;
mod csv;
mod dictionaries;
mod encoder;
mod made_folders;
mod node;
mod options;
mod partitions;
mod report;
mod staged;
mod stored;
mod target;

pub(crate) use csv::DATE_TIME;
pub(crate) use node::WriteExec;
pub(crate) use options::FileSpec;
pub use options::{Compression, FileFormat, WriteOptions};
pub(crate) use partitions::NULL_FOLDER;
pub(crate) use staged::Staged;
pub use target::unique;

use crate::error::Result;
use arrow::array::RecordBatch;
use options::ROW_GROUP_ROWS;
use stored::StoredTarget;
use target::Target;

/// The place that rows are written to.
pub(crate) enum Place {
    Local(Target),
    Stored(StoredTarget),
}

impl Place {
    /// The file or folder of a path or URL.
    pub(crate) fn prepare(path: &str) -> Result<Place> {
        if path.contains("://") {
            StoredTarget::prepare(path).map(Place::Stored)
        } else {
            Target::prepare(path).map(Place::Local)
        }
    }

    /// The description of files of a format for the tasks. Columns of these numbers become folders.
    pub(crate) fn spec(
        &self,
        format: FileFormat,
        compression: Compression,
        partition_cols: Vec<usize>,
        options: WriteOptions,
    ) -> FileSpec {
        let (store, folder) = self.attempts();
        FileSpec {
            store,
            folder,
            format,
            compression,
            row_group_rows: options.row_group_rows.unwrap_or(ROW_GROUP_ROWS),
            partition_cols,
            text: options.text,
            stay: self.is_folder(),
        }
    }

    /// Makes the files that tasks have reported visible, in the order of their rows.
    pub(crate) fn finish(self, reported: &[RecordBatch], spec: &FileSpec) -> Result<()> {
        let mut files = report::read(reported)?;
        files.sort_unstable_by_key(|file| (file.task, file.number));
        match self {
            Place::Local(target) => target.finish(&files, spec),
            Place::Stored(target) => target.finish(&files, spec),
        }
    }

    /// The store and the folder in which attempts make their files.
    fn attempts(&self) -> (Option<String>, String) {
        match self {
            Place::Local(target) => (None, target.attempts()),
            Place::Stored(target) => (Some(target.url().to_owned()), target.attempts()),
        }
    }

    fn is_folder(&self) -> bool {
        match self {
            Place::Local(target) => target.is_folder(),
            Place::Stored(target) => target.is_folder(),
        }
    }
}
