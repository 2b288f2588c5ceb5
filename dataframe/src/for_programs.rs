//! Items for the crate of programs over frames, not for users: they may change at any time.

use crate::error::{Error, Result};
use crate::execute::Executor;
use crate::frame::series::Series;
use crate::frame::{Aggregate, Counts, DataFrame, Frame, GroupBy, Level, Reduce, ResetIndex};
#[cfg(feature = "sqlite")]
use crate::sqlite::IfExists;
use crate::stage::Stages;
use crate::value::Value;
use crate::write::WriteOptions;
use arrow::array::ArrayRef;
use datafusion::common::ScalarValue;

pub use crate::error::nearest;
pub use crate::execute::{Binding, bind};
pub use crate::promotion::common_type;
pub use crate::value::is_text;
pub use crate::write::{FileFormat, unique};

/// The failure of the file system with a file.
#[must_use]
pub fn file_error(path: &str, error: &std::io::Error) -> Error {
    Error::io(path, error)
}

/// The label of the column of counts.
#[must_use]
pub fn label_of_counts(counts: Counts) -> &'static str {
    counts.label()
}

/// Whether a reset of an index drops it.
#[must_use]
pub fn drops_index(options: &ResetIndex) -> bool {
    options.drops()
}

/// Values as scalars of DataFusion.
pub trait InnerValue {
    /// A value of a scalar.
    fn of(scalar: ScalarValue) -> Self;
    /// Its scalar.
    fn scalar(&self) -> &ScalarValue;
    /// Python's float that is not a number.
    fn not_a_number() -> Self;
    /// The value of an array at a row.
    ///
    /// # Errors
    /// The type is none that values have.
    fn from_array(array: &ArrayRef, row: usize) -> Result<Value>;
}

impl InnerValue for Value {
    fn of(scalar: ScalarValue) -> Value {
        Value(scalar)
    }

    fn scalar(&self) -> &ScalarValue {
        &self.0
    }

    fn not_a_number() -> Value {
        Value::not_a_number()
    }

    fn from_array(array: &ArrayRef, row: usize) -> Result<Value> {
        Value::from_array(array, row)
    }
}

/// Steps and parts of series.
pub trait InnerSeries {
    /// The label of its column in a frame.
    fn label(&self) -> String;
    /// The series under another name.
    fn named(&self, name: Option<String>) -> Series;
    /// A series of its rows with one value.
    fn filled_with(&self, value: Value) -> Series;
    /// Whether it is one value for all rows.
    ///
    /// # Errors
    /// The error that it carries.
    fn is_one_value(&self) -> Result<bool>;
    /// A step on the frame of the series alone, whose column it gives the label of.
    fn through(&self, step: impl FnOnce(&DataFrame, &str) -> DataFrame) -> Series;
}

impl InnerSeries for Series {
    fn label(&self) -> String {
        Series::label(self)
    }

    fn named(&self, name: Option<String>) -> Series {
        Series::named(self, name)
    }

    fn filled_with(&self, value: Value) -> Series {
        Series::filled_with(self, value)
    }

    fn is_one_value(&self) -> Result<bool> {
        Series::is_one_value(self)
    }

    fn through(&self, step: impl FnOnce(&DataFrame, &str) -> DataFrame) -> Series {
        Series::through(self, step)
    }
}

/// Steps and parts of frames.
pub trait InnerFrame {
    /// The values of reductions of columns, computed by an executor.
    ///
    /// # Errors
    /// The error that the frame carries, or one of its run.
    fn cells_on(&self, cells: &[(String, Reduce)], executor: &dyn Executor) -> Result<Vec<Value>>;
    /// The frame whose index has other names.
    fn with_index_names(&self, names: Vec<Option<String>>) -> DataFrame;
    /// The frame whose index has no names.
    fn unnamed_index(&self) -> DataFrame;
    /// The rows for which a condition holds that may be of another index.
    fn filter_by_position(&self, condition: &Series) -> DataFrame;
    /// A frame of series that are computed of this frame's rows.
    fn of_same_rows(&self, columns: Vec<(String, Series)>) -> DataFrame;
    /// The stages of its plan for an executor.
    ///
    /// # Errors
    /// The error that the frame carries, or one of planning.
    fn stages(&self, executor: &dyn Executor) -> Result<Stages>;
    /// Writes all rows with the tasks of an executor.
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or one of the file system.
    fn write_on(
        &self,
        path: &str,
        format: FileFormat,
        options: WriteOptions,
        executor: &dyn Executor,
    ) -> Result<()>;
    /// Writes all rows to a table of a database, computed by an executor.
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or one of the database.
    #[cfg(feature = "sqlite")]
    fn to_sql_on(
        &self,
        table: &str,
        database: &str,
        if_exists: IfExists,
        executor: &dyn Executor,
    ) -> Result<()>;
}

