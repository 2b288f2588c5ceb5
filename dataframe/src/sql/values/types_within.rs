//! Types of values within a statement: whether there are times, and whether there are decimals. The rules for
//! these leave a statement without them as it is. Most have none: one look at their schemas saves a look at
//! the type of each part of each expression. A function may make such values of others, so each one counts as
//! if it did, but for a few that are known not to.

use crate::error::Result;
use crate::functions::arithmetic::is_present;
use arrow::datatypes::DataType;
use datafusion::common::Result as EngineResult;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Functions whose values are no times, and no decimals, if their arguments are none.
const OF_OTHERS: [&str; 18] = [
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
pub(in crate::sql) fn has_times(plan: &LogicalPlan) -> Result<bool> {
    has_values(plan, DataType::is_temporal)
}

/// Whether a value of a plan may be an interval; also one within a list or a struct.
pub(super) fn has_intervals(plan: &LogicalPlan) -> Result<bool> {
    has_values(plan, is_interval)
}

pub(super) fn is_interval(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Interval(_))
}

/// Whether a value of a plan may be a decimal. The library makes decimals of unsigned numbers, too.
pub(in crate::sql) fn has_decimals(plan: &LogicalPlan) -> Result<bool> {
    has_values(plan, |dtype| dtype.is_decimal() || *dtype == DataType::UInt64)
}

fn has_values(plan: &LogicalPlan, is_asked: fn(&DataType) -> bool) -> Result<bool> {
    let mut has_values = false;
    plan.apply_with_subqueries(|node| {
        let mut fields = node.schema().fields().iter();
        has_values = fields.any(|field| has(field.data_type(), is_asked)) || makes_values(node, is_asked)?;
        Ok(if has_values { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(has_values)
}

/// Whether an expression of an operator may make such a value within it, which the schema does not show.
fn makes_values(node: &LogicalPlan, is_asked: fn(&DataType) -> bool) -> EngineResult<bool> {
    let mut makes_values = false;
    node.apply_expressions(|expr| {
        makes_values = expr.exists(|part| Ok(may_make(part, is_asked)))?;
        Ok(if makes_values { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(makes_values)
}

/// Whether a part may be such a value though its own parts are none. Columns, subqueries, aggregates and
/// windows are in the schema of an operator.
fn may_make(part: &Expr, is_asked: fn(&DataType) -> bool) -> bool {
    match part {
        Expr::Literal(value, _) => has(&value.data_type(), is_asked),
        Expr::Cast(cast) => has(cast.field.data_type(), is_asked),
        Expr::TryCast(cast) => has(cast.field.data_type(), is_asked),
        Expr::OuterReferenceColumn(field, _) => has(field.data_type(), is_asked),
        Expr::ScalarFunction(call) => !is_present(&call.func) && !OF_OTHERS.contains(&call.func.name()),
        Expr::HigherOrderFunction(_) | Expr::Lambda(_) | Expr::LambdaVariable(_) => true,
        Expr::Placeholder(_) | Expr::ScalarVariable(..) | Expr::Unnest(_) => true,
        _ => false,
    }
}

/// Whether a type is one that is asked for, or has one within it.
pub(super) fn has(dtype: &DataType, is_asked: fn(&DataType) -> bool) -> bool {
    let has = |dtype: &DataType| has(dtype, is_asked);
    match dtype {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => has(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has(field.data_type())),
        DataType::Dictionary(_, values) => has(values),
        DataType::RunEndEncoded(_, values) => has(values.data_type()),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| has(field.data_type())),
        dtype => is_asked(dtype),
    }
}

#[cfg(test)]
mod tests {
    use super::{has_decimals, has_times};
    use crate::engine::block_on;
    use datafusion::logical_expr::LogicalPlan;
    use datafusion::prelude::SessionContext;

    #[track_caller]
    fn planned(query: &str) -> LogicalPlan {
        let state = SessionContext::new().state();
        let query = query.replace('@', "(values (1, 'a')) t(n, s)");
        block_on(async { Ok(state.create_logical_plan(&query).await?) }).expect(&query)
    }

    #[track_caller]
    fn assert_has_times(query: &str, expected: bool) {
        assert_eq!(has_times(&planned(query)).expect(query), expected, "{query}");
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

    #[test]
    fn a_decimal_anywhere_in_a_statement_is_found() {
        for (query, expected) in [
            ("select n from @ where n::decimal(10, 2) < 0.5", true),
            ("select n from @ where arrow_cast(n, 'Decimal128(10, 2)') < 0.5", true),
            ("select n from (select row_number() over () as n from @) u where n - 1 < 0.5", true),
            ("select n from @ where n < 0.5", false),
            ("select n from @ where s::date < now()", true),
        ] {
            let plan = planned(query);
            assert_eq!(has_decimals(&plan).expect(query), expected, "{query}");
        }
    }
}
