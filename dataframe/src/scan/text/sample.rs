//! A look at the first records of texts, which tells their columns.

use super::convert::{Classes, Meaning};
use super::csv::{self, CsvDecoder, fields};
use super::form::{CsvForm, TextKind};
use super::records::{Records, Text, labels};
use super::scanner::breaks;
use crate::error::{Error, FileFault, Result};
use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::collections::HashSet;
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
    let meaning = Meaning::of(form);
    loop {
        sample.bytes = place.position + first.len() as u64;
        for batch in decoder.decode(&first, place)? {
            sample.rows += batch.num_rows();
            for (classes, column) in sample.classes.iter_mut().zip(batch.columns()) {
                column.as_string::<i32>().iter().flatten().for_each(|text| classes.add(text, &meaning));
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
    let found = arrow::json::reader::infer_json_schema(Cursor::new(&sample), None);
    let corrupt = |error| Error::file(&text.path, FileFault::Corrupt, error);
    let (schema, _) = found.map_err(corrupt)?;
    let mut schema = in_order(&schema, &sample);
    let whole = whole_numbers(&schema, &sample).map_err(corrupt)?;
    let fields = schema.fields().iter().map(|field| {
        let dtype = match whole.iter().find(|(label, _)| label == field.name()) {
            None => return Ok(field.as_ref().clone()),
            Some((_, numbers)) => numbers.dtype(),
        };
        match dtype {
            Ok(dtype) => Ok(field.as_ref().clone().with_data_type(dtype)),
            Err(reason) => {
                let reason = format!("column {:?}: {reason}", field.name());
                Err(Error::file(&text.path, FileFault::Mismatch, reason))
            }
        }
    });
    let fields = fields.collect::<Result<Vec<Field>>>()?;
    schema = Schema::new_with_metadata(fields, schema.metadata().clone());
    Ok((Arc::new(schema), is_whole))
}

/// The numbers of a column that the library takes for floats: it has no larger integers than those of 64 bits
/// with a sign.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    float: bool,
    negative: bool,
    /// A whole number that only fits without a sign.
    large: bool,
    /// A whole number that fits into no type of integers.
    huge: bool,
}

impl Numbers {
    fn add(&mut self, text: &str) {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            self.float = true;
        } else if let Ok(number) = text.parse::<i64>() {
            self.negative |= number < 0;
        } else if text.parse::<u64>().is_ok() {
            self.large = true;
        } else {
            self.huge = true;
        }
    }

    /// The type of the column; the reason why none has all of the numbers.
    fn dtype(self) -> std::result::Result<DataType, &'static str> {
        match self {
            Numbers { huge: true, .. } => Err("a whole number of more than 64 bits"),
            Numbers { float: true, .. } => Ok(DataType::Float64),
            Numbers { large: true, negative: true, .. } => {
                Err("whole numbers below zero, and others that only fit into 64 bits without a sign")
            }
            Numbers { large: true, .. } => Ok(DataType::UInt64),
            _ => Ok(DataType::Float64),
        }
    }
}

/// The numbers of each column of floats, as they are written.
fn whole_numbers(
    schema: &Schema,
    lines: &[u8],
) -> std::result::Result<Vec<(String, Numbers)>, arrow::error::ArrowError> {
    let floats = schema.fields().iter().filter(|field| *field.data_type() == DataType::Float64);
    let texts: Vec<Field> = floats.map(|field| Field::new(field.name(), DataType::Utf8, true)).collect();
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let mut found: Vec<(String, Numbers)> =
        texts.iter().map(|field| (field.name().clone(), Numbers::default())).collect();
    let reader = arrow::json::ReaderBuilder::new(Arc::new(Schema::new(texts))).with_coerce_primitive(true);
    for batch in reader.with_batch_size(SAMPLE_ROWS).build(Cursor::new(lines))? {
        for ((_, numbers), column) in found.iter_mut().zip(batch?.columns()) {
            column.as_string::<i32>().iter().flatten().for_each(|text| numbers.add(text));
        }
    }
    Ok(found)
}

/// The columns in the order in which objects name them first. The library has them by their labels.
fn in_order(schema: &Schema, lines: &[u8]) -> Schema {
    let objects = serde_json::Deserializer::from_slice(lines).into_iter::<Labels>();
    let (mut known, mut order) = (HashSet::new(), Vec::new());
    // The sample may end within an object.
    for label in objects.map_while(std::result::Result::ok).flat_map(|object| object.0) {
        if known.insert(label.clone()) {
            order.extend(schema.index_of(&label));
        }
    }
    let rest = (0..schema.fields().len()).filter(|at| !known.contains(schema.field(*at).name()));
    let fields: Vec<Field> = order.iter().copied().chain(rest).map(|at| schema.field(at).clone()).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// The labels of an object, in their order.
struct Labels(Vec<String>);

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Labels, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Labels;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Labels, A::Error> {
                let mut labels = Vec::new();
                while let Some((label, IgnoredAny)) = map.next_entry()? {
                    labels.push(label);
                }
                Ok(Labels(labels))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

const SAMPLE_ROWS: usize = 4096;
