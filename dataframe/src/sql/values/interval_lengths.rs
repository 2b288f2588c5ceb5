//! Intervals are compared by their lengths: a month has 30 days and a day 24 hours, as in PostgreSQL.
//!
//! The library compares their months first, then their days. So `interval '25 hours'` would be less than
//! `interval '1 day'`, and so would every difference of times, which has no days. Whatever compares intervals
//! sees their lengths here, as numbers. `min`, `max`, `least` and `greatest` take keys that have the length
//! first, of which the interval is made again; of intervals that are equally long, groups and `DISTINCT` show
//! the one with the fewest months, then days. Differences of times among themselves stay as they are.

use super::clocks::values_of;
use super::types_within::{has, has_intervals, is_interval};
use crate::error::{Error, Result};
use crate::frame::HIDDEN;
use crate::functions::span_lengths::{key, length, of_key, unless_as_long};
use crate::sql::plans::{columns, projection, with_other_types, with_parts_of, with_value};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result as EngineResult};
use datafusion::functions_aggregate::min_max::min_udaf;
use datafusion::logical_expr::expr::{
    AggregateFunction, InSubquery, ScalarFunction, SetComparison, Sort as SortKey, WindowFunction,
};
use datafusion::logical_expr::logical_plan::{Join, Sort, Subquery, Window};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, DistinctOn, Expr, ExprSchemable, LogicalPlan, Operator, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition,
};
use std::sync::Arc;

/// Functions that compare elements of lists.
const OF_ELEMENTS: [&str; 17] = [
    "array_distinct",
    "array_except",
    "array_has",
    "array_has_all",
    "array_has_any",
    "array_intersect",
    "array_max",
    "array_min",
    "array_position",
    "array_positions",
    "array_remove",
    "array_remove_all",
    "array_remove_n",
    "array_replace",
    "array_replace_all",
    "array_sort",
    "array_union",
];

/// The plan whose intervals are compared by their lengths.
pub(in crate::sql) fn by_lengths(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_intervals(&plan)? {
        return Ok(plan);
    }
    Ok(with_other_types(plan, |node| with_parts_of(node, &part)?.transform_data(operator))?)
}

/// A part of an expression that compares lengths.
fn part(mut part: Expr, schema: &DFSchema) -> EngineResult<Transformed<Expr>> {
    let is_new = match &mut part {
        Expr::InSubquery(InSubquery { expr, subquery, .. })
        | Expr::SetComparison(SetComparison { expr, subquery, .. }) => beside_rows(expr, subquery, schema)?,
        Expr::AggregateFunction(call) => aggregate(call, schema)?,
        Expr::WindowFunction(call) => window(call, schema)?,
        Expr::ScalarFunction(call) => {
            let compared = function(call, schema)?;
            return Ok(compared.map_or_else(|| Transformed::no(part), Transformed::yes));
        }
        // A difference of intervals is none of lengths.
        Expr::BinaryExpr(BinaryExpr { op: Operator::Minus, .. }) => false,
        part => {
            let [compared, _] = values_of(part);
            as_lengths(compared, schema, "a comparison")?
        }
    };
    Ok(Transformed::new_transformed(part, is_new))
}

fn type_of(value: &Expr, schema: &DFSchema) -> Option<DataType> {
    value.get_type(schema).ok()
}

fn is_of_intervals(value: &Expr, schema: &DFSchema) -> bool {
    type_of(value, schema).is_some_and(|dtype| is_interval(&dtype))
}

fn is_length_of_time(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Interval(_) | DataType::Duration(_) | DataType::Null)
}

fn refused(what: &str) -> Error {
    Error::NotImplemented(format!(
        "{what} is not supported for intervals, which are compared by their lengths"
    ))
}

/// Refuses what compares lists or structs that have intervals within them.
fn check_within<'a>(types: impl IntoIterator<Item = &'a DataType>, what: &str) -> EngineResult<()> {
    let mut types = types.into_iter();
    if types.any(|dtype| !is_interval(dtype) && has(dtype, is_interval)) {
        return Err(refused(&format!("{what} of lists or structs")).into());
    }
    Ok(())
}

