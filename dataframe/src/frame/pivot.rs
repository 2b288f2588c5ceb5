//! Values of a column as columns. Labels must be known before a plan can be made, so each of these methods
//! computes the distinct values at once, which runs the plan of its frame; the rest is lazy.

use super::{Aggregate, DataFrame, Frame, GroupBy, HIDDEN, JoinKind, Merge, OrderKey, named};
use crate::error::{Error, Result};
use crate::frame::Sort;
use crate::frame::series::Series;
use crate::functions::spread::{at_place, spread};
use crate::length_text::{LengthForm, length_texts};
use crate::value::Value;
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions::core::expr_fn::named_struct;
use datafusion::functions_aggregate::expr_fn::array_agg;
use datafusion::logical_expr::expr_fn::when;
use datafusion::logical_expr::{Expr, lit};
use std::sync::Arc;

/// The hidden label of a cell's value.
const CELL: &str = "__tharsis_cell";

/// The hidden label of the place of a cell's column.
const PLACE: &str = "__tharsis_place";

/// The hidden label of the number of rows of a cell.
const ROWS: &str = "__tharsis_rows";

impl DataFrame {
    /// The values of a column that are there, each once, from small to large.
    pub(super) fn distinct(&self, label: &str) -> Result<Vec<Value>> {
        let values = self.select([label]).reset_index(true).dropna().drop_duplicates();
        let table = values.sort_values([label], Sort::ascending()).reset_index(true).collect()?;
        (0..table.len()).map(|row| table.value(row, label)).collect()
    }

