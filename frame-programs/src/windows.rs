//! Windows over rows: `rolling`, `expanding`, `ewm`.

use super::Failure;
use super::args::Args;
use super::row::Row;
use super::value::{Groups, Value, WindowKind, Windows};
use tharsis_dataframe::{Aggregate, DataFrame, Ends, Ewm, GroupBy, Rank, RankMethod, Series};

/// Rows of a kind of windows: of series, of frames, of groups.
macro_rules! kinds {
    ($($name:literal $signature:literal $doc:literal),*) => {
        &[$((concat!("pd.Series.", $name), $signature, $doc, make),
            (concat!("pd.DataFrame.", $name), $signature, $doc, make),
            (concat!("pd.GroupBy.", $name), $signature, $doc, make)),*]
    };
}

pub(super) const KINDS: &[Row] = kinds!(
    "rolling" "(window, min_periods=None, center=False, on=None, closed=None, step=None)" "windows of rows or of a span of time",
    "expanding" "(min_periods=1)" "windows of all rows so far",
    "ewm" "(com=None, span=None, halflife=None, alpha=None, min_periods=0, adjust=True, ignore_na=False)" "windows whose weights fade"
);

/// Rows of an aggregate of windows: of fixed ones, and of growing ones.
macro_rules! aggregates {
    ($($name:literal $doc:literal),*) => {
        &[$((concat!("pd.Rolling.", $name), "()", $doc, aggregate),
            (concat!("pd.Expanding.", $name), "()", $doc, aggregate)),*,
            ("pd.Rolling.agg", "(func)", "one aggregate of each window", by_name),
            ("pd.Expanding.agg", "(func)", "one aggregate of each window", by_name),
            ("pd.Rolling.quantile", "(q)", "a quantile of each window", quantile),
            ("pd.Expanding.quantile", "(q)", "a quantile of each window", quantile),
            ("pd.Rolling.rank", "(method='average', ascending=True, pct=False)", "the rank in each window", rank),
            ("pd.Expanding.rank", "(method='average', ascending=True, pct=False)", "the rank in each window", rank),
            ("pd.Rolling.cov", "(other)", "the covariance with another series", pairs),
            ("pd.Rolling.corr", "(other)", "the correlation with another series", pairs),
            ("pd.Expanding.cov", "(other)", "the covariance with another series", pairs),
            ("pd.Expanding.corr", "(other)", "the correlation with another series", pairs),
            ("pd.EWM.agg", "(func)", "one aggregate of each window", by_name),
            ("pd.EWM.mean", "()", "the weighted mean", aggregate),
            ("pd.EWM.sum", "()", "the weighted sum", aggregate),
            ("pd.EWM.std", "(bias=False)", "the weighted standard deviation", aggregate),
            ("pd.EWM.var", "(bias=False)", "the weighted variance", aggregate),
            ("pd.EWM.cov", "(other, bias=False)", "the weighted covariance", pairs),
            ("pd.EWM.corr", "(other)", "the weighted correlation", pairs)]
    };
}

pub(super) const WINDOWS: &[Row] = aggregates!(
    "sum" "the sum of each window",
    "mean" "the mean of each window",
    "min" "the smallest value of each window",
    "max" "the largest value of each window",
    "count" "the number of values of each window",
    "std" "the standard deviation of each window",
    "var" "the variance of each window",
    "sem" "the standard error of each window's mean",
    "median" "the middle value of each window",
    "first" "the first value of each window",
    "last" "the last value of each window",
    "nunique" "the number of distinct values of each window",
    "skew" "the skewness of each window",
    "kurt" "the excess kurtosis of each window"
);

fn make(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let of = match args.need(0, "self")? {
        of @ (Value::Series(_) | Value::Frame(_) | Value::Groups(_)) => of,
        other => return Err(Failure::kind(format!("windows over {}", other.kind()))),
    };
    let step = if name == "rolling" { step(args, &of)? } else { 1 };
    let kind = match name {
        "expanding" => WindowKind::Growing(args.count(1, "min_periods", 1)?),
        "ewm" => fading(args)?,
        _ => rows(args)?,
    };
    if step > 1 && !matches!(kind, WindowKind::Rows(..)) {
        return Err(Failure::missing("step is not supported with frequency windows"));
    }
    Ok(Value::Windows(Box::new(Windows { of, kind, step })))
}

