//! Checked arithmetic in the plans of statements: in SQL a result that has no room is an error. Floats that
//! leave a frame of rows leave nothing in its sums.
//!
//! Frames wrap, as pandas does, and their plans stay as they are.

use crate::error::Result;
use crate::functions::checked::{checked, checked_negative, checked_sum, checked_window};
use crate::functions::moving::moving_window;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result as EngineResult};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

/// The plan with checked operators and sums in the place of those of the library.
pub(in crate::sql) fn with_checks(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        // Keys of windows, and filters of aggregates, are in the names of columns as they are written: the
        // plans above find these columns by the names that they had.
        let names = NamePreserver::new(&node);
        let checked = node.map_expressions(|expr| {
            let is_named = !matches!(expr, Expr::GroupingSet(_));
            let name = names.save(&expr);
            let checked = expr.transform_up(|part| with_check(part, &schema))?;
            Ok(if checked.transformed && is_named {
                checked.update_data(|expr| name.restore(expr))
            } else {
                checked
            })
        })?;
        if checked.transformed { checked.map_data(LogicalPlan::recompute_schema) } else { Ok(checked) }
    })?;
    Ok(changed.data)
}

/// The expression, or a checked one in its place.
pub(in crate::sql) fn with_check(part: Expr, schema: &DFSchema) -> EngineResult<Transformed<Expr>> {
    // A parameter has no type before it has a value; then the plan comes here again.
    let checked = match &part {
        Expr::BinaryExpr(binary) => match (binary.left.get_type(schema), binary.right.get_type(schema)) {
            (Ok(left), Ok(right)) => checked(binary, &left, &right),
            _ => None,
        },
        Expr::Negative(value) => {
            value.get_type(schema).ok().and_then(|dtype| checked_negative(value, &dtype))
        }
        Expr::AggregateFunction(call) => match call.params.args.as_slice() {
            [value] => value.get_type(schema).ok().and_then(|dtype| checked_sum(call, &dtype)),
            _ => None,
        },
        Expr::WindowFunction(call) => {
            let types = call.params.args.iter().map(|value| value.get_type(schema).ok());
            let types: Option<Vec<DataType>> = types.collect();
            types.and_then(|types| match types.as_slice() {
                [dtype] => checked_window(call, dtype).or_else(|| moving_window(call, &types)),
                _ => moving_window(call, &types),
            })
        }
        _ => None,
    };
    Ok(match checked {
        Some(checked) => Transformed::yes(checked),
        None => Transformed::no(part),
    })
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::sql::small_tables::{cells, rows_in, session_of};

    fn session() -> SqlSession {
        session_of(&["create table t as values (1, 9223372036854775807), (2, 1), (1, -5)"])
    }

    #[track_caller]
    fn rows(query: &str) -> Vec<Vec<String>> {
        cells(&mut session(), query)
    }

    #[test]
    fn a_result_without_room_is_an_error() {
        for query in [
            "select 9223372036854775807 + 1",
            "select column2 + 1 from t",
            "select column2 * 2 from t",
            "select -2 - column2 from t where column2 > 5",
            "select sum(column2) from t where column2 > 0",
            "select sum(column2) from (select column2 from t union all select column2 from t)",
            "select column1 from t where column2 * column2 > 5",
            "select 1 where (select sum(column2 + 0) from t where column2 > 0) > 0",
            // Names of columns have these conditions in them.
            "select count(*) filter (where column2 + 1 > 2) from t",
            "select sum(column2), count(*) filter (where column1 + 1 > 2) from t where column2 > 0",
            "select row_number() over (order by column2 * 2) from t",
            "select sum(column2) over () from t where column2 > 0",
            "select sum(column2) over (order by column1 rows 1 preceding) from t where column2 > 0",
            "select sum(column2) filter (where column2 > 0) over () from t",
            "select sum(distinct column2) over () from t where column2 > 0",
            "select sum(distinct column2) over (order by column1 rows 1 preceding) from t where column2 > 0",
            "select sum(distinct column2) from t where column2 > 0",
            "select sum(distinct column2), count(distinct column1) from t where column2 > 0",
            "select -(column2 * -1 - 1) from t where column2 > 5",
            "select -column2 - 2 from t where column2 > 5",
            "select arrow_cast(1, 'UInt64') - arrow_cast(2, 'UInt64')",
            "select arrow_cast(200, 'UInt8') + arrow_cast(100, 'UInt8')",
            "select column2 + arrow_cast(1, 'UInt32') from t",
            "select u + u + u from (select arrow_cast(column2, 'UInt64') u from t where column2 > 5)",
            "select sum(u) from (select arrow_cast('18446744073709551615', 'UInt64') u from t)",
        ] {
            let error = session().run(query).err().unwrap_or_else(|| panic!("{query} has a result"));
            assert!(
                error.to_string().to_lowercase().contains("overflow") || error.to_string().contains("range")
            );
            assert_eq!(error.class(), "OverflowError", "{query}: {error}");
        }
    }

    #[test]
    fn prepared_statements_are_checked() {
        let mut session = SqlSession::default();
        session.run("prepare sums(bigint, bigint) as select $1 + $2").expect("a statement");
        assert_eq!(session.run("execute sums(1, 2)").expect("a sum"), [["3"]]);
        let error = session.run("execute sums(9223372036854775807, 1)").unwrap_err();
        assert_eq!(error.class(), "OverflowError", "{error}");
    }

    #[test]
    fn sums_of_windows_and_of_different_values_are_as_before() {
        let sliding = "select sum(column1) over (order by column2 rows 1 preceding) from t order by column2";
        assert_eq!(rows(sliding), [["1"], ["3"], ["3"]]);
        let missing = "select sum(nullif(column2, 1)) over (order by column2 rows 0 preceding) from t \
                       order by column2 limit 2";
        assert_eq!(rows(missing), [["-5"], ["NULL"]]);
        // A value leaves the sum with the last of its rows.
        let different = "select sum(distinct v) over (order by k rows 2 preceding) \
                         from (values (1, 5), (2, 5), (3, 7), (4, 5), (5, 5), (6, 5), (7, null)) s (k, v) \
                         order by k";
        assert_eq!(rows(different).concat(), ["5", "5", "12", "12", "12", "5", "5"]);
        assert_eq!(rows("select sum(column2) filter (where column1 = 1) over () from t limit 1").len(), 1);
        assert_eq!(rows("select sum(distinct column1), count(distinct column2) from t"), [["3", "3"]]);
        assert_eq!(rows("select sum(distinct column1), sum(distinct column2) from t where false").len(), 1);
        // Sorts by results of these functions are known as such, also among several partitions.
        let sorted = "select sum(column1) over (partition by column1 between 0 and column1 - column1 \
                      order by abs(column1 + 1), column2) s from t order by s";
        assert_eq!(rows(sorted).concat(), ["1", "2", "4"]);
        assert_eq!(rows("select -column1 from t group by -column1 order by -column1"), [["-2"], ["-1"]]);
        assert_eq!(rows("select arrow_typeof(sum(arrow_cast(column1, 'UInt8'))) from t"), [["UInt64"]]);
        let all = rows("select count(*) filter (where column1 + 1 > 2) n, -column1 from t group by column1");
        assert_eq!(all.len(), 2);
    }

    #[test]
    fn floats_that_leave_a_frame_leave_nothing_behind() {
        let mut session = session_of(&[
            "create table w (i int, x double, y double) as values (1, 1e17, 1.0), (2, 1.0, 3.0), \
             (3, 3.0, 5.0), (4, 1.0, 3.0), (5, 3.0, 7.0)",
            "create table f (i int, x double) as select i, case when i = 2 then 1.0 / 0 else 1.0 end x \
             from generate_series(1, 4) t(i)",
            "create table d (i int, x double) as values (1, 0.1), (2, 0.2), (3, 0.0), (4, 0.0), (5, null), (6, null)",
            "create table s (i int, x double) as values (1, 999999999.0), (2, 21.5), (3, 22.0), (4, 21.7), (5, 22.1)",
        ]);
        for (value, of_table, expected) in [
            ("sum(x) over (order by i rows 1 preceding)", "w", "4 4 4"),
            ("avg(x) over (order by i rows 1 preceding)", "w", "2 2 2"),
            ("avg(x::bigint) over (order by i rows 1 preceding)", "w", "2 2 2"),
            ("sum(x) over (order by i rows between current row and unbounded following)", "w", "7 4 3"),
            ("sum(x) over (order by i rows between current row and 1 following)", "w", "4 4 3"),
            ("sum(x) over (order by i range between 1 preceding and current row)", "w", "4 4 4"),
            ("sum(x) filter (where x < 3) over (order by i rows 1 preceding)", "w", "1 1 1"),
            ("var(x) over (order by i rows 1 preceding)", "w", "2 2 2"),
            ("stddev_pop(x) over (order by i rows 1 preceding)", "w", "1 1 1"),
            ("var_pop(x) over (order by i rows 1 preceding)", "w", "1 1 1"),
            ("stddev(x) over (order by i rows 0 preceding)", "w", "NULL NULL NULL"),
            ("covar_samp(y, x) over (order by i rows 1 preceding)", "w", "2 2 4"),
            ("covar_pop(x, y) over (order by i rows 1 preceding)", "w", "1 1 2"),
            ("round(corr(x, y) over (order by i rows 1 preceding), 9)", "w", "1 1 1"),
            ("regr_slope(y, x) over (order by i rows 1 preceding)", "w", "1 1 2"),
            ("regr_intercept(y, x) over (order by i rows 1 preceding)", "w", "2 2 1"),
            ("regr_avgx(y, x) over (order by i rows 1 preceding)", "w", "2 2 2"),
            ("regr_sxx(y, x) over (order by i rows 1 preceding)", "w", "2 2 2"),
            ("sum(x) over (order by i rows 1 preceding)", "f", "inf 2"),
            ("case when i = 3 then 0 else var(x) over (order by i rows 1 preceding) end", "f", "0 0"),
            ("sum(x) over (order by i rows 1 preceding)", "d", "0.2 0 0 NULL"),
            ("round(stddev(x) over (order by i rows 1 preceding), 4)", "s", "0.3536 0.2121 0.2828"),
            ("round(avg(x) over (order by i rows 1 preceding), 4)", "s", "21.75 21.85 21.9"),
        ] {
            let query = format!("select {value} v from {of_table} order by i offset 2");
            assert_eq!(rows_in(&mut session, &query).join(" "), expected, "{value}");
        }
        // Columns keep their names, also within expressions.
        let query =
            "select v from (select sum(x) over (order by i rows 1 preceding) * 2 as v from w) t where v = 8";
        assert_eq!(rows_in(&mut session, query).len(), 3);
    }

    #[test]
    fn results_with_room_and_their_labels_are_as_before() {
        assert_eq!(rows("select sum(column2) from t where column2 < 2"), [["-4"]]);
        // Sums of some rows may be larger than that of all.
        assert_eq!(rows("select sum(column2) from t where column2 <> 1"), [["9223372036854775802"]]);
        let query = "select column1 + 1, sum(column1 * (column1 + 1)) s from t group by column1 + 1 \
                     having sum(column1 * (column1 + 1)) > 1 order by column1 + 1";
        assert_eq!(rows(query), [["2", "4"], ["3", "6"]]);
        assert_eq!(rows("select sum(column1) filter (where column2 < 2) from t"), [["3"]]);
        assert_eq!(
            rows("select column1, sum(column1) from t group by rollup(column1) order by 1, 2").len(),
            3
        );
        assert_eq!(rows("select a.column1 from t a join t b on a.column1 = b.column1 + 1"), [["2"], ["2"]]);
        assert_eq!(rows("select sum(distinct column1), sum(column1 + 0.5) from t"), [["3", "5.5"]]);
        assert_eq!(rows("select sum(column1) over (order by column2) from t order by column2")[2], ["4"]);
        let keys = "select row_number() over (order by column1 + column2) from t where column2 < 2";
        assert_eq!(rows(keys).len(), 2);
        assert_eq!(rows("select count(*) filter (where column1 + 1 > 2) from t"), [["1"]]);
        assert_eq!(rows("select 2 - cast(3 as smallint) * 4, date '2024-01-01' + interval '1 day'").len(), 1);
    }
}
