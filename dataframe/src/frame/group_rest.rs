//! Single groups, counts of values in groups, and rows of groups by their values.

use super::aggregate::Aggregate;
use super::group::GroupBy;
use super::window::{Over, from_end, in_order, rows, window};
use super::{DataFrame, Frame, Level, OrderKey, Sort, Ties, named};
use crate::error::{Error, Result};
use crate::functions::rows::{RANDOM, call};
use crate::promotion::unified;
use crate::stage::row_number::Numbering;
use crate::value::Value;
use arrow::datatypes::DataType;
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_window::rank::rank_udwf;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, SortExpr, WindowUDF, lit};
use std::sync::Arc;

impl GroupBy {
    /// The rows of the group with these keys, one for each column that groups are made by; `KeyError` if
    /// there are none, which is looked at at once.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("k", vec!["a", "b"].into()), ("n", vec![1, 2].into())]);
    /// assert_eq!(frame.groupby(["k"]).get_group(["b"]).col("n").values::<i64>()?, [Some(2)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn get_group<T: Into<Value>>(&self, labels: impl IntoIterator<Item = T>) -> DataFrame {
        let labels: Vec<Value> = labels.into_iter().map(Into::into).collect();
        let made = self.parts().and_then(|(frame, keys)| {
            if keys.len() != labels.len() {
                return Err(Error::Value(format!("{} labels for {} keys", labels.len(), keys.len())));
            }
            let mut frame = frame.with_index()?;
            for (key, label) in keys.iter().zip(&labels) {
                let dtype = frame.dtype(&key.column)?;
                if !super::labels::is_of(label, &dtype) {
                    return Err(super::labels::no_row(&labels));
                }
                let is = if label.is_missing() {
                    named(&key.column).is_null()
                } else {
                    named(&key.column).eq(lit(label.0.cast_to(&dtype)?))
                };
                frame.plan = frame.builder().filter(is)?.build()?;
            }
            let found = DataFrame::new(Ok(self.shown(frame)?)).execute()?;
            if found.is_empty()? {
                Err(super::labels::no_row(&labels))
            } else {
                found.frame().map(|frame| (**frame).clone())
            }
        });
        DataFrame::new(made)
    }

    /// The keys of all groups, a column for each, in the order of the groups.
    #[track_caller]
    pub fn groups(&self) -> DataFrame {
        let sizes = GroupBy { chosen: None, ..self.clone() }.as_index(true).size();
        sizes.index().to_frame()
    }

    /// The number of groups. It runs the plan.
    ///
    /// # Errors
    /// The error that the groups carry, or one of the run.
    pub fn ngroups(&self) -> Result<usize> {
        self.groups().len()
    }

    /// Some rows of each group, by numbers that look random: the same rows for the same seed.
    #[track_caller]
    pub fn sample(&self, rows_of_each: usize, seed: u64) -> DataFrame {
        let made = self.parts().and_then(|(frame, keys)| {
            let (frame, row) = frame.with_index()?.numbered("row", Numbering::Exact)?;
            let random = call(RANDOM, vec![named(&row), lit(seed as i64)])?;
            let order = vec![random.sort(true, false), named(&row).sort(true, false)];
            let kept = self.first_rows(&frame, keys, order, rows_of_each)?;
            self.shown(kept)
        });
        DataFrame::new(made)
    }

    /// The rows of each group with the largest values of a column, the largest first; groups by key. Missing
    /// values come last.
    #[track_caller]
    pub fn nlargest(&self, rows_of_each: usize, label: &str) -> DataFrame {
        self.nlargest_with(rows_of_each, label, Ties::First)
    }

    /// As [`GroupBy::nlargest`], with a choice among rows with equal values.
    #[track_caller]
    pub fn nlargest_with(&self, rows_of_each: usize, label: &str, ties: Ties) -> DataFrame {
        self.extreme(rows_of_each, label, ties, false)
    }

    /// The rows of each group with the smallest values of a column, the smallest first; groups by key.
    /// Missing values come last.
    #[track_caller]
    pub fn nsmallest(&self, rows_of_each: usize, label: &str) -> DataFrame {
        self.nsmallest_with(rows_of_each, label, Ties::First)
    }

    /// As [`GroupBy::nsmallest`], with a choice among rows with equal values.
    #[track_caller]
    pub fn nsmallest_with(&self, rows_of_each: usize, label: &str, ties: Ties) -> DataFrame {
        self.extreme(rows_of_each, label, ties, true)
    }

    #[track_caller]
    fn extreme(&self, rows_of_each: usize, label: &str, ties: Ties, smallest: bool) -> DataFrame {
        let made = self.parts().and_then(|(frame, keys)| {
            frame.check(label)?;
            let mut frame = frame.with_order()?.with_index()?;
            let mut by_value = vec![OrderKey { ascending: smallest, ..OrderKey::growing(label) }];
            let mut order = vec![named(label).sort(smallest, false)];
            match ties {
                Ties::First => order.push(in_order()),
                Ties::All => {}
                Ties::Last => {
                    let (with, tie) = frame.with_ties(keys, label, rows_of_each)?;
                    frame = with;
                    order.push(named(&tie).sort(true, false));
                    by_value.push(OrderKey::growing(&tie));
                }
            }
            let number = if ties == Ties::All { rank_udwf() } else { row_number_udwf() };
            let kept = self.rows_up_to(&frame, keys, number, order, rows_of_each)?;
            let level =
                |key: &super::group::Key| Level { column: key.column.clone(), name: Some(key.label.clone()) };
            let index = keys.iter().map(level).chain(kept.index.clone()).collect();
            let (kept, by_key) = self.group_order(&Frame { index, ..kept }, keys)?;
            let order = by_key.into_iter().chain(by_value).chain(kept.order.clone()).collect();
            self.shown(Frame { order, ..kept })
        });
        DataFrame::new(made)
    }

    /// The first rows of each group in an order.
    pub(super) fn first_rows(
        &self,
        frame: &Frame,
        keys: &[super::group::Key],
        order: Vec<SortExpr>,
        rows_of_each: usize,
    ) -> Result<Frame> {
        self.rows_up_to(frame, keys, row_number_udwf(), order, rows_of_each)
    }

    /// The number of columns that groups are made by.
    ///
    /// # Errors
    /// The error that the groups carry.
    #[doc(hidden)]
    pub fn key_count(&self) -> Result<usize> {
        Ok(self.parts()?.1.len())
    }

    /// The rows of each group whose number in an order is at most this one.
    fn rows_up_to(
        &self,
        frame: &Frame,
        keys: &[super::group::Key],
        number: Arc<WindowUDF>,
        order: Vec<SortExpr>,
        rows_of_each: usize,
    ) -> Result<Frame> {
        let over: Vec<Expr> = keys.iter().map(|key| named(&key.column)).collect();
        let place = window(number, Vec::new(), &over, order, rows(None, Some(0)));
        let mut kept = vec![cast(place, DataType::Int64).lt_eq(lit(rows_of_each as i64))];
        kept.extend(self.in_group(keys));
        let (frame, exprs) = frame.lifted(kept)?;
        let mut plan = frame.builder();
        for expr in exprs {
            plan = plan.filter(expr)?;
        }
        Ok(Frame { plan: plan.build()?, ..frame })
    }

    /// The columns but the keys with a value in place of missing ones, in the columns whose type takes it.
    #[track_caller]
    pub fn fillna(&self, value: impl Into<Value>) -> DataFrame {
        let value = value.into();
        let made = self.columns_but_keys().and_then(|columns| {
            let frame = self.frame.frame()?;
            let filled = columns.iter().map(|column| {
                let fits = super::clean::takes(&frame.dtype(column)?, &value.dtype());
                let filled = if fits {
                    let (own, value) = unified(frame.plan.schema(), named(column), lit(value.0.clone()))?;
                    coalesce(vec![own, value])
                } else {
                    named(column)
                };
                Ok((column.clone(), filled))
            });
            frame.project(filled.collect::<Result<_>>()?)
        });
        DataFrame::new(made)
    }

    /// The first, largest, smallest and last value of a column in each group, as `open`, `high`, `low`,
    /// `close`.
    #[track_caller]
    pub fn ohlc(&self, label: &str) -> DataFrame {
        self.agg_as([
            ("open", label, Aggregate::First),
            ("high", label, Aggregate::Max),
            ("low", label, Aggregate::Min),
            ("close", label, Aggregate::Last),
        ])
    }

    /// Count, mean, deviation, smallest and largest value and quartiles of a column in each group.
    #[track_caller]
    pub fn describe(&self, label: &str) -> DataFrame {
        self.agg_as(DESCRIPTION.map(|(name, aggregate)| (name, label, aggregate)))
    }

    /// As [`GroupBy::describe`] for each column with numbers, under labels like `sold_mean`.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("k", vec!["a", "a"].into()), ("n", vec![1, 3].into())]);
    /// let described = frame.groupby(["k"]).describe_columns();
    /// assert_eq!(described.columns()?[..2], ["n_count", "n_mean"]);
    /// assert_eq!(described.col("n_mean").values::<f64>()?, [Some(2.0)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn describe_columns(&self) -> DataFrame {
        let labels = match self.numeric() {
            Ok(labels) => labels,
            Err(error) => return DataFrame::new(Err(error)),
        };
        let rows = labels.iter().flat_map(|label| {
            DESCRIPTION.map(|(name, aggregate)| (format!("{label}_{name}"), label.clone(), aggregate))
        });
        self.aggregate(rows.collect())
    }

    /// The rows of each group at these positions, counted from the end if negative, in the order of the
    /// frame.
    #[track_caller]
    pub fn take(&self, positions: impl IntoIterator<Item = i64>) -> DataFrame {
        let positions: Vec<i64> = positions.into_iter().collect();
        let made = self.parts().and_then(|(frame, keys)| {
            let over = Over { keys: keys.iter().map(|key| named(&key.column)).collect() };
            let place = |order: SortExpr| {
                cast(
                    window(row_number_udwf(), Vec::new(), &over.keys, vec![order], rows(None, Some(0))),
                    DataType::Int64,
                )
            };
            let kept = positions.iter().map(|position| match *position {
                0.. => place(in_order()).eq(lit(position + 1)),
                _ => place(from_end()).eq(lit(-position)),
            });
            let kept = kept.reduce(Expr::or).unwrap_or_else(|| lit(false));
            let kept = std::iter::once(kept).chain(self.in_group(keys)).collect();
            let (frame, exprs) = frame.with_index()?.lifted(kept)?;
            let mut plan = frame.builder();
            for expr in exprs {
                plan = plan.filter(expr)?;
            }
            self.shown(Frame { plan: plan.build()?, ..frame })
        });
        DataFrame::new(made)
    }

    /// Whether the values of a column never fall within each group, in a column of its label.
    #[track_caller]
    pub fn is_monotonic_increasing(&self, label: &str) -> DataFrame {
        self.monotonic(label, true)
    }

    /// Whether the values of a column never rise within each group, in a column of its label.
    #[track_caller]
    pub fn is_monotonic_decreasing(&self, label: &str) -> DataFrame {
        self.monotonic(label, false)
    }

    #[track_caller]
    fn monotonic(&self, label: &str, increasing: bool) -> DataFrame {
        let made = self.parts().and_then(|(frame, keys)| {
            frame.check(label)?;
            let over = Over { keys: keys.iter().map(|key| named(&key.column)).collect() };
            let before = over.shift(named(label), 1);
            let wrong = if increasing { before.gt(named(label)) } else { before.lt(named(label)) };
            let right = Expr::Not(Box::new(coalesce(vec![wrong, lit(false)]).or(named(label).is_null())));
            let kept: Vec<String> = keys.iter().map(|key| key.column.clone()).collect();
            let columns = kept.iter().map(|column| (column.clone(), named(column)));
            let flag = frame.fresh("monotonic");
            let columns = columns.chain([(flag.clone(), right)]).collect();
            let flagged = DataFrame::new(frame.project(columns));
            let groups = GroupBy { frame: flagged, chosen: None, ..self.clone() };
            let found = groups.agg_as([(label, flag.as_str(), Aggregate::All)]);
            found.frame().map(|frame| (**frame).clone())
        });
        DataFrame::new(made)
    }
}