/// Every how many rows a window ends.
fn step(args: &mut Args, of: &Value) -> Result<usize, Failure> {
    let Some(step) = args.given(7, "step") else { return Ok(1) };
    let step = usize::try_from(step.integer()?).ok().filter(|step| 0 < *step);
    let step = step.ok_or_else(|| Failure::value("step must be >= 1"))?;
    if step > 1 && matches!(of, Value::Groups(_)) {
        return Err(Failure::missing("step of windows of groups is not implemented"));
    }
    Ok(step)
}

/// Every so many of the rows.
fn every(step: usize, made: Value) -> Value {
    let chosen = |frame: &DataFrame| frame.iloc_step(None, None, step as i64);
    match made {
        made if step == 1 => made,
        Value::Frame(frame) => Value::Frame(chosen(&frame)),
        Value::Series(series) => {
            let label = series.label();
            Value::Series(chosen(&series.to_frame()).col(&label).named(series.name().map(str::to_owned)))
        }
        other => other,
    }
}

fn rows(args: &mut Args) -> Result<WindowKind, Failure> {
    let window = args.need(1, "window")?;
    let least = args.given(2, "min_periods").map(|least| least.integer()).transpose()?;
    let least = least
        .map(|least| usize::try_from(least).map_err(|_| Failure::value("min_periods must be >= 0")))
        .transpose()?;
    let center = args.flag(3, "center", false)?;
    let on = args.given(5, "on").map(|on| on.text()).transpose()?;
    let closed = args.given(6, "closed").map(|closed| closed.text()).transpose()?;
    let ends = match closed.as_deref() {
        None | Some("right") => Ends::Right,
        Some("left") => Ends::Left,
        Some("both") => Ends::Both,
        Some("neither") => Ends::Neither,
        Some(_) => return Err(Failure::value("closed must be 'right', 'left', 'both' or 'neither'")),
    };
    if let Ok(rows) = window.integer() {
        if on.is_some() {
            return Err(Failure::missing("on of a window of rows is not implemented"));
        }
        let rows =
            usize::try_from(rows).map_err(|_| Failure::value("window must be an integer 0 or greater"))?;
        return Ok(WindowKind::Rows(rows, least, center, ends));
    }
    if center {
        return Err(Failure::missing("center of a span of time is not implemented"));
    }
    Ok(WindowKind::Span(window.text()?, least.unwrap_or(1), ends, on))
}

fn fading(args: &mut Args) -> Result<WindowKind, Failure> {
    let mut given = Vec::new();
    for (position, name) in [(1, "com"), (2, "span"), (3, "halflife"), (4, "alpha")] {
        given.extend(args.float(position, name)?.map(|value| (name, value)));
    }
    let [(name, value)] = given[..] else {
        return Err(Failure::value(if given.is_empty() {
            "Must pass one of comass, span, halflife, or alpha"
        } else {
            "comass, span, halflife, and alpha are mutually exclusive"
        }));
    };
    let least = args.count(5, "min_periods", 0)?;
    let adjust = args.flag(6, "adjust", true)?;
    let ignore_na = args.flag(7, "ignore_na", false)?;
    Ok(WindowKind::Fading(name, value, least, adjust, ignore_na))
}

fn windows(args: &mut Args) -> Result<Box<Windows>, Failure> {
    match args.need(0, "self")? {
        Value::Windows(windows) => Ok(windows),
        other => Err(Failure::kind(format!("expected windows, found {}", other.kind()))),
    }
}

fn faded<T>(ewm: Ewm<T>, kind: &WindowKind) -> Ewm<T> {
    let WindowKind::Fading(name, value, least, adjust, ignore_na) = *kind else { return ewm };
    let ewm = ewm.min_periods(least).adjust(adjust).ignore_na(ignore_na);
    match name {
        "com" => ewm.com(value),
        "span" => ewm.span(value),
        "halflife" => ewm.halflife(value),
        _ => ewm.alpha(value),
    }
}

