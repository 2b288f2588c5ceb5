//! Columns that expressions of ORDER BY, DISTINCT ON, HAVING and QUALIFY read.
//!
//! A column that is cast keeps its name, which nobody has written for the result: in
//! `select ts::date .. order by extract(hour from ts)` the expression reads the column of the table, as in
//! PostgreSQL and DuckDB. The library looks among the values of SELECT first, within expressions too, and
//! cannot keep a column `t.ts` beside a value `ts`. So the value has a tag behind its name until the query is
//! planned, which is the name of no column. A whole key, `order by ts` or `order by ts::date`, is the
//! value, as in PostgreSQL. Of several columns `ts`, and beside a `*`, it means that of the table, with
//! other keys and without.

use super::fields::{Tables, normal};
use super::namesakes::hidden;
use super::value_names::{item_name, own_name, set_name};
use datafusion::logical_expr::sqlparser::ast::{
    Distinct, Expr, Ident, OrderBy, OrderByKind, Select, SelectItem, TableFactor, TableWithJoins, VisitMut,
    VisitorMut,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// The names of columns that a query reads in expressions, which values may not have: those that have them
/// get hidden ones, in whole keys too. `names` has the names of values that nobody has written.
pub(in crate::sql) fn read_in_expressions(
    select: &mut Select,
    order: Option<&mut OrderBy>,
    names: &BTreeMap<String, String>,
    tables: &Tables,
) -> BTreeSet<String> {
    let mut reads = Reads { names, tables, apart: BTreeSet::new() };
    let mut keys: Vec<&mut Expr> = match order.map(|order| &mut order.kind) {
        Some(OrderByKind::Expressions(keys)) => keys.iter_mut().map(|key| &mut key.expr).collect(),
        _ => Vec::new(),
    };
    if let Some(Distinct::On(first)) = &mut select.distinct {
        keys.extend(first);
    }
    for key in &mut keys {
        if let Some(name) = value(key, &select.projection, names) {
            **key = Expr::Identifier(Ident::with_quote('"', name));
        }
        if whole(key).is_none() {
            reads.read(key);
        }
    }
    // The library finds columns of named tables first there.
    let is_named = |tables: &TableWithJoins| {
        std::iter::once(&tables.relation).chain(tables.joins.iter().map(|join| &join.relation)).all(has_name)
    };
    if !select.from.iter().all(is_named) {
        select.having.iter_mut().chain(&mut select.qualify).for_each(|condition| reads.read(condition));
    }
    let apart = reads.apart;
    let only = hide_values(&mut select.projection, &apart, tables);
    hide_names(keys, &only);
    apart
}

/// Hides the names of columns in the keys of an order that are nothing else.
pub(in crate::sql) fn hide_keys(order: &mut OrderBy, names: &BTreeSet<String>) {
    if let OrderByKind::Expressions(keys) = &mut order.kind {
        hide_names(keys.iter_mut().map(|key| &mut key.expr), names);
    }
}

fn hide_names<'a>(keys: impl IntoIterator<Item = &'a mut Expr>, names: &BTreeSet<String>) {
    for name in keys.into_iter().filter_map(whole).filter(|name| names.contains(&normal(name))) {
        name.value = hidden(&normal(name));
        name.quote_style = Some('"');
    }
}

/// Hides the names of values that they may not have; gives those that one value alone has. Columns behind a
/// `*` may have any.
fn hide_values(values: &mut [SelectItem], apart: &BTreeSet<String>, tables: &Tables) -> BTreeSet<String> {
    let names: Vec<Option<String>> = values.iter().map(item_name).collect();
    let are_known = names.iter().all(Option::is_some);
    let mut only = BTreeSet::new();
    for (value, name) in values.iter_mut().zip(&names) {
        let Some(name) = name.as_ref().filter(|name| apart.contains(*name)) else { continue };
        if are_known && names.iter().flatten().filter(|other| *other == name).count() == 1 {
            only.insert(name.clone());
        }
        let SelectItem::UnnamedExpr(expr) = value else { continue };
        let is_column = match expr {
            Expr::Identifier(_) => true,
            Expr::CompoundIdentifier(parts) => parts.first().is_some_and(|first| tables.has(first)),
            _ => false,
        };
        if !is_column {
            set_name(value, hidden(name));
        }
    }
    only
}

