//! A text as batches.

use super::csv::{CsvDecoder, Place};
use super::form::TextKind;
use super::json::JsonDecoder;
use super::records::{Records, Text};
use crate::error::Result;
use crate::value::array_without_nan;
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use std::collections::VecDeque;

/// The columns that are wanted, and the rows of a batch.
pub(super) struct Wanted {
    pub(super) schema: SchemaRef,
    pub(super) projection: Vec<usize>,
    pub(super) batch_rows: usize,
}

enum Decoder {
    Csv(Box<CsvDecoder>),
    Json(JsonDecoder),
}

impl Decoder {
    /// The batches of records, of which an error names one as `unit` and a number.
    fn decode(&mut self, records: &[u8], place: Place, unit: &str) -> Result<Vec<RecordBatch>> {
        match self {
            Decoder::Csv(decoder) => decoder.decode(records, place),
            Decoder::Json(decoder) => decoder.decode(records, place, unit),
        }
    }
}

/// The rows of a text, as they come.
pub(super) struct Reader {
    text: Text,
    decoder: Decoder,
    records: Records,
    made: VecDeque<RecordBatch>,
}

impl Reader {
    pub(super) async fn open(text: Text, wanted: &Wanted) -> Result<Reader> {
        let Wanted { schema, projection, batch_rows } = wanted;
        let decoder = match &text.form.kind {
            TextKind::Csv(form) => {
                let decoder = CsvDecoder::new(&text.path, form, schema, projection, *batch_rows);
                Decoder::Csv(Box::new(decoder))
            }
            TextKind::Json(form) => {
                let decoder = JsonDecoder::new(&text.path, schema, projection, *batch_rows, form.columns)?;
                Decoder::Json(decoder)
            }
        };
        let records = Records::open(text.clone()).await?;
        Ok(Reader { text, decoder, records, made: VecDeque::new() })
    }

    /// The next batch.
    pub(super) async fn next(mut self) -> Result<Option<(RecordBatch, Reader)>> {
        let error = match self.batch().await {
            Ok(batch) => return Ok(batch.map(|batch| (batch, self))),
            Err(error) => error,
        };
        let is_array = self.text.is_part_of_array().await?;
        Err(if is_array { self.text.uncut() } else { error })
    }

    async fn batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.made.pop_front() {
                return Ok(Some(batch));
            }
            let Some((records, place)) = self.records.next().await? else { return Ok(None) };
            let unit = self.records.unit();
            let mut made = self.decoder.decode(&records, place, unit);
            if place.lines.is_none() && made.is_err() {
                // Once more, to name the line.
                let lines = self.text.lines_before(place.position).await?;
                made = self.decoder.decode(&records, Place { lines: Some(lines), ..place }, unit);
            }
            for batch in made?.into_iter().filter(|batch| 0 < batch.num_rows()) {
                self.made.push_back(as_frames_have_it(&batch)?);
            }
        }
    }
}

/// The batch with missing values where floats are no number, and with one zero.
fn as_frames_have_it(batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(array_without_nan).collect();
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &rows)?)
}
