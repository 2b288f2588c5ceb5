//! The bound on how deep a statement is nested.
//!
//! The parser puts a chain of operators together as a tree that is as deep as the chain is long; the library
//! goes through it by recursion, in many places. Long chains of `AND` and `OR` are put together anew, so that
//! they are as deep as the logarithm of their length; other operators have a bound. Statements are planned on
//! a large stack, which is enough for it.

use crate::error::{Error, Result};
use crate::planning::OPERATORS_MAX;
use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, Expr, Query, Select, SetExpr, Value, VisitMut, VisitorMut,
};
use datafusion::logical_expr::sqlparser::dialect::Dialect;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, Tokenizer};
use std::ops::ControlFlow;

/// Conditions of chains of `AND` and `OR` around each other at most. Rules of the library put them into one
/// row again, which tasks go through by recursion.
const CONDITIONS_MAX: usize = OPERATORS_MAX;

/// Chains of at most so many conditions stay as they are written.
const CONDITIONS_USUAL: usize = 16;

/// Words between two commas at most. Until they are parsed, each may be an operator: what a chain of them
/// takes of the stack has a bound.
const WORDS_MAX: usize = 50_000;

/// Refuses a text of more words than can be parsed on the stack of a thread that plans.
pub(super) fn check_text(text: &str, dialect: &dyn Dialect) -> Result<()> {
    // Shorter texts have no more words.
    if text.len() <= WORDS_MAX {
        return Ok(());
    }
    // The parser tells of texts that are no words.
    let Ok(tokens) = Tokenizer::new(dialect, text).tokenize() else { return Ok(()) };
    let (mut around, mut own) = (Vec::new(), 0);
    let mut all = 0;
    for token in tokens {
        match token {
            Token::Whitespace(_) => continue,
            Token::LParen | Token::LBracket | Token::LBrace => around.push(std::mem::take(&mut own)),
            Token::RParen | Token::RBracket | Token::RBrace => {
                all -= own;
                own = around.pop().unwrap_or_default();
            }
            Token::Comma | Token::SemiColon => all -= std::mem::take(&mut own),
            _ => (own, all) = (own + 1, all + 1),
        }
        if WORDS_MAX < all {
            return Err(Error::NotImplemented(format!(
                "more than {WORDS_MAX} words of a statement without a comma are not supported"
            )));
        }
    }
    Ok(())
}

/// Makes long chains of conditions of a statement flat, and refuses operators that are nested too deep.
pub(super) fn flatten(statement: &mut impl VisitMut) -> Result<()> {
    match statement.visit(&mut Depth::default()) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Parts of a chain of `AND` or `OR` as a tree that is as deep as the logarithm of their number.
pub(super) fn chain(mut parts: Vec<Expr>, op: &BinaryOperator) -> Expr {
    if parts.len() <= CONDITIONS_USUAL {
        let chain = parts.into_iter().reduce(|left, right| joined(left, op, right));
        return chain.unwrap_or_else(|| Expr::value(Value::Null));
    }
    while 1 < parts.len() {
        let mut rest = parts.into_iter();
        parts = Vec::with_capacity(rest.len().div_ceil(2));
        while let Some(left) = rest.next() {
            parts.push(match rest.next() {
                Some(right) => joined(left, op, right),
                None => left,
            });
        }
    }
    parts.pop().unwrap_or_else(|| Expr::value(Value::Null))
}

fn joined(left: Expr, op: &BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) }
}

/// The parts of a chain of one operator, in their order.
fn parts(expr: Expr, chained: &BinaryOperator) -> Vec<Expr> {
    let (mut parts, mut rest) = (Vec::new(), vec![expr]);
    while let Some(expr) = rest.pop() {
        match expr {
            Expr::BinaryOp { left, op, right } if op == *chained => rest.extend([*right, *left]),
            part => parts.push(part),
        }
    }
    parts
}

/// The number of parts of a chain.
fn count(expr: &Expr, chained: &BinaryOperator) -> usize {
    let (mut count, mut rest) = (0, vec![expr]);
    while let Some(expr) = rest.pop() {
        match expr {
            Expr::BinaryOp { left, op, right } if op == chained => rest.extend([&**right, &**left]),
            _ => count += 1,
        }
    }
    count
}

/// Expressions around the part that is visited.
#[derive(Default)]
struct Depth {
    around: Vec<Around>,
    operators: usize,
    conditions: usize,
}

/// An expression, and its part in the counts.
#[derive(Default)]
struct Around {
    chained: Option<BinaryOperator>,
    operators: usize,
    conditions: usize,
}

impl Depth {
    fn entered(&mut self, expr: &mut Expr) -> Around {
        let Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } = expr else {
            return Around { operators: 1, ..Around::default() };
        };
        let op = op.clone();
        let is_within = self.around.last().is_some_and(|around| around.chained.as_ref() == Some(&op));
        let conditions = if is_within { 0 } else { count(expr, &op) };
        if CONDITIONS_USUAL < conditions && conditions <= CONDITIONS_MAX {
            let parts = parts(std::mem::replace(expr, Expr::value(Value::Null)), &op);
            *expr = chain(parts, &op);
        }
        Around { chained: Some(op), operators: 0, conditions }
    }
}

