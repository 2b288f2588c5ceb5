//! Calls over the rows of a window in their order.

use super::{in_order, rows, window};
use crate::functions::{last_present, next_present};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::{Expr, WindowFunctionDefinition};

/// The rows of a window: all, or those with equal keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Over {
    pub(crate) keys: Vec<Expr>,
}

impl Over {
    /// A call over the rows up to each row.
    pub(super) fn running_call(&self, fun: impl Into<WindowFunctionDefinition>, args: Vec<Expr>) -> Expr {
        window(fun, args, &self.keys, vec![in_order()], rows(None, Some(0)))
    }

    pub(super) fn last(&self, value: Expr) -> Expr {
        self.running_call(last_present(), vec![value])
    }

    pub(super) fn next(&self, value: Expr) -> Expr {
        self.running_call(next_present(), vec![value])
    }

    /// The number of each row, from 1.
    pub(crate) fn position(&self) -> Expr {
        self.running_call(row_number_udwf(), Vec::new())
    }
}
