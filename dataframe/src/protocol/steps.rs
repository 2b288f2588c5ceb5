//! Steps through rows in their order, of series, frames and groups; shapes of frames.

use super::Failure;
use super::args::{Args, strs};
use super::row::Row;
use super::value::Value;
use crate::frame::series::Series;
use crate::frame::{DataFrame, Dummies, Melt, Rank, RankMethod};

/// Rows of a step: of a series, and of a frame.
macro_rules! steps {
    ($($name:literal $signature:literal $doc:literal $run:ident),*) => {
        &[$((concat!("pd.Series.", $name), $signature, $doc, $run),
            (concat!("pd.DataFrame.", $name), $signature, $doc, $run)),*,
            ("pd.DataFrame.melt", "(id_vars=None, value_vars=None, var_name='variable', value_name='value', \
                ignore_index=True)", "columns as rows", melt),
            ("pd.get_dummies", "(data, prefix=None, prefix_sep='_', dummy_na=False, columns=None, drop_first=False)",
                "a column of truth values for each value", dummies)]
    };
}

pub(super) const STEPS: &[Row] = steps!(
    "shift" "(periods=1)" "the values of some rows before" by_rows,
    "diff" "(periods=1)" "the difference to some rows before" by_rows,
    "pct_change" "(periods=1)" "the change from some rows before" by_rows,
    "cumsum" "()" "the sum so far" so_far,
    "cumprod" "()" "the product so far" so_far,
    "cummin" "()" "the smallest value so far" so_far,
    "cummax" "()" "the largest value so far" so_far,
    "ffill" "()" "missing values as the last one before" so_far,
    "bfill" "()" "missing values as the next one" so_far,
    "interpolate" "()" "missing values on a line between their neighbours" so_far,
    "rank" "(method='average', ascending=True, pct=False)" "the place of each value, from 1" rank
);

/// Applies a step of either kind to the first argument.
fn stepped(
    args: &mut Args,
    of_series: impl FnOnce(&Series) -> Series,
    of_frame: impl FnOnce(&DataFrame) -> DataFrame,
) -> Result<Value, Failure> {
    match args.need(0, "self")? {
        Value::Series(series) => Ok(Value::Series(of_series(&series))),
        other => Ok(Value::Frame(of_frame(&other.frame()?))),
    }
}

fn by_rows(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let rows = args.integer(1, "periods", 1)?;
    match name {
        "shift" => stepped(args, |series| series.shift(rows), |frame| frame.shift(rows)),
        "diff" => stepped(args, |series| series.diff(rows), |frame| frame.diff(rows)),
        _ => stepped(args, |series| series.pct_change(rows), |frame| frame.pct_change(rows)),
    }
}

fn so_far(name: &str, args: &mut Args) -> Result<Value, Failure> {
    match name {
        "cumsum" => stepped(args, Series::cumsum, DataFrame::cumsum),
        "cumprod" => stepped(args, Series::cumprod, DataFrame::cumprod),
        "cummin" => stepped(args, Series::cummin, DataFrame::cummin),
        "cummax" => stepped(args, Series::cummax, DataFrame::cummax),
        "ffill" => stepped(args, Series::ffill, DataFrame::ffill),
        "bfill" => stepped(args, Series::bfill, DataFrame::bfill),
        _ => stepped(args, Series::interpolate, DataFrame::interpolate),
    }
}

fn rank(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let method = match args.choice(2, "method", &["average", "min", "max", "first", "dense"])? {
        "min" => RankMethod::Min,
        "max" => RankMethod::Max,
        "first" => RankMethod::First,
        "dense" => RankMethod::Dense,
        _ => RankMethod::Average,
    };
    let mut options = Rank::by(method);
    if !args.flag(5, "ascending", true)? {
        options = options.descending();
    }
    if args.flag(6, "pct", false)? {
        options = options.pct();
    }
    stepped(args, |series| series.rank(options), |frame| frame.rank(options))
}

fn melt(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let kept = args.texts(1, "id_vars")?.unwrap_or_default();
    let columns = frame.columns()?;
    let all = || columns.iter().filter(|column| !kept.contains(column)).cloned().collect();
    let values: Vec<String> = args.texts(2, "value_vars")?.unwrap_or_else(all);
    let mut options = Melt::default().ignore_index(args.flag(6, "ignore_index", true)?);
    if let Some(label) = args.given(3, "var_name") {
        options = options.var_name(&label.text()?);
    }
    if let Some(label) = args.given(4, "value_name") {
        options = options.value_name(&label.text()?);
    }
    Ok(Value::Frame(frame.melt_with(strs(&kept), strs(&values), &options)))
}

fn dummies(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let data = args.need(0, "data")?;
    let prefix = args.given(1, "prefix").map(|prefix| prefix.text()).transpose()?;
    let separator = args.given(2, "prefix_sep").map(|separator| separator.text()).transpose()?;
    let mut options = Dummies::default().dummy_na(args.flag(3, "dummy_na", false)?);
    let columns = args.texts(4, "columns")?;
    options = options.drop_first(args.flag(6, "drop_first", false)?);
    if let Some(separator) = &separator {
        options = options.prefix_sep(separator);
    }
    // The values of a series are labels themselves.
    if let (Value::Series(_), None) = (&data, &prefix) {
        options = options.prefix("").prefix_sep("");
    }
    if let Some(prefix) = &prefix {
        options = options.prefix(prefix);
    }
    let (frame, columns) = match data {
        Value::Series(series) => (series.to_frame(), Some(vec![series.label()])),
        other => (other.frame()?, columns),
    };
    Ok(Value::Frame(match columns {
        // No column is meant, and not all of texts.
        Some(columns) if columns.is_empty() => frame,
        columns => frame.get_dummies_with(strs(&columns.unwrap_or_default()), &options),
    }))
}
