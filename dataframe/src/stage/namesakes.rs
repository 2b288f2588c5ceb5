//! Filters that are pushed down where columns have equal names.
//!
//! The library finds the columns of a filter below a projection by their names. The columns of two tables
//! that were joined may have one: a filter of the one became one of the other, and rows were lost.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use std::collections::HashSet;
use std::sync::Arc;

/// A rule that pushes filters, as one that looks at parts of a plan without columns of equal names: filters
/// get from joins to files before it, while columns have the names of their tables too.
pub(super) fn apart(rule: Rule) -> Rule {
    Arc::new(WithoutNamesakes(rule))
}

pub(super) type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

#[derive(Debug)]
struct WithoutNamesakes(Rule);

impl PhysicalOptimizerRule for WithoutNamesakes {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !plan.exists(|part| Ok(has_namesakes(part)))? {
            return self.0.optimize(plan, options);
        }
        let changed = plan.map_children(|child| Ok(Transformed::yes(self.optimize(child, options)?)))?;
        Ok(changed.data)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

fn has_namesakes(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut names = HashSet::new();
    let schema = plan.schema();
    !schema.fields().iter().all(|field| names.insert(field.name()))
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;

    #[test]
    fn a_filter_of_one_table_is_none_of_the_other() {
        let mut session = SqlSession::default();
        for statement in [
            "create table t (i int, a int, f double) as values (0, null, 0.0), (1, 3, -2.25), (2, null, 1.5)",
            "create table u (i int, b int, f double) as values (0, -2, null), (1, 2, 3.0), (2, null, null)",
        ] {
            session.run(statement).expect("a table");
        }
        let joined = "from t x right join u y on x.a = y.b where";
        let query = format!("select y.f, y.i {joined} not (y.i not in (1, 2, null) or x.f is not null)");
        let mut rows = session.run(&query).expect("rows");
        rows.sort();
        assert_eq!(rows, [["3", "1"], ["NULL", "2"]]);
    }
}
