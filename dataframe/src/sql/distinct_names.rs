//! Names of conditions over subqueries that stand in one query.
//!
//! The library names the keys of groups, aggregates and windows by their texts, in which `a IN (SELECT ..)`
//! is `IN`, whatever is asked. Two of them in one query had one name, and the query was refused as if a
//! column stood there twice. Here each gets another text of the same value: `CASE WHEN 1 = 1 THEN a IN (..)
//! END`.

use datafusion::logical_expr::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, GroupByExpr, OrderBy, Query, Select, SetExpr, Value, Visit,
    VisitMut, Visitor, VisitorMut,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Gives the conditions of a query, not those of its subqueries, names of their own.
pub(super) fn name_apart(query: &mut Query) {
    match &mut *query.body {
        SetExpr::Select(select) => name_apart_in(select, &mut query.order_by),
        sides => in_sides(sides),
    }
}

fn in_sides(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => name_apart_in(select, &mut None),
        SetExpr::SetOperation { left, right, .. } => {
            in_sides(left);
            in_sides(right);
        }
        // A query in parentheses is visited by itself.
        _ => {}
    }
}

fn name_apart_in(select: &mut Select, order: &mut Option<OrderBy>) {
    let texts = named_texts(select, order.as_ref());
    if texts.len() < 2 {
        return;
    }
    let mut apart = Apart { queries: 0, texts: texts.into_iter().collect() };
    let Select { projection, group_by, having, qualify, .. } = select;
    // It never breaks off.
    let _whole = projection.visit(&mut apart);
    let _whole = group_by.visit(&mut apart);
    let _whole = having.visit(&mut apart);
    let _whole = qualify.visit(&mut apart);
    let _whole = order.visit(&mut apart);
}

/// The texts of conditions that are parts of names.
fn named_texts(select: &Select, order: Option<&OrderBy>) -> BTreeSet<String> {
    let Select { projection, group_by, having, qualify, .. } = select;
    let has_groups = match group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
    };
    // Keys of groups may be columns that are shown, by their places.
    let mut named = Named { queries: 0, calls: usize::from(has_groups), windows: 0, texts: BTreeSet::new() };
    let _whole = Visit::visit(group_by, &mut named);
    let _whole = Visit::visit(projection, &mut named);
    let _whole = Visit::visit(having, &mut named);
    let _whole = Visit::visit(qualify, &mut named);
    if let Some(order) = order {
        let _whole = Visit::visit(order, &mut named);
    }
    named.texts
}

/// Finds the conditions that are parts of names.
struct Named {
    /// Subqueries around the part that is visited.
    queries: usize,
    /// Calls and keys around it whose texts are names, and calls that are windows.
    calls: usize,
    windows: usize,
    texts: BTreeSet<String>,
}

impl Visitor for Named {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.queries == 0 {
            let is_named = 0 < self.calls && is_condition(expr);
            if is_named || 0 < self.windows && matches!(expr, Expr::Subquery(_)) {
                self.texts.insert(expr.to_string());
            }
            if let Expr::Function(call) = expr {
                self.calls += 1;
                self.windows += usize::from(is_window(call));
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.queries == 0
            && let Expr::Function(call) = expr
        {
            self.calls -= 1;
            self.windows -= usize::from(is_window(call));
        }
        ControlFlow::Continue(())
    }
}

fn is_condition(expr: &Expr) -> bool {
    match expr {
        Expr::InSubquery { .. } | Expr::Exists { .. } => true,
        Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => matches!(**right, Expr::Subquery(_)),
        _ => false,
    }
}

fn is_window(call: &Function) -> bool {
    call.over.is_some()
}

/// Writes these conditions so that each has a name of its own, wherever they stand: keys of groups are found
/// in other clauses by their texts.
struct Apart {
    queries: usize,
    texts: Vec<String>,
}

impl VisitorMut for Apart {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.queries == 0 && (is_condition(expr) || matches!(expr, Expr::Subquery(_))) {
            let text = expr.to_string();
            if let Some(number) = self.texts.iter().position(|known| *known == text) {
                let asked = std::mem::replace(expr, Expr::value(Value::Null));
                *expr = numbered(number, asked);
            }
        }
        ControlFlow::Continue(())
    }
}

/// The value of an expression, with a number in its text.
fn numbered(number: usize, expr: Expr) -> Expr {
    let number = || Box::new(Expr::value(Value::Number(number.to_string(), false)));
    let condition = Expr::BinaryOp { left: number(), op: BinaryOperator::Eq, right: number() };
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result: expr }],
        else_result: None,
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;

    #[track_caller]
    fn rows(query: &str) -> Vec<String> {
        let mut session = SqlSession::default();
        for statement in [
            "create table t (a int, b int) as values (1, 10), (2, 20), (3, 30), (null, 40)",
            "create table u (a int) as values (2), (3), (20)",
        ] {
            session.run(statement).expect("a table");
        }
        let mut rows = session.run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        rows.sort();
        rows.into_iter().map(|row| row.join(" ")).collect()
    }

    #[test]
    fn keys_of_groups_by_several_conditions_are_told_apart() {
        let groups = ["NULL false 1", "false false 1", "true false 1", "true true 1"];
        let (a, b) = ("a in (select a from u)", "b in (select a from u)");
        assert_eq!(rows(&format!("select {a} x, {b} y, count(*) from t group by {a}, {b}")), groups);
        assert_eq!(rows(&format!("select {a} x, {b} y, count(*) from t group by 1, 2")), groups);
        assert_eq!(rows(&format!("select {a} x, {b} y, count(*) from t group by x, y")), groups);
        assert_eq!(rows(&format!("select count(*) from t group by rollup ({a}, {b})")).len(), 8);
        let having = format!("select count(*) from t group by {a}, {b} having {b}");
        assert_eq!(rows(&having), ["1"]);
        let exists = |column| format!("exists (select 1 from u where u.a = t.{column})");
        let query = format!(
            "select count(*) n from t group by case when {} then 1 end, {}",
            exists("a"),
            exists("b")
        );
        assert_eq!(rows(&query), ["1", "1", "2"]);
    }

    #[test]
    fn aggregates_and_windows_of_several_conditions_are_told_apart() {
        let case = |column| format!("case when {column} in (select a from u) then b end");
        assert_eq!(rows(&format!("select sum({}) x, sum({}) y from t", case("a"), case("b"))), ["50 20"]);
        let over = |column| format!("sum(b) over (partition by {column} in (select a from u))");
        assert_eq!(
            rows(&format!("select b, {}, {} from t", over("a"), over("b"))),
            ["10 10 80", "20 50 20", "30 50 80", "40 40 80"]
        );
        let over = |value| format!("sum(b) over (order by (select {value}(u.a) from u where u.a = t.a), b)");
        assert_eq!(
            rows(&format!("select b, {}, {} from t", over("max"), over("-min"))),
            ["10 60 60", "20 20 50", "30 50 30", "40 100 100"]
        );
    }
}
