//! A look at the first records of texts, which tells their columns.

use super::convert::{Classes, Meaning};
use super::csv::{CsvDecoder, marks};
use super::form::{CsvForm, TextKind};
use super::records::{Records, Text, labels};
use crate::error::{Error, FileFault, Result};
use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use arrow::json::reader::infer_json_schema;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::collections::HashSet;
use std::io::Cursor;
use std::ops::Range;
use std::sync::Arc;
use tharsis_text_scan::csv::{fields, first_record};
use tharsis_text_scan::records::breaks;

pub(crate) use super::records::check_header;

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
        let record = first_record(&first, marks(form));
        // Lines without anything are no records.
        if !record.is_empty() {
            break (first, place, record);
        }
    };
    let mut header = fields(&first[record.clone()], marks(form));
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
    let mut decoder = texts(text, form, &sample.header, width);
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

/// A decoder of all columns as texts. Those without a label are numbered.
fn texts(text: &Text, form: &CsvForm, labels: &[String], width: usize) -> CsvDecoder {
    let label = |at: usize| labels.get(at).cloned().unwrap_or_else(|| at.to_string());
    let fields: Vec<Field> = (0..width).map(|at| Field::new(label(at), DataType::Utf8, true)).collect();
    let projection: Vec<usize> = (0..width).collect();
    CsvDecoder::new(&text.path, form, &Arc::new(Schema::new(fields)), &projection, SAMPLE_ROWS)
}

/// The columns of files of JSON, by so many bytes of them, as if they were one file; of only so many rows, if
/// a number is given. Gives whether one of them is an array, too.
pub(crate) async fn of_json(
    place: &str,
    texts: Vec<Text>,
    bytes: u64,
    rows: Option<usize>,
) -> Result<(SchemaRef, bool)> {
    let (mut sample, mut is_array) = (Vec::new(), false);
    let mut files: Vec<(String, Range<usize>)> = Vec::new();
    for text in texts {
        let begin = sample.len();
        let mut records = Records::open(text.clone()).await?;
        while (sample.len() as u64) < bytes
            && let Some((lines, _)) = records.next().await?
        {
            sample.extend_from_slice(&lines);
        }
        is_array |= records.is_array();
        if begin < sample.len() && !sample.ends_with(b"\n") {
            sample.push(b'\n');
        }
        files.push((text.path, begin..sample.len()));
        if bytes <= sample.len() as u64 {
            break;
        }
    }
    let found = infer_json_schema(Cursor::new(&sample), rows);
    let (schema, _) = found.map_err(|error| {
        let of_one = |(path, lines): (String, Range<usize>)| {
            let alone = infer_json_schema(Cursor::new(&sample[lines]), None).err()?;
            Some(Error::file(&path, FileFault::Corrupt, alone))
        };
        let first = files.into_iter().find_map(of_one);
        first.unwrap_or_else(|| Error::file(place, FileFault::Mismatch, error))
    })?;
    let schema = in_order(&schema, &sample);
    let numbers = numbers(&schema, &sample).map_err(|error| Error::file(place, FileFault::Corrupt, error))?;
    let mut numbers = numbers.iter();
    let typed = schema.fields().iter().map(|field| {
        typed(field, &mut numbers).map_err(|reason| {
            let reason = format!("column {:?}: {reason}", field.name());
            Error::file(place, FileFault::Mismatch, reason)
        })
    });
    let fields = typed.collect::<Result<Vec<FieldRef>>>()?;
    Ok((Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())), is_array))
}

/// The numbers of what the library takes for floats: it has no larger integers than those of 64 bits with a
/// sign.
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

    /// The type of them; the reason why none has all of the numbers. Floats round, those of CSV too.
    fn dtype(self) -> std::result::Result<DataType, &'static str> {
        match self {
            Numbers { float: true, .. } => Ok(DataType::Float64),
            Numbers { huge: true, .. } => Err("a whole number of more than 64 bits"),
            Numbers { large: true, negative: true, .. } => {
                Err("whole numbers below zero, and others that only fit into 64 bits without a sign")
            }
            Numbers { large: true, .. } => Ok(DataType::UInt64),
            _ => Ok(DataType::Float64),
        }
    }
}

