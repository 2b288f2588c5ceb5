//! Methods of frames.

use super::Failure;
use super::args::{Args, operand, pairs, strs, text_pairs};
use super::more::group_keys;
use super::places::{Either, level_at};
use super::row::Row;
use super::rows::renumbered;
use super::value::{Groups, Value};
use tharsis_dataframe::{DataFrame, GroupKey, JoinKind, Merge, Sort, lit};

pub(super) const FRAMES: &[Row] = &[
    ("pd.DataFrame.assign", "(**columns)", "the frame with columns set to series or values", assign),
    (
        "pd.DataFrame.drop",
        "(labels=None, axis=0, index=None, columns=None, errors='raise')",
        "all rows or columns but these",
        drop,
    ),
    ("pd.DataFrame.rename", "(index=None, columns=None)", "the rows or columns under other labels", rename),
    (
        "pd.DataFrame.filter",
        "(items=None, like=None, regex=None)",
        "these columns, if there are such, or those whose label has a text or matches a pattern",
        filter,
    ),
    ("pd.DataFrame.head", "(n=5)", "the first rows", ends),
    ("pd.DataFrame.tail", "(n=5)", "the last rows", ends),
    (
        "pd.DataFrame.sort_values",
        "(by, ascending=True, na_position='last', ignore_index=False)",
        "the rows by the values of columns; equal ones keep their order",
        sort_values,
    ),
    (
        "pd.DataFrame.sort_index",
        "(ascending=True, na_position='last', ignore_index=False)",
        "the rows by the labels of the index",
        sort_index,
    ),
    (
        "pd.DataFrame.groupby",
        "(by, as_index=True, sort=True, dropna=True)",
        "groups of rows with equal keys",
        groupby,
    ),
    (
        "pd.DataFrame.merge",
        "(right, how='inner', on=None, left_on=None, right_on=None, sort=False, suffixes=('_x', '_y'), \
         indicator=False)",
        "rows of two frames with equal keys",
        merge,
    ),
    ("pd.DataFrame.fillna", "(value)", "a value, or one for each column, in place of missing ones", fillna),
    ("pd.DataFrame.isna", "()", "whether each value is missing", isna),
    ("pd.DataFrame.notna", "()", "whether each value is there", isna),
    ("pd.DataFrame.astype", "(dtype)", "the columns with another type, or one for each", astype),
    ("pd.DataFrame.copy", "()", "the same frame", copy),
    ("pd.DataFrame.columns", "()", "the labels of the columns", columns),
    ("pd.DataFrame.dtypes", "()", "label and type of each column", dtypes),
    ("pd.DataFrame.shape", "()", "number of rows and of columns", shape),
    ("pd.DataFrame.index", "()", "the index as a series", index),
];

fn made(frame: DataFrame) -> Result<Value, Failure> {
    Ok(Value::Frame(frame))
}

fn assign(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let mut frame = args.frame()?;
    for (label, value) in args.rest() {
        frame = frame.assign(&label, operand(value)?);
    }
    made(frame)
}

fn drop(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let labels = args.given(1, "labels");
    let of_columns = args.axis(2)?;
    let rows = args.given(usize::MAX, "index");
    let columns = args.texts(usize::MAX, "columns")?;
    let (rows, columns) = match (labels, rows, columns) {
        (Some(labels), None, None) if of_columns => (None, Some(labels.texts()?)),
        (Some(labels), None, None) => (Some(labels), None),
        (None, None, None) | (Some(_), ..) => {
            return Err(Failure::value("Need to specify at least one of 'labels', 'index' or 'columns'"));
        }
        (None, rows, columns) => (rows, columns),
    };
    let ignores = args.choice(usize::MAX, "errors", &["raise", "ignore"])? == "ignore";
    let frame = match rows {
        Some(labels) if ignores => frame.drop_rows_if_there(labels.scalars()?),
        Some(labels) => frame.drop_rows(labels.scalars()?),
        None => frame,
    };
    let Some(mut columns) = columns else { return made(frame) };
    if ignores {
        let known = frame.columns()?;
        columns.retain(|column| known.contains(column));
    }
    made(frame.drop(strs(&columns)))
}

