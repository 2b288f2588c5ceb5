//! Frames reduced to a few rows: one for each column, or one for each aggregate.
//!
//! All aggregates are computed in one pass over the rows; its single row of results is then unfolded.

use super::clean::named_column;
use super::group::first_where;
use super::{Aggregate, DataFrame, Frame, Level, OrderKey, Reduce, named};
use crate::error::{Error, Result};
use crate::execute::Executor;
use crate::frame::series::Series;
use crate::promotion::common_type;
use crate::value::Value;
use arrow::datatypes::DataType;
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use std::sync::Arc;

/// The columns of an unfolded row: labels, and a value for each row.
type Cells = Vec<(String, Vec<Expr>)>;

/// One row as several ones: `labels` are their index.
pub(super) fn unfolded(row: LogicalPlan, labels: Vec<String>, columns: Cells) -> Result<Frame> {
    const LEVEL: &str = "__tharsis_level_0";
    const ORDER: &str = "__tharsis_order_0";
    let mut exprs = vec![
        make_array((0..labels.len()).map(|at| lit(at as i64)).collect()).alias(ORDER),
        make_array(labels.into_iter().map(lit).collect()).alias(LEVEL),
    ];
    let names: Vec<String> = columns.iter().map(|(label, _)| label.clone()).collect();
    exprs.extend(columns.into_iter().map(|(label, values)| make_array(values).alias(label)));
    let lists = [ORDER, LEVEL].into_iter().chain(names.iter().map(String::as_str));
    let lists = lists.map(named_column).collect();
    let plan = LogicalPlanBuilder::from(row).project(exprs)?;
    let plan = plan.unnest_columns_with_options(lists, Default::default())?.build()?;
    let index = vec![Level { column: LEVEL.to_owned(), name: None }];
    Ok(Frame { plan, columns: names, index, order: vec![OrderKey::growing(ORDER)] })
}

impl Frame {
    /// The columns for whose values all these aggregates are made. Those of durations only if there are no
    /// others: the results share one type.
    fn aggregable(&self, aggregates: &[Reduce]) -> Result<Vec<String>> {
        let (mut columns, mut durations) = (Vec::new(), Vec::new());
        for column in &self.columns {
            let dtype = self.dtype(column)?;
            if aggregates.iter().all(|reduce| reduce.aggregate.fits_plain(&dtype)) {
                columns.push(column.clone());
            } else if aggregates.iter().all(|reduce| reduce.aggregate.fits_whole(&dtype)) {
                durations.push(column.clone());
            }
        }
        Ok(if columns.is_empty() { durations } else { columns })
    }

    /// One row with all aggregates of these columns, and the names of its columns.
    fn aggregated(&self, columns: &[String], aggregates: &[Reduce]) -> Result<(LogicalPlan, Vec<String>)> {
        let frame = self.with_order()?;
        let order = frame.sort_exprs();
        let (mut exprs, mut names) = (Vec::new(), Vec::new());
        for column in columns {
            for aggregate in aggregates {
                let name = format!("__tharsis_cell_{}", names.len());
                exprs.push(aggregate.expr(named(column), &frame.dtype(column)?, &order)?.alias(&name));
                names.push(name);
            }
        }
        Ok((frame.builder().aggregate(Vec::<Expr>::new(), exprs)?.build()?, names))
    }

    /// The cells of a row, with the type that all of them fit into.
    fn cells(row: &LogicalPlan, names: &[String]) -> Result<Vec<Expr>> {
        let dtype = |name: &String| Ok(row.schema().field_with_unqualified_name(name)?.data_type().clone());
        let types = names.iter().map(dtype).collect::<Result<Vec<_>>>()?;
        let to = common_type(&types)?;
        Ok(names.iter().map(|name| cast(named(name), to.clone())).collect())
    }

    /// The label of the first row with the smallest or the largest value of each column.
    fn label_of_each(&self, smallest: bool) -> Result<Frame> {
        let frame = self.with_index()?.with_order()?;
        let [level] = &frame.index[..] else {
            return Err(Error::NotImplemented("labels of an index with several levels".to_owned()));
        };
        let (mut exprs, mut cells) = (Vec::new(), Vec::new());
        for (number, column) in self.columns.iter().enumerate() {
            let order = frame.by_value(column, smallest);
            let name = format!("__tharsis_cell_{number}");
            exprs.push(first_where(named(&level.column), named(column), order)?.alias(&name));
            cells.push(named(&name));
        }
        let row = frame.builder().aggregate(Vec::<Expr>::new(), exprs)?.build()?;
        unfolded(row, self.columns.clone(), vec![("0".to_owned(), cells)])
    }

