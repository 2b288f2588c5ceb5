//! Lines of JSON as batches.

use super::csv::Place;
use super::form::Columns;
use super::json_shapes::shape_of_lines;
use crate::error::{Error, FileFault, Result};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use std::sync::Arc;
use tharsis_text_scan::json_values::Shape;
use tharsis_text_scan::records::Marks;

/// Makes batches of whole lines. Where the columns were found in the first lines, a field that the schema
/// has not is an error: its values would be lost.
pub(super) struct JsonDecoder {
    path: String,
    /// All columns: a field that is not wanted is known all the same.
    schema: SchemaRef,
    projection: Vec<usize>,
    batch_rows: usize,
    columns: Columns,
    expected: Shape,
}

/// The marks of lines.
pub(super) const MARKS: Marks = Marks { sep: 0, quote: None, comment: None };

impl JsonDecoder {
    pub(super) fn new(
        path: &str,
        schema: &SchemaRef,
        projection: &[usize],
        batch_rows: usize,
        columns: Columns,
    ) -> Result<JsonDecoder> {
        schema.project(projection)?;
        let expected = shape_of_lines(schema.fields(), columns == Columns::Declared);
        let (schema, projection) = (Arc::clone(schema), projection.to_vec());
        Ok(JsonDecoder { path: path.to_owned(), schema, projection, batch_rows, columns, expected })
    }

    /// The batches of whole lines. An error names one as `unit` and a number.
    pub(super) fn decode(&mut self, lines: &[u8], place: Place, unit: &str) -> Result<Vec<RecordBatch>> {
        self.decoded(lines).map_err(|error| self.unreadable(lines, place, unit, &error))
    }

    fn decoded(&self, lines: &[u8]) -> std::result::Result<Vec<RecordBatch>, ArrowError> {
        let mut decoder = ReaderBuilder::new(Arc::clone(&self.schema))
            .with_batch_size(self.batch_rows)
            .with_strict_mode(self.columns == Columns::Found)
            .build_decoder()?;
        let mut batches = Vec::new();
        let mut at = 0;
        while at < lines.len() {
            let used = decoder.decode(&lines[at..])?;
            at += used;
            if used == 0 || at == lines.len() || decoder.len() == self.batch_rows {
                batches.extend(decoder.flush()?);
            }
        }
        self.expected.check(lines).map_err(ArrowError::JsonError)?;
        batches.into_iter().map(|batch: RecordBatch| batch.project(&self.projection)).collect()
    }

    /// The error for lines of which at least one cannot be read.
    fn unreadable(&self, lines: &[u8], place: Place, unit: &str, error: &ArrowError) -> Error {
        let begins = std::iter::once(0);
        let breaks = lines.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let mut begins: Vec<usize> = begins.chain(breaks).collect();
        begins.push(lines.len());
        for (group, part) in begins.chunks(GROUP_LINES).enumerate() {
            let first = group * GROUP_LINES;
            let end = begins.get(first + GROUP_LINES).copied().unwrap_or(lines.len());
            if self.decoded(&lines[part[0]..end]).is_ok() {
                continue;
            }
            for at in first..first + part.len() {
                let line = &lines[begins[at]..begins.get(at + 1).copied().unwrap_or(lines.len())];
                if let Err(error) = self.decoded(line) {
                    let reason = match place.lines {
                        Some(before) => format!("{unit} {}: {error}", before + at as u64 + 1),
                        None => format!("the line at byte {}: {error}", place.position + begins[at] as u64),
                    };
                    return Error::file(&self.path, FileFault::Corrupt, reason);
                }
            }
        }
        Error::file(&self.path, FileFault::Corrupt, error)
    }
}

/// Lines that are looked at together in search of a bad one.
const GROUP_LINES: usize = 256;
