//! Groups of rows: how columns go together in each, the distinct values and the places of its rows, and the
//! groups one by one.

use super::clean::named_column;
use super::group::{GroupBy, Key};
use super::matrix::{correlation, covariance};
use super::{Aggregate, DataFrame, Frame, Interpolation, Level, OrderKey, Reduce, named};
use crate::error::{Error, Result};
use crate::frame::series::{Operand, Series};
use crate::stage::row_number::Numbering;
use crate::value::Value;
use arrow::datatypes::DataType;
use datafusion::functions_aggregate::expr_fn::array_agg;
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::{Expr, ExprFunctionExt, ExprSchemable, LogicalPlanBuilder, lit};

/// The level of labels of columns among the rows of a group.
const LEVEL: &str = "__tharsis_level_0";
const ORDER: &str = "__tharsis_order_0";

fn cell(number: usize) -> String {
    format!("__tharsis_cell_{number}")
}

/// A measure of two columns.
type Measure<'a> = &'a dyn Fn(&Expr, &Expr) -> Result<Expr>;

impl GroupBy {
    /// The covariance of each pair of columns with numbers in each group: for each group a row for each
    /// column, and the keys before the labels of columns in the index. Missing with fewer than `min_periods`
    /// pairs.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([
    ///     ("k", vec!["a", "b", "a", "b"].into()),
    ///     ("x", vec![1, 2, 3, 4].into()),
    ///     ("y", vec![4, 1, 8, 1].into()),
    /// ]);
    /// let together = frame.groupby(["k"]).cov(1);
    /// assert_eq!(together.col("y").values::<f64>()?, [4.0, 8.0, 0.0, 0.0].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn cov(&self, min_periods: usize) -> DataFrame {
        DataFrame::new(self.pairs(&|left, right| covariance(left, right, min_periods)))
    }

    /// The correlation of each pair of columns with numbers in each group, as [`GroupBy::cov`].
    #[track_caller]
    pub fn corr(&self, min_periods: usize) -> DataFrame {
        DataFrame::new(self.pairs(&|left, right| correlation(left, right, min_periods)))
    }

    /// The covariance of each column with numbers with a series, over the rows with equal labels, in each
    /// group.
    #[track_caller]
    pub fn cov_with(&self, other: &Series, min_periods: usize) -> DataFrame {
        DataFrame::new(self.beside(other, &|left, right| covariance(left, right, min_periods)))
    }

    /// The correlation of each column with numbers with a series, over the rows with equal labels, in each
    /// group; pandas' `corrwith`, and `corr` of one column.
    #[track_caller]
    pub fn corrwith(&self, other: &Series, min_periods: usize) -> DataFrame {
        DataFrame::new(self.beside(other, &|left, right| correlation(left, right, min_periods)))
    }

    /// Refuses columns that are no keys and hold no numbers.
    ///
    /// # Errors
    /// `ValueError` for such a column.
    #[doc(hidden)]
    pub fn check_numeric(&self) -> Result<()> {
        let numeric = self.numeric()?;
        match self.columns_but_keys()?.into_iter().find(|label| !numeric.contains(label)) {
            None => Ok(()),
            Some(label) => Err(Error::Value(format!("the values of {label:?} are no numbers"))),
        }
    }

    /// The columns with numbers that are no keys.
    pub(super) fn numeric(&self) -> Result<Vec<String>> {
        let frame = self.frame.frame()?;
        let mut labels = Vec::new();
        for label in self.columns_but_keys()? {
            let dtype = frame.dtype(&label)?;
            if dtype.is_numeric() || dtype == DataType::Boolean {
                labels.push(label);
            }
        }
        Ok(labels)
    }

    /// The labels of the keys.
    ///
    /// # Errors
    /// The error that the groups carry.
    #[doc(hidden)]
    pub fn key_labels(&self) -> Result<Vec<String>> {
        Ok(self.parts()?.1.iter().map(|key| key.label.clone()).collect())
    }

    /// The columns that quantiles are made of: those with numbers, or all, none of which may hold truth
    /// values.
    ///
    /// # Errors
    /// `TypeError` for truth values.
    #[doc(hidden)]
    pub fn quantile_columns(&self, numbers_only: bool) -> Result<Vec<String>> {
        let labels = if numbers_only { self.numeric()? } else { self.columns_but_keys()? };
        let frame = self.frame.frame()?;
        for label in &labels {
            if !numbers_only && frame.dtype(label)? == DataType::Boolean {
                return Err(Error::Type("quantile is not made for truth values".to_owned()));
            }
        }
        Ok(labels)
    }

    /// Reductions of columns with their options: label, column, reduction.
    #[doc(hidden)]
    #[track_caller]
    pub fn reduce_columns<'a>(
        &self,
        reductions: impl IntoIterator<Item = (&'a str, &'a str, Reduce)>,
    ) -> DataFrame {
        DataFrame::new(self.parts().and_then(|(frame, keys)| {
            let frame = frame.with_order()?;
            let order = frame.sort_exprs();
            let expr = |(label, column, reduce): (&str, &str, Reduce)| {
                Ok((label.to_owned(), reduce.expr(named(column), &frame.dtype(column)?, &order)?))
            };
            let exprs = reductions.into_iter().map(expr).collect::<Result<_>>()?;
            self.aggregate_exprs(&frame, keys, exprs)
        }))
    }

    /// Several quantiles of columns in each group: for each group a row for each part, and the parts as the
    /// last level of the index.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, Interpolation};
    /// let frame = DataFrame::from_columns([("k", vec!["a", "a"].into()), ("n", vec![1, 3].into())]);
    /// let found = frame.groupby(["k"]).quantiles(["n"], &[0.0, 0.5], Interpolation::Linear);
    /// assert_eq!(found.col("n").values::<f64>()?, [Some(1.0), Some(2.0)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn quantiles<'a>(
        &self,
        labels: impl IntoIterator<Item = &'a str>,
        parts: &[f64],
        interpolation: Interpolation,
    ) -> DataFrame {
        let labels: Vec<&str> = labels.into_iter().collect();
        DataFrame::new(self.parts().and_then(|(frame, keys)| {
            let frame = frame.with_order()?;
            let order = frame.sort_exprs();
            let mut cells = Vec::new();
            for label in &labels {
                frame.check(label)?;
                for part in parts {
                    let reduce = Reduce::by(Aggregate::Quantile(*part)).interpolation(interpolation);
                    cells.push((cell(cells.len()), reduce.expr(named(label), &frame.dtype(label)?, &order)?));
                }
            }
            let indexed = GroupBy { as_index: true, ..self.clone() };
            let rows = indexed.aggregate_exprs(&frame, keys, cells)?;
            let of_column = |(at, label): (usize, &&str)| {
                let first = at * parts.len();
                ((*label).to_owned(), (first..first + parts.len()).map(|at| named(&cell(at))).collect())
            };
            let columns = labels.iter().enumerate().map(of_column).collect();
            let made = unfolded(&rows, parts.iter().map(|part| lit(*part)).collect(), columns)?;
            if self.as_index { Ok(made) } else { made.index_as_columns() }
        }))
    }

    fn pairs(&self, measure: Measure<'_>) -> Result<Frame> {
        let (frame, keys) = self.parts()?;
        let labels = self.numeric()?;
        let (mut cells, mut places) = (Vec::new(), Vec::new());
        for (row, left) in labels.iter().enumerate() {
            for (column, right) in labels.iter().enumerate().skip(row) {
                cells.push((cell(cells.len()), measure(&named(left), &named(right))?));
                places.push((row, column));
            }
        }
        let frame = if self.sort { (**frame).clone() } else { frame.with_order()? };
        let indexed = GroupBy { as_index: true, ..self.clone() };
        let row = indexed.aggregate_exprs(&frame, keys, cells)?;
        let place = |row: usize, column: usize| {
            let sought = (row.min(column), row.max(column));
            named(&cell(places.iter().position(|place| *place == sought).unwrap_or(0)))
        };
        let columns = labels.iter().enumerate().map(|(column, label)| {
            (label.clone(), (0..labels.len()).map(|row| place(row, column)).collect())
        });
        let labels = labels.iter().map(|label| lit(label.clone())).collect();
        let made = unfolded(&row, labels, columns.collect())?;
        if self.as_index { Ok(made) } else { made.index_as_columns() }
    }

    /// A measure of each column with numbers and a series.
    fn beside(&self, other: &Series, measure: Measure<'_>) -> Result<Frame> {
        let (frame, keys) = self.parts()?;
        let labels = self.numeric()?;
        let kept = self.with_key_columns(frame, keys)?;
        let (aligned, other) = kept.with_operand(&Operand::Series(other.clone()))?;
        let dtype = other.get_type(aligned.plan.schema())?;
        if !dtype.is_numeric() && dtype != DataType::Boolean {
            return Err(Error::Type(format!("values of {dtype} do not vary with numbers")));
        }
        let aligned = if self.sort { aligned } else { aligned.with_order()? };
        let cells = labels.iter().map(|label| Ok((label.clone(), measure(&named(label), &other)?)));
        self.aggregate_exprs(&aligned, keys, cells.collect::<Result<_>>()?)
    }

    /// The frame with all keys among its columns, so that steps over columns keep them.
    fn with_key_columns(&self, frame: &Frame, keys: &[Key]) -> Result<Frame> {
        let hidden = keys.iter().map(|key| &key.column).filter(|column| !frame.columns.contains(column));
        let all: Vec<String> = frame.columns.iter().chain(hidden).cloned().collect();
        frame.project(all.into_iter().map(|column| (column.clone(), named(&column))).collect())
    }

    /// The distinct values of a column in each group, by their first rows, as a list in a column of its
    /// label. [`DataFrame::explode`] gives a row for each.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([
    ///     ("k", vec!["a", "b", "a", "a"].into()),
    ///     ("n", vec![3, 1, 2, 3].into()),
    /// ]);
    /// let distinct = frame.groupby(["k"]).unique("n").explode("n");
    /// assert_eq!(distinct.col("n").values::<i64>()?, [3, 2, 1].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn unique(&self, label: &str) -> DataFrame {
        DataFrame::new(self.parts().and_then(|(frame, keys)| {
            frame.check(label)?;
            let (numbered, row) = frame.numbered("row", Numbering::Exact)?;
            let value = Key { label: label.to_owned(), column: label.to_owned() };
            let all: Vec<Key> = keys.iter().cloned().chain([value]).collect();
            let order = vec![named(&row).sort(true, false)];
            // A missing value is one of the values, a missing key is none.
            let first =
                GroupBy { dropna: false, ..self.clone() }.first_rows(&numbered, &all, order.clone(), 1)?;
            let list = array_agg(named(label)).order_by(order).build()?;
            let first = if self.sort { first } else { first.with_order()? };
            self.aggregate_exprs(&first, keys, vec![(label.to_owned(), list)])
        }))
    }

    /// The positions of each group's rows in the frame, from 0, as a list in a column `positions`.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("k", vec!["b", "a", "b"].into())]);
    /// let places = frame.groupby(["k"]).indices().explode("positions");
    /// assert_eq!(places.col("positions").values::<i64>()?, [1, 0, 2].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn indices(&self) -> DataFrame {
        DataFrame::new(self.parts().and_then(|(frame, keys)| {
            let (numbered, row) = frame.numbered("row", Numbering::Exact)?;
            let order = vec![named(&row).sort(true, false)];
            let list = array_agg(named(&row)).order_by(order).build()?;
            let numbered = if self.sort { numbered } else { numbered.with_order()? };
            self.aggregate_exprs(&numbered, keys, vec![("positions".to_owned(), list)])
        }))
    }

    /// Each group's keys with its rows, in the order of the groups: pandas' iteration. It computes the keys
    /// at once; the rows of a group are those that a filter finds when they are asked for.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, lit};
    /// let frame = DataFrame::from_columns([("k", vec!["b", "a"].into()), ("n", vec![1, 2].into())]);
    /// let groups = frame.groupby(["k"]).each_group()?;
    /// assert_eq!(groups[0].0, [lit("a")]);
    /// assert_eq!(groups[0].1.col("n").values::<i64>()?, [Some(2)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that the groups carry, or one of the run.
    #[track_caller]
    pub fn each_group(&self) -> Result<Vec<(Vec<Value>, DataFrame)>> {
        let groups = self.groups().collect()?;
        let (frame, keys) = self.parts()?;
        let indexed = frame.with_index()?;
        let mut found = Vec::new();
        for row in groups.rows() {
            let labels = row.values()?;
            let mut rows = indexed.clone();
            for (key, label) in keys.iter().zip(&labels) {
                let is = if label.is_missing() {
                    named(&key.column).is_null()
                } else {
                    named(&key.column).eq(lit(label.0.clone()))
                };
                rows.plan = rows.builder().filter(is)?.build()?;
            }
            found.push((labels, DataFrame::new(self.shown(rows))));
        }
        Ok(found)
    }
}

