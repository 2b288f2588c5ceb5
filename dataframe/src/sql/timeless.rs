//! Statements without times, which the rules for times leave as they are. Most statements have none: one
//! look at their schemas saves a look at the type of each part of each expression.

use crate::error::Result;
use crate::functions::arithmetic::is_present;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result as EngineResult};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Functions whose values are no times if their arguments are none.
const OF_NO_TIMES: [&str; 18] = [
    "abs",
    "array_element",
    "btrim",
    "ceil",
    "character_length",
    "coalesce",
    "concat",
    "floor",
    "get_field",
    "greatest",
    "least",
    "lower",
    "nullif",
    "replace",
    "round",
    "sqrt",
    "substr",
    "upper",
];

/// Whether a value of a plan may be a time, or a length of time; also one within a list or a struct.
pub(super) fn has_times(plan: &LogicalPlan) -> Result<bool> {
    let mut has_times = false;
    plan.apply_with_subqueries(|node| {
        has_times = schema_has_times(node.schema()) || makes_times(node)?;
        Ok(if has_times { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(has_times)
}

fn schema_has_times(schema: &DFSchema) -> bool {
    schema.fields().iter().any(|field| is_time(field.data_type()))
}

/// Whether an expression of an operator may make a time within it, which the schema does not show.
fn makes_times(node: &LogicalPlan) -> EngineResult<bool> {
    let mut makes_times = false;
    node.apply_expressions(|expr| {
        makes_times = expr.exists(|part| Ok(may_make_time(part)))?;
        Ok(if makes_times { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(makes_times)
}

/// Whether a part may be a time though its own parts are none. Columns, subqueries, aggregates and windows
/// are in the schema of an operator.
fn may_make_time(part: &Expr) -> bool {
    match part {
        Expr::Literal(value, _) => is_time(&value.data_type()),
        Expr::Cast(cast) => is_time(cast.field.data_type()),
        Expr::TryCast(cast) => is_time(cast.field.data_type()),
        Expr::OuterReferenceColumn(field, _) => is_time(field.data_type()),
        Expr::ScalarFunction(call) => !is_present(&call.func) && !OF_NO_TIMES.contains(&call.func.name()),
        Expr::HigherOrderFunction(_) | Expr::Lambda(_) | Expr::LambdaVariable(_) => true,
        Expr::Placeholder(_) | Expr::ScalarVariable(..) | Expr::Unnest(_) => true,
        _ => false,
    }
}

fn is_time(dtype: &DataType) -> bool {
    match dtype {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => is_time(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| is_time(field.data_type())),
        DataType::Dictionary(_, values) => is_time(values),
        DataType::RunEndEncoded(_, values) => is_time(values.data_type()),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| is_time(field.data_type())),
        dtype => dtype.is_temporal(),
    }
}

#[cfg(test)]
mod tests {
    use super::has_times;
    use crate::engine::block_on;
    use datafusion::prelude::SessionContext;

    #[track_caller]
    fn assert_has_times(query: &str, expected: bool) {
        let state = SessionContext::new().state();
        let query = query.replace('@', "(values (1, 'a')) t(n, s)");
        let plan = block_on(async { Ok(state.create_logical_plan(&query).await?) }).expect(&query);
        assert_eq!(has_times(&plan).expect(&query), expected, "{query}");
    }

    #[test]
    fn a_time_anywhere_in_a_statement_is_found() {
        for query in [
            "select date '2024-03-31' as d from @",
            "select n from @ where now() > '2024-03-31'",
            "select n from @ where s::timestamp = '2024-03-31'",
            "select n from @ where try_cast(s as date) is null",
            "select n from @ where '2024-03-31' < to_timestamp(s)",
            "select date_part('hour', s) from @",
            "select n from @ where n in (select extract(day from interval '1 day'))",
            "select n from @ where exists (select 1 from (select [current_date] as l) u)",
            "select count(*) from (select named_struct('d', s::date) as x from @) u",
            "select count(s::date) from @",
            "select n from @ union by name select current_date as n",
            "select n from @ where s = $1",
        ] {
            assert_has_times(query, true);
        }
    }

    #[test]
    fn statements_of_numbers_and_texts_have_none() {
        for query in [
            "select n, upper(s) from @ where 1 < n and s like 'a%' order by n limit 1",
            "select s, sum(n) over (order by s), case when n < 2 then 'x' else s end from @",
            "select s, count(*), avg(n) from @ group by s having 1 < count(*)",
            "select n from @ union all select round(2.5) from @",
            "select n from @ where n in (select n + 1 from @) or n = (select max(n) from @)",
            "select * from @ join (select n as m from @) u on n = m",
            "select coalesce(n, 1)::text || s from @",
        ] {
            assert_has_times(query, false);
        }
    }
}
