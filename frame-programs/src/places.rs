//! Rows and columns by label and by position: `loc`, `iloc`, `at`, `iat` and what else chooses rows.

use super::Failure;
use super::args::{Args, strs};
use super::input::{column, frame_of};
use super::row::{Row, both};
use super::value::Value;
use tharsis_dataframe::{DataFrame, Series, Value as Scalar, lit};

pub(super) const PLACES: &[Row] = both!(
    "loc" "(key)" "rows by labels, slices of labels or conditions, and columns; without a key, for getitem" at_labels,
    "iloc" "(key)" "rows and columns by positions; without a key, for getitem" at_labels,
    "at" "(key)" "one value by label; without a key, for getitem" at_labels,
    "iat" "(key)" "one value by position; without a key, for getitem" at_labels,
    "xs" "(key, level=None)" "the rows with a label in a level of the index" xs,
    "take" "(indices)" "the rows at positions" take,
    "truncate" "(before=None, after=None)" "the rows whose labels lie between two" truncate,
    "between_time" "(start_time, end_time)" "the rows between two times of the day" day_time,
    "at_time" "(time)" "the rows at a time of the day" day_time,
    "sample" "(n=1, random_state=0)" "some rows in an order that looks random" sample
);

/// A series or a frame as a frame, with what turns a frame back into the same kind.
pub(super) enum Either {
    Frame(DataFrame),
    Series(Series),
}

impl Either {
    pub(super) fn of(args: &mut Args) -> Result<Either, Failure> {
        match args.need(0, "self")? {
            Value::Series(series) => Ok(Either::Series(series)),
            other => Ok(Either::Frame(other.frame()?)),
        }
    }

    /// A step of frames, for series too.
    pub(super) fn through(&self, step: impl FnOnce(&DataFrame) -> DataFrame) -> Value {
        match self {
            Either::Frame(frame) => Value::Frame(step(frame)),
            Either::Series(series) => Value::Series(series.through(|frame, _| step(frame))),
        }
    }

    pub(super) fn frame(&self) -> DataFrame {
        match self {
            Either::Frame(frame) => frame.clone(),
            Either::Series(series) => series.to_frame(),
        }
    }
}

fn indexer(name: &str) -> &'static str {
    match name {
        "loc" => "loc",
        "iloc" => "iloc",
        "at" => "at",
        _ => "iat",
    }
}

fn at_labels(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = args.need(0, "self")?;
    match args.take_tuple(1, "key") {
        None => Ok(Value::Indexer(Box::new(object), indexer(name))),
        Some(key) => chosen(object, indexer(name), key, args),
    }
}

/// The rows and columns of a frame or series that a key of an indexer names.
pub(super) fn chosen(object: Value, by: &str, key: Value, args: &Args) -> Result<Value, Failure> {
    match object {
        Value::Series(series) => of_series(&series, by, key, args),
        other => of_frame(&other.frame()?, by, key, args),
    }
}

/// Whether a key stands for one row.
fn is_single(key: &Value) -> bool {
    matches!(key, Value::Scalar(_) | Value::None)
}

fn of_series(series: &Series, by: &str, key: Value, args: &Args) -> Result<Value, Failure> {
    let levels = series.index().nlevels();
    let single = is_single(&key) || (matches!(key, Value::Tuple(_)) && levels > 1);
    let found = rows(&series.to_frame(), by, key, args)?;
    found.check()?;
    let found = found.col(&series.label()).named(series.name().map(str::to_owned));
    let all_levels = single && (levels == 1 || found.index().nlevels() == levels);
    if all_levels && found.to_frame().len_on(&*args.context.executor)? == 1 {
        return Ok(Value::Scalar(found.rename("0").collect()?.value(0, "0")?));
    }
    Ok(Value::Series(found))
}

