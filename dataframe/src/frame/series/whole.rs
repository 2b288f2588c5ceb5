//! Series as a whole: single values by label, sizes, files, runs, functions over chunks.

use super::{Operand, Series};
use crate::error::Result;
use crate::execute::Executor;
use crate::frame::{Batches, DataFrame, Squeezed};
use crate::registered::{Function, OverChunk, OverPair, OverValue};
use crate::value::Value;
use crate::write::WriteOptions;
use arrow::array::Array;
use datafusion::common::ScalarValue;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

impl Series {
    /// The value of the row with a label, if there is one.
    ///
    /// ```
    /// use tharsis_dataframe::Series;
    /// let n = Series::from_values("n", vec![3, 4]);
    /// assert_eq!(n.get(1)?.and_then(|value| value.as_i64()), Some(4));
    /// assert!(n.get(2)?.is_none());
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that the series carries, one of its run, or `ValueError` if several rows have the label.
    pub fn get(&self, label: impl Into<Value>) -> Result<Option<Value>> {
        match self.at(label) {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.class() == "KeyError" && self.check().is_ok() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The value of the row with a label, and the series without that row.
    ///
    /// # Errors
    /// As [`Series::at`].
    #[track_caller]
    pub fn pop(&self, label: impl Into<Value>) -> Result<(Value, Series)> {
        let label = label.into();
        let value = self.at(label.clone())?;
        Ok((value, self.drop_rows([label])))
    }

    /// Nothing, or the error that the series carries.
    ///
    /// # Errors
    /// The error that the series carries.
    pub fn check(&self) -> Result<()> {
        self.parts().map(|_| ())
    }

    /// The number of axes: one.
    #[must_use]
    pub fn ndim(&self) -> usize {
        1
    }

    /// The number of values, as a tuple. It runs the plan.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    pub fn shape(&self) -> Result<(usize,)> {
        Ok((self.to_frame().len()?,))
    }

    /// The bytes of the values, without room that memory has beyond them. It runs the plan.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    pub fn nbytes(&self) -> Result<usize> {
        let table = self.rename("0").collect()?;
        Ok(table.array("0")?.to_data().get_slice_memory_size()?)
    }

    /// Name, type, number of values that are there, and memory, as a text. It runs the plan.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    pub fn info(&self) -> Result<String> {
        self.to_frame().info()
    }

    /// The only value as itself, else the series. It looks for a second value at once, which runs the plan.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    #[track_caller]
    pub fn squeeze(&self) -> Result<Squeezed> {
        let first = self.rename("0").head(2).collect()?;
        match first.len() {
            1 => Ok(Squeezed::Value(first.value(0, "0")?)),
            _ => Ok(Squeezed::Series(self.clone())),
        }
    }

    /// Each label with its value, as a dictionary of Python: of rows with the same label, the first one's
    /// place and the last one's value. It runs the plan; the index must have one level.
    ///
    /// # Errors
    /// As [`Series::items`].
    pub fn to_dict(&self) -> Result<Vec<(Value, Value)>> {
        let mut places: HashMap<ScalarValue, usize> = HashMap::new();
        let mut entries: Vec<(Value, Value)> = Vec::new();
        for (label, value) in self.items()? {
            match places.entry(label.0.clone()) {
                Entry::Occupied(place) => entries[*place.get()].1 = value,
                Entry::Vacant(place) => {
                    place.insert(entries.len());
                    entries.push((label, value));
                }
            }
        }
        Ok(entries)
    }

    /// The same series, computed: its values stay where they were made, and later steps read them.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    #[track_caller]
    pub fn execute(&self) -> Result<Series> {
        let label = self.label();
        Ok(self.to_frame().execute()?.col(&label).named(self.name.clone()))
    }

    /// As [`Series::execute`], computed by an executor.
    ///
    /// # Errors
    /// As [`Series::execute`].
    #[track_caller]
    pub fn execute_on(&self, executor: &dyn Executor) -> Result<Series> {
        let label = self.label();
        Ok(self.to_frame().execute_on(executor)?.col(&label).named(self.name.clone()))
    }

    /// The values in batches, with their labels, while they are computed, as [`DataFrame::iter_batches`].
    ///
    /// # Errors
    /// As [`DataFrame::iter_batches`].
    pub fn iter_batches(&self) -> Result<Batches> {
        self.to_frame().iter_batches()
    }

    /// Writes all values to a CSV file, as [`DataFrame::to_csv`] for one column.
    ///
    /// # Errors
    /// As [`DataFrame::to_csv`].
    pub fn to_csv(&self, path: &str) -> Result<()> {
        self.to_frame().to_csv(path)
    }

    /// As [`Series::to_csv`], with options.
    ///
    /// # Errors
    /// As [`DataFrame::to_csv`].
    pub fn to_csv_with(&self, path: &str, options: WriteOptions) -> Result<()> {
        self.to_frame().to_csv_with(path, options)
    }

    /// Writes all values to a file with one JSON object a line, as [`DataFrame::to_json`].
    ///
    /// # Errors
    /// As [`DataFrame::to_json`].
    pub fn to_json(&self, path: &str) -> Result<()> {
        self.to_frame().to_json(path)
    }

    /// Writes all values to a table of a SQLite database, as [`DataFrame::to_sql`].
    ///
    /// # Errors
    /// As [`DataFrame::to_sql`].
    #[cfg(feature = "sqlite")]
    pub fn to_sql(&self, table: &str, database: &str, if_exists: crate::sqlite::IfExists) -> Result<()> {
        self.to_frame().to_sql(table, database, if_exists)
    }

    /// The value that a function of the program gives for each value, as [`Series::map`].
    ///
    /// # Errors
    /// When it runs: `Function` if it fails or panics.
    #[track_caller]
    pub fn apply(&self, function: Function<OverValue>) -> Series {
        self.map_function(&function)
    }

    /// The rows that a function of the program gives for each chunk of values, as [`DataFrame::map_chunk`].
    ///
    /// # Errors
    /// As [`DataFrame::map_chunk`].
    #[track_caller]
    pub fn map_chunk(&self, function: Function<OverChunk>) -> DataFrame {
        self.to_frame().map_chunk(function)
    }

    /// The rows that a function of the program gives for each pair of a chunk of values and one of a frame,
    /// as [`DataFrame::cartesian_chunk`].
    ///
    /// # Errors
    /// As [`DataFrame::cartesian_chunk`].
    #[track_caller]
    pub fn cartesian_chunk(&self, other: &DataFrame, function: Function<OverPair>) -> DataFrame {
        self.to_frame().cartesian_chunk(other, function)
    }

    /// As [`Series::divmod`], with the other side divided by these values.
    #[track_caller]
    pub fn rdivmod(&self, other: impl Into<Operand>) -> (Series, Series) {
        let left = match other.into() {
            Operand::Series(left) => left,
            Operand::Value(left) => self.filled_with(left),
        };
        left.divmod(self)
    }
}
