//! Rows by their labels: pandas' `loc`, `at`, `xs`, `reindex` and `drop` of rows.
//!
//! A label that must exist is looked up at once, which runs the plan; the rows that were found stay where
//! they were made, and later steps read them.

use super::align::missing_like;
use super::clean::takes;
use super::combine::{Side, joined};
use super::time_labels::{at_ticks, span};
use super::{DataFrame, Frame, Level, named};
use crate::error::{Error, Result};
use crate::frame::series::comparable;
use crate::promotion::{of_column, unified};
use crate::value::Value;
use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::DataType;
use datafusion::common::{JoinType, ScalarValue};
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::{Expr, lit};

/// The hidden column of a label that is looked up.
pub(super) const WANTED: &str = "__tharsis_wanted";

/// An array of values, each as one of a type.
pub(super) fn array_of(values: &[Value], dtype: &DataType) -> Result<ArrayRef> {
    if values.is_empty() {
        return Ok(arrow::array::new_empty_array(dtype));
    }
    let scalars = values.iter().map(|value| Ok(value.0.cast_to(dtype)?)).collect::<Result<Vec<_>>>()?;
    Ok(ScalarValue::iter_to_array(scalars)?)
}

/// Whether a value is one of a type, or changes into one without loss.
pub(super) fn is_of(value: &Value, dtype: &DataType) -> bool {
    if value.is_missing() || value.dtype() == *dtype {
        return true;
    }
    let text = crate::value::is_text;
    let dtype = if let DataType::Dictionary(_, values) = dtype { values } else { dtype };
    match (value.dtype().is_numeric(), dtype.is_numeric()) {
        (true, true) => {
            let there = value.0.cast_to(dtype).and_then(|there| there.cast_to(&value.dtype()));
            there.is_ok_and(|back| back == value.0)
        }
        (false, false) if dtype.is_temporal() && text(&value.dtype()) => value.0.cast_to(dtype).is_ok(),
        (false, false) => {
            (text(&value.dtype()) && text(dtype)) || (value.dtype().is_temporal() && dtype.is_temporal())
        }
        _ => false,
    }
}

/// Refuses labels that are of another kind than those of an index.
fn check_kind(labels: &[Value], dtype: &DataType) -> Result<()> {
    let strange: Vec<Value> = labels.iter().filter(|label| !is_of(label, dtype)).cloned().collect();
    if strange.is_empty() { Ok(()) } else { Err(no_row(&strange)) }
}

/// The error for labels that no row has.
pub(super) fn no_row(labels: &[Value]) -> Error {
    let labels: Vec<String> = labels.iter().map(ToString::to_string).collect();
    Error::Row(format!("no row has the label {}", labels.join(", ")))
}

/// The rows that a label without rows gives.
pub(super) enum Absent {
    /// A label without rows gives none.
    LeftOut,
    /// A label without rows gives one of missing values.
    Missing,
}

impl Frame {
    /// The rows with other labels than these, which are of the type of the index.
    fn without(&self, labels: &[Value]) -> Result<Frame> {
        let dtype = self.label_dtype(0)?;
        let frame = self.with_index()?;
        let level = named(&frame.index[0].column);
        let list =
            labels.iter().map(|label| Ok(lit(label.0.cast_to(&dtype)?))).collect::<Result<Vec<_>>>()?;
        let dropped = coalesce(vec![level.in_list(list, false), lit(false)]);
        let plan = frame.builder().filter(Expr::Not(Box::new(dropped)))?.build()?;
        Ok(Frame { plan, ..frame })
    }

    /// The type of the labels of a level of the index.
    fn label_dtype(&self, level: usize) -> Result<DataType> {
        match self.index.get(level) {
            Some(level) => self.dtype(&level.column),
            None => Ok(DataType::Int64),
        }
    }

