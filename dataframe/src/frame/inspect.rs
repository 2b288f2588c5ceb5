//! Size, memory and rows of frames, one by one.

use super::{DataFrame, Index, JoinKind, Merge, named};
use crate::error::{Error, Result};
use crate::frame::series::Series;
use crate::table::Table;
use crate::value::Value;
use datafusion::functions_nested::expr_fn::{array_element, make_array};
use datafusion::logical_expr::expr_fn::when;
use datafusion::logical_expr::lit;
use std::fmt::Write as _;

/// The column that tells which frame a row of an ordered merge is of.
const SIDE: &str = "__tharsis_side";

impl DataFrame {
    /// Label and values of each column, in their order.
    ///
    /// # Errors
    /// The error that the frame carries.
    pub fn items(&self) -> Result<Vec<(String, Series)>> {
        Ok(self.columns()?.into_iter().map(|label| (label.clone(), self.col(&label))).collect())
    }

    /// The number of values: rows times columns. It counts the rows.
    ///
    /// # Errors
    /// The error that the frame carries, or one of its run.
    pub fn size(&self) -> Result<usize> {
        let (rows, columns) = self.shape()?;
        Ok(rows * columns)
    }

    /// The labels of the rows, and those of the columns.
    ///
    /// # Errors
    /// The error that the frame carries.
    pub fn axes(&self) -> Result<(Index, Vec<String>)> {
        Ok((self.index(), self.columns()?))
    }

    /// A column, if the frame has one with this label.
    ///
    /// # Errors
    /// The error that the frame carries.
    pub fn get(&self, label: &str) -> Result<Option<Series>> {
        Ok(self.columns()?.iter().any(|column| column == label).then(|| self.col(label)))
    }

    /// The bytes in memory of the index, as `Index`, and of each column. It runs the plan.
    ///
    /// # Errors
    /// The error that the frame carries, or one of its run.
    pub fn memory_usage(&self) -> Result<Vec<(String, usize)>> {
        let table = self.collect()?;
        let bytes = |arrays: &[arrow::array::ArrayRef]| -> usize {
            arrays.iter().map(|array| array.get_array_memory_size()).sum()
        };
        let mut usage = vec![("Index".to_owned(), bytes(table.index_arrays()))];
        for label in table.columns() {
            usage.push((label.clone(), bytes(std::slice::from_ref(table.array(&label)?))));
        }
        Ok(usage)
    }

    /// Labels, types, numbers of values that are there, and memory, as a text. It runs the plan.
    ///
    /// # Errors
    /// The error that the frame carries, or one of its run.
    pub fn info(&self) -> Result<String> {
        let table = self.collect()?;
        let labels = table.columns();
        let mut text = format!("{} rows, {} columns\n", table.len(), labels.len());
        let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0).max(6);
        writeln!(text, "{:width$}  {:>10}  type", "column", "values").map_err(in_memory)?;
        for label in &labels {
            let array = table.array(label)?;
            let values = array.len() - array.null_count();
            writeln!(text, "{label:width$}  {values:>10}  {}", array.data_type()).map_err(in_memory)?;
        }
        let bytes: usize = table.batch().columns().iter().map(|array| array.get_array_memory_size()).sum();
        write!(text, "{bytes} bytes").map_err(in_memory)?;
        Ok(text)
    }

    /// Whether another frame has equal columns, types, labels and values, in the same order. It runs both
    /// plans.
    ///
    /// # Errors
    /// The error that either carries, or one of their runs.
    pub fn equals(&self, other: &DataFrame) -> Result<bool> {
        let (left, right) = (self.collect()?, other.collect()?);
        let same_labels = left.columns() == right.columns();
        let positions = |table: &Table| table.index_names().is_empty();
        let same_index = match (positions(&left), positions(&right)) {
            (false, false) | (true, true) => left.index_arrays() == right.index_arrays(),
            _ => self.index().equals(&other.index())?,
        };
        let values = |table: &Table| table.batch().columns()[table.index_names().len()..].to_vec();
        Ok(same_labels && same_index && values(&left) == values(&right))
    }

    /// The label of the first row with a value in some column; missing if there is none.
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or `NotImplemented` for several levels.
    pub fn first_valid_index(&self) -> Result<Value> {
        self.valid_index(false)
    }

    /// The label of the last row with a value in some column; missing if there is none.
    ///
    /// # Errors
    /// As [`DataFrame::first_valid_index`].
    pub fn last_valid_index(&self) -> Result<Value> {
        self.valid_index(true)
    }

    fn valid_index(&self, last: bool) -> Result<Value> {
        let labels = self.columns()?;
        let there = self.dropna_all_in(labels.iter().map(String::as_str));
        let row = if last { there.tail(1) } else { there.head(1) };
        Ok(row.index().values()?.pop().unwrap_or_else(Value::missing))
    }

    /// The rows with the columns of two frames that are equal in keys, sorted by the keys; pandas'
    /// `merge_ordered`.
    #[track_caller]
    pub fn merge_ordered(&self, right: &DataFrame, merge: Merge) -> DataFrame {
        self.merge(right, merge.how(JoinKind::Outer))
    }

    /// As [`DataFrame::merge_ordered`]; a row that only one frame has gets the values of the other frame's
    /// last row before it, as with pandas' `fill_method='ffill'`.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, Merge};
    /// let trades = DataFrame::from_columns([("t", vec![2, 3].into()), ("sold", vec![5, 7].into())]);
    /// let prices = DataFrame::from_columns([("t", vec![1, 3].into()), ("price", vec![10, 11].into())]);
    /// let both = trades.merge_ordered_filled(&prices, Merge::on(["t"]));
    /// assert_eq!(both.col("price").values::<i64>()?, [10, 10, 11].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn merge_ordered_filled(&self, right: &DataFrame, merge: Merge) -> DataFrame {
        let of_left = self.columns().map_or(0, |columns| columns.len());
        let keys = merge.shared_keys();
        let merged = self.merge_ordered(right, merge.indicator(SIDE));
        // A list of one value is there where its row is, also if the value is missing.
        let listed = merged.then(|frame| {
            let columns = frame.columns.iter().filter(|column| *column != SIDE).enumerate();
            let lists = columns.map(|(at, column)| {
                let list = make_array(vec![named(column)]);
                let lacks = if at < of_left { "right_only" } else { "left_only" };
                let is_there = named(SIDE).not_eq(lit(lacks)).or(lit(keys.contains(column)));
                Ok((column.clone(), when(is_there, list).end()?))
            });
            frame.project(lists.collect::<Result<_>>()?)
        });
        listed.ffill().map_columns(|list| Ok(array_element(list, lit(1_i64))))
    }
}

fn in_memory(_: std::fmt::Error) -> Error {
    Error::Internal("a text cannot grow".to_owned())
}