/// Makes lengths of values that are compared, if one of them is an interval. Whether there is one.
fn as_lengths(values: Vec<&mut Expr>, schema: &DFSchema, what: &str) -> EngineResult<bool> {
    let types: Vec<DataType> = values.iter().filter_map(|value| type_of(value, schema)).collect();
    check_within(&types, what)?;
    // The library refuses intervals beside other types, and what has no type yet is compared when it has one.
    let are_lengths = types.len() == values.len() && types.iter().all(is_length_of_time);
    if !are_lengths || !types.iter().any(is_interval) {
        return Ok(false);
    }
    values.into_iter().for_each(measure);
    Ok(true)
}

/// Makes lengths of the intervals among values, such as keys of groups. Whether there are some.
fn each_as_length<'a>(
    values: impl IntoIterator<Item = &'a mut Expr>,
    schema: &DFSchema,
    what: &str,
) -> EngineResult<bool> {
    let mut is_new = false;
    for value in values {
        is_new |= as_lengths(vec![value], schema, what)?;
    }
    Ok(is_new)
}

fn measure(value: &mut Expr) {
    *value = length(std::mem::take(value));
}

fn keys_of(order: &mut [SortKey]) -> impl Iterator<Item = &mut Expr> {
    order.iter_mut().map(|key| &mut key.expr)
}

/// Makes lengths of a value and of the rows that it is compared with. Whether it does.
fn beside_rows(value: &mut Expr, rows: &mut Subquery, schema: &DFSchema) -> EngineResult<bool> {
    let of_rows = rows.subquery.schema().fields().first().map(|field| field.data_type().clone());
    let (Some(own), Some(of_rows)) = (type_of(value, schema), of_rows) else { return Ok(false) };
    let types = [own, of_rows];
    check_within(&types, "a comparison with a subquery")?;
    if !types.iter().all(is_length_of_time) || !types.iter().any(is_interval) {
        return Ok(false);
    }
    rows.subquery = with_value(Arc::clone(&rows.subquery), |value, _| length(value))?;
    measure(value);
    Ok(true)
}

/// A call that compares its arguments as one that compares their lengths; `None` for other calls.
fn function(call: &ScalarFunction, schema: &DFSchema) -> EngineResult<Option<Expr>> {
    let name = call.func.name();
    let types = || call.args.iter().filter_map(|argument| type_of(argument, schema)).collect::<Vec<_>>();
    match (name, call.args.as_slice()) {
        ("greatest" | "least", arguments) => {
            check_within(&types(), name)?;
            if !types().iter().any(is_interval) {
                return Ok(None);
            }
            Ok(Some(of_key(call.func.call(arguments.iter().cloned().map(key).collect()))))
        }
        ("nullif", [value, other]) => {
            check_within(&types(), name)?;
            let is_asked = types().iter().any(is_interval);
            Ok(is_asked.then(|| unless_as_long(value.clone(), other.clone())))
        }
        (name, _) if OF_ELEMENTS.contains(&name) => {
            check_within(&types(), name)?;
            Ok(None)
        }
        _ => Ok(None),
    }
}

fn aggregate(call: &mut AggregateFunction, schema: &DFSchema) -> EngineResult<bool> {
    let is_new = each_as_length(keys_of(&mut call.params.order_by), schema, "ORDER BY")?;
    Ok(is_new | arguments(call.func.name(), call.params.distinct, &mut call.params.args, schema)?)
}