    /// A row for each aggregate.
    fn rows_of(&self, columns: &[String], rows: Vec<(String, Reduce)>) -> Result<Frame> {
        if columns.is_empty() || rows.is_empty() {
            return Err(Error::Value("there is no column for these aggregates".to_owned()));
        }
        let (labels, aggregates): (Vec<String>, Vec<Reduce>) = rows.into_iter().unzip();
        let (row, names) = self.aggregated(columns, &aggregates)?;
        let cells = columns.iter().zip(names.chunks(aggregates.len()));
        let cells = cells.map(|(column, names)| Ok((column.clone(), Frame::cells(&row, names)?)));
        let cells = cells.collect::<Result<Cells>>()?;
        unfolded(row, labels, cells)
    }
}

impl DataFrame {
    /// One aggregate of each column: a row for each, with the labels as index, and the results in a column
    /// `0`. pandas gives a series with the same index.
    ///
    /// Columns with values that the aggregate is not made for are left out. The results share one type:
    /// columns of texts and of numbers have no smallest values that do.
    ///
    /// ```
    /// use tharsis_dataframe::{Aggregate, DataFrame};
    /// let frame = DataFrame::from_columns([("a", vec![1, 2].into()), ("b", vec![0.5, 1.5].into())]);
    /// assert_eq!(frame.agg(Aggregate::Sum).col("0").values::<f64>()?, [Some(3.0), Some(2.0)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn agg(&self, reduce: impl Into<Reduce>) -> DataFrame {
        let reduce = reduce.into();
        self.then(|frame| {
            let columns = frame.aggregable(&[reduce])?;
            let (row, names) = frame.aggregated(&columns, &[reduce])?;
            let cells = Frame::cells(&row, &names)?;
            unfolded(row, columns, vec![("0".to_owned(), cells)])
        })
    }

    /// One aggregate of the columns of each row, as a series with the labels of the rows; pandas' `axis=1`.
    ///
    /// ```
    /// use tharsis_dataframe::{Aggregate, DataFrame};
    /// let frame = DataFrame::from_columns([("a", vec![1, 2].into()), ("b", vec![0.5, 1.5].into())]);
    /// assert_eq!(frame.agg_across(Aggregate::Sum).values::<f64>()?, [Some(1.5), Some(3.5)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn agg_across(&self, reduce: impl Into<Reduce>) -> Series {
        let made = self
            .frame()
            .and_then(|frame| Ok((Arc::clone(frame), reduce.into().across(frame, &frame.columns)?)));
        Series::new(made, None)
    }

    /// The label of the column with the smallest value of each row; of several, the first. Missing in rows
    /// without values.
    #[track_caller]
    pub fn idxmin_across(&self) -> Series {
        self.label_across(Aggregate::Min)
    }

    /// The label of the column with the largest value of each row; of several, the first. Missing in rows
    /// without values.
    #[track_caller]
    pub fn idxmax_across(&self) -> Series {
        self.label_across(Aggregate::Max)
    }

    #[track_caller]
    fn label_across(&self, best: Aggregate) -> Series {
        let made = self.frame().and_then(|frame| {
            let best = Reduce::by(best).across(frame, &frame.columns)?;
            let is_best = |column: &String| named(column).eq(best.clone());
            let labels =
                frame.columns.iter().map(|column| Ok(when(is_best(column), lit(column.clone())).end()?));
            let labels = labels.collect::<Result<Vec<_>>>()?;
            let none = cast(lit(datafusion::common::ScalarValue::Null), DataType::Utf8);
            let label = if labels.is_empty() { none } else { coalesce(labels) };
            Ok((Arc::clone(frame), label))
        });
        Series::new(made, None)
    }

    /// The values of some reductions of columns, all in one pass.
    ///
    /// # Errors
    /// The error that the frame carries, or one of its run.
    #[doc(hidden)]
    pub fn cells_on(&self, cells: &[(String, Reduce)], executor: &dyn Executor) -> Result<Vec<Value>> {
        if cells.is_empty() {
            return Ok(Vec::new());
        }
        let frame = self.frame()?.with_order()?;
        let order = frame.sort_exprs();
        let mut exprs = Vec::new();
        for (number, (column, reduce)) in cells.iter().enumerate() {
            frame.check(column)?;
            let found = reduce.expr(named(column), &frame.dtype(column)?, &order)?;
            exprs.push(found.alias(format!("__tharsis_cell_{number}")));
        }
        let plan = frame.builder().aggregate(Vec::<Expr>::new(), exprs)?.build()?;
        let table = DataFrame::new(Frame::of_plan(plan)).collect_on(executor)?;
        (0..cells.len()).map(|number| table.value(0, &format!("__tharsis_cell_{number}"))).collect()
    }

    /// Several aggregates of each column: a row for each aggregate, with its name as index.
    #[track_caller]
    pub fn agg_rows<R: Into<Reduce>>(&self, aggregates: impl IntoIterator<Item = R>) -> DataFrame {
        let aggregates: Vec<Reduce> = aggregates.into_iter().map(Into::into).collect();
        self.then(|frame| {
            let columns = frame.aggregable(&aggregates)?;
            let rows = aggregates.iter().map(|aggregate| (aggregate.aggregate.name().to_owned(), *aggregate));
            frame.rows_of(&columns, rows.collect())
        })
    }

    /// A quantile of each column of numbers, as [`DataFrame::agg`].
    #[track_caller]
    pub fn quantile(&self, part: f64) -> DataFrame {
        self.agg(Aggregate::Quantile(part))
    }

    /// The label of the row with the smallest value of each column, as [`DataFrame::agg`].
    #[track_caller]
    pub fn idxmin(&self) -> DataFrame {
        self.then(|frame| frame.label_of_each(true))
    }

    /// The label of the row with the largest value of each column, as [`DataFrame::agg`].
    #[track_caller]
    pub fn idxmax(&self) -> DataFrame {
        self.then(|frame| frame.label_of_each(false))
    }

    /// Count, mean, standard deviation, smallest and largest value and quartiles of each column of numbers.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("n", vec![1, 2, 3].into())]);
    /// let table = frame.describe().collect()?;
    /// assert_eq!(table.column::<f64>("n")?[..2], [Some(3.0), Some(2.0)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn describe(&self) -> DataFrame {
        self.then(|frame| {
            let rows = [
                ("count", Aggregate::Count),
                ("mean", Aggregate::Mean),
                ("std", Aggregate::Std),
                ("min", Aggregate::Min),
                ("25%", Aggregate::Quantile(0.25)),
                ("50%", Aggregate::Median),
                ("75%", Aggregate::Quantile(0.75)),
                ("max", Aggregate::Max),
            ];
            let numbers = |column: &&String| frame.dtype(column).is_ok_and(|dtype| dtype.is_numeric());
            let columns: Vec<String> = frame.columns.iter().filter(numbers).cloned().collect();
            let rows = rows.map(|(label, aggregate)| (label.to_owned(), Reduce::by(aggregate)));
            frame.rows_of(&columns, rows.to_vec())
        })
    }
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident $aggregate:ident),*) => {
        impl DataFrame {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> DataFrame {
                self.agg(Aggregate::$aggregate)
            })*
        }
    };
}

