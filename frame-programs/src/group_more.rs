//! The rest of the methods of groups: steps within groups, rows of groups, single groups.

use super::Failure;
use super::args::Args;
use super::groups::made;
use super::row::Row;
use super::summaries::counts;
use super::value::{Groups, Value};
use super::windows::one_or_all;
use tharsis_dataframe::for_programs::label_of_counts;
use tharsis_dataframe::{Aggregate, DataFrame, FillLimit, Rank, lit};

pub(super) const GROUPS: &[Row] = &[
    ("pd.GroupBy.prod", "(numeric_only=False)", "the product of each column", aggregate),
    ("pd.GroupBy.skew", "(numeric_only=False)", "the skewness of each column", aggregate),
    ("pd.GroupBy.kurt", "(numeric_only=False)", "the excess kurtosis of each column", aggregate),
    (
        "pd.GroupBy.transform",
        "(func)",
        "an aggregate of each group in each of its rows, or a step",
        transform,
    ),
    ("pd.GroupBy.cumsum", "(skipna=True)", "the sum so far in each group", step),
    ("pd.GroupBy.cumprod", "(skipna=True)", "the product so far in each group", step),
    ("pd.GroupBy.cummin", "(skipna=True)", "the smallest value so far in each group", step),
    ("pd.GroupBy.cummax", "(skipna=True)", "the largest value so far in each group", step),
    ("pd.GroupBy.ffill", "(limit=None)", "missing values as the last one before in the group", fill),
    ("pd.GroupBy.bfill", "(limit=None)", "missing values as the next one in the group", fill),
    ("pd.GroupBy.shift", "(periods=1)", "the values of some rows before in the group", by_rows),
    ("pd.GroupBy.diff", "(periods=1)", "the difference to some rows before in the group", by_rows),
    ("pd.GroupBy.pct_change", "(periods=1)", "the change from some rows before in the group", by_rows),
    (
        "pd.GroupBy.rank",
        "(method='average', ascending=True, na_option='keep', pct=False)",
        "the place of each value in its group",
        rank,
    ),
    ("pd.GroupBy.cumcount", "(ascending=True)", "the position of each row in its group", number),
    ("pd.GroupBy.ngroup", "()", "the number of each row's group", number),
    ("pd.GroupBy.head", "(n=5)", "the first rows of each group", ends),
    ("pd.GroupBy.tail", "(n=5)", "the last rows of each group", ends),
    ("pd.GroupBy.nth", "(n)", "the row of each group at a position", nth),
    ("pd.GroupBy.idxmin", "()", "the label of the smallest value in each group", label_of),
    ("pd.GroupBy.idxmax", "()", "the label of the largest value in each group", label_of),
    (
        "pd.GroupBy.value_counts",
        "(normalize=False, sort=True, ascending=False, dropna=True)",
        "how often each value occurs in each group",
        value_counts,
    ),
    ("pd.GroupBy.get_group", "(name)", "the rows of one group", get_group),
    ("pd.GroupBy.ngroups", "()", "the number of groups", ngroups),
    ("pd.GroupBy.fillna", "(value)", "a value in place of missing ones", fillna),
    ("pd.GroupBy.sample", "(n=1, random_state=0)", "some rows of each group", sample),
    ("pd.GroupBy.nlargest", "(n=5, keep='first')", "the largest values of each group", extreme),
    ("pd.GroupBy.nsmallest", "(n=5, keep='first')", "the smallest values of each group", extreme),
    ("pd.GroupBy.ohlc", "()", "first, largest, smallest and last value of each group", of_column),
    ("pd.GroupBy.describe", "()", "count, mean, deviation and quantiles of each group", of_column),
    (
        "pd.GroupBy.corr",
        "(other=None, min_periods=1, numeric_only=False)",
        "correlations in each group",
        pairs,
    ),
    ("pd.GroupBy.cov", "(other=None, min_periods=1, numeric_only=False)", "covariances in each group", pairs),
    ("pd.GroupBy.corrwith", "(other)", "the correlation with a series in each group", pairs),
    ("pd.GroupBy.unique", "()", "the distinct values of each group, as lists", unique),
    ("pd.GroupBy.indices", "()", "the positions of each group's rows", indices),
    ("pd.GroupBy.is_monotonic_increasing", "()", "whether no value falls in each group", monotonic),
    ("pd.GroupBy.is_monotonic_decreasing", "()", "whether no value rises in each group", monotonic),
];