    /// An aggregate of a column for each group of rows with equal values in the columns `index` (the rows of
    /// the result) and each value of another column (its columns). Missing where there are no rows. Rows and
    /// columns without any aggregate are left out.
    ///
    /// The distinct values of `columns` are computed at once, which runs the plan; they become texts.
    ///
    /// ```
    /// use tharsis_dataframe::{Aggregate, DataFrame};
    /// let sales = DataFrame::from_columns([
    ///     ("city", vec!["Oslo", "Rome", "Oslo"].into()),
    ///     ("year", vec![2023, 2024, 2024].into()),
    ///     ("sold", vec![3, 5, 4].into()),
    /// ]);
    /// let table = sales.pivot_table(["city"], "year", "sold", Aggregate::Sum);
    /// assert_eq!(table.columns()?, ["2023", "2024"]);
    /// assert_eq!(table.col("2023").values::<i64>()?, [Some(3), None]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn pivot_table<'a>(
        &self,
        index: impl IntoIterator<Item = &'a str>,
        columns: &str,
        values: &str,
        aggregate: Aggregate,
    ) -> DataFrame {
        let index: Vec<&str> = index.into_iter().collect();
        let groups = self.groupby(index.iter().copied().chain([columns]));
        let cells = cells(&groups, [(CELL, values, aggregate)]);
        DataFrame::new(cells.and_then(|cells| cells.dropna_in([CELL]).spread(&index, columns)))
    }

    /// The values of a column by those of the columns `index` and of another column, as
    /// [`DataFrame::pivot_table`] without an aggregate: `ValueError` if several rows have the same place.
    /// Missing values are places too, before all others.
    #[track_caller]
    pub fn pivot<'a>(
        &self,
        index: impl IntoIterator<Item = &'a str>,
        columns: &str,
        values: &str,
    ) -> DataFrame {
        let index: Vec<&str> = index.into_iter().collect();
        let aggregates = [(CELL, values, Aggregate::First), (ROWS, values, Aggregate::Size)];
        let groups = self.groupby(index.iter().copied().chain([columns])).dropna(false);
        let cells = cells(&groups, aggregates).and_then(|cells| match cells.col(ROWS).max()?.as_i64() {
            Some(rows) if rows > 1 => {
                Err(Error::Value("Index contains duplicate entries, cannot reshape".to_owned()))
            }
            _ => cells.spread(&index, columns),
        });
        DataFrame::new(cells)
    }

    /// The last level of the index as columns, for a frame of one column. Levels without a name get one.
    #[track_caller]
    pub fn unstack(&self) -> DataFrame {
        let made = self.frame().and_then(|frame| {
            if frame.index.len() < 2 || frame.columns.len() != 1 {
                return Err(Error::Value("one column and two levels of an index are needed".to_owned()));
            }
            Ok((frame.index.len(), frame.columns[0].clone()))
        });
        let (levels, column) = match made {
            Ok(made) => made,
            Err(error) => return DataFrame::new(Err(error)),
        };
        let flat = self.reset_index(false);
        let labels = flat.columns().unwrap_or_default();
        let index = labels.iter().take(levels - 1).map(String::as_str);
        flat.pivot(index, labels.get(levels - 1).map_or("", String::as_str), &column)
    }

    /// The cells in a row for each group, and a column for each value; missing ones first.
    fn spread(&self, index: &[&str], columns: &str) -> Result<Frame> {
        let mut labels = self.distinct(columns)?;
        let is_missing = self.col(columns).isna().any()?.as_bool() == Some(true);
        if is_missing {
            labels.insert(0, Value::missing());
        }
        let frame = self.frame()?;
        let missing = if frame.dtype(columns)?.is_temporal() { "NaT" } else { "nan" };
        let shown = labels
            .iter()
            .map(|label| if label.is_missing() { Ok(missing.to_owned()) } else { label_text(label) });
        let shown = shown.collect::<Result<Vec<_>>>()?;
        let groups = self.groupby(index.iter().copied()).dropna(false);
        let table = if labels.len() <= CONDITIONS_MAX {
            self.by_conditions(index, columns, &labels, &shown)?
        } else {
            self.by_places(&groups, columns, labels, &shown)?
        };
        let order = table.order.iter().map(|key| OrderKey { nulls_first: true, ..key.clone() }).collect();
        Ok(Frame { order, ..table })
    }

    /// Few columns: each has the largest of the cells for which a condition holds, of which there is one.
    fn by_conditions(
        &self,
        index: &[&str],
        columns: &str,
        labels: &[Value],
        shown: &[String],
    ) -> Result<Frame> {
        let frame = self.frame()?;
        let mut exprs: Vec<(String, Expr)> =
            index.iter().map(|label| ((*label).to_owned(), named(label))).collect();
        let hidden: Vec<String> = (0..labels.len()).map(|at| format!("{CELL}_{at}")).collect();
        for (label, name) in labels.iter().zip(&hidden) {
            let here = if label.is_missing() {
                named(columns).is_null()
            } else {
                named(columns).eq(lit(label.0.clone()))
            };
            exprs.push((name.clone(), when(here, named(CELL)).end()?));
        }
        let spread = DataFrame::new(frame.project(exprs));
        let pairs = shown.iter().zip(&hidden);
        let aggregates = pairs.map(|(label, name)| (label.as_str(), name.as_str(), Aggregate::Max));
        let groups = spread.groupby(index.iter().copied()).dropna(false);
        Ok((**groups.agg_as(aggregates.collect::<Vec<_>>()).frame()?).clone())
    }

    /// Many columns: the cells of a group with their places as one list, of which each column is an element.
    fn by_places(
        &self,
        groups: &GroupBy,
        columns: &str,
        labels: Vec<Value>,
        shown: &[String],
    ) -> Result<Frame> {
        let dtype = self.frame()?.dtype(columns)?;
        let count = labels.len();
        let own = labels.iter().find(|label| !label.is_missing()).map_or(dtype.clone(), Value::dtype);
        let nothing = ScalarValue::try_from(&own)?;
        let values =
            labels.into_iter().map(|label| if label.is_missing() { nothing.clone() } else { label.0 });
        let keys = cast(&ScalarValue::iter_to_array(values)?, &dtype)?;
        let places: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count as i64));
        let batch = RecordBatch::try_from_iter_with_nullable([(columns, keys, true), (PLACE, places, true)])?;
        let places = DataFrame::from_batches(batch.schema(), vec![batch]);
        let placed = self.merge(&places, Merge::on([columns]).how(JoinKind::Left));
        let placed = placed.frame()?;
        let cell = named_struct(vec![lit("place"), named(PLACE), lit("cell"), named(CELL)]);
        let keys = groups.keys.as_ref().map_err(|error| (**error).clone())?;
        let lists = vec![(CELL.to_owned(), array_agg(cell))];
        let rows = groups.aggregate_exprs(placed, keys, lists)?;
        let rows = rows.project(vec![(CELL.to_owned(), spread(named(CELL), count))])?;
        let columns = shown.iter().enumerate();
        rows.project(columns.map(|(place, label)| (label.clone(), at_place(named(CELL), place))).collect())
    }
}

