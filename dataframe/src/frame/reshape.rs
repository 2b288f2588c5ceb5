//! Columns as rows, lists as rows, a part of the rows.
//!
//! A frame cannot be transposed: its columns have types of their own, and its rows are in several places.

use super::clean::named_column;
use super::{DataFrame, Frame, Level, OrderKey, named};
use crate::error::{Error, Result};
use crate::functions::arithmetic::present;
use crate::functions::rows::{RANDOM, call};
use crate::promotion::common_type;
use crate::stage::row_number::Numbering;
use arrow::datatypes::DataType;
use datafusion::common::{ScalarValue, UnnestOptions};
use datafusion::functions_nested::expr_fn::{array_length, make_array};
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, lit};

/// Options of [`DataFrame::melt_with`]: labels of the new columns, and what becomes of the index.
#[must_use]
#[derive(Clone, Debug)]
pub struct Melt {
    var_name: String,
    value_name: String,
    ignore_index: bool,
}

impl Default for Melt {
    fn default() -> Melt {
        Melt { var_name: "variable".to_owned(), value_name: "value".to_owned(), ignore_index: true }
    }
}

impl Melt {
    /// The label of the column of labels; `variable` by default.
    pub fn var_name(self, label: &str) -> Melt {
        Melt { var_name: label.to_owned(), ..self }
    }

    /// The label of the column of values; `value` by default.
    pub fn value_name(self, label: &str) -> Melt {
        Melt { value_name: label.to_owned(), ..self }
    }

    /// Whether rows get new numbers, as by default, or keep their labels.
    pub fn ignore_index(self, ignore_index: bool) -> Melt {
        Melt { ignore_index, ..self }
    }
}

/// Columns of a frame whose values became rows.
struct Unpivoted {
    frame: Frame,
    /// The hidden column with the number of the value's column.
    number: String,
}

impl Frame {
    /// A row for each row and each of these columns: the columns `kept`, the label as `variable`, the value
    /// as `value`. The order is that of the rows, not of the columns.
    fn unpivoted(&self, kept: &[&str], columns: &[&str], variable: &str, value: &str) -> Result<Unpivoted> {
        let types = columns.iter().map(|column| self.dtype(column)).collect::<Result<Vec<_>>>()?;
        let to = common_type(&types)?;
        let (rows, _) = self.with_row()?;
        let number = rows.fresh("number");
        let numbers = (0..columns.len()).map(|at| lit(at as i64)).collect();
        let labels = columns.iter().map(|label| lit(*label)).collect();
        let values = columns.iter().map(|column| cast(named(column), to.clone())).collect();
        let mut exprs: Vec<(String, Expr)> =
            kept.iter().map(|label| ((*label).to_owned(), named(label))).collect();
        exprs.push((variable.to_owned(), make_array(labels)));
        exprs.push((value.to_owned(), make_array(values)));
        exprs.push((number.clone(), make_array(numbers)));
        let mut frame = rows.project(exprs)?;
        frame.columns.pop();
        let lists = [variable, value, &number].map(named_column).to_vec();
        frame.plan = frame.builder().unnest_columns_with_options(lists, UnnestOptions::new())?.build()?;
        Ok(Unpivoted { frame, number })
    }

    /// The rows of no column: none, with the columns that there would be.
    fn without_values(&self, kept: &[&str], variable: &str, value: &str) -> Result<Frame> {
        let mut columns: Vec<(String, Expr)> =
            kept.iter().map(|label| ((*label).to_owned(), named(label))).collect();
        columns.push((variable.to_owned(), lit("")));
        columns.push((value.to_owned(), lit(ScalarValue::Float64(None))));
        let frame = self.project(columns)?;
        let plan = frame.builder().filter(lit(false))?.build()?;
        Ok(Frame { plan, ..frame })
    }

    /// The frame with a hidden column of an expression.
    pub(super) fn with_hidden(&self, what: &str, expr: Expr) -> Result<(Frame, String)> {
        let column = self.fresh(what);
        let fields = self.plan.schema().fields().iter();
        let mut exprs: Vec<Expr> = fields.map(|field| named(field.name())).collect();
        exprs.push(expr.alias(&column));
        let plan = self.builder().project(exprs)?.build()?;
        Ok((Frame { plan, ..self.clone() }, column))
    }

    /// A part of the rows, by numbers that look random.
    fn sampled(&self, rows: usize, seed: u64) -> Result<Frame> {
        let (frame, row) = self.with_index()?.numbered("row", Numbering::Exact)?;
        let random = call(RANDOM, vec![named(&row), lit(seed as i64)])?;
        let (frame, random) = frame.with_hidden("random", random)?;
        let order = vec![OrderKey::growing(&random), OrderKey::growing(&row)];
        Frame { order, ..frame }.limited(0, rows)
    }