/// Each row of groups as several ones, with labels as the last level of their index.
fn unfolded(groups: &Frame, labels: Vec<Expr>, columns: Vec<(String, Vec<Expr>)>) -> Result<Frame> {
    let mut exprs: Vec<Expr> = groups.key_columns().iter().map(|column| named(column)).collect();
    exprs.push(make_array((0..labels.len()).map(|at| lit(at as i64)).collect()).alias(ORDER));
    exprs.push(make_array(labels).alias(LEVEL));
    let names: Vec<String> = columns.iter().map(|(label, _)| label.clone()).collect();
    exprs.extend(columns.into_iter().map(|(label, values)| make_array(values).alias(label)));
    let lists = [ORDER, LEVEL].into_iter().chain(names.iter().map(String::as_str));
    let lists = lists.map(named_column).collect();
    let plan = LogicalPlanBuilder::from(groups.plan.clone()).project(exprs)?;
    let plan = plan.unnest_columns_with_options(lists, Default::default())?.build()?;
    let level = Level { column: LEVEL.to_owned(), name: None };
    let index = groups.index.iter().cloned().chain([level]).collect();
    let order = groups.order.iter().cloned().chain([OrderKey::growing(ORDER)]).collect();
    Ok(Frame { plan, columns: names, index, order })
}
