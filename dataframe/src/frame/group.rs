//! Groups of rows with equal keys, and what is computed of each.

use super::aggregate::Aggregate;
use super::{DataFrame, Frame, Level, OrderKey, named};
use crate::error::{Error, Result};
use crate::frame::series::Series;
use arrow::datatypes::DataType;
use datafusion::functions_aggregate::expr_fn as functions;
use datafusion::logical_expr::{Expr, ExprFunctionExt, SortExpr, lit};
use std::collections::HashSet;
use std::sync::Arc;

/// The first value, in an order, of the rows that have another value.
pub(super) fn first_where(value: Expr, present: Expr, order: Vec<SortExpr>) -> Result<Expr> {
    Ok(functions::first_value(value, Vec::new()).order_by(order).filter(present.is_not_null()).build()?)
}

/// Rows of a frame by the values of keys.
#[must_use = "groups do nothing by themselves: call an aggregate"]
#[derive(Clone, Debug)]
pub struct GroupBy {
    pub(super) frame: DataFrame,
    /// Labels of the keys, in the frame or beside it.
    pub(super) keys: std::result::Result<Vec<Key>, Arc<Error>>,
    /// The columns that are aggregated, if they were chosen.
    pub(super) chosen: Option<Vec<String>>,
    pub(super) sort: bool,
    pub(super) as_index: bool,
    pub(super) dropna: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) label: String,
    pub(super) column: String,
}

/// A key of groups: a label, or a series over the same rows.
#[derive(Clone, Debug)]
pub enum GroupKey {
    /// A column of the frame.
    Label(String),
    /// Values for each row.
    Values(Series),
}

impl From<&str> for GroupKey {
    fn from(label: &str) -> GroupKey {
        GroupKey::Label(label.to_owned())
    }
}

impl From<&String> for GroupKey {
    fn from(label: &String) -> GroupKey {
        GroupKey::Label(label.clone())
    }
}

impl From<&Series> for GroupKey {
    fn from(series: &Series) -> GroupKey {
        GroupKey::Values(series.clone())
    }
}

impl DataFrame {
    /// Groups of rows with equal keys: labels of columns, or series.
    ///
    /// ```
    /// use tharsis_dataframe::{Aggregate, DataFrame};
    /// let sales = DataFrame::from_columns([
    ///     ("city", vec!["Oslo", "Rome", "Oslo"].into()),
    ///     ("sold", vec![3, 5, 4].into()),
    /// ]);
    /// let totals = sales.groupby(["city"]).agg([("sold", Aggregate::Sum), ("sold", Aggregate::Max)]);
    /// assert_eq!(totals.columns()?, ["sold_sum", "sold_max"]);
    /// assert_eq!(totals.col("sold_sum").values::<i64>()?, [Some(7), Some(5)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn groupby<K: Into<GroupKey>>(&self, keys: impl IntoIterator<Item = K>) -> GroupBy {
        let keys: Vec<GroupKey> = keys.into_iter().map(Into::into).collect();
        let made = self.frame().and_then(|frame| frame.with_keys(&keys));
        let (frame, keys) = match made {
            Ok((frame, keys)) => (DataFrame::new(Ok(frame)), Ok(keys)),
            Err(error) => (DataFrame::new(Err(error.clone())), Err(Arc::new(error))),
        };
        GroupBy { frame, keys, chosen: None, sort: true, as_index: true, dropna: true }
    }
}

impl Frame {
    /// The frame with the keys of groups as columns of the plan.
    fn with_keys(&self, keys: &[GroupKey]) -> Result<(Frame, Vec<Key>)> {
        if keys.is_empty() {
            return Err(Error::Value("no keys to group by".to_owned()));
        }
        let mut frame = self.clone();
        let mut found = Vec::new();
        for key in keys {
            match key {
                GroupKey::Label(label) => {
                    let level = frame.index.iter().find(|level| level.name.as_ref() == Some(label));
                    let column = match (frame.check(label), level) {
                        (Ok(()), _) => label.clone(),
                        (Err(_), Some(level)) => level.column.clone(),
                        (Err(error), None) => return Err(error),
                    };
                    found.push(Key { label: label.clone(), column });
                }
                GroupKey::Values(series) => {
                    let (others, expr) = series.parts()?;
                    // Columns of this frame have their names in the one with the keys that came before.
                    let (aligned, expr) = if self.is_same(others) {
                        (frame, expr.clone())
                    } else if self.meeting(others)?.is_some() {
                        (frame.with_shared_of(others)?, expr.clone())
                    } else {
                        frame.align_rows(others, expr)?
                    };
                    let column = aligned.fresh("key");
                    let columns = aligned.columns.iter().map(|label| (label.clone(), named(label)));
                    let columns = columns.chain([(column.clone(), expr)]).collect();
                    frame = aligned.project(columns)?;
                    found.push(Key { label: series.label(), column });
                }
            }
        }
        Ok((Frame { columns: self.columns.clone(), ..frame }, found))
    }
}

