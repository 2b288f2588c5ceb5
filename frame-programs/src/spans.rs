//! Spans of time: `resample` and what is computed of it, `asfreq`.

use super::Failure;
use super::args::Args;
use super::row::Row;
use super::value::{Spans, Value};
use tharsis_dataframe::{Aggregate, DataFrame, Fill, Resample, lit};

pub(super) const SPANS: &[Row] = &[
    ("pd.DataFrame.resample", "(rule, on=None)", "the rows by spans of time", resample),
    ("pd.Series.resample", "(rule)", "the values by spans of time", resample),
    ("pd.GroupBy.resample", "(rule, on=None)", "the rows of each group by spans of time", resample),
    ("pd.DataFrame.asfreq", "(freq, method=None, fill_value=None)", "rows at equal distances", asfreq),
    ("pd.Series.asfreq", "(freq, method=None, fill_value=None)", "values at equal distances", asfreq),
    ("pd.Resampler.agg", "(func)", "aggregates of each span: a name, a list, a dictionary", agg),
    ("pd.Resampler.apply", "(func)", "one aggregate of each span", agg),
    ("pd.Resampler.transform", "(func)", "an aggregate of each span in each of its rows", transform),
    ("pd.Resampler.size", "()", "the number of rows of each span", size),
    ("pd.Resampler.ngroups", "()", "the number of spans", count),
    ("pd.Resampler.sum", "()", "the sum of each span", one),
    ("pd.Resampler.mean", "()", "the mean of each span", one),
    ("pd.Resampler.min", "()", "the smallest value of each span", one),
    ("pd.Resampler.max", "()", "the largest value of each span", one),
    ("pd.Resampler.count", "()", "the number of values of each span", one),
    ("pd.Resampler.nunique", "()", "the number of distinct values of each span", one),
    ("pd.Resampler.first", "()", "the first value of each span", one),
    ("pd.Resampler.last", "()", "the last value of each span", one),
    ("pd.Resampler.std", "()", "the standard deviation of each span", one),
    ("pd.Resampler.var", "()", "the variance of each span", one),
    ("pd.Resampler.sem", "()", "the standard error of each span's mean", one),
    ("pd.Resampler.median", "()", "the middle value of each span", one),
    ("pd.Resampler.prod", "()", "the product of each span", one),
    ("pd.Resampler.quantile", "(q=0.5)", "a quantile of each span", quantile),
    ("pd.Resampler.ohlc", "()", "first, largest, smallest and last value of each span", ohlc),
    ("pd.Resampler.asfreq", "(fill_value=None)", "the rows at the labels of spans", put),
    ("pd.Resampler.ffill", "()", "the last row before the label of each span", put),
    ("pd.Resampler.bfill", "()", "the next row behind the label of each span", put),
    ("pd.Resampler.nearest", "()", "the row nearest to the label of each span", put),
    (
        "pd.Resampler.interpolate",
        "(method='linear')",
        "values at labels, between their neighbours",
        interpolate,
    ),
];

fn resample(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let of = args.need(0, "self")?;
    let rule = args.need(1, "rule")?.text()?;
    let on = args.given(usize::MAX, "on").map(|on| on.text()).transpose()?;
    let is_column = on.is_some();
    let (by, single) = match (of, on) {
        (Value::Series(_), Some(on)) => return Err(Failure::new("KeyError", on)),
        (Value::Series(series), None) => {
            let single = (series.label(), series.name().map(str::to_owned));
            (series.resample(&rule), Some(single))
        }
        (Value::Groups(groups), on) => {
            let by = match on {
                Some(on) => groups.by.resample(&on, &rule),
                None => groups.by.resample_index(&rule),
            };
            (by, groups.single.map(|label| (label.clone(), Some(label))))
        }
        (other, Some(on)) => (other.frame()?.resample(&on, &rule), None),
        (other, None) => (other.frame()?.resample_index(&rule), None),
    };
    Ok(Value::Spans(Box::new(Spans { by, single, on: is_column })))
}

fn spans(args: &mut Args) -> Result<Box<Spans>, Failure> {
    match args.need(0, "self")? {
        Value::Spans(spans) => Ok(spans),
        other => Err(Failure::kind(format!("expected spans of time, found {}", other.kind()))),
    }
}

/// The result: a series if the spans are those of one.
fn made(spans: &Spans, frame: DataFrame) -> Result<Value, Failure> {
    frame.check()?;
    Ok(match &spans.single {
        Some((label, name)) => Value::Series(frame.col(label).named(name.clone())),
        None => Value::Frame(frame),
    })
}

