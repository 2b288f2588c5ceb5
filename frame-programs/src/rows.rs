//! Rows of frames, series and indices: equal ones, missing ones, extreme ones, and their labels as columns.

use super::Failure;
use super::args::{Args, strs};
use super::axes::array;
use super::places::{Either, level_at};
use super::row::{Row, both};
use super::value::Value;
use tharsis_dataframe::for_programs::drops_index;
use tharsis_dataframe::{DataFrame, Factorize, Index, Keep, ResetIndex, SetIndex, Ties};

/// Rows that series and frames share.
pub(super) const BOTH: &[Row] = both!(
    "drop_duplicates" "(subset=None, keep='first', ignore_index=False)"
    "the first of equal rows, the last or none; a series has no subset" drop_duplicates,
    "duplicated" "(subset=None, keep='first')"
    "whether a row is equal to one before; a series has no subset" duplicated,
    "dropna" "(how='any', thresh=None, subset=None, ignore_index=False)"
    "the rows without missing values" dropna,
    "nlargest" "(n, columns, keep='first')"
    "the rows with the largest values; a series has no columns" extreme,
    "nsmallest" "(n, columns, keep='first')"
    "the rows with the smallest values; a series has no columns" extreme,
    "explode" "(column, ignore_index=False)"
    "a row for each element of lists; a series has no columns" explode,
    "reset_index" "(level=None, drop=False, name=None, names=None)"
    "an index of positions; the former one as columns" reset_index
);

/// Rows that one kind has alone.
pub(super) const ROWS: &[Row] = &[
    ("pd.DataFrame.set_index", "(keys, drop=True, append=False)", "columns as the index", set_index),
    (
        "pd.Index.drop_duplicates",
        "(keep='first')",
        "the first of equal labels, the last or none",
        distinct_labels,
    ),
    ("pd.Index.duplicated", "(keep='first')", "whether each label equals an earlier one", duplicated_labels),
    (
        "pd.Series.factorize",
        "(sort=False, use_na_sentinel=True)",
        "the number of each value among the distinct ones, and these",
        factorize,
    ),
    (
        "pd.Index.factorize",
        "(sort=False, use_na_sentinel=True)",
        "the number of each label among the distinct ones, and these",
        factorize,
    ),
    (
        "pd.factorize",
        "(values, sort=False, use_na_sentinel=True)",
        "the number of each value among the distinct ones, and these",
        factorize,
    ),
];

/// A step of a frame whose rows are numbered anew, if that is asked for.
pub(super) fn renumbered(
    object: &Either,
    args: &mut Args,
    position: usize,
    step: impl FnOnce(&DataFrame) -> DataFrame,
) -> Result<Value, Failure> {
    let ignore_index = args.flag(position, "ignore_index", false)?;
    Ok(object.through(|frame| {
        let made = step(frame);
        if ignore_index { made.reset_index(true) } else { made }
    }))
}

/// The row that stays of equal ones.
fn keep(args: &mut Args, position: usize) -> Result<Keep, Failure> {
    let Some(keep) = args.take(position, "keep") else { return Ok(Keep::First) };
    match (keep.text().as_deref(), keep.flag()) {
        (Ok("first"), _) => Ok(Keep::First),
        (Ok("last"), _) => Ok(Keep::Last),
        (_, Ok(false)) => Ok(Keep::Neither),
        _ => Err(Failure::value("keep must be either \"first\", \"last\" or False")),
    }
}

/// The rows that come of those with equal values.
pub(super) fn ties(args: &mut Args, position: usize) -> Result<Ties, Failure> {
    let Some(keep) = args.take(position, "keep") else { return Ok(Ties::First) };
    match keep.text().as_deref() {
        Ok("first") => Ok(Ties::First),
        Ok("last") => Ok(Ties::Last),
        Ok("all") => Ok(Ties::All),
        _ => Err(Failure::value("keep must be either \"first\", \"last\" or \"all\"")),
    }
}

/// The labels of the columns by which rows are equal, of a frame; those of a series are all.
fn subset(object: &Either, args: &mut Args) -> Result<Vec<String>, Failure> {
    let frame = object.frame();
    let all = frame.columns()?;
    if matches!(object, Either::Series(_)) {
        return Ok(all);
    }
    match args.texts(1, "subset")? {
        Some(none) if none.is_empty() && !all.is_empty() => match frame.len_on(&*args.context.executor)? {
            0 => Ok(all),
            _ => Err(Failure::value("not enough values to unpack (expected 2, got 0)")),
        },
        Some(subset) => Ok(subset),
        None => Ok(all),
    }
}

fn drop_duplicates(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let (labels, keep) = (subset(&object, args)?, keep(args, usize::MAX)?);
    renumbered(&object, args, usize::MAX, |frame| frame.drop_duplicates_but(strs(&labels), keep))
}

fn duplicated(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let labels = subset(&object, args)?;
    Ok(Value::Series(match object {
        Either::Frame(frame) => frame.duplicated_but(strs(&labels), keep(args, 2)?),
        Either::Series(series) => series.duplicated_but(keep(args, 1)?),
    }))
}

