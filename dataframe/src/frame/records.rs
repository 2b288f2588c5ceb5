//! Frames of rows of values, and rows of values of frames.

use super::DataFrame;
use crate::error::{Error, Result};
use crate::frame::labels::array_of;
use crate::frame::series::Series;
use crate::promotion::common_type;
use crate::value::{Native, Value};
use arrow::array::RecordBatch;
use arrow::datatypes::DataType;

/// Labels of rows with their values.
type Pairs = Vec<(Value, Value)>;

/// A frame, one column or one value: what [`DataFrame::squeeze`] gives.
#[derive(Clone, Debug)]
pub enum Squeezed {
    /// Several rows and columns, or none.
    Frame(DataFrame),
    /// One column, or one row with the labels of columns as index.
    Series(Series),
    /// One row of one column.
    Value(Value),
}

impl DataFrame {
    /// A frame of rows of values, one for each label. Whole numbers and floats in one column are floats.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, Value, lit};
    /// let rows = vec![vec![lit("Oslo"), lit(3)], vec![lit("Rome"), Value::missing()]];
    /// let sales = DataFrame::from_records(["city", "sold"], rows);
    /// assert_eq!(sales.col("sold").values::<i64>()?, [Some(3), None]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a row with another number of values, `TypeError` for values of a column that do not
    /// fit into one type.
    #[track_caller]
    pub fn from_records<'a>(
        labels: impl IntoIterator<Item = &'a str>,
        rows: impl IntoIterator<Item = Vec<Value>>,
    ) -> DataFrame {
        let labels: Vec<&str> = labels.into_iter().collect();
        let batch = record_batch(&labels, rows.into_iter().collect());
        match batch {
            Ok(batch) => DataFrame::from_batches(batch.schema(), vec![batch]),
            Err(error) => DataFrame::new(Err(error)),
        }
    }

    /// All values by rows, `None` where they are missing. It runs the plan.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("a", vec![1, 2].into()), ("b", vec![3.5, 4.5].into())]);
    /// assert_eq!(frame.values::<f64>()?, [[Some(1.0), Some(3.5)], [Some(2.0), Some(4.5)]]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or `TypeError` for a column of another type.
    pub fn values<T: Native>(&self) -> Result<Vec<Vec<Option<T>>>> {
        let table = self.collect()?;
        let mut rows: Vec<Vec<Option<T>>> = (0..table.len()).map(|_| Vec::new()).collect();
        for label in table.columns() {
            for (row, value) in rows.iter_mut().zip(table.column::<T>(&label)?) {
                row.push(value);
            }
        }
        Ok(rows)
    }

    /// Each column as pairs of labels of rows and values. It runs the plan; the index must have one level.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, lit};
    /// let frame = DataFrame::from_columns([("k", vec!["a"].into()), ("n", vec![1].into())]);
    /// let columns = frame.set_index(["k"]).to_dict()?;
    /// assert_eq!(columns, [("n".to_owned(), vec![(lit("a"), lit(1))])]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or `NotImplemented` for several levels.
    pub fn to_dict(&self) -> Result<Vec<(String, Pairs)>> {
        let table = self.collect()?;
        let mut columns: Vec<(String, Pairs)> =
            table.columns().into_iter().map(|label| (label, Vec::new())).collect();
        for row in table.rows() {
            let mut labels = row.labels()?;
            let (Some(label), true) = (labels.pop(), labels.is_empty()) else {
                return Err(Error::NotImplemented("labels of several levels as one value".to_owned()));
            };
            for ((_, pairs), value) in columns.iter_mut().zip(row.values()?) {
                pairs.push((label.clone(), value));
            }
        }
        Ok(columns)
    }

    /// The rows, each as pairs of labels of columns and values, without the index. It runs the plan.
    ///
    /// # Errors
    /// The error that the frame carries, or one of its run.
    pub fn to_records(&self) -> Result<Vec<Vec<(String, Value)>>> {
        let table = self.collect()?;
        let labels = table.columns();
        let row = |values: Vec<Value>| labels.iter().cloned().zip(values).collect();
        table.rows().map(|record| record.values().map(row)).collect()
    }

    /// The only column as a series, the only row as one whose labels are those of columns, the only value as
    /// itself; else the frame. It looks for a second row at once, which runs the plan.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, Squeezed};
    /// let frame = DataFrame::from_columns([("n", vec![1, 2].into())]);
    /// assert!(matches!(frame.squeeze()?, Squeezed::Series(_)));
    /// let Squeezed::Value(value) = frame.head(1).squeeze()? else { panic!("more than a value") };
    /// assert_eq!(value.as_i64(), Some(1));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or `TypeError` for one row whose values do not fit
    /// into one type.
    #[track_caller]
    pub fn squeeze(&self) -> Result<Squeezed> {
        let first = self.head(2).execute()?;
        let labels = self.columns()?;
        Ok(match (first.len()?, &labels[..]) {
            (1, [label]) => Squeezed::Value(first.collect()?.value(0, label)?),
            (1, [_, ..]) => {
                let row = first.transpose();
                let label = row.columns()?.pop().unwrap_or_default();
                Squeezed::Series(row.col(&label))
            }
            (_, [label]) => Squeezed::Series(self.col(label)),
            _ => Squeezed::Frame(self.clone()),
        })
    }

    /// The number of axes: two.
    #[must_use]
    pub fn ndim(&self) -> usize {
        2
    }
}

/// The columns of rows.
fn record_batch(labels: &[&str], rows: Vec<Vec<Value>>) -> Result<RecordBatch> {
    let mut columns: Vec<Vec<Value>> = labels.iter().map(|_| Vec::with_capacity(rows.len())).collect();
    for (at, row) in rows.into_iter().enumerate() {
        if row.len() != labels.len() {
            let text = format!("row {at} has {} values for {} columns", row.len(), labels.len());
            return Err(Error::Value(text));
        }
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value);
        }
    }
    let arrays = labels.iter().zip(&columns).map(|(label, values)| {
        let types: Vec<DataType> =
            values.iter().filter(|value| !value.is_missing()).map(Value::dtype).collect();
        let dtype = if types.is_empty() { DataType::Utf8 } else { common_type(&types)? };
        Ok((*label, array_of(values, &dtype)?, true))
    });
    Ok(RecordBatch::try_from_iter_with_nullable(arrays.collect::<Result<Vec<_>>>()?)?)
}
