//! `ASOF JOIN`: each row with the one of another table whose key is the nearest one before it, or behind it.
//!
//! The parser knows it with `MATCH_CONDITION` alone. `a ASOF JOIN b ON a.k = b.k AND a.t >= b.t` is read as a
//! join with a word that no statement has, and then kept in the form of the parser, whose condition says
//! whether it is an inner or a left join. The library plans neither.
//!
//! The rows of both tables are put below each other, as `merge_asof` of frames does it, and a window has the
//! last row of the other table for each. So rows are sorted, and there are no pairs of all rows of a key.

use super::joins::each_join;
use crate::error::{Error, Result};
use crate::frame::named;
use crate::functions::last_present;
use crate::sql::plans::columns;
use crate::sql::values::type_names::type_name;
use crate::sql::values::union_types::of_all;
use crate::sql::words::is_word;
use arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, Result as EngineResult, ScalarValue};
use datafusion::functions::core::expr_fn::{get_field, named_struct};
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::expr_fn::when;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::{
    Expr as SqlExpr, Join, JoinConstraint, JoinOperator, ObjectName, Select, Spanned, TableFactor,
    TableWithJoins, Value, ValueWithSpan, VisitMut, VisitorMut,
};
use datafusion::logical_expr::sqlparser::tokenizer::{Span, Token, TokenWithSpan};
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, cast, lit,
};
use datafusion::sql::parser::{CopyToSource, Statement};
use std::ops::ControlFlow;
use std::sync::Arc;

pub(in crate::sql) const ASOF: &str = "asof";
/// A word before `JOIN` that is refused wherever it is written.
const MARK: &str = "global";
/// Words of the form that the parser knows, and of statements that are left as they are.
const OTHERS: [&str; 2] = [MARK, "match_condition"];
/// Words behind which no table ends.
const WITHIN: [&str; 10] = ["and", "as", "between", "by", "like", "not", "on", "or", "select", "where"];

const INNER: &str = "inner";
const LEFT: &str = "left";

/// Writes a mark in the place of each ASOF before a join; whether there is one.
pub(in crate::sql) fn mark(tokens: &mut [TokenWithSpan]) -> bool {
    if tokens.iter().any(|token| is_word(token, &OTHERS)) {
        return false;
    }
    let mut has_some = false;
    for at in 1..tokens.len().saturating_sub(1) {
        let is_join = is_word(&tokens[at + 1], &["full", "inner", "join", "left", "right"]);
        if is_join && is_word(&tokens[at], &[ASOF]) && ends_table(&tokens[at - 1]) {
            tokens[at].token = Token::make_keyword(MARK);
            has_some = true;
        }
    }
    has_some
}

fn ends_table(token: &TokenWithSpan) -> bool {
    let may_end = matches!(token.token, Token::RParen | Token::SingleQuotedString(_) | Token::Word(_));
    may_end && !is_word(token, &WITHIN)
}

/// Writes joins with a mark in the form of the parser.
pub(in crate::sql) fn write_kinds(statement: &mut Statement) {
    match statement {
        Statement::Statement(statement) => write_each(&mut **statement),
        Statement::CopyTo(copy) => {
            if let CopyToSource::Query(query) = &mut copy.source {
                write_each(&mut **query);
            }
        }
        Statement::Explain(explain) => write_kinds(&mut explain.statement),
        Statement::CreateExternalTable(_) | Statement::Reset(_) => {}
    }
}

fn write_each(part: &mut impl VisitMut) {
    // It never breaks off.
    let _whole = each_join(part, |join| {
        if join.global {
            write_kind(join);
        }
        ControlFlow::<()>::Continue(())
    });
}

fn write_kind(join: &mut Join) {
    let (kind, on) = match &join.join_operator {
        JoinOperator::Join(on) | JoinOperator::Inner(on) => (INNER, on),
        JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => (LEFT, on),
        JoinOperator::Right(on) | JoinOperator::RightOuter(on) => ("right", on),
        JoinOperator::FullOuter(on) => ("full", on),
        // It is refused with its mark.
        _ => return,
    };
    let match_condition = SqlExpr::Value(Value::SingleQuotedString(kind.to_owned()).with_empty_span());
    let operator = JoinOperator::AsOf { match_condition, constraint: on.clone() };
    join.join_operator = operator;
    join.global = false;
}

