//! Methods of groups.

use super::Failure;
use super::args::{Args, strs};
use super::row::Row;
use super::summaries::{interpolation, parts};
use super::value::{Groups, Value};
use tharsis_dataframe::{Aggregate, DataFrame, Reduce};

pub(super) const GROUPS: &[Row] = &[
    (
        "pd.GroupBy.agg",
        "(func=None, **named)",
        "aggregates: a name, a list, a dictionary, or label=(column, name)",
        agg,
    ),
    ("pd.GroupBy.size", "()", "the number of rows of each group", size),
    ("pd.GroupBy.sum", "(numeric_only=False)", "the sum of each column", all),
    ("pd.GroupBy.mean", "(numeric_only=False)", "the mean of each column", all),
    ("pd.GroupBy.min", "()", "the smallest value of each column", all),
    ("pd.GroupBy.max", "()", "the largest value of each column", all),
    ("pd.GroupBy.count", "()", "the number of values of each column that are there", all),
    ("pd.GroupBy.nunique", "()", "the number of distinct values of each column", all),
    ("pd.GroupBy.first", "()", "the first value of each column that is there", all),
    ("pd.GroupBy.last", "()", "the last value of each column that is there", all),
    ("pd.GroupBy.std", "(numeric_only=False)", "the standard deviation of each column", all),
    ("pd.GroupBy.var", "(numeric_only=False)", "the variance of each column", all),
    ("pd.GroupBy.sem", "(numeric_only=False)", "the standard error of each column's mean", all),
    ("pd.GroupBy.median", "(numeric_only=False)", "the middle value of each column", all),
    ("pd.GroupBy.any", "()", "whether any value of each column is true", all),
    ("pd.GroupBy.all", "()", "whether all values of each column are true", all),
    (
        "pd.GroupBy.quantile",
        "(q=0.5, interpolation='linear', numeric_only=False)",
        "quantiles of each column",
        quantile,
    ),
];

/// The result: a series if one column was chosen.
pub(super) fn made(groups: &Groups, frame: DataFrame) -> Result<Value, Failure> {
    frame.check()?;
    Ok(match &groups.single {
        Some(label) if groups.as_index => Value::Series(frame.col(label)),
        _ => Value::Frame(frame),
    })
}

fn all(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let numbers_only = args.flag(1, "numeric_only", false)?;
    let aggregate = Aggregate::named(name)?;
    made(&groups, of_all(&groups, aggregate, numbers_only)?)
}

pub(super) fn of_all(
    groups: &Groups,
    aggregate: Aggregate,
    numbers_only: bool,
) -> Result<DataFrame, Failure> {
    // Columns that an aggregate is not made for are an error in pandas, unless numbers are asked for.
    Ok(if numbers_only { groups.by.numbers(aggregate) } else { groups.by.every_column(aggregate) })
}

fn quantile(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let (parts, several) = parts(args.given(1, "q"))?;
    let how = interpolation(2, args)?;
    let numbers_only = args.flag(3, "numeric_only", false)?;
    let columns = groups.by.quantile_columns(numbers_only)?;
    let labels = strs(&columns);
    if let ([part], false) = (&parts[..], several) {
        let reduce = Reduce::by(Aggregate::Quantile(*part)).interpolation(how);
        return made(&groups, groups.by.reduce_columns(labels.map(|label| (label, label, reduce))));
    }
    let found = groups.by.quantiles(labels, &parts, how);
    made(&groups, found)
}

fn size(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let sizes = groups.by.size();
    sizes.check()?;
    Ok(match (groups.as_index, &groups.single) {
        (true, single) => Value::Series(sizes.col("size").named(single.clone())),
        (false, _) => Value::Frame(sizes),
    })
}

fn agg(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let groups = args.groups()?;
    let func = args.given(1, "func");
    let named = args.rest();
    match func {
        None => of_named(&groups, named),
        Some(_) if !named.is_empty() => Err(Failure::missing("options beside func are not implemented")),
        Some(Value::Dict(entries)) => of_dictionary(&groups, entries),
        Some(Value::List(names)) => {
            let names = names.iter().map(Value::text).collect::<Result<Vec<_>, _>>()?;
            let columns = match &groups.single {
                Some(column) => vec![column.clone()],
                None => groups.by.columns_but_keys()?,
            };
            let mut list = Vec::new();
            for column in &columns {
                for name in &names {
                    // Two levels of labels are one text here.
                    let label =
                        if groups.single.is_some() { name.clone() } else { format!("{column}_{name}") };
                    list.push((label, column.clone(), Aggregate::named(name)?));
                }
            }
            let list = list.iter().map(|(label, column, how)| (label.as_str(), column.as_str(), *how));
            Ok(Value::Frame(two_levels(&groups, groups.by.agg_as(list))?))
        }
        Some(one) => made(&groups, of_all(&groups, Aggregate::named(&one.text()?)?, false)?),
    }
}

/// A frame under labels of two levels: those of keys have an empty second one.
pub(super) fn two_levels(groups: &Groups, frame: DataFrame) -> Result<DataFrame, Failure> {
    if groups.as_index || groups.single.is_some() {
        return Ok(frame);
    }
    let labels = frame.columns()?;
    let keys = groups.by.key_labels()?;
    let changed = labels.iter().take(keys.len()).map(|label| (label.clone(), format!("{label}_")));
    let changed: Vec<(String, String)> = changed.collect();
    Ok(frame.rename(changed.iter().map(|(old, new)| (old.as_str(), new.as_str()))))
}

/// Aggregates under labels of their own.
fn of_named(groups: &Groups, named: Vec<(String, Value)>) -> Result<Value, Failure> {
    let mut list = Vec::new();
    for (label, value) in named {
        let (column, name) = match (&value, &groups.single) {
            (Value::List(parts), _) => match &parts[..] {
                [column, name] => (column.text()?, name.text()?),
                _ => return Err(Failure::kind("expected label=(column, name)")),
            },
            (name, Some(column)) => (column.clone(), name.text()?),
            _ => return Err(Failure::kind("expected label=(column, name)")),
        };
        list.push((label, column, Aggregate::named(&name)?));
    }
    if list.is_empty() {
        return Err(Failure::kind("Must provide 'func' or tuples of '(column, aggfunc)'."));
    }
    let list = list.iter().map(|(label, column, aggregate)| (label.as_str(), column.as_str(), *aggregate));
    Ok(Value::Frame(groups.by.agg_as(list)))
}

/// One aggregate for each column, or a list of them, whose labels are then `column_name`.
fn of_dictionary(groups: &Groups, entries: Vec<(Value, Value)>) -> Result<Value, Failure> {
    let mut list = Vec::new();
    for (column, names) in entries {
        let (column, several) = (column.text()?, matches!(names, Value::List(_)));
        for name in names.texts()? {
            let label = if several { format!("{column}_{name}") } else { column.clone() };
            list.push((label, column.clone(), Aggregate::named(&name)?));
        }
    }
    let labels: Vec<String> = list.iter().map(|(label, ..)| label.clone()).collect();
    let list = list.iter().map(|(label, column, aggregate)| (label.as_str(), column.as_str(), *aggregate));
    let frame = groups.by.agg_as(list);
    if groups.as_index {
        return Ok(Value::Frame(frame.select(strs(&labels))));
    }
    Ok(Value::Frame(frame))
}