fn of_frame(frame: &DataFrame, by: &str, key: Value, args: &Args) -> Result<Value, Failure> {
    let levels = frame.index().nlevels();
    let (row_key, column_key) = match key {
        Value::Tuple(mut parts) if parts.len() == 2 && levels == 1 => {
            let columns = parts.pop();
            (parts.pop().unwrap_or(Value::None), columns)
        }
        // With several levels, a tuple of labels stands alone, or first of two.
        Value::Tuple(mut parts) if parts.len() == 2 && matches!(parts[0], Value::Tuple(_)) => {
            let columns = parts.pop();
            (parts.pop().unwrap_or(Value::None), columns)
        }
        other => (other, None),
    };
    let single_row = is_single(&row_key) || matches!(row_key, Value::Tuple(_));
    let found = rows(frame, by, row_key, args)?;
    found.check()?;
    let (labels, single_column) = match column_key {
        None => (frame.columns()?, false),
        Some(key) => columns(frame, by, key)?,
    };
    let found = found.select(strs(&labels));
    found.check()?;
    let one = single_row && found.index().nlevels() == levels && found.len_on(&*args.context.executor)? == 1;
    match (one, single_column) {
        (true, true) => Ok(Value::Scalar(found.collect()?.value(0, &labels[0])?)),
        (true, false) => row_series(&found),
        (false, true) => Ok(Value::Series(found.col(&labels[0]))),
        (false, false) => Ok(Value::Frame(found)),
    }
}

/// The only row of a frame as a series of its columns.
fn row_series(frame: &DataFrame) -> Result<Value, Failure> {
    let label = frame.index().values()?.pop();
    let name = label.and_then(|label| label.as_str().map(str::to_owned));
    let row = frame.set_axis(["0"]).transpose();
    match row.check() {
        Ok(()) => Ok(Value::Series(row.col("0").named(name))),
        Err(error) if error.class() == "TypeError" => {
            Err(Failure::missing("a row with values of several types is not implemented as a series"))
        }
        Err(error) => Err(error.into()),
    }
}

/// Truth values as a series of positions.
fn mask(parts: Vec<Value>, rows: usize) -> Result<Series, Failure> {
    if rows != parts.len() {
        let given = parts.len();
        return Err(Failure::new(
            "IndexError",
            format!("Boolean index has wrong length: {given} instead of {rows}"),
        ));
    }
    let values = parts.into_iter().map(Value::scalar).collect::<Result<Vec<_>, _>>()?;
    Ok(frame_of(vec![("mask".to_owned(), column(values, None)?)], None)?.col("mask"))
}

fn rows(frame: &DataFrame, by: &str, key: Value, args: &Args) -> Result<DataFrame, Failure> {
    let by_position = by.starts_with('i');
    Ok(match key {
        Value::Slice(from, to, step) if by_position => frame.iloc_step(from, to, step.unwrap_or(1)),
        Value::Slice(from, to, None | Some(1)) => frame.loc_between(from.map(lit), to.map(lit)),
        Value::Slice(..) => return Err(Failure::missing("a slice of labels with a step is not implemented")),
        Value::Labels(..) if by_position => {
            return Err(Failure::kind("cannot do positional indexing with a slice of labels"));
        }
        Value::Labels(from, to) => frame.loc_between(from, to),
        Value::Series(condition) if condition.dtype()? == arrow::datatypes::DataType::Boolean => {
            frame.filter(&condition)
        }
        Value::List(parts) if parts.first().is_some_and(|part| part.flag().is_ok()) => {
            let rows = frame.len_on(&*args.context.executor)?;
            frame.filter_by_position(&mask(parts, rows)?)
        }
        key @ (Value::List(_) | Value::Series(_) | Value::Index(_) | Value::Array(..)) => {
            let labels = key.scalars()?;
            if by_position { frame.iloc_each(positions(&labels)?) } else { frame.loc_each(labels) }
        }
        Value::Tuple(parts) => {
            frame.loc_levels(parts.into_iter().map(Value::scalar).collect::<Result<Vec<_>, _>>()?)
        }
        one if by_position => {
            let one = one.scalar()?;
            frame.iloc(positions(std::slice::from_ref(&one))?[0])
        }
        one => frame.loc(one.scalar()?),
    })
}

fn positions(labels: &[Scalar]) -> Result<Vec<i64>, Failure> {
    let position = |label: &Scalar| {
        if label.dtype().is_integer() {
            label.as_i64().ok_or_else(|| Failure::new("IndexError", format!("{label} is out of bounds")))
        } else {
            Err(Failure::kind(format!("Cannot index by location index with a non-integer key: {label}")))
        }
    };
    labels.iter().map(position).collect()
}

