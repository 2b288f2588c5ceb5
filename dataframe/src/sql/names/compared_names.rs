//! Names of the rows of subqueries with which a value is compared.

use crate::frame::HIDDEN;
use crate::sql::plans::{columns, projection};
use datafusion::common::Result as EngineResult;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::{InSubquery, SetComparison};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Subquery};
use std::sync::Arc;

/// The node whose subqueries have names of their own for values that are compared, where the library makes
/// joins in which two columns have one name: the text of a column that is converted is that of the column,
/// which is put beside it, and rows of a `UNION` have the name of their first query.
pub(in crate::sql) fn with_named_values(node: LogicalPlan) -> EngineResult<LogicalPlan> {
    let around = merge_schema(&node.inputs());
    let named = |value: &Expr, asked: Subquery| -> EngineResult<Subquery> {
        let rows = asked.subquery.schema().fields().first().map(|field| field.data_type().clone());
        let is_converted = !asked.outer_ref_columns.is_empty() && value.get_type(&around).ok() != rows;
        if !is_converted && has_own_name(&asked.subquery) {
            return Ok(asked);
        }
        let Some(of_row) = columns(&asked.subquery).into_iter().next() else { return Ok(asked) };
        let label = format!("{HIDDEN}compared");
        let subquery = projection(vec![of_row.alias(label)], Arc::clone(&asked.subquery))?;
        Ok(Subquery { subquery, ..asked })
    };
    let changed = node.map_expressions(|expr| {
        expr.transform_up(|part| {
            Ok(match part {
                Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                    let subquery = named(&expr, subquery)?;
                    Transformed::yes(Expr::InSubquery(InSubquery { expr, subquery, negated }))
                }
                Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
                    let subquery = named(&expr, subquery)?;
                    Transformed::yes(Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }))
                }
                part => Transformed::no(part),
            })
        })
    })?;
    Ok(changed.data)
}

/// Whether rows have another name than the column that they are made of. The text of a cast is that of what
/// it converts, which stays below if it has that type already.
fn has_own_name(rows: &LogicalPlan) -> bool {
    match rows {
        LogicalPlan::Projection(made) => !matches!(made.expr.first(), Some(Expr::Cast(_) | Expr::TryCast(_))),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::rows;

    #[test]
    fn values_of_other_types_are_compared_with_rows_that_depend_on_the_row() {
        let rows_of = "(select v.a from u v where v.a = t.a)";
        assert_eq!(
            rows(&format!("select a * 1.0 in {rows_of} from t order by b")),
            ["false", "true", "true", "false"]
        );
        assert_eq!(rows(&format!("select a from t where a * 1.0 in {rows_of} order by b")), ["2", "3"]);
        assert_eq!(
            rows(&format!("select a from t where a + 0.5 not in {rows_of} order by b")),
            ["1", "2", "3", "NULL"]
        );
        assert_eq!(
            rows(&format!("select a from t where b = 10 or a + 0.5 > any {rows_of} order by b")),
            ["1", "2", "3"]
        );
    }

    #[test]
    fn values_are_compared_with_casts() {
        let last = "(select cast(last_value(u.a) over (order by u.a) as int) from u)";
        assert_eq!(
            rows(&format!("select b from t where 4 not in {last} order by b")),
            ["10", "20", "30", "40"]
        );
        assert_eq!(rows(&format!("select b from t where a in {last} order by b")), ["20", "30"]);
        assert_eq!(
            rows("select b from t where 4 not in (select cast(u.a as int) from u) order by b").len(),
            4
        );
    }

    #[test]
    fn values_are_compared_with_the_rows_of_a_union() {
        let both = "(select a from u union all select b from t)";
        assert_eq!(rows(&format!("select a from t where a = 1 or a in {both} order by a")), ["1", "2", "3"]);
        assert_eq!(rows(&format!("select a from t where (a in {both}) is true order by a")), ["2", "3"]);
        assert_eq!(
            rows(&format!("select a from t where (a not in {both}) is not false order by a")),
            ["1", "NULL"]
        );
        let ones = "(select 1 from u union all select a from u)";
        assert_eq!(rows(&format!("select a from t where case when b > 0 then a end not in {ones}")), [""; 0]);
        assert_eq!(rows(&format!("select a from t where a - 1 not in {ones} order by a")), ["1"]);
    }
}
