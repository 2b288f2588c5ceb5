//! Results as JSON, large tables as files.

use super::Failure;
use super::context::Context;
use super::value::{Objects, Value};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::ipc::writer::FileWriter;
use datafusion::common::ScalarValue;
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::Arc;
use tharsis_dataframe::{DataFrame, Error, Table, Value as Scalar};

/// Tables with more rows go to files, if the request names a folder.
pub const INLINE_ROWS_MAX: usize = 1000;

/// Turns values into JSON, and counts what it took to compute them.
pub(super) struct Encoder<'a> {
    context: &'a Context,
    files: usize,
    pub(super) tasks: usize,
    pub(super) stages: usize,
    pub(super) bytes: usize,
    pub(super) retries: u64,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(context: &'a Context) -> Encoder<'a> {
        Encoder { context, files: 0, tasks: 0, stages: 0, bytes: 0, retries: 0 }
    }

    pub(super) fn encode(&mut self, name: &str, value: &Value) -> Result<Json, Failure> {
        Ok(match value {
            Value::None => Json::Null,
            Value::Scalar(value) => scalar(value),
            Value::DType(dtype) => json!({"dt": dtype_name(dtype)}),
            Value::Slice(start, stop, step) => json!({"s": [start, stop, step]}),
            Value::Labels(from, to) => {
                json!({"s": [from.as_ref().map(scalar), to.as_ref().map(scalar), Json::Null]})
            }
            Value::Array(dtype, shape, values) => {
                json!({"arr": {"dtype": dtype, "shape": shape, "lit": shaped(shape, values)}})
            }
            Value::List(parts) | Value::Tuple(parts) => {
                json!({"t": parts.iter().map(|part| self.encode(name, part)).collect::<Result<Vec<_>, _>>()?})
            }
            Value::Dict(entries) => {
                let entries = entries.iter();
                let pair =
                    entries.map(|(key, value)| Ok([self.encode(name, key)?, self.encode(name, value)?]));
                json!({"o": pair.collect::<Result<Vec<_>, Failure>>()?})
            }
            Value::Frame(frame) => json!({"tbl": self.table(name, frame)?}),
            Value::Series(series) => {
                let mut table = self.table(name, &series.to_frame())?;
                table["name"] = json!(series.name());
                json!({"tbl": table})
            }
            Value::Index(index) => {
                // As series, or as frames of several levels.
                let mut table = self.table(name, &index.to_frame())?;
                if let [level] = index.names() {
                    table["name"] = json!(level);
                }
                json!({"tbl": table})
            }
            Value::Objects(objects) => json!({"tbl": mixed(objects)}),
            Value::Groups(_) | Value::Windows(_) | Value::Spans(_) | Value::Indexer(..) => {
                return Err(Failure::missing(format!("{} as a result", value.kind())));
            }
        })
    }

    fn table(&mut self, name: &str, frame: &DataFrame) -> Result<Json, Failure> {
        let wants_plan_only = !self.context.values && !self.context.metrics;
        if wants_plan_only {
            let stages = frame.stages(&*self.context.executor)?;
            self.stages += stages.count();
            self.tasks += (0..stages.count()).map(|stage| stages.tasks_of(stage)).sum::<usize>();
            return Ok(Json::Null);
        }
        let (table, metrics) = frame.collect_with_metrics(&*self.context.executor)?;
        self.stages += metrics.stages.len();
        self.tasks += metrics.stages.iter().map(|stage| stage.tasks).sum::<usize>();
        self.bytes = self.bytes.max(metrics.stages.iter().map(|stage| stage.bytes).sum());
        self.retries += metrics.retries;
        self.rows(name, &table)
    }

    fn rows(&mut self, name: &str, table: &Table) -> Result<Json, Failure> {
        let labels = labels(table);
        let levels = table.index_names().len();
        let mut json = json!({"index": labels[..levels]});
        if labels[..levels].iter().map(Some).ne(table.index_names().iter().map(Option::as_ref)) {
            json["names"] = json!(table.index_names());
        }
        let batch = table.batch();
        if let Some(folder) = self.context.results.as_ref().filter(|_| INLINE_ROWS_MAX < table.len()) {
            let file = match self.files {
                0 => format!("{}.arrow", file_stem(name)),
                number => format!("{}.{number}.arrow", file_stem(name)),
            };
            self.files += 1;
            write(folder, &file, batch, &labels)?;
            json["arrow"] = json!(file);
            return Ok(json);
        }
        let dtypes = batch.columns().iter().map(|array| dtype_name(array.data_type()));
        json["dtypes"] = dtypes.collect();
        json["columns"] = json!(labels);
        let columns = batch.columns().iter().map(values).collect::<Result<Vec<_>, _>>();
        json["lit"] = Json::Array(columns?);
        Ok(json)
    }
}

/// A table whose columns hold values of several types, with one level of labels.
fn mixed(objects: &Objects) -> Json {
    let level = "__index_level_0__";
    let values = |values: &[Scalar]| values.iter().map(scalar).collect::<Json>();
    let labels: Vec<&str> = objects.columns.iter().map(|(label, _)| label.as_str()).collect();
    let lits: Vec<Json> = objects.columns.iter().map(|(_, column)| values(column)).collect();
    let index_type =
        objects.index.first().map_or_else(|| "object".to_owned(), |label| dtype_name(&label.dtype()));
    let dtypes: Vec<String> =
        std::iter::once(index_type).chain(labels.iter().map(|_| "object".to_owned())).collect();
    let mut json = json!({"index": [level], "names": [Json::Null], "dtypes": dtypes,
        "columns": std::iter::once(level).chain(labels).collect::<Vec<_>>(),
        "lit": std::iter::once(values(&objects.index)).chain(lits).collect::<Vec<_>>()});
    if let Some(name) = &objects.name {
        json["name"] = json!(name);
    }
    json
}

