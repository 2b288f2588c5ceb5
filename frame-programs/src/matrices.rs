//! Correlations, products, transposes and pivots of frames; expressions in texts.

use super::Failure;
use super::args::{Args, strs};
use super::row::Row;
use super::value::Value;
use tharsis_dataframe::{
    Aggregate, Correlation, Cut, DataFrame, Join, JoinKind, Term, Value as Scalar, crosstab, cut, eval,
};

/// More bins than this are not made: each is a branch of an expression.
const BINS_MAX: usize = 10_000;

pub(super) const MATRICES: &[Row] = &[
    (
        "pd.DataFrame.corr",
        "(method='pearson', min_periods=1, numeric_only=False)",
        "the correlation of each pair of columns",
        corr,
    ),
    (
        "pd.DataFrame.cov",
        "(min_periods=None, numeric_only=False)",
        "the covariance of each pair of columns",
        corr,
    ),
    ("pd.DataFrame.corrwith", "(other)", "the correlation of each column with another", corrwith),
    (
        "pd.Series.corr",
        "(other, method='pearson', min_periods=None)",
        "the correlation with another series",
        corr_of,
    ),
    ("pd.Series.cov", "(other, min_periods=None)", "the covariance with another series", corr_of),
    ("pd.Series.autocorr", "(lag=1)", "the correlation with the values of rows before", autocorr),
    ("pd.DataFrame.dot", "(other)", "the product with a frame or a series", dot),
    ("pd.Series.dot", "(other)", "the sum of products", dot),
    ("pd.DataFrame.transpose", "()", "rows as columns", transpose),
    ("pd.DataFrame.T", "()", "rows as columns", transpose),
    ("pd.DataFrame.pivot", "(columns, index, values)", "values of a column as columns", pivot),
    (
        "pd.DataFrame.pivot_table",
        "(values, index, columns, aggfunc='mean', fill_value=None, margins=False, margins_name='All')",
        "aggregates by values of two columns",
        pivot_table,
    ),
    ("pd.pivot", "(data, columns, index, values)", "values of a column as columns", pivot),
    (
        "pd.pivot_table",
        "(data, values, index, columns, aggfunc='mean', fill_value=None, margins=False, margins_name='All')",
        "aggregates by values of two columns",
        pivot_table,
    ),
    (
        "pd.crosstab",
        "(index, columns, margins=False, margins_name='All')",
        "the number of rows for pairs of values",
        cross,
    ),
    ("pd.DataFrame.stack", "()", "columns as a level of the index", stack),
    ("pd.DataFrame.unstack", "()", "the last level of the index as columns", unstack),
    ("pd.Series.unstack", "()", "the last level of the index as columns", unstack),
    (
        "pd.wide_to_long",
        "(df, stubnames, i, j, sep='')",
        "columns whose labels end in numbers as rows",
        wide_to_long,
    ),
    ("pd.from_dummies", "(data, sep=None)", "columns of truth values as one column", from_dummies),
    (
        "pd.cut",
        "(x, bins, right=True, labels=None, precision=3, include_lowest=False, duplicates='raise')",
        "the interval of each number",
        bins,
    ),
    (
        "pd.qcut",
        "(x, q, labels=None, precision=3, duplicates='raise')",
        "the interval of each number between quantiles",
        bins,
    ),
    ("pd.DataFrame.query", "(expr, local_dict={})", "the rows for which an expression holds", query),
    (
        "pd.DataFrame.eval",
        "(expr, local_dict={})",
        "the value of an expression, or columns set by assignments",
        query,
    ),
    ("pd.eval", "(expr, local_dict={})", "the value of an expression over named frames and series", evaluate),
];

fn corr(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let (method, at) = match name {
        "corr" => (args.choice(1, "method", &["pearson", "spearman", "kendall"])?, 2),
        _ => ("pearson", 1),
    };
    let least = args.count(at, "min_periods", 1)?;
    let numbers_only = args.flag(usize::MAX, "numeric_only", false)?;
    if name == "cov" && args.integer(2, "ddof", 1)? != 1 {
        return Err(Failure::missing("cov with another ddof than 1 is not implemented"));
    }
    for (label, dtype) in frame.dtypes()? {
        if !numbers_only && !dtype.is_numeric() && dtype != arrow::datatypes::DataType::Boolean {
            return Err(Failure::value(format!("could not convert string to float: column {label:?}")));
        }
    }
    Ok(Value::Frame(match (name, correlation(method)?) {
        ("cov", _) => frame.cov(least),
        (_, method) => frame.corr(method, least),
    }))
}

