//! One row, as functions of rows get it.

use super::value::Cell;
use crate::error::{Error, Result};
use crate::value::Value;
use arrow::array::ArrayRef;

/// One row of a frame: its values by label. The index is not part of it.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    labels: &'a [String],
    arrays: &'a [ArrayRef],
    at: usize,
}

impl<'a> Row<'a> {
    pub(super) fn new(labels: &'a [String], arrays: &'a [ArrayRef], at: usize) -> Row<'a> {
        Row { labels, arrays, at }
    }

    /// The labels of the columns, in their order.
    #[must_use]
    pub fn labels(&self) -> &'a [String] {
        self.labels
    }

    /// The value of a column, `None` if it is missing.
    ///
    /// # Errors
    /// `KeyError` for a label that does not exist, `TypeError` for values of another type.
    pub fn get<T: Cell<'a>>(&self, label: &str) -> Result<Option<T>> {
        T::at(self.array(label)?, self.at)
    }

    /// The value of a column, of any type.
    ///
    /// # Errors
    /// `KeyError` for a label that does not exist.
    pub fn value(&self, label: &str) -> Result<Value> {
        Value::from_array(self.array(label)?, self.at)
    }

    fn array(&self, label: &str) -> Result<&'a ArrayRef> {
        let found = self.labels.iter().position(|known| known == label).and_then(|at| self.arrays.get(at));
        found.ok_or_else(|| Error::Key { label: label.to_owned(), known: self.labels.to_vec() })
    }
}