impl GroupBy {
    /// Groups of a frame by keys that it has.
    pub(super) fn of_keys(frame: DataFrame, keys: Vec<Key>) -> GroupBy {
        GroupBy { frame, keys: Ok(keys), chosen: None, sort: true, as_index: true, dropna: true }
    }

    /// The groups by their first rows instead of by their keys, if false.
    pub fn sort(self, sort: bool) -> GroupBy {
        GroupBy { sort, ..self }
    }

    /// The keys as columns of the result instead of its index, if false.
    pub fn as_index(self, as_index: bool) -> GroupBy {
        GroupBy { as_index, ..self }
    }

    /// A group of the rows without a key too, if false.
    pub fn dropna(self, dropna: bool) -> GroupBy {
        GroupBy { dropna, ..self }
    }

    /// Only these columns are aggregated.
    pub fn select<'a>(self, labels: impl IntoIterator<Item = &'a str>) -> GroupBy {
        GroupBy { chosen: Some(labels.into_iter().map(str::to_owned).collect()), ..self }
    }

    /// Nothing, or the error that the groups carry.
    ///
    /// # Errors
    /// A key or a chosen column that does not exist.
    pub fn check(&self) -> Result<()> {
        let frame = self.frame.frame()?;
        self.keys.as_ref().map_err(|error| (**error).clone())?;
        self.chosen.iter().flatten().try_for_each(|label| frame.check(label))
    }

    /// One aggregate of all columns but the keys, or of all chosen ones, whatever their types.
    #[doc(hidden)]
    #[track_caller]
    pub fn every_column(&self, aggregate: Aggregate) -> DataFrame {
        match self.columns_but_keys() {
            Ok(columns) => self.clone().select(columns.iter().map(String::as_str)).all_columns(aggregate),
            Err(error) => DataFrame::new(Err(error)),
        }
    }

    /// One aggregate of those columns that hold numbers or truth values.
    #[doc(hidden)]
    #[track_caller]
    pub fn numbers(&self, aggregate: Aggregate) -> DataFrame {
        let columns = self.columns_but_keys().and_then(|columns| {
            let frame = self.frame.frame()?;
            let numeric = |column: &String| -> Result<Option<String>> {
                let dtype = frame.dtype(column)?;
                Ok((dtype.is_numeric() || dtype == DataType::Boolean).then(|| column.clone()))
            };
            columns.iter().filter_map(|column| numeric(column).transpose()).collect::<Result<Vec<_>>>()
        });
        match columns {
            Ok(columns) => self.clone().select(columns.iter().map(String::as_str)).all_columns(aggregate),
            Err(error) => DataFrame::new(Err(error)),
        }
    }

    /// The columns that are no keys, or all chosen ones.
    ///
    /// # Errors
    /// The error that the groups carry.
    #[doc(hidden)]
    pub fn columns_but_keys(&self) -> Result<Vec<String>> {
        self.check()?;
        let frame = self.frame.frame()?;
        let keys = self.keys.as_ref().map_err(|error| (**error).clone())?;
        let is_key = |column: &String| keys.iter().any(|key| key.column == *column);
        Ok(match &self.chosen {
            Some(chosen) => chosen.clone(),
            None => frame.columns.iter().filter(|column| !is_key(column)).cloned().collect(),
        })
    }

    /// Aggregates of columns, under labels like `sold_sum`; a column with one aggregate keeps its label.
    #[track_caller]
    pub fn agg<'a>(&self, aggregates: impl IntoIterator<Item = (&'a str, Aggregate)>) -> DataFrame {
        self.aggregate(labelled_aggregates(aggregates))
    }

    /// Aggregates under labels of their own: label, column, aggregate.
    #[track_caller]
    pub fn agg_as<'a>(
        &self,
        aggregates: impl IntoIterator<Item = (&'a str, &'a str, Aggregate)>,
    ) -> DataFrame {
        let owned = aggregates
            .into_iter()
            .map(|(label, column, aggregate)| (label.to_owned(), column.to_owned(), aggregate));
        self.aggregate(owned.collect())
    }

    /// The number of rows of each group, in a column `size`.
    #[track_caller]
    pub fn size(&self) -> DataFrame {
        let column = self.keys.as_ref().ok().and_then(|keys| keys.first()).map(|key| key.column.clone());
        self.aggregate(vec![("size".to_owned(), column.unwrap_or_default(), Aggregate::Size)])
    }

    /// One aggregate of all columns but the keys; of those with numbers only if it needs numbers.
    #[track_caller]
    pub fn all_columns(&self, aggregate: Aggregate) -> DataFrame {
        let made = self.frame.frame().and_then(|frame| {
            let keys = self.keys.as_ref().map_err(|error| (**error).clone())?;
            let mut list = Vec::new();
            for column in self.chosen.as_ref().unwrap_or(&frame.columns) {
                let chosen = self.chosen.is_some();
                if chosen {
                    frame.check(column)?;
                }
                let is_key = keys.iter().any(|key| key.column == *column);
                if chosen || (!is_key && aggregate.fits(&frame.dtype(column)?)) {
                    list.push((column.clone(), column.clone(), aggregate));
                }
            }
            Ok(list)
        });
        match made {
            Ok(list) => self.aggregate(list),
            Err(error) => DataFrame::new(Err(error)),
        }
    }

    #[track_caller]
    pub(super) fn aggregate(&self, aggregates: Vec<(String, String, Aggregate)>) -> DataFrame {
        let made = self.frame.frame().and_then(|frame| {
            let keys = self.keys.as_ref().map_err(|error| (**error).clone())?;
            self.aggregate_frame(frame, keys, &aggregates)
        });
        DataFrame::new(made)
    }

    pub(super) fn aggregate_frame(
        &self,
        frame: &Frame,
        keys: &[Key],
        aggregates: &[(String, String, Aggregate)],
    ) -> Result<Frame> {
        let by_rows = |aggregate: &Aggregate| matches!(aggregate, Aggregate::First | Aggregate::Last);
        let ordered = !self.sort || aggregates.iter().any(|(_, _, aggregate)| by_rows(aggregate));
        let frame = if ordered { frame.with_order()? } else { frame.clone() };
        let order = frame.sort_exprs();
        let mut exprs = Vec::new();
        for (label, column, aggregate) in aggregates {
            let is_key = keys.iter().any(|key| key.column == *column);
            if !is_key {
                frame.check(column)?;
            }
            exprs.push((label.clone(), aggregate.expr(named(column), &frame.dtype(column)?, &order)?));
        }
        self.aggregate_exprs(&frame, keys, exprs)
    }

    /// The groups of a frame in order, with these aggregates under their labels.
    pub(super) fn aggregate_exprs(
        &self,
        frame: &Frame,
        keys: &[Key],
        aggregates: Vec<(String, Expr)>,
    ) -> Result<Frame> {
        let order = frame.sort_exprs();
        let mut plan = frame.builder();
        if self.dropna {
            let present = keys.iter().map(|key| named(&key.column).is_not_null()).reduce(Expr::and);
            plan = plan.filter(present.unwrap_or_else(|| lit(true)))?;
        }
        let labels: Vec<String> = aggregates.iter().map(|(label, _)| label.clone()).collect();
        let mut known = HashSet::new();
        if let Some(label) = labels.iter().find(|label| !known.insert(label.as_str())) {
            return Err(Error::Value(format!("two aggregates would have the label {label:?}")));
        }
        let mut exprs: Vec<Expr> =
            aggregates.into_iter().map(|(label, expr)| expr.alias(internal(&label))).collect();
        let mut order_keys: Vec<OrderKey> =
            (0..keys.len()).map(|at| OrderKey::growing(&key_name(at))).collect();
        if !self.sort {
            // The first row of each group, by the whole order.
            order_keys.clear();
            for (at, key) in frame.order.iter().enumerate() {
                let name = format!("__tharsis_first_{at}");
                let first = functions::first_value(named(&key.column), order.clone());
                exprs.push(first.alias(&name));
                order_keys.push(OrderKey { column: name, ..key.clone() });
            }
        }
        let groups: Vec<Expr> = keys.iter().map(|key| named(&key.column)).collect();
        let plan = plan.aggregate(groups, exprs)?;
        self.labelled(plan.build()?, keys, labels, order_keys)
    }

    /// The aggregated plan under the labels that users see.
    fn labelled(
        &self,
        plan: datafusion::logical_expr::LogicalPlan,
        keys: &[Key],
        columns: Vec<String>,
        order: Vec<OrderKey>,
    ) -> Result<Frame> {
        let numbered = || keys.iter().enumerate();
        let mut exprs: Vec<Expr> =
            numbered().map(|(at, key)| named(&key.column).alias(key_name(at))).collect();
        exprs.extend(columns.iter().map(|label| named(&internal(label)).alias(label)));
        let hidden = order.iter().filter(|key| key.column.starts_with("__tharsis_first_"));
        exprs.extend(hidden.map(|key| named(&key.column)));
        let plan = datafusion::logical_expr::LogicalPlanBuilder::from(plan).project(exprs)?.build()?;
        let level = |(at, key): (usize, &Key)| Level { column: key_name(at), name: Some(key.label.clone()) };
        let index = numbered().map(level).collect();
        let frame = Frame { plan, columns, index, order };
        if self.as_index { Ok(frame) } else { frame.index_as_columns() }
    }
}