fn correlation(method: &str) -> Result<Correlation, Failure> {
    match method {
        "pearson" => Ok(Correlation::Pearson),
        "spearman" => Ok(Correlation::Spearman),
        other => Err(Failure::missing(format!("the correlation {other:?} is not implemented"))),
    }
}

fn corrwith(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let made = match args.need(1, "other")? {
        Value::Series(series) => frame.corrwith_series(&series),
        other => frame.corrwith(&other.frame()?),
    };
    Ok(Value::Series(made.col("0").named(None)))
}

/// One number; one that is missing is not a number.
fn number(value: tharsis_dataframe::Value) -> Value {
    Value::Scalar(if value.is_missing() { Scalar::not_a_number() } else { value })
}

fn corr_of(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let other = args.need(1, "other")?.series()?;
    let method = if name == "corr" {
        args.choice(2, "method", &["pearson", "spearman", "kendall"])?
    } else {
        "pearson"
    };
    let least = args.count(if name == "corr" { 3 } else { 2 }, "min_periods", 1)?;
    Ok(number(match name {
        "corr" => series.corr(&other, correlation(method)?, least)?,
        _ => series.cov(&other, least)?,
    }))
}

fn autocorr(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    Ok(number(series.autocorr(args.integer(1, "lag", 1)?)?))
}

fn dot(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let own = args.need(0, "self")?;
    let other = args.need(1, "other")?;
    Ok(match (own, other) {
        (Value::Frame(frame), Value::Frame(other)) => Value::Frame(frame.dot(&other)),
        (Value::Frame(frame), other) => Value::Series(frame.dot_series(&other.series()?)),
        (own, other) => {
            let (own, other) = (own.series()?, other.series()?);
            if !own
                .index()
                .sort_values(Default::default())
                .equals(&other.index().sort_values(Default::default()))?
            {
                return Err(Failure::value("matrices are not aligned"));
            }
            number(own.dot(&other)?)
        }
    })
}

fn transpose(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    Ok(Value::Frame(frame.transpose_on(&*args.context.executor)))
}

/// The label of one column.
fn one_label(value: Option<Value>, name: &str) -> Result<String, Failure> {
    match value {
        Some(Value::List(parts)) => match &parts[..] {
            [one] => one.text(),
            _ => Err(Failure::missing(format!("{name}: several columns make levels of labels"))),
        },
        Some(one) => one.text(),
        None => Err(Failure::missing(format!("{name} must be given"))),
    }
}

fn pivot(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = match args.named("data") {
        Some(frame) => frame.frame()?,
        None => args.frame()?,
    };
    let columns = one_label(args.given(usize::MAX, "columns"), "columns")?;
    let index = args.texts(usize::MAX, "index")?.ok_or_else(|| Failure::missing("index must be given"))?;
    let values = one_label(args.given(usize::MAX, "values"), "values")?;
    Ok(Value::Frame(frame.pivot(strs(&index), &columns, &values)))
}

fn pivot_table(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = match args.named("data") {
        Some(frame) => frame.frame()?,
        None => args.frame()?,
    };
    let values = one_label(args.given(1, "values"), "values")?;
    let index = args.texts(2, "index")?.ok_or_else(|| Failure::missing("index must be given"))?;
    let columns = args.given(3, "columns");
    let how = args.given(4, "aggfunc").map_or(Ok("mean".to_owned()), |how| how.text())?;
    let fill = args.given(5, "fill_value").map(Value::scalar).transpose()?;
    let margins = margins_name(args)?;
    args.only(usize::MAX, "dropna", true)?;
    args.named("observed");
    args.named("sort");
    let aggregate = Aggregate::named(&how)?;
    let made = match (columns, margins) {
        (Some(columns), None) => {
            frame.pivot_table(strs(&index), &one_label(Some(columns), "columns")?, &values, aggregate)
        }
        (Some(columns), Some(name)) => {
            let columns = one_label(Some(columns), "columns")?;
            with_margins(&frame, &index, &columns, (&values, aggregate), &name)?
        }
        (None, Some(_)) => return Err(Failure::missing("margins without columns are not implemented")),
        (None, None) => frame.groupby(strs(&index)).agg([(values.as_str(), aggregate)]),
    };
    Ok(Value::Frame(match fill {
        Some(fill) => made.fillna(fill),
        None => made,
    }))
}

fn cross(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let (index, columns) = (args.need(0, "index")?.series()?, args.need(1, "columns")?.series()?);
    let margins = margins_name(args)?;
    args.only(usize::MAX, "normalize", false)?;
    let Some(name) = margins else { return Ok(Value::Frame(crosstab(&index, &columns))) };
    const COLUMN: &str = "__tharsis_column";
    let labels = [index.to_frame().columns()?.remove(0)];
    let frame = index.to_frame().assign(COLUMN, &columns);
    let table = with_margins(&frame, &labels, COLUMN, (COLUMN, Aggregate::Size), &name)?;
    Ok(Value::Frame(table.fillna(0)))
}

