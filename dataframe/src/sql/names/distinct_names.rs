//! Names of conditions over subqueries that stand in one query.
//!
//! The library names the keys of groups, aggregates and windows by their texts, in which `a IN (SELECT ..)`
//! is `IN`, whatever is asked. Two of them in one query had one name, and the query was refused as if a
//! column stood there twice. Here each gets another text of the same value: `CASE WHEN 1 = 1 THEN a IN (..)
//! END`. Nor do the texts have casts: `count(cast(a as int))` and `count(a)` had one name. `t.a IN (..)` and
//! `A in (..)` are one expression, and keep one name.

use super::name_texts::{Texts, plain};
use datafusion::logical_expr::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, GroupByExpr, Ident, OrderBy, Query, Select, SelectItem,
    SetExpr, Value, Visit, VisitMut, Visitor, VisitorMut,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Gives the conditions of a query, not those of its subqueries, names of their own.
pub(in crate::sql) fn name_apart(query: &mut Query) {
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
    if texts.len() == 0 {
        return;
    }
    let mut apart = Apart { queries: 0, texts, numbers: Vec::new() };
    let Select { distinct, projection, group_by, having, named_window, qualify, .. } = select;
    projection.iter_mut().for_each(|item| name_item_apart(item, &mut apart));
    // It never breaks off.
    let _whole = distinct.visit(&mut apart);
    let _whole = group_by.visit(&mut apart);
    let _whole = having.visit(&mut apart);
    let _whole = named_window.visit(&mut apart);
    let _whole = qualify.visit(&mut apart);
    let _whole = order.visit(&mut apart);
}

/// Writes a shown value so that it has a name of its own, and its label is the text that it had.
fn name_item_apart(item: &mut SelectItem, apart: &mut Apart) {
    let SelectItem::UnnamedExpr(expr) = item else {
        let _whole = VisitMut::visit(item, apart);
        return;
    };
    let label = expr.to_string();
    let _whole = VisitMut::visit(expr, apart);
    if expr.to_string() != label {
        let expr = std::mem::replace(expr, Expr::value(Value::Null));
        *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', label) };
    }
}

/// The texts of conditions that are parts of names, if there are several, and of casts that names lack.
fn named_texts(select: &Select, order: Option<&OrderBy>) -> Texts {
    let Select { distinct, projection, group_by, having, named_window, qualify, .. } = select;
    let has_groups = match group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
    };
    // Keys of groups may be columns that are shown, by their places.
    let calls = usize::from(has_groups);
    let mut named = Named { calls, ..Named::default() };
    if let GroupByExpr::Expressions(keys, _) = group_by {
        keys.iter().for_each(|key| named.add(key));
    }
    for item in projection.iter().filter(|_| has_groups) {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            named.add(expr);
        }
    }
    let _whole = Visit::visit(distinct, &mut named);
    let _whole = Visit::visit(group_by, &mut named);
    let _whole = Visit::visit(projection, &mut named);
    let _whole = Visit::visit(having, &mut named);
    let _whole = Visit::visit(qualify, &mut named);
    if let Some(order) = order {
        let _whole = Visit::visit(order, &mut named);
    }
    // Their definitions are put in the places of their names.
    named.calls += 1;
    named.windows += 1;
    let _whole = Visit::visit(named_window, &mut named);
    let Named { texts, compared, without_casts, .. } = named;
    let mut apart = Texts::default();
    // The rows of ANY and ALL are no value: the library knows them by their form.
    texts.iter().filter(|text| !compared.contains(*text)).for_each(|text| apart.add(text));
    if apart.len() < 2 {
        apart = Texts::default();
    }
    let namesakes = without_casts.into_values().filter(|exprs| 1 < exprs.len());
    namesakes.flat_map(BTreeMap::into_values).flatten().for_each(|text| apart.add(&text));
    apart
}

/// Finds the conditions that are parts of names.
#[derive(Default)]
struct Named {
    /// Subqueries around the part that is visited.
    queries: usize,
    /// Calls and keys around it whose texts are names, and calls that are windows.
    calls: usize,
    windows: usize,
    texts: BTreeSet<String>,
    /// The texts of subqueries whose rows are compared with a value.
    compared: BTreeSet<String>,
    /// The expressions with a name, by their texts without casts: their texts, and the casts in them.
    without_casts: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

impl Named {
    fn add(&mut self, expr: &Expr) {
        let mut casts = Casts { depth: 0, texts: Vec::new() };
        let _whole = Visit::visit(expr, &mut casts);
        let mut without_casts = expr.clone();
        if !casts.texts.is_empty() {
            let _whole = VisitMut::visit(&mut without_casts, &mut WithoutCasts);
        }
        let of_name = self.without_casts.entry(plain(&without_casts.to_string())).or_default();
        of_name.insert(expr.to_string(), casts.texts);
    }
}

/// Finds casts that stand in no other one.
struct Casts {
    depth: usize,
    texts: Vec<String>,
}

impl Visitor for Casts {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Cast { .. }) {
            if self.depth == 0 {
                self.texts.push(expr.to_string());
            }
            self.depth += 1;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.depth -= usize::from(matches!(expr, Expr::Cast { .. }));
        ControlFlow::Continue(())
    }
}

struct WithoutCasts;