/// Aggregates of windows of one kind of object.
macro_rules! computed {
    ($name:ident $of:ident $to:ident $on:ident) => {
        fn $name(of: &$of, kind: &WindowKind, how: How) -> Result<$to, Failure> {
            Ok(match (kind, how) {
                (WindowKind::Rows(rows, least, center, ends), How::Aggregate(aggregate)) => {
                    let rolling = of.rolling(*rows).center(*center).closed(*ends);
                    match least {
                        Some(least) => rolling.min_periods(*least).agg(aggregate),
                        None => rolling.agg(aggregate),
                    }
                }
                (WindowKind::Growing(least), How::Aggregate(aggregate)) => {
                    of.expanding().min_periods(*least).agg(aggregate)
                }
                (WindowKind::Rows(rows, least, center, ends), How::Ranked(options)) => {
                    let rolling = of.rolling(*rows).center(*center).closed(*ends);
                    match least {
                        Some(least) => rolling.min_periods(*least).rank(options),
                        None => rolling.rank(options),
                    }
                }
                (WindowKind::Growing(least), How::Ranked(options)) => {
                    of.expanding().min_periods(*least).rank(options)
                }
                (WindowKind::Span(length, least, ends, on), How::Aggregate(aggregate)) => {
                    let spans = $on(of, length, on.as_deref())?;
                    spans.min_periods(*least).closed(*ends).agg(aggregate)
                }
                (WindowKind::Fading(..), How::Faded(name, bias)) => {
                    let ewm = faded(of.ewm(), kind).bias(bias);
                    match name {
                        "mean" => ewm.mean(),
                        "sum" => ewm.sum(),
                        "std" => ewm.std(),
                        _ => ewm.var(),
                    }
                }
                _ => return Err(Failure::kind("these windows have no such aggregate")),
            })
        }
    };
}