/// The name of margins, if a table has some.
fn margins_name(args: &mut Args) -> Result<Option<String>, Failure> {
    let name = args.given(usize::MAX, "margins_name").map(|name| name.text()).transpose()?;
    Ok(args.flag(usize::MAX, "margins", false)?.then(|| name.unwrap_or_else(|| "All".to_owned())))
}

/// A table with a column of the aggregates of all columns, and a row of those of all rows, behind the others.
fn with_margins(
    frame: &DataFrame,
    index: &[String],
    columns: &str,
    (values, aggregate): (&str, Aggregate),
    name: &str,
) -> Result<DataFrame, Failure> {
    for (label, dtype) in frame.dtypes()? {
        if index.contains(&label) && !tharsis_dataframe::for_programs::is_text(&dtype) {
            let text = format!(
                "margins of rows by {label:?}, which is of {dtype}, are not implemented: make it texts"
            );
            return Err(Failure::missing(text));
        }
    }
    // Rows that lack one of these count for no margin.
    let complete = frame.dropna_in(strs(index).chain([columns, values]));
    let rows = frame.pivot_table(strs(index), columns, values, aggregate);
    if has_label(&rows, name)? {
        return Err(Failure::value(format!("Conflicting name \"{name}\" in margins")));
    }
    let mut last = complete.clone();
    for (level, label) in index.iter().enumerate() {
        last = last.assign(label, if level == 0 { name } else { "" });
    }
    let with_all = |table: &DataFrame, complete: &DataFrame| {
        let all = complete.groupby(strs(index)).agg_as([(name, values, aggregate)]);
        table.join(&all, Join::how(JoinKind::Left))
    };
    let rows = with_all(&rows, &complete);
    let last = with_all(&last.pivot_table(strs(index), columns, values, aggregate), &last);
    Ok(DataFrame::concat([&rows, &last], false))
}

