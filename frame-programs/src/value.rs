//! Values of programs, and their JSON encodings.

use super::Failure;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use serde_json::Value as Json;
use std::collections::HashMap;
use tharsis_dataframe::{DataFrame, Ends, GroupBy, Index, Resample, Series, Value as Scalar, dtype_named};

/// Values of names in a program, and arguments of operations.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// Python's `None`.
    None,
    /// A number, a text, a truth value, a time, or a missing value.
    Scalar(Scalar),
    /// A type of columns.
    DType(DataType),
    /// Start, stop and step.
    Slice(Option<i64>, Option<i64>, Option<i64>),
    /// A slice between labels, both included.
    Labels(Option<Scalar>, Option<Scalar>),
    /// A list, or a tuple where the difference does not matter.
    List(Vec<Value>),
    /// A tuple, for choices of rows and columns.
    Tuple(Vec<Value>),
    /// A dictionary, in its order.
    Dict(Vec<(Value, Value)>),
    Frame(DataFrame),
    Series(Series),
    /// Labels of rows.
    Index(Index),
    /// Groups of a frame, or of one column of it.
    Groups(Box<Groups>),
    /// Windows over rows.
    Windows(Box<Windows>),
    /// Spans of time of a frame, or of one column of it.
    Spans(Box<Spans>),
    /// A frame or series before a choice of rows by `loc`, `iloc`, `at` or `iat`.
    Indexer(Box<Value>, &'static str),
    /// Numbers of a shape: the name of their type in NumPy, and the values in rows.
    Array(&'static str, Vec<usize>, Vec<Scalar>),
    /// A small result whose columns hold values of several types.
    Objects(Box<Objects>),
}

/// A small table whose columns may hold values of several types, which no frame does. It can be a result;
/// steps do not take it.
#[derive(Clone, Debug)]
pub(super) struct Objects {
    pub(super) index: Vec<Scalar>,
    pub(super) columns: Vec<(String, Vec<Scalar>)>,
    /// The name, if it is a series.
    pub(super) name: Option<Option<String>>,
}

/// Windows over the rows of something.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    /// A frame, a series or groups.
    pub(super) of: Value,
    pub(super) kind: WindowKind,
    /// Every how many rows a window ends.
    pub(super) step: usize,
}

/// The rows of windows, or their weights.
#[derive(Clone, Debug)]
pub(super) enum WindowKind {
    /// This many rows, the least number of values, whether the row is in the middle, and the ends.
    Rows(usize, Option<usize>, bool, Ends),
    /// All rows so far.
    Growing(usize),
    /// A span of time: its length, the least number of values, its ends, and the column of times.
    Span(String, usize, Ends, Option<String>),
    /// Weights that fade: the name of the measure and its value, the least number of values, whether weights
    /// are adjusted, whether missing values are ignored.
    Fading(&'static str, f64, usize, bool, bool),
}

/// Rows by spans of time.
#[derive(Clone, Debug)]
pub(super) struct Spans {
    pub(super) by: Resample,
    /// The column, if the result is a series, and its name.
    pub(super) single: Option<(String, Option<String>)>,
    /// Whether the times are a column, so that rows cannot be put at the labels of spans.
    pub(super) on: bool,
}

/// Groups of rows.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    pub(super) by: GroupBy,
    /// The column, if the result is a series.
    pub(super) single: Option<String>,
    pub(super) as_index: bool,
}

