//! The end of `a IS DISTINCT FROM b`.
//!
//! The parser takes all that follows for the second operand, so that `a IS DISTINCT FROM b AND c` compared
//! `a` with `b AND c`: another answer, without a word where all three are truth values. So did `a IS DISTINCT
//! FROM b IS NULL`. Here the operands of `AND`, `OR` and `IS` are put together anew. What stands in
//! parentheses is one operand.

use crate::error::{Error, Result};
use crate::sql::depth::chain;
use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, Expr, UnaryOperator, Value, Visit, VisitMut, Visitor, VisitorMut,
};
use std::ops::ControlFlow;

/// Ends the second operands of a statement where `AND`, `OR` or `IS` follows.
pub(in crate::sql) fn end_operands(statement: &mut (impl Visit + VisitMut)) -> Result<()> {
    let mut finder = Finder::default();
    // It never breaks off.
    let _whole = Visit::visit(statement, &mut finder);
    if finder.has_chains {
        let text = "IS DISTINCT FROM behind another one has no order: write parentheses";
        return Err(Error::NotImplemented(text.to_owned()));
    }
    if finder.has_ends {
        let _whole = VisitMut::visit(statement, &mut Ender);
    }
    Ok(())
}

#[derive(Default)]
struct Finder {
    /// Whether second operands have taken what is not theirs.
    has_ends: bool,
    /// Whether some stand behind each other.
    has_chains: bool,
}

impl Visitor for Finder {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) = expr {
            self.has_ends |= is_longer(right);
            self.has_chains |= is_distinct(first(right));
        }
        ControlFlow::Continue(())
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

/// Whether a second operand is longer than one.
fn is_longer(expr: &Expr) -> bool {
    let is_chain = matches!(expr, Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. });
    is_chain || is_distinct(expr) || behind_is(expr).is_some() || is_open(expr)
}

fn is_distinct(expr: &Expr) -> bool {
    matches!(expr, Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..))
}

/// The first operand of a chain.
fn first(mut expr: &Expr) -> &Expr {
    while let Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, left, .. } = expr {
        expr = left;
    }
    expr
}

/// The value of which `IS` says something.
fn behind_is(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::IsFalse(value)
        | Expr::IsNotFalse(value)
        | Expr::IsTrue(value)
        | Expr::IsNotTrue(value)
        | Expr::IsNull(value)
        | Expr::IsNotNull(value)
        | Expr::IsUnknown(value)
        | Expr::IsNotUnknown(value) => Some(value),
        _ => None,
    }
}

/// Whether the last operand of a chain, or what stands alone, has operands that are not its own. Nothing
/// follows it: it has taken all.
fn ends_open(mut expr: &Expr) -> bool {
    while let Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, right, .. } = expr {
        expr = right;
    }
    is_open(expr)
}

/// Whether it ends with operands of a chain that are not its own.
fn is_open(expr: &Expr) -> bool {
    match expr {
        Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) => is_longer(right),
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
            Expr::IsDistinctFrom(left, right) if is_longer(&right) => {
                let distinct = |right| Expr::IsDistinctFrom(left.clone(), Box::new(right));
                self.take(*right, &|first| whole(ended(first, &distinct)));
            }
            Expr::IsNotDistinctFrom(left, right) if is_longer(&right) => {
                let distinct = |right| Expr::IsNotDistinctFrom(left.clone(), Box::new(right));
                self.take(*right, &|first| whole(ended(first, &distinct)));
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
        let mut sums: Vec<Vec<Expr>> = Vec::new();
        for (op, operand) in self.0 {
            match sums.last_mut() {
                Some(last) if op == BinaryOperator::And => last.push(operand),
                _ => sums.push(vec![operand]),
            }
        }
        let sums = sums.into_iter().map(|operands| chain(operands, &BinaryOperator::And));
        chain(sums.collect(), &BinaryOperator::Or)
    }
}

/// A comparison with a second operand that ends before `IS`, of which `IS` says something then.
fn ended(right: Expr, distinct: &dyn Fn(Expr) -> Expr) -> Expr {
    let within = |value: Box<Expr>| Box::new(ended(*value, distinct));
    match right {
        Expr::IsFalse(value) => Expr::IsFalse(within(value)),
        Expr::IsNotFalse(value) => Expr::IsNotFalse(within(value)),
        Expr::IsTrue(value) => Expr::IsTrue(within(value)),
        Expr::IsNotTrue(value) => Expr::IsNotTrue(within(value)),
        Expr::IsNull(value) => Expr::IsNull(within(value)),
        Expr::IsNotNull(value) => Expr::IsNotNull(within(value)),
        Expr::IsUnknown(value) => Expr::IsUnknown(within(value)),
        Expr::IsNotUnknown(value) => Expr::IsNotUnknown(within(value)),
        right => distinct(right),
    }
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
        super::end_operands(&mut expr).expect("operands");
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
            Expr::IsNull(expr) => format!("({} NULL)", shown(expr)),
            Expr::IsNotTrue(expr) => format!("({} NOT TRUE)", shown(expr)),
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
            ("a is distinct from b is null", "((a <> b) NULL)"),
            ("a is not distinct from b is null is not true", "(((a == b) NULL) NOT TRUE)"),
            ("not a is distinct from b is null and c", "((NOT ((a <> b) NULL)) AND c)"),
            ("a is distinct from b and c is null", "((a <> b) AND (c NULL))"),
            ("a is distinct from (b is null)", "(a <> [(b NULL)])"),
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
            ("true is distinct from false is null", "false"),
            ("null is distinct from true is null", "false"),
            ("1 is distinct from 1 is not null", "true"),
        ] {
            let rows = session.run(&format!("select {condition}")).expect("a row");
            assert_eq!(rows, [[expected]], "{condition}");
        }
        let rows = session.run("select 1 where not 1 is distinct from 1 and true").expect("a row");
        assert_eq!(rows.len(), 1);
        for chain in ["is distinct from true", "and 1 is null is not distinct from 3 is distinct from 4"] {
            let query = format!("select 1 is distinct from 2 {chain}");
            let error = session.run(&query).expect_err("no order");
            assert!(error.to_string().contains("write parentheses"), "{query}: {error}");
        }
    }
}
