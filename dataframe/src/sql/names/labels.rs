//! Names of columns that a query computes.
//!
//! A value that has no name of its own is named as it is written: `40 + 2`, `sum(sold)`. A column, a field
//! and a column that is cast keep their names, as in PostgreSQL: `sold::double` is `sold`.

use super::base_columns::{hide_keys, read_in_expressions};
use super::fields::Tables;
use super::namesakes::{hidden, plain_name};
use super::value_names::{item_name, own_name, set_name, text, unnested};
use datafusion::logical_expr::sqlparser::ast::{
    Expr, Ident, OrderBy, Query, Select, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor,
    Visit, VisitMut, VisitorMut, With, visit_expressions_mut,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// The name of a call that the library names so, too.
const COUNT: &str = "count(*)";

/// Names the values of queries whose columns are shown or read by name.
pub(in crate::sql) fn write_labels(statement: &mut (impl Visit + VisitMut)) {
    let tables = Tables::of(statement);
    // It never breaks off.
    let mut labels = Labels { tables, around: vec![0], clauses: Vec::new(), unnamed: 0 };
    let _whole = VisitMut::visit(statement, &mut labels);
}

struct Labels {
    tables: Tables,
    /// Expressions around the part that is visited, within each query in FROM and WITH.
    around: Vec<usize>,
    /// The WITH of each query around, whose tables have been visited.
    clauses: Vec<Option<With>>,
    /// Queries in FROM that have got a name.
    unnamed: usize,
}

impl VisitorMut for Labels {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        self.around.push(0);
        if let TableFactor::Derived { subquery, alias, .. } = table
            && let Some(names) = self.name_query(subquery)
        {
            name_columns(alias.get_or_insert_with(|| self.new_alias()), names);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, _: &mut TableFactor) -> ControlFlow<()> {
        self.around.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
        if let Some(around) = self.around.last_mut() {
            *around += 1;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
        if let Some(around) = self.around.last_mut() {
            *around -= 1;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        // Queries read these tables by name, also one that stands for a value.
        let mut with = query.with.take();
        self.around.push(0);
        for rows in with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            if let Some(names) = self.name_query(&mut rows.query) {
                name_columns(&mut rows.alias, names);
            }
            VisitMut::visit(rows, self)?;
        }
        self.around.pop();
        self.clauses.push(with);
        self.name_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        query.with = self.clauses.pop().flatten();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.name_all(select, None);
        ControlFlow::Continue(())
    }
}

impl Labels {
    /// Names the values of a query. Gives the names of its columns, each of another one, if some may not have
    /// them within it: queries around read them so.
    fn name_query(&self, query: &mut Query) -> Option<Vec<String>> {
        self.name_body(&mut query.body, query.order_by.as_mut()).map(|(names, _)| names)
    }

    /// Names the values of the part of a query that is not its order. The keys of this one are columns of it.
    /// Gives the names of columns, and those that some may not have.
    fn name_body(
        &self,
        body: &mut SetExpr,
        order: Option<&mut OrderBy>,
    ) -> Option<(Vec<String>, BTreeSet<String>)> {
        let (names, apart) = match body {
            SetExpr::Select(select) => {
                let names: Option<Vec<String>> = select.projection.iter().map(name).collect();
                let apart = self.name_all(select, order);
                let is_each_other =
                    |names: &Vec<String>| names.iter().collect::<BTreeSet<_>>().len() == names.len();
                return names.filter(|names| !apart.is_empty() && is_each_other(names)).zip(Some(apart));
            }
            SetExpr::Query(query) => self.name_body(&mut query.body, query.order_by.as_mut())?,
            SetExpr::SetOperation { left, .. } => self.name_body(left, None)?,
            _ => return None,
        };
        if let Some(order) = order {
            hide_keys(order, &apart);
        }
        Some((names, apart))
    }

    /// A name that nobody types, for a query in FROM that has none.
    fn new_alias(&mut self) -> TableAlias {
        self.unnamed += 1;
        let name = Ident::with_quote('"', hidden(&self.unnamed.to_string()));
        TableAlias { explicit: true, name, columns: Vec::new(), at: None }
    }

    /// Names the values of a query; gives the names that some may not have. Nobody sees those of a subquery
    /// that stands for a value.
    fn name_all(&self, select: &mut Select, order: Option<&mut OrderBy>) -> BTreeSet<String> {
        if self.around.last() != Some(&0) {
            return BTreeSet::new();
        }
        let unnamed = select.projection.iter().filter_map(|item| self.unnamed(item));
        let borrowed: BTreeMap<String, String> =
            unnamed.filter_map(|expr| Some((own_name(expr)?, label(expr)))).collect();
        let apart = if borrowed.is_empty() {
            BTreeSet::new()
        } else {
            read_in_expressions(select, order, &borrowed, &self.tables)
        };
        for item in &mut select.projection {
            if let Some(expr) = self.unnamed(item) {
                let name = own_name(expr).filter(|name| !apart.contains(name));
                let name = name.unwrap_or_else(|| label(expr));
                set_name(item, name);
            }
        }
        apart
    }

    /// A value that has neither a name nor is a column, which the library names.
    fn unnamed<'a>(&self, item: &'a SelectItem) -> Option<&'a Expr> {
        let SelectItem::UnnamedExpr(expr) = item else { return None };
        let is_named = match expr {
            Expr::Identifier(_) => true,
            Expr::CompoundIdentifier(parts) => parts.first().is_some_and(|first| self.tables.has(first)),
            Expr::Function(_) => expr.to_string().eq_ignore_ascii_case(COUNT),
            _ => false,
        };
        (!is_named).then_some(expr)
    }
}

