//! Functions of the program over the values of moving windows.

use super::rolling::Rolling;
use super::span::Span;
use super::{in_order, over_window, window};
use crate::error::Result;
use crate::frame::aggregate::Aggregate;
use crate::frame::functions::column_type;
use crate::frame::group::GroupBy;
use crate::frame::series::Series;
use crate::frame::{DataFrame, named};
use crate::functions::window_values;
use crate::registered::{Call, CalledFunction, Function, OverColumn};
use arrow::datatypes::DataType;
use datafusion::logical_expr::expr_fn::when;
use datafusion::logical_expr::{Expr, lit};
use std::panic::Location;
use std::sync::Arc;

/// A function of windows: called with the values of each window that has enough of them.
fn applied(span: Span, call: &Call, keys: &[Expr], label: &str, value: Expr) -> Result<Expr> {
    span.check()?;
    let value = span.values(value)?;
    let returns = column_type(call, &DataType::Float64)?;
    let list = window(window_values(), vec![value.clone()], keys, vec![in_order()], span.frame());
    let function = CalledFunction::over_lists(call.clone(), label.to_owned(), returns);
    let count = Aggregate::Count.expr(value, &DataType::Float64, &[])?;
    let count = over_window(count, keys, vec![in_order()], span.frame())?;
    Ok(when(count.gt_eq(lit(span.least() as i64)), function.expr(vec![list])).end()?)
}

fn is_number(dtype: &DataType) -> bool {
    dtype.is_numeric() || *dtype == DataType::Boolean
}

impl Rolling<Series> {
    /// The result of a function of the program for the values of each window, as floats, missing ones too. Of
    /// a function that gives as many values as it gets, the last one counts.
    ///
    /// # Errors
    /// When it runs: `Function` if the function fails, panics, or gives other numbers of values.
    #[track_caller]
    pub fn apply(&self, function: Function<OverColumn>) -> Series {
        let place = Location::caller();
        let label = self.of.label();
        let made = self.of.parts().and_then(|(frame, expr)| {
            let call = function.call_from(place)?;
            Ok((Arc::clone(frame), applied(self.span, &call, &[], &label, expr.clone())?))
        });
        Series::new(made, self.of.name().map(str::to_owned))
    }
}

impl Rolling<DataFrame> {
    /// The result of a function of the program for the values of each window, in each column with numbers.
    ///
    /// # Errors
    /// As [`Rolling::apply`] of a series.
    #[track_caller]
    pub fn apply(&self, function: Function<OverColumn>) -> DataFrame {
        let place = Location::caller();
        self.of.then(|frame| {
            let call = function.call_from(place)?;
            let mut columns = Vec::new();
            for label in &frame.columns {
                if is_number(&frame.dtype(label)?) {
                    columns.push((label.clone(), applied(self.span, &call, &[], label, named(label))?));
                }
            }
            frame.project(columns)
        })
    }
}

impl Rolling<GroupBy> {
    /// The result of a function of the program for the values of each window, in each column with numbers but
    /// the keys. Rows come by group.
    ///
    /// # Errors
    /// As [`Rolling::apply`] of a series.
    #[track_caller]
    pub fn apply(&self, function: Function<OverColumn>) -> DataFrame {
        let call = function.call_from(Location::caller());
        self.of.step_by_group(|_, keys, label, dtype| match (&call, is_number(dtype)) {
            (Err(error), _) => Err(error.clone()),
            (Ok(call), true) => applied(self.span, call, keys, label, named(label)).map(Some),
            (Ok(_), false) => Ok(None),
        })
    }
}
