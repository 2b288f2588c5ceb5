//! Gives the filters of a window's aggregates a form that remote tasks can be sent.
//!
//! The library has no message for `sum(x) FILTER (WHERE c) OVER w`. Where an aggregate skips nulls,
//! `sum(CASE WHEN c THEN x END) OVER w` is the same.

use crate::functions::moving::is_moving;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, Window, WindowFunctionDefinition, when,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// Aggregates that take no notice of a row whose first argument is null.
const SKIP_NULLS: [&str; 29] = [
    "approx_distinct",
    "approx_median",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "max",
    "median",
    "min",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "sum",
    "tharsis_checked_sum",
    "var",
];

#[derive(Debug)]
struct FilteredWindows;

/// The rule for the optimizer.
pub(crate) fn rule() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(FilteredWindows)
}

impl OptimizerRule for FilteredWindows {
    fn name(&self) -> &str {
        "filtered_windows"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Window(window) = &plan else { return Ok(Transformed::no(plan)) };
        let functions = window.window_expr.iter().cloned().map(without_filters);
        let functions = functions.collect::<Result<Vec<_>>>()?;
        if !functions.iter().any(|function| function.transformed) {
            return Ok(Transformed::no(plan));
        }
        let functions = functions.into_iter().map(|function| function.data).collect();
        let changed = LogicalPlan::Window(Window::try_new(functions, Arc::clone(&window.input))?);
        // The plans above read the columns by their old names.
        let old = plan.schema().iter().map(Column::from);
        let columns = changed.schema().iter().map(Column::from).zip(old).map(|(new, old)| {
            if new == old {
                Expr::Column(new)
            } else {
                Expr::Column(new).alias_qualified(old.relation, old.name)
            }
        });
        let columns: Vec<Expr> = columns.collect();
        Ok(Transformed::yes(LogicalPlanBuilder::from(changed).project(columns)?.build()?))
    }
}

/// A function whose aggregates have their filter in their first argument.
fn without_filters(function: Expr) -> Result<Transformed<Expr>> {
    function.transform_up(|expr| {
        let Expr::WindowFunction(mut window) = expr else { return Ok(Transformed::no(expr)) };
        let Some(filter) = window.params.filter.take_if(|_| skips_nulls(&window.fun)) else {
            return Ok(Transformed::no(Expr::WindowFunction(window)));
        };
        let WindowFunction { params, .. } = window.as_mut();
        match params.args.first_mut() {
            Some(value) => *value = when(*filter, value.clone()).end()?,
            None => params.filter = Some(filter),
        }
        Ok(Transformed::yes(Expr::WindowFunction(window)))
    })
}

fn skips_nulls(function: &WindowFunctionDefinition) -> bool {
    match function {
        WindowFunctionDefinition::AggregateUDF(aggregate) => {
            SKIP_NULLS.contains(&aggregate.name()) || is_moving(aggregate)
        }
        WindowFunctionDefinition::WindowUDF(_) => false,
    }
}