/// The kind of such a join; an empty text for one in the words of other databases.
fn kind(operator: &JoinOperator) -> Option<&str> {
    match operator {
        JoinOperator::AsOf {
            match_condition: SqlExpr::Value(ValueWithSpan { value: Value::SingleQuotedString(kind), .. }),
            ..
        } => Some(kind),
        JoinOperator::AsOf { .. } => Some(""),
        _ => None,
    }
}

/// The first such join of a kind that there is not, and its place.
pub(in crate::sql) fn refused(part: &mut impl VisitMut) -> Option<(Error, Span)> {
    let found = each_join(part, |join| match kind(&join.join_operator) {
        Some(kind) if kind != INNER && kind != LEFT => {
            ControlFlow::Break((kind.to_uppercase(), join.relation.span()))
        }
        _ => ControlFlow::Continue(()),
    });
    let (kind, span) = found.break_value()?;
    let text = if kind.is_empty() {
        "MATCH_CONDITION of ASOF JOIN is not supported: write on a.k = b.k and a.t >= b.t".to_owned()
    } else {
        format!("ASOF {kind} JOIN is not supported; there are ASOF JOIN and ASOF LEFT JOIN")
    };
    Some((Error::NotImplemented(text), span))
}

/// Writes each such join in parentheses, with all that stands before it: these are planned here.
pub(in crate::sql) fn write_tables(part: &mut impl VisitMut) {
    // It never breaks off.
    let _whole = part.visit(&mut Tables);
}

struct Tables;

impl VisitorMut for Tables {
    type Break = ();

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select.from.iter_mut().for_each(write_parentheses);
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            write_parentheses(table_with_joins);
        }
        ControlFlow::Continue(())
    }
}

fn write_parentheses(tables: &mut TableWithJoins) {
    if !tables.joins.iter().any(|join| kind(&join.join_operator).is_some()) {
        return;
    }
    for join in std::mem::take(&mut tables.joins) {
        if kind(&join.join_operator).is_none() {
            tables.joins.push(join);
            continue;
        }
        let nothing = SqlExpr::Value(Value::Null.with_empty_span());
        let nothing = TableFactor::TableFunction { expr: nothing, alias: None };
        let first = std::mem::replace(&mut tables.relation, nothing);
        let before = std::mem::take(&mut tables.joins);
        let relation = if before.is_empty() { first } else { in_parentheses(first, before) };
        tables.relation = in_parentheses(relation, vec![join]);
    }
}

fn in_parentheses(relation: TableFactor, joins: Vec<Join>) -> TableFactor {
    let table_with_joins = Box::new(TableWithJoins { relation, joins });
    TableFactor::NestedJoin { table_with_joins, alias: None }
}

/// The planner of these tables.
pub(in crate::sql) fn planner() -> Arc<dyn RelationPlanner> {
    Arc::new(AsOfJoins)
}

#[derive(Debug)]
struct AsOfJoins;