    /// A row for each element of the lists in a column.
    fn exploded(&self, label: &str) -> Result<Frame> {
        self.check(label)?;
        let dtype = self.dtype(label)?;
        if !matches!(dtype, DataType::List(_) | DataType::LargeList(_)) {
            return Ok(self.clone());
        }
        let (frame, _) = self.with_index()?.with_row()?;
        // An empty list gives a row without a value.
        let empty = array_length(named(label)).eq(lit(ScalarValue::UInt64(Some(0))));
        let missing = cast(lit(ScalarValue::Null), dtype);
        let columns = frame.columns.iter().map(|column| {
            if column == label {
                Ok((column.clone(), when(empty.clone(), missing.clone()).otherwise(named(label))?))
            } else {
                Ok((column.clone(), named(column)))
            }
        });
        let mut frame = frame.project(columns.collect::<Result<_>>()?)?;
        let options = UnnestOptions::new().with_preserve_nulls(true);
        let list = vec![named_column(label)];
        frame.plan = frame.builder().unnest_columns_with_options(list, options)?.build()?;
        if frame.dtype(label)?.is_floating() {
            // Those within lists are not looked at where rows are read.
            let value = |column: &str| if column == label { present(named(column)) } else { named(column) };
            let columns = frame.columns.iter().map(|column| (column.clone(), value(column)));
            frame = frame.project(columns.collect())?;
        }
        // The elements of a list come one after the other.
        let (mut frame, element) = frame.numbered("element", Numbering::Key)?;
        frame.order.push(OrderKey::growing(&element));
        Ok(frame)
    }
}

impl DataFrame {
    /// Columns as rows: for each of `values`, all rows with the columns `ids`, the label in a column
    /// `variable` and the value in a column `value`. Without `values`, all columns but `ids` are meant.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([
    ///     ("city", vec!["Oslo", "Rome"].into()),
    ///     ("may", vec![11, 19].into()),
    ///     ("june", vec![15, 24].into()),
    /// ]);
    /// let long = frame.melt(["city"], []);
    /// assert_eq!(long.columns()?, ["city", "variable", "value"]);
    /// assert_eq!(long.col("value").values::<i64>()?, [11, 19, 15, 24].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn melt<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a str>,
        values: impl IntoIterator<Item = &'a str>,
    ) -> DataFrame {
        self.melt_with(ids, values, &Melt::default())
    }

    /// As [`DataFrame::melt`], with options. A label of values that a column has is a `ValueError`.
    #[track_caller]
    pub fn melt_with<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a str>,
        values: impl IntoIterator<Item = &'a str>,
        options: &Melt,
    ) -> DataFrame {
        let ids: Vec<&str> = ids.into_iter().collect();
        let values: Vec<&str> = values.into_iter().collect();
        self.then(|frame| {
            ids.iter().chain(&values).try_for_each(|label| frame.check(label))?;
            let Melt { var_name, value_name, ignore_index } = options;
            if frame.columns.contains(value_name) {
                let text =
                    format!("value_name ({value_name}) cannot match an element in the DataFrame columns");
                return Err(Error::Value(text));
            }
            let others = frame.columns.iter().map(String::as_str).filter(|label| !ids.contains(label));
            let values: Vec<&str> = if values.is_empty() { others.collect() } else { values.clone() };
            let frame = if *ignore_index { frame.clone() } else { frame.with_index()? };
            if values.is_empty() {
                let index = if *ignore_index { Vec::new() } else { frame.index.clone() };
                return Frame { index, ..frame }.without_values(&ids, var_name, value_name);
            }
            let Unpivoted { frame, number } = frame.unpivoted(&ids, &values, var_name, value_name)?;
            let order = [vec![OrderKey::growing(&number)], frame.order.clone()].concat();
            let index = if *ignore_index { Vec::new() } else { frame.index.clone() };
            Ok(Frame { order, index, ..frame })
        })
    }

    /// Columns as rows, with the labels as the last level of the index, and the values in a column `0`.
    #[track_caller]
    pub fn stack(&self) -> DataFrame {
        self.then(|frame| {
            let frame = frame.with_index()?;
            let values: Vec<&str> = frame.columns.iter().map(String::as_str).collect();
            let label = frame.fresh("label");
            let Unpivoted { mut frame, number } = frame.unpivoted(&[], &values, &label, "0")?;
            frame.columns.retain(|column| *column != label);
            frame.index.push(Level { column: label, name: None });
            frame.order.push(OrderKey::growing(&number));
            Ok(frame)
        })
    }

    /// A row for each element of the lists in a column, with the label of the list's row. An empty or missing
    /// list gives one row without a value.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("t", vec!["a b", "c"].into())]);
    /// let words = frame.assign("t", frame.col("t").str().split(None)).explode("t");
    /// assert_eq!(words.reset_index(false).col("index").values::<i64>()?, [0, 0, 1].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn explode(&self, label: &str) -> DataFrame {
        self.then(|frame| frame.exploded(label))
    }

    /// This many rows in an order that looks random: the same rows for the same seed, on every executor.
    #[track_caller]
    pub fn sample(&self, rows: usize, seed: u64) -> DataFrame {
        self.then(|frame| frame.sampled(rows, seed))
    }

    /// This part of the rows, as [`DataFrame::sample`]. It counts the rows at once, which runs the plan.
    #[track_caller]
    pub fn sample_part(&self, part: f64, seed: u64) -> DataFrame {
        self.then(|frame| {
            if !(0.0..=1.0).contains(&part) {
                return Err(Error::Value(format!("a part lies between 0 and 1, not at {part}")));
            }
            let rows = self.len()? as f64 * part;
            frame.sampled(rows.round_ties_even() as usize, seed)
        })
    }
}
