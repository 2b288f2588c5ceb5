//! Records of CSV as batches.
//!
//! The library's decoder makes values of most types directly. It fails on what pandas takes for a missing
//! value (`NA`) and on spaces around numbers; records with these are decoded as texts, and the texts are
//! converted. A column that needed that once is decoded so from then on.

use super::convert::{Meaning, convert};
use super::form::CsvForm;
use crate::error::{Error, FileFault, Result};
use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::Decoder;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use std::sync::Arc;
use tharsis_text_scan::csv::{fields, without_blanks};
use tharsis_text_scan::records::{Marks, Scanner, breaks};

/// Makes batches of whole records.
pub(super) struct CsvDecoder {
    path: String,
    form: CsvForm,
    meaning: Meaning,
    /// The columns of the file.
    schema: SchemaRef,
    /// The columns that are wanted.
    projection: Vec<usize>,
    /// Whether a wanted column is decoded as texts.
    as_text: Vec<bool>,
    batch_rows: usize,
    decoder: Decoder,
}

/// The place of records in their file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) position: u64,
    /// Line breaks before them, if that is known.
    pub(super) lines: Option<u64>,
}

impl CsvDecoder {
    pub(super) fn new(
        path: &str,
        form: &CsvForm,
        schema: &SchemaRef,
        projection: &[usize],
        batch_rows: usize,
    ) -> CsvDecoder {
        let meaning = Meaning::of(form);
        let numbers = meaning.of_texts();
        let as_text: Vec<bool> = projection
            .iter()
            .map(|&column| match schema.field(column).data_type() {
                DataType::Boolean => false,
                // The fast way cuts digits of decimals, which a conversion rounds.
                dtype if dtype.is_decimal() => true,
                dtype if dtype.is_numeric() => numbers || matches!(dtype, DataType::Float16),
                dtype => !matches!(dtype, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
            })
            .collect();
        let decoder = decoder(form, schema, projection, &as_text, batch_rows);
        CsvDecoder {
            path: path.to_owned(),
            form: form.clone(),
            meaning,
            schema: Arc::clone(schema),
            projection: projection.to_vec(),
            as_text,
            batch_rows,
            decoder,
        }
    }

    /// The batches of whole records.
    pub(super) fn decode(&mut self, records: &[u8], place: Place) -> Result<Vec<RecordBatch>> {
        let kept = without_blanks(records, marks(&self.form));
        let records = &*kept;
        if let Ok(batches) = decoded(&mut self.decoder, records) {
            let made = batches.into_iter().map(|batch| self.converted(batch, &self.as_text));
            return made.collect::<std::result::Result<_, _>>().map_err(|_| self.unreadable(records, place));
        }
        let made = self.decode_as_text(records);
        self.decoder = self.decoder_of(&self.as_text, self.batch_rows);
        made.ok_or_else(|| self.unreadable(records, place))
    }

    /// As [`decode`](CsvDecoder::decode), for records that the fast way fails on.
    fn decode_as_text(&mut self, records: &[u8]) -> Option<Vec<RecordBatch>> {
        let all = vec![true; self.projection.len()];
        let batches = decoded(&mut self.decoder_of(&all, self.batch_rows), records).ok()?;
        let mut special = self.as_text.clone();
        let mut made = Vec::new();
        for batch in batches {
            for (at, column) in batch.columns().iter().enumerate() {
                let to = self.schema.field(self.projection[at]).data_type();
                special[at] |= convert(column.as_string(), to, &self.meaning).ok()?.1;
            }
            made.push(self.converted(batch, &all).ok()?);
        }
        // Without a column that is the reason, the fast way could fail again on the next records, and go on
        // like this.
        self.as_text = if special == self.as_text { all } else { special };
        Some(made)
    }

    /// The batch with the types of the schema.
    fn converted(
        &self,
        batch: RecordBatch,
        as_text: &[bool],
    ) -> std::result::Result<RecordBatch, ArrowError> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns());
        for (at, column) in batch.columns().iter().enumerate() {
            let to = self.schema.field(self.projection[at]).data_type();
            columns.push(match (as_text[at], column.data_type()) {
                (true, DataType::Utf8) => {
                    let made = convert(column.as_string(), to, &self.meaning);
                    made.map_err(|error| ArrowError::ParseError(error.text))?.0
                }
                _ => self.meaning.missing.without(column),
            });
        }
        let schema = self.schema.project(&self.projection)?;
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(schema), columns, &rows)
    }

    /// A decoder that makes texts of some columns.
    fn decoder_of(&self, as_text: &[bool], batch_rows: usize) -> Decoder {
        decoder(&self.form, &self.schema, &self.projection, as_text, batch_rows)
    }

    /// The error for records of which at least one cannot be read. It looks for the first of them.
    fn unreadable(&self, records: &[u8], place: Place) -> Error {
        let mut begins = Vec::new();
        Scanner::new(marks(&self.form), 0).scan(records, &mut |at| {
            begins.push(at);
            true
        });
        begins.push(records.len());
        let is_bad = |records: &[u8]| self.check(records, "").is_some();
        let groups = begins.chunks(GROUP_RECORDS).map(|group| group[0]);
        let groups: Vec<usize> = groups.chain([records.len()]).collect();
        let bad = groups.windows(2).find(|group| is_bad(&records[group[0]..group[1]]));
        let bad = bad.map_or(0..0, |group| group[0]..group[1]);
        let each = begins.windows(2).filter(|record| bad.contains(&record[0]));
        for record in each {
            let where_ = || match place.lines {
                Some(lines) => format!("line {}", lines + breaks(&records[..record[0]]) + 1),
                None => format!("the record at byte {}", place.position + record[0] as u64),
            };
            if is_bad(&records[record[0]..record[1]])
                && let Some(error) = self.check(&records[record[0]..record[1]], &where_())
            {
                return error;
            }
        }
        Error::file(&self.path, FileFault::Syntax, "its records cannot be read")
    }

    /// The error for records in a place, if there is one.
    fn check(&self, records: &[u8], where_: &str) -> Option<Error> {
        let all = vec![true; self.projection.len()];
        let Ok(batches) = decoded(&mut self.decoder_of(&all, self.batch_rows), records) else {
            let (expected, found) = (self.schema.fields().len(), fields(records, marks(&self.form)).len());
            let other = self.other_sep().unwrap_or_default();
            let reason = format!("Expected {expected} fields in {where_}, saw {found}{other}");
            return Some(Error::file(&self.path, FileFault::Syntax, reason));
        };
        for (column, texts) in batches.iter().flat_map(|batch| batch.columns().iter().enumerate()) {
            let field = self.schema.field(self.projection[column]);
            if let Err(error) = convert(texts.as_string(), field.data_type(), &self.meaning) {
                return Some(self.unfit(field, &error.text, where_));
            }
        }
        None
    }

    /// The separator of the labels, if the one that was said makes one label of them: the end of a message.
    fn other_sep(&self) -> Option<String> {
        let [label] = &self.schema.fields()[..] else { return None };
        let sep = [';', '\t', '|', ','].into_iter().find(|sep| label.name().contains(*sep))?;
        Some(format!("; the labels have {sep:?} between them: read the file with sep = {sep:?}"))
    }

    fn unfit(&self, field: &Field, text: &str, where_: &str) -> Error {
        let (label, dtype) = (field.name(), field.data_type());
        let reason = format!(
            "column {label:?} in {where_}: {text:?} is no {dtype}, the type that was asked for or found in \
             the first rows; give its dtype"
        );
        Error::file(&self.path, FileFault::Mismatch, reason)
    }
}

