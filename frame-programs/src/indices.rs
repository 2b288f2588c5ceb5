//! Methods of indices.

use super::Failure;
use super::args::Args;
use super::axes::{array, index_of};
use super::frames::sort;
use super::row::Row;
use super::value::Value;
use tharsis_dataframe::{Aggregate, Index, Value as Scalar, lit};

pub(super) const INDICES: &[Row] = &[
    ("pd.Index", "(data, name=None)", "labels of a list or of a series", make),
    ("pd.Series.index", "()", "the labels of the values", of_series),
    ("pd.Index.unique", "()", "the distinct labels", labels),
    ("pd.Index.dropna", "()", "the labels that are there", labels),
    ("pd.Index.copy", "()", "the same labels", labels),
    ("pd.Index.T", "()", "the same labels", labels),
    ("pd.Index.sort_values", "(ascending=True)", "the labels in their order", sort_values),
    ("pd.Index.union", "(other)", "the labels of either", both),
    ("pd.Index.intersection", "(other)", "the labels of both", both),
    ("pd.Index.difference", "(other)", "the labels that the other lacks", both),
    ("pd.Index.symmetric_difference", "(other)", "the labels of exactly one", both),
    ("pd.Index.append", "(other)", "the labels of both, one after the other", both),
    ("pd.Index.equals", "(other)", "whether both have equal labels", equals),
    ("pd.Index.isin", "(values)", "whether each label is one of these", isin),
    ("pd.Index.isna", "()", "whether each label is missing", truths),
    ("pd.Index.notna", "()", "whether each label is there", truths),
    ("pd.Index.fillna", "(value)", "the labels, and a value where they are missing", fillna),
    ("pd.Index.astype", "(dtype)", "the labels with another type", astype),
    ("pd.Index.map", "(mapper)", "the labels that a dictionary gives for these", map),
    ("pd.Index.drop", "(labels)", "the labels without these", drop),
    ("pd.Index.rename", "(name)", "the labels under another name", rename),
    ("pd.Index.set_names", "(names)", "the labels with names for the levels", rename),
    ("pd.Index.get_level_values", "(level)", "one level as an index", level_values),
    ("pd.Index.get_loc", "(key)", "the position of a label", get_loc),
    ("pd.Index.to_series", "()", "the labels as a series", to_series),
    ("pd.Index.to_frame", "(index=True)", "the levels as columns", to_frame),
    ("pd.Index.value_counts", "()", "how often each label stands", value_counts),
    ("pd.Index.name", "()", "the name of the labels", name),
    ("pd.Index.names", "()", "the names of the levels", name),
    ("pd.Index.dtype", "()", "the type of the labels", dtype),
    ("pd.Index.inferred_type", "()", "the kind of the labels", dtype),
    ("pd.Index.is_unique", "()", "whether each label stands once", question),
    ("pd.Index.has_duplicates", "()", "whether a label stands several times", question),
    ("pd.Index.hasnans", "()", "whether a label is missing", question),
    ("pd.Index.is_monotonic_increasing", "()", "whether no label is less than the one before", question),
    ("pd.Index.is_monotonic_decreasing", "()", "whether no label is greater than the one before", question),
    ("pd.Index.empty", "()", "whether there is no label", question),
    ("pd.Index.any", "()", "whether any label is true", question),
    ("pd.Index.all", "()", "whether all labels are true", question),
    ("pd.Index.size", "()", "the number of labels", count),
    ("pd.Index.nlevels", "()", "the number of levels", count),
    ("pd.Index.ndim", "()", "the number of dimensions", count),
    ("pd.Index.nunique", "()", "the number of distinct labels", count),
    ("pd.Index.memory_usage", "()", "the bytes of the labels", count),
    ("pd.Index.shape", "()", "the number of labels, as a tuple", shape),
    ("pd.Index.min", "()", "the smallest label", reduce),
    ("pd.Index.max", "()", "the largest label", reduce),
    ("pd.Index.agg", "(func)", "one aggregate of the labels", reduce),
    ("pd.Index.to_list", "()", "the labels as a list", to_list),
    ("pd.Index.values", "()", "the labels as a list", to_list),
];

fn made(index: Index) -> Result<Value, Failure> {
    Ok(Value::Index(index))
}

fn make(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let data = args.need(0, "data")?;
    let name = args.given(usize::MAX, "name").map(|name| name.text()).transpose()?;
    made(match data {
        Value::Index(index) => index,
        Value::Series(series) => {
            let name = name.or_else(|| series.name().map(str::to_owned));
            Index::of_series(&series.named(name))
        }
        other => index_of(other.scalars()?, name)?,
    })
}

fn of_series(_: &str, args: &mut Args) -> Result<Value, Failure> {
    made(args.series()?.index())
}

fn labels(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    made(match name {
        "dropna" => index.dropna(),
        "copy" | "T" => index,
        _ => index.unique(),
    })
}

fn sort_values(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    made(index.sort_values(sort(args)?))
}

/// The other index: one, or a list of labels.
fn other(args: &mut Args) -> Result<Index, Failure> {
    match args.need(1, "other")? {
        Value::Index(index) => Ok(index),
        Value::Series(series) => Ok(Index::of_series(&series)),
        other => index_of(other.scalars()?, None),
    }
}

fn both(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let (index, other) = (args.index()?, other(args)?);
    args.given(usize::MAX, "sort");
    made(match name {
        "union" => index.union(&other),
        "intersection" => index.intersection(&other),
        "difference" => index.difference(&other),
        "append" => index.append(&other),
        _ => index.symmetric_difference(&other),
    })
}

