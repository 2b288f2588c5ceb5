//! Frames and series as a whole: where two differ, single values by label, numbers of axes and bytes.

use super::Failure;
use super::args::{Args, operand, strs};
use super::row::Row;
use super::value::Value;
use tharsis_dataframe::{Compare, Squeezed, Value as Scalar, lit};

pub(super) const WHOLE: &[Row] = &[
    (
        "pd.DataFrame.compare",
        "(other, keep_shape=False, keep_equal=False, result_names=('self', 'other'))",
        "where the values of another frame differ",
        compare,
    ),
    (
        "pd.Series.compare",
        "(other, keep_shape=False, keep_equal=False, result_names=('self', 'other'))",
        "where the values of another series differ",
        compare,
    ),
    ("pd.DataFrame.squeeze", "()", "the only column, row or value", squeeze),
    ("pd.Series.squeeze", "()", "the only value", squeeze),
    ("pd.Series.get", "(key, default=None)", "the value with a label, if there is one", get),
    ("pd.Series.pop", "(item)", "the value with a label", pop),
    ("pd.Series.nbytes", "()", "the bytes of the values", bytes),
    ("pd.Series.info", "()", "type, number of values and memory as a text", info),
    ("pd.DataFrame.asof", "(where, subset=None)", "the last row at a label or before it", asof),
    ("pd.Index.asof", "(label)", "a label, or the last one before it", asof),
    ("pd.Series.rdivmod", "(other)", "another one divided by these values: quotient and remainder", rdivmod),
];

fn compare(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let of = args.need(0, "self")?;
    let other = args.need(1, "other")?;
    args.choice(usize::MAX, "align_axis", &["columns"])?;
    let mut options = Compare::new().keep_shape(args.flag(3, "keep_shape", false)?).keep_equal(args.flag(
        4,
        "keep_equal",
        false,
    )?);
    if let Some(names) = args.texts(5, "result_names")? {
        let [own, others] = &names[..] else {
            return Err(Failure::value("result_names: there are two"));
        };
        options = options.names(own, others);
    }
    let made = match of {
        Value::Series(series) => series.compare_with(&other.series()?, &options),
        of => of.frame()?.compare_with(&other.frame()?, &options),
    };
    made.check()?;
    Ok(Value::Frame(made))
}

fn squeeze(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let squeezed = match args.need(0, "self")? {
        Value::Series(series) => series.squeeze()?,
        of => of.frame()?.squeeze()?,
    };
    Ok(match squeezed {
        Squeezed::Frame(frame) => Value::Frame(frame),
        Squeezed::Series(series) => Value::Series(series),
        Squeezed::Value(value) => Value::Scalar(value),
    })
}

fn get(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let key = args.need(1, "key")?.scalar()?;
    let default = args.given(2, "default").unwrap_or(Value::None);
    Ok(series.get(key)?.map_or(default, Value::Scalar))
}

fn pop(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let label: Scalar = args.need(1, "item")?.scalar()?;
    Ok(Value::Scalar(series.pop(label)?.0))
}

fn bytes(_: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(Value::Scalar(lit(args.series()?.nbytes()? as i64)))
}

fn info(_: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(Value::Scalar(lit(args.series()?.info()?)))
}

fn rdivmod(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let (quotient, rest) = series.rdivmod(operand(args.need(1, "other")?)?);
    Ok(Value::Tuple(vec![Value::Series(quotient), Value::Series(rest)]))
}

/// The last rows before labels: a series for one label.
fn asof(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let of = args.need(0, "self")?;
    let labels = args.need(1, "where")?;
    if let Value::Index(index) = &of {
        return Ok(Value::Scalar(or_nan(index.asof(labels.scalar()?)?)));
    }
    let frame = of.frame()?;
    let subset = args.texts(2, "subset")?.map_or_else(|| frame.columns(), Ok)?;
    let single = !matches!(labels, Value::List(_) | Value::Index(_) | Value::Series(_));
    let made = frame.asof_in(strs(&subset), labels.scalars()?);
    made.check()?;
    if !single {
        return Ok(Value::Frame(made));
    }
    let row = made.transpose();
    let label = row.columns()?.pop().unwrap_or_default();
    Ok(Value::Series(row.col(&label)))
}

fn or_nan(value: Scalar) -> Scalar {
    if value.is_missing() { Scalar::not_a_number() } else { value }
}