/// The name of a value; `None` for those of several columns.
fn name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expr) => Some(own_name(expr).unwrap_or_else(|| label(expr))),
        item => item_name(item),
    }
}

/// An expression as it is written. Names in it may have got tags (`letters`).
fn label(expr: &Expr) -> String {
    let mut expr = unnested(expr).clone();
    let plain = |name: &mut Ident| name.value = plain_name(&name.value).to_owned();
    // It never breaks off.
    let _whole = visit_expressions_mut(&mut expr, |part| {
        match part {
            Expr::Identifier(name) => plain(name),
            Expr::CompoundIdentifier(parts) => parts.iter_mut().for_each(plain),
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    text(&expr)
}

/// Gives the columns of a query their names, if its alias has none for them.
fn name_columns(alias: &mut TableAlias, names: Vec<String>) {
    if alias.columns.is_empty() {
        let name = |name| TableAliasColumnDef { name: Ident::with_quote('"', name), data_type: None };
        alias.columns = names.into_iter().map(name).collect();
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::names::value_names::name_of;
    use crate::sql::small_tables::{answer, three_columns};
    use datafusion::logical_expr::sqlparser::dialect::GenericDialect;
    use datafusion::logical_expr::sqlparser::parser::Parser;

    #[test]
    fn expressions_have_names_as_they_are_written() {
        for (expr, expected) in [
            ("40+2", "40 + 2"),
            ("(40 + 2)", "40 + 2"),
            ("SUM( T.a )", "sum(t.a)"),
            ("Count(distinct \"C\")", "count(DISTINCT C)"),
            ("count(*)", "count(*)"),
            ("extract(year from day)", "EXTRACT(YEAR FROM day)"),
            ("sold::double", "sold"),
            ("cast(t.Sold as int)", "sold"),
            ("\"Sold\"::int", "Sold"),
            ("sum(a)::double", "sum(a)::DOUBLE"),
            ("'x'", "'x'"),
            ("date '2024-01-01'", "DATE '2024-01-01'"),
            ("-a", "-a"),
            ("not a", "NOT a"),
            ("\"a b\" || 'c'", "\"a b\" || 'c'"),
            ("s.x", "x"),
            ("t.s['Name']", "Name"),
            ("s['x'].y", "y"),
            ("l[1]", "l[1]"),
            ("(select max(b) from u)", "max(b)"),
            ("(select * from u)", "(SELECT * FROM u)"),
            ("sum(a) over (order by b)", "sum(a) OVER (ORDER BY b)"),
            ("case when a = 1 then 2 end", "CASE WHEN a = 1 THEN 2 END"),
        ] {
            let dialect = GenericDialect {};
            let parsed = Parser::new(&dialect).try_with_sql(expr).expect("words").parse_expr();
            assert_eq!(name_of(&parsed.expect("an expression")), expected, "{expr}");
        }
    }

    #[test]
    fn results_have_the_names_of_values() {
        let mut session = three_columns();
        for (query, names) in [
            ("select 40 + 2", &["40 + 2"][..]),
            ("select sum(a), c, t.b::text, count(*) from t group by all", &["sum(a)", "C", "b", "count(*)"]),
            ("select \"sum(a)\" + 1 from (select sum(a) from t) x", &["\"sum(a)\" + 1"]),
            ("with x as (select max(a) from t) select * from x", &["max(a)"]),
            ("select a + 1 from t union all select 7 order by \"a + 1\" desc", &["a + 1"]),
            ("select q.s.x, s.x + 1 from (select {'x': a} as s from t) q", &["x", "s.x + 1"]),
            // Tables of WITH within subqueries that stand for a value.
            ("select (with x as (select a::bigint from t) select max(a) from x)", &["max(a)"]),
            (
                "select b from t where a in (with x as (select sum(a) from u) select \"sum(a)\" - 9 from x)",
                &["b"],
            ),
            (
                "select b from t where exists (with x as (select a + 1 from t) select \"a + 1\" from x)",
                &["b"],
            ),
            (
                "select (with x as (with y as (select a::bigint from t) select a::int from y) select min(a) from x)",
                &["min(a)"],
            ),
        ] {
            assert_eq!(answer(&mut session, query).0, names, "{query}");
        }
        session.run("create view v as select sum(a), b % 20 from t group by b % 20").expect("a view");
        assert_eq!(answer(&mut session, "select \"sum(a)\", \"b % 20\" from v order by 1").1, ["2", "0"]);
    }
}