/// The name of the value that a key is as well, `order by ts::date`, if no other value may have it.
fn value(key: &Expr, values: &[SelectItem], unwritten: &BTreeMap<String, String>) -> Option<String> {
    let is_key = |value: &&SelectItem| matches!(value, SelectItem::UnnamedExpr(expr) if expr == key);
    let name = values.iter().find(is_key).and(own_name(key)).filter(|name| unwritten.contains_key(name))?;
    let names: Vec<String> = values.iter().map(item_name).collect::<Option<_>>()?;
    (names.iter().filter(|other| **other == name).count() == 1).then_some(name)
}

/// The name that is all of a key.
fn whole(key: &mut Expr) -> Option<&mut Ident> {
    match key {
        Expr::Nested(key) => whole(key),
        Expr::Identifier(name) => Some(name),
        _ => None,
    }
}

/// Whether the columns of a table have a name before them.
fn has_name(table: &TableFactor) -> bool {
    match table {
        TableFactor::Table { .. } => true,
        TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::UNNEST { alias, .. } => alias.is_some(),
        _ => false,
    }
}

struct Reads<'a> {
    names: &'a BTreeMap<String, String>,
    tables: &'a Tables,
    /// Names that values may not have.
    apart: BTreeSet<String>,
}

impl Reads<'_> {
    fn read(&mut self, expr: &mut Expr) {
        // It never breaks off.
        let _whole = VisitMut::visit(expr, self);
    }
}