/// Makes lengths of arguments that are counted once for each value. Whether it does. The extremes are found
/// where their values can be made again.
fn arguments(name: &str, is_distinct: bool, args: &mut [Expr], schema: &DFSchema) -> EngineResult<bool> {
    match name {
        "max" | "min" => {
            check_within(
                &args.iter().filter_map(|argument| type_of(argument, schema)).collect::<Vec<_>>(),
                name,
            )?;
            Ok(false)
        }
        "count" if is_distinct => each_as_length(args, schema, "COUNT(DISTINCT ..)"),
        "approx_distinct" => each_as_length(args, schema, name),
        name if is_distinct && args.iter().any(|argument| is_of_intervals(argument, schema)) => {
            Err(refused(&format!("{name}(DISTINCT ..)")).into())
        }
        _ => Ok(false),
    }
}

fn window(call: &mut WindowFunction, schema: &DFSchema) -> EngineResult<bool> {
    let name = call.fun.name().to_owned();
    let params = &mut call.params;
    let is_by_values = each_as_length(keys_of(&mut params.order_by), schema, "ORDER BY")?;
    if is_by_values && has_distances(&params.window_frame) {
        return Err(refused("a RANGE with a distance").into());
    }
    let is_parted = each_as_length(&mut params.partition_by, schema, "PARTITION BY")?;
    Ok(arguments(&name, params.distinct, &mut params.args, schema)? | is_parted | is_by_values)
}

/// Whether a frame ends at a distance from the value of a row.
fn has_distances(frame: &WindowFrame) -> bool {
    let is_distance = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(_) | WindowFrameBound::Following(_) => !bound.is_unbounded(),
        WindowFrameBound::CurrentRow => false,
    };
    frame.units == WindowFrameUnits::Range
        && (is_distance(&frame.start_bound) || is_distance(&frame.end_bound))
}

/// The operator, whose keys are lengths.
fn operator(node: LogicalPlan) -> EngineResult<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Aggregate(aggregate) => grouped(aggregate),
        LogicalPlan::Distinct(distinct) => different(distinct),
        LogicalPlan::Join(join) => joined(join),
        LogicalPlan::Sort(Sort { mut expr, input, fetch }) => {
            let is_new = each_as_length(keys_of(&mut expr), input.schema(), "ORDER BY")?;
            Ok(Transformed::new_transformed(LogicalPlan::Sort(Sort { expr, input, fetch }), is_new))
        }
        LogicalPlan::Window(window) => over_windows(window),
        LogicalPlan::RecursiveQuery(query)
            if query.is_distinct
                && query.schema.fields().iter().any(|field| has(field.data_type(), is_interval)) =>
        {
            Err(refused("UNION in WITH RECURSIVE").into())
        }
        node => Ok(Transformed::no(node)),
    }
}

fn joined(mut join: Join) -> EngineResult<Transformed<LogicalPlan>> {
    let mut is_new = false;
    for (left, right) in &mut join.on {
        let types = [type_of(left, join.left.schema()), type_of(right, join.right.schema())];
        let [Some(of_left), Some(of_right)] = types else { continue };
        let types = [of_left, of_right];
        check_within(&types, "JOIN")?;
        if types.iter().all(is_length_of_time) && types.iter().any(is_interval) {
            measure(left);
            measure(right);
            is_new = true;
        }
    }
    let join = LogicalPlan::Join(join);
    if is_new { join.recompute_schema().map(Transformed::yes) } else { Ok(Transformed::no(join)) }
}

fn different(distinct: Distinct) -> EngineResult<Transformed<LogicalPlan>> {
    match distinct {
        Distinct::All(rows) => {
            let mut fields = rows.schema().fields().iter();
            if !fields.any(|field| has(field.data_type(), is_interval)) {
                return Ok(Transformed::no(LogicalPlan::Distinct(Distinct::All(rows))));
            }
            let own = columns(&rows);
            grouped(Aggregate::try_new(rows, own, Vec::new())?)
        }
        Distinct::On(DistinctOn { mut on_expr, select_expr, mut sort_expr, input, schema }) => {
            let rows = input.schema();
            let is_on_lengths = each_as_length(&mut on_expr, rows, "DISTINCT ON")?;
            let keys = sort_expr.iter_mut().flat_map(|order| keys_of(order));
            let is_new = each_as_length(keys, rows, "ORDER BY")? | is_on_lengths;
            let on = DistinctOn { on_expr, select_expr, sort_expr, input, schema };
            Ok(Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(on)), is_new))
        }
    }
}

