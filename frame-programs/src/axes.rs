//! Labels of rows and columns: `reindex`, `align`, levels, and what tells of a whole series or frame.

use super::Failure;
use super::args::{Args, strs};
use super::input::{column, frame_of};
use super::places::{Either, level_at};
use super::row::{Row, both};
use super::value::Value;
use tharsis_dataframe::{DataFrame, Index, JoinKind, Series, Value as Scalar, lit};

pub(super) const AXES: &[Row] = both!(
    "reindex" "(index=None, columns=None, fill_value=NaN)" "the rows with these labels, in this order" reindex,
    "reindex_like" "(other)" "the rows and columns with the labels of another" reindex_like,
    "align" "(other, join='outer', fill_value=None)" "both with the same labels, as a tuple" align,
    "set_axis" "(labels, axis=0)" "the same values with other labels" set_axis,
    "swaplevel" "(i=-2, j=-1)" "two levels of the index in each other's place" swaplevel,
    "droplevel" "(level)" "without one level of the index" droplevel,
    "reorder_levels" "(order)" "the levels of the index in another order" reorder_levels,
    "rename_axis" "(mapper=None, index=None)" "names for the levels of the index" rename_axis,
    "first_valid_index" "()" "the label of the first value" valid_index,
    "last_valid_index" "()" "the label of the last value" valid_index,
    "add_prefix" "(prefix)" "a text before each label" affix,
    "add_suffix" "(suffix)" "a text behind each label" affix,
    "equals" "(other)" "whether both have the same labels and values" equals,
    "empty" "()" "whether there is no row" is_empty,
    "ndim" "()" "the number of dimensions" ndim,
    "axes" "()" "the labels of rows, and of columns" axes,
    "keys" "()" "the labels: of columns, or of a series' rows" keys,
    "combine_first" "(other)" "these values, others where they are missing" combine,
    "update" "(other)" "these values, others where these are there" combine,
    "items" "()" "each label with its values" items,
    "values" "()" "the values as an array" values,
    "to_numpy" "()" "the values as an array" values,
    "memory_usage" "(index=True)" "the bytes of each column in memory" memory_usage
);

fn reindex(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let fill = args.given(usize::MAX, "fill_value").map(Value::scalar).transpose()?;
    let fill = fill.filter(|fill| !fill.is_missing() && fill.as_f64().is_none_or(|fill| !fill.is_nan()));
    let of_columns = args.axis(usize::MAX)?;
    let labels = args.given(1, "labels").or_else(|| args.given(usize::MAX, "index"));
    let columns = args.texts(usize::MAX, "columns")?;
    let (labels, columns) = match (labels, of_columns) {
        (Some(labels), true) => (None, Some(labels.texts()?)),
        (labels, _) => (labels, columns),
    };
    let labels = labels.map(Value::scalars).transpose()?;
    Ok(object.through(|frame| {
        let rows = match (labels, &fill) {
            (None, _) => frame.clone(),
            (Some(labels), None) => frame.reindex(labels),
            (Some(labels), Some(fill)) => frame.reindex_filled(labels, fill.clone()),
        };
        match (columns, &fill) {
            (None, _) => rows,
            (Some(columns), None) => rows.reindex_columns(strs(&columns)),
            (Some(columns), Some(fill)) => {
                let known = rows.columns().unwrap_or_default();
                let lacking = columns.iter().filter(|label| !known.contains(label));
                let filled = lacking.fold(rows, |rows, label| rows.assign(label, fill.clone()));
                filled.select(strs(&columns))
            }
        }
    }))
}

fn reindex_like(_: &str, args: &mut Args) -> Result<Value, Failure> {
    match Either::of(args)? {
        Either::Frame(frame) => Ok(Value::Frame(frame.reindex_like(&args.need(1, "other")?.frame()?))),
        Either::Series(series) => Ok(Value::Series(series.reindex_like(&args.need(1, "other")?.series()?))),
    }
}

/// The rows that a join keeps, by its name.
pub(super) fn join_kind(name: &str) -> JoinKind {
    match name {
        "left" => JoinKind::Left,
        "right" => JoinKind::Right,
        "inner" => JoinKind::Inner,
        _ => JoinKind::Outer,
    }
}

