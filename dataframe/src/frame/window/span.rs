//! The rows of a moving window, and the values in it.

use super::{Ends, between_rows, rows};
use crate::error::{Error, Result};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn::abs;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, WindowFrame, lit};

/// Rows of a window whose variance is exact. Longer ones add and take away values, which is faster but
/// inexact after very large values.
const SHORT: usize = 1024;

/// The rows of a moving window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Number of rows; `None` for all up to the current one.
    pub(super) window: Option<usize>,
    pub(super) min_periods: Option<usize>,
    pub(super) center: bool,
    /// The ends that belong to it: the row before the first one of the window, and the last one.
    pub(super) ends: Ends,
}

impl Span {
    pub(crate) fn frame(self) -> WindowFrame {
        let Some(window) = self.window.filter(|_| !self.is_empty()) else { return rows(None, Some(0)) };
        let after = if self.center { (window.max(1) - 1) / 2 } else { 0 };
        let before = window.max(1) - 1 - after + usize::from(matches!(self.ends, Ends::Left | Ends::Both));
        let left_out = i64::from(matches!(self.ends, Ends::Left | Ends::Neither));
        between_rows(Some(before as u64), Some(after as i64 - left_out))
    }

    /// Whether no row is ever in it: a window of one row without that one.
    pub(crate) fn is_empty(self) -> bool {
        self.window == Some(1) && self.ends == Ends::Neither
    }

    /// The values that it holds, as finite floats: none if it is empty, for which there is no frame of rows.
    pub(crate) fn values(self, value: Expr) -> Result<Expr> {
        if self.is_empty() { Ok(lit(ScalarValue::Float64(None))) } else { finite(value) }
    }

    /// Whether rows leave it again.
    pub(crate) fn moves(self) -> bool {
        self.window.is_some()
    }

    /// Whether its variance may be computed from all its values in each row.
    pub(crate) fn is_short(self) -> bool {
        self.window.is_some_and(|window| window <= SHORT)
    }

    /// Refuses a window that can never have the values that it must have.
    pub(crate) fn check(self) -> Result<()> {
        match (self.window, self.min_periods) {
            (Some(0), _) => Err(Error::Value("a window has at least one row".to_owned())),
            (Some(window), Some(values)) if window < values => {
                Err(Error::Value(format!("min_periods {values} must be <= window {window}")))
            }
            _ => Ok(()),
        }
    }

    /// The number of values from which an aggregate is there.
    pub(crate) fn least(self) -> usize {
        match (self.min_periods, self.window) {
            (Some(given), _) => given,
            (None, Some(window)) => window,
            (None, None) => 1,
        }
    }
}

/// A value as a float; infinite ones count as missing in windows, as in pandas.
pub(super) fn finite(value: Expr) -> Result<Expr> {
    let value = cast(value, DataType::Float64);
    Ok(when(abs(value.clone()).lt(lit(f64::INFINITY)), value).end()?)
}
