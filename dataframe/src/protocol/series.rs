//! Methods of series.

use super::Failure;
use super::args::{Args, operand};
use super::frames::{end_rows, level_keys, sort};
use super::more::group_keys;
use super::row::Row;
use super::value::Value;
use crate::frame::DataFrame;
use crate::frame::series::Series;
use crate::value::lit;

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
    ("pd.Series.dropna", "()", "the values that are there", dropna),
    ("pd.Series.astype", "(dtype)", "the values with another type", astype),
    ("pd.Series.abs", "()", "the absolute values", abs),
    ("pd.Series.round", "(decimals=0)", "the values rounded, halves to even", round),
    ("pd.Series.unique", "()", "the distinct values, by their first rows", unique),
    ("pd.Series.drop_duplicates", "()", "the first of equal values", drop_duplicates),
    ("pd.Series.head", "(n=5)", "the first values", ends),
    ("pd.Series.tail", "(n=5)", "the last values", ends),
    (
        "pd.Series.sort_values",
        "(ascending=True, na_position='last')",
        "the values in their order",
        sort_values,
    ),
    ("pd.Series.sort_index", "(ascending=True)", "the values by the labels of the index", sort_values),
    ("pd.Series.nlargest", "(n=5)", "the largest values", extreme),
    ("pd.Series.nsmallest", "(n=5)", "the smallest values", extreme),
    (
        "pd.Series.reset_index",
        "(drop=False)",
        "an index of positions; the former one as a column of a frame",
        reset_index,
    ),
    ("pd.Series.to_frame", "(name=None)", "a frame of this one column", to_frame),
    ("pd.Series.rename", "(name)", "the same values with another name", rename),
    ("pd.Series.groupby", "(by, sort=True, dropna=True)", "groups of values with equal keys", groupby),
    ("pd.Series.size", "()", "number of rows", size),
];

fn made(series: Series) -> Result<Value, Failure> {
    Ok(Value::Series(series))
}

/// A series changed as a frame of one column.
fn through(series: &Series, step: impl FnOnce(&DataFrame, &str) -> DataFrame) -> Series {
    let name = series.name().map(str::to_owned);
    let label = series.label();
    step(&series.to_frame(), &label).col(&label).named(name)
}

fn isin(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let Value::List(values) = args.need(1, "values")? else {
        return Err(Failure::kind("isin: expected a list of values"));
    };
    made(series.isin(values.into_iter().map(Value::scalar).collect::<Result<Vec<_>, _>>()?))
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

fn dropna(_: &str, args: &mut Args) -> Result<Value, Failure> {
    made(through(&args.series()?, |frame, _| frame.dropna()))
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

fn drop_duplicates(_: &str, args: &mut Args) -> Result<Value, Failure> {
    made(through(&args.series()?, |frame, _| frame.drop_duplicates()))
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
    let order = sort(args)?;
    let sorted = through(&series, |frame, label| match name {
        "sort_index" => frame.sort_index(order),
        _ => frame.sort_values([label], order),
    });
    let ignore_index = args.flag(usize::MAX, "ignore_index", false)?;
    made(if ignore_index { through(&sorted, |frame, _| frame.reset_index(true)) } else { sorted })
}

fn extreme(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let rows = usize::try_from(args.integer(1, "n", 5)?).unwrap_or(0);
    made(through(&series, |frame, label| match name {
        "nlargest" => frame.nlargest(rows, [label]),
        _ => frame.nsmallest(rows, [label]),
    }))
}

fn reset_index(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    match args.flag(usize::MAX, "drop", false)? {
        true => made(through(&series, |frame, _| frame.reset_index(true))),
        false => Ok(Value::Frame(series.to_frame().reset_index(false))),
    }
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