impl Value {
    /// Its kind, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Scalar(_) => "a value",
            Value::DType(_) => "a dtype",
            Value::Slice(..) => "a slice",
            Value::Labels(..) => "a slice of labels",
            Value::List(_) => "a list",
            Value::Tuple(_) => "a tuple",
            Value::Dict(_) => "a dictionary",
            Value::Frame(_) => "a frame",
            Value::Series(_) => "a series",
            Value::Index(_) => "an index",
            Value::Groups(_) => "groups",
            Value::Windows(_) => "windows",
            Value::Spans(_) => "spans of time",
            Value::Indexer(..) => "an indexer",
            Value::Array(..) => "an array",
            Value::Objects(_) => "values of several types",
        }
    }

    /// The value with lists in place of tuples.
    pub(super) fn untupled(self) -> Value {
        match self {
            Value::Tuple(parts) | Value::List(parts) => {
                Value::List(parts.into_iter().map(Value::untupled).collect())
            }
            Value::Dict(entries) => {
                let entries = entries.into_iter();
                Value::Dict(entries.map(|(key, value)| (key.untupled(), value.untupled())).collect())
            }
            other => other,
        }
    }

    /// The values of a list, a series or an index, or one value.
    pub(super) fn scalars(self) -> Result<Vec<Scalar>, Failure> {
        match self {
            Value::List(parts) | Value::Tuple(parts) => parts.into_iter().map(Value::scalar).collect(),
            Value::Series(series) => Ok(Index::of_series(&series).values()?),
            Value::Index(index) => Ok(index.values()?),
            Value::Array(_, _, values) => Ok(values),
            one => Ok(vec![one.scalar()?]),
        }
    }

    pub(super) fn index(self) -> Result<Index, Failure> {
        match self {
            Value::Index(index) => Ok(index),
            Value::Series(series) => Ok(Index::of_series(&series)),
            other => Err(Failure::kind(format!("expected an index, found {}", other.kind()))),
        }
    }

    pub(super) fn frame(self) -> Result<DataFrame, Failure> {
        match self {
            Value::Frame(frame) => Ok(frame),
            Value::Objects(_) => Err(Failure::missing("a step over values of several types")),
            other => Err(Failure::kind(format!("expected a frame, found {}", other.kind()))),
        }
    }

    pub(super) fn series(self) -> Result<Series, Failure> {
        match self {
            Value::Series(series) => Ok(series),
            Value::Objects(_) => Err(Failure::missing("a step over values of several types")),
            other => Err(Failure::kind(format!("expected a series, found {}", other.kind()))),
        }
    }

    /// One value; `None` is a missing one.
    pub(super) fn scalar(self) -> Result<Scalar, Failure> {
        match self {
            Value::Scalar(scalar) => Ok(scalar),
            Value::None => Ok(Scalar::missing()),
            other => Err(Failure::kind(format!("expected a value, found {}", other.kind()))),
        }
    }

    pub(super) fn text(&self) -> Result<String, Failure> {
        match self {
            Value::Scalar(scalar) if scalar.as_str().is_some() => {
                Ok(scalar.as_str().unwrap_or_default().to_owned())
            }
            Value::Scalar(scalar) => Err(Failure::kind(format!("expected a text, found {scalar}"))),
            other => Err(Failure::kind(format!("expected a text, found {}", other.kind()))),
        }
    }

    /// A text, or a list of texts.
    pub(super) fn texts(&self) -> Result<Vec<String>, Failure> {
        match self {
            Value::List(parts) | Value::Tuple(parts) => parts.iter().map(Value::text).collect(),
            Value::Index(index) => {
                Ok(index.to_list::<String>()?.into_iter().map(Option::unwrap_or_default).collect())
            }
            other => Ok(vec![other.text()?]),
        }
    }

    pub(super) fn integer(&self) -> Result<i64, Failure> {
        match self {
            Value::Scalar(scalar) if scalar.dtype().is_integer() => {
                scalar.as_i64().ok_or_else(|| Failure::value(format!("{scalar} is out of bounds")))
            }
            Value::Scalar(scalar) => Err(Failure::kind(format!("expected an integer, found {scalar}"))),
            other => Err(Failure::kind(format!("expected an integer, found {}", other.kind()))),
        }
    }

    pub(super) fn flag(&self) -> Result<bool, Failure> {
        match self {
            Value::Scalar(scalar) if scalar.as_bool().is_some() => Ok(scalar.as_bool() == Some(true)),
            Value::Scalar(scalar) => Err(Failure::kind(format!("expected true or false, found {scalar}"))),
            other => Err(Failure::kind(format!("expected true or false, found {}", other.kind()))),
        }
    }

    pub(super) fn dtype(&self) -> Result<DataType, Failure> {
        match self {
            Value::DType(dtype) => Ok(dtype.clone()),
            other => Ok(dtype_named(&other.text()?)?),
        }
    }
}

type Names = HashMap<String, Value>;

