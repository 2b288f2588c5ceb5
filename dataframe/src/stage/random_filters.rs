//! Keeps conditions such as `random() < 0.1` where they are written.
//!
//! The library pushes a condition below an aggregate, a window or `DISTINCT` if these have all its columns,
//! and into a side of a join likewise. A condition without columns would choose rows there, and no groups or
//! pairs. Of two equal conditions the library leaves one out, which is right for those that are the same
//! each time only.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, Result};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// The rules, of which none moves such a condition.
pub(crate) fn rules(rules: Vec<Rule>) -> Vec<Rule> {
    let kept = |rule: Rule| -> Rule {
        match rule.name() {
            "push_down_filter" => Arc::new(Kept(rule)),
            _ => rule,
        }
    };
    rules.into_iter().map(kept).collect()
}

/// A rule that moves conditions that are the same each time.
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
        if !has_random(&plan) {
            return self.0.rewrite(plan, config);
        }
        let Parts { random, others, rows } = Parts::of(plan.clone());
        let (Some(random), false) = (conjunction(random), has_random(&rows)) else {
            return Ok(Transformed::no(plan));
        };
        let rows = match conjunction(others) {
            Some(others) => {
                let filter = Filter::try_new(others, Arc::new(rows))?;
                self.0.rewrite(LogicalPlan::Filter(filter), config)?.data
            }
            None => rows,
        };
        let changed = LogicalPlan::Filter(Filter::try_new(random, Arc::new(rows))?);
        Ok(if changed == plan { Transformed::no(plan) } else { Transformed::yes(changed) })
    }
}

/// Whether a plan begins with filters and a join of which one has such a condition.
fn has_random(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Filter(filter) => filter.predicate.is_volatile() || has_random(&filter.input),
        LogicalPlan::Join(join) => join.filter.as_ref().is_some_and(Expr::is_volatile),
        _ => false,
    }
}

/// The conditions with which a plan begins, and the rows of which they choose some.
struct Parts {
    random: Vec<Expr>,
    others: Vec<Expr>,
    rows: LogicalPlan,
}

impl Parts {
    fn of(plan: LogicalPlan) -> Parts {
        let mut parts = Parts { random: Vec::new(), others: Vec::new(), rows: plan };
        while let LogicalPlan::Filter(Filter { predicate, input, .. }) = parts.rows {
            let (random, others) = apart(predicate);
            parts.random.extend(random);
            parts.others.extend(others);
            parts.rows = Arc::unwrap_or_clone(input);
        }
        // The condition of another join says which of its rows have a partner.
        if let LogicalPlan::Join(join) = &mut parts.rows
            && join.join_type == JoinType::Inner
            && let Some(condition) = join.filter.take()
        {
            let (random, others) = apart(condition);
            parts.random.extend(random);
            join.filter = conjunction(others);
        }
        parts
    }
}

fn apart(condition: Expr) -> (Vec<Expr>, Vec<Expr>) {
    split_conjunction_owned(condition).into_iter().partition(Expr::is_volatile)
}

#[cfg(test)]
mod tests {
    use crate::SqlSession;

    /// Each query asks about so many rows that chance has no part in its answer.
    #[test]
    fn random_conditions_stay_where_they_are_written() {
        let mut session = SqlSession::default();
        session
            .run("create table t as select i, i % 100 as k from generate_series(1, 100000) g(i)")
            .expect("t");
        let groups = "(select k, count(*) as n from t group by k) g";
        for query in [
            // Groups have all their rows, or are left out.
            format!("select count(*) = 0 from {groups} where random() < 0.5 and n < 1000"),
            format!("select max(n) = 1000 from {groups} where k >= 0 and random() < 0.9"),
            format!("select min(n) = 1000 from {groups} where random() * 100 < k + 50"),
            "select count(*) = 0 from (select k from t group by k having random() < 0.5 and count(*) < 1000) h"
                .to_owned(),
            "select count(*) = 0 from (select count(*) over () as n from t) w where random() < 0.5 and n < 100000"
                .to_owned(),
            "select count(*) < 100 from (select distinct k from t) d where random() < 0.5".to_owned(),
            // Each chooses anew.
            "select count(*) < 40000 from (select i from t where random() < 0.5) s where random() < 0.5".to_owned(),
            // A pair is chosen, and no row of one side.
            "select count(*) between 1 and 99999 from (values (1)) v(x) join t on random() < 0.5".to_owned(),
            "select count(*) between 1 and 99999 from (values (1)) v(x), t where random() < 0.5".to_owned(),
            "select count(*) between 1 and 99 from (values (1)) v(x) join t on i <= 100 and random() < 0.5".to_owned(),
        ] {
            assert_eq!(session.run(&query).expect(&query), [["true"]], "{query}");
        }
    }
}
