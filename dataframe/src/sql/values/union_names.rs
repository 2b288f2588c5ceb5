//! Names of the columns of the sides of unions.
//!
//! The library joins nested unions into one, and gives each side of the inner union the casts of all its
//! columns, by name. A side with other names has none of these columns, or others. So all sides have the
//! names of the union, by position.

use crate::sql::plans::{columns, projection};
use datafusion::common::Result as EngineResult;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Union};
use std::collections::HashSet;
use std::sync::Arc;

/// A union whose sides have the names of its columns.
pub(in crate::sql) fn with_names(node: LogicalPlan) -> EngineResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(Union { inputs, schema }) = node else { return Ok(Transformed::no(node)) };
    let fields = schema.fields().iter();
    let names: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
    // Columns of one name are told from each other by their tables.
    let are_different = names.iter().collect::<HashSet<_>>().len() == names.len();
    let has_others = |side: &LogicalPlan| {
        let own = side.schema().fields().iter().map(|field| field.name().as_str());
        are_different && side.schema().fields().len() == names.len() && !own.eq(names.iter().copied())
    };
    let mut is_new = false;
    let sides = inputs.into_iter().map(|side| {
        if !has_others(&side) {
            return Ok(side);
        }
        is_new = true;
        named(side, &names)
    });
    let inputs = sides.collect::<EngineResult<Vec<Arc<LogicalPlan>>>>()?;
    Ok(Transformed::new_transformed(LogicalPlan::Union(Union { inputs, schema }), is_new))
}

/// The rows with these names of columns.
fn named(side: Arc<LogicalPlan>, names: &[&str]) -> EngineResult<Arc<LogicalPlan>> {
    let (exprs, rows): (Vec<Expr>, Arc<LogicalPlan>) = match Arc::unwrap_or_clone(side) {
        // Literals of a side are found in its own expressions.
        LogicalPlan::Projection(Projection { expr, input, .. }) => (expr, input),
        side => (columns(&side), Arc::new(side)),
    };
    let exprs = exprs.into_iter().zip(names).map(|(expr, name)| expr.unalias().alias(*name));
    let exprs = exprs.collect();
    projection(exprs, rows)
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{rows_in, session_of};

    #[test]
    fn sides_of_inner_unions_are_read_by_position() {
        let mut session = session_of(&[
            "create table t (a int, b int) as values (1, 10)",
            "create table u (x int, y int) as values (2, 20)",
            "create table days (d date, d2 date, ts timestamp)
             as values ('2024-01-01', '2024-01-02', '2024-01-03 06:00')",
        ]);
        let of_numbers = |union: &str| format!("select sum(x * 100), sum(y) from ({union}) s");
        for (query, expected) in [
            (
                of_numbers(
                    "select a as x, b as y from t union all select distinct y, x from u union all select 2.5, 1",
                ),
                "2350 13",
            ),
            (
                of_numbers(
                    "select a as x, b as y from t
                     union all (select y, x from u order by 1 limit 1) union all select 2.5, 1",
                ),
                "2350 13",
            ),
            (
                of_numbers("select a as x, b as y from t union all values (2, 20) union all select 2.5, 1"),
                "550 31",
            ),
            (
                of_numbers(
                    "select a as x, b as y from t
                     union all (select y, x from u intersect select y, x from u) union all select 2.5, 1",
                ),
                "2350 13",
            ),
            (
                "select max(x) = timestamp '2024-01-03 06:00:00' and min(x) = timestamp '2024-01-01 00:00:00'
                 from (select d as x from days union all select distinct d2 from days
                       union all select ts from days) s"
                    .to_owned(),
                "true",
            ),
        ] {
            assert_eq!(rows_in(&mut session, &query), [expected], "{query}");
        }
        let prepared = "prepare p(double) as select sum(x * 100), sum(y) from
                        (select a as x, b as y from t union all select y, x from u union all select $1, 1) s";
        session.run(prepared).expect("a statement");
        assert_eq!(rows_in(&mut session, "execute p(2.5)"), ["2350 13"]);
    }
}
