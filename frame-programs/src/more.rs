//! The rest of the methods of frames and series: inspection, choice of columns, order, distinct values.

use super::Failure;
use super::args::{Args, operand, pairs, strs};
use super::axes::{array, texts};
use super::reply::dtype_name;
use super::row::Row;
use super::value::{Value, comparable};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use tharsis_dataframe::{GroupKey, Value as Scalar, lit};

pub(super) const MORE: &[Row] = &[
    (
        "pd.DataFrame.select_dtypes",
        "(include=None, exclude=None)",
        "the columns of some types",
        select_dtypes,
    ),
    ("pd.DataFrame.info", "()", "labels, types and memory as a text", info),
    ("pd.DataFrame.size", "()", "the number of values", size),
    ("pd.DataFrame.get", "(key, default=None)", "a column, if there is one with this label", get),
    ("pd.DataFrame.pop", "(item)", "a column", get),
    ("pd.DataFrame.insert", "(loc, column, value)", "the frame with a new column at a position", insert),
    ("pd.DataFrame.itertuples", "()", "the rows as tuples", itertuples),
    ("pd.DataFrame.to_dict", "(orient='dict')", "the values as dictionaries", to_dict),
    ("pd.DataFrame.isin", "(values)", "whether each value is one of these", isin),
    (
        "pd.DataFrame.where",
        "(cond, other=NaN)",
        "these values where a condition holds, others elsewhere",
        choose,
    ),
    (
        "pd.DataFrame.mask",
        "(cond, other=NaN)",
        "others where a condition holds, these values elsewhere",
        choose,
    ),
    ("pd.DataFrame.clip", "(lower=None, upper=None)", "the values moved into bounds", clip),
    ("pd.Series.clip", "(lower=None, upper=None)", "the values moved into bounds", clip),
    ("pd.DataFrame.replace", "(to_replace, value=None)", "values in place of others", replace),
    ("pd.Series.replace", "(to_replace, value=None)", "values in place of others", replace),
    ("pd.Series.map", "(arg)", "the values that a dictionary or a series gives for these", map),
    ("pd.DataFrame.round", "(decimals=0)", "the values rounded, halves to even", round),
    ("pd.DataFrame.abs", "()", "the absolute values", absolute),
    ("pd.Series.argmin", "()", "the position of the smallest value", position),
    ("pd.Series.argmax", "()", "the position of the largest value", position),
    ("pd.Series.argsort", "()", "the positions that sort the values", argsort),
    ("pd.Series.drop", "(labels, errors='raise')", "the values without those with these labels", drop),
    (
        "pd.Series.case_when",
        "(caselist)",
        "other values where conditions hold, the first that does",
        case_when,
    ),
    ("pd.Series.repeat", "(repeats)", "each value several times", repeat),
    ("pd.unique", "(values)", "the distinct values", unique),
    (
        "pd.Series.searchsorted",
        "(value, side='left')",
        "the position that keeps sorted values sorted",
        searchsorted,
    ),
    ("pd.Series.asof", "(where)", "the last value at a label or before it", asof),
    ("pd.Series.item", "()", "the only value", item),
    ("pd.Series.to_list", "()", "the values as a list", to_list),
    ("pd.Series.to_dict", "()", "the values by their labels", series_to_dict),
    ("pd.Series.is_unique", "()", "whether each value stands once", question),
    ("pd.Series.hasnans", "()", "whether a value is missing", question),
    ("pd.Series.is_monotonic_increasing", "()", "whether no value is less than the one before", question),
    ("pd.Series.is_monotonic_decreasing", "()", "whether no value is greater than the one before", question),
    ("pd.Series.shape", "()", "the number of values, as a tuple", shape),
    ("pd.Series.dtype", "()", "the type of the values", dtype),
    ("pd.Series.name", "()", "the name", name),
    ("pd.Series.copy", "()", "the same series", copy),
    ("pd.Series.T", "()", "the same series", copy),
    ("pd.Series.divmod", "(other)", "the quotient rounded down and the remainder", divmod),
];

fn select_dtypes(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let names = |value: Option<Value>| -> Result<Vec<String>, Failure> {
        let name = |value: &Value| match value {
            Value::DType(dtype) => Ok(dtype_name(dtype)),
            other => other.text(),
        };
        match value {
            None => Ok(Vec::new()),
            Some(Value::List(parts)) => parts.iter().map(name).collect(),
            Some(one) => Ok(vec![name(&one)?]),
        }
    };
    let (include, exclude) = (names(args.given(1, "include"))?, names(args.given(2, "exclude"))?);
    Ok(Value::Frame(frame.select_dtypes(strs(&include), strs(&exclude))))
}