/// Whether a column or a row of a table has this label.
fn has_label(table: &DataFrame, name: &str) -> Result<bool, Failure> {
    if table.columns()?.iter().any(|label| label == name) {
        return Ok(true);
    }
    let levels = table.index().to_frame();
    for level in levels.columns()? {
        let is_name = levels.col(&level).isin([name]);
        if is_name.agg(Aggregate::Any)?.as_bool() == Some(true) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn stack(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let stacked = args.frame()?.stack();
    args.named("future_stack");
    Ok(Value::Series(stacked.col("0").named(None)))
}

fn unstack(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let (frame, fill) = match args.need(0, "self")? {
        Value::Series(series) => (series.to_frame(), args.given(2, "fill_value")),
        other => (other.frame()?, args.given(2, "fill_value")),
    };
    if args.integer(1, "level", -1)? != -1 {
        return Err(Failure::missing("unstack of another level than the last is not implemented"));
    }
    let made = frame.unstack();
    Ok(Value::Frame(match fill {
        Some(fill) => made.fillna(fill.scalar()?),
        None => made,
    }))
}

fn wide_to_long(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = match args.named("df") {
        Some(frame) => frame.frame()?,
        None => args.frame()?,
    };
    let stubs = args.need(1, "stubnames")?.texts()?;
    let ids = args.need(2, "i")?.texts()?;
    let ending = args.need(3, "j")?.text()?;
    let separator = args.given(4, "sep").map(|sep| sep.text()).transpose()?.unwrap_or_default();
    Ok(Value::Frame(frame.wide_to_long(strs(&stubs), strs(&ids), &ending, &separator)))
}

fn from_dummies(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let separator = args.given(1, "sep").map(|sep| sep.text()).transpose()?;
    Ok(Value::Frame(frame.from_dummies(separator.as_deref())))
}

fn bins(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.need(0, "x")?.series()?;
    let bins = args.need(1, if name == "cut" { "bins" } else { "q" })?;
    let labels = args.given(if name == "cut" { 3 } else { 2 }, "labels");
    let mut intervals = match (name, bins) {
        ("qcut", count @ Value::Scalar(_)) => Cut::at_quantiles(&equal_parts(&count)?),
        ("qcut", parts) => Cut::at_quantiles(&numbers(parts.scalars()?)?),
        (_, count @ Value::Scalar(_)) => Cut::into_equal(bin_count(&count)?),
        (_, bounds) => bounds_of(bounds.scalars()?)?,
    };
    if name == "cut" {
        intervals = intervals.right(args.flag(2, "right", true)?);
        intervals = intervals.include_lowest(args.flag(6, "include_lowest", false)?);
    }
    if let Some(precision) = args.given(usize::MAX, "precision") {
        let precision = i32::try_from(precision.integer()?);
        intervals = intervals.precision(precision.map_err(|_| Failure::value("precision is out of range"))?);
    }
    if args.choice(usize::MAX, "duplicates", &["raise", "drop"])? == "drop" {
        intervals = intervals.drop_duplicates();
    }
    Ok(Value::Series(match labels {
        None => cut(&series, &intervals),
        Some(Value::Scalar(flag)) if flag.as_bool() == Some(false) => cut(&series, &intervals.numbered()),
        Some(labels) => cut(&series, &intervals.labels(strs(&labels.texts()?))),
    }))
}

fn bin_count(count: &Value) -> Result<usize, Failure> {
    let count = usize::try_from(count.integer()?).ok().filter(|count| (1..=BINS_MAX).contains(count));
    count.ok_or_else(|| Failure::value(format!("a number of bins lies between 1 and {BINS_MAX}")))
}

/// The bounds of as many parts of equal size.
fn equal_parts(count: &Value) -> Result<Vec<f64>, Failure> {
    let count = bin_count(count)?;
    Ok((0..=count).map(|at| at as f64 / count as f64).collect())
}

fn numbers(values: Vec<Scalar>) -> Result<Vec<f64>, Failure> {
    let numbers = values.into_iter().map(|number| number.as_f64());
    numbers.collect::<Option<_>>().ok_or_else(|| Failure::kind("bins: expected numbers"))
}

fn bounds_of(bounds: Vec<Scalar>) -> Result<Cut, Failure> {
    let integer = |bound: &Scalar| bound.as_i64().filter(|_| bound.dtype().is_integer());
    let whole: Option<Vec<i64>> = bounds.iter().map(integer).collect();
    Ok(match whole {
        Some(whole) => Cut::at_integers(&whole),
        None => Cut::at(&numbers(bounds)?),
    })
}

/// Values that an expression may name.
fn terms(value: Option<Value>) -> Result<Vec<(String, Term)>, Failure> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let Value::Dict(entries) = value else {
        return Err(Failure::kind(format!("local_dict: expected a dictionary, found {}", value.kind())));
    };
    let term = |value: Value| -> Result<Term, Failure> {
        Ok(match value {
            Value::Frame(frame) => Term::Frame(frame),
            Value::Series(series) => Term::Series(series),
            Value::List(parts) => Term::List(parts.into_iter().map(Value::scalar).collect::<Result<_, _>>()?),
            one => Term::Value(one.scalar()?),
        })
    };
    entries.into_iter().map(|(name, value)| Ok((name.text()?, term(value)?))).collect()
}

fn borrowed(terms: &[(String, Term)]) -> Vec<(&str, Term)> {
    terms.iter().map(|(name, term)| (name.as_str(), term.clone())).collect()
}

fn query(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let text = args.need(1, "expr")?.text()?;
    args.only(usize::MAX, "inplace", false)?;
    args.named("engine");
    let terms = terms(args.named("local_dict"))?;
    let given = borrowed(&terms);
    if name == "query" {
        return Ok(Value::Frame(frame.query_with(&text, &given)));
    }
    if text.trim().is_empty() {
        return Err(Failure::value("expr cannot be an empty string"));
    }
    // A text with an assignment gives a frame.
    let assigned = frame.eval_with(&text, &given);
    match assigned.check() {
        Ok(()) => Ok(Value::Frame(assigned)),
        Err(error) if error.class() == "ValueError" && text.lines().count() < 2 => {
            let series = frame.eval_series(&text, &given);
            series.dtype()?;
            if series.is_one_value()? {
                let table = series.rename("0").to_frame().collect_on(&*args.context.executor)?;
                if table.is_empty() {
                    Ok(Value::Scalar(Scalar::not_a_number()))
                } else {
                    Ok(Value::Scalar(table.value(0, "0")?))
                }
            } else {
                Ok(Value::Series(series))
            }
        }
        Err(error) => Err(error.into()),
    }
}

fn evaluate(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let text = args.need(0, "expr")?.text()?;
    args.named("engine");
    let terms = terms(args.named("local_dict"))?;
    Ok(match eval(&text, &borrowed(&terms))? {
        Term::Frame(frame) => Value::Frame(frame),
        Term::Series(series) if terms.is_empty() => Value::Scalar(series.item()?),
        Term::Series(series) => Value::Series(series),
        Term::Value(value) => Value::Scalar(value),
        Term::List(values) => Value::List(values.into_iter().map(Value::Scalar).collect()),
    })
}