/// The numbers of all floats of the columns, within other types too, as they are written.
fn numbers(schema: &Schema, lines: &[u8]) -> std::result::Result<Vec<Numbers>, ArrowError> {
    let with_floats = |field: &&FieldRef| 0 < floats(field.data_type());
    let columns: Vec<&FieldRef> = schema.fields().iter().filter(with_floats).collect();
    let mut found = vec![Numbers::default(); columns.iter().map(|field| floats(field.data_type())).sum()];
    if columns.is_empty() {
        return Ok(found);
    }
    let texts: Vec<Field> = columns
        .iter()
        .map(|field| field.as_ref().clone().with_data_type(as_texts(field.data_type())))
        .collect();
    // Values that do not fit are errors where the rows are read.
    let reader = ReaderBuilder::new(Arc::new(Schema::new(texts)))
        .with_coerce_primitive(true)
        .with_ignore_type_conflicts(true);
    for batch in reader.with_batch_size(SAMPLE_ROWS).build(Cursor::new(lines))? {
        let mut numbers = found.iter_mut();
        for (field, column) in columns.iter().zip(batch?.columns()) {
            add(field.data_type(), column, &mut numbers);
        }
        // Beside a float all numbers are floats.
        if found.iter().all(|numbers| numbers.float) {
            break;
        }
    }
    Ok(found)
}

/// Number of types of floats in a type.
fn floats(dtype: &DataType) -> usize {
    match dtype {
        DataType::Float64 => 1,
        DataType::List(field) => floats(field.data_type()),
        DataType::Struct(fields) => fields.iter().map(|field| floats(field.data_type())).sum(),
        _ => 0,
    }
}

/// The type with texts in the place of floats.
fn as_texts(dtype: &DataType) -> DataType {
    let of = |field: &FieldRef| {
        let dtype = as_texts(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(dtype))
    };
    match dtype {
        DataType::Float64 => DataType::Utf8,
        DataType::List(field) => DataType::List(of(field)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(of).collect()),
        other => other.clone(),
    }
}

/// Adds texts of numbers to those of the floats of a type, one after the other.
fn add(dtype: &DataType, texts: &ArrayRef, found: &mut std::slice::IterMut<'_, Numbers>) {
    match dtype {
        DataType::Float64 => {
            if let Some(numbers) = found.next() {
                texts.as_string::<i32>().iter().flatten().for_each(|text| numbers.add(text));
            }
        }
        DataType::List(field) => add(field.data_type(), texts.as_list::<i32>().values(), found),
        DataType::Struct(fields) => {
            let columns = texts.as_struct().columns();
            fields.iter().zip(columns).for_each(|(field, column)| add(field.data_type(), column, found));
        }
        _ => {}
    }
}

/// The field with types that have all numbers in the place of floats; the reason why none has them.
fn typed(
    field: &FieldRef,
    numbers: &mut std::slice::Iter<'_, Numbers>,
) -> std::result::Result<FieldRef, &'static str> {
    let dtype = match field.data_type() {
        DataType::Float64 => numbers.next().map_or(Ok(DataType::Float64), |numbers| numbers.dtype())?,
        DataType::List(inner) => DataType::List(typed(inner, numbers)?),
        DataType::Struct(fields) => DataType::Struct(
            fields.iter().map(|inner| typed(inner, numbers)).collect::<std::result::Result<_, _>>()?,
        ),
        _ => return Ok(Arc::clone(field)),
    };
    Ok(Arc::new(field.as_ref().clone().with_data_type(dtype)))
}

/// The columns in the order in which objects name them first. The library has them by their labels.
fn in_order(schema: &Schema, lines: &[u8]) -> Schema {
    let objects = serde_json::Deserializer::from_slice(lines).into_iter::<Labels>();
    let (mut known, mut order) = (HashSet::new(), Vec::new());
    // The sample may end within an object.
    for object in objects.map_while(std::result::Result::ok) {
        for label in object.0 {
            if !known.contains(&label) {
                order.extend(schema.index_of(&label));
                known.insert(label);
            }
        }
        // Most files name all columns in the first object.
        if order.len() == schema.fields().len() {
            break;
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
