//! Fields of columns of a table that is named before them: `t.s.x`.
//!
//! The library finds them in the tables of the query itself; in a subquery, of the rows around it, it refuses
//! them, and takes `t.s['x']`. They are written so.

use datafusion::logical_expr::sqlparser::ast::{
    AccessExpr, Expr, Ident, Subscript, TableFactor, Value, Visit, VisitMut, Visitor, VisitorMut,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Writes fields of columns behind the names of tables in the form that the library has everywhere.
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
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::UNNEST { alias, .. } => (None, alias),
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
        if let Expr::CompoundIdentifier(parts) = expr
            && let [table, column, fields @ ..] = parts.as_slice()
            && !fields.is_empty()
            && self.0.has(table)
        {
            let field = |name: &Ident| {
                let index = Expr::Value(Value::SingleQuotedString(normal(name)).with_span(name.span));
                AccessExpr::Subscript(Subscript::Index { index })
            };
            let access_chain = fields.iter().map(field).collect();
            let root = Box::new(Expr::CompoundIdentifier(vec![table.clone(), column.clone()]));
            *expr = Expr::CompoundFieldAccess { root, access_chain };
        }
        ControlFlow::Continue(())
    }
}

/// A name as the library reads it.
pub(in crate::sql) fn normal(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;

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