fn align(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let kind = join_kind(args.choice(2, "join", &["outer", "inner", "left", "right"])?);
    let other = args.need(1, "other")?;
    let fill = args.given(usize::MAX, "fill_value").map(Value::scalar).transpose()?;
    let axis = args.given(usize::MAX, "axis");
    Ok(Value::Tuple(match object {
        Either::Frame(frame) => {
            let other = other.frame()?;
            let (left, right) = frame.align(&other, kind);
            let (left, right) = match axis.map(|axis| axis.integer()).transpose()? {
                None => (left, right),
                Some(0) => frame.align_rows(&other, kind),
                Some(_) => {
                    let labels = left.columns()?;
                    (frame.reindex_columns(strs(&labels)), other.reindex_columns(strs(&labels)))
                }
            };
            if let Some(fill) = &fill {
                let types = [left.dtypes()?, right.dtypes()?].concat();
                let is_text = tharsis_dataframe::for_programs::is_text;
                if types.iter().any(|(_, dtype)| is_text(dtype) != is_text(&fill.dtype())) {
                    return Err(Failure::kind(format!("{fill} does not fit into each column")));
                }
            }
            let filled = |frame: DataFrame| match &fill {
                Some(fill) => Value::Frame(frame.fillna(fill.clone())),
                None => Value::Frame(frame),
            };
            vec![filled(left), filled(right)]
        }
        Either::Series(series) => {
            let (left, right) = series.align(&other.series()?, kind);
            let filled = |series: Series| match &fill {
                Some(fill) => Value::Series(series.fillna(fill.clone())),
                None => Value::Series(series),
            };
            vec![filled(left), filled(right)]
        }
    }))
}

fn set_axis(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let labels = args.need(1, "labels")?;
    if args.axis(2)? {
        let labels = labels.texts()?;
        Ok(object.through(|frame| frame.set_columns(strs(&labels))))
    } else {
        let name = match &labels {
            Value::Index(index) => index.name().map(str::to_owned),
            _ => None,
        };
        let labels = labels.scalars()?;
        Ok(object.through(|frame| frame.set_axis(labels).rename_axis([name])))
    }
}

fn swaplevel(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let frame = object.frame();
    let level =
        |given: Option<Value>, default: i64| level_at(&frame, &given.unwrap_or(Value::Scalar(lit(default))));
    let (first, second) = (level(args.given(1, "i"), -2)?, level(args.given(2, "j"), -1)?);
    Ok(object.through(|frame| frame.swaplevel(first, second)))
}

fn droplevel(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let levels = match args.need(1, "level")? {
        Value::List(levels) => levels,
        one => vec![one],
    };
    args.rows_only(2)?;
    let frame = object.frame();
    let mut places = levels.iter().map(|level| level_at(&frame, level)).collect::<Result<Vec<_>, _>>()?;
    places.sort_unstable();
    Ok(object
        .through(|frame| places.iter().rev().fold(frame.clone(), |frame, level| frame.droplevel(*level))))
}

fn reorder_levels(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let Value::List(order) = args.need(1, "order")? else {
        return Err(Failure::kind("order: expected a list"));
    };
    let frame = object.frame();
    let order = order.iter().map(|level| level_at(&frame, level)).collect::<Result<Vec<_>, _>>()?;
    Ok(object.through(|frame| frame.reorder_levels(order)))
}

fn rename_axis(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    args.rows_only(2)?;
    let names = args.take(1, "mapper").or_else(|| args.take(usize::MAX, "index"));
    let name = |value: &Value| match value {
        Value::None => Ok(None),
        other => other.text().map(Some),
    };
    let names = match names {
        None => return Err(Failure::kind("rename_axis: expected names")),
        Some(Value::List(parts)) => parts.iter().map(name).collect::<Result<Vec<_>, _>>()?,
        Some(Value::Dict(entries)) => {
            let changed = entries.iter().map(|(old, new)| Ok((old.text()?, name(new)?)));
            let changed = changed.collect::<Result<Vec<_>, Failure>>()?;
            let old = object.frame().index_names()?.into_iter();
            let new = |old: Option<String>| {
                let found = changed.iter().find(|(known, _)| Some(known) == old.as_ref());
                found.map_or(old.clone(), |(_, new)| new.clone())
            };
            old.map(new).collect()
        }
        Some(one) => vec![name(&one)?],
    };
    Ok(object.through(|frame| frame.rename_axis(names)))
}

fn valid_index(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = Either::of(args)?.frame();
    let label =
        if name == "first_valid_index" { frame.first_valid_index()? } else { frame.last_valid_index()? };
    Ok(if label.is_missing() { Value::None } else { Value::Scalar(label) })
}

fn affix(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let text = args.need(1, if name == "add_prefix" { "prefix" } else { "suffix" })?.text()?;
    Ok(match (object, name) {
        (Either::Frame(frame), "add_prefix") => Value::Frame(frame.add_prefix(&text)),
        (Either::Frame(frame), _) => Value::Frame(frame.add_suffix(&text)),
        (Either::Series(series), "add_prefix") => Value::Series(series.add_prefix(&text)),
        (Either::Series(series), _) => Value::Series(series.add_suffix(&text)),
    })
}

fn truth(truth: bool) -> Value {
    Value::Scalar(lit(truth))
}

fn equals(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    Ok(truth(match (object, args.need(1, "other")?) {
        (Either::Frame(frame), Value::Frame(other)) => frame.equals(&other)?,
        (Either::Series(series), Value::Series(other)) => series.equals(&other)?,
        _ => false,
    }))
}

