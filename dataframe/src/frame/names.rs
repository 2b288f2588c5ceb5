//! Labels of columns, and levels of the index with their names.

use super::labels::{array_of, is_of};
use super::{DataFrame, Frame, Level, named};
use crate::error::{Error, Result};
use crate::frame::series::mapped;
use crate::frame::series::matches;
use crate::promotion::common_type;
use crate::value::Value;
use arrow::datatypes::DataType;

/// The hidden column of labels that are given for each row.
const GIVEN: &str = "__tharsis_given";

impl DataFrame {
    /// The same rows with these labels, by position; there must be as many as rows, which are counted at
    /// once.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("n", vec![1, 2].into())]).set_axis(["a", "b"]);
    /// assert_eq!(frame.loc("b").col("n").values::<i64>()?, [Some(2)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn set_axis<T: Into<Value>>(&self, labels: impl IntoIterator<Item = T>) -> DataFrame {
        let labels: Vec<Value> = labels.into_iter().map(Into::into).collect();
        self.then(|frame| {
            let rows = self.len()?;
            if rows != labels.len() {
                let given = labels.len();
                return Err(Error::Value(format!(
                    "Length mismatch: Expected axis has {rows} elements, new values have {given} elements"
                )));
            }
            let types: Vec<DataType> = labels.iter().map(Value::dtype).collect();
            let dtype = if types.is_empty() { DataType::Int64 } else { common_type(&types)? };
            let frame = frame.with_arrays(vec![(GIVEN.to_owned(), array_of(&labels, &dtype)?)])?;
            Ok(Frame { index: vec![Level { column: GIVEN.to_owned(), name: None }], ..frame })
        })
    }

    /// The same columns under these labels, one for each.
    #[track_caller]
    pub fn set_columns<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> DataFrame {
        let labels: Vec<&str> = labels.into_iter().collect();
        self.then(|frame| {
            if labels.len() != frame.columns.len() {
                let (expected, given) = (frame.columns.len(), labels.len());
                return Err(Error::Value(format!(
                    "Length mismatch: Expected axis has {expected} elements, new values have {given} elements"
                )));
            }
            let columns = labels.iter().zip(&frame.columns);
            frame.project(columns.map(|(label, old)| ((*label).to_owned(), named(old))).collect())
        })
    }

    /// The same columns with a text before each label.
    #[track_caller]
    pub fn add_prefix(&self, prefix: &str) -> DataFrame {
        self.relabelled(|label| format!("{prefix}{label}"))
    }

    /// The same columns with a text behind each label.
    #[track_caller]
    pub fn add_suffix(&self, suffix: &str) -> DataFrame {
        self.relabelled(|label| format!("{label}{suffix}"))
    }

    #[track_caller]
    fn relabelled(&self, step: impl Fn(&str) -> String) -> DataFrame {
        self.then(|frame| {
            frame.project(frame.columns.iter().map(|label| (step(label), named(label))).collect())
        })
    }

    /// The columns in whose label a regular expression matches; pandas' `filter(regex=..)`.
    #[track_caller]
    pub fn select_matching(&self, pattern: &str) -> DataFrame {
        self.then(|frame| {
            let matches = matches(&frame.columns, pattern)?;
            let kept = frame.columns.iter().zip(matches).filter(|(_, matches)| *matches);
            frame.project(kept.map(|(label, _)| (label.clone(), named(label))).collect())
        })
    }

    /// The columns for whose label a condition holds; pandas' `filter(like=..)`.
    #[track_caller]
    pub fn select_labels(&self, condition: impl Fn(&str) -> bool) -> DataFrame {
        self.then(|frame| {
            let kept = frame.columns.iter().filter(|label| condition(label));
            frame.project(kept.map(|label| (label.clone(), named(label))).collect())
        })
    }

    /// The columns with these types, without those of the second list. A type is one of `dtype_named`, or
    /// `number`, `integer`, `floating`, `datetime`, `timedelta`, `category`; an empty first list means all.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("n", vec![1].into()), ("t", vec!["a"].into())]);
    /// assert_eq!(frame.select_dtypes(["number"], []).columns()?, ["n"]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn select_dtypes<'a>(
        &self,
        include: impl IntoIterator<Item = &'a str>,
        exclude: impl IntoIterator<Item = &'a str>,
    ) -> DataFrame {
        let include: Vec<&str> = include.into_iter().collect();
        let exclude: Vec<&str> = exclude.into_iter().collect();
        self.then(|frame| {
            if include.is_empty() && exclude.is_empty() {
                return Err(Error::Value("at least one of include or exclude must be nonempty".to_owned()));
            }
            if let Some(both) = include.iter().find(|name| exclude.contains(name)) {
                return Err(Error::Value(format!("include and exclude overlap on {both:?}")));
            }
            let mut columns = Vec::new();
            for label in &frame.columns {
                let dtype = frame.dtype(label)?;
                let among = |names: &[&str]| -> Result<bool> {
                    names.iter().try_fold(false, |found, name| Ok(found | is_kind(&dtype, name)?))
                };
                if (include.is_empty() || among(&include)?) && !among(&exclude)? {
                    columns.push((label.clone(), named(label)));
                }
            }
            frame.project(columns)
        })
    }

    /// The same rows, whose levels of the index have these names.
    #[track_caller]
    pub fn rename_axis(&self, names: impl IntoIterator<Item = Option<String>>) -> DataFrame {
        let names: Vec<Option<String>> = names.into_iter().collect();
        self.then(|frame| {
            let frame = frame.with_index()?;
            if names.len() != frame.index.len() {
                let (expected, given) = (frame.index.len(), names.len());
                return Err(Error::Value(format!(
                    "Length of new names must be {expected}, got {given}: one for each level"
                )));
            }
            let levels = frame.index.iter().zip(names);
            let index = levels.map(|(level, name)| Level { name, ..level.clone() }).collect();
            Ok(Frame { index, ..frame })
        })
    }

    /// The same rows, with the second label of a pair in place of the first in each level of the index.
    #[track_caller]
    pub fn rename_rows<K: Into<Value>, V: Into<Value>>(
        &self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> DataFrame {
        let pairs: Vec<(Value, Value)> =
            pairs.into_iter().map(|(from, to)| (from.into(), to.into())).collect();
        self.then(|frame| {
            let mut frame = frame.with_index()?;
            for level in 0..frame.index.len() {
                let dtype = frame.dtype(&frame.index[level].column)?;
                let fitting = pairs.iter().filter(|(from, _)| is_of(from, &dtype)).cloned();
                let fitting: Vec<(Value, Value)> = fitting.collect();
                if fitting.iter().any(|(_, to)| !is_of(to, &dtype)) {
                    return Err(Error::Type(format!("labels of {dtype} and others in one index")));
                }
                frame = frame.with_label(level, |label| mapped(&label, &fitting, (label.clone(), &dtype)))?;
            }
            Ok(frame)
        })
    }

    /// The same rows with two levels of the index, by place, in each other's place.
    #[track_caller]
    pub fn swaplevel(&self, first: usize, second: usize) -> DataFrame {
        self.then(|frame| {
            let mut frame = frame.clone();
            frame.check_level(first.max(second))?;
            frame.index.swap(first, second);
            Ok(frame)
        })
    }

    /// The same rows with the levels of the index in this order, by place.
    #[track_caller]
    pub fn reorder_levels(&self, order: impl IntoIterator<Item = usize>) -> DataFrame {
        let order: Vec<usize> = order.into_iter().collect();
        self.then(|frame| {
            order.iter().try_for_each(|level| frame.check_level(*level))?;
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if sorted.iter().copied().ne(0..frame.index.len()) {
                return Err(Error::Value(format!("{order:?} is no order of {} levels", frame.index.len())));
            }
            let index = order.iter().map(|level| frame.index[*level].clone()).collect();
            Ok(Frame { index, ..frame.clone() })
        })
    }

    /// The same rows without one level of the index, by place; the last one stays.
    #[track_caller]
    pub fn droplevel(&self, level: usize) -> DataFrame {
        self.then(|frame| {
            let mut frame = frame.clone();
            frame.check_level(level)?;
            if frame.index.len() < 2 {
                return Err(Error::Value("Cannot remove 1 levels from an index with 1 levels".to_owned()));
            }
            frame.index.remove(level);
            Ok(frame)
        })
    }

    /// The place of the level of the index with this name; `KeyError` if there is none.
    ///
    /// # Errors
    /// The error that the frame carries, or `KeyError`.
    pub fn level(&self, name: &str) -> Result<usize> {
        self.frame()?.level_at(name)
    }
}

impl Frame {
    fn check_level(&self, level: usize) -> Result<()> {
        match self.index.len().max(1) {
            levels if level < levels => Ok(()),
            levels => Err(Error::Index(format!("level {level} of {levels} levels"))),
        }
    }
}

/// Whether a type is of a kind that pandas has a name for.
fn is_kind(dtype: &DataType, name: &str) -> Result<bool> {
    Ok(match name {
        "number" => dtype.is_numeric() || matches!(dtype, DataType::Duration(_)),
        "integer" => dtype.is_integer(),
        "floating" => dtype.is_floating(),
        "datetime" | "datetime64" => matches!(dtype, DataType::Timestamp(_, None)),
        "datetimetz" => matches!(dtype, DataType::Timestamp(_, Some(_))),
        "timedelta" | "timedelta64" => matches!(dtype, DataType::Duration(_)),
        "category" => matches!(dtype, DataType::Dictionary(..)),
        "str" | "string" | "object" => crate::value::is_text(dtype),
        name => *dtype == super::dtype_named(name)?,
    })
}