impl VisitorMut for Reads<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let name = match expr {
            Expr::Identifier(name) => Some(&*name),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, column, ..] if self.tables.has(table) => Some(column),
                parts => parts.first(),
            },
            _ => None,
        };
        let name = name.map(normal).filter(|name| self.names.contains_key(name));
        self.apart.extend(name);
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{answer, rows_in, session_of};
    use crate::sql::{SqlAnswer, SqlSession};

    fn session() -> SqlSession {
        session_of(&[
            "create table t as select * from (values (timestamp '2024-03-31 23:00:00', 2.5, 1), \
             (timestamp '2024-03-31 05:00:00', 2.9, 2), (timestamp '2024-03-31 12:00:00', 2.1, 3)) x(ts, p, v)",
            "create table r as select {'x': v} as s, -v as x, v from t",
        ])
    }

    /// The first words of the rows of a query.
    #[track_caller]
    fn first_words(session: &mut SqlSession, query: &str) -> String {
        let rows = rows_in(session, query);
        let words: Vec<&str> = rows.iter().filter_map(|row| row.split(' ').next()).collect();
        words.join(" ")
    }

    #[test]
    fn expressions_of_keys_read_the_columns_of_tables() {
        let mut session = session();
        let computed = "(select ts + interval '0 hour' as ts, p, v from t)";
        let first = "row_number() over (partition by ts order by v) = 1";
        for (query, expected) in [
            ("select v, ts::date from t order by extract(hour from ts)", "2 3 1"),
            ("select v, cast(ts as date) from t as z order by extract(hour from z.ts), ts", "2 3 1"),
            ("select v, p::int from t order by p - floor(p) desc limit 2", "2 1"),
            ("select v, ts::date from @ order by extract(hour from ts)", "2 3 1"),
            ("select v, ts::date from @ x order by extract(hour from ts)", "2 3 1"),
            ("select v, ts::date from t, (select 1 as one) o order by ts, extract(hour from ts)", "2 3 1"),
            ("select count(*) from (select distinct on (extract(hour from ts)) v, ts::date from t) x", "3"),
            ("select v, s.x from r order by x + 0", "3 2 1"),
            ("select v, (select 1 as x) from r order by x + 0", "3 2 1"),
            ("select v, ts::date from @ qualify #first order by v", "1 2 3"),
            ("select v, ts::date from @ x qualify #first order by v", "1 2 3"),
            ("select max(v), ts::date from @ group by ts having extract(hour from ts) = 12", "3"),
            ("select v, ts::date from t order by t.ts", "2 3 1"),
            // Queries around know the name.
            (
                "select ts from (select v, ts::date from t order by extract(hour from ts) limit 1) x",
                "2024-03-31",
            ),
            (
                "with x as (select v, ts::date from t order by extract(hour from ts) limit 1) select v, ts from x",
                "2",
            ),
            ("select t.v, t.ts::date from t join r on t.v = r.v order by t.v", "1 2 3"),
            // A whole key is the value.
            ("select v, ts::date from t order by ts, v desc", "3 2 1"),
            ("select v, ts::date from t order by ts::date, v desc", "3 2 1"),
            ("select *, ts::date from (select v, ts from t) x order by ts::date, v desc", "3 2 1"),
        ] {
            let query = query.replace('@', computed).replace("#first", first);
            assert_eq!(first_words(&mut session, &query), expected, "{query}");
        }
        for (query, names) in [
            ("select ts::date, v from t order by ts, v", ["ts", "v"]),
            ("select ts::date, max(v) from t group by ts::date order by ts::date", ["ts", "max(v)"]),
            ("select ts::date, v from t order by extract(hour from ts)", ["ts", "v"]),
            ("select ts::date, v from t order by ts, extract(hour from ts)", ["ts", "v"]),
            ("select ts::date, ts::time from t order by extract(hour from ts)", ["ts", "ts"]),
            ("select ts, ts::date from t order by extract(hour from ts)", ["ts", "ts"]),
        ] {
            match session.execute(query).unwrap_or_else(|error| panic!("{query}: {error}")) {
                SqlAnswer::Rows(table) => assert_eq!(table.columns(), names, "{query}"),
                other => panic!("{query}: {other:?}"),
            }
        }
    }

    #[test]
    fn keys_that_several_columns_have_are_those_of_tables() {
        let mut session = session();
        for (query, expected) in [
            ("select v, ts, ts::date from t order by ts, -extract(hour from ts)", "2 3 1"),
            ("select v, t.ts, ts::date from t order by ts, -extract(hour from ts)", "2 3 1"),
            ("select *, ts::date from (select v, ts from t) x order by ts, -extract(hour from ts)", "2 3 1"),
            ("select v, p, p::int from t order by p, abs(p - 3)", "3 1 2"),
            ("select v, p::int, p::text from t order by p, abs(p - 3)", "3 1 2"),
        ] {
            assert_eq!(first_words(&mut session, query), expected, "{query}");
        }
    }

    #[test]
    fn queries_around_know_the_names_of_values() {
        let mut session = session();
        let first = "select v, ts::date from t order by extract(hour from ts) limit 1";
        let beside =
            "select r.*, t.ts::date from t join r on t.v = r.v order by extract(hour from t.ts) limit 1";
        for (query, expected) in [
            ("select ts from (#first)", "2024-03-31"),
            ("select ts from ((#first)) x", "2024-03-31"),
            ("select v from (#first) where ts is not null", "2"),
            ("select p, ts from (select p::int from t order by p - floor(p) limit 1), (#first)", "2"),
            ("(select v, ts::date from t order by extract(hour from ts) limit 2) order by ts, v desc", "3 2"),
            (
                "select distinct on (extract(hour from ts)) v, ts::date from t \
                 union all select 9, date '2020-01-01' order by ts, v",
                "9 1 2 3",
            ),
            ("with x as (#beside) select ts from x", "2024-03-31"),
            ("select \"ts\" from (#beside) x", "2024-03-31"),
            ("select v from (#beside) x where ts > date '2024-01-01' and x.ts is not null order by ts", "2"),
            ("select x.ts from (#beside) x order by \"ts\", x.\"ts\"", "2024-03-31"),
            ("select count(*) from (#beside) x group by v having max(\"ts\") is not null", "1"),
            ("select v from (#beside) x join (select date '2024-03-31' as ts) y using (ts)", "2"),
            ("select x.v from (select 1 as one) o, lateral (#beside) x where x.ts is not null", "2"),
            ("with x as (#beside), y as (select x.ts from x) select y.ts from y", "2024-03-31"),
            (
                "select ts from (select * from (#beside) x) y group by ts having max(ts) is not null",
                "2024-03-31",
            ),
        ] {
            let query = query.replace("#first", first).replace("#beside", beside);
            assert_eq!(first_words(&mut session, &query), expected, "{query}");
        }
        for (values, names) in [("ts, v", ["ts", "v"]), ("ts is null, ts::text", ["ts IS NULL", "ts"])] {
            let query = format!("select {values} from ({beside}) x");
            assert_eq!(answer(&mut session, &query).0, names, "{query}");
        }
    }
}