fn aggregate(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let numbers_only = args.flag(1, "numeric_only", false)?;
    let aggregate = Aggregate::named(name)?;
    made(&groups, super::groups::of_all(&groups, aggregate, numbers_only)?)
}

/// A step of every column but the keys; of the chosen ones only if some are.
fn stepped(
    groups: &Groups,
    step: impl FnOnce(&tharsis_dataframe::GroupBy) -> DataFrame,
) -> Result<Value, Failure> {
    one_or_all(groups, step(&groups.by))
}

fn by_name(groups: &Groups, name: &str) -> Result<Value, Failure> {
    stepped(groups, |by| match name {
        "cumsum" => by.cumsum(),
        "cumprod" => by.cumprod(),
        "cummin" => by.cummin(),
        "cummax" => by.cummax(),
        "ffill" => by.ffill(),
        _ => by.bfill(),
    })
}

fn step(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    args.only(usize::MAX, "numeric_only", false)?;
    let skipna = args.flag(usize::MAX, "skipna", true)?;
    stepped(&groups, |by| match name {
        "cumsum" => by.cumsum_skipna(skipna),
        "cumprod" => by.cumprod_skipna(skipna),
        "cummin" => by.cummin_skipna(skipna),
        _ => by.cummax_skipna(skipna),
    })
}

fn fill(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let rows = args.given(1, "limit").map(|limit| limit.integer()).transpose()?;
    let limit = match rows.map(usize::try_from) {
        None => FillLimit::default(),
        Some(Ok(rows)) => FillLimit::rows(rows),
        Some(Err(_)) => return Err(Failure::value("Limit must be greater than 0")),
    };
    stepped(&groups, |by| if name == "ffill" { by.ffill_limited(limit) } else { by.bfill_limited(limit) })
}

fn transform(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let func = args.need(1, "func")?.text()?;
    match func.as_str() {
        "cumsum" | "cumprod" | "cummin" | "cummax" | "ffill" | "bfill" => by_name(&groups, &func),
        "shift" => stepped(&groups, |by| by.shift(1)),
        "diff" => stepped(&groups, |by| by.diff(1)),
        "rank" => stepped(&groups, |by| by.rank(Rank::default())),
        "size" if groups.single.is_none() => {
            let sizes = groups.by.transform(Aggregate::Size);
            let label = sizes.columns()?.into_iter().next();
            let label = label.ok_or_else(|| Failure::value("there is no column for this"))?;
            Ok(Value::Series(sizes.col(&label).named(None)))
        }
        name => {
            let aggregate = Aggregate::named(name)?;
            stepped(&groups, |by| by.transform(aggregate))
        }
    }
}

fn by_rows(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let rows = args.integer(1, "periods", 1)?;
    stepped(&groups, |by| match name {
        "shift" => by.shift(rows),
        "diff" => by.diff(rows),
        _ => by.pct_change(rows),
    })
}

fn rank(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let options = super::steps::ranks(args, [1, 3, 2, 4])?;
    stepped(&groups, |by| by.rank(options))
}

fn number(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    args.only(1, "ascending", true)?;
    Ok(Value::Series(if name == "cumcount" { groups.by.cumcount() } else { groups.by.ngroup() }))
}

fn ends(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let rows = args.integer(1, "n", 5)?;
    let count = usize::try_from(rows.unsigned_abs()).unwrap_or(usize::MAX);
    stepped(&groups, |by| match (name, rows < 0) {
        ("head", false) => by.head(count),
        ("head", true) => by.head_but(count),
        (_, false) => by.tail(count),
        (_, true) => by.tail_but(count),
    })
}

fn nth(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    match args.need(1, "n")? {
        Value::List(parts) => {
            let places = parts.iter().map(Value::integer).collect::<Result<Vec<_>, _>>()?;
            stepped(&groups, |by| by.take(places))
        }
        one => {
            let place = one.integer()?;
            stepped(&groups, |by| by.nth(place))
        }
    }
}

fn label_of(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let labels = if name == "idxmin" { groups.by.idxmin() } else { groups.by.idxmax() };
    made(&groups, labels)
}