impl RelationPlanner for AsOfJoins {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> EngineResult<RelationPlanning> {
        let (tables, alias) = match relation {
            TableFactor::NestedJoin { table_with_joins, alias } if is_alone(&table_with_joins) => {
                (*table_with_joins, alias)
            }
            other => return Ok(RelationPlanning::Original(Box::new(other))),
        };
        let TableWithJoins { relation, joins } = tables;
        let Some(Join { relation: other, join_operator, .. }) = joins.into_iter().next() else {
            return Err(Error::Internal("ASOF JOIN without a table".to_owned()).into());
        };
        if is_lateral(&other) {
            return Err(Error::NotImplemented("ASOF JOIN LATERAL is not supported".to_owned()).into());
        }
        let keeps_all = kind(&join_operator) == Some(LEFT);
        let (left, right) = (context.plan(relation)?, context.plan(other)?);
        let keys = match join_operator {
            JoinOperator::AsOf { constraint: JoinConstraint::On(on), .. } => {
                let both = left.schema().join(right.schema())?;
                Keys::of_condition(context.sql_to_expr(on, &both)?, left.schema(), right.schema())?
            }
            JoinOperator::AsOf { constraint: JoinConstraint::Using(names), .. } => {
                Keys::of_names(names, left.schema(), right.schema(), context)?
            }
            _ => return Err(needs_keys().into()),
        };
        let plan = joined(left, right, keys, keeps_all)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

/// Whether the tables in parentheses are those of one such join.
fn is_alone(tables: &TableWithJoins) -> bool {
    matches!(tables.joins.as_slice(), [Join { join_operator: JoinOperator::AsOf { .. }, .. }])
}

fn is_lateral(table: &TableFactor) -> bool {
    matches!(table, TableFactor::Derived { lateral: true, .. } | TableFactor::Function { lateral: true, .. })
}

/// Values of both tables, the left one first, that are compared.
type Pair = [Expr; 2];

/// The values that a join compares.
struct Keys {
    /// Those that must be equal.
    equal: Vec<Pair>,
    nearest: Pair,
    /// Whether the row that is found stands before the row that asks.
    is_before: bool,
    /// Whether a row with an equal value is found.
    takes_equal: bool,
    /// The columns of the right table that those of the left one stand for.
    merged: Vec<Expr>,
}

impl Keys {
    fn of_condition(condition: Expr, left: &DFSchema, right: &DFSchema) -> Result<Keys> {
        let (mut equal, mut others) = (Vec::new(), Vec::new());
        for part in split_conjunction_owned(condition) {
            let Expr::BinaryExpr(BinaryExpr { left: one, op, right: other }) = part else {
                return Err(needs_keys());
            };
            let (op, pair) = if is_of(&one, left) && is_of(&other, right) {
                (Some(op), [*one, *other])
            } else if is_of(&one, right) && is_of(&other, left) {
                (op.swap(), [*other, *one])
            } else {
                return Err(needs_keys());
            };
            match op {
                Some(Operator::Eq) => equal.push(pair),
                Some(op @ (Operator::Gt | Operator::GtEq | Operator::Lt | Operator::LtEq)) => {
                    others.push((op, pair));
                }
                _ => return Err(needs_keys()),
            }
        }
        let [(op, nearest)] = <[(Operator, Pair); 1]>::try_from(others).map_err(|_| needs_keys())?;
        let is_before = matches!(op, Operator::Gt | Operator::GtEq);
        let takes_equal = matches!(op, Operator::GtEq | Operator::LtEq);
        Ok(Keys { equal, nearest, is_before, takes_equal, merged: Vec::new() })
    }

