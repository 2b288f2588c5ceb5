//! Methods of series.

use super::Failure;
use super::args::{Args, operand};
use super::frames::{end_rows, level_keys, sort};
use super::more::group_keys;
use super::places::Either;
use super::row::Row;
use super::rows::renumbered;
use super::value::{Value, comparable};
use tharsis_dataframe::{Series, lit};

pub(super) const SERIES: &[Row] = &[
    ("pd.Series.isin", "(values)", "whether each value is one of these", isin),
    (
        "pd.Series.between",
        "(left, right, inclusive='both')",
        "whether each value lies between two others",
        between,
    ),
    ("pd.Series.fillna", "(value)", "these values, others where they are missing", fillna),
    (
        "pd.Series.where",
        "(cond, other=NaN)",
        "these values where a condition holds, others elsewhere",
        choose,
    ),
    ("pd.Series.mask", "(cond, other=NaN)", "others where a condition holds, these values elsewhere", choose),
    ("pd.Series.isna", "()", "whether each value is missing", isna),
    ("pd.Series.notna", "()", "whether each value is there", isna),
    ("pd.Series.astype", "(dtype)", "the values with another type", astype),
    ("pd.Series.abs", "()", "the absolute values", abs),
    ("pd.Series.round", "(decimals=0)", "the values rounded, halves to even", round),
    ("pd.Series.unique", "()", "the distinct values, by their first rows", unique),
    ("pd.Series.head", "(n=5)", "the first values", ends),
    ("pd.Series.tail", "(n=5)", "the last values", ends),
    (
        "pd.Series.sort_values",
        "(ascending=True, na_position='last', ignore_index=False)",
        "the values in their order",
        sort_values,
    ),
    (
        "pd.Series.sort_index",
        "(ascending=True, na_position='last', ignore_index=False)",
        "the values by the labels of the index",
        sort_values,
    ),
    ("pd.Series.to_frame", "(name=None)", "a frame of this one column", to_frame),
    ("pd.Series.rename", "(name)", "the same values with another name", rename),
    ("pd.Series.groupby", "(by, sort=True, dropna=True)", "groups of values with equal keys", groupby),
    ("pd.Series.size", "()", "number of rows", size),
];

fn made(series: Series) -> Result<Value, Failure> {
    Ok(Value::Series(series))
}

fn isin(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let values = match args.need(1, "values")? {
        Value::Scalar(_) | Value::None => return Err(Failure::kind("isin: expected a list of values")),
        other => other.scalars()?,
    };
    made(series.isin(comparable(values, &series.dtype()?)))
}

fn between(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let (low, high) = (operand(args.need(1, "left")?)?, operand(args.need(2, "right")?)?);
    made(match args.choice(3, "inclusive", &["both", "neither", "left", "right"])? {
        "neither" => series.gt(low) & series.lt(high),
        "left" => series.ge(low) & series.lt(high),
        "right" => series.gt(low) & series.le(high),
        _ => series.between(low, high),
    })
}

fn fillna(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    made(series.fillna(operand(args.need(1, "value")?)?))
}

fn choose(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let condition = args.need(1, "cond")?.series()?;
    let other = operand(args.take(2, "other").unwrap_or(Value::None))?;
    made(if name == "mask" { series.mask(&condition, other) } else { series.keep_where(&condition, other) })
}

fn isna(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    made(if name == "isna" { series.isna() } else { series.notna() })
}

fn astype(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    made(series.astype(args.need(1, "dtype")?.dtype()?))
}

fn abs(_: &str, args: &mut Args) -> Result<Value, Failure> {
    made(args.series()?.abs())
}

fn round(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let decimals = args.integer(1, "decimals", 0)?;
    let decimals = i32::try_from(decimals).map_err(|_| Failure::value("decimals is out of bounds"))?;
    made(series.round(decimals))
}

fn unique(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    made(series.unique().named(series.name().map(str::to_owned)))
}

fn ends(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let rows = args.integer(1, "n", 5)?;
    let label = series.label();
    let chosen = end_rows(&series.to_frame(), name == "tail", rows, args)?;
    made(chosen.col(&label).named(series.name().map(str::to_owned)))
}

fn sort_values(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let (order, label) = (sort(args)?, series.label());
    renumbered(&Either::Series(series), args, usize::MAX, |frame| match name {
        "sort_index" => frame.sort_index(order),
        _ => frame.sort_values([label.as_str()], order),
    })
}

fn to_frame(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    Ok(Value::Frame(match args.given(1, "name") {
        Some(name) => series.rename(&name.text()?).to_frame(),
        None => series.to_frame(),
    }))
}

fn rename(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let name = args.given(1, "index").or_else(|| args.named("name"));
    made(series.named(name.map(|name| name.text()).transpose()?))
}

fn groupby(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let keys = match (args.given(1, "by"), args.given(usize::MAX, "level")) {
        (Some(by), None) => group_keys(by)?,
        (None, Some(level)) => level_keys(&series.to_frame(), level)?,
        _ => return Err(Failure::kind("You have to supply one of 'by' and 'level'")),
    };
    let by = series.groupby(keys);
    let by = by.sort(args.flag(usize::MAX, "sort", true)?).dropna(args.flag(usize::MAX, "dropna", true)?);
    by.check()?;
    let label = series.label();
    let by = by.select([label.as_str()]);
    Ok(Value::Groups(Box::new(super::value::Groups { by, single: Some(label), as_index: true })))
}

fn size(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let rows = args.series()?.to_frame().len_on(&*args.context.executor)?;
    Ok(Value::Scalar(lit(rows as i64)))
}
