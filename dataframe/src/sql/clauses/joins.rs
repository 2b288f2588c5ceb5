//! The joins of a statement, and lists of a table beside them in FROM.
//!
//! The library takes `a JOIN b` for all pairs of their rows. It is a condition that somebody forgot, and an
//! error as in other databases.

use crate::error::Error;
use datafusion::logical_expr::sqlparser::ast::{
    Expr, Join, JoinConstraint, JoinOperator, PipeOperator, Query, Select, Spanned,
    Statement as SqlStatement, TableFactor, TableWithJoins, Visit, VisitMut, Visitor, VisitorMut,
    visit_expressions,
};
use datafusion::logical_expr::sqlparser::tokenizer::Span;
use std::ops::ControlFlow;

/// Visits the joins of a part of a statement, wherever the grammar has some.
pub(in crate::sql) fn each_join<B>(
    part: &mut impl VisitMut,
    visit: impl FnMut(&mut Join) -> ControlFlow<B>,
) -> ControlFlow<B> {
    part.visit(&mut EachJoin(visit))
}

/// The constraint of a join, if it is one with a constraint.
pub(in crate::sql) fn constraint_of(join: &mut Join) -> Option<&mut JoinConstraint> {
    match &mut join.join_operator {
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
        | JoinOperator::StraightJoin(constraint)
        | JoinOperator::AsOf { constraint, .. } => Some(constraint),
        // The library refuses a constraint of the first, and all that follow the applies.
        JoinOperator::CrossJoin(_)
        | JoinOperator::CrossApply
        | JoinOperator::OuterApply
        | JoinOperator::ArrayJoin
        | JoinOperator::LeftArrayJoin
        | JoinOperator::InnerArrayJoin => None,
    }
}

/// Writes joins of other databases as those of the library. `SEMI JOIN` and `ANTI JOIN` keep rows of the left
/// side; `STRAIGHT_JOIN` is an inner one, and the order of its sides is a hint.
pub(in crate::sql) fn write_operators(part: &mut impl VisitMut) {
    // It never breaks off.
    let _whole = each_join(part, |join| {
        let operator = match &join.join_operator {
            JoinOperator::Semi(on) => JoinOperator::LeftSemi(on.clone()),
            JoinOperator::Anti(on) => JoinOperator::LeftAnti(on.clone()),
            JoinOperator::StraightJoin(on) => JoinOperator::Inner(on.clone()),
            _ => return ControlFlow::<()>::Continue(()),
        };
        join.join_operator = operator;
        ControlFlow::Continue(())
    });
}

/// The first table of a statement that FROM cannot have in this way, and its place.
pub(in crate::sql) fn refused(part: &mut (impl Visit + VisitMut)) -> Option<(Error, Span)> {
    let bare = each_join(part, |join| {
        let is_bare = matches!(constraint_of(join), Some(JoinConstraint::None));
        if is_bare { ControlFlow::Break(join.relation.span()) } else { ControlFlow::Continue(()) }
    });
    if let Some(span) = bare.break_value() {
        let text = "JOIN without ON or USING; CROSS JOIN, or a comma, means each row with each";
        return Some((Error::Sql(text.to_owned()), span));
    }
    let list = Visit::visit(&*part, &mut Lists).break_value();
    list.map(|span| (Error::NotImplemented(UNNEST.to_owned()), span))
}

struct EachJoin<F>(F);

impl<B, F: FnMut(&mut Join) -> ControlFlow<B>> VisitorMut for EachJoin<F> {
    type Break = B;

    fn pre_visit_statement(&mut self, statement: &mut SqlStatement) -> ControlFlow<B> {
        if let SqlStatement::Update(update) = statement {
            return in_tables(&mut update.table, &mut self.0);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<B> {
        for operator in &mut query.pipe_operators {
            if let PipeOperator::Join(join) = operator {
                (self.0)(join)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<B> {
        select.from.iter_mut().try_for_each(|tables| in_tables(tables, &mut self.0))
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<B> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            return in_tables(table_with_joins, &mut self.0);
        }
        ControlFlow::Continue(())
    }
}

fn in_tables<B>(
    tables: &mut TableWithJoins,
    visit: &mut impl FnMut(&mut Join) -> ControlFlow<B>,
) -> ControlFlow<B> {
    tables.joins.iter_mut().try_for_each(visit)
}

const UNNEST: &str = "unnest(..) of columns in FROM is not supported: write select a, unnest(tags) from t";

/// Finds lists that are columns: rows of a table do not come from those of another one here.
struct Lists;

impl Visitor for Lists {
    type Break = Span;

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Span> {
        match factor {
            TableFactor::UNNEST { array_exprs, .. } if array_exprs.iter().any(has_column) => {
                ControlFlow::Break(factor.span())
            }
            TableFactor::Function { name, .. } if name.to_string().eq_ignore_ascii_case("unnest") => {
                ControlFlow::Break(name.span())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn has_column(list: &Expr) -> bool {
    let found = visit_expressions(list, |part| match part {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
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
                format!("select * from t |> {kind} u"),
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
            ("select * from t x straight_join u using (column1)", 1),
            ("select * from t |> join u using (column1) |> select column2", 1),
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