/// Labels of columns that a key names, and whether it names one.
fn columns(frame: &DataFrame, by: &str, key: Value) -> Result<(Vec<String>, bool), Failure> {
    let all = frame.columns()?;
    let single = is_single(&key);
    let by_position = by.starts_with('i');
    let place = |label: &Scalar| -> Result<usize, Failure> {
        let count = all.len() as i64;
        let place = positions(std::slice::from_ref(label))?[0];
        let place = if place < 0 { place + count } else { place };
        usize::try_from(place).ok().filter(|place| *place < all.len()).ok_or_else(|| {
            Failure::new("IndexError", format!("index {label} is out of bounds for axis 1 with size {count}"))
        })
    };
    let named = |label: &Scalar| -> Result<usize, Failure> {
        let text = label.as_str().unwrap_or_default();
        let found = all.iter().position(|known| known == text);
        found.ok_or_else(|| Failure::new("KeyError", label.to_string()))
    };
    let chosen: Vec<usize> = match key {
        Value::Slice(None, None, None) | Value::Labels(None, None) => (0..all.len()).collect(),
        Value::Slice(from, to, None | Some(1)) if by_position => {
            let bound =
                |bound: i64| (if bound < 0 { bound + all.len() as i64 } else { bound }).max(0) as usize;
            let (from, to) = (from.map_or(0, bound), to.map_or(all.len(), bound));
            (from..to.min(all.len())).collect()
        }
        Value::Labels(from, to) if !by_position => {
            let from = from.as_ref().map_or(Ok(0), named)?;
            let to = to.as_ref().map_or(Ok(all.len() - 1), named)?;
            (from..=to).collect()
        }
        Value::List(parts) if parts.first().is_some_and(|part| part.flag().is_ok()) => {
            let flags = parts.iter().map(Value::flag).collect::<Result<Vec<_>, _>>()?;
            (0..all.len()).filter(|at| flags.get(*at) == Some(&true)).collect()
        }
        key @ (Value::Slice(..) | Value::Labels(..)) => {
            return Err(Failure::missing(format!("{} of columns is not implemented", key.kind())));
        }
        other => {
            let labels = other.scalars()?;
            let labels = labels.iter();
            labels
                .map(if by_position { &place as &dyn Fn(_) -> _ } else { &named })
                .collect::<Result<_, _>>()?
        }
    };
    Ok((chosen.into_iter().map(|at| all[at].clone()).collect(), single))
}

fn xs(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let label = args.need(1, "key")?.scalar()?;
    args.rows_only(2)?;
    let level = args.given(3, "level");
    let frame = object.frame();
    match level {
        None => chosen(
            match object {
                Either::Frame(frame) => Value::Frame(frame),
                Either::Series(series) => Value::Series(series),
            },
            "loc",
            Value::Scalar(label),
            args,
        ),
        Some(level) => {
            let at = level_at(&frame, &level)?;
            let name = frame.index_names()?[at].clone().unwrap_or_default();
            Ok(object.through(|frame| frame.xs(label, &name)))
        }
    }
}

/// The place of a level, by its name or its number.
pub(super) fn level_at(frame: &DataFrame, level: &Value) -> Result<usize, Failure> {
    let levels = frame.index_names()?.len() as i64;
    match level.integer() {
        Ok(place) => {
            let at = if place < 0 { place + levels } else { place };
            usize::try_from(at).ok().filter(|at| (*at as i64) < levels).ok_or_else(|| {
                Failure::new("IndexError", format!("Too many levels: Index has only {levels} levels"))
            })
        }
        Err(_) => Ok(frame.level(&level.text()?)?),
    }
}

fn take(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let places = positions(&args.need(1, "indices")?.scalars()?)?;
    args.rows_only(2)?;
    Ok(object.through(|frame| frame.iloc_each(places)))
}

fn truncate(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let before = args.given(1, "before").map(Value::scalar).transpose()?;
    let after = args.given(2, "after").map(Value::scalar).transpose()?;
    args.rows_only(3)?;
    Ok(object.through(|frame| frame.truncate(before, after)))
}

fn day_time(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    if name == "at_time" {
        let time = args.need(1, "time")?.text()?;
        return Ok(object.through(|frame| frame.at_time(&time)));
    }
    let (start, end) = (args.need(1, "start_time")?.text()?, args.need(2, "end_time")?.text()?);
    args.choice(3, "inclusive", &["both"])?;
    Ok(object.through(|frame| frame.between_time(&start, &end)))
}

fn sample(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let rows = args.given(1, "n").map(|n| n.integer()).transpose()?;
    let part = args.float(2, "frac")?;
    args.only(3, "replace", false)?;
    let seed = args.integer(5, "random_state", 0)? as u64;
    Ok(object.through(|frame| match (rows, part) {
        (rows, None) => frame.sample(rows.unwrap_or(1).max(0) as usize, seed),
        (_, Some(part)) => frame.sample_part(part, seed),
    }))
}