fn is_empty(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let frame = object.frame();
    Ok(truth(frame.columns()?.is_empty() || frame.len_on(&*args.context.executor)? == 0))
}

fn ndim(_: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(Value::Scalar(lit(match Either::of(args)? {
        Either::Frame(_) => 2_i64,
        Either::Series(_) => 1,
    })))
}

fn axes(_: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(Value::List(match Either::of(args)? {
        Either::Frame(frame) => vec![Value::Index(frame.index()), texts(frame.columns()?)],
        Either::Series(series) => vec![Value::Index(series.index())],
    }))
}

fn keys(_: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(match Either::of(args)? {
        Either::Frame(frame) => texts(frame.columns()?),
        Either::Series(series) => Value::Index(series.index()),
    })
}

/// Texts as a list of values.
pub(super) fn texts(texts: Vec<String>) -> Value {
    Value::List(texts.into_iter().map(|text| Value::Scalar(lit(text))).collect())
}

fn combine(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let other = args.need(1, "other")?;
    Ok(match (object, name) {
        (Either::Frame(frame), "update") => Value::Frame(frame.update(&other.frame()?)),
        (Either::Frame(frame), _) => Value::Frame(frame.combine_first(&other.frame()?)),
        (Either::Series(series), "update") => Value::Series(series.update(&other.series()?)),
        (Either::Series(series), _) => Value::Series(series.combine_first(&other.series()?)),
    })
}

fn items(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let pair = |label: Scalar, value: Value| Value::Tuple(vec![Value::Scalar(label), value]);
    Ok(Value::List(match Either::of(args)? {
        Either::Frame(frame) => {
            let items = frame.items()?.into_iter();
            items.map(|(label, series)| pair(lit(label), Value::Series(series))).collect()
        }
        Either::Series(series) => {
            let items = series.items()?.into_iter();
            items.map(|(label, value)| pair(label, Value::Scalar(value))).collect()
        }
    }))
}

fn values(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let frame = object.frame().reset_index(true);
    let table = frame.collect_on(&*args.context.executor)?;
    let types: Vec<_> = frame.dtypes()?.into_iter().map(|(_, dtype)| dtype).collect();
    let dtype = tharsis_dataframe::for_programs::common_type(&types)?;
    let name = super::input::numpy_name(&dtype)
        .ok_or_else(|| Failure::missing(format!("an array of {dtype} is not implemented")))?;
    let mut values = Vec::new();
    for row in table.rows() {
        for value in row.values()? {
            let value = Scalar::of(value.scalar().cast_to(&dtype).map_err(tharsis_dataframe::Error::from)?);
            values.push(if value.is_missing() { Scalar::not_a_number() } else { value });
        }
    }
    let shape = match object {
        Either::Frame(_) => vec![table.len(), types.len()],
        Either::Series(_) => vec![table.len()],
    };
    Ok(Value::Array(name, shape, values))
}

/// The values of a series as an array; texts and times as a list.
pub(super) fn array(series: &Series, args: &Args) -> Result<Value, Failure> {
    let table = series.drop_index().rename("0").to_frame().collect_on(&*args.context.executor)?;
    let values = (0..table.len()).map(|row| table.value(row, "0")).collect::<Result<Vec<_>, _>>()?;
    Ok(match super::input::numpy_name(&series.dtype()?) {
        Some(name) => Value::Array(name, vec![values.len()], values),
        None => Value::List(values.into_iter().map(Value::Scalar).collect()),
    })
}

fn memory_usage(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let with_index = args.flag(1, "index", true)?;
    args.flag(2, "deep", false)?;
    let usage = object.frame().memory_usage()?;
    let usage: Vec<(String, usize)> =
        usage.into_iter().filter(|(label, _)| with_index || label != "Index").collect();
    if let Either::Series(_) = object {
        return Ok(Value::Scalar(lit(usage.iter().map(|(_, bytes)| *bytes as i64).sum::<i64>())));
    }
    let labels = usage.iter().map(|(label, _)| lit(label.clone())).collect();
    let bytes = usage.iter().map(|(_, bytes)| lit(*bytes as i64)).collect();
    let columns = vec![("index".to_owned(), column(labels, None)?), ("0".to_owned(), column(bytes, None)?)];
    let frame = frame_of(columns, None)?.set_index(["index"]).unnamed_index();
    Ok(Value::Series(frame.col("0").named(None)))
}

/// An index of these labels.
pub(super) fn index_of(labels: Vec<Scalar>, name: Option<String>) -> Result<Index, Failure> {
    let frame = frame_of(vec![("0".to_owned(), column(labels, None)?)], None)?;
    Ok(Index::of_series(&frame.col("0").named(name)))
}