fn info(_: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(Value::Scalar(lit(args.frame()?.info()?)))
}

fn size(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let rows = frame.len_on(&*args.context.executor)?;
    Ok(Value::Scalar(lit((rows * frame.columns()?.len()) as i64)))
}

fn get(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let label = args.need(1, if name == "get" { "key" } else { "item" })?.text()?;
    let default = args.given(2, "default");
    match frame.get(&label)? {
        Some(series) => Ok(Value::Series(series)),
        None if name == "get" => Ok(default.unwrap_or(Value::None)),
        None => Err(Failure::new("KeyError", label)),
    }
}

fn insert(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let at = args.count(1, "loc", 0)?;
    let label = args.need(2, "column")?.text()?;
    Ok(Value::Frame(frame.insert(at, &label, operand(args.need(3, "value")?)?)))
}

fn itertuples(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let with_index = args.flag(1, "index", true)?;
    args.named("name");
    let table = frame.collect_on(&*args.context.executor)?;
    let rows = table.rows().map(|row| {
        let labels = if with_index { row.labels()? } else { Vec::new() };
        let values = labels.into_iter().chain(row.values()?).map(Value::Scalar);
        Ok(Value::Tuple(values.collect()))
    });
    Ok(Value::List(rows.collect::<Result<_, Failure>>()?))
}

fn to_dict(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let orient = args.choice(1, "orient", &["dict", "list", "records", "index", "split"])?;
    let table = frame.collect_on(&*args.context.executor)?;
    let labels = table.columns();
    let text = |label: &String| Value::Scalar(lit(label.clone()));
    let mut rows = Vec::new();
    for row in table.rows() {
        let mut levels = row.labels()?;
        let label = match (levels.pop(), levels.is_empty()) {
            (Some(label), true) => label,
            _ => return Err(Failure::missing("to_dict with several levels of the index is not implemented")),
        };
        rows.push((label, row.values()?));
    }
    let of_column = |at: usize| {
        rows.iter().map(move |(label, values)| (label.clone(), Value::Scalar(values[at].clone())))
    };
    let of_row = |values: &[Scalar]| -> Vec<(Value, Value)> {
        labels.iter().map(text).zip(values.iter().cloned().map(Value::Scalar)).collect()
    };
    Ok(match orient {
        "list" => Value::Dict(
            labels
                .iter()
                .enumerate()
                .map(|(at, label)| {
                    (text(label), Value::List(of_column(at).map(|(_, value)| value).collect()))
                })
                .collect(),
        ),
        "records" => Value::List(rows.iter().map(|(_, values)| Value::Dict(of_row(values))).collect()),
        "index" => {
            if frame.index().is_unique()? {
                dictionary(rows.iter().map(|(label, values)| (label.clone(), Value::Dict(of_row(values)))))
            } else {
                return Err(Failure::value("DataFrame index must be unique for orient='index'"));
            }
        }
        "split" => {
            let data = rows
                .iter()
                .map(|(_, values)| Value::List(values.iter().cloned().map(Value::Scalar).collect()));
            Value::Dict(vec![
                (
                    Value::Scalar(lit("index")),
                    Value::List(rows.iter().map(|(label, _)| Value::Scalar(label.clone())).collect()),
                ),
                (Value::Scalar(lit("columns")), texts(labels.clone())),
                (Value::Scalar(lit("data")), Value::List(data.collect())),
            ])
        }
        _ => Value::Dict(
            labels.iter().enumerate().map(|(at, label)| (text(label), dictionary(of_column(at)))).collect(),
        ),
    })
}

fn isin(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let among = |label: &str, values: Vec<Scalar>| {
        let column = frame.col(label);
        Ok((label.to_owned(), column.isin(comparable(values, &column.dtype()?))))
    };
    let labels = frame.columns()?;
    let columns = match args.need(1, "values")? {
        Value::Frame(other) => return Ok(Value::Frame(frame.isin_frame(&other))),
        Value::Series(other) => return Ok(Value::Frame(frame.isin_series(&other))),
        Value::Dict(entries) => {
            let entries = entries.into_iter().map(|(label, values)| Ok((label.text()?, values.scalars()?)));
            let entries = entries.collect::<Result<Vec<_>, Failure>>()?;
            let of = |label: &String| entries.iter().rev().find(|(known, _)| known == label);
            let columns =
                labels.iter().map(|label| among(label, of(label).map_or_else(Vec::new, |of| of.1.clone())));
            columns.collect::<Result<Vec<_>, Failure>>()?
        }
        Value::Scalar(_) | Value::None => return Err(Failure::kind("isin: expected a list of values")),
        other => {
            let values = other.scalars()?;
            labels.iter().map(|label| among(label, values.clone())).collect::<Result<Vec<_>, Failure>>()?
        }
    };
    Ok(Value::Frame(frame.of_same_rows(columns)))
}

