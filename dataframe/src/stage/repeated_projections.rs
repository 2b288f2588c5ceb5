//! Keeps a projection whose expressions are those of the projection below it.
//!
//! The library takes such two for one, but `3 * n AS n` of `3 * n AS n` is nine times n. (It is mended
//! upstream by apache/datafusion#24686; this file goes when the pinned version has that.) Its rule runs
//! over a plan in which no two projections are equal: in each one a changed column has a mark, which is
//! taken off afterwards.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::Alias;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use datafusion::optimizer::optimizer::Optimizer;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

const MARK: &str = "__tharsis_projection_";

/// The library's rules, with marks around the one that merges projections.
pub(crate) fn rules() -> Vec<Rule> {
    let marked = |rule: Rule| -> Rule {
        match rule.name() {
            "optimize_projections" => Arc::new(Marked(rule)),
            _ => rule,
        }
    };
    Optimizer::new().rules.into_iter().map(marked).collect()
}

/// A rule for plans that run over marked projections.
#[derive(Debug)]
struct Marked(Rule);

impl OptimizerRule for Marked {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let mut count = 0;
        let marked = plan.transform_down_with_subqueries(|node| mark(node, &mut count))?;
        let optimized = self.0.rewrite(marked.data, config)?;
        let unmarked = optimized.data.transform_down_with_subqueries(|node| {
            node.map_expressions(|expr| expr.transform_down(|expr| Ok(without_mark(expr))))
        })?;
        Ok(Transformed::new(unmarked.data, optimized.transformed, optimized.tnr))
    }
}

/// Marks the first column of a projection that is not one of its input under the same name.
fn mark(node: LogicalPlan, count: &mut usize) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Projection(Projection { mut expr, input, schema, .. }) = node else {
        return Ok(Transformed::no(node));
    };
    let changed = expr.iter_mut().find_map(|expr| match expr {
        Expr::Alias(alias) => match &*alias.expr {
            Expr::Column(column) if column.name == alias.name => None,
            _ => Some(alias),
        },
        _ => None,
    });
    if let Some(alias) = changed {
        *count += 1;
        let inner = std::mem::take(&mut *alias.expr);
        *alias.expr = inner.alias(format!("{MARK}{count}"));
    }
    Projection::try_new_with_schema(expr, input, schema).map(LogicalPlan::Projection).map(Transformed::yes)
}

fn without_mark(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::Alias(Alias { expr, name, .. }) if name.starts_with(MARK) => Transformed::yes(*expr),
        other => Transformed::no(other),
    }
}
