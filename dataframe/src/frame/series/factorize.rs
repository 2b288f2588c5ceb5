//! Values as numbers: the place of each value among the distinct ones.

use super::Series;
use crate::error::Result;
use crate::frame::{Index, Sort};
use crate::value::Value;
use arrow::datatypes::DataType;

/// Options of [`Series::factorize_with`]: the order of the distinct values, and whether a missing one is
/// among them.
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Factorize {
    sort: bool,
    missing: bool,
}

impl Factorize {
    /// Distinct values by their first rows; -1 for a missing one.
    pub fn new() -> Factorize {
        Factorize::default()
    }

    /// Distinct values from the smallest to the largest, if true; a missing one is the last.
    pub fn sort(self, sort: bool) -> Factorize {
        Factorize { sort, ..self }
    }

    /// A number for missing values too, if true; pandas' `use_na_sentinel=False`.
    pub fn missing(self, missing: bool) -> Factorize {
        Factorize { missing, ..self }
    }
}

impl Series {
    /// The number of each value among the distinct ones, by their first rows, -1 for a missing one; and
    /// these. It computes the distinct values at once, which runs the plan.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    #[track_caller]
    pub fn factorize(&self) -> Result<(Series, Vec<Value>)> {
        self.factorize_with(Factorize::new())
    }

    /// As [`Series::factorize`], with options.
    ///
    /// ```
    /// use tharsis_dataframe::{Factorize, Series};
    /// let names = Series::from_values("k", vec!["b", "a", "b"]);
    /// let (codes, names) = names.factorize_with(Factorize::new().sort(true))?;
    /// assert_eq!(codes.values::<i64>()?, [1, 0, 1].map(Some));
    /// assert_eq!(names[0].as_str(), Some("a"));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Series::factorize`].
    #[track_caller]
    pub fn factorize_with(&self, options: Factorize) -> Result<(Series, Vec<Value>)> {
        Ok((self.codes(options), Index::of_series(self).distinct(options).values()?))
    }

    /// The number of each value.
    #[track_caller]
    fn codes(&self, options: Factorize) -> Series {
        let values = self.drop_index().rename("0").to_frame();
        let groups = values.groupby(["0"]).sort(options.sort).dropna(!options.missing);
        groups.ngroup().fillna(-1).astype(DataType::Int64).named(None)
    }
}

impl Index {
    /// The number of each label among the distinct ones, by their first rows, -1 for a missing one; and
    /// these, without a name.
    ///
    /// # Errors
    /// The error that the index carries.
    #[track_caller]
    pub fn factorize(&self) -> Result<(Series, Index)> {
        self.factorize_with(Factorize::new())
    }

    /// As [`Index::factorize`], with options.
    ///
    /// # Errors
    /// As [`Index::factorize`].
    #[track_caller]
    pub fn factorize_with(&self, options: Factorize) -> Result<(Series, Index)> {
        let labels = self.to_series();
        labels.check()?;
        Ok((labels.codes(options), self.distinct(options).set_names([None])))
    }

    /// The distinct labels in the order of their numbers.
    #[track_caller]
    fn distinct(&self, options: Factorize) -> Index {
        let distinct = if options.missing { self.unique() } else { self.dropna().unique() };
        if options.sort { distinct.sort_values(Sort::ascending()) } else { distinct }
    }
}
