//! Joins without a condition, or without the side that is kept, and lists of a table beside them in FROM.
//!
//! The library takes `a JOIN b` for all pairs of their rows. It is a condition that somebody forgot, and an
//! error as in other databases.

use crate::error::Error;
use datafusion::logical_expr::sqlparser::ast::{
    Expr, Join, JoinConstraint, JoinOperator, PipeOperator, Query, Select, Spanned, TableFactor,
    TableWithJoins, Visit, VisitMut, Visitor, VisitorMut, visit_expressions,
};
use datafusion::logical_expr::sqlparser::tokenizer::Span;
use std::ops::ControlFlow;

/// The first table of a statement that FROM cannot have in this way, and its place.
pub(super) fn refused(statement: &impl Visit) -> Option<(Error, Span)> {
    statement.visit(&mut Joins).break_value().map(|found| *found)
}

/// Writes `SEMI JOIN` and `ANTI JOIN` as joins of which the library knows the side that is kept: the left
/// one.
pub(super) fn write_sides(statement: &mut impl VisitMut) {
    // It never breaks off.
    let _whole = statement.visit(&mut Sides);
}

struct Sides;

impl VisitorMut for Sides {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select.from.iter_mut().for_each(name_sides);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            name_sides(table_with_joins);
        }
        ControlFlow::Continue(())
    }
}

fn name_sides(tables: &mut TableWithJoins) {
    for Join { join_operator, .. } in &mut tables.joins {
        match join_operator {
            JoinOperator::Semi(on) => *join_operator = JoinOperator::LeftSemi(on.clone()),
            JoinOperator::Anti(on) => *join_operator = JoinOperator::LeftAnti(on.clone()),
            _ => {}
        }
    }
}

struct Joins;

impl Visitor for Joins {
    type Break = Box<(Error, Span)>;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        query.pipe_operators.iter().try_for_each(|operator| match operator {
            PipeOperator::Join(join) => check_join(join),
            _ => ControlFlow::Continue(()),
        })
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        select.from.iter().try_for_each(check_joins)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Self::Break> {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => check_joins(table_with_joins),
            TableFactor::UNNEST { array_exprs, .. } => check_lists(array_exprs, factor.span()),
            TableFactor::Function { name, .. } if name.to_string().eq_ignore_ascii_case("unnest") => {
                broken(UNNEST, name.span())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

const UNNEST: &str = "unnest(..) of columns in FROM is not supported: write select a, unnest(tags) from t";

fn check_joins(tables: &TableWithJoins) -> ControlFlow<Box<(Error, Span)>> {
    tables.joins.iter().try_for_each(check_join)
}

fn check_join(join: &Join) -> ControlFlow<Box<(Error, Span)>> {
    let constraint = match &join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::Semi(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::RightSemi(constraint)
        | JoinOperator::Anti(constraint)
        | JoinOperator::LeftAnti(constraint)
        | JoinOperator::RightAnti(constraint)
        | JoinOperator::StraightJoin(constraint) => constraint,
        JoinOperator::CrossJoin(_)
        | JoinOperator::CrossApply
        | JoinOperator::OuterApply
        | JoinOperator::AsOf { .. }
        | JoinOperator::ArrayJoin
        | JoinOperator::LeftArrayJoin
        | JoinOperator::InnerArrayJoin => return ControlFlow::Continue(()),
    };
    match constraint {
        JoinConstraint::None => {
            let text = "JOIN without ON or USING; CROSS JOIN, or a comma, means each row with each";
            ControlFlow::Break(Box::new((Error::Sql(text.to_owned()), join.relation.span())))
        }
        JoinConstraint::On(_) | JoinConstraint::Using(_) | JoinConstraint::Natural => {
            ControlFlow::Continue(())
        }
    }
}

/// Refuses lists that are columns: rows of a table do not come from those of another one here.
fn check_lists(lists: &[Expr], span: Span) -> ControlFlow<Box<(Error, Span)>> {
    let has_column = lists.iter().any(|list| {
        let found = visit_expressions(list, |part| match part {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        found.is_break()
    });
    if has_column { broken(UNNEST, span) } else { ControlFlow::Continue(()) }
}

fn broken(text: &str, span: Span) -> ControlFlow<Box<(Error, Span)>> {
    ControlFlow::Break(Box::new((Error::NotImplemented(text.to_owned()), span)))
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::sql::small_tables::{cells, session_of};

    fn session() -> SqlSession {
        session_of(&[
            "create table t as values (1, 2), (2, 3)",
            "create table u as values (2)",
            "create table l as select 1 as a, ['x', 'y'] as tags",
        ])
    }

    #[test]
    fn joins_have_a_condition() {
        let mut session = session();
        for kind in ["join", "inner join", "left join", "right join", "full join", "left semi join"] {
            for query in [
                format!("select 1 from t {kind} u where t.column1 = u.column1"),
                format!("select (select count(*) from t {kind} u)"),
                format!("with x as (select 1 from t {kind} u) select * from x"),
                format!("select 1 from (t {kind} u) cross join t v"),
                format!("create view v as select 1 from t {kind} u"),
                format!("explain select 1 from t {kind} u"),
            ] {
                let error = session.run(&query).expect_err(&query);
                assert_eq!(error.class(), "ValueError", "{query}: {error}");
                assert!(
                    error.to_string().contains("JOIN without ON or USING; CROSS JOIN"),
                    "{query}: {error}"
                );
                let place = error.sql_place().unwrap_or_else(|| panic!("{query}: no place"));
                let marked: String = query.chars().skip(place.column() - 1).take(place.width()).collect();
                assert_eq!(marked, "u", "{query}");
            }
        }
        for (query, count) in [
            ("select * from t cross join u", 2),
            ("select * from t, u", 2),
            ("select * from t natural join u", 1),
            ("select * from t join u using (column1)", 1),
            ("select * from t join u on true", 2),
            ("select * from t cross apply (select t.column1 + 1) s", 2),
            ("select * from t left semi join u on t.column1 = u.column1", 1),
            ("select * from t semi join u on t.column1 = u.column1", 1),
            ("select * from t anti join (u semi join u w using (column1)) on t.column1 = u.column1", 1),
        ] {
            assert_eq!(cells(&mut session, query).len(), count, "{query}");
        }
    }

    #[test]
    fn lists_of_columns_in_from_are_refused_with_what_works() {
        let mut session = session();
        for (query, mark) in [
            ("select a, x from l, unnest(l.tags) u(x)", "tags"),
            ("select a, x from l cross join unnest(tags) as u(x)", "tags"),
            ("select a, x from l cross join lateral unnest(l.tags) as u(x)", "unnest"),
        ] {
            let error = session.run(query).expect_err(query);
            assert_eq!(error.class(), "NotImplemented", "{query}: {error}");
            assert!(error.to_string().contains("write select a, unnest(tags) from t"), "{query}: {error}");
            let place = error.sql_place().unwrap_or_else(|| panic!("{query}: no place"));
            let marked: String = query.chars().skip(place.column() - 1).take(place.width()).collect();
            assert!(marked.contains(mark), "{query}: {marked}");
        }
        assert_eq!(cells(&mut session, "select a, unnest(tags) from l").len(), 2);
        assert_eq!(cells(&mut session, "select x from unnest([1, 2, 3]) u(x)").len(), 3);
    }
}