fn value_counts(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let of_frame = usize::from(groups.single.is_none());
    let counts = counts(1 + of_frame, args)?.dropna(args.flag(5, "dropna", true)?);
    let found = groups.by.value_counts_with(counts);
    found.check()?;
    Ok(if groups.as_index { Value::Series(found.col(label_of_counts(counts))) } else { Value::Frame(found) })
}

fn get_group(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let labels = args.need(1, "name")?.scalars()?;
    stepped(&groups, |by| by.get_group(labels))
}

fn ngroups(_: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(Value::Scalar(lit(args.groups()?.by.ngroups()? as i64)))
}

fn fillna(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let value = args.need(1, "value")?.scalar()?;
    stepped(&groups, |by| by.fillna(value))
}

fn sample(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let rows = args.count(1, "n", 1)?;
    let seed = args.integer(5, "random_state", 0)? as u64;
    stepped(&groups, |by| by.sample(rows, seed))
}

/// The chosen column, which such an operation needs.
fn chosen(groups: &Groups, name: &str) -> Result<String, Failure> {
    groups.single.clone().ok_or_else(|| Failure::missing(format!("{name} of groups needs one chosen column")))
}

/// As [`chosen`], for results that have the keys as index.
fn indexed(groups: &Groups, name: &str) -> Result<String, Failure> {
    if groups.as_index {
        chosen(groups, name)
    } else {
        Err(Failure::missing(format!("{name} of groups with as_index=False is not implemented")))
    }
}

fn extreme(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let label = chosen(&groups, name)?;
    let (rows, ties) = (args.count(1, "n", 5)?, super::rows::ties(args, 2)?);
    let keys = groups.by.key_count()?;
    stepped(&groups, |by| {
        let found = match name {
            "nlargest" => by.nlargest_with(rows, &label, ties),
            _ => by.nsmallest_with(rows, &label, ties),
        };
        // Without the keys as index, pandas leaves them out.
        let levels = if groups.as_index { 0 } else { keys };
        (0..levels).fold(found, |found, _| found.droplevel(0))
    })
}

fn of_column(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let frame = match (name, &groups.single) {
        ("describe", None) => super::groups::two_levels(&groups, groups.by.describe_columns())?,
        ("describe", Some(label)) => groups.by.describe(label),
        _ => groups.by.ohlc(&chosen(&groups, name)?),
    };
    frame.check()?;
    Ok(Value::Frame(frame))
}

fn monotonic(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let label = chosen(&groups, name)?;
    let found = match name {
        "is_monotonic_increasing" => groups.by.is_monotonic_increasing(&label),
        _ => groups.by.is_monotonic_decreasing(&label),
    };
    made(&groups, found)
}

fn pairs(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let other = args.given(1, "other").map(Value::series).transpose()?;
    let least = args.count(2, "min_periods", 1)?;
    let numbers_only = args.flag(usize::MAX, "numeric_only", false)?;
    if !numbers_only {
        groups.by.check_numeric()?;
    }
    let made = match (name, other) {
        ("cov", Some(other)) => groups.by.cov_with(&other, least),
        (_, Some(other)) => groups.by.corrwith(&other, least),
        ("cov", None) => groups.by.cov(least),
        _ => groups.by.corr(least),
    };
    one_or_all(&groups, made)
}

fn unique(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let label = indexed(&groups, "unique")?;
    stepped(&groups, |by| by.unique(&label))
}

/// The positions of rows by the keys of their groups.
fn indices(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let table = groups.by.indices().explode("positions").collect_on(&*args.context.executor)?;
    let mut found: Vec<(Value, Vec<tharsis_dataframe::Value>)> = Vec::new();
    let mut last: Option<Vec<tharsis_dataframe::Value>> = None;
    for row in table.rows() {
        let labels = row.labels()?;
        if last.as_ref() != Some(&labels) {
            let mut keys: Vec<Value> = labels.iter().cloned().map(Value::Scalar).collect();
            let key = if keys.len() == 1 { keys.remove(0) } else { Value::Tuple(keys) };
            found.push((key, Vec::new()));
            last = Some(labels);
        }
        if let Some((_, places)) = found.last_mut() {
            places.push(row.get("positions")?);
        }
    }
    let array = |places: Vec<_>| Value::Array("<i8", vec![places.len()], places);
    Ok(Value::Dict(found.into_iter().map(|(key, places)| (key, array(places))).collect()))
}
