//! The end of `a IS DISTINCT FROM b`.
//!
//! The parser takes all that follows for the second operand, so that `a IS DISTINCT FROM b AND c` compared
//! `a` with `b AND c`: another answer, without a word where all three are truth values. Here the operands of
//! `AND` and `OR` are put together anew. What stands in parentheses is one operand.

use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, Expr, UnaryOperator, Value, Visit, VisitMut, Visitor, VisitorMut,
};
use std::ops::ControlFlow;

/// Ends the second operands of a statement where `AND` or `OR` follows.
pub(super) fn end_operands(statement: &mut (impl Visit + VisitMut)) {
    if Visit::visit(statement, &mut Finder).is_break() {
        // It never breaks off.
        let _whole = VisitMut::visit(statement, &mut Ender);
    }
}

struct Finder;

impl Visitor for Finder {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) if is_chain(right) => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

struct Ender;

impl VisitorMut for Ender {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if ends_open(expr) {
            let mut chain = Chain::default();
            chain.take(std::mem::replace(expr, Expr::value(Value::Null)), &|operand| operand);
            *expr = chain.joined();
        }
        ControlFlow::Continue(())
    }
}

/// Whether it is a chain of `AND` and `OR`.
fn is_chain(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. }) || is_open(expr)
}

/// Whether the last operand of a chain, or what stands alone, has operands that are not its own. Nothing
/// follows it: it has taken all.
fn ends_open(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, right, .. } => ends_open(right),
        other => is_open(other),
    }
}

/// Whether it ends with operands of a chain that are not its own.
fn is_open(expr: &Expr) -> bool {
    match expr {
        Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) => is_chain(right),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => is_open(expr),
        _ => false,
    }
}

/// The operands of a chain as they are written, each after the first behind its operator.
#[derive(Default)]
struct Chain(Vec<(BinaryOperator, Expr)>);

impl Chain {
    /// Adds the operands of an expression. The first of them is a part of what `whole` makes of it.
    fn take(&mut self, expr: Expr, whole: &dyn Fn(Expr) -> Expr) {
        match expr {
            Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
                self.take(*left, whole);
                let next = self.0.len();
                self.take(*right, &|operand| operand);
                if let Some(first) = self.0.get_mut(next) {
                    first.0 = op;
                }
            }
            Expr::IsDistinctFrom(left, right) if is_chain(&right) => {
                self.take(*right, &|first| whole(Expr::IsDistinctFrom(left.clone(), Box::new(first))));
            }
            Expr::IsNotDistinctFrom(left, right) if is_chain(&right) => {
                self.take(*right, &|first| whole(Expr::IsNotDistinctFrom(left.clone(), Box::new(first))));
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr } if is_open(&expr) => {
                let not = |first| Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(first) };
                self.take(*expr, &|first| whole(not(first)));
            }
            operand => self.0.push((BinaryOperator::And, whole(operand))),
        }
    }

    /// The chain, in which `AND` binds more than `OR`.
    fn joined(self) -> Expr {
        let mut sums: Vec<Expr> = Vec::new();
        for (op, operand) in self.0 {
            match sums.pop() {
                Some(last) if op == BinaryOperator::And => sums.push(joined(last, op, operand)),
                Some(last) => sums.extend([last, operand]),
                None => sums.push(operand),
            }
        }
        let chain = sums.into_iter().reduce(|left, right| joined(left, BinaryOperator::Or, right));
        chain.unwrap_or_else(|| Expr::value(Value::Null))
    }
}

fn joined(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use datafusion::logical_expr::sqlparser::dialect::GenericDialect;
    use datafusion::logical_expr::sqlparser::parser::Parser;

    /// The condition with parentheses around what the parser puts together, after operands have ended.
    fn ended(condition: &str) -> String {
        let mut parser = Parser::new(&GenericDialect {}).try_with_sql(condition).expect("words");
        let mut expr = parser.parse_expr().expect("a condition");
        super::end_operands(&mut expr);
        shown(&expr)
    }

    fn shown(expr: &super::Expr) -> String {
        use super::Expr;
        match expr {
            Expr::BinaryOp { left, op, right } => format!("({} {op} {})", shown(left), shown(right)),
            Expr::IsDistinctFrom(left, right) => format!("({} <> {})", shown(left), shown(right)),
            Expr::IsNotDistinctFrom(left, right) => format!("({} == {})", shown(left), shown(right)),
            Expr::UnaryOp { expr, .. } => format!("(NOT {})", shown(expr)),
            Expr::Nested(expr) => format!("[{}]", shown(expr)),
            other => other.to_string(),
        }
    }

    #[test]
    fn operands_end_before_and_and_or() {
        for (condition, expected) in [
            ("a is distinct from b and c", "((a <> b) AND c)"),
            ("a is not distinct from b or c and d", "((a == b) OR (c AND d))"),
            ("z and a is distinct from b or c", "((z AND (a <> b)) OR c)"),
            ("z or a is distinct from b and c or d", "((z OR ((a <> b) AND c)) OR d)"),
            ("not a is distinct from b and c", "((NOT (a <> b)) AND c)"),
            ("a is distinct from b and c is distinct from d or e", "(((a <> b) AND (c <> d)) OR e)"),
            ("a is distinct from (b and c) and d", "((a <> [(b AND c)]) AND d)"),
            ("a is distinct from b + 1 and c", "((a <> (b + 1)) AND c)"),
            ("a is distinct from b", "(a <> b)"),
        ] {
            assert_eq!(ended(condition), expected, "{condition}");
        }
    }

    #[test]
    fn conditions_behind_a_comparison_are_their_own() {
        let mut session = SqlSession::default();
        for (condition, expected) in [
            ("true is distinct from false and false", "false"),
            ("(true is distinct from false) and false", "false"),
            ("true is distinct from (false and false)", "true"),
            ("1 is distinct from 2 and true", "true"),
            ("null is not distinct from null or false", "true"),
        ] {
            let rows = session.run(&format!("select {condition}")).expect("a row");
            assert_eq!(rows, [[expected]], "{condition}");
        }
        let rows = session.run("select 1 where not 1 is distinct from 1 and true").expect("a row");
        assert_eq!(rows.len(), 1);
    }
}
