//! Series and frames summed up: reductions with their options, counts of values, descriptions.

use super::Failure;
use super::args::{Args, strs};
use super::input::{column, frame_of};
use super::row::{Row, both};
use super::value::{Objects, Value};
use arrow::datatypes::DataType;
use tharsis_dataframe::for_programs::label_of_counts;
use tharsis_dataframe::{Aggregate, Counts, DataFrame, Interpolation, Reduce, Series, Value as Scalar, lit};

pub(super) const SUMMARIES: &[Row] = both!(
    "sum" "(axis=0, skipna=True, numeric_only=False, min_count=0)" "the sum" reduce,
    "prod" "(axis=0, skipna=True, numeric_only=False, min_count=0)" "the product" reduce,
    "mean" "(axis=0, skipna=True, numeric_only=False)" "the arithmetic mean" reduce,
    "median" "(axis=0, skipna=True, numeric_only=False)" "the middle value" reduce,
    "min" "(axis=0, skipna=True, numeric_only=False)" "the smallest value" reduce,
    "max" "(axis=0, skipna=True, numeric_only=False)" "the largest value" reduce,
    "skew" "(axis=0, skipna=True, numeric_only=False)" "the skewness of a sample" reduce,
    "kurt" "(axis=0, skipna=True, numeric_only=False)" "the excess kurtosis of a sample" reduce,
    "std" "(axis=0, skipna=True, ddof=1, numeric_only=False)" "the standard deviation" reduce,
    "var" "(axis=0, skipna=True, ddof=1, numeric_only=False)" "the variance" reduce,
    "sem" "(axis=0, skipna=True, ddof=1, numeric_only=False)" "the standard error of the mean" reduce,
    "any" "(axis=0, skipna=True)" "whether any value is true" reduce,
    "all" "(axis=0, skipna=True)" "whether all values are true" reduce,
    "count" "(axis=0, numeric_only=False)" "the number of values that are there" reduce,
    "nunique" "(axis=0, dropna=True)" "the number of distinct values" reduce,
    "idxmin" "(axis=0, skipna=True, numeric_only=False)" "the label of the smallest value" label_of,
    "idxmax" "(axis=0, skipna=True, numeric_only=False)" "the label of the largest value" label_of,
    "quantile" "(q=0.5, axis=0, numeric_only=False, interpolation='linear')" "quantiles of the values" quantile,
    "agg" "(func)" "aggregates: a name, a list of names, or one or several for each label" agg,
    "mode" "(dropna=True, numeric_only=False)" "the most frequent values" mode,
    "value_counts" "(subset=None, normalize=False, sort=True, ascending=False, dropna=True)"
        "how often each value, or each row, occurs" value_counts,
    "describe" "(percentiles=None, include=None)" "count, mean, deviation and quantiles" describe
);

/// The columns with numbers or truth values.
fn numbers(frame: &DataFrame) -> Result<DataFrame, Failure> {
    let types = frame.dtypes()?;
    let numeric = |dtype: &DataType| dtype.is_numeric() || *dtype == DataType::Boolean;
    let labels = types.iter().filter(|(_, dtype)| numeric(dtype)).map(|(label, _)| label.as_str());
    Ok(frame.select(labels.collect::<Vec<_>>()))
}

/// The options that a reduction takes.
fn options(name: &str, args: &mut Args, series: bool) -> Result<Reduce, Failure> {
    let reduce = Reduce::by(Aggregate::named(name)?);
    let at = |frames: usize| if matches!(name, "any" | "all") { usize::MAX } else { frames };
    Ok(match name {
        "count" => reduce,
        "nunique" => reduce.skipna(args.flag(if series { 1 } else { 2 }, "dropna", true)?),
        _ => {
            let reduce = reduce.skipna(args.flag(at(2), "skipna", true)?);
            match name {
                "sum" | "prod" => reduce.min_count(args.count(4, "min_count", 0)?),
                "std" | "var" | "sem" => reduce.ddof(args.count(3, "ddof", 1)?),
                _ => reduce,
            }
        }
    })
}