/// Columns of a table that is made by a condition for each of them: more would look at the rows too often.
const CONDITIONS_MAX: usize = 32;

/// The cells of a table: computed, since their labels and their values are needed.
fn cells<const N: usize>(groups: &GroupBy, aggregates: [(&str, &str, Aggregate); N]) -> Result<DataFrame> {
    groups.clone().as_index(false).agg_as(aggregates).execute()
}

/// A value as the label of a column.
pub(super) fn label_text(value: &Value) -> Result<String> {
    match (value.dtype(), value.as_bool(), value.as_f64()) {
        (DataType::Timestamp(..), ..) => {
            // A table shows no more of a time than it needs; a label has microseconds or none.
            let text = crate::repr::time_text(value)?;
            Ok(match text.split_once('.') {
                Some((_, milliseconds)) if milliseconds.len() == 3 => format!("{text}000"),
                None if !text.contains(' ') => format!("{text} 00:00:00"),
                _ => text,
            })
        }
        (DataType::Duration(_), ..) => {
            Ok(length_texts(&value.0.to_array()?, LengthForm::Own)?.into_iter().flatten().collect())
        }
        (dtype, ..) if dtype.is_temporal() => crate::repr::time_text(value),
        (_, Some(truth), _) => Ok(if truth { "True" } else { "False" }.to_owned()),
        (dtype, _, Some(float)) if dtype.is_floating() => Ok(format!("{float:?}")),
        _ => Ok(value.to_string()),
    }
}

/// The number of rows for each pair of values of two series: those of the first as index, those of the
/// second as columns. The distinct values are computed at once, which runs the plan.
///
/// ```
/// use tharsis_dataframe::{DataFrame, crosstab};
/// let frame = DataFrame::from_columns([
///     ("a", vec!["x", "y", "x"].into()),
///     ("b", vec![1, 1, 2].into()),
/// ]);
/// let counts = crosstab(&frame.col("a"), &frame.col("b"));
/// assert_eq!(counts.col("2").values::<i64>()?, [Some(1), Some(0)]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[track_caller]
pub fn crosstab(index: &Series, columns: &Series) -> DataFrame {
    let (row, mut column) = (index.label(), columns.label());
    if row == column {
        // The labels of columns are the values of the second series, and its name is shown nowhere.
        column = format!("{HIDDEN}{column}");
    }
    let frame = index.to_frame();
    // Both of one frame need no alignment.
    let frame = match (index.parts(), columns.parts()) {
        (Ok((left, of_left)), Ok((right, of_right))) if std::sync::Arc::ptr_eq(left, right) => {
            let pair = vec![(row.clone(), of_left.clone()), (column.clone(), of_right.clone())];
            DataFrame::new(left.project(pair))
        }
        _ => frame.assign(&column, columns),
    };
    frame.pivot_table([row.as_str()], &column, &column, Aggregate::Size).fillna(0)
}
