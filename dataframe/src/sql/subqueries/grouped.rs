//! Groups by columns in the place of conditions on subqueries, and of values in sets of groups.

use crate::sql::below::{Below, has_asked};
use crate::sql::clauses::sort_keys::is_unbounded;
use crate::sql::plans::{columns, projection};
use datafusion::common::Result as EngineResult;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use std::sync::Arc;

/// Whether there are sets of groups by values that are no columns. Types are chosen later, and change the
/// texts of some: the library keeps the names of other groups, and loses those in sets.
pub(in crate::sql) fn has_computed_sets(aggregate: &Aggregate) -> bool {
    let mut sets = aggregate.group_expr.iter().filter_map(|expr| match expr {
        Expr::GroupingSet(set) => Some(set.distinct_expr()),
        _ => None,
    });
    sets.any(|exprs| exprs.into_iter().any(is_computed))
}

fn is_computed(expr: &Expr) -> bool {
    !matches!(expr, Expr::Column(_))
}

/// Groups by columns, which have the names of the expressions that they stand for: the library makes the
/// names of sets of groups of them.
pub(in crate::sql) fn grouped(aggregate: Aggregate) -> EngineResult<Transformed<LogicalPlan>> {
    let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
    let mut below = Below::new("in_aggregate");
    let mut is_renamed = false;
    let mut by_column = |expr: Expr, is_in_set: bool| {
        if !(has_asked(&expr)? || is_in_set && is_computed(&expr)) {
            return Ok(Transformed::no(expr));
        }
        let label = expr.schema_name().to_string();
        let is_there = input.schema().fields().iter().any(|field| *field.name() == label);
        is_renamed |= is_there;
        Ok(Transformed::yes(if is_there { below.column(expr) } else { below.column_of(expr, label) }))
    };
    let groups = group_expr.into_iter().map(|expr| {
        let is_set = matches!(expr, Expr::GroupingSet(_));
        let made =
            if is_set { expr.map_children(|expr| by_column(expr, true))? } else { by_column(expr, false)? };
        Ok(made.data)
    });
    let groups = groups.collect::<EngineResult<Vec<Expr>>>()?;
    let names = NamePreserver::new_for_projection();
    let aggregates = aggr_expr.into_iter().map(|expr| {
        let name = names.save(&expr);
        let expr = with_columns_as_order(expr, &mut below)?;
        // Also the arguments of GROUPING(), which it finds among the groups.
        Ok(name.restore(below.over_columns(expr)?))
    });
    let aggregates = aggregates.collect::<EngineResult<Vec<Expr>>>()?;
    let aggregate = Aggregate::try_new(below.beside(input)?, groups, aggregates)?;
    let made = LogicalPlan::Aggregate(aggregate);
    if !is_renamed {
        return Ok(Transformed::yes(made));
    }
    // The plans above know the keys by their texts, and not the number of the set.
    let own = columns(&made).into_iter().zip(schema.iter());
    let own = own.filter(|(_, (_, field))| field.name() != Aggregate::INTERNAL_GROUPING_ID);
    let own = own.map(|(column, (table, field))| column.alias_qualified(table.cloned(), field.name()));
    Ok(Transformed::yes(Arc::unwrap_or_clone(projection(own.collect(), Arc::new(made))?)))
}

fn with_columns_as_order(expr: Expr, below: &mut Below) -> EngineResult<Expr> {
    let changed = expr.transform_down(|part| {
        let Expr::AggregateFunction(mut call) = part else { return Ok(Transformed::no(part)) };
        // The keys of different values are the values.
        let is_by_values = call.params.distinct;
        for key in &mut call.params.order_by {
            if !is_by_values && is_unbounded(&key.expr)? {
                key.expr = below.column(key.expr.clone());
            }
        }
        Ok(Transformed::yes(Expr::AggregateFunction(call)))
    })?;
    Ok(changed.data)
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::rows;

    #[test]
    fn groups_of_sets_are_conditions_on_subqueries() {
        for (set, expected) in [
            ("rollup (a in (select a from u))", vec!["NULL 40", "NULL 100", "false 10", "true 50"]),
            ("cube (a in (select a from u))", vec!["NULL 40", "NULL 100", "false 10", "true 50"]),
            ("grouping sets ((a in (select a from u)))", vec!["NULL 40", "false 10", "true 50"]),
        ] {
            let query = format!("select a in (select a from u) k, sum(b) from t group by {set}");
            let mut found = rows(&query);
            found.sort();
            let mut expected = expected;
            expected.sort();
            assert_eq!(found, expected, "{query}");
        }
    }

    #[test]
    fn groups_of_sets_keep_their_names_where_types_are_chosen() {
        let key = "coalesce(not a in (1, 2), null)";
        let query = format!("select {key} k, sum(b) from t group by rollup ({key}) order by 1 nulls last, 2");
        assert_eq!(rows(&query), ["false 30", "true 30", "NULL 40", "NULL 100"]);
        let query = "select a + 1.5 k, b > 10 l, grouping(a + 1.5) g, count(*) from t \
                     group by grouping sets ((a + 1.5), (b > 10), ()) order by g, 1 nulls last, 2 nulls last";
        let expected = ["2.5 NULL 0 1", "3.5 NULL 0 1", "4.5 NULL 0 1", "NULL NULL 0 1"];
        assert_eq!(rows(query)[..4], expected);
        assert_eq!(rows(query)[4..], ["NULL false 1 1", "NULL true 1 3", "NULL NULL 1 4"]);
    }

    #[test]
    fn keys_in_sets_have_the_names_of_columns() {
        let of = "(select b, abs(b) from t) t";
        let query = format!(
            "select abs(b) x, grouping(abs(b)) g, count(*) from {of} group by rollup (abs(b)) order by 1"
        );
        assert_eq!(rows(&query), ["10 0 1", "20 0 1", "30 0 1", "40 0 1", "NULL 1 4"]);
    }

    #[test]
    fn floats_in_sets_are_those_of_frames() {
        let of = "(select a - 1.0e0 x, b - 10.0e0 y from t where a = 1 union all select null, 1.0e0) t";
        for (query, expected) in [
            ("x / y k, count(*) from {} group by rollup (x / y)", ["NULL 2", "NULL 2"].as_slice()),
            ("-x k, count(*) from {} group by rollup (-x)", &["0 1", "NULL 1", "NULL 2"]),
            ("x / y k, grouping(x / y), count(*) from {} group by rollup (x / y)", &["NULL 0 2", "NULL 1 2"]),
        ] {
            let query = query.replace("{}", of);
            assert_eq!(rows(&format!("select {query} order by 1, 2")), expected, "{query}");
        }
    }
}