/// Decodes the value of an argument.
pub(super) fn decode(json: &Json, names: &Names) -> Result<Value, Failure> {
    match json {
        Json::Null => Ok(Value::None),
        Json::Array(parts) => {
            Ok(Value::List(parts.iter().map(|part| decode(part, names)).collect::<Result<_, _>>()?))
        }
        // A frame may be called like an encoding.
        Json::Object(object) if object.values().all(is_reference) && !object.contains_key("$") => {
            dictionary(json, names)
        }
        Json::Object(object) => match (object.iter().next(), object.len()) {
            (Some((tag, body)), 1) => tagged(tag, body, json, names),
            _ if object.contains_key("ts") => Ok(Value::Scalar(scalar(json)?)),
            _ => Err(Failure::missing(format!("the argument {json} is not implemented"))),
        },
        _ => Ok(Value::Scalar(scalar(json)?)),
    }
}

/// Whether a value of a program is another one's name.
fn is_reference(json: &Json) -> bool {
    json.as_object().is_some_and(|object| object.len() == 1 && object.contains_key("$"))
}

fn tagged(tag: &str, body: &Json, whole: &Json, names: &Names) -> Result<Value, Failure> {
    let text = || body.as_str().ok_or_else(|| Failure::value(format!("{tag}: expected text, found {body}")));
    match tag {
        "$" => {
            let name = text()?;
            let found = names.get(name).cloned();
            found.ok_or_else(|| Failure::new("KeyError", format!("no value named {name:?}")))
        }
        "dt" => Ok(Value::DType(dtype_named(text()?)?)),
        "t" => match decode(body, names)? {
            Value::List(parts) => Ok(Value::Tuple(parts)),
            _ => Err(Failure::value(format!("t: expected a list, found {body}"))),
        },
        "s" => slice(body),
        "o" => dictionary(body, names),
        "f" | "i" | "na" | "ts" | "td" => Ok(Value::Scalar(scalar(whole)?)),
        other => Err(Failure::missing(format!("the encoding {other:?} is not implemented"))),
    }
}

fn slice(body: &Json) -> Result<Value, Failure> {
    let [start, stop, step] = body.as_array().map(Vec::as_slice).unwrap_or_default() else {
        return Err(Failure::value(format!("a slice is [start, stop, step], found {body}")));
    };
    let is_label = |json: &Json| !json.is_null() && !json.is_i64();
    if (is_label(start) || is_label(stop)) && step.is_null() {
        let bound = |json: &Json| if json.is_null() { Ok(None) } else { scalar(json).map(Some) };
        return Ok(Value::Labels(bound(start)?, bound(stop)?));
    }
    let part = |json: &Json| match json {
        Json::Null => Ok(None),
        bound => bound
            .as_i64()
            .map(Some)
            .ok_or_else(|| Failure::kind(format!("slice indices must be integers or null, found {bound}"))),
    };
    Ok(Value::Slice(part(start)?, part(stop)?, part(step)?))
}

fn dictionary(body: &Json, names: &Names) -> Result<Value, Failure> {
    let entries: Result<Vec<(Value, Value)>, Failure> = match body {
        Json::Object(object) => {
            let key = |key: &String| Value::Scalar(Scalar::from(key.as_str()));
            object.iter().map(|(name, value)| Ok((key(name), decode(value, names)?))).collect()
        }
        Json::Array(pairs) => {
            let pair = |pair: &Json| match pair.as_array().map(Vec::as_slice) {
                Some([key, value]) => Ok((decode(key, names)?, decode(value, names)?)),
                _ => Err(Failure::value(format!("o: expected [key, value], found {pair}"))),
            };
            pairs.iter().map(pair).collect()
        }
        other => Err(Failure::value(format!("o: expected a dictionary, found {other}"))),
    };
    Ok(Value::Dict(entries?))
}

