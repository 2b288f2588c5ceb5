//! Looks for outer joins below a filter only where its condition stays small.
//!
//! The library puts the expressions of all projections below a filter into its condition, to see whether it
//! refuses the missing values of an outer join. It does so before it knows of any join, and with columns that
//! are used twice: `s + s` of `s + s`, twenty times, would be a condition of a million parts.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, Projection};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::collections::HashMap;
use std::sync::Arc;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Parts of a condition over the columns of a join, at most.
const PARTS_MAX: usize = 1_000;

/// The rules, of which none makes a condition large to look at it.
pub(crate) fn rules(rules: Vec<Rule>) -> Vec<Rule> {
    let bounded = |rule: Rule| -> Rule {
        match rule.name() {
            "eliminate_outer_join" => Arc::new(Bounded(rule)),
            _ => rule,
        }
    };
    rules.into_iter().map(bounded).collect()
}

/// A rule for filters whose condition stays small.
#[derive(Debug)]
struct Bounded(Rule);

impl OptimizerRule for Bounded {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Filter(filter) if !is_small_over_join(filter) => Ok(Transformed::no(plan)),
            _ => self.0.rewrite(plan, config),
        }
    }
}

/// Whether there is a join below a filter and projections, and the condition over its columns is small.
fn is_small_over_join(filter: &Filter) -> bool {
    let (mut count, mut uses) = parts_and_uses(&filter.predicate);
    let mut below = &*filter.input;
    while let LogicalPlan::Projection(projection) = below {
        let (mut next, mut added) = (HashMap::new(), 0_usize);
        for (name, times) in uses {
            let Some(expr) = column(projection, &name) else { continue };
            let (parts, inside) = parts_and_uses(expr);
            added = added.saturating_add(parts.saturating_mul(times));
            for (name, inner) in inside {
                let sum: &mut usize = next.entry(name).or_default();
                *sum = sum.saturating_add(inner.saturating_mul(times));
            }
        }
        count = count.saturating_add(added);
        if PARTS_MAX < count {
            return false;
        }
        uses = next;
        below = &projection.input;
    }
    matches!(below, LogicalPlan::Join(_)) && count <= PARTS_MAX
}

/// The expression of a column of a projection.
fn column<'a>(projection: &'a Projection, name: &str) -> Option<&'a Expr> {
    let at = projection.schema.fields().iter().position(|field| field.name() == name)?;
    projection.expr.get(at)
}

/// The number of parts of an expression, and of times that it reads each column.
fn parts_and_uses(expr: &Expr) -> (usize, HashMap<String, usize>) {
    let (mut parts, mut uses) = (0, HashMap::new());
    let visited = expr.apply(|part| {
        parts += 1;
        if let Expr::Column(column) = part {
            *uses.entry(column.name.clone()).or_default() += 1;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    // No step of the visit fails.
    debug_assert!(visited.is_ok());
    (parts, uses)
}
