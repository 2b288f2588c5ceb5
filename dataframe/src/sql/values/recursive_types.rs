//! Types of the columns of recursive queries.
//!
//! The library casts the rows of the recursive part to the types of the first part, as its rounds need. Where
//! such a cast loses digits it gives wrong values, and rounds without an end: `n + 0.5` of a whole number
//! stays what it was. These parts are refused. To be found as they are written, both parts are tables of a
//! name, whose set operations have their types before the other part is planned.
//!
//! The library also leaves out what stands around each UNION in WITH RECURSIVE, such as LIMIT. Queries that
//! are not recursive have it in parentheses, and recursive ones are refused with it.

use super::clocks::of_moments;
use super::float_decimals::as_one_type;
use super::type_names::type_name;
use super::union_types::of_all_sides;
use crate::error::{Error, Result};
use crate::sql::clauses::counted_sets::mark;
use crate::sql::names::namesakes::plain_name;
use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::sqlparser::ast::{
    Ident, ObjectName, Query, SetExpr, SetOperator, SetQuantifier, visit_relations,
};
use std::ops::ControlFlow;

/// The name of a part of a recursive query.
const PART: &str = "__tharsis_part";

/// Makes tables of both parts of the recursive queries in WITH.
pub(in crate::sql) fn mark_parts(query: &mut Query) -> Result<()> {
    let Some(with) = query.with.as_mut().filter(|with| with.recursive) else { return Ok(()) };
    for table in &mut with.cte_tables {
        let rows = &mut *table.query;
        let SetExpr::SetOperation { op: SetOperator::Union, right, .. } = &*rows.body else { continue };
        if !reads(right, &table.alias.name) {
            write_parentheses(rows);
            continue;
        }
        check_clauses(rows)?;
        if let SetExpr::SetOperation { left, right, .. } = &mut *rows.body {
            mark(left, PART)?;
            mark(right, PART)?;
        }
    }
    Ok(())
}

/// Whether rows are read from a table of this name.
fn reads(rows: &SetExpr, name: &Ident) -> bool {
    let look_at = |table: &ObjectName| {
        let own = table.0.last().and_then(|part| part.as_ident());
        let is_found = own.is_some_and(|own| own.value.eq_ignore_ascii_case(&name.value));
        if is_found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    visit_relations(rows, look_at).is_break()
}

/// Writes a set operation that has clauses around it in parentheses.
fn write_parentheses(query: &mut Query) {
    if clause(query).is_some() {
        let alone = Query {
            with: None,
            order_by: None,
            limit_clause: None,
            fetch: None,
            pipe_operators: Vec::new(),
            ..query.clone()
        };
        *query.body = SetExpr::Query(Box::new(alone));
    }
}

/// Refuses what the library would leave out of a recursive query.
fn check_clauses(query: &Query) -> Result<()> {
    use SetQuantifier::{AllByName, ByName, DistinctByName};
    if let SetExpr::SetOperation { set_quantifier: ByName | AllByName | DistinctByName, .. } = &*query.body {
        return Err(Error::NotImplemented("UNION BY NAME of a recursive query is not supported".to_owned()));
    }
    if let Some(clause) = clause(query) {
        return Err(Error::NotImplemented(format!(
            "{clause} around the parts of a recursive query is not supported (write it outside of that query)"
        )));
    }
    Ok(())
}

/// A clause around the body of a query.
fn clause(query: &Query) -> Option<&'static str> {
    if query.with.is_some() {
        Some("WITH")
    } else if query.order_by.is_some() {
        Some("ORDER BY")
    } else if query.limit_clause.is_some() {
        Some("LIMIT or OFFSET")
    } else if query.pipe_operators.is_empty() {
        None
    } else {
        Some("|>")
    }
}

/// A part of a recursive query whose values have the types that rules give them behind planning: those of its
/// first part are the types of all rounds. Other plans stay as they are.
pub(in crate::sql) fn with_types_of_run(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !matches!(&plan, LogicalPlan::SubqueryAlias(alias) if alias.alias.table() == PART) {
        return Ok(plan);
    }
    of_all_sides(as_one_type(of_moments(plan)?)?)
}