/// Decodes one value of a column, or of an argument.
pub(super) fn scalar(json: &Json) -> Result<Scalar, Failure> {
    let bad = || Failure::value(format!("expected a value, found {json}"));
    match json {
        Json::Null => Ok(Scalar::missing()),
        Json::Bool(truth) => Ok(Scalar::from(*truth)),
        Json::String(text) => Ok(Scalar::from(text.as_str())),
        Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(whole), ..) => Ok(Scalar::from(whole)),
            (_, Some(whole), _) => Ok(Scalar::from(whole)),
            (.., Some(float)) => Ok(Scalar::from(float)),
            _ => Err(bad()),
        },
        Json::Object(object) => {
            if object.contains_key("na") {
                return Ok(Scalar::missing());
            }
            if let Some(float) = object.get("f") {
                let float = parse_float(float).ok_or_else(bad)?;
                return Ok(Scalar::from(float));
            }
            if let Some(digits) = object.get("i").and_then(Json::as_str) {
                let small = digits.parse::<i64>().map(Scalar::from);
                return small.or_else(|_| digits.parse::<u64>().map(Scalar::from)).map_err(|_| bad());
            }
            if let Some(time) = object.get("ts").and_then(Json::as_str) {
                return timestamp(time, object.get("tz").and_then(Json::as_str), object.get("u"));
            }
            if let Some([count, unit]) = object.get("td").and_then(Json::as_array).map(Vec::as_slice) {
                return duration(count.as_i64().ok_or_else(bad)?, unit.as_str().ok_or_else(bad)?);
            }
            Err(bad())
        }
        Json::Array(_) => Err(bad()),
    }
}

fn timestamp(text: &str, zone: Option<&str>, unit: Option<&Json>) -> Result<Scalar, Failure> {
    let unit = unit_named(unit.and_then(Json::as_str).unwrap_or("ns"))?;
    let text = ScalarValue::Utf8(Some(text.to_owned()));
    let time = text.cast_to(&DataType::Timestamp(unit, zone.map(Into::into)));
    Ok(Scalar::of(time.map_err(|error| Failure::value(error.strip_backtrace()))?))
}

fn duration(count: i64, unit: &str) -> Result<Scalar, Failure> {
    use arrow::datatypes::TimeUnit;
    Ok(Scalar::of(match unit_named(unit)? {
        TimeUnit::Second => ScalarValue::DurationSecond(Some(count)),
        TimeUnit::Millisecond => ScalarValue::DurationMillisecond(Some(count)),
        TimeUnit::Microsecond => ScalarValue::DurationMicrosecond(Some(count)),
        TimeUnit::Nanosecond => ScalarValue::DurationNanosecond(Some(count)),
    }))
}

fn unit_named(unit: &str) -> Result<arrow::datatypes::TimeUnit, Failure> {
    use arrow::datatypes::TimeUnit;
    match unit {
        "s" => Ok(TimeUnit::Second),
        "ms" => Ok(TimeUnit::Millisecond),
        "us" => Ok(TimeUnit::Microsecond),
        "ns" => Ok(TimeUnit::Nanosecond),
        other => Err(Failure::value(format!("no unit of time {other:?}; there are s, ms, us, ns"))),
    }
}

/// `nan`, `inf`, `-inf`, a hexadecimal float, or a decimal one.
fn parse_float(json: &Json) -> Option<f64> {
    let text = match json {
        Json::Number(number) => return number.as_f64(),
        other => other.as_str()?.to_ascii_lowercase(),
    };
    let (sign, bare) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(&text)),
    };
    let Some(hex) = bare.strip_prefix("0x") else {
        return bare.parse::<f64>().ok().map(|value| sign * value);
    };
    let (mantissa, exponent) = hex.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = u64::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
    let exponent = exponent.parse::<i32>().ok()?.checked_sub(4 * fraction.len() as i32)?;
    // Scaled in two steps, so that subnormal results are rounded once.
    let half = exponent / 2;
    Some(sign * (digits as f64 * 2f64.powi(half)) * 2f64.powi(exponent - half))
}

/// Those of these values that pandas compares with values of a type. A missing number is one of floats, but
/// `None` is not; a missing time is one of times if only times are given beside it; texts are no times.
pub(super) fn comparable(values: Vec<Scalar>, dtype: &DataType) -> Vec<Scalar> {
    let times = values.iter().filter(|value| !value.is_missing()).collect::<Vec<_>>();
    let times = !times.is_empty() && times.iter().all(|value| value.dtype().is_temporal());
    let is_comparable = |value: &Scalar| match (value.is_missing(), dtype) {
        (true, dtype) if dtype.is_temporal() => times,
        (true, DataType::Boolean) => !value.dtype().is_floating(),
        (true, dtype) if dtype.is_numeric() => value.dtype().is_floating(),
        (false, dtype) if dtype.is_temporal() => value.dtype().is_temporal(),
        _ => true,
    };
    values.into_iter().filter(is_comparable).collect()
}