/// Whether only columns with numbers are meant.
fn numbers_only(name: &str, args: &mut Args) -> Result<bool, Failure> {
    let at = match name {
        "std" | "var" | "sem" => 4,
        "count" => 2,
        _ => 3,
    };
    match name {
        "any" | "all" => args.flag(usize::MAX, "bool_only", false),
        _ => args.flag(at, "numeric_only", false),
    }
}

/// A missing number is not a number, as pandas says.
fn shown(found: Scalar) -> Scalar {
    let number = found.dtype().is_floating() || found.dtype().is_integer();
    if found.is_missing() && number { Scalar::not_a_number() } else { found }
}

/// One value of a series.
fn one(series: &Series, reduce: Reduce, args: &Args) -> Result<Value, Failure> {
    Ok(Value::Scalar(shown(series.agg_on(reduce, &*args.context.executor)?)))
}

fn reduce(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let of = args.need(0, "self")?;
    if let Value::Series(series) = of {
        let reduce = options(name, args, true)?;
        if name != "nunique" {
            args.rows_only(1)?;
            numbers_only(name, args)?;
        }
        return one(&series, reduce, args);
    }
    let frame = of.frame()?;
    let across = args.axis(1)?;
    let reduce = options(name, args, false)?;
    let frame = if numbers_only(name, args)? { numbers(&frame)? } else { frame };
    if across {
        Ok(Value::Series(frame.agg_across(reduce)))
    } else {
        each(&frame, frame.columns()?.into_iter().map(|label| (label, reduce)).collect(), args)
    }
}

/// A reduction of each of some columns, as a series with the labels as index.
fn each(frame: &DataFrame, cells: Vec<(String, Reduce)>, args: &Args) -> Result<Value, Failure> {
    let values = frame.cells_on(&cells, &*args.context.executor)?.into_iter().map(shown).collect();
    let index = cells.into_iter().map(|(label, _)| lit(label)).collect();
    Objects::series(index, values, None).value()
}

fn label_of(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let of = args.need(0, "self")?;
    let across = args.axis(1)?;
    let skipna = args.flag(2, "skipna", true)?;
    let smallest = name == "idxmin";
    let none = || Failure::value(format!("Encountered all NA values or an empty sequence: {name}"));
    if let Value::Series(series) = of {
        let label = if smallest { series.idxmin()? } else { series.idxmax()? };
        return if label.is_missing() || (!skipna && series.hasnans()?) {
            Err(none())
        } else {
            Ok(Value::Scalar(label))
        };
    }
    let frame = of.frame()?;
    let frame = if args.flag(3, "numeric_only", false)? { numbers(&frame)? } else { frame };
    let labels = match (across, smallest) {
        (true, true) => frame.idxmin_across(),
        (true, false) => frame.idxmax_across(),
        (false, true) => frame.idxmin().col("0").named(None),
        (false, false) => frame.idxmax().col("0").named(None),
    };
    if frame.columns()?.is_empty() && !across {
        return Ok(Value::Series(labels));
    }
    let lacking =
        !skipna && frame.dropna().len_on(&*args.context.executor)? < frame.len_on(&*args.context.executor)?;
    let labels = labels.execute_on(&*args.context.executor)?;
    if lacking || labels.hasnans()? { Err(none()) } else { Ok(Value::Series(labels)) }
}

/// The parts of a list, and whether it was one.
pub(super) fn parts(value: Option<Value>) -> Result<(Vec<f64>, bool), Failure> {
    let Some(value) = value else { return Ok((vec![0.5], false)) };
    let several = !matches!(value, Value::Scalar(_));
    let part = |value: Scalar| value.as_f64().ok_or_else(|| Failure::kind("q: expected a number"));
    let parts = value.scalars()?.into_iter().map(part).collect::<Result<Vec<_>, _>>()?;
    if parts.iter().all(|part| (0.0..=1.0).contains(part)) {
        Ok((parts, several))
    } else {
        Err(Failure::value("percentiles should all be in the interval [0, 1]"))
    }
}

