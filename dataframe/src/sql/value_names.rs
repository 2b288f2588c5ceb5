//! Labels of values of subqueries beside columns of the same name.
//!
//! The label of `(SELECT v.a FROM v)` is `a`. The library refuses a query with another column `a`: by an
//! inner name if one of them has a table. Such a value has its text as a label.

use super::name_texts::plain;
use datafusion::logical_expr::sqlparser::ast::{Expr, Ident, Select, SelectItem, SetExpr};

/// Labels values of subqueries that would have the name of another value of the query.
pub(super) fn name_values(select: &mut Select) {
    let names: Vec<Option<String>> = select.projection.iter().map(name_of).collect();
    let mut labels: Vec<String> = names.iter().flatten().cloned().collect();
    // The names of all columns of a table are not known here: any may be among them.
    let is_all =
        |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    let has_all = select.projection.iter().any(is_all);
    for (at, item) in select.projection.iter_mut().enumerate() {
        let SelectItem::UnnamedExpr(value @ Expr::Subquery(_)) = item else { continue };
        let is_shared = |(other, name): (usize, &Option<String>)| other != at && *name == names[at];
        if names[at].is_none() || !has_all && !names.iter().enumerate().any(is_shared) {
            continue;
        }
        let text = value.to_string();
        let mut label = text.clone();
        let mut number = 2;
        while labels.contains(&label) {
            label = format!("{text} {number}");
            number += 1;
        }
        labels.push(label.clone());
        let expr = value.clone();
        *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', label) };
    }
}

/// The name that a value of a query has; `None` for those of several columns.
fn name_of(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(name(alias)),
        SelectItem::UnnamedExpr(Expr::Subquery(query)) => match &*query.body {
            SetExpr::Select(select) => match select.projection.as_slice() {
                [only] => name_of(only),
                _ => None,
            },
            _ => None,
        },
        SelectItem::UnnamedExpr(Expr::Identifier(column)) => Some(name(column)),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last().map(name),
        SelectItem::UnnamedExpr(expr) => Some(plain(&expr.to_string())),
        _ => None,
    }
}

fn name(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;

    #[track_caller]
    fn rows(query: &str) -> Vec<String> {
        let mut session = SqlSession::default();
        for statement in ["create table t as values (1), (2), (3)", "create table v as values (2), (3), (5)"]
        {
            session.run(statement).expect("a table");
        }
        let rows = session.run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        rows.into_iter().map(|row| row.join(" ")).collect()
    }

    #[test]
    fn values_of_subqueries_stand_beside_columns_of_their_name() {
        let equal = "(select v.column1 from v where v.column1 = t.column1)";
        let query = format!("select t.column1, {equal} from t order by 1");
        assert_eq!(rows(&query), ["1 NULL", "2 2", "3 3"]);
        let least = "(select column1 from v where column1 > t.column1 order by 1 limit 1)";
        let query = format!("select {equal}, {least} from t order by t.column1");
        assert_eq!(rows(&query), ["NULL 2", "2 3", "3 5"]);
        let query = format!("select {least}, {least} from t order by t.column1");
        assert_eq!(rows(&query), ["2 2", "3 3", "5 5"]);
        for all in ["*", "t.*"] {
            let query = format!("select {all}, {equal} from t order by 1");
            assert_eq!(rows(&query), ["1 NULL", "2 2", "3 3"]);
        }
        let query = "select max(column1), (select max(column1) from v) from t";
        assert_eq!(rows(query), ["3 5"]);
        let query = "select (select max(column1) from v), (select max(v.column1) from v where column1 < 5)";
        assert_eq!(rows(query), ["5 3"]);
    }
}