    /// The rows with these labels, in the order of the labels. Labels are rows of columns `WANTED`.
    pub(super) fn by_labels(&self, wanted: &Frame, absent: &Absent) -> Result<Frame> {
        let frame = self.with_index()?;
        let levels = wanted.columns.len();
        if frame.index.len() != levels {
            return Err(Error::Value(format!(
                "labels of {levels} levels, but {} are there",
                frame.index.len()
            )));
        }
        let (wanted, _) = wanted.with_row()?;
        let wanted_names = wanted.columns.clone();
        let left = Side::new(&wanted, "__tharsis_w_")?;
        let right = Side::new(&frame, "__tharsis_r_")?;
        let kind = if matches!(absent, Absent::LeftOut) { JoinType::Inner } else { JoinType::Left };
        let keys = wanted_names.iter().map(|name| left.name(name)).collect();
        let others = right.index.iter().map(|level| level.column.clone()).collect();
        let plan = joined(left.plan.clone(), right.plan.clone(), kind, (keys, others))?.build()?;
        let index = wanted_names.iter().zip(&frame.index);
        let index = index.map(|(name, level)| Level { column: left.name(name), name: level.name.clone() });
        let order = left.order.iter().chain(&right.order).cloned().collect();
        let joined = Frame { plan, columns: Vec::new(), index: index.collect(), order };
        joined.project(right.columns.iter().map(|(label, name)| (label.clone(), named(name))).collect())
    }

    /// A frame of labels for one level, and the same frame whose labels have the type that both fit into.
    fn wanted(&self, labels: &[Value]) -> Result<(Frame, Frame)> {
        let frame = self.with_index()?;
        let dtype = self.label_dtype(0)?;
        let fits = labels.iter().all(|label| is_of(label, &dtype));
        let numbers = dtype.is_numeric() && labels.iter().all(|label| label.dtype().is_numeric());
        let to = match (fits, numbers) {
            (true, _) => dtype.clone(),
            (false, true) => {
                let types = labels.iter().map(Value::dtype).chain([dtype.clone()]).collect::<Vec<_>>();
                of_column(&types)?.unwrap_or(DataType::Float64)
            }
            _ => return Err(Error::Type(format!("labels of {dtype} and others in one index"))),
        };
        let array = array_of(labels, &to)?;
        let batch = RecordBatch::try_from_iter_with_nullable([(WANTED, array, true)])?;
        let wanted = DataFrame::from_batches(batch.schema(), vec![batch]);
        let frame =
            if to == dtype { frame } else { frame.with_label(0, |label| Ok(cast(label, to.clone())))? };
        Ok(((**wanted.frame()?).clone(), frame))
    }

    /// The frame with another expression as a level of its index.
    pub(super) fn with_label(&self, level: usize, step: impl FnOnce(Expr) -> Result<Expr>) -> Result<Frame> {
        let frame = self.with_index()?;
        let column = frame.fresh("label");
        let mut columns: Vec<(String, Expr)> =
            frame.columns.iter().map(|label| (label.clone(), named(label))).collect();
        columns.push((column.clone(), step(named(&frame.index[level].column))?));
        let mut changed = frame.project(columns)?;
        changed.columns.clone_from(&frame.columns);
        changed.index[level].column = column;
        Ok(changed)
    }

    /// Refuses an index in which a label stands twice. It runs the plan of the index.
    pub(super) fn check_unique(&self) -> Result<()> {
        if self.index.is_empty() || DataFrame::new(Ok(self.clone())).index().is_unique()? {
            return Ok(());
        }
        Err(Error::Value("cannot reindex on an axis with duplicate labels".to_owned()))
    }
}

impl DataFrame {
    /// Rows that were looked up, computed; `KeyError` for these labels if there are none.
    #[track_caller]
    fn found(&self, labels: &[Value]) -> DataFrame {
        match self.execute().and_then(|found| Ok((found.is_empty()?, found))) {
            Ok((false, found)) => found,
            Ok((true, _)) => DataFrame::new(Err(no_row(labels))),
            Err(error) => DataFrame::new(Err(error)),
        }
    }

