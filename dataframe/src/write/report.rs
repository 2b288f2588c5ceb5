//! Reports of tasks to the driver: the files that they have written, as rows.

use crate::error::{Error, Result};
use arrow::array::{AsArray, RecordBatch, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion::common::Result as EngineResult;
use std::sync::Arc;

/// A file that a task has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) task: u64,
    /// Its number among the files of the task.
    pub(super) number: u64,
    /// The folder of its rows' values; empty without such folders.
    pub(super) folder: String,
    /// Its name in the folder of attempts.
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

/// The columns of a report.
pub(super) fn report_schema() -> SchemaRef {
    let number = |name| Field::new(name, DataType::UInt64, false);
    let text = |name| Field::new(name, DataType::Utf8, false);
    let fields =
        vec![number("task"), number("number"), text("folder"), text("name"), number("rows"), number("bytes")];
    Arc::new(Schema::new(fields))
}

/// The files as rows.
pub(super) fn report(files: &[Written]) -> EngineResult<RecordBatch> {
    let numbers = |number: fn(&Written) -> u64| UInt64Array::from_iter_values(files.iter().map(number));
    let texts = |text: fn(&Written) -> &String| StringArray::from_iter_values(files.iter().map(text));
    Ok(RecordBatch::try_new(
        report_schema(),
        vec![
            Arc::new(numbers(|file| file.task)),
            Arc::new(numbers(|file| file.number)),
            Arc::new(texts(|file| &file.folder)),
            Arc::new(texts(|file| &file.name)),
            Arc::new(numbers(|file| file.rows)),
            Arc::new(numbers(|file| file.bytes)),
        ],
    )?)
}

/// The files in the rows that tasks reported.
pub(super) fn read(batches: &[RecordBatch]) -> Result<Vec<Written>> {
    let mut files = Vec::new();
    for batch in batches {
        if *batch.schema() != *report_schema() {
            return Err(Error::Internal("a report of files has other columns".to_owned()));
        }
        let number = |column: usize, row| batch.column(column).as_primitive::<UInt64Type>().value(row);
        let text = |column: usize, row| batch.column(column).as_string::<i32>().value(row).to_owned();
        files.extend((0..batch.num_rows()).map(|row| Written {
            task: number(0, row),
            number: number(1, row),
            folder: text(2, row),
            name: text(3, row),
            rows: number(4, row),
            bytes: number(5, row),
        }));
    }
    Ok(files)
}
