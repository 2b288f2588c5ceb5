//! Keeps limits above windows.
//!
//! The library moves the limit of a sort to a sort below where the upper one is not needed, also past a
//! window, whose values would then depend on fewer rows. A limit that is a node of its own stays above it.
//! Nor does a limit go past a window into an aggregate, which would give fewer groups.

use super::namesakes::{Rule, apart};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use std::sync::Arc;

/// The rules of the library, and before those that move sorts the one that parts limits from them; those that
/// push filters look at columns of different names only.
pub(crate) fn rules() -> Vec<Rule> {
    let without_windows = |rule: Rule| -> Rule {
        match rule.name() {
            "LimitAggregation" => Arc::new(WithoutWindows(rule)),
            name if name.starts_with("FilterPushdown") => apart(rule),
            _ => rule,
        }
    };
    let mut rules: Vec<Rule> = PhysicalOptimizer::new().rules.into_iter().map(without_windows).collect();
    // The first rule notes the order that the query asks for.
    rules.insert(rules.len().min(1), Arc::new(LimitedWindows));
    rules
}

/// A rule for plans without windows.
#[derive(Debug)]
struct WithoutWindows(Rule);

impl PhysicalOptimizerRule for WithoutWindows {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if has_window(&plan)? { Ok(plan) } else { self.0.optimize(plan, options) }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// The rule for the optimizer.
#[derive(Debug)]
struct LimitedWindows;

impl PhysicalOptimizerRule for LimitedWindows {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let parted = plan.transform_up(|node| {
            let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(Transformed::no(node)) };
            match sort.fetch() {
                Some(fetch) if has_window(sort.input())? => {
                    let sorted: Arc<dyn ExecutionPlan> = Arc::new(sort.with_fetch(None));
                    Ok(Transformed::yes(Arc::new(GlobalLimitExec::new(sorted, 0, Some(fetch))) as _))
                }
                _ => Ok(Transformed::no(node)),
            }
        })?;
        Ok(parted.data)
    }

    fn name(&self) -> &'static str {
        "limited_windows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn has_window(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| Ok(node.is::<WindowAggExec>() || node.is::<BoundedWindowAggExec>()))
}
