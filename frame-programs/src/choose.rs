//! `getitem` and `setitem`: choice by label, by condition, by position.

use super::Failure;
use super::args::{Args, operand, strs};
use super::input::{column, frame_of};
use super::places::chosen;
use super::row::Row;
use super::value::{Groups, Spans, Value};
use tharsis_dataframe::{DataFrame, Series};

pub(super) const CHOOSE: &[Row] = &[
    (
        "getitem",
        "(obj, key)",
        "a column, several, the rows where a condition holds, or a slice of rows",
        getitem,
    ),
    ("setitem", "(frame, label, value)", "the frame with a column set", setitem),
];

fn getitem(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = args.need(0, "obj")?;
    if let Value::Indexer(of, by) = object {
        let key =
            args.take_tuple(1, "key").ok_or_else(|| Failure::kind("missing required argument: 'key'"))?;
        return chosen(*of, by, key, args);
    }
    let key = args.need(1, "key")?;
    match object {
        Value::Frame(frame) => of_frame(&frame, key, args),
        Value::Series(series) => {
            let frame = series.to_frame();
            let label = series.label();
            let chosen = match key {
                Value::Slice(..) => rows(&frame, key, args)?,
                Value::Series(mask) => {
                    let name = series.name().map(str::to_owned);
                    return Ok(Value::Series(series.filter(&mask).named(name)));
                }
                other => {
                    let kind = other.kind();
                    return Err(Failure::missing(format!(
                        "getitem of a series by {kind} is not implemented"
                    )));
                }
            };
            Ok(Value::Series(chosen.col(&label).named(series.name().map(str::to_owned))))
        }
        Value::Groups(groups) => of_groups(*groups, key),
        Value::Spans(spans) => of_spans(*spans, key),
        Value::Dict(entries) => {
            let text = key.text()?;
            let found = entries.into_iter().find(|(known, _)| known.text().is_ok_and(|known| known == text));
            found.map(|(_, value)| value).ok_or_else(|| Failure::new("KeyError", text))
        }
        Value::List(parts) => {
            let at = key.integer()?;
            let at = if at < 0 { at + parts.len() as i64 } else { at };
            let found = usize::try_from(at).ok().and_then(|at| parts.into_iter().nth(at));
            found.ok_or_else(|| Failure::new("IndexError", "list index out of range"))
        }
        other => Err(Failure::kind(format!("{} is not subscriptable", other.kind()))),
    }
}

fn of_frame(frame: &DataFrame, key: Value, args: &Args) -> Result<Value, Failure> {
    Ok(match key {
        Value::Series(mask) => Value::Frame(frame.filter(&mask)),
        Value::Slice(..) => Value::Frame(rows(frame, key, args)?),
        Value::List(parts) if parts.first().is_some_and(|part| part.flag().is_ok()) => {
            let rows = frame.len_on(&*args.context.executor)?;
            if rows != parts.len() {
                let given = parts.len();
                return Err(Failure::value(format!("Item wrong length {given} instead of {rows}.")));
            }
            let mask = parts.into_iter().map(Value::scalar).collect::<Result<Vec<_>, _>>()?;
            let mask = frame_of(vec![("mask".to_owned(), column(mask, None)?)], None)?.col("mask");
            Value::Frame(frame.filter_by_position(&mask))
        }
        Value::List(parts) => {
            let labels = parts.iter().map(Value::text).collect::<Result<Vec<_>, _>>()?;
            Value::Frame(frame.select(strs(&labels)))
        }
        other => {
            let series: Series = frame.col(&other.text()?);
            Value::Series(series)
        }
    })
}

/// Rows by position; bounds below zero count from the end.
fn rows(frame: &DataFrame, key: Value, args: &Args) -> Result<DataFrame, Failure> {
    let Value::Slice(start, stop, step) = key else { return Err(Failure::kind("expected a slice")) };
    if step.is_some_and(|step| step != 1) {
        return Err(Failure::missing("a slice with a step is not implemented"));
    }
    let negative = [start, stop].into_iter().flatten().any(|bound| bound < 0);
    let all = if negative { frame.len_on(&*args.context.executor)? as i64 } else { 0 };
    let bound = |bound: i64| usize::try_from(if bound < 0 { bound + all } else { bound }).unwrap_or(0);
    Ok(match (start.map(bound), stop.map(bound)) {
        (None | Some(0), Some(stop)) => frame.head(stop),
        (from, to) => frame.slice(from.unwrap_or(0), to.unwrap_or(usize::MAX >> 1)),
    })
}

fn of_groups(groups: Groups, key: Value) -> Result<Value, Failure> {
    let (labels, single) = match &key {
        Value::List(_) => (key.texts()?, None),
        one => (vec![one.text()?], Some(one.text()?)),
    };
    let by = groups.by.select(strs(&labels));
    by.check()?;
    Ok(Value::Groups(Box::new(Groups { by, single, as_index: groups.as_index })))
}

fn of_spans(spans: Spans, key: Value) -> Result<Value, Failure> {
    let labels = key.texts()?;
    let single = (!matches!(key, Value::List(_))).then(|| (labels.concat(), Some(labels.concat())));
    let by = spans.by.select(strs(&labels));
    Ok(Value::Spans(Box::new(Spans { by, single, on: spans.on })))
}

fn setitem(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let label = args.need(1, "label")?.text()?;
    Ok(Value::Frame(frame.assign(&label, operand(args.need(2, "value")?)?)))
}