impl VisitorMut for Depth {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let (mut queries, mut body) = (1, &*query.body);
        while let SetExpr::SetOperation { left, .. } = body {
            (queries, body) = (queries + 1, &**left);
        }
        bounded(queries, OPERATORS_MAX, "queries between UNION, INTERSECT and EXCEPT")
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let tables = select.from.iter().map(|table| 1 + table.joins.len()).sum();
        bounded(tables, OPERATORS_MAX, "tables of one FROM")
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let around = self.entered(expr);
        self.operators += around.operators;
        self.conditions += around.conditions;
        self.around.push(around);
        bounded(self.conditions, CONDITIONS_MAX, "conditions between AND and OR")?;
        bounded(self.operators, OPERATORS_MAX, "operators within each other")
    }

    fn post_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<Error> {
        if let Some(around) = self.around.pop() {
            self.operators -= around.operators;
            self.conditions -= around.conditions;
        }
        ControlFlow::Continue(())
    }
}

/// Refuses more than so many.
fn bounded(count: usize, bound: usize, what: &str) -> ControlFlow<Error> {
    if count <= bound {
        return ControlFlow::Continue(());
    }
    ControlFlow::Break(Error::NotImplemented(format!(
        "more than {bound} {what} are not supported (make a table of a part of them)"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::SqlSession;
    use crate::{DataFrame, sql};
    use datafusion::logical_expr::sqlparser::dialect::GenericDialect;

    fn session() -> SqlSession {
        let mut session = SqlSession::default();
        session.run("create table t (a bigint, c boolean) as values (1, true), (7, true)").expect("a table");
        session
    }

    /// A chain of so many conditions.
    fn chain(op: &str, count: usize) -> String {
        let parts: Vec<String> = (0..count).map(|at| format!("a <> {}", 10 + at)).collect();
        parts.join(op)
    }

    #[test]
    fn long_chains_of_conditions_are_planned_and_run() {
        let mut session = session();
        for count in [17, 200, CONDITIONS_MAX] {
            let query = format!("select a from t where {} order by a", chain(" and ", count));
            assert_eq!(session.run(&query).expect("rows"), [["1"], ["7"]], "{count}");
            let query = format!("select ({}) x from t where a = 1", chain(" or ", count));
            assert_eq!(session.run(&query).expect("rows"), [["true"]], "{count}");
        }
        let others = " and c".repeat(200);
        let query = format!("select 1 from (select true a, true b, true c) t where a = b{others}");
        assert_eq!(session.run(&query).expect("a row"), [["1"]]);
        let t = DataFrame::from_columns([("a", vec![1, 7].into())]);
        let query = format!("select a from t where {}", chain(" and ", CONDITIONS_MAX));
        let found = sql(&query, &[("t", &t)]);
        assert_eq!(found.col("a").values::<i64>().expect("rows"), [Some(1), Some(7)]);
    }

    #[test]
    fn chains_of_other_operators_are_planned_and_run_to_a_bound() {
        let mut session = session();
        for (first, operator, count, expected) in
            [("a", " + 1", 99, "100"), ("c", " is not null", 399, "true"), ("a", "::bigint", 399, "1")]
        {
            let query = format!("select {first}{} from t where a = 1", operator.repeat(count));
            assert_eq!(session.run(&query).expect("rows"), [[expected]], "{operator}");
        }
        let unions = ["select a from t"; 100].join(" union all ");
        assert_eq!(session.run(&format!("select count(*) from ({unions}) u")).expect("a row"), [["200"]]);
    }

    #[test]
    fn statements_that_are_nested_too_deep_are_refused_with_the_bound() {
        let t = DataFrame::from_columns([("a", vec![1].into())]);
        let unions = ["select a from t"; OPERATORS_MAX + 1].join(" union all ");
        let joins = " cross join t".repeat(OPERATORS_MAX + 1);
        for (query, told) in [
            (format!("select a{} from t", " + 1".repeat(OPERATORS_MAX)), "500 operators within"),
            (format!("select a from t where {}", chain(" and ", CONDITIONS_MAX + 1)), "conditions between"),
            (format!("select a{} from t", " + a".repeat(WORDS_MAX)), "words of a statement"),
            (format!("select a from t where a{}", " is null".repeat(20_000)), "500 operators within"),
            (unions, "500 queries between"),
            (format!("select 1 from t{joins}"), "500 tables of one FROM"),
        ] {
            for error in [
                session().run(&query).expect_err("too deep"),
                sql(&query, &[("t", &t)]).columns().expect_err("too deep"),
            ] {
                assert_eq!(error.class(), "NotImplemented", "{error}");
                assert!(error.to_string().contains(told), "{error}");
            }
        }
    }

    #[test]
    fn lists_of_any_length_are_no_chains() {
        let mut session = session();
        let list = |values: std::ops::Range<usize>| {
            let values: Vec<String> = values.map(|value| value.to_string()).collect();
            format!("select a from t where a in ({})", values.join(","))
        };
        assert!(check_text(&list(2..2 * WORDS_MAX), &GenericDialect {}).is_ok());
        assert_eq!(session.run(&list(2..5000)).expect("rows"), [["7"]]);
        let values: Vec<String> = (0..500).map(|value| format!("a + {value}")).collect();
        let query = format!("select a from t where 7 in ({}) order by a", values.join(","));
        assert_eq!(session.run(&query).expect("rows"), [["1"], ["7"]]);
    }
}