impl Frame {
    /// The frame with a column that puts rows with equal values from the last to the first in groups of more
    /// rows than these; those with missing values keep their order.
    fn with_ties(
        &self,
        keys: &[super::group::Key],
        label: &str,
        rows_of_each: usize,
    ) -> Result<(Frame, String)> {
        let over = Over { keys: keys.iter().map(|key| named(&key.column)).collect() };
        let position = cast(over.position(), DataType::Int64);
        let size = window(count_udaf(), vec![lit(1_i64)], &over.keys, Vec::new(), rows(None, None));
        let turned = size.gt(lit(rows_of_each as i64)).and(named(label).is_not_null());
        let tie = when(turned, lit(0_i64) - position.clone()).otherwise(position)?;
        let (frame, exprs) = self.lifted(vec![tie])?;
        frame.with_hidden("tie", exprs.into_iter().next().unwrap_or(lit(0_i64)))
    }
}

impl DataFrame {
    /// The rows by the labels of one level of the index, by its name, then in the order that they had.
    #[track_caller]
    pub fn sort_level(&self, level: &str, sort: Sort) -> DataFrame {
        self.then(|frame| {
            let frame = frame.with_index()?;
            let column = frame.index[frame.level_at(level)?].column.clone();
            frame.sort_by(&[column.as_str()], &sort)
        })
    }
}

/// The aggregates that describe numbers.
const DESCRIPTION: [(&str, Aggregate); 8] = [
    ("count", Aggregate::Count),
    ("mean", Aggregate::Mean),
    ("std", Aggregate::Std),
    ("min", Aggregate::Min),
    ("25%", Aggregate::Quantile(0.25)),
    ("50%", Aggregate::Median),
    ("75%", Aggregate::Quantile(0.75)),
    ("max", Aggregate::Max),
];