reductions!(
    /// The sum of each column of numbers, as [`DataFrame::agg`].
    sum Sum,
    /// The mean of each column of numbers, as [`DataFrame::agg`].
    mean Mean,
    /// The smallest value of each column, as [`DataFrame::agg`].
    min Min,
    /// The largest value of each column, as [`DataFrame::agg`].
    max Max,
    /// The number of values that are there, as [`DataFrame::agg`].
    count Count,
    /// The number of distinct values of each column, as [`DataFrame::agg`].
    nunique Nunique,
    /// The standard deviation of each column of numbers, as [`DataFrame::agg`].
    std Std,
    /// The variance of each column of numbers, as [`DataFrame::agg`].
    var Var,
    /// The standard error of the mean of each column of numbers, as [`DataFrame::agg`].
    sem Sem,
    /// The product of each column of numbers, as [`DataFrame::agg`].
    prod Prod,
    /// The skewness of each column of numbers, as [`DataFrame::agg`].
    skew Skew,
    /// The excess kurtosis of each column of numbers, as [`DataFrame::agg`].
    kurt Kurt,
    /// The middle value of each column of numbers, as [`DataFrame::agg`].
    median Median,
    /// Whether any value of each column is true, as [`DataFrame::agg`].
    any Any,
    /// Whether all values of each column are true, as [`DataFrame::agg`].
    all All
);