fn rename(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let columns = args.given(usize::MAX, "columns").map(|pairs| text_pairs(&pairs)).transpose()?;
    let rows = args.given(usize::MAX, "index");
    if columns.is_none() && rows.is_none() {
        return Err(Failure::kind("must pass an index to rename"));
    }
    let columns = columns.unwrap_or_default();
    let renamed = frame.rename(columns.iter().map(|(old, new)| (old.as_str(), new.as_str())));
    made(match rows {
        None => renamed,
        Some(Value::Dict(entries)) => {
            let entries = entries.into_iter().map(|(old, new)| Ok((old.scalar()?, new.scalar()?)));
            renamed.rename_rows(entries.collect::<Result<Vec<_>, Failure>>()?)
        }
        Some(other) => {
            return Err(Failure::missing(format!("rename by {} is not implemented", other.kind())));
        }
    })
}

fn filter(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    if let Some(part) = args.given(2, "like") {
        let part = part.text()?;
        return made(frame.select_labels(|label| label.contains(&part)));
    }
    if let Some(pattern) = args.given(3, "regex") {
        return made(frame.select_matching(&pattern.text()?));
    }
    let items = args.need(1, "items")?.texts()?;
    let known = frame.columns()?;
    made(frame.select(strs(&items).filter(|item| known.iter().any(|label| label == item))))
}

fn ends(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let rows = args.integer(1, "n", 5)?;
    made(end_rows(&frame, name == "tail", rows, args)?)
}

/// The first or last rows; below zero, all but so many.
pub(super) fn end_rows(frame: &DataFrame, tail: bool, rows: i64, args: &Args) -> Result<DataFrame, Failure> {
    let rows = match usize::try_from(rows) {
        Ok(rows) => rows,
        Err(_) => {
            let all = frame.len_on(&*args.context.executor)?;
            all.saturating_sub(usize::try_from(rows.unsigned_abs()).unwrap_or(usize::MAX))
        }
    };
    Ok(if tail { frame.tail(rows) } else { frame.head(rows) })
}

/// The direction of a sort, and the place of missing values.
pub(super) fn sort(args: &mut Args) -> Result<Sort, Failure> {
    let ascending = match args.named("ascending") {
        None => Sort::ascending(),
        Some(Value::List(parts)) => Sort::each(parts.iter().map(Value::flag).collect::<Result<Vec<_>, _>>()?),
        Some(one) => Sort::each([one.flag()?]),
    };
    let first = args.choice(usize::MAX, "na_position", &["last", "first"])? == "first";
    // All sorts here are stable.
    args.named("kind");
    Ok(if first { ascending.missing_first() } else { ascending })
}

fn sort_values(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let labels = args.need(1, "by")?.texts()?;
    args.rows_only(2)?;
    let order = sort(args)?;
    renumbered(&Either::Frame(frame), args, usize::MAX, |frame| frame.sort_values(strs(&labels), order))
}

fn sort_index(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    args.rows_only(1)?;
    let order = sort(args)?;
    renumbered(&Either::Frame(frame), args, usize::MAX, |frame| frame.sort_index(order))
}

fn groupby(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let keys = match (args.given(1, "by"), args.given(usize::MAX, "level")) {
        (Some(by), None) => group_keys(by)?,
        (None, Some(level)) => level_keys(&frame, level)?,
        _ => return Err(Failure::kind("You have to supply one of 'by' and 'level'")),
    };
    let as_index = args.flag(usize::MAX, "as_index", true)?;
    let by = frame.groupby(keys).as_index(as_index);
    let by = by.sort(args.flag(usize::MAX, "sort", true)?).dropna(args.flag(usize::MAX, "dropna", true)?);
    // Only matters for categories, which groups do not know.
    args.named("observed");
    by.check()?;
    Ok(Value::Groups(Box::new(Groups { by, single: None, as_index })))
}

/// Keys that are levels of the index, by name or by place.
pub(super) fn level_keys(frame: &DataFrame, level: Value) -> Result<Vec<GroupKey>, Failure> {
    let levels = match level {
        Value::List(parts) => parts,
        one => vec![one],
    };
    let key = |level: &Value| {
        let at = level_at(frame, level)?;
        let name = frame.index_names()?[at].clone();
        name.map(GroupKey::Label).ok_or_else(|| Failure::missing("groups by a level without a name"))
    };
    levels.iter().map(key).collect()
}