/// Aggregates with their labels: the column's own, or one like `sold_sum` if it has several.
pub(super) fn labelled_aggregates<'a>(
    aggregates: impl IntoIterator<Item = (&'a str, Aggregate)>,
) -> Vec<(String, String, Aggregate)> {
    let aggregates: Vec<(&str, Aggregate)> = aggregates.into_iter().collect();
    let label = |column: &str, aggregate: Aggregate| {
        let several = 1 < aggregates.iter().filter(|(other, _)| *other == column).count();
        if several { format!("{column}_{}", aggregate.name()) } else { column.to_owned() }
    };
    let labelled = aggregates
        .iter()
        .map(|(column, aggregate)| (label(column, *aggregate), (*column).to_owned(), *aggregate));
    labelled.collect()
}

/// The name of an aggregate in the plan, which may not be that of a key.
fn internal(label: &str) -> String {
    format!("__tharsis_agg_{label}")
}

/// The name of a key in the plan: two keys may have the same label.
fn key_name(at: usize) -> String {
    format!("__tharsis_key_{at}")
}

macro_rules! aggregates {
    ($($(#[$doc:meta])* $name:ident $aggregate:ident),*) => {
        impl GroupBy {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> DataFrame {
                self.all_columns(Aggregate::$aggregate)
            })*

            /// A quantile of each column with numbers.
            #[track_caller]
            pub fn quantile(&self, part: f64) -> DataFrame {
                self.all_columns(Aggregate::Quantile(part))
            }
        }
    };
}

aggregates!(
    /// The sum of each column with numbers.
    sum Sum,
    /// The mean of each column with numbers.
    mean Mean,
    /// The smallest value of each column.
    min Min,
    /// The largest value of each column.
    max Max,
    /// The number of values of each column that are there.
    count Count,
    /// The number of distinct values of each column.
    nunique Nunique,
    /// The first value of each column that is there.
    first First,
    /// The last value of each column that is there.
    last Last,
    /// The standard deviation of each column with numbers.
    std Std,
    /// The variance of each column with numbers.
    var Var,
    /// The standard error of the mean of each column with numbers.
    sem Sem,
    /// The middle value of each column with numbers.
    median Median,
    /// The product of each column with numbers.
    prod Prod,
    /// The skewness of each column with numbers.
    skew Skew,
    /// The excess kurtosis of each column with numbers.
    kurt Kurt
);