fn choose(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let condition = args.need(1, "cond")?;
    let other = args.take(2, "other").unwrap_or(Value::None);
    let opposite = name == "mask";
    Ok(Value::Frame(match condition {
        Value::Series(condition) => {
            let condition = if opposite { !&condition } else { condition };
            frame.keep_where(&condition, other.scalar()?)
        }
        other_kind => {
            let conditions = other_kind.frame()?;
            let conditions = if opposite { !&conditions } else { conditions };
            match other {
                Value::Frame(other) => frame.keep_where_from(&conditions, &other),
                one => frame.keep_where_each(&conditions, one.scalar()?),
            }
        }
    }))
}

fn clip(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let of = args.need(0, "self")?;
    let bound = |value: Option<Value>| value.map_or(Ok(Scalar::missing()), Value::scalar);
    let (lower, upper) = (bound(args.given(1, "lower"))?, bound(args.given(2, "upper"))?);
    Ok(match of {
        Value::Series(series) => Value::Series(series.clip(lower, upper)),
        other => Value::Frame(other.frame()?.clip(lower, upper)),
    })
}

/// Values with those that stand in their place.
fn replacements(args: &mut Args) -> Result<Vec<(Value, Value)>, Failure> {
    let from = args.need(1, "to_replace")?;
    let to = args.take(2, "value");
    args.only(usize::MAX, "regex", false)?;
    Ok(match (from, to) {
        (Value::Dict(entries), None) => entries,
        (Value::List(from), Some(Value::List(to))) if from.len() == to.len() => {
            from.into_iter().zip(to).collect()
        }
        (Value::List(_), Some(Value::List(_))) => {
            return Err(Failure::value("Replacement lists must match in length."));
        }
        (Value::List(from), Some(to)) => from.into_iter().map(|from| (from, to.clone())).collect(),
        (Value::Dict(_), Some(_)) => {
            return Err(Failure::missing("replace by a dictionary of columns and a value"));
        }
        (from, Some(to)) => vec![(from, to)],
        (_, None) => return Err(Failure::value("replace: a value is needed")),
    })
}

fn replace(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let of = args.need(0, "self")?;
    let entries = replacements(args)?;
    let scalar = |(from, to): (Value, Value)| Ok((from.scalar()?, to.scalar()?));
    match of {
        Value::Series(series) => {
            let entries = entries.into_iter().map(scalar).collect::<Result<Vec<_>, Failure>>()?;
            Ok(Value::Series(series.replace(entries)))
        }
        other => {
            let frame = other.frame()?;
            if entries.iter().all(|(_, to)| matches!(to, Value::Dict(_))) && !entries.is_empty() {
                let mut made = frame;
                for (label, entries) in entries {
                    let label = label.text()?;
                    let Value::Dict(entries) = entries else { continue };
                    let entries = entries.into_iter().map(scalar).collect::<Result<Vec<_>, Failure>>()?;
                    made = made.assign(&label, made.col(&label).replace(entries));
                }
                return Ok(Value::Frame(made));
            }
            let entries = entries.into_iter().map(scalar).collect::<Result<Vec<_>, Failure>>()?;
            Ok(Value::Frame(frame.replace(entries)))
        }
    }
}

fn map(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let entries = match args.need(1, "arg")? {
        Value::Dict(entries) => {
            let entries = entries.into_iter().map(|(from, to)| Ok((from.scalar()?, to.scalar()?)));
            entries.collect::<Result<Vec<_>, Failure>>()?
        }
        Value::Series(other) => other.items()?,
        other => return Err(Failure::missing(format!("map by {} is not implemented", other.kind()))),
    };
    Ok(Value::Series(series.map(entries)))
}

fn round(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let decimals = |value: i64| i32::try_from(value).map_err(|_| Failure::value("decimals is out of bounds"));
    Ok(Value::Frame(match args.given(1, "decimals") {
        None => frame.round(0),
        Some(entries @ Value::Dict(_)) => {
            let labels = frame.columns()?;
            let mut made = frame;
            for (label, count) in pairs(&entries, Value::integer)? {
                if labels.contains(&label) {
                    made = made.assign(&label, made.col(&label).round(decimals(count)?));
                }
            }
            made
        }
        Some(one) => frame.round(decimals(one.integer()?)?),
    }))
}

fn absolute(_: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(Value::Frame(args.frame()?.abs()))
}

fn position(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let place = if name == "argmin" { series.argmin()? } else { series.argmax()? };
    Ok(Value::Scalar(lit(place as i64)))
}