/// The interpolation of an option.
pub(super) fn interpolation(at: usize, args: &mut Args) -> Result<Interpolation, Failure> {
    let names = &["linear", "lower", "higher", "nearest", "midpoint"];
    Ok(match args.choice(at, "interpolation", names)? {
        "lower" => Interpolation::Lower,
        "higher" => Interpolation::Higher,
        "nearest" => Interpolation::Nearest,
        "midpoint" => Interpolation::Midpoint,
        _ => Interpolation::Linear,
    })
}

/// Refuses what lies between truth values.
fn between(types: &[(String, DataType)], how: Interpolation) -> Result<(), Failure> {
    let computed = matches!(how, Interpolation::Linear | Interpolation::Midpoint);
    if computed && types.iter().any(|(_, dtype)| *dtype == DataType::Boolean) {
        Err(Failure::kind("there is nothing between truth values"))
    } else {
        Ok(())
    }
}

fn quantile(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let of = args.need(0, "self")?;
    let (parts, several) = parts(args.given(1, "q"))?;
    if let Value::Series(series) = of {
        let how = interpolation(2, args)?;
        between(&[(String::new(), series.dtype()?)], how)?;
        let reduce = |part: &f64| Reduce::by(Aggregate::Quantile(*part)).interpolation(how);
        let [part] = parts[..] else { return quantiles(&series, &parts, reduce, args) };
        return if several {
            quantiles(&series, &parts, reduce, args)
        } else {
            one(&series, reduce(&part), args)
        };
    }
    let frame = of.frame()?;
    let across = args.axis(2)?;
    let frame = if args.flag(3, "numeric_only", false)? { numbers(&frame)? } else { frame };
    let how = interpolation(4, args)?;
    between(&frame.dtypes()?, how)?;
    let reduce = |part: &f64| Reduce::by(Aggregate::Quantile(*part)).interpolation(how);
    let labels = frame.columns()?;
    match (&parts[..], several, across) {
        ([part], false, true) => {
            Ok(Value::Series(frame.agg_across(reduce(part)).named(Some(format!("{part:?}")))))
        }
        (_, _, true) => Err(Failure::missing("several quantiles of each row are not implemented")),
        ([part], false, false) => {
            let cells = labels.into_iter().map(|label| (label, reduce(part))).collect();
            match each(&frame, cells, args)? {
                Value::Series(series) => Ok(Value::Series(series.named(Some(format!("{part:?}"))))),
                other => Ok(other),
            }
        }
        _ => {
            let rows = parts.iter().map(|part| (lit(*part), reduce(part))).collect::<Vec<_>>();
            table(&frame, labels.into_iter().map(|label| (label, rows.clone())).collect(), args)
        }
    }
}

/// Several quantiles of a series.
fn quantiles(
    series: &Series,
    parts: &[f64],
    reduce: impl Fn(&f64) -> Reduce,
    args: &Args,
) -> Result<Value, Failure> {
    let label = series.label();
    let cells: Vec<_> = parts.iter().map(|part| (label.clone(), reduce(part))).collect();
    let values =
        series.to_frame().cells_on(&cells, &*args.context.executor)?.into_iter().map(shown).collect();
    let index = parts.iter().map(|part| lit(*part)).collect();
    Objects::series(index, values, series.name().map(str::to_owned)).value()
}

/// Reductions of each column in rows with labels; a cell without a reduction is missing.
type Rows = Vec<(Scalar, Reduce)>;

