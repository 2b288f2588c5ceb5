//! Labels by position, levels of indices, and places of labels in others.

use super::Failure;
use super::args::{Args, operand};
use super::axes::{array, index_of};
use super::row::Row;
use super::value::Value;
use tharsis_dataframe::{Index, JoinKind, Series, lit};

pub(super) const STEPS: &[Row] = &[
    ("pd.Index.argmin", "()", "the position of the smallest label", position),
    ("pd.Index.argmax", "()", "the position of the largest label", position),
    ("pd.Index.argsort", "()", "the positions that sort the labels", argsort),
    ("pd.Index.take", "(indices)", "the labels at some positions", by_position),
    ("pd.Index.delete", "(loc)", "the labels without those at some positions", by_position),
    ("pd.Index.insert", "(loc, item)", "the labels with one more at a position", insert),
    ("pd.Index.repeat", "(repeats)", "each label several times", repeat),
    ("pd.Index.where", "(cond, other=NaN)", "the labels where a condition holds, else another", choose),
    ("pd.Index.putmask", "(mask, value)", "another label where a condition holds", choose),
    ("pd.Index.round", "(decimals=0)", "the labels rounded, halves to even", round),
    ("pd.Index.shift", "(periods=1, freq=None)", "labels that are times, moved", shift),
    ("pd.Index.searchsorted", "(value, side='left')", "the position that keeps labels sorted", search),
    ("pd.Index.join", "(other, how='left')", "the labels of a join", join),
    ("pd.Index.get_indexer", "(target)", "the positions of other labels, or -1", indexer),
    ("pd.Index.reindex", "(target)", "other labels, and their positions or -1", indexer),
    ("pd.Index.identical", "(other)", "whether both have equal labels and names", identical),
    ("pd.Index.droplevel", "(level=0)", "the labels without a level", droplevel),
    ("pd.Index.swaplevel", "(i=-2, j=-1)", "the labels with two levels swapped", swaplevel),
    ("pd.Index.levels", "()", "the distinct labels of each level", levels),
    ("pd.Index.codes", "()", "the number of each label among those of its level", levels),
    ("pd.Index.slice_indexer", "(start=None, end=None)", "positions of the labels between two", slice),
];

fn made(index: Index) -> Result<Value, Failure> {
    // A mistake is told by the step that makes it.
    index.dtype()?;
    Ok(Value::Index(index))
}

fn position(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let place = if name == "argmin" { index.argmin()? } else { index.argmax()? };
    Ok(Value::Scalar(lit(place as i64)))
}

fn argsort(_: &str, args: &mut Args) -> Result<Value, Failure> {
    array(&args.index()?.argsort(), args)
}

fn by_position(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let positions = args.need(1, if name == "take" { "indices" } else { "loc" })?;
    let positions = match positions {
        Value::List(parts) => parts.iter().map(Value::integer).collect::<Result<Vec<_>, _>>()?,
        one => vec![one.integer()?],
    };
    made(if name == "take" { index.take(positions) } else { index.delete(positions) })
}

fn insert(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let at = args.need(1, "loc")?.integer()?;
    made(index.insert(at, args.need(2, "item")?.scalar()?))
}

fn repeat(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    made(index.repeat(args.count(1, "repeats", 1)?))
}

/// Values for each position.
fn by_positions(value: Value) -> Result<Series, Failure> {
    match value {
        Value::Series(series) => Ok(series),
        other => Ok(index_of(other.scalars()?, None)?.to_series()),
    }
}

fn choose(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let masks = name == "putmask";
    let condition = by_positions(args.need(1, if masks { "mask" } else { "cond" })?)?;
    let other = args.take(2, if masks { "value" } else { "other" }).unwrap_or(Value::None);
    let other = operand(other)?;
    made(if masks { index.putmask(&condition, other) } else { index.keep_where(&condition, other) })
}