fn argsort(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    args.named("kind");
    Ok(Value::Series(series.argsort()))
}

fn drop(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let labels = args.need(1, "labels")?.scalars()?;
    Ok(Value::Series(match args.choice(usize::MAX, "errors", &["raise", "ignore"])? {
        "ignore" => series.drop_rows_if_there(labels),
        _ => series.drop_rows(labels),
    }))
}

fn repeat(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    Ok(Value::Series(series.repeat(args.count(1, "repeats", 1)?)))
}

fn unique(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.need(0, "values")?.series()?;
    array(&series.unique(), args)
}

fn searchsorted(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let value = args.need(1, "value")?;
    let behind = args.choice(2, "side", &["left", "right"])? == "right";
    let place = |value: Scalar| Ok(lit(series.searchsorted(value, behind)? as i64));
    match value {
        Value::List(_) => {
            let places = value.scalars()?.into_iter().map(place).collect::<Result<Vec<_>, Failure>>()?;
            Ok(Value::Array("<i8", vec![places.len()], places))
        }
        one => Ok(Value::Scalar(place(one.scalar()?)?)),
    }
}

fn case_when(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let Value::List(cases) = args.need(1, "caselist")? else {
        return Err(Failure::kind("caselist: expected a list of pairs"));
    };
    let pair = |case: Value| match case {
        Value::Tuple(parts) | Value::List(parts) => match <[Value; 2]>::try_from(parts) {
            Ok([condition, value]) => Ok((condition.series()?, operand(value)?)),
            Err(_) => Err(Failure::value("a case has a condition and a value")),
        },
        other => Err(Failure::kind(format!("caselist: expected pairs, found {}", other.kind()))),
    };
    let cases = cases.into_iter().map(pair).collect::<Result<Vec<_>, _>>()?;
    Ok(Value::Series(series.case_when(cases)))
}

fn asof(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let found = series.asof(args.need(1, "where")?.scalar()?)?;
    Ok(Value::Scalar(if found.is_missing() { Scalar::not_a_number() } else { found }))
}

fn item(_: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(Value::Scalar(args.series()?.item()?))
}

fn to_list(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?.rename("0");
    let table = series.to_frame().collect_on(&*args.context.executor)?;
    let values = (0..table.len()).map(|row| Ok(Value::Scalar(table.value(row, "0")?)));
    Ok(Value::List(values.collect::<Result<_, Failure>>()?))
}

fn series_to_dict(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let items = args.series()?.items()?.into_iter();
    Ok(dictionary(items.map(|(label, value)| (label, Value::Scalar(value)))))
}

/// A dictionary of labels. As in one of Python, the last value of a label stays, in the place of the first.
fn dictionary(items: impl Iterator<Item = (Scalar, Value)>) -> Value {
    let mut entries: Vec<(Value, Value)> = Vec::new();
    let mut places: HashMap<_, usize> = HashMap::new();
    for (label, value) in items {
        match places.entry(label.scalar().clone()) {
            Entry::Occupied(place) => entries[*place.get()].1 = value,
            Entry::Vacant(place) => {
                place.insert(entries.len());
                entries.push((Value::Scalar(label), value));
            }
        }
    }
    Value::Dict(entries)
}

fn question(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    Ok(Value::Scalar(lit(match name {
        "is_unique" => series.is_unique()?,
        "hasnans" => series.hasnans()?,
        "is_monotonic_increasing" => series.is_monotonic_increasing()?,
        _ => series.is_monotonic_decreasing()?,
    })))
}

fn shape(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let rows = args.series()?.to_frame().len_on(&*args.context.executor)?;
    Ok(Value::Tuple(vec![Value::Scalar(lit(rows as i64))]))
}

fn dtype(_: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(Value::DType(args.series()?.dtype()?))
}

fn name(_: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(args.series()?.name().map_or(Value::None, |name| Value::Scalar(lit(name))))
}

fn copy(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    args.flag(1, "deep", true)?;
    Ok(Value::Series(series))
}

fn divmod(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let (quotient, rest) = series.divmod(operand(args.need(1, "other")?)?);
    Ok(Value::Tuple(vec![Value::Series(quotient), Value::Series(rest)]))
}

/// Keys of groups: labels of columns, names of levels, or series.
pub(super) fn group_keys(value: Value) -> Result<Vec<GroupKey>, Failure> {
    let parts = match value {
        Value::List(parts) => parts,
        one => vec![one],
    };
    let key = |key| match key {
        Value::Series(series) => Ok(GroupKey::Values(series)),
        other => Ok(GroupKey::Label(other.text()?)),
    };
    parts.into_iter().map(key).collect()
}
