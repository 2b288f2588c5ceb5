//! `CROSS APPLY` and `OUTER APPLY`, as joins with lateral queries.

use datafusion::logical_expr::sqlparser::ast::{
    Expr, Join, JoinConstraint, JoinOperator, Query, SetExpr, TableFactor, TableWithJoins, Value, VisitMut,
    VisitorMut,
};
use datafusion::sql::parser::{CopyToSource, Statement};
use std::ops::ControlFlow;

/// Writes them so wherever they stand.
pub(super) fn as_laterals(statement: &mut Statement) {
    // The visitor has no end of its own.
    let _whole = match statement {
        Statement::Statement(statement) => statement.visit(&mut Applies),
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.visit(&mut Applies),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        Statement::Explain(explain) => return as_laterals(&mut explain.statement),
        Statement::CreateExternalTable(_) | Statement::Reset(_) => ControlFlow::Continue(()),
    };
}

struct Applies;

impl VisitorMut for Applies {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        in_set(&mut query.body);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = table {
            in_joins(table_with_joins);
        }
        ControlFlow::Continue(())
    }
}

fn in_set(set: &mut SetExpr) {
    match set {
        SetExpr::Select(select) => select.from.iter_mut().for_each(in_joins),
        SetExpr::SetOperation { left, right, .. } => {
            in_set(left);
            in_set(right);
        }
        // Queries of their own come to the visitor.
        _ => {}
    }
}

fn in_joins(tables: &mut TableWithJoins) {
    for Join { relation, join_operator, .. } in &mut tables.joins {
        let joined = match join_operator {
            JoinOperator::CrossApply => JoinOperator::CrossJoin(JoinConstraint::None),
            JoinOperator::OuterApply => {
                let always = Expr::Value(Value::Boolean(true).with_empty_span());
                JoinOperator::LeftOuter(JoinConstraint::On(always))
            }
            _ => continue,
        };
        // The library refuses what is no query.
        if let TableFactor::Derived { lateral, .. } = relation {
            *lateral = true;
            *join_operator = joined;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{refused, rows};

    #[test]
    fn applies_are_lateral_joins() {
        let first = "(select u.a from u where u.a > t.a order by 1 limit 1) s";
        let cross = format!("select t.b, s.a from t cross apply {first} order by 1");
        assert_eq!(rows(&cross), ["10 2", "20 3", "30 5"]);
        let outer = format!("select t.b, s.a from t outer apply {first} order by 1");
        assert_eq!(rows(&outer), ["10 2", "20 3", "30 5", "40 NULL"]);
        let within = format!("select (select count(*) from (t cross apply {first})) n union all {outer}");
        assert_eq!(rows(&within.replace("t.b, s.a", "t.b")), ["3", "10", "20", "30", "40"]);
        let _refused = refused("select * from t cross apply u");
    }
}