/// A frame of reductions of columns, whose rows are those of all columns, by their first places.
fn table(frame: &DataFrame, columns: Vec<(String, Rows)>, args: &Args) -> Result<Value, Failure> {
    let mut index: Vec<Scalar> = Vec::new();
    for (label, _) in columns.iter().flat_map(|(_, rows)| rows) {
        if !index.contains(label) {
            index.push(label.clone());
        }
    }
    let cells = columns.iter().flat_map(|(column, rows)| rows.iter().map(|(_, how)| (column.clone(), *how)));
    let cells: Vec<_> = cells.collect();
    let mut found = frame.cells_on(&cells, &*args.context.executor)?.into_iter().map(shown);
    let columns = columns.into_iter().map(|(column, rows)| {
        let known: Vec<(Scalar, Scalar)> = rows.into_iter().map(|(row, _)| row).zip(found.by_ref()).collect();
        let value =
            |row: &Scalar| known.iter().find(|(known, _)| known == row).map(|(_, value)| value.clone());
        (column, index.iter().map(|row| value(row).unwrap_or_else(Scalar::not_a_number)).collect())
    });
    let columns = columns.collect();
    Objects { index, columns, name: None }.value()
}

/// The reductions of a list of names, under these names.
fn named_rows(names: &[String]) -> Result<Rows, Failure> {
    names.iter().map(|name| Ok((lit(name.clone()), Aggregate::named(name)?.into()))).collect()
}

fn agg(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let of = args.need(0, "self")?;
    args.rows_only(2)?;
    match of {
        Value::Series(series) => agg_series(&series, args),
        other => agg_frame(&other.frame()?, args),
    }
}

fn agg_series(series: &Series, args: &mut Args) -> Result<Value, Failure> {
    let rows = match args.need(1, "func")? {
        Value::List(names) => named_rows(&names.iter().map(Value::text).collect::<Result<Vec<_>, _>>()?)?,
        Value::Dict(entries) => {
            let row = |(label, name): &(Value, Value)| {
                Ok((lit(label.text()?), Aggregate::named(&name.text()?)?.into()))
            };
            entries.iter().map(row).collect::<Result<Rows, Failure>>()?
        }
        name => return one(series, Aggregate::named(&name.text()?)?.into(), args),
    };
    let label = series.label();
    let (index, cells): (Vec<Scalar>, Vec<_>) =
        rows.into_iter().map(|(row, how)| (row, (label.clone(), how))).unzip();
    let values =
        series.to_frame().cells_on(&cells, &*args.context.executor)?.into_iter().map(shown).collect();
    Objects::series(index, values, series.name().map(str::to_owned)).value()
}

fn agg_frame(frame: &DataFrame, args: &mut Args) -> Result<Value, Failure> {
    match args.need(1, "func")? {
        Value::Dict(entries) if entries.iter().any(|(_, names)| matches!(names, Value::List(_))) => {
            let column = |(label, names): &(Value, Value)| Ok((label.text()?, named_rows(&names.texts()?)?));
            table(frame, entries.iter().map(column).collect::<Result<Vec<_>, Failure>>()?, args)
        }
        Value::Dict(entries) => {
            let cell =
                |(label, name): &(Value, Value)| Ok((label.text()?, Aggregate::named(&name.text()?)?.into()));
            each(frame, entries.iter().map(cell).collect::<Result<Vec<_>, Failure>>()?, args)
        }
        Value::List(names) => {
            let rows = named_rows(&names.iter().map(Value::text).collect::<Result<Vec<_>, _>>()?)?;
            table(frame, frame.columns()?.into_iter().map(|label| (label, rows.clone())).collect(), args)
        }
        name => {
            let reduce: Reduce = Aggregate::named(&name.text()?)?.into();
            each(frame, frame.columns()?.into_iter().map(|label| (label, reduce)).collect(), args)
        }
    }
}