fn equals(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let (index, other) = (args.index()?, other(args)?);
    Ok(Value::Scalar(lit(index.equals(&other)?)))
}

fn isin(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let values = args.need(1, "values")?.scalars()?;
    array(&index.isin(values), args)
}

fn truths(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    array(&if name == "isna" { index.isna() } else { index.notna() }, args)
}

fn fillna(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    made(index.fillna(args.need(1, "value")?.scalar()?))
}

fn astype(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    made(index.astype(args.need(1, "dtype")?.dtype()?))
}

fn map(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let Value::Dict(entries) = args.need(1, "mapper")? else {
        return Err(Failure::missing("map of an index by a function is not implemented"));
    };
    let entries = entries.into_iter().map(|(key, value)| Ok((key.scalar()?, value.scalar()?)));
    made(index.map(entries.collect::<Result<Vec<_>, Failure>>()?))
}

fn drop(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    made(index.drop(args.need(1, "labels")?.scalars()?))
}

fn rename(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let names = args.take(1, "names").or_else(|| args.take(1, "name"));
    let name = |value: &Value| match value {
        Value::None => Ok(None),
        other => other.text().map(Some),
    };
    let names = match names {
        None => return Err(Failure::kind("missing required argument: 'names'")),
        Some(Value::List(parts)) => parts.iter().map(name).collect::<Result<Vec<_>, _>>()?,
        Some(Value::Dict(_)) => return Err(Failure::missing("names as a dictionary are not implemented")),
        Some(one) => vec![name(&one)?],
    };
    let renamed = index.set_names(names);
    renamed.dtype()?;
    made(renamed)
}

fn level_values(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let level = args.need(1, "level")?;
    let at = match level.integer() {
        Ok(at) => (if at < 0 { at + index.nlevels() as i64 } else { at }) as usize,
        Err(_) => {
            let name = level.text()?;
            let found = index.names().iter().position(|known| known.as_deref() == Some(name.as_str()));
            found.ok_or_else(|| Failure::new("KeyError", format!("Level {name} not found")))?
        }
    };
    if at >= index.nlevels() {
        let levels = index.nlevels();
        return Err(Failure::new("IndexError", format!("Too many levels: Index has only {levels} levels")));
    }
    made(index.get_level_values(at))
}

fn get_loc(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    Ok(Value::Scalar(lit(index.get_loc(args.need(1, "key")?.scalar()?)? as i64)))
}

fn to_series(_: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(Value::Series(args.index()?.to_series()))
}

fn to_frame(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let frame = index.to_frame();
    if !args.flag(1, "index", true)? {
        return Ok(Value::Frame(frame));
    }
    // The levels stay the index too.
    let names = index.names().to_vec();
    let labels = frame.columns()?;
    let kept: Vec<String> = labels.iter().map(|label| format!("__tharsis_kept_{label}")).collect();
    let doubled = labels
        .iter()
        .zip(&kept)
        .fold(frame.clone(), |made, (label, kept)| made.assign(kept, made.col(label)));
    let indexed = doubled.set_index(kept.iter().map(String::as_str)).rename_axis(names);
    Ok(Value::Frame(indexed))
}

fn value_counts(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let counts = index.value_counts();
    let counts = if index.name().is_none() { counts.unnamed_index() } else { counts };
    Ok(Value::Series(counts.col("count")))
}

fn name(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let value =
        |name: &Option<String>| name.as_ref().map_or(Value::None, |name| Value::Scalar(lit(name.clone())));
    Ok(match name {
        "names" => Value::List(index.names().iter().map(value).collect()),
        _ if 1 < index.nlevels() => Value::None,
        _ => value(&index.name().map(str::to_owned)),
    })
}

fn dtype(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    Ok(match name {
        "dtype" => Value::DType(index.dtype()?),
        _ => Value::Scalar(lit(index.inferred_type()?)),
    })
}

fn question(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    Ok(Value::Scalar(lit(match name {
        "is_unique" => index.is_unique()?,
        "has_duplicates" => index.has_duplicates()?,
        "hasnans" => index.hasnans()?,
        "is_monotonic_increasing" => index.is_monotonic_increasing()?,
        "is_monotonic_decreasing" => index.is_monotonic_decreasing()?,
        "any" => index.any()?,
        "all" => index.all()?,
        _ => index.is_empty()?,
    })))
}

fn count(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    Ok(Value::Scalar(lit(match name {
        "size" => index.len()?,
        "nlevels" => index.nlevels(),
        "ndim" => 1,
        "nunique" => index.nunique()?,
        _ => index.memory_usage()?,
    } as i64)))
}

fn shape(_: &str, args: &mut Args) -> Result<Value, Failure> {
    Ok(Value::Tuple(vec![Value::Scalar(lit(args.index()?.len()? as i64))]))
}

fn reduce(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let index = args.index()?;
    let aggregate = match name {
        "agg" => Aggregate::named(&args.need(1, "func")?.text()?)?,
        name => Aggregate::named(name)?,
    };
    let value: Scalar = index.agg(aggregate)?;
    Ok(Value::Scalar(if value.is_missing() { Scalar::not_a_number() } else { value }))
}

fn to_list(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let values = args.index()?.values()?;
    Ok(Value::List(values.into_iter().map(Value::Scalar).collect()))
}