    /// The rows whose label in the index is this one, or in its first level, which is left out then;
    /// `KeyError` if there are none. It looks for the rows at once, which runs the plan.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("k", vec!["a", "b"].into()), ("n", vec![1, 2].into())]);
    /// let frame = frame.set_index(["k"]);
    /// assert_eq!(frame.loc("b").col("n").values::<i64>()?, [Some(2)]);
    /// assert_eq!(frame.loc("c").check().unwrap_err().class(), "KeyError");
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn loc(&self, label: impl Into<Value>) -> DataFrame {
        let label = [label.into()];
        self.then(|frame| frame.with_first_labels(&label)).found(&label)
    }

    /// The rows with these labels in the first levels of the index, as [`DataFrame::loc`] for one level.
    #[track_caller]
    pub fn loc_levels(&self, labels: impl IntoIterator<Item = Value>) -> DataFrame {
        let labels: Vec<Value> = labels.into_iter().collect();
        self.then(|frame| frame.with_first_labels(&labels)).found(&labels)
    }

    /// The rows with each of these labels, in the order of the labels; `KeyError` if one is not there. It
    /// looks for the rows at once, which runs the plan.
    #[track_caller]
    pub fn loc_each<T: Into<Value>>(&self, labels: impl IntoIterator<Item = T>) -> DataFrame {
        let labels: Vec<Value> = labels.into_iter().map(Into::into).collect();
        self.then(|frame| {
            let dtype = frame.label_dtype(0)?;
            check_kind(&labels, &dtype)?;
            let (wanted, own) = frame.wanted(&labels)?;
            let found = DataFrame::new(own.by_labels(&wanted, &Absent::LeftOut)).execute()?;
            match found.index().lacking(&labels)? {
                lacking if lacking.is_empty() => found.frame().map(|frame| (**frame).clone()),
                lacking => Err(no_row(&lacking)),
            }
        })
    }

    /// The rows from one label to another, both included, as slices of `loc` are. In an index that grows or
    /// shrinks, the labels need not be there; else each must be there once. It looks at the index at once,
    /// which runs the plan.
    #[track_caller]
    pub fn loc_between(&self, from: Option<Value>, to: Option<Value>) -> DataFrame {
        self.then(|frame| {
            let dtype = frame.label_dtype(0)?;
            // A text that is less exact than the labels is all that it names: a slice ends with its last
            // time.
            let end_of = |label: &Option<Value>, first: bool| -> Option<Value> {
                let span = span(label.as_ref()?, &dtype);
                let ticks = span.map(|span| if first { *span.start() } else { *span.end() });
                ticks.and_then(|ticks| at_ticks(ticks, &dtype)).map(Value).or_else(|| label.clone())
            };
            let exact = [&from, &to].map(Clone::clone);
            if let Some(strange) =
                exact.iter().flatten().find(|label| span(label, &dtype).is_none() && !is_of(label, &dtype))
            {
                return Err(Error::Type(format!("{strange} is no label of {dtype}")));
            }
            let index = self.index();
            let grows = frame.index.is_empty() || index.is_monotonic_increasing()?;
            if grows || index.is_monotonic_decreasing()? {
                let (low, high) = if grows { (&from, &to) } else { (&to, &from) };
                let (low, high) = (end_of(low, true), end_of(high, false));
                return frame.with_labels_within(low.as_ref(), high.as_ref());
            }
            let place = |label: &Option<Value>| -> Result<Option<usize>> {
                label.as_ref().map(|label| index.get_loc(label.clone())).transpose()
            };
            let (start, stop) = (place(&from)?.unwrap_or(0), place(&to)?);
            let sliced = self.slice(start, stop.map_or(usize::MAX >> 1, |stop| stop + 1));
            sliced.frame().map(|frame| (**frame).clone())
        })
    }

    /// The value of a column in the row with a label; `KeyError` for a label that no row has.
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, `KeyError`, or `ValueError` if several rows have the
    /// label.
    pub fn at(&self, label: impl Into<Value>, column: &str) -> Result<Value> {
        let table = self.select([column]).loc(label).collect()?;
        match table.len() {
            1 => table.value(0, column),
            rows => Err(Error::Value(format!("{rows} rows have this label"))),
        }
    }