fn mode(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let of = args.need(0, "self")?;
    if let Value::Series(series) = of {
        return Ok(Value::Series(series.mode_with(args.flag(1, "dropna", true)?)));
    }
    let frame = of.frame()?;
    args.rows_only(1)?;
    let frame = if args.flag(2, "numeric_only", false)? { numbers(&frame)? } else { frame };
    Ok(Value::Frame(frame.mode_with(args.flag(3, "dropna", true)?)))
}

/// The options of counts, from the position of the first.
pub(super) fn counts(from: usize, args: &mut Args) -> Result<Counts, Failure> {
    let counts = Counts::default();
    let counts = if args.flag(from, "normalize", false)? { counts.normalize() } else { counts };
    let counts = counts.sort(args.flag(from + 1, "sort", true)?);
    let counts = if args.flag(from + 2, "ascending", false)? { counts.ascending() } else { counts };
    Ok(counts)
}

fn value_counts(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let of = args.need(0, "self")?;
    if let Value::Series(series) = of {
        let counts = counts(1, args)?.dropna(args.flag(5, "dropna", true)?);
        let found = series.value_counts_with(counts);
        let found = if series.name().is_none() { found.unnamed_index() } else { found };
        return Ok(Value::Series(found.col(label_of_counts(counts))));
    }
    let frame = of.frame()?;
    let labels = args.texts(1, "subset")?.map_or_else(|| frame.columns(), Ok)?;
    let counts = counts(2, args)?.dropna(args.flag(5, "dropna", true)?);
    Ok(Value::Series(frame.value_counts_with(strs(&labels), counts).col(label_of_counts(counts))))
}

/// A part as a label: `25%`.
fn percent(part: f64) -> String {
    let percent = (part * 1e8).round() / 1e6;
    format!("{percent}%")
}

/// The rows that describe numbers.
fn number_rows(parts: &[f64]) -> Rows {
    let row = |label: &str, aggregate: Aggregate| (lit(label.to_owned()), Reduce::by(aggregate));
    let first = [
        row("count", Aggregate::Count),
        row("mean", Aggregate::Mean),
        row("std", Aggregate::Std),
        row("min", Aggregate::Min),
    ];
    let quantiles = parts.iter().map(|part| row(&percent(*part), Aggregate::Quantile(*part)));
    first.into_iter().chain(quantiles).chain([row("max", Aggregate::Max)]).collect()
}

/// The rows that describe other values.
fn value_rows(series: &Series, args: &Args) -> Result<Vec<(Scalar, Scalar)>, Failure> {
    let label = series.label();
    let cells = [(label.clone(), Aggregate::Count.into()), (label, Aggregate::Nunique.into())];
    let found = series.to_frame().cells_on(&cells, &*args.context.executor)?;
    let most = series.named(Some("0".to_owned())).value_counts().head(1).reset_index(false);
    let most = most.collect_on(&*args.context.executor)?;
    let cell = |label: &str| if most.is_empty() { Ok(Scalar::not_a_number()) } else { most.value(0, label) };
    let rest = [("top", cell("0")?), ("freq", cell("count")?)];
    let rows = ["count", "unique"].into_iter().zip(found).chain(rest);
    Ok(rows.map(|(row, value)| (lit(row), value)).collect())
}

fn describe(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let of = args.need(0, "self")?;
    let (mut parts, _) = match args.given(1, "percentiles") {
        None => (vec![0.25, 0.5, 0.75], true),
        given => parts(given)?,
    };
    parts.sort_by(f64::total_cmp);
    if parts.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Failure::value("percentiles cannot contain duplicates"));
    }
    let include = args.given(2, "include");
    let (frame, name) = match of {
        Value::Series(series) => (series.to_frame(), Some(series.name().map(str::to_owned))),
        other => (other.frame()?, None),
    };
    let all = match include {
        None => name.is_some(),
        Some(include) if matches!(&include, Value::Scalar(_)) && include.text()? == "all" => true,
        Some(_) => return Err(Failure::missing("include: only 'all' is implemented")),
    };
    described(&frame, all, &parts, name, args)
}