/// The marks of the records of a form.
pub(super) fn marks(form: &CsvForm) -> Marks {
    Marks { sep: form.sep, quote: Some(form.quote), comment: form.comment }
}

/// A decoder for some columns, with texts instead of values where that is said.
fn decoder(
    form: &CsvForm,
    schema: &SchemaRef,
    projection: &[usize],
    as_text: &[bool],
    batch_rows: usize,
) -> Decoder {
    let mut fields: Vec<_> = schema.fields().to_vec();
    for (&column, _) in projection.iter().zip(as_text).filter(|(_, as_text)| **as_text) {
        fields[column] = Arc::new(Field::new(fields[column].name(), DataType::Utf8, true));
    }
    let mut builder = ReaderBuilder::new(Arc::new(Schema::new(fields)))
        .with_header(false)
        .with_delimiter(form.sep)
        .with_quote(form.quote)
        .with_truncated_rows(true)
        .with_batch_size(batch_rows)
        .with_projection(projection.to_vec());
    if let Some(comment) = form.comment {
        builder = builder.with_comment(comment);
    }
    builder.build_decoder()
}

fn decoded(decoder: &mut Decoder, records: &[u8]) -> std::result::Result<Vec<RecordBatch>, ArrowError> {
    let mut batches = Vec::new();
    let mut at = 0;
    while at < records.len() {
        let used = decoder.decode(&records[at..])?;
        at += used;
        if used == 0 || decoder.capacity() == 0 {
            batches.extend(decoder.flush()?);
        }
    }
    // The last record may lack its line break.
    decoder.decode(&[])?;
    batches.extend(decoder.flush()?);
    Ok(batches)
}

/// Records that are looked at together in search of a bad one.
const GROUP_RECORDS: usize = 256;
