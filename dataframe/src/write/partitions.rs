//! Folders of values: which rows go to which folder.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt64Array};
use arrow::compute::{cast, take_record_batch};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result as EngineResult;
use std::collections::HashMap;
use std::sync::Arc;

/// Splits rows by the values of some columns, which leave the rows.
#[derive(Debug)]
pub(super) struct Partitions {
    labels: Vec<String>,
    columns: Vec<usize>,
    rest: Vec<usize>,
}

impl Partitions {
    /// Of rows with these columns, by those with these numbers.
    pub(super) fn new(schema: &SchemaRef, columns: &[usize]) -> Partitions {
        let fields = schema.fields();
        let labels =
            columns.iter().filter_map(|&column| fields.get(column)).map(|field| field.name().clone());
        let rest = (0..fields.len()).filter(|column| !columns.contains(column)).collect();
        Partitions { labels: labels.collect(), columns: columns.to_vec(), rest }
    }

    /// The columns that go to files.
    pub(super) fn file_schema(&self, schema: &SchemaRef) -> EngineResult<SchemaRef> {
        Ok(Arc::new(schema.project(&self.rest)?))
    }

    /// The rows of each folder, in their order; folders in the order of their first rows.
    pub(super) fn split(&self, batch: &RecordBatch) -> EngineResult<Vec<(String, RecordBatch)>> {
        let rest = batch.project(&self.rest)?;
        if self.columns.is_empty() {
            return Ok(vec![(String::new(), rest)]);
        }
        let texts: Vec<ArrayRef> = self
            .columns
            .iter()
            .map(|&column| cast(batch.column(column), &DataType::Utf8))
            .collect::<Result<_, _>>()?;
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut rows: Vec<(String, Vec<u64>)> = Vec::new();
        for row in 0..batch.num_rows() {
            let folder = self.folder(&texts, row);
            let at = *known.entry(folder).or_insert_with_key(|folder| {
                rows.push((folder.clone(), Vec::new()));
                rows.len() - 1
            });
            rows[at].1.push(row as u64);
        }
        let part = |(folder, rows)| Ok((folder, take_record_batch(&rest, &UInt64Array::from(rows))?));
        rows.into_iter().map(part).collect()
    }

    fn folder(&self, texts: &[ArrayRef], row: usize) -> String {
        let mut folder = String::new();
        for (label, text) in self.labels.iter().zip(texts) {
            let value = if text.is_null(row) {
                NULL_FOLDER.to_owned()
            } else {
                escaped(text.as_string::<i32>().value(row))
            };
            let slash = if folder.is_empty() { "" } else { "/" };
            folder.push_str(&format!("{slash}{}={value}", escaped(label)));
        }
        folder
    }
}

/// A text as a part of the name of a folder: bytes that could mean something there are written as `%2F`.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b' ' | b'+' | b':' => {
                escaped.push(byte.into());
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

/// The folder of missing values, as in Hive.
pub(crate) const NULL_FOLDER: &str = "__HIVE_DEFAULT_PARTITION__";
