//! Columns that a projection computes below an operator which cannot have their values itself.

use super::plans::{columns, projection};
use super::subqueries::dependent;
use super::subqueries::reads::depends;
use super::values::floats;
use crate::frame::HIDDEN;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result as EngineResult};
use datafusion::logical_expr::expr::{InSubquery, SetComparison};
use datafusion::logical_expr::{Expr, LogicalPlan};
use std::sync::Arc;

pub(super) fn has_asked(expr: &Expr) -> EngineResult<bool> {
    expr.exists(|part| Ok(asks(part)))
}

/// The library reads a value that is the same for all rows by itself, wherever it stands.
pub(super) fn asks(part: &Expr) -> bool {
    match part {
        Expr::ScalarSubquery(subquery) => depends(&subquery.subquery),
        part => is_condition(part),
    }
}

pub(super) fn is_condition(part: &Expr) -> bool {
    matches!(part, Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_))
}

/// Values that a projection computes, and the labels of its columns.
pub(super) struct Below {
    name: &'static str,
    values: Vec<(Expr, String)>,
}

impl Below {
    pub(super) fn new(name: &'static str) -> Below {
        Below { name, values: Vec::new() }
    }

    /// The column of a value.
    pub(super) fn column(&mut self, value: Expr) -> Expr {
        let label = format!("{HIDDEN}{}_{}", self.name, self.values.len());
        self.column_of(value, label)
    }

    /// The column of a value, which has this label unless it has another one.
    pub(super) fn column_of(&mut self, value: Expr, label: String) -> Expr {
        self.known(&value).unwrap_or_else(|| {
            self.values.push((value, label.clone()));
            Expr::Column(Column::new_unqualified(label))
        })
    }

    fn known(&self, value: &Expr) -> Option<Expr> {
        let (_, label) = self.values.iter().find(|(known, _)| known == value)?;
        Some(Expr::Column(Column::new_unqualified(label)))
    }

    /// The expression with columns in the place of subqueries, and of the values that have one.
    pub(super) fn over_columns(&mut self, expr: Expr) -> EngineResult<Expr> {
        let changed = expr.transform_down(|part| {
            if let Some(column) = self.known(&part) {
                return Ok(Transformed::yes(column));
            }
            Ok(if asks(&part) { Transformed::yes(self.column(part)) } else { Transformed::no(part) })
        })?;
        Ok(changed.data)
    }

    /// The rows with the values as more columns.
    pub(super) fn beside(self, rows: Arc<LogicalPlan>) -> EngineResult<Arc<LogicalPlan>> {
        if self.values.is_empty() {
            return Ok(rows);
        }
        let own = columns(&rows);
        let (values, labels): (Vec<Expr>, Vec<String>) = self.values.into_iter().unzip();
        // Values in sets of groups are looked at here first.
        let values = values.into_iter().map(|value| floats::value(value, rows.schema()));
        let (values, rows) = apart(values.collect::<EngineResult<Vec<Expr>>>()?, rows)?;
        let (values, rows) = dependent::joined(values, rows)?;
        let values = values.into_iter().zip(labels).map(|(value, label)| value.alias(label));
        projection(own.into_iter().chain(values).collect(), rows)
    }
}

/// The expressions over rows that have as columns the values which are compared with subqueries, where these
/// values are of subqueries themselves: they stand in several places of a plan.
pub(super) fn apart(exprs: Vec<Expr>, rows: Arc<LogicalPlan>) -> EngineResult<(Vec<Expr>, Arc<LogicalPlan>)> {
    let mut below = Below::new("value");
    let exprs = exprs.into_iter().map(|expr| {
        let expr = expr.transform_down(|part| {
            let value = match &part {
                Expr::InSubquery(asked) => &asked.expr,
                Expr::SetComparison(asked) => &asked.expr,
                _ => return Ok(Transformed::no(part)),
            };
            if !value.exists(|part| Ok(is_subquery(part)))? {
                return Ok(Transformed::no(part));
            }
            let column = Box::new(below.column((**value).clone()));
            Ok(Transformed::yes(match part {
                Expr::InSubquery(asked) => Expr::InSubquery(InSubquery { expr: column, ..asked }),
                Expr::SetComparison(asked) => Expr::SetComparison(SetComparison { expr: column, ..asked }),
                other => other,
            }))
        })?;
        Ok(expr.data)
    });
    let exprs = exprs.collect::<EngineResult<Vec<Expr>>>()?;
    Ok((exprs, below.beside(rows)?))
}

pub(super) fn is_subquery(part: &Expr) -> bool {
    is_condition(part) || matches!(part, Expr::ScalarSubquery(_))
}