/// Columns of an operator that are made of others above it, by their places.
type Made = Vec<Option<Expr>>;

fn hidden(kind: &str, at: usize) -> String {
    format!("{HIDDEN}{kind}_{at}")
}

fn of_label(label: &str) -> Expr {
    of_key(Expr::Column(Column::new_unqualified(label)))
}

/// The columns of an operator under their old names, of which some are made of keys.
fn with_made(node: LogicalPlan, before: &DFSchema, made: Made) -> EngineResult<Transformed<LogicalPlan>> {
    let own =
        before.iter().zip(made).filter(|((_, field), _)| field.name() != Aggregate::INTERNAL_GROUPING_ID);
    let own = own.map(|((table, field), made)| match made {
        Some(made) => made.alias_qualified(table.cloned(), field.name()),
        None => Expr::Column(Column::new(table.cloned(), field.name())),
    });
    let rows = projection(own.collect(), Arc::new(node))?;
    Ok(Transformed::yes(Arc::unwrap_or_clone(rows)))
}

/// Groups by lengths, with the least interval of each group, and the extremes of keys.
fn grouped(aggregate: Aggregate) -> EngineResult<Transformed<LogicalPlan>> {
    let before = Arc::clone(&aggregate.schema);
    let rows = Arc::clone(aggregate.input.schema());
    let first = before.fields().len().saturating_sub(aggregate.aggr_expr.len());
    let mut made: Made = vec![None; before.fields().len()];
    let (mut groups, mut aggregates) = (Vec::new(), Vec::new());
    for (at, group) in aggregate.group_expr.iter().enumerate() {
        if let Expr::GroupingSet(set) = group {
            if set.distinct_expr().iter().any(|expr| is_of_intervals(expr, &rows)) {
                return Err(refused("a set of groups (ROLLUP, CUBE, GROUPING SETS)").into());
            }
            groups.push(group.clone());
            continue;
        }
        check_within(&type_of(group, &rows), "GROUP BY")?;
        if !is_of_intervals(group, &rows) {
            groups.push(group.clone());
            continue;
        }
        let bare = group.clone().unalias_nested().data;
        let label = hidden("interval", at);
        groups.push(length(bare.clone()).alias(hidden("length", at)));
        aggregates.push(min_udaf().call(vec![key(bare)]).alias(&label));
        if let Some(made) = made.get_mut(at) {
            *made = Some(of_label(&label));
        }
    }
    let mut values = Vec::new();
    for (at, expr) in aggregate.aggr_expr.iter().enumerate() {
        values.push(extreme(expr, &rows, first + at, &mut made));
    }
    if made.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let aggregates = values.into_iter().chain(aggregates).collect();
    let changed = Aggregate::try_new(aggregate.input, groups, aggregates)?;
    with_made(LogicalPlan::Aggregate(changed), &before, made)
}

fn over_windows(window: Window) -> EngineResult<Transformed<LogicalPlan>> {
    let before = Arc::clone(&window.schema);
    let rows = Arc::clone(window.input.schema());
    let first = rows.fields().len();
    let mut made: Made = vec![None; before.fields().len()];
    let values = window.window_expr.iter().enumerate();
    let values = values.map(|(at, expr)| extreme(expr, &rows, first + at, &mut made)).collect();
    if made.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Window(window)));
    }
    let changed = Window::try_new(values, window.input)?;
    with_made(LogicalPlan::Window(changed), &before, made)
}