    /// The rows with a label in one level of the index, without that level.
    #[track_caller]
    pub fn xs(&self, label: impl Into<Value>, level: &str) -> DataFrame {
        let label = label.into();
        let found = self.then(|frame| {
            let at = frame.level_at(level)?;
            let kept = frame.builder().filter(named(&frame.index[at].column).eq(lit(label.0.clone())))?;
            let mut frame = Frame { plan: kept.build()?, ..frame.clone() };
            if frame.index.len() > 1 {
                frame.index.remove(at);
            }
            Ok(frame)
        });
        found.found(&[label])
    }

    /// The rows without those that have one of these labels; `KeyError` if a label is not there, which is
    /// looked for at once.
    #[track_caller]
    pub fn drop_rows<T: Into<Value>>(&self, labels: impl IntoIterator<Item = T>) -> DataFrame {
        let labels: Vec<Value> = labels.into_iter().map(Into::into).collect();
        let kept = self.then(|frame| {
            check_kind(&labels, &frame.label_dtype(0)?)?;
            frame.without(&labels)
        });
        let lacking = self.index().lacking(&labels);
        kept.then(|frame| match lacking? {
            lacking if lacking.is_empty() => Ok(frame.clone()),
            lacking => Err(no_row(&lacking)),
        })
    }

    /// As [`DataFrame::drop_rows`], but labels that no row has are passed over.
    #[track_caller]
    pub fn drop_rows_if_there<T: Into<Value>>(&self, labels: impl IntoIterator<Item = T>) -> DataFrame {
        let labels: Vec<Value> = labels.into_iter().map(Into::into).collect();
        self.then(|frame| {
            let dtype = frame.label_dtype(0)?;
            let labels: Vec<Value> = labels.iter().filter(|label| is_of(label, &dtype)).cloned().collect();
            frame.without(&labels)
        })
    }

    /// The rows with these labels in this order; a label that no row has gives a row of missing values.
    /// `ValueError` if a label of the index stands twice, which is looked at at once.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("k", vec!["a", "b"].into()), ("n", vec![1, 2].into())]);
    /// let frame = frame.set_index(["k"]).reindex(["b", "c"]);
    /// assert_eq!(frame.col("n").values::<i64>()?, [Some(2), None]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn reindex<T: Into<Value>>(&self, labels: impl IntoIterator<Item = T>) -> DataFrame {
        let labels: Vec<Value> = labels.into_iter().map(Into::into).collect();
        self.then(|frame| {
            frame.check_unique()?;
            let (wanted, own) = frame.wanted(&labels)?;
            own.by_labels(&wanted, &Absent::Missing)
        })
    }

    /// As [`DataFrame::reindex`], with a value in the rows of labels that no row has.
    #[track_caller]
    pub fn reindex_filled<T: Into<Value>>(
        &self,
        labels: impl IntoIterator<Item = T>,
        fill: impl Into<Value>,
    ) -> DataFrame {
        let (fill, known) = (fill.into(), "__tharsis_known");
        let labels: Vec<Value> = labels.into_iter().map(Into::into).collect();
        let lacking = self.index().lacking(&labels);
        let columns = self.columns().unwrap_or_default();
        let marked = self.assign(known, true).reindex(labels);
        marked.then(|frame| {
            let all_known = lacking?.is_empty();
            let filled = columns.iter().map(|column| {
                let (dtype, others) = (frame.dtype(column)?, fill.dtype());
                if all_known {
                    return Ok((column.clone(), named(column)));
                }
                if !fill.is_missing() && !takes(&dtype, &others) {
                    return Err(Error::Type(format!(
                        "column {column:?} of {dtype} does not take a {others}"
                    )));
                }
                let absent = named(known).is_null();
                let (own, fill) = unified(frame.plan.schema(), named(column), lit(fill.0.clone()))?;
                let mut filled = datafusion::logical_expr::expr_fn::when(absent, fill);
                Ok((column.clone(), filled.otherwise(own)?))
            });
            frame.project(filled.collect::<Result<_>>()?)
        })
    }

    /// The rows and columns with the labels of another frame, in its order.
    #[track_caller]
    pub fn reindex_like(&self, other: &DataFrame) -> DataFrame {
        self.then(|frame| {
            frame.check_unique()?;
            let others = other.frame()?.with_index()?;
            let levels = others.index.iter().enumerate();
            let levels = levels.map(|(at, level)| (format!("{WANTED}_{at}"), named(&level.column)));
            let wanted = Frame { index: Vec::new(), ..others.project(levels.collect())? };
            let found = frame.by_labels(&wanted, &Absent::Missing)?;
            let columns = others.columns.iter().map(|label| {
                let expr = match found.check(label) {
                    Ok(()) => named(label),
                    Err(_) => missing_like(&found, None)?,
                };
                Ok((label.clone(), expr))
            });
            found.project(columns.collect::<Result<_>>()?)
        })
    }

    /// The rows whose labels lie between two, both included, in an index that grows.
    #[track_caller]
    pub fn truncate(&self, before: Option<Value>, after: Option<Value>) -> DataFrame {
        self.then(|frame| {
            if let (Some(first), Some(last)) = (&before, &after)
                && last.0.partial_cmp(&first.0) == Some(std::cmp::Ordering::Less)
            {
                return Err(Error::Value(format!("Truncate: {last} must be after {first}")));
            }
            if !frame.index.is_empty() && !self.index().is_monotonic_increasing()? {
                return Err(Error::Value("truncate requires a sorted index".to_owned()));
            }
            frame.with_labels_within(before.as_ref(), after.as_ref())
        })
    }
}

