//! Plans whose rows are others in each run.

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Volatility;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// Whether a plan calls a function such as `random()` or `uuid()`.
pub(super) fn is_volatile(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut found = false;
    let visited = plan.apply(|node| {
        node.apply_expressions(&mut |expr| {
            found |= calls_volatile(expr)?;
            Ok(TreeNodeRecursion::Continue)
        })
    });
    // A plan that cannot be looked at may be one.
    found || visited.is_err()
}

fn calls_volatile(expr: &Arc<dyn PhysicalExpr>) -> Result<bool> {
    expr.exists(|part| {
        Ok(part.downcast_ref::<ScalarFunctionExpr>().is_some_and(|call| {
            let function = call.fun();
            function.signature().volatility == Volatility::Volatile && !is_own(function.name())
        }))
    })
}

/// Functions of frames say that they are volatile so that planning leaves them where they are. Functions of
/// the program are taken for what they promise to be.
fn is_own(name: &str) -> bool {
    name.starts_with("tharsis_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Settings, block_on, session};
    use datafusion::prelude::SessionContext;

    fn plan(query: &str) -> Arc<dyn ExecutionPlan> {
        let context = SessionContext::new_with_state(session(Settings::default()));
        let made = block_on(async {
            context.sql("create table t as values (1, 2.5), (2, 0.5)").await?;
            Ok(context.sql(query).await?.create_physical_plan().await?)
        });
        made.unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    #[test]
    fn plans_with_other_rows_in_each_run_are_found_by_all_their_expressions() {
        for query in [
            "select random() r from t",
            "select column1 from t where random() < 0.5",
            "select count(*) from t group by floor(random() * 8)",
            "select sum(random()) from t",
            "select count(*) filter (where random() < 0.5) from t",
            "select column1 from t order by random()",
            "select max(random()) over (partition by column1) from t",
            "select row_number() over (order by uuid()) from t",
            "select a.column1 from t a join t b on a.column2 + b.column2 < random()",
            "select column1 from t where column2 > (select random())",
        ] {
            assert!(is_volatile(&plan(query)), "{query}");
        }
        for query in [
            "select abs(column2), now() from t where column1 < 2 order by column2",
            "select sum(column2), tharsis_kept(column1) from t group by tharsis_kept(column1)",
        ] {
            assert!(!is_volatile(&plan(query)), "{query}");
        }
    }
}
