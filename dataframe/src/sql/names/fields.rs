//! Fields of columns of a table that is named before them, `t.s.x`, and of values, `l[1].x`.
//!
//! The library finds those of columns in the tables of the query itself; in a subquery, of the rows around
//! it, it refuses them, and takes `t.s['x']`. It refuses a point behind a value. They are written so.

use datafusion::logical_expr::sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArguments, Ident, Subscript, TableFactor, Value, Visit, VisitMut,
    Visitor, VisitorMut,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Writes fields of columns behind the names of tables, and those of values, in the form that the library has
/// everywhere.
pub(in crate::sql) fn write_fields(statement: &mut (impl Visit + VisitMut)) {
    let tables = Tables::of(statement);
    // It never breaks off.
    let _whole = VisitMut::visit(statement, &mut Writer(tables));
}

/// The names that tables have in FROM, anywhere in a statement.
#[derive(Default)]
pub(in crate::sql) struct Tables(BTreeSet<String>);

impl Tables {
    pub(in crate::sql) fn of(statement: &impl Visit) -> Tables {
        let mut tables = Tables::default();
        // It never breaks off.
        let _whole = Visit::visit(statement, &mut tables);
        tables
    }

    /// Whether a name is that of a table.
    pub(in crate::sql) fn has(&self, name: &Ident) -> bool {
        self.0.contains(&normal(name))
    }
}

impl Visitor for Tables {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let (name, alias) = match factor {
            TableFactor::Table { name, alias, .. } | TableFactor::Function { name, alias, .. } => {
                (name.0.last().and_then(|part| part.as_ident()), alias)
            }
            TableFactor::Derived { alias, .. }
            | TableFactor::NestedJoin { alias, .. }
            | TableFactor::Pivot { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::Unpivot { alias, .. } => (None, alias),
            _ => return ControlFlow::Continue(()),
        };
        self.0.extend(alias.as_ref().map(|alias| &alias.name).or(name).map(normal));
        ControlFlow::Continue(())
    }
}

struct Writer(Tables);

impl VisitorMut for Writer {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        write_path(expr);
        if let Expr::CompoundIdentifier(parts) = expr
            && let [table, column, fields @ ..] = parts.as_slice()
            && !fields.is_empty()
            && self.0.has(table)
        {
            let access_chain = fields.iter().map(field).collect();
            let root = Box::new(Expr::CompoundIdentifier(vec![table.clone(), column.clone()]));
            *expr = Expr::CompoundFieldAccess { root, access_chain };
        }
        ControlFlow::Continue(())
    }
}

/// Writes the names at the begin of a path as such, and those behind another value as fields of it.
fn write_path(expr: &mut Expr) {
    match expr {
        Expr::Function(_) => {
            if let Some(parts) = names(expr).filter(|parts| 1 < parts.len()) {
                *expr = Expr::CompoundIdentifier(parts);
            }
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            let (mut parts, mut rest) = (names(root).unwrap_or_default(), Vec::new());
            for access in std::mem::take(access_chain) {
                match access {
                    AccessExpr::Dot(part) => match names(&part) {
                        Some(more) if !parts.is_empty() && rest.is_empty() => parts.extend(more),
                        Some(more) => rest.extend(more.iter().map(field)),
                        None => rest.push(AccessExpr::Dot(part)),
                    },
                    other => rest.push(other),
                }
            }
            let path = if 1 < parts.len() {
                Expr::CompoundIdentifier(parts)
            } else {
                std::mem::replace(&mut **root, Expr::value(Value::Null))
            };
            *expr = if rest.is_empty() {
                path
            } else {
                Expr::CompoundFieldAccess { root: Box::new(path), access_chain: rest }
            };
        }
        _ => {}
    }
}

/// The names of a path. The parser takes words such as `user` for functions without parentheses.
fn names(expr: &Expr) -> Option<Vec<Ident>> {
    match expr {
        Expr::Identifier(name) => Some(vec![name.clone()]),
        Expr::CompoundIdentifier(names) => Some(names.clone()),
        Expr::Function(Function { name, args: FunctionArguments::None, .. }) => {
            name.0.iter().map(|part| part.as_ident().cloned()).collect()
        }
        _ => None,
    }
}

/// A field of a value.
fn field(name: &Ident) -> AccessExpr {
    let index = Expr::Value(Value::SingleQuotedString(normal(name)).with_span(name.span));
    AccessExpr::Subscript(Subscript::Index { index })
}

/// A name as the library reads it.
pub(in crate::sql) fn normal(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;

    #[test]
    fn fields_of_words_and_of_values_are_read() {
        let mut session = SqlSession::default();
        let user = "{'name': 'ann', 'tags': [{'k': 5}, {'k': 7}]}";
        session.run(&format!("create table e as select {user} as \"user\", 1 as id")).expect("e");
        for (query, expected) in [
            ("select user.name from e", "ann"),
            ("select x.user.name from e x", "ann"),
            ("select user['name'] from e", "ann"),
            ("select user.tags[2].k from e", "7"),
            ("select x.user.tags[1].k + 1 from e x", "6"),
            ("select max(e.user.name) from e group by user.name", "ann"),
            ("select id from e where user.name = 'ann'", "1"),
            ("select (select max(i.user.name) from e i where i.user.name <= o.user.name) from e o", "ann"),
            ("select ({'a': {'b': 3}}).a.b", "3"),
            ("select u.user from (select 'eve' as user) u", "eve"),
        ] {
            let rows = session.run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
            assert_eq!(rows, [[expected]], "{query}");
        }
        for (query, name) in [
            ("select u.user from (select 'eve' as user) u", "user"),
            ("select user.name from e", "name"),
            ("select user.tags[1].k from e", "k"),
        ] {
            assert_eq!(session.frame(query).columns().expect("names"), [name], "{query}");
        }
    }

    #[test]
    fn fields_of_rows_around_a_subquery_are_read() {
        let mut session = SqlSession::default();
        session
            .run("create table t as select 1 as id, {'x': 3} as s union all select 2, {'x': 1}")
            .expect("t");
        for (query, expected) in [
            ("select id from t o where exists (select 1 from t i where i.s.x < o.s.x)", "1"),
            ("select (select max(i.s.x) from t i where i.s.x <= o.s.x) from t o where id = 1", "3"),
            (
                "select n from t o, lateral (select count(*) n from t i where i.s.x < O.s.x) l where id = 1",
                "1",
            ),
            ("select sum(t.s.x) from t group by t.id having t.id = 2 order by max(t.s.x)", "1"),
            ("select id from t order by t.s.x limit 1", "2"),
        ] {
            let rows = session.run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
            assert_eq!(rows, [[expected]], "{query}");
        }
    }
}