fn one(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let spans = spans(args)?;
    args.flag(usize::MAX, "numeric_only", false)?;
    made(&spans, spans.by.all_columns(Aggregate::named(name)?))
}

fn agg(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let spans = spans(args)?;
    match args.need(1, "func")? {
        Value::Dict(entries) => of_dictionary(&spans, entries),
        Value::List(names) => {
            let Some((label, _)) = &spans.single else {
                return Err(Failure::missing(
                    "a list of aggregates of a frame makes levels of labels, which are not implemented",
                ));
            };
            let names = names.iter().map(Value::text).collect::<Result<Vec<_>, _>>()?;
            let list = names.iter().map(|name| Ok((name.as_str(), label.as_str(), Aggregate::named(name)?)));
            Ok(Value::Frame(checked(spans.by.agg_as(list.collect::<Result<Vec<_>, Failure>>()?))?))
        }
        one => made(&spans, spans.by.all_columns(Aggregate::named(&one.text()?)?)),
    }
}

fn checked(frame: DataFrame) -> Result<DataFrame, Failure> {
    frame.check()?;
    Ok(frame)
}

/// One aggregate for each column, or lists of them; then all labels are `column_name`.
fn of_dictionary(spans: &Spans, entries: Vec<(Value, Value)>) -> Result<Value, Failure> {
    let mut list = Vec::new();
    let several = entries.iter().any(|(_, names)| matches!(names, Value::List(_)));
    for (column, names) in entries {
        let column = column.text()?;
        for name in names.texts()? {
            let label = if several { format!("{column}_{name}") } else { column.clone() };
            list.push((label, column.clone(), Aggregate::named(&name)?));
        }
    }
    let list = list.iter().map(|(label, column, how)| (label.as_str(), column.as_str(), *how));
    Ok(Value::Frame(checked(spans.by.agg_as(list))?))
}

fn transform(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let spans = spans(args)?;
    let aggregate = Aggregate::named(&args.need(1, "func")?.text()?)?;
    made(&spans, spans.by.transform(aggregate))
}

fn quantile(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let spans = spans(args)?;
    let part = args.float(1, "q")?.unwrap_or(0.5);
    args.flag(usize::MAX, "numeric_only", false)?;
    made(&spans, spans.by.quantile(part))
}

fn size(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let spans = spans(args)?;
    let sizes = checked(spans.by.size())?;
    let name = spans.single.as_ref().and_then(|(_, name)| name.clone());
    Ok(Value::Series(sizes.col("size").named(name)))
}

fn count(_: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(Value::Scalar(lit(spans(args)?.by.ngroups()? as i64)))
}

fn ohlc(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let spans = spans(args)?;
    match &spans.single {
        Some((label, _)) => Ok(Value::Frame(checked(spans.by.ohlc(label))?)),
        None => Err(Failure::missing("ohlc of frames makes levels of labels")),
    }
}

/// The spans, if rows can be put at their labels.
fn by_labels(args: &mut Args) -> Result<Box<Spans>, Failure> {
    let spans = spans(args)?;
    if spans.on {
        Err(Failure::value("Upsampling from level= or on= selection is not supported"))
    } else {
        Ok(spans)
    }
}

fn put(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let spans = by_labels(args)?;
    let by: &Resample = &spans.by;
    let frame = match name {
        "asfreq" => by.asfreq(filled(args, 1)?),
        "ffill" => by.ffill(),
        "bfill" => by.bfill(),
        _ => by.nearest(),
    };
    made(&spans, frame)
}

/// The value for labels that no row has.
fn filled(args: &mut Args, position: usize) -> Result<Fill, Failure> {
    let value = args.given(position, "fill_value").map(Value::scalar).transpose()?;
    Ok(value.map_or(Fill::Missing, Fill::Value))
}

fn interpolate(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let spans = by_labels(args)?;
    args.choice(1, "method", &["linear"])?;
    made(&spans, spans.by.interpolate())
}

fn asfreq(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let of = args.need(0, "self")?;
    let frequency = args.need(1, "freq")?.text()?;
    let method = args.given(2, "method").map(|method| method.text()).transpose()?;
    let fill = filled(args, usize::MAX)?;
    let fill = match method.as_deref() {
        None => fill,
        Some("ffill" | "pad") => Fill::Before,
        Some("bfill" | "backfill") => Fill::After,
        Some(other) => return Err(Failure::value(format!("Invalid fill method: {other}"))),
    };
    Ok(match of {
        Value::Series(series) => {
            let made = series.asfreq(&frequency, fill);
            made.dtype()?;
            Value::Series(made)
        }
        other => Value::Frame(checked(other.frame()?.asfreq(&frequency, fill))?),
    })
}
