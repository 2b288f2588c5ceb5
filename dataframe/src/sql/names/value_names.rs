//! Names of values that are given none: as they are written, or those of their columns.

use super::fields::normal;
use datafusion::logical_expr::sqlparser::ast::{
    AccessExpr, Expr, Function, Ident, ObjectNamePart, SelectItem, SetExpr, Subscript, Value, VisitMut,
    VisitorMut,
};
use std::ops::ControlFlow;

/// The name of a value; `None` for those of several columns.
pub(in crate::sql) fn item_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(normal(alias)),
        SelectItem::UnnamedExpr(expr) => Some(name_of(expr)),
        _ => None,
    }
}

/// The name of an expression that is given none.
pub(in crate::sql) fn name_of(expr: &Expr) -> String {
    own_name(expr).unwrap_or_else(|| text(unnested(expr)))
}

pub(in crate::sql) fn unnested(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(expr) => unnested(expr),
        expr => expr,
    }
}

/// The name of an expression that is not its text.
pub(in crate::sql) fn own_name(expr: &Expr) -> Option<String> {
    match unnested(expr) {
        Expr::Subquery(query) => match &*query.body {
            SetExpr::Select(select) => match select.projection.as_slice() {
                [only] => item_name(only),
                _ => None,
            },
            _ => None,
        },
        expr => column_name(expr),
    }
}

/// The name of a column, of a field, and of one of them that is cast.
fn column_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(expr) | Expr::Cast { expr, .. } => column_name(expr),
        Expr::Identifier(name) => Some(normal(name)),
        Expr::CompoundIdentifier(parts) => parts.last().map(normal),
        Expr::CompoundFieldAccess { access_chain, .. } => match access_chain.last()? {
            AccessExpr::Dot(Expr::Identifier(name)) => Some(normal(name)),
            AccessExpr::Subscript(Subscript::Index { index: Expr::Value(name) }) => match &name.value {
                Value::SingleQuotedString(name) => Some(name.clone()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Gives a value a name.
pub(in crate::sql) fn set_name(item: &mut SelectItem, name: String) {
    let expr = match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr,
        _ => return,
    };
    let expr = std::mem::replace(expr, Expr::value(Value::Null));
    *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
}

/// An expression as it is written, with names as they are read, and without quotes around plain ones.
pub(in crate::sql) fn text(expr: &Expr) -> String {
    let mut expr = expr.clone();
    // It never breaks off.
    let _whole = VisitMut::visit(&mut expr, &mut Plain);
    expr.to_string()
}

struct Plain;

impl VisitorMut for Plain {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(Function { name, .. }) => {
                for part in &mut name.0 {
                    if let ObjectNamePart::Identifier(name) = part {
                        read(name);
                    }
                }
            }
            Expr::Identifier(name) => read(name),
            Expr::CompoundIdentifier(parts) => parts.iter_mut().for_each(read),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn read(name: &mut Ident) {
    name.value = normal(name);
    if name.value.chars().all(|letter| letter.is_alphanumeric() || letter == '_') {
        name.quote_style = None;
    }
}