fn distinct_labels(_: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(Value::Index(args.index()?.drop_duplicates_but(keep(args, usize::MAX)?)))
}

fn duplicated_labels(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    array(&index.duplicated_but(keep(args, 1)?), args)
}

fn dropna(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    args.rows_only(usize::MAX)?;
    let how = args.named("how").map(|how| how.text()).transpose()?;
    if let Either::Series(_) = object {
        return renumbered(&object, args, usize::MAX, DataFrame::dropna);
    }
    let thresh = args.named("thresh").map(|thresh| thresh.integer()).transpose()?;
    let subset = args.texts(usize::MAX, "subset")?;
    let labels = subset.map_or_else(|| object.frame().columns(), Ok)?;
    let step = |frame: &DataFrame| match (thresh, how.as_deref()) {
        (Some(thresh), _) => frame.dropna_below(thresh, strs(&labels)),
        (None, Some("all")) => frame.dropna_all_in(strs(&labels)),
        _ => frame.dropna_in(strs(&labels)),
    };
    match how.as_deref() {
        Some(_) if thresh.is_some() => {
            Err(Failure::kind("You cannot set both the how and thresh arguments at the same time."))
        }
        None | Some("any" | "all") => renumbered(&object, args, usize::MAX, step),
        Some(how) => Err(Failure::value(format!("invalid how option: {how}"))),
    }
}

fn extreme(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let (rows, labels, ties) = match &object {
        Either::Frame(_) => {
            let rows = args.need(1, "n")?.integer()?;
            (rows, args.need(2, "columns")?.texts()?, ties(args, 3)?)
        }
        Either::Series(series) => (args.integer(1, "n", 5)?, vec![series.label()], ties(args, 2)?),
    };
    let rows = usize::try_from(rows).unwrap_or(0);
    Ok(object.through(|frame| match name {
        "nlargest" => frame.nlargest_with(rows, strs(&labels), ties),
        _ => frame.nsmallest_with(rows, strs(&labels), ties),
    }))
}

fn explode(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let (label, position) = match &object {
        Either::Frame(_) => (args.need(1, "column")?.text()?, 2),
        Either::Series(series) => (series.label(), 1),
    };
    renumbered(&object, args, position, |frame| frame.explode(&label))
}

/// The levels of the index that a reset is about, and the labels of their columns.
fn reset(frame: &DataFrame, args: &mut Args) -> Result<ResetIndex, Failure> {
    let options = ResetIndex::new();
    let options = match args.given(1, "level") {
        None => options,
        Some(Value::List(levels)) => {
            let levels = levels.iter().map(|level| level_at(frame, level));
            options.levels(levels.collect::<Result<Vec<_>, _>>()?)
        }
        Some(level) => options.levels([level_at(frame, &level)?]),
    };
    Ok(options.drop(args.flag(2, "drop", false)?))
}

fn reset_index(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let object = Either::of(args)?;
    let frame = object.frame();
    let options = reset(&frame, args)?;
    Ok(match object {
        Either::Frame(_) => {
            let names = args.texts(usize::MAX, "names")?.unwrap_or_default();
            Value::Frame(frame.reset_index_with(&options.names(strs(&names))))
        }
        Either::Series(series) => {
            let name = args.given(3, "name").map(|name| name.text()).transpose()?;
            match (drops_index(&options), name) {
                (true, _) => Value::Series(series.through(|frame, _| frame.reset_index_with(&options))),
                (false, Some(name)) => {
                    Value::Frame(series.rename(&name).to_frame().reset_index_with(&options))
                }
                (false, None) => Value::Frame(frame.reset_index_with(&options)),
            }
        }
    })
}

fn set_index(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let labels = args.need(1, "keys")?.texts()?;
    let keep = !args.flag(usize::MAX, "drop", true)?;
    let options = SetIndex::new().keep(keep).append(args.flag(usize::MAX, "append", false)?);
    let made = frame.set_index_with(strs(&labels), options);
    if args.flag(usize::MAX, "verify_integrity", false)? && made.index().has_duplicates()? {
        return Err(Failure::value("Index has duplicate keys"));
    }
    Ok(Value::Frame(made))
}

fn factorize(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let values = args.need(0, "values")?;
    let of_index = matches!(values, Value::Index(_));
    let series = match values {
        Value::Index(index) => index.to_series(),
        other => other.series()?,
    };
    let options = Factorize::new().sort(args.flag(1, "sort", false)?);
    let options = options.missing(!args.flag(2, "use_na_sentinel", true)?);
    let (codes, distinct) = Index::of_series(&series).factorize_with(options)?;
    let codes = array(&codes, args)?;
    let distinct = if of_index {
        Value::Index(distinct)
    } else {
        Value::List(distinct.values()?.into_iter().map(Value::Scalar).collect())
    };
    Ok(Value::Tuple(vec![codes, distinct]))
}
