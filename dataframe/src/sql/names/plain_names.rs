//! Names of a result's columns that have a tag and no namesake.
//!
//! A value that expressions of ORDER BY may not find has a tag behind its name until they are planned. Then
//! it has its name, in tables, views, files and frames as well.

use super::namesakes::plain_name;
use crate::planning::statement_name;
use crate::sql::plans::projection;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result as EngineResult};
use datafusion::logical_expr::{Expr, LogicalPlan};
use std::sync::Arc;

/// The plan whose columns have tags only where others have the same name.
pub(in crate::sql) fn with_plain_names(plan: LogicalPlan) -> EngineResult<LogicalPlan> {
    if matches!(plan, LogicalPlan::Ddl(_) | LogicalPlan::Copy(_)) {
        return Ok(plan.map_children(|rows| with_plain_names(rows).map(Transformed::yes))?.data);
    }
    let names: Vec<&str> = plan.schema().fields().iter().map(|field| plain_name(field.name())).collect();
    let is_tagged = |name: &str| {
        plain_name(name) != name && names.iter().filter(|other| **other == plain_name(name)).count() == 1
    };
    let is_query = statement_name(&plan).is_none();
    if !is_query || !plan.schema().fields().iter().any(|field| is_tagged(field.name())) {
        return Ok(plan);
    }
    let columns = plan.schema().iter().map(|(table, field)| {
        let column = Expr::Column(Column::new(table.cloned(), field.name()));
        if is_tagged(field.name()) {
            column.alias_qualified(table.cloned(), plain_name(field.name()))
        } else {
            column
        }
    });
    let columns = columns.collect();
    projection(columns, Arc::new(plan)).map(Arc::unwrap_or_clone)
}

#[cfg(test)]
mod tests {
    use crate::DataFrame;
    use crate::sql::small_tables::{cells, session_of};

    #[test]
    fn values_that_expressions_do_not_find_have_their_names_everywhere() {
        let mut session = session_of(&[
            "create table t as select * from (values (2.5, 1), (1.9, 2)) x(p, v)",
            "create view s as select p::int, v from t order by p - floor(p)",
            "create table made as select p::int, v from t order by p - floor(p)",
        ]);
        for table in ["s", "made"] {
            assert_eq!(
                cells(&mut session, &format!("select v from {table} where p = 2")),
                [["1"]],
                "{table}"
            );
        }
        let query = "select p::int, v from t order by p - floor(p)";
        assert_eq!(cells(&mut session, query), [["2", "1"], ["1", "2"]]);
        assert_eq!(session.frame(query).columns().expect("names"), ["p", "v"]);
        let t = DataFrame::from_columns([("p", vec![2.5, 1.9].into())]);
        let found = crate::sql("select p::int from t order by p - floor(p)", &[("t", &t)]);
        assert_eq!(found.col("p").values::<i64>().expect("numbers"), [Some(2), Some(1)]);
    }
}
