//! The bound on `IN (SELECT ..)` within each other.

use crate::error::{Error, Result};
use crate::sql::tables::frame_rows::plan_of;
use crate::stage::not_in::can_be_missing;
use datafusion::common::Result as EngineResult;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::utils::{merge_schema, split_conjunction};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

/// Levels of `IN (SELECT ..)` within each other at most. Where values may be missing, each level reads its
/// rows twice, and a plan has 2^n copies of the innermost ones.
const LEVELS_MAX: usize = 4;

/// Refuses a plan of more levels.
pub(in crate::sql) fn check_levels(plan: &LogicalPlan) -> Result<()> {
    let levels = levels(plan)?;
    if levels <= LEVELS_MAX {
        return Ok(());
    }
    Err(Error::NotImplemented(format!(
        "IN, ANY or ALL (SELECT ..) in {levels} levels within each other, whose values may be missing, are \
         not supported: at most {LEVELS_MAX} (leave out missing rows with IS NOT NULL, or make a table of the inner ones)"
    )))
}

/// Levels of subqueries within each other whose rows are read twice.
fn levels(plan: &LogicalPlan) -> EngineResult<usize> {
    let mut most = 0;
    plan.apply(|node| {
        most = most.max(plan_of(node).map_or(Ok(0), levels)?);
        let is_filter = matches!(node, LogicalPlan::Filter(_));
        node.apply_expressions(|expr| {
            let parts = if is_filter { split_conjunction(expr) } else { vec![expr] };
            for part in parts {
                let found = match part {
                    // A join, whose sides are read once.
                    Expr::InSubquery(asked) if is_filter && is_join(asked, node) => {
                        levels(&asked.subquery.subquery)?
                    }
                    part => levels_within(part, node)?,
                };
                most = most.max(found);
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(most)
}

/// Whether a condition that stands by itself is a join as it is. A column of another type than the rows will
/// be converted, and is a column no more then.
fn is_join(asked: &InSubquery, node: &LogicalPlan) -> bool {
    let is_of_type = |column: &Expr| {
        let own = column.get_type(&merge_schema(&node.inputs())).ok();
        let rows = asked.subquery.subquery.schema();
        own.is_some_and(|own| rows.fields().first().is_some_and(|field| *field.data_type() == own))
    };
    let is_column = matches!(*asked.expr, Expr::Column(_)) && is_of_type(&asked.expr);
    !asked.negated || asked.subquery.outer_ref_columns.is_empty() && is_column
}

fn levels_within(expr: &Expr, node: &LogicalPlan) -> EngineResult<usize> {
    let mut most = 0;
    expr.apply(|part| {
        let found = match part {
            Expr::InSubquery(asked) => {
                // A value without a type yet may be a missing one.
                let is_twice = can_be_missing(asked, &merge_schema(&node.inputs())).unwrap_or(true);
                usize::from(is_twice) + levels(&asked.subquery.subquery)?
            }
            Expr::SetComparison(asked) => 1 + levels(&asked.subquery.subquery)?,
            Expr::Exists(asked) => levels(&asked.subquery.subquery)?,
            Expr::ScalarSubquery(subquery) => levels(&subquery.subquery)?,
            _ => 0,
        };
        most = most.max(found);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(most)
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{plan, rows, session};

    /// A query with this many levels of conditions within each other.
    fn nested(levels: usize) -> String {
        let inner = (1..levels).fold("select a from u".to_owned(), |inner, _| {
            format!("select case when a in ({inner}) then a end from t")
        });
        format!("select a in ({inner}) from t order by b")
    }

    #[test]
    fn conditions_within_each_other_have_a_limit() {
        assert_eq!(rows(&nested(2)), ["NULL", "true", "true", "NULL"]);
        assert_eq!(rows(&nested(4)).len(), 4);
        let error = session().run(&nested(5)).expect_err("too many levels");
        assert_eq!(error.class(), "NotImplemented");
        let text = error.to_string();
        assert!(text.contains("ALL (SELECT ..) in 5 levels") && text.contains("at most 4"), "{text}");
        // Conditions of rows alone are joins, however many there are.
        let inner = (0..12)
            .fold("select a from u".to_owned(), |inner, _| format!("select a from t where a in ({inner})"));
        assert_eq!(rows(&format!("select b from t where a in ({inner}) order by b")), ["20", "30"]);
    }

    #[test]
    fn values_that_are_converted_count_as_levels() {
        let mut session = session();
        session.run("create table m (a int, c bigint) as values (1, 1), (2, 3)").expect("a table");
        let nested = |levels: usize| {
            (0..levels).fold("select c from m".to_owned(), |inner, _| {
                format!("select c from m where a not in ({inner})")
            })
        };
        assert_eq!(session.run(&nested(1)).expect("rows"), [["3"]]);
        let error = session.run(&nested(5)).expect_err("too many levels");
        assert_eq!(error.class(), "NotImplemented", "{error}");
    }

    /// A plan reads tables this many times.
    fn scans(query: &str) -> usize {
        plan(query).matches("TableScan:").count()
    }

    #[test]
    fn each_level_reads_its_rows_twice_and_no_more_often() {
        assert_eq!([1, 2, 3].map(|levels| scans(&nested(levels))), [3, 7, 15]);
        let within = "select a from t where a not in (select a from u) or b = 0";
        assert_eq!(scans(within), 3);
    }
}
