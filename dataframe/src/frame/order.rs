//! Orders of rows.

use super::{DataFrame, Frame, OrderKey};
use crate::error::{Error, Result};

/// Options of a sort: which way, and where missing values go.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sort {
    ascending: Vec<bool>,
    missing_first: bool,
}

impl Default for Sort {
    fn default() -> Sort {
        Sort { ascending: vec![true], missing_first: false }
    }
}

impl Sort {
    /// From small to large, missing values last.
    pub fn ascending() -> Sort {
        Sort::default()
    }

    /// From large to small, missing values last.
    pub fn descending() -> Sort {
        Sort { ascending: vec![false], ..Sort::default() }
    }

    /// A direction for each key; true is from small to large.
    pub fn each(ascending: impl IntoIterator<Item = bool>) -> Sort {
        Sort { ascending: ascending.into_iter().collect(), ..Sort::default() }
    }

    /// Missing values before all others.
    pub fn missing_first(self) -> Sort {
        Sort { missing_first: true, ..self }
    }

    fn directions(&self, keys: usize) -> Result<Vec<bool>> {
        match self.ascending.len() {
            1 => Ok(vec![self.ascending[0]; keys]),
            given if given == keys => Ok(self.ascending.clone()),
            given => Err(Error::Value(format!("{given} directions for {keys} keys of a sort"))),
        }
    }
}

impl DataFrame {
    /// The rows by the values of columns. Rows with equal values keep their order.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, Sort};
    /// let frame = DataFrame::from_columns([("n", vec![2, 3, 1].into())]);
    /// let sorted = frame.sort_values(["n"], Sort::descending());
    /// assert_eq!(sorted.col("n").values::<i64>()?, [Some(3), Some(2), Some(1)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn sort_values<'a>(&self, labels: impl IntoIterator<Item = &'a str>, sort: Sort) -> DataFrame {
        let labels: Vec<&str> = labels.into_iter().collect();
        self.then(|frame| {
            labels.iter().try_for_each(|label| frame.check(label))?;
            frame.with_index()?.sort_by(&labels, &sort)
        })
    }

    /// The rows by the labels of the index.
    #[track_caller]
    pub fn sort_index(&self, sort: Sort) -> DataFrame {
        self.then(|frame| {
            let frame = frame.with_index()?;
            let levels: Vec<String> = frame.index.iter().map(|level| level.column.clone()).collect();
            let levels: Vec<&str> = levels.iter().map(String::as_str).collect();
            frame.sort_by(&levels, &sort)
        })
    }
}

impl Frame {
    /// The rows by these columns of the plan, then in the order that they had.
    pub(crate) fn sort_by(&self, columns: &[&str], sort: &Sort) -> Result<Frame> {
        let frame = self.with_order()?;
        let directions = sort.directions(columns.len())?;
        let mut order: Vec<OrderKey> = Vec::new();
        for (column, ascending) in columns.iter().zip(directions) {
            let key = OrderKey { column: (*column).to_owned(), ascending, nulls_first: sort.missing_first };
            order.push(key);
        }
        let rest = frame.order.iter().filter(|key| !columns.contains(&key.column.as_str()));
        order.extend(rest.cloned());
        Ok(Frame { order, ..frame })
    }
}
