//! Frames and series as texts, which compute nothing.

use super::DataFrame;
use super::series::Series;
use std::fmt;

/// Name and type of the series; the values are not computed.
impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dtype() {
            Ok(dtype) => write!(f, "Series[{}: {dtype}]", self.label()),
            Err(error) => write!(f, "Series[{error}]"),
        }
    }
}

/// The labels and types of the columns; the rows are not computed.
impl fmt::Display for DataFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dtypes() {
            Ok(columns) => {
                let columns: Vec<String> =
                    columns.iter().map(|(label, dtype)| format!("{label}: {dtype}")).collect();
                write!(f, "DataFrame[{}]", columns.join(", "))
            }
            Err(error) => write!(f, "DataFrame[{error}]"),
        }
    }
}