/// The description of the columns with numbers, or of all.
fn described(
    frame: &DataFrame,
    all: bool,
    parts: &[f64],
    name: Option<Option<String>>,
    args: &Args,
) -> Result<Value, Failure> {
    let types = frame.dtypes()?;
    if types.is_empty() {
        return Err(Failure::value("Cannot describe a DataFrame without columns"));
    }
    let timed = |dtype: &DataType| matches!(dtype, DataType::Timestamp(..) | DataType::Duration(_));
    let all = all || !types.iter().any(|(_, dtype)| dtype.is_numeric() || timed(dtype));
    let kept: Vec<_> = types.into_iter().filter(|(_, dtype)| all || dtype.is_numeric()).collect();
    if kept.iter().any(|(_, dtype)| timed(dtype)) {
        return Err(Failure::missing("the description of times is not implemented"));
    }
    let rows = number_rows(parts);
    let numeric: Vec<&String> =
        kept.iter().filter(|(_, dtype)| dtype.is_numeric()).map(|(label, _)| label).collect();
    let cells = numeric.iter().flat_map(|label| rows.iter().map(|(_, how)| ((*label).clone(), *how)));
    let cells: Vec<_> = cells.collect();
    let mut found = frame.cells_on(&cells, &*args.context.executor)?.into_iter().map(shown);
    let mut columns: Vec<(String, Vec<(Scalar, Scalar)>)> = Vec::new();
    for (label, dtype) in kept {
        let known = if dtype.is_numeric() {
            rows.iter().map(|(row, _)| row.clone()).zip(found.by_ref()).collect()
        } else {
            value_rows(&frame.col(&label), args)?
        };
        columns.push((label, known));
    }
    // pandas takes the rows of the shortest description first.
    let mut shortest: Vec<&Vec<(Scalar, Scalar)>> = columns.iter().map(|(_, known)| known).collect();
    shortest.sort_by_key(|known| known.len());
    let mut index: Vec<Scalar> = Vec::new();
    for (row, _) in shortest.into_iter().flatten() {
        if !index.contains(row) {
            index.push(row.clone());
        }
    }
    let columns = columns.iter().map(|(label, known)| {
        let value =
            |row: &Scalar| known.iter().find(|(known, _)| known == row).map(|(_, value)| value.clone());
        (label.clone(), index.iter().map(|row| value(row).unwrap_or_else(Scalar::not_a_number)).collect())
    });
    let columns = columns.collect();
    Objects { index, columns, name }.value()
}

impl Objects {
    /// A series of values.
    fn series(index: Vec<Scalar>, values: Vec<Scalar>, name: Option<String>) -> Objects {
        let label = name.clone().unwrap_or_else(|| "0".to_owned());
        Objects { index, columns: vec![(label, values)], name: Some(name) }
    }

    /// A frame or a series, if the values of each column share a type.
    fn value(self) -> Result<Value, Failure> {
        let typed = |values: &Vec<Scalar>| column(values.clone(), None);
        let arrays = self.columns.iter().map(|(_, values)| typed(values)).collect::<Result<Vec<_>, _>>();
        let arrays = match arrays {
            Ok(arrays) => arrays,
            Err(failure) if failure.class == "NotImplemented" => return Ok(Value::Objects(Box::new(self))),
            Err(failure) => return Err(failure),
        };
        let level = "__tharsis_level_0".to_owned();
        let labels = self.columns.into_iter().map(|(label, _)| label).zip(arrays);
        let columns = std::iter::once((level.clone(), column(self.index, None)?)).chain(labels).collect();
        let frame = frame_of(columns, None)?.set_index([level.as_str()]).unnamed_index();
        let label = frame.columns()?.into_iter().next().unwrap_or_default();
        Ok(match self.name {
            Some(name) => Value::Series(frame.col(&label).named(name)),
            None => Value::Frame(frame),
        })
    }
}
