//! A look at the first records of texts, which tells their columns.

use super::convert::{Classes, Missing};
use super::csv::{self, CsvDecoder, fields};
use super::form::{CsvForm, TextKind};
use super::records::{Records, Text, labels};
use super::scanner::breaks;
use crate::error::{Error, FileFault, Result};
use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::io::Cursor;
use std::sync::Arc;

/// The first records of a text.
pub(crate) struct Sample {
    /// The labels in the header.
    pub(crate) header: Vec<String>,
    /// The classes of the values of each column.
    pub(crate) classes: Vec<Classes>,
    pub(crate) rows: usize,
    /// Bytes that were read.
    pub(crate) bytes: u64,
    /// Whether that was all.
    pub(crate) is_whole: bool,
}

/// Looks at so many bytes of CSV, without a number of columns for all of it.
pub(crate) async fn of_csv(
    text: &Text,
    has_header: bool,
    columns: Option<usize>,
    bytes: u64,
) -> Result<Sample> {
    let TextKind::Csv(form) = &text.form.kind else {
        return Err(Error::Internal("a sample of CSV of another text".to_owned()));
    };
    let mut records = Records::open(text.clone()).await?;
    let (mut first, mut place, record) = loop {
        let Some((first, place)) = records.next().await? else {
            return Err(Error::file(&text.path, FileFault::Corrupt, "No columns to parse from file"));
        };
        let record = csv::first(form, &first);
        // Lines without anything are no records.
        if !record.is_empty() {
            break (first, place, record);
        }
    };
    let mut header = fields(form, &first[record.clone()]);
    let width = columns.unwrap_or(header.len()).max(header.len());
    if has_header {
        place.lines = place.lines.map(|lines| lines + breaks(&first[..record.end]));
        place.position += record.end as u64;
        first.drain(..record.end);
    } else {
        header = Vec::new();
    }
    let mut sample = Sample {
        header: labels(&header),
        classes: vec![Classes::default(); width],
        rows: 0,
        bytes: 0,
        is_whole: false,
    };
    let mut decoder = texts(text, form, width);
    let missing = Missing::new(&form.missing);
    loop {
        sample.bytes = place.position + first.len() as u64;
        for batch in decoder.decode(&first, place)? {
            sample.rows += batch.num_rows();
            for (classes, column) in sample.classes.iter_mut().zip(batch.columns()) {
                column.as_string::<i32>().iter().flatten().for_each(|text| classes.add(text, &missing));
            }
        }
        if bytes <= sample.bytes {
            return Ok(sample);
        }
        match records.next().await? {
            Some(next) => (first, place) = next,
            None => {
                sample.is_whole = true;
                return Ok(sample);
            }
        }
    }
}

/// A decoder of all columns as texts.
fn texts(text: &Text, form: &CsvForm, width: usize) -> CsvDecoder {
    let fields: Vec<Field> = (0..width).map(|at| Field::new(at.to_string(), DataType::Utf8, true)).collect();
    let projection: Vec<usize> = (0..width).collect();
    CsvDecoder::new(&text.path, form, &Arc::new(Schema::new(fields)), &projection, SAMPLE_ROWS)
}

/// Looks at so many bytes of JSON lines; gives the columns, and whether that was all.
pub(crate) async fn of_json(text: &Text, bytes: u64) -> Result<(SchemaRef, bool)> {
    let mut records = Records::open(text.clone()).await?;
    let mut sample = Vec::new();
    let mut is_whole = true;
    while let Some((lines, _)) = records.next().await? {
        sample.extend_from_slice(&lines);
        if bytes <= sample.len() as u64 {
            is_whole = false;
            break;
        }
    }
    let found = arrow::json::reader::infer_json_schema(Cursor::new(sample), None);
    let (schema, _) = found.map_err(|error| Error::file(&text.path, FileFault::Corrupt, error))?;
    Ok((Arc::new(schema), is_whole))
}

const SAMPLE_ROWS: usize = 4096;
