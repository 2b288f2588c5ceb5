//! `CROSS APPLY` and `OUTER APPLY`, as joins with lateral queries.

use crate::sql::clauses::joins::each_join;
use datafusion::logical_expr::sqlparser::ast::{
    Expr, JoinConstraint, JoinOperator, TableFactor, Value, VisitMut,
};
use std::ops::ControlFlow;

/// Writes them so wherever they stand.
pub(in crate::sql) fn as_laterals(part: &mut impl VisitMut) {
    // It never breaks off.
    let _whole = each_join(part, |join| {
        let joined = match &join.join_operator {
            JoinOperator::CrossApply => JoinOperator::CrossJoin(JoinConstraint::None),
            JoinOperator::OuterApply => {
                let always = Expr::Value(Value::Boolean(true).with_empty_span());
                JoinOperator::LeftOuter(JoinConstraint::On(always))
            }
            _ => return ControlFlow::<()>::Continue(()),
        };
        // The library refuses what is no query.
        if let TableFactor::Derived { lateral, .. } = &mut join.relation {
            *lateral = true;
            join.join_operator = joined;
        }
        ControlFlow::Continue(())
    });
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