/// The labels of a table's columns in a reply: levels of the index under their names, if these are free.
fn labels(table: &Table) -> Vec<String> {
    let columns = table.columns();
    let mut labels: Vec<String> = Vec::new();
    for (at, name) in table.index_names().iter().enumerate() {
        let free = name.as_ref().filter(|name| !columns.contains(name) && !labels.contains(name));
        labels.push(free.cloned().unwrap_or_else(|| format!("__index_level_{at}__")));
    }
    labels.extend(columns);
    labels
}

/// A name of a program as a part of a file's name: it must not lead out of the folder.
fn file_stem(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    name.chars().take(64).map(kept).collect()
}

fn write(folder: &Path, file: &str, batch: &RecordBatch, labels: &[String]) -> Result<(), Failure> {
    let path = folder.join(file);
    let failed =
        |error: &dyn std::fmt::Display| Failure::new("OSError", format!("{}: {error}", path.display()));
    let fields = labels.iter().zip(batch.columns());
    let fields: Vec<Field> =
        fields.map(|(label, array)| Field::new(label, array.data_type().clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec()).map_err(Error::from)?;
    std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    let target = std::fs::File::create(&path).map_err(|error| failed(&error))?;
    let mut writer = FileWriter::try_new(target, &schema).map_err(|error| failed(&error))?;
    writer.write(&batch).and_then(|()| writer.finish()).map_err(|error| failed(&error))
}

/// Values as nested lists of a shape.
fn shaped(shape: &[usize], values: &[Scalar]) -> Json {
    match shape {
        [_, rest @ ..] if !rest.is_empty() => {
            let rows = values.chunks(rest.iter().product::<usize>().max(1));
            rows.map(|row| shaped(rest, row)).collect()
        }
        _ => values.iter().map(scalar).collect(),
    }
}

fn values(array: &ArrayRef) -> Result<Json, Failure> {
    let value = |row| Ok(scalar(&Scalar::from_array(array, row)?));
    Ok(Json::Array((0..array.len()).map(value).collect::<Result<_, Failure>>()?))
}

/// One value: as JSON where that can say it, else in an encoding.
fn scalar(value: &Scalar) -> Json {
    if value.is_missing() {
        return json!({"na": 1});
    }
    if let Some(truth) = value.as_bool() {
        return json!(truth);
    }
    if let Some(text) = value.as_str() {
        return json!(text);
    }
    match value.scalar() {
        ScalarValue::UInt64(Some(whole)) => return json!(whole),
        ScalarValue::DurationSecond(Some(count)) => return json!({"td": [count, "s"]}),
        ScalarValue::DurationMillisecond(Some(count)) => return json!({"td": [count, "ms"]}),
        ScalarValue::DurationMicrosecond(Some(count)) => return json!({"td": [count, "us"]}),
        ScalarValue::DurationNanosecond(Some(count)) => return json!({"td": [count, "ns"]}),
        ScalarValue::Dictionary(_, inner) => return scalar(&Scalar::of((**inner).clone())),
        _ => {}
    }
    let dtype = value.dtype();
    match &dtype {
        DataType::Timestamp(unit, zone) => time(value, *unit, zone.as_deref()),
        dtype if dtype.is_integer() => value.as_i64().map_or(Json::Null, |whole| json!(whole)),
        dtype if dtype.is_floating() => match value.as_f64() {
            Some(float) if float.is_finite() => json!(float),
            Some(float) if float.is_nan() => json!({"f": "nan"}),
            Some(float) if float < 0.0 => json!({"f": "-inf"}),
            Some(_) => json!({"f": "inf"}),
            None => json!({"f": "nan"}),
        },
        _ => json!(value.scalar().to_string()),
    }
}

fn time(value: &Scalar, unit: TimeUnit, zone: Option<&str>) -> Json {
    let plain = value.scalar().cast_to(&DataType::Timestamp(unit, zone.map(Into::into)));
    let text = plain.and_then(|plain| plain.cast_to(&DataType::Utf8));
    let text = text.map(|text| Scalar::of(text).as_str().unwrap_or_default().to_owned()).unwrap_or_default();
    json!({"ts": text, "tz": zone, "u": unit_name(unit)})
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

/// The pandas name of a type.
pub(super) fn dtype_name(dtype: &DataType) -> String {
    match dtype {
        DataType::Boolean => "bool".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "str".to_owned(),
        DataType::Float64 => "float64".to_owned(),
        DataType::Float32 => "float32".to_owned(),
        DataType::Float16 => "float16".to_owned(),
        DataType::Null => "object".to_owned(),
        DataType::Timestamp(unit, None) => format!("datetime64[{}]", unit_name(*unit)),
        DataType::Timestamp(unit, Some(zone)) => format!("datetime64[{}, {zone}]", unit_name(*unit)),
        DataType::Duration(unit) => format!("timedelta64[{}]", unit_name(*unit)),
        other => other.to_string().to_lowercase(),
    }
}