fn round(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let decimals = i32::try_from(args.integer(1, "decimals", 0)?);
    made(index.round(decimals.map_err(|_| Failure::value("decimals is out of bounds"))?))
}

fn shift(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let periods = args.integer(1, "periods", 1)?;
    let Some(length) = args.given(2, "freq") else {
        return Err(Failure::missing("shift of an index without freq is not implemented"));
    };
    made(index.shift(periods, &length.text()?))
}

fn search(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let value = args.need(1, "value")?;
    let behind = args.choice(2, "side", &["left", "right"])? == "right";
    let place = |value: Value| -> Result<Value, Failure> {
        Ok(Value::Scalar(lit(index.searchsorted(value.scalar()?, behind)? as i64)))
    };
    match value {
        Value::List(parts) => Ok(Value::List(parts.into_iter().map(place).collect::<Result<_, _>>()?)),
        one => place(one),
    }
}

/// The other index: one, or a list of labels.
fn other(args: &mut Args, name: &str) -> Result<Index, Failure> {
    match args.need(1, name)? {
        Value::Index(index) => Ok(index),
        other => index_of(other.scalars()?, None),
    }
}

fn join(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let (index, other) = (args.index()?, other(args, "other")?);
    let kind = match args.choice(2, "how", &["left", "right", "inner", "outer"])? {
        "right" => JoinKind::Right,
        "inner" => JoinKind::Inner,
        "outer" => JoinKind::Outer,
        _ => JoinKind::Left,
    };
    made(index.join(&other, kind))
}

fn indexer(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let (index, labels) = (args.index()?, other(args, "target")?);
    let (labels, places) = index.reindex(&labels);
    let places = array(&places, args)?;
    Ok(match name {
        "reindex" => Value::Tuple(vec![Value::Index(labels), places]),
        _ => places,
    })
}

fn identical(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let (index, other) = (args.index()?, other(args, "other")?);
    Ok(Value::Scalar(lit(index.identical(&other)?)))
}

/// The place of a level, by its name or by its number, from the end if that is negative.
fn level(index: &Index, level: &Value) -> Result<usize, Failure> {
    let levels = index.nlevels();
    let at = match level.integer() {
        Ok(at) => usize::try_from(if at < 0 { at + levels as i64 } else { at }).ok(),
        Err(_) => {
            let name = level.text()?;
            let found = index.names().iter().position(|known| known.as_deref() == Some(name.as_str()));
            Some(found.ok_or_else(|| Failure::new("KeyError", format!("Level {name} not found")))?)
        }
    };
    at.filter(|at| *at < levels)
        .ok_or_else(|| Failure::new("IndexError", format!("Too many levels: Index has only {levels} levels")))
}

fn droplevel(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let at = args.take(1, "level").unwrap_or_else(|| Value::Scalar(lit(0)));
    let at = level(&index, &at)?;
    made(index.droplevel(at))
}

fn swaplevel(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let (first, second) = (args.take(1, "i"), args.take(2, "j"));
    let place = |given: Option<Value>, default: i64| {
        level(&index, &given.unwrap_or_else(|| Value::Scalar(lit(default))))
    };
    let (first, second) = (place(first, -2)?, place(second, -1)?);
    made(index.swaplevel(first, second))
}

fn levels(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    if name == "codes" {
        let codes = index.codes();
        return Ok(Value::List(codes.iter().map(|codes| array(codes, args)).collect::<Result<_, _>>()?));
    }
    let levels = index.levels()?.into_iter();
    Ok(Value::List(levels.map(|level| Value::List(level.into_iter().map(Value::Scalar).collect())).collect()))
}

fn slice(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let (from, to) = (args.given(1, "start"), args.given(2, "end"));
    let found =
        index.slice_indexer(from.map(Value::scalar).transpose()?, to.map(Value::scalar).transpose()?)?;
    Ok(Value::Slice(Some(found.start as i64), Some(found.end as i64), None))
}