/// An aggregate of windows.
#[derive(Clone, Copy)]
enum How {
    Aggregate(Aggregate),
    Ranked(Rank),
    Faded(&'static str, bool),
}

type SpansOf<T> = Result<tharsis_dataframe::SpanRolling<T>, Failure>;

fn series_span(of: &Series, length: &str, on: Option<&str>) -> SpansOf<Series> {
    match on {
        None => Ok(of.rolling_span(length)),
        Some(on) => Err(Failure::value(format!("invalid on specified as {on}"))),
    }
}

fn frame_span(of: &DataFrame, length: &str, on: Option<&str>) -> SpansOf<DataFrame> {
    Ok(match on {
        None => of.rolling_span(length),
        Some(on) => of.rolling_span_on(on, length),
    })
}

fn groups_span(of: &GroupBy, length: &str, on: Option<&str>) -> SpansOf<GroupBy> {
    match on {
        Some(on) => Ok(of.rolling_span_on(on, length)),
        None => Err(Failure::missing("spans of time of groups by the index are not implemented; use on=")),
    }
}

computed!(of_series Series Series series_span);
computed!(of_frame DataFrame DataFrame frame_span);
computed!(of_groups GroupBy DataFrame groups_span);

fn computed(windows: &Windows, how: How) -> Result<Value, Failure> {
    Ok(every(windows.step, of_all_rows(windows, how)?))
}

fn of_all_rows(windows: &Windows, how: How) -> Result<Value, Failure> {
    Ok(match &windows.of {
        Value::Series(series) => Value::Series(of_series(series, &windows.kind, how)?),
        Value::Frame(frame) => {
            let on = if let WindowKind::Span(.., on) = &windows.kind { on.clone() } else { None };
            let numeric = |dtype: &arrow::datatypes::DataType| {
                dtype.is_numeric() || *dtype == arrow::datatypes::DataType::Boolean
            };
            for (label, dtype) in frame.dtypes()? {
                if !numeric(&dtype) && Some(&label) != on.as_ref() {
                    return Err(Failure::new("DataError", "Cannot aggregate non-numeric type: object"));
                }
            }
            Value::Frame(of_frame(frame, &windows.kind, how)?)
        }
        Value::Groups(groups) => {
            let made = of_groups(&groups.by, &windows.kind, how)?;
            match windows.kind {
                WindowKind::Rows(..) | WindowKind::Span(..) => super::groups::made(groups, made)?,
                WindowKind::Growing(_) | WindowKind::Fading(..) => one_or_all(groups, made)?,
            }
        }
        other => return Err(Failure::kind(format!("windows over {}", other.kind()))),
    })
}

/// A series if one column of the groups was chosen, else the frame.
pub(super) fn one_or_all(groups: &Groups, made: DataFrame) -> Result<Value, Failure> {
    made.check()?;
    Ok(match &groups.single {
        Some(label) => Value::Series(made.col(label)),
        None => Value::Frame(made),
    })
}

fn how(kind: &WindowKind, name: &str, bias: bool) -> Result<How, Failure> {
    Ok(match (kind, name) {
        (WindowKind::Fading(..), "mean") => How::Faded("mean", bias),
        (WindowKind::Fading(..), "sum") => How::Faded("sum", bias),
        (WindowKind::Fading(..), "std") => How::Faded("std", bias),
        (WindowKind::Fading(..), "var") => How::Faded("var", bias),
        (WindowKind::Fading(..), other) => {
            return Err(Failure::new("AttributeError", format!("no aggregate {other:?} of these windows")));
        }
        (_, name) => How::Aggregate(Aggregate::named(name)?),
    })
}

fn aggregate(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let windows = windows(args)?;
    args.only(usize::MAX, "numeric_only", false)?;
    let bias = args.flag(1, "bias", false)?;
    computed(&windows, how(&windows.kind, name, bias)?)
}

fn by_name(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let windows = windows(args)?;
    match args.need(1, "func")? {
        Value::List(names) => {
            let Value::Series(series) = &windows.of else {
                return Err(Failure::missing(
                    "several aggregates of windows of frames make levels of labels",
                ));
            };
            let mut columns = Vec::new();
            for name in names {
                let name = name.text()?;
                columns.push((
                    name.clone(),
                    of_series(series, &windows.kind, how(&windows.kind, &name, false)?)?,
                ));
            }
            let frame = columns.iter().skip(1).fold(
                columns.first().map(|(label, series)| series.rename(label).to_frame()),
                |frame, (label, series)| frame.map(|frame| frame.assign(label, series)),
            );
            let frame = frame.map(|frame| every(windows.step, Value::Frame(frame)));
            frame.ok_or_else(|| Failure::value("No objects to concatenate"))
        }
        one => computed(&windows, how(&windows.kind, &one.text()?, false)?),
    }
}

fn quantile(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let windows = windows(args)?;
    let part = args.float(1, "q")?.or(args.float(usize::MAX, "quantile")?);
    let part = part.ok_or_else(|| Failure::kind("missing required argument: 'q'"))?;
    args.choice(2, "interpolation", &["linear"])?;
    computed(&windows, How::Aggregate(Aggregate::Quantile(part)))
}

fn rank(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let windows = windows(args)?;
    let mut options = Rank::by(match args.choice(1, "method", &["average", "min", "max"])? {
        "min" => RankMethod::Min,
        "max" => RankMethod::Max,
        _ => RankMethod::Average,
    });
    if !args.flag(2, "ascending", true)? {
        options = options.descending();
    }
    if args.flag(3, "pct", false)? {
        options = options.pct();
    }
    computed(&windows, How::Ranked(options))
}

fn pairs(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let windows = windows(args)?;
    let Value::Series(series) = &windows.of else {
        return Err(Failure::missing("pairs of columns of windows are not implemented"));
    };
    if windows.step > 1 {
        return Err(Failure::missing(format!("step not implemented for {name}")));
    }
    let other = args.need(1, "other")?.series()?;
    let bias = args.flag(usize::MAX, "bias", false)?;
    Ok(Value::Series(match &windows.kind {
        WindowKind::Fading(..) => {
            let ewm = faded(series.ewm(), &windows.kind).bias(bias);
            if name == "cov" { ewm.cov(&other) } else { ewm.corr(&other) }
        }
        WindowKind::Rows(rows, least, center, ends) => {
            let rolling = series.rolling(*rows).center(*center).closed(*ends);
            let rolling = if let Some(least) = least { rolling.min_periods(*least) } else { rolling };
            if name == "cov" { rolling.cov(&other) } else { rolling.corr(&other) }
        }
        WindowKind::Growing(least) => {
            let growing = series.expanding().min_periods(*least);
            if name == "cov" { growing.cov(&other) } else { growing.corr(&other) }
        }
        WindowKind::Span(..) => return Err(Failure::missing("pairs over spans of time are not implemented")),
    }))
}
