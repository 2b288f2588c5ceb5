//! Frames given with a request: files, or values in the request itself.

use super::Failure;
use super::args::Names;
use super::context::Context;
use super::files::read_csv_with;
use super::value::{decode, scalar};
use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::ScalarValue;
use serde_json::Value as Json;
use std::sync::Arc;
use tharsis_dataframe::{
    Column, DataFrame, Value as Scalar, dtype_named, read_arrow, read_json, read_parquet,
};

/// Keys that an input may have.
pub(super) const KEYS: [&str; 13] = [
    "csv", "parquet", "arrow", "json", "opt", "lit", "columns", "dtypes", "dtype", "index", "names", "name",
    "tbl",
];

/// Keys of inputs that are tables.
const FILES: [&str; 5] = ["csv", "parquet", "arrow", "json", "tbl"];

/// Whether an input of a request is a table: a file of rows, or a literal of columns.
pub(super) fn is_table(input: &Json) -> bool {
    let literal = input.get("lit").is_some_and(Json::is_object) || input.get("columns").is_some();
    literal || FILES.iter().any(|key| input.get(key).is_some())
}

/// A frame given with a request.
pub(super) fn input(json: &Json, context: &Context) -> Result<DataFrame, Failure> {
    let json = json.get("tbl").unwrap_or(json);
    let frame = match json.get("lit") {
        Some(literal) => literal_frame(literal, json, context.part_rows)?,
        None => file(json, context)?,
    };
    let index = texts(json.get("index"))?;
    let index: Vec<String> = index.into_iter().flatten().collect();
    let names = match json.get("names") {
        None => index.iter().cloned().map(Some).collect(),
        names => texts(names)?,
    };
    frame.check()?;
    Ok(if index.is_empty() { frame } else { indexed(&frame, &index, names) })
}

/// The frame with columns as its index, under names that may differ.
fn indexed(frame: &DataFrame, index: &[String], names: Vec<Option<String>>) -> DataFrame {
    frame.set_index(index.iter().map(String::as_str)).with_index_names(names)
}

fn file(json: &Json, context: &Context) -> Result<DataFrame, Failure> {
    let path = |key: &str| {
        let name = json.get(key).and_then(Json::as_str)?;
        if name.contains("://") {
            return Some(name.to_owned());
        }
        Some(context.folder.join(name).to_string_lossy().into_owned())
    };
    if let Some(path) = path("csv") {
        let options = json.get("opt").and_then(Json::as_object).into_iter().flatten();
        let options = options.map(|(name, value)| Ok((name.clone(), decode(value, &Names::new())?)));
        return read_csv_with(&path, options.collect::<Result<_, Failure>>()?);
    }
    if let Some(path) = path("parquet") {
        return Ok(read_parquet(&path));
    }
    if let Some(path) = path("json") {
        return Ok(read_json(&path));
    }
    match path("arrow") {
        Some(path) => Ok(read_arrow(&path)),
        None => Err(Failure::missing(format!(
            "the input {json} is no table: a program over frames has {} and lit",
            FILES.join(", ")
        ))),
    }
}

/// The texts of a list, some of which may be null.
fn texts(json: Option<&Json>) -> Result<Vec<Option<String>>, Failure> {
    let text = |json: &Json| match json {
        Json::Null => Ok(None),
        Json::String(text) => Ok(Some(text.clone())),
        other => Err(Failure::value(format!("expected a label, found {other}"))),
    };
    match json {
        None | Some(Json::Null) => Ok(Vec::new()),
        Some(Json::Array(parts)) => parts.iter().map(text).collect(),
        Some(other) => Ok(vec![text(other)?]),
    }
}

/// A frame of values: columns by label, or a list of columns with a list of labels.
fn literal_frame(literal: &Json, json: &Json, part_rows: Option<usize>) -> Result<DataFrame, Failure> {
    let columns: Vec<(String, &Json)> = match literal {
        Json::Object(columns) => {
            let wanted = texts(json.get("columns"))?;
            let order: Vec<String> = if wanted.is_empty() {
                columns.keys().cloned().collect()
            } else {
                wanted.into_iter().flatten().collect()
            };
            let column = |label: String| match columns.get(&label) {
                Some(values) => Ok((label, values)),
                None => Err(Failure::new("KeyError", format!("no column {label:?} in the literal"))),
            };
            order.into_iter().map(column).collect::<Result<_, _>>()?
        }
        Json::Array(columns) => {
            let labels = texts(json.get("columns"))?.into_iter().map(Option::unwrap_or_default);
            let labels: Vec<String> = labels.collect();
            if labels.is_empty() && !columns.is_empty() {
                let text = "lit: a list of columns needs \"columns\", their labels; a tensor is no input of a program \
                            over frames";
                return Err(Failure::value(text));
            }
            if labels.len() != columns.len() {
                return Err(Failure::value(format!("{} columns for {} labels", columns.len(), labels.len())));
            }
            labels.into_iter().zip(columns).collect()
        }
        other => return Err(Failure::value(format!("lit: expected columns, found {other}"))),
    };
    let dtypes = json.get("dtypes").or_else(|| json.get("dtype"));
    let made = columns.into_iter().enumerate().map(|(at, (label, values))| {
        let dtype = dtypes.and_then(|dtypes| dtypes.get(label.as_str()).or_else(|| dtypes.get(at)));
        let dtype = match dtype {
            Some(Json::String(name)) => Some(column_dtype(name)?),
            _ => None,
        };
        let values = values.as_array().ok_or_else(|| {
            Failure::value(format!("lit: expected the values of {label:?} as a list, found {values}"))
        })?;
        let values = values.iter().map(scalar).collect::<Result<Vec<_>, _>>()?;
        Ok((label, column(values, dtype)?))
    });
    frame_of(made.collect::<Result<_, Failure>>()?, part_rows)
}