/// A join of two frames, as a function or as a method of the left one.
pub(super) fn merge(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let left = match args.named("left") {
        Some(left) => left.frame()?,
        None => args.frame()?,
    };
    let right = args.need(1, "right")?.frame()?;
    let how =
        args.choice(2, "how", &["inner", "left", "right", "outer", "cross", "left_semi", "left_anti"])?;
    let (on, left_on, right_on) =
        (args.texts(3, "on")?, args.texts(4, "left_on")?, args.texts(5, "right_on")?);
    let merge = match (on, left_on, right_on) {
        (None, None, None) if how == "cross" => Merge::cross(),
        (Some(_), ..) | (_, Some(_), _) | (.., Some(_)) if how == "cross" => {
            return Err(Failure::new("MergeError", "a cross join has no keys"));
        }
        (Some(on), None, None) => Merge::on(strs(&on)),
        (None, Some(left_on), Some(right_on)) => Merge::on_pairs(strs(&left_on), strs(&right_on)),
        (None, None, None) => {
            let others = right.columns()?;
            let shared: Vec<String> =
                left.columns()?.into_iter().filter(|label| others.contains(label)).collect();
            if shared.is_empty() {
                return Err(Failure::new("MergeError", "no columns that both frames have to merge on"));
            }
            Merge::on(strs(&shared))
        }
        _ => return Err(Failure::new("MergeError", "either on, or left_on and right_on")),
    };
    let mut merge = merge.sort(args.flag(usize::MAX, "sort", false)?);
    merge = match args.given(usize::MAX, "indicator") {
        Some(Value::Scalar(label)) => match label.as_bool() {
            Some(false) => merge,
            Some(true) => merge.indicator("_merge"),
            None => merge.indicator(&Value::Scalar(label).text()?),
        },
        _ => merge,
    };
    let merge = match args.texts(usize::MAX, "suffixes")?.as_deref() {
        None => merge,
        Some([left, right]) => merge.suffixes(left, right),
        Some(_) => return Err(Failure::value("suffixes: expected two texts")),
    };
    made(left.merge(&right, merge.how(kind_of(how))))
}

fn kind_of(how: &str) -> JoinKind {
    match how {
        "left" => JoinKind::Left,
        "right" => JoinKind::Right,
        "outer" => JoinKind::Outer,
        "cross" => JoinKind::Cross,
        "left_semi" => JoinKind::Semi,
        "left_anti" => JoinKind::Anti,
        _ => JoinKind::Inner,
    }
}

fn fillna(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    match args.need(1, "value")? {
        Value::Dict(entries) => {
            let entries = entries.into_iter().map(|(label, value)| Ok((label.text()?, value.scalar()?)));
            let known = frame.columns()?;
            let mut filled = frame;
            for (label, value) in entries.collect::<Result<Vec<_>, Failure>>()? {
                if known.contains(&label) {
                    let series = filled.col(&label).fillna(value);
                    filled = filled.assign(&label, &series);
                }
            }
            made(filled)
        }
        value => made(frame.fillna(value.scalar()?)),
    }
}

fn isna(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    made(if name == "isna" { frame.isna() } else { frame.notna() })
}

fn astype(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let types = match args.need(1, "dtype")? {
        types @ Value::Dict(_) => pairs(&types, Value::dtype)?,
        one => {
            let dtype = one.dtype()?;
            frame.columns()?.into_iter().map(|label| (label, dtype.clone())).collect()
        }
    };
    made(frame.astype(types.iter().map(|(label, dtype)| (label.as_str(), dtype.clone()))))
}

fn copy(_: &str, args: &mut Args) -> Result<Value, Failure> {
    args.flag(1, "deep", true)?;
    made(args.frame()?)
}

fn columns(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let labels = args.frame()?.columns()?;
    Ok(Value::List(labels.into_iter().map(|label| Value::Scalar(lit(label))).collect()))
}

fn dtypes(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let dtypes = args.frame()?.dtypes()?;
    Ok(Value::Dict(
        dtypes.into_iter().map(|(label, dtype)| (Value::Scalar(lit(label)), Value::DType(dtype))).collect(),
    ))
}

fn shape(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let extents = [frame.len_on(&*args.context.executor)?, frame.columns()?.len()];
    Ok(Value::List(extents.into_iter().map(|extent| Value::Scalar(lit(extent as i64))).collect()))
}

fn index(_: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(Value::Index(args.frame()?.index()))
}