/// Refuses recursive parts whose values do not fit the types of the first part.
pub(in crate::sql) fn check_parts(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::RecursiveQuery(query) = node
            && let Some(rows) = as_written(&query.recursive_term)
        {
            let columns = query.static_term.schema().fields().iter().zip(rows.fields());
            for (first, own) in columns {
                check(first.name(), first.data_type(), own.data_type())?;
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

fn check(column: &str, first: &DataType, own: &DataType) -> Result<()> {
    if !is_cut(first, own) {
        return Ok(());
    }
    let name = plain_name(column);
    let (first, own) = (type_name(first), type_name(own));
    Err(Error::Type(format!(
        "the column {name:?} of WITH RECURSIVE is {first} in the first part and {own} in the recursive one: \
         write a cast to {own} in the first part, or to {first} in the other"
    )))
}

/// The columns of a recursive part before the casts of the library.
fn as_written(part: &LogicalPlan) -> Option<&DFSchema> {
    let LogicalPlan::Projection(with_casts) = part else { return None };
    let mut rows = &*with_casts.input;
    loop {
        rows = match rows {
            LogicalPlan::SubqueryAlias(alias) if alias.alias.table() == PART => break,
            LogicalPlan::Projection(projection) => &projection.input,
            _ => return None,
        };
    }
    Some(with_casts.input.schema())
}

/// Whether a cast of values to the type of the first part loses digits without an error.
fn is_cut(first: &DataType, own: &DataType) -> bool {
    use DataType::{Boolean, Date32, Date64, Float16, Float32, Float64, Struct, Timestamp};
    if let (Some(first), Some(own)) = (elements(first), elements(own)) {
        return is_cut(first, own);
    }
    match (first, own) {
        (Struct(first), Struct(own)) => first.iter().any(|field| {
            own.find(field.name()).is_some_and(|(_, own)| is_cut(field.data_type(), own.data_type()))
        }),
        (first, own) if first.is_integer() && own.is_decimal() => 0 < scale(own),
        (first, own) if first.is_decimal() && own.is_decimal() => scale(first) < scale(own),
        (first, own) if first.is_integer() || first.is_decimal() => own.is_floating(),
        (Float16, Float32 | Float64) | (Float32, Float64) | (Date32 | Date64, Timestamp(..)) => true,
        (Boolean, own) => own.is_numeric(),
        _ => false,
    }
}

/// The type of the elements of a list.
fn elements(list: &DataType) -> Option<&DataType> {
    match list {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::FixedSizeList(field, _) => Some(field.data_type()),
        _ => None,
    }
}

/// The digits of a decimal behind the point.
fn scale(decimal: &DataType) -> i8 {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256};
    match decimal {
        Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale) => *scale,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{rows_in, session_of};

    #[test]
    fn recursive_parts_that_lose_digits_are_refused() {
        let mut session = session_of(&[]);
        for (query, told) in [
            (
                "with recursive b(m, x) as (select 1, 100 union all select m + 1, x * 1.05 from b where m < 12)
                 select max(x) from b",
                "the column \"x\" of WITH RECURSIVE is BIGINT in the first part and DOUBLE",
            ),
            (
                "with recursive r as (select 1 as n union all select n + 0.5 from r where n < 3)
                 select count(*) from r",
                "the column \"n\" of WITH RECURSIVE is BIGINT",
            ),
            (
                "with recursive r(n) as (select 1 union select * from
                 (select n + 1 from r where n < 3 union all select 2.5 where false) s) select sum(n) from r",
                "the column \"n\" of WITH RECURSIVE is BIGINT",
            ),
            (
                "with recursive r as (select true as b union all select 2 from r where b) select count(*) from r",
                "the column \"b\" of WITH RECURSIVE is BOOLEAN",
            ),
            (
                "with recursive r(n, l) as (select 1, [1] union all select n + 1, [n + 0.5] from r where n < 3)
                 select count(*) from r",
                "the column \"l\" of WITH RECURSIVE is BIGINT[] in the first part and DOUBLE[]",
            ),
            (
                "with recursive r(n, s) as (select 1, {'x': 1} union all
                 select n + 1, {'x': n + 0.5} from r where n < 3) select count(*) from r",
                "the column \"s\" of WITH RECURSIVE is STRUCT(x BIGINT)",
            ),
        ] {
            let error = session.run(query).expect_err(query);
            assert_eq!(error.class(), "TypeError", "{query}: {error}");
            assert!(error.to_string().contains(told), "{query}: {error}");
        }
    }

    #[test]
    fn recursive_parts_that_fit_are_not_refused() {
        let mut session = session_of(&[]);
        for (query, expected) in [
            (
                "with recursive r as (select 1::double as n union all select n + 0.5 from r where n < 3)
                 select sum(n) from r",
                "10",
            ),
            (
                "with recursive r as (select 1 as n union all select (n * 2.0)::bigint from r where n < 8)
                 select sum(n) from r",
                "15",
            ),
            (
                "with recursive r as (select 1::int as n union all select n + 1 from r where n < 4)
                 select sum(n) from r",
                "10",
            ),
            (
                "with recursive r(n) as ((select 1 union all select 2.5) union all
                 select n + 1 from r where n < 4) select sum(n) from r",
                "20.5",
            ),
            (
                "with recursive r(a, b) as (select 1, 1 union all select a + 1, a + 1 from r where a < 3)
                 select sum(a + b) from r",
                "12",
            ),
            (
                "with recursive r(s) as (select 'a' union all select s || 'b' from r where length(s) < 3)
                 select max(s) from r",
                "abb",
            ),
        ] {
            assert_eq!(rows_in(&mut session, query), [expected], "{query}");
        }
    }

    #[test]
    fn clauses_around_unions_of_recursive_clauses_count() {
        let mut session = session_of(&[]);
        for (query, expected) in [
            (
                "with recursive a as (select 1 as n union all select 2 order by n desc limit 1) select sum(n) from a",
                "2",
            ),
            (
                "with recursive a(m) as (select 1 union all select 2 order by 1 desc limit 1) select sum(m) from a",
                "2",
            ),
            (
                "with recursive r as (select 1 as n union all select n + 1 from r where n < 3),
                 s as (select n from r union all select 10 order by n desc offset 1) select sum(n) from s",
                "6",
            ),
            (
                "with recursive a as (with x as (select 5 as n) select n from x union all select 6)
                 select sum(n) from a",
                "11",
            ),
            (
                "with recursive a as (select 1 as n, 2 as m union all by name select 5 as m, 4 as n)
                 select sum(n) from a",
                "5",
            ),
        ] {
            assert_eq!(rows_in(&mut session, query), [expected], "{query}");
        }
        for (rows, told) in [
            ("select 1 as n union all select n + 1 from r where n < 9 limit 5", "LIMIT"),
            ("select 1 as n union all select n + 1 from r where n < 9 order by n", "ORDER BY"),
            ("select 1 as n union all select n + 1 from r where n < 9 fetch first 5 rows only", "LIMIT"),
            ("with x as (select 1 as n) select n from x union all select n + 1 from r where n < 9", "WITH"),
            ("select 1 as n union all by name select n + 1 as n from r where n < 9", "BY NAME"),
        ] {
            let query = format!("with recursive r as ({rows}) select count(*) from r");
            let error = session.run(&query).expect_err(&query);
            assert_eq!(error.class(), "NotImplemented", "{query}: {error}");
            assert!(error.to_string().contains(told), "{query}: {error}");
        }
    }

    #[test]
    fn first_parts_have_the_types_that_rules_give_them() {
        let mut session =
            session_of(&["create table t (cost decimal(10, 2), price double) as values (1.5, null)"]);
        let query = "with recursive r as (select coalesce(price, cost) as x from t
                     union all select x + 1 from r where x < 3) select sum(x) from r";
        assert_eq!(rows_in(&mut session, query), ["7.5"]);
    }
}
