//! The arguments that an operator calls its functions with.

use arrow::compute::SortOptions;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The rows that a function is called with at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Unit {
    /// Consecutive rows of a partition.
    Chunk,
    /// The rows of a chunk that have equal keys.
    ChunkGroup,
    /// All rows with equal keys.
    Group,
    /// Consecutive rows of one input, with those of another: each with each.
    Pair,
    /// All rows.
    Whole,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Chunk => "each chunk",
            Unit::ChunkGroup => "each group of a chunk",
            Unit::Group => "each group",
            Unit::Pair => "each pair of chunks",
            Unit::Whole => "all rows",
        })
    }
}

/// The fate of the columns that are passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Passing {
    /// Those of each row: the function gives a row for each row.
    Each,
    /// Those of the first row, for each row that the function gives.
    First,
    /// Nothing.
    Nothing,
}

/// A column of an input by which its rows are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct OrderColumn {
    pub(crate) column: usize,
    pub(crate) ascending: bool,
    pub(crate) nulls_first: bool,
}

impl OrderColumn {
    pub(super) fn options(self) -> SortOptions {
        SortOptions { descending: !self.ascending, nulls_first: self.nulls_first }
    }
}

/// The form of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) unit: Unit,
    /// Number of keys of groups: the first columns.
    pub(crate) keys: usize,
    /// Number of columns that are passed: the last ones.
    pub(crate) passed: usize,
    pub(crate) passing: Passing,
    /// For each input, the names of the levels of its index.
    pub(crate) levels: Vec<Vec<Option<String>>>,
    /// For each input, the order that its rows must have; empty if it is that of the plan.
    pub(crate) order: Vec<Vec<OrderColumn>>,
    /// The names of the levels of the result's index.
    pub(crate) made_levels: Vec<Option<String>>,
    /// Number of levels and columns that the functions make.
    pub(crate) made: usize,
    /// Whether the function is called with each column alone.
    pub(crate) by_column: bool,
    /// Whether rows with a missing key get missing values instead of a call.
    pub(crate) skips_missing: bool,
    /// Whether each row gets its position among those of its call, in a last column.
    pub(crate) positions: bool,
}