impl VisitorMut for WithoutCasts {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Cast { expr: value, .. } = expr {
            *expr = std::mem::replace(&mut **value, Expr::value(Value::Null));
        }
        ControlFlow::Continue(())
    }
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
            if let Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } = expr {
                self.compared.insert(right.to_string());
            }
            let is_named = 0 < self.calls && is_condition(expr);
            if is_named || 0 < self.windows && matches!(expr, Expr::Subquery(_)) {
                self.texts.insert(expr.to_string());
            }
            if let Expr::Function(call) = expr {
                self.add(expr);
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
    texts: Texts,
    /// The numbers of the expressions around, as they were before what stands in them got numbers.
    numbers: Vec<Option<usize>>,
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

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let may_be_named = is_condition(expr) || matches!(expr, Expr::Subquery(_) | Expr::Cast { .. });
        let may_be_named = self.queries == 0 && may_be_named;
        self.numbers.push(if may_be_named { self.texts.number(&expr.to_string()) } else { None });
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(Some(number)) = self.numbers.pop() {
            let asked = std::mem::replace(expr, Expr::value(Value::Null));
            *expr = numbered(number, asked);
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
    use crate::sql::small_tables::{rows_in, session_of};

    #[track_caller]
    fn rows(query: &str) -> Vec<String> {
        let mut session = session_of(&[
            "create table t (a int, b int) as values (1, 10), (2, 20), (3, 30), (null, 40)",
            "create table u (a int) as values (2), (3), (20)",
        ]);
        let mut rows = rows_in(&mut session, query);
        rows.sort();
        rows
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
    fn aggregates_and_keys_of_casts_are_told_apart() {
        assert_eq!(
            rows("select count(cast(a as varchar)), count(a), sum(a::bigint), sum(a) from t"),
            ["3 3 6 6"]
        );
        assert_eq!(rows("select sum(cast(b as bigint)) from t group by a having sum(b) > 30"), ["40"]);
        assert_eq!(
            rows("select cast(a as varchar) x, a y, count(*) from t group by x, y"),
            ["1 1 1", "2 2 1", "3 3 1", "NULL NULL 1"]
        );
        assert_eq!(
            rows("select cast(a as varchar) x, a y from t group by 1, a"),
            ["1 1", "2 2", "3 3", "NULL NULL"]
        );
        let query =
            "select sum(b) over (order by cast(a as varchar)), sum(b) over (order by a) from t where a < 3";
        assert_eq!(rows(query), ["10 10", "30 30"]);
        let query = "select max(cast(cast(a as varchar) as int)), max(a) from t";
        assert_eq!(rows(query), ["3 3"]);
    }

    #[test]
    fn labels_are_the_texts_of_the_query() {
        let t = crate::DataFrame::from_columns([("a", vec![1, 2].into())]);
        let found = crate::sql("select count(cast(a as varchar)), count(a) from t", &[("t", &t)]);
        assert_eq!(found.columns().expect("labels"), ["count(CAST(a AS VARCHAR))", "count(a)"]);
    }

    #[test]
    fn ways_to_write_a_key_are_one_key() {
        let groups = ["NULL 1", "false 1", "true 2"];
        let of = "in (select a from u)";
        for shown in [format!("t.a {of}"), format!("A {of}"), "\"a\" IN ( select A from U )".to_owned()] {
            let query = format!("select {shown} x, count(*) from t group by a {of}");
            assert_eq!(rows(&query), groups, "{query}");
            let query =
                format!("select {shown} x, count(*), b {of} from t where b < 0 group by a {of}, t.b {of}");
            assert_eq!(rows(&query), [""; 0], "{query}");
        }
        let query = "select count(cast(t.a as varchar)), count(a), max(T.a::bigint) from t";
        assert_eq!(rows(query), ["3 3 3"]);
        let query = format!(
            "select t.a {of} x, v.a {of} y, count(*) from t join t v on t.b = v.b where t.b = 20 \
                             group by t.a {of}, v.a {of}"
        );
        assert_eq!(rows(&query), ["true true 1"]);
    }

    #[test]
    fn first_rows_and_named_windows_of_several_conditions_are_told_apart() {
        let (a, b) = ("a in (select a from u)", "b in (select a from u)");
        let query = format!(
            "select distinct on ({a}) coalesce({a}, true) x, coalesce({b}, true) y from t order by {a}"
        );
        assert_eq!(rows(&query).len(), 3);
        let query = format!(
            "select b, sum(b) over w, sum(b) over v from t window w as (partition by {a}), \
                             v as (partition by {b})"
        );
        assert_eq!(rows(&query), ["10 10 80", "20 50 20", "30 50 80", "40 40 80"]);
    }

    #[test]
    fn conditions_over_conditions_are_told_apart() {
        let count =
            |truth| format!("count(case when (a in (select a from u)) in (select {truth}) then 1 end)");
        assert_eq!(rows(&format!("select {} x, {} y from t", count(true), count(false))), ["2 1"]);
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
        let of_any = "(select count(*) from u) = any (select u.a from u)";
        let query = format!("select b, sum(b) over (partition by {of_any}, (select max(a) from u)) from t");
        assert_eq!(rows(&query), ["10 100", "20 100", "30 100", "40 100"]);
        let over = |value| format!("sum(b) over (order by (select {value}(u.a) from u where u.a = t.a), b)");
        assert_eq!(
            rows(&format!("select b, {}, {} from t", over("max"), over("-min"))),
            ["10 60 60", "20 20 50", "30 50 30", "40 100 100"]
        );
    }
}