impl Frame {
    /// The place of a level with a name.
    pub(super) fn level_at(&self, name: &str) -> Result<usize> {
        let found = self.index.iter().position(|level| level.name.as_deref() == Some(name));
        found.ok_or_else(|| Error::Row(format!("no level of the index has the name {name:?}")))
    }

    /// The rows with these labels in the first levels, without these levels if others are left.
    fn with_first_labels(&self, labels: &[Value]) -> Result<Frame> {
        let frame = self.with_index()?;
        if labels.len() > frame.index.len() {
            return Err(no_row(labels));
        }
        let mut plan = frame.builder();
        for (label, level) in labels.iter().zip(&frame.index) {
            let dtype = frame.dtype(&level.column)?;
            let level = named(&level.column);
            if let Some(span) = span(label, &dtype)
                && let (Some(first), Some(last)) =
                    (at_ticks(*span.start(), &dtype), at_ticks(*span.end(), &dtype))
            {
                plan = plan.filter(level.clone().gt_eq(lit(first)).and(level.lt_eq(lit(last))))?;
                continue;
            }
            if !is_of(label, &dtype) {
                return Err(no_row(labels));
            }
            plan = plan.filter(if label.is_missing() {
                level.is_null()
            } else {
                level.eq(lit(label.0.cast_to(&dtype)?))
            })?;
        }
        let index = if frame.index.len() == labels.len() {
            frame.index.clone()
        } else {
            frame.index[labels.len()..].to_vec()
        };
        Ok(Frame { plan: plan.build()?, index, ..frame })
    }

    /// The rows whose first label lies between two.
    fn with_labels_within(&self, low: Option<&Value>, high: Option<&Value>) -> Result<Frame> {
        let frame = self.with_index()?;
        let dtype = frame.label_dtype(0)?;
        let level = named(&frame.index[0].column);
        let mut plan = frame.builder();
        // A number between two whole labels is compared as it is.
        let bound = |label: &Value| -> Result<(Expr, Expr)> {
            let own = label.dtype();
            if own.is_numeric() && dtype.is_numeric() {
                comparable(level.clone(), lit(label.0.clone()), &(dtype.clone(), own))
            } else {
                Ok((level.clone(), lit(label.0.cast_to(&dtype)?)))
            }
        };
        if let Some(low) = low {
            let (level, low) = bound(low)?;
            plan = plan.filter(level.gt_eq(low))?;
        }
        if let Some(high) = high {
            let (level, high) = bound(high)?;
            plan = plan.filter(level.lt_eq(high))?;
        }
        Ok(Frame { plan: plan.build()?, ..frame })
    }
}
