//! `= ANY` and `<> ALL` of a list that is written as such, which are `IN` and `NOT IN` of its elements.
//!
//! The library makes a list of one type of the elements, before it looks at the value beside them: a moment
//! had no place in a list of days. It also takes a missing element for one that differs, where SQL does not
//! know.

use datafusion::logical_expr::sqlparser::ast::{BinaryOperator, Expr, Value, VisitMut, VisitorMut};
use std::ops::ControlFlow;

/// Writes such comparisons as `IN` and `NOT IN`.
pub(in crate::sql) fn write_lists(statement: &mut impl VisitMut) {
    // It never breaks off.
    let _whole = VisitMut::visit(statement, &mut Lists);
}

struct Lists;

impl VisitorMut for Lists {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let negated = match expr {
            Expr::AnyOp { compare_op: BinaryOperator::Eq, .. } => false,
            Expr::AllOp { compare_op: BinaryOperator::NotEq, .. } => true,
            _ => return ControlFlow::Continue(()),
        };
        if let Expr::AnyOp { left, right, .. } | Expr::AllOp { left, right, .. } = expr
            && let Some(list) = elements(right)
        {
            let value = std::mem::replace(&mut **left, Expr::value(Value::Null));
            *expr = Expr::InList { expr: Box::new(value), list, negated };
        }
        ControlFlow::Continue(())
    }
}

/// The elements of a list that is written as such. Lists and queries as elements stay what they are.
fn elements(list: &mut Expr) -> Option<Vec<Expr>> {
    match list {
        Expr::Nested(list) => elements(list),
        Expr::Array(list) if !list.elem.is_empty() && list.elem.iter().all(is_single) => {
            Some(std::mem::take(&mut list.elem))
        }
        _ => None,
    }
}

fn is_single(element: &Expr) -> bool {
    match element {
        Expr::Nested(inner) => is_single(inner),
        element => !matches!(element, Expr::Array(_) | Expr::Subquery(_) | Expr::Tuple(_)),
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{cells, session_of};

    #[test]
    fn values_are_compared_with_each_element() {
        let mut session = session_of(&["create table t (n int, d date) as values (2, date '2024-07-01')"]);
        for (value, expected) in [
            ("n = any([1, 2])", "true"),
            ("n = some(array[1, 2])", "true"),
            ("n = any([1, null])", "NULL"),
            ("n = any(([1, 3]))", "false"),
            ("n <> all([1, 2])", "false"),
            ("n <> all([1, null])", "NULL"),
            ("2.5 = any([n, 2.5])", "true"),
            ("timestamp '2024-07-01 00:00:00' = any([d])", "true"),
            ("interval '1 day' = any([interval '24 hours'])", "true"),
            ("n < any([1, 3])", "true"),
        ] {
            let query = format!("select coalesce(({value})::text, 'NULL') from t");
            assert_eq!(cells(&mut session, &query), [[expected]], "{value}");
        }
    }
}
