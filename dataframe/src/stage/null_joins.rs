//! Joins whose keys are equal where both are missing, apart from conditions in which they are not.
//!
//! All keys of a join are compared in one way. Two rules of the library give a join more keys, or put the
//! keys of several joins into one, and do not look at it: `x = y` would hold where both are missing.

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::logical_expr::logical_plan::Join;
use datafusion::logical_expr::utils::{
    can_hash, conjunction, find_valid_equijoin_key_pair, split_conjunction,
};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, Projection};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// The rules, of which none compares keys in another way than they were written.
pub(crate) fn rules(rules: Vec<Rule>) -> Vec<Rule> {
    let apart = |rule: Rule| -> Rule {
        match rule.name() {
            "extract_equijoin_predicate" => Arc::new(Keys(rule)),
            "eliminate_cross_join" => Arc::new(Flat(rule)),
            _ => rule,
        }
    };
    rules.into_iter().map(apart).collect()
}

/// The rule that makes keys of the condition of a join. It does so for joins whose keys are compared as
/// conditions are; the others get the same keys, and the condition that they are not missing.
#[derive(Debug)]
struct Keys(Rule);

impl OptimizerRule for Keys {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Join(join) if is_null_safe(&join) => with_more_keys(join),
            // There are no keys that would be compared in another way.
            LogicalPlan::Join(join) => {
                let null_equality = NullEquality::NullEqualsNothing;
                self.0.rewrite(LogicalPlan::Join(Join { null_equality, ..join }), config)
            }
            plan => Ok(Transformed::no(plan)),
        }
    }
}

/// The join whose keys are also what its condition has equal. Keys are equal where both are missing, so one
/// of them must not be.
fn with_more_keys(join: Join) -> Result<Transformed<LogicalPlan>> {
    let conditions = join.filter.iter().flat_map(split_conjunction);
    let (left, right) = (join.left.schema(), join.right.schema());
    let (mut pairs, mut others) = (Vec::new(), Vec::new());
    for condition in conditions {
        let pair = match condition {
            Expr::BinaryExpr(BinaryExpr { left: one, op: Operator::Eq, right: other })
                if !join.null_aware =>
            {
                find_valid_equijoin_key_pair(one, other, left, right)?
            }
            _ => None,
        };
        match pair {
            Some((one, other)) if can_hash(&one.get_type(left)?) => pairs.push((one, other)),
            _ => others.push(condition.clone()),
        }
    }
    if pairs.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    others.extend(pairs.iter().map(|(one, _)| one.clone().is_not_null()));
    let on = join.on.iter().cloned().chain(pairs).collect();
    Ok(Transformed::yes(LogicalPlan::Join(Join { on, filter: conjunction(others), ..join })))
}

/// The rule that joins the sides of inner joins in another order, for those whose keys are compared in the
/// same way.
#[derive(Debug)]
struct Flat(Rule);

impl OptimizerRule for Flat {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let mut has_null_safe = false;
        plan.apply_with_subqueries(|node| {
            has_null_safe |= matches!(node, LogicalPlan::Join(join) if is_null_safe(join));
            Ok(if has_null_safe { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !has_null_safe {
            return self.0.rewrite(plan, config);
        }
        let plan = plan.transform_down_with_subqueries(|node| Ok(apart(node)))?;
        plan.transform_data(|plan| self.0.rewrite(plan, config))
    }
}

/// An operator between which and an inner join below is another one, if the keys of the join would become
/// others: the rule does not look through it, and a later rule leaves it out.
fn apart(node: LogicalPlan) -> Transformed<LogicalPlan> {
    match node {
        LogicalPlan::Filter(mut filter) if inner_join(&filter.input) == Some(true) => {
            filter.input = behind_columns(filter.input);
            Transformed::yes(LogicalPlan::Filter(filter))
        }
        LogicalPlan::Join(mut join) if join.join_type == JoinType::Inner => {
            let is_other = Some(!is_null_safe(&join));
            let (left, right) = (inner_join(&join.left) == is_other, inner_join(&join.right) == is_other);
            if left {
                join.left = behind_columns(join.left);
            }
            if right {
                join.right = behind_columns(join.right);
            }
            let join = LogicalPlan::Join(join);
            if left || right { Transformed::yes(join) } else { Transformed::no(join) }
        }
        node => Transformed::no(node),
    }
}

/// True of a join with keys that are equal where both are missing.
fn is_null_safe(join: &Join) -> bool {
    join.null_equality == NullEquality::NullEqualsNull && !join.on.is_empty()
}

/// The same of an inner join; `None` of other plans.
fn inner_join(plan: &LogicalPlan) -> Option<bool> {
    match plan {
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => Some(is_null_safe(join)),
        _ => None,
    }
}

/// The rows behind a projection of all their columns.
fn behind_columns(rows: Arc<LogicalPlan>) -> Arc<LogicalPlan> {
    let schema = Arc::clone(rows.schema());
    Arc::new(LogicalPlan::Projection(Projection::new_from_schema(rows, schema)))
}