/// The extreme of keys in the place of that of intervals, of which the column at this place is made; other
/// expressions stay.
fn extreme(expr: &Expr, rows: &DFSchema, at: usize, made: &mut Made) -> Expr {
    let mut bare = expr.clone().unalias_nested().data;
    let args = match &mut bare {
        Expr::AggregateFunction(call) if is_extreme(call.func.name()) => &mut call.params.args,
        Expr::WindowFunction(call) if matches!(&call.fun, WindowFunctionDefinition::AggregateUDF(function) if is_extreme(function.name())) => {
            &mut call.params.args
        }
        _ => return expr.clone(),
    };
    match (args.as_mut_slice(), made.get_mut(at)) {
        ([value], Some(made)) if is_of_intervals(value, rows) => {
            *value = key(std::mem::take(value));
            let label = hidden("extreme", at);
            *made = Some(of_label(&label));
            bare.alias(label)
        }
        _ => expr.clone(),
    }
}

fn is_extreme(function: &str) -> bool {
    matches!(function, "max" | "min")
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::sql::small_tables::{cells, rows_in, session_of};

    const SECOND_OF_JANUARY: &str = "(timestamp '2024-01-02' - timestamp '2024-01-01')";

    #[test]
    fn intervals_are_compared_by_their_lengths() {
        let mut session = session_of(&[]);
        for condition in [
            "interval '25 hours' > interval '1 day'",
            "interval '40 days' > interval '1 month'",
            "interval '24 hours' = interval '1 day'",
            "interval '1 month' = interval '30 days'",
            "interval '1 year' < interval '366 days'",
            "interval '-1 month' < interval '-29 days'",
            "not interval '1 month' <> interval '720 hours'",
            "@ = interval '1 day'",
            "interval '1 day' = @",
            "@ >= interval '24 hours'",
            "not @ < interval '1 day'",
            "@ is not distinct from interval '1 day'",
            "@ - interval '1 hour' < interval '1 day'",
            "@ between interval '1 day' and interval '1 month'",
            "interval '1 day' in (@, interval '2 days')",
            "interval '1 day' not in (interval '25 hours', interval '1 month')",
            "case @ when interval '1 day' then true else false end",
            "nullif(interval '24 hours', interval '1 day') is null",
            "nullif(@, interval '1 day') is null",
            "nullif(@, interval '2 days') = @",
            "nullif(interval '1 day', null) = @",
            "greatest(interval '1 day', interval '25 hours', null)::text = interval '25 hours'::text",
            "least(interval '1 month', interval '40 days')::text = interval '1 month'::text",
            "greatest(@, interval '23 hours') = interval '1 day'",
            "coalesce(@, interval '1 month') < interval '25 hours'",
            "interval '1 day' in (select @)",
            "interval '25 hours' > all (select interval '1 day')",
            "interval '1 day' = any (select @)",
            "(select count(*) from (select @ d) t where d > interval '23 hours' and d < interval '1 month') = 1",
            "(interval '1 day' = null) is null",
            "now() - timestamptz '2024-01-01' > interval '30 days'",
            "timestamp '2024-06-02' - timestamp '2024-01-01' >= interval '90 days'",
        ] {
            let condition = condition.replace('@', SECOND_OF_JANUARY);
            if !condition.contains("(select") {
                assert_eq!(cells(&mut session, &format!("select {condition}")), [["true"]], "{condition}");
            }
            let filter = format!("select count(*) from (values (1)) t(n) where {condition}");
            assert_eq!(cells(&mut session, &filter), [["1"]], "{condition}");
        }
    }

    /// Intervals: `a` and `b` are equally long.
    fn session() -> SqlSession {
        session_of(&[
            "create table t (n int, s text, i interval) as values (1, 'a', interval '24 hours'), \
             (2, 'b', interval '1 day'), (3, 'c', interval '25 hours'), (4, 'd', interval '40 days'), \
             (5, 'e', interval '1 month'), (6, 'f', null)",
            "create table w (s text, d interval) as values ('x', interval '1 day'), ('y', interval '30 days')",
            "create view v as select s, i from t where i >= interval '1 day'",
        ])
    }

    #[test]
    fn operators_compare_columns_by_their_lengths() {
        let mut session = session();
        for (query, expected) in [
            ("select s from t order by i, s", "a b c e d f"),
            ("select s from t order by i desc nulls last, s limit 2", "d e"),
            ("select s from (select * from t order by i desc nulls last limit 1) u", "d"),
            (
                "select max(i)::text = interval '40 days'::text, min(i)::text = interval '24 hours'::text from t",
                "true true",
            ),
            ("select s from t where i = (select max(i) from t)", "d"),
            ("select s from t where i > interval '1 day' order by s", "c d e"),
            ("select count(*) from v", "5"),
            ("select max(i) = interval '40 days' from v", "true"),
            ("select count(distinct i) from t", "4"),
            ("select approx_distinct(i) from t", "4"),
            ("select count(*) from (select distinct i from t) u", "5"),
            ("select count(*) from (select i from t union select d from w) u", "5"),
            ("select count(*) from (select i from t intersect select d from w) u", "2"),
            ("select count(*) from (select i from t except select d from w) u", "3"),
            ("select count(*) n from t group by i order by i nulls last", "2 1 1 1 1"),
            ("select count(*) n from t group by i having i < interval '25 hours'", "2"),
            ("select string_agg(s, '' order by i desc nulls last, s) from t", "decabf"),
            ("select distinct on (i) s from t order by i, s", "a c e d f"),
            ("select t.s || w.s from t join w on t.i = w.d order by 1", "ax bx ey"),
            ("select t.s || w.s from t join w on t.i > w.d order by 1", "cx dx dy ex"),
            ("select t.s from t join (select d as i from w) w using (i) order by 1", "a b e"),
            ("select s from t where i in (select d from w) order by 1", "a b e"),
            ("select s from t where exists (select 1 from w where w.d = t.i) order by 1", "a b e"),
            ("select rank() over (order by i) from t order by n", "1 1 3 5 4 6"),
            ("select count(*) over (partition by i) from t order by n", "2 2 1 1 1 1"),
            (
                "select max(i) over (order by n rows 1 preceding) = interval '40 days' m from t order by n",
                "false false false true true false",
            ),
            ("select s from t qualify i = max(i) over () order by s", "d"),
        ] {
            assert_eq!(rows_in(&mut session, query).join(" "), expected, "{query}");
        }
        cells(&mut session, "prepare longer(interval) as select count(*) from t where i > $1");
        assert_eq!(cells(&mut session, "execute longer(interval '1 day')"), [["3"]]);
    }

    #[test]
    fn columns_keep_their_names() {
        let mut session = session();
        let query = "select u.i is null, m is null, \"c\" from (select t.i, max(i) as m, count(distinct i) as \"c\" \
                     from t where s = 'a' group by t.i) u";
        assert_eq!(cells(&mut session, query), [["false", "false", "1"]]);
    }

    #[test]
    fn keys_that_are_equally_long_are_equal() {
        let mut session = session_of(&["create table k (i interval primary key)"]);
        cells(&mut session, "insert into k values (interval '1 day')");
        assert!(session.run("insert into k values (interval '24 hours')").is_err());
        cells(&mut session, "insert into k values (interval '25 hours')");
    }

    #[test]
    fn comparisons_without_lengths_are_refused() {
        let mut session = session();
        for (query, what) in [
            ("select array_sort(array_agg(i)) from t", "array_sort"),
            ("select array_has([interval '24 hours'], interval '1 day')", "array_has"),
            ("select [i] = [i] from t", "comparison"),
            ("select count(*) from t group by rollup (i)", "ROLLUP"),
            ("select array_agg(distinct i) from t", "array_agg(DISTINCT"),
            (
                "select sum(n) over (order by i range between interval '1 day' preceding and current row) from t",
                "RANGE",
            ),
            ("select s from t order by [i]", "ORDER BY"),
        ] {
            let error = session.run(query).expect_err(query);
            assert_eq!(error.class(), "NotImplemented", "{query}: {error}");
            assert!(error.to_string().contains(what), "{query}: {error}");
        }
    }
}
