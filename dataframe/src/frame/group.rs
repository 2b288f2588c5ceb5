//! Groups of rows with equal keys, and what is computed of each.

use super::{DataFrame, Frame, Level, OrderKey, named};
use crate::error::{Error, Result};
use crate::frame::series::Series;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn as functions;
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::{Expr, ExprFunctionExt, SortExpr, lit};
use std::sync::Arc;

/// A function of the values of a group. Missing values are left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregate {
    /// The sum; 0 without values.
    Sum,
    /// The arithmetic mean.
    Mean,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The number of values that are there.
    Count,
    /// The number of rows, with those that miss the value.
    Size,
    /// The number of distinct values.
    Nunique,
    /// The first value that is there.
    First,
    /// The last value that is there.
    Last,
    /// The standard deviation of a sample.
    Std,
    /// The variance of a sample.
    Var,
    /// The standard error of the mean.
    Sem,
    /// The middle value.
    Median,
    /// The value below which this part of the values lies, between neighbours if need be.
    Quantile(f64),
    /// Whether any value is true.
    Any,
    /// Whether all values are true.
    All,
    /// The product; 1 without values.
    Prod,
    /// The skewness of a sample.
    Skew,
    /// The excess kurtosis of a sample.
    Kurt,
}

impl Aggregate {
    /// The aggregate with a pandas name.
    ///
    /// # Errors
    /// `ValueError` for a name that is none.
    pub fn named(name: &str) -> Result<Aggregate> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, aggregate)| *aggregate).ok_or_else(|| {
            let near = crate::error::nearest(name, NAMES.iter().map(|(known, _)| *known));
            let hint = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            Error::Value(format!("no aggregate {name:?}{hint}"))
        })
    }

    /// The name that pandas gives it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let found =
            NAMES.iter().find(|(_, known)| std::mem::discriminant(known) == std::mem::discriminant(self));
        found.map_or("quantile", |(name, _)| name)
    }

    /// Whether it is made for values of a type.
    pub(crate) fn fits(self, dtype: &DataType) -> bool {
        match self {
            Aggregate::Sum
            | Aggregate::Mean
            | Aggregate::Std
            | Aggregate::Var
            | Aggregate::Sem
            | Aggregate::Median
            | Aggregate::Prod
            | Aggregate::Skew
            | Aggregate::Kurt
            | Aggregate::Quantile(_) => dtype.is_numeric() || *dtype == DataType::Boolean,
            Aggregate::Any | Aggregate::All => {
                dtype.is_numeric() || *dtype == DataType::Boolean || crate::value::is_text(dtype)
            }
            _ => true,
        }
    }

    /// The expression that computes it. `order` gives the order of rows.
    pub(crate) fn expr(self, value: Expr, dtype: &DataType, order: &[SortExpr]) -> Result<Expr> {
        if !self.fits(dtype) {
            let name = self.name();
            return Err(Error::Type(format!("{name} is not made for values of type {dtype}")));
        }
        let float = |expr: Expr| cast(expr, DataType::Float64);
        let number = |expr: Expr| match dtype {
            DataType::Boolean => cast(expr, DataType::Int64),
            _ => expr,
        };
        let truth = |expr: Expr| super::reducing::truth(expr, dtype);
        Ok(match self {
            Aggregate::Sum => sum(number(value), dtype)?,
            Aggregate::Mean => functions::avg(float(value)),
            Aggregate::Min => functions::min(value),
            Aggregate::Max => functions::max(value),
            Aggregate::Count => functions::count(value),
            Aggregate::Size => functions::count(lit(1_i64)),
            Aggregate::Nunique => functions::count_distinct(value),
            Aggregate::First => in_order(functions::first_value(value, Vec::new()), order)?,
            Aggregate::Last => in_order(functions::last_value(value, Vec::new()), order)?,
            Aggregate::Std => functions::stddev(float(value)),
            Aggregate::Var => functions::var_sample(float(value)),
            Aggregate::Sem => {
                let count = cast(functions::count(value.clone()), DataType::Float64);
                functions::stddev(float(value)) / datafusion::functions::expr_fn::sqrt(count)
            }
            Aggregate::Median => functions::median(float(value)),
            Aggregate::Quantile(part) => quantile(float(value), part)?,
            Aggregate::Any => coalesce(vec![functions::bool_or(truth(value)), lit(false)]),
            Aggregate::All => coalesce(vec![functions::bool_and(truth(value)), lit(true)]),
            Aggregate::Prod if dtype.is_floating() => product(float(value), lit(1.0)),
            Aggregate::Prod => product(cast(value, DataType::Int64), lit(1_i64)),
            Aggregate::Skew => crate::functions::skewness().call(vec![float(value)]),
            Aggregate::Kurt => crate::functions::kurtosis().call(vec![float(value)]),
        })
    }
}

