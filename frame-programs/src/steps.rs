//! Steps through rows in their order, of series, frames and groups; shapes of frames.

use super::Failure;
use super::args::{Args, strs};
use super::row::Row;
use super::value::Value;
use tharsis_dataframe::{
    DataFrame, Dummies, FillLimit, LimitArea, LimitDirection, Melt, NaOption, Rank, RankMethod, Series,
};

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
    "cumsum" "(skipna=True)" "the sum so far" so_far,
    "cumprod" "(skipna=True)" "the product so far" so_far,
    "cummin" "(skipna=True)" "the smallest value so far" so_far,
    "cummax" "(skipna=True)" "the largest value so far" so_far,
    "ffill" "(limit=None, limit_area=None)" "missing values as the last one before" fill,
    "bfill" "(limit=None, limit_area=None)" "missing values as the next one" fill,
    "interpolate" "(limit=None, limit_direction='forward', limit_area=None)" "missing values on a line between their neighbours" fill,
    "rank" "(method='average', na_option='keep', ascending=True, pct=False)" "the place of each value, from 1" rank
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
    let skipna = args.flag(usize::MAX, "skipna", true)?;
    match name {
        "cumsum" => stepped(args, |series| series.cumsum_skipna(skipna), |frame| frame.cumsum_skipna(skipna)),
        "cumprod" => {
            stepped(args, |series| series.cumprod_skipna(skipna), |frame| frame.cumprod_skipna(skipna))
        }
        "cummin" => stepped(args, |series| series.cummin_skipna(skipna), |frame| frame.cummin_skipna(skipna)),
        _ => stepped(args, |series| series.cummax_skipna(skipna), |frame| frame.cummax_skipna(skipna)),
    }
}

/// The missing values that an operation fills.
pub(super) fn fill_limit(args: &mut Args) -> Result<FillLimit, Failure> {
    let rows = args.given(usize::MAX, "limit").map(|limit| limit.integer()).transpose()?;
    let limit = match rows.map(usize::try_from) {
        None => FillLimit::default(),
        Some(Ok(rows @ 1..)) => FillLimit::rows(rows),
        Some(_) => return Err(Failure::value("Limit must be greater than 0")),
    };
    let limit = limit.direction(
        match args.choice(usize::MAX, "limit_direction", &["forward", "backward", "both"])? {
            "backward" => LimitDirection::Backward,
            "both" => LimitDirection::Both,
            _ => LimitDirection::Forward,
        },
    );
    Ok(match args.choice(usize::MAX, "limit_area", &["", "inside", "outside"])? {
        "inside" => limit.area(LimitArea::Inside),
        "outside" => limit.area(LimitArea::Outside),
        _ => limit,
    })
}

fn fill(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let limit = fill_limit(args)?;
    match name {
        "ffill" => stepped(args, |series| series.ffill_limited(limit), |frame| frame.ffill_limited(limit)),
        "bfill" => stepped(args, |series| series.bfill_limited(limit), |frame| frame.bfill_limited(limit)),
        _ => stepped(
            args,
            |series| series.interpolate_limited(limit),
            |frame| frame.interpolate_limited(limit),
        ),
    }
}

/// The options of a rank; the places of its arguments are method, na_option, ascending and pct.
pub(super) fn ranks(args: &mut Args, places: [usize; 4]) -> Result<Rank, Failure> {
    let [method, na_option, ascending, pct] = places;
    let method = match args.choice(method, "method", &["average", "min", "max", "first", "dense"])? {
        "min" => RankMethod::Min,
        "max" => RankMethod::Max,
        "first" => RankMethod::First,
        "dense" => RankMethod::Dense,
        _ => RankMethod::Average,
    };
    let mut options = Rank::by(method);
    options = options.na_option(match args.choice(na_option, "na_option", &["keep", "top", "bottom"])? {
        "top" => NaOption::Top,
        "bottom" => NaOption::Bottom,
        _ => NaOption::Keep,
    });
    if !args.flag(ascending, "ascending", true)? {
        options = options.descending();
    }
    Ok(if args.flag(pct, "pct", false)? { options.pct() } else { options })
}

fn rank(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let options = ranks(args, [2, 4, 5, 6])?;
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
