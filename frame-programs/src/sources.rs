//! Operations that make frames: of values, of other frames.

use super::args::{Args, pairs, strs};
use super::input::{column, frame_of};
use super::row::Row;
use super::value::Value;
use super::{Failure, frames, joins};
use tharsis_dataframe::{DataFrame, Series};

pub(super) const SOURCES: &[Row] = &[
    (
        "pd.DataFrame",
        "(data=None, index=None, columns=None)",
        "a frame of a dictionary of lists or series",
        frame,
    ),
    ("pd.Series", "(data, name=None)", "a series of a list", series),
    (
        "pd.concat",
        "(objs, axis=0, join='outer', ignore_index=False)",
        "rows of frames below each other",
        concat,
    ),
    (
        "pd.merge",
        "(left, right, how='inner', on=None, left_on=None, right_on=None, suffixes=('_x', '_y'))",
        "rows of two frames with equal keys",
        frames::merge,
    ),
    ("pd.isna", "(obj)", "whether each value is missing", missing),
    ("pd.notna", "(obj)", "whether each value is there", missing),
    ("sql", "(query, tables={})", "the result of an SQL query over named frames", sql),
];

fn frame(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let data = args.need(0, "data")?;
    let index = args.given(1, "index");
    let columns = args.texts(2, "columns")?;
    let entries = match data {
        Value::Frame(frame) => return Ok(Value::Frame(chosen(&frame, columns))),
        Value::Dict(entries) => entries,
        other => {
            let kind = other.kind();
            return Err(Failure::missing(format!("pd.DataFrame of {kind} is not implemented")));
        }
    };
    let is_series = |(_, value): &(Value, Value)| matches!(value, Value::Series(_));
    if entries.iter().any(is_series) {
        return Ok(Value::Frame(chosen(&of_series(entries)?, columns)));
    }
    let rows = entries.iter().filter_map(|(_, value)| match value {
        Value::List(parts) => Some(parts.len()),
        _ => None,
    });
    let rows = rows.max().unwrap_or(1);
    let mut arrays = Vec::new();
    for (label, values) in entries {
        let values = match values {
            Value::List(parts) => parts,
            one => vec![one; rows],
        };
        let values = values.into_iter().map(Value::scalar).collect::<Result<Vec<_>, _>>()?;
        arrays.push((label.text()?, column(values, None)?));
    }
    let labels: Vec<String> = arrays.iter().map(|(label, _)| label.clone()).collect();
    if let Some(Value::List(index)) = index {
        let index = index.into_iter().map(Value::scalar).collect::<Result<Vec<_>, _>>()?;
        arrays.push(("__tharsis_given_index".to_owned(), column(index, None)?));
        let frame = frame_of(arrays, args.context.part_rows)?.set_index(["__tharsis_given_index"]);
        let frame = frame.unnamed_index().select(strs(&labels));
        return Ok(Value::Frame(chosen(&frame, columns)));
    }
    Ok(Value::Frame(chosen(&frame_of(arrays, args.context.part_rows)?, columns)))
}

fn chosen(frame: &DataFrame, columns: Option<Vec<String>>) -> DataFrame {
    match columns {
        Some(columns) => frame.select(strs(&columns)),
        None => frame.clone(),
    }
}

/// Series side by side, matched by their labels.
fn of_series(entries: Vec<(Value, Value)>) -> Result<DataFrame, Failure> {
    let mut made: Option<DataFrame> = None;
    for (label, value) in entries {
        let label = label.text()?;
        made = Some(match (made, value) {
            (Some(frame), Value::Series(series)) => frame.assign(&label, &series),
            (Some(frame), value) => frame.assign(&label, value.scalar()?),
            (None, Value::Series(series)) => series.rename(&label).to_frame(),
            (None, _) => return Err(Failure::missing("the first column must be a series, if one is")),
        });
    }
    made.ok_or_else(|| Failure::value("no columns"))
}

fn series(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let data = args.need(0, "data")?;
    let name = args.named("name").map(|name| name.text()).transpose()?;
    let dtype = args.named("dtype").map(|dtype| dtype.dtype()).transpose()?;
    let Value::List(parts) = data else {
        return Err(Failure::missing(format!("pd.Series of {} is not implemented", data.kind())));
    };
    let values = parts.into_iter().map(Value::scalar).collect::<Result<Vec<_>, _>>()?;
    let label = name.clone().unwrap_or_else(|| "0".to_owned());
    let frame = frame_of(vec![(label.clone(), column(values, dtype)?)], args.context.part_rows)?;
    Ok(Value::Series(frame.col(&label).named(name)))
}

fn concat(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let objects = args.need(0, "objs")?;
    let of_columns = args.axis(1)?;
    let join = args.choice(2, "join", &["outer", "inner"])?;
    let ignore_index = args.flag(3, "ignore_index", false)?;
    args.only(usize::MAX, "sort", false)?;
    args.only(usize::MAX, "verify_integrity", false)?;
    let Value::List(parts) = objects else {
        return Err(Failure::kind(format!("expected a list of frames, found {}", objects.kind())));
    };
    if of_columns {
        return joins::side_by_side(parts, join, ignore_index, args.texts(4, "keys")?);
    }
    if let [Value::Series(_), ..] = &parts[..] {
        return concat_series(parts, ignore_index);
    }
    let frames = parts.into_iter().map(Value::frame).collect::<Result<Vec<_>, _>>()?;
    let made = DataFrame::concat(&frames, ignore_index);
    if join == "outer" {
        return Ok(Value::Frame(made));
    }
    let mut shared = frames.first().map(DataFrame::columns).transpose()?.unwrap_or_default();
    for frame in &frames {
        let labels = frame.columns()?;
        shared.retain(|label| labels.contains(label));
    }
    Ok(Value::Frame(made.select(strs(&shared))))
}

fn concat_series(parts: Vec<Value>, ignore_index: bool) -> Result<Value, Failure> {
    let series = parts.into_iter().map(Value::series).collect::<Result<Vec<_>, _>>()?;
    let name = series.first().and_then(Series::name).map(str::to_owned);
    let name = name.filter(|name| series.iter().all(|other| other.name() == Some(name)));
    let frames: Vec<DataFrame> = series.iter().map(|one| one.rename("0").to_frame()).collect();
    Ok(Value::Series(DataFrame::concat(&frames, ignore_index).col("0").named(name)))
}

fn missing(name: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(match (args.need(0, "obj")?, name) {
        (Value::Frame(frame), "isna") => Value::Frame(frame.isna()),
        (Value::Frame(frame), _) => Value::Frame(frame.notna()),
        (Value::Series(series), "isna") => Value::Series(series.isna()),
        (Value::Series(series), _) => Value::Series(series.notna()),
        (other, name) => {
            let is_missing = matches!(other, Value::None) || other.scalar()?.is_missing();
            Value::Scalar(tharsis_dataframe::lit(is_missing == (name == "isna")))
        }
    })
}

fn sql(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let query = args.need(0, "query")?.text()?;
    let tables = match args.given(1, "tables") {
        Some(tables) => pairs(&tables, |value| value.clone().frame())?,
        None => Vec::new(),
    };
    let tables: Vec<(&str, &DataFrame)> = tables.iter().map(|(name, frame)| (name.as_str(), frame)).collect();
    Ok(Value::Frame(tharsis_dataframe::sql(&query, &tables)))
}