    /// Columns that must be equal, and a last one that may be greater in the left table.
    fn of_names(
        names: Vec<ObjectName>,
        left: &DFSchema,
        right: &DFSchema,
        context: &mut dyn RelationPlannerContext,
    ) -> EngineResult<Keys> {
        let mut equal = Vec::new();
        for name in names {
            let Some(ident) = name.0.last().and_then(|part| part.as_ident()) else {
                return Err(needs_keys().into());
            };
            let label = context.normalize_ident(ident.clone());
            equal.push([column(left, &label)?, column(right, &label)?]);
        }
        let merged = equal.iter().map(|[_, own]: &Pair| own.clone()).collect();
        let Some(nearest) = equal.pop() else { return Err(needs_keys().into()) };
        Ok(Keys { equal, nearest, is_before: true, takes_equal: true, merged })
    }
}

fn needs_keys() -> Error {
    Error::NotImplemented(
        "ASOF JOIN has keys that are equal, and one that is >=, >, <= or <, each of both tables: write \
         on a.k = b.k and a.t >= b.t, and other conditions in WHERE or in a subquery"
            .to_owned(),
    )
}

/// Whether a value is one of the columns of a table, and the same each time.
fn is_of(value: &Expr, table: &DFSchema) -> bool {
    let columns = value.column_refs();
    let has = |column: &&Column| {
        table.iter().any(|(own, field)| own == column.relation.as_ref() && *field.name() == column.name)
    };
    !columns.is_empty() && columns.iter().all(has) && !value.is_volatile() && !value.contains_outer()
}

fn column(table: &DFSchema, label: &str) -> EngineResult<Expr> {
    let (own, field) = table.qualified_field_with_unqualified_name(label)?;
    Ok(Expr::Column(Column::new(own.cloned(), field.name())))
}

/// The values of a pair in the type in which they are compared.
fn in_one_type(pair: Pair, left: &DFSchema, right: &DFSchema) -> EngineResult<Pair> {
    let [one, other] = pair;
    let (own, asked) = (one.get_type(left)?, other.get_type(right)?);
    if own == asked {
        return Ok([one, other]);
    }
    match of_all(&[&own, &asked]).filter(|_| are_of_kind(&own, &asked)) {
        Some(dtype) => Ok([cast(one, dtype.clone()), cast(other, dtype)]),
        None => {
            let (own, asked) = (type_name(&own), type_name(&asked));
            Err(Error::Type(format!("ASOF JOIN compares {own} and {asked}: cast one of them")).into())
        }
    }
}

/// Whether values of two types are compared as values of the type in which they meet in a union.
fn are_of_kind(one: &DataType, other: &DataType) -> bool {
    let is_date = |dtype: &DataType| matches!(dtype, DataType::Date32 | DataType::Date64);
    let is_text =
        |dtype: &DataType| matches!(dtype, DataType::LargeUtf8 | DataType::Utf8 | DataType::Utf8View);
    match (one, other) {
        (DataType::Dictionary(_, one), other) => one.as_ref() == other || are_of_kind(one, other),
        (one, DataType::Dictionary(_, other)) => one == other.as_ref() || are_of_kind(one, other),
        (DataType::Timestamp(_, zone), DataType::Timestamp(_, other)) => zone == other,
        (DataType::Timestamp(_, None), day) | (day, DataType::Timestamp(_, None)) => is_date(day),
        (one, other) => {
            (one.is_numeric() && other.is_numeric())
                || (is_text(one) && is_text(other))
                || (is_date(one) && is_date(other))
        }
    }
}

const KEY: &str = "__tharsis_asof_key";
const IS_LEFT: &str = "__tharsis_asof_left";
const ROW: &str = "__tharsis_asof_row";

fn by_name(at: usize) -> String {
    format!("__tharsis_asof_by_{at}")
}

fn left_name(at: usize) -> String {
    format!("__tharsis_asof_l_{at}")
}

fn field_name(at: usize) -> String {
    format!("c{at}")
}

/// The rows of two tables below each other: those of the left one by their columns, those of the right one as
/// one value each. Rows of the right one that nothing can be equal to, or near, are left out.
fn stacked(left: LogicalPlan, right: LogicalPlan, keys: &Keys) -> EngineResult<LogicalPlanBuilder> {
    let (of_left, of_right) = (Arc::clone(left.schema()), Arc::clone(right.schema()));
    let (mut upper, mut lower) = (Vec::new(), Vec::new());
    for (at, column) in columns(&left).into_iter().enumerate() {
        let nothing = lit(ScalarValue::try_from(of_left.field(at).data_type())?);
        upper.push(column.alias(left_name(at)));
        lower.push(nothing.alias(left_name(at)));
    }
    let [own, other] = in_one_type(keys.nearest.clone(), &of_left, &of_right)?;
    let mut is_there = other.clone().is_not_null();
    upper.push(own.alias(KEY));
    lower.push(other.alias(KEY));
    for (at, pair) in keys.equal.iter().enumerate() {
        let [own, other] = in_one_type(pair.clone(), &of_left, &of_right)?;
        is_there = is_there.and(other.clone().is_not_null());
        upper.push(own.alias(by_name(at)));
        lower.push(other.alias(by_name(at)));
    }
    let fields = columns(&right).into_iter().enumerate();
    let row = named_struct(fields.flat_map(|(at, column)| [lit(field_name(at)), column]).collect());
    let nothing = lit(ScalarValue::try_from(&row.get_type(&*of_right)?)?);
    upper.extend([lit(true).alias(IS_LEFT), nothing.alias(ROW)]);
    lower.extend([lit(false).alias(IS_LEFT), row.alias(ROW)]);
    let lower = LogicalPlanBuilder::from(right).filter(is_there)?.project(lower)?.build()?;
    LogicalPlanBuilder::from(left).project(upper)?.union(lower)
}

/// The row of the right table that belongs to each row. Of several with an equal value it is any one.
fn found(keys: &Keys) -> Expr {
    let order_by = vec![
        // A row whose value is missing finds none: it comes first.
        named(KEY).sort(keys.is_before, true),
        // Of equal values, the rows that may be found come first.
        named(IS_LEFT).sort(keys.takes_equal, false),
    ];
    let begin = WindowFrameBound::Preceding(ScalarValue::UInt64(None));
    let window_frame = WindowFrame::new_bounds(WindowFrameUnits::Rows, begin, WindowFrameBound::CurrentRow);
    let params = WindowFunctionParams {
        args: vec![named(ROW)],
        partition_by: (0..keys.equal.len()).map(|at| named(&by_name(at))).collect(),
        order_by,
        window_frame,
        filter: None,
        null_treatment: None,
        distinct: false,
    };
    Expr::from(WindowFunction { fun: WindowFunctionDefinition::WindowUDF(last_present()), params })
}

/// The rows of the left table with those that belong to them; all of them, or those that have one.
fn joined(left: LogicalPlan, right: LogicalPlan, keys: Keys, keeps_all: bool) -> EngineResult<LogicalPlan> {
    let (of_left, of_right) = (Arc::clone(left.schema()), Arc::clone(right.schema()));
    let window = found(&keys);
    let found = Expr::Column(Column::new_unqualified(window.schema_name().to_string()));
    let rows = stacked(left, right, &keys)?.window(vec![window])?;
    let mut is_kept = named(IS_LEFT);
    if !keeps_all {
        is_kept = is_kept.and(found.clone().is_not_null());
    }
    let own = of_left
        .iter()
        .enumerate()
        .map(|(at, (table, field))| named(&left_name(at)).alias_qualified(table.cloned(), field.name()));
    let mut shown: Vec<Expr> = own.collect();
    for (at, (table, field)) in of_right.iter().enumerate() {
        if keys.merged.contains(&Expr::Column(Column::new(table.cloned(), field.name()))) {
            continue;
        }
        // A field of a missing row may hold what the row had before it was left out.
        let value = when(found.clone().is_not_null(), get_field(found.clone(), field_name(at))).end()?;
        shown.push(value.alias_qualified(table.cloned(), field.name()));
    }
    rows.filter(is_kept)?.project(shown)?.build()
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::sql::small_tables::{answer, cells, rows_in, session_of};

    fn session() -> SqlSession {
        session_of(&[
            "create table trades (k text, t int, q int) as values ('a', 5, 1), ('a', 1, 2), ('b', 3, 3), \
             (null, 5, 4), ('a', null, 5), ('a', 10, 6)",
            "create table quotes (k text, t int, v int) as values ('a', 2, 20), ('a', 5, 50), ('b', 4, 40), \
             ('a', 9, null), (null, 1, 0), ('a', null, 99)",
        ])
    }

    #[test]
    fn rows_find_the_nearest_one_of_the_other_table() {
        let mut session = session();
        for (condition, expected) in [
            ("x.k = p.k and x.t >= p.t", "1 5 50, 6 9 NULL"),
            ("p.t <= x.t and p.k = x.k", "1 5 50, 6 9 NULL"),
            ("x.k = p.k and x.t > p.t", "1 2 20, 6 9 NULL"),
            ("x.k = p.k and x.t <= p.t", "1 5 50, 2 2 20, 3 4 40"),
            ("x.k = p.k and x.t < p.t", "1 9 NULL, 2 2 20, 3 4 40"),
            ("x.t >= p.t and x.q = 3 + 0 * x.t and x.k = p.k", "error"),
            ("x.t - 4 >= p.t::double", "4 1 0, 6 5 50, 1 1 0"),
            ("upper(x.k) = upper(p.k) and x.t > p.t + 2", "1 2 20, 6 5 50"),
        ] {
            let query =
                format!("select q, p.t, v from trades x asof join quotes p on {condition} order by q");
            match expected {
                "error" => assert!(session.run(&query).is_err(), "{query}"),
                _ => {
                    let mut found = rows_in(&mut session, &query);
                    let mut expected: Vec<&str> = expected.split(", ").collect();
                    found.sort();
                    expected.sort_unstable();
                    assert_eq!(found, expected, "{query}");
                }
            }
        }
        let left = "select q, v from trades x ASOF LEFT JOIN quotes p on x.k = p.k and x.t >= p.t order by q";
        assert_eq!(rows_in(&mut session, left), ["1 50", "2 NULL", "3 NULL", "4 NULL", "5 NULL", "6 NULL"]);
        let using = "select * from trades asof join quotes using (k, t) order by q";
        assert_eq!(answer(&mut session, using).0, ["k", "t", "q", "v"]);
        assert_eq!(rows_in(&mut session, using), ["a 5 1 50", "a 10 6 NULL"]);
        let plan = cells(&mut session, &format!("explain {left}")).concat().concat();
        assert!(!plan.contains("Join:") && !plan.contains("JoinExec"), "{plan}");
    }

    #[test]
    fn such_joins_stand_among_others() {
        let mut session = session();
        let on = "x.k = p.k and x.t >= p.t";
        for (query, expected) in [
            (
                format!(
                    "select q, p.v, r.v from trades x asof join quotes p on {on} \
                     asof left join quotes r on r.k = p.k and r.t < p.t order by q"
                ),
                "1 50 20, 6 NULL 50",
            ),
            (
                format!(
                    "select q, name, v, p2.n from trades x join (values ('a', 'Anna')) n(k, name) on n.k = x.k \
                     asof join quotes p on {on} cross join (select 7 as n) p2 order by q"
                ),
                "1 Anna 50 7, 6 Anna NULL 7",
            ),
            (format!("select count(*) from (trades x asof join quotes p on {on}) where v = 50"), "1"),
            (
                format!("with w as (select q from trades x asof join quotes p on {on}) select sum(q) from w"),
                "7",
            ),
            (
                format!("select sum(v) from (select 1) o, trades x asof join quotes p on {on} where q < 6"),
                "50",
            ),
            ("select count(*) from trades as asof left join quotes p on asof.q = p.v".to_owned(), "6"),
            (
                "select v from (select 'a' as k, 6.5 as t) asof join (select * from quotes union all \
                 select 'a', 6, 60) using (k, t)"
                    .to_owned(),
                "60",
            ),
        ] {
            assert_eq!(rows_in(&mut session, &query).join(", "), expected, "{query}");
        }
        cells(&mut session, &format!("create view v as select v from trades x asof join quotes p on {on}"));
        assert_eq!(rows_in(&mut session, "select count(*), sum(v) from v"), ["2 50"]);
    }

    #[test]
    fn what_is_not_joined_so_is_told() {
        let mut session = session();
        for (join, class, told) in [
            ("asof join quotes p on x.k = p.k", "NotImplemented", "write on a.k = b.k and a.t >= b.t"),
            ("asof join quotes p on x.t >= p.t and x.q <= p.v", "NotImplemented", "ASOF JOIN has keys"),
            ("asof join quotes p on x.t >= p.t and p.v > 3", "NotImplemented", "ASOF JOIN has keys"),
            ("asof join quotes p on x.t >= p.t or x.k = p.k", "NotImplemented", "ASOF JOIN has keys"),
            ("asof right join quotes p on x.t >= p.t", "NotImplemented", "ASOF RIGHT JOIN is not supported"),
            ("asof join quotes p match_condition (x.t >= p.t)", "NotImplemented", "write on a.k = b.k"),
            ("asof join quotes p", "ValueError", "JOIN without ON or USING"),
            ("asof join quotes p on x.t >= p.k", "TypeError", "INTEGER and VARCHAR: cast one of them"),
            ("asof join quotes p on x.t >= p.nope", "KeyError", "nope"),
            ("asof join quotes p using (k, v)", "KeyError", "v"),
        ] {
            let query = format!("select q from trades x {join}");
            let error = session.run(&query).expect_err(&query);
            assert_eq!(error.class(), class, "{query}: {error}");
            assert!(error.to_string().contains(told), "{query}: {error}");
        }
    }
}