const NAMES: [(&str, Aggregate); 19] = [
    ("sum", Aggregate::Sum),
    ("mean", Aggregate::Mean),
    ("min", Aggregate::Min),
    ("max", Aggregate::Max),
    ("count", Aggregate::Count),
    ("size", Aggregate::Size),
    ("nunique", Aggregate::Nunique),
    ("first", Aggregate::First),
    ("last", Aggregate::Last),
    ("std", Aggregate::Std),
    ("var", Aggregate::Var),
    ("sem", Aggregate::Sem),
    ("median", Aggregate::Median),
    ("quantile", Aggregate::Quantile(0.5)),
    ("any", Aggregate::Any),
    ("all", Aggregate::All),
    ("prod", Aggregate::Prod),
    ("skew", Aggregate::Skew),
    ("kurt", Aggregate::Kurt),
];

/// A product that is one without values.
fn product(value: Expr, one: Expr) -> Expr {
    coalesce(vec![crate::functions::product().call(vec![value]), one])
}

/// The first value, in an order, of the rows that have another value.
pub(super) fn first_where(value: Expr, present: Expr, order: Vec<SortExpr>) -> Result<Expr> {
    Ok(functions::first_value(value, Vec::new()).order_by(order).filter(present.is_not_null()).build()?)
}

/// A sum that is zero without values.
fn sum(value: Expr, dtype: &DataType) -> Result<Expr> {
    let zero = match dtype {
        DataType::Float32 | DataType::Float64 | DataType::Float16 => ScalarValue::Float64(Some(0.0)),
        _ if dtype.is_unsigned_integer() => ScalarValue::UInt64(Some(0)),
        _ => ScalarValue::Int64(Some(0)),
    };
    Ok(coalesce(vec![functions::sum(value), lit(zero)]))
}

fn in_order(call: Expr, order: &[SortExpr]) -> Result<Expr> {
    Ok(call
        .order_by(order.to_vec())
        .null_treatment(datafusion::logical_expr::expr::NullTreatment::IgnoreNulls)
        .build()?)
}

fn quantile(value: Expr, part: f64) -> Result<Expr> {
    match (0.0..=1.0).contains(&part) {
        true => Ok(crate::functions::quantile().call(vec![value, lit(part)])),
        false => Err(Error::Value(format!("a quantile lies between 0 and 1, not at {part}"))),
    }
}

/// Rows of a frame by the values of keys.
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
    #[must_use]
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
                    let (aligned, expr) = match self.is_same(others) {
                        true => (frame, expr.clone()),
                        false => frame.align_rows(others, expr)?,
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
    #[must_use]
    pub fn sort(self, sort: bool) -> GroupBy {
        GroupBy { sort, ..self }
    }

    /// The keys as columns of the result instead of its index, if false.
    #[must_use]
    pub fn as_index(self, as_index: bool) -> GroupBy {
        GroupBy { as_index, ..self }
    }

    /// A group of the rows without a key too, if false.
    #[must_use]
    pub fn dropna(self, dropna: bool) -> GroupBy {
        GroupBy { dropna, ..self }
    }

    /// Only these columns are aggregated.
    #[must_use]
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
    #[track_caller]
    #[must_use]
    pub(crate) fn every_column(&self, aggregate: Aggregate) -> DataFrame {
        match self.columns_but_keys() {
            Ok(columns) => self.clone().select(columns.iter().map(String::as_str)).all_columns(aggregate),
            Err(error) => DataFrame::new(Err(error)),
        }
    }

    /// One aggregate of those columns that hold numbers or truth values.
    #[track_caller]
    #[must_use]
    pub(crate) fn numbers(&self, aggregate: Aggregate) -> DataFrame {
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

    pub(crate) fn columns_but_keys(&self) -> Result<Vec<String>> {
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
    #[must_use]
    pub fn agg<'a>(&self, aggregates: impl IntoIterator<Item = (&'a str, Aggregate)>) -> DataFrame {
        self.aggregate(labelled_aggregates(aggregates))
    }

    /// Aggregates under labels of their own: label, column, aggregate.
    #[track_caller]
    #[must_use]
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
    #[must_use]
    pub fn size(&self) -> DataFrame {
        let column = self.keys.as_ref().ok().and_then(|keys| keys.first()).map(|key| key.column.clone());
        self.aggregate(vec![("size".to_owned(), column.unwrap_or_default(), Aggregate::Size)])
    }

    /// One aggregate of all columns but the keys; of those with numbers only if it needs numbers.
    #[track_caller]
    #[must_use]
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
            #[must_use]
            pub fn $name(&self) -> DataFrame {
                self.all_columns(Aggregate::$aggregate)
            })*

            /// A quantile of each column with numbers.
            #[track_caller]
            #[must_use]
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