/// A frame of arrays, in parts of so many rows.
pub(super) fn frame_of(
    columns: Vec<(String, ArrayRef)>,
    part_rows: Option<usize>,
) -> Result<DataFrame, Failure> {
    let rows = columns.first().map_or(0, |(_, array)| array.len());
    if columns.iter().any(|(_, array)| array.len() != rows) {
        return Err(Failure::value("All arrays must be of the same length"));
    }
    let Some(part_rows) = part_rows.filter(|part| *part < rows) else {
        let columns =
            columns.iter().map(|(label, array)| (label.as_str(), Column::from_arrow(Arc::clone(array))));
        let frame = DataFrame::from_columns(columns);
        frame.check()?;
        return Ok(frame);
    };
    let fields: Vec<Field> =
        columns.iter().map(|(label, array)| Field::new(label, array.data_type().clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(tharsis_dataframe::Error::from)?;
    let parts = (0..rows).step_by(part_rows).map(|from| batch.slice(from, part_rows.min(rows - from)));
    Ok(DataFrame::from_batches(schema, parts.collect()))
}

/// The type for a name: those of pandas, and of times with any unit.
fn column_dtype(name: &str) -> Result<DataType, Failure> {
    if name == "date32" {
        return Ok(DataType::Date32);
    }
    let unit = |unit: &str| {
        use arrow::datatypes::TimeUnit;
        match unit {
            "s" => Some(TimeUnit::Second),
            "ms" => Some(TimeUnit::Millisecond),
            "us" => Some(TimeUnit::Microsecond),
            "ns" => Some(TimeUnit::Nanosecond),
            _ => None,
        }
    };
    let inside = |class: &str| name.strip_prefix(class)?.strip_suffix(']').map(str::to_owned);
    if let Some(inner) = inside("datetime64[") {
        let (unit_name, zone) = inner.split_once(", ").map_or((inner.as_str(), None), |(u, z)| (u, Some(z)));
        if let Some(unit) = unit(unit_name) {
            return Ok(DataType::Timestamp(unit, zone.map(Into::into)));
        }
    }
    if let Some(unit) = inside("timedelta64[").and_then(|inner| unit(&inner)) {
        return Ok(DataType::Duration(unit));
    }
    Ok(dtype_named(name)?)
}

/// An array of values, of a type or of the one that pandas finds for them.
pub(super) fn column(values: Vec<Scalar>, dtype: Option<DataType>) -> Result<ArrayRef, Failure> {
    let natural = natural(&values)?;
    let target = dtype.clone().unwrap_or_else(|| natural.clone());
    if values.is_empty() || natural == DataType::Null {
        return Ok(new_null_array(if dtype.is_none() { &DataType::Utf8 } else { &target }, values.len()));
    }
    // Whole numbers are read as such where the type is one: a float in between would round them.
    let through = if target.is_integer() && natural.is_numeric() { target.clone() } else { natural };
    let same = values.into_iter().map(|value| value.scalar().cast_to(&through));
    let made = same.collect::<Result<Vec<_>, _>>().and_then(ScalarValue::iter_to_array);
    let made = made.map_err(|error| Failure::kind(error.strip_backtrace()))?;
    Ok(cast(&made, &target).map_err(tharsis_dataframe::Error::from)?)
}

/// The type of a column of these values; whole numbers with missing ones are floats, as in pandas.
fn natural(values: &[Scalar]) -> Result<DataType, Failure> {
    let mut found = DataType::Null;
    let mut missing = false;
    for value in values {
        let dtype = value.dtype();
        missing |= value.is_missing();
        found = match (&found, &dtype) {
            (_, DataType::Null) => found,
            (DataType::Null, _) => dtype,
            (old, new) if old == new => found,
            (old, new) if old.is_numeric() && new.is_numeric() => DataType::Float64,
            (old, new) => {
                return Err(Failure::missing(format!("a column of {old} and {new} is not implemented")));
            }
        };
    }
    Ok(if missing && found.is_integer() { DataType::Float64 } else { found })
}

/// The name of a type of numbers in NumPy.
pub(super) fn numpy_name(dtype: &DataType) -> Option<&'static str> {
    Some(match dtype {
        DataType::Boolean => "|b1",
        DataType::Int8 => "|i1",
        DataType::Int16 => "<i2",
        DataType::Int32 => "<i4",
        DataType::Int64 => "<i8",
        DataType::UInt8 => "|u1",
        DataType::UInt16 => "<u2",
        DataType::UInt32 => "<u4",
        DataType::UInt64 => "<u8",
        DataType::Float32 => "<f4",
        DataType::Float64 => "<f8",
        _ => return None,
    })
}
