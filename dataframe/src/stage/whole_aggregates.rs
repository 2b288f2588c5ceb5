//! Keeps conditions above aggregates that have a row also where there are none.
//!
//! An aggregate without keys gives one row of no rows. The library pushes a condition below an aggregate if
//! all its columns are keys, so also one without columns: `SELECT n FROM (SELECT count(*) n FROM t) WHERE
//! (SELECT ..) > 1` would count no rows, and give the count. Grouping sets may have a set without keys.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// The rules, of which none pushes a condition below such an aggregate.
pub(crate) fn rules(rules: Vec<Rule>) -> Vec<Rule> {
    let kept = |rule: Rule| -> Rule {
        match rule.name() {
            "push_down_filter" => Arc::new(Kept(rule)),
            _ => rule,
        }
    };
    rules.into_iter().map(kept).collect()
}

/// A rule that leaves conditions over such aggregates where they are.
#[derive(Debug)]
struct Kept(Rule);

impl OptimizerRule for Kept {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if is_of_whole(&plan) { Ok(Transformed::no(plan)) } else { self.0.rewrite(plan, config) }
    }
}

/// Whether a plan is a filter of an aggregate that may have a row of no rows.
fn is_of_whole(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Filter(filter) = plan else { return false };
    match &*filter.input {
        LogicalPlan::Aggregate(aggregate) => {
            let keys = &aggregate.group_expr;
            keys.is_empty() || keys.iter().any(|key| matches!(key, Expr::GroupingSet(_)))
        }
        inner => is_of_whole(inner),
    }
}