impl InnerFrame for DataFrame {
    fn cells_on(&self, cells: &[(String, Reduce)], executor: &dyn Executor) -> Result<Vec<Value>> {
        DataFrame::cells_on(self, cells, executor)
    }

    fn with_index_names(&self, names: Vec<Option<String>>) -> DataFrame {
        self.then(|frame| {
            let named = |(level, name): (&Level, Option<String>)| Level { name, ..level.clone() };
            Ok(Frame { index: frame.index.iter().zip(names).map(named).collect(), ..frame.clone() })
        })
    }

    fn unnamed_index(&self) -> DataFrame {
        DataFrame::unnamed_index(self)
    }

    fn filter_by_position(&self, condition: &Series) -> DataFrame {
        DataFrame::filter_by_position(self, condition)
    }

    fn of_same_rows(&self, columns: Vec<(String, Series)>) -> DataFrame {
        DataFrame::of_same_rows(self, columns)
    }

    fn stages(&self, executor: &dyn Executor) -> Result<Stages> {
        crate::execute::plan_stages(&self.frame()?.output()?, executor)
    }

    fn write_on(
        &self,
        path: &str,
        format: FileFormat,
        options: WriteOptions,
        executor: &dyn Executor,
    ) -> Result<()> {
        DataFrame::write_on(self, path, format, options, executor)
    }

    #[cfg(feature = "sqlite")]
    fn to_sql_on(
        &self,
        table: &str,
        database: &str,
        if_exists: IfExists,
        executor: &dyn Executor,
    ) -> Result<()> {
        DataFrame::to_sql_on(self, table, database, if_exists, executor)
    }
}

/// Steps and parts of groups.
pub trait InnerGroups {
    /// One aggregate of all columns but the keys.
    fn every_column(&self, aggregate: Aggregate) -> DataFrame;
    /// One aggregate of those columns that hold numbers or truth values.
    fn numbers(&self, aggregate: Aggregate) -> DataFrame;
    /// The columns that are no keys.
    ///
    /// # Errors
    /// The error that the frame carries.
    fn columns_but_keys(&self) -> Result<Vec<String>>;
    /// The labels of the keys.
    ///
    /// # Errors
    /// The error that the frame carries.
    fn key_labels(&self) -> Result<Vec<String>>;
    /// The number of keys.
    ///
    /// # Errors
    /// The error that the frame carries.
    fn key_count(&self) -> Result<usize>;
    /// Refuses columns whose values are no numbers.
    ///
    /// # Errors
    /// `ValueError` for such a column.
    fn check_numeric(&self) -> Result<()>;
    /// The columns that quantiles are made of.
    ///
    /// # Errors
    /// `TypeError` for truth values.
    fn quantile_columns(&self, numbers_only: bool) -> Result<Vec<String>>;
    /// Columns of a label each, of a column and its reduction.
    fn reduce_columns<'a>(
        &self,
        reductions: impl IntoIterator<Item = (&'a str, &'a str, Reduce)>,
    ) -> DataFrame;
}

impl InnerGroups for GroupBy {
    fn every_column(&self, aggregate: Aggregate) -> DataFrame {
        GroupBy::every_column(self, aggregate)
    }

    fn numbers(&self, aggregate: Aggregate) -> DataFrame {
        GroupBy::numbers(self, aggregate)
    }

    fn columns_but_keys(&self) -> Result<Vec<String>> {
        GroupBy::columns_but_keys(self)
    }

    fn key_labels(&self) -> Result<Vec<String>> {
        GroupBy::key_labels(self)
    }

    fn key_count(&self) -> Result<usize> {
        GroupBy::key_count(self)
    }

    fn check_numeric(&self) -> Result<()> {
        GroupBy::check_numeric(self)
    }

    fn quantile_columns(&self, numbers_only: bool) -> Result<Vec<String>> {
        GroupBy::quantile_columns(self, numbers_only)
    }

    fn reduce_columns<'a>(
        &self,
        reductions: impl IntoIterator<Item = (&'a str, &'a str, Reduce)>,
    ) -> DataFrame {
        GroupBy::reduce_columns(self, reductions)
    }
}
